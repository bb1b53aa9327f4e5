/* SPDX-License-Identifier: MIT */
/*
 * Loading and recovery: from the store to a scheduler that resumes where the
 * last one stopped.
 *
 * Loading only reads. It checks stored rows against their plan; an impossible
 * row is an error that names it, with two exceptions that must not delay the
 * other tasks: a task in a state unknown to this version is parked, and an
 * attempt in flight whose task is not in flight is stopped.
 *
 * Recovery checks the attempts that were in flight, and nothing else. It may
 * die half way and be repeated: it decides by the contents of the attempt
 * directories, and its decisions are written like all others, in one batch,
 * before they take effect.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "exec/outcome.h"
#include "store/pruned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run being loaded. */
struct loading_run {
    struct sched_record *records;
    uint32_t seen; /* task rows */
    uint32_t barrier;
};

/* An unanswered request. */
struct loading_command {
    uint64_t number;
    char *who;
    char *args;
};

/* Why a provider is stopped, kept until a plan names it. */
struct loading_stop {
    char *name;
    char *reason;
};

struct loading {
    struct engine *engine;
    struct diag *diag;
    struct loading_run *runs; /* parallel to engine->runs */
    struct store_attempt *attempts;
    uint32_t attempt_count;
    struct loading_command *commands;
    uint32_t command_count;
    struct loading_stop *stops;
    uint32_t stop_count;
    bool texts_read; /* of all runs: update_begin() was called */
    struct updating updating;
};

/* Index of the run with this number, or STORE_NONE. */
static uint32_t find_run(const struct engine *engine, uint32_t number)
{
    for (uint32_t ix = engine->run_count; ix > 0; ix--) {
        if (engine->runs[ix - 1].number == number) {
            return ix - 1;
        }
    }
    return STORE_NONE;
}

/* Note an id that no other run may get. */
static void add_finished(struct engine *engine, const char *id)
{
    uint32_t count = engine->finished_count++;
    MEM_EXTEND(engine->finished_ids, count);
    engine->finished_ids[count] = mem_strdup(id);
}

static enum err on_other(void *ctx, const char *id)
{
    struct loading *loading = ctx;
    add_finished(loading->engine, id);
    return ERR_OK;
}

static enum err on_run(void *ctx, const struct store_run *row)
{
    struct loading *loading = ctx;
    struct engine *engine = loading->engine;
    if (row->stopped > SCHED_STOPPED_DEADLINE) {
        return diag_set(loading->diag,
                        ERR_CORRUPT,
                        "run \"%s\" is stopped for an unknown reason, %u",
                        row->id,
                        row->stopped);
    }
    struct engine_run *run = runs_add(engine);
    loading->runs =
        mem_resize(loading->runs, engine->run_count, sizeof(loading->runs[0]));
    loading->runs[engine->run_count - 1] = (struct loading_run){0};
    run->number = row->number;
    run->id = mem_strdup(row->id);
    run->name = mem_strdup(row->name);
    run->file = mem_strdup(row->file);
    run->folder = mem_strdup(row->folder);
    run->processors = row->processors;
    run->rules = row->rules;
    run->created_ns = row->created_ns;
    run->not_before_ns = row->not_before_ns;
    run->worker = mem_strdup(row->worker);
    run->base_gates = row->base_gates;
    run->finished = row->finished;
    run->stored = (struct sched_run_record){
        .paused = row->paused,
        .cancelled = row->cancelled,
        .barrier = row->barrier > 0,
        .completions = row->completions,
        .owed = row->owed,
        .stopped = (enum sched_stop)row->stopped,
        .deadline_over = row->deadline_over,
    };
    loading->runs[engine->run_count - 1].barrier = row->barrier;
    return ERR_OK;
}

/* Take the plan that an engine before this one has read from the same text, if
 * nothing was added to it. It has learned what was expected of the run: a run
 * of another store is not the same, which the time of its creation shows. */
