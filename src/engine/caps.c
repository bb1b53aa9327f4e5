/* SPDX-License-Identifier: MIT */
/*
 * Limits changed at run time: set by an operator, lowered by a usage monitor,
 * reduced by spending, or halved by a merge that fails in its queue.
 *
 * The effective maximum is derived from these four each time one of them
 * changes, and passed to the core. Only the operator's limits, the costs of
 * tasks and the windows of merge queues are stored.
 * Limits of the store are in ceilings.c.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Index of a limit among the operator's limits, or their count. */
static uint32_t find_limit(const struct engine_run *run, uint32_t limit)
{
    uint32_t ix = 0;
    while (ix < run->limit_count && run->limits[ix].limit != limit) {
        ix++;
    }
    return ix;
}

int64_t
caps_configured(const struct engine *engine, uint32_t run, uint32_t limit)
{
    const struct engine_run *r = &engine->runs[run];
    uint32_t ix = find_limit(r, limit);
    int64_t max = r->plan->limits[limit].max;
    if (ix < r->limit_count && r->limits[ix].percent > 0) {
        return sched_limit_max(engine->sched, load_limit(r->loaded, limit));
    }
    return ix < r->limit_count     ? r->limits[ix].max
           : max == PLAN_UNLIMITED ? LIMIT_NONE
                                   : max;
}

uint32_t caps_percent(const struct engine *engine, uint32_t run, uint32_t limit)
{
    const struct engine_run *r = &engine->runs[run];
    uint32_t ix = find_limit(r, limit);
    return ix < r->limit_count ? r->limits[ix].percent
                               : r->plan->limits[limit].percent;
}

int64_t caps_spent(const struct engine *engine, uint32_t run, uint32_t limit)
{
    const struct engine_run *r = &engine->runs[run];
    const struct plan_limit *l = &r->plan->limits[limit];
    int64_t units = 0;
    for (uint32_t ix = 0; ix < r->task_count; ix++) {
        const struct engine_past *past = runs_past(&r->tasks[ix]);
        if (past->usd == 0 && past->tokens == 0) {
            continue;
        }
        if (plan_budget_units(r->plan, l, &r->plan->tasks[ix]) > 0) {
            units += l->kind == PLAN_LIMIT_BUDGET_USD
                         ? (int64_t)(past->usd * PLAN_USD + 0.5)
                         : past->tokens;
        }
    }
    return units;
}

/* Cost of a class in this run so far. */
struct spending {
    double usd;
    int64_t tokens;
    uint64_t sessions; /* finished sessions of known cost */
};

static struct spending
spending_of(const struct engine *engine, uint32_t run, uint32_t class_ix)
{
    const struct engine_run *r = &engine->runs[run];
    struct spending sum = {0};
    for (uint32_t ix = 0; ix < r->task_count; ix++) {
        const struct plan_task *task = &r->plan->tasks[ix];
        const struct engine_past *past = runs_past(&r->tasks[ix]);
        if (task->class_ix != class_ix) {
            continue;
        }
        struct sched_task view =
            sched_task(engine->sched, engine_core_task(engine, run, ix));
        bool in_flight =
            view.state == TASK_STARTING || view.state == TASK_RUNNING;
        INVARIANT(view.attempts > 0 || !in_flight);
        uint32_t ended = view.attempts - (in_flight ? 1 : 0);
        /* An agent that was killed has not reported its cost. */
        if (task->agent == PLAN_NONE || past->usd > 0 || past->tokens > 0) {
            sum.sessions += ended;
        }
        sum.usd += past->usd;
        sum.tokens += past->tokens;
    }
    return sum;
}

static uint32_t class_of(const struct plan *plan,
                         const struct plan_limit *limit)
{
    INVARIANT(limit->where_count == 1);
    uint32_t ix = 0;
    while (ix < plan->class_count &&
           plan->classes[ix].name != limit->where[0].value) {
        ix++;
    }
    INVARIANT(ix < plan->class_count);
    return ix;
}

