/* SPDX-License-Identifier: MIT */
#include "tests/unit/past_fixture.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int64_t past_ns(double seconds)
{
    return (int64_t)(seconds * 1e9 + 0.5);
}

void past_init_take(struct past *past, struct plan *plan_take)
{
    *past = (struct past){0};
    run_history_init(&past->history, plan_take);
}

void past_init(struct past *past, const char *text)
{
    struct strbuf whole = {0};
    strbuf_addf(&whole, "sluice: 1\nname: test\n%s", text);
    struct plan_source source = {
        .file = "plan.yaml",
        .text = whole.text,
        .len = whole.len,
        .processors = 4,
    };
    struct plan_errors errors = {0};
    struct plan *plan;
    if (!plan_read(&plan, &source, &errors)) {
        fail_msg("%u: %s", errors.items[0].mark.line, errors.items[0].text);
    }
    strbuf_release(&whole);
    past_init_take(past, plan);
}

void past_release(struct past *past)
{
    stats_release(&past->stats);
    run_history_release(&past->history);
}

uint32_t past_task(const struct past *past, const char *id)
{
    uint32_t task = plan_find_task(past->history.plan, id);
    assert_int_not_equal(task, PLAN_NONE);
    return task;
}

static void add_event(struct past *past,
                      int64_t at_ns,
                      enum run_history_kind kind,
                      uint32_t task,
                      enum task_state to,
                      uint32_t number)
{
    run_history_add_event(&past->history,
                          &(struct run_history_event){
                              .at_ns = at_ns,
                              .kind = kind,
                              .task = task,
                              .to = to,
                              .number = number,
                          });
}

void past_move(struct past *past,
               double at_s,
               const char *id,
               enum task_state to)
{
    add_event(past, past_ns(at_s), HISTORY_TASK, past_task(past, id), to, 0);
}

/* The newest session of a task, or NULL. */
static struct run_history_session *newest(struct past *past, uint32_t task)
{
    uint32_t ix = past->history.tasks[task].last_session;
    return ix != HISTORY_NONE ? &past->history.sessions[ix] : NULL;
}

static void
claim(struct past *past, int64_t at_ns, uint32_t task, uint32_t task_count)
{
    const struct run_history_session *before = newest(past, task);
    uint32_t number = before != NULL ? before->number + 1 : 1;
    run_history_add_session(&past->history,
                            &(struct run_history_session){
                                .token = past->history.session_count + 1,
                                .task = task,
                                .number = number,
                                .task_count = task_count,
                                .claimed_ns = at_ns,
                                .begun_ns = at_ns,
                                .outcome = HISTORY_OPEN,
                            });
    add_event(past, at_ns, HISTORY_TASK, task, TASK_STARTING, number);
    add_event(past, at_ns, HISTORY_TASK, task, TASK_RUNNING, number);
}

void past_claim(struct past *past, double at_s, const char *id)
{
    claim(past, past_ns(at_s), past_task(past, id), 1);
}

static void end(struct past *past,
                int64_t at_ns,
                uint32_t task,
                enum run_history_outcome outcome,
                enum task_state to)
{
    struct run_history_session *session = newest(past, task);
    assert_non_null(session);
    session->ended_ns = at_ns;
    session->outcome = outcome;
    session->cause = "exit";
    add_event(past, at_ns, HISTORY_END, task, TASK_DONE, session->number);
    add_event(past, at_ns, HISTORY_TASK, task, to, session->number);
}

void past_end(struct past *past,
              double at_s,
              const char *id,
              enum run_history_outcome outcome,
              enum task_state to)
{
    end(past, past_ns(at_s), past_task(past, id), outcome, to);
}

void past_order(struct past *past,
                double at_s,
                enum run_history_kind kind,
                const char *id,
                int64_t max)
{
    run_history_add_event(&past->history,
                          &(struct run_history_event){
                              .at_ns = past_ns(at_s),
                              .kind = kind,
                              .task = id != NULL ? past_task(past, id) : 0,
                              .max = max,
                          });
}

/* The path goes from the submission to the end without a gap. */
static void check_path(const struct past *past)
{
    const struct stats *stats = &past->stats;
    int64_t at_ns = 0;
    int64_t sum_ns = 0;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        assert_int_equal(stats->path[ix].start_ns, at_ns);
        assert_true(stats->path[ix].end_ns >= at_ns);
        at_ns = stats->path[ix].end_ns;
    }
    for (uint32_t ix = 0; ix < STATS_STEPS; ix++) {
        sum_ns += stats->path_ns[ix];
    }
    if (past->history.session_count > 0) {
        assert_int_equal(at_ns, past->history.end_ns);
        assert_int_equal(sum_ns, past->history.end_ns);
    } else {
        assert_int_equal(stats->path_count, 0);
    }
}

/* No two sessions have one lane at one time. */
static void check_lanes(const struct past *past)
{
    const struct run_history *history = &past->history;
    for (uint32_t a = 0; a < history->session_count; a++) {
        const struct run_history_session *one = &history->sessions[a];
        assert_true(past->stats.lanes[a] < past->stats.lane_count);
        for (uint32_t b = a + 1; b < history->session_count; b++) {
            const struct run_history_session *other = &history->sessions[b];
            bool meet = one->claimed_ns < other->ended_ns &&
                        other->claimed_ns < one->ended_ns;
            assert_false(meet && past->stats.lanes[a] == past->stats.lanes[b]);
        }
    }
}

