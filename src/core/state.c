/* SPDX-License-Identifier: MIT */
/*
 * Task state changes. All of them happen here, so that the counts derived from
 * the states stay correct: the run's counts, the list of tasks in flight, the
 * list of changes to report.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"

#define TO(state) (1U << (state))

/* Allowed transitions from each state. Anything else is a bug. */
static const unsigned allowed[TASK_STATE_COUNT] = {
    [TASK_WAITING] = TO(TASK_READY) | TO(TASK_SKIPPED) | TO(TASK_CANCELLED),
    [TASK_READY] = TO(TASK_WAITING) | TO(TASK_STARTING) | TO(TASK_SKIPPED) |
                   TO(TASK_CANCELLED),
    [TASK_STARTING] = TO(TASK_WAITING) | TO(TASK_RUNNING) | TO(TASK_DONE) |
                      TO(TASK_FAILED) | TO(TASK_PARKED) | TO(TASK_SKIPPED) |
                      TO(TASK_CANCELLED),
    [TASK_RUNNING] = TO(TASK_WAITING) | TO(TASK_DONE) | TO(TASK_FAILED) |
                     TO(TASK_PARKED) | TO(TASK_SKIPPED) | TO(TASK_CANCELLED),
    [TASK_DONE] = TO(TASK_WAITING),
    [TASK_FAILED] = TO(TASK_WAITING) | TO(TASK_SKIPPED) | TO(TASK_CANCELLED),
    [TASK_PARKED] = TO(TASK_WAITING) | TO(TASK_SKIPPED) | TO(TASK_CANCELLED),
    [TASK_SKIPPED] = TO(TASK_WAITING),
    [TASK_CANCELLED] = 0,
};

void state_touch(struct sched *sched, uint32_t task)
{
    if (sched_has(sched, task, TASK_DIRTY)) {
        return;
    }
    sched_raise(sched, task, TASK_DIRTY);
    sched->tasks[task].dirty_next = ID_NONE;
    if (sched->dirty_first == ID_NONE) {
        sched->dirty_first = task;
    } else {
        INVARIANT(sched->tasks[sched->dirty_last].dirty_next == ID_NONE);
        sched->tasks[sched->dirty_last].dirty_next = task;
    }
    sched->dirty_last = task;
}

void state_check_run(struct sched *sched, uint32_t run)
{
    struct run *r = &sched->runs[run];
    r->quiet = false;
    if (!r->checking) {
        INVARIANT(sched->run_checks != run);
        r->checking = true;
        r->check_next = sched->run_checks;
        sched->run_checks = run;
    }
}

static void enter_flight(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->in_flight_count < sched->task_count);
    sched->tasks[task].flight_ix = sched->in_flight_count;
    sched->in_flight[sched->in_flight_count++] = task;
}

static void leave_flight(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->in_flight_count > 0);
    uint32_t hole = sched->tasks[task].flight_ix;
    INVARIANT(hole < sched->in_flight_count && sched->in_flight[hole] == task);
    uint32_t last = sched->in_flight[--sched->in_flight_count];
    sched->in_flight[hole] = last;
    sched->tasks[last].flight_ix = hole;
}

/* What states have in common: pending, in flight, or neither. */
enum zone { ZONE_PENDING, ZONE_FLIGHT, ZONE_OVER };

static const uint8_t zones[TASK_STATE_COUNT] = {
    [TASK_WAITING] = ZONE_PENDING,
    [TASK_READY] = ZONE_PENDING,
    [TASK_STARTING] = ZONE_FLIGHT,
    [TASK_RUNNING] = ZONE_FLIGHT,
    [TASK_DONE] = ZONE_OVER,
    [TASK_FAILED] = ZONE_OVER,
    [TASK_PARKED] = ZONE_OVER,
    [TASK_SKIPPED] = ZONE_OVER,
    [TASK_CANCELLED] = ZONE_OVER,
};

/* A task has left a state of one zone for that of another, or is over. */
static void change_zone(struct sched *sched,
                        struct run *run,
                        uint32_t task,
                        enum task_state before)
{
    enum zone was = zones[before];
    enum zone is = zones[sched->tasks[task].state];
    if (before == TASK_PARKED || sched->tasks[task].state == TASK_PARKED) {
        sched->guards_due = true;
    }
    if (run->lends && (was != ZONE_PENDING || is != ZONE_FLIGHT)) {
        lend_touch(sched, task); /* a task that only goes on stays left */
    }
    if (was != is && sched_has_goal(run)) {
        goal_note(sched, run, task, before);
    }
    if (is != ZONE_FLIGHT && sched->tasks[task].special != 0) {
        deps_touch(sched, task);
    }
    if (state_is_final(sched->tasks[task].state)) {
        sched->tasks[task].first = 0;
    }
    if (is == ZONE_FLIGHT) {
        enter_flight(sched, task);
    } else if (was == ZONE_FLIGHT) {
        leave_flight(sched, task);
    }
}

