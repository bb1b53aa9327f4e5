/* SPDX-License-Identifier: MIT */
/* sluice metrics: print the state of runs for Prometheus. */
#include "cli/cli.h"
#include "view/metrics.h"

#include <string.h>
#include <time.h>

struct request {
    struct cli_line line;
    const char *file; /* NULL: print once */
    int64_t every_ns;
    struct strbuf out;
};

static int carry_out(struct request *request)
{
    struct diag diag = {0};
    for (;;) {
        strbuf_clear(&request->out);
        enum err err = metrics_add(&request->out, &request->line.wanted, &diag);
        if (err == ERR_OK && request->file == NULL) {
            return cli_write(&request->out);
        }
        /* Atomic, because a collector may read the file at any time. */
        int error =
            err == ERR_OK ? cli_write_file(request->file, &request->out) : 0;
        if (error != 0) {
            err = diag_set(&diag,
                           ERR_IO,
                           "write %s: %s",
                           request->file,
                           strerror(error));
        }
        if (err != ERR_OK) {
            return cli_fail_store(request->line.command, err, &diag);
        }
        struct timespec pause = {
            .tv_sec = request->every_ns / SECOND_NS,
            .tv_nsec = request->every_ns % SECOND_NS,
        };
        (void)nanosleep(&pause, NULL);
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request = {.every_ns = 15 * SECOND_NS};
    int code = cli_parse(&request.line, command, argc, argv);
    if (code == CLI_END) {
        code = carry_out(&request);
        strbuf_release(&request.out);
    }
    return code;
}

static const struct cli_option options[] = {
    {"every",
     "TIME",
     "interval between writes (default: 15s)",
     CLI_AT(request, every_ns)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"watch", "FILE", "rewrite this file periodically", CLI_AT(request, file)},
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
