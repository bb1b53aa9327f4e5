/* SPDX-License-Identifier: MIT */
/*
 * adapter: the coding-agent programs that sluice can run, one table each.
 *
 * An adapter knows three things about its program: the command line that
 * starts a session, the events that the program prints, one JSON object per
 * line, and the errors after which it exits. Everything else (prompt,
 * processes, result) is common to all of them and lives in agent/. To add a
 * program, write one file with a struct adapter and name it in adapter.c.
 *
 * Pure: nothing here does I/O. Memory: a struct adapter_seen owns its strings;
 * words of a command are copied into its arena. Threads: none.
 */
#ifndef ADAPTER_ADAPTER_H
#define ADAPTER_ADAPTER_H

#include "base/arena.h"
#include "base/strbuf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Actions that the program may take without asking. */
enum adapter_permissions {
    ADAPTER_FULL,  /* everything */
    ADAPTER_EDIT,  /* change files of the worktree, and commit */
    ADAPTER_TOOLS, /* the tools that the plan lists */
};

/* The configuration of one session. All strings are borrowed. */
struct adapter_call {
    const char *model; /* NULL: the program's own choice */
    enum adapter_permissions permissions;
    const char *const *tools; /* of ADAPTER_TOOLS */
    uint32_t tool_count;
    const char *const *args; /* further arguments, given by the plan */
    uint32_t arg_count;
    uint32_t retries;   /* of failed requests, inside the program */
    const char *resume; /* conversation to continue, or NULL */
    const char *fresh;  /* UUID for a new conversation */
    const char *schema; /* JSON schema of the answer */
    const char *schema_file;
    const char *git_dir; /* of the worktree; NULL: not a repository */
    const char *common_dir;
    double usd_left; /* the session may spend this much; < 0: no limit */
    const char *mcp; /* path of sluice, whose MCP server it gets, or NULL */
};

/* A command line under construction, and its additions to the environment. */
struct adapter_command {
    struct arena arena;
    const char **words;
    uint32_t word_count;
    uint32_t word_capacity;
    const char **env; /* NAME=value */
    uint32_t env_count;
    uint32_t env_capacity;
    /* A file to create in a checkout that sluice has made, unless it exists,
     * and to remove afterwards; NULL: none. */
    const char *file;
    const char *file_text;
    const char *file_variable; /* to set to "true" if it was created, or NULL */
};

/* Why a session failed. */
enum adapter_cause {
    ADAPTER_NONE,
    ADAPTER_LIMIT, /* a limit or an overload: try again later */
    ADAPTER_KEY,   /* bad key or empty account: an operator must act */
    ADAPTER_GONE,  /* the conversation to resume does not exist */
    ADAPTER_SPENT, /* its spending limit is reached */
    ADAPTER_ERROR, /* anything else */
};

/*
 * An error of the program, and its cause. A rule matches if all conditions that
 * are set match: HTTP status (0: any; a range from `status` to `status_max`),
 * exit code (0: any), substring of the error (NULL: any).
 */
struct adapter_rule {
    int status;
    int status_max;
    int code;
    const char *text;
    enum adapter_cause cause;
};

/* Tokens and money. Input includes the cached part. */
struct adapter_usage {
    int64_t input;
    int64_t cached;
    int64_t output;
    double usd;
    bool known;     /* tokens were reported */
    bool usd_known; /* money was reported */
    bool whole;     /* of the whole conversation, earlier sessions included */
};

/* Usage of one window of the provider's limits. */
struct adapter_meter {
    char name[32];
    double percent;
    int64_t resets_at; /* seconds since 1970; 0: unknown */
};
enum { ADAPTER_METERS_MAX = 8 };

/* Real counts stay far below; sums of counts cannot overflow. */
#define ADAPTER_COUNT_MAX INT64_C(1000000000000000)

/* Accumulated state of a session. Starts as {0}. */
struct adapter_seen {
    char *conversation;         /* id, or NULL */
    bool finished;              /* the last event was the final event ... */
    bool succeeded;             /* ... and reports success */
    struct adapter_usage usage; /* of this invocation, or of the conversation */
    json_t *counted;            /* claude: ids of the messages counted */
    struct strbuf text;         /* the program's last message */
    json_t *answer;             /* structured answer, or NULL */
    struct strbuf error;        /* its last error */
    int status;                 /* HTTP status of that error; 0: none */
    enum adapter_cause cause;   /* set when an event names it */
    int64_t retry_at;           /* seconds since 1970; 0: unknown */
    struct strbuf denials;      /* tools that were denied, a line each */
    struct adapter_meter meters[ADAPTER_METERS_MAX];
    uint32_t meter_count;
};

/* How a confined session may use a file of its program. */
enum adapter_use {
    ADAPTER_STATE,  /* directory: writable, created if missing */
    ADAPTER_LOGIN,  /* file: writable, because the program renews its login */
    ADAPTER_CONFIG, /* read-only: it can name programs to run */
    ADAPTER_COPY,   /* file: the session gets a copy, and changes are lost */
};

/* A file or directory that the program uses outside of its worktree. */
struct adapter_file {
    enum adapter_use kind;
    const char *variable; /* names its directory; NULL: none does */
    const char *dir;      /* in the home directory, without the variable */
    const char *name;     /* in that directory */
};

