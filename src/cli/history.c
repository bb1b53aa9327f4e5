/* SPDX-License-Identifier: MIT */
/*
 * Events are linked backwards, task by task, and so are sessions; that is the
 * direction in which the critical path is walked. A session and the event of
 * its claim find each other by task and number of the attempt: both were
 * written in one batch. The further tasks of a batch have no attempt of their
 * own, and their events name none that is new.
 */
#include "cli/history.h"

#include "base/invariant.h"
#include "base/jsonr.h"
#include "base/macros.h"
#include "base/mem.h"

#include <string.h>

enum { RUNS_NAMED_MAX = 8 };

static const char *const outcome_names[HISTORY_OUTCOMES] = {
    [HISTORY_DONE] = "done",
    [HISTORY_FAILED] = "failed",
    [HISTORY_REFUSED] = "refused",
    [HISTORY_CHANGES] = "changes",
    [HISTORY_BLOCKED] = "blocked",
    [HISTORY_CHECKPOINT] = "checkpoint",
    [HISTORY_LOST] = "lost",
    [HISTORY_STOPPED] = "stopped",
    [HISTORY_OPEN] = "running",
};

const char *history_outcome_name(enum history_outcome outcome)
{
    INVARIANT(outcome < HISTORY_OUTCOMES);
    return outcome_names[outcome];
}

bool history_is_bad(enum history_outcome outcome)
{
    switch (outcome) {
    case HISTORY_DONE:
    case HISTORY_CHECKPOINT:
    case HISTORY_OPEN:
        return false;
    case HISTORY_FAILED:
    case HISTORY_REFUSED:
    case HISTORY_CHANGES:
    case HISTORY_BLOCKED:
    case HISTORY_LOST:
    case HISTORY_STOPPED:
    case HISTORY_OUTCOMES:
        return true;
    }
    return true;
}

uint32_t history_group(const struct history *history, uint32_t task)
{
    uint32_t group = history->plan->tasks[task].group;
    return group != PLAN_NONE ? group : history->plan->group_count + task;
}

static const char *copy_text(struct history *history, const char *text)
{
    return text != NULL ? arena_strndup(&history->arena, text, strlen(text))
                        : NULL;
}

/* --- by hand ------------------------------------------------------------ */

void history_init(struct history *history, struct plan *plan_take)
{
    *history = (struct history){.plan = plan_take};
    history->id = history->name = plan_take->name;
    history->tasks =
        mem_zalloc(plan_take->task_count, sizeof(history->tasks[0]));
    for (uint32_t ix = 0; ix < plan_take->task_count; ix++) {
        history->tasks[ix].last_event = HISTORY_NONE;
        history->tasks[ix].last_session = HISTORY_NONE;
    }
}

void history_add_event(struct history *history,
                       const struct history_event *event)
{
    if (history->event_count == history->event_capacity) {
        history->event_capacity = 2 * history->event_capacity + 64;
        history->events = mem_resize(history->events,
                                     history->event_capacity,
                                     sizeof(history->events[0]));
    }
    uint32_t ix = history->event_count++;
    struct history_event *added = &history->events[ix];
    *added = *event;
    added->before = HISTORY_NONE;
    added->session = HISTORY_NONE;
    int64_t least_ns = ix > 0 ? history->events[ix - 1].at_ns : 0;
    added->at_ns = added->at_ns > least_ns ? added->at_ns : least_ns;
    if (event->kind == HISTORY_TASK) {
        struct history_task *task = &history->tasks[event->task];
        added->before = task->last_event;
        task->last_event = ix;
        task->state = event->to;
        task->seen = true;
    }
}

