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
        };
    }
    return ERR_OK;
}

bool script_take(struct sim *sim, enum script_outcome outcome, uint32_t ix)
{
    for (uint32_t n = 0; n < sim->planned_count; n++) {
        struct sim_planned *planned = &sim->planned[n];
        if (planned->outcome == outcome && planned->ix == ix &&
            planned->left > 0) {
            planned->left--;
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

/* Build the event for a request about a task, the run or a limit. */
static enum err event_of(const struct sim *sim,
                         const struct script_at *at,
                         struct sched_event *event,
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
    };
    event->type = types[at->request];
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
    if (task == PLAN_NONE) {
        return diag_set(diag,
                        ERR_INVALID,
                        "the plan has no task \"%s\"",
                        at->name);
    }
    event->task = load_task(sim->run, task);
    return ERR_OK;
}

static enum err
give(struct sim *sim, const struct script_at *at, struct diag *diag)
{
    if (at->request == SCRIPT_ADD) {
        return add_fragment(sim, at, diag);
    }
    struct sched_event event = {.now_ns = sim->now_ns};
    enum err err = event_of(sim, at, &event, diag);
    if (err != ERR_OK) {
        return err;
    }
    err = sched_apply(sim->sched, &event);
    if (err != ERR_OK) {
        const char *state =
            event.type == EVENT_LIMIT
                ? "not a limit that can be set to this"
                : sched_state_name(sched_task(sim->sched, event.task).state);
        return diag_set(diag,
                        err,
                        "request rejected: \"%s\" is %s",
                        at->name != NULL ? at->name : "sessions",
                        state);
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