void state_set(struct sched *sched, uint32_t task, enum task_state state)
{
    struct task *t = &sched->tasks[task];
    enum task_state before = t->state;
    INVARIANT((allowed[before] & TO(state)) != 0);
    uint32_t run_ix = sched_run_ix(sched, task);
    struct run *run = &sched->runs[run_ix];
    INVARIANT(run->counts[before] > 0);
    run->counts[before]--;
    run->counts[state]++;
    t->state = (uint8_t)state;
    if (zones[before] != zones[state] || zones[state] == ZONE_OVER) {
        change_zone(sched, run, task, before);
    }
    if (run->lasts > 0) {
        scope_touch(sched, task);
    }
    state_touch(sched, task);
    state_check_run(sched, run_ix);
}

/* Put a new, waiting task into the state of its record. */
void state_restore(struct sched *sched, uint32_t task, enum task_state state)
{
    struct task *t = &sched->tasks[task];
    struct run *run = sched_run_of(sched, task);
    INVARIANT(t->state == TASK_WAITING);
    INVARIANT((t->flags & (TASK_QUEUED | TASK_TIMED | TASK_COUNTED)) == 0);
    INVARIANT(run->counts[TASK_WAITING] > 0);
    run->counts[TASK_WAITING]--;
    run->counts[state]++;
    sched->guards_due = sched->guards_due || state == TASK_PARKED;
    t->state = (uint8_t)state;
    lend_touch(sched, task);
    if (sched_has_goal(run)) {
        goal_note(sched, run, task, TASK_WAITING);
    }
    if (state_in_flight(sched, task)) {
        enter_flight(sched, task);
    }
}

static bool timer_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct sched *sched = ctx;
    int64_t until_a = sched->details[a].until_ns;
    int64_t until_b = sched->details[b].until_ns;
    return until_a != until_b ? until_a < until_b : a < b;
}

static struct pheap_forest timer_forest(const struct sched *sched)
{
    return (struct pheap_forest){&sched->details[0].timer,
                                 sizeof(struct detail),
                                 timer_before,
                                 sched};
}

void state_set_timer(struct sched *sched, uint32_t task, int64_t until_ns)
{
    INVARIANT(sched->tasks[task].state == TASK_READY ||
              sched_has(sched, task, TASK_BACKING_OFF));
    INVARIANT(!sched_has(sched, task, TASK_TIMED));
    struct pheap_forest forest = timer_forest(sched);
    sched->details[task].until_ns = until_ns;
    sched->timers = pheap_add(&forest, sched->timers, task);
    sched_raise(sched, task, TASK_TIMED);
    INVARIANT(sched->details[sched->timers].until_ns <= until_ns);
}

void state_clear_timer(struct sched *sched, uint32_t task)
{
    if (sched_has(sched, task, TASK_TIMED)) {
        struct pheap_forest forest = timer_forest(sched);
        sched->timers = pheap_remove(&forest, sched->timers, task);
        INVARIANT(sched->timers != task);
        sched_lower(sched, task, TASK_TIMED);
    }
}

/* Mark a ready task that has waited for too long, or set a timer for it. */
static void watch_age(struct sched *sched, uint32_t task)
{
    if (sched->tasks[task].first != 0) {
        sched_raise(sched, task, TASK_AGED);
        return;
    }
    int64_t max_wait_ns = sched_class_of(sched, task)->max_wait_ns;
    int64_t ready_ns = sched->tasks[task].ready_ns;
    if (max_wait_ns >= SCHED_NEVER - ready_ns) {
        return;
    }
    if (ready_ns + max_wait_ns <= sched->now_ns) {
        sched_raise(sched, task, TASK_AGED);
    } else {
        state_set_timer(sched, task, ready_ns + max_wait_ns);
    }
}

/* A task became ready: watch its age, and enqueue it unless it is held. */
void state_join_ready(struct sched *sched, uint32_t task)
{
    sched_lower(sched, task, TASK_AGED);
    watch_age(sched, task);
    if (sched_has(sched, task, TASK_HELD)) {
        sched_run_of(sched, task)->held_ready++;
        ready_count_out(sched, task);
    } else {
        ready_enqueue(sched, task);
    }
}

/* Let a task whose time has not come wait for it; false: it has. */
static bool is_too_early(struct sched *sched, uint32_t task)
{
    struct detail *detail = &sched->details[task];
    if (detail->early == 0 || detail->until_ns <= sched->now_ns) {
        detail->early = 0;
        return false;
    }
    sched_raise(sched, task, TASK_BACKING_OFF);
    sched_run_of(sched, task)->backing_off++;
    ready_count_out(sched, task);
    state_set_timer(sched, task, detail->until_ns);
    state_touch(sched, task);
    state_check_run(sched, sched_run_ix(sched, task));
    return true;
}

