/* SPDX-License-Identifier: MIT */
/*
 * Notifications: hooks of the plan that are to be told of events.
 *
 * A notification is stored in the transaction of its event, and removed when
 * its hook has taken it, so each event is delivered at least once, whatever
 * dies in between; the number of the event tells a hook what it has seen
 * before. The notifications of a run are delivered one at a time and in their
 * order; runs do not wait for each other, and nothing ever waits for a hook. A
 * notification carries all that its delivery needs: its run may be over, and
 * not be loaded again.
 *
 * A hook that fails is called again after growing intervals, each time with a
 * directory of its own; what is there already after a restart is not repeated.
 * After the last try the notification is given up, and that is told.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
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
    bool stored;             /* a process before this one may have called it */
    int64_t next_ns;         /* not before that */
    json_t *json;            /* as stored */
    const char **argv;       /* of the hook; NULL: it is a text for the shell */
    char *event;             /* what the hook reads */
    struct program *program; /* NULL: not under way */
};

static const char *text_of(const struct notification *notification,
                           const char *name)
{
    const char *text =
        json_string_value(json_object_get(notification->json, name));
    return text != NULL ? text : "";
}

static void add_name(struct strbuf *out,
                     const struct notification *notification)
{
    strbuf_addf(out,
                "notice/%u/%llu",
                notification->run,
                (unsigned long long)notification->number);
}

