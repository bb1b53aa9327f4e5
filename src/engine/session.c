/* SPDX-License-Identifier: MIT */
/*
 * Sessions, from claim to outcome. The worker runs them; this file interprets
 * its reports.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/utc.h"
#include "engine/carry.h"
#include "exec/outcome.h"
#include "exec/verdict.h"

#include <stdio.h>
#include <string.h>

/* The start of a shorter session is not logged. */
#define TELL_NS (25 * MS_NS)

/* An exit waits for others while so many sessions run. */
enum { BUSY_SESSIONS = 4 };

/* How long a task snoozes that names no later time. */
#define SNOOZE_NS (5 * MINUTE_NS)

enum { MISSING_BYTES = 1024 }; /* of a log, searched for what is missing */

struct session *session_add(struct engine *engine)
{
    MEM_GROW(engine->sessions, engine->session_count, engine->session_capacity);
    struct session *session = &engine->sessions[engine->session_count++];
    *session = (struct session){.tell_ns = SCHED_NEVER};
    return session;
}

struct session *session_find(struct engine *engine, uint64_t token)
{
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        if (engine->sessions[ix].token == token) {
            return &engine->sessions[ix];
        }
    }
    return NULL;
}

void session_check(const struct engine *engine, const struct session *session)
{
    INVARIANT(session->run < engine->run_count);
    INVARIANT(session->task < engine->runs[session->run].task_count);
    INVARIANT(session->token != 0 && !program_is_id(session->token));
    INVARIANT(session->task_count > 0);
    INVARIANT(session->tell_ns == SCHED_NEVER ||
              session->phase == SESSION_RUNNING);
    INVARIANT(session->refusal == NULL || session->phase != SESSION_RUNNING);
    struct sched_task task =
        sched_task(engine->sched,
                   engine_core_task(engine, session->run, session->task));
    INVARIANT(task.token == session->token);
    INVARIANT(task.state == TASK_STARTING || task.state == TASK_RUNNING);
}

static void drop(struct engine *engine, struct session *session)
{
    INVARIANT(session >= engine->sessions &&
              session < engine->sessions + engine->session_count);
    mem_free(session->refusal);
    *session = engine->sessions[--engine->session_count];
}

/* Start it when this batch is written. */
static void start_later(struct engine *engine, const struct session *session)
{
    INVARIANT(session->phase == SESSION_STARTING && !session->asked);
    struct engine_todo *todo = &engine->todo;
    MEM_GROW(todo->starts, todo->start_count, todo->start_capacity);
    todo->starts[todo->start_count++] = session->token;
}

