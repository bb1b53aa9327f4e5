/* SPDX-License-Identifier: MIT */
/*
 * Writing of batches. One batch is one transaction, which begins as a writer,
 * so that the database cannot change halfway. It reads the row of the scheduler
 * first, and writes it last: the right to write, and the last numbers of
 * events, requests and tokens, never depend on memory.
 *
 * A disk error is final. The state after a failed fsync() is unknown, and a
 * later success would hide it; so nothing is written after it, not even a
 * checkpoint on close: the next scheduler finds the WAL unchanged and recovers
 * from it.
 */
#include "store/sqlite_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "store/event.h"

#include <inttypes.h>

/* Pages in the WAL that make a checkpoint worthwhile. Test builds reach it with
 * the small plans that are killed at every point. */
#ifdef SLUICE_CRASH_POINTS
enum { CHECKPOINT_FRAMES = 100 };
#else
enum { CHECKPOINT_FRAMES = 1000 };
#endif

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

#define HEAD_SET                                                               \
    "UPDATE scheduler SET engine_ns = ?1, wall_ns = ?2, last_token = ?3,"      \
    " last_event = ?4, last_sum = ?5, last_command = ?6, last_run = ?7,"       \
    " writes = ?8 WHERE epoch = ?9 AND writes = ?8 - 1"

#define RUN_KNOWN "SELECT 1 FROM run WHERE number = ?1"

static int put_slot(enum store_kind kind, enum store_put how)
{
    int slot = SLOT_PUT + (int)kind * STORE_PUTS + (int)how;
    INVARIANT(how < STORE_PUTS && slot < SLOT_COUNT);
    return slot;
}

static void bind_number(sqlite3_stmt *stmt, int ix, int64_t value)
{
    int rc = sqlite3_bind_int64(stmt, ix, value);
    INVARIANT(rc == SQLITE_OK);
}

enum err sqlite_find_run(struct store *base, uint32_t number, struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(store->writing);
    INVARIANT(number > 0 && number <= STORE_RUN_MAX);
    sqlite3_stmt *stmt = store->slots[SLOT_RUN_KNOWN];
    INVARIANT(stmt != NULL && sqlite3_stmt_busy(stmt) == 0);
    bind_number(stmt, 1, number);
    int rc = sqlite3_step(stmt);
    enum err err = ERR_OK;
    if (rc == SQLITE_DONE) {
        err = ERR_NOT_FOUND;
    } else if (rc != SQLITE_ROW) {
        err = sqlite_fail(store, rc, diag);
    }
    (void)sqlite3_reset(stmt); /* repeats the error of the step */
    INVARIANT(sqlite3_stmt_busy(stmt) == 0);
    return err;
}

enum err sqlite_put(struct store *base,
                    enum store_kind kind,
                    enum store_put how,
                    const union store_row *row,
                    struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(store->writing);
    sqlite3_stmt *stmt = store->slots[put_slot(kind, how)];
    INVARIANT(stmt != NULL);
    sqlite_bind(stmt, columns_of(kind), how, row);
    INVARIANT(sqlite3_get_autocommit(store->db) == 0);
    enum err err = sqlite_step(store, stmt, diag);
    bool must_change = how == STORE_PUT_NEW || how == STORE_PUT_UPDATE;
    if (err == ERR_OK && must_change && sqlite3_changes(store->db) != 1) {
        err = ERR_CONFLICT;
    }
    return err;
}

/* Update the row of the scheduler, which only this process changes. */
static enum err set_head(struct sqlite_store *store,
                         const struct store_info *info,
                         struct diag *diag)
{
    sqlite3_stmt *stmt = store->slots[SLOT_HEAD_SET];
    INVARIANT(stmt != NULL);
    INVARIANT(info->epoch == store->record.owner.epoch);
    INVARIANT(info->last_token <= INT64_MAX);
    INVARIANT(info->last_run <= STORE_RUN_MAX);
    INVARIANT(info->writes > 0 && info->writes <= INT64_MAX);
    bind_number(stmt, 1, info->engine_ns);
    bind_number(stmt, 2, info->wall_ns);
    bind_number(stmt, 3, (int64_t)info->last_token);
    bind_number(stmt, 4, (int64_t)info->last_event);
    bind_number(stmt, 5, (int64_t)info->last_sum);
    bind_number(stmt, 6, (int64_t)info->last_command);
    bind_number(stmt, 7, (int64_t)info->last_run);
    bind_number(stmt, 8, (int64_t)info->writes);
    bind_number(stmt, 9, (int64_t)info->epoch);
    enum err err = sqlite_step(store, stmt, diag);
    if (err == ERR_OK && sqlite3_changes(store->db) != 1) {
        err = diag_set(diag,
                       ERR_CONFLICT,
                       "epoch %" PRIu64 " contradicts the store",
                       info->epoch);
    }
    return err;
}