static bool take_spare(struct engine *engine, struct engine_run *run)
{
    struct engine *spare = engine->spare;
    for (uint32_t ix = 0; spare != NULL && ix < spare->run_count; ix++) {
        struct engine_run *other = &spare->runs[ix];
        if (other->number == run->number &&
            other->created_ns == run->created_ns && other->plan != NULL &&
            other->fragment_count == 0 &&
            other->processors == run->processors &&
            other->rules == run->rules &&
            other->base_gates == run->base_gates &&
            other->text_bytes == run->text_bytes &&
            memcmp(other->text, run->text, run->text_bytes) == 0 &&
            strcmp(other->file, run->file) == 0) {
            usage_release(other); /* it counts by the plan */
            run->plan = other->plan;
            other->plan = NULL;
            return true;
        }
    }
    return false;
}

/* Load the plan of a run, which is its first text. */
static enum err load_text(struct loading *loading,
                          uint32_t ix,
                          const struct store_fragment *row)
{
    struct engine_run *run = &loading->engine->runs[ix];
    struct diag diag = {0};
    INVARIANT(!loading->texts_read);
    run->text = mem_strndup(row->text, row->text_bytes);
    run->text_bytes = row->text_bytes;
    if (!runs_take_offered(loading->engine, run) &&
        !take_spare(loading->engine, run) &&
        runs_read_plan(run, &diag) != ERR_OK) {
        return diag_set(loading->diag,
                        ERR_CORRUPT,
                        "cannot parse the stored plan of run \"%s\": %s",
                        run->id,
                        diag.text);
    }
    sync_restore(run, loading->runs[ix].barrier);
    usage_init(loading->engine, ix);
    return ERR_OK;
}

/* Load a later version of the plan. */
static enum err load_version(struct engine *engine,
                             uint32_t ix,
                             const struct store_fragment *row,
                             struct diag *diag)
{
    struct plan_source source = {
        .file = row->file + strlen(REVISE_MARK),
        .text = row->text,
        .len = row->text_bytes,
        .processors = engine->runs[ix].processors,
        .old_rules = engine->runs[ix].rules < PLAN_RULES,
    };
    struct plan *plan;
    enum err err = runs_read_version(&engine->runs[ix], &source, &plan, diag);
    if (err == ERR_OK) {
        plan_free(runs_take_version(engine,
                                    ix,
                                    plan,
                                    row->file,
                                    row->text,
                                    row->text_bytes));
    }
    return err;
}

static enum err no_plan(const struct loading *loading,
                        const struct engine_run *run)
{
    return diag_set(loading->diag,
                    ERR_CORRUPT,
                    "run \"%s\" has no text of its plan",
                    run->id);
}

/* Finish runs and fragments: later rows are read with the new plan. */
static enum err end_texts(struct loading *loading)
{
    if (loading->texts_read) {
        return ERR_OK;
    }
    INVARIANT(loading->attempt_count == 0 && loading->command_count == 0);
    loading->texts_read = true;
    for (uint32_t ix = 0; ix < loading->engine->run_count; ix++) {
        if (loading->engine->runs[ix].plan == NULL) {
            return no_plan(loading, &loading->engine->runs[ix]);
        }
    }
    return update_begin(loading->engine, &loading->updating, loading->diag);
}

/* The same for a row of a run; *ix_out is STORE_NONE if it is not loaded. */
static enum err
begin_row(struct loading *loading, uint32_t number, uint32_t *ix_out)
{
    *ix_out = find_run(loading->engine, number);
    return end_texts(loading);
}