/* The first free slot. The new session has none yet. */
static uint32_t free_slot(const struct engine *engine)
{
    uint32_t count = engine->session_count;
    bool *taken = mem_zalloc(count + 1, sizeof(taken[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        uint32_t slot = engine->sessions[ix].slot;
        if (slot > 0 && slot <= count) {
            taken[slot - 1] = true;
        }
    }
    uint32_t first = 0;
    while (taken[first]) { /* one more entry than sessions with a slot */
        first++;
    }
    mem_free(taken);
    INVARIANT(first < count);
    return first + 1;
}

static void make_nonce(struct engine *engine, struct session *session)
{
    uint64_t high = rng_next(&engine->nonces);
    uint64_t low = rng_next(&engine->nonces);
    (void)snprintf(session->nonce,
                   sizeof(session->nonce),
                   "%016llx%016llx",
                   (unsigned long long)high,
                   (unsigned long long)low);
}

void session_count_tasks(const struct engine *engine, struct session *session)
{
    struct task_id next = engine_core_task(engine, session->run, session->task);
    for (; next.v != ID_NONE; next = sched_session_next(engine->sched, next)) {
        session->task_count++;
    }
}

void session_new(struct engine *engine, const struct sched_effect *effect)
{
    uint32_t run = effect->run.v;
    uint32_t task = load_plan_task(engine->runs[run].loaded, effect->task);
    INVARIANT(task != PLAN_NONE);
    INVARIANT(!engine->writing && !engine->draining);
    INVARIANT(session_find(engine, effect->token) == NULL);
    struct session *session = session_add(engine);
    session->token = effect->token;
    session->run = run;
    session->task = task;
    session->number = ++engine->runs[run].tasks[task].number;
    session->slot = ahead_slot(engine, run);
    if (session->slot == 0) {
        session->slot = free_slot(engine);
    }
    session->epoch = engine->epoch;
    session->claimed_ns = engine->world->wall_ns(engine->ctx);
    session->mark = engine->mark;
    make_nonce(engine, session);
    session_count_tasks(engine, session);
    session_check(engine, session);
    INVARIANT(session->number > 0 && session->slot > 0);
    rows_claim(engine, session);
    start_later(engine, session);
}

/* The result of a session, for all tasks. */
struct end {
    struct attempt_found found;
    struct attempt_result result;
    struct verdict verdict;
    struct strbuf reason;
    const char *log; /* its last lines */
};

/* The session's result for one of its tasks. */
struct said {
    enum sched_outcome outcome;
    const char *reason;   /* or NULL */
    const char *feedback; /* or NULL */
};

/*
 * Append the last lines of a log, without the JSON events of agents that ran as
 * plain commands: they are unreadable, and would fill a prompt.
 */
static void add_log(const char *log, struct strbuf *out)
{
    const char *end = log + strlen(log);
    for (const char *at = log; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline != NULL ? newline + 1 : end) - at);
        bool event = len > 2 && at[0] == '{' && at[1] == '"' &&
                     memmem(at, len, "\"type\":", strlen("\"type\":")) != NULL;
        if (!event) {
            strbuf_add(out, at, len);
        }
        at += len;
    }
}

/*
 * Pass the session's feedback to the stage that does the rework. The logs of a
 * gate and of a merge have more detail, and so does the log of a review that
 * gives no reason.
 */
static void pass_feedback(struct engine *engine,
                          uint32_t run,
                          uint32_t task,
                          const struct end *end,
                          const struct said *said)
{
    const struct plan_task *from = &engine->runs[run].plan->tasks[task];
    if (from->rework_to == PLAN_NONE) {
        return;
    }
    const char *words = said->feedback != NULL ? said->feedback : said->reason;
    const struct plan *plan = engine->runs[run].plan;
    bool review = plan_has_role(plan, from, PLAN_ROLE_REVIEW);
    bool told =
        said->feedback != NULL || (review && said->outcome == OUTCOME_CHANGES &&
                                   end->result.reason != NULL);
    struct engine_past *to =
        runs_own_past(&engine->runs[run].tasks[from->rework_to]);
    struct strbuf text = {0};
    struct sched_record record =
        sched_record(engine->sched, engine_core_task(engine, run, task));
    if ((record.flags & SCHED_RECORD_STALE) != 0 && to->feedback != NULL) {
        strbuf_addf(&text, "%s\n", to->feedback); /* of who was faster */
    }
    strbuf_addf(&text,
                "%s: %s\n",
                from->id,
                words != NULL ? words : "changes requested");
    if (!told && from->agent == PLAN_NONE) {
        strbuf_adds(&text, "\n");
        add_log(end->log, &text);
    }
    mem_set_text(&to->feedback, strbuf_text(&text));
    carry_send_back(&to->carry);
    strbuf_release(&text);
}

/* Whether to log this outcome for one task of a batch: not OUTCOME_DONE, which
 * its state shows, nor an outcome of the session as a whole. */
static bool is_for_members(enum sched_outcome outcome)
{
    return outcome == OUTCOME_CHANGES || outcome == OUTCOME_FAILED ||
           outcome == OUTCOME_BLOCKED || outcome == OUTCOME_CHECKPOINT ||
           outcome == OUTCOME_LATER || outcome == OUTCOME_FATAL;
}

