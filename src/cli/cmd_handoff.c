/* SPDX-License-Identifier: MIT */
/*
 * sluice handoff: print the summary of a run per repository, and push its
 * branches.
 */
#include "base/mem.h"
#include "cli/cli.h"
#include "view/client.h"
#include "view/handoff.h"
#include "view/target.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct args {
    struct cli_line line; /* default: the unfinished run, or the last */
    bool no_push;
};

/* Find the index of the wanted run. */
static enum err find_run(const struct client_view *view,
                         const char *wanted,
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
    if (count == 0 && wanted != NULL) {
        return diag_set(diag, ERR_NOT_FOUND, "no run \"%s\"", wanted);
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

static int print(bool json, const struct handoff_note *notes, uint32_t count)
{
    struct strbuf out = {0};
    for (uint32_t ix = 0; ix < count; ix++) {
        if (json) {
            handoff_add_json(&out, &notes[ix]);
        } else {
            strbuf_adds(&out, strbuf_text(&notes[ix].markdown));
            strbuf_adds(&out, notes[ix].markdown.len > 0 ? "\n" : "");
        }
    }
    if (!json) {
        handoff_add_lines(&out, notes, count);
    }
    int code = cli_print(&out);
    return code != CLI_OK || !handoff_is_troubled(notes, count)
               ? code
               : CLI_NOT_ALL_DONE;
}

static int hand_off(const struct args *args)
{
    const struct cli_line *line = &args->line;
    struct diag diag = {0};
    struct client_view view = {0};
    struct store_query query = {.finished = true, .run = line->wanted.run};
    struct store_place place;
    enum err err = store_place_find(&place, line->wanted.store, false, &diag);
    if (err == ERR_OK) {
        err = client_look(&view, &place, &query, &diag);
    }
    uint32_t run = 0;
    if (err == ERR_OK) {
        err = find_run(&view, line->wanted.run, &run, &diag);
    }
    int code;
    if (err == ERR_OK) {
        uint32_t count;
        struct handoff_note *notes =
            handoff_make(&place, view.engine, run, !args->no_push, &count);
        code = print(line->json, notes, count);
        if (count == 0) {
            (void)fprintf(stderr,
                          "sluice handoff: the run has no git repository\n");
        }
        handoff_release(notes, count);
    } else {
        code = cli_fail_store(line->command, err, &diag);
    }
    client_view_release(&view);
    store_place_release(&place);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    return code == CLI_END ? hand_off(&args) : code;
}

static const struct cli_option options[] = {
    {"no-push",
     NULL,
     "push nothing, whatever the plan says",
     CLI_AT(args, no_push)},
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
    .operand = CLI_OPERAND_RUN,
    .run = run,
};
