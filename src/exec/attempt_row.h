/* SPDX-License-Identifier: MIT */
/*
 * attempt_row: what became of an attempt that the store has a row of, for
 * those who only look: nothing is fenced, adopted or ended.
 */
#ifndef EXEC_ATTEMPT_ROW_H
#define EXEC_ATTEMPT_ROW_H

#include "exec/attempt.h"
#include "store/batch.h"

/* What tells the attempt from others. A plain value, not to be looked into. */
struct attempt_row {
    char boot_id[37];
    char nonce[ATTEMPT_NONCE_BYTES];
};

struct attempt_row attempt_row_of(const struct store_attempt *row);

/*
 * Find its state in its directory. Files of another attempt: ATTEMPT_NEVER.
 * NULL: of any attempt of the present boot. Fails like attempt_inspect().
 */
MUST_USE enum err attempt_row_state(const struct attempt_row *row,
                                    const char *dir,
                                    enum attempt_state *out,
                                    struct diag *diag);

#endif /* EXEC_ATTEMPT_ROW_H */
