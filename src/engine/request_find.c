/* SPDX-License-Identifier: MIT */
/*
 * What a request refers to: its members, and the run, task or group that it
 * names.
 */
#include "engine/request_internal.h"

#include "plan/suggest.h"

#include <string.h>

struct jsonw request_extra(struct request *request)
{
    return (struct jsonw){.out = &request->extra};
}

void request_add(struct request *request, const char *name, const char *text)
{
    struct jsonw json = request_extra(request);
    jsonw_text(&json, name, text);
}

void request_add_count(struct request *request, const char *name, int64_t count)
{
    struct jsonw json = request_extra(request);
    jsonw_int(&json, name, count);
}

const char *request_text(const struct request *request, const char *name)
{
    return json_string_value(json_object_get(request->json, name));
}

/* Return the run with that id, or STORE_NONE. One that has finished, and is
 * still loaded, gets no more requests. */
static uint32_t find_unfinished(const struct engine *engine, const char *id)
{
    uint32_t ix = engine_find_run(engine, id);
    return ix != STORE_NONE && engine->runs[ix].finished ? STORE_NONE : ix;
}

uint32_t request_find_run(struct request *request)
{
    struct engine *engine = request->engine;
    const char *id = request_text(request, "run");
    if (id != NULL) {
        uint32_t ix = find_unfinished(engine, id);
        if (ix == STORE_NONE) {
            request->missing = diag_set(&request->diag,
                                        ERR_NOT_FOUND,
                                        "no unfinished run \"%s\"",
                                        id);
        }
        return ix;
    }
    uint32_t found = STORE_NONE;
    struct strbuf names = {0};
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        if (!engine->runs[ix].finished) {
            found = ix;
            strbuf_addf(&names,
                        "%s%s",
                        count++ > 0 ? ", " : "",
                        engine->runs[ix].id);
        }
    }
    if (count == 0) {
        request->missing =
            diag_set(&request->diag, ERR_NOT_FOUND, "no unfinished run");
    } else if (count > 1) {
        found = STORE_NONE;
        request->missing =
            diag_set(&request->diag,
                     ERR_INVALID,
                     "several runs are unfinished (%s): name one with --run",
                     strbuf_text(&names));
    }
    strbuf_release(&names);
    return found;
}

/* Whether a request may refer to this run. */
static bool is_meant(const struct request *request, uint32_t ix)
{
    const struct engine_run *run = &request->engine->runs[ix];
    const char *id = request_text(request, "run");
    return !run->finished && (id == NULL || strcmp(run->id, id) == 0);
}

/* Report that no task or group has that name, and suggest a similar name. */
static void refuse_name(struct request *request, const char *name)
{
    const struct engine *engine = request->engine;
    const char *run = request_text(request, "run");
    struct suggest guess;
    uint32_t budget = SUGGEST_BUDGET;
    if (run != NULL && find_unfinished(engine, run) == STORE_NONE) {
        (void)request_find_run(request); /* reports it */
        return;
    }
    suggest_init(&guess, name, strlen(name), &budget);
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        const struct plan *plan = engine->runs[ix].plan;
        if (!is_meant(request, ix)) {
            continue;
        }
        if (strcmp(engine->runs[ix].id, name) != 0) {
            (void)suggest_offer(&guess, engine->runs[ix].id);
        }
        for (uint32_t n = 0; n < plan->group_count; n++) {
            (void)suggest_offer(&guess, plan->groups[n].id);
        }
        for (uint32_t n = 0; n < plan->task_count; n++) {
            (void)suggest_offer(&guess, plan->tasks[n].id);
        }
    }
    request->missing = diag_set(&request->diag,
                                ERR_NOT_FOUND,
                                "no task \"%s\" in %s%s%s",
                                name,
                                run != NULL ? "run " : "an unfinished run",
                                run != NULL ? run : "",
                                suggest_hint(&guess));
}

bool request_find_named(struct request *request,
                        uint32_t *run_out,
                        uint32_t *task_out,
                        uint32_t *group_out)
{
    struct engine *engine = request->engine;
    const char *id = request_text(request, "task");
    uint32_t count = 0;
    *task_out = PLAN_NONE;
    *group_out = PLAN_NONE;
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        if (!is_meant(request, ix)) {
            continue;
        }
        const struct plan *plan = engine->runs[ix].plan;
        uint32_t task = plan_find_task(plan, id);
        uint32_t group =
            task == PLAN_NONE ? plan_find_group(plan, id) : PLAN_NONE;
        if (task != PLAN_NONE || group != PLAN_NONE) {
            *run_out = ix;
            *task_out = task;
            *group_out = group;
            count++;
        }
    }
    if (count == 0) {
        refuse_name(request, id);
    } else if (count > 1) {
        request->missing =
            diag_set(&request->diag,
                     ERR_INVALID,
                     "several runs have a task \"%s\": name one with --run",
                     id);
    }
    return count == 1;
}

bool request_find_task(struct request *request,
                       uint32_t *run_out,
                       uint32_t *out)
{
    uint32_t group;
    if (!request_find_named(request, run_out, out, &group)) {
        return false;
    }
    if (*out == PLAN_NONE) {
        request->missing = diag_set(&request->diag,
                                    ERR_INVALID,
                                    "%s is a group: name one of its tasks",
                                    request_text(request, "task"));
    }
    return *out != PLAN_NONE;
}

int64_t request_number(const struct request *request, const char *name)
{
    const json_t *value = json_object_get(request->json, name);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}