static enum err on_fragment(void *ctx, const struct store_fragment *row)
{
    struct loading *loading = ctx;
    uint32_t ix = find_run(loading->engine, row->run);
    if (ix == STORE_NONE) {
        return ERR_OK;
    }
    struct engine_run *run = &loading->engine->runs[ix];
    struct diag diag = {0};
    if (row->number == 0) {
        return load_text(loading, ix, row);
    }
    if (run->plan == NULL) {
        return no_plan(loading, run);
    }
    enum err err = revise_is_update(row->file)
                       ? load_version(loading->engine, ix, row, &diag)
                       : runs_add_fragment(run, row, &diag);
    if (err != ERR_OK) {
        return diag_set(loading->diag,
                        ERR_CORRUPT,
                        "cannot parse the stored fragment %u of run \"%s\": %s",
                        row->number,
                        run->id,
                        diag.text);
    }
    return ERR_OK;
}

static enum err on_limit(void *ctx, const struct store_limit *row)
{
    struct loading *loading = ctx;
    uint32_t ix;
    enum err err = begin_row(loading, row->run, &ix);
    if (err != ERR_OK || ix == STORE_NONE) {
        return err;
    }
    struct engine_run *run = &loading->engine->runs[ix];
    uint32_t limit = plan_find_limit(run->plan, row->name);
    if (limit == PLAN_NONE && ix == loading->updating.run) {
        return diag_set(loading->diag,
                        ERR_CONFLICT,
                        "limit \"%s\" of run \"%s\" was set by an operator: "
                        "keep it in the plan",
                        row->name,
                        run->id);
    }
    if (limit == PLAN_NONE) {
        return diag_set(loading->diag,
                        ERR_CORRUPT,
                        "run \"%s\" has no limit \"%s\", but the store sets it",
                        run->id,
                        row->name);
    }
    MEM_EXTEND(run->limits, run->limit_count);
    run->limits[run->limit_count++] = (struct engine_limit){
        .limit = limit,
        .max = row->max,
        .percent = row->percent,
    };
    return ERR_OK;
}

