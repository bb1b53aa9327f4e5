/* SPDX-License-Identifier: MIT */
/*
 * Notifications: event hooks awaiting delivery.
 *
 * A notification is stored in the transaction of its event, and removed when
 * its hook has succeeded. So each event is delivered at least once, whatever
 * dies in between; by the event number a hook recognizes a repetition. The
 * notifications of a run are delivered one at a time and in order; runs do not
 * wait for each other, and the scheduler never waits for a hook. A notification
 * carries all data for its delivery: its run may have finished, and not be
 * loaded again.
 *
 * A hook that fails is called again after growing intervals, each time in its
 * own directory; after a restart, calls whose directory exists are not
 * repeated. After the last retry the notification is given up, which is
 * logged.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_NS SECOND_NS
#define BACKOFF_NS_MAX MINUTE_NS

struct notification {
    uint64_t number;         /* of the event */
    uint32_t run;            /* number of the run, not its index */
    uint32_t tries;          /* that have failed */
    bool stored;             /* an earlier process may have called it */
    int64_t next_ns;         /* not before this time */
    json_t *json;            /* as stored */
    const char **argv;       /* of the hook; NULL: it is a shell command */
    char *event;             /* input of the hook */
    struct program *program; /* NULL: not running */
};

static const char *text_of(const struct notification *note, const char *name)
{
    const char *text = json_string_value(json_object_get(note->json, name));
    return text != NULL ? text : "";
}

/* Store it, or with NULL remove it from the store. */
static void
store(struct engine *engine, const struct notification *note, const char *value)
{
    rows_numbered(engine, "notice", note->run, (int64_t)note->number, value);
}

static void release(struct notification *note)
{
    json_decref(note->json);
    free(note->event);
    mem_free(note->argv);
}

void notify_release(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->notification_count; ix++) {
        release(&engine->notifications[ix]);
    }
    mem_free(engine->notifications);
    engine->notifications = NULL;
    engine->notification_count = 0;
}

/* Add a notification, new or from the store; it is due at once. False: it is
 * invalid. */
static bool take(struct engine *engine, json_t *json, bool stored)
{
    const json_t *argv = json_object_get(json, "argv");
    const json_t *event = json_object_get(json, "event");
    size_t words = json_array_size(argv);
    struct notification note = {
        .number = (uint64_t)json_integer_value(json_object_get(event, "event")),
        .run = (uint32_t)json_integer_value(json_object_get(json, "number")),
        .stored = stored,
        .json = json,
        .event = event != NULL ? json_dumps(event, JSON_COMPACT) : NULL,
    };
    if (note.number == 0 || note.run == 0) {
        release(&note);
        return false;
    }
    INVARIANT(note.event != NULL); /* it has a number */
    if (argv != NULL) {
        note.argv = mem_zalloc(words + 1, sizeof(note.argv[0]));
        for (size_t ix = 0; ix < words; ix++) {
            note.argv[ix] = json_string_value(json_array_get(argv, ix));
        }
    }
    MEM_GROW(engine->notifications,
             engine->notification_count,
             engine->notification_capacity);
    /* Sort by number: stored notifications are read in another order. */
    uint32_t at = engine->notification_count++;
    while (at > 0 && engine->notifications[at - 1].number > note.number) {
        engine->notifications[at] = engine->notifications[at - 1];
        at--;
    }
    engine->notifications[at] = note;
    INVARIANT(stored || at == engine->notification_count - 1);
    INVARIANT(at == 0 || engine->notifications[at - 1].number <= note.number);
    return true;
}

static const struct plan_hook *find_hook(const struct plan *plan,
                                         const char *name)
{
    for (uint32_t ix = 0; ix < plan->hook_count; ix++) {
        if (strcmp(plan->hooks[ix].event, name) == 0) {
            return &plan->hooks[ix];
        }
    }
    return NULL;
}

void notify_add(struct engine *engine,
                uint32_t run,
                const char *hook,
                const struct store_event *event)
{
    const struct engine_run *r = &engine->runs[run];
    const struct plan_hook *found = find_hook(r->plan, hook);
    if (found == NULL) {
        return;
    }
    INVARIANT(engine->world != NULL); /* a reader has no events */
    /* The hook's input: the event as `run --json` prints it. */
    INVARIANT(event->number == engine->event_number);
    struct strbuf told = {0};
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    event_add_json(&told, event, r->id, hook);
    jsonw_object(&json, NULL);
    jsonw_int(&json, "number", r->number);
    jsonw_text(&json, "run", r->id);
    jsonw_text(&json, "folder", r->folder);
    jsonw_text(&json, "shell", found->run.shell);
    if (found->run.argv != NULL) {
        jsonw_array(&json, "argv");
        for (uint32_t ix = 0; found->run.argv[ix] != NULL; ix++) {
            jsonw_text(&json, NULL, found->run.argv[ix]);
        }
        jsonw_array_end(&json);
    }
    jsonw_int(&json, "timeout_ns", found->timeout_ns);
    jsonw_int(&json, "retries", found->retries);
    jsonw_raw(&json, "event", strbuf_text(&told));
    jsonw_object_end(&json);
    if (take(engine, json_loads(strbuf_text(&text), 0, NULL), false)) {
        store(engine,
              &engine->notifications[engine->notification_count - 1],
              strbuf_text(&text));
        engine->changed = true;
    }
    strbuf_release(&told);
    strbuf_release(&text);
}

