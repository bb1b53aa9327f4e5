/* SPDX-License-Identifier: MIT */
/*
 * The engine's pass. Between passes, events go straight into the core, which is
 * the queue: it starts nothing by itself, and loses nothing. Their rows go into
 * the current batch, while the previous batch may still be on its way to the
 * disk. A pass begins when that batch is durable: it asks the core for effects,
 * which fill the current batch, and writes it.
 */
#include "engine/engine.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/engine_internal.h"

#include <stdio.h>
#include <string.h>

/*
 * Search effort of lookahead per pass: about a millisecond. Between events,
 * passes follow one another until the search is complete, and go on with it
 * beyond its number of schedules.
 */
enum { THINK = 20000 };

/* A wall clock that was set by less is ignored; clocks drift. */
#define CLOCK_NS (1000 * MS_NS)

/* Delay before a batch that found the disk full is written again. */
#define RETRY_NS (1000 * MS_NS)

/* How long an exit waits for others; and while sessions are claimed ahead. */
#define BURST_NS (1 * MS_NS)
#define AHEAD_BURST_NS (4 * MS_NS)

struct engine *engine_new(const struct engine_options *options)
{
    struct engine *engine = mem_zalloc(1, sizeof(*engine));
    engine->world = options->world;
    engine->ctx = options->ctx;
    engine->mark = options->mark;
    engine->epoch = options->epoch;
    engine->secret_known = options->secret != NULL;
    if (options->secret != NULL) {
        engine->secret = *options->secret;
    }
    rng_init(&engine->nonces, options->seed);
    engine->wall_ns = options->wall_ns;
    engine->update = options->update;
    engine->spare = options->spare;
    engine->offered = options->offered_take;
    engine->offered_source = options->offered_source;
    engine->sched = sched_new();
    engine->load = load_new(engine->sched);
    engine->retry_ns = SCHED_NEVER;
    engine->burst_ns = SCHED_NEVER;
    return engine;
}

/* Check the invariants between two calls: the lists agree with the counts of
 * the core and of the store. */
static void check(const struct engine *engine)
{
    uint32_t in_flight;
    (void)sched_in_flight(engine->sched, &in_flight);
    INVARIANT(engine->session_count <= in_flight);
    INVARIANT(engine->event_number >= engine->info.last_event);
    INVARIANT(engine->now_ns >= engine->info.engine_ns);
    INVARIANT(!engine->writing || engine->retry_ns == SCHED_NEVER);
    INVARIANT(!engine->stopping || engine->draining);
}

static void release_todo(struct engine_todo *todo)
{
    for (uint32_t ix = 0; ix < todo->answer_count; ix++) {
        mem_free(todo->answers[ix].json);
    }
    for (uint32_t ix = 0; ix < todo->drop_count; ix++) {
        mem_free(todo->drops[ix].run);
        mem_free(todo->drops[ix].name);
    }
    mem_free(todo->drops);
    mem_free(todo->tells);
    mem_free(todo->answers);
    mem_free(todo->starts);
    mem_free(todo->ends);
    *todo = (struct engine_todo){0};
}

void engine_free(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    plan_free(engine->offered);
    load_free(engine->load);
    sched_free(engine->sched);
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        runs_release(&engine->runs[ix]);
    }
    for (uint32_t ix = 0; ix < engine->finished_count; ix++) {
        mem_free(engine->finished_ids[ix]);
    }
    mem_free(engine->finished_ids);
    mem_free(engine->runs);
    mem_free(engine->strays);
    notify_release(engine);
    history_release(engine);
    gates_release(engine);
    ceilings_release(engine);
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        mem_free(engine->sessions[ix].refusal);
    }
    mem_free(engine->sessions);
    for (uint32_t ix = 0; ix < engine->program_count; ix++) {
        mem_free(engine->programs[ix]);
    }
    mem_free(engine->programs);
    store_batch_release(&engine->batch);
    store_batch_release(&engine->written);
    release_todo(&engine->todo);
    release_todo(&engine->written_todo);
    for (uint32_t ix = 0; ix < engine->provider_count; ix++) {
        mem_free(engine->providers[ix].reason);
    }
    mem_free(engine->providers);
    request_release_recent(engine);
    mem_free(engine);
}

