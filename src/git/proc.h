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

struct proc {
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NULL-terminated */
    const char *folder;      /* where it runs */
    const char *input;       /* for its standard input; NULL: /dev/null */
    struct strbuf *output;   /* gets its standard output; NULL: ours */
    struct strbuf *errors;   /* gets its standard error; NULL: ours */
};

/* How it ended. */
struct proc_end {
    int code;   /* -1: by a signal */
    int signal; /* 0: none */
};

/*
 * Run it to its end. Signals that ask this process to end or to make a
 * checkpoint are passed on to it, and it is waited for. An error only when it
 * could not be started or watched; ERR_LIMIT: it printed too much.
 */
MUST_USE enum err
proc_run(const struct proc *proc, struct proc_end *end_out, struct diag *diag);

/* The same as a process that sessions may meet: all signals as at the start of
 * a program. Call once, early: from then on signals are passed on. */
void proc_pass_signals(void);

#endif /* GIT_PROC_H */
