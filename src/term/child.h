/* SPDX-License-Identifier: MIT */
/*
 * child: another command of sluice, run beside this one, with its output.
 *
 * `sluice top` has requests given, logs read and reasons told by the commands
 * that are there for it. They are processes of their own, so nothing that they
 * wait for is waited for here, and what a key does is what the command does.
 */
#ifndef TERM_CHILD_H
#define TERM_CHILD_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <sys/types.h>

/* Starts as {.fd = -1}. */
struct child {
    pid_t process; /* 0: there is none */
    int fd;        /* what it prints; does not block; -1: at its end */
};

/*
 * Run this program with these words (the last is NULL; the name of the program
 * is put in front). `errors`: what it says on standard error is read, too,
 * else thrown away. Signals that are blocked here are not blocked there.
 */
MUST_USE enum err child_start(struct child *child,
                              const char *const *words,
                              bool errors,
                              struct diag *diag);

/* Append what it has printed since; false: that was the end of it. */
bool child_read(struct child *child, struct strbuf *out);

/* Wait for its end, which is near once child_read() has said so; its exit code,
 * or 128 and the signal that ended it. */
int child_wait(struct child *child);

/* Let go of it: end it at once (one that only reads), or leave it alone. */
void child_drop(struct child *child, bool kill_it);

#endif /* TERM_CHILD_H */