void history_add_session(struct history *history,
                         const struct history_session *session)
{
    if (history->session_count == history->session_capacity) {
        history->session_capacity = 2 * history->session_capacity + 64;
        history->sessions = mem_resize(history->sessions,
                                       history->session_capacity,
                                       sizeof(history->sessions[0]));
    }
    uint32_t ix = history->session_count++;
    struct history_session *added = &history->sessions[ix];
    struct history_task *task = &history->tasks[session->task];
    *added = *session;
    added->cause = copy_text(history, session->cause);
    added->reason = copy_text(history, session->reason);
    added->claimed_ns = session->claimed_ns > 0 ? session->claimed_ns : 0;
    added->before = task->last_session;
    added->claim_event = HISTORY_NONE;
    added->end_event = HISTORY_NONE;
    task->last_session = ix;
}

/* The session of a task with this number, or HISTORY_NONE. */
static uint32_t
find_session(const struct history *history, uint32_t task, uint32_t number)
{
    uint32_t ix = history->tasks[task].last_session;
    while (ix != HISTORY_NONE && history->sessions[ix].number > number) {
        ix = history->sessions[ix].before;
    }
    return ix != HISTORY_NONE && history->sessions[ix].number == number
               ? ix
               : HISTORY_NONE;
}

/* Let events and sessions find each other. */
static void link_events(struct history *history)
{
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        struct history_event *event = &history->events[ix];
        bool is_claim =
            event->kind == HISTORY_TASK && event->to == TASK_CLAIMED;
        if (!is_claim && event->kind != HISTORY_END) {
            continue;
        }
        uint32_t found = find_session(history, event->task, event->number);
        if (found == HISTORY_NONE) {
            continue;
        }
        struct history_session *session = &history->sessions[found];
        if (!is_claim) {
            session->end_event = ix;
            event->session = found;
        } else if (session->claim_event == HISTORY_NONE) {
            session->claim_event = ix;
            event->session = found;
        }
    }
}

/* Times of a session that go forward, and lie within the history. */
static void straighten(struct history *history, struct history_session *session)
{
    if (session->outcome == HISTORY_OPEN) {
        session->ended_ns = history->end_ns;
    }
    int64_t end_ns = history->end_ns;
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

void history_finish(struct history *history, int64_t now_ns)
{
    int64_t end_ns = 0;
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        const struct history_event *event = &history->events[ix];
        bool counts = event->kind == HISTORY_TASK || event->kind == HISTORY_END;
        end_ns = counts && event->at_ns > end_ns ? event->at_ns : end_ns;
    }
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct history_session *session = &history->sessions[ix];
        if (session->outcome == HISTORY_OPEN) {
            history->live = true;
        } else if (session->ended_ns > end_ns) {
            end_ns = session->ended_ns;
        }
    }
    history->end_ns = history->live && now_ns > end_ns ? now_ns : end_ns;
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        straighten(history, &history->sessions[ix]);
    }
    link_events(history);
}

/* --- from a store ------------------------------------------------------- */

struct reader {
    struct history *history;
    struct diag *diag;
    const char *wanted; /* NULL: the newest */
    struct strbuf names;
    uint32_t run_count;
    uint64_t last_event; /* that belongs to the rows */
};

