/* SPDX-License-Identifier: MIT */
/*
 * Changes are applied one by one, and each leaves a note how to take it back.
 * When one does not fit, the notes are followed backwards.
 *
 * Texts are never freed one by one. Short ones, names of states above all, are
 * kept once; a row that is written again with the same text keeps the old one.
 */
#include "store/memory_internal.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "store/event.h"

#include <inttypes.h>
#include <string.h>

enum {
    SHORT_BYTES_MAX = 24,
};

/* A text that lives as long as the database; `old` stood there before. */
static const char *
keep(struct store_memory_db *db, const char *old, const char *text)
{
    if (text == NULL || (old != NULL && strcmp(old, text) == 0)) {
        return text == NULL ? NULL : old;
    }
    size_t len = strlen(text);
    if (len > SHORT_BYTES_MAX) {
        return arena_strndup(&db->arena, text, len);
    }
    uint32_t ix = strmap_find(&db->text_map, text, len);
    if (ix != STRMAP_NONE) {
        return db->texts[ix];
    }
    MEM_GROW(db->texts, db->text_count, db->text_capacity);
    const char *kept = arena_strndup(&db->arena, text, len);
    db->texts[db->text_count] = kept;
    (void)strmap_add(&db->text_map, kept, db->text_count++);
    return kept;
}

