/* SPDX-License-Identifier: MIT */
/*
 * sluice import: a plan made of issues that were exported from elsewhere.
 *
 * The work is plan/import.h's; here are the options, the files, and the words
 * for what went wrong. A file that is written appears whole or not at all, and
 * takes the place of another one only when told so.
 */
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/plain.h"
#include "exec/put.h"
#include "plan/import.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPT_OUTPUT = 'o',
    OPT_ADD_NEEDED = 1,
    OPT_BASE,
    OPT_FOLDER,
    OPT_FORCE,
    OPT_GATE,
    OPT_IGNORE_OUTSIDE,
    OPT_IGNORE_UNKNOWN,
    OPT_JSON,
    OPT_LABEL,
    OPT_MERGE,
    OPT_MILESTONE,
    OPT_NAME,
    OPT_PATH,
    OPT_REPO,
    OPT_REVIEW,
    OPT_RUN,
};

enum { LABELS_MAX = 64, PATHS_MAX = 1000 };

/* The command line. */
struct request {
    const struct cli_command *command;
    struct import_options options;
    const char *labels[LABELS_MAX];
    struct import_path paths[PATHS_MAX];
    const char *output; /* NULL: standard output */
    bool force;
};

/* --- errors ------------------------------------------------------------- */

/* Append where an error is: "FILE:LINE:COLUMN: issue #N: ". */
static void add_place(struct strbuf *out,
                      const struct request *request,
                      const struct import_error *error)
{
    if (error->file == NULL) {
        strbuf_addf(out, "sluice %s", request->command->name);
    } else {
        plain_add(out, error->file);
    }
    if (error->line > 0) {
        strbuf_addf(out, ":%u:%u", error->line, error->column);
    }
    strbuf_adds(out, ": ");
    if (error->issue > 0) {
        strbuf_addf(out, "issue #%lld: ", (long long)error->issue);
    }
}

static void print_errors(const struct request *request,
                         const struct import_errors *errors)
{
    struct strbuf out = {0};
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        add_place(&out, request, &errors->items[ix]);
        plain_add(&out, errors->items[ix].text);
        strbuf_adds(&out, "\n");
    }
    if (errors->cut) {
        strbuf_addf(&out,
                    "sluice %s: more than %d errors; the first ones are "
                    "shown\n",
                    request->command->name,
                    IMPORT_ERRORS_MAX);
    }
    (void)fputs(strbuf_text(&out), stderr);
    strbuf_release(&out);
}

static void add_plain_json(struct strbuf *out, const char *text)
{
    struct strbuf plain = {0};
    if (text != NULL) {
        plain_add(&plain, text);
    }
    jsonw_string(out, text == NULL ? NULL : strbuf_text(&plain));
    strbuf_release(&plain);
}

static void print_errors_json(const struct import_errors *errors)
{
    struct strbuf out = {0};
    strbuf_adds(&out, "{\"errors\": [");
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct import_error *error = &errors->items[ix];
        strbuf_adds(&out, ix > 0 ? ",\n  {\"file\": " : "\n  {\"file\": ");
        add_plain_json(&out, error->file);
        strbuf_addf(&out,
                    ", \"line\": %u, \"column\": %u, \"issue\": %lld, "
                    "\"message\": ",
                    error->line,
                    error->column,
                    (long long)error->issue);
        add_plain_json(&out, error->text);
        strbuf_adds(&out, "}");
    }
    strbuf_addf(&out, "],\n \"cut\": %s}\n", errors->cut ? "true" : "false");
    (void)cli_write(&out);
    strbuf_release(&out);
}

/* --- writing ------------------------------------------------------------ */

/* Give the new file its name; false with errno set. */
static bool put_in_place(const struct request *request, const char *made)
{
    if (request->force) {
        return rename(made, request->output) == 0;
    }
    if (renameat2(AT_FDCWD,
                  made,
                  AT_FDCWD,
                  request->output,
                  RENAME_NOREPLACE) == 0) {
        return true;
    }
    /* Some file systems cannot do that; they can make links, or nothing. */
    return (errno == EINVAL || errno == ENOSYS) &&
           link(made, request->output) == 0 && unlink(made) == 0;
}

/* Permissions that the file shall have: those that it has, or the usual. */
static mode_t mode_for(const struct stat *old, bool there)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return there ? old->st_mode & 0777 : 0666 & ~mask;
}

static int fail_write(const struct request *request, int error)
{
    struct strbuf path = {0};
    plain_add(&path, request->output);
    int code = error == EEXIST
                   ? cli_fail(request->command,
                              "%s is there already: --force replaces it",
                              strbuf_text(&path))
                   : cli_fail(request->command,
                              "%s: %s",
                              strbuf_text(&path),
                              strerror(error));
    strbuf_release(&path);
    return code;
}

