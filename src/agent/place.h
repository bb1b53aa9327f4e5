/* SPDX-License-Identifier: MIT */
/*
 * place: the working directory and commits of a session.
 *
 * sluice-git writes `ranges` into the attempt directory, a line for each task:
 * task, branch, first and last commit, separated by tabs. Without that file the
 * working directory is not a repository of sluice.
 */
#ifndef AGENT_PLACE_H
#define AGENT_PLACE_H

#include "agent/prompt.h"

struct place {
    struct prompt_place prompt; /* borrows from below */
    struct strbuf ranges;       /* content of the file, cut into strings */
    struct prompt_range *list;
    char *folder;
    char *git_dir; /* NULL: no repository */
    char *common_dir;
    char *head; /* commit when the session began; NULL: none */
};

/* Examine the working directory. Release with place_release(). */
MUST_USE enum err place_find(struct place *out,
                             const char *dir,
                             const struct brief *brief,
                             struct diag *diag);
void place_release(struct place *place);

/* Return whether the session has left a new commit. */
bool place_has_moved(const struct place *place);

#endif /* AGENT_PLACE_H */
