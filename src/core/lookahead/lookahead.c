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
 *
 * A search that ends above the lower bound may go on when time permits
 * (sched_plan_more()), for as long as that pays. If sessions have started since
 * its model was built, it begins again from the present state.
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

/* Rollouts per search: by rank, by fifo, by the old schedule, by the new. */
enum { ROLLOUT_RUNS = 4 };

/* If needed, rollouts judge one list per this many candidates. */
enum { JUDGED = 10 };

/* With time left, a search tries this many times the candidates at most... */
enum { EXTENDED = 16 };

/* ...while it has found the best of them in the last 1/FRESH. */
enum { FRESH = 4 };

/* If estimates are bad, a schedule must gain 1/DOUBTFUL to replace rank. */
enum { DOUBTFUL = 64 };

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
    plan->spare = 0;
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

/* Return the effort of one schedule: long ones cost more per task. */
static uint64_t cost_of(uint64_t tasks)
{
    return tasks > PLACED ? tasks * tasks / PLACED : tasks;
}

/*
 * Return the number of candidates for the next search; 0: its minimum cost is
 * not saved up yet. With time left, nothing needs to be saved up.
 */
static uint32_t budget_of(const struct sched *sched, uint32_t run, bool idle)
{
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    uint64_t left = count_left(sched);
    uint64_t whole = (uint64_t)plan->schedules * PLACED;
    uint64_t least = left * ROLLOUT_COST * ROLLOUT_RUNS;
    uint64_t effort = whole;
    uint64_t schedules = plan->schedules;
    if (!plan->scratch) {
        effort = idle ? whole : whole / AGAIN * plan->missed;
        schedules = schedules / AGAIN + 1;
        effort = effort > whole && whole > least ? whole : effort;
    }
    if (effort < least) {
        return 0;
    }
    uint64_t cost = plan->scratch ? left : cost_of(left);
    uint64_t affordable = effort / (cost + 1) + 1;
    return (uint32_t)(affordable < schedules ? affordable : schedules);
}

/* Return whether each task of a list comes after its needs. */
static bool is_list(const struct lookahead_model *model,
                    const uint32_t *position)
{
    bool fits = true;
    for (uint32_t slot = 0; slot < model->count; slot++) {
        for (uint32_t edge = model->first_need[slot];
             edge < model->first_need[slot + 1];
             edge++) {
            fits = fits && position[model->needs[edge]] < position[slot];
        }
    }
    return fits;
}

/* List tasks in terms of the model, those that are not among them last. */
static void list_seed(struct sched *sched,
                      enum lookahead_seed which,
                      const uint32_t *tasks,
                      uint32_t count)
{
    const struct lookahead_ctx *ctx = sched->lookahead->ctx;
    const struct lookahead_model *model = &ctx->model;
    struct lookahead_seed_list *seed = &sched->lookahead->ctx->seeds[which];
    uint32_t *position = sched->tally; /* per task of the model */
    uint32_t listed = 0;
    for (uint32_t slot = 0; slot < model->count; slot++) {
        position[slot] = ID_NONE;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        uint32_t slot = ctx->outline.slot[tasks[ix]];
        INVARIANT(slot == ID_NONE || slot < model->count);
        if (slot != ID_NONE) {
            INVARIANT(position[slot] == ID_NONE);
            position[slot] = listed;
            seed->list[listed++] = slot;
        }
    }
    for (uint32_t slot = 0; slot < model->count; slot++) {
        if (position[slot] == ID_NONE) {
            position[slot] = listed;
            seed->list[listed++] = slot;
        }
    }
    INVARIANT(listed == model->count);
    seed->usable = count > 0 && is_list(model, position);
}

/* ---- which schedule is followed ---- */

/* Return whether a run ends within the slack of the shortest way found. */
static bool is_short(const struct sched *sched,
                     const struct lookahead_plan *plan,
                     int64_t end_ns)
{
    int64_t length_ns = plan->shortest_ns - sched->now_ns;
    return end_ns - plan->shortest_ns <= length_ns / LOOKAHEAD_SLACK;
}

/* Return whether rank decides. */
static bool is_rank(const struct lookahead_plan *plan)
{
    return plan->count == 0 && !plan->fifo;
}

