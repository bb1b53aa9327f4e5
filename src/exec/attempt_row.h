/* SPDX-License-Identifier: MIT */
/*
 * attempt_row: state of an attempt that has a row in the store, for read-only
 * callers: they fence, adopt and stop nothing.
 */
#ifndef EXEC_ATTEMPT_ROW_H
#define EXEC_ATTEMPT_ROW_H

#include "exec/attempt.h"
#include "store/batch.h"

/* Identifies the attempt. A plain value; treat it as opaque. */
struct attempt_row {
    char boot_id[37];
    char nonce[ATTEMPT_NONCE_BYTES];
};

struct attempt_row attempt_row_of(const struct store_attempt *row);

/*
 * Read the state from the attempt directory. Files of another attempt:
 * ATTEMPT_NEVER. `row` NULL: any attempt of this boot. Fails like
 * attempt_inspect().
 */
MUST_USE enum err attempt_row_state(const struct attempt_row *row,
                                    const char *dir,
                                    enum attempt_state *out,
                                    struct diag *diag);

#endif /* EXEC_ATTEMPT_ROW_H */
