/* SPDX-License-Identifier: MIT */
/*
 * Queries as SQL. Rows that a query does not select are not read: tasks are
 * found run by run, by ranges of their key (CROSS JOIN: the runs first), the
 * other rows by indexes.
 */
#include "store/sqlite_internal.h"

#include "base/invariant.h"

#include <inttypes.h>
#include <string.h>

enum err sqlite_read_head(struct sqlite_store *store,
                          struct store_info *out,
                          struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_slot(store,
                               SLOT_HEAD,
                               "SELECT epoch, engine_ns, wall_ns, last_token,"
                               " last_event, last_command, last_run, last_sum,"
                               " writes, id FROM scheduler WHERE one = 1",
                               &stmt,
                               diag);
    if (err != ERR_OK) {
        return err;
    }
    int rc = sqlite3_step(stmt);
    struct sqlite_row row = {.stmt = stmt};
    if (rc == SQLITE_ROW) {
        *out = (struct store_info){
            .epoch = (uint64_t)sqlite_i64(&row, 0),
            .engine_ns = sqlite_i64(&row, 1),
            .wall_ns = sqlite_i64(&row, 2),
            .last_token = (uint64_t)sqlite_i64(&row, 3),
            .last_event = (uint64_t)sqlite_i64(&row, 4),
            .last_command = (uint64_t)sqlite_i64(&row, 5),
            .last_run = (uint64_t)sqlite_i64(&row, 6),
            .last_sum = (uint64_t)sqlite_i64(&row, 7),
            .writes = (uint64_t)sqlite_i64(&row, 8),
        };
        const char *id = sqlite_text(&row, 9);
        size_t len = strlen(id);
        if (len > 0 && len < sizeof(out->id)) {
            memcpy(out->id, id, len + 1);
        }
        /* Counters must be able to grow by one. */
        row.bad = row.bad || out->id[0] == '\0' || out->epoch >= INT64_MAX ||
                  out->last_token > INT64_MAX || out->last_event >= INT64_MAX ||
                  out->last_command >= INT64_MAX ||
                  out->last_run > STORE_RUN_MAX || out->writes >= INT64_MAX;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        err = sqlite_fail(store, rc, diag);
    } else if (rc == SQLITE_DONE || row.bad) {
        err =
            sqlite_corrupt(store, diag, "the table scheduler has no valid row");
    }
    (void)sqlite3_reset(stmt);
    return err;
}

