/* SPDX-License-Identifier: MIT */
/*
 * Everything is in arrays in the order in which it is read. There is no time
 * between two calls in which another store could write, so reading needs no
 * snapshot.
 */
#include "store/memory.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "core/sched.h"
#include "store/event.h"
#include "store/memory_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct store_memory_db *store_memory_db_new(void)
{
    return mem_zalloc(1, sizeof(struct store_memory_db));
}

void store_memory_db_free(struct store_memory_db *db)
{
    if (db == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < db->run_count; ix++) {
        mem_free(db->runs[ix].fragments);
        mem_free(db->runs[ix].limits);
        mem_free(db->runs[ix].tasks);
    }
    mem_free(db->runs);
    mem_free(db->providers);
    mem_free(db->settings);
    mem_free(db->attempts);
    mem_free(db->events);
    mem_free(db->commands);
    mem_free(db->undos);
    mem_free(db->texts);
    strmap_release(&db->run_ids);
    strmap_release(&db->text_map);
    arena_release(&db->arena);
    mem_free(db);
}

void store_memory_release_lock(struct store_memory_db *db)
{
    db->holder = NULL;
}

void store_memory_set_fault(struct store_memory_db *db,
                            store_memory_fault_fn fn,
                            void *ctx)
{
    db->fault = fn;
    db->fault_ctx = ctx;
}

static void close_store(struct store *base)
{
    struct memory_store *store = (struct memory_store *)base;
    if (store->db->holder == base) {
        store->db->holder = NULL;
    }
    mem_free(store);
}

static enum err
get_owner(struct store *base, struct store_owner *out, struct diag *diag)
{
    struct memory_store *store = (struct memory_store *)base;
    *out = store->db->owner;
    if (store->db->holder == NULL) {
        return diag_set(diag, ERR_NOT_FOUND, "the store has no scheduler");
    }
    return ERR_OK;
}

static enum err take(struct store *base,
                     const struct store_owner *self,
                     uint64_t *epoch_out,
                     struct diag *diag)
{
    struct memory_store *store = (struct memory_store *)base;
    struct store_memory_db *db = store->db;
    INVARIANT(store->mode == STORE_WRITE);
    INVARIANT(store->epoch == 0);
    if (db->holder != NULL) {
        return diag_set(diag,
                        ERR_BUSY,
                        "the process %" PRId64 " on %s is the scheduler",
                        db->owner.pid,
                        db->owner.host[0] != '\0' ? db->owner.host
                                                  : "this machine");
    }
    db->made = true;
    db->holder = base;
    db->owner = *self;
    db->owner.epoch = ++db->info.epoch;
    store->epoch = db->info.epoch;
    *epoch_out = store->epoch;
    return ERR_OK;
}

static enum err
beat(struct store *base, int64_t now_ns, const char *trouble, struct diag *diag)
{
    struct memory_store *store = (struct memory_store *)base;
    if (store->epoch == 0) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "this process is not the scheduler");
    }
    if (store->epoch == store->db->owner.epoch) {
        struct store_owner *owner = &store->db->owner;
        owner->beat_ns = now_ns;
        owner->commits = base->commits;
        owner->commit_ns = base->commit_ns;
        (void)snprintf(owner->trouble,
                       sizeof(owner->trouble),
                       "%s",
                       trouble != NULL ? trouble : "");
    }
    return ERR_OK;
}

static bool is_wanted(const struct store_query *query,
                      const struct memory_run *run)
{
    return (query->finished || !run->row.finished) &&
           (query->run == NULL || strcmp(query->run, run->row.id) == 0);
}

static enum err read_run(const struct memory_run *run,
                         const struct store_visitor *visitor,
                         void *ctx)
{
    enum err err = ERR_OK;
    if (visitor->run != NULL) {
        err = visitor->run(ctx, &run->row);
    }
    for (uint32_t ix = 0;
         ix < run->fragment_count && err == ERR_OK && visitor->fragment != NULL;
         ix++) {
        err = visitor->fragment(ctx, &run->fragments[ix]);
    }
    return err;
}

static enum err read_limits(const struct memory_run *run,
                            const struct store_visitor *visitor,
                            void *ctx)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0;
         ix < run->limit_count && err == ERR_OK && visitor->limit != NULL;
         ix++) {
        err = visitor->limit(ctx, &run->limits[ix]);
    }
    return err;
}

static enum err read_tasks(const struct memory_run *run,
                           const struct store_visitor *visitor,
                           void *ctx)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0;
         ix < run->task_count && err == ERR_OK && visitor->task != NULL;
         ix++) {
        if (run->tasks[ix].present) {
            err = visitor->task(ctx, &run->tasks[ix].row);
        }
    }
    return err;
}

typedef enum err (*part_fn)(const struct memory_run *run,
                            const struct store_visitor *visitor,
                            void *ctx);

