/* SPDX-License-Identifier: MIT */
/*
 * The right to write is a lease in the row of the scheduler, by the clock of
 * the database. It is free when it has ended, or when the recorded connection
 * is gone; whoever takes it increments the epoch, and every batch checks the
 * epoch. So it is always safe to take it: the lease only keeps processes from
 * taking it from each other all the time.
 *
 * No advisory lock: a client that is cut off would keep it until the server
 * notices, one that stands still for ever, and a pool of connections may give
 * it to two clients.
 */
#include "store/pg_internal.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The recorded connection. Other roles do not see when it began. */
#define CONNECTED                                                              \
    "EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = backend_pid"           \
    " AND (backend_start IS NULL"                                              \
    "  OR backend_start = scheduler.backend_start))"

#define HELD "(lease_until >= clock_timestamp() AND " CONNECTED ")"

/* The connection that runs the statement. */
#define OWN_BACKEND                                                            \
    " backend_pid = pg_backend_pid(), backend_start = (SELECT backend_start"   \
    " FROM pg_stat_activity WHERE pid = pg_backend_pid())"

/* Nanoseconds since a time of the scheduler; 0: there was none yet. */
#define SINCE(time)                                                            \
    "CASE WHEN epoch > 0 THEN (extract(epoch FROM clock_timestamp() - " time   \
    ") * 1000000000)::bigint ELSE 0 END"
#define AGE SINCE("taken")
#define SILENCE SINCE("beat")

#define OWNER                                                                  \
    "SELECT " HELD ", pid, start_ticks, host, boot_id, epoch, commits,"        \
    " commit_ns, trouble, epoch > 0, " AGE ", " SILENCE " FROM scheduler"

static void read_owner(const PGresult *result, struct store_owner *out)
{
    out->pid = pg_i64(result, 0, 1);
    out->start_ticks = (uint64_t)pg_i64(result, 0, 2);
    (void)snprintf(out->host, sizeof(out->host), "%s", pg_text(result, 0, 3));
    (void)snprintf(out->boot_id,
                   sizeof(out->boot_id),
                   "%s",
                   pg_text(result, 0, 4));
    out->epoch = (uint64_t)pg_i64(result, 0, 5);
    out->commits = (uint64_t)pg_i64(result, 0, 6);
    out->commit_ns = (uint64_t)pg_i64(result, 0, 7);
    (void)snprintf(out->trouble,
                   sizeof(out->trouble),
                   "%s",
                   pg_text(result, 0, 8));
}

static int64_t at_least_0(int64_t ns)
{
    return ns > 0 ? ns : 0;
}

enum err
pg_owner(struct store *base, struct store_owner *out, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    out->age_ns = -1;
    out->silent_ns = -1;
    enum err err = pg_need(store, diag);
    if (err == ERR_NOT_FOUND && store->mode == STORE_WRITE) {
        return ERR_NOT_FOUND; /* a store that was never taken */
    }
    if (err != ERR_OK) {
        return err;
    }
    PGresult *result = pg_run(&store->link, OWNER, NULL, &err, diag);
    if (err != ERR_OK) {
        return err;
    }
    bool held = PQntuples(result) == 1 && pg_bool(result, 0, 0);
    if (PQntuples(result) == 1 && pg_bool(result, 0, 9)) {
        read_owner(result, out);
    }
    if (held) {
        out->age_ns = at_least_0(pg_i64(result, 0, 10));
        out->silent_ns = at_least_0(pg_i64(result, 0, 11));
    }
    PQclear(result);
    return held ? ERR_OK
                : diag_set(diag,
                           ERR_NOT_FOUND,
                           "%s has no scheduler",
                           store->link.shown);
}

/* Report who has the lease. */
static enum err name_owner(struct pg_store *store, struct diag *diag)
{
    struct store_owner owner = {0};
    enum err err = pg_owner(&store->base, &owner, NULL);
    if (err != ERR_OK || owner.pid == 0) {
        return diag_set(diag,
                        ERR_BUSY,
                        "another process is the scheduler of %s",
                        store->link.shown);
    }
    return diag_set(diag,
                    ERR_BUSY,
                    "the process %" PRId64 " on %s is the scheduler of %s",
                    owner.pid,
                    owner.host[0] != '\0' ? owner.host : "another machine",
                    store->link.shown);
}

