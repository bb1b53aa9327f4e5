/* SPDX-License-Identifier: MIT */
/*
 * The end of a session is told by its event of kind "attempt", which knows
 * how long it took. Its event of kind "task" says so again, except for tasks
 * that rode along in the session of another one: those have no number of an
 * attempt of their own.
 */
#include "cli/lines.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "cli/plain.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static const char *text_of(const json_t *data, const char *name)
{
    const char *text = json_string_value(json_object_get(data, name));
    return text != NULL ? text : "";
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

static void add_attempt(struct strbuf *out, const json_t *data)
{
    json_int_t number = json_integer_value(json_object_get(data, "attempt"));
    if (number > 1) {
        strbuf_addf(out, " (attempt %lld)", (long long)number);
    }
}

static void add_reason(struct strbuf *out, const json_t *data)
{
    const char *reason = text_of(data, "reason");
    if (reason[0] != '\0') {
        strbuf_adds(out, ": ");
        plain_add(out, reason);
    }
}

/* What became of a task, beside the end of its session. */
static bool add_task(struct strbuf *out,
                     const struct store_event *event,
                     const json_t *data)
{
    const char *to = text_of(data, "to");
    bool rode = json_object_get(data, "attempt") == NULL;
    if (is(to, "starting")) {
        begin(out, event, "start");
    } else if (is(to, "parked") || is(to, "failed") || is(to, "skipped") ||
               is(to, "cancelled") || (is(to, "done") && rode)) {
        begin(out, event, to);
    } else {
        return false;
    }
    plain_add(out, text_of(data, "task"));
    if (is(to, "starting")) {
        add_attempt(out, data);
    } else if (is(to, "failed")) {
        strbuf_adds(out, ", and is not tried again");
        add_reason(out, data);
    } else if (is(to, "parked")) {
        add_reason(out, data);
    }
    return true;
}

/* How a session ended. */
static bool
add_end(struct strbuf *out, const struct store_event *event, const json_t *data)
{
    const char *outcome = text_of(data, "outcome");
    if (outcome[0] == '\0') {
        return false;
    }
    struct strbuf word = {0};
    plain_add(&word, outcome);
    begin(out, event, strbuf_text(&word));
    strbuf_release(&word);
    plain_add(out, text_of(data, "task"));
    add_attempt(out, data);
    double seconds = json_number_value(json_object_get(data, "seconds"));
    if (seconds > 0 && seconds < 1e9) {
        strbuf_adds(out, " after ");
        duration_add(out, (int64_t)(seconds * 1e9));
    }
    if (!is(outcome, "done")) {
        add_reason(out, data);
    }
    return true;
}

/* The numbers of tasks by state: "10 done, 2 parked". */
static void add_counts(struct strbuf *out, const json_t *data)
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
        const json_t *count = json_object_get(data, states[ix]);
        if (json_integer_value(count) > 0) {
            strbuf_addf(out,
                        "%s%lld %s",
                        comma,
                        (long long)json_integer_value(count),
                        states[ix]);
            comma = ", ";
        }
    }
}

static bool
add_run(struct strbuf *out, const struct store_event *event, const json_t *data)
{
    const char *to = text_of(data, "to");
    if (is(to, "submitted")) {
        json_int_t tasks = json_integer_value(json_object_get(data, "tasks"));
        begin(out, event, "run");
        plain_add(out, text_of(data, "id"));
        strbuf_addf(out,
                    ": %lld task%s",
                    (long long)tasks,
                    tasks == 1 ? "" : "s");
    } else if (is(to, "finished")) {
        begin(out, event, "finished");
        strbuf_adds(out, "nothing is left to do");
        add_counts(out, data);
    } else if (is(to, "waiting")) {
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
                      const json_t *data)
{
    const json_t *answer = json_object_get(data, "answer");
    bool ok = json_is_true(json_object_get(answer, "ok"));
    if (is(text_of(data, "verb"), "submit") && ok) {
        return false; /* the run tells of itself */
    }
    begin(out, event, "order");
    plain_add(out, text_of(data, "verb"));
    strbuf_adds(out, " by ");
    plain_add(out, text_of(data, "by"));
    strbuf_adds(out, ok ? ": " : ": refused: ");
    plain_add(out, text_of(answer, "text"));
    return true;
}

static bool add_other(struct strbuf *out,
                      const struct store_event *event,
                      const json_t *data)
{
    if (is(event->kind, "sync")) {
        bool done = is(text_of(data, "result"), "done");
        begin(out, event, "sync");
        strbuf_adds(out, done ? "the hook is done" : "the hook failed");
        add_reason(out, data);
        return true;
    }
    if (is(event->kind, "added")) {
        json_int_t tasks = json_integer_value(json_object_get(data, "tasks"));
        begin(out, event, "added");
        strbuf_addf(out,
                    "%lld task%s",
                    (long long)tasks,
                    tasks == 1 ? "" : "s");
        return true;
    }
    json_int_t found = json_integer_value(json_object_get(data, "found"));
    if (is(event->kind, "scheduler") && found > 0) {
        json_int_t adopted =
            json_integer_value(json_object_get(data, "adopted"));
        begin(out, event, "scheduler");
        strbuf_addf(out,
                    "goes on: %lld session%s in flight before, %lld adopted",
                    (long long)found,
                    found == 1 ? "" : "s",
                    (long long)adopted);
        return true;
    }
    if (is(event->kind, "circuit")) {
        begin(out, event, "circuit");
        strbuf_adds(out, "provider ");
        plain_add(out, text_of(data, "executor"));
        strbuf_adds(out, " failed too often: one probe at a time");
        return true;
    }
    return false;
}

bool lines_add(struct strbuf *out, const struct store_event *event)
{
    json_t *data = json_loads(event->data, 0, NULL);
    bool added = false;
    if (!json_is_object(data)) {
        added = false;
    } else if (is(event->kind, "task")) {
        added = add_task(out, event, data);
    } else if (is(event->kind, "attempt")) {
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
    json_decref(data);
    return added;
}

/* The time in UTC to the millisecond, as a JSON string. */
static void add_time(struct strbuf *out, int64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / SECOND_NS);
    struct tm utc = {0};
    char text[32];
    if (wall_ns < 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        strbuf_adds(out, "null");
        return;
    }
    strbuf_addf(out,
                "\"%s.%03dZ\"",
                text,
                (int)(wall_ns % SECOND_NS / 1000000));
}

/* Whether a member has a name that is ours. */
static bool is_taken(const char *name)
{
    return is(name, "event") || is(name, "time") || is(name, "run") ||
           is(name, "kind");
}

void lines_add_json(struct strbuf *out,
                    const struct store_event *event,
                    const char *run)
{
    strbuf_addf(out,
                "{\"event\":%llu,\"time\":",
                (unsigned long long)event->number);
    add_time(out, event->wall_ns);
    strbuf_adds(out, ",\"run\":");
    jsonw_string(out, run);
    strbuf_adds(out, ",\"kind\":");
    jsonw_string(out, event->kind);
    json_t *data = json_loads(event->data, 0, NULL);
    for (void *at = json_object_iter(data); at != NULL;
         at = json_object_iter_next(data, at)) {
        const char *name = json_object_iter_key(at);
        char *text = json_dumps(json_object_iter_value(at),
                                JSON_COMPACT | JSON_ENCODE_ANY |
                                    JSON_REAL_PRECISION(15));
        if (text != NULL && !is_taken(name)) {
            strbuf_adds(out, ",");
            jsonw_string(out, name);
            strbuf_addf(out, ":%s", text);
        }
        free(text);
    }
    json_decref(data);
    strbuf_adds(out, "}\n");
}
