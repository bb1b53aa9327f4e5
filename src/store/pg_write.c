/* SPDX-License-Identifier: MIT */
/*
 * Writing of batches. Rows are collected by kind, and go to the server in one
 * pipeline, a statement for each kind, and the commit as the last: one round
 * trip. A statement that does not find or add each of its rows fails, and with
 * it the batch.
 *
 * Only the scheduler changes the head, so it is kept from batch to batch, and
 * not read again: the statement that changes it checks the epoch and the number
 * of batches before. When the connection is lost during a commit, these tell
 * whether it was done:
 *
 *   found            result
 *   n                it was committed
 *   n - 1            it was not: send it again, a late arrival then fails
 *   another epoch    ERR_CONFLICT: another scheduler
 *   less than n - 1  ERR_CORRUPT: acknowledged batches are missing
 *   nothing          ERR_BUSY: the same batch must be tried again
 */
#include "store/pg_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

/* How often a batch is sent again before the caller is told; how many rows are
 * kept in memory before they are sent. */
enum { TRIES = 3, ROWS_MAX = 20000 };

/* The kinds of rows that are written, and how. */
static const struct {
    enum store_kind kind;
    enum store_put how;
} written[] = {
    {STORE_KIND_RUN, STORE_PUT_NEW},
    {STORE_KIND_RUN, STORE_PUT_UPDATE},
    {STORE_KIND_FRAGMENT, STORE_PUT_NEW},
    {STORE_KIND_LIMIT, STORE_PUT_REPLACE},
    {STORE_KIND_PROVIDER, STORE_PUT_REPLACE},
    {STORE_KIND_SETTING, STORE_PUT_REPLACE},
    {STORE_KIND_SETTING, STORE_PUT_DROP},
    {STORE_KIND_TASK, STORE_PUT_REPLACE},
    {STORE_KIND_ATTEMPT, STORE_PUT_NEW},
    {STORE_KIND_ATTEMPT, STORE_PUT_UPDATE},
    {STORE_KIND_GATE, STORE_PUT_NEW},
    {STORE_KIND_EVENT, STORE_PUT_NEW},
    {STORE_KIND_COMMAND, STORE_PUT_NEW},
    {STORE_KIND_COMMAND, STORE_PUT_UPDATE},
};

/* Only the connection that has joined last may commit: what another one has
 * sent before can reach the server later. */
#define HEAD_SET                                                               \
    "WITH put AS (UPDATE scheduler SET engine_ns = $1, wall_ns = $2,"          \
    " last_token = $3, last_event = $4, last_sum = $5, last_command = $6,"     \
    " last_run = $7, writes = $8, beat = clock_timestamp(),"                   \
    " lease_until = greatest(lease_until, " PG_LEASE_UNTIL ")"                 \
    " WHERE epoch = $9 AND writes = $8 - 1 AND holder = $10"                   \
    " AND backend_pid = pg_backend_pid() RETURNING 1)"                         \
    " SELECT batch_fits('scheduler', count(*), 1) FROM put"

/* What was assigned to a worker goes with the end of its attempt. */
#define WORK_DROP                                                              \
    "DELETE FROM work USING attempt WHERE work.token = attempt.token"          \
    " AND attempt.token = ANY ($1::int8[]) AND attempt.over"

/*
 * Orders for workers. They are seen at once, and the batch is on disk when its
 * writer hears of it: between these two, a worker can already accept. As that
 * must be on disk, too, so is the batch, which comes before it in the log of
 * the server. The empty message has the commit that waits for the disk.
 */
#define WORK_ADD                                                               \
    "SELECT scheduler_assign($1::jsonb),"                                      \
    " set_config('synchronous_commit', 'off', true)"
#define WORK_SYNC "SELECT pg_logical_emit_message(true, 'sluice', '')"

/* --- collecting --------------------------------------------------------- */

/* Rows from now on come after all rows before. */
static void new_segment(struct pg_store *store)
{
    store->segment = store->group_count;
    strmap_release(&store->keys);
    arena_release(&store->texts);
}

