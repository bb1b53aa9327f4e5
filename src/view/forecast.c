/* SPDX-License-Identifier: MIT */
#include "view/forecast.h"

#include "base/duration.h"
#include "base/mem.h"

#include <stdlib.h>

static int64_t difference(const struct forecast_task *task)
{
    int64_t more_ns = task->took_ns - task->estimate_ns;
    return more_ns < 0 ? -more_ns : more_ns;
}

static int compare_tasks(const void *left, const void *right)
{
    const struct forecast_task *a = left;
    const struct forecast_task *b = right;
    if (difference(a) != difference(b)) {
        return difference(a) > difference(b) ? -1 : 1;
    }
    return (a->task > b->task) - (a->task < b->task);
}

/* Add the session times of a task; false if unknown (it was in a batch). */
static bool
add_sessions(const struct run_history *history, uint32_t task, int64_t *took_ns)
{
    uint32_t ix = history->tasks[task].last_session;
    if (ix == HISTORY_NONE) {
        return false;
    }
    for (; ix != HISTORY_NONE; ix = history->sessions[ix].before) {
        const struct run_history_session *session = &history->sessions[ix];
        if (session->task_count > 1) {
            return false;
        }
        if (session->outcome != HISTORY_REFUSED) {
            *took_ns =
                duration_sum(*took_ns, session->ended_ns - session->claimed_ns);
        }
    }
    return true;
}

static void list_tasks(struct forecast *forecast, const struct stats *stats)
{
    const struct run_history *history = stats->history;
    const struct plan *plan = history->plan;
    forecast->tasks = mem_zalloc(plan->task_count, sizeof(forecast->tasks[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        struct forecast_task made = {
            .task = ix,
            .estimate_ns = plan_estimate_ns(plan, task),
            .guessed = task->settings->estimate_ns == PLAN_UNSET,
        };
        forecast->guessed += made.guessed ? 1 : 0;
        if (history->tasks[ix].state == TASK_DONE &&
            add_sessions(history, ix, &made.took_ns)) {
            forecast->tasks[forecast->task_count++] = made;
        }
    }
    if (forecast->task_count > 1) {
        qsort(forecast->tasks,
              forecast->task_count,
              sizeof(forecast->tasks[0]),
              compare_tasks);
    }
}

void forecast_init(struct forecast *forecast, const struct stats *stats)
{
    *forecast = (struct forecast){.end = hindsight_of(stats->history)};
    list_tasks(forecast, stats);
    enum err err =
        run_history_read_plan(stats->history, &forecast->plan, &forecast->diag);
    if (err == ERR_OK) {
        struct sim_options options = {
            .policy = forecast->plan->policy,
            .rules = SIM_RULES_ALL,
            .seed = 1,
            .start_ns = stats->history->created_ns,
        };
        err = sim_run(&forecast->result,
                      forecast->plan,
                      &options,
                      &forecast->diag);
    }
    if (err != ERR_OK) {
        sim_result_free(forecast->result);
        forecast->result = NULL;
    }
}

void forecast_release(struct forecast *forecast)
{
    sim_result_free(forecast->result);
    plan_free(forecast->plan);
    mem_free(forecast->tasks);
    *forecast = (struct forecast){0};
}

bool forecast_is_whole(const struct forecast *forecast)
{
    return forecast->result != NULL && forecast->result->left_count == 0;
}
