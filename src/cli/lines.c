/* SPDX-License-Identifier: MIT */
/*
 * The end of a session is told by its event of kind "attempt", which knows
 * how long it took. Its event of kind "task" says so again, except for tasks
 * that rode along in the session of another one: those have no number of an
 * attempt of their own.
 */
#include "cli/lines.h"

#include "base/duration.h"
#include "base/jsonr.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "cli/plain.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

/* Append the text of a member, in one line. */
static void add_text(struct strbuf *out, struct jsonr data, const char *name)
{
    struct strbuf text = {0};
    if (jsonr_add_text(&text, jsonr_get(data, name))) {
        plain_add(out, strbuf_text(&text));
    }
    strbuf_release(&text);
}

static int64_t int_of(struct jsonr data, const char *name)
{
    return jsonr_int(jsonr_get(data, name));
}

static bool is(const char *text, const char *wanted)
{
    return strcmp(text, wanted) == 0;
}

/* The time of day, and a word for what happened. */
static void
begin(struct strbuf *out, const struct store_event *event, const char *word)
{
    time_t seconds = (time_t)(event->wall_ns / SECOND_NS);
    struct tm local = {0};
    char text[16];
    if (localtime_r(&seconds, &local) == NULL ||
        strftime(text, sizeof(text), "%H:%M:%S", &local) == 0) {
        (void)snprintf(text, sizeof(text), "--:--:--");
    }
    strbuf_addf(out, "%s %-10s ", text, word);
}

static void add_attempt(struct strbuf *out, struct jsonr data)
{
    int64_t number = int_of(data, "attempt");
    if (number > 1) {
        strbuf_addf(out, " (attempt %lld)", (long long)number);
    }
}

static void add_reason(struct strbuf *out, struct jsonr data)
{
    if (jsonr_get(data, "reason").len > strlen("\"\"")) {
        strbuf_adds(out, ": ");
        add_text(out, data, "reason");
    }
}

/* What became of a task, beside the end of its session. */
static bool
add_task(struct strbuf *out, const struct store_event *event, struct jsonr data)
{
    static const char *const told[] = {"parked",
                                       "failed",
                                       "skipped",
                                       "cancelled",
                                       "done"};
    struct jsonr to = jsonr_get(data, "to");
    const char *word = jsonr_is(to, "starting") ? "start" : NULL;
    for (size_t ix = 0; ix < ARRAY_COUNT(told); ix++) {
        word = jsonr_is(to, told[ix]) ? told[ix] : word;
    }
    bool rode = jsonr_get(data, "attempt").len == 0;
    if (word == NULL || (is(word, "done") && !rode)) {
        return false;
    }
    begin(out, event, word);
    add_text(out, data, "task");
    if (is(word, "start")) {
        add_attempt(out, data);
    } else if (is(word, "failed")) {
        strbuf_adds(out, ", and is not tried again");
        add_reason(out, data);
    } else if (is(word, "parked")) {
        add_reason(out, data);
    }
    return true;
}

/* How a session ended. */
static bool
add_end(struct strbuf *out, const struct store_event *event, struct jsonr data)
{
    struct strbuf word = {0};
    add_text(&word, data, "outcome");
    if (word.len == 0) {
        strbuf_release(&word);
        return false;
    }
    begin(out, event, strbuf_text(&word));
    bool done = is(strbuf_text(&word), "done");
    strbuf_release(&word);
    add_text(out, data, "task");
    add_attempt(out, data);
    double seconds = jsonr_number(jsonr_get(data, "seconds"));
    if (seconds > 0 && seconds < 1e9) {
        strbuf_adds(out, " after ");
        duration_add(out, (int64_t)(seconds * 1e9));
    }
    if (!done) {
        add_reason(out, data);
    }
    return true;
}

