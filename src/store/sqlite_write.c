/* SPDX-License-Identifier: MIT */
/*
 * Batches to rows. One batch is one transaction, which begins as a writer, so
 * that it cannot find the database changed half-way. It reads the row of the
 * scheduler first, and writes it last: who may write, and where the numbers of
 * events, orders and tokens have got to, never depends on memory.
 *
 * An error of the disk is final. What an fsync() that failed has left behind
 * is not known, and the next one that succeeds would hide it; so nothing is
 * written after it, not even a checkpoint at the end: the next scheduler finds
 * the WAL as it is and recovers from that.
 */
#include "store/sqlite_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "store/event.h"

#include <inttypes.h>

/* Pages in the WAL from which on a checkpoint is worth its cost. Test builds
 * get there with the small plans that are killed at every point. */
#ifdef SLUICE_CRASH_POINTS
enum { CHECKPOINT_FRAMES = 100 };
#else
enum { CHECKPOINT_FRAMES = 1000 };
#endif

static const char *const statements[SLOT_COUNT] = {
    [SLOT_HEAD_SET] = "UPDATE scheduler SET engine_ns = ?1, wall_ns = ?2,"
                      " last_token = ?3, last_event = ?4, last_sum = ?5,"
                      " last_command = ?6, last_run = ?7, writes = ?8"
                      " WHERE epoch = ?9",
    [SLOT_RUN_KNOWN] = "SELECT 1 FROM run WHERE number = ?1",
    /* With an id that no run has had which was removed since. */
    [SLOT_RUN_NEW] = "INSERT INTO run SELECT"
                     " ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12"
                     " WHERE NOT EXISTS (SELECT 1 FROM setting"
                     "  WHERE setting.name = 'pruned/' || ?2)",
    [SLOT_RUN_SET] = "UPDATE run SET finished = ?1, paused = ?2,"
                     " cancelled = ?3, barrier = ?4, completions = ?5"
                     " WHERE number = ?6",
    /* The next number of its run, or nothing. */
    [SLOT_FRAGMENT] = "INSERT INTO fragment SELECT ?1, ?2, ?3, ?4 WHERE ?2 ="
                      " (SELECT coalesce(max(number) + 1, 0) FROM fragment"
                      "  WHERE run = ?1)",
    [SLOT_LIMIT_SET] = "INSERT OR REPLACE INTO run_limit VALUES"
                       " (?1, ?2, ?3, ?4)",
    [SLOT_PROVIDER] = "INSERT OR REPLACE INTO executor VALUES"
                      " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
                      "  ?12, ?13)",
    [SLOT_SETTING] = "INSERT OR REPLACE INTO setting VALUES (?1, ?2)",
    [SLOT_SETTING_DROP] = "DELETE FROM setting WHERE name = ?1",
    [SLOT_TASK_SET] = "INSERT OR REPLACE INTO task VALUES"
                      " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
                      "  ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,"
                      "  ?23, ?24, ?25)",
    [SLOT_CLAIM] = "INSERT INTO attempt VALUES"
                   " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
                   "  ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,"
                   "  ?23, ?24)",
    [SLOT_ATTEMPT_SET] = "UPDATE attempt SET state = ?1, pid = ?2,"
                         " start_ticks = ?3, begun_ns = ?4, ended_ns = ?5,"
                         " outcome = ?6, cause = ?7, reason = ?8, code = ?9,"
                         " signal = ?10, input_tokens = ?11,"
                         " output_tokens = ?12, usd = ?13,"
                         " cached_tokens = ?14"
                         " WHERE token = ?15 AND state <> 'ended'",
    [SLOT_EVENT] = "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SLOT_COMMAND_NEW] = "INSERT INTO command VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SLOT_COMMAND_ANSWER] = "UPDATE command SET answer = ?1"
                            " WHERE number = ?2 AND answer IS NULL",
};

/* Parameters of a statement, in their order. Texts outlive the statement. */
struct binder {
    sqlite3_stmt *stmt;
    int count;
};

static void bind_i64(struct binder *binder, int64_t value)
{
    int rc = sqlite3_bind_int64(binder->stmt, ++binder->count, value);
    INVARIANT(rc == SQLITE_OK);
}