/* Compare a finish of a run with the one by what is followed now. */
static bool
is_better(const struct sched *sched, uint32_t run, struct lookahead_finish new)
{
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    struct lookahead_finish old = plan->finish;
    if (sched->runs[run].goal == SCHED_FINISH_MANY &&
        is_short(sched, plan, new.end_ns) &&
        is_short(sched, plan, old.end_ns)) {
        return new.sum != old.sum ? new.sum < old.sum : new.end_ns < old.end_ns;
    }
    int64_t gain_ns = old.end_ns - new.end_ns;
    if (!plan->holds && is_rank(plan)) {
        return gain_ns > (old.end_ns - sched->now_ns) / DOUBTFUL;
    }
    return gain_ns != 0 ? gain_ns > 0 : new.sum < old.sum;
}

/*
 * Roll out an order, and follow it if the run finishes better than with the
 * current one. Return how it finishes.
 */
static struct lookahead_finish
compare(struct sched *sched, uint32_t run, struct lookahead_order order)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    struct lookahead_finish finish =
        lookahead_rollout_run(&ctx->rollout, sched, run, order);
    INVARIANT(finish.end_ns >= sched->now_ns);
    if (finish.end_ns < plan->shortest_ns) {
        plan->shortest_ns = finish.end_ns;
    }
    if (!is_better(sched, run, finish)) {
        return finish;
    }
    plan->finish = finish;
    for (uint32_t ix = 0; ix < order.count; ix++) {
        uint32_t task = order.tasks[ix];
        sched->lookahead->start_ns[task] = ctx->rollout.start_ns[task];
    }
    lookahead_follow(sched, run, order);
    ctx->judged_well = ctx->search.judged;
    return finish;
}

/* Compare a list of the model. */
static struct lookahead_finish
propose(struct sched *sched, uint32_t run, const uint32_t *list)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    const struct lookahead_model *model = &ctx->model;
    INVARIANT(model->count <= ctx->capacity);
    for (uint32_t ix = 0; ix < model->count; ix++) {
        INVARIANT(list[ix] < model->count);
        ctx->order[ix] = model->task[list[ix]];
    }
    struct lookahead_order order = {ctx->order, model->count, false};
    return compare(sched, run, order);
}

/* Return whether the run could finish noticeably better than now. */
static bool is_promising(const struct sched *sched, uint32_t run)
{
    enum { TRIFLE = 1000 };
    int64_t bound_ns = sched->lookahead->ctx->model.bound_ns;
    int64_t length_ns =
        sched->lookahead->plans[run].finish.end_ns - sched->now_ns;
    return length_ns > bound_ns + bound_ns / TRIFLE ||
           sched->runs[run].goal == SCHED_FINISH_MANY;
}

/* Start with the best of rank, fifo and the old order. */
static void settle_first(struct sched *sched, uint32_t run)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    const struct lookahead_rollout *rollout = &ctx->rollout;
    list_seed(sched, SEED_OLD, plan->order, plan->count);
    plan->finish = (struct lookahead_finish){SCHED_NEVER, INT64_MAX};
    plan->shortest_ns = SCHED_NEVER;
    lookahead_follow(sched, run, (struct lookahead_order){0});
    (void)compare(sched, run, (struct lookahead_order){0});
    list_seed(sched, SEED_RANK, rollout->sequence, rollout->sequence_count);
    (void)compare(sched, run, (struct lookahead_order){.fifo = true});
    list_seed(sched, SEED_FIFO, rollout->sequence, rollout->sequence_count);
    if (ctx->seeds[SEED_OLD].usable) {
        (void)propose(sched, run, ctx->seeds[SEED_OLD].list);
    }
}

static void spend(uint32_t *effort, uint64_t spent)
{
    *effort -= spent < *effort ? (uint32_t)spent : *effort;
}

/* ---- one search ---- */

/* Begin with the lists that are known. */
static void begin_search(struct sched *sched, uint32_t run, uint32_t budget)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    bool warm = ctx->seeds[SEED_OLD].usable;
    const struct lookahead_search_spec spec = {
        .seed = plan->made++,
        .budget = budget,
        .first = warm ? ctx->seeds[SEED_OLD].list : NULL,
        .greedy = !plan->holds,
        .many = sched->runs[run].goal == SCHED_FINISH_MANY,
    };
    lookahead_search_begin(&ctx->search, &ctx->model, &spec);
    for (uint32_t ix = SEED_RANK; ix < LOOKAHEAD_SEEDS; ix++) {
        if (ctx->seeds[ix].usable) {
            lookahead_search_offer(&ctx->search, ctx->seeds[ix].list);
        }
    }
    ctx->run = run;
    ctx->judge_budget = budget / JUDGED;
    ctx->judged_well = 0;
    plan->thinking = true;
    plan->judging = false;
    plan->scratch = false;
}

