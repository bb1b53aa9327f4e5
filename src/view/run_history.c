/* SPDX-License-Identifier: MIT */
/*
 * Events are linked backwards, task by task, and so are sessions; that is the
 * direction in which the critical path is walked. A session and the event of
 * its claim find each other by task and number of the attempt: both were
 * written in one batch. The further tasks of a batch have no attempt of their
 * own, and their events name none that is new.
 */
#include "view/run_history.h"

#include "base/invariant.h"
#include "base/jsonr.h"
#include "base/macros.h"
#include "base/mem.h"
#include "plan/revise.h"
#include "store/event.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { RUNS_NAMED_MAX = 8 };

/* No session costs more. */
#define USD_MAX 1e9

const char *chronicle_outcome_name(enum chronicle_outcome outcome)
{
    INVARIANT(outcome < CHRONICLE_OUTCOMES);
    return outcome == CHRONICLE_OPEN
               ? "running"
               : outcome_name((enum sched_outcome)outcome);
}

bool chronicle_is_bad(enum chronicle_outcome outcome)
{
    switch (outcome) {
    case CHRONICLE_DONE:
    case CHRONICLE_CHECKPOINT:
    case CHRONICLE_OPEN:
        return false;
    case CHRONICLE_FAILED:
    case CHRONICLE_REFUSED:
    case CHRONICLE_CHANGES:
    case CHRONICLE_BLOCKED:
    case CHRONICLE_LOST:
    case CHRONICLE_STOPPED:
    case CHRONICLE_OUTCOMES:
        return true;
    }
    return true;
}

uint32_t chronicle_group(const struct chronicle *chronicle, uint32_t task)
{
    uint32_t group = chronicle->plan->tasks[task].group;
    return group != PLAN_NONE ? group : chronicle->plan->group_count + task;
}

bool chronicle_is_loose(const struct chronicle *chronicle, uint32_t task)
{
    return chronicle->tasks[task].state == TASK_FAILED &&
           chronicle->plan->tasks[task].settings.optional;
}

static const char *copy_text(struct chronicle *chronicle, const char *text)
{
    return text != NULL ? arena_strndup(&chronicle->arena, text, strlen(text))
                        : NULL;
}

/* --- by hand ------------------------------------------------------------ */

void chronicle_init(struct chronicle *chronicle, struct plan *plan_take)
{
    INVARIANT(plan_take != NULL);
    *chronicle = (struct chronicle){.plan = plan_take};
    chronicle->id = chronicle->name = plan_take->name;
    chronicle->tasks =
        mem_zalloc(plan_take->task_count, sizeof(chronicle->tasks[0]));
    for (uint32_t ix = 0; ix < plan_take->task_count; ix++) {
        chronicle->tasks[ix].last_event = CHRONICLE_NONE;
        chronicle->tasks[ix].last_session = CHRONICLE_NONE;
    }
}

void chronicle_add_event(struct chronicle *chronicle,
                         const struct chronicle_event *event)
{
    MEM_GROW(chronicle->events,
             chronicle->event_count,
             chronicle->event_capacity);
    uint32_t ix = chronicle->event_count++;
    struct chronicle_event *added = &chronicle->events[ix];
    *added = *event;
    added->before = CHRONICLE_NONE;
    added->session = CHRONICLE_NONE;
    int64_t least_ns = ix > 0 ? chronicle->events[ix - 1].at_ns : 0;
    added->at_ns = added->at_ns > least_ns ? added->at_ns : least_ns;
    if (event->kind == CHRONICLE_TASK) {
        struct chronicle_task *task = &chronicle->tasks[event->task];
        added->before = task->last_event;
        task->last_event = ix;
        task->state = event->to;
        task->seen = true;
    }
}

