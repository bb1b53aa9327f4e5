/* SPDX-License-Identifier: MIT */
/* Read-only access to an engine. */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "engine/carry.h"

#include <string.h>

struct sched *engine_sched(const struct engine *engine)
{
    return engine->sched;
}

const struct load *engine_loader(const struct engine *engine)
{
    return engine->load;
}

const struct store_info *engine_info(const struct engine *engine)
{
    return &engine->info;
}

uint32_t engine_run_count(const struct engine *engine)
{
    return engine->run_count;
}

struct engine_run_view engine_run(const struct engine *engine, uint32_t ix)
{
    INVARIANT(ix < engine->run_count);
    const struct engine_run *run = &engine->runs[ix];
    return (struct engine_run_view){
        .number = run->number,
        .id = run->id,
        .name = run->name,
        .file = run->file,
        .folder = run->folder,
        .text = run->text,
        .text_bytes = run->text_bytes,
        .created_ns = run->created_ns,
        .not_before_ns = run->not_before_ns,
        .plan = run->plan,
        .loaded = run->loaded,
        .sched = sched_run(engine->sched, (struct run_id){ix}),
        .finished = run->finished,
        .quiet = engine_is_quiet(engine, ix),
    };
}

const struct plan *engine_plan(const struct engine *engine, uint32_t ix)
{
    INVARIANT(ix < engine->run_count);
    return engine->runs[ix].plan;
}

const struct load_run *engine_loaded(const struct engine *engine, uint32_t ix)
{
    INVARIANT(ix < engine->run_count);
    return engine->runs[ix].loaded;
}

struct engine_session_view engine_session(const struct engine *engine,
                                          uint32_t ix)
{
    INVARIANT(ix < engine->session_count);
    const struct session *session = &engine->sessions[ix];
    return (struct engine_session_view){
        .token = session->token,
        .run = session->run,
        .task = session->task,
        .number = session->number,
        .task_count = session->task_count,
        .mark = session->mark,
        .claimed_ns = session->claimed_ns,
        .begun_ns = session->begun_ns,
    };
}

bool engine_find_session(const struct engine *engine,
                         uint64_t token,
                         struct engine_session_view *out)
{
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        *out = engine_session(engine, ix);
        if (out->token == token) {
            return true;
        }
    }
    return false;
}

struct engine_usage_view
engine_usage(const struct engine *engine, uint32_t run, uint32_t ix)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(ix < engine->runs[run].plan->usage_count);
    const struct plan *plan = engine->runs[run].plan;
    const struct plan_usage *of = &plan->usages[ix];
    const struct engine_usage *usage = &engine->runs[run].usages[ix];
    bool by_reset = usage->cap == 0 && usage->until_ns > 0;
    return (struct engine_usage_view){
        .provider = of->provider != PLAN_NONE
                        ? plan->providers[of->provider].name
                        : NULL,
        .limit = of->limit,
        .meter_count = usage->meter_count,
        .governs = usage->governs,
        .read_ns = usage->read_ns,
        .cap = usage_cap(usage),
        .until_ns = usage->cap == 0 ? usage->until_ns : 0,
        .next_ns =
            by_reset ? usage->until_ns
                     : engine_wall_ns(engine) + usage->next_ns - engine->now_ns,
        .error = usage->error,
    };
}

struct engine_meter engine_usage_meter(const struct engine *engine,
                                       uint32_t run,
                                       uint32_t ix,
                                       uint32_t meter)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(meter < engine->runs[run].usages[ix].meter_count);
    const struct meter *from = &engine->runs[run].usages[ix].meters[meter];
    return (struct engine_meter){
        .name = from->name,
        .percent = from->percent,
        .resets_ns = from->resets_ns,
    };
}

const char *engine_stop_reason(const struct engine *engine,
                               struct provider_id provider)
{
    int64_t until_ns;
    if (sched_provider_state(engine->sched, provider, &until_ns) !=
        PROVIDER_STOPPED) {
        return NULL;
    }
    const char *reason = provider.v < engine->provider_count
                             ? engine->providers[provider.v].reason
                             : NULL;
    return reason != NULL ? reason : "no reason given";
}

