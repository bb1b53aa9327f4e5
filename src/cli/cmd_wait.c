/* SPDX-License-Identifier: MIT */
/*
 * sluice wait: wait until tasks or runs have finished.
 *
 * It only reads the store, so it works with or without a scheduler and while a
 * scheduler replaces another. Progress comes from the event log: for a task,
 * from the point at which it was found; for a run, from the first event,
 * because only the log records that a run needs an operator.
 */
#include "base/clock.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "cli/cli.h"
#include "store/event.h"
#include "view/client.h"
#include "view/target.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPT_TIMEOUT = 1, POLL_US = 200000 };

/* Progress of a task or run. */
enum progress {
    GOING,
    ENDED_WELL,
    ENDED_BADLY, /* or needs an operator */
};

struct awaited {
    struct target target;
    const char *group; /* named group of the task, or NULL; borrowed */
    enum progress progress;
    uint64_t seen;     /* number of the last event processed */
    struct strbuf how; /* description of the state */
    bool told;
    enum target_end end; /* of a task of a group */
};

/* A task or run to wait for. */
struct wanted {
    const char *name;
    const char *run;
    const char *group;
    enum target_end end;
};

struct waiting {
    const struct cli_command *command;
    const char *store_option;
    const char *run;
    bool json;
    int64_t timeout_ns;
    struct store *store;
    struct awaited *items;
    uint32_t count;
    uint64_t last_event;
};

static void
set_task(struct awaited *item, const char *state, const char *reason)
{
    static const char *const ends[] = {
        "cancelled",
        "failed",
        "parked",
        "skipped",
    };
    bool well =
        strcmp(state, "done") == 0 ||
        (item->end >= TARGET_MAY_SKIP && strcmp(state, "skipped") == 0) ||
        (item->end == TARGET_MAY_FAIL && strcmp(state, "failed") == 0);
    item->progress = well ? ENDED_WELL : GOING;
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        if (!well && strcmp(state, ends[ix]) == 0) {
            item->progress = ENDED_BADLY;
        }
    }
    strbuf_clear(&item->how);
    plain_add(&item->how, state);
    if (reason != NULL && item->progress == ENDED_BADLY) {
        strbuf_adds(&item->how, ": ");
        plain_add(&item->how, reason);
    }
}

/* Set the state of a run: running, finished, or waiting for an operator. */
static void set_run(struct awaited *item, const struct event *event)
{
    static const enum task_state shown[] = {
        TASK_DONE,
        TASK_FAILED,
        TASK_PARKED,
        TASK_SKIPPED,
        TASK_CANCELLED,
    };
    const uint32_t *counts = event->as.run.counts;
    bool waits = event->as.run.to == EVENT_WORD_WAITING;
    strbuf_clear(&item->how);
    if (!waits && event->as.run.to != EVENT_WORD_FINISHED) {
        item->progress = GOING;
        strbuf_adds(&item->how, "running");
        return;
    }
    bool well = !waits && counts[TASK_CANCELLED] == 0;
    item->progress = well ? ENDED_WELL : ENDED_BADLY;
    strbuf_adds(&item->how, waits ? "needs attention" : "finished");
    const char *comma = ": ";
    for (size_t ix = 0; ix < ARRAY_COUNT(shown); ix++) {
        if (counts[shown[ix]] > 0) {
            strbuf_addf(&item->how,
                        "%s%u %s",
                        comma,
                        counts[shown[ix]],
                        sched_state_name(shown[ix]));
            comma = ", ";
        }
    }
}

static void take_event(struct awaited *item, const struct store_event *row)
{
    bool is_run = item->target.task == STORE_NONE;
    bool moves = event_kind_of(row) == EVENT_KIND_TASK;
    if (row->number <= item->seen || row->run != item->target.run ||
        (!is_run && (!moves || row->task != item->target.task))) {
        return;
    }
    item->seen = row->number;
    if (is_run && moves) {
        item->progress = GOING; /* it became active again */
        return;
    }
    struct event event = {0};
    event_read(&event, row);
    if (is_run && event.kind == EVENT_KIND_RUN) {
        set_run(item, &event);
    } else if (!is_run && event.as.task.to != TASK_STATE_COUNT) {
        set_task(item,
                 sched_state_name((enum task_state)event.as.task.to),
                 event.as.task.reason);
    }
    event_release(&event);
}

static enum err on_event(void *ctx, const struct store_event *event)
{
    struct waiting *waiting = ctx;
    for (uint32_t ix = 0; ix < waiting->count; ix++) {
        if (!waiting->items[ix].told) {
            take_event(&waiting->items[ix], event);
        }
    }
    waiting->last_event = event->number;
    return ERR_OK;
}