void pg_forget_batch(struct pg_store *store)
{
    for (uint32_t ix = 0; ix < store->group_count; ix++) {
        pg_group_release(&store->groups[ix]);
    }
    store->group_count = 0;
    store->rows = 0;
    new_segment(store);
}

static struct pg_group *
group_of(struct pg_store *store, enum store_kind kind, enum store_put how)
{
    for (uint32_t ix = store->segment; ix < store->group_count; ix++) {
        struct pg_group *group = &store->groups[ix];
        if (group->kind == kind && group->how == how) {
            return group;
        }
    }
    MEM_GROW(store->groups, store->group_count, store->group_capacity);
    struct pg_group *group = &store->groups[store->group_count++];
    *group = (struct pg_group){.kind = kind, .how = how};
    return group;
}

static void note_run(struct pg_store *store, uint32_t number)
{
    store->known[store->known_next++ % PG_KNOWN_RUNS] = number;
}

enum err pg_put(struct store *base,
                enum store_kind kind,
                enum store_put how,
                const union store_row *row,
                struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    INVARIANT(store->writing);
    if (store->done) {
        return ERR_OK;
    }
    strbuf_clear(&store->text);
    pg_add_key(&store->text, kind, row);
    if (store->text.len > 0) {
        const char *text = strbuf_text(&store->text);
        if (strmap_find(&store->keys, text, store->text.len) != STRMAP_NONE) {
            new_segment(store);
        }
        (void)strmap_add(&store->keys,
                         arena_strndup(&store->texts, text, store->text.len),
                         0);
    }
    struct pg_group *group = group_of(store, kind, how);
    pg_group_add(group, row);
    if (kind == STORE_KIND_ATTEMPT && how == STORE_PUT_UPDATE &&
        strcmp(row->attempt.state, "ended") == 0) {
        group->ended = true;
    }
    if (kind == STORE_KIND_RUN && how == STORE_PUT_NEW) {
        note_run(store, row->run.number);
    }
    return ++store->rows < ROWS_MAX ? ERR_OK : pg_flush(store, diag);
}

enum err pg_find_run(struct store *base, uint32_t number, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    INVARIANT(store->writing && number > 0);
    if (store->done) {
        return ERR_OK;
    }
    for (uint32_t ix = 0; ix < PG_KNOWN_RUNS; ix++) {
        if (store->known[ix] == number) {
            return ERR_OK;
        }
    }
    struct pg_params params = {0};
    pg_add_i64(&params, number);
    enum err err = pg_link_need(&store->link, diag);
    if (err != ERR_OK) {
        return err == ERR_UNAVAILABLE ? ERR_BUSY : err;
    }
    PGresult *result = pg_run(&store->link,
                              "SELECT 1 FROM run WHERE number = $1",
                              &params,
                              &err,
                              diag);
    if (err == ERR_OK && PQntuples(result) == 0) {
        err = ERR_NOT_FOUND;
    } else if (err == ERR_OK) {
        note_run(store, number);
    }
    PQclear(result);
    return err;
}

/* --- the connection ----------------------------------------------------- */

static void
add_name(struct strbuf *out, enum store_kind kind, enum store_put how)
{
    strbuf_clear(out);
    strbuf_addf(out, "put_%u_%u", (unsigned)kind, (unsigned)how);
}

/* Prepare a statement of a pipeline. */
static bool prepare(struct pg_store *store, const char *name, const char *sql)
{
    return PQsendPrepare(store->link.conn, name, sql, 0, NULL) != 0;
}

/* Read the results of a pipeline; each must succeed. */
static enum err
read_results(struct pg_store *store, uint32_t count, struct diag *diag)
{
    struct pg_link *link = &store->link;
    enum err first = ERR_OK;
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix <= count; ix++) { /* the last is the sync */
        PGresult *result = pg_next(link, &err, diag);
        if (err != ERR_OK) {
            return err;
        }
        ExecStatusType status = PQresultStatus(result);
        bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
                    status == PGRES_PIPELINE_SYNC ||
                    status == PGRES_PIPELINE_ABORTED;
        if (!good && first == ERR_OK) {
            first = pg_fail(link, result, diag);
        }
        PQclear(result);
        if (link->conn == NULL) {
            return first;
        }
        if (ix < count) {
            result = pg_next(link, &err, diag); /* the end of this statement */
            INVARIANT(result == NULL);
            if (err != ERR_OK) {
                return err;
            }
        }
    }
    return PQexitPipelineMode(link->conn) != 0 ? first
                                               : pg_fail(link, NULL, diag);
}

