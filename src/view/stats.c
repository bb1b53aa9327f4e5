/* SPDX-License-Identifier: MIT */
/*
 * Sums over sessions. Values over time are in stats_replay.c, the critical path
 * is in stats_path.c. A batch session counts for its first task, because tokens
 * and cost are known only per session.
 */
#include "view/stats.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "view/stats_internal.h"

#include <stdlib.h>
#include <string.h>

const char *stats_reason_name(enum stats_reason reason)
{
    static const char *const names[STATS_REASONS] = {
        [STATS_NEEDS] = "needs",
        [STATS_BACKOFF] = "backoff",
        [STATS_PERSON] = "person",
        [STATS_HELD] = "held",
        [STATS_PAUSED] = "paused",
        [STATS_SLOT] = "slot",
        [STATS_LIMIT] = "limit",
        [STATS_DEFERRED] = "deferred",
        [STATS_PROVIDER] = "provider",
        [STATS_OTHER] = "other",
    };
    INVARIANT(reason < STATS_REASONS);
    return names[reason];
}

const char *stats_idle_name(enum stats_idle idle)
{
    static const char *const names[STATS_IDLES] = {
        [STATS_IDLE_KEPT] = "kept-back",
        [STATS_IDLE_NONE] = "nothing-ready",
        [STATS_IDLE_REST] = "at-rest",
    };
    INVARIANT(idle < STATS_IDLES);
    return names[idle];
}

const char *stats_step_name(enum stats_step step)
{
    static const char *const names[STATS_STEPS] = {
        [STATS_STEP_WORK] = "work",
        [STATS_STEP_PASS] = "turn",
        [STATS_STEP_BACKOFF] = "backoff",
        [STATS_STEP_PERSON] = "person",
        [STATS_STEP_PROVIDER] = "provider",
        [STATS_STEP_KEPT] = "kept-back",
        [STATS_STEP_ABSENT] = "absent",
        [STATS_STEP_TAIL] = "tail",
    };
    INVARIANT(step < STATS_STEPS);
    return names[step];
}

const char *stats_link_name(enum stats_link link)
{
    static const char *const names[] = {
        [STATS_LINK_NONE] = "none",
        [STATS_LINK_NEED] = "need",
        [STATS_LINK_SLOT] = "slot",
        [STATS_LINK_SELF] = "self",
        [STATS_LINK_REWORK] = "rework",
    };
    INVARIANT(link < ARRAY_COUNT(names));
    return names[link];
}

uint32_t stats_bad(const struct stats_sum *sum)
{
    uint32_t count = 0;
    for (enum run_history_outcome ix = 0; ix < HISTORY_OUTCOMES; ix++) {
        count += run_history_is_bad(ix) ? sum->outcomes[ix] : 0;
    }
    return count;
}

int64_t stats_slots_ns(const struct stats *stats)
{
    return duration_sum(stats->offered_ns, stats->over_ns);
}

int64_t stats_last_cap(const struct stats *stats)
{
    return stats->caps[stats->cap_count - 1].max;
}

const char *stats_group_id(const struct stats *stats, uint32_t group)
{
    const struct plan *plan = stats->history->plan;
    uint32_t task = stats->groups[group].first_task;
    uint32_t ix = plan->tasks[task].group;
    return ix != PLAN_NONE ? plan->groups[ix].id : plan->tasks[task].id;
}

/* --- sums --------------------------------------------------------------- */

static void add_session(struct stats_sum *sum,
                        const struct run_history_session *session)
{
    int64_t took_ns = session->ended_ns - session->claimed_ns;
    sum->sessions++;
    sum->confined += session->confined ? 1 : 0;
    sum->outcomes[session->outcome]++;
    stats_add(&sum->working_ns, 1, took_ns);
    sum->longest_ns = took_ns > sum->longest_ns ? took_ns : sum->longest_ns;
    stats_add(&sum->input_tokens, 1, session->input_tokens);
    stats_add(&sum->output_tokens, 1, session->output_tokens);
    sum->usd += session->usd;
}

