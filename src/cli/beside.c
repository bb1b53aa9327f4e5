/* SPDX-License-Identifier: MIT */
#include "cli/beside.h"

#include "cli/login.h"
#include "http/address.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    STOP_MS = 2000, /* then it is killed */
    LINE_MAX = 65536,
    SIGNALLED = 128,
};

/* A bookmark stays valid, and a second server finds a port. */
static const char any_port[] = "127.0.0.1:8900-8999";

int beside_take(struct beside *beside,
                const struct cli_command *command,
                int code,
                const char *argument)
{
    struct address_listen ignored;
    struct strbuf url = {0};
    bool valid = true;
    switch (code) {
    case BESIDE_OPT_SERVE:
        break;
    case BESIDE_OPT_LISTEN:
        beside->listen = argument;
        if (!address_read_listen(&ignored, argument)) {
            return cli_fail(command,
                            "--listen %s: not HOST:PORT, such as "
                            "127.0.0.1:8900",
                            argument);
        }
        break;
    case BESIDE_OPT_URL:
        beside->url = argument;
        valid = address_add_url(&url, argument);
        strbuf_release(&url);
        if (!valid) {
            return cli_fail(command,
                            "--url %s: not an address such as "
                            "https://sluice.example.org, without a path",
                            argument);
        }
        break;
    default:
        return CLI_BAD;
    }
    beside->wanted = true;
    return CLI_OK;
}

static void start(struct beside *beside, const char *store, struct strbuf *out)
{
    char parent[24];
    struct diag diag = {0};
    (void)snprintf(parent, sizeof(parent), "%lld", (long long)getpid());
    const char *words[] = {
        "serve",
        "--parent",
        parent,
        "--store",
        store,
        "--listen",
        beside->listen != NULL ? beside->listen : any_port,
        beside->url != NULL ? "--url" : NULL,
        beside->url,
        NULL,
    };
    beside->started = true;
    if (child_start(&beside->child, words, true, &diag) != ERR_OK) {
        strbuf_addf(out,
                    "sluice run: %s; the run continues without a server\n",
                    diag.text);
    }
}

/* Append a line of the server as one of this program. */
static void add_line(struct strbuf *out, const char *line)
{
    static const char login[] = LOGIN_PREFIX;
    if (strncmp(line, "Try 'sluice serve", 17) == 0) {
        return; /* its options are not those of the user */
    }
    bool named = strncmp(line, "sluice serve: ", 14) == 0;
    strbuf_addf(out, "%s%s\n", named ? "" : "sluice run: ", line);
    if (strncmp(line, login, strlen(login)) == 0) {
        login_add_code(out, line + strlen(login), stderr);
    }
}

/* Move whole lines from what was heard to `out`; with `all`, the rest, too. */
static void add_lines(struct beside *beside, struct strbuf *out, bool all)
{
    struct strbuf rest = {0};
    char *at = beside->heard.text;
    while (at != NULL && *at != '\0') {
        char *end = strchr(at, '\n');
        if (end == NULL && !all && strlen(at) < LINE_MAX) {
            strbuf_adds(&rest, at);
            break;
        }
        if (end != NULL) {
            *end = '\0';
        }
        add_line(out, at);
        at = end != NULL ? end + 1 : NULL;
    }
    strbuf_release(&beside->heard);
    beside->heard = rest;
}

/* Report that the server has exited. */
static void add_exit(struct beside *beside, struct strbuf *out)
{
    int code = child_wait(&beside->child);
    strbuf_addf(out,
                "sluice run: the server %s %d; the run continues without it\n",
                code > SIGNALLED ? "was killed by signal"
                                 : "has exited with status",
                code > SIGNALLED ? code - SIGNALLED : code);
}

void beside_tend(struct beside *beside, const char *store, struct strbuf *out)
{
    if (!beside->started) {
        start(beside, store, out);
    }
    if (beside->child.fd < 0) {
        return; /* it was reported */
    }
    size_t before = 0;
    bool alive = true;
    do {
        before = beside->heard.len;
        alive = child_read(&beside->child, &beside->heard);
    } while (alive && beside->heard.len > before);
    add_lines(beside, out, !alive);
    if (!alive) {
        add_exit(beside, out);
    }
}

void beside_stop(struct beside *beside)
{
    struct child *child = &beside->child;
    if (child->fd >= 0 && kill(child->process, SIGTERM) == 0) {
        /* It closes its output when it exits. */
        struct pollfd output = {.fd = child->fd, .events = POLLIN};
        for (int waited_ms = 0; waited_ms < STOP_MS; waited_ms += 50) {
            (void)poll(&output, 1, 50);
            if (!child_read(child, &beside->heard)) {
                break;
            }
        }
    }
    child_drop(child, true);
    strbuf_release(&beside->heard);
}
