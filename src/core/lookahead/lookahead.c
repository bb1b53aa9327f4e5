/* SPDX-License-Identifier: MIT */
/*
 * Thinking: when a plan is made, how much may be spent on it, which one is
 * followed. See lookahead.h.
 *
 * A plan from scratch looks at as many schedules as the run allows. One that
 * takes the place of another begins with that one's order and gets a part of
 * it. The effort of a plan is bounded in tasks placed, not only in schedules:
 * with more than PLACED tasks left fewer schedules are looked at, and what a
 * plan costs at least must first have been saved up, a part with each thing
 * that upset the last one. So thinking costs the same per session, however
 * many are to come.
 */
#include "core/lookahead/lookahead.h"

#include "base/invariant.h"
#include "core/lookahead/ctx.h"

/* Schedules are counted as if they had so many tasks at least... */
enum { PLACED = 128 };

/* ...a plan after the first gets one in so many of them... */
enum { AGAIN = 8 };

/* ...and running the scheduler ahead costs as much as placing so many. */
enum { ROLLOUT_COST = 32 };

/* Runs ahead for one plan: by rank, by the plan there was, by the new one. */
enum { ROLLOUT_RUNS = 3 };

/* One list for so many schedules is run ahead with, if that is needed. */
enum { JUDGED = 10 };

/* ---- what upsets a plan ---- */

void lookahead_upset(struct sched *sched, uint32_t run)
{
    struct lookahead_plan *plan = lookahead_plan_of(sched, run);
    if (plan == NULL || sched->lookahead->ctx == NULL) {
        return;
    }
    plan->stale = true;
    plan->wanted = true;
    plan->thinking = false;
    plan->missed++;
}

void lookahead_upset_all(struct sched *sched)
{
    const struct lookahead *look = sched->lookahead;
    for (uint32_t run = 0; look != NULL && run < look->plan_count; run++) {
        lookahead_upset(sched, run);
    }
}

/* A planned start that should have been upsets the plan. */
static void watch_overdue(struct sched *sched, uint32_t run)
{
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    uint32_t ix = plan->next;
    while (ix < plan->count && !state_is_pending(sched, plan->order[ix])) {
        ix++;
    }
    if (!plan->stale && ix < plan->count &&
        lookahead_until(sched, plan->order[ix]) < sched->now_ns) {
        lookahead_upset(sched, run);
    }
}

/* ---- one plan ---- */

/* Tasks of all runs that are not over. */
static uint32_t count_left(const struct sched *sched)
{
    uint32_t left = 0;
    for (uint32_t run = 0; run < sched->run_count; run++) {
        const struct run *r = &sched->runs[run];
        left += r->counts[TASK_WAITING] + r->counts[TASK_READY] +
                r->counts[TASK_STARTING] + r->counts[TASK_RUNNING];
    }
    return left;
}

/*
 * Schedules that the next plan may look at; 0: what it costs at least is not
 * saved up yet.
 */
static uint32_t budget_of(const struct sched *sched, uint32_t run)
{
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    uint64_t left = count_left(sched);
    uint64_t whole = (uint64_t)plan->schedules * PLACED;
    uint64_t least = left * ROLLOUT_COST * ROLLOUT_RUNS;
    uint64_t effort = whole;
    uint64_t schedules = plan->schedules;
    if (!plan->scratch) {
        effort = whole / AGAIN * plan->missed;
        schedules = schedules / AGAIN + 1;
        effort = effort > whole && whole > least ? whole : effort;
    }
    if (effort < least) {
        return 0;
    }
    uint64_t affordable = effort / (left + 1) + 1;
    return (uint32_t)(affordable < schedules ? affordable : schedules);
}

/*
 * The order there was, as a list of the model: what is new comes last. False
 * if there was none, or if it has a task before one that it needs.
 */
