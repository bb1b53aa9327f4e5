/* SPDX-License-Identifier: MIT */
/*
 * Following a schedule: see lookahead.h.
 *
 * Tasks are examined best first. As soon as a task that could start is held
 * back, so are all later tasks: otherwise a worse task would start first. Their
 * queues wait at the schedule's pool. It is closed then, and opens before the
 * next start is decided, so that the best of them is examined: one per start,
 * however many are held back.
 */
#include "base/duration.h"
#include "base/invariant.h"
#include "core/lookahead/lookahead.h"

/* A start may be late by 1/MARGIN of the task's estimate. */
enum { MARGIN = 32 };

/*
 * Mean errors of the estimates, in 1/256 of a binary logarithm, up to which
 * tasks are held back (a factor of 1.8, ln 0.6), and up to which a schedule is
 * followed at all (2.1, ln 0.75); measured, see docs/lookahead.md. Fewer
 * sessions than ERRORS_MIN count as if the others had been exact.
 */
enum { HOLD_MAX = 222, ORDER_MAX = 277, ERRORS_MIN = 4 };

/* Number of scheduled tasks to search for one to wait for. */
enum { LOOK = 64 };

struct lookahead_plan *lookahead_plan_of(const struct sched *sched,
                                         uint32_t run)
{
    const struct lookahead *lookahead = sched->lookahead;
    if (lookahead == NULL || run >= lookahead->plan_count ||
        lookahead->plans[run].pool == ID_NONE) {
        return NULL;
    }
    return &lookahead->plans[run];
}

uint32_t lookahead_place(const struct sched *sched, uint32_t task)
{
    const struct lookahead_plan *plan =
        lookahead_plan_of(sched, sched_run_ix(sched, task));
    if (plan == NULL) {
        return ID_NONE;
    }
    return plan->fifo ? 0 : sched->lookahead->place[task];
}

static int64_t margin_ns(const struct sched *sched, uint32_t task)
{
    return sched->tasks[task].estimate_ns / MARGIN + 1;
}

int64_t lookahead_until(const struct sched *sched, uint32_t first)
{
    return duration_sum(sched->lookahead->start_ns[first],
                        margin_ns(sched, first));
}

/* Return whether a scheduled task is worth waiting for. It is not held: a hold
 * makes the schedule stale, and the next one leaves the task out. */
static bool is_awaited(const struct sched *sched, uint32_t task)
{
    return state_is_pending(sched, task) &&
           !sched_has(sched, task, TASK_BACKING_OFF) &&
           lookahead_until(sched, task) >= sched->now_ns &&
           dispatch_admits(sched, task);
}

uint32_t lookahead_held_for(const struct sched *sched, uint32_t task)
{
    if (sched->lookahead == NULL) {
        return ID_NONE;
    }
    const struct lookahead_plan *plan =
        lookahead_plan_of(sched, sched_run_ix(sched, task));
    uint32_t place = sched->lookahead->place[task];
    if (plan == NULL || plan->stale || !plan->holds || place == ID_NONE ||
        sched->in_flight_count == 0 || sched_has(sched, task, TASK_AGED)) {
        return ID_NONE;
    }
    if (plan->awaited != ID_NONE) {
        return plan->awaited; /* a better task is held back already */
    }
    uint32_t end = plan->next + LOOK < place ? plan->next + LOOK : place;
    for (uint32_t ix = plan->next; ix < end; ix++) {
        uint32_t first = plan->order[ix];
        if (is_awaited(sched, first) && ready_goes_before(sched, first, task)) {
            return first;
        }
    }
    return ID_NONE;
}

void lookahead_hold(struct sched *sched, uint32_t queue, uint32_t first)
{
    struct lookahead *lookahead = sched->lookahead;
    uint32_t pool = lookahead->plans[sched_run_ix(sched, first)].pool;
    int64_t until_ns = lookahead_until(sched, first);
    INVARIANT(state_is_pending(sched, first));
    INVARIANT(until_ns >= sched->now_ns);
    INVARIANT(pool != ID_NONE);
    if (until_ns < lookahead->wake_ns) {
        lookahead->wake_ns = until_ns;
    }
    lookahead->plans[sched_run_ix(sched, first)].awaited = first;
    dispatch_set_open(sched, pool, false);
    dispatch_wait(sched, queue, pool);
}

void lookahead_look_again(struct sched *sched)
{
    struct lookahead *lookahead = sched->lookahead;
    if (lookahead == NULL) {
        return;
    }
    lookahead->wake_ns = SCHED_NEVER;
    for (uint32_t run = 0; run < lookahead->plan_count; run++) {
        struct lookahead_plan *plan = &lookahead->plans[run];
        if (plan->pool == ID_NONE) {
            continue;
        }
        while (plan->next < plan->count &&
               !state_is_pending(sched, plan->order[plan->next])) {
            plan->next++;
        }
        INVARIANT(plan->next <= plan->count);
        plan->awaited = ID_NONE;
        dispatch_set_open(sched, plan->pool, true);
    }
}

