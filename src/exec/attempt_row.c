/* SPDX-License-Identifier: MIT */
#include "exec/attempt_row.h"

#include <stdio.h>
#include <string.h>

struct attempt_row attempt_row_of(const struct store_attempt *row)
{
    struct attempt_row made = {0};
    (void)snprintf(made.boot_id, sizeof(made.boot_id), "%s", row->boot_id);
    (void)snprintf(made.nonce, sizeof(made.nonce), "%s", row->nonce);
    return made;
}

enum err attempt_row_state(const struct attempt_row *row,
                           const char *dir,
                           enum attempt_state *out,
                           struct diag *diag)
{
    struct attempt_found found = {0};
    struct attempt_row any = {0};
    attempt_boot_id(any.boot_id);
    enum err err = attempt_inspect(dir,
                                   row != NULL ? row->boot_id : any.boot_id,
                                   &found,
                                   diag);
    if (err == ERR_OK && row != NULL && found.named &&
        strcmp(found.nonce, row->nonce) != 0) {
        found.state = ATTEMPT_NEVER;
    }
    if (err == ERR_OK) {
        *out = found.state;
    }
    return err;
}
