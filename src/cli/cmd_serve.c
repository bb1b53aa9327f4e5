/* SPDX-License-Identifier: MIT */
/* sluice serve: the HTTP interface of a store. */
#include "cli/cli.h"
#include "http/gate.h"
#include "http/serve.h"
#include "mcp/door.h"

#include <stdio.h>
#include <string.h>

struct args {
    struct cli_line line;
    const char *listen;
    const char *hosts[GATE_HOSTS_MAX];
    uint32_t host_count;
};

enum { OPT_HOST = 1 };

static int
take(struct cli_line *line, const struct cli_option *option, char *argument)
{
    struct args *args = (struct args *)line;
    (void)option;
    if (args->host_count == GATE_HOSTS_MAX / 2) {
        return cli_fail(line->command,
                        "at most %d names with --host",
                        GATE_HOSTS_MAX / 2);
    }
    args->hosts[args->host_count++] = argument;
    return CLI_OK;
}

/* Print where it listens. */
static void on_ready(void *ctx, const char *where, const char *link)
{
    (void)ctx;
    (void)printf("serving at %s\n", where);
    if (link != NULL) {
        (void)printf("log in within a minute: %s\n", link);
    }
    (void)fflush(stdout);
}

/* Whether an address is of this machine alone. */
static bool is_loopback(const char *listen)
{
    return strncmp(listen, "127.", 4) == 0 ||
           strncmp(listen, "localhost:", 10) == 0 ||
           strncmp(listen, "[::1]:", 6) == 0;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    struct diag diag = {0};
    struct store_place place;
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (args.listen != NULL && !is_loopback(args.listen)) {
        (void)fprintf(stderr,
                      "sluice serve: warning: %s is not the loopback: tokens "
                      "and everything else cross the network unencrypted; use "
                      "a proxy with TLS\n",
                      args.listen);
    }
    enum err err =
        store_place_find(&place, args.line.wanted.store, false, &diag);
    if (err == ERR_OK && door_is_of(&place)) {
        store_place_release(&place);
        return cli_fail(command,
                        "serving a store is for operators, and this is a "
                        "session of it");
    }
    if (err == ERR_OK) {
        err = serve_run(
            &(struct serve_options){
                .place = &place,
                .listen = args.listen,
                .hosts = args.hosts,
                .host_count = args.host_count,
                .ready = on_ready,
            },
            &diag);
    }
    store_place_release(&place);
    if (err == ERR_INVALID) {
        return cli_fail(command, "%s", diag.text);
    }
    return err == ERR_OK ? CLI_OK : cli_fail_store(command, err, &diag);
}

static const struct cli_option options[] = {
    {"host",
     "NAME",
     "accept requests for this host, with its port; repeatable",
     OPT_HOST},
    {"listen",
     "HOST:PORT",
     "listen on a TCP port instead of a unix socket",
     CLI_AT(args, listen)},
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_serve = {
    .name = "serve",
    .synopsis = "[--listen HOST:PORT] [--host NAME]... [--store DIR]",
    .summary = "serve the state of a store by HTTP",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .take = take,
    .run = run,
};
