/* SPDX-License-Identifier: MIT */
/*
 * Sums over sessions; what is over time is in facts_replay.c, the path in
 * facts_path.c. The sessions of a batch count with their first task, because
 * tokens and cost are known of the session only.
 */
#include "view/stats.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "view/stats_internal.h"

#include <stdlib.h>
#include <string.h>

const char *facts_reason_name(enum facts_reason reason)
{
    static const char *const names[FACTS_REASONS] = {
        [FACTS_NEEDS] = "needs",
        [FACTS_BACKOFF] = "backoff",
        [FACTS_PERSON] = "person",
        [FACTS_HELD] = "held",
        [FACTS_PAUSED] = "paused",
        [FACTS_SLOT] = "slot",
        [FACTS_LIMIT] = "limit",
        [FACTS_DEFERRED] = "deferred",
        [FACTS_PROVIDER] = "provider",
        [FACTS_OTHER] = "other",
    };
    INVARIANT(reason < FACTS_REASONS);
    return names[reason];
}

const char *facts_idle_name(enum facts_idle idle)
{
    static const char *const names[FACTS_IDLES] = {
        [FACTS_IDLE_KEPT] = "kept-back",
        [FACTS_IDLE_NONE] = "nothing-ready",
        [FACTS_IDLE_REST] = "at-rest",
    };
    INVARIANT(idle < FACTS_IDLES);
    return names[idle];
}

const char *facts_step_name(enum facts_step step)
{
    static const char *const names[FACTS_STEPS] = {
        [FACTS_STEP_WORK] = "work",
        [FACTS_STEP_PASS] = "turn",
        [FACTS_STEP_BACKOFF] = "backoff",
        [FACTS_STEP_PERSON] = "person",
        [FACTS_STEP_PROVIDER] = "provider",
        [FACTS_STEP_KEPT] = "kept-back",
        [FACTS_STEP_ABSENT] = "absent",
        [FACTS_STEP_TAIL] = "tail",
    };
    INVARIANT(step < FACTS_STEPS);
    return names[step];
}

const char *facts_link_name(enum facts_link link)
{
    switch (link) {
    case FACTS_LINK_NONE:
        return "none";
    case FACTS_LINK_NEED:
        return "need";
    case FACTS_LINK_SLOT:
        return "slot";
    case FACTS_LINK_SELF:
        return "self";
    case FACTS_LINK_REWORK:
        return "rework";
    }
    return "none";
}

uint32_t facts_bad(const struct facts_sum *sum)
{
    uint32_t count = 0;
    for (enum chronicle_outcome ix = 0; ix < CHRONICLE_OUTCOMES; ix++) {
        count += chronicle_is_bad(ix) ? sum->outcomes[ix] : 0;
    }
    return count;
}

int64_t facts_slots_ns(const struct facts *facts)
{
    return duration_sum(facts->offered_ns, facts->over_ns);
}

int64_t facts_last_cap(const struct facts *facts)
{
    return facts->caps[facts->cap_count - 1].max;
}

const char *facts_group_id(const struct facts *facts, uint32_t group)
{
    const struct plan *plan = facts->chronicle->plan;
    uint32_t task = facts->groups[group].first_task;
    uint32_t ix = plan->tasks[task].group;
    return ix != PLAN_NONE ? plan->groups[ix].id : plan->tasks[task].id;
}

/* --- sums --------------------------------------------------------------- */

static void add_session(struct facts_sum *sum,
                        const struct chronicle_session *session)
{
    int64_t took_ns = session->ended_ns - session->claimed_ns;
    sum->sessions++;
    sum->outcomes[session->outcome]++;
    facts_add(&sum->working_ns, 1, took_ns);
    sum->longest_ns = took_ns > sum->longest_ns ? took_ns : sum->longest_ns;
    facts_add(&sum->input_tokens, 1, session->input_tokens);
    facts_add(&sum->output_tokens, 1, session->output_tokens);
    sum->usd += session->usd;
}

