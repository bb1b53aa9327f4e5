/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a plan. A plan that is read must hold what plan.h promises.
 * Then a fragment is tried on it: what stands behind "%%%", or the second half
 * of the bytes. More than once, because the second time finds names taken. The
 * bytes are also tried as the settings of a store.
 */
#include "base/invariant.h"
#include "plan/load.h"
#include "plan/plan.h"
#include "plan/site.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In the year 2026 */
#define NOW_NS INT64_C(1780000000000000000)

/* Every index is in range, every list sorted, every text there. */
static void check_task(const struct plan *plan, uint32_t ix)
{
    const struct plan_task *task = &plan->tasks[ix];
    INVARIANT(plan_find_task(plan, task->id) == ix);
    INVARIANT(task->class_ix < plan->class_count);
    INVARIANT(task->provider < plan->provider_count);
    INVARIANT(task->group == PLAN_NONE || task->group < plan->group_count);
    INVARIANT(task->repo == PLAN_NONE || task->repo < plan->repo_count);
    int kinds = (task->run.shell != NULL) + (task->run.argv != NULL) +
                task->merge + task->base_gate + (task->agent != PLAN_NONE);
    INVARIANT(kinds == 1);
    INVARIANT(task->agent == PLAN_NONE || task->agent < plan->agent_count);
    INVARIANT(!task->merge || task->repo != PLAN_NONE);
    INVARIANT(task->settings->timeout_ns > 0);
    INVARIANT(task->settings->idle_timeout_ns > 0);
    INVARIANT(task->rework_to == PLAN_NONE ||
              (task->rework_to < plan->task_count && task->rework_max > 0));
    for (uint32_t at = 0; at < task->need_count; at++) {
        INVARIANT(task->needs[at] < plan->task_count);
        INVARIANT(task->needs[at] != ix);
        INVARIANT(at == 0 || task->needs[at - 1] < task->needs[at]);
        INVARIANT(task->ons[at] <= PLAN_ON_ANY);
    }
    INVARIANT(plan_is_within(plan, task->group, task->scope));
    INVARIANT(task->scope == PLAN_NONE || plan->groups[task->scope].has_last);
    INVARIANT(!task->last || task->settings->optional);
    for (uint32_t at = 1; at < task->labels.count; at++) {
        INVARIANT(strcmp(task->labels.items[at - 1], task->labels.items[at]) <
                  0);
    }
    for (uint32_t at = 0; at < task->use_count; at++) {
        INVARIANT(task->uses[at].limit < plan->limit_count);
        INVARIANT(task->uses[at].units > 0);
        INVARIANT(at == 0 || task->uses[at - 1].limit < task->uses[at].limit);
    }
    for (uint32_t at = 1; at < task->attribute_count; at++) {
        INVARIANT(strcmp(task->attributes[at - 1].name,
                         task->attributes[at].name) < 0);
    }
}

static void check_plan(const struct plan *plan)
{
    uint32_t in_groups = 0;
    uint32_t counted = 0;
    INVARIANT(plan->task_count > 0);
    INVARIANT(plan->limit_count >= 5);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        check_task(plan, ix);
        in_groups += plan->tasks[ix].group != PLAN_NONE ? 1 : 0;
    }
    for (uint32_t ix = 0; ix < plan->group_count; ix++) {
        const struct plan_group *group = &plan->groups[ix];
        counted += group->task_count;
        INVARIANT(group->parent == PLAN_NONE || group->parent < ix);
    }
    INVARIANT(in_groups == counted);
    for (uint32_t ix = 0; ix < plan->edge_count; ix++) {
        INVARIANT(plan->edges[ix].dependent < plan->task_count);
        INVARIANT(plan->edges[ix].need < plan->task_count);
    }
}

/* The core accepts what the reader accepts, but for the number of tasks. */
static void load(const struct plan *plan)
{
    struct sched *sched = sched_new();
    struct load *loader = load_new(sched);
    struct load_run *run = NULL;
    struct diag diag = {0};
    struct load_options options = {.start_ns = NOW_NS, .not_before_ns = NOW_NS};
    enum err err = load_plan(loader, 0, plan, &options, &run, &diag);
    INVARIANT(err == ERR_OK || err == ERR_LIMIT);
    load_free(loader);
    sched_free(sched);
}

/* Add a fragment; take it back when it was accepted and `undo` is set. */
static void
try_fragment(struct plan *plan, const char *text, size_t len, bool undo)
{
    struct plan_source source = {.file = "fuzz", .text = text, .len = len};
    struct plan_errors errors = {0};
    uint32_t tasks = plan->task_count;
    uint32_t limits = plan->limit_count;
    bool added = plan_add(plan, &source, &errors);
    INVARIANT(added == (errors.count == 0));
    check_plan(plan);
    if (added && undo) {
        plan_undo_add(plan);
        check_plan(plan);
    }
    if (!added || undo) {
        INVARIANT(plan->task_count == tasks);
        INVARIANT(plan->limit_count == limits);
    }
    plan_errors_release(&errors);
}

/* The same bytes as the settings of a store. */
static void try_settings(const char *text, size_t len)
{
    struct site site;
    struct plan_errors errors = {0};
    bool good = site_read(&site, text, len, &errors);
    INVARIANT(good == (errors.count == 0));
    INVARIANT(good || site.limit_count == 0);
    for (uint32_t ix = 0; ix < site.limit_count; ix++) {
        INVARIANT(site.limits[ix].name[0] != '\0');
        INVARIANT(site.limits[ix].max >= 0);
    }
    site_release(&site);
    plan_errors_release(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *mark = memmem(text, size, "%%%", 3);
    size_t len = mark != NULL ? (size_t)(mark - text) : size;
    struct plan_source source = {.file = "fuzz",
                                 .text = text,
                                 .len = len,
                                 .processors = 2};
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    try_settings(text, len);
    bool read = plan_read(&plan, &source, &errors);
    INVARIANT(read == (plan != NULL) && read == (errors.count == 0));
    plan_errors_release(&errors);
    if (read) {
        const char *rest = mark != NULL ? mark + 3 : text + size / 2;
        size_t rest_len = (size_t)(text + size - rest);
        check_plan(plan);
        (void)plan_find_past(plan, NOW_NS, &errors);
        plan_errors_release(&errors);
        try_fragment(plan, rest, rest_len, true);
        try_fragment(plan, rest, rest_len, false);
        try_fragment(plan, rest, rest_len, false);
        load(plan);
    }
    plan_free(plan);
    return 0;
}
