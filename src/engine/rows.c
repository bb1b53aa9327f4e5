/* SPDX-License-Identifier: MIT */
/*
 * Conversion of the state of the core and the engine to store rows. A row is
 * always written whole, from the current state, so it does not matter how often
 * or by which path it is written.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "exec/outcome.h"

#include <stdio.h>
#include <string.h>

static void add(struct engine *engine, const struct store_change *change)
{
    uint32_t count = engine->batch.count;
    store_batch_add(&engine->batch, change);
    INVARIANT(engine->batch.count == count + 1);
}

static struct store_run row_of_run(const struct engine_run *run)
{
    INVARIANT(run->number > 0 && run->id[0] != '\0');
    INVARIANT(run->sync.next == 0 || run->sync.next > run->sync.number);
    uint32_t hook = run->sync.number > 0 ? run->sync.number : run->sync.next;
    struct store_run row = {
        .number = run->number,
        .id = run->id,
        .name = run->name,
        .file = run->file,
        .folder = run->folder,
        .text = run->text,
        .text_bytes = run->text_bytes,
        .processors = run->processors,
        .rules = run->rules,
        .created_ns = run->created_ns,
        .base_gates = run->base_gates,
        .not_before_ns = run->not_before_ns,
        .finished = run->finished,
        .paused = run->stored.paused,
        .cancelled = run->stored.cancelled,
        .barrier = hook > 0 ? hook + 1 : run->stored.barrier,
        .completions = run->stored.completions,
        .owed = run->stored.owed,
        .stopped = (uint32_t)run->stored.stopped,
        .deadline_over = run->stored.deadline_over,
    };
    (void)snprintf(row.worker, sizeof(row.worker), "%s", run->worker);
    return row;
}

void rows_add_run(struct engine *engine, const struct engine_run *run)
{
    INVARIANT(!run->finished && run->fragment_count == 0);
    struct store_change change = {
        .type = STORE_RUN_NEW,
        .as.run = row_of_run(run),
    };
    add(engine, &change);
}

void rows_set_run(struct engine *engine, uint32_t run)
{
    INVARIANT(run < engine->run_count);
    struct store_change change = {
        .type = STORE_RUN_SET,
        .as.run = row_of_run(&engine->runs[run]),
    };
    change.as.run.text = NULL; /* constant, and long */
    change.as.run.text_bytes = 0;
    add(engine, &change);
}

void rows_setting(struct engine *engine, const char *name, const char *value)
{
    INVARIANT(name[0] != '\0' && name[0] != '/');
    struct store_change change = {
        .type = STORE_SETTING,
        .as.setting = {.name = name, .value = value},
    };
    add(engine, &change);
}

void rows_numbered(struct engine *engine,
                   const char *kind,
                   uint32_t number,
                   int64_t part,
                   const char *value)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "%s/%u", kind, number);
    if (part != ROWS_NO_PART) {
        strbuf_addf(&name, "/%lld", (long long)part);
    }
    rows_setting(engine, strbuf_text(&name), value);
    strbuf_release(&name);
}

/* Append an event, and return its row; `data` owns the row's string. */
static struct store_event add_event(struct engine *engine,
                                    uint32_t run,
                                    uint32_t task,
                                    const struct event *event,
                                    struct strbuf *data)
{
    INVARIANT(run == STORE_NONE || run < engine->run_count);
    INVARIANT(task == STORE_NONE || task < engine->runs[run].task_count);
    event_write(data, event);
    struct store_change change = {
        .type = STORE_EVENT,
        .as.event.wall_ns = engine->world->wall_ns(engine->ctx),
        .as.event.run =
            run == STORE_NONE ? STORE_NONE : engine->runs[run].number,
        .as.event.task = task,
        .as.event.kind = event_kind_name(event->kind),
        .as.event.data = strbuf_text(data),
    };
    add(engine, &change);
    change.as.event.number = ++engine->event_number;
    return change.as.event;
}

void rows_event(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const struct event *event)
{
    struct strbuf data = {0};
    struct store_event row = add_event(engine, run, task, event, &data);
    const char *hook = event_hook(event);
    if (hook != NULL && run != STORE_NONE) {
        notify_add(engine, run, hook, &row);
    }
    strbuf_release(&data);
}