static int write_file(const struct request *request, const struct strbuf *text)
{
    struct stat old = {0};
    bool there = stat(request->output, &old) == 0;
    if (there && S_ISDIR(old.st_mode)) {
        return fail_write(request, EISDIR);
    }
    if (there && (!request->force || !S_ISREG(old.st_mode))) {
        return fail_write(request, request->force ? EINVAL : EEXIST);
    }
    struct strbuf made = {0};
    strbuf_addf(&made, "%s.XXXXXX", request->output);
    int fd = mkostemp(made.text, O_CLOEXEC);
    bool ok = fd >= 0 && put_all(fd, text->text, text->len) && fsync(fd) == 0 &&
              fchmod(fd, mode_for(&old, there)) == 0;
    int error = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (ok && !put_in_place(request, made.text)) {
        error = errno;
        ok = false;
    }
    if (fd >= 0 && !ok) {
        (void)unlink(made.text);
    }
    strbuf_release(&made);
    return ok ? CLI_OK : fail_write(request, error);
}

/* Say what was written. */
static int print_summary(const struct request *request,
                         const struct import_counts *counts)
{
    struct strbuf out = {0};
    if (request->options.json) {
        strbuf_adds(&out, "{\"plan\": ");
        add_plain_json(&out, request->output);
        strbuf_addf(&out,
                    ", \"issues\": %u, \"repos\": %u, \"needs\": %u, "
                    "\"closed\": %u, \"others\": %u, \"pulls\": %u, "
                    "\"dropped\": %u}\n",
                    counts->issues,
                    counts->repos,
                    counts->needs,
                    counts->closed,
                    counts->others,
                    counts->pulls,
                    counts->dropped);
    } else {
        plain_add(&out, request->output);
        strbuf_addf(&out,
                    ": issues: %u, repos: %u, needs: %u; left out: %u closed, "
                    "%u of other milestones or labels, %u pull requests, %u "
                    "references\n",
                    counts->issues,
                    counts->repos,
                    counts->needs,
                    counts->closed,
                    counts->others,
                    counts->pulls,
                    counts->dropped);
    }
    int code = cli_write(&out);
    strbuf_release(&out);
    return code;
}

/* --- the command line --------------------------------------------------- */

static int add_label(struct request *request, const char *label)
{
    if (request->options.label_count == LABELS_MAX) {
        return cli_fail(request->command, "more than %d labels", LABELS_MAX);
    }
    request->labels[request->options.label_count++] = label;
    return CLI_OK;
}

/* NAME:PATH; the name is cut off in place. */
static int add_path(struct request *request, char *argument)
{
    char *colon = strchr(argument, ':');
    if (colon == NULL || colon == argument || colon[1] == '\0') {
        return cli_fail(request->command,
                        "--path takes NAME:PATH, as in api:../clones/api");
    }
    if (request->options.path_count == PATHS_MAX) {
        return cli_fail(request->command, "more than %d paths", PATHS_MAX);
    }
    *colon = '\0';
    request->paths[request->options.path_count++] = (struct import_path){
        .name = argument,
        .path = colon + 1,
    };
    return CLI_OK;
}

/* Take one option that has an argument. */
static int take_text(struct request *request, int code, char *argument)
{
    struct import_options *options = &request->options;
    const char **target = NULL;
    switch (code) {
    case OPT_BASE:
        target = &options->base;
        break;
    case OPT_FOLDER:
        target = &options->folder;
        break;
    case OPT_GATE:
        target = &options->gate;
        break;
    case OPT_LABEL:
        return add_label(request, argument);
    case OPT_MILESTONE:
        target = &options->milestone;
        break;
    case OPT_NAME:
        target = &options->name;
        break;
    case OPT_OUTPUT:
        request->output = strcmp(argument, "-") == 0 ? NULL : argument;
        return CLI_OK;
    case OPT_PATH:
        return add_path(request, argument);
    case OPT_REPO:
        target = &options->repo;
        break;
    case OPT_REVIEW:
        target = &options->review;
        break;
    default:
        target = &options->run;
        break;
    }
    *target = argument;
    return *argument != '\0'
               ? CLI_OK
               : cli_fail(request->command, "an argument is empty");
}

static int take_option(struct request *request, int code, char *argument)
{
    switch (code) {
    case OPT_ADD_NEEDED:
        request->options.add_needed = true;
        return CLI_OK;
    case OPT_FORCE:
        request->force = true;
        return CLI_OK;
    case OPT_IGNORE_OUTSIDE:
        request->options.ignore_outside = true;
        return CLI_OK;
    case OPT_IGNORE_UNKNOWN:
        request->options.ignore_unknown = true;
        return CLI_OK;
    case OPT_JSON:
        request->options.json = true;
        return CLI_OK;
    case OPT_MERGE:
        request->options.merge = true;
        return CLI_OK;
    default:
        return take_text(request, code, argument);
    }
}

