/* SPDX-License-Identifier: MIT */
/*
 * meters: what the program of a usage monitor prints, as JSON:
 * [{"name": "5h", "percent": 63, "resets_at": "2030-01-31T22:00:00Z"}].
 */
#ifndef EXEC_METERS_H
#define EXEC_METERS_H

#include "base/diag.h"

#include <stddef.h>
#include <stdint.h>

struct meter {
    char *name; /* without control characters */
    double percent;
    int64_t resets_ns; /* wall clock; 0: not known */
};

/* Read a list of meters, of which there is at least one. ERR_INVALID: *diag
 * says what is wrong. Free *out with meters_free(). */
MUST_USE enum err meters_parse(const char *bytes,
                               size_t len,
                               struct meter **out,
                               uint32_t *count_out,
                               struct diag *diag);

/* Free a list. NULL is allowed. */
void meters_free(struct meter *meters, uint32_t count);

#endif /* EXEC_METERS_H */
