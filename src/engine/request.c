/* SPDX-License-Identifier: MIT */
/*
 * Processing of requests. Each is checked, applied to the core and answered;
 * the request and its answer become a row of the batch that makes it durable,
 * and the answer is sent when that batch is written.
 */
#include "engine/request.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/request_internal.h"

#include <stdlib.h>
#include <string.h>

enum { VERB_BYTES_MAX = 64 };

static enum err do_ping(struct request *request)
{
    strbuf_adds(&request->text, "alive");
    return ERR_OK;
}

typedef enum err (*request_fn)(struct request *request);

/* The verbs, their functions, and whether they need a task. */
static const struct {
    const char *verb;
    request_fn run;
    bool needs_task;
} verbs[] = {
    {"add", request_do_add, false},
    {"answer", request_do_answer, true},
    {"approve", request_do_approve, true},
    {"budget", request_do_budget, false},
    {"cancel", request_do_cancel, false},
    {"cap", request_do_cap, false},
    {"drain", request_do_drain, false},
    {"first", request_do_first, true},
    {"hold", request_do_hold, true},
    {"limit", request_do_limit, false},
    {"pause", request_do_pause, false},
    {"ping", do_ping, false},
    {"priority", request_do_priority, true},
    {"prune", request_do_prune, false},
    {"release", request_do_release, true},
    {"rerun", request_do_rerun, true},
    {"resume", request_do_resume, false},
    {"retry", request_do_retry, false},
    {"rework", request_do_rework, true},
    {"show", request_do_show, false},
    {"skip", request_do_skip, true},
    {"submit", request_do_submit, false},
    {"tell", request_do_tell, true},
    {"usage", request_do_usage, false},
};

static enum err carry_out(struct request *request)
{
    if (request->session != NULL) {
        return request_do_session(request);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (strcmp(verbs[ix].verb, request->verb) != 0) {
            continue;
        }
        if (verbs[ix].needs_task && request_text(request, "task") == NULL) {
            return diag_set(&request->diag,
                            ERR_INVALID,
                            "\"%s\" needs a task",
                            request->verb);
        }
        return verbs[ix].run(request);
    }
    return diag_set(&request->diag,
                    ERR_INVALID,
                    "unknown request \"%s\"",
                    request->verb);
}

static char *make_answer(struct request *request, enum err err)
{
    struct strbuf out = {0};
    struct jsonw json = {.out = &out};
    jsonw_object(&json, NULL);
    jsonw_bool(&json, "ok", err == ERR_OK);
    if (err != ERR_OK) {
        jsonw_text(&json, "error", err_name(err));
        jsonw_text(&json, "text", request->diag.text);
    } else {
        jsonw_text(&json, "text", strbuf_text(&request->text));
        if (request->extra.len > 0) {
            jsonw_raw(&json, NULL, strbuf_text(&request->extra));
        }
    }
    jsonw_object_end(&json);
    char *copy = mem_strndup(out.text, out.len);
    strbuf_release(&out);
    return copy;
}

static void keep_answer(struct engine *engine, uint64_t request, char *json)
{
    struct engine_todo *todo = &engine->todo;
    MEM_GROW(todo->answers, todo->answer_count, todo->answer_capacity);
    todo->answers[todo->answer_count++] =
        (struct engine_answer){.request = request, .json = json};
}

/* Keep only the key of a request that may be of any size. */
static void drop_members(json_t *json)
{
    json_t *key = json_incref(json_object_get(json, "key"));
    (void)json_object_clear(json);
    if (json_is_string(key) && json_string_length(key) <= VERB_BYTES_MAX) {
        (void)json_object_set(json, "key", key);
    }
    json_decref(key);
}

