/* SPDX-License-Identifier: MIT */
/*
 * sluice schedule: be the scheduler of a store, or stand by to become it.
 *
 * It runs all unfinished runs of the store until it is told to stop. If another
 * process is the scheduler, or becomes it, this one waits until that process is
 * gone; then it holds nothing, and a signal just ends it.
 */
#include "base/clock.h"
#include "cli/cli.h"
#include "engine/loop.h"
#include "view/session_look.h"
#include "work/owner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TRY_MS = 500 };

struct args {
    struct cli_line line;
    bool attached;
    struct store_place place;
    struct loop *loop;
    bool leaving;
    bool waits;    /* for another scheduler, which was said */
    bool troubled; /* the store is not writable, which was said */
};

static void say(const char *text)
{
    (void)fprintf(stderr, "sluice schedule: %s\n", text);
}

/* Whether standard input has ended. */
static bool has_ended(int wait_ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&in, 1, wait_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void on_pass(void *ctx)
{
    struct args *args = ctx;
    const struct engine *engine = loop_engine(args->loop);
    const char *trouble = engine_trouble(engine);
    if ((trouble[0] != '\0') != args->troubled) {
        args->troubled = !args->troubled;
        say(args->troubled ? trouble : "the store is writable again");
    }
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
        .look = session_look,
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
        args->leaving = has_ended(TRY_MS);
    } else {
        (void)poll(NULL, 0, TRY_MS);
    }
}

/* Whether an error passes: the server is away, or another was faster. */
static bool passes(enum err err)
{
    return err == ERR_BUSY || err == ERR_CONFLICT || err == ERR_UNAVAILABLE ||
           err == ERR_TIMEOUT;
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
            say(diag.text);
            pause_for_turn(args);
            err = ERR_OK;
        }
    }
    store_place_release(&args->place);
    return err == ERR_OK ? CLI_OK : cli_fail_store(command, err, &diag);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code == CLI_END) {
        (void)signal(SIGPIPE, SIG_IGN);
        code = carry_out(&args);
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
