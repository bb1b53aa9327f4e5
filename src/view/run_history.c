/* SPDX-License-Identifier: MIT */
/*
 * History of a run, read from the store. Events link backwards per task, and so
 * do sessions; the critical path is walked in that direction. A session and the
 * event of its claim are matched by task and attempt number: both were written
 * in one transaction. The further tasks of a batch have no attempt, and their
 * events name no new one.
 */
#include "view/run_history.h"

#include "base/invariant.h"
#include "base/jsonr.h"
#include "base/macros.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "plan/revise.h"
#include "store/event.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { RUNS_NAMED_MAX = 8 };

/* Sanity limit on the cost of a session. */
#define USD_MAX 1e9

const char *run_history_outcome_name(enum run_history_outcome outcome)
{
    INVARIANT(outcome < HISTORY_OUTCOMES);
    return outcome == HISTORY_OPEN ? "running"
                                   : outcome_name((enum sched_outcome)outcome);
}

bool run_history_is_bad(enum run_history_outcome outcome)
{
    return outcome != HISTORY_DONE && outcome != HISTORY_CHECKPOINT &&
           outcome != HISTORY_LATER && outcome != HISTORY_OPEN;
}

uint32_t run_history_group(const struct run_history *history, uint32_t task)
{
    uint32_t group = history->plan->tasks[task].group;
    return group != PLAN_NONE ? group : history->plan->group_count + task;
}

bool run_history_is_loose(const struct run_history *history, uint32_t task)
{
    return history->tasks[task].state == TASK_FAILED &&
           history->plan->tasks[task].settings->optional;
}

/* Whether a task counts as done for the outcome of the run. */
static bool is_good(const struct run_history *history, uint32_t task)
{
    enum task_state state = history->tasks[task].state;
    return history->plan->tasks[task].last || state == TASK_DONE ||
           state == TASK_SKIPPED || run_history_is_loose(history, task);
}

const char *run_history_outcome(const struct run_history *history)
{
    bool stopped = history->stopped != SCHED_NOT_STOPPED && !history->live;
    if (!history->finished) {
        return stopped ? "stopped" : NULL;
    }
    if (history->cancelled) {
        return "cancelled";
    }
    for (uint32_t ix = 0; ix < history->plan->task_count; ix++) {
        if (!is_good(history, ix)) {
            return stopped ? "stopped" : "failed";
        }
    }
    return "done";
}

static const char *copy_text(struct run_history *history, const char *text)
{
    return text != NULL ? arena_strndup(&history->arena, text, strlen(text))
                        : NULL;
}

/* --- building a history ------------------------------------------------- */

void run_history_init(struct run_history *history, struct plan *plan_take)
{
    INVARIANT(plan_take != NULL);
    *history = (struct run_history){.plan = plan_take};
    history->id = history->name = plan_take->name;
    history->tasks =
        mem_zalloc(plan_take->task_count, sizeof(history->tasks[0]));
    for (uint32_t ix = 0; ix < plan_take->task_count; ix++) {
        history->tasks[ix].last_event = HISTORY_NONE;
        history->tasks[ix].last_session = HISTORY_NONE;
    }
}

void run_history_add_event(struct run_history *history,
                           const struct run_history_event *event)
{
    MEM_GROW(history->events, history->event_count, history->event_capacity);
    uint32_t ix = history->event_count++;
    struct run_history_event *added = &history->events[ix];
    *added = *event;
    added->before = HISTORY_NONE;
    added->session = HISTORY_NONE;
    int64_t least_ns = ix > 0 ? history->events[ix - 1].at_ns : 0;
    added->at_ns = added->at_ns > least_ns ? added->at_ns : least_ns;
    if (event->kind == HISTORY_TASK) {
        struct run_history_task *task = &history->tasks[event->task];
        added->before = task->last_event;
        task->last_event = ix;
        task->state = event->to;
        task->seen = true;
    }
}

void run_history_add_session(struct run_history *history,
                             const struct run_history_session *session)
{
    MEM_GROW(history->sessions,
             history->session_count,
             history->session_capacity);
    uint32_t ix = history->session_count++;
    struct run_history_session *added = &history->sessions[ix];
    struct run_history_task *task = &history->tasks[session->task];
    *added = *session;
    added->cause = copy_text(history, session->cause);
    added->reason = copy_text(history, session->reason);
    added->claimed_ns = session->claimed_ns > 0 ? session->claimed_ns : 0;
    uint32_t task_max = history->plan->task_count;
    if (added->task_count == 0 || added->task_count > task_max) {
        added->task_count = 1; /* do not trust a damaged row */
    }
    added->before = task->last_session;
    added->claim_event = HISTORY_NONE;
    added->end_event = HISTORY_NONE;
    task->last_session = ix;
}