/* Log the outcome of one task of a batch. The exit of the session is logged for
 * the first task only, with the overall outcome. */
static void tell_member(struct engine *engine,
                        const struct session *session,
                        uint32_t ix,
                        const struct said *said)
{
    INVARIANT(is_for_members(said->outcome));
    const struct plan *plan = engine->runs[session->run].plan;
    struct event event = {
        .kind = EVENT_KIND_MEMBER,
        .as.member.task = plan->tasks[ix].id,
        .as.member.leader = plan->tasks[session->task].id,
        .as.member.token = session->token,
        .as.member.outcome = outcome_name(said->outcome),
        .as.member.reason = said->reason,
    };
    rows_event(engine, session->run, ix, &event);
}

/*
 * Whether an outcome is not a gate's verdict, because the gate was killed or
 * could not run. Then it blames no task, and is retried as if lost.
 */
static bool blames_nobody(const struct engine_run *run,
                          uint32_t task,
                          const struct end *end,
                          enum sched_outcome outcome)
{
    const struct plan_task *from = &run->plan->tasks[task];
    return end->verdict.cannot_tell && from->rework_to != PLAN_NONE &&
           (outcome == OUTCOME_FAILED || outcome == OUTCOME_BLOCKED) &&
           plan_has_role(run->plan, from, PLAN_ROLE_GATE);
}

/* Keep what a failed implement stage is told for its next attempt. */
static void
keep_feedback(struct engine_run *run, uint32_t ix, const struct said *said)
{
    struct engine_past *past = runs_own_past(&run->tasks[ix]);
    bool implements =
        plan_has_role(run->plan, &run->plan->tasks[ix], PLAN_ROLE_IMPLEMENT);
    if (!implements || said->feedback == NULL ||
        (past->feedback != NULL &&
         strstr(past->feedback, said->feedback) != NULL)) {
        return;
    }
    struct strbuf text = {0};
    if (past->feedback != NULL) {
        strbuf_addf(&text, "%s\n", past->feedback);
    }
    strbuf_adds(&text, said->feedback);
    mem_set_text(&past->feedback, strbuf_text(&text));
    strbuf_release(&text);
}

/* The cause of a failure: its bit in `retry: {on}`, and its name there. */
struct cause {
    enum plan_cause bit;
    const char *name;
};
static struct cause cause_of(const struct attempt_found *found)
{
    if (found->state == ATTEMPT_LOST) {
        return (struct cause){PLAN_CAUSE_LOST, "lost"};
    }
    if (found->exit.cause == ATTEMPT_TIMEOUT) {
        return (struct cause){PLAN_CAUSE_TIMEOUT, "timeout"};
    }
    if (found->exit.cause == ATTEMPT_IDLE) {
        return (struct cause){PLAN_CAUSE_IDLE, "idle"};
    }
    return found->exit.signal != 0 ? (struct cause){PLAN_CAUSE_SIGNAL, "signal"}
                                   : (struct cause){PLAN_CAUSE_EXIT, "exit"};
}

/*
 * Append why no retry follows a failure, and make it final. A task that sends
 * its group back after a failure is not retried, so `retry: {on}` does not
 * matter.
 */
static void check_final(const struct engine_run *run,
                        uint32_t ix,
                        const struct end *end,
                        struct said *said,
                        struct strbuf *words)
{
    const struct plan_task *task = &run->plan->tasks[ix];
    uint32_t on = task->settings->retry_on;
    struct cause cause = cause_of(&end->found);
    bool fails = said->outcome == OUTCOME_LOST ||
                 (said->outcome == OUTCOME_FAILED &&
                  !plan_reworks_on_failure(run->plan, task));
    bool excluded = fails && on != 0 && (on & cause.bit) == 0;
    if (!excluded && said->outcome != OUTCOME_FATAL) {
        return;
    }
    strbuf_addf(words,
                "%s (final%s%s)",
                said->reason != NULL ? said->reason : "it failed",
                excluded ? ": its retry is not on " : "",
                excluded ? cause.name : "");
    said->outcome = OUTCOME_FATAL;
    said->reason = strbuf_text(words);
}

