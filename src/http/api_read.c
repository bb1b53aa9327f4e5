/* SPDX-License-Identifier: MIT */
/* Routes that are answered at once, from the shared state or by a short read:
 * what commands print with --json. */
#include "base/jsonw.h"
#include "base/mem.h"
#include "http/call.h"
#include "http/log.h"
#include "http/stream.h"
#include "report/task_graph.h"
#include "view/chain.h"

#include <stdlib.h>
#include <string.h>

enum {
    TASKS_DEFAULT = 100,
    TASKS_MAX = 1000,
    EVENTS_DEFAULT = 100,
    EVENTS_MAX = 1000,
    GRAPH_STEPS = 2,
    GRAPH_STEPS_MAX = 10,
};

/* Set the error for a run that is not unfinished. */
static enum err no_run(struct call *call)
{
    return diag_set(&call->diag,
                    ERR_NOT_FOUND,
                    "no unfinished run \"%s\"",
                    call_part(call, 0));
}

/* --- status ------------------------------------------------------------- */

/* Append the status of all unfinished runs, or of one of them. */
static void
add_status(struct call *call, const struct glance *glance, const char *run)
{
    struct strbuf key = {0};
    struct glance_options options = {.run = run};
    bool known;
    strbuf_addf(&key, "status %s", run != NULL ? run : "");
    struct strbuf *text = source_text(call->api->source,
                                      SOURCE_OF_STATE,
                                      strbuf_text(&key),
                                      &known);
    if (!known) {
        model_add_json(text, glance, &options);
    }
    strbuf_add(&call->response->body, strbuf_text(text), text->len);
    strbuf_release(&key);
}

enum http_done api_status(struct call *call)
{
    const struct glance *glance = call_glance(call);
    if (glance != NULL) {
        add_status(call, glance, NULL);
    }
    return HTTP_ANSWERED;
}

/* The status of a run that has finished, or does not exist. */
static void add_finished(const struct slow *slow,
                         struct http_response *response)
{
    struct glance glance;
    struct diag diag = {0};
    struct glance_options options = {
        .store = slow->place.shown,
        .run = slow->run,
        .alone = true,
    };
    enum err err = glance_take(&glance, &options, &diag);
    if (err == ERR_OK) {
        model_add_json(&response->body, &glance, &options);
    } else {
        http_fail(response, http_status(err), err, diag.text);
    }
    glance_release(&glance);
}

enum http_done api_run(struct call *call)
{
    const struct glance *glance = call_glance(call);
    if (glance == NULL) {
        return HTTP_ANSWERED;
    }
    if (engine_find_run(glance->view.engine, call_part(call, 0)) ==
        STORE_NONE) {
        return call_slowly(call, add_finished, call_part(call, 0), NULL, NULL);
    }
    add_status(call, glance, call_part(call, 0));
    return HTTP_ANSWERED;
}

static enum err on_run(void *ctx, const struct store_run *run)
{
    struct jsonw *json = ctx;
    jsonw_item(json, 1);
    jsonw_text(json, "run", run->id);
    jsonw_text(json, "name", run->name);
    jsonw_text(json, "plan", run->file);
    jsonw_moment(json, "created", run->created_ns);
    jsonw_bool(json, "finished", run->finished);
    jsonw_bool(json, "cancelled", run->cancelled);
    jsonw_bool(json, "paused", run->paused);
    jsonw_object_end(json);
    return ERR_OK;
}

