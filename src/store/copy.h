/* SPDX-License-Identifier: MIT */
/*
 * copy: all rows of a store into an empty one, of any back end.
 */
#ifndef STORE_COPY_H
#define STORE_COPY_H

#include "store/store.h"

/* What was copied. */
struct store_copied {
    uint64_t runs;
    uint64_t events;
    uint64_t rows; /* of all tables, events too */
};

/*
 * Copy `from` to `to`, both taken by this process, in one transaction, and
 * compare every row afterwards. `to` continues where `from` is: with its
 * numbers, tokens and checksums, and a greater epoch. Close both afterwards.
 *
 * ERR_CONFLICT: attempts are in flight, or `to` is not empty; nothing was
 * written. ERR_CORRUPT: `from` is damaged, and nothing was written; or `to`
 * differs, and must not be used. Other errors: nothing was written.
 */
MUST_USE enum err store_copy(struct store *from,
                             struct store *to,
                             struct store_copied *out,
                             struct diag *diag);

#endif /* STORE_COPY_H */
