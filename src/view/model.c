/* SPDX-License-Identifier: MIT */
#include "view/model.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "view/issues.h"
#include "view/labels.h"
#include "view/summary.h"
#include "view/usage.h"
#include "work/owner.h"

#include <stdio.h>
#include <string.h>

const enum task_state model_order[TASK_STATE_COUNT] = {
    TASK_DONE,
    TASK_RUNNING,
    TASK_STARTING,
    TASK_READY,
    TASK_WAITING,
    TASK_PARKED,
    TASK_FAILED,
    TASK_SKIPPED,
    TASK_CANCELLED,
};

/* --- runs --------------------------------------------------------------- */

static struct model_run run_of(const struct glance *glance, uint32_t ix)
{
    const struct engine *engine = glance->view.engine;
    struct engine_run_view view = engine_run(engine, ix);
    const struct sched *sched = engine_sched(engine);
    struct model_run run = {
        .id = view.id,
        .name = view.name,
        .file = view.file,
        .number = view.number,
        .task_count = view.plan->task_count,
        .cap = sched_limit_max(sched, load_limit(view.loaded, 0)),
        .cap_set = engine_limit_set(engine, ix, 0),
        .age_ns = glance->wall_ns > view.created_ns
                      ? glance->wall_ns - view.created_ns
                      : 0,
        .left_ns = snapshot_left_ns(glance->snapshot, ix, glance->wall_ns),
        .forecast = eta_find(glance->eta, view.number),
        .forecast_ns = glance->eta != NULL ? eta_wall_ns(glance->eta) : 0,
        .paused = view.sched.paused,
        .cancelled = view.sched.cancelled,
        .stopped = view.sched.stopped,
        .not_before_ns = view.not_before_ns,
        .finished = view.finished,
        .quiet = view.quiet,
    };
    struct snapshot_pending pending = snapshot_pending(glance->snapshot, ix);
    run.snoozed = pending.snoozed;
    run.early = pending.early;
    run.unapproved = pending.unapproved;
    uint32_t stopper = snapshot_stopper(glance->snapshot, ix);
    run.stopper = stopper != PLAN_NONE ? view.plan->tasks[stopper].id : NULL;
    if (view.sched.deadline_ns > 0) {
        run.deadline_ns =
            duration_sum(view.sched.deadline_ns,
                         engine_wall_ns(engine) - engine_time_ns(engine));
    }
    run.outcome = summary_outcome(glance->view.engine, ix);
    for (uint32_t state = 0; state < TASK_STATE_COUNT; state++) {
        run.counts[state] =
            snapshot_count(glance->snapshot, ix, (enum task_state)state);
    }
    for (uint32_t n = 0; n < engine_session_count(engine); n++) {
        run.sessions += engine_session(engine, n).run == ix ? 1 : 0;
    }
    return run;
}

/* Return the engine index of the run to show. */
static uint32_t choose_run(const struct engine *engine, const char *wanted)
{
    uint32_t found =
        wanted != NULL ? engine_find_run(engine, wanted) : STORE_NONE;
    for (uint32_t ix = 0; ix < engine_run_count(engine) && found == STORE_NONE;
         ix++) {
        found = engine_run(engine, ix).finished ? STORE_NONE : ix;
    }
    return found != STORE_NONE || engine_run_count(engine) == 0 ? found : 0;
}