/* Return the rest of a budget; LIMIT_NONE: unlimited. */
static int64_t
left_of(const struct engine *engine, uint32_t run, uint32_t limit)
{
    int64_t max = caps_configured(engine, run, limit);
    if (max == LIMIT_NONE) {
        return LIMIT_NONE;
    }
    int64_t left = max - caps_spent(engine, run, limit);
    return left > 0 ? left : 0;
}

/*
 * Return how many sessions of unknown cost may run in a class: one until the
 * cost of a session is known, then as many as each budget can pay for.
 */
static int64_t
affordable(const struct engine *engine, uint32_t run, uint32_t limit)
{
    const struct plan *plan = engine->runs[run].plan;
    uint32_t class_ix = class_of(plan, &plan->limits[limit]);
    struct spending sum = spending_of(engine, run, class_ix);
    int64_t max = sum.sessions > 0 ? LIMIT_NONE : 1;
    for (uint32_t ix = 0; ix < plan->limit_count && sum.sessions > 0; ix++) {
        const struct plan_limit *budget = &plan->limits[ix];
        bool covers = budget->where_count == 0 ||
                      budget->where[0].value == plan->classes[class_ix].name;
        double spent = budget->kind == PLAN_LIMIT_BUDGET_USD
                           ? sum.usd * PLAN_USD
                           : (double)sum.tokens;
        int64_t left = plan_is_budget(budget) && covers
                           ? left_of(engine, run, ix)
                           : LIMIT_NONE;
        if (left != LIMIT_NONE && spent > 0) {
            double count = (double)left / (spent / (double)sum.sessions);
            max = count < (double)INT32_MAX ? min(max, (int64_t)count) : max;
        }
    }
    return max;
}

/* Return the effective maximum of a limit. */
static int64_t
present_max(const struct engine *engine, uint32_t run, uint32_t limit)
{
    const struct engine_run *r = &engine->runs[run];
    if (r->plan->limits[limit].kind == PLAN_LIMIT_COST) {
        return affordable(engine, run, limit);
    }
    if (plan_is_budget(&r->plan->limits[limit])) {
        return left_of(engine, run, limit);
    }
    int64_t max = caps_configured(engine, run, limit);
    for (uint32_t ix = 0; ix < r->window_count; ix++) {
        if (r->windows[ix].limit == limit) {
            max = min(max, r->windows[ix].max);
        }
    }
    for (uint32_t ix = 0; !engine->override && ix < r->plan->usage_count;
         ix++) {
        if (r->plan->usages[ix].limit == limit) {
            max = min(max, usage_cap(&r->usages[ix]));
        }
    }
    return max;
}

/* Pass a maximum to the core. */
static void apply_max(struct engine *engine, struct limit_id limit, int64_t max)
{
    INVARIANT(max >= 0);
    if (sched_limit_max(engine->sched, limit) == max) {
        return;
    }
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = engine->now_ns,
        .limit = limit,
        .max = max,
    };
    enum err err = sched_apply(engine->sched, &event);
    INVARIANT(err == ERR_OK);
    INVARIANT(sched_limit_max(engine->sched, limit) == max);
    ahead_over(engine);
    engine->changed = true;
}

/* Whether the core keeps the maximum: the plan gives it, or an operator as a
 * percentage. */
static bool is_kept(const struct engine_run *run, uint32_t limit)
{
    const struct plan_limit *l = &run->plan->limits[limit];
    uint32_t ix = find_limit(run, limit);
    bool set = ix < run->limit_count && run->limits[ix].percent == 0;
    return limit > 0 && !set && l->kind != PLAN_LIMIT_USAGE &&
           l->kind != PLAN_LIMIT_WINDOW && !plan_is_paid(l);
}

