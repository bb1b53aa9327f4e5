/* SPDX-License-Identifier: MIT */
/*
 * plain: untrusted text on one line of a terminal.
 *
 * Reasons and titles come from sessions and plans. Bytes that could move the
 * cursor or change colours are removed (see base/strip.h), and so are line
 * breaks, so that a line stays a line and cannot fake other output.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include "base/strbuf.h"

#include <stdint.h>

/* One character of a string. */
struct plain_character {
    uint32_t code;
    uint32_t bytes; /* at least 1 */
};

/* Decode the character at `at`, which is not the terminating NUL. An invalid
 * byte counts as one character. */
struct plain_character plain_decode(const char *at);

/* Append `text` as one line, with single spaces between its words. */
void plain_add(struct strbuf *out, const char *text);

/*
 * Append the start of `text`, which is plain already, in at most `columns`
 * columns, with "..." if it was truncated.
 */
void plain_add_cut(struct strbuf *out, const char *text, uint32_t columns);

/* Return the columns that a plain string takes on a terminal. */
uint32_t plain_columns(const char *text);

/* Formats of a time, in local time. */
enum plain_clock {
    PLAIN_MINUTES, /* 14:05 */
    PLAIN_SECONDS, /* 14:05:30 */
    PLAIN_DATE,    /* 2026-03-04 14:05 */
    PLAIN_ZONE,    /* 2026-03-04 14:05:30 +0100 */
};

/* Append a wall-clock time; "?" if it is invalid. */
void plain_add_clock(struct strbuf *out, int64_t wall_ns, enum plain_clock as);

#endif /* BASE_PLAIN_H */