static enum err on_provider(void *ctx, const struct store_provider *row)
{
    struct loading *loading = ctx;
    enum err err = end_texts(loading);
    if (err != ERR_OK) {
        return err;
    }
    struct sched_provider_record record = {
        .steps = row->steps,
        .steps_kept = row->steps_kept,
        .confirming = row->confirming,
        .shut_until_ns = row->shut_until_ns,
        .usage = row->usage,
        .failures = row->failures,
        .circuit_open = row->circuit_open,
        .probe_token = row->probe_token,
        .probe_steps = row->probe_steps,
        .probe_at_ns = row->probe_at_ns,
        .stopped = row->stopped,
    };
    load_restore_provider(loading->engine->load, row->name, &record);
    if (row->stopped) {
        MEM_EXTEND(loading->stops, loading->stop_count);
        loading->stops[loading->stop_count++] = (struct loading_stop){
            .name = mem_strdup(row->name),
            .reason = mem_strdup(row->reason),
        };
    }
    return ERR_OK;
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Restore a setting of a run: KIND/RUN, or KIND/RUN/PART. */
static void restore_of_run(struct loading *loading,
                           const struct store_setting *row)
{
    const char *slash = strchr(row->name, '/');
    char *end = NULL;
    unsigned long number = slash != NULL ? strtoul(slash + 1, &end, 10) : 0;
    uint32_t ix = number > 0 && number <= STORE_RUN_MAX
                      ? find_run(loading->engine, (uint32_t)number)
                      : STORE_NONE;
    if (ix == STORE_NONE) {
        return;
    }
    struct engine_run *run = &loading->engine->runs[ix];
    unsigned long part = *end == '/' ? strtoul(end + 1, NULL, 10) : UINT32_MAX;
    part = part < UINT32_MAX ? part : UINT32_MAX;
    if (has_prefix(row->name, "usage/")) {
        usage_restore(run, (uint32_t)part, row->value);
    } else if (has_prefix(row->name, "expected/")) {
        engine_expect_run(run->plan, row->value);
    } else if (has_prefix(row->name, "budget/") &&
               part < run->plan->task_count) {
        caps_restore_raise(run, (uint32_t)part, row->value);
    } else if (has_prefix(row->name, "window/") &&
               part < run->plan->limit_count) {
        caps_restore_window(run, (uint32_t)part, row->value);
    } else if (has_prefix(row->name, "base/")) {
        bases_restore(run, row->value);
    }
}

static enum err on_setting(void *ctx, const struct store_setting *row)
{
    struct loading *loading = ctx;
    enum err err = end_texts(loading);
    if (err != ERR_OK) {
        return err;
    }
    if (has_prefix(row->name, "history/")) {
        history_restore(loading->engine, row->name, row->value);
    } else if (has_prefix(row->name, "notice/")) {
        notify_restore(loading->engine, row->value);
    } else if (has_prefix(row->name, PRUNED_PREFIX)) {
        add_finished(loading->engine, row->name + strlen(PRUNED_PREFIX));
    } else if (has_prefix(row->name, "forgot/")) {
        gates_restore_forgot(loading->engine, row->name, row->value);
    } else if (strcmp(row->name, "override") == 0) {
        loading->engine->override = strcmp(row->value, "true") == 0;
    } else if (!ceilings_restore(loading->engine, row->name, row->value)) {
        restore_of_run(loading, row);
    }
    return ERR_OK;
}

/* Find the state with that name; false: unknown. */
static bool read_state(const char *name, enum task_state *out)
{
    for (uint32_t n = 0; n < TASK_STATE_COUNT; n++) {
        if (strcmp(sched_state_name((enum task_state)n), name) == 0) {
            *out = (enum task_state)n;
            return true;
        }
    }
    return false;
}

static struct sched_record record_of(const struct store_task *row)
{
    return (struct sched_record){
        .flags = row->flags,
        .parked = (enum sched_parked)row->parked,
        .ready_ns = row->ready_ns,
        .ready_seq = row->ready_seq,
        .until_ns = row->until_ns,
        .started_ns = row->started_ns,
        .service_ns = row->service_ns,
        .version = row->version,
        .token = row->token,
        .leader = row->leader == STORE_NONE ? ID_NONE : row->leader,
        .place = row->place,
        .attempts = row->attempts,
        .tries = row->tries,
        .reworks = row->reworks,
        .checkpoints = row->checkpoints,
        .cause = row->cause == STORE_NONE ? ID_NONE : row->cause,
    };
}

/* Park a task in a state of another version, and show the state. */
static void park_unknown(struct engine_task *task,
                         struct sched_record *record,
                         const char *state)
{
    struct strbuf reason = {0};
    strbuf_addf(&reason,
                "unknown state \"%s\" in the store: retry, skip or cancel it",
                state);
    mem_set_text(&runs_own_past(task)->reason, strbuf_text(&reason));
    strbuf_release(&reason);
    INVARIANT(task->known); /* it has a row, so its state is logged */
    record->state = TASK_PARKED;
    record->parked = SCHED_PARKED_BLOCKED;
    record->flags = 0;
    task->told = TASK_STATE_COUNT;
}

static void take_past(struct engine_task *task, const struct store_task *row)
{
    const char *const texts[] = {
        row->reason,
        row->feedback,
        row->carry,
        row->outputs,
    };
    bool any = row->usd != 0 || row->tokens != 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        any = any || texts[ix] != NULL;
    }
    if (any) {
        *runs_own_past(task) = (struct engine_past){
            .reason = mem_strdup(row->reason),
            .feedback = mem_strdup(row->feedback),
            .carry = mem_strdup(row->carry),
            .outputs = mem_strdup(row->outputs),
            .usd = row->usd,
            .tokens = row->tokens,
        };
    }
}

