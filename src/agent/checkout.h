/* SPDX-License-Identifier: MIT */
/*
 * checkout: the working directory and commits of a session.
 *
 * sluice-git writes `ranges` into the attempt directory, a line for each task:
 * task, branch, first and last commit, separated by tabs. Without that file the
 * working directory is not a repository of sluice.
 */
#ifndef AGENT_CHECKOUT_H
#define AGENT_CHECKOUT_H

#include "agent/prompt.h"

struct checkout {
    struct prompt_checkout prompt; /* borrows from below */
    struct strbuf ranges;          /* content of the file, cut into strings */
    struct prompt_range *list;
    char *folder;
    char *git_dir; /* NULL: no repository */
    char *common_dir;
    char *head; /* commit when the session began; NULL: none */
};

/* Examine the working directory. Release with checkout_release(). */
MUST_USE enum err checkout_find(struct checkout *out,
                                const char *dir,
                                const struct brief *brief,
                                struct diag *diag);
void checkout_release(struct checkout *checkout);

/* Return whether the session has left a new commit. */
bool checkout_has_moved(const struct checkout *checkout);

#endif /* AGENT_CHECKOUT_H */