static void bind_u64(struct binder *binder, uint64_t value)
{
    bind_i64(binder, (int64_t)value);
}

static void bind_or_null(struct binder *binder, uint32_t value)
{
    if (value != STORE_NONE) {
        bind_i64(binder, value);
        return;
    }
    int rc = sqlite3_bind_null(binder->stmt, ++binder->count);
    INVARIANT(rc == SQLITE_OK);
}

static void bind_double(struct binder *binder, double value)
{
    int rc = sqlite3_bind_double(binder->stmt, ++binder->count, value);
    INVARIANT(rc == SQLITE_OK);
}

/* NULL becomes NULL. */
static void bind_text(struct binder *binder, const char *text)
{
    int rc = sqlite3_bind_text(binder->stmt,
                               ++binder->count,
                               text,
                               -1,
                               SQLITE_STATIC);
    INVARIANT(rc == SQLITE_OK);
}

static void bind_bytes(struct binder *binder, const char *bytes, size_t count)
{
    int rc = sqlite3_bind_blob64(binder->stmt,
                                 ++binder->count,
                                 count > 0 ? bytes : "",
                                 count,
                                 SQLITE_STATIC);
    INVARIANT(rc == SQLITE_OK);
}

/* One batch under way. */
struct writing {
    struct sqlite_store *store;
    struct sqlite_head head; /* as it will be written at the end */
    uint32_t known_run;      /* one that is certainly there; 0: none */
    struct diag *diag;       /* not NULL */
};

static struct binder binder_of(struct writing *writing, enum sqlite_slot slot)
{
    struct binder binder = {.stmt = writing->store->slots[slot]};
    INVARIANT(binder.stmt != NULL);
    return binder;
}

/* Carry out the statement, with all of its parameters. */
static enum err carry_out(struct writing *writing, struct binder *binder)
{
    INVARIANT(binder->count == sqlite3_bind_parameter_count(binder->stmt));
    return sqlite_step(writing->store, binder->stmt, writing->diag);
}

/* The same; it must change one row, or `text` says what is wrong. */
static enum err change_one(struct writing *writing,
                           struct binder *binder,
                           const char *text,
                           uint64_t number)
{
    enum err err = carry_out(writing, binder);
    if (err == ERR_OK && sqlite3_changes(writing->store->db) == 1) {
        return ERR_OK;
    }
    if (err == ERR_OK || err == ERR_CONFLICT) {
        err = diag_set(writing->diag,
                       ERR_CONFLICT,
                       "%s %" PRIu64 " %s",
                       text,
                       number,
                       "does not fit what is stored");
    }
    return err;
}

/* What belongs to a run needs that run. */
static enum err need_run(struct writing *writing, uint32_t run)
{
    if (run == writing->known_run) {
        return ERR_OK;
    }
    struct binder binder = binder_of(writing, SLOT_RUN_KNOWN);
    bind_i64(&binder, run);
    int rc = sqlite3_step(binder.stmt);
    enum err err = ERR_OK;
    if (rc == SQLITE_ROW) {
        writing->known_run = run;
    } else if (rc == SQLITE_DONE) {
        err = diag_set(writing->diag, ERR_CONFLICT, "there is no run %u", run);
    } else {
        err = sqlite_fail(writing->store, rc, writing->diag);
    }
    (void)sqlite3_reset(binder.stmt); /* repeats the error of the step */
    return err;
}

static enum err add_text(struct writing *writing,
                         const struct store_fragment *fragment)
{
    struct binder binder = binder_of(writing, SLOT_FRAGMENT);
    bind_i64(&binder, fragment->run);
    bind_i64(&binder, fragment->number);
    bind_text(&binder, fragment->file);
    bind_bytes(&binder, fragment->text, fragment->text_bytes);
    return change_one(writing, &binder, "fragment", fragment->number);
}

