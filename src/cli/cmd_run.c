/* SPDX-License-Identifier: MIT */
/*
 * sluice run: submit a plan and run it to completion.
 *
 * The process becomes the scheduler of the store or, if the store has one,
 * submits the plan to it and watches. A watcher keeps trying to take the lock:
 * when the scheduler dies, one of the watchers replaces it.
 */
#include "base/clock.h"
#include "base/crash.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/beside.h"
#include "cli/cli.h"
#include "cli/next.h"
#include "cli/partner.h"
#include "cli/preview.h"
#include "cli/reading.h"
#include "cli/run_end.h"
#include "cli/show.h"
#include "cli/take_over.h"
#include "engine/loop.h"
#include "engine/request.h"
#include "mcp/door.h"
#include "store/event.h"
#include "term/live.h"
#include "view/client.h"
#include "view/lines.h"
#include "view/past.h"
#include "view/summary.h"
#include "work/owner.h"
#include "work/workers.h"

#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_DRY = 'n',
    OPT_AT = 1,
    OPT_NEW,
    OPT_SLOTS,
    OPT_TAKE_OVER,
    OPT_UPDATE,
    OPT_WAIT,
    WATCH_US = 250000,
    SUBMIT_MS = 60000,  /* parsing a large plan takes a while */
    PARTNER_MS = 10000, /* for the exit of a worker without sessions */
};

struct run {
    const struct cli_command *command;
    const char *store_option;
    int64_t not_before_ns; /* wall clock; 0: start at once */
    bool dry;
    bool anew;
    bool take_over;
    bool update;
    bool wait;
    bool json;
    struct beside beside;   /* --serve */
    const char *slots;      /* of its worker; NULL: any number */
    char worker[65];        /* its name */
    struct partner partner; /* the worker, if the store has workers */
    struct cli_file file;
    const char *path;  /* plan, as given */
    char *name;        /* plan name */
    struct plan *plan; /* NULL once the scheduler has it */
    char *folder;      /* plan directory */
    struct store_place place;
    struct store *store;
    struct loop *loop;
    struct live *live;   /* NULL: plain lines */
    struct strbuf lines; /* not yet printed */
    int64_t began_ns;    /* start of this process; wall clock */
    char *id;            /* run id, once known */
    uint32_t number;
    uint64_t last_event;
    int64_t drawn_ns; /* by a watcher; wall clock */
    uint32_t interrupts;
    bool interrupted; /* exit although the run is unfinished */
    bool troubled;    /* the store is not writable */
    bool doubtful;    /* the plan is valid only if it continues an old run */
    bool over;        /* the run finished or needs an operator */
    bool past;        /* the run had finished before */
    bool removed;     /* and gc has removed it */
    bool cancelled;   /* state of a removed run */
    enum err failed;
    struct diag diag;
};

static const struct cli_option options[] = {
    {"at", "WHEN", "start nothing before, such as 22:00", OPT_AT},
    {"dry-run", NULL, "print what would start and when; run nothing", OPT_DRY},
    CLIENT_OPTION_JSON,
    BESIDE_OPTION_LISTEN,
    {"new", NULL, "start another run, even if a run has this name", OPT_NEW},
    BESIDE_OPTION_SERVE,
    {"slots",
     "N",
     "with PostgreSQL: most sessions on this machine (default: any)",
     OPT_SLOTS},
    CLIENT_OPTION_STORE,
    {"take-over",
     NULL,
     "stop the running scheduler and replace it",
     OPT_TAKE_OVER},
    {"update",
     NULL,
     "change the unfinished run of this name to PLAN",
     OPT_UPDATE},
    BESIDE_OPTION_URL,
    {"wait", NULL, "wait for the operator instead of exiting", OPT_WAIT},
    {0},
};

/* --- output ------------------------------------------------------------- */

/* Add a date unless the event is of the day on which this process started and
 * of the current day. */
