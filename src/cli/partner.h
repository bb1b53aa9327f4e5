/* SPDX-License-Identifier: MIT */
/*
 * partner: a sluice process beside this one, for stores that several machines
 * use: the worker of `sluice run`, the scheduler of `sluice work
 * --may-schedule`.
 *
 * Its standard input is a pipe from this process: at its end it finishes what
 * it has, and exits. So it outlives a killed process only as long as its
 * sessions run. It has a process group of its own, so that Ctrl-C does not
 * reach it.
 */
#ifndef CLI_PARTNER_H
#define CLI_PARTNER_H

#include "base/strbuf.h"

#include <stdint.h>
#include <sys/types.h>

enum { PARTNER_WORDS_MAX = 24 };

/* Starts as PARTNER_NONE. */
struct partner {
    const char *words[PARTNER_WORDS_MAX]; /* borrowed; NULL-terminated */
    pid_t process;                        /* 0: none */
    int fd;                               /* the pipe; -1: none */
    int64_t begun_ns;                     /* its last start */
};

#define PARTNER_NONE                                                           \
    {                                                                          \
        .fd = -1                                                               \
    }

/* Add a word of its command line. */
void partner_add(struct partner *partner, const char *word);

/* Start it, unless it runs; start it again when it has died. Nothing happens
 * without words. */
void partner_tend(struct partner *partner);

/* Let it finish; wait for its exit for at most `wait_ms`. */
void partner_end(struct partner *partner, int wait_ms);

#endif /* CLI_PARTNER_H */