static bool list_plan(struct sched *sched, uint32_t run)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    const struct lookahead_model *model = &ctx->model;
    uint32_t *position = sched->tally; /* per number in the model */
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < plan->count; ix++) {
        INVARIANT(lookahead_place(sched, plan->order[ix]) == ix);
        uint32_t slot = ctx->outline.slot[plan->order[ix]];
        INVARIANT(slot == ID_NONE || slot < model->count);
        if (slot != ID_NONE) {
            position[slot] = count;
            ctx->first[count++] = slot;
        }
    }
    for (uint32_t slot = 0; slot < model->count; slot++) {
        if (lookahead_place(sched, model->task[slot]) == ID_NONE) {
            position[slot] = count;
            ctx->first[count++] = slot;
        }
    }
    INVARIANT(count == model->count);
    bool fits = plan->count > 0;
    for (uint32_t slot = 0; slot < model->count; slot++) {
        for (uint32_t edge = model->first_need[slot];
             edge < model->first_need[slot + 1];
             edge++) {
            fits = fits && position[model->needs[edge]] < position[slot];
        }
    }
    return fits;
}

/*
 * Run ahead with a list of the model, and follow it if the run ends sooner
 * than with what is followed now. Return when it ends.
 */
static int64_t propose(struct sched *sched, uint32_t run, const uint32_t *list)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    const struct lookahead_model *model = &ctx->model;
    INVARIANT(model->count <= ctx->capacity);
    for (uint32_t ix = 0; ix < model->count; ix++) {
        INVARIANT(list[ix] < model->count);
        ctx->order[ix] = model->task[list[ix]];
    }
    int64_t end_ns = lookahead_rollout_run(&ctx->rollout,
                                           sched,
                                           run,
                                           ctx->order,
                                           model->count);
    INVARIANT(end_ns >= sched->now_ns);
    if (end_ns >= plan->end_ns) {
        return end_ns;
    }
    plan->end_ns = end_ns;
    INVARIANT(plan->end_ns <= plan->rank_end_ns);
    for (uint32_t ix = 0; ix < model->count; ix++) {
        uint32_t task = ctx->order[ix];
        sched->lookahead->start_ns[task] = ctx->rollout.start_ns[task];
    }
    lookahead_follow(sched, run, ctx->order, model->count);
    return end_ns;
}

/* Whether the run could end sooner than it does now, by more than a trifle. */
static bool is_promising(const struct sched *sched, uint32_t run)
{
    enum { TRIFLE = 1000 };
    int64_t bound_ns = sched->lookahead->ctx->model.bound_ns;
    int64_t end_ns = sched->lookahead->plans[run].end_ns - sched->now_ns;
    return end_ns > bound_ns + bound_ns / TRIFLE;
}

/* Begin with rank, or with the order there was if that ends sooner. */
static void settle_first(struct sched *sched, uint32_t run, bool warm)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    plan->rank_end_ns =
        lookahead_rollout_run(&ctx->rollout, sched, run, NULL, 0);
    INVARIANT(plan->rank_end_ns >= sched->now_ns);
    plan->end_ns = plan->rank_end_ns;
    lookahead_follow(sched, run, NULL, 0);
    if (warm) {
        (void)propose(sched, run, ctx->first);
    }
}

static void spend(uint32_t *effort, uint64_t spent)
{
    *effort -= spent < *effort ? (uint32_t)spent : *effort;
}

