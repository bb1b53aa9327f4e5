/* SPDX-License-Identifier: MIT */
/*
 * The history as a simulation result, so that the same code draws both. The
 * further tasks of a batch have no attempt: they belong to the session of the
 * same class, repository and provider whose claim is nearest in the event log,
 * since both were written in one transaction.
 */
#include "view/stats_internal.h"

#include "base/mem.h"

static const enum sim_end ends[HISTORY_OUTCOMES] = {
    [HISTORY_DONE] = SIM_END_DONE,
    [HISTORY_FAILED] = SIM_END_FAILED,
    [HISTORY_REFUSED] = SIM_END_REFUSED,
    [HISTORY_CHANGES] = SIM_END_CHANGES,
    [HISTORY_BLOCKED] = SIM_END_BLOCKED,
    [HISTORY_CHECKPOINT] = SIM_END_CHECKPOINT,
    [HISTORY_LOST] = SIM_END_FAILED,
    [HISTORY_STOPPED] = SIM_END_CANCELLED,
    [HISTORY_LATER] = SIM_END_LATER,
    [HISTORY_FATAL] = SIM_END_FATAL,
    [HISTORY_OPEN] = SIM_END_RUNNING,
};

/* Return when the task of a claim was ready. */
static int64_t ready_of(const struct run_history *history, uint32_t claim)
{
    const struct run_history_event *event = &history->events[claim];
    return event->before != HISTORY_NONE &&
                   history->events[event->before].to == TASK_READY
               ? history->events[event->before].at_ns
               : event->at_ns;
}

static bool
is_alike(const struct run_history *history, uint32_t task, uint32_t other)
{
    const struct plan_task *a = &history->plan->tasks[task];
    const struct plan_task *b = &history->plan->tasks[other];
    return a->class_ix == b->class_ix && a->repo == b->repo &&
           a->provider == b->provider;
}

static void add_span(struct stats *stats,
                     uint32_t session_ix,
                     uint32_t task,
                     uint32_t claim)
{
    const struct run_history *history = stats->history;
    const struct run_history_session *session = &history->sessions[session_ix];
    struct sim_result *chart = stats->chart;
    int64_t ready_ns =
        claim != HISTORY_NONE ? ready_of(history, claim) : session->claimed_ns;
    chart->spans[chart->span_count++] = (struct sim_span){
        .task = task,
        .attempt = session->number,
        .ready_ns =
            ready_ns < session->claimed_ns ? ready_ns : session->claimed_ns,
        .start_ns = session->claimed_ns,
        .end_ns = session->ended_ns,
        .lane = stats->lanes[session_ix],
        .session = session_ix,
        .end = ends[session->outcome],
    };
}

/* Add the further tasks of a batch: the nearest claims without a session. */
static void add_members(struct stats *stats, uint32_t session_ix, bool *taken)
{
    const struct run_history *history = stats->history;
    const struct run_history_session *session = &history->sessions[session_ix];
    uint32_t left = session->task_count - 1;
    uint32_t low = session->claim_event;
    uint32_t high = session->claim_event;
    while (left > 0 && (low > 0 || high + 1 < history->event_count)) {
        uint32_t candidates[2] = {HISTORY_NONE, HISTORY_NONE};
        if (high + 1 < history->event_count) {
            candidates[0] = ++high;
        }
        if (low > 0) {
            candidates[1] = --low;
        }
        for (uint32_t n = 0; n < 2 && left > 0; n++) {
            uint32_t ix = candidates[n];
            const struct run_history_event *event =
                ix != HISTORY_NONE ? &history->events[ix] : NULL;
            if (event != NULL && event->kind == HISTORY_TASK &&
                event->to == TASK_STARTING && event->session == HISTORY_NONE &&
                !taken[ix] && is_alike(history, session->task, event->task)) {
                taken[ix] = true;
                left--;
                add_span(stats, session_ix, event->task, ix);
            }
        }
    }
}

void stats_draw(struct stats *stats)
{
    const struct run_history *history = stats->history;
    uint32_t class_count = history->plan->class_count;
    uint32_t span_max = 0;
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        span_max += history->sessions[ix].task_count;
    }
    struct sim_result *chart = mem_zalloc(1, sizeof(*chart));
    *chart = (struct sim_result){
        .policy = history->plan->policy,
        .rules = SIM_RULES_ALL,
        .task_count = history->plan->task_count,
        .makespan_ns = history->end_ns,
        .session_count = history->session_count,
        .lane_count = stats->lane_count,
        .slot_use = stats->slot_use,
        .refusals = stats->sum.outcomes[HISTORY_REFUSED],
        .classes = mem_zalloc(class_count, sizeof(chart->classes[0])),
        .class_count = class_count,
        .spans = mem_zalloc(span_max, sizeof(chart->spans[0])),
        .span_capacity = span_max,
    };
    stats->chart = chart;
    bool *taken = mem_zalloc(history->event_count, sizeof(taken[0]));
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
        add_span(stats, ix, session->task, session->claim_event);
        if (session->task_count > 1 && session->claim_event != HISTORY_NONE) {
            add_members(stats, ix, taken);
        }
    }
    mem_free(taken);
    for (uint32_t ix = 0; ix < class_count; ix++) {
        const struct stats_class *class = &stats->classes[ix];
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