/* The groups that have a task; `of` says which one each task is in. */
static uint32_t *list_groups(struct facts *facts)
{
    const struct plan *plan = facts->chronicle->plan;
    uint32_t *of = mem_zalloc(plan->task_count, sizeof(of[0]));
    uint32_t *known = mem_zalloc(plan->group_count, sizeof(known[0]));
    facts->groups = mem_zalloc(plan->task_count, sizeof(facts->groups[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t group = plan->tasks[ix].group;
        if (group != PLAN_NONE && known[group] > 0) {
            of[ix] = known[group] - 1;
            continue;
        }
        of[ix] = facts->group_count++;
        facts->groups[of[ix]].first_task = ix;
        facts->groups[of[ix]].begun_ns = -1;
        if (group != PLAN_NONE) {
            known[group] = of[ix] + 1;
        }
    }
    mem_free(known);
    return of;
}

static void add_sessions(struct facts *facts, const uint32_t *group_of)
{
    const struct chronicle *chronicle = facts->chronicle;
    const struct plan *plan = chronicle->plan;
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        const struct chronicle_session *session = &chronicle->sessions[ix];
        struct facts_task *task = &facts->tasks[session->task];
        struct facts_group *group = &facts->groups[group_of[session->task]];
        uint32_t class_ix = plan->tasks[session->task].class_ix;
        add_session(&facts->sum, session);
        add_session(&facts->classes[class_ix].sum, session);
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
        if (session->before != CHRONICLE_NONE) {
            enum chronicle_outcome before =
                chronicle->sessions[session->before].outcome;
            facts->retries +=
                before == CHRONICLE_FAILED || before == CHRONICLE_LOST ? 1 : 0;
        }
        if (plan->classes[class_ix].role == PLAN_ROLE_REVIEW) {
            facts_add(&facts->review_ns,
                      1,
                      session->ended_ns - session->claimed_ns);
        }
    }
}

static void count_tasks(struct facts *facts, const uint32_t *group_of)
{
    const struct chronicle *chronicle = facts->chronicle;
    const struct plan *plan = chronicle->plan;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        struct facts_class *class = &facts->classes[plan->tasks[ix].class_ix];
        struct facts_group *group = &facts->groups[group_of[ix]];
        enum task_state state = chronicle->tasks[ix].state;
        uint32_t done = state == TASK_DONE ? 1 : 0;
        facts->states[state]++;
        facts->tasks[ix].begun_ns = -1;
        facts->tasks[ix].ended_ns = -1;
        class->tasks++;
        class->done += done;
        group->tasks++;
        group->done += done;
    }
}

/* --- sessions that did not end well ------------------------------------- */

static struct facts_failure *
find_failure(struct facts *facts,
             uint32_t class_ix,
             const struct chronicle_session *session)
{
    const char *cause = session->cause != NULL ? session->cause : "";
    for (uint32_t ix = 0; ix < facts->failure_count; ix++) {
        struct facts_failure *failure = &facts->failures[ix];
        if (failure->class_ix == class_ix &&
            failure->outcome == session->outcome &&
            strcmp(failure->cause, cause) == 0) {
            return failure;
        }
    }
    if (facts->failure_count % 16 == 0) {
        facts->failures = mem_resize(facts->failures,
                                     (size_t)facts->failure_count + 16,
                                     sizeof(facts->failures[0]));
    }
    struct facts_failure *made = &facts->failures[facts->failure_count++];
    *made = (struct facts_failure){
        .class_ix = class_ix,
        .outcome = session->outcome,
        .cause = cause,
    };
    return made;
}

static int compare_failures(const void *left, const void *right)
{
    const struct facts_failure *a = left;
    const struct facts_failure *b = right;
    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }
    return (a->last > b->last) - (a->last < b->last);
}

static void list_failures(struct facts *facts)
{
    const struct chronicle *chronicle = facts->chronicle;
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        const struct chronicle_session *session = &chronicle->sessions[ix];
        if (!chronicle_is_bad(session->outcome)) {
            continue;
        }
        uint32_t class_ix = chronicle->plan->tasks[session->task].class_ix;
        struct facts_failure *failure = find_failure(facts, class_ix, session);
        failure->count++;
        facts_add(&failure->lost_ns,
                  1,
                  session->ended_ns - session->claimed_ns);
        failure->last = ix;
    }
    if (facts->failure_count > 1) {
        qsort(facts->failures,
              facts->failure_count,
              sizeof(facts->failures[0]),
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

static void measure_class(struct facts_class *class, int64_t *waits_ns)
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
    /* The smallest wait that at least 99 % of the starts do not exceed. */
    uint32_t rank = (uint32_t)(((uint64_t) class->starts * 99 + 99) / 100);
    class->ready_p99_ns = waits_ns[rank - 1];
    class->ready_max_ns = waits_ns[class->starts - 1];
}

static bool is_claim(const struct chronicle_event *event)
{
    return event->kind == CHRONICLE_TASK && event->to == TASK_STARTING;
}

/* Fill the waits of each class, one class behind the other. */
static void measure_waits(struct facts *facts)
{
    const struct chronicle *chronicle = facts->chronicle;
    const struct plan *plan = chronicle->plan;
    for (uint32_t ix = 0; ix < chronicle->event_count; ix++) {
        const struct chronicle_event *event = &chronicle->events[ix];
        if (is_claim(event)) {
            facts->classes[plan->tasks[event->task].class_ix].starts++;
        }
    }
    int64_t *waits_ns = mem_zalloc(chronicle->event_count, sizeof(waits_ns[0]));
    uint32_t *next = mem_zalloc(plan->class_count, sizeof(next[0]));
    for (uint32_t ix = 1; ix < plan->class_count; ix++) {
        next[ix] = next[ix - 1] + facts->classes[ix - 1].starts;
    }
    for (uint32_t ix = 0; ix < chronicle->event_count; ix++) {
        const struct chronicle_event *event = &chronicle->events[ix];
        if (event->kind != CHRONICLE_TASK) {
            continue;
        }
        int64_t waited_ns = 0;
        if (event->before != CHRONICLE_NONE &&
            chronicle->events[event->before].to == TASK_READY) {
            waited_ns = event->at_ns - chronicle->events[event->before].at_ns;
            facts->tasks[event->task].ready_ns += waited_ns;
        }
        if (is_claim(event)) {
            waits_ns[next[plan->tasks[event->task].class_ix]++] = waited_ns;
        }
    }
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        struct facts_class *class = &facts->classes[ix];
        measure_class(class, waits_ns + (next[ix] - class->starts));
    }
    mem_free(waits_ns);
    mem_free(next);
}