uint32_t engine_stop_cause(const struct engine *engine, uint32_t run)
{
    INVARIANT(run < engine->run_count);
    const struct engine_run *r = &engine->runs[run];
    struct sched_run view = sched_run(engine->sched, (struct run_id){run});
    for (uint32_t ix = 0;
         view.stopped == SCHED_STOPPED_FAILURE && ix < r->task_count;
         ix++) {
        struct sched_task task =
            sched_task(engine->sched, engine_core_task(engine, run, ix));
        if (task.state == TASK_PARKED && task.parked == SCHED_PARKED_FAILED &&
            r->plan->tasks[ix].settings->on_failure == PLAN_ON_FAILURE_STOP) {
            return ix;
        }
    }
    return PLAN_NONE;
}

void engine_add_stop(struct strbuf *out,
                     const struct engine *engine,
                     uint32_t run)
{
    struct sched_run view = sched_run(engine->sched, (struct run_id){run});
    uint32_t cause = engine_stop_cause(engine, run);
    if (view.stopped == SCHED_STOPPED_DEADLINE) {
        strbuf_adds(out, "its deadline has passed");
    } else {
        strbuf_addf(out,
                    "%s has failed",
                    cause != PLAN_NONE ? engine->runs[run].plan->tasks[cause].id
                                       : "a task");
    }
}

bool engine_is_overridden(const struct engine *engine)
{
    return engine->override;
}

int64_t
engine_limit_set(const struct engine *engine, uint32_t run, uint32_t limit)
{
    INVARIANT(run < engine->run_count);
    return caps_configured(engine, run, limit);
}

uint32_t
engine_limit_percent(const struct engine *engine, uint32_t run, uint32_t limit)
{
    INVARIANT(run < engine->run_count);
    return caps_percent(engine, run, limit);
}

int64_t
engine_limit_spent(const struct engine *engine, uint32_t run, uint32_t limit)
{
    INVARIANT(run < engine->run_count);
    return caps_spent(engine, run, limit);
}

void engine_task_cost(const struct engine *engine,
                      uint32_t run,
                      uint32_t task,
                      double *usd_out,
                      int64_t *tokens_out)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(task < engine->runs[run].task_count);
    const struct engine_past *past = runs_past(&engine->runs[run].tasks[task]);
    *usd_out = past->usd;
    *tokens_out = past->tokens;
}

int64_t engine_time_ns(const struct engine *engine)
{
    return engine->now_ns;
}

int64_t engine_wall_ns(const struct engine *engine)
{
    return engine->world != NULL ? engine->world->wall_ns(engine->ctx)
                                 : engine->wall_ns;
}

uint32_t engine_find_run(const struct engine *engine, const char *id)
{
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        if (strcmp(engine->runs[ix].id, id) == 0) {
            return ix;
        }
    }
    return STORE_NONE;
}

enum outcome_lack
engine_lack(const struct engine *engine, uint32_t run, uint32_t task)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(task < engine->runs[run].task_count);
    const struct engine_past *past = runs_past(&engine->runs[run].tasks[task]);
    return carry_lack(past->carry, past->reason);
}

const char *
engine_reason(const struct engine *engine, uint32_t run, uint32_t task)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(task < engine->runs[run].task_count);
    return runs_past(&engine->runs[run].tasks[task])->reason;
}

const char *
engine_feedback(const struct engine *engine, uint32_t run, uint32_t task)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(task < engine->runs[run].task_count);
    return runs_past(&engine->runs[run].tasks[task])->feedback;
}

int64_t
engine_usd_left(const struct engine *engine, uint32_t run, uint32_t task)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(task < engine->runs[run].task_count);
    return caps_usd_left(engine, run, task);
}

uint32_t
engine_attempt_number(const struct engine *engine, uint32_t run, uint32_t task)
{
    INVARIANT(run < engine->run_count);
    INVARIANT(task < engine->runs[run].task_count);
    return engine->runs[run].tasks[task].number;
}

void engine_add_path(struct strbuf *out, const char *folder, const char *path)
{
    if (path[0] != '/') {
        strbuf_adds(out, folder);
        strbuf_adds(out, "/");
    }
    strbuf_adds(out, path);
}

void engine_add_repo(struct strbuf *out,
                     const char *folder,
                     const struct plan_repo *repo)
{
    if (repo->url != NULL) {
        strbuf_adds(out, repo->url);
    } else {
        engine_add_path(out, folder, repo->path);
    }
}
