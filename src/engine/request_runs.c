/* SPDX-License-Identifier: MIT */
/* Requests about whole runs, providers and the scheduler. */
#include "engine/request_internal.h"

#include "base/invariant.h"

#include <string.h>

enum err request_do_submit(struct request *request)
{
    const json_t *processors = json_object_get(request->json, "processors");
    int64_t not_before = request_number(request, "not_before_ns");
    const char *worker = request_text(request, "worker");
    struct runs_submission submission = {
        .file = request_text(request, "file"),
        .folder = request_text(request, "folder"),
        .text = request_text(request, "text"),
        .processors = (uint32_t)json_integer_value(processors),
        .anew = json_is_true(json_object_get(request->json, "new")),
        .not_before_ns = not_before > 0 ? not_before : 0,
        .worker = worker != NULL ? worker : "",
    };
    if (submission.file == NULL || submission.folder == NULL ||
        submission.text == NULL || submission.processors == 0) {
        return diag_set(&request->diag, ERR_INVALID, "incomplete request");
    }
    uint32_t run;
    bool continued;
    enum err err = runs_submit(request->engine,
                               &submission,
                               &run,
                               &continued,
                               &request->diag);
    if (err != ERR_OK) {
        return err;
    }
    const struct engine_run *r = &request->engine->runs[run];
    request_add(request, "run", r->id);
    request_add_count(request, "number", r->number);
    request_add_count(request, "tasks", r->task_count);
    if (r->finished) {
        struct jsonw json = request_extra(request);
        jsonw_bool(&json, "finished", true);
        strbuf_addf(&request->text, "run %s has finished", r->id);
        return ERR_OK;
    }
    if (continued && engine_is_quiet(request->engine, run)) {
        runs_tell(request->engine,
                  run,
                  EVENT_WORD_WAITING); /* for this client, too */
    }
    strbuf_addf(&request->text,
                continued ? "run %s is resumed" : "run %s is submitted",
                r->id);
    return ERR_OK;
}

enum err request_find_key(struct request *request,
                          const struct engine_run *run,
                          const char *shown,
                          const char *key,
                          const char *text,
                          bool *out)
{
    size_t len = strlen(shown);
    if (len == 0 || len > REQUEST_KEY_BYTES_MAX) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "the key of a fragment must have 1 to %d bytes",
                        REQUEST_KEY_BYTES_MAX);
    }
    enum err err = runs_find_key(run, shown, key, text, out, &request->diag);
    if (err == ERR_OK && *out) {
        request_add(request, "run", run->id);
        request_add_count(request, "tasks", 0);
        struct jsonw json = request_extra(request);
        jsonw_bool(&json, "known", true);
        strbuf_addf(&request->text,
                    "nothing added to run %s: it has the fragment \"%s\" "
                    "already",
                    run->id,
                    shown);
    }
    return err;
}

/* Add a fragment to an unfinished run. */
enum err request_do_add(struct request *request)
{
    const char *file = request_text(request, "file");
    const char *text = request_text(request, "text");
    if (file == NULL || text == NULL) {
        return diag_set(&request->diag, ERR_INVALID, "incomplete request");
    }
    if (revise_is_update(file)) {
        file += strlen(REVISE_MARK); /* this name is reserved for updates */
    }
    uint32_t ix = request_find_run(request);
    if (ix == STORE_NONE) {
        return request->missing;
    }
    struct engine_run *run = &request->engine->runs[ix];
    uint32_t before = run->plan->task_count;
    const char *key = request_text(request, "fragment_key");
    bool known = false;
    if (key != NULL) {
        enum err err = request_find_key(request, run, key, key, text, &known);
        if (err != ERR_OK || known) {
            return err;
        }
    }
    struct store_fragment fragment = {
        .file = file,
        .key = key,
        .text = text,
        .text_bytes = strlen(text),
    };
    enum err err =
        runs_hot_load(request->engine, ix, &fragment, &request->diag);
    if (err == ERR_OK) {
        uint32_t added = run->plan->task_count - before;
        request_add(request, "run", run->id);
        request_add_count(request, "tasks", added);
        strbuf_addf(&request->text,
                    "%u task%s added to run %s",
                    added,
                    added == 1 ? "" : "s",
                    run->id);
    }
    return err;
}