void notify_restore(struct engine *engine, const char *value)
{
    (void)take(engine, json_loads(value, 0, NULL), true);
}

/* --- delivery ----------------------------------------------------------- */

static struct notification *notification_of(const struct engine *engine,
                                            const struct program *program)
{
    uint32_t ix = 0;
    while (engine->notifications[ix].program != program) {
        ix++;
        INVARIANT(ix < engine->notification_count);
    }
    return &engine->notifications[ix];
}

static void add_try(struct strbuf *out,
                    const struct engine *engine,
                    const struct program *program)
{
    const struct notification *note = notification_of(engine, program);
    strbuf_addf(out,
                "%llu-%u",
                (unsigned long long)note->number,
                note->tries + 1);
}

static struct program_call call(const struct engine *engine,
                                const struct program *program)
{
    const struct notification *note = notification_of(engine, program);
    return (struct program_call){
        .shell = text_of(note, "shell"),
        .argv = note->argv,
        .folder = text_of(note, "folder"),
        .run = text_of(note, "run"),
        .file = "event",
        .input = note->event,
        .variable = "SLUICE_EVENT",
        .timeout_ns =
            json_integer_value(json_object_get(note->json, "timeout_ns")),
    };
}

static bool is_wanted(const struct engine *engine,
                      const struct program *program)
{
    (void)program;
    return !engine->stopping;
}

static void drop(struct engine *engine, struct notification *note)
{
    INVARIANT(note->program == NULL && engine->notification_count > 0);
    store(engine, note, NULL);
    release(note);
    uint32_t at = (uint32_t)(note - engine->notifications);
    INVARIANT(at < engine->notification_count);
    engine->notification_count--;
    memmove(note,
            note + 1,
            (engine->notification_count - at) *
                sizeof(engine->notifications[0]));
}

/* Log that every delivery failed. */
static void give_up(struct engine *engine,
                    const struct notification *note,
                    const char *error)
{
    const json_t *event = json_object_get(note->json, "event");
    const char *hook = json_string_value(json_object_get(event, "hook"));
    struct event given_up = {
        .kind = EVENT_KIND_HOOK,
        .as.hook.hook = hook != NULL ? hook : "",
        .as.hook.of = note->number,
        .as.hook.result = EVENT_WORD_FAILED,
        .as.hook.reason = error,
    };
    uint32_t run = engine_find_run(engine, text_of(note, "run"));
    rows_event(engine, run, STORE_NONE, &given_up);
}

static void ended(struct engine *engine,
                  struct program *program,
                  const struct work_id *id,
                  const struct work_report *report,
                  const char *error)
{
    (void)report;
    struct notification *note = notification_of(engine, program);
    int64_t retries =
        json_integer_value(json_object_get(note->json, "retries"));
    bool ours = program->ours;
    bool stopped = program->stopped || engine->stopping;
    INVARIANT(note->tries <= retries && !program->due);
    note->program = NULL;
    program_free(engine, program);
    if (error != NULL && stopped) {
        /* Do not count a stopped call: try it again, by the next scheduler if
         * this one is stopping. */
        engine->world->forget(engine->ctx, id);
        return;
    }
    if (error != NULL && note->tries < retries) {
        int64_t pause_ns =
            duration_doubled(BACKOFF_NS, note->tries++, BACKOFF_NS_MAX);
        /* A call that finished before this process began needs no pause. */
        note->next_ns = engine_now(engine) + (ours ? pause_ns : 0);
        return;
    }
    if (error != NULL) {
        give_up(engine, note, error);
    } else {
        engine_drop_later(engine, id);
    }
    crash_point("notification-taken");
    drop(engine, note);
}

static const struct program_ops ops = {
    .task = ".hooks",
    .add_name = add_try,
    .call = call,
    .is_wanted = is_wanted,
    .ended = ended,
};

/* Whether it is the first notification of its run. */
static bool is_first(const struct engine *engine, uint32_t at)
{
    for (uint32_t ix = 0; ix < at; ix++) {
        if (engine->notifications[ix].run == engine->notifications[at].run) {
            return false;
        }
    }
    return true;
}

int64_t notify_next_ns(const struct engine *engine)
{
    int64_t next_ns = SCHED_NEVER;
    for (uint32_t ix = 0; !engine->stopping && ix < engine->notification_count;
         ix++) {
        const struct notification *note = &engine->notifications[ix];
        if (note->program == NULL && note->next_ns < next_ns &&
            is_first(engine, ix)) {
            next_ns = note->next_ns;
        }
    }
    return next_ns;
}

void notify_pass(struct engine *engine)
{
    for (uint32_t ix = 0; !engine->stopping && ix < engine->notification_count;
         ix++) {
        struct notification *note = &engine->notifications[ix];
        if (note->program == NULL && note->next_ns <= engine->now_ns &&
            is_first(engine, ix)) {
            note->program = program_new(engine, &ops, STORE_NONE, 0);
            note->program->stored = note->stored;
            program_call(engine, note->program);
        }
    }
}

uint32_t engine_notification_count(const struct engine *engine, uint32_t run)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < engine->notification_count; ix++) {
        const struct notification *note = &engine->notifications[ix];
        bool left = engine->stopping && note->program == NULL;
        if (note->run == engine->runs[run].number && !left) {
            count++; /* the others are for the next scheduler */
        }
    }
    return count;
}