static enum err on_task(void *ctx, const struct store_task *row)
{
    struct loading *loading = ctx;
    uint32_t ix;
    enum err err = begin_row(loading, row->run, &ix);
    if (err != ERR_OK || ix == STORE_NONE) {
        return err;
    }
    struct engine *engine = loading->engine;
    struct engine_run *run = &engine->runs[ix];
    struct loading_run *part = &loading->runs[ix];
    if (part->records == NULL) {
        runs_grow_tasks(run);
        part->records = mem_zalloc(run->task_count, sizeof(part->records[0]));
    }
    if (row->ix != part->seen || row->ix >= run->task_count ||
        strcmp(row->id, run->plan->tasks[row->ix].id) != 0) {
        return diag_set(loading->diag,
                        ERR_CORRUPT,
                        "task %u (\"%s\") of run \"%s\" contradicts its plan",
                        row->ix,
                        row->id,
                        run->id);
    }
    part->seen++;
    struct engine_task *task = &run->tasks[row->ix];
    struct sched_record *record = &part->records[row->ix];
    *record = record_of(row);
    task->number = row->number;
    task->told_number = row->number;
    task->version = row->version;
    task->known = true;
    take_past(task, row);
    if (read_state(row->state, &record->state)) {
        task->told = (uint8_t)record->state;
    } else {
        park_unknown(task, record, row->state);
    }
    if (row->version > engine->version) {
        engine->version = row->version;
    }
    return ERR_OK;
}

static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct loading *loading = ctx;
    uint32_t ix;
    enum err err = begin_row(loading, row->run, &ix);
    if (err != ERR_OK || ix == STORE_NONE || strcmp(row->state, "ended") == 0) {
        return err;
    }
    if (row->task >= loading->engine->runs[ix].task_count) {
        return diag_set(loading->diag,
                        ERR_CORRUPT,
                        "attempt %llu belongs to an unknown task",
                        (unsigned long long)row->token);
    }
    MEM_EXTEND(loading->attempts, loading->attempt_count);
    struct store_attempt *copy = &loading->attempts[loading->attempt_count++];
    *copy = *row;
    copy->state = strcmp(row->state, "running") == 0 ? "running" : "claimed";
    copy->outcome = NULL;
    copy->cause = NULL;
    copy->reason = NULL;
    return ERR_OK;
}

static enum err on_command(void *ctx, const struct store_command *row)
{
    struct loading *loading = ctx;
    enum err err = end_texts(loading);
    if (err != ERR_OK || row->answer != NULL) {
        return err;
    }
    MEM_EXTEND(loading->commands, loading->command_count);
    loading->commands[loading->command_count++] = (struct loading_command){
        .number = row->number,
        .who = mem_strdup(row->who),
        .args = mem_strdup(row->args),
    };
    return ERR_OK;
}

/*
 * The engine's clock continues from the last batch plus the elapsed wall-clock
 * time, because no other clock spans a reboot.
 */
static void set_clock(struct engine *engine)
{
    int64_t wall_ns = engine->world != NULL
                          ? engine->world->wall_ns(engine->ctx)
                          : engine->wall_ns;
    int64_t gone_ns = 0;
    if (engine->info.wall_ns > 0 && wall_ns > engine->info.wall_ns) {
        gone_ns = wall_ns - engine->info.wall_ns;
    }
    INVARIANT(engine->now_ns == 0); /* not used yet */
    engine->now_ns = engine->info.engine_ns + gone_ns;
    if (engine->world != NULL) {
        engine->offset_ns = engine->now_ns - engine->world->now_ns(engine->ctx);
    }
    engine->clock_offset_ns = wall_ns - engine->now_ns;
}

/* Tasks whose time has not come wait for it by the current wall clock, which
 * may have been set, and by the current plan. */
static void renew_times(struct sched_record *records, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        struct sched_record *record = &records[ix];
        if ((record->flags & SCHED_RECORD_EARLY) != 0) {
            record->flags &=
                ~(uint32_t)(SCHED_RECORD_EARLY | SCHED_RECORD_BACKING_OFF);
            record->until_ns = 0;
        }
    }
}