void caps_apply(struct engine *engine, uint32_t run)
{
    const struct engine_run *r = &engine->runs[run];
    for (uint32_t ix = 0; ix < r->plan->limit_count; ix++) {
        if (!is_kept(r, ix)) {
            apply_max(engine,
                      load_limit(r->loaded, ix),
                      present_max(engine, run, ix));
        }
    }
    ceilings_apply(engine, run);
}

/* Store an operator's limit. */
static void keep_limit(struct engine *engine,
                       uint32_t run,
                       const struct engine_limit *limit)
{
    struct engine_run *r = &engine->runs[run];
    INVARIANT(limit->limit < r->plan->limit_count && limit->max >= 0);
    uint32_t ix = find_limit(r, limit->limit);
    if (ix == r->limit_count) {
        MEM_EXTEND(r->limits, r->limit_count);
        r->limit_count++;
    }
    r->limits[ix] = *limit;
    struct store_change change = {
        .type = STORE_LIMIT_SET,
        .as.limit.run = r->number,
        .as.limit.name = r->plan->limits[limit->limit].name,
        .as.limit.max = limit->max,
        .as.limit.percent = limit->percent,
    };
    store_batch_add(&engine->batch, &change);
}

void caps_set(struct engine *engine,
              uint32_t run,
              uint32_t limit,
              struct caps_max max)
{
    INVARIANT(max.percent <= 100 && (limit > 0 || max.percent == 0));
    struct engine_limit set = {
        .limit = limit,
        .max = max.max,
        .percent = max.percent,
    };
    keep_limit(engine, run, &set);
    (void)engine_now(engine);
    if (max.percent == 0) {
        caps_apply(engine, run);
        INVARIANT(caps_configured(engine, run, limit) == max.max);
        return;
    }
    INVARIANT(is_kept(&engine->runs[run], limit));
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .limit = load_limit(engine->runs[run].loaded, limit),
        .percent = max.percent,
    };
    enum err err = engine_apply(engine, event);
    INVARIANT(err == ERR_OK);
}

/* Whether other sessions wait for the cost of this task's session. */
static bool
is_waited_for(const struct engine *engine, uint32_t run, uint32_t task)
{
    const struct engine_run *r = &engine->runs[run];
    for (uint32_t ix = 0; ix < r->plan->limit_count; ix++) {
        const struct plan_limit *limit = &r->plan->limits[ix];
        if (limit->kind == PLAN_LIMIT_COST &&
            plan_budget_units(r->plan, limit, &r->plan->tasks[task]) > 0) {
            return sched_limit_max(engine->sched, load_limit(r->loaded, ix)) !=
                   LIMIT_NONE;
        }
    }
    return false;
}

void caps_spend(struct engine *engine,
                uint32_t run,
                uint32_t task,
                double usd,
                int64_t tokens)
{
    if (usd == 0 && tokens == 0 && !is_waited_for(engine, run, task)) {
        return;
    }
    INVARIANT(usd >= 0 && tokens >= 0);
    struct engine_past *past = runs_own_past(&engine->runs[run].tasks[task]);
    past->usd += usd;
    past->tokens += tokens;
    engine->runs[run].spent = true;
}

/* --- the budget of one task --------------------------------------------- */

struct plan_cost
caps_task_budget(const struct engine *engine, uint32_t run, uint32_t task)
{
    const struct engine_run *r = &engine->runs[run];
    for (uint32_t ix = 0; ix < r->raise_count; ix++) {
        if (r->raises[ix].task == task) {
            return r->raises[ix].budget;
        }
    }
    return r->plan->tasks[task].settings->budget;
}

