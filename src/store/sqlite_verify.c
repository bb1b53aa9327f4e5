/* SPDX-License-Identifier: MIT */
/*
 * Checks that only SQLite can make: the structure of the file, the schema, and
 * acknowledged writes that are missing. A bit flip inside a row is not detected
 * here: verify.c compares rows with each other.
 */
#include "store/sqlite_internal.h"

#include "base/invariant.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <string.h>

/* Faults that one check reports; more would not help. */
enum { FAULTS_MAX = 100 };

struct verifying {
    struct sqlite_store *store;
    store_fault_fn fn;
    void *ctx;
    struct diag *diag;
};

static void fault(struct verifying *verifying, const char *text)
{
    verifying->fn(verifying->ctx, text);
}

/*
 * An error of SQLite stops a check. Damage is a fault like others, and the next
 * check may find more; any other error stops the verification.
 */
static enum err check_failed(struct verifying *verifying, int rc)
{
    struct diag diag = {0};
    enum err err = sqlite_fail(verifying->store, rc, &diag);
    if (err != ERR_CORRUPT) {
        return diag_set(verifying->diag, err, "%s", diag.text);
    }
    fault(verifying, sqlite3_errmsg(verifying->store->db));
    return ERR_OK;
}

/* Called for each row; false: stop. */
typedef bool (*row_fn)(struct verifying *verifying,
                       struct sqlite_row *row,
                       void *ctx);

static enum err
check_rows(struct verifying *verifying, const char *sql, row_fn fn, void *ctx)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(verifying->store->db, sql, -1, &stmt, NULL);
    bool more = true;
    while ((rc == SQLITE_OK || rc == SQLITE_ROW) && more) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            struct sqlite_row row = {.stmt = stmt};
            more = fn(verifying, &row, ctx);
        }
    }
    enum err err = ERR_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        err = check_failed(verifying, rc);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

/* Report each row as a fault, except the "ok" of integrity_check. */
static bool
report_row(struct verifying *verifying, struct sqlite_row *row, void *ctx)
{
    uint32_t *count = ctx;
    const char *text = sqlite_text(row, 0);
    if (strcmp(text, "ok") != 0) {
        fault(verifying, text);
    }
    return ++*count < FAULTS_MAX;
}

static enum err check_texts(struct verifying *verifying, const char *sql)
{
    uint32_t count = 0;
    return check_rows(verifying, sql, report_row, &count);
}

/* The schema as a sorted list of strings. */
#define SCHEMA                                                                 \
    "SELECT type || ' ' || name || ': ' || coalesce(sql, '')"                  \
    " FROM sqlite_schema ORDER BY 1"

static bool
add_line(struct verifying *verifying, struct sqlite_row *row, void *ctx)
{
    (void)verifying;
    strbuf_addf(ctx, "%s\n", sqlite_text(row, 0));
    return true;
}

/* Compare the schema with that of a new database in memory. */
static enum err check_schema(struct verifying *verifying)
{
    struct strbuf stored = {0};
    struct strbuf made = {0};
    struct sqlite_store model = {.dir = verifying->store->dir};
    struct verifying other = *verifying;
    other.store = &model;
    enum err err = check_rows(verifying, SCHEMA, add_line, &stored);
    if (err == ERR_OK) {
        int rc = sqlite3_open(":memory:", &model.db);
        if (rc != SQLITE_OK || sqlite_build_schema(model.db) != ERR_OK) {
            err = diag_set(verifying->diag,
                           ERR_UNAVAILABLE,
                           "SQLite cannot create a database in memory");
        }
    }
    if (err == ERR_OK) {
        err = check_rows(&other, SCHEMA, add_line, &made);
    }
    if (err == ERR_OK &&
        strcmp(strbuf_text(&stored), strbuf_text(&made)) != 0) {
        fault(verifying, "the schema differs from that of sluice");
    }
    (void)sqlite3_close(model.db);
    strbuf_release(&made);
    strbuf_release(&stored);
    return err;
}

static enum err check_head(struct verifying *verifying,
                           const struct lock_record *record)
{
    struct diag diag = {0};
    struct store_info info = {0};
    enum err err = sqlite_read_head(verifying->store, &info, &diag);
    if (err == ERR_CORRUPT) {
        fault(verifying, diag.text);
        return ERR_OK;
    }
    if (err != ERR_OK) {
        return diag_set(verifying->diag, err, "%s", diag.text);
    }
    if (info.writes < record->writes) {
        (void)diag_set(&diag,
                       ERR_CORRUPT,
                       "the last %" PRIu64 " writes are missing: an older copy "
                       "was restored, or sluice.db-wal is damaged",
                       record->writes - info.writes);
        fault(verifying, diag.text);
    }
    return ERR_OK;
}

enum err sqlite_check(struct store *base,
                      store_fault_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(!store->held && !store->writing);
    struct verifying verifying = {
        .store = store,
        .fn = fn,
        .ctx = ctx,
        .diag = diag,
    };
    /* First the record: the database, read later, is then at least as new. */
    struct lock_record record;
    enum err err = lock_read(&store->lock, &record, diag);
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        err = sqlite_need_db(store, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_begin(store, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = check_texts(&verifying, "PRAGMA integrity_check");
    if (err == ERR_OK) {
        err = check_schema(&verifying);
    }
    if (err == ERR_OK) {
        err = check_head(&verifying, &record);
    }
    sqlite_rollback(store);
    return err;
}
