/* SPDX-License-Identifier: MIT */
/*
 * sluice diff: print the changes of an issue.
 *
 * On a terminal, control characters in the changes are left out: sessions have
 * written them.
 */
#include "base/strip.h"
#include "cli/cli.h"
#include "view/diff.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct args {
    struct cli_line line;
    bool stat;
};

/* Return the colour of a line of a diff; NULL: none. `header`: it belongs to
 * the lines before the first change of a file. */
static const char *colour_of(const char *line, bool header)
{
    if (header) {
        return "\033[1m";
    }
    switch (line[0]) {
    case '@':
        return "\033[36m";
    case '+':
        return "\033[32m";
    case '-':
        return "\033[31m";
    default:
        return NULL;
    }
}

/* Append a diff for a terminal. */
static void
add_shown(struct strbuf *out, const struct strbuf *text, bool colour)
{
    struct strbuf plain = {0};
    bool header = true;
    strip_text(&plain, strbuf_text(text), text->len);
    for (const char *at = strbuf_text(&plain); *at != '\0';) {
        size_t len = strcspn(at, "\n");
        header = strncmp(at, "diff --git ", strlen("diff --git ")) == 0 ||
                 (header && at[0] != '@');
        const char *set = colour ? colour_of(at, header) : NULL;
        strbuf_adds(out, set != NULL ? set : "");
        strbuf_add(out, at, len);
        strbuf_adds(out, set != NULL ? "\033[m" : "");
        strbuf_adds(out, "\n");
        at += len + (at[len] == '\n' ? 1 : 0);
    }
    strbuf_release(&plain);
}

static int print(const struct args *args, struct diff_view *view)
{
    struct strbuf out = {0};
    if (args->stat) {
        strbuf_clear(&view->text);
    }
    if (args->line.json) {
        diff_add_json(&out, view);
    } else if (args->stat) {
        diff_add_stat(&out, view);
    } else if (isatty(STDOUT_FILENO) == 1) {
        add_shown(&out, &view->text, cli_colours());
    } else {
        strbuf_add(&out, strbuf_text(&view->text), view->text.len);
    }
    int code = cli_print(&out);
    if (code == CLI_OK && view->truncated && !args->line.json) {
        (void)fprintf(stderr,
                      "sluice diff: too long: the rest is left out; 'git diff "
                      "%s %s' in the repository prints all of it\n",
                      view->from,
                      view->to);
    }
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    const char *run = args.line.wanted.run;
    if (code != CLI_END) {
        return code;
    }
    if (run != NULL && cli_check_id(command, "run", run) != CLI_OK) {
        return CLI_USAGE;
    }
    if (optind + 1 != argc) {
        return cli_fail(command,
                        optind == argc ? "missing TASK"
                                       : "too many arguments; name one task");
    }
    const char *name = argv[optind];
    if (cli_check_id(command, "task", name) != CLI_OK) {
        return CLI_USAGE;
    }
    struct store_place place;
    struct diff_view view = {0};
    struct diag diag = {0};
    code = cli_find_store(&args.line, &place);
    if (code == CLI_OK) {
        enum err err = diff_take(&view, &place, run, name, &diag);
        code = err == ERR_OK ? print(&args, &view)
                             : cli_fail_store(command, err, &diag);
    }
    diff_release(&view);
    store_place_release(&place);
    return code;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    {"stat",
     NULL,
     "print only the files, and how many lines changed",
     CLI_AT(args, stat)},
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_diff = {
    .name = "diff",
    .synopsis = "[OPTION]... TASK",
    .summary = "print the changes of an issue",
    .options = options,
    .run = run,
};
