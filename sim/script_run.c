/* SPDX-License-Identifier: MIT */
/* Execution of the script: operator requests, and planned outcomes. */
#include "base/duration.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "sim/sim_internal.h"

#include <string.h>

/* Return the index of a provider by its name, or PLAN_NONE. */
static uint32_t find_provider(const struct plan *plan, const char *name)
{
    for (uint32_t ix = 0; ix < plan->provider_count; ix++) {
        if (strcmp(plan->providers[ix].name, name) == 0) {
            return ix;
        }
    }
    return PLAN_NONE;
}

static uint32_t
find_named(const struct plan *plan, bool provider, const char *name)
{
    return provider ? find_provider(plan, name) : plan_find_task(plan, name);
}

enum err script_resolve(struct sim *sim, struct diag *diag)
{
    const struct sim_script *script = sim->options->script;
    if (script == NULL) {
        return ERR_OK;
    }
    sim->planned = mem_zalloc(script->end_count, sizeof(sim->planned[0]));
    for (uint32_t n = 0; n < script->end_count; n++) {
        const struct script_end *end = &script->ends[n];
        bool refused = end->outcome == SCRIPT_REFUSE;
        /* An id may have a suffix like a count: try the whole word first. */
        uint32_t ix = find_named(sim->plan, refused, end->word);
        uint32_t left = 1;
        if (ix == PLAN_NONE) {
            ix = find_named(sim->plan, refused, end->name);
            left = end->count;
        }
        if (ix == PLAN_NONE) {
            return diag_set(diag,
                            ERR_INVALID,
                            "the plan has no %s \"%s\"",
                            refused ? "provider" : "task",
                            end->name);
        }
        sim->planned[sim->planned_count++] = (struct sim_planned){
            .outcome = end->outcome,
            .ix = ix,
            .left = left,
            .later_ns = end->later_ns,
        };
    }
    return ERR_OK;
}

const struct sim_planned *
script_take(struct sim *sim, enum script_outcome outcome, uint32_t ix)
{
    for (uint32_t n = 0; n < sim->planned_count; n++) {
        struct sim_planned *planned = &sim->planned[n];
        if (planned->outcome == outcome && planned->ix == ix &&
            planned->left > 0) {
            planned->left--;
            return planned;
        }
    }
    return NULL;
}

bool script_approves(const struct sim *sim, const char *task)
{
    const struct sim_script *script = sim->options->script;
    for (uint32_t ix = 0; script != NULL && ix < script->request_count; ix++) {
        const struct script_at *at = &script->requests[ix];
        if (at->request == SCRIPT_APPROVE && strcmp(at->name, task) == 0) {
            return true;
        }
    }
    return false;
}

static enum err
add_fragment(struct sim *sim, const struct script_at *at, struct diag *diag)
{
    struct plan_source source = {
        .file = at->name,
        .text = at->text,
        .len = at->text_bytes,
    };
    struct plan_errors errors = {0};
    if (!plan_add(sim->plan, &source, &errors)) {
        struct strbuf text = {0};
        for (uint32_t ix = 0; ix < errors.count; ix++) {
            strbuf_addf(&text,
                        "%s%s:%u:%u: %s",
                        ix > 0 ? "\n" : "",
                        at->name,
                        errors.items[ix].mark.line,
                        errors.items[ix].mark.column,
                        errors.items[ix].text);
        }
        enum err err = diag_set(diag, ERR_INVALID, "%s", strbuf_text(&text));
        strbuf_release(&text);
        plan_errors_release(&errors);
        return err;
    }
    plan_errors_release(&errors);
    enum err err = load_more(sim->run, sim->now_ns, diag);
    if (err != ERR_OK) {
        plan_undo_add(sim->plan);
        return err;
    }
    sim_reserve(sim);
    return ERR_OK;
}

static bool takes_group(enum script_request request)
{
    return request == SCRIPT_CANCEL || request == SCRIPT_HOLD ||
           request == SCRIPT_PRIORITY || request == SCRIPT_RELEASE ||
           request == SCRIPT_RETRY || request == SCRIPT_SKIP;
}

/* Build the event for a request about a task, the run or a limit, or about the
 * tasks of *group. */
