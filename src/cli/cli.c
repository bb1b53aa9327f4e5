/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "exec/attempt_file.h"
#include "plan/alias.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <langinfo.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPTIONS_MAX = 32,
    CODES_MIN = 256, /* first code of a long option, above all letters */
    CODE_HELP = 1000,
    COLUMNS_MIN = 40,
    COLUMNS_DEFAULT = 80,
    PROCESSORS_MAX = 100000,
    ID_BYTES_MAX = 300, /* of a task or run */
};

/* Largest plan file: 256 MiB. */
#define FILE_BYTES_MAX ((size_t)256 << 20)

/* Report an option that getopt_long() rejected; optopt holds the reason. */
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

char cli_letter(const struct cli_option *option)
{
    int code = option->code;
    int letter = code < CLI_AT_FIRST ? code : code / CLI_LETTER_FIRST;
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')
               ? (char)letter
               : '\0';
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
        if (cli_letter(option) != '\0') {
            letters[letter_count++] = cli_letter(option);
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
    if (code >= CODES_MIN) {
        return code - CODES_MIN;
    }
    const struct cli_option *found = command->options;
    while (cli_letter(found) != code) {
        found++;
    }
    return found->code;
}

static int
store_option(struct cli_line *line, const struct cli_option *option, char *text)
{
    int offset = (option->code - CLI_AT_FIRST) % CLI_LETTER_FIRST;
    void *place = (char *)line + offset;
    if (option->argument == NULL) {
        *(bool *)place = true;
    } else if (strcmp(option->argument, "TIME") == 0) {
        return cli_read_duration(line->command, option->name, text, place);
    } else {
        *(const char **)place = text;
    }
    return CLI_OK;
}

static int take_label(struct cli_line *line, const char *label)
{
    struct labels *labels = &line->wanted.labels;
    if (label[0] == '\0') {
        return cli_fail(line->command, "--label needs a name");
    }
    if (labels->count == LABELS_WANTED_MAX) {
        return cli_fail(line->command,
                        "too many labels; at most %d can be given",
                        LABELS_WANTED_MAX);
    }
    labels->names[labels->count++] = label;
    return CLI_OK;
}

static int take_option(struct cli_line *line, int code, char *argument)
{
    const struct cli_option *option = line->command->options;
    while (option->code != code) {
        option++;
    }
    switch (code) {
    case CLIENT_OPT_STORE:
        line->wanted.store = argument;
        return CLI_OK;
    case CLIENT_OPT_RUN:
        line->wanted.run = argument;
        return CLI_OK;
    case CLIENT_OPT_JSON:
        line->json = true;
        return CLI_OK;
    case CLIENT_OPT_LABEL:
        return take_label(line, argument);
    default:
        return code >= CLI_AT_FIRST
                   ? store_option(line, option, argument)
                   : line->command->take(line, option, argument);
    }
}

int cli_parse(struct cli_line *line,
              const struct cli_command *command,
              int argc,
              char **argv)
{
    const char *ignored;
    int option;
    int code = CLI_OK;
    line->command = command;
    line->argc = argc;
    line->argv = argv;
    while ((option = cli_next(command, argc, argv, &ignored)) != CLI_END) {
        if (option < 0) {
            return option == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        code = take_option(line, option, optarg);
        if (code != CLI_OK) {
            return code;
        }
    }
    if (command->operand == CLI_OPERAND_RUN) {
        code = cli_run_operand(command, argc, argv, &line->wanted.run);
    } else if (command->operand == CLI_OPERAND_NONE && optind < argc) {
        code = cli_fail(command, "unexpected argument \"%s\"", argv[optind]);
    }
    return code == CLI_OK ? CLI_END : code;
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
    va_list args;
    va_start(args, format);
    char text[512];
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fprintf(stderr,
                  "sluice %s: %s\nTry 'sluice %s --help'.\n",
                  command->name,
                  len < 0 ? "" : text,
                  command->name);
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
    /* Only a built-in task has a name that ends so. */
    static const char base[] = "/+base";
    size_t end = sizeof(base) - 1;
    bool built_in = len > end && strcmp(name + len - end, base) == 0;
    if (strspn(name, alphabet) < len - (built_in ? end - 1 : 0)) {
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
        if (cli_letter(option) != '\0') {
            strbuf_addf(&left, "-%c, ", cli_letter(option));
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
    return cli_print(&out);
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

int cli_check_file(const char *path, bool replace)
{
    struct stat old;
    if (stat(path, &old) != 0) {
        return 0;
    }
    if (S_ISDIR(old.st_mode)) {
        return EISDIR;
    }
    if (!replace) {
        return EEXIST;
    }
    return S_ISREG(old.st_mode) ? 0 : EINVAL;
}

/* Rename the new file to `path`; on failure, return false and set errno. */
static bool put_in_place(const char *made, const char *path, bool replace)
{
    if (replace) {
        return rename(made, path) == 0;
    }
    if (renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
        return true;
    }
    /* Some file systems lack RENAME_NOREPLACE: use a hard link instead. */
    return (errno == EINVAL || errno == ENOSYS) && link(made, path) == 0 &&
           unlink(made) == 0;
}

/* Return the mode of an existing file, else the default mode of a new file. */
static mode_t mode_for(const char *path)
{
    struct stat old;
    mode_t mask = umask(0);
    (void)umask(mask);
    return stat(path, &old) == 0 ? old.st_mode & 0777 : 0666 & ~mask;
}

int cli_put_file(const char *path, const char *text, size_t len, bool replace)
{
    int error = cli_check_file(path, replace);
    if (error != 0) {
        return error;
    }
    struct strbuf made = {0};
    strbuf_addf(&made, "%s.XXXXXX", path);
    int fd = mkostemp(made.text, O_CLOEXEC);
    bool ok = fd >= 0 && attempt_file_write_all(fd, text, len) &&
              fsync(fd) == 0 && fchmod(fd, mode_for(path)) == 0;
    error = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (ok && !put_in_place(made.text, path, replace)) {
        error = errno;
        ok = false;
    }
    if (fd >= 0 && !ok) {
        (void)unlink(made.text);
    }
    strbuf_release(&made);
    return ok ? 0 : error;
}

/* Write to a file that rename() must not replace (a terminal, a pipe). Return 0
 * or an error number. */
static int write_stream(const char *path, const struct strbuf *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int error =
        fd >= 0 && attempt_file_write_all(fd, strbuf_text(text), text->len)
            ? 0
            : errno;
    if (fd >= 0 && close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

int cli_write_file(const char *path, const struct strbuf *text)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return write_stream(path, text);
    }
    char *real = realpath(path, NULL);
    int error = cli_put_file(real != NULL ? real : path,
                             strbuf_text(text),
                             text->len,
                             true);
    free(real);
    return error;
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

static void print_errors_json(const struct cli_file *file,
                              const struct plan_errors *errors)
{
    struct strbuf out = {0};
    struct jsonw json = {.out = &out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_array(&json, "errors");
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct plan_error *error = &errors->items[ix];
        jsonw_item(&json, 2);
        jsonw_text(&json, "file", file->path);
        jsonw_int(&json, "line", error->mark.line);
        jsonw_int(&json, "column", error->mark.column);
        jsonw_text(&json, "message", error->text);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_line(&json, 1);
    jsonw_bool(&json, "cut", errors->cut);
    jsonw_finish(&json);
    (void)cli_print(&out);
}

void cli_print_errors(const struct cli_file *file,
                      const struct plan_errors *errors,
                      bool json)
{
    if (json) {
        print_errors_json(file, errors);
        return;
    }
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

struct plan *
cli_read_plan(const struct cli_file *file, int64_t start_ns, bool json)
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
        cli_print_errors(file, &errors, json);
    } else if (plan_find_past(plan, start_ns, &errors)) {
        cli_print_errors(file, &errors, json);
        plan_free(plan);
        plan = NULL;
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

int cli_print(struct strbuf *out)
{
    int code = cli_write(out);
    strbuf_release(out);
    return code;
}

int cli_find_store(const struct cli_line *line, struct store_place *out)
{
    struct diag diag = {0};
    enum err err = store_place_find(out, line->wanted.store, false, &diag);
    return err == ERR_OK ? CLI_OK : cli_fail_store(line->command, err, &diag);
}
