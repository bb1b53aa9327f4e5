/* SPDX-License-Identifier: MIT */
/*
 * order: work that a scheduler assigns to a worker.
 *
 * An order contains no path of the worker's machine: only the worker knows its
 * home, its attempt directories and its programs. The only paths are from the
 * plan: its own directory and its repositories.
 */
#ifndef WORK_ORDER_H
#define WORK_ORDER_H

#include "exec/exec.h"
#include "work/mark.h"

/*
 * Identity of the work. Run, task and name also form its directory in the
 * worker's home. A task whose name begins with a dot is a program of the plan:
 * a hook, a usage monitor. Strings are borrowed.
 */
struct work_id {
    uint64_t token;    /* fencing token of an attempt; other ids: programs */
    const char *nonce; /* its records must carry it */
    const char *run;
    const char *task;
    const char *name; /* number of the attempt or call */
};

/* Requested state of an attempt. */
enum work_want {
    WORK_RUN,
    WORK_WITHDRAW, /* do not start it; if it has started, let it run */
    WORK_CANCEL,   /* stop it: an operator's request */
    WORK_STOP,     /* stop it: the scheduler stops */
};

/* A file in the work directory, and the variable that names it. */
struct work_file {
    const char *name;
    const char *variable; /* or NULL */
    const char *text;     /* content to write first; NULL: none */
    size_t len;
};

/* The file of a session with messages of operators; $SLUICE_MESSAGES. */
#define WORK_MESSAGES "messages"

/* A task of a session, for sluice-git. */
struct work_member {
    const char *task;
    const char *group;
    const char *title; /* or NULL */
    const char *agent; /* of a merge: who implemented it, or NULL */
};

/* Paths inside a repository. */
struct work_paths {
    const char *const *items;
    uint32_t count;
};

/* An attempt that is before a merge in its queue. */
struct work_before {
    const char *task;
    const char *name;
    bool elsewhere; /* it was assigned to another worker */
};

/* Input of sluice-git, to run a session or to merge. */
struct work_git {
    const char *repo; /* its name; NULL: no git repository */
    const char *url;  /* of its hub; NULL: it is the order's `folder` */
    const char *base;
    bool shared;        /* names of branches contain `repo`: see plan/twin.h */
    int64_t created_ns; /* of the run; distinguishes runs with the same name */
    bool merge;         /* merge, do not run a command */
    bool base_gate;     /* gate the base, do not run a command */
    bool update;        /* of a merge: merge the base first */
    bool writes;        /* keep its commits */
    bool allow_empty;
    bool pristine; /* a gate: its checkout has committed files only */
    uint32_t round;
    const char *gate;       /* or NULL, as the next two */
    const char *repair;     /* */
    const char *message;    /* of commits made for an agent */
    struct work_paths keep; /* may stay in a checkout between gates */
    struct work_paths copy; /* from the repository's files to the checkout */
    bool remote_keep;       /* the checkout can push */
    bool fetch;             /* fetch the base before it is used */
    bool once;              /* `prepare` only once in a checkout */
    uint32_t gate_retry;    /* how often the gate runs again after a failure */
    const struct work_member *members;
    uint32_t member_count;
    const struct work_before
        *before; /* of a merge, in the order of the queue */
    uint32_t before_count;
};

/* Confinement of a session: see exec/sandbox_view.h. Lists end with NULL. */
struct work_sandbox {
    bool on;
    bool network;
    const char *const *write; /* absolute, or beginning with ~ */
    const char *const *read;
    const char *const *env; /* names of variables */
};

/* Which workers may run it: see docs/machines.md. */
struct work_where {
    const char *label; /* that the worker must have; NULL: any worker */
    const char *near;  /* orders of equal text share files, and are best given
                          to one worker; or NULL */
};

/* All strings are borrowed for the call. */
struct work_order {
    struct work_id id;
    struct work_where where;
    enum work_want want; /* other than WORK_RUN: ensure that it never starts */
    bool again;          /* a program that may have been assigned before */
    const char *folder;  /* working directory, from the plan */
    bool checkout;       /* `folder` is a repository's */
    bool named;          /* by the plan: no other folder will do */
    const char *prepare; /* or NULL */
    /* The command: a shell command line; words with a final NULL; or
     * sluice-agent: for a session with its directory, for a program with the
     * words as arguments. */
    const char *shell;
    const char *const *argv;
    bool agent;
    const char *const *env; /* "NAME=value" */
    uint32_t env_count;
    /* The first file of a program is its standard input, if it has a `text`,
     * else its standard output, which the report returns. */
    const struct work_file *files;
    uint32_t file_count;
    int64_t timeout_ns; /* EXEC_NEVER: none; as the next two */
    int64_t idle_ns;
    int64_t checkpoint_ns;
    int64_t grace_ns;
    struct work_git git;
    struct work_sandbox sandbox;
};

/* Whether it is a program of the plan, not a session. */
static inline bool work_is_program(const struct work_id *id)
{
    return id->task[0] == '.';
}

#endif /* WORK_ORDER_H */
