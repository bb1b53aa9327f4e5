/* SPDX-License-Identifier: MIT */
/*
 * runner: execution of an agent's program, with a callback for each line.
 *
 * The program has a process group of its own and its standard input from a
 * file. Signals to this process are never forwarded unchanged: SIGUSR1 (a
 * checkpoint), SIGTERM, SIGINT and SIGHUP make it stop the program, by SIGTERM
 * to the whole group and SIGKILL after RUNNER_GRACE_MS. After the program has
 * exited, its remaining descendants are stopped, too: this process is the
 * subreaper of all of them.
 */
#ifndef AGENT_RUNNER_H
#define AGENT_RUNNER_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

enum { RUNNER_GRACE_MS = 5000 };

/* Why the runner stopped the program. */
enum runner_stop {
    RUNNER_RAN,        /* not stopped: it exited or was killed */
    RUNNER_CHECKPOINT, /* SIGUSR1, or the checkpoint file */
    RUNNER_MESSAGE,    /* an operator has a message */
    RUNNER_FINISHED,   /* it did not exit after it had finished */
    RUNNER_TERMINATED, /* SIGTERM, SIGINT, SIGHUP */
};

/* Receive a whole line without its newline; from standard error if `error`. A
 * line that is too long is passed as NULL, once. */
typedef void (*runner_line_fn)(void *ctx,
                               const char *line,
                               size_t len,
                               bool error);

struct runner {
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NULL-terminated */
    const char *input;       /* file for its standard input */
    const char *events;      /* file that keeps its standard output */
    const char *checkpoint;  /* file that asks for a checkpoint, or NULL */
    const char *finish;      /* file by which the session finishes, or NULL */
    const char *messages;    /* file with messages of operators, or NULL, ... */
    size_t messages_bytes;   /* ... of which the program knows these bytes */
    bool confined; /* the program is below a sandbox, which does not pass
                      signals on */
    runner_line_fn line;
    void *ctx;
};

struct runner_end {
    int code;   /* exit code; -1: a signal */
    int signal; /* 0: none */
    enum runner_stop stop;
};

/* Block signals and become a subreaper. Call once, before anything else. */
MUST_USE enum err runner_prepare(struct diag *diag);

/* Run it until it exits. ERR_NOT_FOUND: the program does not exist; ERR_IO. */
MUST_USE enum err runner_run(const struct runner *runner,
                             struct runner_end *end_out,
                             struct diag *diag);

/* Whether the file of messages has one that the program does not know. */
bool runner_has_message(const struct runner *runner);

/* Append the whole output of a short command; return its exit code, or -1. */
int runner_output(struct strbuf *out, const char *const *argv);

#endif /* AGENT_RUNNER_H */