static enum err restore_run(struct loading *loading, uint32_t ix)
{
    struct engine *engine = loading->engine;
    struct engine_run *run = &engine->runs[ix];
    const struct loading_run *part = &loading->runs[ix];
    const struct plan *stored =
        ix == loading->updating.run ? loading->updating.old : run->plan;
    if (part->seen != stored->task_count) {
        return diag_set(loading->diag,
                        ERR_CORRUPT,
                        "run \"%s\" has %u tasks, but %u rows of tasks",
                        run->id,
                        stored->task_count,
                        part->seen);
    }
    if (ix == loading->updating.run) {
        enum err err = update_judge(engine,
                                    &loading->updating,
                                    part->records,
                                    loading->diag);
        if (err != ERR_OK) {
            return err;
        }
    }
    INVARIANT(run->loaded == NULL);
    INVARIANT(run->task_count == run->plan->task_count);
    renew_times(part->records, run->task_count);
    struct load_options options = runs_load_options(engine, run);
    options.records = part->records;
    options.run = &run->stored;
    struct diag diag = {0};
    enum err err = load_plan(engine->load,
                             engine->now_ns,
                             run->plan,
                             &options,
                             &run->loaded,
                             &diag);
    if (err != ERR_OK) {
        return diag_set(loading->diag,
                        err,
                        "cannot restore run \"%s\": %s",
                        run->id,
                        diag.text);
    }
    INVARIANT(load_run_id(run->loaded).v == ix);
    for (uint32_t n = 0; n < run->limit_count; n++) {
        const struct engine_limit *limit = &run->limits[n];
        struct sched_event event = {
            .type = EVENT_LIMIT,
            .now_ns = engine->now_ns,
            .limit = load_limit(run->loaded, limit->limit),
            .max = limit->max,
            .percent = limit->percent,
        };
        err = sched_apply(engine->sched, &event);
        if (err != ERR_OK) {
            return diag_set(loading->diag,
                            ERR_CORRUPT,
                            "run \"%s\": cannot set limit \"%s\" to %lld",
                            run->id,
                            run->plan->limits[limit->limit].name,
                            (long long)limit->max);
        }
    }
    caps_apply(engine, ix);
    return ERR_OK;
}

static void restore_session(struct engine *engine,
                            const struct store_attempt *row)
{
    uint32_t run = find_run(engine, row->run);
    INVARIANT(run != STORE_NONE && session_find(engine, row->token) == NULL);
    struct sched_task task =
        sched_task(engine->sched, engine_core_task(engine, run, row->task));
    bool in_flight = task.state == TASK_STARTING || task.state == TASK_RUNNING;
    if (!in_flight || task.token != row->token) {
        MEM_EXTEND(engine->strays, engine->stray_count);
        engine->strays[engine->stray_count++] = *row;
        return;
    }
    struct session *session = session_add(engine);
    *session = (struct session){
        .token = row->token,
        .run = run,
        .task = row->task,
        .number = row->number,
        .slot = row->slot,
        .phase =
            task.state == TASK_RUNNING ? SESSION_RUNNING : SESSION_STARTING,
        .begun = strcmp(row->state, "running") == 0,
        .mark = mark_get(row),
        .tell_ns = SCHED_NEVER,
        .claimed_ns = row->claimed_ns,
        .begun_ns = row->begun_ns,
        .epoch = row->epoch,
    };
    memcpy(session->nonce, row->nonce, sizeof(session->nonce));
    session_count_tasks(engine, session);
    session_check(engine, session);
}

static enum err restore(struct loading *loading)
{
    struct engine *engine = loading->engine;
    INVARIANT(loading->texts_read);
    set_clock(engine);
    sched_restore(engine->sched, engine->now_ns, engine->info.last_token);
    enum err err = ERR_OK;
    for (uint32_t ix = 0; err == ERR_OK && ix < engine->run_count; ix++) {
        err = restore_run(loading, ix);
    }
    if (err == ERR_OK) {
        update_restored(engine, &loading->updating);
    }
    for (uint32_t n = 0; err == ERR_OK && n < loading->stop_count; n++) {
        struct provider_id id =
            load_find_provider(engine->load, loading->stops[n].name);
        if (id.v != ID_NONE) {
            rows_stop_reason(engine, id, loading->stops[n].reason);
        }
    }
    for (uint32_t n = 0; err == ERR_OK && n < loading->attempt_count; n++) {
        restore_session(engine, &loading->attempts[n]);
    }
    if (err == ERR_OK && engine->world != NULL) {
        update_write(engine, &loading->updating);
        for (uint32_t n = 0; n < loading->command_count; n++) {
            request_apply(engine,
                          &(struct request_call){
                              .number = loading->commands[n].number,
                              .who = loading->commands[n].who,
                          },
                          loading->commands[n].args);
        }
        engine->changed = true;
    }
    return err;
}