/* Have the statements of a batch prepared on this connection. */
static enum err prepare_all(struct pg_store *store, struct diag *diag)
{
    struct strbuf name = {0};
    struct strbuf sql = {0};
    bool sent = PQenterPipelineMode(store->link.conn) != 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(written) && sent; ix++) {
        add_name(&name, written[ix].kind, written[ix].how);
        strbuf_clear(&sql);
        pg_add_put(&sql, written[ix].kind, written[ix].how);
        sent = prepare(store, strbuf_text(&name), strbuf_text(&sql));
    }
    sent = sent && prepare(store, "head_set", HEAD_SET) &&
           prepare(store, "work_drop", WORK_DROP) &&
           prepare(store, "work_add", WORK_ADD) &&
           prepare(store, "work_sync", WORK_SYNC) &&
           prepare(store, "begin", "BEGIN") &&
           prepare(store, "commit", "COMMIT") &&
           PQpipelineSync(store->link.conn) != 0;
    strbuf_release(&name);
    strbuf_release(&sql);
    return sent ? read_results(store, ARRAY_COUNT(written) + 6, diag)
                : pg_fail(&store->link, NULL, diag);
}

/* Connect, and make the connection the scheduler's. */
static enum err need_writer(struct pg_store *store, struct diag *diag)
{
    enum err err = pg_link_need(&store->link, diag);
    if (err != ERR_OK) {
        return err == ERR_UNAVAILABLE ? ERR_BUSY : err;
    }
    if (store->prepared == store->link.number) {
        return ERR_OK;
    }
    err = pg_rejoin(store, diag);
    if (err == ERR_OK) {
        err = prepare_all(store, diag);
    }
    if (err == ERR_OK) {
        store->prepared = store->link.number;
    }
    return err;
}

/* --- sending ------------------------------------------------------------ */

static bool send_group(struct pg_store *store,
                       struct pg_group *group,
                       struct strbuf *name,
                       uint32_t *sent)
{
    const char *values[PG_COLUMNS_MAX];
    int lengths[PG_COLUMNS_MAX];
    int formats[PG_COLUMNS_MAX];
    int count = pg_group_close(group, values, lengths);
    for (int ix = 0; ix < count; ix++) {
        formats[ix] = 1;
    }
    add_name(name, group->kind, group->how);
    ++*sent;
    if (PQsendQueryPrepared(store->link.conn,
                            strbuf_text(name),
                            count,
                            values,
                            lengths,
                            formats,
                            0) == 0) {
        return false;
    }
    if (!group->ended) {
        return true;
    }
    ++*sent;
    return PQsendQueryPrepared(store->link.conn,
                               "work_drop",
                               1,
                               values,
                               lengths,
                               formats,
                               0) != 0;
}

static bool send_head(struct pg_store *store, const struct store_info *info)
{
    struct pg_params params = {0};
    pg_add_i64(&params, info->engine_ns);
    pg_add_i64(&params, info->wall_ns);
    pg_add_i64(&params, (int64_t)info->last_token);
    pg_add_i64(&params, (int64_t)info->last_event);
    pg_add_i64(&params, (int64_t)info->last_sum);
    pg_add_i64(&params, (int64_t)info->last_command);
    pg_add_i64(&params, (int64_t)info->last_run);
    pg_add_i64(&params, (int64_t)info->writes);
    pg_add_i64(&params, (int64_t)info->epoch);
    pg_add_text(&params, store->holder);
    return PQsendQueryPrepared(store->link.conn,
                               "head_set",
                               params.count,
                               params.values,
                               NULL,
                               NULL,
                               0) != 0;
}

static bool has_orders(const struct pg_store *store)
{
    const struct store_batch *batch = store->base.batch;
    return batch != NULL && batch->orders.len > 0;
}

