/* SPDX-License-Identifier: MIT */
/*
 * Events and their JSON. A kind is a row of `kinds`: its name and its members,
 * in the order in which they are written. A type defines how a member is
 * written and read, and which value means absent.
 */
#include "store/event.h"

#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/utc.h"
#include "store/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- kinds --------------------------------------------------------------- */

enum type {
    TYPE_TEXT,     /* NULL: absent */
    TYPE_NULLABLE, /* the same, but NULL is written as null */
    TYPE_JSON,     /* a string that is JSON */
    TYPE_WORD,     /* enum event_word; EVENT_WORD_NONE: absent */
    TYPE_STATE,    /* uint32_t, a task_state; TASK_STATE_COUNT: absent */
    TYPE_STATES,   /* number of tasks per state, if it is not 0 */
    TYPE_COUNT,    /* uint32_t */
    TYPE_SOME,     /* uint32_t; 0: absent */
    TYPE_ID,       /* uint64_t */
    TYPE_INT,      /* int64_t; negative: absent */
    TYPE_NUMBER,   /* double; negative: absent */
    TYPE_SECONDS,  /* int64_t in nanoseconds */
    TYPE_TIME,     /* int64_t, wall clock; 0: absent */
    TYPE_FLAG,     /* bool; false: absent */
};

struct member {
    const char *name;
    enum type type;
    size_t offset; /* in struct event */
};

enum { MEMBERS_MAX = 14 };

struct kind {
    const char *name;
    struct member members[MEMBERS_MAX]; /* the last has no name */
};

/* Member `at` of `as.of`, under its own name or another name. */
#define NAMED(of, at, called, how)                                             \
    {                                                                          \
        called, TYPE_##how, offsetof(struct event, as.of.at)                   \
    }
#define MEMBER(of, at, how) NAMED(of, at, #at, how)

static const struct kind kinds[EVENT_KIND_COUNT] = {
    [EVENT_KIND_UNKNOWN] = {"", {{0}}},
    [EVENT_KIND_TASK] = {"task",
                         {MEMBER(task, task, TEXT),
                          MEMBER(task, from, STATE),
                          MEMBER(task, to, STATE),
                          MEMBER(task, attempt, SOME),
                          MEMBER(task, reason, TEXT),
                          MEMBER(task, waits, TEXT)}},
    [EVENT_KIND_ATTEMPT] = {"attempt",
                            {MEMBER(attempt, task, TEXT),
                             MEMBER(attempt, attempt, COUNT),
                             MEMBER(attempt, token, ID),
                             MEMBER(attempt, outcome, TEXT),
                             MEMBER(attempt, cause, TEXT),
                             MEMBER(attempt, code, INT),
                             MEMBER(attempt, signal, SOME),
                             NAMED(attempt, took_ns, "seconds", SECONDS),
                             MEMBER(attempt, reason, TEXT),
                             MEMBER(attempt, restarts, SOME),
                             MEMBER(attempt, on, TEXT),
                             NAMED(attempt, retry_at_ns, "retry_at", TIME),
                             MEMBER(attempt, final, FLAG)}},
    [EVENT_KIND_MEMBER] = {"member",
                           {MEMBER(member, task, TEXT),
                            MEMBER(member, leader, TEXT),
                            MEMBER(member, token, ID),
                            MEMBER(member, outcome, TEXT),
                            MEMBER(member, reason, NULLABLE)}},
    [EVENT_KIND_RUN] = {"run",
                        {MEMBER(run, to, WORD),
                         MEMBER(run, id, TEXT),
                         MEMBER(run, tasks, INT),
                         MEMBER(run, counts, STATES),
                         MEMBER(run, reason, TEXT)}},
    [EVENT_KIND_ADDED] = {"added",
                          {MEMBER(added, tasks, COUNT),
                           MEMBER(added, by, TEXT)}},
    [EVENT_KIND_ADD_REFUSED] = {"add-refused",
                                {MEMBER(add_refused, task, TEXT),
                                 MEMBER(add_refused, attempt, COUNT),
                                 MEMBER(add_refused, reason, TEXT)}},
    [EVENT_KIND_UPDATED] = {"updated",
                            {MEMBER(updated, changed, COUNT),
                             MEMBER(updated, added, COUNT),
                             MEMBER(updated, removed, COUNT)}},
    [EVENT_KIND_SYNC] = {"sync",
                         {MEMBER(sync, result, WORD),
                          MEMBER(sync, reason, TEXT)}},
    [EVENT_KIND_HOOK] = {"hook",
                         {MEMBER(hook, hook, TEXT),
                          MEMBER(hook, of, ID),
                          MEMBER(hook, result, WORD),
                          MEMBER(hook, reason, NULLABLE)}},
    [EVENT_KIND_BUDGET] = {"budget",
                           {MEMBER(budget, to, WORD),
                            MEMBER(budget, budget, TEXT)}},
    [EVENT_KIND_USAGE] = {"usage",
                          {MEMBER(usage, to, WORD),
                           MEMBER(usage, provider, TEXT),
                           MEMBER(usage, cap, INT),
                           MEMBER(usage, meter, TEXT),
                           MEMBER(usage, percent, NUMBER),
                           NAMED(usage, until_ns, "until", TIME),
                           MEMBER(usage, by, TEXT),
                           MEMBER(usage, reason, TEXT)}},
    [EVENT_KIND_PROVIDER] = {"provider",
                             {MEMBER(provider, to, WORD),
                              MEMBER(provider, provider, TEXT),
                              MEMBER(provider, reason, TEXT)}},
    [EVENT_KIND_CIRCUIT] = {"circuit",
                            {NAMED(circuit, provider, "executor", TEXT)}},
    [EVENT_KIND_REQUEST] = {"order",
                            {MEMBER(request, verb, TEXT),
                             MEMBER(request, by, NULLABLE),
                             MEMBER(request, answer, JSON)}},
    [EVENT_KIND_SCHEDULER] = {"scheduler",
                              {MEMBER(scheduler, epoch, ID),
                               MEMBER(scheduler, found, COUNT),
                               MEMBER(scheduler, adopted, COUNT)}},
    [EVENT_KIND_BASE] = {"base",
                         {MEMBER(base, to, WORD),
                          MEMBER(base, repo, TEXT),
                          MEMBER(base, base, TEXT),
                          MEMBER(base, commit, TEXT),
                          MEMBER(base, reason, TEXT)}},
    [EVENT_KIND_NOTE] = {"note",
                         {MEMBER(note, task, TEXT),
                          MEMBER(note, attempt, COUNT),
                          MEMBER(note, text, TEXT)}},
};