/* A program. */
struct adapter {
    const char *name;    /* in plans, and of the program */
    const char *version; /* tested version; "MAJOR.MINOR" decides */
    bool money;          /* it reports the cost of a session */
    bool schema;         /* its answers follow a JSON schema */
    bool tools;          /* it takes a list of allowed tools */
    bool edit;           /* it can be limited to edits and commits */
    bool meters;         /* it reports the usage of its limits */
    /* Variable that it requires for full permissions as root, or NULL. */
    const char *root_variable;
    /* Variable that tells it of MCP servers, or NULL: if it is set, the program
     * does not get sluice's. */
    const char *mcp_variable;
    const struct adapter_rule *rules;
    uint32_t rule_count;
    /* What it needs in a sandbox. A variable may end with '*': all that begin
     * so. */
    const struct adapter_file *files;
    uint32_t file_count;
    const char *const *variables;
    uint32_t variable_count;

    /* Append the words and variables that start a session, program first. The
     * prompt is on its standard input. */
    void (*command)(struct adapter_command *command,
                    const struct adapter_call *call);

    /* Process one event. Append a readable description to *line, without a
     * newline, or nothing. */
    void (*event)(struct adapter_seen *seen,
                  const json_t *event,
                  struct strbuf *line);
};

/* Return the adapter of a name or at an index, or NULL. */
const struct adapter *adapter_find(const char *name);
const struct adapter *adapter_at(uint32_t ix);

/* Free the content; *seen is then {0}. */
void adapter_seen_release(struct adapter_seen *seen);

/*
 * Return the cause of a session that has not succeeded: the cause that an event
 * named, or the first rule that matches. `code` is the exit code (-1: killed by
 * a signal), `errors` the tail of its standard error.
 */
enum adapter_cause adapter_cause_of(const struct adapter *adapter,
                                    const struct adapter_seen *seen,
                                    int code,
                                    const char *errors);

/* For adapters: */

/* Append a word, words, an option with a value (NULL: neither), a variable to
 * a command; all are copied. */
void adapter_add(struct adapter_command *command, const char *word);
void adapter_add_words(struct adapter_command *command,
                       const char *const *words,
                       uint32_t count);
void adapter_add_option(struct adapter_command *command,
                        const char *option,
                        const char *value);
void adapter_add_env(struct adapter_command *command,
                     const char *name,
                     const char *value);
void adapter_command_release(struct adapter_command *command);

/* Return the description of sluice's MCP server that several programs take:
 * {"mcpServers": {"sluice": {...}}}. With `env`, it names the variables that
 * the server needs, for programs that would keep them from it. */
const char *adapter_mcp_servers(struct adapter_command *command,
                                const char *sluice,
                                bool env);

/* The variables that the server needs; ends with NULL. */
extern const char *const adapter_mcp_variables[];

/*
 * Return a member of an event. A member that is missing, of another type or out
 * of range, and a string with a NUL in it, reads as "" or 0; counts are at most
 * ADAPTER_COUNT_MAX.
 */
const char *adapter_text(const json_t *object, const char *name);
int64_t adapter_int(const json_t *object, const char *name);
double adapter_number(const json_t *object, const char *name);
bool adapter_is(const json_t *object, const char *name, const char *text);

/* The same for seconds since 1970, whose nanoseconds must fit 64 bits, and for
 * the HTTP status. */
int64_t adapter_time(const json_t *object, const char *name);
int adapter_status(const json_t *object, const char *name);

/* Return a sum of counts, ADAPTER_COUNT_MAX at most. */
int64_t adapter_sum(int64_t a, int64_t b);

/* Read dollars; false: not a valid amount. */
bool adapter_usd(const json_t *object, const char *name, double *out);

/* Store the id of the conversation. The first id stays, and an id that could
 * pass for an option or a path is ignored. */
void adapter_set_conversation(struct adapter_seen *seen, const char *id);

/* Replace a string that *seen owns. */
void adapter_set_buf(struct strbuf *place, const char *text);

/* Return a length of at most `max` at which `text` can be cut between UTF-8
 * characters. */
size_t adapter_cut(const char *text, size_t max);

/* Append `text` to *line on one line and cut to a length fit for a log. */
void adapter_describe(struct strbuf *line, const char *what, const char *text);

/* Set the meter of that name; a percentage out of range is ignored. */
void adapter_set_meter(struct adapter_seen *seen,
                       const char *name,
                       double percent,
                       int64_t resets_at);

/* Counting rules of the usage in claude's events. */
struct adapter_dialect {
    bool cache_included; /* input_tokens includes cached tokens */
    bool whole;          /* `result` has the usage of the conversation */
};

/* Process an event in claude's format, which other programs use, too. */
void adapter_claude_take(struct adapter_seen *seen,
                         const json_t *event,
                         const struct adapter_dialect *dialect,
                         struct strbuf *line);

extern const struct adapter adapter_claude;
extern const struct adapter adapter_codex;
extern const struct adapter adapter_gemini;
extern const struct adapter adapter_opencode;
extern const struct adapter adapter_qwen;

#endif /* ADAPTER_ADAPTER_H */
