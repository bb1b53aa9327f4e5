/* SPDX-License-Identifier: MIT */
/*
 * hub: the git server of a repository, and its mirror on this machine.
 *
 * A repo with a `url` in the plan has no directory of its own. Each machine has
 * a mirror of it, the bare repository HOME/mirrors/NAME-HASH.git, which takes
 * the place of the user's repository: checkouts borrow its objects. The mirror
 * is a cache. Its refs are those that the hub had when they were last read, and
 * a change counts when the hub has accepted it: see hub_push.h.
 */
#ifndef GIT_HUB_H
#define GIT_HUB_H

#include "base/duration.h"
#include "git/git.h"

/* How long a result waits for a hub that cannot be reached. */
#define HUB_PATIENCE_NS (10 * MINUTE_NS)

/* Append a URL without passwords, for messages. */
void hub_add_name(struct strbuf *out, const char *url);

/* Append the path of the mirror below `home`. */
void hub_add_mirror(struct strbuf *out, const char *home, const char *url);

/*
 * Open the mirror of a hub, create it first if necessary, and fetch.
 * ERR_UNAVAILABLE: the hub cannot be reached now; ERR_DENIED: it refuses, or it
 * has no such repository.
 */
MUST_USE enum err hub_open(struct git **out,
                           const char *home,
                           const char *url,
                           struct diag *diag);

/* Open the repository at `path`, or if `url` is not NULL, its mirror. */
MUST_USE enum err hub_open_either(struct git **out,
                                  const char *home,
                                  const char *path,
                                  const char *url,
                                  struct diag *diag);

/* Ask a hub whether it has a branch or tag `base`; an id of a commit counts as
 * one. ERR_NOT_FOUND: it has not; other errors are those of hub_open(). */
MUST_USE enum err
hub_probe(const char *url, const char *base, struct diag *diag);

/* Read the refs of the hub again, with their objects. Without a hub this does
 * nothing. The errors are those of hub_open(). */
MUST_USE enum err hub_fetch(struct git *git, struct diag *diag);

/*
 * Take the lock of a mirror; the caller closes it. Its refs change only under
 * this lock, so its holder removes the locks of killed processes of git. -1 on
 * failure.
 */
MUST_USE int hub_lock(const struct git *git, struct diag *diag);

/* The same as hub_fetch() for the holder of the lock. */
MUST_USE enum err
hub_fetch_locked(struct git *git, int lock, struct diag *diag);

/* Change refs of the mirror only; the caller holds the lock. */
MUST_USE enum err
hub_set_locked(struct git *git, int lock, const char *lines, struct diag *diag);

/* Return the error in the messages of a git that has failed to use a hub, and
 * report it: ERR_DENIED if an operator must act, else ERR_UNAVAILABLE. */
enum err hub_judge(const char *name,
                   const char *doing,
                   const char *messages,
                   struct diag *diag);

#endif /* GIT_HUB_H */
