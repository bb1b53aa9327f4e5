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
    const char *dir;                    /* directory of the attempt */
    const struct agent_member *members; /* tasks of the session; the first
                                           one leads, its group works */
    size_t member_count;
    uint32_t round;          /* how often it was sent back */
    bool writes;             /* an implement stage: it must make a commit */
    bool allow_empty;        /* ... or need not */
    const char *commit;      /* commit what is left uncommitted, with this
                                message; NULL: do not */
    const char *prepare;     /* shell command before it, or NULL */
    const char *const *argv; /* NULL-terminated */
};

/* Run it; the exit code of this process, or minus a signal. */
int session_run(const struct session_options *options);

#endif /* GIT_SESSION_H */