static const char *const words[EVENT_WORD_COUNT] = {
    [EVENT_WORD_NONE] = "",
    [EVENT_WORD_CAPPED] = "capped",
    [EVENT_WORD_DONE] = "done",
    [EVENT_WORD_FAILED] = "failed",
    [EVENT_WORD_FINISHED] = "finished",
    [EVENT_WORD_PAUSED] = "paused",
    [EVENT_WORD_REACHED] = "reached",
    [EVENT_WORD_RESUMED] = "resumed",
    [EVENT_WORD_STOPPED] = "stopped",
    [EVENT_WORD_SUBMITTED] = "submitted",
    [EVENT_WORD_WAITING] = "waiting",
};

const char *event_kind_name(enum event_kind kind)
{
    INVARIANT(kind > EVENT_KIND_UNKNOWN && kind < EVENT_KIND_COUNT);
    return kinds[kind].name;
}

const char *event_word_name(enum event_word word)
{
    INVARIANT(word < EVENT_WORD_COUNT);
    return words[word];
}

enum event_kind event_kind_of(const struct store_event *row)
{
    unsigned kind = EVENT_KIND_COUNT - 1;
    while (kind > EVENT_KIND_UNKNOWN &&
           strcmp(kinds[kind].name, row->kind) != 0) {
        kind--;
    }
    return (enum event_kind)kind;
}

/* --- writing ------------------------------------------------------------- */

static void write_states(struct jsonw *json, const uint32_t *counts)
{
    for (unsigned ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (counts[ix] > 0) {
            jsonw_int(json, sched_state_name((enum task_state)ix), counts[ix]);
        }
    }
}

static void
write_text(struct jsonw *json, const struct member *member, const char *text)
{
    if (text != NULL || member->type == TYPE_NULLABLE) {
        jsonw_text(json, member->name, text);
    }
}