void rows_provider_event(struct engine *engine,
                         struct provider_id provider,
                         const struct event *event)
{
    INVARIANT(provider.v < load_provider_count(engine->load));
    struct strbuf data = {0};
    struct store_event row =
        add_event(engine, STORE_NONE, STORE_NONE, event, &data);
    const char *hook = event_hook(event);
    for (uint32_t run = 0; hook != NULL && run < engine->run_count; run++) {
        const struct engine_run *r = &engine->runs[run];
        if (!r->finished && load_uses_provider(r->loaded, provider)) {
            notify_add(engine, run, hook, &row);
        }
    }
    strbuf_release(&data);
}

/* Log a task's change of state. */
static void tell_task(struct engine *engine,
                      uint32_t run,
                      uint32_t ix,
                      const struct sched_record *record)
{
    struct engine_task *task = &engine->runs[run].tasks[ix];
    INVARIANT(task->told != record->state || task->told_number < task->number);
    struct event event = {
        .kind = EVENT_KIND_TASK,
        .as.task.task = engine->runs[run].plan->tasks[ix].id,
        .as.task.from = task->told,
        .as.task.to = record->state,
        .as.task.attempt = task->number,
        .as.task.reason = runs_past(task)->reason,
        .as.task.waits = record->state == TASK_READY &&
                                 (record->flags & SCHED_RECORD_UNAPPROVED) != 0
                             ? "approval"
                             : NULL,
        .as.task.asks = (record->flags & SCHED_RECORD_ASKING) != 0,
    };
    rows_event(engine, run, ix, &event);
    task->told = (uint8_t)record->state;
    task->told_number = task->number;
}

/* Index in the plan of a task of the core, or STORE_NONE. */
static uint32_t plan_index(const struct engine_run *run, uint32_t core)
{
    return core == ID_NONE
               ? STORE_NONE
               : load_plan_task(run->loaded, (struct task_id){core});
}

void rows_set_task(struct engine *engine, uint32_t run, uint32_t ix)
{
    const struct engine_run *r = &engine->runs[run];
    struct engine_task *task = &r->tasks[ix];
    struct sched_record record =
        sched_record(engine->sched, engine_core_task(engine, run, ix));
    if (runs_past(task)->reason != NULL &&
        (record.state == TASK_DONE || record.state == TASK_STARTING)) {
        mem_set_text(&runs_own_past(task)->reason, NULL);
    }
    INVARIANT(record.state != TASK_RUNNING || record.token != 0);
    INVARIANT(record.leader == ID_NONE || record.token != 0);
    const struct engine_past *past = runs_past(task);
    task->version = ++engine->version;
    task->known = true;
    struct store_change change = {
        .type = STORE_TASK_SET,
        .as.task =
            {
                .run = r->number,
                .ix = ix,
                .id = r->plan->tasks[ix].id,
                .state = sched_state_name(record.state),
                .flags = record.flags,
                .parked = (uint32_t)record.parked,
                .ready_ns = record.ready_ns,
                .ready_seq = record.ready_seq,
                .until_ns = record.until_ns,
                .started_ns = record.started_ns,
                .service_ns = record.service_ns,
                .version = task->version,
                .token = record.token,
                .leader = plan_index(r, record.leader),
                .place = record.place,
                .attempts = record.attempts,
                .number = task->number,
                .tries = record.tries,
                .reworks = record.reworks,
                .checkpoints = record.checkpoints,
                .cause = plan_index(r, record.cause),
                .reason = past->reason,
                .feedback = past->feedback,
                .carry = past->carry,
                .outputs = past->outputs,
                .usd = past->usd,
                .tokens = past->tokens,
            },
    };
    add(engine, &change);
    /* One batch may end an attempt and claim the next. */
    bool is_next =
        record.state == TASK_STARTING && task->number != task->told_number;
    if (task->told != record.state || is_next) {
        tell_task(engine, run, ix, &record);
    }
}

