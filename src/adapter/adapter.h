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

/* What the program may do without asking. */
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
};

/* A command line that is being built, and its additions to the environment. */
struct adapter_command {
    struct arena arena;
    const char **words;
    uint32_t word_count;
    uint32_t word_capacity;
    const char **env; /* NAME=value */
    uint32_t env_count;
    uint32_t env_capacity;
};

/* Why a session could not do its work. */
enum adapter_cause {
    ADAPTER_NONE,
    ADAPTER_LIMIT, /* a limit or an overload: the same works later */
    ADAPTER_KEY,   /* bad key or empty account: a person must act */
    ADAPTER_GONE,  /* the conversation to resume does not exist */
    ADAPTER_SPENT, /* it has spent what it may */
    ADAPTER_ERROR, /* anything else */
};

/*
 * An error of the program, and its cause. A rule matches when all its
 * conditions that are set do: HTTP status (0: any; a range from `status` to
 * `status_max`), exit code (0: any), text that the error contains (NULL: any).
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

/* How full one window of the provider's limits is. */
struct adapter_meter {
    char name[32];
    double percent;
    int64_t resets_at; /* seconds since 1970; 0: unknown */
};
enum { ADAPTER_METERS_MAX = 8 };

/* Tokens stay far below; sums of counts cannot overflow. */
#define ADAPTER_COUNT_MAX INT64_C(1000000000000000)

/* Everything seen of a session so far. Starts as {0}. */
struct adapter_seen {
    char *conversation; /* id, or NULL */
    bool finished;      /* the event that ends a session came last ... */
    bool succeeded;     /* ... and reports success */
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

/* A program. */
struct adapter {
    const char *name;    /* in plans, and of the program */
    const char *version; /* that was tried; "MAJOR.MINOR" decides */
    bool money;          /* it reports what a session has cost */
    bool schema;         /* its answers follow a JSON schema */
    bool tools;          /* it takes a list of allowed tools */
    bool edit;           /* it can be kept to edits and commits */
    bool meters;         /* it shows how full its limits are */
    /* Variable without which it refuses full permissions as root, or NULL. */
    const char *root_variable;
    const struct adapter_rule *rules;
    uint32_t rule_count;

    /* Append the words and variables that start a session, program first. The
     * prompt is on its standard input. */
    void (*command)(struct adapter_command *command,
                    const struct adapter_call *call);

    /* Take one event. Appends to *line a description for people, without a
     * newline, or nothing. */
    void (*event)(struct adapter_seen *seen,
                  const json_t *event,
                  struct strbuf *line);
};

/* The adapter of that name, or NULL; those known, by index, NULL at the end. */
const struct adapter *adapter_find(const char *name);
const struct adapter *adapter_at(uint32_t ix);

/* Give back what was seen; *seen is then {0}. */
void adapter_seen_release(struct adapter_seen *seen);

/*
 * The cause of a session that has not succeeded: what an event named, or the
 * first rule that matches. `code` is the exit code (-1: killed by a signal),
 * `errors` the end of its standard error.
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

/*
 * Members of an event. A member that is missing, of another type or out of
 * range, and a text with a NUL in it, reads as "" or 0; counts are at most
 * ADAPTER_COUNT_MAX.
 */
const char *adapter_text(const json_t *object, const char *name);
int64_t adapter_int(const json_t *object, const char *name);
double adapter_number(const json_t *object, const char *name);
bool adapter_is(const json_t *object, const char *name, const char *text);

/* The same for seconds since 1970, whose nanoseconds must fit 64 bits, and for
 * the status of HTTP. */
int64_t adapter_time(const json_t *object, const char *name);
int adapter_status(const json_t *object, const char *name);

/* A sum of counts, ADAPTER_COUNT_MAX at most. */
int64_t adapter_sum(int64_t a, int64_t b);

/* Read dollars; false: it is not an amount of money. */
bool adapter_usd(const json_t *object, const char *name, double *out);

/* Keep the id of the conversation. The first one stays, and an id that could
 * pass for an option or a path is ignored. */
void adapter_set_conversation(struct adapter_seen *seen, const char *id);

/* Replace a text that *seen owns. */
void adapter_set_buf(struct strbuf *place, const char *text);

/* Bytes of `text`, `max` at most, that do not cut a character of UTF-8. */
size_t adapter_cut(const char *text, size_t max);

/* Append `text` to *line on one line and cut to a length fit for a log. */
void adapter_describe(struct strbuf *line, const char *what, const char *text);

/* Set the meter of that name; a percentage out of range is ignored. */
void adapter_set_meter(struct adapter_seen *seen,
                       const char *name,
                       double percent,
                       int64_t resets_at);

/* How the usage in claude's events counts. */
struct adapter_dialect {
    bool cache_included; /* input_tokens has the cached ones, too */
    bool whole;          /* `result` has the usage of the conversation */
};

/* Events in the shape of claude's, which other programs print, too. */
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
