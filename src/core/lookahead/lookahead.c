/* SPDX-License-Identifier: MIT */
/*
 * Search control: when to search a schedule, at which cost, and which schedule
 * to follow. See lookahead.h.
 *
 * A search from scratch tries as many candidate schedules as the run allows. A
 * search that replaces a schedule begins with its order and tries a fraction of
 * that. The effort is bounded in tasks placed, not only in candidates: with
 * more than PLACED tasks left it tries fewer candidates, and the minimum cost
 * of a search must first be saved up, a part with each event that upset the
 * last schedule. So the cost per session does not depend on the number of tasks
 * left.
 */
#include "core/lookahead/lookahead.h"

#include "base/invariant.h"
#include "core/lookahead/ctx.h"

/* The budget counts each candidate as at least this many tasks... */
enum { PLACED = 128 };

/* ...a search after the first gets one in this many of them... */
enum { AGAIN = 8 };

/* ...and a rollout of a task costs as much as placing this many. */
enum { ROLLOUT_COST = 32 };

/* Rollouts per search: by rank, by the old schedule, by the new one. */
enum { ROLLOUT_RUNS = 3 };

/* If needed, rollouts judge one list per this many candidates. */
enum { JUDGED = 10 };

/* ---- invalidation ---- */

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

/* An overdue start upsets the schedule. */
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

/* ---- one search ---- */

/* Return the unfinished tasks of all runs. */
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
 * Return the number of candidates for the next search; 0: its minimum cost is
 * not saved up yet.
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
 * List the old order in terms of the model, new tasks last. Return false if
 * none existed, or if a task precedes one of its needs.
 */
static bool list_plan(struct sched *sched, uint32_t run)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    const struct lookahead_model *model = &ctx->model;
    uint32_t *position = sched->tally; /* per task of the model */
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
 * Roll out a list of the model, and follow it if the run finishes sooner than
 * with the current schedule. Return when it finishes.
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

/* Return whether the run could finish noticeably sooner than now. */
static bool is_promising(const struct sched *sched, uint32_t run)
{
    enum { TRIFLE = 1000 };
    int64_t bound_ns = sched->lookahead->ctx->model.bound_ns;
    int64_t end_ns = sched->lookahead->plans[run].end_ns - sched->now_ns;
    return end_ns > bound_ns + bound_ns / TRIFLE;
}

/* Start with rank, or with the old order if it finishes sooner. */
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

/* Begin a search for a run; return false if none is possible or useful. */
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
        return false; /* it stays wanted */
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
 * Search short schedules of the model, and propose the best. Return false if
 * the search is finished.
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

/* Context of judge_list(). */
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
 * If the model is not exact, roll out more of the lists found, and their
 * children. Return false if nothing is left to try.
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

/* Search for a run until the effort is spent; return true if unfinished. */
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
    /* Finish the current search first: all runs share one context. */
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
