/* SPDX-License-Identifier: MIT */
/*
 * peek: logs of sessions, for those who look from another machine. The end of a
 * log is kept in the store when its session has ended; of a running session,
 * pieces are stored as long as somebody asks for them.
 */
#ifndef WORK_PEEK_H
#define WORK_PEEK_H

#include "base/jsonw.h"

#include <stdbool.h>
#include <stdint.h>

/* A piece of a log that somebody wants. */
struct peek {
    uint64_t token;
    uint64_t first; /* offset of its first byte */
};

/* Append an element: the end of the log in this attempt directory. */
void peek_add_copy(struct jsonw *json, uint64_t token, const char *dir);

/* Append an element: a piece of it. `ended`: there is no such session. */
void peek_add_piece(struct jsonw *json,
                    const struct peek *peek,
                    const char *dir,
                    bool ended);

#endif /* WORK_PEEK_H */