int64_t lookahead_timer(const struct sched *sched)
{
    const struct lookahead *lookahead = sched->lookahead;
    if (lookahead == NULL || lookahead->wake_ns == SCHED_NEVER) {
        return SCHED_NEVER;
    }
    return lookahead->wake_ns + 1; /* held back until then */
}

int64_t lookahead_session_ns(const struct sched *sched, uint32_t leader)
{
    int64_t longest_ns = 0;
    int64_t sum_ns = 0;
    for (uint32_t task = leader; task != ID_NONE;
         task = sched->tasks[task].next_in_session) {
        int64_t estimate_ns = sched->tasks[task].estimate_ns;
        longest_ns = estimate_ns > longest_ns ? estimate_ns : longest_ns;
        sum_ns = duration_sum(sum_ns, estimate_ns);
    }
    INVARIANT(sum_ns >= longest_ns);
    uint32_t marginal = sched_class_of(sched, leader)->marginal;
    double rest_ns = (double)(sum_ns - longest_ns) * marginal / 100;
    return rest_ns < (double)(SCHED_NEVER / 2)
               ? duration_sum(longest_ns, (int64_t)rest_ns)
               : SCHED_NEVER / 2;
}

/* Return the binary logarithm of a duration, in 1/256. */
static uint32_t logarithm(int64_t duration_ns)
{
    uint64_t number = duration_ns > 0 ? (uint64_t)duration_ns : 1;
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(number);
    uint64_t top = bits >= 8 ? number >> (bits - 8) : number << (8 - bits);
    return bits * 256 + (uint32_t)(top & 255);
}

/*
 * Compare a duration with its estimate. Tasks are held back only while
 * estimates are good: waiting for a start that comes at another time costs
 * more than it gains. If they are worse still, an order found with them is as
 * often worse than rank as it is better.
 */
static void
note_error(struct lookahead_plan *plan, int64_t actual_ns, int64_t estimate_ns)
{
    uint32_t actual = logarithm(actual_ns);
    uint32_t estimate = logarithm(estimate_ns);
    uint32_t error = actual > estimate ? actual - estimate : estimate - actual;
    plan->errors[plan->error_count++ % LOOKAHEAD_ERRORS] = (uint16_t)error;
    uint32_t count = plan->error_count < LOOKAHEAD_ERRORS ? plan->error_count
                                                          : LOOKAHEAD_ERRORS;
    uint32_t sum = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        sum += plan->errors[ix];
    }
    count = count > ERRORS_MIN ? count : ERRORS_MIN;
    plan->holds = sum <= count * HOLD_MAX;
    plan->orders = sum <= count * ORDER_MAX;
}

void lookahead_note_end(struct sched *sched, uint32_t leader)
{
    uint32_t run = sched_run_ix(sched, leader);
    struct lookahead_plan *plan = lookahead_plan_of(sched, run);
    if (plan == NULL || sched->lookahead->ctx == NULL) {
        return;
    }
    int64_t started_ns = sched->times[leader].started_ns;
    int64_t length_ns = lookahead_session_ns(sched, leader);
    int64_t expected_ns = duration_sum(started_ns, length_ns);
    note_error(plan, sched->now_ns - started_ns, length_ns);
    int64_t late_ns = sched->now_ns - expected_ns;
    int64_t margin = margin_ns(sched, leader);
    if (late_ns > margin || late_ns < -margin) {
        lookahead_upset(sched, run);
    }
}

/*
 * Dequeue the ready tasks of a run, or enqueue them again: their keys must not
 * change while they are in a queue.
 */
static void take_out(struct sched *sched, uint32_t run, bool out)
{
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (sched->tasks[task].state != TASK_READY ||
            sched_has(sched, task, TASK_HELD) ||
            sched_run_ix(sched, task) != run) {
            continue;
        }
        if (out) {
            ready_dequeue(sched, task);
        } else {
            ready_enqueue(sched, task);
        }
    }
}

void lookahead_follow(struct sched *sched,
                      uint32_t run,
                      struct lookahead_order order)
{
    struct lookahead *lookahead = sched->lookahead;
    INVARIANT(run < lookahead->plan_count);
    struct lookahead_plan *plan = &lookahead->plans[run];
    INVARIANT(order.count <= plan->capacity);
    INVARIANT(order.count == 0 || !order.fifo);
    take_out(sched, run, true);
    for (uint32_t ix = 0; ix < plan->count; ix++) {
        INVARIANT(lookahead->place[plan->order[ix]] == ix);
        lookahead->place[plan->order[ix]] = ID_NONE;
    }
    for (uint32_t ix = 0; ix < order.count; ix++) {
        uint32_t task = order.tasks[ix];
        INVARIANT(lookahead->place[task] == ID_NONE);
        plan->draft[ix] = task;
        lookahead->place[task] = ix;
    }
    uint32_t *old = plan->order;
    plan->order = plan->draft;
    plan->draft = old;
    plan->count = order.count;
    plan->fifo = order.fifo;
    plan->next = 0;
    plan->stale = false;
    take_out(sched, run, false);
    lookahead_look_again(sched);
}
