/* SPDX-License-Identifier: MIT */
/* sluice workers: the machines that run sessions for a store. */
#include "base/duration.h"
#include "cli/cli.h"
#include "store/place.h"
#include "work/crew.h"
#include "work/workers.h"

#include <stdio.h>
#include <string.h>

struct args {
    struct cli_line line;
    const char *lost;
    struct strbuf out;
    uint32_t count;
};

static void add_json(struct strbuf *out, const struct workers_row *row)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "worker", row->name);
    jsonw_text(&json, "state", row->state);
    jsonw_text(&json, "reason", row->why[0] != '\0' ? row->why : NULL);
    jsonw_int(&json, "sessions", row->used);
    jsonw_int_if(&json, "slots", row->slots < CREW_SLOTS_ANY, row->slots);
    jsonw_text(&json, "labels", row->labels);
    jsonw_text(&json, "host", row->host);
    jsonw_text(&json, "version", row->version);
    jsonw_duration(&json, "silent", row->silent_ns);
    jsonw_duration(&json, "age", row->since_ns);
    jsonw_object_end(&json);
    strbuf_adds(out, "\n");
}

static void add_line(struct strbuf *out, const struct workers_row *row)
{
    char slots[32] = "any";
    if (row->slots < CREW_SLOTS_ANY) {
        (void)snprintf(slots, sizeof(slots), "%u", row->slots);
    }
    strbuf_addf(out,
                "%-16s %-13s %4u of %-4s %-16s ",
                row->name,
                row->state,
                row->used,
                slots,
                row->labels[0] != '\0' ? row->labels : "-");
    duration_add(out, row->silent_ns);
    strbuf_adds(out, " ago\n");
    if (row->why[0] != '\0') {
        strbuf_addf(out, "  %s\n", row->why);
    }
}

static void on_row(void *ctx, const struct workers_row *row)
{
    struct args *args = ctx;
    if (args->count++ == 0 && !args->line.json) {
        strbuf_addf(&args->out,
                    "%-16s %-13s %-12s %-16s %s\n",
                    "worker",
                    "state",
                    "sessions",
                    "labels",
                    "last heard");
    }
    if (args->line.json) {
        add_json(&args->out, row);
    } else {
        add_line(&args->out, row);
    }
}

static int carry_out(struct args *args)
{
    struct store_place place = {0};
    struct diag diag = {0};
    const struct cli_command *command = args->line.command;
    enum err err =
        store_place_find(&place, args->line.wanted.store, false, &diag);
    if (err == ERR_OK && args->lost != NULL) {
        err = workers_lose(place.address, args->lost, &diag);
    } else if (err == ERR_OK) {
        err = workers_list(place.address, on_row, args, &diag);
        if (err == ERR_OK && args->count == 0 && !args->line.json) {
            strbuf_adds(&args->out,
                        "no workers; 'sluice work' makes this machine one, and "
                        "'sluice run' has its own\n");
        }
    }
    store_place_release(&place);
    return err == ERR_OK ? cli_write(&args->out)
                         : cli_fail_store(command, err, &diag);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code == CLI_END) {
        code = carry_out(&args);
    }
    strbuf_release(&args.out);
    return code;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    {"lost",
     "NAME",
     "give up a worker whose machine is off, with its sessions",
     CLI_AT(args, lost)},
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_workers = {
    .name = "workers",
    .synopsis = "[OPTION]...",
    .summary = "list the machines that run sessions",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .run = run,
};