/* List all runs, finished ones too. */
enum http_done api_runs(struct call *call)
{
    static const struct store_visitor visitor = {.run = on_run};
    static const struct store_query query = {.finished = true};
    struct store *store = NULL;
    struct jsonw json = {.out = &call->response->body, .spaced = true};
    if (call_glance(call) == NULL) {
        return HTTP_ANSWERED;
    }
    enum err err = store_open(&store,
                              source_place(call->api->source)->address,
                              STORE_READ,
                              &call->diag);
    jsonw_object(&json, NULL);
    jsonw_list(&json, 1, "runs");
    if (err == ERR_OK) {
        err = store_read(store, &query, &visitor, &json, NULL, &call->diag);
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
    store_close(store);
    return err == ERR_OK ? HTTP_ANSWERED : call_fail_err(call, err);
}

/* The machines that run sessions: the worker of the scheduler. */
enum http_done api_workers(struct call *call)
{
    const struct glance *glance = call_glance(call);
    const struct top_look_scene *scene = source_scene(call->api->source);
    if (glance == NULL) {
        return HTTP_ANSWERED;
    }
    const struct client_view *view = &glance->view;
    struct jsonw json = {.out = &call->response->body};
    jsonw_object(&json, NULL);
    jsonw_array(&json, "workers");
    if (scene->owned) {
        jsonw_object(&json, NULL);
        jsonw_text(&json, "name", view->owner.host);
        jsonw_text(&json, "state", scene->state);
        jsonw_bool(&json, "draining", scene->draining);
        jsonw_int(&json, "sessions", engine_session_count(view->engine));
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
    return HTTP_ANSWERED;
}

/* --- tasks -------------------------------------------------------------- */

static void add_task(struct jsonw *json,
                     const struct glance *glance,
                     uint32_t run,
                     uint32_t task)
{
    const struct plan *plan = engine_plan(glance->view.engine, run);
    struct reason reason = snapshot_reason(glance->snapshot, run, task);
    jsonw_item(json, 1);
    jsonw_text(json, "task", plan->tasks[task].id);
    jsonw_int(json, "number", task);
    jsonw_text(json,
               "state",
               sched_state_name(snapshot_state(glance->snapshot, run, task)));
    jsonw_text(json, "title", plan_issue_of(plan, &plan->tasks[task]).title);
    jsonw_int(json,
              "attempt",
              engine_attempt_number(glance->view.engine, run, task));
    jsonw_name(json, "why");
    reasons_add_json(json->out, &reason);
    jsonw_object_end(json);
}

/* List tasks of an unfinished run, page by page. */
enum http_done api_tasks(struct call *call)
{
    const char *wanted = http_query(call->request, "state");
    uint64_t after = UINT32_MAX;
    uint64_t limit = TASKS_DEFAULT;
    const struct glance *glance = call_glance(call);
    if (glance == NULL || !call_number(call, "after", UINT32_MAX - 1, &after) ||
        !call_number(call, "limit", TASKS_MAX, &limit)) {
        return HTTP_ANSWERED;
    }
    uint32_t run = engine_find_run(glance->view.engine, call_part(call, 0));
    if (run == STORE_NONE) {
        return call_fail_err(call, no_run(call));
    }
    uint32_t count = engine_plan(glance->view.engine, run)->task_count;
    uint32_t first = after == UINT32_MAX ? 0 : (uint32_t)after + 1;
    uint32_t given = 0;
    struct jsonw json = {.out = &call->response->body, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "run", call_part(call, 0));
    jsonw_list(&json, 1, "tasks");
    uint32_t ix = first;
    for (; ix < count && given < limit; ix++) {
        const char *state =
            sched_state_name(snapshot_state(glance->snapshot, run, ix));
        if (wanted == NULL || strcmp(wanted, state) == 0) {
            add_task(&json, glance, run, ix);
            given++;
        }
    }
    jsonw_array_end(&json);
    if (ix < count && ix > 0) {
        jsonw_int(&json, "next", ix - 1);
    } else {
        jsonw_text(&json, "next", NULL);
    }
    jsonw_finish(&json);
    return HTTP_ANSWERED;
}

/* One task, as `sluice why --json` prints it. */
enum http_done api_task(struct call *call)
{
    struct chain chain;
    const struct glance *glance = call_glance(call);
    if (glance == NULL) {
        return HTTP_ANSWERED;
    }
    const char *address = source_place(call->api->source)->address;
    enum err err = chain_in(&chain,
                            glance,
                            call_part(call, 0),
                            call_part(call, 1),
                            &call->diag);
    if (err == ERR_OK) {
        err = store_open(&chain.glance.view.store,
                         address,
                         STORE_READ,
                         &call->diag);
    }
    if (err == ERR_OK) {
        err = chain_read_attempts(&chain, &call->diag);
    }
    if (err == ERR_OK) {
        chain_add_json(&call->response->body, &chain);
    } else {
        (void)call_fail_err(call, err);
    }
    store_close(chain.glance.view.store);
    return HTTP_ANSWERED;
}

/* --- graph -------------------------------------------------------------- */

static void add_node(struct jsonw *json,
                     const struct glance *glance,
                     uint32_t run,
                     uint32_t task)
{
    const struct plan *plan = engine_plan(glance->view.engine, run);
    const struct plan_task *from = &plan->tasks[task];
    jsonw_item(json, 1);
    jsonw_text(json, "task", from->id);
    jsonw_text(json,
               "state",
               sched_state_name(snapshot_state(glance->snapshot, run, task)));
    jsonw_array(json, "needs");
    for (uint32_t n = 0; n < from->need_count; n++) {
        jsonw_text(json, NULL, plan->tasks[from->needs[n]].id);
    }
    jsonw_array_end(json);
    jsonw_object_end(json);
}

/* The tasks of an unfinished run and their needs: all, or those around one. */
enum http_done api_graph(struct call *call)
{
    const char *around = call_query(call, "around");
    uint64_t steps = GRAPH_STEPS;
    const struct glance *glance = call_glance(call);
    if (glance == NULL ||
        !call_number(call, "steps", GRAPH_STEPS_MAX, &steps)) {
        return HTTP_ANSWERED;
    }
    uint32_t run = engine_find_run(glance->view.engine, call_part(call, 0));
    if (run == STORE_NONE) {
        return call_fail_err(call, no_run(call));
    }
    const struct plan *plan = engine_plan(glance->view.engine, run);
    uint32_t task = around != NULL ? plan_find_task(plan, around) : PLAN_NONE;
    if (around != NULL && task == PLAN_NONE) {
        (void)diag_set(&call->diag, ERR_NOT_FOUND, "no task \"%s\"", around);
        return call_fail_err(call, ERR_NOT_FOUND);
    }
    bool *near =
        task != PLAN_NONE ? task_graph_near(plan, task, (uint32_t)steps) : NULL;
    struct jsonw json = {.out = &call->response->body, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "run", call_part(call, 0));
    jsonw_text(&json, "around", around);
    jsonw_list(&json, 1, "tasks");
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        if (near == NULL || near[ix]) {
            add_node(&json, glance, run, ix);
        }
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
    mem_free(near);
    return HTTP_ANSWERED;
}

/* --- logs --------------------------------------------------------------- */

/* Read the number of an attempt; 0: it is none. */
static uint32_t number_of(const char *text)
{
    unsigned long number = strtoul(text, NULL, 10);
    return strspn(text, "0123456789") == strlen(text) && number <= UINT32_MAX
               ? (uint32_t)number
               : 0;
}

/* Search a log, in another thread: it may be long. */
static void find_lines(const struct slow *slow, struct http_response *response)
{
    struct log_found found;
    struct diag diag = {0};
    struct log_name name = {
        .place = &slow->place,
        .run = slow->run,
        .task = slow->task,
        .number = (uint32_t)slow->number,
    };
    enum err err = log_find(&found, &name, slow->find, slow->from, &diag);
    if (err != ERR_OK) {
        http_fail(response, http_status(err), err, diag.text);
        return;
    }
    struct jsonw json = {.out = &response->body, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_list(&json, 1, "lines");
    for (uint32_t ix = 0; ix < found.count; ix++) {
        jsonw_item(&json, 1);
        jsonw_int(&json, "at", (int64_t)found.lines[ix].at);
        jsonw_text(&json, "text", found.lines[ix].text);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_int_if(&json, "next", found.next != LOG_END, (int64_t)found.next);
    jsonw_int(&json, "size", (int64_t)found.size);
    jsonw_finish(&json);
    log_found_release(&found);
}

enum http_done api_log(struct call *call)
{
    uint64_t from = LOG_END;
    const char *find = call_query(call, "find");
    struct log_part part;
    struct log_name name = {
        .place = source_place(call->api->source),
        .run = call_part(call, 0),
        .task = call_part(call, 1),
        .number = number_of(call_part(call, 2)),
    };
    if (call_glance(call) == NULL ||
        !call_number(call, "from", INT64_MAX, &from)) {
        return HTTP_ANSWERED;
    }
    if (name.number == 0) {
        return call_fail(call, 404, ERR_NOT_FOUND, "no such attempt");
    }
    if (find != NULL) {
        struct slow more = {
            .find = mem_strdup(find),
            .number = name.number,
            .from = from == LOG_END ? 0 : from,
        };
        enum http_done done =
            call_slowly(call, find_lines, name.run, name.task, &more);
        mem_free(more.find);
        return done;
    }
    enum err err = log_read(&part, &name, from, LOG_BYTES_MAX, &call->diag);
    if (err == ERR_OK) {
        struct strbuf text = {0};
        log_add_text(&text, &part);
        struct jsonw json = {.out = &call->response->body};
        jsonw_object(&json, NULL);
        jsonw_int(&json, "from", (int64_t)part.from);
        jsonw_int(&json, "next", (int64_t)part.next);
        jsonw_int(&json, "size", (int64_t)part.size);
        jsonw_text(&json, "text", strbuf_text(&text));
        jsonw_finish(&json);
        strbuf_release(&text);
    }
    log_part_release(&part);
    return err == ERR_OK ? HTTP_ANSWERED : call_fail_err(call, err);
}

/* --- events ------------------------------------------------------------- */

enum http_done api_events(struct call *call)
{
    uint64_t after = 0;
    uint64_t limit = EVENTS_DEFAULT;
    uint64_t last = 0;
    if (call_glance(call) == NULL ||
        !call_number(call, "after", INT64_MAX, &after) ||
        !call_number(call, "limit", EVENTS_MAX, &limit)) {
        return HTTP_ANSWERED;
    }
    struct strbuf list = {0};
    enum err err = limit == 0 ? ERR_OK
                              : source_add_events(call->api->source,
                                                  &list,
                                                  SOURCE_LIST,
                                                  after,
                                                  (uint32_t)limit,
                                                  &last,
                                                  &call->diag);
    if (err != ERR_OK) {
        (void)call_fail_err(call, err);
    } else {
        struct strbuf *out = &call->response->body;
        struct jsonw json = {.out = out};
        jsonw_object(&json, NULL);
        jsonw_name(&json, "events");
        strbuf_addf(out, "[%s]", strbuf_text(&list));
        jsonw_int(&json, "next", (int64_t)(last > after ? last : after));
        jsonw_finish(&json);
    }
    strbuf_release(&list);
    return HTTP_ANSWERED;
}

enum http_done api_stream(struct call *call)
{
    const char *seen = http_header(call->request, "Last-Event-ID");
    uint64_t after = UINT64_MAX;
    if (seen != NULL && seen[0] != '\0' &&
        strspn(seen, "0123456789") == strlen(seen) && strlen(seen) < 19) {
        after = strtoull(seen, NULL, 10);
    } else if (!call_number(call, "after", INT64_MAX, &after)) {
        return HTTP_ANSWERED;
    }
    return stream_answer(call, after);
}
