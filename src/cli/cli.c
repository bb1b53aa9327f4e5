/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "plan/alias.h"

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    OPTIONS_MAX = 32,
    CODES_MIN = 256, /* of long options, above those of letters */
    CODE_HELP = 1000,
    COLUMNS_MIN = 40,
    COLUMNS_DEFAULT = 80,
    PROCESSORS_MAX = 100000,
    ID_BYTES_MAX = 300, /* of a task or run */
};

/* Largest plan file: 256 MiB. */
#define FILE_BYTES_MAX ((size_t)256 << 20)

/* What getopt_long() did not understand: it left the reason in optopt. */
static int bad_option(const struct cli_command *command, char **argv)
{
    bool is_short = optopt > 0 && optopt < CODES_MIN;
    if (is_short) {
        (void)cli_fail(command, "unknown option -%c", optopt);
    } else if (optopt != 0) {
        (void)cli_fail(command,
                       "option %s takes no argument",
                       argv[optind - 1]);
    } else {
        (void)cli_fail(command, "unknown option %s", argv[optind - 1]);
    }
    return CLI_BAD;
}

/* Append the old names of options. */
static void add_aliases(const struct cli_command *command,
                        struct option *longs,
                        uint32_t count)
{
    uint32_t end = count;
    const struct alias *alias = NULL;
    for (uint32_t ix = 0; (alias = alias_at(command->name, ix)) != NULL; ix++) {
        for (uint32_t at = 0; at < count; at++) {
            if (strcmp(longs[at].name, alias->now) == 0) {
                INVARIANT(end < OPTIONS_MAX - 1);
                longs[end] = longs[at];
                longs[end++].name = alias->old;
            }
        }
    }
}

/* Warn if the option that getopt_long() found is an old name. */
static void warn_alias(const struct cli_command *command, const char *name)
{
    const struct alias *alias = alias_find(command->name, name, strlen(name));
    if (alias != NULL) {
        (void)fprintf(stderr,
                      "sluice %s: warning: --%s is an old name; use --%s\n",
                      command->name,
                      alias->old,
                      alias->now);
    }
}

/* Whether the code of an option is the letter of its short form, too. */
static bool is_letter(int code)
{
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

int cli_next(const struct cli_command *command,
             int argc,
             char **argv,
             const char **argument)
{
    struct option longs[OPTIONS_MAX] = {{0}};
    char letters[2 * OPTIONS_MAX + 3] = ":h";
    size_t letter_count = 2;
    uint32_t count = 0;
    for (const struct cli_option *option = command->options;
         option->name != NULL && count < OPTIONS_MAX - 2;
         option++) {
        longs[count++] = (struct option){
            .name = option->name,
            .has_arg = option->argument != NULL,
            .val = CODES_MIN + option->code,
        };
        if (is_letter(option->code)) {
            letters[letter_count++] = (char)option->code;
            if (option->argument != NULL) {
                letters[letter_count++] = ':';
            }
        }
    }
    longs[count++] = (struct option){.name = "help", .val = CODE_HELP};
    add_aliases(command, longs, count);
    opterr = 0;
    int at = -1;
    int code = getopt_long(argc, argv, letters, longs, &at);
    *argument = optarg;
    if (at >= 0) {
        warn_alias(command, longs[at].name);
    }
    if (code == -1) {
        return CLI_END;
    }
    if (code == CODE_HELP || code == 'h') {
        return cli_help(command) == CLI_OK ? CLI_HELP : CLI_BAD;
    }
    if (code == ':') {
        (void)cli_fail(command,
                       "option %s needs an argument",
                       argv[optind - 1]);
        return CLI_BAD;
    }
    if (code == '?') {
        return bad_option(command, argv);
    }
    return code >= CODES_MIN ? code - CODES_MIN : code;
}

const char *
cli_operand(const struct cli_command *command, int argc, char **argv)
{
    if (optind == argc) {
        (void)cli_fail(command, "missing PLAN (use - for standard input)");
        return NULL;
    }
    if (optind + 1 < argc) {
        (void)cli_fail(command,
                       "unexpected argument \"%s\"; name one plan",
                       argv[optind + 1]);
        return NULL;
    }
    return argv[optind];
}

int cli_fail(const struct cli_command *command, const char *format, ...)
{
    struct strbuf text = {0};
    va_list args;
    va_start(args, format);
    char buf[512];
    int len = vsnprintf(buf, sizeof(buf), format, args);
    va_end(args);
    strbuf_addf(&text, "sluice %s: %s\n", command->name, len < 0 ? "" : buf);
    strbuf_addf(&text, "Try 'sluice %s --help'.\n", command->name);
    (void)fputs(strbuf_text(&text), stderr);
    strbuf_release(&text);
    return CLI_USAGE;
}

int cli_fail_store(const struct cli_command *command,
                   enum err err,
                   const struct diag *diag)
{
    (void)fprintf(stderr, "sluice %s: %s\n", command->name, diag->text);
    return err == ERR_INVALID || err == ERR_NOT_FOUND ? err_exit_code(err)
                                                      : CLI_STORE;
}

int cli_check_id(const struct cli_command *command,
                 const char *what,
                 const char *name)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789._#:/-";
    size_t len = strlen(name);
    if (len == 0 || len > ID_BYTES_MAX) {
        return cli_fail(command,
                        len == 0 ? "the %s's id is empty"
                                 : "the %s's id is too long",
                        what);
    }
    if (strspn(name, alphabet) != len) {
        return cli_fail(command,
                        "\"%s\" is not a valid id of a %s: use letters, digits "
                        "and . _ # : / -",
                        name,
                        what);
    }
    return CLI_OK;
}