static void release(struct loading *loading)
{
    for (uint32_t ix = 0;
         loading->runs != NULL && ix < loading->engine->run_count;
         ix++) {
        mem_free(loading->runs[ix].records);
    }
    for (uint32_t ix = 0; ix < loading->command_count; ix++) {
        mem_free(loading->commands[ix].who);
        mem_free(loading->commands[ix].args);
    }
    for (uint32_t ix = 0; ix < loading->stop_count; ix++) {
        mem_free(loading->stops[ix].name);
        mem_free(loading->stops[ix].reason);
    }
    plan_free(loading->updating.old);
    mem_free(loading->stops);
    mem_free(loading->runs);
    mem_free(loading->attempts);
    mem_free(loading->commands);
}

static enum err on_gate(void *ctx, const struct store_gate *row)
{
    struct loading *loading = ctx;
    gates_restore(loading->engine, row);
    return ERR_OK;
}

enum err engine_load(struct engine *engine,
                     struct store *store,
                     const struct store_query *query,
                     struct diag *diag)
{
    const struct store_visitor visitor = {
        .other = engine->world != NULL ? on_other : NULL,
        .run = on_run,
        .fragment = on_fragment,
        .limit = on_limit,
        .provider = on_provider,
        .setting = on_setting,
        .task = on_task,
        .attempt = on_attempt,
        .gate = engine->world != NULL ? on_gate : NULL,
        .command = on_command,
    };
    struct loading loading = {
        .engine = engine,
        .diag = diag,
        .updating = {.run = STORE_NONE},
    };
    INVARIANT(engine->run_count == 0 && engine->session_count == 0);
    INVARIANT(engine->batch.count == 0 && !engine->writing);
    static const struct store_query unfinished = {.gates = ENGINE_GATES_MAX};
    enum err err = store_read(store,
                              query != NULL ? query : &unfinished,
                              &visitor,
                              &loading,
                              &engine->info,
                              diag);
    engine->event_number = engine->info.last_event;
    if (err == ERR_OK) {
        err = end_texts(&loading);
    }
    if (err == ERR_OK) {
        err = restore(&loading);
    }
    release(&loading);
    engine->spare = NULL;
    return err;
}

/* Stop an attempt in flight whose task is not in flight. Its result is useless,
 * so do not wait for a report. */
static void end_stray(struct engine *engine, const struct store_attempt *row)
{
    INVARIANT(session_find(engine, row->token) == NULL);
    struct session stray = {
        .token = row->token,
        .run = find_run(engine, row->run),
        .task = row->task,
        .number = row->number,
    };
    memcpy(stray.nonce, row->nonce, sizeof(stray.nonce));
    char name[ASSIGN_NAME_BYTES];
    struct work_id id = assign_id(engine, &stray, name);
    struct work_mark mark = mark_get(row);
    engine->world->ask(engine->ctx, &id, &mark, true, WORK_CANCEL);
    struct store_change change = {
        .type = STORE_ATTEMPT_SET,
        .as.attempt = *row,
    };
    change.as.attempt.state = "ended";
    change.as.attempt.outcome = outcome_name(OUTCOME_LOST);
    change.as.attempt.cause = outcome_name(OUTCOME_LOST);
    change.as.attempt.reason = "its task is not in flight";
    change.as.attempt.ended_ns = engine->world->wall_ns(engine->ctx);
    INVARIANT(strcmp(row->state, "ended") != 0);
    store_batch_add(&engine->batch, &change);
}