static void fill_runs(struct model *model,
                      const struct glance *glance,
                      uint32_t shown,
                      bool only)
{
    uint32_t count = engine_run_count(glance->view.engine);
    model->runs = mem_zalloc(count, sizeof(model->runs[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        if (ix == shown) {
            model->run = model->run_count;
        }
        if (!only || ix == shown) {
            model->runs[model->run_count++] = run_of(glance, ix);
        }
    }
}

/* --- slots -------------------------------------------------------------- */

static struct sched_task
core_task(const struct glance *glance, uint32_t run, uint32_t task)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    return sched_task(engine_sched(glance->view.engine),
                      load_task(view.loaded, task));
}

static struct model_slot slot_of(const struct glance *glance,
                                 const struct engine_session_view *session)
{
    const struct plan *plan = engine_plan(glance->view.engine, session->run);
    const struct plan_task *task = &plan->tasks[session->task];
    struct model_slot slot = {
        .token = session->token,
        .task = task->id,
        .class_name = plan->classes[task->class_ix].name,
        .repo = task->repo != PLAN_NONE ? plan->repos[task->repo].name : NULL,
        .attempt = session->number,
        .more = session->task_count > 0 ? session->task_count - 1 : 0,
        .since_ns =
            session->begun_ns > 0 ? session->begun_ns : session->claimed_ns,
        .expected_ns = plan_estimate_ns(plan, task),
        .process = mark_process(&session->mark),
        .begun = session->begun_ns > 0,
        .gone = mark_is_gone(&session->mark),
        .held = core_task(glance, session->run, session->task).held,
        .queue = queue_of(glance, session),
    };
    (void)
        snprintf(slot.worker, sizeof(slot.worker), "%s", session->mark.worker);
    return slot;
}

static void
fill_slots(struct model *model, const struct glance *glance, uint32_t run)
{
    uint32_t most = engine_session_count(glance->view.engine);
    model->slots = mem_zalloc(most, sizeof(model->slots[0]));
    struct engine_session_view session = {0};
    const struct plan *plan = engine_plan(glance->view.engine, run);
    while (glance_next_session(glance, run, session.token, &session)) {
        if (labels_match(&glance->labels, &plan->tasks[session.task])) {
            model->slots[model->slot_count++] = slot_of(glance, &session);
        }
    }
}

/* --- tasks -------------------------------------------------------------- */

enum model_part
model_part_of(const struct glance *glance, uint32_t run, uint32_t task)
{
    static const enum model_part parts[TASK_STATE_COUNT] = {
        [TASK_WAITING] = MODEL_WAITING,
        [TASK_READY] = MODEL_READY,
        [TASK_STARTING] = MODEL_FLIGHT,
        [TASK_RUNNING] = MODEL_FLIGHT,
        [TASK_DONE] = MODEL_ENDED,
        [TASK_FAILED] = MODEL_ENDED,
        [TASK_PARKED] = MODEL_ENDED,
        [TASK_SKIPPED] = MODEL_ENDED,
        [TASK_CANCELLED] = MODEL_ENDED,
    };
    return snapshot_needs_person(glance->snapshot, run, task)
               ? MODEL_PEOPLE
               : parts[snapshot_state(glance->snapshot, run, task)];
}

/* Whether a task has a row: it is selected, and not in flight. */
static bool is_row(const struct glance *glance,
                   const struct plan *plan,
                   uint32_t task,
                   enum model_part part)
{
    return part != MODEL_FLIGHT &&
           labels_match(&glance->labels, &plan->tasks[task]);
}

/* Sort tasks by part, in plan order within a part. */
static void
fill_rows(struct model *model, const struct glance *glance, uint32_t run)
{
    const struct plan *plan = engine_plan(glance->view.engine, run);
    uint32_t next[MODEL_COUNT] = {0};
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        enum model_part part = model_part_of(glance, run, ix);
        if (is_row(glance, plan, ix, part)) {
            model->part_counts[part]++;
            model->row_count++;
        }
    }
    for (uint32_t part = 1; part < MODEL_COUNT; part++) {
        next[part] = next[part - 1] + model->part_counts[part - 1];
    }
    model->rows = mem_zalloc(model->row_count, sizeof(model->rows[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        enum model_part part = model_part_of(glance, run, ix);
        if (is_row(glance, plan, ix, part)) {
            model->rows[next[part]++] =
                (struct model_row){.task = ix, .part = part};
        }
    }
}

void model_bar(const struct model_run *run,
               uint32_t columns,
               uint32_t ends[MODEL_BAR_PARTS])
{
    const uint32_t *counts = run->counts;
    const uint32_t tasks[MODEL_BAR_PARTS] = {
        counts[TASK_DONE] + counts[TASK_SKIPPED],
        counts[TASK_STARTING] + counts[TASK_RUNNING],
        counts[TASK_PARKED] + counts[TASK_FAILED] + counts[TASK_CANCELLED],
    };
    uint64_t before = 0;
    for (uint32_t ix = 0; ix < MODEL_BAR_PARTS; ix++) {
        before += tasks[ix];
        ends[ix] = run->task_count == 0
                       ? 0
                       : (uint32_t)(before * columns / run->task_count);
    }
}

uint32_t model_current(const struct model *model,
                       const struct model_issue *issue)
{
    return model->stages[issue->first + issue->current];
}

static const char *task_id(const struct model *model, uint32_t task)
{
    const struct glance *glance = model->ctx;
    uint32_t run = model->shown;
    return engine_plan(glance->view.engine, run)->tasks[task].id;
}

static struct reason reason_of(const struct model *model, uint32_t task)
{
    const struct glance *glance = model->ctx;
    return snapshot_reason(glance->snapshot, model->shown, task);
}

static void describe(const struct model *model,
                     uint32_t task,
                     struct model_task *out,
                     struct strbuf *text)
{
    const struct glance *glance = model->ctx;
    const struct engine *engine = glance->view.engine;
    uint32_t run = model->shown;
    struct reason reason = snapshot_reason(glance->snapshot, run, task);
    struct sched_task now = core_task(glance, run, task);
    *out = (struct model_task){
        .id = engine_plan(engine, run)->tasks[task].id,
        .stage = engine_plan(engine, run)->tasks[task].stage,
        .state = reason.state,
        .attempt = engine_attempt_number(engine, run, task),
        .ran_ns = glance_ran_ns(glance, run, task),
        .held = now.held && !now.unapproved,
        .unapproved = now.unapproved && reason.state == TASK_READY,
        .revoked = reason.revoked,
    };
    int64_t gone_ns = model->wall_ns - glance->wall_ns;
    if (reason.left_ns != SCHED_NEVER && gone_ns > 0) {
        reason.left_ns =
            reason.left_ns > gone_ns ? reason.left_ns - gone_ns : 0;
    }
    if (reason.code == WHY_PARKED) {
        reasons_add_parked(text, &reason); /* the caller shows the state */
    } else {
        reasons_add(text, &reason);
    }
    const char *said = engine_reason(engine, run, task);
    if (snapshot_needs_person(glance->snapshot, run, task) && said != NULL) {
        strbuf_adds(text, ": ");
        plain_add(text, said);
    }
}

/* --- limits and gauges -------------------------------------------------- */

/* Fill in the limits, except budgets, which are gauges. */
static void
fill_limits(struct model *model, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    const struct sched *sched = engine_sched(glance->view.engine);
    model->limits =
        mem_zalloc(view.plan->limit_count, sizeof(model->limits[0]));
    for (uint32_t ix = 0; ix < view.plan->limit_count; ix++) {
        const struct plan_limit *limit = &view.plan->limits[ix];
        int64_t max = sched_limit_max(sched, load_limit(view.loaded, ix));
        if (plan_is_paid(limit)) {
            continue;
        }
        model->limits[model->limit_total++] = (struct model_limit){
            .name = limit->name,
            .per = limit->per,
            .used = snapshot_used(glance->snapshot, run, ix),
            .max = max,
            .set = limit->percent == 0
                       ? engine_limit_set(glance->view.engine, run, ix)
                       : max,
        };
        model->limit_count += max != LIMIT_NONE ? 1 : 0;
    }
}

/* Add a gauge for each budget: the part that is spent. */
static void
add_budgets(struct model *model, const struct glance *glance, uint32_t run)
{
    const struct engine *engine = glance->view.engine;
    const struct plan *plan = engine_plan(engine, run);
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        const struct plan_limit *limit = &plan->limits[ix];
        int64_t set = engine_limit_set(engine, run, ix);
        if (!plan_is_budget(limit) || set == LIMIT_NONE) {
            continue;
        }
        int64_t spent = engine_limit_spent(engine, run, ix);
        struct strbuf text = {0};
        usage_add_amount(&text, limit->kind, spent);
        strbuf_adds(&text, " of ");
        usage_add_amount(&text, limit->kind, set);
        struct model_gauge *gauge = &model->gauges_made[model->gauge_count++];
        *gauge = (struct model_gauge){
            .name = limit->name,
            .percent = set > 0 ? 100 * (double)spent / (double)set : 100,
            .governs = spent >= set,
        };
        (void)snprintf(gauge->text,
                       sizeof(gauge->text),
                       "%s",
                       strbuf_text(&text));
        strbuf_release(&text);
    }
}

/* Add the meters of a monitor as gauges, and its effect in words. */
static void add_monitor(struct model *model,
                        const struct glance *glance,
                        uint32_t run,
                        uint32_t ix)
{
    const struct engine *engine = glance->view.engine;
    struct engine_usage_view view = engine_usage(engine, run, ix);
    for (uint32_t n = 0; n < view.meter_count; n++) {
        struct engine_meter meter = engine_usage_meter(engine, run, ix, n);
        model->gauges_made[model->gauge_count++] = (struct model_gauge){
            .name = meter.name,
            .percent = meter.percent,
            .resets_ns = meter.resets_ns,
            .governs = n == view.governs && view.cap != LIMIT_NONE,
        };
    }
    struct model_monitor *monitor = &model->monitors[model->monitor_count++];
    *monitor = (struct model_monitor){
        .provider = view.provider,
        .error = view.error,
        .lowers = view.cap != LIMIT_NONE,
    };
    usage_add_state(&monitor->state, engine, run, ix, glance->wall_ns);
    struct strbuf *text = &model->usage_made;
    strbuf_adds(text, text->len > 0 ? "; usage" : "usage");
    if (view.provider != NULL) {
        strbuf_addf(text, " of %s", view.provider);
    }
    strbuf_addf(text, ": %s", strbuf_text(&monitor->state));
    if (view.error != NULL) {
        strbuf_adds(text, ", cannot be read: ");
        plain_add(text, view.error);
    }
}

/* Fill in the gauges: meters and budgets. */
static void
fill_gauges(struct model *model, const struct glance *glance, uint32_t run)
{
    const struct engine *engine = glance->view.engine;
    const struct plan *plan = engine_plan(engine, run);
    uint32_t most = plan->limit_count;
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        most += engine_usage(engine, run, ix).meter_count;
    }
    model->gauges_made = mem_zalloc(most, sizeof(model->gauges_made[0]));
    model->monitors = mem_zalloc(plan->usage_count, sizeof(model->monitors[0]));
    model->overridden = engine_is_overridden(engine);
    if (model->overridden) {
        strbuf_adds(&model->usage_made,
                    "usage is OVERRIDDEN: it lowers no cap");
    }
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        add_monitor(model, glance, run, ix);
    }
    add_budgets(model, glance, run);
    model->gauges = model->gauges_made;
    model->usage =
        model->usage_made.len > 0 ? strbuf_text(&model->usage_made) : NULL;
}