static void
write_member(struct jsonw *json, const struct member *member, const void *at)
{
    switch (member->type) {
    case TYPE_TEXT:
    case TYPE_NULLABLE:
        write_text(json, member, *(const char *const *)at);
        return;
    case TYPE_JSON:
        jsonw_raw(json, member->name, *(const char *const *)at);
        return;
    case TYPE_WORD:
        if (*(const enum event_word *)at != EVENT_WORD_NONE) {
            jsonw_text(json, member->name, words[*(const enum event_word *)at]);
        }
        return;
    case TYPE_STATE:
        if (*(const uint32_t *)at != TASK_STATE_COUNT) {
            jsonw_text(
                json,
                member->name,
                sched_state_name((enum task_state) * (const uint32_t *)at));
        }
        return;
    case TYPE_STATES:
        write_states(json, at);
        return;
    case TYPE_COUNT:
        jsonw_int(json, member->name, *(const uint32_t *)at);
        return;
    case TYPE_SOME:
        if (*(const uint32_t *)at > 0) {
            jsonw_int(json, member->name, *(const uint32_t *)at);
        }
        return;
    case TYPE_ID:
        jsonw_int(json, member->name, (int64_t) * (const uint64_t *)at);
        return;
    case TYPE_INT:
        if (*(const int64_t *)at >= 0) {
            jsonw_int(json, member->name, *(const int64_t *)at);
        }
        return;
    case TYPE_NUMBER:
        if (*(const double *)at >= 0) {
            jsonw_number(json, member->name, 10, *(const double *)at);
        }
        return;
    case TYPE_SECONDS:
        jsonw_duration(json, member->name, *(const int64_t *)at);
        return;
    case TYPE_TIME:
        if (*(const int64_t *)at != 0) {
            jsonw_moment(json, member->name, *(const int64_t *)at);
        }
        return;
    case TYPE_FLAG:
        if (*(const bool *)at) {
            jsonw_bool(json, member->name, true);
        }
        return;
    }
}

void event_write(struct strbuf *out, const struct event *event)
{
    INVARIANT(event->kind > EVENT_KIND_UNKNOWN);
    INVARIANT(event->kind < EVENT_KIND_COUNT);
    struct jsonw json = {.out = out};
    const char *base = (const char *)event;
    const struct member *member = kinds[event->kind].members;
    jsonw_object(&json, NULL);
    for (; member->name != NULL; member++) {
        write_member(&json, member, base + member->offset);
    }
    jsonw_object_end(&json);
}

/* --- reading ------------------------------------------------------------- */

/* Set a member to its value for absent. For most types that is zero. */
static void clear_member(const struct member *member, void *at)
{
    if (member->type == TYPE_STATE) {
        *(uint32_t *)at = TASK_STATE_COUNT;
    } else if (member->type == TYPE_INT) {
        *(int64_t *)at = -1;
    } else if (member->type == TYPE_NUMBER) {
        *(double *)at = -1;
    }
}

/* Copy a value to `texts`, which has room for it. */
static const char *keep(struct strbuf *texts, struct jsonr value, bool is_text)
{
    size_t begin = texts->len;
    if (!is_text) {
        strbuf_add(texts, value.at, value.len);
    } else if (!jsonr_add_text(texts, value)) {
        return NULL;
    }
    strbuf_add(texts, "", 1);
    return texts->text + begin;
}

static uint32_t read_state(struct jsonr value)
{
    uint32_t ix = 0;
    while (ix < TASK_STATE_COUNT &&
           !jsonr_is(value, sched_state_name((enum task_state)ix))) {
        ix++;
    }
    return ix;
}

static enum event_word read_word(struct jsonr value)
{
    unsigned ix = EVENT_WORD_COUNT - 1;
    while (ix > EVENT_WORD_NONE && !jsonr_is(value, words[ix])) {
        ix--;
    }
    return (enum event_word)ix;
}

static int64_t read_time(struct strbuf *texts, struct jsonr value)
{
    int64_t ns = 0;
    const char *text = keep(texts, value, true);
    return text != NULL && utc_read(text, &ns) ? ns : 0;
}

