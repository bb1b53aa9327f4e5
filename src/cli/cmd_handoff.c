/* SPDX-License-Identifier: MIT */
/*
 * sluice handoff: the summary of a run for each of its repositories, and the
 * push of its branches.
 */
#include "base/mem.h"
#include "cli/cli.h"
#include "view/client.h"
#include "view/handoff.h"
#include "view/target.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { OPT_NO_PUSH = 1 };

struct request {
    const char *store_option;
    const char *run; /* NULL: the one that is unfinished, or the last */
    bool json;
    bool push;
};

/* The index of the run that is meant. */
static enum err find_run(const struct client_view *view,
                         const struct request *request,
                         uint32_t *out,
                         struct diag *diag)
{
    uint32_t count = engine_run_count(view->engine);
    uint32_t open = 0;
    *out = count > 0 ? count - 1 : 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (!engine_run(view->engine, ix).finished) {
            open++;
            *out = ix;
        }
    }
    if (count == 0 && request->run != NULL) {
        return diag_set(diag, ERR_NOT_FOUND, "no run \"%s\"", request->run);
    }
    if (count == 0) {
        return diag_set(diag, ERR_NOT_FOUND, "the store has no run");
    }
    if (open > 1) {
        return diag_set(diag,
                        ERR_INVALID,
                        "%u runs are unfinished: name one",
                        open);
    }
    return ERR_OK;
}

static int print(const struct request *request,
                 const struct handoff_note *notes,
                 uint32_t count)
{
    struct strbuf out = {0};
    for (uint32_t ix = 0; ix < count; ix++) {
        if (request->json) {
            handoff_add_json(&out, &notes[ix]);
        } else {
            strbuf_adds(&out, strbuf_text(&notes[ix].markdown));
            strbuf_adds(&out, notes[ix].markdown.len > 0 ? "\n" : "");
        }
    }
    if (!request->json) {
        handoff_add_lines(&out, notes, count);
    }
    int code = cli_write(&out);
    strbuf_release(&out);
    return code != CLI_OK || !handoff_is_troubled(notes, count)
               ? code
               : CLI_NOT_ALL_DONE;
}

static int hand_off(const struct cli_command *command,
                    const struct request *request)
{
    struct diag diag = {0};
    struct client_view view = {0};
    struct store_query query = {.finished = true, .run = request->run};
    struct store_place place;
    enum err err =
        store_place_find(&place, request->store_option, false, &diag);
    if (err == ERR_OK) {
        err = client_look(&view, &place, &query, &diag);
    }
    uint32_t run = 0;
    if (err == ERR_OK) {
        err = find_run(&view, request, &run, &diag);
    }
    int code;
    if (err == ERR_OK) {
        uint32_t count;
        struct handoff_note *notes =
            handoff_make(&place, view.engine, run, request->push, &count);
        code = print(request, notes, count);
        if (count == 0) {
            (void)fprintf(stderr,
                          "sluice handoff: the run has no git repository\n");
        }
        handoff_release(notes, count);
    } else {
        code = cli_fail_store(command, err, &diag);
    }
    client_view_release(&view);
    store_place_release(&place);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request = {.push = true};
    const char *argument;
    int option;
    while ((option = cli_next(command, argc, argv, &argument)) != CLI_END) {
        switch (option) {
        case OPT_NO_PUSH:
            request.push = false;
            break;
        case CLIENT_OPT_JSON:
            request.json = true;
            break;
        case CLIENT_OPT_RUN:
            request.run = argument;
            break;
        case CLIENT_OPT_STORE:
            request.store_option = argument;
            break;
        case CLI_HELP:
            return CLI_OK;
        default:
            return CLI_USAGE;
        }
    }
    int code = cli_run_operand(command, argc, argv, &request.run);
    return code == CLI_OK ? hand_off(command, &request) : code;
}

static const struct cli_option options[] = {
    {"no-push", NULL, "push nothing, whatever the plan says", OPT_NO_PUSH},
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_handoff = {
    .name = "handoff",
    .synopsis = "[OPTION]... [RUN]",
    .summary = "summarise a run for each repository, and push its branches",
    .options = options,
    .run = run,
};
