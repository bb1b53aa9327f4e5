/* SPDX-License-Identifier: MIT */
/*
 * sluice import: create a plan from exported issues.
 *
 * import/import.h reads and links the issues, cli/import_out.h writes files.
 * This file has the options and the messages.
 */
#include "adapter/adapter.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "cli/cli.h"
#include "cli/import_out.h"
#include "import/import.h"
#include "plan/suggest.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_AGENT = 1,
    OPT_EXCLUDE_LABEL,
    OPT_LABEL,
    OPT_PATH,
    OPT_REVIEW_AGENT,
};

/* Directory of issue bodies, next to the plan. */
#define BODIES "issues"

static const char *const sources[] = {
    [IMPORT_GITHUB] = "github",
    [IMPORT_BEADS] = "beads",
    [IMPORT_TASKMASTER] = "taskmaster",
};

enum { LABELS_MAX = 64, PATHS_MAX = 1000 };

/* The command line. */
struct args {
    struct cli_line line;
    struct import_options options;
    const char *labels[LABELS_MAX];
    const char *excluded[LABELS_MAX];
    struct import_path paths[PATHS_MAX];
    const char *output; /* NULL: standard output */
    bool force;
    char *clone; /* clone that contains a file; NULL: none */
    char *clone_name;
};

/* --- errors ------------------------------------------------------------- */

/* Append the position of an error: "FILE:LINE:COLUMN: issue #N: ". */
static void add_place(struct strbuf *out,
                      const struct args *args,
                      const struct import_error *error)
{
    if (error->file == NULL) {
        strbuf_addf(out, "sluice %s", args->line.command->name);
    } else {
        plain_add(out, error->file);
    }
    if (error->line > 0) {
        strbuf_addf(out, ":%u:%u", error->line, error->column);
    }
    strbuf_adds(out, ": ");
    if (error->issue > 0) {
        strbuf_addf(out, "issue #%lld: ", (long long)error->issue);
    } else if (error->key != NULL) {
        strbuf_addf(out, "issue %s: ", error->key);
    }
}

static void print_errors(const struct args *args,
                         const struct import_errors *errors)
{
    struct strbuf out = {0};
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        add_place(&out, args, &errors->items[ix]);
        plain_add(&out, errors->items[ix].text);
        strbuf_adds(&out, "\n");
    }
    if (errors->cut) {
        strbuf_addf(
            &out,
            "sluice %s: more than %d errors; only the first are shown\n",
            args->line.command->name,
            IMPORT_ERRORS_MAX);
    }
    (void)fputs(strbuf_text(&out), stderr);
    strbuf_release(&out);
}

static void
add_plain_json(struct jsonw *json, const char *name, const char *text)
{
    struct strbuf plain = {0};
    if (text != NULL) {
        plain_add(&plain, text);
    }
    jsonw_text(json, name, text == NULL ? NULL : strbuf_text(&plain));
    strbuf_release(&plain);
}