/* The numbers of tasks by state: "10 done, 2 parked". */
static void add_counts(struct strbuf *out, struct jsonr data)
{
    static const char *const states[] = {
        "done",
        "failed",
        "parked",
        "skipped",
        "cancelled",
        "running",
        "starting",
        "ready",
        "waiting",
    };
    const char *comma = ": ";
    for (size_t ix = 0; ix < ARRAY_COUNT(states); ix++) {
        int64_t count = int_of(data, states[ix]);
        if (count > 0) {
            strbuf_addf(out, "%s%lld %s", comma, (long long)count, states[ix]);
            comma = ", ";
        }
    }
}

static bool
add_run(struct strbuf *out, const struct store_event *event, struct jsonr data)
{
    struct jsonr to = jsonr_get(data, "to");
    if (jsonr_is(to, "submitted")) {
        int64_t tasks = int_of(data, "tasks");
        begin(out, event, "run");
        add_text(out, data, "id");
        strbuf_addf(out,
                    ": %lld task%s",
                    (long long)tasks,
                    tasks == 1 ? "" : "s");
    } else if (jsonr_is(to, "finished")) {
        begin(out, event, "finished");
        strbuf_adds(out, "nothing is left to do");
        add_counts(out, data);
    } else if (jsonr_is(to, "waiting")) {
        begin(out, event, "waiting");
        strbuf_adds(out, "nothing more happens by itself");
        add_counts(out, data);
    } else {
        return false;
    }
    return true;
}

static bool add_order(struct strbuf *out,
                      const struct store_event *event,
                      struct jsonr data)
{
    struct jsonr answer = jsonr_get(data, "answer");
    struct jsonr said = jsonr_get(answer, "ok");
    bool ok = said.len == strlen("true") && said.at[0] == 't';
    if (jsonr_is(jsonr_get(data, "verb"), "submit") && ok) {
        return false; /* the run tells of itself */
    }
    begin(out, event, "order");
    add_text(out, data, "verb");
    strbuf_adds(out, " by ");
    add_text(out, data, "by");
    strbuf_adds(out, ok ? ": " : ": refused: ");
    add_text(out, answer, "text");
    return true;
}

/* A usage monitor, or a provider, has come to another state. */
static void add_usage(struct strbuf *out,
                      const struct store_event *event,
                      struct jsonr data)
{
    begin(out, event, "usage");
    if (jsonr_get(data, "provider").len > 0) {
        strbuf_adds(out, "provider ");
        add_text(out, data, "provider");
        strbuf_adds(out, " ");
    }
    if (jsonr_is(jsonr_get(data, "to"), "failed")) {
        strbuf_adds(out, "cannot be read");
        add_reason(out, data);
        return;
    }
    add_text(out, data, "to");
    if (jsonr_get(data, "cap").len > 0 && int_of(data, "cap") > 0) {
        strbuf_addf(out, " at %lld", (long long)int_of(data, "cap"));
    }
    if (jsonr_get(data, "until").len > 0) {
        strbuf_adds(out, " until ");
        add_text(out, data, "until");
    }
    if (jsonr_get(data, "meter").len > 0) {
        strbuf_adds(out, ", meter ");
        add_text(out, data, "meter");
        strbuf_addf(out,
                    " at %.4g %%",
                    jsonr_number(jsonr_get(data, "percent")));
    }
}

static void add_updated(struct strbuf *out,
                        const struct store_event *event,
                        struct jsonr data)
{
    begin(out, event, "updated");
    strbuf_addf(out,
                "plan: tasks changed %lld, added %lld, removed %lld",
                (long long)int_of(data, "changed"),
                (long long)int_of(data, "added"),
                (long long)int_of(data, "removed"));
}

static void add_scheduler(struct strbuf *out,
                          const struct store_event *event,
                          struct jsonr data)
{
    int64_t found = int_of(data, "found");
    begin(out, event, "scheduler");
    strbuf_addf(out,
                "goes on: %lld session%s in flight before, %lld adopted",
                (long long)found,
                found == 1 ? "" : "s",
                (long long)int_of(data, "adopted"));
}

/* A provider was stopped, or an operator has resumed it. */
static void add_provider(struct strbuf *out,
                         const struct store_event *event,
                         struct jsonr data)
{
    begin(out, event, "provider");
    add_text(out, data, "provider");
    strbuf_adds(out, " is ");
    add_text(out, data, "to");
    add_reason(out, data);
}

