/* SPDX-License-Identifier: MIT */
/*
 * survey: git repositories in a directory, with base branch and test command,
 * and the coding agents in PATH.
 *
 * Reads files and runs git; changes nothing. A survey owns its strings.
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
    const char *fault; /* why the repository is unusable, or NULL */
};

/* Starts as {0}. */
struct survey {
    struct survey_repo *repos; /* sorted by path */
    uint32_t repo_count;
    const struct adapter *agents[SURVEY_AGENTS_MAX];
    uint32_t agent_count;
};

/*
 * Survey the repository at `dir` or, if it is not a repository, all
 * repositories in its visible subdirectories, one level deep. ERR_IO:
 * unreadable; ERR_LIMIT: more than SURVEY_REPOS_MAX. Release *out in any case.
 */
MUST_USE enum err
survey_make(struct survey *out, const char *dir, struct diag *diag);

/* Whether PATH has a program of this name. */
bool survey_is_in_path(const char *name);

/* Free the memory; resets *survey to {0}. */
void survey_release(struct survey *survey);

#endif /* CLI_SURVEY_H */
