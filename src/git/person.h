/* SPDX-License-Identifier: MIT */
/*
 * person: work of a person on the branch of a group.
 *
 * A person who resolves what sluice could not commits in the checkout of the
 * group, or on its branch in the repository, and has the task retried. Next to
 * the checkout PATH, the file PATH+left says in which state the last session
 * left it; whatever differs from that is a person's. A session that was killed
 * leaves no such file: what is in its checkout is not taken, but kept under a
 * ref.
 */
#ifndef GIT_PERSON_H
#define GIT_PERSON_H

#include "git/fence.h"
#include "git/setup.h"

/* The branch of a group. All strings are borrowed. */
struct person {
    const struct names *names; /* of the group */
    const char *path;          /* of its checkout */
    struct fence fence;        /* of the group */
    bool passed; /* commits count as the result of the group's last stage */
};

/*
 * Take what a person has committed: the group's branch, and what its next stage
 * starts from, move there. Uncommitted files stay under a ref that the log
 * names. ERR_DENIED: it cannot be taken, and *diag says why.
 */
MUST_USE enum err person_take(struct agent *agent,
                              const struct person *person,
                              struct diag *diag);

/* Note the state of a checkout that a session leaves; `start` is where its
 * branch began. */
void person_leave(const struct setup *where,
                  const char *branch,
                  const struct git_id *start);

/* The same for a known state: the commit, and the tree of the files, "" if they
 * are as in the commit. */
void person_note(const char *path,
                 const struct git_id *tip,
                 const struct git_id *tree);

/* Return whether the checkout is as the last session left it. */
bool person_is_untouched(const struct setup *where, const char *branch);

/* Forget it: a session begins in the checkout. */
void person_enter(const char *path);

#endif /* GIT_PERSON_H */