/* Check what options and operands say together. */
static int check_request(const struct request *request, int argc, char **argv)
{
    const struct import_options *options = &request->options;
    if (optind == argc) {
        return cli_fail(request->command,
                        "from where? \"github\" is what there is");
    }
    if (strcmp(argv[optind], "github") != 0) {
        return cli_fail(request->command,
                        "unknown source \"%s\" (there is: github)",
                        argv[optind]);
    }
    if (optind + 1 == argc) {
        return cli_fail(request->command,
                        "which export? Name files, or - for standard input");
    }
    if (options->add_needed && options->ignore_outside) {
        return cli_fail(request->command,
                        "--add-needed and --ignore-outside do not go "
                        "together");
    }
    if (request->force && request->output == NULL) {
        return cli_fail(request->command, "--force is for --output FILE");
    }
    return CLI_OK;
}

/* Read the files, write the plan. */
static int make_plan(const struct request *request,
                     struct import *import,
                     int count,
                     char **paths)
{
    struct strbuf text = {0};
    for (int ix = 0; ix < count; ix++) {
        struct cli_file file;
        struct diag diag = {0};
        if (cli_read_file(&file, paths[ix], &diag) != ERR_OK) {
            return cli_fail(request->command, "%s", diag.text);
        }
        import_read(import, file.path, file.text, file.bytes);
        cli_release_file(&file);
    }
    int code = CLI_USAGE;
    if (!import_plan(import, &text)) {
        if (request->options.json) {
            print_errors_json(import_errors(import));
        } else {
            print_errors(request, import_errors(import));
        }
    } else if (request->output == NULL) {
        code = cli_write(&text);
    } else {
        struct import_counts counts = import_counts(import);
        code = write_file(request, &text);
        code = code == CLI_OK ? print_summary(request, &counts) : code;
    }
    strbuf_release(&text);
    return code;
}

static int run_request(struct request *request, int argc, char **argv)
{
    const char *argument = NULL;
    int option = 0;
    while ((option = cli_next(request->command, argc, argv, &argument)) !=
           CLI_END) {
        if (option == CLI_HELP || option == CLI_BAD) {
            return option == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        /* The argument is a part of argv, which is ours to change. */
        int code = take_option(request, option, optarg);
        if (code != CLI_OK) {
            return code;
        }
    }
    int code = check_request(request, argc, argv);
    if (code != CLI_OK) {
        return code;
    }
    struct import *import = import_new(&request->options);
    code = make_plan(request, import, argc - optind - 1, argv + optind + 1);
    import_free(import);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request *request = mem_zalloc(1, sizeof(*request));
    request->command = command;
    request->options.labels = request->labels;
    request->options.paths = request->paths;
    int code = run_request(request, argc, argv);
    mem_free(request);
    return code;
}

static const struct cli_option options[] = {
    {"add-needed",
     NULL,
     "take in open issues outside of the milestone that are needed",
     OPT_ADD_NEEDED},
    {"base", "BRANCH", "what the work in the repos starts from", OPT_BASE},
    {"folder", "DIR", "where the clones are (default: ..)", OPT_FOLDER},
    {"force", NULL, "replace FILE of --output", OPT_FORCE},
    {"gate", "COMMAND", "add a stage that tests", OPT_GATE},
    {"ignore-outside",
     NULL,
     "do not wait for open issues outside of the milestone",
     OPT_IGNORE_OUTSIDE},
    {"ignore-unknown",
     NULL,
     "do not wait for issues that are in no file",
     OPT_IGNORE_UNKNOWN},
    {"json", NULL, "write the plan, or the errors, as JSON", OPT_JSON},
    {"label",
     "NAME",
     "only issues with this label; all, if several",
     OPT_LABEL},
    {"merge", NULL, "add a stage that merges", OPT_MERGE},
    {"milestone", "NAME", "only issues of this milestone", OPT_MILESTONE},
    {"name", "NAME", "name of the plan (default: the milestone)", OPT_NAME},
    {"output", "FILE", "write the plan to a new file", OPT_OUTPUT},
    {"path", "NAME:PATH", "where the clone of one repo is", OPT_PATH},
    {"repo", "NAME", "repository of issues that do not name it", OPT_REPO},
    {"review", "COMMAND", "add a stage that reviews", OPT_REVIEW},
    {"run", "COMMAND", "what implements an issue", OPT_RUN},
    {0},
};

const struct cli_command cli_import = {
    .name = "import",
    .synopsis = "github [OPTION]... FILE...",
    .summary = "make a plan of issues exported from GitHub",
    .options = options,
    .run = run,
};