static void read_member(struct strbuf *texts,
                        const struct member *member,
                        struct jsonr value,
                        void *at)
{
    double seconds;
    switch (member->type) {
    case TYPE_TEXT:
    case TYPE_NULLABLE:
    case TYPE_JSON:
        *(const char **)at = keep(texts, value, member->type != TYPE_JSON);
        return;
    case TYPE_WORD:
        *(enum event_word *)at = read_word(value);
        return;
    case TYPE_STATE:
        *(uint32_t *)at = read_state(value);
        return;
    case TYPE_STATES:
        return; /* its members have their own names: see take() */
    case TYPE_COUNT:
    case TYPE_SOME:
        *(uint32_t *)at = (uint32_t)jsonr_int(value);
        return;
    case TYPE_ID:
        *(uint64_t *)at = (uint64_t)jsonr_int(value);
        return;
    case TYPE_INT:
        *(int64_t *)at = jsonr_int(value);
        return;
    case TYPE_NUMBER:
        *(double *)at = jsonr_number(value);
        return;
    case TYPE_SECONDS:
        seconds = jsonr_number(value);
        *(int64_t *)at =
            seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * 1e9) : 0;
        return;
    case TYPE_TIME:
        *(int64_t *)at = read_time(texts, value);
        return;
    case TYPE_FLAG:
        *(bool *)at = jsonr_bool(value);
        return;
    }
}

/* Store a member of the row in its place; ignore unknown members. */
static void take(struct event *out, const struct jsonr_member *found)
{
    INVARIANT(out->kind < EVENT_KIND_COUNT);
    char *base = (char *)out;
    const struct member *member = kinds[out->kind].members;
    for (; member->name != NULL; member++) {
        void *at = base + member->offset;
        if (member->type == TYPE_STATES) {
            uint32_t state = read_state(found->name);
            if (state != TASK_STATE_COUNT) {
                ((uint32_t *)at)[state] = (uint32_t)jsonr_int(found->value);
                return;
            }
        } else if (jsonr_is(found->name, member->name)) {
            read_member(&out->texts, member, found->value, at);
            return;
        }
    }
}

void event_read(struct event *out, const struct store_event *row)
{
    struct strbuf texts = out->texts;
    /* Reserve space for all strings at once, so that none moves: a string is
     * never longer than its JSON, whose quotes leave space for the NUL. */
    strbuf_clear(&texts);
    strbuf_pad(&texts, ' ', strlen(row->data) + 1);
    strbuf_clear(&texts);
    *out = (struct event){.kind = event_kind_of(row), .texts = texts};
    char *base = (char *)out;
    const struct member *member = kinds[out->kind].members;
    for (; member->name != NULL; member++) {
        clear_member(member, base + member->offset);
    }
    struct jsonr_member found;
    size_t cursor = 0;
    while (jsonr_next(jsonr_of(row->data), &cursor, &found)) {
        take(out, &found);
    }
    INVARIANT(out->texts.text == texts.text); /* no string has moved */
}

void event_release(struct event *event)
{
    strbuf_release(&event->texts);
    *event = (struct event){0};
}

bool event_is_request(const struct event *event, const char *verb)
{
    return event->kind == EVENT_KIND_REQUEST &&
           event->as.request.verb != NULL &&
           strcmp(event->as.request.verb, verb) == 0;
}

struct jsonr event_answer(const struct event *event)
{
    INVARIANT(event->kind == EVENT_KIND_REQUEST);
    const char *answer = event->as.request.answer;
    return jsonr_of(answer != NULL ? answer : "");
}

/* --- hooks and JSON ------------------------------------------------------ */

static const char *hook_of_task(const struct event *event)
{
    switch (event->as.task.to) {
    case TASK_DONE:
        return "done";
    case TASK_FAILED:
        return "failed";
    case TASK_PARKED:
        return event->as.task.asks ? "asked" : "parked";
    case TASK_READY:
        return event->as.task.waits != NULL ? "approval" : NULL;
    default:
        return NULL;
    }
}