/* Begin to think about a run; false if there is nothing to think about. */
static bool begin(struct sched *sched, uint32_t run, uint32_t *effort)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    const struct run *r = &sched->runs[run];
    if (r->counts[TASK_WAITING] + r->counts[TASK_READY] > LOOKAHEAD_TASKS_MAX ||
        sched->task_count > LOOKAHEAD_CTX_MAX) {
        if (plan->count > 0) {
            lookahead_follow(sched, run, NULL, 0);
        }
        return false; /* its time will come */
    }
    uint32_t budget = budget_of(sched, run);
    if (budget == 0) {
        return false;
    }
    plan->missed = 0;
    plan->wanted = false;
    ctx->run = ID_NONE;
    if (!lookahead_outline(&ctx->outline, &ctx->model, sched, run)) {
        lookahead_follow(sched, run, NULL, 0);
        return false;
    }
    INVARIANT(ctx->model.count <= LOOKAHEAD_TASKS_MAX);
    bool warm = list_plan(sched, run);
    settle_first(sched, run, warm);
    if (!is_promising(sched, run)) {
        return false;
    }
    lookahead_search_begin(&ctx->search,
                           &ctx->model,
                           plan->made++,
                           budget,
                           warm ? ctx->first : NULL);
    ctx->run = run;
    ctx->judge_budget = budget / JUDGED;
    plan->thinking = true;
    plan->judging = false;
    plan->scratch = false;
    spend(effort, (uint64_t)count_left(sched) * ROLLOUT_COST * ROLLOUT_RUNS);
    return true;
}

/*
 * Look for short schedules in the model, and follow the best if that is as
 * short as it says. False if there is nothing more to look for.
 */
static bool look_for(struct sched *sched, uint32_t run, uint32_t *effort)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    INVARIANT(ctx->run == run);
    bool more = true;
    while (more && *effort > 0) {
        uint32_t spent = ctx->search.spent;
        more = lookahead_search_step(&ctx->search);
        spend(effort, (uint64_t)(ctx->search.spent - spent) * ctx->model.count);
    }
    int64_t promised_ns;
    const uint32_t *best = lookahead_search_list(&ctx->search, &promised_ns);
    int64_t end_ns = propose(sched, run, best);
    ctx->exact = end_ns - sched->now_ns <= promised_ns;
    return more;
}

/* One that judges lists, for a search. */
struct judge {
    struct sched *sched;
    uint32_t run;
};

static int64_t judge_list(void *ctx, const uint32_t *list)
{
    const struct judge *judge = ctx;
    return propose(judge->sched, judge->run, list);
}

/*
 * Where the model does not tell the truth, run ahead with more of what was
 * found, and with what comes of it. False if there is nothing more to try.
 */
static bool judge(struct sched *sched, uint32_t run, uint32_t *effort)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    INVARIANT(ctx->run == run);
    struct judge by = {sched, run};
    uint64_t cost = (uint64_t)count_left(sched) * ROLLOUT_COST;
    bool more = !ctx->exact && is_promising(sched, run);
    while (more && *effort > 0) {
        more = lookahead_search_judge(&ctx->search,
                                      ctx->judge_budget,
                                      judge_list,
                                      &by) &&
               is_promising(sched, run);
        spend(effort, cost);
    }
    return more;
}

/* Think about a run until the effort is spent; true if there is more to do. */
static bool think(struct sched *sched, uint32_t run, uint32_t *effort)
{
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    watch_overdue(sched, run);
    if (!plan->thinking && (!plan->wanted || !begin(sched, run, effort))) {
        return false;
    }
    if (!plan->judging && !look_for(sched, run, effort)) {
        plan->judging = true;
    }
    plan->thinking = !plan->judging || judge(sched, run, effort);
    return plan->thinking;
}

bool sched_plan(struct sched *sched, uint32_t effort)
{
    const struct lookahead *look = sched->lookahead;
    if (look == NULL) {
        return false;
    }
    /* What was begun is finished first: one context serves all runs. */
    uint32_t begun = look->ctx->run;
    INVARIANT(begun == ID_NONE || begun < look->plan_count);
    if (begun != ID_NONE && look->plans[begun].thinking &&
        think(sched, begun, &effort)) {
        return true;
    }
    for (uint32_t run = 0; run < look->plan_count; run++) {
        if (look->plans[run].pool != ID_NONE && think(sched, run, &effort)) {
            return true;
        }
    }
    return false;
}
