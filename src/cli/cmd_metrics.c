/* SPDX-License-Identifier: MIT */
/* sluice metrics: print the state of runs for Prometheus. */
#include "cli/cli.h"
#include "view/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OPT_EVERY = 1, OPT_WATCH };

struct request {
    const struct cli_command *command;
    struct glance_options options;
    const char *file; /* NULL: print once */
    int64_t every_ns;
    struct strbuf out;
};

/* Write the file whole, by rename: a collector may read it at any time. */
static enum err write_file(const struct request *request, struct diag *diag)
{
    struct strbuf next = {0};
    strbuf_addf(&next, "%s.next", request->file);
    int fd = open(strbuf_text(&next),
                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                  0644);
    bool good = fd >= 0 && write(fd, request->out.text, request->out.len) ==
                               (ssize_t)request->out.len;
    int error = errno;
    if (fd >= 0) {
        good = close(fd) == 0 && good;
    }
    if (good && rename(strbuf_text(&next), request->file) != 0) {
        error = errno;
        good = false;
    }
    strbuf_release(&next);
    return good ? ERR_OK
                : diag_set(diag,
                           ERR_IO,
                           "write %s: %s",
                           request->file,
                           strerror(error));
}

static int carry_out(struct request *request)
{
    struct diag diag = {0};
    for (;;) {
        strbuf_clear(&request->out);
        enum err err = metrics_add(&request->out, &request->options, &diag);
        if (err == ERR_OK && request->file == NULL) {
            return cli_write(&request->out);
        }
        if (err == ERR_OK) {
            err = write_file(request, &diag);
        }
        if (err != ERR_OK) {
            return cli_fail_store(request->command, err, &diag);
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
    struct request request = {.command = command, .every_ns = 15 * SECOND_NS};
    const char *argument;
    int option;
    while ((option = cli_next(command, argc, argv, &argument)) != CLI_END) {
        int code = CLI_OK;
        switch (option) {
        case OPT_WATCH:
            request.file = argument;
            break;
        case OPT_EVERY:
            code = cli_read_duration(command,
                                     "every",
                                     argument,
                                     &request.every_ns);
            break;
        case CLIENT_OPT_RUN:
            request.options.run = argument;
            break;
        case CLIENT_OPT_STORE:
            request.options.store = argument;
            break;
        default:
            return option == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        if (code != CLI_OK) {
            return code;
        }
    }
    int code = cli_run_operand(command, argc, argv, &request.options.run);
    if (code != CLI_OK) {
        return code;
    }
    code = carry_out(&request);
    strbuf_release(&request.out);
    return code;
}

static const struct cli_option options[] = {
    {"every", "TIME", "interval between writes (default: 15s)", OPT_EVERY},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"watch", "FILE", "rewrite this file periodically", OPT_WATCH},
    {0},
};

const struct cli_command cli_metrics = {
    .name = "metrics",
    .synopsis = "[OPTION]... [RUN]",
    .summary = "print the state of runs for Prometheus",
    .options = options,
    .run = run,
};
