/* SPDX-License-Identifier: MIT */
#include "core/lookahead/rollout.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "core/lookahead/outline.h"

#include <string.h>

/* Copy the state of the real scheduler to own memory. */
static void copy(struct lookahead_rollout *rollout, const struct sched *real)
{
    INVARIANT(real->task_count <= rollout->capacity);
    INVARIANT(real->queue_count <= rollout->sched.queue_capacity);
    struct sched own = rollout->sched;
    struct sched *now = &rollout->sched;
    *now = *real;
#define PART(array, count, capacity)                                           \
    now->array = own.array;                                                    \
    if (real->count > 0) {                                                     \
        memcpy(now->array, real->array, real->count * sizeof(now->array[0]));  \
    }
    ROLLOUT_COPIED(PART)
#undef PART
#define PART(array)                                                            \
    now->array = own.array;                                                    \
    if (real->array != NULL) {                                                 \
        memcpy(now->array,                                                     \
               real->array,                                                    \
               real->task_count * sizeof(now->array[0]));                      \
    }
    ROLLOUT_OPTIONAL(PART)
#undef PART
#define PART(array) now->array = own.array;
    ROLLOUT_SCRATCH(PART)
#undef PART
    now->queues = own.queues;
    for (uint32_t ix = 0; ix < real->queue_count; ix++) {
        struct ready_queue block = now->queues[ix].block;
        now->queues[ix] = real->queues[ix];
        now->queues[ix].block = block;
        ready_queue_copy(&now->queues[ix].block, &real->queues[ix].block);
    }
    struct lookahead *look = &rollout->lookahead;
    const struct lookahead *from = real->lookahead;
    memcpy(look->place, from->place, real->task_count * sizeof(uint32_t));
    memcpy(look->start_ns, from->start_ns, real->task_count * sizeof(int64_t));
    memcpy(look->plans, from->plans, from->plan_count * sizeof(from->plans[0]));
    look->plan_count = from->plan_count;
    look->wake_ns = from->wake_ns;
    now->lookahead = look;
}

/* ---- expected exits ---- */

static bool ends_first(struct lookahead_ending a, struct lookahead_ending b)
{
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.token < b.token;
}

static void push_ending(struct lookahead_rollout *rollout,
                        struct lookahead_ending ending)
{
    INVARIANT(rollout->ending_count < rollout->capacity);
    struct lookahead_ending *heap = rollout->endings;
    uint32_t hole = rollout->ending_count++;
    while (hole > 0 && ends_first(ending, heap[(hole - 1) / 2])) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = ending;
    INVARIANT(heap[0].at_ns <= ending.at_ns);
}

