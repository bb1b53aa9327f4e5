/* SPDX-License-Identifier: MIT */
/*
 * sluice init: write a first plan for the repositories in a directory.
 *
 * Names of directories and branches are untrusted: they are written as quoted
 * strings, and the plan is parsed before it is written, so that init never
 * writes a plan that `sluice check` rejects.
 */
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "cli/cli.h"
#include "cli/survey.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAN_FILE "sluice.yaml"

enum { NAME_BYTES_MAX = 60, NAME_BYTES = NAME_BYTES_MAX + 16 };

struct args {
    struct cli_line line;
    const char *dir;
    bool force;
    bool print;
};

/* --- names -------------------------------------------------------------- */

static bool is_plain(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9');
}

/* Derive a valid plan id from a string, changing as little as possible. */
static void make_name(char out[NAME_BYTES], const char *text)
{
    size_t len = 0;
    for (; *text != '\0' && len < NAME_BYTES_MAX; text++) {
        bool plain = is_plain(*text);
        bool joint = len > 0 && is_plain(out[len - 1]);
        if (plain || (joint && (*text == '.' || *text == '_'))) {
            out[len++] = *text;
        } else if (joint) {
            out[len++] = '-';
        }
    }
    while (len > 0 && !is_plain(out[len - 1])) {
        len--;
    }
    out[len] = '\0';
    if (len == 0) {
        (void)snprintf(out, NAME_BYTES, "repo");
    }
}

/* The last component of a directory's path. */
static void name_of(char out[NAME_BYTES], const char *dir)
{
    char *real = realpath(dir, NULL);
    const char *slash = real != NULL ? strrchr(real, '/') : NULL;
    make_name(out, slash != NULL ? slash + 1 : dir);
    free(real);
}

/* Create unique names for the repositories. */
static char (*make_names(const struct args *args,
                         const struct survey *survey))[NAME_BYTES]
{
    char(*names)[NAME_BYTES] = mem_zalloc(survey->repo_count, sizeof(names[0]));
    for (uint32_t ix = 0; ix < survey->repo_count; ix++) {
        const char *path = survey->repos[ix].path;
        if (strcmp(path, ".") == 0) {
            name_of(names[ix], args->dir);
        } else {
            make_name(names[ix], path);
        }
        for (uint32_t other = 0; other < ix; other++) {
            if (strcmp(names[other], names[ix]) == 0) {
                size_t len = strlen(names[ix]);
                (void)snprintf(names[ix] + len, NAME_BYTES - len, "-%u", ix);
                break;
            }
        }
    }
    return names;
}

/* --- plan --------------------------------------------------------------- */

static void add_head(struct strbuf *out, const char *name)
{
    strbuf_adds(out,
                "# A plan for sluice. Replace the sample issues at its end "
                "with yours, then:\n#\n#   sluice check " PLAN_FILE
                "      # errors and warnings; starts nothing\n"
                "#   sluice simulate " PLAN_FILE
                "   # what would run when; starts nothing\n"
                "#   sluice run " PLAN_FILE
                "        # run it; the same command continues it\n"
                "#\n"
                "# Each issue gets a branch and a checkout of its own. Your "
                "branches stay\n"
                "# unchanged: the result is the branch sluice/NAME/main of "
                "each repository.\n"
                "# 'man sluice-plan' explains every key.\n"
                "sluice: 1\n"
                "name: ");
    jsonw_string(out, name);
    strbuf_adds(out, "\n");
}

static void add_repos(struct strbuf *out,
                      const struct survey *survey,
                      char (*names)[NAME_BYTES])
{
    strbuf_adds(out,
                "\n# base: the branch that work starts from. gate: a command "
                "that must succeed on\n"
                "# the result of each merge, in a fresh checkout.\n"
                "repos:\n");
    for (uint32_t ix = 0; ix < survey->repo_count; ix++) {
        const struct survey_repo *repo = &survey->repos[ix];
        if (repo->fault != NULL) {
            continue;
        }
        strbuf_adds(out, "  ");
        jsonw_string(out, names[ix]);
        strbuf_adds(out, ":\n    path: ");
        jsonw_string(out, repo->path);
        strbuf_adds(out, "\n    base: ");
        jsonw_string(out, repo->base);
        if (repo->test != NULL) {
            strbuf_adds(out, "\n    gate: ");
            jsonw_string(out, repo->test);
            strbuf_adds(out, "\n");
        } else {
            strbuf_adds(out,
                        "\n    # gate: \"make test\"  # no test command was "
                        "found: add yours\n");
        }
    }
}