void model_fill(struct model *model,
                const struct glance *glance,
                const char *run,
                bool only)
{
    model_release(model);
    model->ctx = glance;
    model->wall_ns = glance->wall_ns;
    model->id = task_id;
    model->reason = reason_of;
    model->describe = describe;
    model->labels = glance->labels.count > 0 ? &glance->labels : NULL;
    model->run = MODEL_NONE;
    uint32_t shown = choose_run(glance->view.engine, run);
    model->shown = shown;
    fill_runs(model, glance, shown, only);
    if (shown != STORE_NONE) {
        fill_slots(model, glance, shown);
        fill_rows(model, glance, shown);
        issues_fill(model, glance);
        fill_limits(model, glance, shown);
        fill_gauges(model, glance, shown);
    }
}

void model_release(struct model *model)
{
    mem_free(model->runs);
    mem_free(model->slots);
    mem_free(model->rows);
    mem_free(model->issues);
    mem_free(model->stages);
    mem_free(model->limits);
    for (uint32_t ix = 0; ix < model->monitor_count; ix++) {
        strbuf_release(&model->monitors[ix].state);
    }
    mem_free(model->monitors);
    mem_free(model->gauges_made);
    strbuf_release(&model->usage_made);
    *model = (struct model){
        .store = model->store,
        .scheduler = model->scheduler,
        .well = model->well,
        .draining = model->draining,
        .trouble = model->trouble,
        .wall_ns = model->wall_ns,
        .run = MODEL_NONE,
        .events = model->events,
        .event_count = model->event_count,
    };
}