void chronicle_add_session(struct chronicle *chronicle,
                           const struct chronicle_session *session)
{
    MEM_GROW(chronicle->sessions,
             chronicle->session_count,
             chronicle->session_capacity);
    uint32_t ix = chronicle->session_count++;
    struct chronicle_session *added = &chronicle->sessions[ix];
    struct chronicle_task *task = &chronicle->tasks[session->task];
    *added = *session;
    added->cause = copy_text(chronicle, session->cause);
    added->reason = copy_text(chronicle, session->reason);
    added->claimed_ns = session->claimed_ns > 0 ? session->claimed_ns : 0;
    uint32_t task_max = chronicle->plan->task_count;
    if (added->task_count == 0 || added->task_count > task_max) {
        added->task_count = 1; /* damage must not be believed */
    }
    added->before = task->last_session;
    added->claim_event = CHRONICLE_NONE;
    added->end_event = CHRONICLE_NONE;
    task->last_session = ix;
}

/* The session of a task with this number, or CHRONICLE_NONE. */
static uint32_t
find_session(const struct chronicle *chronicle, uint32_t task, uint32_t number)
{
    uint32_t ix = chronicle->tasks[task].last_session;
    while (ix != CHRONICLE_NONE && chronicle->sessions[ix].number > number) {
        ix = chronicle->sessions[ix].before;
    }
    return ix != CHRONICLE_NONE && chronicle->sessions[ix].number == number
               ? ix
               : CHRONICLE_NONE;
}

/* Let events and sessions find each other. */
static void link_events(struct chronicle *chronicle)
{
    for (uint32_t ix = 0; ix < chronicle->event_count; ix++) {
        struct chronicle_event *event = &chronicle->events[ix];
        bool is_claim =
            event->kind == CHRONICLE_TASK && event->to == TASK_STARTING;
        if (!is_claim && event->kind != CHRONICLE_END) {
            continue;
        }
        uint32_t found = find_session(chronicle, event->task, event->number);
        if (found == CHRONICLE_NONE) {
            continue;
        }
        struct chronicle_session *session = &chronicle->sessions[found];
        if (!is_claim) {
            session->end_event = ix;
            event->session = found;
        } else if (session->claim_event == CHRONICLE_NONE) {
            session->claim_event = ix;
            event->session = found;
        }
    }
}

/* Times of a session that go forward, and lie within the chronicle. */
static void straighten(struct chronicle *chronicle,
                       struct chronicle_session *session)
{
    if (session->outcome == CHRONICLE_OPEN) {
        session->ended_ns = chronicle->end_ns;
    }
    int64_t end_ns = chronicle->end_ns;
    int64_t claimed_ns = session->claimed_ns;
    claimed_ns = claimed_ns < end_ns ? claimed_ns : end_ns;
    session->claimed_ns = claimed_ns;
    if (session->ended_ns < claimed_ns) {
        session->ended_ns = claimed_ns;
    }
    if (session->ended_ns > end_ns) {
        session->ended_ns = end_ns;
    }
    if (session->begun_ns < claimed_ns) {
        session->begun_ns = claimed_ns;
    }
    if (session->begun_ns > session->ended_ns) {
        session->begun_ns = session->ended_ns;
    }
}

void chronicle_finish(struct chronicle *chronicle, int64_t now_ns)
{
    int64_t end_ns = 0;
    for (uint32_t ix = 0; ix < chronicle->event_count; ix++) {
        const struct chronicle_event *event = &chronicle->events[ix];
        bool counts =
            event->kind == CHRONICLE_TASK || event->kind == CHRONICLE_END;
        end_ns = counts && event->at_ns > end_ns ? event->at_ns : end_ns;
    }
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        const struct chronicle_session *session = &chronicle->sessions[ix];
        if (session->outcome == CHRONICLE_OPEN) {
            chronicle->live = true;
        } else if (session->ended_ns > end_ns) {
            end_ns = session->ended_ns;
        }
    }
    chronicle->end_ns = chronicle->live && now_ns > end_ns ? now_ns : end_ns;
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        straighten(chronicle, &chronicle->sessions[ix]);
    }
    link_events(chronicle);
}

/* --- from a store ------------------------------------------------------- */

