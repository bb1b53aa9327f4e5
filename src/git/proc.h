/* SPDX-License-Identifier: MIT */
/*
 * proc: running a program to completion.
 */
#ifndef GIT_PROC_H
#define GIT_PROC_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* A NULL-terminated list of strings. */
#define PROC_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct proc {
    const char *const *argv;   /* NULL-terminated */
    const char *const *prefix; /* words that run `argv`; NULL: none */
    const char *const *env;    /* NULL-terminated */
    const char *folder;        /* working directory */
    const char *input;         /* for its standard input; NULL: /dev/null */
    int input_fd;              /* the same from a file; 0: none */
    struct strbuf *output;     /* gets its standard output; NULL: ours */
    size_t output_max;         /* stop the program after more bytes than this;
                                  0: after far too many, which is an error */
    int output_fd;             /* the same to a file; 0: none */
    struct strbuf *errors;     /* gets its standard error; NULL: ours */
    bool is_session;           /* forward checkpoint signals to it */
    bool (*is_over)(void *);   /* or NULL: called at intervals; true: stop the
                                  program, with all processes below this one */
    void *ctx;                 /* argument of is_over */
};

/* Exit status of a program. */
struct proc_end {
    int code;   /* -1: killed by a signal */
    int signal; /* 0: none */
    bool over;  /* is_over has stopped it, whatever its exit code */
    bool cut;   /* output_max has stopped it */
};

/*
 * Run the program and wait until it exits. A checkpoint signal to this process
 * is forwarded to a session; a termination signal does not cut the wait short.
 * Return an error only if the program could not be started or watched;
 * ERR_LIMIT: too much output.
 */
MUST_USE enum err
proc_run(const struct proc *proc, struct proc_end *end_out, struct diag *diag);

/* Forward or block signals as above from now on. Call once, early. */
void proc_pass_signals(void);

/* Return whether a termination signal has arrived since then. */
bool proc_is_ending(void);

/* Wait for a lock on a file (flock); false on error. A termination signal
 * during the wait kills this process. */
bool proc_lock(int fd, int how);

#endif /* GIT_PROC_H */