static void add_limits(struct strbuf *out)
{
    strbuf_adds(out,
                "\nlimits:\n"
                "  sessions: 2  # at most two sessions at once\n"
                "\n# budget: {usd: 20}  # start no session that would exceed "
                "it\n");
}

static void add_pipeline(struct strbuf *out, const struct survey *survey)
{
    strbuf_adds(out, "\n# What happens to each issue, stage by stage.");
    if (survey->agent_count > 0) {
        const char *name = survey->agents[0]->name;
        strbuf_adds(out, " Agents in PATH:");
        for (uint32_t ix = 0; ix < survey->agent_count; ix++) {
            strbuf_addf(out, " %s", survey->agents[ix]->name);
        }
        strbuf_addf(out,
                    "\n"
                    "pipelines:\n"
                    "  issue:\n"
                    "    - {stage: implement, agent: %s, estimate: 20m}\n"
                    "    - {stage: review, agent: %s, estimate: 5m, rework: "
                    "{to: implement, max: 2}}\n",
                    name,
                    name);
    } else {
        strbuf_adds(out, " No coding agent is in PATH:\n# install");
        for (uint32_t ix = 0; adapter_at(ix) != NULL; ix++) {
            strbuf_addf(out,
                        "%s %s",
                        ix == 0                      ? ""
                        : adapter_at(ix + 1) != NULL ? ","
                                                     : " or",
                        adapter_at(ix)->name);
        }
        strbuf_adds(
            out,
            ", and write \"agent: NAME\"\n# instead of \"run\", which is any "
            "command; this one parks the issue.\npipelines:\n  issue:\n    - "
            "stage: implement\n      estimate: 20m\n      run: >-\n        "
            "echo '{\"outcome\": \"blocked\", \"reason\": \"no agent: "
            "edit " PLAN_FILE "\"}' >\"$SLUICE_RESULT\"\n"
            "    # - {stage: review, agent: NAME, rework: {to: implement, "
            "max: 2}}\n");
    }
    strbuf_adds(out, "    - {stage: merge, merge: true, estimate: 2m}\n");
}

static void add_issues(struct strbuf *out,
                       const struct survey *survey,
                       char (*names)[NAME_BYTES])
{
    strbuf_adds(out,
                "\n# The issues. These are harmless samples. 'needs: [ID]' "
                "makes an issue wait for\n# another, in any repository; "
                "'body_file: PATH' reads the text from a file.\ngroups:\n");
    for (uint32_t ix = 0; ix < survey->repo_count; ix++) {
        if (survey->repos[ix].fault != NULL) {
            continue;
        }
        strbuf_addf(out, "  - id: \"%s-1\"\n    repo: ", names[ix]);
        jsonw_string(out, names[ix]);
        strbuf_adds(out,
                    "\n"
                    "    pipeline: issue\n"
                    "    title: \"Explain how to build and test\"\n"
                    "    body: |\n"
                    "      Write a file DEVELOPING.md of at most 40 lines: "
                    "how to build, test and\n"
                    "      change this repository. Change no other file.\n");
    }
}

static void make_plan(struct strbuf *out,
                      const struct args *args,
                      const struct survey *survey,
                      char (*names)[NAME_BYTES])
{
    char name[NAME_BYTES];
    name_of(name, args->dir);
    add_head(out, name);
    add_repos(out, survey, names);
    add_limits(out);
    add_pipeline(out, survey);
    add_issues(out, survey, names);
}

/* Whether the plan is valid; print its errors if not. */
static bool is_sound(const struct strbuf *text)
{
    char path[] = PLAN_FILE;
    struct cli_file file = {
        .path = path,
        .text = text->text,
        .bytes = text->len,
    };
    struct plan *plan = cli_read_plan(&file, clock_wall_ns(), false);
    plan_free(plan);
    return plan != NULL;
}

/* --- writing ------------------------------------------------------------ */

/* Append the path of the plan, as the user would name it. */
static void add_path(struct strbuf *out, const struct args *args)
{
    if (strcmp(args->dir, ".") != 0) {
        strbuf_addf(out, "%s/", args->dir);
    }
    strbuf_adds(out, PLAN_FILE);
}

/* Report why the plan cannot be written. */
static int fail_write(const struct args *args, const char *path, int error)
{
    struct strbuf plain = {0};
    plain_add(&plain, path);
    int code = error == EEXIST
                   ? cli_fail(args->line.command,
                              "%s exists; --force replaces it, --print "
                              "writes to standard output",
                              strbuf_text(&plain))
                   : cli_fail(args->line.command,
                              "write %s: %s; --print writes to standard "
                              "output",
                              strbuf_text(&plain),
                              strerror(error));
    strbuf_release(&plain);
    return code;
}

