/* SPDX-License-Identifier: MIT */
/*
 * cli: what the commands have in common.
 *
 * A command is a function and a table of its options; from the table come the
 * parsing, the help text and the checks. Commands return the exit code.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/diag.h"
#include "base/jsonw.h"
#include "base/strbuf.h"
#include "plan/plan.h"
#include "view/glance.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of every command. */
enum cli_exit {
    CLI_OK = 0,
    CLI_NOT_ALL_DONE = 1,
    CLI_USAGE = 2,
    CLI_STORE = 3,         /* the store cannot be used */
    CLI_INTERRUPTED = 130, /* by Ctrl-C or SIGTERM */
};

/* One option. `argument` is its name in the help, NULL without one. */
struct cli_option {
    const char *name;
    const char *argument;
    const char *help;
    /* Returned by cli_next(), or given to `take` by cli_parse(); unique in the
     * table, > 0. A letter is the short form of the option, too. Or CLI_AT()
     * or CLI_SHORT(): cli_parse() stores the option itself. */
    int code;
};

/* Where cli_parse() stores an option, in a struct that begins with a cli_line:
 * a bool without an argument, an int64_t in nanoseconds if the argument is
 * called TIME, else a const char *. CLI_SHORT() has a letter, too. */
#define CLI_AT(type, member) (CLI_AT_FIRST + (int)offsetof(struct type, member))
#define CLI_SHORT(letter, type, member)                                        \
    (CLI_AT(type, member) + (letter)*CLI_LETTER_FIRST)
enum { CLI_AT_FIRST = 1 << 16, CLI_LETTER_FIRST = 1 << 20 };

/* The letter that is the short form of an option, or 0. */
char cli_letter(const struct cli_option *option);

/* The operands that cli_parse() takes. */
enum cli_operand {
    CLI_OPERAND_OWN,  /* none: the command takes them itself, from optind on */
    CLI_OPERAND_NONE, /* there must be none */
    CLI_OPERAND_RUN,  /* the run, as with --run */
};

struct cli_line;

struct cli_command {
    const char *name;
    const char *synopsis;             /* after "sluice NAME" */
    const char *summary;              /* one line */
    const struct cli_option *options; /* ends with a NULL name */
    enum cli_operand operand;
    int (*run)(const struct cli_command *command, int argc, char **argv);
    /* Take an option that cli_parse() does not know; CLI_OK, or the exit code
     * after a message. NULL: there is none. */
    int (*take)(struct cli_line *line,
                const struct cli_option *option,
                char *argument);
};

/* What most command lines have. The first member of a command's own struct. */
struct cli_line {
    const struct cli_command *command;
    int argc;
    char **argv;
    struct glance_options wanted; /* --store and --run */
    bool json;
};

/* All commands, sorted by name: cli_add, cli_answer ... */
#define CLI_COMMANDS(X)                                                        \
    X(add)                                                                     \
    X(answer)                                                                  \
    X(budget)                                                                  \
    X(cancel)                                                                  \
    X(cap)                                                                     \
    X(check)                                                                   \
    X(doctor)                                                                  \
    X(drain)                                                                   \
    X(gc)                                                                      \
    X(handoff)                                                                 \
    X(hold)                                                                    \
    X(import)                                                                  \
    X(init)                                                                    \
    X(log)                                                                     \
    X(metrics)                                                                 \
    X(pause)                                                                   \
    X(release)                                                                 \
    X(report)                                                                  \
    X(resume)                                                                  \
    X(retry)                                                                   \
    X(run)                                                                     \
    X(simulate)                                                                \
    X(skip)                                                                    \
    X(status)                                                                  \
    X(top)                                                                     \
    X(usage)                                                                   \
    X(wait)                                                                    \
    X(why)

#define CLI_DECLARE(name) extern const struct cli_command cli_##name;
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* The options that every command on a store has, for its table. */
#define CLIENT_OPTION_STORE                                                    \
    {                                                                          \
        "store", "DIR",                                                        \
            "store (default: $SLUICE_STORE or the nearest .sluice)",           \
            CLIENT_OPT_STORE                                                   \
    }
#define CLIENT_OPTION_RUN                                                      \
    {                                                                          \
        "run", "RUN", "the run, if there are several", CLIENT_OPT_RUN          \
    }
#define CLIENT_OPTION_JSON                                                     \
    {                                                                          \
        "json", NULL, "print JSON", CLIENT_OPT_JSON                            \
    }

enum { CLIENT_OPT_STORE = 301, CLIENT_OPT_RUN, CLIENT_OPT_JSON };