/* Checkpoint the WAL into the database when it has grown. */
static void checkpoint_if_due(struct sqlite_store *store)
{
    if (store->frames < store->checkpoint_at + CHECKPOINT_FRAMES) {
        return;
    }
    INVARIANT(store->lock.fd >= 0); /* it alone checkpoints */
    INVARIANT(sqlite3_get_autocommit(store->db) != 0);
    store->checkpoint_at = store->frames;
    crash_point("store-before-checkpoint");
    int rc = sqlite3_wal_checkpoint_v2(store->db,
                                       NULL,
                                       SQLITE_CHECKPOINT_PASSIVE,
                                       NULL,
                                       NULL);
    crash_point("store-after-checkpoint");
    if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY) {
        return;
    }
    /* Committed data is safe in the WAL. A full disk may get space again; after
     * any other error the next write reports it. */
    struct diag why = {0};
    enum err err = sqlite_fail(store, rc, &why);
    if (err != ERR_LIMIT) {
        (void)store_give_up(&store->base, err, &why);
    }
}

enum err sqlite_begin_batch(struct store *base,
                            struct store_info *out,
                            struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(!store->writing && !store->held);
    INVARIANT(base->epoch > 0 && base->broken == ERR_OK);
    INVARIANT(store->lock.fd >= 0 && store->mode == STORE_WRITE);
    if (!lock_has_file(&store->lock)) {
        (void)diag_set(diag,
                       ERR_CONFLICT,
                       "the lock of the store %s was removed while this "
                       "process held it",
                       store->dir);
        return store_give_up(base, ERR_CONFLICT, diag);
    }
    enum err err = sqlite_begin_write(store, diag);
    if (err == ERR_OK) {
        err = sqlite_read_head(store, out, diag);
    }
    if (err != ERR_OK) {
        sqlite_rollback(store);
        return err == ERR_IO || err == ERR_CORRUPT
                   ? store_give_up(base, err, diag)
                   : err;
    }
    store->writing = true;
    return ERR_OK;
}

enum err sqlite_end_batch(struct store *base,
                          const struct store_info *info,
                          struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(store->writing);
    INVARIANT(info == NULL || info->epoch == base->epoch);
    store->writing = false;
    enum err err = ERR_OK;
    if (info != NULL) {
        err = set_head(store, info, diag);
    }
    if (err == ERR_OK && info != NULL) {
        crash_point("store-before-commit");
        err = sqlite_commit(store, diag);
        crash_point("store-after-commit");
    }
    if (err != ERR_OK || info == NULL) {
        sqlite_rollback(store);
        return err;
    }
    INVARIANT(sqlite3_get_autocommit(store->db) != 0);
    INVARIANT(info->writes > 0);
    store->record.writes = info->writes;
    crash_point("store-before-count");
    /* Only helps to detect losses; do not undo a batch for it. */
    (void)!lock_write(&store->lock, &store->record, NULL);
    checkpoint_if_due(store);
    return ERR_OK;
}