bool caps_is_broke(const struct engine *engine,
                   uint32_t run,
                   uint32_t task,
                   struct strbuf *reason)
{
    const struct engine_run *r = &engine->runs[run];
    const struct engine_past *past = runs_past(&r->tasks[task]);
    struct plan_cost budget = caps_task_budget(engine, run, task);
    struct plan_cost next = plan_expected_cost(r->plan, &r->plan->tasks[task]);
    int64_t usd = (int64_t)(past->usd * PLAN_USD + 0.5);
    if (budget.usd != PLAN_UNSET &&
        (usd >= budget.usd || usd + next.usd > budget.usd)) {
        strbuf_addf(reason,
                    "budget: %.2f of %.2f USD spent, another session is "
                    "expected to cost %.2f",
                    past->usd,
                    (double)budget.usd / PLAN_USD,
                    (double)next.usd / PLAN_USD);
        return true;
    }
    if (budget.tokens != PLAN_UNSET &&
        (past->tokens >= budget.tokens ||
         past->tokens + next.tokens > budget.tokens)) {
        strbuf_addf(reason,
                    "budget: %lld of %lld tokens spent, another session is "
                    "expected to cost %lld",
                    (long long)past->tokens,
                    (long long)budget.tokens,
                    (long long)next.tokens);
        return true;
    }
    return false;
}

int64_t caps_usd_left(const struct engine *engine, uint32_t run, uint32_t task)
{
    const struct engine_run *r = &engine->runs[run];
    const struct plan_task *t = &r->plan->tasks[task];
    struct plan_cost budget = caps_task_budget(engine, run, task);
    int64_t left = PLAN_UNSET;
    if (budget.usd != PLAN_UNSET) {
        left = budget.usd -
               (int64_t)(runs_past(&r->tasks[task])->usd * PLAN_USD + 0.5);
    }
    for (uint32_t ix = 0; ix < r->plan->limit_count; ix++) {
        const struct plan_limit *limit = &r->plan->limits[ix];
        if (limit->kind == PLAN_LIMIT_BUDGET_USD &&
            plan_budget_units(r->plan, limit, t) > 0) {
            int64_t rest = left_of(engine, run, ix);
            left = rest != LIMIT_NONE && (left == PLAN_UNSET || rest < left)
                       ? rest
                       : left;
        }
    }
    return left == PLAN_UNSET || left > 0 ? left : 0;
}

static void keep_raise(struct engine_run *run,
                       uint32_t task,
                       const struct plan_cost *budget)
{
    INVARIANT(task < run->plan->task_count);
    uint32_t ix = 0;
    while (ix < run->raise_count && run->raises[ix].task != task) {
        ix++;
    }
    if (ix == run->raise_count) {
        run->raises =
            mem_resize(run->raises, ++run->raise_count, sizeof(run->raises[0]));
    }
    run->raises[ix] = (struct engine_raise){.task = task, .budget = *budget};
}

void caps_raise(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const struct plan_cost *budget)
{
    struct engine_run *r = &engine->runs[run];
    struct strbuf value = {0};
    keep_raise(r, task, budget);
    struct jsonw json = {.out = &value};
    jsonw_object(&json, NULL);
    jsonw_int(&json, "usd", budget->usd);
    jsonw_int(&json, "tokens", budget->tokens);
    jsonw_object_end(&json);
    rows_numbered(engine, "budget", r->number, task, strbuf_text(&value));
    strbuf_release(&value);
}

void caps_restore_raise(struct engine_run *run,
                        uint32_t task,
                        const char *value)
{
    json_t *json = json_loads(value, 0, NULL);
    struct plan_cost budget = {
        .usd = json_integer_value(json_object_get(json, "usd")),
        .tokens = json_integer_value(json_object_get(json, "tokens")),
    };
    json_decref(json);
    keep_raise(run, task, &budget);
}

/* --- the windows of merge queues ---------------------------------------- */

/* Set the window; it is kept only while it is smaller than the limit. */
static void keep_window(struct engine_run *run, uint32_t limit, int64_t max)
{
    uint32_t ix = 0;
    while (ix < run->window_count && run->windows[ix].limit != limit) {
        ix++;
    }
    if (ix == run->window_count) {
        MEM_EXTEND(run->windows, run->window_count);
        run->window_count++;
    }
    run->windows[ix] = (struct engine_limit){.limit = limit, .max = max};
}

