/* SPDX-License-Identifier: MIT */
/* sluice serve: the HTTP interface of a store. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/login.h"
#include "http/address.h"
#include "http/gate.h"
#include "http/serve.h"
#include "mcp/door.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct args {
    struct cli_line line;
    const char *listen;
    const char *parent;
    const char *url;
    bool link;
    bool view;
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
    struct strbuf text = {0};
    (void)ctx;
    strbuf_addf(&text, "serving at %s\n", where);
    if (link != NULL) {
        strbuf_addf(&text, LOGIN_PREFIX "%s\n", link);
        login_add_code(&text, link, stdout);
    }
    (void)fputs(strbuf_text(&text), stdout);
    (void)fflush(stdout);
    strbuf_release(&text);
}

static void on_warning(void *ctx, const char *text)
{
    (void)ctx;
    (void)fprintf(stderr,
                  "sluice serve: warning: --link will not find this server: "
                  "%s\n",
                  text);
}

/* Whether an address is of this machine alone. */
static bool is_loopback(const char *listen)
{
    return strncmp(listen, "127.", 4) == 0 ||
           strncmp(listen, "localhost:", 10) == 0 ||
           strncmp(listen, "[::1]:", 6) == 0;
}

/* Have the kernel kill this process when its parent dies; false: the parent is
 * another process, or is dead already. */
static bool follow_parent(const char *parent)
{
    char own[24];
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return false;
    }
    (void)snprintf(own, sizeof(own), "%lld", (long long)getppid());
    return strcmp(own, parent) == 0;
}

/* Make a link to a server that runs, and print it. */
static enum err print_link(const struct args *args,
                           const struct store_place *place,
                           struct diag *diag)
{
    struct strbuf text = {0};
    struct gate_key key;
    char code[GATE_LINK_BYTES];
    struct address_listen at = {0};
    char port[8] = "";
    if (args->listen != NULL && !address_read_listen(&at, args->listen)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "\"%s\" is not HOST:PORT, such as 127.0.0.1:8900",
                        args->listen);
    }
    (void)snprintf(port, sizeof(port), "%d", at.first);
    enum err err = address_find(&text,
                                &key,
                                place->home,
                                args->listen != NULL ? port : NULL,
                                diag);
    if (err == ERR_OK) {
        err = gate_make_link(code,
                             &key,
                             args->view ? GATE_VIEWER : GATE_OPERATOR,
                             clock_boot_ns(),
                             diag);
    }
    if (err == ERR_OK) {
        strbuf_addf(&text, "login?code=%s", code);
        struct strbuf picture = {0};
        login_add_code(&picture, strbuf_text(&text), stdout);
        strbuf_addf(&text, "\n%s", strbuf_text(&picture));
        strbuf_release(&picture);
        if (cli_write(&text) != CLI_OK) {
            err = diag_set(diag, ERR_IO, "the link was not printed");
        }
    }
    strbuf_release(&text);
    return err;
}

static enum err serve(const struct args *args,
                      const struct store_place *place,
                      const char *url,
                      struct diag *diag)
{
    if (args->listen != NULL && !is_loopback(args->listen)) {
        (void)fprintf(stderr,
                      "sluice serve: warning: %s is not the loopback: tokens "
                      "and everything else cross the network unencrypted; use "
                      "a proxy with TLS\n",
                      args->listen);
    }
    return serve_run(
        &(struct serve_options){
            .place = place,
            .listen = args->listen,
            .url = url,
            .hosts = args->hosts,
            .host_count = args->host_count,
            .role = args->view ? GATE_VIEWER : GATE_OPERATOR,
            .beside = args->parent != NULL,
            .ready = on_ready,
            .warn = on_warning,
        },
        diag);
}

/* Check options that depend on each other; CLI_OK, or the exit code. */
static int check_options(const struct args *args)
{
    const struct cli_command *command = args->line.command;
    if (args->link && (args->url != NULL || args->host_count > 0)) {
        return cli_fail(command,
                        "--link takes the address of the running server: "
                        "leave out --%s",
                        args->url != NULL ? "url" : "host");
    }
    if (!args->link && args->listen == NULL && (args->url || args->view)) {
        return cli_fail(command,
                        "--%s is for a TCP port: add --listen HOST:PORT",
                        args->url != NULL ? "url" : "view");
    }
    if (args->parent != NULL && !follow_parent(args->parent)) {
        return cli_fail(command,
                        "--parent %s: not the parent of this process",
                        args->parent);
    }
    return CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    struct diag diag = {0};
    struct store_place place;
    struct strbuf url = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    code = check_options(&args);
    if (code == CLI_OK && args.url != NULL &&
        !address_add_url(&url, args.url)) {
        code = cli_fail(command,
                        "--url %s: not an address such as "
                        "https://sluice.example.org, without a path",
                        args.url);
    }
    if (code != CLI_OK) {
        return code;
    }
    enum err err =
        store_place_find(&place, args.line.wanted.store, false, &diag);
    if (err == ERR_OK && door_is_of(&place)) {
        err = diag_set(&diag,
                       ERR_INVALID,
                       "serving a store is for operators, and this is a "
                       "session of it");
    } else if (err == ERR_OK && args.link) {
        err = print_link(&args, &place, &diag);
    } else if (err == ERR_OK) {
        const char *public = url.len > 0 ? strbuf_text(&url) : NULL;
        err = serve(&args, &place, public, &diag);
    }
    store_place_release(&place);
    strbuf_release(&url);
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
    {"link",
     NULL,
     "print a new one-time link to the running server, and exit",
     CLI_AT(args, link)},
    {"listen",
     "HOST:PORT",
     "listen on a TCP port instead of a unix socket",
     CLI_AT(args, listen)},
    {"parent",
     "PID",
     "exit when this parent process does",
     CLI_AT(args, parent)},
    CLIENT_OPTION_STORE,
    {"url",
     "URL",
     "address for browsers, such as https://sluice.example.org",
     CLI_AT(args, url)},
    {"view",
     NULL,
     "print the link of a viewer instead of an operator",
     CLI_AT(args, view)},
    {0},
};

const struct cli_command cli_serve = {
    .name = "serve",
    .synopsis = "[OPTION]...",
    .summary = "serve the state of a store by HTTP",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .take = take,
    .run = run,
};