bool model_add_scheduler(struct strbuf *out,
                         const struct client_view *view,
                         bool aged)
{
    if (!view->owned) {
        strbuf_adds(
            out,
            "no scheduler: sessions keep running, 'sluice run' adopts them");
        return false;
    }
    long long pid = owner_process(&view->owner);
    strbuf_addf(out, "scheduler pid %lld", pid);
    if (view->stopped) {
        strbuf_addf(out, " is STOPPED: 'kill -CONT %lld' continues it", pid);
        return false;
    }
    if (view->silent_ns > 0) {
        strbuf_adds(out, aged ? " has been SILENT for " : " is SILENT");
        if (aged) {
            duration_add(out, view->silent_ns);
        }
        return false;
    }
    if (view->owner.trouble[0] != '\0') {
        strbuf_adds(out, " is in TROUBLE: ");
        plain_add(out, view->owner.trouble);
        return false;
    }
    strbuf_adds(out, " on ");
    plain_add(out, view->owner.host);
    strbuf_adds(out, ", alive");
    if (aged && view->owner.age_ns >= 0) {
        strbuf_adds(out, " for ");
        duration_add(out, view->owner.age_ns);
    }
    return true;
}

/* --- JSON --------------------------------------------------------------- */

static void json_scheduler(struct jsonw *json, const struct client_view *view)
{
    const struct store_owner *owner = &view->owner;
    jsonw_object(json, "scheduler");
    jsonw_text(json, "state", client_state_name(view));
    jsonw_int_if(json, "pid", view->owned, owner_process(owner));
    jsonw_text(json, "host", view->owned ? owner->host : NULL);
    bool aged = view->owned && owner->age_ns >= 0;
    jsonw_duration_if(json, "age_s", aged, owner->age_ns);
    jsonw_duration(json, "silent_s", view->silent_ns);
    jsonw_text(json,
               "trouble",
               view->owned && owner->trouble[0] != '\0' ? owner->trouble
                                                        : NULL);
    jsonw_object_end(json);
}