static void add_dated_line(struct run *run, const struct store_event *event)
{
    struct strbuf line = {0};
    if (lines_add(&line, event)) {
        int64_t wall_ns = event->wall_ns;
        if (!lines_add_date(&run->lines, wall_ns, run->began_ns)) {
            (void)lines_add_date(&run->lines, wall_ns, clock_wall_ns());
        }
        strbuf_adds(&run->lines, strbuf_text(&line));
    }
    strbuf_release(&line);
}

/* Show an event of this run, or of the whole store. */
static void show_event(struct run *run, const struct store_event *event)
{
    run->last_event = event->number;
    if (event->run != STORE_NONE && event->run != run->number) {
        return;
    }
    if (run->json) {
        const char *id = event->run != STORE_NONE ? run->id : NULL;
        lines_add_json(&run->lines, event, id);
    } else if (run->live == NULL) {
        add_dated_line(run, event);
    }
}

/* Print the lines collected in a pass. */
static void print_lines(struct run *run)
{
    if (run->lines.len > 0) {
        run_end_print(&run->lines);
        strbuf_clear(&run->lines);
    }
}

/* Start the server of --serve, and print what it has to say. */
static void tend_server(struct run *run)
{
    struct strbuf text = {0};
    const struct beside *beside = &run->beside;
    if (beside->started || (beside->wanted && run->id != NULL && !run->over)) {
        beside_tend(&run->beside, run->place.address, &text);
    }
    if (text.len > 0 && run->live != NULL) {
        live_clear(run->live);
    }
    (void)fputs(strbuf_text(&text), stderr);
    strbuf_release(&text);
}

/* --- submitting --------------------------------------------------------- */

static void add_submit(struct strbuf *out, const struct run *run)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "verb", "submit");
    jsonw_text(&json, "file", run->file.path);
    jsonw_text(&json, "folder", run->folder);
    jsonw_text(&json, "text", run->file.text);
    jsonw_int(&json, "processors", cli_processors());
    jsonw_bool(&json, "new", run->anew);
    if (run->not_before_ns > 0) {
        jsonw_int(&json, "not_before_ns", run->not_before_ns);
    }
    if (store_has_workers(run->place.address)) {
        jsonw_text(&json, "worker", run->worker);
    }
    jsonw_object_end(&json);
}

/* Process the answer to a submit request. */
static void take_answer(struct run *run, const char *answer)
{
    json_t *json = json_loads(answer, 0, NULL);
    const char *id = json_string_value(json_object_get(json, "run"));
    if (json_is_true(json_object_get(json, "ok")) && id != NULL) {
        run->id = mem_strndup(id, strlen(id));
        run->number =
            (uint32_t)json_integer_value(json_object_get(json, "number"));
        run->anew = false;
        run->past = json_is_true(json_object_get(json, "finished"));
        run->over |= run->past;
    } else {
        const char *text = json_string_value(json_object_get(json, "text"));
        const char *name = json_string_value(json_object_get(json, "error"));
        run->failed = err_from_name(name != NULL ? name : "");
        run->failed = run->failed == ERR_OK ? ERR_IO : run->failed;
        (void)diag_set(&run->diag,
                       run->failed,
                       "%s",
                       text != NULL ? text : "invalid reply of the scheduler");
    }
    json_decref(json);
}

/* --- scheduling --------------------------------------------------------- */

static void on_event(void *ctx, const struct store_event *event)
{
    show_event(ctx, event);
}

static void say(struct run *run, const char *text)
{
    if (run->live != NULL) {
        live_clear(run->live);
    }
    (void)fprintf(stderr, "sluice run: %s\n", text);
}