/* Send the orders of a batch, if it has any. */
static bool send_orders(struct pg_store *store, uint32_t *sent)
{
    const struct store_batch *batch = store->base.batch;
    if (!has_orders(store)) {
        return true;
    }
    struct strbuf text = {0};
    strbuf_addf(&text, "[%s]", strbuf_text(&batch->orders));
    struct pg_params params = {0};
    pg_add_text(&params, strbuf_text(&text));
    ++*sent;
    bool good = PQsendQueryPrepared(store->link.conn,
                                    "work_add",
                                    params.count,
                                    params.values,
                                    NULL,
                                    NULL,
                                    0) != 0;
    strbuf_release(&text);
    return good;
}

/* Send a prepared statement without parameters. */
static bool send_plain(struct pg_store *store, const char *name, uint32_t *sent)
{
    ++*sent;
    return PQsendQueryPrepared(store->link.conn,
                               name,
                               0,
                               NULL,
                               NULL,
                               NULL,
                               0) != 0;
}

/* Send what ends a batch: orders, the head, and the commit. */
static bool
send_end(struct pg_store *store, const struct store_info *info, uint32_t *sent)
{
    ++*sent; /* the head */
    return send_orders(store, sent) && send_head(store, info) &&
           send_plain(store, "commit", sent) &&
           (!has_orders(store) || send_plain(store, "work_sync", sent));
}

/*
 * Send the rows, and if `info` is not NULL, the head and the commit. After an
 * error `open` tells whether the transaction is still open: else it may have
 * been committed. ERR_NOT_FOUND: the head is not the one that was expected.
 */
static enum err send_batch(struct pg_store *store,
                           const struct store_info *info,
                           struct diag *diag)
{
    struct strbuf name = {0};
    uint32_t count = 0;
    bool sent = PQenterPipelineMode(store->link.conn) != 0;
    if (!store->open && sent) {
        sent = send_plain(store, "begin", &count);
        store->open = true;
    }
    for (uint32_t ix = 0; ix < store->group_count && sent; ix++) {
        sent = send_group(store, &store->groups[ix], &name, &count);
    }
    sent = sent && (info == NULL || send_end(store, info, &count)) &&
           PQpipelineSync(store->link.conn) != 0;
    strbuf_release(&name);
    enum err err = sent ? read_results(store, count, diag)
                        : pg_fail(&store->link, NULL, diag);
    store->open = store->link.conn != NULL &&
                  PQtransactionStatus(store->link.conn) != PQTRANS_IDLE;
    INVARIANT(err != ERR_OK || store->open == (info == NULL));
    return err;
}

enum err pg_flush(struct pg_store *store, struct diag *diag)
{
    INVARIANT(store->writing);
    enum err err = need_writer(store, diag);
    if (err == ERR_OK) {
        err = send_batch(store, NULL, diag);
    }
    if (err == ERR_OK) {
        pg_forget_batch(store);
    }
    return err;
}

enum err pg_raise(struct store *base, uint64_t epoch, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    int64_t rows = 0;
    INVARIANT(epoch > base->epoch && epoch < INT64_MAX && !store->done);
    pg_add_i64(&params, (int64_t)epoch);
    pg_add_text(&params, store->holder);
    enum err err = pg_flush(store, diag);
    if (err == ERR_OK) {
        err = pg_do(&store->link,
                    "UPDATE scheduler SET epoch = $1 WHERE holder = $2",
                    &params,
                    &rows,
                    diag);
    }
    if (err == ERR_OK && rows != 1) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "another process has become the scheduler");
    }
    if (err == ERR_OK) {
        base->epoch = epoch;
        store->self.epoch = epoch;
        store->head.epoch = epoch;
    }
    return err;
}

static void roll_back(struct pg_store *store)
{
    struct diag ignored = {0};
    if (store->open && store->link.conn != NULL) {
        (void)!pg_do(&store->link, "ROLLBACK", NULL, NULL, &ignored);
    }
    store->open = false;
}

/*
 * Find out about the batch before; ERR_OK and *done: it was committed. The row
 * is locked: a commit that is still under way comes before.
 */