int64_t engine_now(struct engine *engine)
{
    int64_t now_ns = engine->world->now_ns(engine->ctx) + engine->offset_ns;
    if (now_ns > engine->now_ns) {
        engine->now_ns = now_ns;
    }
    return engine->now_ns;
}

/*
 * Follow the wall clock, which can be set: `not_before` and `deadline` of plans
 * are times of it. Back-offs and snoozes are durations, and stay.
 */
static void follow_clock(struct engine *engine)
{
    int64_t now_ns = engine_now(engine);
    int64_t offset_ns = engine->world->wall_ns(engine->ctx) - now_ns;
    int64_t by_ns = offset_ns - engine->clock_offset_ns;
    if (by_ns > -CLOCK_NS && by_ns < CLOCK_NS) {
        return;
    }
    engine->clock_offset_ns = offset_ns;
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        if (!engine->runs[ix].finished) {
            load_set_clock(engine->runs[ix].loaded, offset_ns);
        }
    }
}

enum err engine_apply(struct engine *engine, struct sched_event event)
{
    follow_clock(engine); /* before a timer of the core passes */
    event.now_ns = engine_now(engine);
    engine->changed = true;
    return sched_apply(engine->sched, &event);
}

void engine_wait_for_more(struct engine *engine)
{
    int64_t until_ns = engine_now(engine) +
                       (ahead_is_enough(engine) ? AHEAD_BURST_NS : BURST_NS);
    engine->burst_ns =
        until_ns < engine->burst_ns ? until_ns : engine->burst_ns;
}

void engine_fail(struct engine *engine, enum err err, const char *text)
{
    INVARIANT(err != ERR_OK);
    INVARIANT(engine->failed == ERR_OK); /* then nothing is written */
    engine->failed = err;
    (void)
        snprintf(engine->failed_text, sizeof(engine->failed_text), "%s", text);
}

void engine_drop_later(struct engine *engine, const struct work_id *id)
{
    INVARIANT(work_is_program(id));
    struct engine_todo *todo = &engine->todo;
    MEM_GROW(todo->drops, todo->drop_count, todo->drop_capacity);
    todo->drops[todo->drop_count++] = (struct engine_drop){
        .run = mem_strdup(id->run),
        .task = id->task,
        .name = mem_strdup(id->name),
    };
}

/*
 * Whether the run has finished for good. A failed task keeps it open, because
 * an operator may retry it, unless the run was cancelled, or the task is
 * optional or comes last.
 */
static bool is_over(const struct engine *engine, uint32_t run)
{
    const struct engine_run *r = &engine->runs[run];
    struct sched_run view = sched_run(engine->sched, (struct run_id){run});
    uint32_t final = view.counts[TASK_DONE] + view.counts[TASK_SKIPPED] +
                     view.counts[TASK_CANCELLED] + view.counts[TASK_FAILED];
    INVARIANT(final <= r->task_count);
    if (final != r->task_count || view.barrier) {
        return false;
    }
    for (uint32_t ix = 0; ix < r->task_count; ix++) {
        struct sched_task task =
            sched_task(engine->sched, engine_core_task(engine, run, ix));
        if (task.revoked ||
            (task.state == TASK_FAILED && !view.cancelled && !task.last &&
             !r->plan->tasks[ix].settings->optional)) {
            return false;
        }
    }
    return true;
}

static void quiet_run(struct engine *engine, uint32_t ix)
{
    struct engine_run *run = &engine->runs[ix];
    INVARIANT(sched_run(engine->sched, (struct run_id){ix}).in_flight == 0);
    if (run->finished) {
        return; /* already logged */
    }
    if (engine->draining && !is_over(engine, ix)) {
        return; /* it waits for the next scheduler */
    }
    if (is_over(engine, ix)) {
        run->finished = true;
        rows_set_run(engine, ix);
    }
    runs_tell(engine,
              ix,
              run->finished ? EVENT_WORD_FINISHED : EVENT_WORD_WAITING);
}

