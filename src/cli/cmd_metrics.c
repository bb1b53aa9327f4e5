/* SPDX-License-Identifier: MIT */
/* sluice metrics: print the state of runs for Prometheus. */
#include "cli/cli.h"
#include "view/metrics.h"

#include <string.h>
#include <time.h>

struct args {
    struct cli_line line;
    const char *file; /* NULL: print once */
    int64_t every_ns;
    struct strbuf out;
};

static int carry_out(struct args *args)
{
    struct diag diag = {0};
    for (;;) {
        strbuf_clear(&args->out);
        enum err err = metrics_add(&args->out, &args->line.wanted, &diag);
        if (err == ERR_OK && args->file == NULL) {
            return cli_write(&args->out);
        }
        /* Atomic, because a collector may read the file at any time. */
        int error = err == ERR_OK ? cli_write_file(args->file, &args->out) : 0;
        if (error != 0) {
            err = diag_set(&diag,
                           ERR_IO,
                           "write %s: %s",
                           args->file,
                           strerror(error));
        }
        if (err != ERR_OK) {
            return cli_fail_store(args->line.command, err, &diag);
        }
        struct timespec pause = {
            .tv_sec = args->every_ns / SECOND_NS,
            .tv_nsec = args->every_ns % SECOND_NS,
        };
        (void)nanosleep(&pause, NULL);
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {.every_ns = 15 * SECOND_NS};
    int code = cli_parse(&args.line, command, argc, argv);
    args.line.wanted.forecast = true;
    if (code == CLI_END) {
        code = carry_out(&args);
        strbuf_release(&args.out);
    }
    return code;
}

static const struct cli_option options[] = {
    {"every",
     "TIME",
     "interval between writes (default: 15s)",
     CLI_AT(args, every_ns)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"watch", "FILE", "rewrite this file periodically", CLI_AT(args, file)},
    {0},
};

const struct cli_command cli_metrics = {
    .name = "metrics",
    .synopsis = "[OPTION]... [RUN]",
    .summary = "print the state of runs for Prometheus",
    .options = options,
    .operand = CLI_OPERAND_RUN,
    .run = run,
};
