/* SPDX-License-Identifier: MIT */
/*
 * proc: run a program and wait for its end.
 */
#ifndef GIT_PROC_H
#define GIT_PROC_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* Words, as a NULL-terminated list. */
#define PROC_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct proc {
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NULL-terminated */
    const char *folder;      /* where it runs */
    const char *input;       /* for its standard input; NULL: /dev/null */
    struct strbuf *output;   /* gets its standard output; NULL: ours */
    struct strbuf *errors;   /* gets its standard error; NULL: ours */
    bool is_session;         /* what asks for a checkpoint is passed on to it */
};

/* How it ended. */
struct proc_end {
    int code;   /* -1: by a signal */
    int signal; /* 0: none */
};

/*
 * Run it to its end. A signal that asks this process for a checkpoint is passed
 * on to a session; after one that asks it to end, the program is waited for. An
 * error only when it could not be started or watched; ERR_LIMIT: it printed too
 * much.
 */
MUST_USE enum err
proc_run(const struct proc *proc, struct proc_end *end_out, struct diag *diag);

/* From now on, signals are passed on or kept as above. Call once, early. */
void proc_pass_signals(void);

/* Whether a signal has asked this process to end, since then. */
bool proc_is_ending(void);

/* Wait for a lock on a file (flock); false: it cannot be locked. A signal that
 * asks for an end ends the wait, and this process. */
bool proc_lock(int fd, int how);

#endif /* GIT_PROC_H */
