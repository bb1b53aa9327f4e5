/* SPDX-License-Identifier: MIT */
/*
 * A copy of a state is made of the records of the engine's scheduler. A
 * reader's engine has taken the pass that the scheduler would take now, so
 * tasks that would start at once are in flight in the copies.
 *
 * Limits of the copies get the maxima of the engine. A limit that a usage
 * monitor lowers until a known time is raised again at that time.
 */
#include "view/eta.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/plain.h"
#include "sim/ahead.h"

#include <stdlib.h>

/* Below this share of simulations that park a task the text is silent. */
static const double parks_min = 0.05;

/* The forecast for a run of the store. */
struct eta_run {
    uint32_t number;
    struct eta_end end;
};

struct eta {
    int64_t wall_ns;
    struct eta_run *runs;
    uint32_t run_count;
};

/* ---- drawing ---- */

static int compare_times(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;
    return (*a > *b) - (*a < *b);
}

/* Return the time by which `percent` of the sorted times are over. */
static int64_t quantile(const int64_t *times, uint32_t count, uint32_t percent)
{
    INVARIANT(count > 0 && percent <= 100);
    uint32_t rank = (count * percent + 99) / 100;
    return times[rank > 0 ? rank - 1 : 0];
}

/* Sum up the draws of a run, which are `stride` entries apart. */
static struct eta_end
sum_up(const struct ahead_end *ends, uint32_t draws, uint32_t stride)
{
    struct eta_end sum = {.runs = draws, .left = UINT32_MAX};
    int64_t *times_ns = mem_zalloc(draws, sizeof(times_ns[0]));
    uint32_t whole = 0;
    for (uint32_t ix = 0; ix < draws; ix++) {
        const struct ahead_end *end = &ends[(size_t)ix * stride];
        times_ns[ix] = end->end_ns;
        sum.sessions += (double)end->sessions / draws;
        sum.left = end->left < sum.left ? end->left : sum.left;
        whole += end->parked == 0 ? 1 : 0;
    }
    qsort(times_ns, draws, sizeof(times_ns[0]), compare_times);
    sum.p50_ns = quantile(times_ns, draws, 50);
    sum.p90_ns = quantile(times_ns, draws, 90);
    sum.finishes = (double)whole / draws;
    mem_free(times_ns);
    return sum;
}

/* Forecast all runs of a state. */
static void forecast(struct eta_end *out, const struct ahead_state *state)
{
    uint32_t count = state->run_count;
    uint64_t tasks = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        out[ix] = (struct eta_end){0};
        tasks += state->runs[ix].plan->task_count;
    }
    if (tasks == 0 || tasks > ETA_TASKS_MAX) {
        return;
    }
    struct ahead *ahead = ahead_new(state);
    struct ahead_end *ends =
        mem_zalloc((size_t)ETA_RUNS * count, sizeof(ends[0]));
    struct diag ignored = {0};
    uint64_t work = 0;
    uint32_t draws = 0;
    while (draws < ETA_RUNS && (draws < ETA_RUNS_MIN || work < ETA_WORK) &&
           ahead_draw(ahead,
                      draws + 1,
                      &ends[(size_t)draws * count],
                      &work,
                      &ignored) == ERR_OK) {
        draws++;
    }
    for (uint32_t ix = 0; ix < count && draws > 0; ix++) {
        out[ix] = sum_up(&ends[ix], draws, count);
    }
    mem_free(ends);
    ahead_free(ahead);
}

struct eta_end eta_of_plan(const struct plan *plan, int64_t start_ns)
{
    struct ahead_run run = {
        .plan = plan,
        .start_ns = start_ns,
        .clock_offset_ns = start_ns,
        .not_before_ns = INT64_MIN,
    };
    struct ahead_state state = {.runs = &run, .run_count = 1};
    struct eta_end end;
    forecast(&end, &state);
    return end;
}

/* ---- the state of an engine ---- */

/* A run and what ahead borrows. */
struct copied {
    struct sched_record *records;
    struct sched_run_record record;
    int64_t *elapsed_ns;
    struct ahead_limit *limits;
    uint32_t limit_count;
};

static uint32_t plan_index(const struct load_run *run, uint32_t task)
{
    return task == ID_NONE ? ID_NONE
                           : load_plan_task(run, (struct task_id){task});
}

