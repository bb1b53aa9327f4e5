/* SPDX-License-Identifier: MIT */
/*
 * cli: code shared by all commands.
 *
 * A command is a function and a table of its options. The table drives parsing,
 * help and checks. Commands return their exit code.
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
    CLI_STORE = 3,         /* the store is unusable */
    CLI_INTERRUPTED = 130, /* by Ctrl-C or SIGTERM */
};

/* One option. `argument` is its name in the help; NULL: it takes none. */
struct cli_option {
    const char *name;
    const char *argument;
    const char *help;
    /* The value that cli_next() returns and cli_parse() passes to `take`;
     * unique in the table, > 0. A letter is also the short form of the option.
     * With CLI_AT() or CLI_SHORT(), cli_parse() stores the option itself. */
    int code;
};

/* Where cli_parse() stores an option, in a struct that begins with a cli_line:
 * a bool without an argument, an int64_t in nanoseconds if the argument is
 * named TIME, else a const char *. CLI_SHORT() also sets a letter. */
#define CLI_AT(type, member) (CLI_AT_FIRST + (int)offsetof(struct type, member))
#define CLI_SHORT(letter, type, member)                                        \
    (CLI_AT(type, member) + (letter)*CLI_LETTER_FIRST)
enum { CLI_AT_FIRST = 1 << 16, CLI_LETTER_FIRST = 1 << 20 };

/* Return the short form of an option, or 0. */
char cli_letter(const struct cli_option *option);

/* The operands that cli_parse() accepts. */
enum cli_operand {
    CLI_OPERAND_OWN,  /* any: the command parses them, from optind on */
    CLI_OPERAND_NONE, /* an operand is an error */
    CLI_OPERAND_RUN,  /* one run, as with --run */
};

struct cli_line;

struct cli_command {
    const char *name;
    const char *synopsis;             /* after "sluice NAME" */
    const char *summary;              /* one line */
    const struct cli_option *options; /* ends with a NULL name */
    enum cli_operand operand;
    int (*run)(const struct cli_command *command, int argc, char **argv);
    /* Handle an option that cli_parse() does not know; return CLI_OK, or print
     * a message and return the exit code. NULL: no such option. */
    int (*take)(struct cli_line *line,
                const struct cli_option *option,
                char *argument);
};

/* Common part of a command line: first member of a command's own struct. */
struct cli_line {
    const struct cli_command *command;
    int argc;
    char **argv;
    struct glance_options wanted; /* --store, --run and --label */
    bool json;
};

/* All commands, sorted by name: cli_add, cli_answer ... */
#define CLI_COMMANDS(X)                                                        \
    X(add)                                                                     \
    X(answer)                                                                  \
    X(approve)                                                                 \
    X(budget)                                                                  \
    X(cancel)                                                                  \
    X(cap)                                                                     \
    X(check)                                                                   \
    X(diff)                                                                    \
    X(doctor)                                                                  \
    X(drain)                                                                   \
    X(first)                                                                   \
    X(gc)                                                                      \
    X(handoff)                                                                 \
    X(hold)                                                                    \
    X(import)                                                                  \
    X(init)                                                                    \
    X(limit)                                                                   \
    X(log)                                                                     \
    X(mcp)                                                                     \
    X(metrics)                                                                 \
    X(pause)                                                                   \
    X(priority)                                                                \
    X(release)                                                                 \
    X(report)                                                                  \
    X(rerun)                                                                   \
    X(resume)                                                                  \
    X(retry)                                                                   \
    X(rework)                                                                  \
    X(run)                                                                     \
    X(schedule)                                                                \
    X(serve)                                                                   \
    X(session)                                                                 \
    X(simulate)                                                                \
    X(skip)                                                                    \
    X(status)                                                                  \
    X(store)                                                                   \
    X(tell)                                                                    \
    X(top)                                                                     \
    X(usage)                                                                   \
    X(verify)                                                                  \
    X(wait)                                                                    \
    X(why)                                                                     \
    X(work)                                                                    \
    X(workers)

#define CLI_DECLARE(name) extern const struct cli_command cli_##name;
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* Options of every command that uses a store, for its table. */
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
#define CLIENT_OPTION_LABEL                                                    \
    {                                                                          \
        "label", "LABEL", "list only tasks with this label; repeatable",       \
            CLIENT_OPT_LABEL                                                   \
    }
#define CLIENT_OPTION_JSON                                                     \
    {                                                                          \
        "json", NULL, "print JSON", CLIENT_OPT_JSON                            \
    }

enum {
    CLIENT_OPT_STORE = 301,
    CLIENT_OPT_RUN,
    CLIENT_OPT_JSON,
    CLIENT_OPT_LABEL,
};