const char *event_hook(const struct event *event)
{
    INVARIANT(event->kind < EVENT_KIND_COUNT);
    static const struct {
        enum event_kind kind;
        enum event_word word; /* EVENT_WORD_NONE: the kind has none */
        const char *hook;
    } hooks[] = {
        {EVENT_KIND_ADD_REFUSED, EVENT_WORD_NONE, "add-refused"},
        {EVENT_KIND_BASE, EVENT_WORD_FAILED, "base-failed"},
        {EVENT_KIND_BUDGET, EVENT_WORD_REACHED, "budget-reached"},
        {EVENT_KIND_CIRCUIT, EVENT_WORD_NONE, "circuit-open"},
        {EVENT_KIND_PROVIDER, EVENT_WORD_STOPPED, "provider-stopped"},
        {EVENT_KIND_RUN, EVENT_WORD_FINISHED, "run-finished"},
        {EVENT_KIND_RUN, EVENT_WORD_STOPPED, "run-stopped"},
        {EVENT_KIND_RUN, EVENT_WORD_WAITING, "run-waiting"},
        {EVENT_KIND_SYNC, EVENT_WORD_FAILED, "barrier-failed"},
        {EVENT_KIND_USAGE, EVENT_WORD_FAILED, "usage-failed"},
        {EVENT_KIND_USAGE, EVENT_WORD_PAUSED, "usage-paused"},
        {EVENT_KIND_USAGE, EVENT_WORD_RESUMED, "usage-resumed"},
    };
    if (event->kind == EVENT_KIND_TASK) {
        return hook_of_task(event);
    }
    /* If a kind has such a word, it is the first member. */
    const struct member *first = &kinds[event->kind].members[0];
    const char *at = (const char *)event + first->offset;
    enum event_word word = first->type == TYPE_WORD
                               ? *(const enum event_word *)(const void *)at
                               : EVENT_WORD_NONE;
    for (size_t ix = 0; ix < ARRAY_COUNT(hooks); ix++) {
        if (hooks[ix].kind == event->kind && hooks[ix].word == word) {
            return hooks[ix].hook;
        }
    }
    return NULL;
}

/* Whether a member's name is reserved. */
static bool is_taken(struct jsonr name, bool hook)
{
    return jsonr_is(name, "event") || jsonr_is(name, "time") ||
           jsonr_is(name, "run") || jsonr_is(name, "kind") ||
           (hook && jsonr_is(name, "hook"));
}

void event_add_json(struct strbuf *out,
                    const struct store_event *row,
                    const char *run,
                    const char *hook)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_int(&json, "event", (int64_t)row->number);
    if (hook != NULL) {
        jsonw_text(&json, "hook", hook);
    }
    jsonw_moment(&json, "time", row->wall_ns);
    jsonw_text(&json, "run", run);
    jsonw_text(&json, "kind", row->kind);
    struct jsonr_member member;
    size_t cursor = 0;
    while (jsonr_next(jsonr_of(row->data), &cursor, &member)) {
        if (!is_taken(member.name, hook != NULL)) {
            strbuf_adds(out, ",");
            strbuf_add(out, member.name.at, member.name.len);
            strbuf_adds(out, ":");
            strbuf_add(out, member.value.at, member.value.len);
        }
    }
    jsonw_object_end(&json);
}

/* --- rows ---------------------------------------------------------------- */

uint64_t event_sum(uint64_t before, const struct store_event *event)
{
    INVARIANT(event->number > 0);
    INVARIANT(event->kind != NULL && event->data != NULL);
    uint64_t sum = sum_add_number(SUM_START, before, 8);
    sum = sum_add_number(sum, event->number, 8);
    sum = sum_add_number(sum, (uint64_t)event->wall_ns, 8);
    sum = sum_add_number(sum, event->run, 4);
    sum = sum_add_number(sum, event->task, 4);
    /* Include the NULs, which no string contains, to separate the strings. */
    sum = sum_add(sum, event->kind, strlen(event->kind) + 1);
    return sum_add(sum, event->data, strlen(event->data) + 1);
}

struct event_gap_texts event_gap_write(const struct event_gap *gap)
{
    struct event_gap_texts texts;
    INVARIANT(gap->last <= INT64_MAX);
    INVARIANT(gap->first > 0 && gap->first <= gap->last);
    (void)snprintf(texts.name,
                   sizeof(texts.name),
                   EVENT_GAP_PREFIX "%020" PRIu64,
                   gap->first);
    (void)snprintf(texts.value,
                   sizeof(texts.value),
                   "{\"last\":%" PRId64 ",\"sum\":%" PRId64 "}",
                   (int64_t)gap->last,
                   (int64_t)gap->sum);
    return texts;
}

bool event_gap_read(const char *name, const char *value, struct event_gap *out)
{
    const size_t prefix = strlen(EVENT_GAP_PREFIX);
    if (strncmp(name, EVENT_GAP_PREFIX, prefix) != 0) {
        return false;
    }
    char *end = NULL;
    out->first = strtoull(name + prefix, &end, 10);
    struct jsonr data = jsonr_of(value);
    out->last = (uint64_t)jsonr_int(jsonr_get(data, "last"));
    out->sum = (uint64_t)jsonr_int(jsonr_get(data, "sum"));
    return *end == '\0' && out->first > 0 && out->first <= out->last &&
           out->last < INT64_MAX;
}