static enum err add_run(struct writing *writing, const struct store_run *run)
{
    if (run->number <= writing->head.info.last_run) {
        return diag_set(writing->diag,
                        ERR_CONFLICT,
                        "there was a run %u before",
                        run->number);
    }
    writing->head.info.last_run = run->number;
    struct binder binder = binder_of(writing, SLOT_RUN_NEW);
    bind_i64(&binder, run->number);
    bind_text(&binder, run->id);
    bind_text(&binder, run->name);
    bind_text(&binder, run->file);
    bind_text(&binder, run->folder);
    bind_i64(&binder, run->processors);
    bind_i64(&binder, run->created_ns);
    bind_i64(&binder, run->finished);
    bind_i64(&binder, run->paused);
    bind_i64(&binder, run->cancelled);
    bind_i64(&binder, run->barrier);
    bind_i64(&binder, run->completions);
    enum err err = change_one(writing, &binder, "run", run->number);
    if (err != ERR_OK) {
        return err;
    }
    struct store_fragment text = {
        .run = run->number,
        .number = 0,
        .file = run->file,
        .text = run->text,
        .text_bytes = run->text_bytes,
    };
    return add_text(writing, &text);
}

static enum err set_run(struct writing *writing, const struct store_run *run)
{
    struct binder binder = binder_of(writing, SLOT_RUN_SET);
    bind_i64(&binder, run->finished);
    bind_i64(&binder, run->paused);
    bind_i64(&binder, run->cancelled);
    bind_i64(&binder, run->barrier);
    bind_i64(&binder, run->completions);
    bind_i64(&binder, run->number);
    return change_one(writing, &binder, "run", run->number);
}

static enum err set_limit(struct writing *writing,
                          const struct store_limit *limit)
{
    enum err err = need_run(writing, limit->run);
    if (err != ERR_OK) {
        return err;
    }
    struct binder binder = binder_of(writing, SLOT_LIMIT_SET);
    bind_i64(&binder, limit->run);
    bind_text(&binder, limit->name);
    bind_i64(&binder, limit->max);
    bind_i64(&binder, limit->percent);
    return carry_out(writing, &binder);
}

static enum err set_provider(struct writing *writing,
                             const struct store_provider *provider)
{
    struct binder binder = binder_of(writing, SLOT_PROVIDER);
    bind_text(&binder, provider->name);
    bind_i64(&binder, provider->steps);
    bind_i64(&binder, provider->steps_kept);
    bind_i64(&binder, provider->shut_until_ns);
    bind_i64(&binder, provider->usage);
    bind_i64(&binder, provider->failures);
    bind_i64(&binder, provider->circuit_open);
    bind_u64(&binder, provider->probe_token);
    bind_i64(&binder, provider->probe_steps);
    bind_i64(&binder, provider->probe_at_ns);
    bind_i64(&binder, provider->confirming);
    bind_i64(&binder, provider->stopped);
    bind_text(&binder, provider->reason);
    return carry_out(writing, &binder);
}

static enum err put_setting(struct writing *writing,
                            const struct store_setting *setting)
{
    bool drop = setting->value == NULL;
    struct binder binder =
        binder_of(writing, drop ? SLOT_SETTING_DROP : SLOT_SETTING);
    bind_text(&binder, setting->name);
    if (!drop) {
        bind_text(&binder, setting->value);
    }
    return carry_out(writing, &binder);
}

static enum err set_task(struct writing *writing, const struct store_task *task)
{
    enum err err = need_run(writing, task->run);
    if (err != ERR_OK) {
        return err;
    }
    struct binder binder = binder_of(writing, SLOT_TASK_SET);
    bind_u64(&binder, (uint64_t)task->run << 32 | task->ix);
    bind_text(&binder, task->id);
    bind_text(&binder, task->state);
    bind_i64(&binder, task->flags);
    bind_i64(&binder, task->parked);
    bind_i64(&binder, task->ready_ns);
    bind_u64(&binder, task->ready_seq);
    bind_i64(&binder, task->until_ns);
    bind_i64(&binder, task->started_ns);
    bind_i64(&binder, task->service_ns);
    bind_u64(&binder, task->version);
    bind_u64(&binder, task->token);
    bind_or_null(&binder, task->leader);
    bind_i64(&binder, task->place);
    bind_i64(&binder, task->attempts);
    bind_i64(&binder, task->number);
    bind_i64(&binder, task->tries);
    bind_i64(&binder, task->reworks);
    bind_i64(&binder, task->checkpoints);
    bind_or_null(&binder, task->cause);
    bind_text(&binder, task->reason);
    bind_text(&binder, task->feedback);
    bind_double(&binder, task->usd);
    bind_i64(&binder, task->tokens);
    bind_text(&binder, task->carry);
    return carry_out(writing, &binder);
}