/* Make sure that no session of a task's last attempt runs or starts. */
static void end_orphan(struct engine *engine, struct task_id id, uint64_t token)
{
    uint32_t run = sched_task(engine->sched, id).run.v;
    uint32_t task = load_plan_task(engine->runs[run].loaded, id);
    INVARIANT(task != PLAN_NONE);
    struct session orphan = {
        .token = token,
        .run = run,
        .task = task,
        .number = engine->runs[run].tasks[task].number,
    };
    char name[ASSIGN_NAME_BYTES];
    struct work_id work = assign_id(engine, &orphan, name);
    engine->world->ask(engine->ctx, &work, &engine->mark, false, WORK_CANCEL);
}

/* Record tasks in flight without an attempt as lost: stop their sessions. */
static void lose_orphans(struct engine *engine)
{
    uint32_t count;
    const uint32_t *tasks = sched_in_flight(engine->sched, &count);
    uint32_t *copy = mem_zalloc(count, sizeof(copy[0]));
    for (uint32_t n = 0; n < count; n++) {
        copy[n] = tasks[n];
    }
    for (uint32_t n = 0; n < count; n++) {
        struct task_id id = {copy[n]};
        struct sched_task task = sched_task(engine->sched, id);
        if ((task.state != TASK_STARTING && task.state != TASK_RUNNING) ||
            session_find(engine, task.token) != NULL) {
            continue;
        }
        end_orphan(engine, id, task.token);
        enum sched_outcome lost = OUTCOME_LOST;
        enum err err = engine_apply(engine,
                                    (struct sched_event){
                                        .type = EVENT_ENDED,
                                        .task = id,
                                        .token = task.token,
                                        .outcomes = &lost,
                                        .outcome_count = 1,
                                        .retry_at_ns = SCHED_NEVER,
                                    });
        INVARIANT(err == ERR_OK);
    }
    mem_free(copy);
}

/* Log tasks that were parked because their state is unknown. */
static void tell_unknown(struct engine *engine)
{
    for (uint32_t run = 0; run < engine->run_count; run++) {
        for (uint32_t ix = 0; ix < engine->runs[run].task_count; ix++) {
            const struct engine_task *task = &engine->runs[run].tasks[ix];
            if (task->known && task->told == TASK_STATE_COUNT) {
                rows_set_task(engine, run, ix);
            }
        }
    }
}

/* Log the new scheduler, and how many sessions it found and adopted. */
static void tell_scheduler(struct engine *engine, uint32_t found)
{
    uint32_t adopted = 0;
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        adopted += engine->sessions[ix].phase == SESSION_RUNNING ? 1 : 0;
    }
    INVARIANT(engine->session_count <= found); /* nothing was started */
    struct event event = {
        .kind = EVENT_KIND_SCHEDULER,
        .as.scheduler.epoch = engine->epoch,
        .as.scheduler.found = found,
        .as.scheduler.adopted = adopted,
    };
    rows_event(engine, STORE_NONE, STORE_NONE, &event);
}

void engine_recover(struct engine *engine)
{
    uint32_t found = engine->session_count;
    INVARIANT(engine->world != NULL && !engine->writing);
    INVARIANT(engine->info.engine_ns <= engine->now_ns);
    crash_point("recover-begin");
    for (uint32_t ix = 0; ix < engine->stray_count; ix++) {
        end_stray(engine, &engine->strays[ix]);
    }
    engine->stray_count = 0;
    lose_orphans(engine);
    tell_unknown(engine);
    for (uint32_t ix = engine->session_count; ix > 0; ix--) {
        crash_point("recover-session");
        session_ask(engine, &engine->sessions[ix - 1]);
    }
    tell_scheduler(engine, found);
    crash_point("recover-end");
}