static void tell_circuit(struct engine *engine, struct provider_id provider)
{
    struct event event = {
        .kind = EVENT_KIND_CIRCUIT,
        .as.circuit = {.provider = load_provider_name(engine->load, provider)},
    };
    rows_provider_event(engine, provider, &event);
}

static void take_effect(struct engine *engine,
                        const struct sched_effect *effect)
{
    struct session *session;
    switch (effect->type) {
    case EFFECT_END:
        session = session_find(engine, effect->token);
        if (session != NULL && session->want == WORK_RUN) {
            session->want = WORK_CANCEL;
        }
        return;
    case EFFECT_START:
        session_new(engine, effect);
        return;
    case EFFECT_CIRCUIT:
        tell_circuit(engine, effect->provider);
        return;
    case EFFECT_BARRIER:
        sync_due(engine, effect->run.v);
        return;
    case EFFECT_TASK:
        rows_set_task(
            engine,
            effect->run.v,
            load_plan_task(engine->runs[effect->run.v].loaded, effect->task));
        return;
    case EFFECT_STOPPED:
        runs_tell_stop(engine, effect->run.v);
        return;
    case EFFECT_RUN:
        quiet_run(engine, effect->run.v);
        return;
    }
}

/* Write runs whose flags have changed. Completions count only for a hook. */
static void note_runs(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        struct engine_run *run = &engine->runs[ix];
        struct sched_run_record now =
            sched_run_record(engine->sched, (struct run_id){ix});
        if (now.paused != run->stored.paused ||
            now.cancelled != run->stored.cancelled ||
            now.barrier != run->stored.barrier ||
            now.owed != run->stored.owed ||
            now.stopped != run->stored.stopped ||
            now.deadline_over != run->stored.deadline_over ||
            (now.completions != run->stored.completions &&
             run->plan->sync.every > 0)) {
            run->stored = now;
            rows_set_run(engine, ix);
        }
    }
}

/* Have the batch give sessions to workers, if the store can: that saves the
 * time between the claim and the order. */
static void offer_starts(struct engine *engine)
{
    const struct engine_todo *todo = &engine->written_todo;
    if (engine->world->offer == NULL || engine->written.count == 0) {
        return;
    }
    for (uint32_t ix = 0; ix < todo->start_count; ix++) {
        struct session *session = session_find(engine, todo->starts[ix]);
        if (session != NULL && session->phase == SESSION_STARTING) {
            session_offer(engine, session, &engine->written.orders);
        }
    }
}

static void begin_write(struct engine *engine)
{
    INVARIANT(!engine->writing && engine->failed == ERR_OK);
    INVARIANT(engine->written_todo.start_count == 0);
    INVARIANT(engine->written_todo.answer_count == 0);
    INVARIANT(engine->written_todo.drop_count == 0);
    INVARIANT(engine->written_todo.end_count == 0);
    INVARIANT(engine->written_todo.tell_count == 0);
    crash_point("turn-decided");
    struct store_batch batch = engine->written;
    struct engine_todo todo = engine->written_todo;
    engine->written = engine->batch;
    engine->written_todo = engine->todo;
    engine->batch = batch;
    engine->todo = todo;
    store_batch_clear(&engine->batch);
    engine->todo.start_count = 0;
    engine->todo.answer_count = 0;
    engine->todo.drop_count = 0;
    engine->todo.end_count = 0;
    engine->todo.tell_count = 0;
    engine->written.epoch = engine->epoch;
    engine->written.engine_ns = engine->now_ns;
    engine->written.wall_ns = engine->world->wall_ns(engine->ctx);
    INVARIANT(engine->batch.count == 0);
    INVARIANT(engine->written.engine_ns >= engine->info.engine_ns);
    offer_starts(engine);
    engine->writing = true;
    engine->world->write(engine->ctx, &engine->written);
}

/* Log the start of sessions that have run for a while. */
static void tell_sessions(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        if (engine->sessions[ix].tell_ns <= engine->now_ns) {
            session_tell(engine, &engine->sessions[ix]);
        }
        session_check(engine, &engine->sessions[ix]);
    }
}