/* Note the end of an attempt in the engine's data about one of its tasks. */
static void note_task(struct engine *engine,
                      const struct session *session,
                      uint32_t ix,
                      const struct end *end,
                      const struct said *said)
{
    struct engine_run *run = &engine->runs[session->run];
    struct engine_past *past = runs_own_past(&run->tasks[ix]);
    mem_set_text(&past->reason, said->reason);
    carry_end(&past->carry,
              &(struct carry_ended){
                  .token = session->token,
                  .verdict = &end->verdict,
                  .outcome = said->outcome,
                  .reason = said->reason,
                  .result = &end->result,
              });
    if (said->outcome == OUTCOME_DONE) {
        mem_set_text(&past->feedback, NULL);
        mem_set_text(
            &past->outputs,
            attempt_result_outputs(&end->result, run->plan->tasks[ix].id));
    }
    if (said->outcome == OUTCOME_CHANGES || said->outcome == OUTCOME_FAILED) {
        pass_feedback(engine, session->run, ix, end, said);
    }
    if (said->outcome == OUTCOME_FAILED || said->outcome == OUTCOME_FATAL) {
        keep_feedback(run, ix, said);
    }
}

/* Outcomes of a session's tasks, in its order; the caller frees them. */
static enum sched_outcome *judge_tasks(struct engine *engine,
                                       const struct session *session,
                                       const struct end *end)
{
    struct strbuf words = {0};
    enum sched_outcome *outcomes =
        mem_zalloc(session->task_count, sizeof(outcomes[0]));
    struct engine_run *run = &engine->runs[session->run];
    struct task_id next = engine_core_task(engine, session->run, session->task);
    for (uint32_t n = 0; n < session->task_count; n++) {
        uint32_t ix = load_plan_task(run->loaded, next);
        INVARIANT(ix != PLAN_NONE);
        struct said said = {
            .reason = end->reason.len > 0 ? strbuf_text(&end->reason) : NULL,
            .feedback = end->result.feedback,
        };
        said.outcome = verdict_of_task(&end->verdict,
                                       &end->result,
                                       run->plan->tasks[ix].id,
                                       &said.reason,
                                       &said.feedback);
        if (blames_nobody(run, ix, end, said.outcome)) {
            said.outcome = OUTCOME_LOST;
        }
        strbuf_clear(&words);
        check_final(run, ix, end, &said, &words);
        outcomes[n] = said.outcome;
        if (is_for_members(said.outcome) &&
            (n > 0 || said.outcome != end->verdict.outcome)) {
            tell_member(engine, session, ix, &said);
        }
        note_task(engine, session, ix, end, &said);
        next = sched_session_next(engine->sched, next);
    }
    INVARIANT(next.v == ID_NONE); /* one outcome per task of the session */
    strbuf_release(&words);
    return outcomes;
}

static int64_t engine_time_of(struct engine *engine, int64_t wall_ns)
{
    int64_t delay_ns = wall_ns - engine->world->wall_ns(engine->ctx);
    return engine_now(engine) + (delay_ns > 0 ? delay_ns : 0);
}

/*
 * Return until when tasks of the session snooze, wall clock; 0: none does. A
 * time that had passed when it exited would make it run in a loop, and counts
 * as none; one that has passed since is due.
 */
static int64_t snooze_until(struct engine *engine,
                            const struct session *session,
                            const struct end *end,
                            const enum sched_outcome *outcomes)
{
    bool snoozes = false;
    for (uint32_t ix = 0; ix < session->task_count && !snoozes; ix++) {
        snoozes = outcomes[ix] == OUTCOME_LATER;
    }
    if (!snoozes) {
        return 0;
    }
    int64_t at_ns = end->verdict.retry_at_ns;
    return at_ns > end->found.exit.ended_ns
               ? at_ns
               : engine->world->wall_ns(engine->ctx) + SNOOZE_NS;
}