struct memory_run *memory_find_run(const struct store_memory_db *db,
                                   uint32_t number)
{
    uint32_t low = 0;
    uint32_t high = db->run_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (db->runs[middle].row.number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < db->run_count && db->runs[low].row.number == number;
    return found ? &db->runs[low] : NULL;
}

static struct memory_attempt *find_attempt(const struct store_memory_db *db,
                                           uint64_t token)
{
    uint32_t low = 0;
    uint32_t high = db->attempt_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (db->attempts[middle].row.token < token) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found =
        low < db->attempt_count && db->attempts[low].row.token == token;
    return found ? &db->attempts[low] : NULL;
}

static struct memory_undo *add_undo(struct store_memory_db *db,
                                    enum store_change_type type)
{
    MEM_GROW(db->undos, db->undo_count, db->undo_capacity);
    struct memory_undo *undo = &db->undos[db->undo_count++];
    undo->type = type;
    undo->added = true;
    return undo;
}

static enum err no_run(struct diag *diag, uint32_t run)
{
    return diag_set(diag, ERR_CONFLICT, "there is no run %u", run);
}

static enum err misfit(struct diag *diag, const char *what, uint64_t number)
{
    return diag_set(diag,
                    ERR_CONFLICT,
                    "%s %" PRIu64 " does not fit what is stored",
                    what,
                    number);
}

static enum err add_run(struct store_memory_db *db,
                        const struct store_run *from,
                        struct diag *diag)
{
    if (from->number <= db->info.last_run ||
        strmap_find(&db->run_ids, from->id, strlen(from->id)) != STRMAP_NONE) {
        return misfit(diag, "run", from->number);
    }
    MEM_GROW(db->runs, db->run_count, db->run_capacity);
    struct memory_run *run = &db->runs[db->run_count];
    *run = (struct memory_run){.row = *from};
    run->row.id = arena_strndup(&db->arena, from->id, strlen(from->id));
    run->row.name = keep(db, NULL, from->name);
    run->row.file = keep(db, NULL, from->file);
    run->row.folder = keep(db, NULL, from->folder);
    run->row.text = arena_strndup(&db->arena, from->text, from->text_bytes);
    (void)strmap_add(&db->run_ids, run->row.id, db->run_count++);
    db->info.last_run = from->number;
    (void)add_undo(db, STORE_RUN_NEW);
    return ERR_OK;
}

static enum err set_run(struct store_memory_db *db,
                        const struct store_run *from,
                        struct diag *diag)
{
    struct memory_run *run = memory_find_run(db, from->number);
    if (run == NULL) {
        return misfit(diag, "run", from->number);
    }
    struct memory_undo *undo = add_undo(db, STORE_RUN_SET);
    undo->old.run = run->row;
    run->row.finished = from->finished;
    run->row.paused = from->paused;
    run->row.cancelled = from->cancelled;
    run->row.barrier = from->barrier;
    run->row.completions = from->completions;
    return ERR_OK;
}

static enum err add_fragment(struct store_memory_db *db,
                             const struct store_fragment *from,
                             struct diag *diag)
{
    struct memory_run *run = memory_find_run(db, from->run);
    if (run == NULL) {
        return no_run(diag, from->run);
    }
    if (from->number != run->fragment_count + 1) {
        return misfit(diag, "fragment", from->number);
    }
    MEM_GROW(run->fragments, run->fragment_count, run->fragment_capacity);
    struct store_fragment *fragment = &run->fragments[run->fragment_count++];
    *fragment = *from;
    fragment->file = keep(db, NULL, from->file);
    fragment->text = arena_strndup(&db->arena, from->text, from->text_bytes);
    add_undo(db, STORE_FRAGMENT)->run = from->run;
    return ERR_OK;
}

/* Rows by name are few: the place is found by walking. */
static enum err set_limit(struct store_memory_db *db,
                          const struct store_limit *from,
                          struct diag *diag)
{
    struct memory_run *run = memory_find_run(db, from->run);
    if (run == NULL) {
        return no_run(diag, from->run);
    }
    uint32_t ix = 0;
    while (ix < run->limit_count &&
           strcmp(run->limits[ix].name, from->name) < 0) {
        ix++;
    }
    struct memory_undo *undo = add_undo(db, STORE_LIMIT_SET);
    undo->run = from->run;
    undo->ix = ix;
    undo->added =
        ix == run->limit_count || strcmp(run->limits[ix].name, from->name) != 0;
    if (undo->added) {
        MEM_GROW(run->limits, run->limit_count, run->limit_capacity);
        memmove(&run->limits[ix + 1],
                &run->limits[ix],
                (run->limit_count - ix) * sizeof(run->limits[0]));
        run->limit_count++;
    } else {
        undo->old.limit = run->limits[ix];
    }
    run->limits[ix] = *from;
    run->limits[ix].name = keep(db, NULL, from->name);
    return ERR_OK;
}

static void set_provider(struct store_memory_db *db,
                         const struct store_provider *from)
{
    uint32_t ix = 0;
    while (ix < db->provider_count &&
           strcmp(db->providers[ix].name, from->name) < 0) {
        ix++;
    }
    struct memory_undo *undo = add_undo(db, STORE_PROVIDER);
    undo->ix = ix;
    undo->added = ix == db->provider_count ||
                  strcmp(db->providers[ix].name, from->name) != 0;
    if (undo->added) {
        MEM_GROW(db->providers, db->provider_count, db->provider_capacity);
        memmove(&db->providers[ix + 1],
                &db->providers[ix],
                (db->provider_count - ix) * sizeof(db->providers[0]));
        db->provider_count++;
    } else {
        undo->old.provider = db->providers[ix];
    }
    db->providers[ix] = *from;
    db->providers[ix].name = keep(db, NULL, from->name);
    db->providers[ix].reason = keep(db, NULL, from->reason);
}

struct store_setting memory_replace_setting(struct store_memory_db *db,
                                            struct store_setting setting)
{
    uint32_t ix = 0;
    while (ix < db->setting_count &&
           strcmp(db->settings[ix].name, setting.name) < 0) {
        ix++;
    }
    bool there = ix < db->setting_count &&
                 strcmp(db->settings[ix].name, setting.name) == 0;
    struct store_setting old = {.name = setting.name};
    if (there) {
        old = db->settings[ix];
    }
    if (setting.value != NULL && !there) {
        MEM_GROW(db->settings, db->setting_count, db->setting_capacity);
        memmove(&db->settings[ix + 1],
                &db->settings[ix],
                (db->setting_count++ - ix) * sizeof(db->settings[0]));
    } else if (setting.value == NULL && there) {
        memmove(&db->settings[ix],
                &db->settings[ix + 1],
                (--db->setting_count - ix) * sizeof(db->settings[0]));
    }
    if (setting.value != NULL) {
        db->settings[ix] = setting;
    }
    return old;
}

static void put_setting(struct store_memory_db *db,
                        const struct store_setting *from)
{
    struct store_setting setting = {
        .name = keep(db, NULL, from->name),
        .value = keep(db, NULL, from->value),
    };
    struct memory_undo *undo = add_undo(db, STORE_SETTING);
    undo->old.setting = memory_replace_setting(db, setting);
}

/* The place of a task, made if need be. */
static struct memory_task *place_of(struct memory_run *run, uint32_t ix)
{
    INVARIANT(ix != STORE_NONE);
    while (run->task_count <= ix) {
        MEM_GROW(run->tasks, run->task_count, run->task_capacity);
        run->tasks[run->task_count++] = (struct memory_task){
            .last_attempt = STORE_NONE,
        };
    }
    return &run->tasks[ix];
}

static enum err set_task(struct store_memory_db *db,
                         const struct store_task *from,
                         struct diag *diag)
{
    struct memory_run *run = memory_find_run(db, from->run);
    if (run == NULL) {
        return no_run(diag, from->run);
    }
    struct memory_task *task = place_of(run, from->ix);
    struct memory_undo *undo = add_undo(db, STORE_TASK_SET);
    undo->run = from->run;
    undo->ix = from->ix;
    undo->added = !task->present;
    undo->old.task = task->row;
    const struct store_task *old = &undo->old.task;
    task->present = true;
    task->row = *from;
    task->row.id = keep(db, old->id, from->id);
    task->row.state = keep(db, old->state, from->state);
    task->row.reason = keep(db, old->reason, from->reason);
    task->row.feedback = keep(db, old->feedback, from->feedback);
    task->row.carry = keep(db, old->carry, from->carry);
    return ERR_OK;
}

/* Whether a task has an attempt of that number. Mostly they ascend. */
static bool is_taken(const struct store_memory_db *db,
                     const struct memory_task *task,
                     uint32_t number)
{
    uint32_t ix = task->last_attempt;
    if (ix == STORE_NONE || number > task->number_max) {
        return false;
    }
    while (ix != STORE_NONE && db->attempts[ix].row.number != number) {
        ix = db->attempts[ix].before;
    }
    return ix != STORE_NONE;
}

static void copy_texts(struct store_memory_db *db,
                       struct store_attempt *row,
                       const struct store_attempt *from)
{
    row->state = keep(db, row->state, from->state);
    row->outcome = keep(db, row->outcome, from->outcome);
    row->cause = keep(db, row->cause, from->cause);
    row->reason = keep(db, row->reason, from->reason);
}

static enum err claim(struct store_memory_db *db,
                      const struct store_attempt *from,
                      struct diag *diag)
{
    if (from->token <= db->info.last_token) {
        return misfit(diag, "token", from->token);
    }
    struct memory_run *run = memory_find_run(db, from->run);
    if (run == NULL) {
        return no_run(diag, from->run);
    }
    struct memory_task *task = place_of(run, from->task);
    if (is_taken(db, task, from->number)) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "attempt %u of task %u of run %u is taken",
                        from->number,
                        from->task,
                        from->run);
    }
    MEM_GROW(db->attempts, db->attempt_count, db->attempt_capacity);
    struct memory_attempt *attempt = &db->attempts[db->attempt_count];
    *attempt = (struct memory_attempt){
        .row = *from,
        .before = task->last_attempt,
    };
    attempt->row.state = NULL;
    attempt->row.outcome = NULL;
    attempt->row.cause = NULL;
    attempt->row.reason = NULL;
    copy_texts(db, &attempt->row, from);
    struct memory_undo *undo = add_undo(db, STORE_CLAIM);
    undo->old.number_max = task->number_max;
    task->last_attempt = db->attempt_count++;
    if (from->number > task->number_max) {
        task->number_max = from->number;
    }
    db->info.last_token = from->token;
    return ERR_OK;
}

