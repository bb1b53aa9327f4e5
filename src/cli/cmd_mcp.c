/* SPDX-License-Identifier: MIT */
/* sluice mcp: a server of the Model Context Protocol, for a session or for the
 * assistant of an operator. */
#include "cli/cli.h"
#include "mcp/door.h"
#include "mcp/operator.h"
#include "mcp/server.h"
#include "mcp/session.h"

#include <signal.h>
#include <stdlib.h>

struct args {
    struct cli_line line;
    bool as_operator;
};

static enum err
read_question(const char *name, struct strbuf *out, struct diag *diag)
{
    for (uint32_t ix = 0; ix < session_tool_count; ix++) {
        if (strcmp(session_tools[ix].name, name) == 0) {
            return tool_call(&session_tools[ix], NULL, out, diag);
        }
    }
    return diag_set(diag, ERR_NOT_FOUND, "unknown resource");
}

static enum err read_task(const char *id, struct strbuf *out, struct diag *diag)
{
    (void)id;
    return read_question("task", out, diag);
}

static enum err read_plan(const char *id, struct strbuf *out, struct diag *diag)
{
    (void)id;
    return read_question("plan", out, diag);
}

static const struct server_resource resources[] = {
    {"sluice://task", "task", "Your task", read_task},
    {"sluice://plan", "plan", "Tasks of the run with their states", read_plan},
    {"sluice://task/{id}/log",
     "log",
     "End of the log of a task's last session",
     session_log},
};

static const char session_instructions[] =
    "You work on one task of a plan that sluice runs. Call task first. Do only "
    "your task; add other work that you find with add. If you need a decision "
    "of a person, call ask and stop. At the end call finish once, with done, "
    "or "
    "in a review with done or changes, and stop.";

/* The configuration of an agent may name the server for all its sessions, also
 * those that sluice does not run: there it serves, and each call fails. */
static const char outside_instructions[] =
    "This is not a session of sluice: do not use these tools.";

static int serve_session(const struct cli_command *command)
{
    struct diag diag = {0};
    struct server server = {
        .name = "sluice",
        .instructions =
            door_is_inside() ? session_instructions : outside_instructions,
        .tools = session_tools,
        .tool_count = session_tool_count,
        .resources = resources,
        .resource_count = ARRAY_COUNT(resources),
    };
    return server_run(&server, &diag) == ERR_OK
               ? CLI_OK
               : cli_fail_store(command, ERR_IO, &diag);
}

static int serve_operator(const struct cli_line *line)
{
    struct diag diag = {0};
    struct strbuf text = {0};
    struct store_place place;
    struct store *store = NULL;
    enum err err = store_place_find(&place, line->wanted.store, false, &diag);
    if (err == ERR_OK && door_is_of(&place)) {
        store_place_release(&place);
        return cli_fail(line->command,
                        "--operator is not for sessions: without it, a session "
                        "has its own tools");
    }
    if (err == ERR_OK) {
        err = store_open(&store, place.address, STORE_READ, &diag);
    }
    store_close(store);
    if (err == ERR_OK && setenv("SLUICE_STORE", place.address, 1) != 0) {
        err = diag_set(&diag, ERR_IO, "cannot set SLUICE_STORE");
    }
    if (err == ERR_OK) {
        strbuf_addf(&text,
                    "You help to operate sluice, which runs coding-agent "
                    "sessions. Store: %s. Begin with status. Change something "
                    "only if your user wants it.",
                    place.shown);
        struct server server = {
            .name = "sluice-operator",
            .instructions = strbuf_text(&text),
            .tools = operator_tools,
            .tool_count = operator_tool_count,
        };
        err = server_run(&server, &diag);
    }
    strbuf_release(&text);
    store_place_release(&place);
    return err == ERR_OK ? CLI_OK : cli_fail_store(line->command, err, &diag);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return CLI_STORE;
    }
    if (!args.as_operator) {
        return serve_session(command);
    }
    return serve_operator(&args.line);
}

static const struct cli_option options[] = {
    {"operator",
     NULL,
     "tools of an operator, for your own assistant",
     CLI_AT(args, as_operator)},
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_mcp = {
    .name = "mcp",
    .synopsis = "[--operator] [--store DIR]",
    .summary = "serve the Model Context Protocol to a coding agent",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .run = run,
};