static void on_answer(void *ctx, const char *json)
{
    struct run *run = ctx;
    take_answer(run, json);
    if (run->id != NULL) {
        struct strbuf text = {0};
        run_end_check_files(&text, loop_engine(run->loop), run->id);
        if (text.len > 0) {
            say(run, strbuf_text(&text));
        }
        strbuf_release(&text);
        if (!run->update && !run->doubtful) {
            mem_free(run->file.text); /* the run has it */
            run->file.text = NULL;
            run->file.bytes = 0;
        }
    }
    (void)malloc_trim(0); /* parsing needs more memory than the plan */
    if (run->failed != ERR_OK || run->past) {
        loop_stop(run->loop);
    }
}

/* Report when the store fails and when it recovers. */
static void tell_trouble(struct run *run, const char *trouble)
{
    if ((trouble[0] != '\0') == run->troubled) {
        return;
    }
    run->troubled = trouble[0] != '\0';
    struct strbuf text = {0};
    if (run->troubled) {
        strbuf_addf(&text,
                    "%s: no session starts until this is resolved; running "
                    "sessions continue",
                    trouble);
    } else {
        strbuf_adds(&text, "the store is writable again: continuing");
    }
    say(run, strbuf_text(&text));
    strbuf_release(&text);
}

static void on_pass(void *ctx)
{
    struct run *run = ctx;
    struct engine *engine = loop_engine(run->loop);
    print_lines(run);
    tend_server(run);
    partner_tend(&run->partner);
    tell_trouble(run, engine_trouble(engine));
    uint32_t ix =
        run->id != NULL ? engine_find_run(engine, run->id) : STORE_NONE;
    if (ix == STORE_NONE) {
        return;
    }
    if (run->live != NULL) {
        live_draw(run->live, engine, ix, clock_wall_ns());
    }
    if (!engine_is_settled(engine)) {
        return;
    }
    struct engine_run_view view = engine_run(engine, ix);
    bool left = engine_is_draining(engine) && engine_session_count(engine) == 0;
    if (view.finished || (view.quiet && !left && !view.sched.paused)) {
        if (engine_notification_count(engine, ix) > 0) {
            return; /* notifications are pending */
        }
        run->over = true;
        if (view.finished || !run->wait) {
            loop_stop(run->loop);
        }
    } else if (left) {
        run->interrupted = true;
        loop_stop(run->loop);
    }
}

static void on_signal(void *ctx, int number)
{
    struct run *run = ctx;
    struct engine *engine = loop_engine(run->loop);
    run->interrupts += number == SIGINT ? 1 : 0;
    if (number != SIGINT || run->interrupts > 2) {
        /* Sessions keep running, and the next scheduler adopts them. */
        run->interrupted = true;
        loop_stop(run->loop);
    } else if (run->interrupts == 1) {
        say(run,
            "draining; will exit after the last session (Ctrl-C again: stop "
            "the sessions)");
        engine_drain(engine, true);
    } else {
        say(run,
            "stopping the sessions (Ctrl-C again: exit and leave them "
            "running)");
        engine_stop(engine);
    }
}

static enum err schedule(struct run *run, uint64_t epoch)
{
    struct engine_update update = {
        .file = run->file.path,
        .folder = run->folder,
        .text = run->file.text,
        .processors = cli_processors(),
    };
    struct loop_options loop_options = {
        .store = run->store,
        .place = &run->place,
        .epoch = epoch,
        .update = run->update ? &update : NULL,
        .offered_take = run->id == NULL ? run->plan : NULL,
        .offered_source =
            {
                .file = run->file.path,
                .text = run->file.text,
                .len = run->file.bytes,
                .processors = cli_processors(),
            },
        .ctx = run,
        .event = on_event,
        .answer = on_answer,
        .pass = on_pass,
        .signal = on_signal,
        .look = show_look,
    };
    if (run->id == NULL) {
        run->plan = NULL;
    }
    enum err err = loop_open(&run->loop, &loop_options, &run->diag);
    strbuf_release(&update.diff); /* already shown */
    if (err == ERR_CONFLICT || err == ERR_NOT_FOUND || err == ERR_INVALID) {
        run->failed = err;
    }
    if (err == ERR_OK) {
        if (run->id == NULL) {
            struct strbuf json = {0};
            add_submit(&json, run);
            loop_request(run->loop, strbuf_text(&json));
            strbuf_release(&json);
        }
        err = loop_run(run->loop, &run->diag);
    }
    loop_close(run->loop);
    run->loop = NULL;
    return err != ERR_OK ? err : run->failed;
}