/* One part of each run that is wanted. */
static enum err read_runs(const struct store_memory_db *db,
                          const struct store_query *query,
                          const struct store_visitor *visitor,
                          void *ctx,
                          part_fn fn)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < db->run_count && err == ERR_OK; ix++) {
        if (is_wanted(query, &db->runs[ix])) {
            err = fn(&db->runs[ix], visitor, ctx);
        }
    }
    return err;
}

static enum err read_providers(const struct store_memory_db *db,
                               const struct store_visitor *visitor,
                               void *ctx)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0;
         ix < db->provider_count && err == ERR_OK && visitor->provider != NULL;
         ix++) {
        err = visitor->provider(ctx, &db->providers[ix]);
    }
    return err;
}

static enum err read_settings(const struct store_memory_db *db,
                              const struct store_visitor *visitor,
                              void *ctx)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0;
         ix < db->setting_count && err == ERR_OK && visitor->setting != NULL;
         ix++) {
        err = visitor->setting(ctx, &db->settings[ix]);
    }
    return err;
}

static enum err read_attempts(const struct store_memory_db *db,
                              const struct store_query *query,
                              const struct store_visitor *visitor,
                              void *ctx)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0;
         ix < db->attempt_count && err == ERR_OK && visitor->attempt != NULL;
         ix++) {
        const struct store_attempt *row = &db->attempts[ix].row;
        bool open = strcmp(row->state, "ended") != 0;
        if ((open || query->ended) &&
            is_wanted(query, memory_find_run(db, row->run))) {
            err = visitor->attempt(ctx, row);
        }
    }
    return err;
}

static enum err read_commands(const struct store_memory_db *db,
                              const struct store_query *query,
                              const struct store_visitor *visitor,
                              void *ctx)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0;
         ix < db->command_count && err == ERR_OK && visitor->command != NULL;
         ix++) {
        if (query->answered || db->commands[ix].answer == NULL) {
            err = visitor->command(ctx, &db->commands[ix]);
        }
    }
    return err;
}

static enum err check_made(const struct store_memory_db *db, struct diag *diag)
{
    return db->made ? ERR_OK
                    : diag_set(diag, ERR_NOT_FOUND, "there is no store yet");
}

static enum err read_all(struct store *base,
                         const struct store_query *query,
                         const struct store_visitor *visitor,
                         void *ctx,
                         struct store_info *info_out,
                         struct diag *diag)
{
    const struct store_memory_db *db = ((struct memory_store *)base)->db;
    struct store_info info = db->info;
    enum err err = check_made(db, diag);
    if (err == ERR_OK) {
        err = read_runs(db, query, visitor, ctx, read_run);
    }
    if (err == ERR_OK) {
        err = read_runs(db, query, visitor, ctx, read_limits);
    }
    if (err == ERR_OK) {
        err = read_providers(db, visitor, ctx);
    }
    if (err == ERR_OK) {
        err = read_settings(db, visitor, ctx);
    }
    if (err == ERR_OK) {
        err = read_runs(db, query, visitor, ctx, read_tasks);
    }
    if (err == ERR_OK) {
        err = read_attempts(db, query, visitor, ctx);
    }
    if (err == ERR_OK) {
        err = read_commands(db, query, visitor, ctx);
    }
    if (err == ERR_OK && info_out != NULL) {
        *info_out = info;
    }
    return err;
}

static enum err read_events(struct store *base,
                            uint64_t after,
                            store_event_fn fn,
                            void *ctx,
                            struct diag *diag)
{
    const struct store_memory_db *db = ((struct memory_store *)base)->db;
    enum err err = check_made(db, diag);
    /* Numbers have no gaps but those of runs that were removed. */
    uint64_t ix = after < db->event_count ? after : db->event_count;
    while (ix > 0 && db->events[ix - 1].number > after) {
        ix--;
    }
    for (; ix < db->event_count && err == ERR_OK; ix++) {
        err = fn(ctx, &db->events[ix]);
    }
    return err;
}

struct verifying {
    const struct store_memory_db *db;
    store_fault_fn fn;
    void *ctx;
};

