/* SPDX-License-Identifier: MIT */
/*
 * child: a sluice command run as a child process, with its output.
 *
 * `sluice top` runs the existing commands to send requests, read logs and
 * explain reasons. They are separate processes, so the UI never blocks, and a
 * key does exactly what the command does.
 */
#ifndef TERM_CHILD_H
#define TERM_CHILD_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <sys/types.h>

/* Starts as {.fd = -1}. */
struct child {
    pid_t process; /* 0: none */
    int fd;        /* its output, non-blocking; -1: at EOF */
};

/*
 * Run this program with these words (NULL-terminated, without the program
 * name). `errors`: read its standard error, too, else discard it. Signals that
 * are blocked here are not blocked in the child.
 */
MUST_USE enum err child_start(struct child *child,
                              const char *const *words,
                              bool errors,
                              struct diag *diag);

/* Append new output; false at EOF. */
bool child_read(struct child *child, struct strbuf *out);

/* Wait for it to exit, which is soon after child_read() returned false; return
 * its exit code, or 128 plus the signal that killed it. */
int child_wait(struct child *child);

/* Forget it: kill it (a command that only reads), or leave it running. */
void child_drop(struct child *child, bool kill_it);

#endif /* TERM_CHILD_H */
