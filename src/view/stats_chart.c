/* SPDX-License-Identifier: MIT */
/*
 * The chronicle in the form of a simulation's result, so that one code draws
 * both. The further tasks of a batch have no attempt of their own: they belong
 * to the session of their class and repository whose claim is nearest in the
 * log, since both were written in one batch.
 */
#include "view/stats_internal.h"

#include "base/mem.h"

static enum sim_end end_of(enum chronicle_outcome outcome)
{
    switch (outcome) {
    case CHRONICLE_DONE:
        return SIM_END_DONE;
    case CHRONICLE_CHANGES:
        return SIM_END_CHANGES;
    case CHRONICLE_BLOCKED:
        return SIM_END_BLOCKED;
    case CHRONICLE_CHECKPOINT:
        return SIM_END_CHECKPOINT;
    case CHRONICLE_STOPPED:
        return SIM_END_CANCELLED;
    case CHRONICLE_REFUSED:
        return SIM_END_REFUSED;
    case CHRONICLE_OPEN:
        return SIM_END_RUNNING;
    case CHRONICLE_FAILED:
    case CHRONICLE_LOST:
    case CHRONICLE_OUTCOMES:
        return SIM_END_FAILED;
    }
    return SIM_END_FAILED;
}

/* When the task was ready, for a claim. */
static int64_t ready_of(const struct chronicle *chronicle, uint32_t claim)
{
    const struct chronicle_event *event = &chronicle->events[claim];
    return event->before != CHRONICLE_NONE &&
                   chronicle->events[event->before].to == TASK_READY
               ? chronicle->events[event->before].at_ns
               : event->at_ns;
}

static bool
is_alike(const struct chronicle *chronicle, uint32_t task, uint32_t other)
{
    const struct plan_task *a = &chronicle->plan->tasks[task];
    const struct plan_task *b = &chronicle->plan->tasks[other];
    return a->class_ix == b->class_ix && a->repo == b->repo &&
           a->provider == b->provider;
}

static void add_span(struct facts *facts,
                     uint32_t session_ix,
                     uint32_t task,
                     uint32_t claim)
{
    const struct chronicle *chronicle = facts->chronicle;
    const struct chronicle_session *session = &chronicle->sessions[session_ix];
    struct sim_result *chart = facts->chart;
    int64_t ready_ns = claim != CHRONICLE_NONE ? ready_of(chronicle, claim)
                                               : session->claimed_ns;
    chart->spans[chart->span_count++] = (struct sim_span){
        .task = task,
        .attempt = session->number,
        .ready_ns =
            ready_ns < session->claimed_ns ? ready_ns : session->claimed_ns,
        .start_ns = session->claimed_ns,
        .end_ns = session->ended_ns,
        .lane = facts->lanes[session_ix],
        .session = session_ix,
        .end = end_of(session->outcome),
    };
}

/* Add the further tasks of a batch: the nearest claims without a session. */
static void add_members(struct facts *facts, uint32_t session_ix, bool *taken)
{
    const struct chronicle *chronicle = facts->chronicle;
    const struct chronicle_session *session = &chronicle->sessions[session_ix];
    uint32_t left = session->task_count - 1;
    uint32_t low = session->claim_event;
    uint32_t high = session->claim_event;
    while (left > 0 && (low > 0 || high + 1 < chronicle->event_count)) {
        uint32_t candidates[2] = {CHRONICLE_NONE, CHRONICLE_NONE};
        if (high + 1 < chronicle->event_count) {
            candidates[0] = ++high;
        }
        if (low > 0) {
            candidates[1] = --low;
        }
        for (uint32_t n = 0; n < 2 && left > 0; n++) {
            uint32_t ix = candidates[n];
            const struct chronicle_event *event =
                ix != CHRONICLE_NONE ? &chronicle->events[ix] : NULL;
            if (event != NULL && event->kind == CHRONICLE_TASK &&
                event->to == TASK_STARTING &&
                event->session == CHRONICLE_NONE && !taken[ix] &&
                is_alike(chronicle, session->task, event->task)) {
                taken[ix] = true;
                left--;
                add_span(facts, session_ix, event->task, ix);
            }
        }
    }
}

void facts_draw(struct facts *facts)
{
    const struct chronicle *chronicle = facts->chronicle;
    uint32_t class_count = chronicle->plan->class_count;
    uint32_t span_max = 0;
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        span_max += chronicle->sessions[ix].task_count;
    }
    struct sim_result *chart = mem_zalloc(1, sizeof(*chart));
    *chart = (struct sim_result){
        .policy = chronicle->plan->policy,
        .rules = SIM_RULES_ALL,
        .task_count = chronicle->plan->task_count,
        .makespan_ns = chronicle->end_ns,
        .session_count = chronicle->session_count,
        .lane_count = facts->lane_count,
        .slot_use = facts->slot_use,
        .rejections = facts->sum.outcomes[CHRONICLE_REFUSED],
        .classes = mem_zalloc(class_count, sizeof(chart->classes[0])),
        .class_count = class_count,
        .spans = mem_zalloc(span_max, sizeof(chart->spans[0])),
        .span_capacity = span_max,
    };
    facts->chart = chart;
    bool *taken = mem_zalloc(chronicle->event_count, sizeof(taken[0]));
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        const struct chronicle_session *session = &chronicle->sessions[ix];
        add_span(facts, ix, session->task, session->claim_event);
        if (session->task_count > 1 && session->claim_event != CHRONICLE_NONE) {
            add_members(facts, ix, taken);
        }
    }
    mem_free(taken);
    for (uint32_t ix = 0; ix < class_count; ix++) {
        const struct facts_class *class = &facts->classes[ix];
        chart->classes[ix] = (struct sim_class){
            .count = class->starts,
            .wait_mean_ns = class->ready_mean_ns,
            .wait_p99_ns = class->ready_p99_ns,
            .wait_max_ns = class->ready_max_ns,
            .starved_ns = class->starved_ns,
            .busy_ns = class->sum.working_ns,
        };
    }
}