void caps_merged(struct engine *engine,
                 const struct session *session,
                 enum sched_outcome outcome)
{
    struct engine_run *r = &engine->runs[session->run];
    uint32_t limit = plan_window_of(r->plan, &r->plan->tasks[session->task]);
    if (limit == PLAN_NONE) {
        return;
    }
    int64_t whole = caps_configured(engine, session->run, limit);
    int64_t now = present_max(engine, session->run, limit);
    int64_t next = load_next_window(now, whole, outcome);
    if (next == now) {
        return;
    }
    char value[32];
    (void)snprintf(value, sizeof(value), "%lld", (long long)next);
    keep_window(r, limit, next);
    rows_numbered(engine,
                  "window",
                  r->number,
                  limit,
                  next < whole ? value : NULL);
    r->spent = true;
}

void caps_restore_window(struct engine_run *run,
                         uint32_t limit,
                         const char *value)
{
    int64_t max = strtoll(value, NULL, 10);
    if (max > 0 && run->plan->limits[limit].kind == PLAN_LIMIT_WINDOW) {
        keep_window(run, limit, max);
    }
}

/* --- runs that only wait for money -------------------------------------- */

static bool has_budget(const struct plan *plan)
{
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        if (plan_is_budget(&plan->limits[ix])) {
            return true;
        }
    }
    return false;
}

/*
 * Whether only a budget keeps the run from starting tasks: every ready task
 * waits for one, and no other event is due. *limit_out is the budget.
 */
static bool
waits_for_money(struct engine *engine, uint32_t run, uint32_t *limit_out)
{
    const struct engine_run *r = &engine->runs[run];
    *limit_out = PLAN_NONE;
    for (uint32_t ix = 0; ix < r->task_count; ix++) {
        struct task_id id = engine_core_task(engine, run, ix);
        struct sched_task task = sched_task(engine->sched, id);
        if (task.backing_off) {
            return false;
        }
        if (task.state != TASK_READY) {
            continue;
        }
        struct why why = why_task(engine->sched, id);
        if (why.code == WHY_BUDGET) {
            *limit_out = load_plan_limit(r->loaded, why.limit);
        } else if (why.code != WHY_HELD && why.code != WHY_APPROVAL) {
            return false;
        }
    }
    return *limit_out != PLAN_NONE;
}

static void tell_budget(struct engine *engine, uint32_t run, uint32_t limit)
{
    const struct engine_run *r = &engine->runs[run];
    struct event event = {
        .kind = EVENT_KIND_BUDGET,
        .as.budget.to = EVENT_WORD_REACHED,
        .as.budget.budget = r->plan->limits[limit].name,
    };
    rows_event(engine, run, STORE_NONE, &event);
}

void caps_pass(struct engine *engine)
{
    for (uint32_t run = 0; run < engine->run_count; run++) {
        struct engine_run *r = &engine->runs[run];
        if (r->spent) {
            r->spent = false;
            caps_apply(engine, run);
        }
    }
}

void caps_check_money(struct engine *engine)
{
    for (uint32_t run = 0; run < engine->run_count; run++) {
        struct engine_run *r = &engine->runs[run];
        struct sched_run view = sched_run(engine->sched, (struct run_id){run});
        uint32_t limit;
        if (view.in_flight > 0) {
            r->broke = false;
        }
        if (r->finished || r->broke || view.in_flight > 0 || view.barrier ||
            view.counts[TASK_READY] == 0 || engine->draining ||
            !has_budget(r->plan) || !waits_for_money(engine, run, &limit)) {
            continue;
        }
        INVARIANT(plan_is_paid(&r->plan->limits[limit]));
        r->broke = true;
        tell_budget(engine, run, limit);
        runs_tell(engine, run, EVENT_WORD_WAITING);
    }
}