static enum err event_of(const struct sim *sim,
                         const struct script_at *at,
                         struct sched_event *event,
                         uint32_t *group,
                         struct diag *diag)
{
    bool run = at->name != NULL && strcmp(at->name, "run") == 0;
    static const enum sched_event_type types[] = {
        [SCRIPT_CAP] = EVENT_LIMIT,
        [SCRIPT_LIMIT] = EVENT_LIMIT,
        [SCRIPT_PAUSE] = EVENT_PAUSE,
        [SCRIPT_RESUME] = EVENT_RESUME,
        [SCRIPT_HOLD] = EVENT_HOLD,
        [SCRIPT_RELEASE] = EVENT_RELEASE,
        [SCRIPT_RETRY] = EVENT_RETRY,
        [SCRIPT_SKIP] = EVENT_SKIP,
        [SCRIPT_CANCEL] = EVENT_CANCEL,
        [SCRIPT_REVOKE] = EVENT_REVOKE,
        [SCRIPT_APPROVE] = EVENT_APPROVE,
        [SCRIPT_FIRST] = EVENT_FIRST,
        [SCRIPT_PRIORITY] = EVENT_PRIORITY,
        [SCRIPT_RERUN] = EVENT_RERUN,
    };
    event->type = types[at->request];
    event->task.v = ID_NONE;
    event->run = load_run_id(sim->run);
    event->max = at->max;
    event->percent = at->percent;
    if (at->request == SCRIPT_PAUSE || at->request == SCRIPT_RESUME) {
        return ERR_OK;
    }
    if (at->request == SCRIPT_CAP || at->request == SCRIPT_LIMIT) {
        uint32_t limit = at->request == SCRIPT_CAP
                             ? 0
                             : plan_find_limit(sim->plan, at->name);
        if (limit == PLAN_NONE) {
            return diag_set(diag,
                            ERR_INVALID,
                            "the plan has no limit \"%s\"",
                            at->name);
        }
        event->limit = load_limit(sim->run, limit);
        return ERR_OK;
    }
    if (run && (at->request == SCRIPT_RETRY || at->request == SCRIPT_CANCEL)) {
        event->type =
            at->request == SCRIPT_RETRY ? EVENT_RETRY_RUN : EVENT_CANCEL_RUN;
        return ERR_OK;
    }
    uint32_t task = plan_find_task(sim->plan, at->name);
    if (task != PLAN_NONE) {
        event->task = load_task(sim->run, task);
        return ERR_OK;
    }
    if (!takes_group(at->request)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "the plan has no task \"%s\"",
                        at->name);
    }
    *group = plan_find_group(sim->plan, at->name);
    return *group != PLAN_NONE ? ERR_OK
                               : diag_set(diag,
                                          ERR_INVALID,
                                          "the plan has no task or group "
                                          "\"%s\"",
                                          at->name);
}

/* Whether a request about a group is for this task. `second`: it was for none
 * at first. A retry is for tasks that have given up, or else for those that
 * back off; the withdrawal of tasks is for last tasks if there are no others.
 */
static bool
concerns(const struct sim *sim, const struct sched_event *event, bool second)
{
    struct sched_task task = sched_task(sim->sched, event->task);
    bool gave_up = task.state == TASK_PARKED || task.state == TASK_FAILED;
    if (event->type == EVENT_RETRY) {
        return second ? task.backing_off : gave_up;
    }
    if (event->type == EVENT_SKIP || event->type == EVENT_CANCEL) {
        return task.last == second;
    }
    return !second;
}

/* Apply an event to the tasks of a group and of its parts that allow it, as the
 * engine does: dependents first. */
static enum err
give_group(struct sim *sim, struct sched_event event, uint32_t group)
{
    bool applied = false;
    uint32_t *order = issues_order(sim->plan);
    for (uint32_t second = 0; second < 2 && !applied; second++) {
        for (uint32_t n = 0; n < sim->plan->task_count; n++) {
            const struct plan_task *task = &sim->plan->tasks[order[n]];
            event.task = load_task(sim->run, order[n]);
            if (task->group != PLAN_NONE &&
                plan_is_within(sim->plan, task->group, group) &&
                concerns(sim, &event, second > 0)) {
                applied = sched_apply(sim->sched, &event) == ERR_OK || applied;
            }
        }
    }
    mem_free(order);
    return applied ? ERR_OK : ERR_CONFLICT;
}

/* Describe why a request was rejected. */
static const char *state_of(const struct sim *sim,
                            const struct sched_event *event)
{
    if (event->type == EVENT_LIMIT) {
        return "not a limit that can be set to this";
    }
    if (event->task.v == ID_NONE) {
        return "not a group with a task that allows this";
    }
    struct sched_task task = sched_task(sim->sched, event->task);
    if (event->type == EVENT_APPROVE && task.state == TASK_READY) {
        return "ready, and does not wait for approval";
    }
    return sched_state_name(task.state);
}

static enum err
give(struct sim *sim, const struct script_at *at, struct diag *diag)
{
    if (at->request == SCRIPT_ADD) {
        return add_fragment(sim, at, diag);
    }
    struct sched_event event = {.now_ns = sim->now_ns};
    uint32_t group = PLAN_NONE;
    enum err err = event_of(sim, at, &event, &group, diag);
    if (err != ERR_OK) {
        return err;
    }
    err = group != PLAN_NONE ? give_group(sim, event, group)
                             : sched_apply(sim->sched, &event);
    if (err != ERR_OK && sim->options->replay == NULL) {
        return diag_set(diag,
                        err,
                        "request rejected: \"%s\" is %s",
                        at->name != NULL ? at->name : "sessions",
                        state_of(sim, &event));
    }
    return ERR_OK;
}

enum err script_next(struct sim *sim, struct diag *diag)
{
    const struct script_at *at =
        &sim->options->script->requests[sim->next_request];
    sim->next_request++;
    struct diag inner = {0};
    enum err err = give(sim, at, &inner);
    if (err != ERR_OK) {
        struct strbuf time = {0};
        duration_add(&time, at->at_ns);
        (void)diag_set(diag, err, "at %s: %s", strbuf_text(&time), inner.text);
        strbuf_release(&time);
    }
    return err;
}