static void copy_tasks(struct copied *copied,
                       const struct engine *engine,
                       uint32_t run,
                       int64_t wall_ns)
{
    struct engine_run_view view = engine_run(engine, run);
    const struct sched *sched = engine_sched(engine);
    uint32_t count = view.plan->task_count;
    copied->records = mem_zalloc(count, sizeof(copied->records[0]));
    copied->elapsed_ns = mem_zalloc(count, sizeof(copied->elapsed_ns[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        struct sched_record record =
            sched_record(sched, load_task(view.loaded, ix));
        record.leader = plan_index(view.loaded, record.leader);
        record.cause = plan_index(view.loaded, record.cause);
        copied->records[ix] = record;
    }
    for (uint32_t ix = 0; ix < engine_session_count(engine); ix++) {
        struct engine_session_view session = engine_session(engine, ix);
        if (session.run == run && session.begun_ns > 0 &&
            session.begun_ns < wall_ns) {
            copied->elapsed_ns[session.task] = wall_ns - session.begun_ns;
        }
    }
    copied->record = sched_run_record(sched, load_run_id(view.loaded));
}

static void copy_limits(struct copied *copied,
                        const struct engine *engine,
                        uint32_t run,
                        int64_t wall_ns)
{
    struct engine_run_view view = engine_run(engine, run);
    const struct plan *plan = view.plan;
    copied->limits = mem_zalloc((size_t)plan->limit_count + plan->usage_count,
                                sizeof(copied->limits[0]));
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        if (!plan_is_paid(&plan->limits[ix])) {
            copied->limits[copied->limit_count++] = (struct ahead_limit){
                .limit = ix,
                .max = sched_limit_max(engine_sched(engine),
                                       load_limit(view.loaded, ix)),
            };
        }
    }
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        struct engine_usage_view usage = engine_usage(engine, run, ix);
        if (usage.cap != LIMIT_NONE && usage.until_ns > 0 &&
            !engine_is_overridden(engine)) {
            int64_t wait_ns = usage.next_ns - wall_ns;
            copied->limits[copied->limit_count++] = (struct ahead_limit){
                .limit = usage.limit,
                .at_ns = engine_time_ns(engine) + (wait_ns > 0 ? wait_ns : 0),
                .max = engine_limit_set(engine, run, usage.limit),
            };
        }
    }
}