static enum err claim(struct writing *writing,
                      const struct store_attempt *attempt)
{
    if (attempt->token <= writing->head.info.last_token) {
        return diag_set(writing->diag,
                        ERR_CONFLICT,
                        "the token %" PRIu64 " is not greater than %" PRIu64
                        ", which was given out before",
                        attempt->token,
                        writing->head.info.last_token);
    }
    enum err err = need_run(writing, attempt->run);
    if (err != ERR_OK) {
        return err;
    }
    writing->head.info.last_token = attempt->token;
    struct binder binder = binder_of(writing, SLOT_CLAIM);
    bind_u64(&binder, attempt->token);
    bind_i64(&binder, attempt->run);
    bind_i64(&binder, attempt->task);
    bind_i64(&binder, attempt->number);
    bind_i64(&binder, attempt->task_count);
    bind_text(&binder, attempt->state);
    bind_u64(&binder, attempt->epoch);
    bind_text(&binder, attempt->boot_id);
    bind_i64(&binder, attempt->pid);
    bind_u64(&binder, attempt->start_ticks);
    bind_i64(&binder, attempt->claimed_ns);
    bind_i64(&binder, attempt->begun_ns);
    bind_i64(&binder, attempt->ended_ns);
    bind_text(&binder, attempt->outcome);
    bind_text(&binder, attempt->cause);
    bind_text(&binder, attempt->reason);
    bind_i64(&binder, attempt->code);
    bind_i64(&binder, attempt->signal);
    bind_i64(&binder, attempt->input_tokens);
    bind_i64(&binder, attempt->output_tokens);
    bind_double(&binder, attempt->usd);
    bind_i64(&binder, attempt->cached_tokens);
    bind_i64(&binder, attempt->slot);
    bind_text(&binder, attempt->nonce);
    err = carry_out(writing, &binder);
    if (err == ERR_CONFLICT) {
        err = diag_set(writing->diag,
                       ERR_CONFLICT,
                       "attempt %u of task %u of run %u is taken",
                       attempt->number,
                       attempt->task,
                       attempt->run);
    }
    return err;
}

static enum err set_attempt(struct writing *writing,
                            const struct store_attempt *attempt)
{
    struct binder binder = binder_of(writing, SLOT_ATTEMPT_SET);
    bind_text(&binder, attempt->state);
    bind_i64(&binder, attempt->pid);
    bind_u64(&binder, attempt->start_ticks);
    bind_i64(&binder, attempt->begun_ns);
    bind_i64(&binder, attempt->ended_ns);
    bind_text(&binder, attempt->outcome);
    bind_text(&binder, attempt->cause);
    bind_text(&binder, attempt->reason);
    bind_i64(&binder, attempt->code);
    bind_i64(&binder, attempt->signal);
    bind_i64(&binder, attempt->input_tokens);
    bind_i64(&binder, attempt->output_tokens);
    bind_double(&binder, attempt->usd);
    bind_i64(&binder, attempt->cached_tokens);
    bind_u64(&binder, attempt->token);
    return change_one(writing, &binder, "attempt", attempt->token);
}

static enum err add_event(struct writing *writing,
                          const struct store_event *given)
{
    struct store_event event = *given;
    event.number = writing->head.info.last_event + 1;
    event.sum = event_sum(writing->head.last_sum, &event);
    writing->head.info.last_event = event.number;
    writing->head.last_sum = event.sum;
    struct binder binder = binder_of(writing, SLOT_EVENT);
    bind_u64(&binder, event.number);
    bind_i64(&binder, event.wall_ns);
    bind_or_null(&binder, event.run);
    bind_or_null(&binder, event.task);
    bind_text(&binder, event.kind);
    bind_text(&binder, event.data);
    bind_u64(&binder, event.sum);
    return change_one(writing, &binder, "event", event.number);
}

