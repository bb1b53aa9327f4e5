/* SPDX-License-Identifier: MIT */
/*
 * meters: parser of a usage monitor's JSON output:
 *  [{"name": "5h", "percent": 63, "resets_at": "2030-01-31T22:00:00Z"}].
 */
#ifndef EXEC_METERS_H
#define EXEC_METERS_H

#include "base/diag.h"

#include <stddef.h>
#include <stdint.h>

struct meter {
    char *name; /* without control characters */
    double percent;
    int64_t resets_ns; /* wall clock; 0: unknown */
};

/* Read a list of at least one meter. ERR_INVALID: *diag has the reason. Free
 * *out with meters_free(). */
MUST_USE enum err meters_parse(const char *bytes,
                               size_t len,
                               struct meter **out,
                               uint32_t *count_out,
                               struct diag *diag);

/* Free a list. NULL is allowed. */
void meters_free(struct meter *meters, uint32_t count);

#endif /* EXEC_METERS_H */
