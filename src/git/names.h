/* SPDX-License-Identifier: MIT */
/*
 * names: how branches, refs and worktrees of a run are called.
 *
 * Ids of runs, repos and groups come from plans. As a part of a ref's name or
 * of a path each is one component, whatever it contains, and different ids
 * give different components.
 */
#ifndef GIT_NAMES_H
#define GIT_NAMES_H

#include "base/arena.h"
#include "base/strbuf.h"

#include <stdint.h>

/* Append an id as one component. */
void names_add(struct strbuf *out, const char *id);

/* Append the name of a branch, without "refs/heads/": the agent branch when
 * `group` is NULL. */
void names_add_branch(struct strbuf *out, const char *run, const char *group);

/* Append the path of the worktree of a group; of the merge queue when `group`
 * is NULL. */
void names_add_worktree(struct strbuf *out,
                        const char *store,
                        const char *run,
                        const char *repo,
                        const char *group);

/* Append the text that tells the run of one store from all others: the path of
 * the store, and when the run was submitted. */
void names_add_owner(struct strbuf *out, const char *store, int64_t created_ns);

/* The refs of a run and a group in one repository, full names. */
struct names {
    struct arena arena;
    const char *owner; /* blob: whose run this is */
    const char *fence; /* blob: token of the last attempt that began to merge */
    const char *agent; /* agent branch */
    const char *branch; /* the group's branch */
    const char *kept;   /* where the next attempt of the group begins */
    const char *passed; /* what its last stage that ended well has left */
    const char *by;     /* blob: which stage that was, and in which round */
    const char *start;  /* where the issue began: see range.h */
};

void names_init(struct names *names, const char *run, const char *group);
void names_release(struct names *names);

#endif /* GIT_NAMES_H */
