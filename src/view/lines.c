/* SPDX-License-Identifier: MIT */
/*
 * Text and JSON lines for events. An event of kind "attempt" reports the
 * outcome and duration of a session. Its "task" event repeats it, except
 * for the further tasks of a batch: these have no attempt number.
 */
#include "view/lines.h"

#include "base/duration.h"
#include "base/jsonr.h"
#include "base/macros.h"
#include "base/plain.h"
#include "base/utc.h"
#include "exec/outcome.h"
#include "store/event.h"
#include "view/queue.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Append a string as one line. */
static void add_text(struct strbuf *out, const char *text)
{
    plain_add(out, text != NULL ? text : "");
}

/* Start a line: the time of day, and a word for the event. */
static void
begin(struct strbuf *out, const struct store_event *row, const char *word)
{
    plain_add_clock(out, row->wall_ns, PLAIN_SECONDS);
    strbuf_addf(out, " %-10s ", word);
}

static void add_attempt(struct strbuf *out, uint32_t number)
{
    if (number > 1) {
        strbuf_addf(out, " (attempt %u)", number);
    }
}

static void add_reason(struct strbuf *out, const char *reason)
{
    if (reason != NULL && reason[0] != '\0') {
        strbuf_adds(out, ": ");
        plain_add(out, reason);
    }
}

static void add_tasks(struct strbuf *out, int64_t count)
{
    strbuf_addf(out, "%lld task%s", (long long)count, count == 1 ? "" : "s");
}

/* Add a change of a task, except the outcome of its session. */
static bool add_task(struct strbuf *out,
                     const struct store_event *row,
                     const struct event *event)
{
    uint32_t to = event->as.task.to;
    bool rode = event->as.task.attempt == 0;
    if (to == TASK_READY && event->as.task.waits != NULL) {
        begin(out, row, event->as.task.waits);
        add_text(out, event->as.task.task);
        strbuf_adds(out, " waits for it: sluice approve ");
        add_text(out, event->as.task.task);
        return true;
    }
    if (to != TASK_STARTING && to != TASK_PARKED && to != TASK_FAILED &&
        to != TASK_SKIPPED && to != TASK_CANCELLED &&
        !(to == TASK_DONE && rode)) {
        return false;
    }
    begin(out,
          row,
          to == TASK_STARTING ? "start"
                              : sched_state_name((enum task_state)to));
    add_text(out, event->as.task.task);
    if (to == TASK_STARTING) {
        add_attempt(out, event->as.task.attempt);
    } else if (to == TASK_FAILED) {
        strbuf_adds(out, ", no retries left");
        add_reason(out, event->as.task.reason);
    } else if (to == TASK_PARKED) {
        add_reason(out, event->as.task.reason);
    }
    return true;
}

/* Add the outcome of a session, or of one task of a batch. */
static bool add_end(struct strbuf *out,
                    const struct store_event *row,
                    const struct event *event)
{
    bool whole = event->kind == EVENT_KIND_ATTEMPT;
    const char *word =
        whole ? event->as.attempt.outcome : event->as.member.outcome;
    enum sched_outcome outcome = OUTCOME_FAILED;
    if (word == NULL || word[0] == '\0') {
        return false;
    }
    begin(out, row, word);
    add_text(out, whole ? event->as.attempt.task : event->as.member.task);
    if (whole) {
        add_attempt(out, event->as.attempt.attempt);
    }
    if (whole && event->as.attempt.took_ns > 0) {
        strbuf_adds(out, " after ");
        duration_add(out, event->as.attempt.took_ns);
    }
    if (whole) {
        queue_add_restarts(out, event->as.attempt.restarts);
    }
    if (!outcome_read(word, &outcome) || outcome != OUTCOME_DONE) {
        add_reason(out,
                   whole ? event->as.attempt.reason : event->as.member.reason);
    }
    return true;
}

void lines_add_counts(struct strbuf *out,
                      const char *before,
                      const uint32_t *counts,
                      const enum task_state *order,
                      uint32_t order_count)
{
    for (uint32_t ix = 0; ix < order_count; ix++) {
        uint32_t count = counts[order[ix]];
        if (count > 0) {
            strbuf_addf(out,
                        "%s%u %s",
                        before,
                        count,
                        sched_state_name(order[ix]));
            before = ", ";
        }
    }
}