enum err
sqlite_hold(struct store *base, struct store_info *out, struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(!store->held);
    enum err err = sqlite_need_db(store, diag);
    if (err == ERR_OK) {
        err = sqlite_begin(store, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    store->held = true;
    INVARIANT(!store->writing);
    err = sqlite_read_head(store, out, diag);
    if (err != ERR_OK) {
        sqlite_let_go(base);
    }
    return err;
}

void sqlite_let_go(struct store *base)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(store->held);
    INVARIANT(!store->writing);
    sqlite_rollback(store); /* stops reading; nothing was written */
    store->held = false;
}

/* Bind a string to a named parameter, if the statement has it. */
static void bind_named(sqlite3_stmt *stmt, const char *name, const char *text)
{
    int ix = sqlite3_bind_parameter_index(stmt, name);
    if (ix > 0) {
        int rc = sqlite3_bind_text(stmt, ix, text, -1, SQLITE_STATIC);
        INVARIANT(rc == SQLITE_OK);
    }
}

/* Pass each row of a statement to `fn`, and finalize the statement. */
static enum err visit(struct sqlite_store *store,
                      sqlite3_stmt *stmt,
                      const struct column_table *table,
                      store_row_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    INVARIANT(sqlite3_column_count(stmt) == (int)table->count);
    INVARIANT(sqlite3_stmt_readonly(stmt) != 0);
    enum err err = ERR_OK;
    int rc = SQLITE_ROW;
    while (err == ERR_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct sqlite_row row = {.stmt = stmt};
        union store_row out;
        sqlite_get(&row, table, &out);
        if (row.bad) {
            err = sqlite_corrupt(store,
                                 diag,
                                 "table %s, row %lld: invalid value",
                                 table->name,
                                 (long long)sqlite3_column_int64(stmt, 0));
        } else {
            err = fn(ctx, &out);
        }
    }
    if (err == ERR_OK && rc != SQLITE_DONE) {
        err = sqlite_fail(store, rc, diag);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

/* The condition on table run that selects the query's runs. */
static const char *wanted(const struct store_query *query)
{
    if (query->run != NULL) {
        return "run.id = :run";
    }
    return query->finished ? "1" : "run.finished = 0";
}

/* The same for gates: of a repository, the last ones, or of runs. */
static void add_gates(struct strbuf *sql, const struct store_query *query)
{
    if (query->repo != NULL) {
        strbuf_adds(sql, "gate WHERE repo = :repo");
    } else if (query->gates > 0) {
        strbuf_addf(sql,
                    "(SELECT * FROM gate ORDER BY token DESC, place DESC"
                    " LIMIT %u)",
                    query->gates);
    } else {
        strbuf_addf(sql,
                    "gate WHERE run IN (SELECT run.number FROM run WHERE %s)",
                    wanted(query));
    }
}

/* Append the table and the condition that selects the rows. */
static void add_source(struct strbuf *sql,
                       enum store_kind kind,
                       const struct store_query *query)
{
    const char *name = columns_of(kind)->name;
    switch (kind) {
    case STORE_KIND_RUN:
        strbuf_addf(sql,
                    "run WHERE %s(%s)",
                    query->others ? "NOT " : "",
                    wanted(query));
        return;
    case STORE_KIND_TASK:
        /* +id: SQLite would build an index of all tasks, for one query. */
        strbuf_addf(sql,
                    "(SELECT run.number AS owner FROM run WHERE %s)"
                    " CROSS JOIN task ON key BETWEEN owner << 32"
                    " AND (owner << 32) + 4294967295%s",
                    wanted(query),
                    query->task != NULL ? " WHERE +id = :task" : "");
        return;
    case STORE_KIND_ATTEMPT:
        strbuf_addf(sql,
                    "attempt%s run IN (SELECT run.number FROM run WHERE %s)",
                    query->ended ? " WHERE"
                                 : " INDEXED BY attempt_open"
                                   " WHERE state <> 'ended' AND",
                    wanted(query));
        return;
    case STORE_KIND_FRAGMENT:
    case STORE_KIND_LIMIT:
        strbuf_addf(sql,
                    "%s WHERE run IN (SELECT run.number FROM run WHERE %s)",
                    name,
                    wanted(query));
        return;
    case STORE_KIND_GATE:
        add_gates(sql, query);
        return;
    case STORE_KIND_COMMAND:
        strbuf_adds(sql, "command");
        if (query->key != NULL) {
            strbuf_adds(sql, " WHERE key = :key");
        } else if (!query->answered) {
            strbuf_adds(sql, " INDEXED BY command_open WHERE answer IS NULL");
        }
        return;
    case STORE_KIND_PROVIDER:
    case STORE_KIND_SETTING:
    case STORE_KIND_EVENT:
    case STORE_KINDS:
        break;
    }
    strbuf_adds(sql, name);
}

enum err sqlite_rows(struct store *base,
                     enum store_kind kind,
                     const struct store_query *query,
                     store_row_fn fn,
                     void *ctx,
                     struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    const struct column_table *table = columns_of(kind);
    INVARIANT(store->held);
    INVARIANT(kind != STORE_KIND_EVENT); /* see sqlite_events() */
    struct strbuf sql = {0};
    strbuf_adds(&sql, "SELECT ");
    sqlite_add_names(&sql, table);
    strbuf_adds(&sql, " FROM ");
    if (query != NULL) {
        add_source(&sql, kind, query);
    } else {
        strbuf_adds(&sql, table->name);
    }
    bool by_run = query != NULL && kind == STORE_KIND_TASK;
    strbuf_addf(&sql, " ORDER BY %s%s", by_run ? "owner, " : "", table->order);
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(store, strbuf_text(&sql), &stmt, diag);
    strbuf_release(&sql);
    if (err != ERR_OK) {
        return err;
    }
    if (query != NULL) {
        bind_named(stmt, ":run", query->run);
        bind_named(stmt, ":task", query->task);
        bind_named(stmt, ":key", query->key);
        bind_named(stmt, ":repo", query->repo);
    }
    return visit(store, stmt, table, fn, ctx, diag);
}

/* Append the events after ?1 that satisfy a condition. */
static void add_events(struct strbuf *sql, const char *condition)
{
    strbuf_adds(sql, "SELECT ");
    sqlite_add_names(sql, columns_of(STORE_KIND_EVENT));
    strbuf_addf(sql, " FROM event WHERE %snumber > ?1", condition);
}

enum err sqlite_events(struct store *base,
                       const struct store_range *range,
                       store_row_fn fn,
                       void *ctx,
                       struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(range->after < INT64_MAX);
    sqlite3_stmt *stmt = NULL;
    struct strbuf sql = {0};
    add_events(&sql, range->run > 0 ? "run = ?3 AND " : "");
    if (range->run > 0) {
        strbuf_adds(&sql, " UNION ALL ");
        add_events(&sql, "run IS NULL AND ");
    }
    strbuf_adds(&sql, " ORDER BY number LIMIT ?2");
    enum err err = sqlite_need_db(store, diag);
    if (err == ERR_OK) {
        err = sqlite_prepare(store, strbuf_text(&sql), &stmt, diag);
    }
    strbuf_release(&sql);
    if (err != ERR_OK) {
        return err;
    }
    int64_t max = range->max > 0 ? (int64_t)range->max : -1;
    INVARIANT(sqlite3_bind_parameter_count(stmt) == (range->run > 0 ? 3 : 2));
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)range->after);
    (void)sqlite3_bind_int64(stmt, 2, max);
    if (range->run > 0) {
        (void)sqlite3_bind_int64(stmt, 3, range->run);
    }
    return visit(store, stmt, columns_of(STORE_KIND_EVENT), fn, ctx, diag);
}