enum err request_apply_run(struct request *request,
                           enum sched_event_type type,
                           const char *done)
{
    uint32_t run = request_find_run(request);
    if (run == STORE_NONE) {
        return request->missing;
    }
    enum err err =
        engine_apply(request->engine,
                     (struct sched_event){.type = type, .run = {run}});
    INVARIANT(err == ERR_OK); /* every state of a run allows it */
    if (type == EVENT_RETRY_RUN) {
        gates_forget_run(request->engine, run);
    }
    strbuf_addf(&request->text,
                "run %s %s",
                request->engine->runs[run].id,
                done);
    request_add(request, "run", request->engine->runs[run].id);
    return ERR_OK;
}

enum err request_do_pause(struct request *request)
{
    return request_apply_run(request, EVENT_PAUSE, "is paused");
}

/* Resume a provider that was stopped or backs off, at once. */
static enum err resume_provider(struct request *request, const char *name)
{
    struct engine *engine = request->engine;
    struct provider_id id = load_find_provider(engine->load, name);
    if (id.v == ID_NONE) {
        return diag_set(&request->diag,
                        ERR_NOT_FOUND,
                        "no unfinished run uses a provider \"%s\"",
                        name);
    }
    enum err err = engine_apply(
        engine,
        (struct sched_event){.type = EVENT_REOPEN, .provider = id});
    INVARIANT(err == ERR_OK);
    rows_stop_reason(engine, id, NULL);
    strbuf_addf(&request->text, "provider %s is used again", name);
    request_add(request, "provider", name);
    return ERR_OK;
}

enum err request_do_resume(struct request *request)
{
    const char *provider = request_text(request, "provider");
    if (provider != NULL) {
        return resume_provider(request, provider);
    }
    return request_apply_run(request, EVENT_RESUME, "is resumed");
}

enum err request_do_drain(struct request *request)
{
    engine_drain(request->engine, true);
    strbuf_addf(&request->text,
                "draining; sessions still running: %u",
                request->engine->session_count);
    request_add_count(request, "sessions", request->engine->session_count);
    return ERR_OK;
}

/*
 * Remove rows of a finished run, one part of them. The store checks that the
 * run has finished; here the run must not be loaded, because this scheduler
 * might still write to it.
 */
enum err request_do_prune(struct request *request)
{
    static const char *const parts[] = {
        [STORE_PRUNE_EVENTS] = "events",
        [STORE_PRUNE_TASKS] = "tasks",
        [STORE_PRUNE_RUN] = "run",
    };
    const struct engine *engine = request->engine;
    const char *part = request_text(request, "part");
    int64_t number = request_number(request, "number");
    int64_t first = request_number(request, "first");
    int64_t last = request_number(request, "last");
    struct store_change change = {.type = STORE_PRUNE};
    uint32_t ix = 0;
    while (part != NULL && ix < ARRAY_COUNT(parts) &&
           strcmp(parts[ix], part) != 0) {
        ix++;
    }
    if (part == NULL || ix == ARRAY_COUNT(parts) || number < 1 ||
        number > STORE_RUN_MAX || first < 0 || last < first ||
        (ix == STORE_PRUNE_TASKS && last >= STORE_NONE)) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"prune\" needs part, number, first and last");
    }
    for (uint32_t run = 0; run < engine->run_count; run++) {
        if (engine->runs[run].number == number) {
            return diag_set(&request->diag,
                            ERR_CONFLICT,
                            "the scheduler still has run \"%s\" in memory: "
                            "restart 'sluice run' first",
                            engine->runs[run].id);
        }
    }
    change.as.prune = (struct store_prune){
        .run = (uint32_t)number,
        .part = (enum store_prune_part)ix,
        .first = (uint64_t)first,
        .last = (uint64_t)last,
    };
    store_batch_add(&request->engine->batch, &change);
    request->silent = ix != STORE_PRUNE_RUN;
    strbuf_addf(&request->text,
                "%srun number %d removed from the store",
                ix == STORE_PRUNE_EVENTS  ? "events of "
                : ix == STORE_PRUNE_TASKS ? "tasks of "
                                          : "",
                (int)number);
    return ERR_OK;
}
