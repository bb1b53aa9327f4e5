/* SPDX-License-Identifier: MIT */
/*
 * Queries as SQL. Rows are read by COPY, in its binary format: that costs the
 * server and us a fraction of what a result of all rows does.
 */
#include "store/pg_internal.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

enum err pg_get_head(struct pg_store *store,
                     const PGresult *result,
                     struct store_info *out,
                     struct diag *diag)
{
    if (PQntuples(result) != 1) {
        return diag_set(diag,
                        ERR_CORRUPT,
                        "the store %s is damaged: the table scheduler has no "
                        "valid row",
                        store->link.shown);
    }
    *out = (struct store_info){
        .epoch = (uint64_t)pg_i64(result, 0, 0),
        .engine_ns = pg_i64(result, 0, 1),
        .wall_ns = pg_i64(result, 0, 2),
        .last_token = (uint64_t)pg_i64(result, 0, 3),
        .last_event = (uint64_t)pg_i64(result, 0, 4),
        .last_command = (uint64_t)pg_i64(result, 0, 5),
        .last_run = (uint64_t)pg_i64(result, 0, 6),
        .last_sum = (uint64_t)pg_i64(result, 0, 7),
        .writes = (uint64_t)pg_i64(result, 0, 8),
    };
    const char *id = pg_text(result, 0, 9);
    size_t len = strlen(id);
    if (len > 0 && len < sizeof(out->id)) {
        memcpy(out->id, id, len + 1);
    }
    /* Counters must be able to grow by one. */
    bool bad = out->id[0] == '\0' || out->epoch >= INT64_MAX ||
               out->last_token > INT64_MAX || out->last_event >= INT64_MAX ||
               out->last_command >= INT64_MAX ||
               out->last_run > STORE_RUN_MAX || out->writes >= INT64_MAX;
    return bad ? diag_set(diag,
                          ERR_CORRUPT,
                          "the store %s is damaged: the table scheduler has no "
                          "valid row",
                          store->link.shown)
               : ERR_OK;
}

enum err pg_need(struct pg_store *store, struct diag *diag)
{
    uint64_t before = store->link.number;
    enum err err = pg_link_need(&store->link, diag);
    bool checked = store->link.number == before && !store->outdated;
    if (err == ERR_OK && (!checked || before == 0)) {
        err = pg_check_schema(store, diag);
    }
    return err;
}

enum err pg_hold(struct store *base, struct store_info *out, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    INVARIANT(!store->held && !store->writing);
    enum err err = pg_need(store, diag);
    if (err != ERR_OK) {
        return err == ERR_UNAVAILABLE && base->epoch > 0 ? ERR_BUSY : err;
    }
    PGresult *result = pg_run(&store->link,
                              "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                              "SELECT " PG_HEAD " FROM scheduler",
                              NULL,
                              &err,
                              diag);
    store->held = store->link.conn != NULL;
    if (err == ERR_OK) {
        err = pg_get_head(store, result, out, diag);
    }
    PQclear(result);
    if (err == ERR_OK && base->epoch > 0 && out->epoch <= base->epoch) {
        err = pg_check_head(store, out, diag); /* the caller compares greater
                                                  ones */
    }
    if (err != ERR_OK && store->held) {
        pg_let_go(base);
    }
    return err;
}

void pg_let_go(struct store *base)
{
    struct pg_store *store = (struct pg_store *)base;
    struct diag ignored = {0};
    INVARIANT(store->held || store->link.conn == NULL);
    if (store->link.conn != NULL) {
        (void)!pg_do(&store->link, "ROLLBACK", NULL, NULL, &ignored);
    }
    store->held = false;
}

/* --- rows --------------------------------------------------------------- */

/* Rows being received. */
struct copying {
    struct pg_store *store;
    const struct column_table *table;
    store_row_fn fn;
    void *ctx;
    bool begun; /* the header of the format has passed */
};

/* "PGCOPY" and more, flags, and the length of an extension. */
enum { COPY_HEADER = 11 + 4 + 4 };

/* Pass one row on. */
static enum err
give_row(struct copying *copying, char *bytes, size_t len, struct diag *diag)
{
    union store_row row;
    int64_t number;
    if (!copying->begun) {
        if (len < COPY_HEADER) {
            return diag_set(diag, ERR_IO, "PostgreSQL sent an unknown format");
        }
        bytes += COPY_HEADER;
        len -= COPY_HEADER;
        copying->begun = true;
    }
    if (len == 0 || (len == 2 && bytes[0] == '\377' && bytes[1] == '\377')) {
        return ERR_OK; /* the end */
    }
    if (!pg_get(bytes, len, copying->table, &row, &number)) {
        return diag_set(diag,
                        ERR_CORRUPT,
                        "the store %s is damaged: table %s, row %" PRId64
                        ": invalid value",
                        copying->store->link.shown,
                        copying->table->name,
                        number);
    }
    return copying->fn(copying->ctx, &row);
}