static enum err put_command(struct writing *writing,
                            const struct store_command *command)
{
    if (command->number > 0) {
        struct binder binder = binder_of(writing, SLOT_COMMAND_ANSWER);
        bind_text(&binder, command->answer);
        bind_u64(&binder, command->number);
        return change_one(writing, &binder, "order", command->number);
    }
    uint64_t number = ++writing->head.info.last_command;
    struct binder binder = binder_of(writing, SLOT_COMMAND_NEW);
    bind_u64(&binder, number);
    bind_i64(&binder, command->wall_ns);
    bind_text(&binder, command->who);
    bind_text(&binder, command->verb);
    bind_text(&binder, command->args);
    bind_text(&binder, command->answer);
    return change_one(writing, &binder, "order", number);
}

static enum err apply(struct writing *writing,
                      const struct store_change *change)
{
    switch (change->type) {
    case STORE_RUN_NEW:
        return add_run(writing, &change->as.run);
    case STORE_RUN_SET:
        return set_run(writing, &change->as.run);
    case STORE_FRAGMENT: {
        enum err err = need_run(writing, change->as.fragment.run);
        return err == ERR_OK ? add_text(writing, &change->as.fragment) : err;
    }
    case STORE_LIMIT_SET:
        return set_limit(writing, &change->as.limit);
    case STORE_PROVIDER:
        return set_provider(writing, &change->as.provider);
    case STORE_SETTING:
        return put_setting(writing, &change->as.setting);
    case STORE_TASK_SET:
        return set_task(writing, &change->as.task);
    case STORE_CLAIM:
        return claim(writing, &change->as.attempt);
    case STORE_ATTEMPT_SET:
        return set_attempt(writing, &change->as.attempt);
    case STORE_EVENT:
        return add_event(writing, &change->as.event);
    case STORE_COMMAND:
        return put_command(writing, &change->as.command);
    case STORE_PRUNE:
        return ERR_OK; /* later */
    }
    INVARIANT(false); /* all types are above */
    return ERR_INVALID;
}

/* Never write to this store again, for the reason in *diag. */
static enum err
give_up(struct sqlite_store *store, enum err err, const struct diag *diag)
{
    if (store->broken == ERR_OK) {
        store->broken = err;
        store->why = *diag;
    }
    return err;
}

/* Whether this process may write with this epoch. */
static enum err check_epoch(struct writing *writing, uint64_t epoch)
{
    struct sqlite_store *store = writing->store;
    uint64_t own = store->record.owner.epoch;
    uint64_t current = writing->head.info.epoch;
    if (current != own) {
        (void)diag_set(writing->diag,
                       ERR_CONFLICT,
                       "another process has become the scheduler of %s "
                       "(epoch %" PRIu64 ", this one has %" PRIu64 ")",
                       store->dir,
                       current,
                       own);
        return give_up(store, ERR_CONFLICT, writing->diag);
    }
    if (epoch != own) {
        return diag_set(writing->diag,
                        ERR_CONFLICT,
                        "a write of epoch %" PRIu64 ", and the scheduler's is "
                        "%" PRIu64,
                        epoch,
                        own);
    }
    return ERR_OK;
}

static enum err set_head(struct writing *writing)
{
    const struct sqlite_head *head = &writing->head;
    struct binder binder = binder_of(writing, SLOT_HEAD_SET);
    bind_i64(&binder, head->info.engine_ns);
    bind_i64(&binder, head->info.wall_ns);
    bind_u64(&binder, head->info.last_token);
    bind_u64(&binder, head->info.last_event);
    bind_u64(&binder, head->last_sum);
    bind_u64(&binder, head->info.last_command);
    bind_u64(&binder, head->info.last_run);
    bind_u64(&binder, head->writes);
    bind_u64(&binder, head->info.epoch);
    return change_one(writing, &binder, "epoch", head->info.epoch);
}

