/* SPDX-License-Identifier: MIT */
/*
 * utc: wall-clock times as strings.
 */
#ifndef BASE_UTC_H
#define BASE_UTC_H

#include "base/duration.h"
#include "base/macros.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* The last second that fits in int64_t nanoseconds, in the year 2262. */
#define UTC_SECONDS_MAX (INT64_MAX / SECOND_NS - 1)

/* Append it to the millisecond: 2030-01-31T12:00:00.000Z. If it is before 1970
 * or too late, append nothing and return false. */
MUST_USE bool utc_add(struct strbuf *out, int64_t wall_ns);

/* Read an RFC 3339 time (2030-01-31T12:00:00Z) as nanoseconds since 1970. */
MUST_USE bool utc_read(const char *text, int64_t *ns_out);

#endif /* BASE_UTC_H */