/* Read the next part of a copy; 0: at its end. */
static int next_part(struct pg_link *link,
                     char **out,
                     enum err *err_out,
                     struct diag *diag)
{
    int64_t until_ns = clock_boot_ns() + PG_WAIT_MS * MS_NS;
    for (;;) {
        int len = PQgetCopyData(link->conn, out, 1);
        if (len == -1) {
            return 0;
        }
        if (len > 0) {
            return len;
        }
        enum err err = len == 0 ? pg_wait(link, false, until_ns, diag) : ERR_IO;
        if (err == ERR_TIMEOUT) {
            pg_link_drop(link);
            *err_out = ERR_BUSY;
            return 0;
        }
        if (err != ERR_OK || PQconsumeInput(link->conn) == 0) {
            *err_out = pg_fail(link, NULL, diag);
            return 0;
        }
    }
}

/* Read all parts; after an error of ours the rest is read and dropped. */
static enum err receive(struct copying *copying, struct diag *diag)
{
    struct pg_link *link = &copying->store->link;
    enum err err = ERR_OK;
    enum err lost = ERR_OK;
    char *bytes = NULL;
    int len;
    while ((len = next_part(link, &bytes, &lost, diag)) > 0) {
        if (err == ERR_OK) {
            err = give_row(copying, bytes, (size_t)len, diag);
        }
        PQfreemem(bytes);
    }
    return lost != ERR_OK ? lost : err;
}

/* Run a query as a copy, and pass each row to `fn`. */
static enum err copy_rows(struct pg_store *store,
                          const struct strbuf *sql,
                          enum store_kind kind,
                          store_row_fn fn,
                          void *ctx,
                          struct diag *diag)
{
    struct pg_link *link = &store->link;
    struct copying copying = {
        .store = store,
        .table = columns_of(kind),
        .fn = fn,
        .ctx = ctx,
    };
    if (link->conn == NULL) {
        return diag_set(diag,
                        ERR_BUSY,
                        "%s: the connection is lost",
                        link->shown);
    }
    if (PQsendQuery(link->conn, strbuf_text(sql)) == 0) {
        return pg_fail(link, NULL, diag);
    }
    enum err err = ERR_OK;
    PGresult *result = pg_next(link, &err, diag);
    if (err == ERR_OK && PQresultStatus(result) != PGRES_COPY_OUT) {
        err = pg_fail(link, result, diag);
    } else if (err == ERR_OK) {
        err = receive(&copying, diag);
    }
    PQclear(result);
    while (link->conn != NULL) {
        enum err after = ERR_OK;
        result = pg_next(link, &after, err == ERR_OK ? diag : NULL);
        err = err == ERR_OK ? after : err;
        if (result == NULL) {
            break;
        }
        if (err == ERR_OK && PQresultStatus(result) != PGRES_COMMAND_OK) {
            err = pg_fail(link, result, diag);
        }
        PQclear(result);
    }
    return err;
}

/* Append a text as a literal: COPY has no parameters. */
static void
add_literal(struct strbuf *sql, struct pg_store *store, const char *text)
{
    char *valid = mem_strdup(text);
    size_t len = strlen(valid);
    utf8_repair(valid, len);
    char *literal = store->link.conn != NULL
                        ? PQescapeLiteral(store->link.conn, valid, len)
                        : NULL;
    strbuf_adds(sql, literal != NULL ? literal : "NULL");
    PQfreemem(literal);
    mem_free(valid);
}

/* Append the condition on table run that selects the query's runs. */
static void add_wanted(struct strbuf *sql,
                       struct pg_store *store,
                       const struct store_query *query)
{
    if (query->run != NULL) {
        strbuf_adds(sql, "run.id = ");
        add_literal(sql, store, query->run);
    } else {
        strbuf_adds(sql, query->finished ? "true" : "NOT run.finished");
    }
}

/* Append a condition on the column `run` of a table. */
static void add_of_runs(struct strbuf *sql,
                        struct pg_store *store,
                        const char *table,
                        const struct store_query *query)
{
    strbuf_addf(sql,
                "%s WHERE %s.run IN (SELECT run.number FROM run WHERE ",
                table,
                table);
    add_wanted(sql, store, query);
    strbuf_adds(sql, ")");
}