static bool add_run(struct strbuf *out,
                    const struct store_event *row,
                    const struct event *event)
{
    static const enum task_state order[] = {
        TASK_DONE,
        TASK_FAILED,
        TASK_PARKED,
        TASK_SKIPPED,
        TASK_CANCELLED,
        TASK_RUNNING,
        TASK_STARTING,
        TASK_READY,
        TASK_WAITING,
    };
    enum event_word to = event->as.run.to;
    if (to == EVENT_WORD_SUBMITTED) {
        int64_t tasks = event->as.run.tasks;
        begin(out, row, "run");
        add_text(out, event->as.run.id);
        strbuf_adds(out, ": ");
        add_tasks(out, tasks > 0 ? tasks : 0);
        return true;
    }
    if (to == EVENT_WORD_STOPPED) {
        begin(out, row, event_word_name(to));
        strbuf_adds(out, "nothing more starts");
        add_reason(out, event->as.run.reason);
        return true;
    }
    if (to != EVENT_WORD_FINISHED && to != EVENT_WORD_WAITING) {
        return false;
    }
    begin(out, row, event_word_name(to));
    strbuf_adds(out,
                to == EVENT_WORD_FINISHED ? "run finished" : "needs attention");
    lines_add_counts(out,
                     ": ",
                     event->as.run.counts,
                     order,
                     ARRAY_COUNT(order));
    return true;
}

static bool add_request(struct strbuf *out,
                        const struct store_event *row,
                        const struct event *event)
{
    struct jsonr answer = event_answer(event);
    bool ok = jsonr_bool(jsonr_get(answer, "ok"));
    if (ok && event_is_request(event, "submit")) {
        return false; /* the run has an event of its own */
    }
    begin(out, row, "request");
    add_text(out, event->as.request.verb);
    strbuf_adds(out, " by ");
    add_text(out, event->as.request.by);
    strbuf_adds(out, ok ? ": " : ": refused: ");
    struct strbuf text = {0};
    if (jsonr_add_text(&text, jsonr_get(answer, "text"))) {
        plain_add(out, strbuf_text(&text));
    }
    strbuf_release(&text);
    return true;
}

/* Add a state change of a usage monitor or a provider. */
static void add_usage(struct strbuf *out, const struct event *event)
{
    if (event->as.usage.provider != NULL) {
        strbuf_adds(out, "provider ");
        add_text(out, event->as.usage.provider);
        strbuf_adds(out, " ");
    }
    if (event->as.usage.to == EVENT_WORD_FAILED) {
        strbuf_adds(out, "cannot be read");
        add_reason(out, event->as.usage.reason);
        return;
    }
    strbuf_adds(out, event_word_name(event->as.usage.to));
    if (event->as.usage.cap > 0) {
        strbuf_addf(out, " at %lld", (long long)event->as.usage.cap);
    }
    if (event->as.usage.until_ns > 0) {
        strbuf_adds(out, " until ");
        (void)!utc_add(out, event->as.usage.until_ns);
    }
    if (event->as.usage.meter != NULL) {
        strbuf_adds(out, ", meter ");
        add_text(out, event->as.usage.meter);
        strbuf_addf(out, " at %.4g %%", event->as.usage.percent);
    }
}

static void add_added(struct strbuf *out, const struct event *event)
{
    add_tasks(out, event->as.added.tasks);
    if (event->as.added.by != NULL) {
        strbuf_adds(out, " by ");
        add_text(out, event->as.added.by);
    }
}

static void add_scheduler(struct strbuf *out, const struct event *event)
{
    uint32_t found = event->as.scheduler.found;
    strbuf_addf(out,
                "resumed: %u session%s in flight before, %u adopted",
                found,
                found == 1 ? "" : "s",
                event->as.scheduler.adopted);
}

static void add_sync(struct strbuf *out, const struct event *event)
{
    bool done = event->as.sync.result == EVENT_WORD_DONE;
    strbuf_adds(out, done ? "the hook is done" : "the hook failed");
    add_reason(out, event->as.sync.reason);
}

static void add_updated(struct strbuf *out, const struct event *event)
{
    strbuf_addf(out,
                "plan: tasks changed %u, added %u, removed %u",
                event->as.updated.changed,
                event->as.updated.added,
                event->as.updated.removed);
}

static void add_note(struct strbuf *out, const struct event *event)
{
    add_text(out, event->as.note.task);
    strbuf_adds(out, ": ");
    add_text(out, event->as.note.text);
}

static void add_refused(struct strbuf *out, const struct event *event)
{
    strbuf_adds(out, "what ");
    add_text(out, event->as.add_refused.task);
    strbuf_adds(out, " adds");
    add_reason(out, event->as.add_refused.reason);
}

static void add_hook(struct strbuf *out, const struct event *event)
{
    add_text(out, event->as.hook.hook);
    strbuf_adds(out, " was not delivered");
    add_reason(out, event->as.hook.reason);
}