/* Return the session of a task with this number, or HISTORY_NONE. */
static uint32_t
find_session(const struct run_history *history, uint32_t task, uint32_t number)
{
    uint32_t ix = history->tasks[task].last_session;
    while (ix != HISTORY_NONE && history->sessions[ix].number > number) {
        ix = history->sessions[ix].before;
    }
    return ix != HISTORY_NONE && history->sessions[ix].number == number
               ? ix
               : HISTORY_NONE;
}

/* Link events and sessions to each other. */
static void link_events(struct run_history *history)
{
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        struct run_history_event *event = &history->events[ix];
        bool is_claim =
            event->kind == HISTORY_TASK && event->to == TASK_STARTING;
        if (!is_claim && event->kind != HISTORY_END) {
            continue;
        }
        uint32_t found = find_session(history, event->task, event->number);
        if (found == HISTORY_NONE) {
            continue;
        }
        struct run_history_session *session = &history->sessions[found];
        if (!is_claim) {
            session->end_event = ix;
            session->restarts = event->restarts;
            event->session = found;
        } else if (session->claim_event == HISTORY_NONE) {
            session->claim_event = ix;
            event->session = found;
        }
    }
}

static int64_t clamp(int64_t ns, int64_t least_ns, int64_t most_ns)
{
    return ns < least_ns ? least_ns : ns > most_ns ? most_ns : ns;
}

/* Clamp the times of a session to the history, in ascending order. */
static void straighten(struct run_history *history,
                       struct run_history_session *session)
{
    int64_t end_ns = history->end_ns;
    int64_t ended_ns =
        session->outcome == HISTORY_OPEN ? end_ns : session->ended_ns;
    session->claimed_ns = clamp(session->claimed_ns, 0, end_ns);
    session->ended_ns = clamp(ended_ns, session->claimed_ns, end_ns);
    session->begun_ns =
        clamp(session->begun_ns, session->claimed_ns, session->ended_ns);
}

void run_history_finish(struct run_history *history, int64_t now_ns)
{
    int64_t end_ns = 0;
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        const struct run_history_event *event = &history->events[ix];
        bool counts = event->kind == HISTORY_TASK || event->kind == HISTORY_END;
        end_ns = counts && event->at_ns > end_ns ? event->at_ns : end_ns;
    }
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
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
    struct run_history *history;
    struct diag *diag;
    const char *wanted; /* NULL: the newest */
    struct strbuf names;
    uint32_t run_count;
    uint64_t last_event; /* that belongs to the rows */
    struct event event;  /* being read */
};

static enum err name_run(void *ctx, const struct store_run *run)
{
    struct reader *reader = ctx;
    struct run_history *history = reader->history;
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

/* Find the id of the selected run. */
static enum err find_run(struct reader *reader, struct store *store)
{
    struct store_query query = {.finished = true};
    struct store_visitor visitor = {.run = name_run};
    enum err err =
        store_read(store, &query, &visitor, reader, NULL, reader->diag);
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
                    "no run \"%s\"; known: %s",
                    reader->wanted,
                    strbuf_text(&reader->names));
}

static enum err take_run(void *ctx, const struct store_run *run)
{
    struct reader *reader = ctx;
    struct run_history *history = reader->history;
    history->name = copy_text(history, run->name);
    history->file = copy_text(history, run->file);
    history->number = run->number;
    history->processors = run->processors;
    history->old_rules = run->rules < PLAN_RULES;
    history->base_gates = run->base_gates;
    history->created_ns = run->created_ns;
    history->finished = run->finished;
    history->paused = run->paused;
    history->stopped = (enum sched_stop)run->stopped;
    history->cancelled = run->cancelled;
    return ERR_OK;
}

/* Add a fragment; the store reads them after their run, by number. */
static enum err take_fragment(void *ctx, const struct store_fragment *fragment)
{
    struct reader *reader = ctx;
    struct run_history *history = reader->history;
    history->sources = mem_resize(history->sources,
                                  history->source_count + 1,
                                  sizeof(history->sources[0]));
    history->sources[history->source_count++] = (struct plan_source){
        .file = fragment->number == 0 ? history->file
                                      : copy_text(history, fragment->file),
        .text = arena_strndup(&history->arena,
                              fragment->text,
                              fragment->text_bytes),
        .len = fragment->text_bytes,
        .processors = history->processors,
        .old_rules = history->old_rules,
        .no_base_gates = !history->base_gates,
    };
    return ERR_OK;
}