/* Return the time of the next timer. */
static int64_t next_ns(const struct engine *engine)
{
    if (engine->retry_ns != SCHED_NEVER) {
        return engine->retry_ns;
    }
    int64_t next_ns = sched_next_timer(engine->sched);
    const int64_t others[] = {
        engine->burst_ns,
        usage_next_ns(engine),
        notify_next_ns(engine),
        ahead_next_ns(engine),
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(others); ix++) {
        next_ns = others[ix] < next_ns ? others[ix] : next_ns;
    }
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        int64_t tell_ns = engine->sessions[ix].tell_ns;
        next_ns = tell_ns < next_ns ? tell_ns : next_ns;
    }
    return next_ns;
}

static bool is_due(struct engine *engine)
{
    return engine->changed || engine->thinking ||
           next_ns(engine) <= engine_now(engine);
}

/* Whether a stop or a program waits only for a pass. */
static bool is_awaited(const struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        const struct session *session = &engine->sessions[ix];
        if (session->want != WORK_RUN && !session->told &&
            session->phase != SESSION_STARTING) {
            return true;
        }
    }
    return program_is_due(engine);
}

void engine_pass(struct engine *engine)
{
    if (engine->failed != ERR_OK) {
        return;
    }
    ahead_pass(engine);
    if (engine->writing) {
        return;
    }
    follow_clock(engine);
    if (!is_due(engine)) {
        return;
    }
    if (engine->retry_ns != SCHED_NEVER) {
        if (engine->retry_ns <= engine->now_ns) {
            engine->retry_ns = SCHED_NEVER;
            engine->writing = true;
            engine->world->write(engine->ctx, &engine->written);
        }
        return;
    }
    check(engine);
    tell_sessions(engine);
    usage_pass(engine);
    notify_pass(engine);
    caps_pass(engine);
    ahead_set_limits(engine);
    bool idle = !engine->changed; /* a tick counts as a change, too */
    enum err err =
        engine_apply(engine, (struct sched_event){.type = EVENT_TICK});
    INVARIANT(err == ERR_OK);
    engine->changed = false;
    engine->burst_ns = SCHED_NEVER;
    if (idle) {
        engine->thinking = sched_plan_more(engine->sched, THINK);
    } else {
        engine->thinking = sched_plan(engine->sched, THINK) ||
                           sched_can_plan_more(engine->sched);
    }
    struct sched_effect effect;
    while (sched_next_effect(engine->sched, &effect)) {
        take_effect(engine, &effect);
    }
    note_runs(engine);
    rows_providers(engine);
    caps_check_money(engine);
    history_pass(engine);
    if (engine->batch.count > 0 || engine->todo.start_count > 0 ||
        engine->todo.answer_count > 0 || is_awaited(engine)) {
        begin_write(engine);
    }
    check(engine);
}

int64_t engine_wait_ns(struct engine *engine)
{
    if (engine->writing || engine->failed != ERR_OK) {
        return SCHED_NEVER;
    }
    if (engine->retry_ns == SCHED_NEVER &&
        (engine->changed || engine->thinking)) {
        return 0;
    }
    int64_t at_ns = next_ns(engine);
    int64_t now_ns = engine_now(engine);
    if (at_ns == SCHED_NEVER) {
        return SCHED_NEVER;
    }
    return at_ns > now_ns ? at_ns - now_ns : 0;
}

/* Send the answers and events that have become durable. */
static void publish(struct engine *engine)
{
    struct engine_todo *todo = &engine->written_todo;
    for (uint32_t ix = 0; ix < todo->answer_count; ix++) {
        crash_point("before-answer");
        engine->world->answer(engine->ctx,
                              todo->answers[ix].request,
                              todo->answers[ix].json);
        mem_free(todo->answers[ix].json);
    }
    todo->answer_count = 0;
    for (uint32_t ix = 0; ix < engine->written.count; ix++) {
        struct store_change *change = &engine->written.changes[ix];
        if (change->type == STORE_EVENT) {
            change->as.event.number = ++engine->info.last_event;
            INVARIANT(engine->info.last_event <= engine->event_number);
            engine->world->event(engine->ctx, &change->as.event);
        } else if (change->type == STORE_COMMAND &&
                   change->as.command.number == 0) {
            engine->info.last_command++;
        }
    }
}

