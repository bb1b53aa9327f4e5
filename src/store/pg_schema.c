/* SPDX-License-Identifier: MIT */
/*
 * Creation and migration of the schema, each in one transaction. Its version is
 * the row of the table `version`. Step N in schema/postgres/ leads from version
 * N - 1 to N; a new schema gets all of them. A released step never changes.
 */
#include "store/pg_internal.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "store/pg.h"
#include "store/schema/pg_steps.h"

enum { SCHEMA = ARRAY_COUNT(steps) };

/* Held while the schema is being made, so that one process makes it. Within a
 * transaction the server notices what others have made when it opens a table:
 * without the second statement, the new schema would not be found. */
#define MAKING                                                                 \
    "SELECT pg_advisory_xact_lock(hashtext('sluice schema'));"                 \
    " SELECT nspname FROM pg_catalog.pg_namespace LIMIT 0"

int pg_schema_version(void)
{
    return SCHEMA;
}

/* Read the version; 0: there is no schema. */
static enum err
read_version(struct pg_store *store, int64_t *out, struct diag *diag)
{
    enum err err = ERR_OK;
    *out = 0;
    PGresult *result =
        pg_run(&store->link,
               "SELECT to_regclass('version') IS NOT NULL"
               " AND pg_table_is_visible(to_regclass('version')),"
               " EXISTS (SELECT 1 FROM pg_namespace WHERE nspname ="
               "  current_setting('search_path')"
               "  AND NOT has_schema_privilege(oid, 'USAGE'))",
               NULL,
               &err,
               diag);
    bool exists = err == ERR_OK && pg_bool(result, 0, 0);
    if (err == ERR_OK && pg_bool(result, 0, 1)) {
        err = diag_set(diag,
                       ERR_DENIED,
                       "%s: the role %s may not use the store's schema; its "
                       "owner can grant it a role of `sluice store roles`",
                       store->link.shown,
                       PQuser(store->link.conn));
    }
    PQclear(result);
    if (!exists) {
        return err;
    }
    result =
        pg_run(&store->link, "SELECT number FROM version", NULL, &err, diag);
    if (err == ERR_OK && PQntuples(result) == 1) {
        *out = pg_i64(result, 0, 0);
    } else if (err == ERR_OK) {
        err = diag_set(diag,
                       ERR_CORRUPT,
                       "the store %s has no version: restore a backup",
                       store->link.shown);
    }
    PQclear(result);
    return err;
}

enum err pg_check_schema(struct pg_store *store, struct diag *diag)
{
    int64_t version = 0;
    store->outdated = false;
    enum err err = read_version(store, &version, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (version == 0) {
        return diag_set(diag,
                        ERR_NOT_FOUND,
                        "no store in %s",
                        store->link.shown);
    }
    if (version > SCHEMA) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "the store %s has version %lld, but this sluice (%s) "
                        "supports versions up to %d: use a newer sluice",
                        store->link.shown,
                        (long long)version,
                        SLUICE_VERSION,
                        SCHEMA);
    }
    store->outdated = version < SCHEMA;
    if (store->outdated) {
        return diag_set(
            diag,
            ERR_UNAVAILABLE,
            "the store %s has version %lld, but this sluice (%s) reads version "
            "%d: `sluice run` upgrades it, once no older sluice uses it",
            store->link.shown,
            (long long)version,
            SLUICE_VERSION,
            SCHEMA);
    }
    return ERR_OK;
}

/* Run the steps from `version` on, and set the version. */
static enum err
run_steps(struct pg_store *store, int64_t version, struct diag *diag)
{
    enum err err = ERR_OK;
    INVARIANT(version >= 0 && version < SCHEMA);
    for (size_t ix = (size_t)version; ix < SCHEMA && err == ERR_OK; ix++) {
        err = pg_do(&store->link, steps[ix], NULL, NULL, diag);
    }
    struct pg_params params = {0};
    pg_add_i64(&params, SCHEMA);
    if (err == ERR_OK) {
        err = pg_do(&store->link,
                    "UPDATE version SET number = $1",
                    &params,
                    NULL,
                    diag);
    }
    return err;
}

enum err pg_make_schema(struct pg_store *store, struct diag *diag)
{
    struct pg_link *link = &store->link;
    int64_t version = 0;
    enum err err = read_version(store, &version, diag);
    if (err != ERR_OK || version > 0) {
        return err;
    }
    err = pg_do(link, "BEGIN; " MAKING, NULL, NULL, diag);
    if (err == ERR_OK) {
        err = read_version(store, &version, diag);
    }
    if (err == ERR_OK && version == 0) {
        err = pg_do(link,
                    "DO $$ BEGIN EXECUTE format("
                    "'CREATE SCHEMA IF NOT EXISTS %I',"
                    " current_setting('search_path')); END $$;"
                    " CREATE TABLE version (number bigint NOT NULL);"
                    " INSERT INTO version VALUES (0)",
                    NULL,
                    NULL,
                    diag);
        if (err == ERR_OK) {
            err = run_steps(store, 0, diag);
        }
    }
    struct diag ignored = {0};
    if (err == ERR_OK) {
        err = pg_do(link, "COMMIT", NULL, NULL, diag);
    } else if (link->conn != NULL) {
        (void)!pg_do(link, "ROLLBACK", NULL, NULL, &ignored);
    }
    return err;
}

enum err pg_migrate(struct pg_store *store, struct diag *diag)
{
    int64_t version = 0;
    enum err err = read_version(store, &version, diag);
    if (err == ERR_OK && version < SCHEMA) {
        err = run_steps(store, version, diag);
    }
    store->outdated = store->outdated && err != ERR_OK;
    return err;
}
