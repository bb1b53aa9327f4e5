/* SPDX-License-Identifier: MIT */
/*
 * pg_roles: roles of the database for workers and readers of a store.
 */
#ifndef STORE_PG_ROLES_H
#define STORE_PG_ROLES_H

#include "base/diag.h"
#include "base/strbuf.h"

/* Append the statements; they are for the first schema of the search path. */
void pg_roles_add_sql(struct strbuf *out);

/*
 * Create the roles of the store at an address, and give them their privileges;
 * what they had before is revoked. Appends the name of the schema. ERR_DENIED:
 * not as this role. ERR_NOT_FOUND: no store is there.
 */
MUST_USE enum err
pg_roles_apply(const char *address, struct strbuf *schema, struct diag *diag);

#endif /* STORE_PG_ROLES_H */