/* List the groups that have tasks; return the group of each task. */
static uint32_t *list_groups(struct stats *stats)
{
    const struct plan *plan = stats->history->plan;
    uint32_t *of = mem_zalloc(plan->task_count, sizeof(of[0]));
    /* Number of each group plus one; 0: none yet. */
    uint32_t *known =
        mem_zalloc(plan->group_count + plan->task_count, sizeof(known[0]));
    stats->groups = mem_zalloc(plan->task_count, sizeof(stats->groups[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t group = run_history_group(stats->history, ix);
        if (known[group] == 0) {
            stats->groups[stats->group_count] =
                (struct stats_group){.first_task = ix, .begun_ns = -1};
            known[group] = ++stats->group_count;
        }
        of[ix] = known[group] - 1;
    }
    mem_free(known);
    return of;
}

static void add_sessions(struct stats *stats, const uint32_t *group_of)
{
    const struct run_history *history = stats->history;
    const struct plan *plan = history->plan;
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
        struct stats_task *task = &stats->tasks[session->task];
        struct stats_group *group = &stats->groups[group_of[session->task]];
        uint32_t class_ix = plan->tasks[session->task].class_ix;
        add_session(&stats->sum, session);
        add_session(&stats->classes[class_ix].sum, session);
        add_session(&group->sum, session);
        add_session(&task->sum, session);
        if (group->begun_ns < 0) {
            group->begun_ns = session->claimed_ns;
        }
        group->ended_ns = session->ended_ns > group->ended_ns
                              ? session->ended_ns
                              : group->ended_ns;
        if (task->begun_ns < 0) {
            task->begun_ns = session->claimed_ns;
        }
        task->ended_ns = session->ended_ns;
        stats->restarts += session->restarts;
        if (session->before != HISTORY_NONE) {
            enum run_history_outcome before =
                history->sessions[session->before].outcome;
            stats->retries +=
                before == HISTORY_FAILED || before == HISTORY_LOST ? 1 : 0;
        }
        if (plan->classes[class_ix].role == PLAN_ROLE_REVIEW) {
            stats_add(&stats->review_ns,
                      1,
                      session->ended_ns - session->claimed_ns);
        }
    }
}

static void count_tasks(struct stats *stats, const uint32_t *group_of)
{
    const struct run_history *history = stats->history;
    const struct plan *plan = history->plan;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        struct stats_class *class = &stats->classes[plan->tasks[ix].class_ix];
        struct stats_group *group = &stats->groups[group_of[ix]];
        enum task_state state = history->tasks[ix].state;
        uint32_t done = state == TASK_DONE ? 1 : 0;
        stats->states[state]++;
        stats->tasks[ix].begun_ns = -1;
        stats->tasks[ix].ended_ns = -1;
        class->tasks++;
        class->done += done;
        group->tasks++;
        group->done += done;
    }
}

/* --- failed sessions ---------------------------------------------------- */

static struct stats_failure *
find_failure(struct stats *stats,
             uint32_t class_ix,
             const struct run_history_session *session)
{
    const char *cause = session->cause != NULL ? session->cause : "";
    for (uint32_t ix = 0; ix < stats->failure_count; ix++) {
        struct stats_failure *failure = &stats->failures[ix];
        if (failure->class_ix == class_ix &&
            failure->outcome == session->outcome &&
            strcmp(failure->cause, cause) == 0) {
            return failure;
        }
    }
    if (stats->failure_count % 16 == 0) {
        stats->failures = mem_resize(stats->failures,
                                     (size_t)stats->failure_count + 16,
                                     sizeof(stats->failures[0]));
    }
    struct stats_failure *made = &stats->failures[stats->failure_count++];
    *made = (struct stats_failure){
        .class_ix = class_ix,
        .outcome = session->outcome,
        .cause = cause,
    };
    return made;
}

static int compare_failures(const void *left, const void *right)
{
    const struct stats_failure *a = left;
    const struct stats_failure *b = right;
    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }
    return (a->last > b->last) - (a->last < b->last);
}

static void list_failures(struct stats *stats)
{
    const struct run_history *history = stats->history;
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
        if (!run_history_is_bad(session->outcome)) {
            continue;
        }
        uint32_t class_ix = history->plan->tasks[session->task].class_ix;
        struct stats_failure *failure = find_failure(stats, class_ix, session);
        failure->count++;
        stats_add(&failure->lost_ns,
                  1,
                  session->ended_ns - session->claimed_ns);
        failure->last = ix;
    }
    if (stats->failure_count > 1) {
        qsort(stats->failures,
              stats->failure_count,
              sizeof(stats->failures[0]),
              compare_failures);
    }
}

/* --- from ready to claimed ---------------------------------------------- */

