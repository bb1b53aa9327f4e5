/* SPDX-License-Identifier: MIT */
/*
 * names: names of a run's branches, refs and worktrees.
 *
 * Ids of runs, repos and groups come from plans. Each id is encoded as one
 * component of a ref or path, whatever it contains, and different ids yield
 * different components.
 */
#ifndef GIT_NAMES_H
#define GIT_NAMES_H

#include "base/arena.h"
#include "base/strbuf.h"

#include <stdint.h>

/* Component of the branch of a group "main": "main" is the agent branch. */
#define NAMES_GROUP_MAIN "%6Dain"

/* Number of checkouts of one group: PATH, PATH@2, ... */
enum { NAMES_LANES_MAX = 8 };

/* Append an id as one component. */
void names_add(struct strbuf *out, const char *id);

/*
 * Append the name of a branch, without "refs/heads/": the agent branch if
 * `group` is NULL. `entry` is the name of the repo in the plan if several repos
 * of the plan are this repository (plan/twin.h), else NULL.
 */
void names_add_branch(struct strbuf *out,
                      const char *run,
                      const char *entry,
                      const char *group);

/* In place of a group, where no group can have that id: the gate of the base.
 */
#define NAMES_BASE "+base"

/* Append the path of a group's worktree, or of NAMES_BASE; of the merge queue's
 * if `group` is NULL. */
void names_add_worktree(struct strbuf *out,
                        const char *store,
                        const char *run,
                        const char *repo,
                        const char *group);

/* Append the string that identifies a run across stores: the path of the store,
 * and the time at which the run was submitted. */
void names_add_owner(struct strbuf *out, const char *store, int64_t created_ns);

/* The full ref names of a run and a group in one repository. */
struct names {
    struct arena arena;
    const char *owner;       /* blob: identifies the run */
    const char *gated;       /* commit of the agent branch: see base.h */
    const char *fence;       /* of the agent branch: see fence.h */
    const char *base;        /* the base, if it is fetched */
    const char *agent;       /* agent branch */
    const char *branch;      /* the group's branch */
    const char *kept;        /* start of the group's next attempt */
    const char *passed;      /* result of its last stage that succeeded */
    const char *by;          /* blob: that stage and its round */
    const char *start;       /* first commit of the issue: see range.h */
    const char *group_fence; /* of the group's refs */
    const char *tried; /* blob: what sessions did to their own repository */
    const char *above; /* with an entry: owner of the run without; or NULL */
};

void names_init(struct names *names,
                const char *run,
                const char *entry,
                const char *group);
void names_release(struct names *names);

#endif /* GIT_NAMES_H */