/* Read what the run knew of sessions when it was submitted. */
static enum err take_setting(void *ctx, const struct store_setting *setting)
{
    struct reader *reader = ctx;
    struct run_history *history = reader->history;
    char name[32];
    (void)snprintf(name, sizeof(name), "expected/%u", history->number);
    if (strcmp(setting->name, name) == 0 && setting->value != NULL &&
        history->expected == NULL) {
        history->expected = copy_text(history, setting->value);
    }
    return ERR_OK;
}

static enum err read_plan(const struct run_history *history,
                          struct plan **out,
                          uint32_t *counts,
                          struct diag *diag);

/* Read the plan, before the first task or attempt row. */
static enum err need_plan(struct reader *reader)
{
    struct run_history *history = reader->history;
    if (history->plan != NULL) {
        return ERR_OK;
    }
    struct run_history fresh;
    struct plan *plan;
    ARENA_ARRAY(&history->arena, history->source_tasks, history->source_count);
    enum err err =
        read_plan(history, &plan, history->source_tasks, reader->diag);
    if (err == ERR_OK) {
        run_history_init(&fresh, plan);
        history->plan = fresh.plan;
        history->tasks = fresh.tasks;
    }
    return err;
}

static enum err refuse(const struct reader *reader, const char *what)
{
    return diag_set(reader->diag,
                    ERR_CORRUPT,
                    "run %s: %s of a task that is not in its plan; check the "
                    "store with 'sluice doctor'",
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
    struct run_history *history = reader->history;
    if (task->ix >= history->plan->task_count) {
        return refuse(reader, "the state");
    }
    history->tasks[task->ix].reason = copy_text(history, task->reason);
    history->tasks[task->ix].unapproved =
        (task->flags & SCHED_RECORD_UNAPPROVED) != 0 &&
        strcmp(task->state, sched_state_name(TASK_READY)) == 0;
    return ERR_OK;
}

/* Return a wall-clock time relative to the submission; 0 if invalid. */
static int64_t since(const struct run_history *history, int64_t wall_ns)
{
    int64_t ns;
    return wall_ns > 0 &&
                   !__builtin_sub_overflow(wall_ns, history->created_ns, &ns)
               ? ns
               : 0;
}

static enum run_history_outcome outcome_of(const struct store_attempt *attempt)
{
    if (attempt->outcome == NULL || strcmp(attempt->state, "ended") != 0) {
        return HISTORY_OPEN;
    }
    enum sched_outcome outcome;
    if (outcome_read(attempt->outcome, &outcome)) {
        return (enum run_history_outcome)outcome;
    }
    return HISTORY_FAILED; /* unknown, from a newer version: not done */
}

static enum err take_attempt(void *ctx, const struct store_attempt *attempt)
{
    struct reader *reader = ctx;
    enum err err = need_plan(reader);
    if (err != ERR_OK) {
        return err;
    }
    struct run_history *history = reader->history;
    if (attempt->task >= history->plan->task_count) {
        return refuse(reader, "an attempt");
    }
    struct run_history_session session = {
        .token = attempt->token,
        .task = attempt->task,
        .number = attempt->number,
        .task_count = attempt->task_count,
        .confined = attempt->confined,
        .claimed_ns = since(history, attempt->claimed_ns),
        .begun_ns = since(history, attempt->begun_ns),
        .ended_ns = since(history, attempt->ended_ns),
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
    run_history_add_session(history, &session);
    return ERR_OK;
}

static struct run_history_gate *
find_gate(struct run_history *history, const char *repo, const char *command)
{
    for (uint32_t ix = 0; ix < history->gate_count; ix++) {
        struct run_history_gate *gate = &history->gates[ix];
        if (strcmp(gate->repo, repo) == 0 &&
            strcmp(gate->command, command) == 0) {
            return gate;
        }
    }
    MEM_EXTEND(history->gates, history->gate_count);
    struct run_history_gate *gate = &history->gates[history->gate_count++];
    *gate = (struct run_history_gate){
        .repo = repo,
        .command = arena_strndup(&history->arena, command, strlen(command)),
    };
    return gate;
}

static enum err take_gate(void *ctx, const struct store_gate *row)
{
    struct reader *reader = ctx;
    enum err err = need_plan(reader);
    if (err != ERR_OK) {
        return err;
    }
    const struct plan *plan = reader->history->plan;
    if (row->task >= plan->task_count ||
        plan->tasks[row->task].repo == PLAN_NONE) {
        return refuse(reader, "a gate");
    }
    struct run_history_gate *gate =
        find_gate(reader->history,
                  plan->repos[plan->tasks[row->task].repo].name,
                  row->command);
    gate->flaky += strcmp(row->verdict, "flaky") == 0 ? 1 : 0;
    gate->failed += strcmp(row->verdict, "failed") == 0 ? 1 : 0;
    gate->passed += strcmp(row->verdict, "passed") == 0 ? 1 : 0;
    return ERR_OK;
}

/* Compare gates: the most often flaky first, then by name. */
static int compare_gates(const void *left, const void *right)
{
    const struct run_history_gate *a = left;
    const struct run_history_gate *b = right;
    if (a->flaky != b->flaky) {
        return a->flaky > b->flaky ? -1 : 1;
    }
    int by_repo = strcmp(a->repo, b->repo);
    return by_repo != 0 ? by_repo : strcmp(a->command, b->command);
}

/* Add the limits that a request has set. */
static void take_limits(struct run_history *history,
                        struct run_history_event made,
                        struct jsonr limits)
{
    struct jsonr_member member;
    size_t cursor = 0;
    made.kind = HISTORY_LIMIT;
    while (jsonr_next(limits, &cursor, &member)) {
        struct strbuf name = {0};
        (void)jsonr_add_text(&name, member.name);
        made.part = plan_find_limit(history->plan, strbuf_text(&name));
        made.max = jsonr_int(member.value);
        if (made.part != PLAN_NONE) {
            run_history_add_event(history, &made);
        }
        strbuf_release(&name);
    }
}

/* Get the kind of a request about a run or a task; false: another kind. */
static bool read_verb(const struct event *event, enum run_history_kind *out)
{
    static const struct {
        const char *verb;
        enum run_history_kind kind;
    } verbs[] = {
        {"answer", HISTORY_RELEASE},
        {"approve", HISTORY_RELEASE},
        {"cap", HISTORY_LIMIT},
        {"limit", HISTORY_LIMIT},
        {"hold", HISTORY_HOLD},
        {"pause", HISTORY_PAUSE},
        {"release", HISTORY_RELEASE},
        {"resume", HISTORY_RESUME},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (event_is_request(event, verbs[ix].verb)) {
            *out = verbs[ix].kind;
            return true;
        }
    }
    return false;
}

/* Add a request if it was carried out and is relevant here. */
static void take_request(struct run_history *history,
                         const struct event *event,
                         struct run_history_event made)
{
    struct jsonr answer = event_answer(event);
    if (!jsonr_bool(jsonr_get(answer, "ok"))) {
        return;
    }
    struct jsonr override = jsonr_get(answer, "override");
    if (override.at != NULL) { /* applies to all runs */
        made.kind = HISTORY_OVERRIDE;
        made.max = jsonr_bool(override) ? 1 : 0;
        run_history_add_event(history, &made);
    }
    if (!jsonr_is(jsonr_get(answer, "run"), history->id)) {
        return;
    }
    take_limits(history, made, jsonr_get(answer, "limits"));
    if (!read_verb(event, &made.kind)) {
        return;
    }
    struct jsonr max = jsonr_get(answer, "max");
    bool none = max.at != NULL && *max.at == 'n'; /* null */
    made.max = none ? PLAN_UNLIMITED : jsonr_int(max);
    if (event_is_request(event, "limit")) {
        struct strbuf name = {0};
        (void)jsonr_add_text(&name, jsonr_get(answer, "limit"));
        made.part = plan_find_limit(history->plan, strbuf_text(&name));
        strbuf_release(&name);
        if (made.part == PLAN_NONE) {
            return;
        }
    }
    if (made.kind == HISTORY_HOLD || made.kind == HISTORY_RELEASE) {
        struct strbuf id = {0};
        (void)jsonr_add_text(&id, jsonr_get(answer, "task"));
        made.task = plan_find_task(history->plan, strbuf_text(&id));
        strbuf_release(&id);
        if (made.task == PLAN_NONE ||
            (event_is_request(event, "answer") &&
             !history->plan->tasks[made.task].approve)) {
            return;
        }
    }
    run_history_add_event(history, &made);
}

/* Add a state change of a usage monitor of the run. */
static void take_usage(struct run_history *history,
                       const struct event *event,
                       struct run_history_event made)
{
    const struct plan *plan = history->plan;
    const char *provider = event->as.usage.provider;
    int64_t cap = event->as.usage.cap;
    made.kind = HISTORY_USAGE;
    made.max = cap >= 0 ? cap : PLAN_UNLIMITED;
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        uint32_t of = plan->usages[ix].provider;
        bool is_it = of == PLAN_NONE || provider == NULL
                         ? of == PLAN_NONE && provider == NULL
                         : strcmp(provider, plan->providers[of].name) == 0;
        if (is_it) {
            made.part = ix;
            run_history_add_event(history, &made);
        }
    }
}

static enum err take_event(void *ctx, const struct store_event *row)
{
    struct reader *reader = ctx;
    struct run_history *history = reader->history;
    struct event *event = &reader->event;
    struct run_history_event made = {
        .at_ns = since(history, row->wall_ns),
        .task = row->task,
    };
    if (row->number > reader->last_event ||
        (row->run != STORE_NONE && row->run != history->number)) {
        return ERR_OK; /* newer than the rows, or of another run */
    }
    bool of_task = row->run != STORE_NONE && row->task != STORE_NONE;
    if (of_task && row->task >= history->plan->task_count) {
        return refuse(reader, "an event");
    }
    event_read(event, row);
    if (row->run == STORE_NONE && event->kind == EVENT_KIND_REQUEST) {
        take_request(history, event, made);
    } else if (row->run != STORE_NONE && !of_task &&
               event->kind == EVENT_KIND_USAGE) {
        take_usage(history, event, made);
    } else if (of_task && event->kind == EVENT_KIND_ATTEMPT) {
        made.kind = HISTORY_END;
        made.number = event->as.attempt.attempt;
        made.restarts = event->as.attempt.restarts;
        run_history_add_event(history, &made);
    } else if (of_task && event->kind == EVENT_KIND_TASK &&
               event->as.task.to != TASK_STATE_COUNT) {
        made.kind = HISTORY_TASK;
        made.number = event->as.task.attempt;
        made.to = (enum task_state)event->as.task.to;
        run_history_add_event(history, &made);
    }
    return ERR_OK;
}

enum err run_history_read(struct run_history *out,
                          struct store *store,
                          const char *run,
                          int64_t wall_ns,
                          struct diag *diag)
{
    *out = (struct run_history){0};
    struct reader reader = {.history = out, .diag = diag, .wanted = run};
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
        .gate = take_gate,
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
        run_history_finish(out, since(out, wall_ns));
    }
    if (out->gate_count > 0) {
        qsort(out->gates,
              out->gate_count,
              sizeof(out->gates[0]),
              compare_gates);
    }
    return err;
}