static struct store_attempt row_of_session(const struct engine *engine,
                                           const struct session *session)
{
    struct store_attempt row = {
        .token = session->token,
        .run = engine->runs[session->run].number,
        .task = session->task,
        .number = session->number,
        .task_count = session->task_count,
        .slot = session->slot,
        .state = session->phase == SESSION_RUNNING ? "running" : "claimed",
        .epoch = session->epoch,
        .claimed_ns = session->claimed_ns,
        .begun_ns = session->begun_ns,
        .code = -1,
        .confined = engine->runs[session->run]
                        .plan->tasks[session->task]
                        .settings->sandbox != NULL,
    };
    mark_put(&session->mark, &row);
    memcpy(row.nonce, session->nonce, sizeof(row.nonce));
    return row;
}

void rows_claim(struct engine *engine, const struct session *session)
{
    INVARIANT(session->phase == SESSION_STARTING && session->begun_ns == 0);
    INVARIANT(session->epoch == engine->epoch && session->nonce[0] != '\0');
    struct store_change change = {
        .type = STORE_CLAIM,
        .as.attempt = row_of_session(engine, session),
    };
    add(engine, &change);
}

void rows_set_session(struct engine *engine, const struct session *session)
{
    INVARIANT(session->phase == SESSION_RUNNING && session->begun);
    struct store_change change = {
        .type = STORE_ATTEMPT_SET,
        .as.attempt = row_of_session(engine, session),
    };
    add(engine, &change);
}

/* Log the outcome of an attempt. */
static void tell_end(struct engine *engine,
                     const struct rows_end *end,
                     const struct store_attempt *row)
{
    const struct session *session = end->session;
    const struct attempt_result *result = end->result;
    INVARIANT(session->token == row->token);
    int64_t took_ns = row->ended_ns - row->begun_ns;
    struct event event = {
        .kind = EVENT_KIND_ATTEMPT,
        .as.attempt.task =
            engine->runs[session->run].plan->tasks[session->task].id,
        .as.attempt.attempt = row->number,
        .as.attempt.token = row->token,
        .as.attempt.outcome = row->outcome,
        .as.attempt.cause = row->cause,
        .as.attempt.code = row->code,
        .as.attempt.signal = row->signal > 0 ? (uint32_t)row->signal : 0,
        .as.attempt.took_ns = row->begun_ns > 0 && took_ns > 0 ? took_ns : 0,
        .as.attempt.reason = row->reason,
        .as.attempt.restarts = result->restarts,
        .as.attempt.on = result->on,
        .as.attempt.retry_at_ns = end->retry_at_ns,
        .as.attempt.final = end->outcomes[0] == OUTCOME_FATAL,
    };
    rows_event(engine, session->run, session->task, &event);
}

void rows_end_session(struct engine *engine, const struct rows_end *end)
{
    struct store_change change = {
        .type = STORE_ATTEMPT_SET,
        .as.attempt = row_of_session(engine, end->session),
    };
    struct store_attempt *row = &change.as.attempt;
    row->state = "ended";
    row->outcome = outcome_name(end->outcome);
    row->reason = end->reason;
    row->cause = outcome_cause(end->found);
    row->ended_ns = engine->world->wall_ns(engine->ctx);
    if (end->found->state == ATTEMPT_ENDED) {
        const struct attempt_exit *record = &end->found->exit;
        row->code = record->code;
        row->signal = record->signal;
        row->ended_ns = record->ended_ns;
        if (record->begun_ns > 0) {
            row->begun_ns = record->begun_ns;
        }
    }
    row->input_tokens = end->result->input_tokens;
    row->cached_tokens = end->result->cached_tokens;
    row->output_tokens = end->result->output_tokens;
    row->usd = end->result->usd;
    INVARIANT(row->usd >= 0 && row->input_tokens >= 0);
    tell_end(engine, end, row);
    add(engine, &change);
    caps_spend(engine,
               end->session->run,
               end->session->task,
               row->usd,
               row->input_tokens + row->output_tokens);
    history_note(engine,
                 &(struct history_end){
                     .session = end->session,
                     .row = row,
                     .result = end->result,
                     .outcome = end->outcome,
                     .outcomes = end->outcomes,
                 });
}

static bool is_same(const struct sched_provider_record *a,
                    const struct sched_provider_record *b)
{
    return a->steps == b->steps && a->steps_kept == b->steps_kept &&
           a->confirming == b->confirming &&
           a->shut_until_ns == b->shut_until_ns && a->usage == b->usage &&
           a->failures == b->failures && a->circuit_open == b->circuit_open &&
           a->probe_token == b->probe_token &&
           a->probe_steps == b->probe_steps &&
           a->probe_at_ns == b->probe_at_ns && a->stopped == b->stopped;
}