/* Add the row of a request. A plan's text is in the row of its run. */
static void note(const struct request *request,
                 uint64_t number,
                 const char *who,
                 const char *answer)
{
    struct engine *engine = request->engine;
    (void)json_object_del(request->json, "text");
    if (request->session != NULL || request->door) {
        drop_members(request->json);
    }
    char *args = json_dumps(request->json, JSON_COMPACT);
    INVARIANT(args != NULL);
    struct store_change change = {
        .type = STORE_COMMAND,
        .as.command =
            {
                .number = number,
                .wall_ns = engine->world->wall_ns(engine->ctx),
                .who = who,
                .verb = request->verb,
                .args = args,
                .key = request_text(request, "key"),
                .answer = answer,
            },
    };
    store_batch_add(&engine->batch, &change);
    free(args);
    struct event event = {
        .kind = EVENT_KIND_REQUEST,
        .as.request = {.verb = request->verb, .by = who, .answer = answer},
    };
    rows_event(engine, STORE_NONE, STORE_NONE, &event);
}

/* Copy the verb, which outlives the other members; a long one is not ours. */
static void take_verb(struct request *request, struct strbuf *verb)
{
    const char *text = request_text(request, "verb");
    strbuf_add(verb,
               text != NULL ? text : "",
               text != NULL ? strnlen(text, VERB_BYTES_MAX) : 0);
    request->verb = verb->len > 0 ? strbuf_text(verb) : request->verb;
}

/* Return the answer to a request of this key that was carried out lately, or
 * NULL. The store has the older ones. */
static const char *find_recent(const struct engine *engine, const char *key)
{
    for (uint32_t ix = 0;
         key != NULL && engine->recent != NULL && ix < ENGINE_RECENT;
         ix++) {
        const struct engine_recent *recent = &engine->recent[ix];
        if (recent->key != NULL && strcmp(recent->key, key) == 0) {
            return recent->answer;
        }
    }
    return NULL;
}

static void
keep_recent(struct engine *engine, const char *key, const char *answer)
{
    if (key == NULL) {
        return;
    }
    if (engine->recent == NULL) {
        engine->recent = mem_zalloc(ENGINE_RECENT, sizeof(engine->recent[0]));
    }
    struct engine_recent *place =
        &engine->recent[engine->recent_count++ % ENGINE_RECENT];
    mem_free(place->key);
    mem_free(place->answer);
    place->key = mem_strdup(key);
    place->answer = mem_strdup(answer);
}

void request_release_recent(struct engine *engine)
{
    for (uint32_t ix = 0; engine->recent != NULL && ix < ENGINE_RECENT; ix++) {
        mem_free(engine->recent[ix].key);
        mem_free(engine->recent[ix].answer);
    }
    mem_free(engine->recent);
}

void request_apply(struct engine *engine,
                   const struct request_call *call,
                   const char *json)
{
    struct request request = {
        .engine = engine,
        .verb = "?",
        .door = call->door,
    };
    uint64_t number = call->number;
    json_error_t error;
    struct strbuf verb = {0};
    enum err err;
    request.json = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(request.json)) {
        json_decref(request.json);
        request.json = json_object();
        request.silent = request.door && !request_is_logged(engine);
        err = diag_set(&request.diag,
                       ERR_INVALID,
                       "the request is not a JSON object: %s",
                       error.text);
    } else {
        err = request_identify(&request);
        take_verb(&request, &verb);
    }
    const char *known = request.session == NULL && !request.door && number == 0
                            ? find_recent(engine, request_text(&request, "key"))
                            : NULL;
    if (err == ERR_OK && known != NULL) {
        keep_answer(engine, call->id, mem_strdup(known));
        goto out;
    }
    if (err == ERR_OK && verb.len == 0) {
        err = diag_set(&request.diag, ERR_INVALID, "the request has no verb");
    } else if (err == ERR_OK) {
        err = carry_out(&request);
    }
    crash_point("request-applied");
    char *answer = make_answer(&request, err);
    keep_recent(engine, request_text(&request, "key"), answer);
    if (strcmp(request.verb, "ping") != 0 && !(request.silent && number == 0)) {
        note(&request,
             number,
             request.session != NULL ? strbuf_text(&request.who) : call->who,
             answer);
    }
    if (number == 0) {
        keep_answer(engine, call->id, answer);
    } else {
        mem_free(answer); /* read from the store: no client waits for it */
    }
out:
    json_decref(request.json);
    strbuf_release(&request.text);
    strbuf_release(&request.extra);
    strbuf_release(&request.who);
    strbuf_release(&verb);
}