static enum err name_run(void *ctx, const struct store_run *run)
{
    struct reader *reader = ctx;
    struct history *history = reader->history;
    bool is_it = reader->wanted == NULL || strcmp(run->id, reader->wanted) == 0;
    if (is_it) {
        history->id = copy_text(history, run->id);
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
    if (err != ERR_OK || reader->history->id != NULL) {
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
    struct history *history = reader->history;
    history->name = copy_text(history, run->name);
    history->file = copy_text(history, run->file);
    history->number = run->number;
    history->processors = run->processors;
    history->created_ns = run->created_ns;
    history->finished = run->finished;
    history->paused = run->paused;
    history->cancelled = run->cancelled;
    history->text = mem_strndup(run->text, run->text_bytes);
    history->text_bytes = run->text_bytes;
    return ERR_OK;
}

static enum err take_fragment(void *ctx, const struct store_fragment *fragment)
{
    struct reader *reader = ctx;
    struct history *history = reader->history;
    history->fragments = mem_resize(history->fragments,
                                    history->fragment_count + 1,
                                    sizeof(history->fragments[0]));
    history->fragments[history->fragment_count++] = (struct history_fragment){
        .file = mem_strndup(fragment->file, strlen(fragment->file)),
        .text = mem_strndup(fragment->text, fragment->text_bytes),
        .text_bytes = fragment->text_bytes,
    };
    return ERR_OK;
}

/* The rows of tasks and attempts come after those of the run. */
static enum err need_plan(struct reader *reader)
{
    struct history *history = reader->history;
    if (history->plan != NULL) {
        return ERR_OK;
    }
    struct history fresh;
    struct plan *plan;
    enum err err = history_read_plan(history, &plan, reader->diag);
    if (err == ERR_OK) {
        history_init(&fresh, plan);
        history->plan = fresh.plan;
        history->tasks = fresh.tasks;
    }
    return err;
}

static enum err refuse(const struct reader *reader, const char *what)
{
    return diag_set(reader->diag,
                    ERR_CORRUPT,
                    "run %s: %s of a task that its plan does not have; "
                    "'sluice doctor' looks for damage",
                    reader->history->id,
                    what);
}

static enum err take_task(void *ctx, const struct store_task *task)
{
    struct reader *reader = ctx;
    enum err err = need_plan(reader);
    if (err != ERR_OK) {
        return err;
    }
    struct history *history = reader->history;
    if (task->ix >= history->plan->task_count) {
        return refuse(reader, "the state");
    }
    history->tasks[task->ix].reason = copy_text(history, task->reason);
    return ERR_OK;
}

static enum history_outcome outcome_of(const struct store_attempt *attempt)
{
    if (attempt->outcome == NULL || strcmp(attempt->state, "ended") != 0) {
        return HISTORY_OPEN;
    }
    for (enum history_outcome ix = 0; ix < HISTORY_OPEN; ix++) {
        if (strcmp(outcome_names[ix], attempt->outcome) == 0) {
            return ix;
        }
    }
    return HISTORY_FAILED; /* of a newer version: at least not done */
}

static enum err take_attempt(void *ctx, const struct store_attempt *attempt)
{
    struct reader *reader = ctx;
    enum err err = need_plan(reader);
    if (err != ERR_OK) {
        return err;
    }
    struct history *history = reader->history;
    if (attempt->task >= history->plan->task_count) {
        return refuse(reader, "an attempt");
    }
    struct history_session session = {
        .token = attempt->token,
        .task = attempt->task,
        .number = attempt->number,
        .task_count = attempt->task_count,
        .claimed_ns = attempt->claimed_ns - history->created_ns,
        .begun_ns = attempt->begun_ns - history->created_ns,
        .ended_ns = attempt->ended_ns - history->created_ns,
        .outcome = outcome_of(attempt),
        .cause = attempt->cause,
        .reason = attempt->reason,
        .code = attempt->code,
        .signal = attempt->signal,
        .input_tokens = attempt->input_tokens,
        .output_tokens = attempt->output_tokens,
        .usd = attempt->usd,
    };
    history_add_session(history, &session);
    return ERR_OK;
}

static bool read_state(struct jsonr value, enum task_state *out)
{
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (jsonr_is(value, sched_state_name((enum task_state)ix))) {
            *out = (enum task_state)ix;
            return true;
        }
    }
    return false;
}

/* An order that was carried out, if it is one of those that matter here. */
static bool read_order(const struct history *history,
                       struct jsonr data,
                       struct history_event *out)
{
    static const struct {
        const char *verb;
        enum history_kind kind;
    } verbs[] = {
        {"cap", HISTORY_CAP},
        {"hold", HISTORY_HOLD},
        {"pause", HISTORY_PAUSE},
        {"release", HISTORY_RELEASE},
        {"resume", HISTORY_RESUME},
    };
    struct jsonr answer = jsonr_get(data, "answer");
    struct jsonr ok = jsonr_get(answer, "ok");
    if (ok.len != 4 || !jsonr_is(jsonr_get(answer, "run"), history->id)) {
        return false;
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (!jsonr_is(jsonr_get(data, "verb"), verbs[ix].verb)) {
            continue;
        }
        out->kind = verbs[ix].kind;
        out->max = jsonr_int(jsonr_get(answer, "max"));
        if (out->kind != HISTORY_HOLD && out->kind != HISTORY_RELEASE) {
            return true;
        }
        struct strbuf id = {0};
        (void)jsonr_add_text(&id, jsonr_get(answer, "task"));
        out->task = plan_find_task(history->plan, strbuf_text(&id));
        strbuf_release(&id);
        return out->task != PLAN_NONE;
    }
    return false;
}

static enum err take_event(void *ctx, const struct store_event *event)
{
    struct reader *reader = ctx;
    struct history *history = reader->history;
    struct history_event made = {
        .at_ns = event->wall_ns - history->created_ns,
        .task = event->task,
    };
    struct jsonr data = jsonr_of(event->data);
    if (event->number > reader->last_event) {
        return ERR_OK; /* it happened after the rows were read */
    }
    if (event->run == STORE_NONE) {
        if (strcmp(event->kind, "order") == 0 &&
            read_order(history, data, &made)) {
            history_add_event(history, &made);
        }
        return ERR_OK;
    }
    if (event->run != history->number || event->task == STORE_NONE) {
        return ERR_OK;
    }
    if (event->task >= history->plan->task_count) {
        return refuse(reader, "an event");
    }
    made.number = (uint32_t)jsonr_int(jsonr_get(data, "attempt"));
    if (strcmp(event->kind, "attempt") == 0) {
        made.kind = HISTORY_END;
        history_add_event(history, &made);
    } else if (strcmp(event->kind, "task") == 0 &&
               read_state(jsonr_get(data, "to"), &made.to)) {
        made.kind = HISTORY_TASK;
        history_add_event(history, &made);
    }
    return ERR_OK;
}

enum err history_read(struct history *out,
                      struct store *store,
                      const char *run,
                      int64_t wall_ns,
                      struct diag *diag)
{
    *out = (struct history){0};
    struct reader reader = {.history = out, .diag = diag, .wanted = run};
    enum err err = find_run(&reader, store);
    strbuf_release(&reader.names);
    if (err != ERR_OK) {
        return err;
    }
    struct store_query query = {.finished = true,
                                .run = out->id,
                                .ended = true};
    struct store_visitor visitor = {
        .run = take_run,
        .fragment = take_fragment,
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
        err = store_events(store, 0, take_event, &reader, diag);
    }
    if (err == ERR_OK) {
        history_finish(out, wall_ns - out->created_ns);
    }
    return err;
}

void history_release(struct history *history)
{
    for (uint32_t ix = 0; ix < history->fragment_count; ix++) {
        mem_free(history->fragments[ix].file);
        mem_free(history->fragments[ix].text);
    }
    mem_free(history->fragments);
    mem_free(history->text);
    mem_free(history->tasks);
    mem_free(history->events);
    mem_free(history->sessions);
    plan_free(history->plan);
    arena_release(&history->arena);
    *history = (struct history){0};
}

enum err history_read_plan(const struct history *history,
                           struct plan **out,
                           struct diag *diag)
{
    struct plan_errors errors = {0};
    struct plan_source source = {
        .file = history->file,
        .text = history->text,
        .len = history->text_bytes,
        .processors = history->processors,
    };
    bool good = plan_read(out, &source, &errors);
    for (uint32_t ix = 0; good && ix < history->fragment_count; ix++) {
        const struct history_fragment *fragment = &history->fragments[ix];
        source.file = fragment->file;
        source.text = fragment->text;
        source.len = fragment->text_bytes;
        good = plan_add(*out, &source, &errors);
    }
    enum err err = ERR_OK;
    if (!good) {
        err = diag_set(diag,
                       ERR_CORRUPT,
                       "run %s: its stored plan cannot be read: %s",
                       history->id,
                       errors.count > 0 ? errors.items[0].text : "?");
        plan_free(*out);
        *out = NULL;
    }
    plan_errors_release(&errors);
    return err;
}