static void add_gates(struct strbuf *sql,
                      struct pg_store *store,
                      const struct store_query *query)
{
    if (query->repo != NULL) {
        strbuf_adds(sql, "gate WHERE repo = ");
        add_literal(sql, store, query->repo);
    } else if (query->gates > 0) {
        strbuf_addf(sql,
                    "(SELECT * FROM gate ORDER BY token DESC, place DESC"
                    " LIMIT %u) AS newest",
                    query->gates);
    } else {
        add_of_runs(sql, store, "gate", query);
    }
}

/* Append the table and the condition that selects the rows. */
static void add_source(struct strbuf *sql,
                       struct pg_store *store,
                       enum store_kind kind,
                       const struct store_query *query)
{
    const char *name = columns_of(kind)->name;
    switch (kind) {
    case STORE_KIND_RUN:
        strbuf_addf(sql, "run WHERE %s(", query->others ? "NOT " : "");
        add_wanted(sql, store, query);
        strbuf_adds(sql, ")");
        return;
    case STORE_KIND_TASK:
        strbuf_adds(sql,
                    "run JOIN task ON task.key BETWEEN run.number << 32"
                    " AND (run.number << 32) + 4294967295 WHERE ");
        add_wanted(sql, store, query);
        if (query->task != NULL) {
            strbuf_adds(sql, " AND task.id = ");
            add_literal(sql, store, query->task);
        }
        return;
    case STORE_KIND_ATTEMPT:
        add_of_runs(sql, store, name, query);
        strbuf_adds(sql, query->ended ? "" : " AND NOT over");
        return;
    case STORE_KIND_FRAGMENT:
    case STORE_KIND_LIMIT:
        add_of_runs(sql, store, name, query);
        return;
    case STORE_KIND_GATE:
        add_gates(sql, store, query);
        return;
    case STORE_KIND_COMMAND:
        strbuf_adds(sql, "command");
        if (query->key != NULL) {
            strbuf_adds(sql, " WHERE key = ");
            add_literal(sql, store, query->key);
        } else if (!query->answered) {
            strbuf_adds(sql, " WHERE answer IS NULL");
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

enum err pg_rows(struct store *base,
                 enum store_kind kind,
                 const struct store_query *query,
                 store_row_fn fn,
                 void *ctx,
                 struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    const struct column_table *table = columns_of(kind);
    INVARIANT(store->held || store->link.conn == NULL);
    INVARIANT(kind != STORE_KIND_EVENT); /* see pg_events() */
    struct strbuf sql = {0};
    strbuf_adds(&sql, "COPY (SELECT ");
    pg_add_names(&sql, table, kind == STORE_KIND_TASK ? "task." : "");
    strbuf_adds(&sql, " FROM ");
    if (query != NULL) {
        add_source(&sql, store, kind, query);
    } else {
        strbuf_adds(&sql, table->name);
    }
    strbuf_addf(&sql, " ORDER BY %s) TO STDOUT (FORMAT binary)", table->order);
    enum err err = copy_rows(store, &sql, kind, fn, ctx, diag);
    strbuf_release(&sql);
    return err;
}

/* Append the events of a range that satisfy a condition. */
static void add_events(struct strbuf *sql,
                       const struct store_range *range,
                       const char *condition)
{
    strbuf_adds(sql, "(SELECT ");
    pg_add_names(sql, columns_of(STORE_KIND_EVENT), "");
    strbuf_addf(sql,
                " FROM event WHERE %snumber > %" PRIu64 " ORDER BY number",
                condition,
                range->after);
    if (range->max > 0) {
        strbuf_addf(sql, " LIMIT %u", range->max);
    }
    strbuf_adds(sql, ")");
}

enum err pg_events(struct store *base,
                   const struct store_range *range,
                   store_row_fn fn,
                   void *ctx,
                   struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    INVARIANT(range->after < INT64_MAX);
    enum err err = store->held ? ERR_OK : pg_need(store, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct strbuf sql = {0};
    strbuf_adds(&sql, "COPY (");
    if (range->run > 0) {
        char condition[64];
        (void)
            snprintf(condition, sizeof(condition), "run = %u AND ", range->run);
        add_events(&sql, range, condition);
        strbuf_adds(&sql, " UNION ALL ");
        add_events(&sql, range, "run IS NULL AND ");
        strbuf_adds(&sql, " ORDER BY number");
        if (range->max > 0) {
            strbuf_addf(&sql, " LIMIT %u", range->max);
        }
    } else {
        add_events(&sql, range, "");
    }
    strbuf_adds(&sql, ") TO STDOUT (FORMAT binary)");
    err = copy_rows(store, &sql, STORE_KIND_EVENT, fn, ctx, diag);
    strbuf_release(&sql);
    return err;
}