static enum err settle(struct pg_store *store, bool *done, struct diag *diag)
{
    *done = false;
    enum err err = pg_settle_head(store, &store->found, diag);
    if (err != ERR_OK) {
        return err;
    }
    INVARIANT(store->found.writes <= store->head.writes + 1);
    *done = store->unknown && store->found.writes == store->head.writes + 1;
    store->unknown = false;
    return ERR_OK;
}

/* --- batches ------------------------------------------------------------ */

/*
 * A batch whose outcome was unknown is given again. If it was committed,
 * nothing of it is sent, and its end only checks that it is the same one.
 */
enum err
pg_begin_batch(struct store *base, struct store_info *out, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    enum err err = ERR_OK;
    INVARIANT(!store->writing && !store->held && !store->open);
    INVARIANT(base->epoch > 0 && base->broken == ERR_OK);
    INVARIANT(store->head.epoch == base->epoch && store->group_count == 0);
    INVARIANT(!store->done);
    if (store->unknown) {
        err = settle(store, &store->done, diag);
    }
    *out = store->head;
    store->writing = err == ERR_OK;
    return err;
}

/* Send the batch once and commit it. */
static enum err try_batch(struct pg_store *store,
                          const struct store_info *info,
                          struct diag *diag)
{
    bool done = false;
    uint64_t number = store->link.number;
    enum err err = need_writer(store, diag);
    if (err == ERR_OK && store->open && store->link.number != number) {
        /* What was sent before is gone. */
        err = diag_set(diag,
                       ERR_BUSY,
                       "%s: the connection is lost",
                       store->link.shown);
        store->open = false;
    }
    if (err == ERR_OK && store->unknown) {
        err = settle(store, &done, diag);
    }
    if (err != ERR_OK || done) {
        roll_back(store);
        return err;
    }
    crash_point("pg-before-commit");
    err = send_batch(store, info, diag);
    crash_point("pg-after-commit");
    store->unknown = err != ERR_OK && !store->open;
    if (err == ERR_NOT_FOUND) { /* the head is another one */
        roll_back(store);
        err = settle(store, &done, diag);
        INVARIANT(err != ERR_OK || !done);
        err = err == ERR_OK
                  ? diag_set(diag,
                             ERR_CONFLICT,
                             "epoch %" PRIu64 " contradicts the store",
                             info->epoch)
                  : err;
    }
    return err;
}

/* The end of a batch that is in the store already. */
static enum err end_again(struct pg_store *store,
                          const struct store_info *info,
                          struct diag *diag)
{
    const struct store_info *found = &store->found;
    store->done = false;
    store->head = *found;
    if (info == NULL) {
        return ERR_OK; /* the caller has the error */
    }
    bool same = info->writes == found->writes &&
                info->last_event == found->last_event &&
                info->last_sum == found->last_sum &&
                info->last_token == found->last_token &&
                info->last_command == found->last_command &&
                info->last_run == found->last_run &&
                info->engine_ns == found->engine_ns;
    return same ? ERR_OK
                : diag_set(diag,
                           ERR_CONFLICT,
                           "the batch before this one was committed");
}

/* Send the batch, again if the connection breaks. */
static enum err write_batch(struct pg_store *store,
                            const struct store_info *info,
                            struct diag *diag)
{
    enum err err = ERR_OK;
    bool again = true;
    for (int tries = 0; tries < TRIES && again; tries++) {
        /* What prune() did is gone with the connection: then the caller must
         * begin anew. */
        bool whole = !store->open;
        err = try_batch(store, info, diag);
        again = err == ERR_BUSY && store->link.lost && whole;
        if (store->link.conn == NULL) {
            store->open = false;
        }
    }
    return err;
}

enum err pg_end_batch(struct store *base,
                      const struct store_info *info,
                      struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    INVARIANT(store->writing);
    INVARIANT(info == NULL || info->epoch == base->epoch);
    enum err err = ERR_OK;
    store->writing = false;
    if (store->done) {
        return end_again(store, info, diag);
    }
    if (info != NULL) {
        err = write_batch(store, info, diag);
    }
    roll_back(store);
    pg_forget_batch(store);
    if (info != NULL && err == ERR_OK) {
        INVARIANT(!store->unknown);
        store->head = *info;
    } else {
        memset(store->known, 0, sizeof(store->known));
    }
    return err;
}