/* Build a model and begin a search in it; return false if it is useless. */
static bool
begin(struct sched *sched, uint32_t run, uint32_t budget, uint32_t *effort)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    INVARIANT(budget > 0);
    plan->missed = 0;
    plan->wanted = false;
    plan->thinking = false;
    plan->spare = 0;
    ctx->run = ID_NONE;
    ctx->token = sched->last_token;
    if (!lookahead_outline(&ctx->outline, &ctx->model, sched, run)) {
        lookahead_follow(sched, run, (struct lookahead_order){0});
        return false;
    }
    INVARIANT(ctx->model.count <= LOOKAHEAD_TASKS_MAX);
    settle_first(sched, run);
    spend(effort, (uint64_t)count_left(sched) * ROLLOUT_COST * ROLLOUT_RUNS);
    if (!is_promising(sched, run)) {
        return false;
    }
    begin_search(sched, run, budget);
    return true;
}

/* Begin a search that is due; return false if none is possible or useful. */
static bool
begin_due(struct sched *sched, uint32_t run, bool idle, uint32_t *effort)
{
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    const struct run *r = &sched->runs[run];
    if (r->counts[TASK_WAITING] + r->counts[TASK_READY] > LOOKAHEAD_TASKS_MAX ||
        sched->task_count > LOOKAHEAD_CTX_MAX) {
        if (plan->count > 0) {
            lookahead_follow(sched, run, (struct lookahead_order){0});
        }
        return false; /* it stays wanted */
    }
    if (!plan->orders) {
        plan->wanted = false;
        lookahead_follow(sched, run, (struct lookahead_order){0});
        return false;
    }
    uint32_t budget = budget_of(sched, run, idle);
    if (budget == 0 || !begin(sched, run, budget, effort)) {
        return false;
    }
    uint64_t count = sched->lookahead->ctx->model.count;
    uint64_t spare = (uint64_t)budget * (EXTENDED - 1);
    plan->extended = false;
    plan->spare = (uint32_t)(spare * count / cost_of(count));
    return true;
}

/* Go on beyond the budget; return false if that is not possible or useful. */
static bool extend(struct sched *sched, uint32_t run, uint32_t *effort)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    uint32_t spare = plan->spare;
    if (spare == 0) {
        return false;
    }
    if (ctx->run != run || ctx->token != sched->last_token) {
        if (!begin(sched, run, spare, effort)) {
            return false;
        }
    } else if (!is_promising(sched, run)) {
        plan->spare = 0;
        return false;
    } else if (ctx->exact) {
        lookahead_search_extend(&ctx->search, ctx->search.budget + spare);
        plan->judging = false;
    } else {
        ctx->judge_budget += spare / JUDGED;
    }
    plan->spare = 0;
    plan->extended = true;
    plan->thinking = true;
    return true;
}

/* Begin again what sessions have started since, with the rest of its budget. */
static bool begin_again(struct sched *sched, uint32_t run, uint32_t *effort)
{
    const struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    const struct lookahead_search *search = &ctx->search;
    uint32_t spare = plan->spare;
    uint32_t left = search->budget > search->spent
                        ? search->budget - search->spent
                        : (ctx->judge_budget - search->judged) * JUDGED;
    plan->thinking = false;
    if (left < ROLLOUT_COST * ROLLOUT_RUNS) {
        return false;
    }
    left -= ROLLOUT_COST * ROLLOUT_RUNS - 1;
    if (!begin(sched, run, left, effort)) {
        return false;
    }
    plan->spare = spare;
    return true;
}

/* Return whether a search beyond its budget has found nothing for long. */
static bool
is_idle(const struct lookahead_plan *plan, uint32_t spent, uint32_t improved)
{
    return plan->extended && spent > plan->schedules &&
           spent / FRESH > improved;
}

/*
 * Search short schedules of the model, and propose the best. Return false if
 * the search is finished.
 */
