/* SPDX-License-Identifier: MIT */
/*
 * survey: what a directory offers to a plan: git repositories with their base
 * branch and test command, and the coding agents in PATH.
 *
 * Reads files and asks git; changes nothing. Memory: a survey owns its strings.
 */
#ifndef CLI_SURVEY_H
#define CLI_SURVEY_H

#include "adapter/adapter.h"
#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SURVEY_REPOS_MAX = 1000,
    SURVEY_AGENTS_MAX = 16,
};

struct survey_repo {
    char *path; /* relative to the directory; "." is the directory itself */
    char *base; /* a branch with a commit; NULL: none, see `fault` */
    const char *test;  /* shell command that tests it; NULL: none found */
    const char *fault; /* why the repository cannot be used; NULL: it can */
};

/* Starts as {0}. */
struct survey {
    struct survey_repo *repos; /* sorted by path */
    uint32_t repo_count;
    const struct adapter *agents[SURVEY_AGENTS_MAX];
    uint32_t agent_count;
};

/*
 * Survey a directory: the repository at `dir`, or, if it is none, those in its
 * subdirectories, one level deep, without hidden ones. ERR_IO: it cannot be
 * read; ERR_LIMIT: more than SURVEY_REPOS_MAX. Release *out in any case.
 */
MUST_USE enum err
survey_make(struct survey *out, const char *dir, struct diag *diag);

/* Whether there is such a program in PATH. */
bool survey_is_in_path(const char *name);

/* Give the memory back; *survey is then {0}. */
void survey_release(struct survey *survey);

#endif /* CLI_SURVEY_H */