/* Carry the WAL over into the database when it has grown. */
static void checkpoint_if_due(struct sqlite_store *store)
{
    if (store->frames < store->checkpoint_at + CHECKPOINT_FRAMES) {
        return;
    }
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
    /* What was committed is safe in the WAL. A full disk can be emptied; after
     * anything else the next write reports it. */
    struct diag why = {0};
    enum err err = sqlite_fail(store, rc, &why);
    if (err != ERR_LIMIT) {
        (void)give_up(store, err, &why);
    }
}

/* Begin a batch: may this store be written? */
static enum err begin(struct writing *writing, uint64_t epoch)
{
    struct sqlite_store *store = writing->store;
    INVARIANT(store->taken);
    if (store->broken != ERR_OK) {
        return diag_set(writing->diag, store->broken, "%s", store->why.text);
    }
    if (!lock_has_file(&store->lock)) {
        (void)diag_set(writing->diag,
                       ERR_CONFLICT,
                       "the lock of the store %s was removed while this "
                       "process held it",
                       store->dir);
        return give_up(store, ERR_CONFLICT, writing->diag);
    }
    enum err err = sqlite_begin_write(store, writing->diag);
    if (err == ERR_OK) {
        err = sqlite_read_head(store, &writing->head, writing->diag);
    }
    return err == ERR_OK ? check_epoch(writing, epoch) : err;
}

/* End it: all of it, or, when there was an error, nothing. */
static enum err end(struct writing *writing, enum err err)
{
    struct sqlite_store *store = writing->store;
    writing->head.writes++;
    if (err == ERR_OK) {
        err = set_head(writing);
    }
    if (err == ERR_OK) {
        crash_point("store-before-commit");
        err = sqlite_commit(store, writing->diag);
        crash_point("store-after-commit");
    }
    if (err != ERR_OK) {
        sqlite_rollback(store);
        if (err == ERR_IO || err == ERR_CORRUPT) {
            (void)give_up(store, err, writing->diag);
        }
        return err;
    }
    store->record.writes = writing->head.writes;
    crash_point("store-before-count");
    /* Only makes more losses noticed; a batch is not undone for it. */
    (void)!lock_write(&store->lock, &store->record, NULL);
    checkpoint_if_due(store);
    return ERR_OK;
}

enum err sqlite_write(struct store *base,
                      const struct store_batch *batch,
                      struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (!store->taken) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "this process is not the scheduler of %s",
                        store->dir);
    }
    struct diag unread = {0};
    struct writing writing = {
        .store = store,
        .diag = diag != NULL ? diag : &unread,
    };
    enum err err = begin(&writing, batch->epoch);
    crash_point("store-begun");
    writing.head.info.engine_ns = batch->engine_ns;
    writing.head.info.wall_ns = batch->wall_ns;
    for (uint32_t ix = 0; ix < batch->count && err == ERR_OK; ix++) {
        err = apply(&writing, &batch->changes[ix]);
    }
    for (uint32_t ix = 0; ix < batch->count && err == ERR_OK; ix++) {
        if (batch->changes[ix].type == STORE_PRUNE) {
            err =
                sqlite_prune(store, &batch->changes[ix].as.prune, writing.diag);
        }
    }
    return end(&writing, err);
}

enum err sqlite_submit(struct store *base,
                       const struct store_command *command,
                       uint64_t *number_out,
                       struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (!store->taken) {
        return diag_set(diag,
                        ERR_DENIED,
                        "only the scheduler of %s can take an order",
                        store->dir);
    }
    struct diag unread = {0};
    struct writing writing = {
        .store = store,
        .diag = diag != NULL ? diag : &unread,
    };
    enum err err = begin(&writing, store->record.owner.epoch);
    if (err == ERR_OK) {
        err = put_command(&writing, command);
    }
    err = end(&writing, err);
    if (err == ERR_OK) {
        *number_out = writing.head.info.last_command;
    }
    return err;
}