struct reader {
    struct chronicle *chronicle;
    struct diag *diag;
    const char *wanted; /* NULL: the newest */
    struct strbuf names;
    uint32_t run_count;
    uint64_t last_event; /* that belongs to the rows */
    struct event event;  /* the one that is being read */
};

static enum err name_run(void *ctx, const struct store_run *run)
{
    struct reader *reader = ctx;
    struct chronicle *chronicle = reader->chronicle;
    bool is_it = reader->wanted == NULL || strcmp(run->id, reader->wanted) == 0;
    if (is_it) {
        chronicle->id = copy_text(chronicle, run->id);
    }
    if (reader->run_count++ < RUNS_NAMED_MAX) {
        strbuf_addf(&reader->names,
                    "%s%s",
                    reader->names.len > 0 ? ", " : "",
                    run->id);
    }
    return ERR_OK;
}

/* Find the id of the run that is meant. */
static enum err find_run(struct reader *reader, struct store *store)
{
    struct store_query query = {.finished = true};
    struct store_visitor visitor = {.run = name_run};
    struct store_info info;
    enum err err =
        store_read(store, &query, &visitor, reader, &info, reader->diag);
    if (err != ERR_OK || reader->chronicle->id != NULL) {
        return err;
    }
    if (reader->run_count == 0) {
        return diag_set(reader->diag, ERR_NOT_FOUND, "the store has no run");
    }
    if (reader->run_count > RUNS_NAMED_MAX) {
        strbuf_addf(&reader->names,
                    " and %u more",
                    reader->run_count - RUNS_NAMED_MAX);
    }
    return diag_set(reader->diag,
                    ERR_NOT_FOUND,
                    "there is no run \"%s\"; there are: %s",
                    reader->wanted,
                    strbuf_text(&reader->names));
}

static enum err take_run(void *ctx, const struct store_run *run)
{
    struct reader *reader = ctx;
    struct chronicle *chronicle = reader->chronicle;
    chronicle->name = copy_text(chronicle, run->name);
    chronicle->file = copy_text(chronicle, run->file);
    chronicle->number = run->number;
    chronicle->processors = run->processors;
    chronicle->created_ns = run->created_ns;
    chronicle->finished = run->finished;
    chronicle->paused = run->paused;
    chronicle->cancelled = run->cancelled;
    return ERR_OK;
}

static enum err take_fragment(void *ctx, const struct store_fragment *fragment)
{
    struct reader *reader = ctx;
    struct chronicle *chronicle = reader->chronicle;
    if (fragment->number == 0) {
        chronicle->text = mem_strndup(fragment->text, fragment->text_bytes);
        chronicle->text_bytes = fragment->text_bytes;
        return ERR_OK;
    }
    chronicle->fragments = mem_resize(chronicle->fragments,
                                      chronicle->fragment_count + 1,
                                      sizeof(chronicle->fragments[0]));
    chronicle->fragments[chronicle->fragment_count++] =
        (struct chronicle_fragment){
            .file = mem_strndup(fragment->file, strlen(fragment->file)),
            .text = mem_strndup(fragment->text, fragment->text_bytes),
            .text_bytes = fragment->text_bytes,
        };
    return ERR_OK;
}

/* What the run expects of sessions: see engine/history.c. */
static enum err take_setting(void *ctx, const struct store_setting *setting)
{
    struct reader *reader = ctx;
    struct chronicle *chronicle = reader->chronicle;
    char name[32];
    (void)snprintf(name, sizeof(name), "expected/%u", chronicle->number);
    if (strcmp(setting->name, name) == 0 && setting->value != NULL &&
        chronicle->expected == NULL) {
        chronicle->expected =
            mem_strndup(setting->value, strlen(setting->value));
    }
    return ERR_OK;
}

/* The rows of tasks and attempts come after those of the run. */
static enum err need_plan(struct reader *reader)
{
    struct chronicle *chronicle = reader->chronicle;
    if (chronicle->plan != NULL) {
        return ERR_OK;
    }
    struct chronicle fresh;
    struct plan *plan;
    enum err err = chronicle_read_plan(chronicle, &plan, reader->diag);
    if (err == ERR_OK) {
        chronicle_init(&fresh, plan);
        chronicle->plan = fresh.plan;
        chronicle->tasks = fresh.tasks;
    }
    return err;
}