/* Return when to try again, for the core. */
static int64_t
retry_time_of(struct engine *engine, const struct end *end, int64_t snooze_ns)
{
    if (snooze_ns > 0) {
        int64_t at_ns = engine_time_of(engine, snooze_ns);
        int64_t now_ns = engine_now(engine);
        return at_ns > now_ns ? at_ns : now_ns + 1; /* it is due */
    }
    return end->verdict.retry_at_ns > 0 && !engine->override
               ? engine_time_of(engine, end->verdict.retry_at_ns)
               : SCHED_NEVER;
}

/* Append the reason for the row of the attempt. */
static void add_reason(struct strbuf *out,
                       const struct engine *engine,
                       const struct session *session,
                       const struct end *end,
                       int64_t snooze_ns)
{
    const char *own =
        runs_past(&engine->runs[session->run].tasks[session->task])->reason;
    if (session->task_count == 1 && own != NULL) {
        strbuf_adds(out, own);
    } else {
        strbuf_adds(out, strbuf_text(&end->reason));
    }
    struct strbuf time = {0};
    if (snooze_ns > 0 && utc_add(&time, snooze_ns)) {
        strbuf_addf(out, "; again at %s", strbuf_text(&time));
    }
    strbuf_release(&time);
}

/* Record the outcome of a session, and remove the session. */
static void
finish(struct engine *engine, struct session *session, const struct end *end)
{
    session_check(engine, session);
    INVARIANT(end->found.state != ATTEMPT_STARTING &&
              end->found.state != ATTEMPT_LIVE);
    uint32_t count = engine->session_count;
    enum sched_outcome *outcomes = judge_tasks(engine, session, end);
    int64_t snooze_ns = snooze_until(engine, session, end, outcomes);
    struct strbuf reason = {0};
    add_reason(&reason, engine, session, end, snooze_ns);
    bool alone = end->verdict.outcome == OUTCOME_REFUSED ||
                 end->verdict.outcome == OUTCOME_STOPPED;
    struct sched_event event = {
        .type = EVENT_ENDED,
        .task = engine_core_task(engine, session->run, session->task),
        .token = session->token,
        .retry_at_ns = retry_time_of(engine, end, snooze_ns),
        .stop = end->verdict.outcome == OUTCOME_REFUSED && end->result.stop,
        .progress = end->result.progress,
        .outcomes = outcomes,
        .outcome_count = alone ? 1 : session->task_count,
    };
    rows_end_session(engine,
                     &(struct rows_end){
                         .session = session,
                         .outcome = end->verdict.outcome,
                         .found = &end->found,
                         .result = &end->result,
                         .reason = reason.len > 0 ? strbuf_text(&reason) : NULL,
                         .retry_at_ns = snooze_ns,
                         .outcomes = outcomes,
                     });
    strbuf_release(&reason);
    struct engine_todo *todo = &engine->todo;
    MEM_GROW(todo->ends, todo->end_count, todo->end_capacity);
    todo->ends[todo->end_count++] = session->token;
    gates_end(engine, session, &end->result);
    bases_note(engine, session->run, session->task, &end->result);
    if (event.stop) {
        rows_stop_reason(engine,
                         sched_task(engine->sched, event.task).provider,
                         strbuf_text(&end->reason));
    }
    caps_merged(engine, session, outcomes[0]);
    enum err err = engine_apply(engine, event);
    INVARIANT(err == ERR_OK); /* the token is in flight */
    crash_point("session-judged");
    mem_free(outcomes);
    if (end->verdict.outcome == OUTCOME_DONE) {
        ahead_note_end(engine, session->run);
    } else {
        ahead_over(engine);
    }
    drop(engine, session);
    INVARIANT(engine->session_count == count - 1);
}