/* --- lanes -------------------------------------------------------------- */

static int compare_claims(const void *left, const void *right, void *ctx)
{
    const struct chronicle_session *sessions = ctx;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    if (sessions[a].claimed_ns != sessions[b].claimed_ns) {
        return sessions[a].claimed_ns < sessions[b].claimed_ns ? -1 : 1;
    }
    return (a > b) - (a < b);
}

/* Give each session the lowest lane that is free when it is claimed. */
static void assign_lanes(struct facts *facts)
{
    const struct chronicle *chronicle = facts->chronicle;
    uint32_t count = chronicle->session_count;
    uint32_t *order = mem_zalloc(count, sizeof(order[0]));
    int64_t *free_ns = mem_zalloc(count, sizeof(free_ns[0]));
    facts->lanes = mem_zalloc(count, sizeof(facts->lanes[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        order[ix] = ix;
    }
    if (count > 1) {
        qsort_r(order,
                count,
                sizeof(order[0]),
                compare_claims,
                chronicle->sessions);
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct chronicle_session *session =
            &chronicle->sessions[order[ix]];
        uint32_t lane = 0;
        while (lane < facts->lane_count &&
               free_ns[lane] > session->claimed_ns) {
            lane++;
        }
        facts->lane_count += lane == facts->lane_count ? 1 : 0;
        free_ns[lane] = session->ended_ns;
        facts->lanes[order[ix]] = lane;
    }
    mem_free(order);
    mem_free(free_ns);
}

/* --- all ---------------------------------------------------------------- */

static void add_totals(struct facts *facts)
{
    const struct plan *plan = facts->chronicle->plan;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        facts->starved_ns += facts->classes[ix].starved_ns;
        for (uint32_t n = 0; n < FACTS_REASONS; n++) {
            facts_add(&facts->waits_ns[n], 1, facts->classes[ix].waits_ns[n]);
        }
    }
    int64_t slots_ns = facts_slots_ns(facts);
    facts->slot_use =
        slots_ns > 0 ? (double)facts->working_ns / (double)slots_ns : 0;
}

void facts_init(struct facts *facts, const struct chronicle *chronicle)
{
    const struct plan *plan = chronicle->plan;
    *facts = (struct facts){
        .chronicle = chronicle,
        .limit_waits_ns =
            mem_zalloc(plan->limit_count, sizeof(facts->limit_waits_ns[0])),
        .classes = mem_zalloc(plan->class_count, sizeof(facts->classes[0])),
        .tasks = mem_zalloc(plan->task_count, sizeof(facts->tasks[0])),
    };
    uint32_t *group_of = list_groups(facts);
    count_tasks(facts, group_of);
    add_sessions(facts, group_of);
    mem_free(group_of);
    list_failures(facts);
    measure_waits(facts);
    assign_lanes(facts);
    facts_replay(facts);
    add_totals(facts);
    facts_walk(facts);
    facts_draw(facts);
}

void facts_release(struct facts *facts)
{
    mem_free(facts->limit_waits_ns);
    mem_free(facts->lanes);
    mem_free(facts->caps);
    mem_free(facts->classes);
    mem_free(facts->groups);
    mem_free(facts->tasks);
    mem_free(facts->failures);
    mem_free(facts->path);
    sim_result_free(facts->chart);
    *facts = (struct facts){0};
}