static enum err set_attempt(struct store_memory_db *db,
                            const struct store_attempt *from,
                            struct diag *diag)
{
    struct memory_attempt *attempt = find_attempt(db, from->token);
    if (attempt == NULL || strcmp(attempt->row.state, "ended") == 0) {
        return misfit(diag, "attempt", from->token);
    }
    struct memory_undo *undo = add_undo(db, STORE_ATTEMPT_SET);
    undo->ix = (uint32_t)(attempt - db->attempts);
    undo->old.attempt = *attempt;
    struct store_attempt *row = &attempt->row;
    copy_texts(db, row, from);
    row->pid = from->pid;
    row->start_ticks = from->start_ticks;
    row->begun_ns = from->begun_ns;
    row->ended_ns = from->ended_ns;
    row->code = from->code;
    row->signal = from->signal;
    row->input_tokens = from->input_tokens;
    row->cached_tokens = from->cached_tokens;
    row->output_tokens = from->output_tokens;
    row->usd = from->usd;
    return ERR_OK;
}

static void add_event(struct store_memory_db *db,
                      const struct store_event *from)
{
    MEM_GROW(db->events, db->event_count, db->event_capacity);
    struct store_event *event = &db->events[db->event_count++];
    *event = *from;
    event->kind = keep(db, NULL, from->kind);
    event->data = arena_strndup(&db->arena, from->data, strlen(from->data));
    event->number = ++db->info.last_event;
    event->sum = event_sum(db->last_sum, event);
    db->last_sum = event->sum;
    (void)add_undo(db, STORE_EVENT);
}