/* Check that the log ends where the head says. */
static enum err check_tail(struct pg_store *store, struct diag *diag)
{
    const struct store_info *head = &store->head;
    enum err err = ERR_OK;
    uint64_t number = 0;
    uint64_t sum = 0;
    PGresult *result = pg_run(&store->link,
                              "SELECT number, sum FROM event"
                              " ORDER BY number DESC LIMIT 1",
                              NULL,
                              &err,
                              diag);
    if (err == ERR_OK && PQntuples(result) == 1) {
        number = (uint64_t)pg_i64(result, 0, 0);
        sum = (uint64_t)pg_i64(result, 0, 1);
    }
    PQclear(result);
    if (err == ERR_OK && number < head->last_event) {
        struct event_gap gap = {.first = number + 1, .last = number + 1};
        struct event_gap_texts texts = event_gap_write(&gap);
        struct pg_params params = {0};
        pg_add_text(&params, texts.name);
        result = pg_run(&store->link,
                        "SELECT name, value FROM setting WHERE name = $1",
                        &params,
                        &err,
                        diag);
        if (err == ERR_OK && PQntuples(result) == 1 &&
            event_gap_read(pg_text(result, 0, 0),
                           pg_text(result, 0, 1),
                           &gap)) {
            number = gap.last;
            sum = gap.sum;
        }
        PQclear(result);
    }
    if (err == ERR_OK &&
        (number != head->last_event || sum != head->last_sum)) {
        err = diag_set(diag,
                       ERR_CORRUPT,
                       "the store %s is damaged: the log ends at event %" PRIu64
                       " but should end at %" PRIu64,
                       store->link.shown,
                       number,
                       head->last_event);
    }
    return err;
}

/* The history of the server that runs the statement: a promoted standby, and a
 * restored backup, has another one. */
#define TIMELINE "left(pg_walfile_name(pg_current_wal_lsn()), 8)"

/* What changes with another history: transactions may be lost, and with them
 * tokens that were used, and sessions that still run. */
#define ANOTHER "timeline NOT IN ('', " TIMELINE ")"
#define SET_TIMELINE                                                           \
    " timeline = " TIMELINE ", last_token = last_token + CASE WHEN " ANOTHER   \
    " THEN 1000000 ELSE 0 END, quiet_until = CASE WHEN " ANOTHER               \
    " THEN clock_timestamp() + (worker_lease_ms() + worker_margin_ms())"       \
    " * interval '1 millisecond' ELSE quiet_until END,"

/* Take the lease if it is free, within a transaction. */
static enum err take_lease(struct pg_store *store,
                           const struct store_owner *self,
                           struct diag *diag)
{
    struct pg_params params = {0};
    pg_add_i64(&params, self->pid);
    pg_add_i64(&params, (int64_t)self->start_ticks);
    pg_add_text(&params, self->host);
    pg_add_text(&params, self->boot_id);
    enum err err = ERR_OK;
    PGresult *result = pg_run(
        &store->link,
        "UPDATE scheduler SET epoch = epoch + 1, writes = writes + 1,"
        " holder = gen_random_uuid()::text, pid = $1, start_ticks = $2, "
        "host = $3, boot_id = $4,"
        " taken = clock_timestamp(), beat = clock_timestamp(),"
        " listens = false, commits = 0, commit_ns = 0, trouble = "
        "''," SET_TIMELINE " lease_until = " PG_LEASE_UNTIL "," OWN_BACKEND
        " WHERE NOT " HELD " RETURNING " PG_HEAD ", holder",
        &params,
        &err,
        diag);
    if (err == ERR_OK && PQntuples(result) != 1) {
        err = ERR_BUSY;
    } else if (err == ERR_OK) {
        err = pg_get_head(store, result, &store->head, diag);
        (void)snprintf(store->holder,
                       sizeof(store->holder),
                       "%s",
                       pg_text(result, 0, PG_HEAD_COLUMNS));
    }
    PQclear(result);
    return err;
}

/* The transaction that takes the store. */
static enum err take_it(struct pg_store *store,
                        const struct store_owner *self,
                        struct diag *diag)
{
    struct diag ignored = {0};
    enum err err = pg_do(&store->link, "BEGIN", NULL, NULL, diag);
    if (err != ERR_OK) {
        return err;
    }
    err = take_lease(store, self, diag);
    bool taken = err == ERR_BUSY && store->link.conn != NULL;
    crash_point("pg-lease-taken");
    if (err == ERR_OK) {
        err = pg_migrate(store, diag);
    }
    if (err == ERR_OK) {
        err = check_tail(store, diag);
    }
    if (err == ERR_OK) {
        crash_point("pg-before-epoch");
        err = pg_do(&store->link, "COMMIT", NULL, NULL, diag);
        crash_point("pg-epoch-begun");
    } else if (store->link.conn != NULL) {
        (void)!pg_do(&store->link, "ROLLBACK", NULL, NULL, &ignored);
    }
    return taken ? name_owner(store, diag) : err;
}

