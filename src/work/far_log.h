/* SPDX-License-Identifier: MIT */
/*
 * far_log: the log of a session on another machine, as a file on this one.
 *
 * The file grows by what its worker sends through the store. Of a session that
 * has ended, only the end of a long log is in the store.
 */
#ifndef WORK_FAR_LOG_H
#define WORK_FAR_LOG_H

#include "base/diag.h"
#include "store/place.h"

#include <stdbool.h>
#include <stdint.h>

struct far_log;

/* Open the log of an attempt. ERR_NOT_FOUND: the store has no other machines.
 */
MUST_USE enum err far_log_open(struct far_log **out,
                               const struct store_place *place,
                               uint64_t token,
                               struct diag *diag);

/* The directory with the file `log`. */
const char *far_log_dir(const struct far_log *log);

/*
 * Append what is new; *more_out: ask again, because there is more, or the
 * worker has not sent anything yet. ERR_NOT_FOUND: nobody has this log.
 */
MUST_USE enum err
far_log_pull(struct far_log *log, bool *more_out, struct diag *diag);

/* NULL is allowed. */
void far_log_close(struct far_log *log);

#endif /* WORK_FAR_LOG_H */
