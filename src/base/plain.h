/* SPDX-License-Identifier: MIT */
/*
 * plain: texts of others in one line of a terminal.
 *
 * Reasons and titles come from sessions and plans. Whatever could move the
 * cursor or change colours is removed (see base/strip.h), line breaks too, so
 * that a line stays a line and says what it seems to say.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include "base/strbuf.h"

#include <stdint.h>

/* One character of a text. */
struct plain_character {
    uint32_t code;
    uint32_t bytes; /* at least 1 */
};

/* The character at `at`, which is not the end of its text. A byte that begins
 * none is taken for one by itself. */
struct plain_character plain_decode(const char *at);

/* Append the text in one line, with single spaces between its words. */
void plain_add(struct strbuf *out, const char *text);

/*
 * Append a line of at most `columns` columns: the start of `text`, which is
 * plain already, with "..." at its end when something was cut off.
 */
void plain_add_cut(struct strbuf *out, const char *text, uint32_t columns);

/* Columns that a plain text takes on a terminal. */
uint32_t plain_columns(const char *text);

/* How a moment is written, in local time. */
enum plain_clock {
    PLAIN_MINUTES, /* 14:05 */
    PLAIN_SECONDS, /* 14:05:30 */
    PLAIN_DATE,    /* 2026-03-04 14:05 */
    PLAIN_ZONE,    /* 2026-03-04 14:05:30 +0100 */
};

/* Append a moment of the wall clock; "?" if there is no such one. */
void plain_add_clock(struct strbuf *out, int64_t wall_ns, enum plain_clock as);

#endif /* BASE_PLAIN_H */
