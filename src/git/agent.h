/* SPDX-License-Identifier: MIT */
/*
 * agent: the branches of one run in one repository.
 *
 * The first session of the run in this repository creates the agent branch from
 * `base`. refs/sluice/RUN/owner identifies the run, so that refs left by an
 * earlier run of the same name are not mistaken for its own.
 */
#ifndef GIT_AGENT_H
#define GIT_AGENT_H

#include "git/git.h"
#include "git/names.h"

#include <stdint.h>

/* Paths inside a repository: relative, without "..". */
enum { CHECKOUT_PATHS_MAX = 64 };
struct checkout_paths {
    const char *items[CHECKOUT_PATHS_MAX];
    size_t count;
};

/* Set-up of the checkouts of a repository, from the plan. */
struct checkout_options {
    struct checkout_paths keep; /* may stay in a checkout between gates */
    struct checkout_paths copy; /* from the user's files to the checkout */
    bool remote_keep;           /* remotes can be pushed to */
    bool fetch;                 /* fetch the base before it is used */
    bool once;                  /* run the prepare command once in a checkout */
};

/* Run, repository and attempt. All strings are borrowed. */
struct agent_options {
    const char *repo;  /* absolute path; with `url`, its name for messages */
    const char *url;   /* of its hub; NULL: none */
    const char *home;  /* directory of the worker, which has mirrors */
    const char *base;  /* branch or commit */
    const char *run;   /* id */
    const char *entry; /* see names_add_branch() */
    const char *owner; /* differs for every run of every store */
    const char *group; /* id; NULL: none */
    uint64_t token;    /* fencing token of the attempt */
    struct checkout_options checkout;
    const char *const *sandbox; /* words that confine a command; NULL: none */
};

/* A task of a session, or a task whose branch is merged. */
struct agent_member {
    const char *task;  /* id */
    const char *group; /* id */
    const char *title; /* or NULL */
    const char *agent; /* who implemented it, or NULL */
};

struct agent {
    struct git *git;
    struct names names;
    const struct agent_options *options;
    struct git_id tip; /* of the agent branch, at its last read */
};

/*
 * Open the repository and find or create the agent branch of the run.
 * ERR_DENIED: the branch belongs to another owner; ERR_INVALID: the repository
 * or the base is unusable.
 */
MUST_USE enum err agent_open(struct agent *agent,
                             const struct agent_options *options,
                             struct diag *diag);
void agent_close(struct agent *agent);

/* Find the commit of the base: the fetched one, if the base is fetched, else
 * the user's. ERR_NOT_FOUND: it does not exist. */
MUST_USE enum err
agent_find_base(struct agent *agent, struct git_id *out, struct diag *diag);

/* The same, after fetching it, if it is fetched. ERR_UNAVAILABLE: its remote
 * cannot be reached. */
MUST_USE enum err
agent_update_base(struct agent *agent, struct git_id *out, struct diag *diag);

/*
 * Take the fences of the groups of these tasks: from now on, no attempt with a
 * smaller token keeps or merges what it did for them. ERR_DENIED: this attempt
 * is itself superseded.
 */
MUST_USE enum err agent_fence(struct agent *agent,
                              const struct agent_member *const *members,
                              size_t count,
                              struct diag *diag);

/*
 * Move the agent branch from `from` to `to`, which merges the groups of these
 * tasks; their fences are taken. No attempt with a smaller token moves the
 * branch afterwards. ERR_CONFLICT: the branch has moved; ERR_DENIED: this
 * attempt is superseded.
 */
MUST_USE enum err agent_move(struct agent *agent,
                             const struct agent_member *const *members,
                             size_t count,
                             const struct git_id *from,
                             const struct git_id *to,
                             struct diag *diag);

/* Read the tip of a run's agent branch, without an attempt; "" if it does not
 * exist or has another owner. */
MUST_USE enum err agent_find(struct git *git,
                             const struct names *names,
                             const char *owner,
                             struct git_id *tip_out,
                             struct diag *diag);

#endif /* GIT_AGENT_H */