static void check_sums(const struct past *past)
{
    const struct stats *stats = &past->stats;
    const struct plan *plan = past->history.plan;
    int64_t idle_ns = 0;
    int64_t working_ns = 0;
    int64_t groups_ns = 0;
    int64_t sessions_ns = 0;
    for (uint32_t ix = 0; ix < STATS_IDLES; ix++) {
        assert_true(stats->idle_ns[ix] >= 0);
        idle_ns += stats->idle_ns[ix];
    }
    assert_int_equal(stats->working_ns + idle_ns,
                     stats->offered_ns + stats->over_ns);
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        working_ns += stats->classes[ix].sum.working_ns;
    }
    for (uint32_t ix = 0; ix < stats->group_count; ix++) {
        groups_ns += stats->groups[ix].sum.working_ns;
    }
    for (uint32_t ix = 0; ix < past->history.session_count; ix++) {
        const struct run_history_session *session = &past->history.sessions[ix];
        sessions_ns += session->ended_ns - session->claimed_ns;
    }
    assert_int_equal(working_ns, stats->working_ns);
    assert_int_equal(groups_ns, stats->working_ns);
    assert_int_equal(sessions_ns, stats->working_ns);
    for (uint32_t ix = 0; ix < STATS_REASONS; ix++) {
        assert_true(stats->waits_ns[ix] >= 0);
    }
}

void past_settle(struct past *past, double now_s)
{
    run_history_finish(&past->history, past_ns(now_s));
    stats_init(&past->stats, &past->history);
    check_path(past);
    check_lanes(past);
    check_sums(past);
}

/* --- out of a simulation ------------------------------------------------ */

enum what { WHAT_END, WHAT_READY, WHAT_CLAIM };

struct happening {
    int64_t at_ns;
    enum what what;
    uint32_t span;
};

static int compare_happenings(const void *left, const void *right)
{
    const struct happening *a = left;
    const struct happening *b = right;
    if (a->at_ns != b->at_ns) {
        return a->at_ns < b->at_ns ? -1 : 1;
    }
    if (a->what != b->what) {
        return a->what < b->what ? -1 : 1;
    }
    return (a->span > b->span) - (a->span < b->span);
}

static bool is_first(const struct sim_result *result, uint32_t span)
{
    return span == 0 ||
           result->spans[span - 1].session != result->spans[span].session;
}

static uint32_t tasks_of(const struct sim_result *result, uint32_t span)
{
    uint32_t count = 1;
    while (span + count < result->span_count &&
           result->spans[span + count].session == result->spans[span].session) {
        count++;
    }
    return count;
}

static void tell(struct past *past,
                 const struct sim_result *result,
                 const struct happening *now)
{
    static const enum run_history_outcome outcomes[] = {
        [SIM_END_DONE] = HISTORY_DONE,
        [SIM_END_FAILED] = HISTORY_FAILED,
        [SIM_END_CHANGES] = HISTORY_CHANGES,
        [SIM_END_BLOCKED] = HISTORY_BLOCKED,
        [SIM_END_CHECKPOINT] = HISTORY_CHECKPOINT,
    };
    const struct sim_span *span = &result->spans[now->span];
    bool first = is_first(result, now->span);
    enum task_state to;
    switch (now->what) {
    case WHAT_READY:
        add_event(past, now->at_ns, HISTORY_TASK, span->task, TASK_READY, 0);
        break;
    case WHAT_CLAIM:
        if (first) {
            claim(past, now->at_ns, span->task, tasks_of(result, now->span));
        } else {
            add_event(past,
                      now->at_ns,
                      HISTORY_TASK,
                      span->task,
                      TASK_STARTING,
                      0);
        }
        break;
    case WHAT_END:
        assert_true(span->end <= SIM_END_CHECKPOINT);
        to = span->end == SIM_END_DONE ? TASK_DONE : TASK_WAITING;
        if (first) {
            end(past, now->at_ns, span->task, outcomes[span->end], to);
        } else {
            add_event(past, now->at_ns, HISTORY_TASK, span->task, to, 0);
        }
        break;
    }
}

void past_replay(struct past *past, const struct sim_result *result)
{
    const struct plan *plan = past->history.plan;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        add_event(past, 0, HISTORY_TASK, ix, TASK_WAITING, 0);
    }
    struct happening *all =
        mem_zalloc((size_t)result->span_count * 3, sizeof(all[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        all[count++] = (struct happening){span->ready_ns, WHAT_READY, ix};
        all[count++] = (struct happening){span->start_ns, WHAT_CLAIM, ix};
        all[count++] = (struct happening){span->end_ns, WHAT_END, ix};
    }
    qsort(all, count, sizeof(all[0]), compare_happenings);
    for (uint32_t ix = 0; ix < count; ix++) {
        tell(past, result, &all[ix]);
    }
    mem_free(all);
}