/* Make a waiting task ready unless it lacks a need. `anew`: from now on. */
static void enter_ready(struct sched *sched, uint32_t task, bool anew)
{
    struct task *t = &sched->tasks[task];
    if (t->special != 0) {
        deps_weigh(sched, task);
        if (sched->unmet[task] == 0 && is_too_early(sched, task)) {
            return;
        }
    }
    if (sched->unmet[task] > 0) {
        ready_count_out(sched, task);
        return;
    }
    if (anew) {
        INVARIANT(sched->event_seq < UINT64_MAX >> SCHED_TASK_BITS);
        t->ready_ns = sched->now_ns;
        t->ready_seq = sched->event_seq << SCHED_TASK_BITS | task;
    }
    state_set(sched, task, TASK_READY);
    state_join_ready(sched, task);
}

void state_ready_or_wait(struct sched *sched, uint32_t task)
{
    INVARIANT(!sched_has(sched, task, TASK_BACKING_OFF));
    if (sched->tasks[task].state != TASK_WAITING) {
        state_set(sched, task, TASK_WAITING);
    }
    enter_ready(sched, task, true);
}

void state_ready_again(struct sched *sched, uint32_t task)
{
    INVARIANT(state_in_flight(sched, task));
    state_set(sched, task, TASK_WAITING);
    enter_ready(sched, task, false);
}

void state_unready(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->tasks[task].state == TASK_READY);
    state_clear_timer(sched, task);
    if (sched_has(sched, task, TASK_HELD)) {
        INVARIANT(sched_run_of(sched, task)->held_ready > 0);
        sched_run_of(sched, task)->held_ready--;
    } else {
        ready_dequeue(sched, task);
        ready_count_out(sched, task);
    }
    INVARIANT((sched->tasks[task].flags &
               (TASK_QUEUED | TASK_TIMED | TASK_COUNTED)) == 0);
}

void state_clear_backoff(struct sched *sched, uint32_t task)
{
    if (sched_has(sched, task, TASK_BACKING_OFF)) {
        INVARIANT(sched->tasks[task].state == TASK_WAITING);
        INVARIANT(sched_run_of(sched, task)->backing_off > 0);
        state_clear_timer(sched, task);
        sched_lower(sched, task, TASK_BACKING_OFF);
        sched->details[task].snoozed = 0;
        sched_run_of(sched, task)->backing_off--;
        scope_touch(sched, task);
        state_touch(sched, task);
        state_check_run(sched, sched_run_ix(sched, task));
    }
}

/* Dequeue and uncount a pending task before it is skipped or cancelled. */
void state_drop(struct sched *sched, uint32_t task)
{
    INVARIANT(state_is_pending(sched, task));
    if (sched->tasks[task].state == TASK_READY) {
        state_unready(sched, task);
    } else {
        state_clear_backoff(sched, task);
        ready_count_out(sched, task);
    }
    INVARIANT((sched->tasks[task].flags &
               (TASK_QUEUED | TASK_TIMED | TASK_COUNTED | TASK_BACKING_OFF)) ==
              0);
}

/* Let a task that has been ready for its class's max_wait go first. */
void state_age(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->tasks[task].state == TASK_READY);
    INVARIANT(!sched_has(sched, task, TASK_AGED));
    bool queued = sched_has(sched, task, TASK_QUEUED);
    INVARIANT(queued == !sched_has(sched, task, TASK_HELD));
    if (queued) {
        ready_dequeue(sched, task);
    }
    sched_raise(sched, task, TASK_AGED);
    if (queued) {
        ready_enqueue(sched, task);
    }
}

static int64_t move(int64_t time_ns, int64_t by_ns)
{
    return by_ns > 0 && time_ns > SCHED_NEVER - 1 - by_ns ? SCHED_NEVER - 1
                                                          : time_ns + by_ns;
}

void sched_move_times(struct sched *sched,
                      struct run_id run,
                      int64_t by_ns,
                      bool deadline)
{
    INVARIANT(run.v < sched->run_count);
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (sched->tasks[task].special == 0 ||
            sched->details[task].early == 0 ||
            sched_run_ix(sched, task) != run.v) {
            continue;
        }
        int64_t until_ns = move(sched->details[task].until_ns, by_ns);
        if (sched_has(sched, task, TASK_BACKING_OFF)) {
            state_clear_timer(sched, task);
            state_set_timer(sched, task, until_ns);
        } else {
            sched->details[task].until_ns = until_ns;
        }
    }
    struct run *r = &sched->runs[run.v];
    if (deadline && r->deadline_ns > 0) {
        int64_t until_ns = move(r->deadline_ns, by_ns);
        r->deadline_ns = until_ns > 0 ? until_ns : 1;
    }
}