/* Add a task or run to the list. */
static void add_item(struct waiting *waiting,
                     struct target *target,
                     const struct wanted *wanted)
{
    waiting->items = mem_resize(waiting->items,
                                waiting->count + 1,
                                sizeof(waiting->items[0]));
    struct awaited *item = &waiting->items[waiting->count++];
    *item = (struct awaited){
        .target = *target,
        .group = wanted->group,
        .end = wanted->end,
    };
    if (target->task != STORE_NONE) {
        item->seen = target->last_event;
        set_task(item, target->state, target->reason);
    }
    if (item->seen < waiting->last_event) {
        waiting->last_event = item->seen;
    }
}

/* Find a task or run and add it. */
static enum err find_one(struct waiting *waiting,
                         const struct wanted *wanted,
                         struct diag *diag)
{
    struct target target;
    enum err err = target_find(&target,
                               waiting->store,
                               wanted->name,
                               wanted->run,
                               TARGET_TASK_OR_RUN,
                               diag);
    if (err == ERR_OK) {
        add_item(waiting, &target, wanted);
    } else {
        target_release(&target);
    }
    return err;
}

/* Add all tasks of a group. */
static enum err
find_group(struct waiting *waiting, const char *name, struct diag *diag)
{
    struct target_group group;
    enum err err =
        target_find_group(&group, waiting->store, name, waiting->run, diag);
    for (uint32_t ix = 0; err == ERR_OK && ix < group.count; ix++) {
        struct wanted wanted = {group.task_ids[ix],
                                group.run_id,
                                name,
                                group.ends[ix]};
        err = find_one(waiting, &wanted, diag);
    }
    target_group_release(&group);
    return err;
}

/* Resolve the operands. */
static enum err find_all(struct waiting *waiting,
                         const char *const *names,
                         uint32_t count,
                         struct diag *diag)
{
    enum err err = ERR_OK;
    waiting->last_event = UINT64_MAX;
    for (uint32_t ix = 0; err == ERR_OK && ix < count; ix++) {
        struct wanted wanted = {.name = names[ix], .run = waiting->run};
        err = find_one(waiting, &wanted, diag);
        if (err == ERR_NOT_FOUND) {
            err = find_group(waiting, names[ix], diag);
        }
    }
    return err;
}

/* Whether waiting is over: the item has finished, or another task of its group
 * did not succeed, so that it may never start. */
static bool is_settled(const struct waiting *waiting,
                       const struct awaited *item)
{
    bool settled = item->progress != GOING;
    for (uint32_t ix = 0; item->group != NULL && ix < waiting->count; ix++) {
        settled = settled || (waiting->items[ix].group == item->group &&
                              waiting->items[ix].progress == ENDED_BADLY);
    }
    return settled;
}

static const char *name_of(const struct awaited *item)
{
    return item->target.task_id != NULL ? item->target.task_id
                                        : item->target.run_id;
}

/* Print newly finished items; return how many are unfinished. */
static uint32_t tell(struct waiting *waiting)
{
    uint32_t left = 0;
    struct strbuf out = {0};
    for (uint32_t ix = 0; ix < waiting->count; ix++) {
        struct awaited *item = &waiting->items[ix];
        if (!is_settled(waiting, item)) {
            left++;
        } else if (!item->told && item->progress != GOING) {
            item->told = true;
            strbuf_addf(&out,
                        "%s: %s\n",
                        name_of(item),
                        strbuf_text(&item->how));
        }
    }
    if (out.len > 0 && !waiting->json) {
        (void)cli_write(&out);
    }
    strbuf_release(&out);
    return left;
}

