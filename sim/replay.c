/* SPDX-License-Identifier: MIT */
/*
 * A task that is not to start is held. So it has its place in the ranks of the
 * tasks before it, as in the run.
 */
#include "sim/replay.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "sim/sim_internal.h"

void replay_release(struct replay *replay)
{
    mem_free(replay->tasks);
    mem_free(replay->attempts);
    *replay = (struct replay){0};
}

/* Apply an event about a task. One that the state forbids changes nothing: with
 * other settings, other things may have happened. */
static void apply(struct sim *sim, enum sched_event_type type, uint32_t task)
{
    struct sched_event event = {
        .type = type,
        .now_ns = sim->now_ns,
        .task = load_task(sim->run, task),
    };
    (void)!sched_apply(sim->sched, &event);
}

void replay_begin(struct sim *sim)
{
    const struct replay *replay = sim->options->replay;
    INVARIANT(replay->task_count == sim->plan->task_count);
    for (uint32_t ix = 0; ix < replay->task_count; ix++) {
        const struct replay_task *task = &replay->tasks[ix];
        if (task->late || (task->count == 0 && !task->done)) {
            apply(sim, EVENT_HOLD, ix);
        }
    }
}

/* Return the current attempt of a task; NULL: the run had none. */
static const struct replay_attempt *current(const struct sim *sim, uint32_t ix)
{
    const struct replay *replay = sim->options->replay;
    const struct replay_task *task = &replay->tasks[ix];
    uint32_t number = sim->attempts[ix];
    INVARIANT(number > 0);
    if (task->count == 0) {
        return NULL;
    }
    number = number < task->count ? number : task->count;
    return &replay->attempts[task->first + number - 1];
}

int64_t replay_length_ns(const struct sim *sim, uint32_t task)
{
    const struct replay_attempt *attempt = current(sim, task);
    return attempt != NULL ? attempt->length_ns : 0;
}

enum sim_end replay_end(const struct sim *sim, uint32_t task)
{
    const struct replay_attempt *attempt = current(sim, task);
    bool beyond = sim->attempts[task] > sim->options->replay->tasks[task].count;
    return attempt == NULL || beyond ? SIM_END_DONE : attempt->end;
}

int64_t replay_later_ns(const struct sim *sim, uint32_t task)
{
    const struct replay_attempt *attempt = current(sim, task);
    INVARIANT(attempt != NULL);
    return attempt->parked_ns;
}

/* Release what this task's sessions have added by now. */
static void release_added(struct sim *sim, uint32_t adder)
{
    const struct replay *replay = sim->options->replay;
    for (uint32_t ix = 0; ix < replay->task_count; ix++) {
        const struct replay_task *task = &replay->tasks[ix];
        if (task->late && task->adder == adder &&
            task->adder_count == sim->attempts[adder] &&
            (task->count > 0 || task->done)) {
            apply(sim, EVENT_RELEASE, ix);
        }
    }
}

/* Hold the tasks of a group that have used up their attempts and were not done:
 * a rework must not start them again. */
static void hold_group(struct sim *sim, uint32_t ix)
{
    const struct replay *replay = sim->options->replay;
    uint32_t group = sim->plan->tasks[ix].group;
    for (uint32_t n = 0; group != PLAN_NONE && n < replay->task_count; n++) {
        if (sim->plan->tasks[n].group == group && !replay->tasks[n].done &&
            sim->attempts[n] >= replay->tasks[n].count) {
            apply(sim, EVENT_HOLD, n);
        }
    }
}

void replay_ended(struct sim *sim, const struct sim_span *span)
{
    uint32_t ix = span->task;
    const struct replay_task *task = &sim->options->replay->tasks[ix];
    struct task_id id = load_task(sim->run, ix);
    enum task_state state = sched_task(sim->sched, id).state;
    bool parked = state == TASK_PARKED || state == TASK_FAILED;
    const struct replay_attempt *attempt = current(sim, ix);
    bool last = sim->attempts[ix] >= task->count;
    if (last && !task->done) {
        apply(sim, EVENT_HOLD, ix);
    }
    if (span->end != SIM_END_DONE) {
        hold_group(sim, ix);
    }
    if (attempt != NULL && (last ? task->skipped : parked)) {
        sim_push_act(sim, ix, attempt->parked_ns);
    }
    if (sim->options->replay->adds) {
        release_added(sim, ix);
    }
}

void replay_act(struct sim *sim, uint32_t ix)
{
    const struct replay_task *task = &sim->options->replay->tasks[ix];
    bool last = sim->attempts[ix] >= task->count;
    apply(sim, last ? EVENT_SKIP : EVENT_RETRY, ix);
}
