/* SPDX-License-Identifier: MIT */
/*
 * beside: a server beside a run, for `sluice run --serve`.
 *
 * The server is a process of its own, `sluice serve`: it parses what comes from
 * the network, and the scheduler must not die of it. If it cannot start or
 * dies, that is reported once, and the run continues. It has a process group of
 * its own, so that Ctrl-C does not reach it, and the kernel kills it when the
 * run dies (--parent).
 */
#ifndef CLI_BESIDE_H
#define CLI_BESIDE_H

#include "base/strbuf.h"
#include "cli/cli.h"
#include "term/child.h"

/* Starts as BESIDE_NONE. */
struct beside {
    bool wanted;
    bool started;
    const char *listen; /* NULL: the default */
    const char *url;    /* NULL: as it listens */
    struct child child;
    struct strbuf heard; /* from the server, not yet a line */
};

#define BESIDE_NONE                                                            \
    {                                                                          \
        .child = {.fd = -1 }                                                   \
    }

/* Options of a command with a server beside it, for its table. */
enum { BESIDE_OPT_LISTEN = 401, BESIDE_OPT_SERVE, BESIDE_OPT_URL };
#define BESIDE_OPTION_LISTEN                                                   \
    {                                                                          \
        "listen", "HOST:PORT", "the same as --serve, at this address",         \
            BESIDE_OPT_LISTEN                                                  \
    }
#define BESIDE_OPTION_SERVE                                                    \
    {                                                                          \
        "serve", NULL, "show the run in a browser, by 'sluice serve'",         \
            BESIDE_OPT_SERVE                                                   \
    }
#define BESIDE_OPTION_URL                                                      \
    {                                                                          \
        "url", "URL", "the same as --serve, with this address for browsers",   \
            BESIDE_OPT_URL                                                     \
    }

/* Take an option; CLI_OK, or print an error and return CLI_USAGE. CLI_BAD: it
 * is none of these. */
int beside_take(struct beside *beside,
                const struct cli_command *command,
                int code,
                const char *argument);

/* Start the server of a store, if it has not been, and append to `out` what it
 * printed and what became of it: lines for standard error. */
void beside_tend(struct beside *beside, const char *store, struct strbuf *out);

/* End the server, if there is one. */
void beside_stop(struct beside *beside);

#endif /* CLI_BESIDE_H */
