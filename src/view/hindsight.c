/* SPDX-License-Identifier: MIT */
#include "view/hindsight.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

enum {
    RUNS_MAX = 10,
    TASKS_MAX = 10000, /* of all compared runs; bounds the time */
};

/* Ids of the last finished runs, oldest first. */
struct list {
    uint32_t before;
    char *ids[RUNS_MAX];
    uint32_t count;
};

struct eta_end hindsight_of(const struct run_history *history)
{
    struct eta_end end = {0};
    struct plan *plan = NULL;
    struct diag ignored = {0};
    if (run_history_read_plan(history, &plan, &ignored) == ERR_OK) {
        end = eta_of_plan(plan, history->created_ns);
    }
    plan_free(plan);
    return end;
}

void hindsight_add(struct hindsight *hindsight,
                   const struct eta_end *end,
                   int64_t took_ns)
{
    if (end->runs == 0 || end->p50_ns <= 0 || took_ns <= 0) {
        return;
    }
    double error = fabs(log((double)took_ns / (double)end->p50_ns));
    double sum = hindsight->error * hindsight->runs + error;
    hindsight->runs++;
    hindsight->within += took_ns <= end->p90_ns ? 1 : 0;
    hindsight->error = sum / hindsight->runs;
}

static enum err list_run(void *ctx, const struct store_run *run)
{
    struct list *list = ctx;
    if (!run->finished || run->cancelled || run->number >= list->before) {
        return ERR_OK;
    }
    if (list->count == RUNS_MAX) {
        mem_free(list->ids[0]);
        list->count--;
        memmove(list->ids, list->ids + 1, list->count * sizeof(list->ids[0]));
    }
    list->ids[list->count++] = mem_strdup(run->id);
    return ERR_OK;
}

/* Compare a run; return the number of its tasks. */
static uint32_t
compare(struct hindsight *out, struct store *store, const char *id)
{
    struct run_history history;
    struct diag ignored = {0};
    uint32_t tasks = 0;
    if (run_history_read(&history, store, id, 0, &ignored) == ERR_OK) {
        struct eta_end end = hindsight_of(&history);
        hindsight_add(out, &end, history.end_ns);
        tasks = history.plan->task_count;
    }
    run_history_release(&history);
    return tasks;
}

enum err hindsight_read(struct hindsight *out,
                        struct store *store,
                        uint32_t number,
                        struct diag *diag)
{
    static const struct store_visitor visitor = {.run = list_run};
    static const struct store_query query = {.finished = true};
    struct list list = {.before = number};
    *out = (struct hindsight){0};
    enum err err = store_read(store, &query, &visitor, &list, NULL, diag);
    uint32_t tasks = 0;
    for (uint32_t ix = list.count;
         err == ERR_OK && ix > 0 && tasks <= TASKS_MAX;
         ix--) {
        tasks += compare(out, store, list.ids[ix - 1]);
    }
    for (uint32_t ix = 0; ix < list.count; ix++) {
        mem_free(list.ids[ix]);
    }
    return err;
}

double hindsight_percent(const struct hindsight *hindsight)
{
    return 100 * expm1(hindsight->error);
}

void hindsight_add_text(struct strbuf *out, const struct hindsight *hindsight)
{
    strbuf_addf(
        out,
        "%u of the last %u run%s ended within 90 %%, mean error %.0f %%",
        hindsight->within,
        hindsight->runs,
        hindsight->runs == 1 ? "" : "s",
        hindsight_percent(hindsight));
}