static void release(struct notification *notification)
{
    json_decref(notification->json);
    free(notification->event);
    mem_free(notification->argv);
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

/* Take one in, new or from the store; it is due at once. False: it makes no
 * sense. */
static bool take(struct engine *engine, json_t *json, bool stored)
{
    const json_t *argv = json_object_get(json, "argv");
    const json_t *event = json_object_get(json, "event");
    size_t words = json_array_size(argv);
    struct notification notification = {
        .number = (uint64_t)json_integer_value(json_object_get(event, "event")),
        .run = (uint32_t)json_integer_value(json_object_get(json, "number")),
        .stored = stored,
        .json = json,
        .event = event != NULL ? json_dumps(event, JSON_COMPACT) : NULL,
    };
    if (notification.number == 0 || notification.run == 0 ||
        notification.event == NULL) {
        release(&notification);
        return false;
    }
    if (argv != NULL) {
        notification.argv = mem_zalloc(words + 1, sizeof(notification.argv[0]));
        for (size_t ix = 0; ix < words; ix++) {
            notification.argv[ix] = json_string_value(json_array_get(argv, ix));
        }
    }
    MEM_GROW(engine->notifications,
             engine->notification_count,
             engine->notification_capacity);
    /* By number: what was stored is read in another order. */
    uint32_t at = engine->notification_count++;
    while (at > 0 &&
           engine->notifications[at - 1].number > notification.number) {
        engine->notifications[at] = engine->notifications[at - 1];
        at--;
    }
    engine->notifications[at] = notification;
    INVARIANT(stored || at == engine->notification_count - 1);
    INVARIANT(at == 0 ||
              engine->notifications[at - 1].number <= notification.number);
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
    if (found == NULL || engine->world == NULL) {
        return;
    }
    /* What the hook is told: the event as `run --json` prints it. */
    INVARIANT(event->number == engine->event_number);
    struct strbuf told = {0};
    event_add_json(&told, event, r->id, hook);
    json_t *argv = NULL;
    for (uint32_t ix = 0;
         found->run.argv != NULL && found->run.argv[ix] != NULL;
         ix++) {
        argv = argv != NULL ? argv : json_array();
        (void)json_array_append_new(argv, json_string(found->run.argv[ix]));
    }
    json_t *json = json_pack("{s:I, s:s, s:s, s:s?, s:o?, s:I, s:I, s:o}",
                             "number",
                             (json_int_t)r->number,
                             "run",
                             r->id,
                             "folder",
                             r->folder,
                             "shell",
                             found->run.shell,
                             "argv",
                             argv,
                             "timeout_ns",
                             (json_int_t)found->timeout_ns,
                             "retries",
                             (json_int_t)found->retries,
                             "event",
                             json_loads(strbuf_text(&told), 0, NULL));
    strbuf_release(&told);
    if (argv == NULL) {
        (void)json_object_del(json, "argv");
    }
    char *text = json_dumps(json, JSON_COMPACT);
    if (take(engine, json, false)) {
        struct strbuf name = {0};
        add_name(&name, &engine->notifications[engine->notification_count - 1]);
        rows_setting(engine, strbuf_text(&name), text);
        strbuf_release(&name);
        engine->changed = true;
    }
    free(text);
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
    const struct notification *notification = notification_of(engine, program);
    strbuf_addf(out,
                "%llu-%u",
                (unsigned long long)notification->number,
                notification->tries + 1);
}

static struct program_call call(const struct engine *engine,
                                const struct program *program)
{
    const struct notification *notification = notification_of(engine, program);
    return (struct program_call){
        .shell = text_of(notification, "shell"),
        .argv = notification->argv,
        .folder = text_of(notification, "folder"),
        .run = text_of(notification, "run"),
        .file = "event",
        .input = notification->event,
        .variable = "SLUICE_EVENT",
        .timeout_ns = json_integer_value(
            json_object_get(notification->json, "timeout_ns")),
    };
}

static bool is_wanted(const struct engine *engine,
                      const struct program *program)
{
    (void)program;
    return !engine->stopping;
}

static void drop(struct engine *engine, struct notification *notification)
{
    INVARIANT(notification->program == NULL && engine->notification_count > 0);
    struct strbuf name = {0};
    add_name(&name, notification);
    rows_setting(engine, strbuf_text(&name), NULL);
    strbuf_release(&name);
    release(notification);
    uint32_t at = (uint32_t)(notification - engine->notifications);
    INVARIANT(at < engine->notification_count);
    engine->notification_count--;
    memmove(notification,
            notification + 1,
            (engine->notification_count - at) *
                sizeof(engine->notifications[0]));
}

/* Nobody took it, however often it was offered. */
static void give_up(struct engine *engine,
                    const struct notification *notification,
                    const char *error)
{
    const json_t *event = json_object_get(notification->json, "event");
    const char *hook = json_string_value(json_object_get(event, "hook"));
    struct event given_up = {
        .kind = EVENT_KIND_HOOK,
        .as.hook =
            {
                .hook = hook != NULL ? hook : "",
                .of = notification->number,
                .result = EVENT_WORD_FAILED,
                .reason = error,
            },
    };
    uint32_t run = engine_find_run(engine, text_of(notification, "run"));
    rows_event(engine, run, STORE_NONE, &given_up);
}

static void ended(struct engine *engine,
                  struct program *program,
                  const struct work_id *id,
                  const struct work_report *report,
                  const char *error)
{
    (void)report;
    struct notification *notification = notification_of(engine, program);
    int64_t retries =
        json_integer_value(json_object_get(notification->json, "retries"));
    bool ours = program->ours;
    bool stopped = program->stopped || engine->stopping;
    INVARIANT(notification->tries <= retries && !program->due);
    notification->program = NULL;
    program_free(engine, program);
    if (error != NULL && stopped) {
        /* It is tried again, by the next scheduler if this one is to end, as
         * if there had been no try. */
        engine->world->forget(engine->ctx, id);
        return;
    }
    if (error != NULL && notification->tries < retries) {
        int64_t pause_ns =
            duration_doubled(BACKOFF_NS, notification->tries++, BACKOFF_NS_MAX);
        /* A try that was over before this process began has had its pause. */
        notification->next_ns = engine_now(engine) + (ours ? pause_ns : 0);
        return;
    }
    if (error != NULL) {
        give_up(engine, notification, error);
    } else {
        engine_drop_later(engine, id);
    }
    crash_point("notification-taken");
    drop(engine, notification);
}

static const struct program_ops ops = {
    .task = ".hooks",
    .add_name = add_try,
    .call = call,
    .is_wanted = is_wanted,
    .ended = ended,
};

/* Whether it is the first of its run. */
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
        const struct notification *notification = &engine->notifications[ix];
        if (notification->program == NULL && notification->next_ns < next_ns &&
            is_first(engine, ix)) {
            next_ns = notification->next_ns;
        }
    }
    return next_ns;
}

void notify_pass(struct engine *engine)
{
    for (uint32_t ix = 0; !engine->stopping && ix < engine->notification_count;
         ix++) {
        struct notification *notification = &engine->notifications[ix];
        if (notification->program == NULL &&
            notification->next_ns <= engine->now_ns && is_first(engine, ix)) {
            notification->program = program_new(engine, &ops, STORE_NONE, 0);
            notification->program->stored = notification->stored;
            program_call(engine, notification->program);
        }
    }
}

uint32_t engine_notification_count(const struct engine *engine, uint32_t run)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < engine->notification_count; ix++) {
        const struct notification *notification = &engine->notifications[ix];
        bool left = engine->stopping && notification->program == NULL;
        if (notification->run == engine->runs[run].number && !left) {
            count++; /* what is left is for the next scheduler */
        }
    }
    return count;
}
