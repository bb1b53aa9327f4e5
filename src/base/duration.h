/* SPDX-License-Identifier: MIT */
/*
 * duration: human-readable durations: 90s, 30m, 1h30m, 250ms.
 */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stdint.h>

/* Units of time in nanoseconds. */
#define MS_NS INT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS (60 * MINUTE_NS)
#define DAY_NS (24 * HOUR_NS)

/* Longest duration accepted: 365 days. */
#define DURATION_MAX_NS (365 * DAY_NS)

/*
 * Read a duration: one or more numbers with a unit each (ms, s, m, h, d), each
 * with up to four decimals. ERR_INVALID: not a duration. ERR_LIMIT: longer than
 * DURATION_MAX_NS.
 */
MUST_USE enum err duration_read(const char *text, size_t len, int64_t *out_ns);

/* Return the sum of two durations, at most INT64_MAX. */
static inline int64_t duration_sum(int64_t a_ns, int64_t b_ns)
{
    return a_ns > INT64_MAX - b_ns ? INT64_MAX : a_ns + b_ns;
}

/* Return `first_ns` doubled `times` times, at most `max_ns` (back-off step). */
int64_t duration_doubled(int64_t first_ns, uint32_t times, int64_t max_ns);

/* Append it rounded to seconds: "0s", "45s", "26m", "1h 05m", "2d 3h". */
void duration_add(struct strbuf *out, int64_t duration_ns);

#endif /* BASE_DURATION_H */