int cli_run_operand(const struct cli_command *command,
                    int argc,
                    char **argv,
                    const char **run)
{
    if (optind == argc) {
        return CLI_OK;
    }
    const char *operand = argv[optind];
    bool twice = *run != NULL && strcmp(*run, operand) != 0;
    if (twice || optind + 1 < argc) {
        return cli_fail(command,
                        "unexpected argument \"%s\"; name one run",
                        twice ? operand : argv[optind + 1]);
    }
    *run = operand;
    return cli_check_id(command, "run", operand);
}

int cli_read_duration(const struct cli_command *command,
                      const char *option,
                      const char *text,
                      int64_t *out_ns)
{
    enum err err = duration_read(text, strlen(text), out_ns);
    if (err == ERR_LIMIT) {
        return cli_fail(command, "--%s %s: longer than a year", option, text);
    }
    if (err != ERR_OK) {
        return cli_fail(command,
                        "--%s %s: not a duration such as 90s or 1h30m",
                        option,
                        text);
    }
    return CLI_OK;
}

int cli_help(const struct cli_command *command)
{
    struct strbuf out = {0};
    strbuf_addf(&out,
                "usage: sluice %s %s\n\n%s\n\noptions:\n",
                command->name,
                command->synopsis,
                command->summary);
    for (const struct cli_option *option = command->options;
         option->name != NULL;
         option++) {
        struct strbuf left = {0};
        if (is_letter(option->code)) {
            strbuf_addf(&left, "-%c, ", option->code);
        }
        strbuf_addf(&left,
                    "--%s%s%s",
                    option->name,
                    option->argument != NULL ? " " : "",
                    option->argument != NULL ? option->argument : "");
        strbuf_addf(&out, "  %-22s %s\n", left.text, option->help);
        strbuf_release(&left);
    }
    strbuf_addf(&out, "  %-22s %s\n", "-h, --help", "print this help");
    int code = cli_write(&out);
    strbuf_release(&out);
    return code;
}

static enum err read_all(FILE *file, struct cli_file *out, struct diag *diag)
{
    struct strbuf text = {0};
    char buf[65536];
    size_t got = 0;
    while ((got = fread(buf, 1, sizeof(buf), file)) > 0) {
        strbuf_add(&text, buf, got);
        if (text.len > FILE_BYTES_MAX) {
            strbuf_release(&text);
            return diag_set(diag,
                            ERR_LIMIT,
                            "%s: larger than 256 MiB",
                            out->path);
        }
    }
    if (ferror(file) != 0) {
        strbuf_release(&text);
        return diag_set(diag, ERR_IO, "%s: %s", out->path, strerror(errno));
    }
    strbuf_add(&text, "", 0);
    out->text = text.text;
    out->bytes = text.len;
    return ERR_OK;
}

