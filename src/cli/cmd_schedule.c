/* SPDX-License-Identifier: MIT */
/*
 * sluice schedule: be the scheduler of a store, or stand by to become it.
 *
 * It runs all unfinished runs of the store until it is told to stop. If another
 * process is the scheduler, or becomes it, this one waits until that process is
 * gone.
 */
#include "base/invariant.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "engine/loop.h"
#include "work/owner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { TRY_MS = 500, LONG_TURNS = 10, SIGNALS = 2 };

struct args {
    struct cli_line line;
    bool attached;
    uv_loop_t uv; /* of `signals` */
    uv_signal_t signals[SIGNALS];
    struct store_place place;
    struct loop *loop;
    bool leaving;
    bool waits;     /* for another scheduler, which was said */
    char *troubled; /* what was said about the store; NULL: it is fine */
};

static void say(const char *text)
{
    (void)fprintf(stderr, "sluice schedule: %s\n", text);
}

/* Say a fault once, and not at each try. */
static void say_trouble(struct args *args, const char *text)
{
    if (args->troubled == NULL || strcmp(args->troubled, text) != 0) {
        mem_set_text(&args->troubled, text);
        say(text);
    }
}

/* Whether standard input has ended. */
static bool has_ended(int wait_ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&in, 1, wait_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void on_early_signal(uv_signal_t *handle, int number)
{
    struct args *args = handle->data;
    (void)number;
    args->leaving = true;
}

/* Watch signals also while no loop does. libuv's handler stays in place when
 * the loop of a scheduler is closed. */
static void watch_signals(struct args *args)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT};
    int bad = uv_loop_init(&args->uv);
    for (int ix = 0; ix < SIGNALS && bad == 0; ix++) {
        args->signals[ix].data = args;
        bad = uv_signal_init(&args->uv, &args->signals[ix]);
        if (bad == 0) {
            bad = uv_signal_start(&args->signals[ix],
                                  on_early_signal,
                                  numbers[ix]);
        }
    }
    INVARIANT(bad == 0);
}

static void unwatch_signals(struct args *args)
{
    for (int ix = 0; ix < SIGNALS; ix++) {
        uv_close((uv_handle_t *)&args->signals[ix], NULL);
    }
    (void)uv_run(&args->uv, UV_RUN_DEFAULT);
    int bad = uv_loop_close(&args->uv);
    INVARIANT(bad == 0);
}

static void on_pass(void *ctx)
{
    struct args *args = ctx;
    const struct engine *engine = loop_engine(args->loop);
    const char *trouble = engine_trouble(engine);
    if (trouble[0] != '\0') {
        say_trouble(args, trouble);
    } else if (args->troubled != NULL) {
        mem_set_text(&args->troubled, NULL);
        say("the store is writable again");
    }
    (void)uv_run(&args->uv, UV_RUN_NOWAIT); /* signals of before this loop */
    if (args->attached && has_ended(0)) {
        args->leaving = true;
    }
    if (args->leaving || engine_is_draining(engine)) {
        args->leaving = true;
        loop_stop(args->loop); /* sessions belong to workers */
    }
}

static void on_signal(void *ctx, int number)
{
    struct args *args = ctx;
    (void)number;
    args->leaving = true;
    loop_stop(args->loop);
}

/* Be the scheduler until told to leave; ERR_CONFLICT: another process is. */
static enum err schedule(struct args *args,
                         struct store *store,
                         uint64_t epoch,
                         struct diag *diag)
{
    struct loop_options options = {
        .store = store,
        .place = &args->place,
        .epoch = epoch,
        .ctx = args,
        .pass = on_pass,
        .signal = on_signal,
        .look = show_look,
    };
    say("this process is the scheduler");
    enum err err = loop_open(&args->loop, &options, diag);
    if (err == ERR_OK) {
        err = loop_run(args->loop, diag);
    }
    loop_close(args->loop);
    args->loop = NULL;
    return err;
}

/* Wait before the next try to take the store. */
static void pause_for_turn(struct args *args)
{
    if (args->attached) {
        args->leaving = has_ended(TRY_MS) || args->leaving;
    } else {
        (void)poll(NULL, 0, TRY_MS);
    }
    (void)uv_run(&args->uv, UV_RUN_NOWAIT);
}

/* Whether an error passes: the server is away, another was faster, or the disk
 * of this machine is full. */
static bool passes(enum err err)
{
    return err == ERR_BUSY || err == ERR_CONFLICT || err == ERR_UNAVAILABLE ||
           err == ERR_TIMEOUT || err == ERR_IO;
}

/* Find the store, whose server may have been away so far. */
static enum err find_store(struct args *args, struct diag *diag)
{
    if (args->place.address != NULL) {
        return ERR_OK;
    }
    return store_place_find(&args->place, args->line.wanted.store, true, diag);
}

/* Take the store once, and schedule. */
static enum err try_once(struct args *args, struct diag *diag)
{
    struct store *store = NULL;
    struct store_owner self = owner_self();
    uint64_t epoch;
    enum err err = find_store(args, diag);
    if (err == ERR_OK) {
        err = store_open(&store, args->place.address, STORE_WRITE, diag);
    }
    while (err == ERR_OK && !args->leaving) {
        err = store_take(store, &self, &epoch, diag);
        if (err == ERR_OK) {
            args->waits = false;
            err = schedule(args, store, epoch, diag);
            break;
        }
        if (err == ERR_BUSY) {
            if (!args->waits) {
                say(diag->text);
                args->waits = true;
            }
            pause_for_turn(args);
            err = ERR_OK;
        }
    }
    store_close(store);
    return err;
}

static int carry_out(struct args *args)
{
    struct diag diag = {0};
    const struct cli_command *command = args->line.command;
    enum err err = ERR_OK;
    while (err == ERR_OK && !args->leaving) {
        err = try_once(args, &diag);
        if (passes(err)) {
            say_trouble(args, diag.text);
            /* A machine that cannot schedule lets others try first. */
            int turns = err == ERR_IO ? LONG_TURNS : 1;
            for (int turn = 0; turn < turns && !args->leaving; turn++) {
                pause_for_turn(args);
            }
            err = ERR_OK;
        }
    }
    store_place_release(&args->place);
    mem_free(args->troubled);
    return err == ERR_OK ? CLI_OK : cli_fail_store(command, err, &diag);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code == CLI_END) {
        (void)signal(SIGPIPE, SIG_IGN);
        watch_signals(&args);
        code = carry_out(&args);
        unwatch_signals(&args);
    }
    return code;
}

static const struct cli_option options[] = {
    {"attached",
     NULL,
     "exit at the end of standard input",
     CLI_AT(args, attached)},
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_schedule = {
    .name = "schedule",
    .synopsis = "[OPTION]...",
    .summary = "be the scheduler of a store, or stand by for it",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .run = run,
};
