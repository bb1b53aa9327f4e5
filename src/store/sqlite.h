/* SPDX-License-Identifier: MIT */
/*
 * sqlite: the store in a directory of this machine. docs/store.md describes its
 * files.
 */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include "store/store.h"

/* Open a store in a directory; as store_open(). */
MUST_USE enum err sqlite_open_store(struct store **out,
                                    const char *dir,
                                    enum store_mode mode,
                                    struct diag *diag);

/* Version of the schema that this program writes. */
int sqlite_schema_version(void);

#endif /* STORE_SQLITE_H */
