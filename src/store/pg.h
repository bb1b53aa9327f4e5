/* SPDX-License-Identifier: MIT */
/*
 * pg: the back end for PostgreSQL, 13 or newer. See store.h for the interface;
 * only store_open() calls this.
 */
#ifndef STORE_PG_H
#define STORE_PG_H

#include "store/store.h"

MUST_USE enum err pg_open_store(struct store **out,
                                const char *address,
                                enum store_mode mode,
                                struct diag *diag);

/* Read the identity of a store; with `make` it is created if there is none. */
MUST_USE enum err
pg_identify(const char *address, bool make, char id[33], struct diag *diag);

/* The version of the schema that this program writes. */
int pg_schema_version(void);

#endif /* STORE_PG_H */
