/* SPDX-License-Identifier: MIT */
/*
 * Requests of sessions. A session proves by its key who it is (work/key.h), and
 * may only ask about its own run and act on its own task. What it may change is
 * to add tasks, within the quota of its task, to leave a note, and to have its
 * result checked before it writes it.
 */
#include "engine/request_internal.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/strip.h"
#include "store/sum.h"

#include <stdlib.h>
#include <string.h>

enum {
    NOTE_BYTES_MAX = 1000,
    NOTES_MAX = 1000, /* that a session can have logged */
};

/* A session may repeat refused requests without end: so many are logged at
 * once, then one in this time. */
enum { REFUSALS_MAX = 50 };
#define REFUSAL_NS SECOND_NS

bool request_is_logged(struct engine *engine)
{
    int64_t now_ns = engine_now(engine);
    int64_t gained = (now_ns - engine->refused_ns) / REFUSAL_NS;
    if (gained > 0) {
        engine->refused_ns = now_ns;
        engine->refused_count = gained < engine->refused_count
                                    ? engine->refused_count - (uint32_t)gained
                                    : 0;
    }
    if (engine->refused_count >= REFUSALS_MAX) {
        return false;
    }
    engine->refused_count++;
    return true;
}

static struct session *find(struct engine *engine, uint64_t token)
{
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        if (engine->sessions[ix].token == token) {
            return &engine->sessions[ix];
        }
    }
    return NULL;
}

enum err request_identify(struct request *request)
{
    struct engine *engine = request->engine;
    const json_t *member = json_object_get(request->json, "session");
    if (member == NULL && !request->door) {
        return ERR_OK; /* an operator's */
    }
    const char *key = json_string_value(member);
    uint64_t token = key != NULL ? key_token(key) : 0;
    struct session *session = token != 0 ? find(engine, token) : NULL;
    bool known = session != NULL && engine->secret_known &&
                 key_is(key, &engine->secret, token, session->nonce);
    (void)json_object_del(request->json, "session"); /* never stored */
    if (known) {
        const struct engine_run *run = &engine->runs[session->run];
        request->session = session;
        strbuf_addf(&request->who,
                    "session %s, attempt %u of run %s",
                    run->plan->tasks[session->task].id,
                    session->number,
                    run->id);
        return ERR_OK;
    }
    request->silent = !request_is_logged(engine);
    return diag_set(&request->diag,
                    ERR_DENIED,
                    token == 0
                        ? "the request has no valid key: SLUICE_KEY of a "
                          "session has it"
                        : "the key is of no session in flight: it is wrong, "
                          "or its session has exited");
}

/* --- reading ------------------------------------------------------------ */

static enum err do_look(struct request *request)
{
    struct engine_look look = {
        .token = request->session->token,
        .verb = request->verb,
        .task = request_text(request, "task"),
        .filter = request_text(request, "filter"),
    };
    return request_look(request, &look);
}

/* --- changing ----------------------------------------------------------- */

static enum err do_add(struct request *request)
{
    const struct session *session = request->session;
    const struct engine_run *run = &request->engine->runs[session->run];
    const char *text = request_text(request, "text");
    const char *given = request_text(request, "fragment_key");
    uint32_t before = run->plan->task_count;
    struct strbuf key = {0};
    bool known = false;
    if (text == NULL) {
        return diag_set(&request->diag, ERR_INVALID, "the fragment is missing");
    }
    enum err err = ERR_OK;
    if (given != NULL) {
        /* Sessions of other tasks have keys of their own. */
        strbuf_addf(&key,
                    "session %s: %s",
                    run->plan->tasks[session->task].id,
                    given);
        err = request_find_key(request,
                               run,
                               given,
                               strbuf_text(&key),
                               text,
                               &known);
    }
    if (err == ERR_OK && !known) {
        err = runs_add_by_session(request->engine,
                                  session->run,
                                  session->task,
                                  text,
                                  given != NULL ? strbuf_text(&key) : NULL,
                                  &request->diag);
    }
    strbuf_release(&key);
    request->known = known;
    if (err == ERR_OK && !known) {
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

static enum err do_note(struct request *request)
{
    struct engine *engine = request->engine;
    struct session *session = request->session;
    const char *text = request_text(request, "text");
    request->silent = true; /* the event is enough */
    if (text == NULL || text[strspn(text, " \t\r\n")] == '\0') {
        return diag_set(&request->diag, ERR_INVALID, "the note is empty");
    }
    if (strlen(text) > NOTE_BYTES_MAX) {
        return diag_set(&request->diag,
                        ERR_LIMIT,
                        "a note has at most %d bytes",
                        NOTE_BYTES_MAX);
    }
    uint64_t sum = sum_add(SUM_START, text, strlen(text));
    if (sum != session->note_sum && session->note_count < NOTES_MAX) {
        session->note_count++;
        struct strbuf clean = {0};
        strip_text(&clean, text, strlen(text));
        struct event event = {
            .kind = EVENT_KIND_NOTE,
            .as.note =
                {.task =
                     engine->runs[session->run].plan->tasks[session->task].id,
                 .attempt = session->number,
                 .text = strbuf_text(&clean)},
        };
        rows_event(engine, session->run, session->task, &event);
        strbuf_release(&clean);
        session->note_sum = sum;
    }
    strbuf_adds(&request->text, "noted");
    return ERR_OK;
}

/* --- checking a result -------------------------------------------------- */

/* Require a verdict on each task of a batch, and on no other. */
static enum err check_batch(struct request *request,
                            const struct attempt_result *result)
{
    struct engine *engine = request->engine;
    const struct session *session = request->session;
    const struct engine_run *run = &engine->runs[session->run];
    struct task_id next = engine_core_task(engine, session->run, session->task);
    uint32_t named = 0;
    for (uint32_t n = 0; n < session->task_count; n++) {
        uint32_t ix = load_plan_task(run->loaded, next);
        const char *id = run->plan->tasks[ix].id;
        uint32_t count = 0;
        for (uint32_t at = 0; at < result->task_count; at++) {
            count += strcmp(result->tasks[at].task, id) == 0 ? 1 : 0;
        }
        if (count != 1) {
            return diag_set(&request->diag,
                            ERR_INVALID,
                            "the result must name task \"%s\" of the batch "
                            "once, and names it %u times",
                            id,
                            count);
        }
        named += count;
        next = sched_session_next(engine->sched, next);
    }
    if (named != result->task_count) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "the result names %u tasks, but the batch has %u",
                        result->task_count,
                        session->task_count);
    }
    return ERR_OK;
}