enum err
cli_read_file(struct cli_file *out, const char *path, struct diag *diag)
{
    *out = (struct cli_file){0};
    bool input = strcmp(path, "-") == 0;
    const char *name = input ? "<stdin>" : path;
    FILE *file = input ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return diag_set(diag, ERR_IO, "%s: %s", path, strerror(errno));
    }
    out->path = mem_strndup(name, strlen(name));
    enum err err = read_all(file, out, diag);
    if (!input) {
        (void)fclose(file);
    }
    if (err != ERR_OK) {
        cli_release_file(out);
    }
    return err;
}

void cli_release_file(struct cli_file *file)
{
    mem_free(file->path);
    mem_free(file->text);
    *file = (struct cli_file){0};
}

uint32_t cli_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count >= 1 && count < PROCESSORS_MAX ? (uint32_t)count : 1;
}

char *cli_folder(const char *path)
{
    char real[PATH_MAX];
    if (strcmp(path, "-") == 0) {
        return getcwd(real, sizeof(real)) != NULL
                   ? mem_strndup(real, strlen(real))
                   : NULL;
    }
    if (realpath(path, real) == NULL) {
        return NULL;
    }
    const char *folder = dirname(real);
    return mem_strndup(folder, strlen(folder));
}

static void print_errors(const struct cli_file *file,
                         const struct plan_errors *errors)
{
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct plan_error *error = &errors->items[ix];
        (void)fprintf(stderr,
                      "%s:%u:%u: %s\n",
                      file->path,
                      error->mark.line,
                      error->mark.column,
                      error->text);
    }
    if (errors->cut) {
        (void)fprintf(stderr,
                      "%s: more than %d errors; only the first are shown\n",
                      file->path,
                      PLAN_ERRORS_MAX);
    }
}

void cli_add_error(struct jsonw *json,
                   const char *file,
                   struct plan_mark mark,
                   const char *text)
{
    jsonw_line(json, 2);
    jsonw_object(json, NULL);
    jsonw_text(json, "file", file);
    jsonw_int(json, "line", mark.line);
    jsonw_int(json, "column", mark.column);
    jsonw_text(json, "message", text);
    jsonw_object_end(json);
}

static void print_errors_json(const struct cli_file *file,
                              const struct plan_errors *errors)
{
    struct strbuf out = {0};
    struct jsonw json = {.out = &out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_array(&json, "errors");
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct plan_error *error = &errors->items[ix];
        cli_add_error(&json, file->path, error->mark, error->text);
    }
    jsonw_array_end(&json);
    jsonw_line(&json, 1);
    jsonw_bool(&json, "cut", errors->cut);
    jsonw_object_end(&json);
    strbuf_adds(&out, "\n");
    (void)cli_write(&out);
    strbuf_release(&out);
}

struct plan *cli_read_plan(const struct cli_file *file, bool json)
{
    struct plan_source source = {
        .file = file->path,
        .text = file->text,
        .len = file->bytes,
        .processors = cli_processors(),
    };
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        if (json) {
            print_errors_json(file, &errors);
        } else {
            print_errors(file, &errors);
        }
    }
    plan_errors_release(&errors);
    return plan;
}

uint32_t cli_columns(void)
{
    struct winsize size = {0};
    uint32_t columns = COLUMNS_DEFAULT;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        columns = size.ws_col;
    }
    return columns > COLUMNS_MIN ? columns : COLUMNS_MIN;
}

bool cli_colours(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL &&
           term != NULL && strcmp(term, "dumb") != 0;
}

bool cli_unicode(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int cli_write(const struct strbuf *out)
{
    size_t written = fwrite(strbuf_text(out), 1, out->len, stdout);
    if (written != out->len || fflush(stdout) != 0) {
        (void)fprintf(stderr, "sluice: standard output: %s\n", strerror(errno));
        return CLI_USAGE;
    }
    return CLI_OK;
}

int cli_show(const struct cli_command *command,
             const struct glance_options *options,
             cli_show_fn fn)
{
    struct glance glance;
    struct diag diag = {0};
    struct strbuf out = {0};
    enum err err = glance_take(&glance, options, &diag);
    int code;
    if (err == ERR_OK) {
        fn(&out, &glance, options);
        code = cli_write(&out);
    } else {
        code = cli_fail_store(command, err, &diag);
    }
    strbuf_release(&out);
    glance_release(&glance);
    return code;
}