/* Log when a provider has named a time, and when that time has passed. */
static void tell_pause(struct engine *engine,
                       struct provider_id id,
                       const struct sched_provider_record *record)
{
    bool paused = record->usage && record->shut_until_ns > engine->now_ns;
    if (paused == engine->providers[id.v].paused) {
        return;
    }
    engine->providers[id.v].paused = paused;
    struct event event = {
        .kind = EVENT_KIND_USAGE,
        .as.usage.to = paused ? EVENT_WORD_PAUSED : EVENT_WORD_RESUMED,
        .as.usage.provider = load_provider_name(engine->load, id),
        .as.usage.cap = -1,
        .as.usage.percent = -1,
        .as.usage.by = "session",
    };
    if (paused) {
        event.as.usage.until_ns = engine->world->wall_ns(engine->ctx) +
                                  (record->shut_until_ns - engine->now_ns);
    }
    rows_provider_event(engine, id, &event);
}

/* Log that a provider is stopped, or back in use. */
static void tell_stop(struct engine *engine,
                      struct provider_id id,
                      const struct sched_provider_record *record)
{
    struct event event = {
        .kind = EVENT_KIND_PROVIDER,
        .as.provider.to =
            record->stopped ? EVENT_WORD_STOPPED : EVENT_WORD_RESUMED,
        .as.provider.provider = load_provider_name(engine->load, id),
        .as.provider.reason =
            record->stopped ? engine->providers[id.v].reason : NULL,
    };
    rows_provider_event(engine, id, &event);
}

/* Add entries for new providers. */
static void grow_providers(struct engine *engine)
{
    uint32_t count = load_provider_count(engine->load);
    if (count <= engine->provider_count) {
        return;
    }
    engine->providers =
        mem_resize(engine->providers, count, sizeof(engine->providers[0]));
    for (uint32_t ix = engine->provider_count; ix < count; ix++) {
        struct sched_provider_record now =
            sched_provider_record(engine->sched, (struct provider_id){ix});
        engine->providers[ix] = (struct engine_provider){
            /* Differs from every record, so it will be written. That it is
             * stopped was logged with the batch that stored it. */
            .stored = {.steps = UINT32_MAX, .stopped = now.stopped},
            /* It was paused when the last batch was written. */
            .paused = now.usage && now.shut_until_ns > engine->info.engine_ns,
        };
    }
    engine->provider_count = count;
}

void rows_stop_reason(struct engine *engine,
                      struct provider_id provider,
                      const char *reason)
{
    grow_providers(engine);
    INVARIANT(provider.v < engine->provider_count);
    mem_set_text(&engine->providers[provider.v].reason, reason);
}

void rows_providers(struct engine *engine)
{
    uint32_t count = load_provider_count(engine->load);
    grow_providers(engine);
    INVARIANT(engine->provider_count == count);
    for (uint32_t ix = 0; ix < count; ix++) {
        struct provider_id id = {ix};
        struct sched_provider_record now =
            sched_provider_record(engine->sched, id);
        tell_pause(engine, id, &now);
        if (is_same(&now, &engine->providers[ix].stored)) {
            continue;
        }
        if (now.stopped != engine->providers[ix].stored.stopped) {
            tell_stop(engine, id, &now);
        }
        engine->providers[ix].stored = now;
        struct store_change change = {
            .type = STORE_PROVIDER,
            .as.provider =
                {
                    .name = load_provider_name(engine->load, id),
                    .steps = now.steps,
                    .steps_kept = now.steps_kept,
                    .confirming = now.confirming,
                    .shut_until_ns = now.shut_until_ns,
                    .usage = now.usage,
                    .failures = now.failures,
                    .circuit_open = now.circuit_open,
                    .probe_token = now.probe_token,
                    .probe_steps = now.probe_steps,
                    .probe_at_ns = now.probe_at_ns,
                    .stopped = now.stopped,
                    .reason = now.stopped ? engine->providers[ix].reason : NULL,
                },
        };
        add(engine, &change);
    }
}