/* Add a moment; null if it is not known. */
static void json_moment(struct jsonw *json, const char *name, int64_t wall_ns)
{
    if (wall_ns > 0) {
        jsonw_moment(json, name, wall_ns);
    } else {
        jsonw_null(json, name);
    }
}

static void json_head(struct jsonw *json, const struct model_run *run)
{
    jsonw_text(json, "run", run->id);
    jsonw_text(json, "name", run->name);
    jsonw_text(json, "plan", run->file);
    jsonw_line(json, 3);
    jsonw_bool(json, "finished", run->finished);
    jsonw_bool(json, "paused", run->paused);
    jsonw_bool(json, "cancelled", run->cancelled);
    jsonw_text(json, "stopped", reasons_stop_name(run->stopped));
    jsonw_text(json, "stopped_by", run->stopper);
    jsonw_text(json, "outcome", run->outcome);
    json_moment(json, "deadline", run->deadline_ns);
    json_moment(json, "not_before", run->not_before_ns);
    jsonw_line(json, 3);
    jsonw_duration(json, "age_s", run->age_ns);
    bool ends = run->left_ns != SCHED_NEVER;
    jsonw_duration_if(json, "left_s", ends, run->left_ns);
    eta_add_json(json, "forecast", &run->forecast);
    jsonw_line(json, 3);
    jsonw_object(json, "states");
    for (size_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        jsonw_int(json,
                  sched_state_name(model_order[ix]),
                  run->counts[model_order[ix]]);
    }
    jsonw_object_end(json);
    jsonw_int(json, "snoozed", run->snoozed);
    jsonw_int(json, "early", run->early);
    jsonw_int(json, "unapproved", run->unapproved);
}