/* Add the tasks that a session wants to add, or log why not. */
static void add_tasks(struct engine *engine,
                      const struct session *session,
                      const struct end *end)
{
    struct diag diag = {0};
    enum sched_outcome outcome = end->verdict.outcome;
    enum err err = ERR_OK;
    if (outcome == OUTCOME_DONE || outcome == OUTCOME_BLOCKED ||
        outcome == OUTCOME_CHANGES || outcome == OUTCOME_CHECKPOINT ||
        outcome == OUTCOME_LATER) {
        err = runs_add_by_session(engine,
                                  session->run,
                                  session->task,
                                  end->result.add,
                                  NULL,
                                  &diag);
    } else {
        err = diag_set(&diag,
                       ERR_CONFLICT,
                       "a fragment is ignored if its session has %s",
                       outcome == OUTCOME_REFUSED ? "refused" : "failed");
    }
    if (err == ERR_OK) {
        return;
    }
    struct event event = {
        .kind = EVENT_KIND_ADD_REFUSED,
        .as.add_refused.task =
            engine->runs[session->run].plan->tasks[session->task].id,
        .as.add_refused.attempt = session->number,
        .as.add_refused.reason = diag.text,
    };
    rows_event(engine, session->run, session->task, &event);
}

/* Whether a line of a log seems to name what is missing. */
static bool names_missing(const char *line)
{
    static const char *const texts[] = {
        "not found",
        "No such file",
        "ermission denied",
        "cannot run",
        "cannot enter",
    };
    bool names = false;
    for (size_t ix = 0; !names && ix < ARRAY_COUNT(texts); ix++) {
        names = strstr(line, texts[ix]) != NULL;
    }
    return names;
}

/* Append what is missing: the shell or the shim has logged it. */
static void add_missing(const char *log, struct strbuf *reason)
{
    size_t len = strlen(log);
    char *copy = len > MISSING_BYTES
                     ? mem_strndup(log + len - MISSING_BYTES, MISSING_BYTES)
                     : mem_strndup(log, len);
    char *rest = NULL;
    const char *found = NULL;
    for (const char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (found == NULL || names_missing(line) || !names_missing(found)) {
            found = line;
        }
    }
    strbuf_addf(reason,
                ": %s",
                found != NULL ? found : "cannot run its command");
    mem_free(copy);
}

/* It has exited, or is lost: judge the worker's report. */
static void conclude(struct engine *engine,
                     struct session *session,
                     const struct work_report *report)
{
    bool ended = report->type == WORK_ENDED;
    INVARIANT(ended || report->type == WORK_LOST);
    INVARIANT(!report->vanished || !ended);
    struct end end = {
        .found = {.state = ended ? ATTEMPT_ENDED : ATTEMPT_LOST},
        .result = *report->result,
        .log = report->log,
    };
    end.found.exit = report->exit;
    const struct plan_task *task =
        &engine->runs[session->run].plan->tasks[session->task];
    if (task->merge || task->base_gate) {
        end.result.finish = false; /* sluice-git speaks for it, by its exit */
    }
    end.verdict = verdict_of(&end.found,
                             &end.result,
                             report->result_err != ERR_OK ? report->text : NULL,
                             &end.reason);
    end.verdict.batch = session->task_count > 1;
    if (ended && report->result_err == ERR_UNAVAILABLE) {
        /* That is the machine's fault: keep the session's work. */
        end.verdict = (struct verdict){.outcome = OUTCOME_BLOCKED};
        strbuf_clear(&end.reason);
        strbuf_addf(&end.reason,
                    "%s: sluice could not read the result of the session: "
                    "repair this, then retry the task",
                    report->text);
    } else if (report->vanished) {
        strbuf_clear(&end.reason);
        strbuf_adds(&end.reason, "lost: its directory was removed");
    } else if (end.verdict.missing) {
        add_missing(end.log, &end.reason);
    }
    if (ended && end.result.add != NULL) {
        add_tasks(engine, session, &end);
    }
    finish(engine, session, &end);
    strbuf_release(&end.reason);
}

