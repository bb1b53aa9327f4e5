/* SPDX-License-Identifier: MIT */
/*
 * jsonw: the pieces of JSON output. The caller writes the punctuation.
 */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include "base/strbuf.h"

#include <stdint.h>

/* Append a text as a JSON string, with quotes; NULL becomes null. Bytes that
 * are not UTF-8 become question marks: what comes out is always JSON. */
void jsonw_string(struct strbuf *out, const char *text);

/* Append nanoseconds as seconds, exact, without useless zeros: 90, 0.25. */
void jsonw_seconds(struct strbuf *out, int64_t duration_ns);

/* Append a time of the wall clock in UTC, to the millisecond, as a string. */
void jsonw_time(struct strbuf *out, int64_t wall_ns);

#endif /* BASE_JSONW_H */