static enum err refuse(const struct reader *reader, const char *what)
{
    return diag_set(reader->diag,
                    ERR_CORRUPT,
                    "run %s: %s of a task that its plan does not have; "
                    "'sluice doctor' looks for damage",
                    reader->chronicle->id,
                    what);
}

static enum err take_task(void *ctx, const struct store_task *task)
{
    struct reader *reader = ctx;
    enum err err = need_plan(reader);
    if (err != ERR_OK) {
        return err;
    }
    struct chronicle *chronicle = reader->chronicle;
    if (task->ix >= chronicle->plan->task_count) {
        return refuse(reader, "the state");
    }
    chronicle->tasks[task->ix].reason = copy_text(chronicle, task->reason);
    return ERR_OK;
}

/* A moment of the wall clock since the submission; 0 for what cannot be. */
static int64_t since(const struct chronicle *chronicle, int64_t wall_ns)
{
    int64_t ns;
    return wall_ns > 0 &&
                   !__builtin_sub_overflow(wall_ns, chronicle->created_ns, &ns)
               ? ns
               : 0;
}

static enum chronicle_outcome outcome_of(const struct store_attempt *attempt)
{
    if (attempt->outcome == NULL || strcmp(attempt->state, "ended") != 0) {
        return CHRONICLE_OPEN;
    }
    enum sched_outcome outcome;
    if (outcome_read(attempt->outcome, &outcome)) {
        return (enum chronicle_outcome)outcome;
    }
    return CHRONICLE_FAILED; /* of a newer version: at least not done */
}

static enum err take_attempt(void *ctx, const struct store_attempt *attempt)
{
    struct reader *reader = ctx;
    enum err err = need_plan(reader);
    if (err != ERR_OK) {
        return err;
    }
    struct chronicle *chronicle = reader->chronicle;
    if (attempt->task >= chronicle->plan->task_count) {
        return refuse(reader, "an attempt");
    }
    struct chronicle_session session = {
        .token = attempt->token,
        .task = attempt->task,
        .number = attempt->number,
        .task_count = attempt->task_count,
        .claimed_ns = since(chronicle, attempt->claimed_ns),
        .begun_ns = since(chronicle, attempt->begun_ns),
        .ended_ns = since(chronicle, attempt->ended_ns),
        .outcome = outcome_of(attempt),
        .cause = attempt->cause,
        .reason = attempt->reason,
        .code = attempt->code,
        .signal = attempt->signal,
        .input_tokens = attempt->input_tokens > 0 ? attempt->input_tokens : 0,
        .output_tokens =
            attempt->output_tokens > 0 ? attempt->output_tokens : 0,
        .usd = attempt->usd > 0 && attempt->usd < USD_MAX ? attempt->usd : 0,
    };
    chronicle_add_session(chronicle, &session);
    return ERR_OK;
}

/* Limits of the run that an order has set. */
static void take_limits(struct chronicle *chronicle,
                        struct chronicle_event made,
                        struct jsonr limits)
{
    struct jsonr_member member;
    size_t cursor = 0;
    made.kind = CHRONICLE_LIMIT;
    while (jsonr_next(limits, &cursor, &member)) {
        struct strbuf name = {0};
        (void)jsonr_add_text(&name, member.name);
        made.part = plan_find_limit(chronicle->plan, strbuf_text(&name));
        made.max = jsonr_int(member.value);
        if (made.part != PLAN_NONE) {
            chronicle_add_event(chronicle, &made);
        }
        strbuf_release(&name);
    }
}

