/* SPDX-License-Identifier: MIT */
/*
 * Briefs for sessions of coding agents. The shim runs sluice-agent, which reads
 * its input from the file `brief` in the attempt directory: agent/brief.h lists
 * the members.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "engine/carry.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A string, or null. */
static json_t *text_of(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

/* A path of the plan as an absolute path, or null. */
static json_t *path_of(const struct engine_run *run, const char *path)
{
    if (path == NULL) {
        return json_null();
    }
    struct strbuf text = {0};
    engine_add_path(&text, run->folder, path);
    json_t *json = json_string(strbuf_text(&text));
    strbuf_release(&text);
    return json;
}

static json_t *words_of(const char *const *words, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t ix = 0; ix < count; ix++) {
        (void)json_array_append_new(list, json_string(words[ix]));
    }
    return list;
}

static json_t *price_of(const struct plan_agent *agent)
{
    if (agent->price_input == PLAN_UNSET) {
        return json_null();
    }
    int64_t cached = agent->price_cached != PLAN_UNSET ? agent->price_cached
                                                       : agent->price_input;
    return json_pack("{s:f, s:f, s:f}",
                     "input",
                     (double)agent->price_input / PLAN_USD,
                     "cached",
                     (double)cached / PLAN_USD,
                     "output",
                     (double)agent->price_output / PLAN_USD);
}

static json_t *agent_of(const struct plan_agent *agent)
{
    static const char *const permissions[] = {
        [ADAPTER_FULL] = "full",
        [ADAPTER_EDIT] = "edit",
        [ADAPTER_TOOLS] = "tools",
    };
    return json_pack(
        "{s:s, s:o, s:s, s:o, s:I, s:b, s:o, s:o, s:o}",
        "program",
        agent->adapter->name,
        "model",
        text_of(agent->model),
        "permissions",
        permissions[agent->permissions],
        "tools",
        words_of((const char *const *)agent->tools, agent->tool_count),
        "retries",
        (json_int_t)agent->retries,
        "mcp",
        agent->mcp,
        "args",
        words_of((const char *const *)agent->args, agent->arg_count),
        "env",
        words_of((const char *const *)agent->env, agent->env_count),
        "price",
        price_of(agent));
}

/* A task: its own title and body, or its group's. */
static json_t *task_of(const struct engine_run *run, uint32_t ix)
{
    const struct plan_task *task = &run->plan->tasks[ix];
    struct plan_issue issue = plan_issue_of(run->plan, task);
    return json_pack("{s:s, s:s, s:o, s:o, s:o}",
                     "task",
                     task->id,
                     "issue",
                     issue.id,
                     "title",
                     text_of(issue.title),
                     "body",
                     text_of(issue.body),
                     "body_file",
                     path_of(run, issue.body_file));
}

static json_t *tasks_of(const struct engine *engine,
                        const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    json_t *list = json_array();
    struct task_id next = engine_core_task(engine, session->run, session->task);
    for (uint32_t n = 0; n < session->task_count; n++) {
        uint32_t ix = load_plan_task(run->loaded, next);
        (void)json_array_append_new(list, task_of(run, ix));
        next = sched_session_next(engine->sched, next);
    }
    INVARIANT(next.v == ID_NONE);
    return list;
}

static const char *kind_of(const struct plan *plan,
                           const struct session *session)
{
    if (!plan_is_review(plan, &plan->tasks[session->task])) {
        return "work";
    }
    return session->task_count > 1 ? "batch" : "review";
}

/* Add why it runs, the earlier answer or feedback, and its budget. */
static void add_story(json_t *brief,
                      const struct engine *engine,
                      const struct session *session)
{
    const struct engine_past *past =
        runs_past(&engine->runs[session->run].tasks[session->task]);
    struct carry carry = carry_read(past->carry);
    bool answered = carry.answer != NULL && past->feedback != NULL &&
                    strcmp(carry.answer, past->feedback) == 0;
    int64_t left = caps_usd_left(engine, session->run, session->task);
    const struct {
        const char *name;
        const char *text;
    } members[] = {
        {"cause", carry.after != NULL ? carry.after : "first"},
        {"reason", carry.reason},
        {"question", carry.question},
        {"answer", carry.answer},
        {"resume", carry.resume},
        {"feedback", answered ? NULL : past->feedback},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(members); ix++) {
        (void)json_object_set_new(brief,
                                  members[ix].name,
                                  text_of(members[ix].text));
    }
    (void)json_object_set_new(
        brief,
        "usd_left",
        left != PLAN_UNSET ? json_real((double)left / PLAN_USD) : json_null());
    carry_release(&carry);
}

/* Add the messages of operators: those of each task, one after the other. */
static void add_messages(json_t *brief,
                         const struct engine *engine,
                         const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    json_t *list = json_array();
    struct task_id next = engine_core_task(engine, session->run, session->task);
    uint32_t heard = 0;
    for (; next.v != ID_NONE; next = sched_session_next(engine->sched, next)) {
        uint32_t ix = load_plan_task(run->loaded, next);
        struct carry carry = carry_read(runs_past(&run->tasks[ix])->carry);
        for (uint32_t n = 0; n < carry.message_count; n++) {
            (void)json_array_append_new(
                list,
                json_string(carry_message(&carry, n, NULL)));
        }
        heard = carry.heard;
        carry_release(&carry);
    }
    (void)json_object_set_new(brief, "messages", list);
    (void)json_object_set_new(
        brief,
        "heard",
        json_integer(session->task_count == 1 ? heard : 0));
}

enum err assign_add_brief(const struct engine *engine,
                          const struct session *session,
                          const char *outputs,
                          struct strbuf *out,
                          struct diag *diag)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan *plan = run->plan;
    const struct plan_task *task = &plan->tasks[session->task];
    INVARIANT(task->agent < plan->agent_count);
    json_t *brief =
        json_pack("{s:o, s:s, s:b, s:o, s:o, s:o}",
                  "agent",
                  agent_of(&plan->agents[task->agent]),
                  "kind",
                  kind_of(plan, session),
                  "writes",
                  assign_is_git(engine, session) &&
                      plan_has_role(plan, task, PLAN_ROLE_IMPLEMENT),
                  "prompt",
                  text_of(task->settings->prompt),
                  "prompt_file",
                  path_of(run, task->settings->prompt_file),
                  "tasks",
                  tasks_of(engine, session));
    add_story(brief, engine, session);
    add_messages(brief, engine, session);
    (void)json_object_set_new(brief,
                              "outputs",
                              outputs[0] != '\0' ? json_loads(outputs, 0, NULL)
                                                 : json_null());
    char *made = json_dumps(brief, JSON_INDENT(1));
    json_decref(brief);
    if (made == NULL) {
        return diag_set(diag, ERR_INVALID, "its strings are not valid UTF-8");
    }
    strbuf_adds(out, made);
    free(made);
    return ERR_OK;
}