static enum err put_command(struct store_memory_db *db,
                            const struct store_command *from,
                            struct diag *diag)
{
    if (from->number == 0) {
        MEM_GROW(db->commands, db->command_count, db->command_capacity);
        struct store_command *command = &db->commands[db->command_count++];
        *command = *from;
        command->number = ++db->info.last_command;
        command->who = keep(db, NULL, from->who);
        command->verb = keep(db, NULL, from->verb);
        command->args = keep(db, NULL, from->args);
        command->answer = keep(db, NULL, from->answer);
        (void)add_undo(db, STORE_COMMAND);
        return ERR_OK;
    }
    if (from->number > db->command_count ||
        db->commands[from->number - 1].answer != NULL) {
        return misfit(diag, "order", from->number);
    }
    struct store_command *command = &db->commands[from->number - 1];
    command->answer = keep(db, NULL, from->answer);
    struct memory_undo *undo = add_undo(db, STORE_COMMAND);
    undo->added = false;
    undo->ix = (uint32_t)(from->number - 1);
    return ERR_OK;
}

static enum err apply(struct store_memory_db *db,
                      const struct store_change *change,
                      struct diag *diag)
{
    switch (change->type) {
    case STORE_RUN_NEW:
        return add_run(db, &change->as.run, diag);
    case STORE_RUN_SET:
        return set_run(db, &change->as.run, diag);
    case STORE_FRAGMENT:
        return add_fragment(db, &change->as.fragment, diag);
    case STORE_LIMIT_SET:
        return set_limit(db, &change->as.limit, diag);
    case STORE_PROVIDER:
        set_provider(db, &change->as.provider);
        return ERR_OK;
    case STORE_SETTING:
        put_setting(db, &change->as.setting);
        return ERR_OK;
    case STORE_TASK_SET:
        return set_task(db, &change->as.task, diag);
    case STORE_CLAIM:
        return claim(db, &change->as.attempt, diag);
    case STORE_ATTEMPT_SET:
        return set_attempt(db, &change->as.attempt, diag);
    case STORE_EVENT:
        add_event(db, &change->as.event);
        return ERR_OK;
    case STORE_COMMAND:
        return put_command(db, &change->as.command, diag);
    case STORE_PRUNE:
        return ERR_OK; /* when nothing can fail any more */
    }
    INVARIANT(false); /* all types are above */
    return ERR_INVALID;
}

static void undo_run_new(struct store_memory_db *db)
{
    struct memory_run *run = &db->runs[--db->run_count];
    strmap_remove(&db->run_ids, run->row.id);
    mem_free(run->fragments);
    mem_free(run->limits);
    mem_free(run->tasks);
}

static void undo_limit(struct store_memory_db *db,
                       const struct memory_undo *undo)
{
    struct memory_run *run = memory_find_run(db, undo->run);
    INVARIANT(run != NULL && undo->ix < run->limit_count);
    if (!undo->added) {
        run->limits[undo->ix] = undo->old.limit;
        return;
    }
    run->limit_count--;
    memmove(&run->limits[undo->ix],
            &run->limits[undo->ix + 1],
            (run->limit_count - undo->ix) * sizeof(run->limits[0]));
}

static void undo_provider(struct store_memory_db *db,
                          const struct memory_undo *undo)
{
    INVARIANT(undo->ix < db->provider_count);
    if (!undo->added) {
        db->providers[undo->ix] = undo->old.provider;
        return;
    }
    db->provider_count--;
    memmove(&db->providers[undo->ix],
            &db->providers[undo->ix + 1],
            (db->provider_count - undo->ix) * sizeof(db->providers[0]));
}

static void undo_task(struct store_memory_db *db,
                      const struct memory_undo *undo)
{
    struct memory_run *run = memory_find_run(db, undo->run);
    INVARIANT(run != NULL && undo->ix < run->task_count);
    run->tasks[undo->ix].row = undo->old.task;
    run->tasks[undo->ix].present = !undo->added;
}

static void undo_claim(struct store_memory_db *db,
                       const struct memory_undo *undo)
{
    INVARIANT(db->attempt_count > 0);
    const struct memory_attempt *attempt = &db->attempts[--db->attempt_count];
    struct memory_run *run = memory_find_run(db, attempt->row.run);
    INVARIANT(run != NULL);
    struct memory_task *task = &run->tasks[attempt->row.task];
    task->last_attempt = attempt->before;
    task->number_max = undo->old.number_max;
}

static void undo_command(struct store_memory_db *db,
                         const struct memory_undo *undo)
{
    INVARIANT(undo->added || undo->ix < db->command_count);
    if (undo->added) {
        db->command_count--;
    } else {
        db->commands[undo->ix].answer = NULL;
    }
}