void run_history_release(struct run_history *history)
{
    mem_free(history->sources);
    mem_free(history->tasks);
    mem_free(history->events);
    mem_free(history->sessions);
    mem_free(history->gates);
    plan_free(history->plan);
    arena_release(&history->arena);
    *history = (struct run_history){0};
}

/* Read the plan; `counts`, if not NULL: its tasks after each source. */
static enum err read_plan(const struct run_history *history,
                          struct plan **out,
                          uint32_t *counts,
                          struct diag *diag)
{
    struct plan_errors errors = {0};
    const struct plan_source nothing = {.file = history->file, .text = ""};
    bool good =
        plan_read(out,
                  history->source_count > 0 ? history->sources : &nothing,
                  &errors);
    struct plan_source *added =
        mem_zalloc(history->source_count, sizeof(added[0]));
    uint32_t added_count = 0;
    for (uint32_t ix = 1; good && ix < history->source_count; ix++) {
        const struct plan_source *source = &history->sources[ix];
        if (counts != NULL) {
            counts[ix - 1] = (*out)->task_count;
        }
        if (revise_is_update(source->file)) {
            struct plan *old = *out;
            good = revise_plan(out, old, source, added, added_count, &errors);
            plan_free(old);
        } else {
            added[added_count++] = *source;
            good = plan_add(*out, source, &errors);
        }
    }
    mem_free(added);
    enum err err = ERR_OK;
    if (good && counts != NULL && history->source_count > 0) {
        counts[history->source_count - 1] = (*out)->task_count;
    }
    if (good && history->expected != NULL) {
        engine_expect_run(*out, history->expected);
    } else if (!good) {
        err = diag_set(diag,
                       ERR_CORRUPT,
                       "run %s: cannot parse its stored plan: %s",
                       history->id,
                       errors.count > 0 ? errors.items[0].text : "?");
        plan_free(*out);
        *out = NULL;
    }
    plan_errors_release(&errors);
    return err;
}

enum err run_history_read_plan(const struct run_history *history,
                               struct plan **out,
                               struct diag *diag)
{
    return read_plan(history, out, NULL, diag);
}
