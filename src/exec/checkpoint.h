/* SPDX-License-Identifier: MIT */
/*
 * checkpoint: checkpoint requests to a session, by SIGUSR1.
 *
 * The default action of SIGUSR1 is to kill, so only processes that handle it
 * get it. A shell that runs a program usually does not, so its children get it
 * instead. A session without a process that handles the signal has only the
 * file that $SLUICE_CHECKPOINT names, which the shim creates first.
 *
 * It uses the C library only, as the shim does.
 */
#ifndef EXEC_CHECKPOINT_H
#define EXEC_CHECKPOINT_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Send SIGUSR1 to a process, if it handles the signal, else to its children
 * that do, else to theirs: to the topmost processes only. Return how many
 * processes got it. `pid` must be a child of the caller that was not waited
 * for, so that the pid cannot belong to another process.
 */
uint32_t checkpoint_ask(pid_t pid);

/* SIGUSR1 in the status of a thread. */
struct checkpoint_status {
    bool caught;  /* a handler is set: the same for all threads */
    bool blocked; /* by this thread */
    bool sleeps;  /* this thread waits for an event */
};

/* Parse the content of /proc/PID/status or /proc/PID/task/TID/status; return
 * false if a line is missing. */
MUST_USE bool checkpoint_read_status(const char *text,
                                     size_t len,
                                     struct checkpoint_status *out);

#endif /* EXEC_CHECKPOINT_H */
