/* SPDX-License-Identifier: MIT */
/*
 * json: the pieces of JSON output. The caller writes the punctuation.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/strbuf.h"

#include <stdint.h>

/* Append a text as a JSON string, with quotes; NULL becomes null. */
void json_string(struct strbuf *out, const char *text);

/* Append nanoseconds as seconds, exact, without useless zeros: 90, 0.25. */
void json_seconds(struct strbuf *out, int64_t duration_ns);

#endif /* BASE_JSON_H */