static void add_budget(struct strbuf *out, const struct event *event)
{
    strbuf_adds(out, "no more sessions start: the ");
    add_text(out, event->as.budget.budget);
    strbuf_adds(out, " is reached");
}

/* Add a provider that was stopped, or resumed by an operator. */
static void add_provider(struct strbuf *out, const struct event *event)
{
    add_text(out, event->as.provider.provider);
    strbuf_addf(out, " is %s", event_word_name(event->as.provider.to));
    add_reason(out, event->as.provider.reason);
}

static void add_circuit(struct strbuf *out, const struct event *event)
{
    strbuf_adds(out, "provider ");
    add_text(out, event->as.circuit.provider);
    strbuf_adds(out, " failed or refused too often: one attempt at a time");
}

/* Add a base that cannot be merged, or can again. */
static void add_base(struct strbuf *out, const struct event *event)
{
    add_text(out, event->as.base.base);
    strbuf_adds(out, " of ");
    add_text(out, event->as.base.repo);
    const char *commit = event->as.base.commit;
    strbuf_addf(out, " at %.12s", commit != NULL ? commit : "?");
    bool failed = event->as.base.to == EVENT_WORD_FAILED;
    strbuf_adds(out,
                failed ? " is not merged, merges go on without it"
                       : " is merged again");
    add_reason(out, event->as.base.reason);
}

/* Add an event about a run or the store: a word and its details. A kind that is
 * missing here has no line. */
static bool add_other(struct strbuf *out,
                      const struct store_event *row,
                      const struct event *event)
{
    static const struct {
        const char *word;
        void (*add)(struct strbuf *out, const struct event *event);
    } others[EVENT_KIND_COUNT] = {
        [EVENT_KIND_SYNC] = {"sync", add_sync},
        [EVENT_KIND_ADDED] = {"added", add_added},
        [EVENT_KIND_UPDATED] = {"updated", add_updated},
        [EVENT_KIND_ADD_REFUSED] = {"refused", add_refused},
        [EVENT_KIND_HOOK] = {"hook", add_hook},
        [EVENT_KIND_BUDGET] = {"budget", add_budget},
        [EVENT_KIND_USAGE] = {"usage", add_usage},
        [EVENT_KIND_SCHEDULER] = {"scheduler", add_scheduler},
        [EVENT_KIND_PROVIDER] = {"provider", add_provider},
        [EVENT_KIND_CIRCUIT] = {"circuit", add_circuit},
        [EVENT_KIND_BASE] = {"base", add_base},
        [EVENT_KIND_NOTE] = {"note", add_note},
    };
    bool quiet =
        event->kind == EVENT_KIND_SCHEDULER && event->as.scheduler.found == 0;
    if (quiet || others[event->kind].add == NULL) {
        return false;
    }
    begin(out, row, others[event->kind].word);
    others[event->kind].add(out, event);
    return true;
}

bool lines_add(struct strbuf *out, const struct store_event *row)
{
    struct event event = {0};
    bool added = false;
    event_read(&event, row);
    if (event.kind == EVENT_KIND_TASK) {
        added = add_task(out, row, &event);
    } else if (event.kind == EVENT_KIND_ATTEMPT ||
               event.kind == EVENT_KIND_MEMBER) {
        added = add_end(out, row, &event);
    } else if (event.kind == EVENT_KIND_RUN) {
        added = add_run(out, row, &event);
    } else if (event.kind == EVENT_KIND_REQUEST) {
        added = add_request(out, row, &event);
    } else {
        added = add_other(out, row, &event);
    }
    if (added) {
        strbuf_adds(out, "\n");
    }
    event_release(&event);
    return added;
}

bool lines_add_date(struct strbuf *out, int64_t wall_ns, int64_t day_ns)
{
    time_t then = (time_t)(wall_ns / SECOND_NS);
    time_t day = (time_t)(day_ns / SECOND_NS);
    struct tm of_then = {0};
    struct tm of_day = {0};
    char text[16];
    if (localtime_r(&then, &of_then) == NULL ||
        localtime_r(&day, &of_day) == NULL ||
        (of_then.tm_year == of_day.tm_year &&
         of_then.tm_yday == of_day.tm_yday) ||
        strftime(text, sizeof(text), "%Y-%m-%d ", &of_then) == 0) {
        return false;
    }
    strbuf_adds(out, text);
    return true;
}

void lines_add_json(struct strbuf *out,
                    const struct store_event *row,
                    const char *run)
{
    event_add_json(out, row, run, NULL);
    strbuf_adds(out, "\n");
}