static void PRINTF_LIKE(2, 3)
    fault(const struct verifying *verifying, const char *format, ...)
{
    char text[DIAG_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    verifying->fn(verifying->ctx, text);
}

static void check_log(const struct verifying *verifying)
{
    const struct store_memory_db *db = verifying->db;
    uint64_t sum = 0;
    uint64_t number = 0;
    struct event_gap gap;
    for (uint32_t ix = 0; ix < db->event_count; ix++) {
        const struct store_event *event = &db->events[ix];
        if (event->number > number + 1 &&
            memory_find_gap(db, number + 1, &gap)) {
            number = gap.last;
            sum = gap.sum;
        }
        if (event->number != number + 1 ||
            event->sum != event_sum(sum, event)) {
            fault(verifying,
                  "event %" PRIu64 " is not what was written",
                  event->number);
        }
        number = event->number;
        sum = event->sum;
    }
    if (number < db->info.last_event && memory_find_gap(db, number + 1, &gap)) {
        number = gap.last;
        sum = gap.sum;
    }
    if (sum != db->last_sum || number != db->info.last_event) {
        fault(verifying, "the log does not end where it should");
    }
}

/* By the last event of each task: from the end, each task's first one. */
static void check_states(const struct verifying *verifying)
{
    const struct store_memory_db *db = verifying->db;
    uint32_t *seen_from =
        mem_zalloc((size_t)db->run_count + 1, sizeof(*seen_from));
    for (uint32_t ix = 0; ix < db->run_count; ix++) {
        seen_from[ix + 1] = seen_from[ix] + db->runs[ix].task_count;
    }
    bool *seen =
        mem_zalloc((size_t)seen_from[db->run_count] + 1, sizeof(*seen));
    for (uint32_t ix = db->event_count; ix-- > 0;) {
        const struct store_event *event = &db->events[ix];
        if (event_kind_of(event) != EVENT_KIND_TASK ||
            event->task == STORE_NONE) {
            continue;
        }
        const struct memory_run *run = memory_find_run(db, event->run);
        if (run == NULL || event->task >= run->task_count ||
            !run->tasks[event->task].present) {
            fault(verifying,
                  "task %u of run %u is missing",
                  event->task,
                  event->run);
            continue;
        }
        bool *mark = &seen[seen_from[run - db->runs] + event->task];
        size_t len = 0;
        const char *to = event_target(event->data, &len);
        const char *state = run->tasks[event->task].row.state;
        if (!*mark && (to == NULL || strlen(state) != len ||
                       memcmp(to, state, len) != 0)) {
            fault(verifying,
                  "task %u of run %u: the state is %s, and by its last event "
                  "(%" PRIu64 ") %.*s",
                  event->task,
                  event->run,
                  state,
                  event->number,
                  to == NULL ? 7 : (int)len,
                  to == NULL ? "unknown" : to);
        }
        *mark = true;
    }
    mem_free(seen);
    mem_free(seen_from);
}

static bool is_state(const char *state)
{
    for (int ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (strcmp(state, sched_state_name((enum task_state)ix)) == 0) {
            return true;
        }
    }
    return false;
}

static void check_tasks(const struct verifying *verifying)
{
    const struct store_memory_db *db = verifying->db;
    for (uint32_t ix = 0; ix < db->run_count; ix++) {
        const struct memory_run *run = &db->runs[ix];
        for (uint32_t task = 0; task < run->task_count; task++) {
            const struct memory_task *place = &run->tasks[task];
            if (place->present && !is_state(place->row.state)) {
                fault(verifying,
                      "task %u of run %u: unknown state \"%s\"",
                      task,
                      run->row.number,
                      place->row.state);
            }
            if (!place->present && place->last_attempt != STORE_NONE) {
                fault(verifying,
                      "attempt %" PRIu64 ": there is no task %u in run %u",
                      db->attempts[place->last_attempt].row.token,
                      task,
                      run->row.number);
            }
        }
    }
}

static void check_attempts(const struct verifying *verifying)
{
    const struct store_memory_db *db = verifying->db;
    for (uint32_t ix = 0; ix < db->attempt_count; ix++) {
        const struct store_attempt *row = &db->attempts[ix].row;
        bool ended = strcmp(row->state, "ended") == 0;
        if (!ended && strcmp(row->state, "claimed") != 0 &&
            strcmp(row->state, "running") != 0) {
            fault(verifying,
                  "attempt %" PRIu64 ": unknown state \"%s\"",
                  row->token,
                  row->state);
        }
        if (ended && row->outcome == NULL) {
            fault(verifying,
                  "attempt %" PRIu64 ": it has ended without outcome",
                  row->token);
        }
    }
}

static enum err
verify(struct store *base, store_fault_fn fn, void *ctx, struct diag *diag)
{
    struct verifying verifying = {
        .db = ((struct memory_store *)base)->db,
        .fn = fn,
        .ctx = ctx,
    };
    enum err err = check_made(verifying.db, diag);
    if (err == ERR_OK) {
        check_log(&verifying);
        check_states(&verifying);
        check_tasks(&verifying);
        check_attempts(&verifying);
    }
    return err;
}

static const struct store_ops memory_ops = {
    .name = "memory",
    .close = close_store,
    .owner = get_owner,
    .take = take,
    .beat = beat,
    .read = read_all,
    .write = memory_write,
    .events = read_events,
    .submit = memory_submit,
    .verify = verify,
};

struct store *store_memory_open(struct store_memory_db *db,
                                enum store_mode mode)
{
    struct memory_store *store = mem_zalloc(1, sizeof(*store));
    store->base.ops = &memory_ops;
    store->db = db;
    store->mode = mode;
    return &store->base;
}