static bool look_for(struct sched *sched, uint32_t run, uint32_t *effort)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    struct lookahead_search *search = &ctx->search;
    INVARIANT(ctx->run == run);
    bool more = true;
    while (more && *effort > 0) {
        uint32_t spent = search->spent;
        more = lookahead_search_step(search) &&
               !is_idle(plan, search->spent, search->improved);
        spend(effort, (search->spent - spent) * cost_of(ctx->model.count));
    }
    int64_t promised_ns;
    const uint32_t *best = lookahead_search_list(search, &promised_ns);
    struct lookahead_finish finish = propose(sched, run, best);
    ctx->exact = finish.end_ns - sched->now_ns <= promised_ns;
    return more;
}

/* Context of judge_list(). */
struct judge {
    struct sched *sched;
    uint32_t run;
};

static struct lookahead_elite judge_list(void *ctx, const uint32_t *list)
{
    const struct judge *judge = ctx;
    struct lookahead_finish finish = propose(judge->sched, judge->run, list);
    return (struct lookahead_elite){
        .end_ns = finish.end_ns - judge->sched->now_ns,
        .sum_ns = finish.sum,
    };
}

/*
 * If the model is not exact, roll out more of the lists found, and their
 * children. Return false if nothing is left to try.
 */
static bool judge(struct sched *sched, uint32_t run, uint32_t *effort)
{
    struct lookahead_ctx *ctx = sched->lookahead->ctx;
    const struct lookahead_plan *plan = &sched->lookahead->plans[run];
    INVARIANT(ctx->run == run);
    struct judge by = {sched, run};
    uint64_t cost = (uint64_t)count_left(sched) * ROLLOUT_COST;
    bool more = !ctx->exact && is_promising(sched, run);
    while (more && *effort > 0) {
        more = lookahead_search_judge(&ctx->search,
                                      ctx->judge_budget,
                                      judge_list,
                                      &by) &&
               is_promising(sched, run) &&
               !is_idle(plan,
                        ctx->search.judged * JUDGED,
                        ctx->judged_well * JUDGED);
        spend(effort, cost);
    }
    return more;
}

/* Search for a run until the effort is spent; return true if unfinished. */
static bool
think(struct sched *sched, uint32_t run, bool idle, uint32_t *effort)
{
    const struct lookahead_ctx *ctx = sched->lookahead->ctx;
    struct lookahead_plan *plan = &sched->lookahead->plans[run];
    watch_overdue(sched, run);
    if (plan->thinking && (idle || !plan->extended)) {
        if ((ctx->run != run || ctx->token != sched->last_token) &&
            !begin_again(sched, run, effort)) {
            return false;
        }
    } else if (plan->wanted) {
        if (!begin_due(sched, run, idle, effort)) {
            return false;
        }
    } else if (!idle || !extend(sched, run, effort)) {
        return false;
    }
    if (!plan->judging && !look_for(sched, run, effort)) {
        plan->judging = true;
    }
    plan->thinking = !plan->judging || judge(sched, run, effort);
    return plan->thinking || (idle && plan->spare > 0);
}

static bool plan_all(struct sched *sched, bool idle, uint32_t *effort)
{
    const struct lookahead *look = sched->lookahead;
    if (look == NULL) {
        return false;
    }
    /* Finish the current search first: all runs share one context. */
    uint32_t begun = look->ctx->run;
    INVARIANT(begun == ID_NONE || begun < look->plan_count);
    if (begun != ID_NONE && look->plans[begun].thinking &&
        think(sched, begun, idle, effort)) {
        return true;
    }
    for (uint32_t run = 0; run < look->plan_count; run++) {
        if (look->plans[run].pool != ID_NONE &&
            think(sched, run, idle, effort)) {
            return true;
        }
    }
    return false;
}

bool sched_plan(struct sched *sched, uint32_t effort)
{
    return plan_all(sched, false, &effort);
}

bool sched_plan_more(struct sched *sched, uint32_t effort)
{
    return plan_all(sched, false, &effort) || plan_all(sched, true, &effort);
}

bool sched_can_plan_more(const struct sched *sched)
{
    const struct lookahead *look = sched->lookahead;
    bool can = false;
    for (uint32_t run = 0; look != NULL && run < look->plan_count; run++) {
        can = can || look->plans[run].thinking || look->plans[run].spare > 0;
    }
    return can;
}
