/* SPDX-License-Identifier: MIT */
/*
 * setup: what a checkout has besides its commit.
 *
 * setup_enter() copies files of the user to the checkout. setup_prepare() runs
 * the prepare command once; a mark next to the checkout says that it was run.
 * Copied files are never committed: git ignores them, and setup_check() finds
 * those that a session committed nevertheless.
 */
#ifndef GIT_SETUP_H
#define GIT_SETUP_H

#include "git/agent.h"

/* A checkout. All strings are borrowed. */
struct setup {
    struct git *git;  /* the user's repository */
    const char *path; /* the checkout, absolute */
    const struct checkout_options *options;
    bool fresh; /* it was created just now: nothing was run in it yet */
    bool clean; /* remove ignored files of submodules, too: for a gate */
};

/*
 * Set up a checkout that is at its commit and clean. Call it when the checkout
 * is created or entered, before its users may see it, and hold its lock alone.
 * ERR_DENIED: an operator must act; ERR_UNAVAILABLE: try again later.
 */
MUST_USE enum err setup_enter(const struct setup *setup, struct diag *diag);

/* Make git ignore the copied files when it uses the git directory `git_dir` for
 * the checkout, whatever a session did to its own excludes. */
MUST_USE enum err setup_exclude(const struct setup *setup,
                                const char *git_dir,
                                struct diag *diag);

/*
 * Check that no commit in from..to, both in the user's repository, adds a
 * copied file. ERR_CONFLICT: one does, and *diag names it.
 */
MUST_USE enum err setup_check(const struct setup *setup,
                              const struct git_id *from,
                              const struct git_id *to,
                              struct diag *diag);

/*
 * A run of the prepare command:
 *  1. setup_begin_prepare() waits for others that prepare the same checkout,
 *     and returns whether the command must run: it did not run in this
 *     checkout, or something that it made is gone.
 *  2. The caller runs the command.
 *  3. setup_end_prepare() notes its success, or nothing, and frees everything.
 */
struct setup_prepare {
    const struct setup *setup;
    const char *command;
    struct strbuf before; /* untracked paths before its first run */
    int lock;
};
MUST_USE enum err setup_begin_prepare(struct setup_prepare *prepare,
                                      const struct setup *setup,
                                      const char *command,
                                      bool *must_out,
                                      struct diag *diag);
MUST_USE enum err setup_end_prepare(struct setup_prepare *prepare,
                                    bool succeeded,
                                    struct diag *diag);

/* Append the name of a file next to the checkout at `path`. */
void setup_add_beside(struct strbuf *out, const char *path, const char *end);

/* Append a pattern of git's excludes that matches exactly this path. */
void setup_add_pattern(struct strbuf *out, const char *path);

/* Remove the files of a removed checkout that are next to it. */
void setup_forget(const char *path);

#endif /* GIT_SETUP_H */