static void print_errors_json(const struct import_errors *errors)
{
    struct strbuf out = {0};
    struct jsonw json = {.out = &out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_array(&json, "errors");
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct import_error *error = &errors->items[ix];
        jsonw_item(&json, 2);
        add_plain_json(&json, "file", error->file);
        jsonw_int(&json, "line", error->line);
        jsonw_int(&json, "column", error->column);
        if (error->key != NULL) {
            add_plain_json(&json, "issue", error->key);
        } else {
            jsonw_int(&json, "issue", error->issue);
        }
        add_plain_json(&json, "message", error->text);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_line(&json, 1);
    jsonw_bool(&json, "cut", errors->cut);
    jsonw_finish(&json);
    (void)cli_print(&out);
}

/* --- summary ------------------------------------------------------------ */

static int print_summary(const struct args *args,
                         const struct import_counts *counts)
{
    struct strbuf out = {0};
    if (args->options.json) {
        struct jsonw json = {.out = &out, .spaced = true};
        jsonw_object(&json, NULL);
        add_plain_json(&json, "plan", args->output);
        jsonw_int(&json, "issues", counts->issues);
        jsonw_int(&json, "repos", counts->repos);
        jsonw_int(&json, "needs", counts->needs);
        jsonw_int(&json, "closed", counts->closed);
        jsonw_int(&json, "others", counts->others);
        jsonw_int(&json, "pulls", counts->pulls);
        jsonw_int(&json, "parents", counts->parents);
        jsonw_int(&json, "deferred", counts->deferred);
        jsonw_int(&json, "dropped", counts->dropped);
        jsonw_finish(&json);
    } else {
        plain_add(&out, args->output);
        strbuf_addf(&out,
                    ": issues: %u, repos: %u, needs: %u; left out: %u closed, "
                    "%u of other milestones or labels, %u pull requests, %u "
                    "parents, %u deferred, %u references\n",
                    counts->issues,
                    counts->repos,
                    counts->needs,
                    counts->closed,
                    counts->others,
                    counts->pulls,
                    counts->parents,
                    counts->deferred,
                    counts->dropped);
    }
    return cli_print(&out);
}

/* --- command line ------------------------------------------------------- */

static int add_label(struct args *args,
                     const char **labels,
                     uint32_t *count,
                     const char *label)
{
    if (*count == LABELS_MAX) {
        return cli_fail(args->line.command, "more than %d labels", LABELS_MAX);
    }
    labels[(*count)++] = label;
    return CLI_OK;
}

/* Set the name of a built-in agent. */
static int set_agent(const struct args *args,
                     const struct cli_option *option,
                     const char *name,
                     const char **out)
{
    if (adapter_find(name) != NULL) {
        *out = name;
        return CLI_OK;
    }
    uint32_t budget = SUGGEST_BUDGET;
    struct suggest guess;
    struct strbuf names = {0};
    struct strbuf plain = {0};
    plain_add(&plain, name);
    suggest_init(&guess, name, strlen(name), &budget);
    for (uint32_t ix = 0; adapter_at(ix) != NULL; ix++) {
        (void)suggest_offer(&guess, adapter_at(ix)->name);
        strbuf_addf(&names, "%s%s", ix > 0 ? ", " : "", adapter_at(ix)->name);
    }
    int code = cli_fail(args->line.command,
                        "--%s: unknown agent \"%s\"%s; known: %s",
                        option->name,
                        strbuf_text(&plain),
                        suggest_hint(&guess),
                        strbuf_text(&names));
    strbuf_release(&names);
    strbuf_release(&plain);
    return code;
}

/* Add NAME:PATH; cuts off the name in place. */
static int add_path(struct args *args, char *argument)
{
    char *colon = strchr(argument, ':');
    if (colon == NULL || colon == argument || colon[1] == '\0') {
        return cli_fail(args->line.command,
                        "--path takes NAME:PATH, as in api:../clones/api");
    }
    if (args->options.path_count == PATHS_MAX) {
        return cli_fail(args->line.command, "more than %d paths", PATHS_MAX);
    }
    *colon = '\0';
    args->paths[args->options.path_count++] = (struct import_path){
        .name = argument,
        .path = colon + 1,
    };
    return CLI_OK;
}

static int take_option(struct cli_line *line,
                       const struct cli_option *option,
                       char *argument)
{
    struct args *args = (struct args *)line;
    struct import_options *options = &args->options;
    switch (option->code) {
    case OPT_AGENT:
        return set_agent(args, option, argument, &options->agent);
    case OPT_REVIEW_AGENT:
        return set_agent(args, option, argument, &options->review_agent);
    case OPT_LABEL:
        return add_label(args, args->labels, &options->label_count, argument);
    case OPT_EXCLUDE_LABEL:
        return add_label(args,
                         args->excluded,
                         &options->excluded_count,
                         argument);
    default:
        INVARIANT(option->code == OPT_PATH);
        return add_path(args, argument);
    }
}

/* Set the source that the first operand names. */
static int set_source(struct args *args, const char *name)
{
    if (name == NULL) {
        return cli_fail(args->line.command,
                        "missing source: github, beads or taskmaster");
    }
    for (uint32_t ix = 0; ix < ARRAY_COUNT(sources); ix++) {
        if (strcmp(name, sources[ix]) == 0) {
            args->options.source = (enum import_source)ix;
            return CLI_OK;
        }
    }
    struct strbuf plain = {0};
    plain_add(&plain, name);
    int code =
        cli_fail(args->line.command,
                 "unknown source \"%s\" (known: github, beads, taskmaster)",
                 strbuf_text(&plain));
    strbuf_release(&plain);
    return code;
}

/* Check that the options are compatible. */
static int check_options(const struct args *args)
{
    const struct import_options *options = &args->options;
    const char *const texts[] = {
        options->base,
        options->folder,
        options->gate,
        options->milestone,
        options->name,
        options->repo,
        options->review,
        options->run,
        options->tag,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        if (texts[ix] != NULL && texts[ix][0] == '\0') {
            return cli_fail(args->line.command, "empty argument");
        }
    }
    const struct {
        bool bad;
        const char *text;
    } checks[] = {
        {options->agent != NULL && options->run != NULL,
         "--agent and --run exclude each other"},
        {options->review_agent != NULL && options->review != NULL,
         "--review-agent and --review exclude each other"},
        {options->milestone != NULL && options->source != IMPORT_GITHUB,
         "--milestone is only for github"},
        {options->tag != NULL && options->source != IMPORT_TASKMASTER,
         "--tag is only for taskmaster"},
        {args->force && args->output == NULL, "--force needs --output FILE"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(checks); ix++) {
        if (checks[ix].bad) {
            return cli_fail(args->line.command, "%s", checks[ix].text);
        }
    }
    return CLI_OK;
}

/* Check options and operands. */
static int check_args(struct args *args, int argc, char **argv)
{
    int code = set_source(args, optind < argc ? argv[optind] : NULL);
    if (code != CLI_OK) {
        return code;
    }
    if (optind + 1 == argc) {
        return cli_fail(args->line.command,
                        "missing FILE (use - for standard input)");
    }
    return check_options(args);
}

/* Read one file; its path names the repository of beads and Task Master. */
static int
read_file(const struct args *args, struct import *import, const char *path)
{
    struct cli_file file;
    struct diag diag = {0};
    if (cli_read_file(&file, path, &diag) != ERR_OK) {
        return cli_fail(args->line.command, "%s", diag.text);
    }
    char *real =
        args->options.source == IMPORT_GITHUB ? NULL : realpath(path, NULL);
    import_read(import,
                &(struct import_file){
                    .name = file.path,
                    .path = real,
                    .text = file.text,
                    .len = file.bytes,
                });
    free(real);
    cli_release_file(&file);
    return CLI_OK;
}

/* Set the clone to the repository that contains the backlog file, unless the
 * command line names a clone. */
static void find_clone(struct args *args, const char *file)
{
    static const char *const inside[] = {
        [IMPORT_BEADS] = ".beads",
        [IMPORT_TASKMASTER] = ".taskmaster",
    };
    struct import_options *options = &args->options;
    if (options->source == IMPORT_GITHUB || options->folder != NULL ||
        options->repo != NULL || args->clone != NULL ||
        options->path_count > 0 ||
        !import_out_clone(file,
                          inside[options->source],
                          args->output,
                          &args->clone,
                          &args->clone_name)) {
        return;
    }
    args->paths[options->path_count++] = (struct import_path){
        .name = args->clone_name,
        .path = args->clone,
    };
}

/* Read the files, write the plan. */
static int make_plan(const struct args *args,
                     struct import *import,
                     int count,
                     char **paths)
{
    struct strbuf text = {0};
    for (int ix = 0; ix < count; ix++) {
        int bad = read_file(args, import, paths[ix]);
        if (bad != CLI_OK) {
            return bad;
        }
    }
    int code = CLI_USAGE;
    if (!import_plan(import, &text)) {
        if (args->options.json) {
            print_errors_json(import_errors(import));
        } else {
            print_errors(args, import_errors(import));
        }
    } else if (args->output == NULL) {
        code = cli_write(&text);
    } else {
        struct import_counts counts = import_counts(import);
        struct import_out out = {
            .command = args->line.command,
            .path = args->output,
            .force = args->force,
        };
        code = import_out_write(&out, import, &text);
        code = code == CLI_OK ? print_summary(args, &counts) : code;
    }
    strbuf_release(&text);
    return code;
}

static int run_args(struct args *args, int argc, char **argv)
{
    if (args->output != NULL && strcmp(args->output, "-") == 0) {
        args->output = NULL;
    }
    args->options.json = args->line.json;
    int code = check_args(args, argc, argv);
    if (code != CLI_OK) {
        return code;
    }
    find_clone(args, argv[optind + 1]);
    args->options.bodies = args->output != NULL ? BODIES : NULL;
    args->options.branch = import_out_branch;
    args->options.branch_ctx = &args->output;
    struct import *import = import_new(&args->options);
    code = make_plan(args, import, argc - optind - 1, argv + optind + 1);
    import_free(import);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args *args = mem_zalloc(1, sizeof(*args));
    args->options.labels = args->labels;
    args->options.excluded = args->excluded;
    args->options.paths = args->paths;
    int code = cli_parse(&args->line, command, argc, argv);
    code = code == CLI_END ? run_args(args, argc, argv) : code;
    mem_free(args->clone);
    mem_free(args->clone_name);
    mem_free(args);
    return code;
}

static const struct cli_option options[] = {
    {"add-needed",
     NULL,
     "add needed open issues outside of the milestone",
     CLI_AT(args, options.add_needed)},
    {"agent", "NAME", "coding agent that implements an issue", OPT_AGENT},
    {"base",
     "BRANCH",
     "base branch of the repositories",
     CLI_AT(args, options.base)},
    {"clones",
     "DIR",
     "directory of the clones (default: ..)",
     CLI_AT(args, options.folder)},
    {"exclude-label",
     "NAME",
     "exclude issues with this label; repeatable",
     OPT_EXCLUDE_LABEL},
    {"force", NULL, "replace the files of --output", CLI_AT(args, force)},
    {"gate",
     "COMMAND",
     "add a test stage, and with --merge test merge results",
     CLI_AT(args, options.gate)},
    {"ignore-outside",
     NULL,
     "ignore needs of open issues outside of the milestone",
     CLI_AT(args, options.ignore_outside)},
    {"ignore-pulls",
     NULL,
     "ignore needs of open pull requests",
     CLI_AT(args, options.ignore_pulls)},
    {"ignore-unknown",
     NULL,
     "ignore needs of issues that are in no file",
     CLI_AT(args, options.ignore_unknown)},
    {"json",
     NULL,
     "write the plan, or the errors, as JSON",
     CLI_AT(args, line.json)},
    {"keep-parents",
     NULL,
     "keep issues with sub-issues, as work after these",
     CLI_AT(args, options.keep_parents)},
    {"label", "NAME", "only issues with this label; repeatable", OPT_LABEL},
    {"merge", NULL, "add a merge stage", CLI_AT(args, options.merge)},
    {"milestone",
     "NAME",
     "only issues of this milestone",
     CLI_AT(args, options.milestone)},
    {"name",
     "NAME",
     "name of the plan (default: the milestone)",
     CLI_AT(args, options.name)},
    {"output",
     "FILE",
     "write the plan to a new file, bodies to issues/",
     CLI_SHORT('o', args, output)},
    {"path", "NAME:PATH", "path of the clone of one repository", OPT_PATH},
    {"repo",
     "NAME",
     "repository of issues that do not name one",
     CLI_AT(args, options.repo)},
    {"review", "COMMAND", "add a review stage", CLI_AT(args, options.review)},
    {"review-agent",
     "NAME",
     "add a review stage with this coding agent",
     OPT_REVIEW_AGENT},
    {"run",
     "COMMAND",
     "command that implements an issue",
     CLI_AT(args, options.run)},
    {"tag",
     "NAME",
     "tag of a Task Master file (default: master)",
     CLI_AT(args, options.tag)},
    {0},
};

const struct cli_command cli_import = {
    .name = "import",
    .synopsis = "github|beads|taskmaster [OPTION]... FILE...",
    .summary = "convert issues of GitHub, beads or Task Master to a plan",
    .options = options,
    .run = run,
    .take = take_option,
};