/* Check that the last event matches the row of the scheduler. */
static enum err check_tail(struct sqlite_store *store,
                           const struct store_info *info,
                           struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(store,
                                  "SELECT number, sum FROM event"
                                  " ORDER BY number DESC LIMIT 1",
                                  &stmt,
                                  diag);
    if (err != ERR_OK) {
        return err;
    }
    int rc = sqlite3_step(stmt);
    uint64_t number = 0;
    uint64_t sum = 0;
    if (rc == SQLITE_ROW) {
        number = (uint64_t)sqlite3_column_int64(stmt, 0);
        sum = (uint64_t)sqlite3_column_int64(stmt, 1);
    }
    struct event_gap gap = {0};
    if (number < info->last_event &&
        sqlite_find_gap(store, number + 1, &gap, NULL) == ERR_OK) {
        number = gap.last;
        sum = gap.sum;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        err = sqlite_fail(store, rc, diag);
    } else if (number != info->last_event || sum != info->last_sum) {
        err = sqlite_corrupt(store,
                             diag,
                             "the log ends at event %" PRIu64
                             " but should end at %" PRIu64,
                             number,
                             info->last_event);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

/* Check that no acknowledged write is missing. */
static enum err check_writes(struct sqlite_store *store,
                             const struct store_info *info,
                             struct diag *diag)
{
    if (info->writes >= store->record.writes) {
        return ERR_OK;
    }
    return diag_set(
        diag,
        ERR_CORRUPT,
        "the last %" PRIu64
        " writes to the store %s are missing: an older copy was restored, or "
        "sluice.db-wal is damaged; to continue without them, remove %s/lock",
        store->record.writes - info->writes,
        store->dir,
        store->dir);
}

static enum err prepare_statements(struct sqlite_store *store,
                                   struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_slot(store, SLOT_HEAD_SET, HEAD_SET, &stmt, diag);
    if (err == ERR_OK) {
        err = sqlite_slot(store, SLOT_RUN_KNOWN, RUN_KNOWN, &stmt, diag);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(written) && err == ERR_OK; ix++) {
        struct strbuf sql = {0};
        sqlite_add_put(&sql, written[ix].kind, written[ix].how);
        err = sqlite_slot(store,
                          put_slot(written[ix].kind, written[ix].how),
                          strbuf_text(&sql),
                          &stmt,
                          diag);
        strbuf_release(&sql);
    }
    return err;
}

/* Write the new epoch and its owner. */
static enum err set_epoch(struct sqlite_store *store,
                          const struct store_info *info,
                          struct diag *diag)
{
    const struct store_owner *owner = &store->record.owner;
    INVARIANT(info->epoch > 0 && owner->epoch == 0);
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(store,
                                  "UPDATE scheduler SET epoch = ?1, pid = ?2,"
                                  " start_ticks = ?3, host = ?4,"
                                  " boot_id = ?5, writes = ?6",
                                  &stmt,
                                  diag);
    if (err != ERR_OK) {
        return err;
    }
    bind_number(stmt, 1, (int64_t)info->epoch);
    bind_number(stmt, 2, owner->pid);
    bind_number(stmt, 3, (int64_t)owner->start_ticks);
    (void)sqlite3_bind_text(stmt, 4, owner->host, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(stmt, 5, owner->boot_id, -1, SQLITE_STATIC);
    bind_number(stmt, 6, (int64_t)info->writes);
    err = sqlite_step(store, stmt, diag);
    (void)sqlite3_finalize(stmt);
    return err;
}

enum err sqlite_raise(struct store *base, uint64_t epoch, struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    sqlite3_stmt *stmt = NULL;
    INVARIANT(store->writing && epoch > base->epoch && epoch < INT64_MAX);
    enum err err =
        sqlite_prepare(store, "UPDATE scheduler SET epoch = ?1", &stmt, diag);
    if (err != ERR_OK) {
        return err;
    }
    bind_number(stmt, 1, (int64_t)epoch);
    err = sqlite_step(store, stmt, diag);
    (void)sqlite3_finalize(stmt);
    if (err == ERR_OK) {
        base->epoch = epoch;
        store->record.owner.epoch = epoch;
    }
    return err;
}

enum err sqlite_begin_epoch(struct sqlite_store *store,
                            uint64_t *epoch_out,
                            struct diag *diag)
{
    INVARIANT(store->base.epoch == 0 && store->base.broken == ERR_OK);
    INVARIANT(store->lock.fd >= 0 && store->mode == STORE_WRITE);
    struct store_info info = {0};
    enum err err = prepare_statements(store, diag);
    if (err == ERR_OK) {
        err = sqlite_begin_write(store, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_read_head(store, &info, diag);
    }
    if (err == ERR_OK) {
        err = check_writes(store, &info, diag);
    }
    if (err == ERR_OK) {
        err = check_tail(store, &info, diag);
    }
    if (err == ERR_OK) {
        info.epoch++;
        info.writes++;
        err = set_epoch(store, &info, diag);
    }
    crash_point("store-epoch-set");
    if (err == ERR_OK) {
        err = sqlite_commit(store, diag);
    }
    if (err != ERR_OK) {
        sqlite_rollback(store);
        return err;
    }
    INVARIANT(info.writes > store->record.writes);
    store->record.writes = info.writes;
    *epoch_out = info.epoch;
    return ERR_OK;
}

void sqlite_checkpoint_last(struct sqlite_store *store)
{
    if (store->base.epoch == 0 || store->base.broken != ERR_OK) {
        return;
    }
    crash_point("store-before-last-checkpoint");
    /* Does not wait for readers; the rest stays in the WAL for the next
     * scheduler. So ignore the result. */
    (void)sqlite3_busy_timeout(store->db, 0);
    (void)sqlite3_wal_checkpoint_v2(store->db,
                                    NULL,
                                    SQLITE_CHECKPOINT_TRUNCATE,
                                    NULL,
                                    NULL);
}
