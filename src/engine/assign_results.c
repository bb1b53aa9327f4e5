/* SPDX-License-Identifier: MIT */
/*
 * What a session is told of other tasks: the outputs of those that its own
 * tasks need, and, if it comes last, the outcome of its scope.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    VARIABLES_BYTES_MAX = 128 << 10, /* of outputs: a part of what exec takes */
    FAILED_BYTES_MAX = 64 << 10,
};

void assign_add_upper(struct strbuf *out, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        char letter = (char)toupper((unsigned char)*at);
        bool plain = (letter >= 'A' && letter <= 'Z') ||
                     (letter >= '0' && letter <= '9');
        strbuf_add(out, plain ? &letter : "_", 1);
    }
}

/* --- outputs -------------------------------------------------------------- */

/* Tasks whose outputs a session gets, the nearest first. */
struct sources {
    const struct engine_run *run;
    bool *known; /* for each task of the plan */
    uint32_t *tasks;
    uint32_t count;
    uint32_t capacity;
};

static void add_source(struct sources *sources, uint32_t task)
{
    if (!sources->known[task]) {
        sources->known[task] = true;
        MEM_GROW(sources->tasks, sources->count, sources->capacity);
        sources->tasks[sources->count++] = task;
    }
}

/* Add the needs of a task, and within its group their needs and so on. */
static void add_sources(struct sources *sources, uint32_t task)
{
    const struct plan *plan = sources->run->plan;
    uint32_t group = plan->tasks[task].group;
    uint32_t first = sources->count;
    const struct plan_task *from = &plan->tasks[task];
    for (uint32_t ix = 0; ix < from->need_count; ix++) {
        add_source(sources, from->needs[ix]);
    }
    for (uint32_t at = first; group != PLAN_NONE && at < sources->count; at++) {
        from = &plan->tasks[sources->tasks[at]];
        for (uint32_t ix = 0; from->group == group && ix < from->need_count;
             ix++) {
            if (plan->tasks[from->needs[ix]].group == group) {
                add_source(sources, from->needs[ix]);
            }
        }
    }
}

/* Return the sources of a session; the caller releases them. */
static struct sources find_sources(const struct engine *engine,
                                   const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    struct sources sources = {
        .run = run,
        .known = mem_zalloc(run->task_count, sizeof(bool)),
    };
    struct task_id next = engine_core_task(engine, session->run, session->task);
    for (; next.v != ID_NONE; next = sched_session_next(engine->sched, next)) {
        add_sources(&sources, load_plan_task(run->loaded, next));
    }
    return sources;
}

/* The variables under construction. */
struct variables {
    struct assign_outputs *out;
    struct strmap names;
    size_t bytes;
    struct strbuf text;
};

/* Add SLUICE_OUT_<OF>_<NAME>. The first of two with the same name counts; what
 * is too much is in the file only. */
static void add_variable(struct variables *variables,
                         const char *of,
                         const char *name,
                         const char *value)
{
    struct assign_outputs *out = variables->out;
    struct strbuf *text = &variables->text;
    strbuf_clear(text);
    strbuf_adds(text, "SLUICE_OUT_");
    assign_add_upper(text, of);
    strbuf_adds(text, "_");
    assign_add_upper(text, name);
    const char *key = arena_strndup(&out->arena, strbuf_text(text), text->len);
    strbuf_addf(text, "=%s", value);
    if (variables->bytes + text->len > VARIABLES_BYTES_MAX ||
        strmap_add(&variables->names, key, 0) != STRMAP_NONE) {
        return;
    }
    variables->bytes += text->len;
    MEM_GROW(out->env, out->env_count, out->env_capacity);
    out->env[out->env_count++] =
        arena_strndup(&out->arena, strbuf_text(text), text->len);
}

/* Add the variables of one task. `group` is the session's, if it has one. */
static void add_variables(struct variables *variables,
                          const struct plan_task *task,
                          uint32_t group,
                          json_t *outputs)
{
    const char *name;
    json_t *value;
    json_object_foreach(outputs, name, value)
    {
        const char *text = json_string_value(value);
        text = text != NULL ? text : "";
        add_variable(variables, task->id, name, text);
        if (task->stage != NULL && group != PLAN_NONE && task->group == group) {
            add_variable(variables, task->stage, name, text);
        }
    }
}

void assign_outputs(struct assign_outputs *out,
                    const struct engine *engine,
                    const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    struct sources sources = find_sources(engine, session);
    struct variables variables = {.out = out};
    uint32_t group = session->task_count == 1
                         ? run->plan->tasks[session->task].group
                         : PLAN_NONE;
    json_t *all = json_object();
    for (uint32_t ix = 0; ix < sources.count; ix++) {
        uint32_t task = sources.tasks[ix];
        struct task_id id = engine_core_task(engine, session->run, task);
        const char *stored = runs_past(&run->tasks[task])->outputs;
        if (stored == NULL ||
            sched_task(engine->sched, id).state != TASK_DONE) {
            continue;
        }
        json_t *outputs = json_loads(stored, 0, NULL);
        add_variables(&variables, &run->plan->tasks[task], group, outputs);
        (void)json_object_set_new(all, run->plan->tasks[task].id, outputs);
    }
    if (json_object_size(all) > 0) {
        char *text = json_dumps(all, JSON_INDENT(1) | JSON_SORT_KEYS);
        strbuf_adds(&out->json, text);
        free(text);
    }
    json_decref(all);
    strmap_release(&variables.names);
    strbuf_release(&variables.text);
    mem_free(sources.known);
    mem_free(sources.tasks);
}

void assign_outputs_release(struct assign_outputs *outputs)
{
    arena_release(&outputs->arena);
    mem_free(outputs->env);
    strbuf_release(&outputs->json);
    *outputs = (struct assign_outputs){0};
}

/* --- the outcome of a scope ------------------------------------------------
 */

/* Whether a task belongs to a scope, and does not come last in any. */
static bool is_member(const struct plan *plan, uint32_t ix, uint32_t scope)
{
    const struct plan_task *task = &plan->tasks[ix];
    return !task->last &&
           (scope == PLAN_NONE || (task->group != PLAN_NONE &&
                                   plan_is_within(plan, task->group, scope)));
}

static bool has_given_up(const struct sched_task *task)
{
    return task->state == TASK_FAILED ||
           (task->state == TASK_PARKED && task->parked != SCHED_PARKED_BLOCKED);
}

const char *assign_add_failed(struct strbuf *failed,
                              const struct engine *engine,
                              const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan *plan = run->plan;
    struct sched_run view =
        sched_run(engine->sched, (struct run_id){session->run});
    uint32_t scope = plan->tasks[session->task].scope;
    bool good = true;
    bool cancelled = true;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        struct sched_task task =
            sched_task(engine->sched,
                       engine_core_task(engine, session->run, ix));
        if (!is_member(plan, ix, scope)) {
            continue;
        }
        const char *id = plan->tasks[ix].id;
        bool well =
            (task.state == TASK_DONE && !task.revoked) ||
            task.state == TASK_SKIPPED ||
            (task.state == TASK_FAILED && plan->tasks[ix].settings->optional);
        good = good && well;
        cancelled = cancelled && (well || task.state == TASK_CANCELLED);
        if (has_given_up(&task) &&
            failed->len + strlen(id) < FAILED_BYTES_MAX) {
            strbuf_addf(failed, "%s%s", failed->len > 0 ? "\n" : "", id);
        }
    }
    if (good) {
        return "done";
    }
    return view.cancelled || cancelled         ? "cancelled"
           : view.stopped != SCHED_NOT_STOPPED ? "stopped"
                                               : "failed";
}
