/* SPDX-License-Identifier: MIT */
/*
 * order: what a scheduler asks a worker to do.
 *
 * An order has no path of the worker's machine in it: the worker alone knows
 * its home, its attempt directories and its programs. The only paths are those
 * of the plan: its own directory and its repositories.
 */
#ifndef WORK_ORDER_H
#define WORK_ORDER_H

#include "exec/exec.h"
#include "work/mark.h"

/*
 * Which work it is. Run, task and name are also those of its directory in the
 * worker's home. A task whose name begins with a dot is a program of the plan:
 * a hook, a usage monitor. Strings are borrowed.
 */
struct work_id {
    uint64_t token;    /* fencing token of an attempt; other ids: programs */
    const char *nonce; /* that its records must carry */
    const char *run;
    const char *task;
    const char *name; /* number of the attempt, or of the call */
};

/* What is wanted of an attempt. */
enum work_want {
    WORK_RUN,
    WORK_WITHDRAW, /* that it does not start; if it has, let it run */
    WORK_CANCEL,   /* end it: an operator's request */
    WORK_STOP,     /* end it: the scheduler stops */
};

/* A file in the directory of the work, and the variable that names it. */
struct work_file {
    const char *name;
    const char *variable; /* or NULL */
    const char *text;     /* to be written first; NULL: nothing is */
    size_t len;
};

/* A task of a session, for sluice-git. */
struct work_member {
    const char *task;
    const char *group;
    const char *title; /* or NULL */
};

/* What sluice-git must know to run a session, or to merge. */
struct work_git {
    const char *repo; /* its name; NULL: not in a git repository */
    const char *base;
    int64_t created_ns; /* of the run, which tells runs of one name apart */
    bool merge;         /* merge, do not run a command */
    bool update;        /* of a merge: merge the base first */
    bool writes;        /* its commits are kept */
    bool allow_empty;
    uint32_t round;
    const char *gate;    /* or NULL, as the next two */
    const char *repair;  /* */
    const char *message; /* of commits that are made for an agent */
    const struct work_member *members;
    uint32_t member_count;
};

/* All strings are borrowed for the call. */
struct work_order {
    struct work_id id;
    enum work_want want; /* other than WORK_RUN: see that it never starts */
    bool again;          /* a program that may have been assigned before */
    const char *folder;  /* working directory, by the plan */
    bool checkout;       /* `folder` is a repository's */
    const char *prepare; /* or NULL */
    /* What is run: a shell's command line, words with NULL at the end, or
     * sluice-agent: for a session with its directory, for a program with the
     * words as arguments. */
    const char *shell;
    const char *const *argv;
    bool agent;
    const char *const *env; /* "NAME=value" */
    uint32_t env_count;
    /* The first file of a program is its standard input, if it has a text, and
     * else its standard output, which comes back in the report. */
    const struct work_file *files;
    uint32_t file_count;
    int64_t timeout_ns; /* EXEC_NEVER: none; as the next two */
    int64_t idle_ns;
    int64_t checkpoint_ns;
    int64_t grace_ns;
    struct work_git git;
};

/* Whether it is a program of the plan, and no session. */
static inline bool work_is_program(const struct work_id *id)
{
    return id->task[0] == '.';
}

#endif /* WORK_ORDER_H */