/* It did not run, and never will. */
static void conclude_never(struct engine *engine,
                           struct session *session,
                           int error,
                           const char *text)
{
    INVARIANT(error == 0 || session->asked);
    struct end end = {.found.state = ATTEMPT_NEVER, .log = ""};
    if (session->refusal != NULL) {
        strbuf_adds(&end.reason, session->refusal);
        end.verdict.outcome = OUTCOME_BLOCKED;
        end.verdict.lacks =
            session->broke ? OUTCOME_LACKS_MONEY : OUTCOME_LACKS_ANSWER;
    } else if (session->want != WORK_RUN) {
        strbuf_adds(&end.reason, "stopped before it started");
        end.verdict.outcome = OUTCOME_STOPPED;
    } else if (text != NULL) {
        strbuf_adds(&end.reason, text);
        end.verdict.outcome = error != 0 ? OUTCOME_REFUSED : OUTCOME_BLOCKED;
        end.verdict.lacks = OUTCOME_LACKS_ANSWER;
    } else {
        end.verdict = verdict_of_failed_start(error, &end.reason);
    }
    finish(engine, session, &end);
    strbuf_release(&end.reason);
}

/* Its machine cannot run it now: it is ready again, at no cost. */
static void conclude_elsewhere(struct engine *engine,
                               struct session *session,
                               const struct work_report *report)
{
    if (session->refusal != NULL || session->want != WORK_RUN) {
        conclude_never(engine, session, 0, NULL);
        return;
    }
    struct end end = {
        .found.state = ATTEMPT_NEVER,
        .log = "",
        .verdict.outcome = OUTCOME_STOPPED,
    };
    strbuf_addf(&end.reason,
                "its worker could not start it: %s",
                report->text != NULL ? report->text : strerror(report->error));
    finish(engine, session, &end);
    strbuf_release(&end.reason);
}

void session_offer(struct engine *engine,
                   struct session *session,
                   struct strbuf *out)
{
    struct strbuf ignored = {0};
    struct diag diag = {0};
    session_check(engine, session);
    INVARIANT(session->phase == SESSION_STARTING && !session->offered);
    if (session->want == WORK_RUN &&
        mark_is_same_boot(&session->mark, &engine->mark) &&
        !caps_is_broke(engine, session->run, session->task, &ignored)) {
        size_t before = out->len;
        /* What fails here fails again in session_assign(). */
        (void)!assign_session(engine, session, out, &diag);
        session->offered = out->len > before;
    }
    strbuf_release(&ignored);
}

void session_assign(struct engine *engine, struct session *session)
{
    session_check(engine, session);
    INVARIANT(session->phase == SESSION_STARTING);
    if (session->offered) {
        session->phase = SESSION_ASSIGNED;
        session->asked = true;
        return;
    }
    if (!mark_is_same_boot(&session->mark, &engine->mark)) {
        /* Its row is of an earlier boot: it does not run, and must not. It will
         * be claimed again. */
        session->want = WORK_STOP;
        conclude_never(engine, session, 0, NULL);
        return;
    }
    struct strbuf broke = {0};
    session->broke = session->want == WORK_RUN &&
                     caps_is_broke(engine, session->run, session->task, &broke);
    if (session->broke) {
        mem_set_text(&session->refusal, strbuf_text(&broke));
    }
    strbuf_release(&broke);
    session->phase = SESSION_ASSIGNED;
    session->asked = true;
    session->told = session->want != WORK_RUN;
    uint64_t token = session->token;
    struct diag diag = {0};
    if (assign_session(engine, session, NULL, &diag) != ERR_OK) {
        session = session_find(engine, token);
        INVARIANT(session != NULL); /* no worker has it */
        mem_set_text(&session->refusal, diag.text);
        conclude_never(engine, session, 0, NULL);
    }
}