/* The kind of an order that is about a run or a task; false: another one. */
static bool read_verb(const struct event *event, enum chronicle_kind *out)
{
    static const struct {
        const char *verb;
        enum chronicle_kind kind;
    } verbs[] = {
        {"cap", CHRONICLE_LIMIT},
        {"hold", CHRONICLE_HOLD},
        {"pause", CHRONICLE_PAUSE},
        {"release", CHRONICLE_RELEASE},
        {"resume", CHRONICLE_RESUME},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (event_is_order(event, verbs[ix].verb)) {
            *out = verbs[ix].kind;
            return true;
        }
    }
    return false;
}

/* An order that was carried out, if it is one of those that matter here. */
static void take_order(struct chronicle *chronicle,
                       const struct event *event,
                       struct chronicle_event made)
{
    struct jsonr answer = event_answer(event);
    if (!jsonr_bool(jsonr_get(answer, "ok"))) {
        return;
    }
    struct jsonr override = jsonr_get(answer, "override");
    if (override.at != NULL) { /* it is about all runs */
        made.kind = CHRONICLE_OVERRIDE;
        made.max = jsonr_bool(override) ? 1 : 0;
        chronicle_add_event(chronicle, &made);
    }
    if (!jsonr_is(jsonr_get(answer, "run"), chronicle->id)) {
        return;
    }
    take_limits(chronicle, made, jsonr_get(answer, "limits"));
    if (!read_verb(event, &made.kind)) {
        return;
    }
    made.max = jsonr_int(jsonr_get(answer, "max"));
    if (made.kind == CHRONICLE_HOLD || made.kind == CHRONICLE_RELEASE) {
        struct strbuf id = {0};
        (void)jsonr_add_text(&id, jsonr_get(answer, "task"));
        made.task = plan_find_task(chronicle->plan, strbuf_text(&id));
        strbuf_release(&id);
        if (made.task == PLAN_NONE) {
            return;
        }
    }
    chronicle_add_event(chronicle, &made);
}

/* A usage monitor of the run has come to another state. */
static void take_usage(struct chronicle *chronicle,
                       const struct event *event,
                       struct chronicle_event made)
{
    const struct plan *plan = chronicle->plan;
    const char *provider = event->as.usage.provider;
    int64_t cap = event->as.usage.cap;
    made.kind = CHRONICLE_USAGE;
    made.max = cap >= 0 ? cap : PLAN_UNLIMITED;
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        uint32_t of = plan->usages[ix].provider;
        bool is_it = of == PLAN_NONE || provider == NULL
                         ? of == PLAN_NONE && provider == NULL
                         : strcmp(provider, plan->providers[of].name) == 0;
        if (is_it) {
            made.part = ix;
            chronicle_add_event(chronicle, &made);
        }
    }
}

static enum err take_event(void *ctx, const struct store_event *row)
{
    struct reader *reader = ctx;
    struct chronicle *chronicle = reader->chronicle;
    struct event *event = &reader->event;
    struct chronicle_event made = {
        .at_ns = since(chronicle, row->wall_ns),
        .task = row->task,
    };
    if (row->number > reader->last_event ||
        (row->run != STORE_NONE && row->run != chronicle->number)) {
        return ERR_OK; /* it happened after the rows were read, or elsewhere */
    }
    bool of_task = row->run != STORE_NONE && row->task != STORE_NONE;
    if (of_task && row->task >= chronicle->plan->task_count) {
        return refuse(reader, "an event");
    }
    event_read(event, row);
    if (row->run == STORE_NONE && event->kind == EVENT_KIND_ORDER) {
        take_order(chronicle, event, made);
    } else if (row->run != STORE_NONE && !of_task &&
               event->kind == EVENT_KIND_USAGE) {
        take_usage(chronicle, event, made);
    } else if (of_task && event->kind == EVENT_KIND_ATTEMPT) {
        made.kind = CHRONICLE_END;
        made.number = event->as.attempt.attempt;
        chronicle_add_event(chronicle, &made);
    } else if (of_task && event->kind == EVENT_KIND_TASK &&
               event->as.task.to != TASK_STATE_COUNT) {
        made.kind = CHRONICLE_TASK;
        made.number = event->as.task.attempt;
        made.to = (enum task_state)event->as.task.to;
        chronicle_add_event(chronicle, &made);
    }
    return ERR_OK;
}

