/* SPDX-License-Identifier: MIT */
/*
 * sluice work: run sessions for a store that several machines use.
 */
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/partner.h"
#include "store/store.h"
#include "work/crew.h"
#include "work/crew_loop.h"
#include "work/wire.h"
#include "work/workers.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_LABEL = 1,
    OPT_SLOTS,
    SLOTS_MAX = 100000,
    WAIT_MS = 1000, /* for a home that another process uses, or a store */
    PARTNER_MS = 10000,
};

struct args {
    struct cli_line line;
    const char *name; /* NULL: that of the machine */
    uint32_t slots;   /* 0: not given */
    struct strbuf labels;
    bool attached;
    bool may_schedule;
    struct partner scheduler;
};

/* Read a number of slots. */
static int read_slots(struct args *args, const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 ||
        value > SLOTS_MAX) {
        if (strcmp(text, "any") != 0) {
            return cli_fail(args->line.command,
                            "--slots %s: not a number from 1 to %d, or any",
                            text,
                            SLOTS_MAX);
        }
        value = CREW_SLOTS_ANY;
    }
    args->slots = (uint32_t)value;
    return CLI_OK;
}

static int
take(struct cli_line *line, const struct cli_option *option, char *argument)
{
    struct args *args = (struct args *)line;
    if (option->code == OPT_SLOTS) {
        return read_slots(args, argument);
    }
    if (!workers_is_name(argument)) {
        return cli_fail(line->command,
                        "--label %s: use at most 64 letters, digits, \".\", "
                        "\"_\" and \"-\"",
                        argument);
    }
    strbuf_addf(&args->labels,
                "%s%s",
                args->labels.len > 0 ? "," : "",
                argument);
    return CLI_OK;
}

static void on_say(void *ctx, const char *text)
{
    const struct args *args = ctx;
    (void)fprintf(stderr, "sluice work %s: %s\n", args->name, text);
}

static void on_tick(void *ctx)
{
    struct args *args = ctx;
    partner_tend(&args->scheduler);
}

/* Wait before another try; false: the process beside which this one runs has
 * exited. */
static bool pause_work(const struct args *args)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&in, args->attached ? 1 : 0, WAIT_MS);
    char byte;
    return ready <= 0 || read(STDIN_FILENO, &byte, 1) > 0;
}

/* Find the store. A worker may be started before the server, or before the
 * first scheduler has created the store: it waits for both. */
static enum err
find_store(struct args *args, struct store_place *out, struct diag *diag)
{
    const char *given = args->line.wanted.store;
    const char *address = given != NULL ? given : getenv("SLUICE_STORE");
    bool remote = address != NULL && store_has_workers(address);
    bool said = false;
    for (;;) {
        enum err err = store_place_find(out, given, false, diag);
        bool passes = err == ERR_BUSY || err == ERR_UNAVAILABLE ||
                      err == ERR_TIMEOUT || err == ERR_NOT_FOUND;
        if (!remote || !passes) {
            return err;
        }
        if (!said) {
            on_say(args, diag->text);
            said = true;
        }
        store_place_release(out);
        partner_tend(&args->scheduler);
        if (!pause_work(args)) {
            return err;
        }
    }
}

/* Be the worker. */
static enum err
work(struct args *args, const struct store_place *place, struct diag *diag)
{
    struct crew_loop_options options = {
        .place = place,
        .name = args->name,
        .labels = strbuf_text(&args->labels),
        .slots = args->slots,
        .proto = workers_proto(),
        .parent_fd = args->attached ? STDIN_FILENO : -1,
        .say = on_say,
        .tick = on_tick,
        .ctx = args,
    };
    enum err err = crew_loop_run(&options, diag);
    while (err == ERR_BUSY && args->attached && pause_work(args)) {
        err = crew_loop_run(&options, diag);
    }
    bool other = err == ERR_BUSY || err == ERR_CONFLICT;
    return args->attached && other ? ERR_OK : err;
}

static int carry_out(struct args *args)
{
    struct store_place place = {0};
    struct diag diag = {0};
    const struct cli_command *command = args->line.command;
    /* Not as an argument, which others can see: it may have a password. */
    const char *given = args->line.wanted.store;
    enum err err = ERR_OK;
    if (given != NULL && setenv("SLUICE_STORE", given, 1) != 0) {
        err = diag_set(&diag, ERR_IO, "cannot set SLUICE_STORE");
    }
    if (err == ERR_OK && args->may_schedule) {
        partner_add(&args->scheduler, "schedule"); /* creates the store, too */
        partner_add(&args->scheduler, "--attached");
    }
    if (err == ERR_OK) {
        err = find_store(args, &place, &diag);
    }
    if (err == ERR_OK && !store_has_workers(place.address)) {
        store_place_release(&place);
        return cli_fail(command,
                        "a store in a directory has no workers on other "
                        "machines: use --store postgresql://...");
    }
    if (err == ERR_OK) {
        err = work(args, &place, &diag);
    }
    partner_end(&args->scheduler, PARTNER_MS);
    store_place_release(&place);
    return err == ERR_OK ? CLI_OK : cli_fail_store(command, err, &diag);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {.slots = 4, .scheduler = PARTNER_NONE};
    char host[65];
    int code = cli_parse(&args.line, command, argc, argv);
    (void)signal(SIGPIPE, SIG_IGN);
    if (code == CLI_END && args.name == NULL) {
        workers_own_name(host);
        args.name = host;
    }
    if (code == CLI_END && !workers_is_name(args.name)) {
        code = cli_fail(command,
                        "--name %s: use at most 64 letters, digits, \".\", "
                        "\"_\" and \"-\"",
                        args.name);
    }
    if (code == CLI_END) {
        code = carry_out(&args);
    }
    strbuf_release(&args.labels);
    return code;
}

static const struct cli_option options[] = {
    {"attached",
     NULL,
     "drain at the end of standard input",
     CLI_AT(args, attached)},
    {"label",
     "LABEL",
     "what the machine has, such as gpu; repeatable",
     OPT_LABEL},
    {"may-schedule",
     NULL,
     "also stand by as a scheduler",
     CLI_AT(args, may_schedule)},
    {"name", "NAME", "of the worker (default: the host's)", CLI_AT(args, name)},
    {"slots", "N", "most sessions at a time, or any (default: 4)", OPT_SLOTS},
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_work = {
    .name = "work",
    .synopsis = "[OPTION]...",
    .summary = "run sessions for schedulers on other machines",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .run = run,
    .take = take,
};