enum err pg_take(struct store *base,
                 const struct store_owner *self,
                 uint64_t *epoch_out,
                 struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    INVARIANT(store->mode == STORE_WRITE);
    INVARIANT(!store->held && !store->writing);
    enum err err = pg_link_need(&store->link, diag);
    if (err == ERR_OK) {
        err = pg_make_schema(store, diag);
    }
    if (err == ERR_OK) {
        err = take_it(store, self, diag);
    }
    if (err == ERR_OK) {
        store->self = *self;
        store->self.epoch = store->head.epoch;
        *epoch_out = store->head.epoch;
        crash_point("pg-taken");
    }
    return err;
}

/* Report the process that has the store now, or missing writes. */
static enum err superseded(struct pg_store *store,
                           const struct store_info *found,
                           struct diag *diag)
{
    if (found->epoch >= store->base.epoch &&
        found->writes >= store->head.writes) {
        (void)diag_set(diag,
                       ERR_CONFLICT,
                       "another process has become the scheduler "
                       "(epoch %" PRIu64 ", this one has %" PRIu64 ")",
                       found->epoch,
                       store->base.epoch);
        return store_give_up(&store->base, ERR_CONFLICT, diag);
    }
    (void)diag_set(diag,
                   ERR_CORRUPT,
                   "the store %s has lost acknowledged writes (it has %" PRIu64
                   ", %" PRIu64 " were acknowledged): a standby without them "
                   "became the server, or a backup was restored; sessions of "
                   "the lost writes may still run; start sluice again to "
                   "continue without these writes",
                   store->link.shown,
                   found->writes,
                   store->head.writes);
    return store_give_up(&store->base, ERR_CORRUPT, diag);
}

enum err pg_check_head(struct pg_store *store,
                       const struct store_info *found,
                       struct diag *diag)
{
    bool lost =
        found->epoch < store->base.epoch || found->writes < store->head.writes;
    return lost || found->epoch != store->base.epoch
               ? superseded(store, found, diag)
               : ERR_OK;
}

enum err pg_settle_head(struct pg_store *store,
                        struct store_info *out,
                        struct diag *diag)
{
    struct pg_params params = {0};
    enum err err = pg_link_need(&store->link, diag);
    if (err != ERR_OK) {
        return err == ERR_UNAVAILABLE ? ERR_BUSY : err;
    }
    pg_add_text(&params, store->holder);
    PGresult *result =
        pg_run(&store->link,
               "SELECT " PG_HEAD ", holder = $1 FROM scheduler FOR UPDATE",
               &params,
               &err,
               diag);
    if (err == ERR_OK) {
        err = pg_get_head(store, result, out, diag);
    }
    if (err == ERR_OK && !pg_bool(result, 0, PG_HEAD_COLUMNS)) {
        err = superseded(store, out, diag);
    } else if (err == ERR_OK) {
        err = pg_check_head(store, out, diag);
    }
    PQclear(result);
    return err;
}

/* Renew the lease of this process, with what else is to be set. The head must
 * be its own, and have all writes that were acknowledged. */
static enum err renew(struct pg_store *store,
                      const char *sets,
                      struct pg_params *params,
                      struct diag *diag)
{
    struct strbuf sql = {0};
    int64_t rows = 0;
    int first = params->count + 1;
    pg_add_i64(params, (int64_t)store->base.epoch);
    pg_add_text(params, store->holder);
    pg_add_i64(params, (int64_t)store->head.writes);
    strbuf_addf(&sql,
                "UPDATE scheduler SET lease_until = " PG_LEASE_UNTIL
                ",%s" OWN_BACKEND
                " WHERE epoch = $%d AND holder = $%d AND writes >= $%d",
                sets,
                first,
                first + 1,
                first + 2);
    enum err err = pg_do(&store->link, strbuf_text(&sql), params, &rows, diag);
    strbuf_release(&sql);
    if (err == ERR_OK && rows != 1) {
        struct store_info found = {0};
        err = pg_settle_head(store, &found, diag);
        err = err == ERR_OK ? ERR_BUSY : err; /* it has just changed */
    }
    return err;
}

enum err pg_rejoin(struct pg_store *store, struct diag *diag)
{
    struct pg_params params = {0};
    return renew(store, "", &params, diag);
}

enum err pg_beat(struct store *base, const char *trouble, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    char shown[sizeof(store->self.trouble)];
    (void)snprintf(shown, sizeof(shown), "%s", trouble);
    utf8_repair(shown, strlen(shown)); /* a character may be cut */
    pg_add_i64(&params, (int64_t)base->commits);
    pg_add_i64(&params, (int64_t)base->commit_ns);
    pg_add_text(&params, shown);
    enum err err = pg_link_need(&store->link, diag);
    if (err == ERR_OK) {
        err = renew(store,
                    " beat = clock_timestamp(), commits = $1, commit_ns = $2,"
                    " trouble = $3,",
                    &params,
                    diag);
    }
    return err == ERR_UNAVAILABLE ? ERR_BUSY : err;
}
