/* SPDX-License-Identifier: MIT */
/*
 * diff: the changes of an issue, which sluice-git computes.
 *
 * The call waits for another process and can take seconds. It has no effect on
 * other children or signals of this process, and works in any thread.
 */
#ifndef WORK_DIFF_H
#define WORK_DIFF_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>

/* How long sluice-git may take, in milliseconds. */
enum { DIFF_MS_MAX = 20000 };

/* The issue. All strings are borrowed. */
struct diff_wanted {
    const char *run;   /* id */
    const char *owner; /* see names_add_owner() in git/names.h */
    const char *repo;  /* its name in the plan */
    bool shared;       /* the plan has another repo with this path */
    const char *path;  /* of the repository, absolute */
    const char *home;  /* of this machine: mirrors are below it */
    const char *url;   /* instead of the path; or NULL */
    const char *group; /* id */
    bool begun;        /* a session of the group has started */
};

/* Append the answer, a JSON object: see git/diff.h. ERR_TIMEOUT: it took too
 * long. If sluice-git reports an error, it is in the answer. */
MUST_USE enum err diff_ask(struct strbuf *out,
                           const struct diff_wanted *wanted,
                           struct diag *diag);

#endif /* WORK_DIFF_H */