static void take_back(struct store_memory_db *db,
                      const struct memory_undo *undo)
{
    switch (undo->type) {
    case STORE_RUN_NEW:
        undo_run_new(db);
        break;
    case STORE_RUN_SET:
        memory_find_run(db, undo->old.run.number)->row = undo->old.run;
        break;
    case STORE_FRAGMENT:
        memory_find_run(db, undo->run)->fragment_count--;
        break;
    case STORE_LIMIT_SET:
        undo_limit(db, undo);
        break;
    case STORE_PROVIDER:
        undo_provider(db, undo);
        break;
    case STORE_SETTING:
        (void)memory_replace_setting(db, undo->old.setting);
        break;
    case STORE_TASK_SET:
        undo_task(db, undo);
        break;
    case STORE_CLAIM:
        undo_claim(db, undo);
        break;
    case STORE_ATTEMPT_SET:
        db->attempts[undo->ix] = undo->old.attempt;
        break;
    case STORE_EVENT:
        db->event_count--;
        break;
    case STORE_COMMAND:
        undo_command(db, undo);
        break;
    case STORE_PRUNE:
        INVARIANT(false); /* is never noted */
        break;
    }
}

static enum err ask_fault(struct memory_store *store,
                          enum store_memory_moment moment,
                          const struct store_batch *batch,
                          struct diag *diag)
{
    struct store_memory_db *db = store->db;
    enum err err =
        db->fault == NULL ? ERR_OK : db->fault(db->fault_ctx, moment, batch);
    if (err == ERR_OK) {
        return ERR_OK;
    }
    INVARIANT(err != ERR_LIMIT || moment == STORE_MEMORY_BEFORE);
    if (err != ERR_LIMIT) {
        store->broken = err;
    }
    return diag_set(diag, err, "a fault was asked for: %s", err_text(err));
}

/* Whether the store may write with this epoch. */
static enum err
check_epoch(struct memory_store *store, uint64_t epoch, struct diag *diag)
{
    if (store->epoch == 0) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "this process is not the scheduler");
    }
    if (store->broken != ERR_OK) {
        return diag_set(diag, store->broken, "the store has failed before");
    }
    uint64_t current = store->db->info.epoch;
    if (current != store->epoch) {
        store->broken = ERR_CONFLICT;
    }
    if (current != epoch || current != store->epoch) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "a write of epoch %" PRIu64 ", and the scheduler's is "
                        "%" PRIu64,
                        epoch,
                        current);
    }
    return ERR_OK;
}

enum err memory_write(struct store *base,
                      const struct store_batch *batch,
                      struct diag *diag)
{
    struct memory_store *store = (struct memory_store *)base;
    struct store_memory_db *db = store->db;
    enum err err = check_epoch(store, batch->epoch, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct store_info info = db->info;
    uint64_t last_sum = db->last_sum;
    db->undo_count = 0;
    for (uint32_t ix = 0; ix < batch->count && err == ERR_OK; ix++) {
        err = apply(db, &batch->changes[ix], diag);
    }
    if (err == ERR_OK) {
        err = ask_fault(store, STORE_MEMORY_BEFORE, batch, diag);
    }
    if (err != ERR_OK) {
        while (db->undo_count > 0) {
            take_back(db, &db->undos[--db->undo_count]);
        }
        db->info = info;
        db->last_sum = last_sum;
        return err;
    }
    db->info.engine_ns = batch->engine_ns;
    db->info.wall_ns = batch->wall_ns;
    for (uint32_t ix = 0; ix < batch->count; ix++) {
        if (batch->changes[ix].type == STORE_PRUNE) {
            memory_prune(db, &batch->changes[ix].as.prune);
        }
    }
    return ask_fault(store, STORE_MEMORY_AFTER, batch, diag);
}

enum err memory_submit(struct store *base,
                       const struct store_command *command,
                       uint64_t *number_out,
                       struct diag *diag)
{
    struct memory_store *store = (struct memory_store *)base;
    if (store->epoch == 0) {
        return diag_set(diag,
                        ERR_DENIED,
                        "only the scheduler can take an order");
    }
    struct store_memory_db *db = store->db;
    struct store_batch batch = {
        .epoch = store->epoch,
        .engine_ns = db->info.engine_ns,
        .wall_ns = db->info.wall_ns,
    };
    struct store_change change = {
        .type = STORE_COMMAND,
        .as.command = *command,
    };
    store_batch_add(&batch, &change);
    enum err err = memory_write(base, &batch, diag);
    store_batch_release(&batch);
    if (err == ERR_OK) {
        *number_out = db->info.last_command;
    }
    return err;
}