/* --- watching ----------------------------------------------------------- */

static enum err on_watched(void *ctx, const struct store_event *row)
{
    struct run *run = ctx;
    struct event event = {0};
    show_event(run, row);
    event_read(&event, row);
    if (event_is_request(&event, "drain")) {
        run->interrupted = true; /* do not replace a drained scheduler */
    }
    if (row->run == run->number && event.kind == EVENT_KIND_RUN) {
        enum event_word to = event.as.run.to;
        run->over = to == EVENT_WORD_FINISHED ||
                    (to == EVENT_WORD_WAITING && !run->wait);
    }
    event_release(&event);
    return ERR_OK;
}

/* Submit the plan to the scheduler. ERR_NOT_FOUND: it has just exited. */
static enum err submit(struct run *run)
{
    struct strbuf json = {0};
    struct strbuf keyed = {0};
    struct store_key key;
    char *answer = NULL;
    add_submit(&json, run);
    enum err err = store_add_key(&keyed, &key, strbuf_text(&json), &run->diag);
    strbuf_release(&json);
    if (err == ERR_OK) {
        err = store_ask(run->store,
                        &key,
                        strbuf_text(&keyed),
                        SUBMIT_MS,
                        &answer,
                        &run->diag);
    }
    strbuf_release(&keyed);
    if (err == ERR_OK) {
        take_answer(run, answer);
        err = run->failed;
    }
    mem_free(answer);
    return err;
}

/* Draw the state in the store, if it has changed or a second has passed. */
static void draw_watched(struct run *run, bool changed)
{
    int64_t now_ns = clock_wall_ns();
    if (!changed && now_ns - run->drawn_ns < SECOND_NS) {
        return;
    }
    struct client_view view;
    struct diag diag = {0};
    struct store_query query = {.run = run->id};
    if (client_look(&view, &run->place, &query, &diag) == ERR_OK &&
        engine_run_count(view.engine) == 1) {
        run->drawn_ns = now_ns;
        live_draw(run->live, view.engine, 0, now_ns);
    }
    client_view_release(&view);
}

/* Poll the store for progress of the scheduler. */
static enum err watch(struct run *run)
{
    if (run->id == NULL) {
        enum err err = submit(run);
        /* Submitting again is safe even if it is not known whether the
         * scheduler has taken the plan, unless a new run is wanted. */
        bool gone = err == ERR_NOT_FOUND ||
                    (err == ERR_IO && run->failed == ERR_OK && !run->anew);
        if (err != ERR_OK) {
            return gone ? ERR_OK : err; /* try the lock again */
        }
        plan_free(run->plan);
        run->plan = NULL;
    }
    uint64_t before = run->last_event;
    enum err err = store_events(run->store,
                                &(struct store_range){.after = before},
                                on_watched,
                                run,
                                &run->diag);
    print_lines(run);
    tend_server(run);
    partner_tend(&run->partner);
    if (err == ERR_OK && run->live != NULL && !run->over) {
        draw_watched(run, run->last_event != before);
    }
    return err;
}

/* --- both roles --------------------------------------------------------- */