void session_ask(struct engine *engine, struct session *session)
{
    char name[ASSIGN_NAME_BYTES];
    struct work_id id = assign_id(engine, session, name);
    session_check(engine, session);
    session->asked = true;
    session->told = session->want != WORK_RUN;
    struct work_mark mark = session->mark;
    engine->world->ask(engine->ctx, &id, &mark, session->begun, session->want);
}

void session_want(struct engine *engine, struct session *session)
{
    INVARIANT(session->want != WORK_RUN && !session->told);
    if (session->asked && session->phase != SESSION_STARTING) {
        session->told = true;
        engine->world->want(engine->ctx, session->token, session->want);
    } else if (session->phase == SESSION_RUNNING) {
        session_ask(engine, session);
    } /* else: the order carries `want` */
}

void session_tell(struct engine *engine, struct session *session)
{
    INVARIANT(session->phase == SESSION_RUNNING && session->begun_ns != 0);
    session->tell_ns = SCHED_NEVER;
    session->begun = true;
    struct sched_event event = {
        .type = EVENT_STARTED,
        .task = engine_core_task(engine, session->run, session->task),
        .token = session->token,
    };
    /* ERR_CONFLICT: the task was already running before a restart. */
    enum err err = engine_apply(engine, event);
    INVARIANT(err == ERR_OK || err == ERR_CONFLICT);
    rows_set_session(engine, session);
}

/*
 * Nothing depends on storing this: if it is lost, the worker reports it again.
 * So it is logged when the session has run for a while.
 */
static void set_running(struct engine *engine,
                        struct session *session,
                        const struct work_mark *mark)
{
    if (session->phase != SESSION_RUNNING) {
        session->tell_ns = engine_now(engine) + TELL_NS;
    }
    session->phase = SESSION_RUNNING;
    session->mark = *mark;
    mem_set_text(&session->refusal, NULL); /* it started before withdrawal */
    if (session->begun_ns == 0) {
        session->begun_ns = engine->world->wall_ns(engine->ctx);
    }
    session_check(engine, session);
    messages_deliver(engine, session);
}

/*
 * While enough sessions run to keep the machine busy, an exit waits a moment:
 * in a burst, several exits share a batch, which costs less than the delay.
 */
static void end_in_burst(struct engine *engine,
                         struct session *session,
                         const struct work_report *report)
{
    bool changed = engine->changed;
    bool ahead = engine->runs[session->run].pace.ahead;
    conclude(engine, session, report);
    if (ahead ? ahead_is_enough(engine)
              : engine->session_count >= BUSY_SESSIONS) {
        engine->changed = changed;
        engine_wait_for_more(engine);
    }
}

void engine_reported(struct engine *engine, const struct work_report *report)
{
    if (engine->failed != ERR_OK) {
        return; /* the next scheduler will ask for it */
    }
    if (program_is_id(report->token)) {
        program_reported(engine, report);
        return;
    }
    struct session *session = session_find(engine, report->token);
    if (session == NULL) {
        return; /* its result is already known */
    }
    switch (report->type) {
    case WORK_STARTED:
        set_running(engine, session, &report->mark);
        return;
    case WORK_ENDED:
        end_in_burst(engine, session, report);
        return;
    case WORK_REFUSED:
        if (report->elsewhere) {
            conclude_elsewhere(engine, session, report);
        } else {
            if (report->withdrawn && session->want == WORK_RUN) {
                session->want = WORK_STOP; /* by the scheduler before */
            }
            conclude_never(engine, session, report->error, report->text);
        }
        return;
    case WORK_LOST:
        conclude(engine, session, report);
        return;
    case WORK_UNKNOWN:
        /* Assign the same attempt again; if it is to stop, the next pass
         * knows. */
        if (session->phase != SESSION_STARTING || session->asked) {
            session->phase = SESSION_STARTING;
            session->asked = false;
            session->offered = false;
            session->tell_ns = SCHED_NEVER;
            start_later(engine, session);
            engine->changed = true;
        }
        return;
    }
}