static void json_limits(struct jsonw *json, const struct model *model)
{
    jsonw_list(json, 3, "limits");
    for (uint32_t ix = 0; ix < model->limit_total; ix++) {
        const struct model_limit *limit = &model->limits[ix];
        jsonw_object(json, NULL);
        jsonw_text(json, "limit", limit->name);
        jsonw_int(json, "used", limit->used);
        jsonw_int_if(json, "max", limit->max != LIMIT_NONE, limit->max);
        jsonw_text(json, "per", limit->per);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

/* Bases that are not merged, although the plan asks for it. */
static void
json_bases(struct jsonw *json, const struct engine *engine, uint32_t run)
{
    struct engine_bad_base bad;
    jsonw_list(json, 3, "bases");
    for (uint32_t ix = 0; ix < engine_plan(engine, run)->repo_count; ix++) {
        if (engine_bad_base(engine, run, ix, &bad)) {
            jsonw_object(json, NULL);
            jsonw_text(json, "repo", bad.repo);
            jsonw_text(json, "base", bad.base);
            jsonw_text(json, "commit", bad.commit);
            jsonw_text(json, "reason", bad.reason);
            jsonw_object_end(json);
        }
    }
    jsonw_array_end(json);
}

static void json_sessions(struct jsonw *json, const struct model *model)
{
    jsonw_list(json, 3, "sessions");
    for (uint32_t ix = 0; ix < model->slot_count; ix++) {
        const struct model_slot *slot = &model->slots[ix];
        int64_t gone_ns = model->wall_ns - slot->since_ns;
        jsonw_item(json, 4);
        jsonw_text(json, "task", slot->task);
        jsonw_int(json, "attempt", slot->attempt);
        jsonw_int(json, "tasks", slot->more + 1);
        jsonw_int_if(json, "pid", slot->process > 0, slot->process);
        jsonw_text(json,
                   "worker",
                   slot->worker[0] != '\0' ? slot->worker : NULL);
        jsonw_bool(json, "started", slot->begun);
        jsonw_bool(json, "ended", slot->gone);
        jsonw_duration(json, "elapsed_s", gone_ns > 0 ? gone_ns : 0);
        queue_add_json(json, &slot->queue);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

/* Groups with selected tasks, parts after their parent. */
static void json_groups(struct jsonw *json,
                        const struct glance *glance,
                        const struct model *model)
{
    const struct plan *plan = engine_plan(glance->view.engine, model->shown);
    jsonw_list(json, 3, "groups");
    for (uint32_t ix = 0; ix < model->issue_count; ix++) {
        const struct model_issue *issue = &model->issues[ix];
        if (!issue->group) {
            continue;
        }
        const struct plan_group *group = &plan->groups[issue->index];
        jsonw_item(json, 4);
        jsonw_text(json, "id", group->id);
        jsonw_text(json, "title", group->title);
        labels_json_group(json, plan, group);
        jsonw_int(json, "done", issue->done);
        jsonw_int(json, "tasks", issue->total);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

/* Return the earliest start of a task, as wall clock time; 0: any time. */
static int64_t earliest_ns(const struct engine_run_view *run,
                           const struct plan_task *task)
{
    int64_t start_ns = run->not_before_ns > run->created_ns ? run->not_before_ns
                                                            : run->created_ns;
    int64_t own_ns = plan_start_ns(run->plan, task, start_ns);
    int64_t run_ns = task->last ? 0 : run->not_before_ns;
    return own_ns > run_ns ? own_ns : run_ns;
}

static void
json_tasks(struct jsonw *json, const struct glance *glance, uint32_t run)
{
    const struct engine *engine = glance->view.engine;
    struct engine_run_view view = engine_run(engine, run);
    jsonw_list(json, 3, "tasks");
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        struct reason reason = snapshot_reason(glance->snapshot, run, ix);
        const struct plan_task *task = &view.plan->tasks[ix];
        struct sched_task now = core_task(glance, run, ix);
        double usd;
        int64_t tokens;
        if (!labels_match(&glance->labels, task)) {
            continue;
        }
        engine_task_cost(engine, run, ix, &usd, &tokens);
        jsonw_item(json, 4);
        jsonw_text(json, "id", task->id);
        jsonw_text(json, "state", sched_state_name(reason.state));
        jsonw_int(json, "priority", now.priority);
        jsonw_int(json, "attempt", engine_attempt_number(engine, run, ix));
        jsonw_text(json, "reason", engine_reason(engine, run, ix));
        jsonw_number(json, "usd", 10, usd);
        jsonw_int(json, "tokens", tokens);
        jsonw_line(json, 5);
        jsonw_text(json,
                   "group",
                   task->group != PLAN_NONE ? view.plan->groups[task->group].id
                                            : NULL);
        labels_json_task(json, view.plan, task);
        json_moment(json, "not_before", earliest_ns(&view, task));
        jsonw_bool(json, "first", now.first);
        jsonw_bool(json, "finally", task->last);
        jsonw_bool(json, "unapproved", now.unapproved);
        jsonw_bool(json, "snoozed", now.snoozed);
        jsonw_line(json, 5);
        jsonw_name(json, "why");
        reasons_add_json(json->out, &reason);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void
json_run(struct jsonw *json, const struct glance *glance, uint32_t run)
{
    struct model model = {0};
    model_fill(&model, glance, engine_run(glance->view.engine, run).id, true);
    jsonw_item(json, 2);
    json_head(json, &model.runs[model.run]);
    json_limits(json, &model);
    jsonw_line(json, 3);
    jsonw_name(json, "usage");
    usage_json_monitors(json->out, glance, run);
    jsonw_line(json, 3);
    jsonw_name(json, "budgets");
    usage_json_budgets(json->out, glance, run);
    json_bases(json, glance->view.engine, run);
    json_sessions(json, &model);
    json_groups(json, glance, &model);
    json_tasks(json, glance, run);
    jsonw_object_end(json);
    model_release(&model);
}

void model_add_json(struct strbuf *out,
                    const struct glance *glance,
                    const struct glance_options *options)
{
    const struct engine *engine = glance->view.engine;
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "store", glance->place.shown);
    jsonw_line(&json, 1);
    json_scheduler(&json, &glance->view);
    jsonw_line(&json, 1);
    jsonw_bool(&json, "override", engine_is_overridden(engine));
    jsonw_list(&json, 1, "runs");
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        if (glance_is_meant(options, &view)) {
            json_run(&json, glance, ix);
        }
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
}