/* Start and stop the sessions of the written batch. */
static void carry_out(struct engine *engine)
{
    struct engine_todo *todo = &engine->written_todo;
    for (uint32_t ix = 0; ix < todo->end_count; ix++) {
        engine->world->recorded(engine->ctx, todo->ends[ix]);
    }
    todo->end_count = 0;
    for (uint32_t ix = 0; ix < todo->start_count; ix++) {
        struct session *session = session_find(engine, todo->starts[ix]);
        if (session != NULL && session->phase == SESSION_STARTING) {
            crash_point("before-start");
            ahead_start(engine, session);
        } /* else: another report came before the batch was written */
    }
    todo->start_count = 0;
    for (uint32_t ix = 0; ix < todo->drop_count; ix++) {
        struct engine_drop *drop = &todo->drops[ix];
        engine->world->forget(engine->ctx,
                              &(struct work_id){
                                  .run = drop->run,
                                  .task = drop->task,
                                  .name = drop->name,
                              });
        mem_free(drop->run);
        mem_free(drop->name);
    }
    todo->drop_count = 0;
    messages_written(engine);
    for (uint32_t ix = engine->session_count; ix > 0; ix--) {
        struct session *session = &engine->sessions[ix - 1];
        if (session->want != WORK_RUN && !session->told) {
            session_want(engine, session);
        }
    }
    program_start_due(engine);
}

void engine_written(struct engine *engine, enum err err, const char *text)
{
    INVARIANT(engine->writing);
    engine->writing = false;
    if (err == ERR_LIMIT || err == ERR_BUSY) {
        engine->retry_ns = engine_now(engine) + RETRY_NS;
        (void)snprintf(engine->trouble, sizeof(engine->trouble), "%s", text);
        return;
    }
    if (err != ERR_OK) {
        engine_fail(engine, err, text);
        return;
    }
    INVARIANT(engine->written.epoch == engine->epoch);
    crash_point("batch-written");
    engine->trouble[0] = '\0';
    publish(engine);
    carry_out(engine);
    crash_point("turn-carried-out");
    if (ahead_is_enough(engine)) {
        engine_wait_for_more(engine);
    } else {
        engine->changed = true; /* ready tasks that did not fit may fit now */
    }
    check(engine);
}

void engine_drain(struct engine *engine, bool drain)
{
    ahead_over(engine);
    engine->draining = drain;
    enum err err = engine_apply(engine,
                                (struct sched_event){
                                    .type = drain ? EVENT_DRAIN : EVENT_FILL,
                                });
    INVARIANT(err == ERR_OK);
}

void engine_stop(struct engine *engine)
{
    engine_drain(engine, true);
    engine->stopping = true;
    for (uint32_t ix = engine->session_count; ix > 0; ix--) {
        struct session *session = &engine->sessions[ix - 1];
        if (!session->told) {
            session->want = WORK_STOP; /* a request may not be durable yet */
            session_want(engine, session);
        }
    }
    for (uint32_t ix = 0; ix < engine->program_count; ix++) {
        program_stop(engine, engine->programs[ix]);
    }
    check(engine);
}

enum err engine_failed(const struct engine *engine, const char **text_out)
{
    *text_out = engine->failed_text;
    return engine->failed;
}

const char *engine_trouble(const struct engine *engine)
{
    return engine->trouble;
}

bool engine_is_settled(const struct engine *engine)
{
    return !engine->writing && !engine->changed && engine->batch.count == 0 &&
           engine->retry_ns == SCHED_NEVER;
}

bool engine_is_draining(const struct engine *engine)
{
    return engine->draining;
}

uint32_t engine_session_count(const struct engine *engine)
{
    return engine->session_count;
}

void engine_request(struct engine *engine,
                    uint64_t request,
                    const char *who,
                    const char *json)
{
    ahead_over(engine);
    request_apply(engine,
                  &(struct request_call){.id = request, .who = who},
                  json);
    engine->changed = true;
}

void engine_session_request(struct engine *engine,
                            uint64_t request,
                            const char *who,
                            const char *json)
{
    ahead_over(engine);
    request_apply(
        engine,
        &(struct request_call){.id = request, .who = who, .door = true},
        json);
    engine->changed = true;
}