enum err chronicle_read(struct chronicle *out,
                        struct store *store,
                        const char *run,
                        int64_t wall_ns,
                        struct diag *diag)
{
    *out = (struct chronicle){0};
    struct reader reader = {.chronicle = out, .diag = diag, .wanted = run};
    enum err err = find_run(&reader, store);
    strbuf_release(&reader.names);
    if (err != ERR_OK) {
        return err;
    }
    struct store_query query = {.run = out->id, .ended = true};
    struct store_visitor visitor = {
        .run = take_run,
        .fragment = take_fragment,
        .setting = take_setting,
        .task = take_task,
        .attempt = take_attempt,
    };
    struct store_info info = {0};
    err = store_read(store, &query, &visitor, &reader, &info, diag);
    if (err == ERR_OK) {
        err = need_plan(&reader);
    }
    reader.last_event = info.last_event;
    if (err == ERR_OK) {
        err = store_events(store,
                           &(struct store_range){.run = out->number},
                           take_event,
                           &reader,
                           diag);
    }
    event_release(&reader.event);
    if (err == ERR_OK) {
        chronicle_finish(out, since(out, wall_ns));
    }
    return err;
}

void chronicle_release(struct chronicle *chronicle)
{
    for (uint32_t ix = 0; ix < chronicle->fragment_count; ix++) {
        mem_free(chronicle->fragments[ix].file);
        mem_free(chronicle->fragments[ix].text);
    }
    mem_free(chronicle->fragments);
    mem_free(chronicle->text);
    mem_free(chronicle->expected);
    mem_free(chronicle->tasks);
    mem_free(chronicle->events);
    mem_free(chronicle->sessions);
    plan_free(chronicle->plan);
    arena_release(&chronicle->arena);
    *chronicle = (struct chronicle){0};
}

/* {"CLASS": [nanoseconds, money, tokens], ...} */
static void expect(struct plan *plan, const char *expected)
{
    json_t *json = expected != NULL ? json_loads(expected, 0, NULL) : NULL;
    const char *name;
    json_t *mean;
    json_object_foreach(json, name, mean)
    {
        struct plan_expected wanted = {
            .duration_ns = json_integer_value(json_array_get(mean, 0)),
            .cost.usd = json_integer_value(json_array_get(mean, 1)),
            .cost.tokens = json_integer_value(json_array_get(mean, 2)),
        };
        plan_expect(plan, name, &wanted);
    }
    json_decref(json);
}

enum err chronicle_read_plan(const struct chronicle *chronicle,
                             struct plan **out,
                             struct diag *diag)
{
    struct plan_errors errors = {0};
    struct plan_source source = {
        .file = chronicle->file,
        .text = chronicle->text,
        .len = chronicle->text_bytes,
        .processors = chronicle->processors,
    };
    bool good = plan_read(out, &source, &errors);
    struct plan_source *added =
        mem_zalloc(chronicle->fragment_count, sizeof(added[0]));
    uint32_t added_count = 0;
    for (uint32_t ix = 0; good && ix < chronicle->fragment_count; ix++) {
        const struct chronicle_fragment *fragment = &chronicle->fragments[ix];
        source.file = fragment->file;
        source.text = fragment->text;
        source.len = fragment->text_bytes;
        if (revise_is_update(source.file)) {
            struct plan *old = *out;
            good = revise_plan(out, old, &source, added, added_count, &errors);
            plan_free(old);
        } else {
            added[added_count++] = source;
            good = plan_add(*out, &source, &errors);
        }
    }
    mem_free(added);
    enum err err = ERR_OK;
    if (good) {
        expect(*out, chronicle->expected);
    } else {
        err = diag_set(diag,
                       ERR_CORRUPT,
                       "run %s: its stored plan cannot be read: %s",
                       chronicle->id,
                       errors.count > 0 ? errors.items[0].text : "?");
        plan_free(*out);
        *out = NULL;
    }
    plan_errors_release(&errors);
    return err;
}
