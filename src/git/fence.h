/* SPDX-License-Identifier: MIT */
/*
 * fence: which attempts may move refs.
 *
 * A fence is a ref to a blob. Its first line is "TOKEN STEP": the fencing token
 * of the last attempt that took the fence alone, and a number that grows with
 * every change. Attempts that share the fence since then have a line "TOKEN
 * TASK" each. Every move of a fenced ref changes the fence in the same
 * transaction, so git itself rejects a superseded attempt, regardless of the
 * state of the store or of any process, and even where a push does not verify
 * refs that it leaves unchanged.
 */
#ifndef GIT_FENCE_H
#define GIT_FENCE_H

#include "git/git.h"

#include <stdint.h>

/* A fence and the attempt that uses it. All strings are borrowed. */
struct fence {
    const char *ref;
    const char *task;  /* of the attempt */
    uint64_t token;    /* of the attempt */
    bool alone;        /* supersede all attempts with smaller tokens; else
                          only those of the same task */
    bool take;         /* take it; else: it was taken before, only step */
    bool open;         /* nobody is superseded: only step */
    struct git_id was; /* blob at the last read; "": it did not exist */
    const char *text;  /* of the blob, during fence_change() */
};

/*
 * Change refs by lines for `git update-ref --stdin` ("" for none), together
 * with the fences, all or none. Repeat it while only the fences have moved.
 * `alone` is as for git_transact().
 * ERR_DENIED: the attempt is superseded; ERR_CONFLICT: a line does not apply.
 */
MUST_USE enum err fence_change(struct git *git,
                               struct fence *fences,
                               size_t count,
                               const char *lines,
                               bool alone,
                               const char *why,
                               struct diag *diag);

#endif /* GIT_FENCE_H */