static bool has_words(const char *reason, const char *feedback)
{
    static const char blank[] = " \t\r\n";
    return (reason != NULL && reason[strspn(reason, blank)] != '\0') ||
           (feedback != NULL && feedback[strspn(feedback, blank)] != '\0');
}

/* Whether a session may end with this outcome, given the words with it. */
static enum err check_outcome(struct request *request,
                              enum sched_outcome outcome,
                              bool has_text)
{
    if (outcome == OUTCOME_REFUSED) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"refused\" is for providers: use \"later\", "
                        "\"blocked\" or \"failed\"");
    }
    const struct session *session = request->session;
    const struct plan *plan = request->engine->runs[session->run].plan;
    const struct plan_task *task = &plan->tasks[session->task];
    if (outcome == OUTCOME_CHANGES && task->rework_to == PLAN_NONE) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"changes\" needs a stage with \"rework\", and %s has "
                        "none: use \"blocked\" or \"failed\"",
                        task->id);
    }
    if ((outcome == OUTCOME_CHANGES || outcome == OUTCOME_BLOCKED) &&
        !has_text) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"%s\" needs a reason: %s",
                        outcome_name(outcome),
                        outcome == OUTCOME_CHANGES ? "what to change"
                                                   : "the question");
    }
    return ERR_OK;
}

static enum err check_result(struct request *request,
                             const struct attempt_result *result)
{
    bool batch = request->session->task_count > 1;
    if (!batch && result->task_count > 0) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"tasks\" is for a batch; this session has one task");
    }
    if (!batch && !result->has_outcome) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "the outcome is missing: done, changes, blocked, "
                        "checkpoint, later or failed");
    }
    bool whole = result->has_outcome && result->outcome != OUTCOME_DONE;
    enum err err = ERR_OK;
    if (batch && whole && result->outcome == OUTCOME_CHANGES) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "a batch needs a verdict on each task: give \"tasks\"");
    }
    if (batch && (!whole || result->task_count > 0)) {
        err = check_batch(request, result);
    }
    for (uint32_t ix = 0; ix < result->task_count && err == ERR_OK; ix++) {
        const struct attempt_task_result *task = &result->tasks[ix];
        err = check_outcome(request,
                            task->outcome,
                            has_words(task->reason, task->feedback));
    }
    if (err == ERR_OK && result->has_outcome) {
        err = check_outcome(request,
                            result->outcome,
                            has_words(result->reason, result->feedback));
    }
    return err;
}

static enum err do_finish(struct request *request)
{
    const json_t *given = json_object_get(request->json, "result");
    char *text = given != NULL ? json_dumps(given, JSON_COMPACT) : NULL;
    struct attempt_result result = {0};
    request->silent = true; /* the end of the session is logged */
    if (text == NULL) {
        return diag_set(&request->diag, ERR_INVALID, "the result is missing");
    }
    enum err err =
        attempt_parse_result(text, strlen(text), &result, &request->diag);
    free(text);
    if (err == ERR_OK) {
        err = check_result(request, &result);
    }
    if (err == ERR_OK) {
        strbuf_addf(&request->text,
                    "the result is valid: %s",
                    result.has_outcome ? outcome_name(result.outcome) : "done");
    }
    attempt_result_release(&result);
    return err;
}

enum err request_do_session(struct request *request)
{
    static const struct {
        const char *verb;
        enum err (*run)(struct request *request);
    } verbs[] = {
        {"add", do_add},
        {"finish", do_finish},
        {"log", do_look},
        {"note", do_note},
        {"plan", do_look},
        {"task", do_look},
        {"why", do_look},
    };
    INVARIANT(request->session != NULL);
    const char *run = request_text(request, "run");
    const char *own = request->engine->runs[request->session->run].id;
    if (run != NULL && strcmp(run, own) != 0) {
        return diag_set(&request->diag,
                        ERR_DENIED,
                        "a session of run \"%s\" cannot act on run \"%s\"",
                        own,
                        run);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (strcmp(verbs[ix].verb, request->verb) == 0) {
            enum err err = verbs[ix].run(request);
            bool changed = err == ERR_OK && !request->known;
            request->silent = request->silent ||
                              (!changed && !request_is_logged(request->engine));
            return err;
        }
    }
    request->silent = !request_is_logged(request->engine);
    return diag_set(
        &request->diag,
        ERR_DENIED,
        "\"%.64s\" is for operators, and this is a session: 'sluice "
        "session ask' asks an operator",
        request->verb);
}