/* Find a finished run of this plan, which is not repeated without --new. */
static enum err look_back(struct run *run)
{
    if (run->anew || run->id != NULL) {
        return ERR_OK;
    }
    struct past_plan plan = {
        .name = run->name,
        .file = run->file.path,
        .folder = run->folder,
        .text = run->file.text,
    };
    struct past_run found;
    enum err err = past_find(run->store, &plan, &found, &run->diag);
    run->id = found.id;
    run->number = found.number;
    run->removed = found.removed;
    run->cancelled = found.cancelled;
    run->past = err == ERR_OK;
    run->over = run->past;
    if (err == ERR_CONFLICT) {
        run->failed = err;
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Have a worker on this machine, if the store has workers. */
static void set_partner(struct run *run)
{
    if (!store_has_workers(run->place.address)) {
        return;
    }
    workers_own_name(run->worker);
    /* Not as an argument, which others can see: it may have a password. */
    if (setenv("SLUICE_STORE", run->place.address, 1) != 0) {
        say(run, "cannot set SLUICE_STORE");
        return;
    }
    partner_add(&run->partner, "work");
    partner_add(&run->partner, "--name");
    partner_add(&run->partner, run->worker);
    partner_add(&run->partner, "--slots");
    partner_add(&run->partner, run->slots != NULL ? run->slots : "any");
    partner_add(&run->partner, "--attached");
}

/* Whether the server cannot be reached for now. Sessions and schedulers wait
 * for it, too. */
static bool is_away(struct run *run, enum err err)
{
    bool away =
        run->failed == ERR_OK &&
        (err == ERR_BUSY || err == ERR_UNAVAILABLE || err == ERR_TIMEOUT) &&
        store_has_workers(run->place.address);
    if (err == ERR_OK || away) {
        tell_trouble(run, away ? run->diag.text : "");
    }
    return away;
}

/* Another process is the scheduler now, or the server was away: watch it with
 * another connection. */
static enum err watch_again(struct run *run)
{
    enum err err;
    store_close(run->store);
    for (;;) {
        run->diag = (struct diag){0};
        err = store_open(&run->store,
                         run->place.address,
                         STORE_WRITE,
                         &run->diag);
        if (!is_away(run, err)) {
            return err;
        }
        partner_tend(&run->partner);
        (void)usleep(WATCH_US);
    }
}

/* Become the scheduler, or watch it until the run is over. */
static enum err see_through(struct run *run)
{
    struct store_owner self = owner_self();
    uint64_t epoch;
    enum err err = look_back(run);
    if (run->failed == ERR_OK) {
        err = ERR_OK; /* taking the lock may repair the store */
    }
    while (err == ERR_OK && !run->over && !run->interrupted) {
        err = run->take_over
                  ? take_over_store(run->store, &epoch, &run->diag)
                  : store_take(run->store, &self, &epoch, &run->diag);
        run->take_over = false;
        if (err == ERR_OK && run->id != NULL) {
            err = watch(run); /* last events of the previous scheduler */
        } else if (err == ERR_OK) {
            err = look_back(run); /* may have just finished */
        }
        if (err == ERR_OK) {
            if (run->over || run->interrupted) {
                return ERR_OK;
            }
            err = schedule(run, epoch);
            if (err != ERR_CONFLICT || run->failed != ERR_OK ||
                !store_has_workers(run->place.address)) {
                return err;
            }
            say(run, run->diag.text);
            err = watch_again(run);
            continue;
        }
        if (err == ERR_BUSY && run->update) {
            run->failed = ERR_CONFLICT;
            return diag_set(
                &run->diag,
                ERR_CONFLICT,
                "a scheduler is running: replace it with --take-over (its "
                "sessions keep running), or stop it first");
        }
        if (err == ERR_BUSY) {
            err = watch(run);
        }
        if (is_away(run, err)) {
            err = watch_again(run);
        }
        if (err == ERR_OK && !run->over) {
            (void)usleep(WATCH_US);
        }
    }
    return err;
}

/* Do not show events from before this process. */
static void skip_events(struct run *run)
{
    struct store *store;
    struct diag diag = {0};
    struct store_info info = {0};
    static const struct store_query query = {0};
    static const struct store_visitor visitor = {0};
    if (store_open(&store, run->place.address, STORE_READ, &diag) == ERR_OK) {
        if (store_read(store, &query, &visitor, NULL, &info, &diag) == ERR_OK) {
            run->last_event = info.last_event;
        }
        store_close(store);
    }
}

/* Append this command line with `option`, which may be NULL. */
static void
add_command(struct strbuf *out, const struct run *run, const char *option)
{
    struct next_command command = {
        .option = option,
        .store = run->store_option,
        .plan = run->path,
    };
    next_add(out, &command);
}

/* Append the commands for the next step. */
static void
add_next(struct strbuf *out, const struct run *run, const struct engine *engine)
{
    struct strbuf command = {0};
    const char *effect;
    bool finished = engine_run(engine, 0).finished;
    if (run->past) {
        strbuf_addf(out,
                    "\nrun %s had already finished: nothing was started\n",
                    run->id);
    }
    if (finished) {
        strbuf_addf(&command, "sluice report %s", run->id);
        strbuf_addf(out, "\n    %-36s write a report\n", strbuf_text(&command));
        strbuf_clear(&command);
        effect = "start another run of this plan";
    } else if (run->interrupted) {
        strbuf_adds(out, "\n");
        effect = "resume the run";
    } else {
        strbuf_adds(out, "\n");
        effect = "resume the run, once this is decided";
    }
    add_command(&command, run, finished ? "--new" : NULL);
    strbuf_addf(out, "    %-36s %s\n", strbuf_text(&command), effect);
    strbuf_release(&command);
}

/* Print a summary of the run; return the exit code. */
static int conclude(struct run *run)
{
    if (run->id == NULL) {
        return run->interrupted ? CLI_INTERRUPTED : CLI_OK;
    }
    if (run->removed) {
        struct next_command command = {
            .option = "--new",
            .store = run->store_option,
            .plan = run->path,
        };
        return run_end_removed(run->id, &command, run->json, run->cancelled);
    }
    struct client_view view;
    struct diag diag = {0};
    int code = CLI_STORE;
    enum err err = run_end_look(&view, &run->place, run->id, &diag);
    if (err == ERR_OK && engine_run_count(view.engine) == 1) {
        code = run->interrupted                  ? CLI_INTERRUPTED
               : summary_is_done(view.engine, 0) ? CLI_OK
                                                 : CLI_NOT_ALL_DONE;
        struct strbuf text = {0};
        if (!run->json) {
            summary_add(&text, view.engine, 0);
        } else if (run->past) {
            past_add_event(&text, view.store, run->id, run->number);
        }
        run_end_print(&text);
        if (!run->interrupted) {
            code = run_end_hand_off(&run->place, view.engine, run->json, code);
        }
        if (!run->json) {
            strbuf_clear(&text);
            add_next(&text, run, view.engine);
            run_end_print(&text);
        }
        strbuf_release(&text);
    } else {
        code = cli_fail_store(run->command, err, &diag);
    }
    client_view_release(&view);
    return code;
}

/* Show how the plan differs from the plan of the unfinished run; an error if
 * the run cannot be changed to it. */
static enum err show_update(struct run *run)
{
    struct engine_update update = {
        .file = run->file.path,
        .folder = run->folder,
        .text = run->file.text,
        .processors = cli_processors(),
    };
    enum err err = client_look_ahead(&run->place, &update, &run->diag);
    run->failed = err;
    struct strbuf text = {0};
    if (run->json) {
        struct jsonw json = {.out = &text};
        jsonw_object(&json, NULL);
        jsonw_text(&json, "kind", "update");
        jsonw_text(&json, "diff", strbuf_text(&update.diff));
        jsonw_object_end(&json);
        strbuf_adds(&text, "\n");
    } else if (update.diff.len > 0) {
        strbuf_adds(&text, strbuf_text(&update.diff));
    } else if (err == ERR_OK) {
        strbuf_adds(&text, "no change\n");
    }
    run_end_print(&text);
    strbuf_release(&text);
    strbuf_release(&update.diff);
    return err;
}

/* Show the changes of an update without applying them. */
static int preview_update(struct run *run)
{
    enum err err =
        store_place_find(&run->place, run->store_option, false, &run->diag);
    if (err == ERR_OK) {
        err = show_update(run);
    }
    if (err != ERR_OK) {
        (void)fprintf(stderr, "sluice run: %s\n", run->diag.text);
        return err_exit_code(err);
    }
    return CLI_OK;
}

/* Print how to resume after a store error; return the exit code. */
static int explain_store(const struct run *run)
{
    struct strbuf text = {0};
    add_command(&text, run, NULL);
    (void)fprintf(stderr,
                  "    %-36s resume the run, once this is repaired\n",
                  strbuf_text(&text));
    strbuf_release(&text);
    return CLI_STORE;
}

static int execute(struct run *run)
{
    /* If the reader of our output exits, the plan continues. */
    (void)signal(SIGPIPE, SIG_IGN);
    enum err err =
        store_place_find(&run->place, run->store_option, true, &run->diag);
    const char *home = run->place.home;
    if (err == ERR_OK && door_is_of(&run->place)) {
        return cli_fail(run->command,
                        "a session cannot run plans in the store of its own "
                        "run: use 'sluice session add', or another store with "
                        "--store");
    }
    if (err == ERR_OK && !utf8_is_valid(home, strlen(home))) {
        (void)diag_set(&run->diag, ERR_INVALID, "%s", home);
        return cli_fail(run->command,
                        "the path of the store is not UTF-8 (%s): rename the "
                        "directory, or use another one with --store",
                        run->diag.text);
    }
    if (err == ERR_OK) {
        skip_events(run);
        err = store_open(&run->store,
                         run->place.address,
                         STORE_WRITE,
                         &run->diag);
    }
    crash_point("run-store-open");
    if (err == ERR_OK && run->update) {
        err = show_update(run);
    }
    if (err == ERR_OK) {
        if (!run->json && isatty(STDOUT_FILENO) == 1) {
            run->live = live_new(cli_colours(), cli_unicode());
        }
        set_partner(run);
        err = see_through(run);
        tend_server(run);
        partner_end(&run->partner, run->interrupted ? 0 : PARTNER_MS);
    }
    store_close(run->store);
    print_lines(run);
    strbuf_release(&run->lines);
    if (run->live != NULL) {
        live_clear(run->live);
        live_free(run->live);
    }
    if (err != ERR_OK && run->doubtful && run->failed == ERR_INVALID) {
        /* This prints the errors. */
        plan_free(cli_read_plan(&run->file, clock_wall_ns(), run->json));
        return CLI_USAGE;
    }
    if (err != ERR_OK) {
        (void)fprintf(stderr, "sluice run: %s\n", run->diag.text);
        return run->failed != ERR_OK ? err_exit_code(run->failed)
                                     : explain_store(run);
    }
    crash_point("run-over");
    return conclude(run);
}

/* Set expectations from the history of the plan's store, if it exists. */
static void expect_history(struct run *run, struct plan *plan)
{
    struct diag diag = {0};
    (void)!client_expect(plan, run->store_option, &diag);
}

static int check_and_execute(struct run *run, const char *path)
{
    enum err err = cli_read_file(&run->file, path, &run->diag);
    if (err != ERR_OK) {
        return cli_fail(run->command, "%s", run->diag.text);
    }
    run->folder = cli_folder(path);
    struct reading reading = {
        .file = &run->file,
        .folder = run->folder,
        .store = run->store_option,
        .json = run->json,
        .fresh = run->anew || run->update || run->dry,
    };
    struct plan *plan = reading_plan(&reading);
    run->doubtful = reading.doubtful;
    if (plan == NULL) {
        return CLI_USAGE;
    }
    int code;
    run->path = path;
    run->name = mem_strndup(plan->name, strlen(plan->name));
    if (run->folder == NULL) {
        code = cli_fail(run->command, "%s: cannot find its directory", path);
    } else if (!utf8_is_valid(run->folder, strlen(run->folder))) {
        /* The path occurs in events, briefs and rows, which must be UTF-8. */
        (void)diag_set(&run->diag, ERR_INVALID, "%s", run->folder);
        code = cli_fail(run->command,
                        "the path of the plan's directory is not UTF-8 (%s): "
                        "rename the directory",
                        run->diag.text);
    } else if (run->dry && run->update) {
        code = preview_update(run);
    } else if (run->dry) {
        expect_history(run, plan);
        code = preview_print(plan, run->json);
    } else {
        run->plan = run->doubtful ? NULL : plan;
        plan = run->doubtful ? plan : NULL;
        code = execute(run);
        plan_free(run->plan);
    }
    plan_free(plan);
    return code;
}

/* Read the time of --at; false after printing an error. */
static bool read_time(struct run *run, const char *text)
{
    struct plan_time time;
    if (!plan_parse_time(text, &time)) {
        (void)cli_fail(run->command,
                       "--at %s: not a time such as 22:00, 2030-01-31, "
                       "\"2030-01-31 22:00\" or 2030-01-31T22:00:00Z",
                       text);
        return false;
    }
    run->not_before_ns = plan_time_ns(time, run->began_ns);
    if (run->not_before_ns <= run->began_ns) {
        (void)cli_fail(run->command,
                       "--at %s is in the past: leave it out to start at once",
                       text);
        return false;
    }
    return true;
}

static int run_run(const struct cli_command *command, int argc, char **argv)
{
    struct run run = {
        .command = command,
        .began_ns = clock_wall_ns(),
        .beside = BESIDE_NONE,
        .partner = PARTNER_NONE,
    };
    const char *argument;
    int option;
    while ((option = cli_next(command, argc, argv, &argument)) != CLI_END) {
        switch (option) {
        case OPT_AT:
            if (!read_time(&run, argument)) {
                return CLI_USAGE;
            }
            break;
        case OPT_DRY:
            run.dry = true;
            break;
        case OPT_NEW:
            run.anew = true;
            break;
        case OPT_SLOTS:
            run.slots = argument;
            break;
        case OPT_TAKE_OVER:
            run.take_over = true;
            break;
        case OPT_UPDATE:
            run.update = true;
            break;
        case OPT_WAIT:
            run.wait = true;
            break;
        case CLIENT_OPT_JSON:
            run.json = true;
            break;
        case CLIENT_OPT_STORE:
            run.store_option = argument;
            break;
        case CLI_HELP:
            return CLI_OK;
        default:
            if (beside_take(&run.beside, command, option, argument) != CLI_OK) {
                return CLI_USAGE;
            }
            break;
        }
    }
    const char *path = cli_operand(command, argc, argv);
    if (path != NULL && run.update && run.anew) {
        return cli_fail(command, "--update and --new exclude each other");
    }
    if (path != NULL && run.not_before_ns > 0 && (run.update || run.dry)) {
        return cli_fail(command,
                        "--at and --%s exclude each other",
                        run.update ? "update" : "dry-run");
    }
    if (path != NULL && run.beside.wanted && run.dry) {
        return cli_fail(command, "--serve and --dry-run exclude each other");
    }
    int code = path != NULL ? check_and_execute(&run, path) : CLI_USAGE;
    beside_stop(&run.beside);
    cli_release_file(&run.file);
    mem_free(run.name);
    mem_free(run.folder);
    store_place_release(&run.place);
    mem_free(run.id);
    return code;
}

const struct cli_command cli_run = {
    .name = "run",
    .synopsis = "[OPTION]... PLAN",
    .summary = "run a plan to completion, or resume it",
    .options = options,
    .run = run_run,
};
