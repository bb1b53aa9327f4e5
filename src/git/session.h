/* SPDX-License-Identifier: MIT */
/*
 * session: one session in the worktree of its group.
 */
#ifndef GIT_SESSION_H
#define GIT_SESSION_H

#include "git/range.h"

struct session_options {
    struct agent_options agent;
    const char *worktree;               /* absolute path */
    const char *dir;                    /* attempt directory */
    const struct agent_member *members; /* tasks of the session; the first
                                           leads, in its group's worktree */
    size_t member_count;
    uint32_t round;      /* number of reworks */
    bool writes;         /* implement stage: a commit is required */
    bool allow_empty;    /* ... or optional */
    bool pristine;       /* gate: its checkout has committed files only */
    const char *commit;  /* message to commit leftovers with; NULL: do not */
    const char *prepare; /* shell command before it, or NULL */
    const char *const *argv; /* NULL-terminated */
};

/* Run the session; return the exit code of this process, or minus a signal. */
int session_run(const struct session_options *options);

#endif /* GIT_SESSION_H */