static bool add_other(struct strbuf *out,
                      const struct store_event *event,
                      struct jsonr data)
{
    if (is(event->kind, "sync")) {
        bool done = jsonr_is(jsonr_get(data, "result"), "done");
        begin(out, event, "sync");
        strbuf_adds(out, done ? "the hook is done" : "the hook failed");
        add_reason(out, data);
        return true;
    }
    if (is(event->kind, "added")) {
        int64_t tasks = int_of(data, "tasks");
        begin(out, event, "added");
        strbuf_addf(out,
                    "%lld task%s",
                    (long long)tasks,
                    tasks == 1 ? "" : "s");
        if (jsonr_get(data, "by").len > 0) {
            strbuf_adds(out, " by ");
            add_text(out, data, "by");
        }
        return true;
    }
    if (is(event->kind, "updated")) {
        add_updated(out, event, data);
        return true;
    }
    if (is(event->kind, "add-refused")) {
        begin(out, event, "refused");
        strbuf_adds(out, "what ");
        add_text(out, data, "task");
        strbuf_adds(out, " adds");
        add_reason(out, data);
        return true;
    }
    if (is(event->kind, "hook")) {
        begin(out, event, "hook");
        add_text(out, data, "hook");
        strbuf_adds(out, " was not delivered");
        add_reason(out, data);
        return true;
    }
    if (is(event->kind, "budget")) {
        begin(out, event, "budget");
        strbuf_adds(out, "nothing more is started: the ");
        add_text(out, data, "budget");
        strbuf_adds(out, " is reached");
        return true;
    }
    if (is(event->kind, "usage")) {
        add_usage(out, event, data);
        return true;
    }
    if (is(event->kind, "scheduler") && int_of(data, "found") > 0) {
        add_scheduler(out, event, data);
        return true;
    }
    if (is(event->kind, "provider")) {
        add_provider(out, event, data);
        return true;
    }
    if (is(event->kind, "circuit")) {
        begin(out, event, "circuit");
        strbuf_adds(out, "provider ");
        add_text(out, data, "executor");
        strbuf_adds(out, " failed or refused too often: one try at a time");
        return true;
    }
    return false;
}

bool lines_add(struct strbuf *out, const struct store_event *event)
{
    struct jsonr data = jsonr_of(event->data);
    bool added = false;
    if (is(event->kind, "task")) {
        added = add_task(out, event, data);
    } else if (is(event->kind, "attempt") || is(event->kind, "member")) {
        added = add_end(out, event, data);
    } else if (is(event->kind, "run")) {
        added = add_run(out, event, data);
    } else if (is(event->kind, "order")) {
        added = add_order(out, event, data);
    } else {
        added = add_other(out, event, data);
    }
    if (added) {
        strbuf_adds(out, "\n");
    }
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

/* Whether a member has a name that is ours. */
static bool is_taken(struct jsonr name)
{
    return jsonr_is(name, "event") || jsonr_is(name, "time") ||
           jsonr_is(name, "run") || jsonr_is(name, "kind");
}

void lines_add_json(struct strbuf *out,
                    const struct store_event *event,
                    const char *run)
{
    strbuf_addf(out,
                "{\"event\":%llu,\"time\":",
                (unsigned long long)event->number);
    jsonw_time(out, event->wall_ns);
    strbuf_adds(out, ",\"run\":");
    jsonw_string(out, run);
    strbuf_adds(out, ",\"kind\":");
    jsonw_string(out, event->kind);
    struct jsonr_member member;
    size_t cursor = 0;
    while (jsonr_next(jsonr_of(event->data), &cursor, &member)) {
        if (!is_taken(member.name)) {
            strbuf_adds(out, ",");
            strbuf_add(out, member.name.at, member.name.len);
            strbuf_adds(out, ":");
            strbuf_add(out, member.value.at, member.value.len);
        }
    }
    strbuf_adds(out, "}\n");
}