enum { CLI_END = -1, CLI_BAD = -2, CLI_HELP = -3 };

/*
 * Return the code of the next option and set *argument; CLI_END after the last
 * option, CLI_HELP after printing help for --help, CLI_BAD after printing an
 * error.
 */
int cli_next(const struct cli_command *command,
             int argc,
             char **argv,
             const char **argument);

/*
 * Parse a command line into `line` and the struct that contains it, which the
 * caller has set to the defaults. Return CLI_END to continue, else the exit
 * code, after printing help or an error.
 */
int cli_parse(struct cli_line *line,
              const struct cli_command *command,
              int argc,
              char **argv);

/*
 * Return the only operand of a command line. Print an error and return NULL if
 * it is missing or not the only operand.
 */
const char *
cli_operand(const struct cli_command *command, int argc, char **argv);

/* Print "sluice NAME: MESSAGE" and a pointer to the help; return CLI_USAGE. */
int cli_fail(const struct cli_command *command, const char *format, ...)
    PRINTF_LIKE(2, 3);

/* Print "sluice NAME: MESSAGE" for a store error; return the exit code. */
int cli_fail_store(const struct cli_command *command,
                   enum err err,
                   const struct diag *diag);

/*
 * Check that `name` is a valid id of a task or run. Return CLI_OK, or print an
 * error and return CLI_USAGE. `what` is "task" or "run".
 */
int cli_check_id(const struct cli_command *command,
                 const char *what,
                 const char *name);

/*
 * Set *run (the argument of --run, or NULL) to the operand, if given: both name
 * the run. Return CLI_OK, or print an error and return CLI_USAGE.
 */
int cli_run_operand(const struct cli_command *command,
                    int argc,
                    char **argv,
                    const char **run);

/*
 * Parse the argument of an option that is a duration ("90s", "1h30m"). Return
 * CLI_OK, or print an error and return CLI_USAGE.
 */
int cli_read_duration(const struct cli_command *command,
                      const char *option,
                      const char *text,
                      int64_t *out_ns);

/* Print the help of a command; return the exit code. */
int cli_help(const struct cli_command *command);

/* A file in memory, so that a plan can be parsed several times. */
struct cli_file {
    char *path;
    char *text;
    size_t bytes;
};

/* Read a file, or standard input for "-". Release with cli_release_file(). */
MUST_USE enum err
cli_read_file(struct cli_file *out, const char *path, struct diag *diag);

/* Free the memory of a file. */
void cli_release_file(struct cli_file *file);

/* Check that a file can be written. Return 0 or an error number. Without
 * `replace`, an existing file is an error. */
int cli_check_file(const char *path, bool replace);

/* Write a file atomically; return 0 or an error number. A file that is replaced
 * keeps its permissions. */
int cli_put_file(const char *path, const char *text, size_t len, bool replace);

/*
 * Write a file that the command line names; return 0 or an error number.
 * Replace an existing file, follow a symbolic link, and write in place to other
 * types (a terminal, a pipe).
 */
int cli_write_file(const char *path, const struct strbuf *text);

/* Return the directory to which paths in a plan are relative; NULL: not found.
 * The caller frees it. */
char *cli_folder(const char *path);

/* Print plan errors to standard error, or as JSON to standard output. */
void cli_print_errors(const struct cli_file *file,
                      const struct plan_errors *errors,
                      bool json);

/*
 * Parse a plan from a file in memory, for a run that starts at that wall clock
 * time. Return NULL if it is invalid or has dates before that, after printing
 * its errors with cli_print_errors().
 */
struct plan *
cli_read_plan(const struct cli_file *file, int64_t start_ns, bool json);

/* Number of processors that this process may use. */
uint32_t cli_processors(void);

/* Columns of the terminal, or 80 if unknown; at least 40. */
uint32_t cli_columns(void);

/* Whether standard output is a terminal that shows colours. */
bool cli_colours(void);

/* Whether the locale uses UTF-8. */
bool cli_unicode(void);

/* Write to standard output; return CLI_OK, or CLI_USAGE on failure. */
int cli_write(const struct strbuf *out);

/* Write to standard output and release `out`; return as cli_write() does. */
int cli_print(struct strbuf *out);

/* Find the store of a command line. Return CLI_OK, or print a message and
 * return the exit code. Release *out in any case. */
int cli_find_store(const struct cli_line *line, struct store_place *out);

/* cli/show.c: print the output of `fn`, which the scheduler makes, or which is
 * made of the store, or an error; return the exit code. */
typedef void (*cli_show_fn)(struct strbuf *out,
                            const struct glance *glance,
                            const struct glance_options *options);
int cli_show(const struct cli_line *line, cli_show_fn fn);

#endif /* CLI_CLI_H */