static struct ahead_provider *copy_providers(const struct engine *engine,
                                             uint32_t *count_out)
{
    const struct load *load = engine_loader(engine);
    uint32_t count = load_provider_count(load);
    struct ahead_provider *providers = mem_zalloc(count, sizeof(providers[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        struct provider_id id = {ix};
        providers[ix] = (struct ahead_provider){
            .name = load_provider_name(load, id),
            .record = sched_provider_record(engine_sched(engine), id),
        };
    }
    *count_out = count;
    return providers;
}

/* Forecast the runs with these indices in the engine. */
static void forecast_engine(struct eta_end *out,
                            const struct engine *engine,
                            int64_t wall_ns,
                            const uint32_t *indices,
                            uint32_t count)
{
    struct copied *copies = mem_zalloc(count, sizeof(copies[0]));
    struct ahead_run *runs = mem_zalloc(count, sizeof(runs[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        struct engine_run_view view = engine_run(engine, indices[ix]);
        copy_tasks(&copies[ix], engine, indices[ix], wall_ns);
        copy_limits(&copies[ix], engine, indices[ix], wall_ns);
        runs[ix] = (struct ahead_run){
            .plan = view.plan,
            .folder = view.folder,
            .start_ns = view.not_before_ns > view.created_ns
                            ? view.not_before_ns
                            : view.created_ns,
            .clock_offset_ns = wall_ns - engine_time_ns(engine),
            .not_before_ns =
                view.not_before_ns > 0 ? view.not_before_ns : INT64_MIN,
            .records = copies[ix].records,
            .record = &copies[ix].record,
            .elapsed_ns = copies[ix].elapsed_ns,
            .limits = copies[ix].limits,
            .limit_count = copies[ix].limit_count,
        };
    }
    struct ahead_state state = {
        .now_ns = engine_time_ns(engine),
        .runs = runs,
        .run_count = count,
    };
    struct ahead_provider *providers =
        copy_providers(engine, &state.provider_count);
    state.providers = providers;
    forecast(out, &state);
    for (uint32_t ix = 0; ix < count; ix++) {
        mem_free(copies[ix].records);
        mem_free(copies[ix].elapsed_ns);
        mem_free(copies[ix].limits);
    }
    mem_free(providers);
    mem_free(copies);
    mem_free(runs);
}

struct eta *eta_new(const struct engine *engine, int64_t wall_ns)
{
    struct eta *eta = mem_zalloc(1, sizeof(*eta));
    uint32_t most = engine_run_count(engine);
    uint32_t *indices = mem_zalloc(most, sizeof(indices[0]));
    struct eta_end *ends = mem_zalloc(most, sizeof(ends[0]));
    eta->wall_ns = wall_ns;
    eta->runs = mem_zalloc(most, sizeof(eta->runs[0]));
    for (uint32_t ix = 0; ix < most; ix++) {
        if (!engine_run(engine, ix).finished) {
            indices[eta->run_count++] = ix;
        }
    }
    forecast_engine(ends, engine, wall_ns, indices, eta->run_count);
    for (uint32_t ix = 0; ix < eta->run_count; ix++) {
        struct engine_run_view view = engine_run(engine, indices[ix]);
        eta->runs[ix].number = view.number;
        if (!view.sched.paused && view.sched.stopped == SCHED_NOT_STOPPED) {
            eta->runs[ix].end = ends[ix];
        }
    }
    mem_free(ends);
    mem_free(indices);
    return eta;
}

void eta_free(struct eta *eta)
{
    if (eta != NULL) {
        mem_free(eta->runs);
        mem_free(eta);
    }
}

struct eta *eta_copy(const struct eta *eta)
{
    if (eta == NULL) {
        return NULL;
    }
    struct eta *copy = mem_zalloc(1, sizeof(*copy));
    *copy = *eta;
    copy->runs = mem_zalloc(eta->run_count, sizeof(copy->runs[0]));
    for (uint32_t ix = 0; ix < eta->run_count; ix++) {
        copy->runs[ix] = eta->runs[ix];
    }
    return copy;
}

struct eta_end eta_find(const struct eta *eta, uint32_t number)
{
    for (uint32_t ix = 0; eta != NULL && ix < eta->run_count; ix++) {
        if (eta->runs[ix].number == number) {
            return eta->runs[ix].end;
        }
    }
    return (struct eta_end){0};
}

int64_t eta_wall_ns(const struct eta *eta)
{
    return eta->wall_ns;
}

/* ---- showing ---- */

static void add_clock(struct strbuf *out, int64_t from_ns, int64_t at_ns)
{
    bool soon = at_ns - from_ns < 24 * HOUR_NS;
    plain_add_clock(out, at_ns, soon ? PLAIN_MINUTES : PLAIN_DATE);
}

void eta_add_text(struct strbuf *out,
                  const struct eta_end *end,
                  int64_t wall_ns)
{
    INVARIANT(end->runs > 0);
    strbuf_adds(out, "about ");
    add_clock(out, wall_ns, duration_sum(wall_ns, end->p50_ns));
    strbuf_adds(out, " (in ");
    duration_add(out, end->p50_ns);
    strbuf_adds(out, "), 90 % by ");
    add_clock(out, wall_ns, duration_sum(wall_ns, end->p90_ns));
    eta_add_left(out, end);
}

void eta_add_range(struct strbuf *out, const struct eta_end *end)
{
    INVARIANT(end->runs > 0);
    strbuf_adds(out, "about ");
    duration_add(out, end->p50_ns);
    strbuf_adds(out, ", 90 % within ");
    duration_add(out, end->p90_ns);
    eta_add_left(out, end);
}

void eta_add_left(struct strbuf *out, const struct eta_end *end)
{
    if (end->left > 0) {
        strbuf_addf(out,
                    "; without %u task%s parked, held or blocked",
                    end->left,
                    end->left == 1 ? "" : "s");
    }
    if (end->finishes <= 1 - parks_min) {
        strbuf_addf(out, "; %.0f %% park a task", 100 * (1 - end->finishes));
    }
    if (end->runs < ETA_RUNS) {
        strbuf_addf(out, " (%u simulations)", end->runs);
    }
}

void eta_add_json(struct jsonw *json,
                  const char *name,
                  const struct eta_end *end)
{
    if (end->runs == 0) {
        jsonw_null(json, name);
        return;
    }
    jsonw_object(json, name);
    jsonw_duration(json, "p50_s", end->p50_ns);
    jsonw_duration(json, "p90_s", end->p90_ns);
    jsonw_number(json, "sessions", 6, end->sessions);
    jsonw_int(json, "left", end->left);
    jsonw_number(json, "finishes", 6, end->finishes);
    jsonw_int(json, "runs", end->runs);
    jsonw_object_end(json);
}
