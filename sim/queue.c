/* SPDX-License-Identifier: MIT */
/*
 * Merge queues, as git/merge_queue.c makes them: merges of one repository run
 * at the same time, each on top of those before it, and end in the order in
 * which they began. When one fails, those behind it restart without it; its
 * failure is final when all before it have ended.
 */
#include "base/duration.h"
#include "base/invariant.h"
#include "sim/sim_internal.h"

void queue_join(struct sim *sim, struct sim_session *session)
{
    uint32_t ix = sim->result->spans[session->first_span].task;
    const struct plan_task *task = &sim->plan->tasks[ix];
    session->queue =
        task->merge && session->span_count == 1 ? task->repo : PLAN_NONE;
}

/* Return the oldest session of the queue with a token greater than `after`, or
 * ID_NONE. */
static uint32_t next_of(const struct sim *sim, uint32_t queue, uint64_t after)
{
    uint32_t found = ID_NONE;
    for (uint32_t ix = 0; ix < sim->session_capacity; ix++) {
        const struct sim_session *session = &sim->sessions[ix];
        if (session->token > after && session->queue == queue &&
            (found == ID_NONE || session->token < sim->sessions[found].token)) {
            found = ix;
        }
    }
    return found;
}

/* Restart all sessions behind this token. Not in a replay: the length of a
 * session has its restarts. */
static void restart(struct sim *sim, uint32_t queue, uint64_t token)
{
    uint32_t ix;
    if (sim->options->replay != NULL) {
        return;
    }
    while ((ix = next_of(sim, queue, token)) != ID_NONE) {
        struct sim_session *session = &sim->sessions[ix];
        token = session->token;
        session->round++;
        session->gated = false;
        sim->result->spans[session->first_span].restarts++;
        sim->result->restarts++;
        sim_push_end(sim, ix);
    }
}

bool queue_waits(struct sim *sim, uint32_t ix)
{
    struct sim_session *session = &sim->sessions[ix];
    if (session->queue == PLAN_NONE) {
        return false;
    }
    if (!session->decided) {
        session->decided = true;
        uint32_t task = sim->result->spans[session->first_span].task;
        session->end = sim_end_of(sim, session, task);
    }
    session->gated = true;
    if (session->end != SIM_END_DONE) {
        restart(sim, session->queue, session->token);
    }
    bool final =
        session->end == SIM_END_DONE || session->end == SIM_END_FAILED ||
        session->end == SIM_END_FATAL || session->end == SIM_END_CHANGES;
    return final && next_of(sim, session->queue, 0) != ix;
}

/* Adapt the window of the queue, as the engine does. */
static void adapt(struct sim *sim, const struct sim_session *session)
{
    static const enum sched_outcome outcomes[] = {
        [SIM_END_DONE] = OUTCOME_DONE,
        [SIM_END_FAILED] = OUTCOME_FAILED,
        [SIM_END_CHANGES] = OUTCOME_CHANGES,
        [SIM_END_BLOCKED] = OUTCOME_BLOCKED,
        [SIM_END_CHECKPOINT] = OUTCOME_CHECKPOINT,
        [SIM_END_LATER] = OUTCOME_LATER,
        [SIM_END_FATAL] = OUTCOME_FATAL,
    };
    uint32_t task = sim->result->spans[session->first_span].task;
    uint32_t limit = plan_window_of(sim->plan, &sim->plan->tasks[task]);
    if (limit == PLAN_NONE || !session->decided) {
        return;
    }
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = sim->now_ns,
        .limit = load_limit(sim->run, limit),
    };
    int64_t now = sched_limit_max(sim->sched, event.limit);
    event.max = load_next_window(now,
                                 sim->plan->limits[limit].max,
                                 outcomes[session->end]);
    if (event.max != now) {
        enum err err = sched_apply(sim->sched, &event);
        INVARIANT(err == ERR_OK);
    }
}

void queue_left(struct sim *sim, const struct sim_session *session)
{
    if (session->queue == PLAN_NONE) {
        return;
    }
    adapt(sim, session);
    if (!session->gated) { /* cancelled: the others were built on it */
        restart(sim, session->queue, session->token);
    }
    uint32_t next = next_of(sim, session->queue, 0);
    if (next != ID_NONE && sim->sessions[next].gated) {
        sim_finish(sim, next, false);
    }
}