static int compare_ns(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void measure_class(struct stats_class *class, int64_t *waits_ns)
{
    if (class->starts == 0) {
        return;
    }
    qsort(waits_ns, class->starts, sizeof(waits_ns[0]), compare_ns);
    double sum = 0;
    for (uint32_t ix = 0; ix < class->starts; ix++) {
        sum += (double)waits_ns[ix];
    }
    class->ready_mean_ns = (int64_t)(sum / class->starts);
    /* Nearest-rank percentile: at least 99 % of the starts wait no longer. */
    uint32_t rank = (uint32_t)(((uint64_t) class->starts * 99 + 99) / 100);
    class->ready_p99_ns = waits_ns[rank - 1];
    class->ready_max_ns = waits_ns[class->starts - 1];
}

static bool is_claim(const struct run_history_event *event)
{
    return event->kind == HISTORY_TASK && event->to == TASK_STARTING;
}

/* Measure the waits, stored class after class. */
static void measure_waits(struct stats *stats)
{
    const struct run_history *history = stats->history;
    const struct plan *plan = history->plan;
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        const struct run_history_event *event = &history->events[ix];
        if (is_claim(event)) {
            stats->classes[plan->tasks[event->task].class_ix].starts++;
        }
    }
    int64_t *waits_ns = mem_zalloc(history->event_count, sizeof(waits_ns[0]));
    uint32_t *next = mem_zalloc(plan->class_count, sizeof(next[0]));
    for (uint32_t ix = 1; ix < plan->class_count; ix++) {
        next[ix] = next[ix - 1] + stats->classes[ix - 1].starts;
    }
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        const struct run_history_event *event = &history->events[ix];
        if (event->kind != HISTORY_TASK) {
            continue;
        }
        int64_t waited_ns = 0;
        if (event->before != HISTORY_NONE &&
            history->events[event->before].to == TASK_READY) {
            waited_ns = event->at_ns - history->events[event->before].at_ns;
            stats->tasks[event->task].ready_ns += waited_ns;
        }
        if (is_claim(event)) {
            waits_ns[next[plan->tasks[event->task].class_ix]++] = waited_ns;
        }
    }
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        struct stats_class *class = &stats->classes[ix];
        measure_class(class, waits_ns + (next[ix] - class->starts));
    }
    mem_free(waits_ns);
    mem_free(next);
}

/* --- lanes -------------------------------------------------------------- */

static int compare_claims(const void *left, const void *right, void *ctx)
{
    const struct run_history_session *sessions = ctx;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    if (sessions[a].claimed_ns != sessions[b].claimed_ns) {
        return sessions[a].claimed_ns < sessions[b].claimed_ns ? -1 : 1;
    }
    return (a > b) - (a < b);
}

/* Assign to each session the lowest lane that is free at its claim. */
static void assign_lanes(struct stats *stats)
{
    const struct run_history *history = stats->history;
    uint32_t count = history->session_count;
    uint32_t *order = mem_zalloc(count, sizeof(order[0]));
    int64_t *free_ns = mem_zalloc(count, sizeof(free_ns[0]));
    stats->lanes = mem_zalloc(count, sizeof(stats->lanes[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        order[ix] = ix;
    }
    if (count > 1) {
        qsort_r(order,
                count,
                sizeof(order[0]),
                compare_claims,
                history->sessions);
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct run_history_session *session =
            &history->sessions[order[ix]];
        uint32_t lane = 0;
        while (lane < stats->lane_count &&
               free_ns[lane] > session->claimed_ns) {
            lane++;
        }
        stats->lane_count += lane == stats->lane_count ? 1 : 0;
        free_ns[lane] = session->ended_ns;
        stats->lanes[order[ix]] = lane;
    }
    mem_free(order);
    mem_free(free_ns);
}

/* --- totals ------------------------------------------------------------- */

static void add_totals(struct stats *stats)
{
    const struct plan *plan = stats->history->plan;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        stats->starved_ns += stats->classes[ix].starved_ns;
        for (uint32_t n = 0; n < STATS_REASONS; n++) {
            stats_add(&stats->waits_ns[n], 1, stats->classes[ix].waits_ns[n]);
        }
    }
    int64_t slots_ns = stats_slots_ns(stats);
    stats->slot_use =
        slots_ns > 0 ? (double)stats->working_ns / (double)slots_ns : 0;
}

void stats_init(struct stats *stats, const struct run_history *history)
{
    const struct plan *plan = history->plan;
    *stats = (struct stats){
        .history = history,
        .limit_waits_ns =
            mem_zalloc(plan->limit_count, sizeof(stats->limit_waits_ns[0])),
        .classes = mem_zalloc(plan->class_count, sizeof(stats->classes[0])),
        .tasks = mem_zalloc(plan->task_count, sizeof(stats->tasks[0])),
    };
    uint32_t *group_of = list_groups(stats);
    count_tasks(stats, group_of);
    stats_sum_groups(stats);
    add_sessions(stats, group_of);
    mem_free(group_of);
    list_failures(stats);
    measure_waits(stats);
    assign_lanes(stats);
    stats_replay(stats);
    add_totals(stats);
    stats_walk(stats);
    stats_draw(stats);
}

void stats_release(struct stats *stats)
{
    mem_free(stats->limit_waits_ns);
    mem_free(stats->lanes);
    mem_free(stats->caps);
    mem_free(stats->classes);
    mem_free(stats->groups);
    mem_free(stats->wholes);
    mem_free(stats->tasks);
    mem_free(stats->failures);
    mem_free(stats->path);
    sim_result_free(stats->chart);
    *stats = (struct stats){0};
}