static void add_json(struct strbuf *out, const struct waiting *waiting, bool ok)
{
    static const char *const names[] = {
        [GOING] = "going",
        [ENDED_WELL] = "well",
        [ENDED_BADLY] = "badly",
    };
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_bool(&json, "ok", ok);
    jsonw_array(&json, "targets");
    for (uint32_t ix = 0; ix < waiting->count; ix++) {
        const struct awaited *item = &waiting->items[ix];
        jsonw_line(&json, 2);
        jsonw_object(&json, NULL);
        jsonw_text(&json, "run", item->target.run_id);
        jsonw_text(&json, "task", item->target.task_id);
        jsonw_text(&json, "ended", names[item->progress]);
        jsonw_text(&json, "text", strbuf_text(&item->how));
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_object_end(&json);
    strbuf_adds(out, "\n");
}

/* Report the result, or the timeout; return the exit code. */
static int conclude(const struct waiting *waiting)
{
    bool ok = true;
    struct strbuf out = {0};
    for (uint32_t ix = 0; ix < waiting->count; ix++) {
        const struct awaited *item = &waiting->items[ix];
        ok = ok && item->progress == ENDED_WELL;
        if (!is_settled(waiting, item)) {
            strbuf_addf(&out,
                        "sluice %s: timeout: %s has not finished (%s)\n",
                        waiting->command->name,
                        name_of(item),
                        item->how.len > 0 ? item->how.text : "running");
        }
    }
    (void)fputs(strbuf_text(&out), stderr);
    strbuf_clear(&out);
    int code = ok ? CLI_OK : CLI_NOT_ALL_DONE;
    if (waiting->json) {
        add_json(&out, waiting, ok);
        int written = cli_write(&out);
        code = code == CLI_OK ? written : code;
    }
    strbuf_release(&out);
    return code;
}

static int watch(struct waiting *waiting)
{
    int64_t begun_ns = clock_boot_ns();
    struct diag diag = {0};
    for (;;) {
        struct store_range range = {.after = waiting->last_event};
        enum err err =
            store_events(waiting->store, &range, on_event, waiting, &diag);
        if (err != ERR_OK) {
            return cli_fail_store(waiting->command, err, &diag);
        }
        if (tell(waiting) == 0 ||
            clock_boot_ns() - begun_ns >= waiting->timeout_ns) {
            return conclude(waiting);
        }
        (void)usleep(POLL_US);
    }
}

/* Parse the options. Return CLI_END to continue, else the exit code. */
static int read_line(struct waiting *waiting, int argc, char **argv)
{
    for (;;) {
        const char *argument = NULL;
        int code = cli_next(waiting->command, argc, argv, &argument);
        if (code == CLI_END) {
            return CLI_END;
        }
        if (code < 0) {
            return code == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        if (code == CLIENT_OPT_STORE) {
            waiting->store_option = argument;
        } else if (code == CLIENT_OPT_JSON) {
            waiting->json = true;
        } else if (code == CLIENT_OPT_RUN) {
            waiting->run = argument;
            code = cli_check_id(waiting->command, "run", argument);
            if (code != CLI_OK) {
                return code;
            }
        } else if (cli_read_duration(waiting->command,
                                     "timeout",
                                     argument,
                                     &waiting->timeout_ns) != CLI_OK) {
            return CLI_USAGE;
        }
    }
}

/* Check that the operands are valid and not missing. */
static int check_names(const struct waiting *waiting, int argc, char **argv)
{
    if (optind == argc && waiting->run == NULL) {
        return cli_fail(waiting->command, "missing TASK or RUN");
    }
    if (waiting->run != NULL &&
        cli_check_id(waiting->command, "run", waiting->run) != CLI_OK) {
        return CLI_USAGE;
    }
    for (int ix = optind; ix < argc; ix++) {
        if (cli_check_id(waiting->command, "task", argv[ix]) != CLI_OK) {
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct waiting waiting = {.command = command, .timeout_ns = INT64_MAX};
    struct diag diag = {0};
    int code = read_line(&waiting, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    code = check_names(&waiting, argc, argv);
    if (code != CLI_OK) {
        return code;
    }
    struct store_place place;
    enum err err = store_place_find(&place, waiting.store_option, false, &diag);
    if (err == ERR_OK) {
        err = store_open(&waiting.store, place.address, STORE_READ, &diag);
    }
    if (err == ERR_OK) {
        bool whole = optind == argc; /* --run alone: the whole run */
        err = find_all(&waiting,
                       whole ? &waiting.run
                             : (const char *const *)(argv + optind),
                       whole ? 1 : (uint32_t)(argc - optind),
                       &diag);
    }
    code =
        err == ERR_OK ? watch(&waiting) : cli_fail_store(command, err, &diag);
    for (uint32_t ix = 0; ix < waiting.count; ix++) {
        target_release(&waiting.items[ix].target);
        strbuf_release(&waiting.items[ix].how);
    }
    mem_free(waiting.items);
    store_close(waiting.store);
    store_place_release(&place);
    return code;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"timeout", "TIME", "wait at most this long", OPT_TIMEOUT},
    {0},
};

const struct cli_command cli_wait = {
    .name = "wait",
    .synopsis = "[OPTION]... TASK|RUN... | --run RUN",
    .summary = "wait for tasks or runs to finish",
    .options = options,
    .run = run,
};