/* The log must end where the row of the scheduler says that it does. */
static enum err check_tail(struct writing *writing)
{
    struct sqlite_store *store = writing->store;
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(store,
                                  "SELECT number, sum FROM event"
                                  " ORDER BY number DESC LIMIT 1",
                                  &stmt,
                                  writing->diag);
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
    if (number < writing->head.info.last_event &&
        sqlite_find_gap(store, number + 1, &gap, NULL) == ERR_OK) {
        number = gap.last;
        sum = gap.sum;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        err = sqlite_fail(store, rc, writing->diag);
    } else if (number != writing->head.info.last_event ||
               sum != writing->head.last_sum) {
        err = sqlite_corrupt(store,
                             writing->diag,
                             "the log ends at event %" PRIu64
                             " and should end at %" PRIu64,
                             number,
                             writing->head.info.last_event);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

/* No write that was acknowledged may be missing. */
static enum err check_writes(struct writing *writing)
{
    struct sqlite_store *store = writing->store;
    if (writing->head.writes >= store->record.writes) {
        return ERR_OK;
    }
    return diag_set(writing->diag,
                    ERR_CORRUPT,
                    "the last %" PRIu64 " writes to the store %s are missing: "
                    "an older copy was put back, or sluice.db-wal is damaged. "
                    "To go on without them, remove %s/lock",
                    store->record.writes - writing->head.writes,
                    store->dir,
                    store->dir);
}

static enum err prepare_statements(struct sqlite_store *store,
                                   struct diag *diag)
{
    enum err err = ERR_OK;
    for (enum sqlite_slot ix = 0; ix < SLOT_COUNT && err == ERR_OK; ix++) {
        if (statements[ix] != NULL) {
            sqlite3_stmt *stmt = NULL;
            err = sqlite_slot(store, ix, statements[ix], &stmt, diag);
        }
    }
    return err;
}

/* Write the new epoch and its owner. */
static enum err set_epoch(struct writing *writing)
{
    struct sqlite_store *store = writing->store;
    const struct store_owner *owner = &store->record.owner;
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(store,
                                  "UPDATE scheduler SET epoch = ?1, pid = ?2,"
                                  " start_ticks = ?3, host = ?4,"
                                  " boot_id = ?5, writes = ?6",
                                  &stmt,
                                  writing->diag);
    if (err != ERR_OK) {
        return err;
    }
    struct binder binder = {.stmt = stmt};
    bind_u64(&binder, writing->head.info.epoch);
    bind_i64(&binder, owner->pid);
    bind_u64(&binder, owner->start_ticks);
    bind_text(&binder, owner->host);
    bind_text(&binder, owner->boot_id);
    bind_u64(&binder, writing->head.writes);
    err = change_one(writing, &binder, "epoch", writing->head.info.epoch);
    (void)sqlite3_finalize(stmt);
    return err;
}

enum err sqlite_begin_epoch(struct sqlite_store *store,
                            uint64_t *epoch_out,
                            struct diag *diag)
{
    INVARIANT(!store->taken && store->broken == ERR_OK);
    struct diag unread = {0};
    struct writing writing = {
        .store = store,
        .diag = diag != NULL ? diag : &unread,
    };
    enum err err = prepare_statements(store, diag);
    if (err == ERR_OK) {
        err = sqlite_begin_write(store, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_read_head(store, &writing.head, diag);
    }
    if (err == ERR_OK) {
        err = check_writes(&writing);
    }
    if (err == ERR_OK) {
        err = check_tail(&writing);
    }
    if (err == ERR_OK) {
        writing.head.info.epoch++;
        writing.head.writes++;
        err = set_epoch(&writing);
    }
    crash_point("store-epoch-set");
    if (err == ERR_OK) {
        err = sqlite_commit(store, diag);
    }
    if (err != ERR_OK) {
        sqlite_rollback(store);
        return err;
    }
    store->record.writes = writing.head.writes;
    *epoch_out = writing.head.info.epoch;
    return ERR_OK;
}

void sqlite_checkpoint_last(struct sqlite_store *store)
{
    if (!store->taken || store->broken != ERR_OK) {
        return;
    }
    crash_point("store-before-last-checkpoint");
    /* Does not wait for readers; what is left stays in the WAL, where the next
     * scheduler finds it. So no result matters. */
    (void)sqlite3_busy_timeout(store->db, 0);
    (void)sqlite3_wal_checkpoint_v2(store->db,
                                    NULL,
                                    SQLITE_CHECKPOINT_TRUNCATE,
                                    NULL,
                                    NULL);
}
