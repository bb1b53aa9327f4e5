/* SPDX-License-Identifier: MIT */
/* take_over: replaces the scheduler of a store, for `sluice run --take-over`.
 */
#ifndef CLI_TAKE_OVER_H
#define CLI_TAKE_OVER_H

#include "base/diag.h"
#include "store/store.h"

/*
 * Take the store's lock. A process that will release it soon is waited for;
 * another one is killed, if it is on this machine. ERR_BUSY: it does not go.
 */
MUST_USE enum err
take_over_store(struct store *store, uint64_t *epoch_out, struct diag *diag);

#endif /* CLI_TAKE_OVER_H */