/* Write the plan. Only --force replaces an existing file. */
static int write_plan(const struct args *args, const struct strbuf *text)
{
    struct strbuf path = {0};
    add_path(&path, args);
    const char *name = strbuf_text(&path);
    int error = cli_put_file(name, text->text, text->len, args->force);
    int code = error == 0 ? CLI_OK : fail_write(args, name, error);
    strbuf_release(&path);
    return code;
}

static void add_findings(struct strbuf *out, const struct survey *survey)
{
    for (uint32_t ix = 0; ix < survey->repo_count; ix++) {
        const struct survey_repo *repo = &survey->repos[ix];
        if (repo->fault == NULL) {
            plain_add(out, repo->path);
            strbuf_addf(out, ": base %s, ", repo->base);
            strbuf_addf(out,
                        "%s%s\n",
                        repo->test != NULL ? "gate " : "no test command found",
                        repo->test != NULL ? repo->test : "");
        }
    }
    strbuf_addf(out,
                "agent: %s\n",
                survey->agent_count > 0 ? survey->agents[0]->name
                                        : "none in PATH; see " PLAN_FILE);
}

static int report(const struct args *args, const struct survey *survey)
{
    struct strbuf out = {0};
    add_findings(&out, survey);
    add_path(&out, args);
    strbuf_adds(&out, " written. Next:\n");
    if (strcmp(args->dir, ".") != 0) {
        strbuf_addf(&out, "  cd %s\n", args->dir);
    }
    strbuf_adds(&out,
                "  edit " PLAN_FILE "              # replace the sample issues "
                "with yours\n  sluice check " PLAN_FILE
                "      # errors and warnings; starts nothing\n"
                "  sluice simulate " PLAN_FILE
                "   # what would run when; starts nothing\n"
                "  sluice run " PLAN_FILE "        # run it\n");
    return cli_print(&out);
}

/* --- command ------------------------------------------------------------ */

/* Warn about unusable repositories; return the number of usable ones. */
static uint32_t warn(const struct survey *survey)
{
    uint32_t usable = 0;
    for (uint32_t ix = 0; ix < survey->repo_count; ix++) {
        const struct survey_repo *repo = &survey->repos[ix];
        if (repo->fault == NULL) {
            usable++;
            continue;
        }
        struct strbuf path = {0};
        plain_add(&path, repo->path);
        (void)fprintf(stderr,
                      "sluice init: warning: skipped %s: %s\n",
                      strbuf_text(&path),
                      repo->fault);
        strbuf_release(&path);
    }
    return usable;
}

static int carry_out(const struct args *args)
{
    struct survey survey = {0};
    struct diag diag = {0};
    if (survey_make(&survey, args->dir, &diag) != ERR_OK) {
        survey_release(&survey);
        return cli_fail(args->line.command, "%s", diag.text);
    }
    if (warn(&survey) == 0) {
        bool none = survey.repo_count == 0;
        survey_release(&survey);
        return cli_fail(args->line.command,
                        none ? "no git repository in %s or one level below; "
                               "run 'git init' and commit, or name another "
                               "directory"
                             : "no usable git repository in %s; commit "
                               "something first",
                        args->dir);
    }
    struct strbuf text = {0};
    char(*names)[NAME_BYTES] = make_names(args, &survey);
    make_plan(&text, args, &survey, names);
    int code = is_sound(&text) ? CLI_OK : CLI_USAGE;
    if (code == CLI_OK) {
        code = args->print ? cli_write(&text) : write_plan(args, &text);
    }
    if (code == CLI_OK && !args->print) {
        code = report(args, &survey);
    }
    mem_free(names);
    strbuf_release(&text);
    survey_release(&survey);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (optind + 1 < argc) {
        return cli_fail(command,
                        "unexpected argument \"%s\"; name one directory",
                        argv[optind + 1]);
    }
    args.dir = optind < argc ? argv[optind] : ".";
    return carry_out(&args);
}

static const struct cli_option options[] = {
    {"force", NULL, "replace " PLAN_FILE, CLI_AT(args, force)},
    {"print", NULL, "print the plan; write no file", CLI_AT(args, print)},
    {0},
};

const struct cli_command cli_init = {
    .name = "init",
    .synopsis = "[--force] [--print] [DIR]",
    .summary = "write a first plan for the repositories of a directory",
    .options = options,
    .run = run,
};