enum { CLI_END = -1, CLI_BAD = -2, CLI_HELP = -3 };

/*
 * The next option of a command line: its code, with its argument in
 * *argument; CLI_END after the last, CLI_HELP for --help (which was printed),
 * CLI_BAD after an error (which was printed).
 */
int cli_next(const struct cli_command *command,
             int argc,
             char **argv,
             const char **argument);

/*
 * Read a whole command line into `line` and what is behind it, which are
 * already as without options. CLI_END: go on; else the exit code: help or an
 * error was printed.
 */
int cli_parse(struct cli_line *line,
              const struct cli_command *command,
              int argc,
              char **argv);

/*
 * The one operand of a command line, after the options: NULL, with an error
 * printed, when there is none or more than one.
 */
const char *
cli_operand(const struct cli_command *command, int argc, char **argv);

/* Print "sluice NAME: text" and where to find help; return CLI_USAGE. */
int cli_fail(const struct cli_command *command, const char *format, ...)
    PRINTF_LIKE(2, 3);

/* Print "sluice NAME: text" for an error of a store; the exit code. */
int cli_fail_store(const struct cli_command *command,
                   enum err err,
                   const struct diag *diag);

/*
 * Whether a word of the command line can be the id of a task or run: CLI_OK,
 * or CLI_USAGE with an error printed. `what` is "task" or "run".
 */
int cli_check_id(const struct cli_command *command,
                 const char *what,
                 const char *name);

/*
 * The run that a command line names, as its one operand or by --run, which mean
 * the same: sets *run (the argument of --run, or NULL) to the operand if there
 * is one. CLI_OK, or CLI_USAGE with an error printed.
 */
int cli_run_operand(const struct cli_command *command,
                    int argc,
                    char **argv,
                    const char **run);

/*
 * Read the argument of an option that is a length of time ("90s", "1h30m").
 * CLI_OK, or CLI_USAGE with an error printed.
 */
int cli_read_duration(const struct cli_command *command,
                      const char *option,
                      const char *text,
                      int64_t *out_ns);

/* Print the help of a command; return the exit code. */
int cli_help(const struct cli_command *command);

/* A file in memory, for reading plans again and again. */
struct cli_file {
    char *path;
    char *text;
    size_t bytes;
};

/* Read a file, or standard input for "-". The caller frees path and text. */
MUST_USE enum err
cli_read_file(struct cli_file *out, const char *path, struct diag *diag);

/* Give a file back. */
void cli_release_file(struct cli_file *file);

/* Whether a file can be written: 0, or the error number why not. One that
 * exists is replaced only with `replace`. */
int cli_check_file(const char *path, bool replace);

/* Write a file whole or not at all; 0, or the error number. A file that is
 * replaced keeps its permissions. */
int cli_put_file(const char *path, const char *text, size_t len, bool replace);

/*
 * Write a file that the command line names; 0, or the error number. An old one
 * is replaced, and a link followed; what is no file (a terminal, a pipe) is
 * written to.
 */
int cli_write_file(const char *path, const struct strbuf *text);

/* The folder that relative paths of a plan are meant from; NULL: it cannot be
 * found. The caller frees it. */
char *cli_folder(const char *path);

/* Print errors of a plan: as JSON on standard output with `json`. */
void cli_print_errors(const struct cli_file *file,
                      const struct plan_errors *errors,
                      bool json);

/*
 * Read a plan from a file in memory; NULL when it has errors, which were
 * printed (as JSON on standard output with `json`).
 */
struct plan *cli_read_plan(const struct cli_file *file, bool json);

/* Number of processors that this process may use. */
uint32_t cli_processors(void);

/* Columns of the terminal, or 80; always at least 40. */
uint32_t cli_columns(void);

/* Whether standard output is a terminal that shows colours. */
bool cli_colours(void);

/* Whether the locale writes UTF-8. */
bool cli_unicode(void);

/* Write to standard output; CLI_OK, or CLI_USAGE when that fails. */
int cli_write(const struct strbuf *out);

/* Write to standard output, and release; the exit code of cli_write(). */
int cli_print(struct strbuf *out);

/* Find the store that a command line means: CLI_OK, or the exit code after a
 * message. Release *out in any case. */
int cli_store(const struct cli_line *line, struct store_place *out);

/* Look, print what `fn` makes of it, or why there is nothing; the exit code. */
typedef void (*cli_show_fn)(struct strbuf *out,
                            const struct glance *glance,
                            const struct glance_options *options);
int cli_show(const struct cli_line *line, cli_show_fn fn);

#endif /* CLI_CLI_H */