static struct lookahead_ending pop_ending(struct lookahead_rollout *rollout)
{
    INVARIANT(rollout->ending_count > 0);
    struct lookahead_ending *heap = rollout->endings;
    struct lookahead_ending first = heap[0];
    struct lookahead_ending last = heap[--rollout->ending_count];
    uint32_t hole = 0;
    for (uint32_t child = 1; child < rollout->ending_count;
         child = 2 * hole + 1) {
        if (child + 1 < rollout->ending_count &&
            ends_first(heap[child + 1], heap[child])) {
            child++;
        }
        if (ends_first(last, heap[child])) {
            break;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    INVARIANT(rollout->ending_count == 0 || !ends_first(heap[0], first));
    return first;
}

static void expect_end(struct lookahead_rollout *rollout, uint32_t leader)
{
    const struct sched *sched = &rollout->sched;
    INVARIANT(sched->tasks[leader].leader == leader);
    INVARIANT(state_in_flight(sched, leader));
    struct lookahead_ending ending = {
        .at_ns = duration_sum(sched->now_ns, lookahead_left_ns(sched, leader)),
        .token = sched->tasks[leader].token,
        .task = leader,
    };
    push_ending(rollout, ending);
}

static void apply(struct sched *sched,
                  enum sched_event_type type,
                  uint32_t task,
                  enum sched_outcome outcome)
{
    struct sched_event event = {
        .type = type,
        .now_ns = sched->now_ns,
        .task = {task},
        .token = sched->tasks[task].token,
        .outcomes = &outcome,
        .outcome_count = 1,
        .retry_at_ns = SCHED_NEVER,
    };
    enum err err = sched_apply(sched, &event);
    INVARIANT(err == ERR_OK);
}

/* ---- passes ---- */

/* Record the start of all tasks of a session. */
static void
note_start(struct lookahead_rollout *rollout, uint32_t run, uint32_t leader)
{
    const struct sched *sched = &rollout->sched;
    for (uint32_t task = leader; task != ID_NONE;
         task = sched->tasks[task].next_in_session) {
        INVARIANT(rollout->start_ns[task] == SCHED_NEVER); /* all succeed */
        if (sched_run_ix(sched, task) == run) {
            INVARIANT(rollout->sequence_count < rollout->capacity);
            rollout->sequence[rollout->sequence_count++] = task;
        }
        rollout->start_ns[task] = sched->now_ns;
    }
}

/* Take all effects of a pass, then carry them out, as the engine does. */
static bool take_pass(struct lookahead_rollout *rollout, uint32_t run)
{
    struct sched *sched = &rollout->sched;
    struct sched_effect effect;
    uint32_t count = 0;
    bool again = false;
    while (sched_next_effect(sched, &effect)) {
        if (effect.type == EFFECT_START || effect.type == EFFECT_END) {
            INVARIANT(count < rollout->capacity);
            rollout->started[count++] = effect.task.v;
        } else if (effect.type == EFFECT_BARRIER) {
            struct sched_event done = {
                .type = EVENT_BARRIER_DONE,
                .now_ns = sched->now_ns,
                .run = effect.run,
            };
            enum err err = sched_apply(sched, &done);
            INVARIANT(err == ERR_OK);
            again = true;
        }
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        uint32_t task = rollout->started[ix];
        if (sched_has(sched, task, TASK_ENDING)) {
            apply(sched, EVENT_ENDED, task, OUTCOME_FAILED);
        } else {
            note_start(rollout, run, task);
            expect_end(rollout, task);
            apply(sched, EVENT_STARTED, task, OUTCOME_DONE);
        }
    }
    return again || count > 0;
}

/* A session of the run exits: its groups finish no sooner. */
static void note_end(struct lookahead_rollout *rollout,
                     uint32_t leader,
                     struct lookahead_finish *finish)
{
    enum { SUM_SHIFT = 20 };
    const struct sched *sched = &rollout->sched;
    finish->end_ns = sched->now_ns;
    for (uint32_t task = leader; task != ID_NONE;
         task = sched->tasks[task].next_in_session) {
        uint32_t group = sched->tasks[task].group;
        int64_t since_ns = rollout->real_ns;
        if (!sched_is_solo(group)) {
            since_ns = rollout->group_end_ns[group / 2];
            rollout->group_end_ns[group / 2] = sched->now_ns;
        }
        INVARIANT(since_ns <= sched->now_ns);
        finish->sum += ((sched->now_ns - rollout->real_ns) >> SUM_SHIFT) -
                       ((since_ns - rollout->real_ns) >> SUM_SHIFT);
    }
}

/* Advance to the next exit or timer; return false if none is left. */
static bool go_on(struct lookahead_rollout *rollout,
                  uint32_t run,
                  struct lookahead_finish *finish)
{
    struct sched *sched = &rollout->sched;
    int64_t at_ns = sched_next_timer(sched);
    if (rollout->ending_count > 0 && rollout->endings[0].at_ns < at_ns) {
        at_ns = rollout->endings[0].at_ns;
    }
    if (at_ns == SCHED_NEVER) {
        return false;
    }
    struct sched_event tick = {
        .type = EVENT_TICK,
        .now_ns = at_ns > sched->now_ns ? at_ns : sched->now_ns,
    };
    enum err err = sched_apply(sched, &tick);
    INVARIANT(err == ERR_OK);
    while (rollout->ending_count > 0 && rollout->endings[0].at_ns <= at_ns) {
        struct lookahead_ending ending = pop_ending(rollout);
        INVARIANT(ending.at_ns <= sched->now_ns);
        if (!state_in_flight(sched, ending.task)) {
            continue;
        }
        INVARIANT(sched->tasks[ending.task].token == ending.token);
        if (sched_run_ix(sched, ending.task) == run) {
            note_end(rollout, ending.task, finish);
        }
        apply(sched, EVENT_ENDED, ending.task, OUTCOME_DONE);
    }
    return true;
}

/* Reset the records of a rollout; sessions in flight take their estimates. */
static void begin(struct lookahead_rollout *rollout, const struct sched *real)
{
    const struct sched *sched = &rollout->sched;
    rollout->real_ns = real->now_ns;
    for (uint32_t ix = 0; ix < real->task_count; ix++) {
        rollout->start_ns[ix] = SCHED_NEVER;
    }
    for (uint32_t ix = 0; ix < real->group_count; ix++) {
        rollout->group_end_ns[ix] = real->now_ns;
    }
    rollout->sequence_count = 0;
    rollout->ending_count = 0;
    for (uint32_t ix = 0; ix < sched->in_flight_count; ix++) {
        if (sched->tasks[sched->in_flight[ix]].leader == sched->in_flight[ix]) {
            expect_end(rollout, sched->in_flight[ix]);
        }
    }
}

struct lookahead_finish lookahead_rollout_run(struct lookahead_rollout *rollout,
                                              const struct sched *real,
                                              uint32_t run,
                                              struct lookahead_order order)
{
    INVARIANT(run < real->run_count);
    INVARIANT(real->group_count <= rollout->group_capacity);
    copy(rollout, real);
    /* The order goes into the draft, which is unused. */
    lookahead_follow(&rollout->sched, run, order);
    for (uint32_t ix = 0; ix < order.count; ix++) {
        /* Never overdue: the rollout measures whether waiting pays off. */
        rollout->lookahead.start_ns[order.tasks[ix]] = SCHED_NEVER;
    }
    begin(rollout, real);
    struct lookahead_finish finish = {.end_ns = real->now_ns};
    /* Timers may repeat for long: bound the number of steps. */
    for (uint64_t step = 0; step < UINT64_C(64) * real->task_count; step++) {
        while (take_pass(rollout, run)) {
        }
        if (!go_on(rollout, run, &finish)) {
            break;
        }
    }
    INVARIANT(finish.end_ns >= real->now_ns && finish.sum >= 0);
    return finish;
}
