/* SPDX-License-Identifier: MIT */
/*
 * git: the program git, called so that a repository cannot make it run
 * anything: hooks are off, and what its configuration could start is
 * overridden. Arguments are lists; no shell is involved.
 */
#ifndef GIT_GIT_H
#define GIT_GIT_H

#include "git/proc.h"

/* Bytes of an object id as text, SHA-1 or SHA-256, with the NUL. */
enum { GIT_ID_BYTES = 65 };

struct git_id {
    char text[GIT_ID_BYTES]; /* "": none */
};

struct git;

/*
 * Use the repository at `path`, which must be absolute. ERR_INVALID: it is not
 * a git repository, or git refuses to use it; ERR_UNAVAILABLE: git cannot be
 * run now.
 */
MUST_USE enum err
git_open(struct git **out, const char *path, struct diag *diag);
void git_close(struct git *git);

/* Its folder, as given, and the one that all its worktrees share. */
const char *git_path(const struct git *git);
const char *git_common_dir(const struct git *git);

/* One call of git. */
struct git_call {
    const char *const *args; /* NULL-terminated, without "git" */
    const char *folder;      /* a worktree; NULL: the repository */
    const char *input;       /* or NULL */
    struct strbuf *output;   /* or NULL: to our standard output */
    bool quiet;              /* no messages */
    int codes;               /* exit codes up to this one are no errors */
};

/* Call git; its exit code, unless NULL. ERR_CONFLICT: it ended with an error.
 */
MUST_USE enum err git_call(struct git *git,
                           const struct git_call *call,
                           int *code_out,
                           struct diag *diag);

/* Something else has run that may have changed the configuration. */
void git_distrust(struct git *git);

/* Call git for all of its output. */
MUST_USE enum err git_output(struct git *git,
                             const char *const *args,
                             struct strbuf *out,
                             struct diag *diag);

/* Whether git, called in a worktree, prints this line; it may fail. */
bool git_says(struct git *git,
              const char *folder,
              const char *const *args,
              const char *line);

/* The next line of a list, with a NUL in place of its end; NULL: no more. */
char *git_next_line(struct strbuf *list, size_t *cursor);

/*
 * Take a lock of sluice in the folder that all worktrees share; `how` is that
 * of flock(). A git that is called meanwhile inherits it: it is held as long
 * as one lives, whoever of its callers was killed. -1: it cannot be taken.
 */
int git_lock(const struct git *git, const char *name, int how);

/* Append a line "ID NAME" for each ref below the prefixes; NULL ends them. */
MUST_USE enum err git_list_refs(struct git *git,
                                const char *const *prefixes,
                                struct strbuf *out,
                                struct diag *diag);

/*
 * The commit that a name means: a branch, a tag, an id, a full ref.
 * ERR_NOT_FOUND: there is none.
 */
MUST_USE enum err git_resolve(struct git *git,
                              const char *name,
                              struct git_id *out,
                              struct diag *diag);

/* A ref by its full name, and what it points to; "" when there is none. */
struct git_ref {
    const char *name;
    struct git_id id;
};

/* Read refs, all in one call, but not all at one instant: while they are being
 * made, it may find the second and not the first. */
MUST_USE enum err git_read_refs(struct git *git,
                                struct git_ref *refs,
                                size_t count,
                                struct diag *diag);

/* One change of a ref, in a transaction. */
struct git_ref_change {
    const char *ref;
    const char *to;   /* NULL: only verify `from` */
    const char *from; /* NULL: whatever it is; "": there is none */
};

/*
 * Change refs, all or none. ERR_CONFLICT: one of them is not what it was
 * thought to be.
 */
MUST_USE enum err git_change_refs(struct git *git,
                                  const struct git_ref_change *changes,
                                  size_t count,
                                  const char *why,
                                  struct diag *diag);

/*
 * The same in the words of `git update-ref --stdin`, a line for each change.
 * With `alone`, nobody but sluice changes these refs.
 */
MUST_USE enum err git_transact(struct git *git,
                               const char *lines,
                               bool alone,
                               const char *why,
                               struct diag *diag);

/*
 * Remove the lock of a ref that a killed git has left. The caller holds the
 * lock under which alone sluice changes this ref.
 */
void git_unlock_ref(const struct git *git, const char *ref);

/* Whether `ancestor` is reachable from `commit`. */
MUST_USE enum err git_is_ancestor(struct git *git,
                                  const char *ancestor,
                                  const char *commit,
                                  bool *out,
                                  struct diag *diag);

/* The id that git printed in the first line. ERR_IO: it is none. */
MUST_USE enum err
git_first_id(const struct strbuf *text, struct git_id *out, struct diag *diag);

/* The name of a branch without "refs/heads/". */
const char *git_short_name(const char *branch);

/* Append the text of a blob; nothing when the id is "". */
MUST_USE enum err git_read_blob(struct git *git,
                                const struct git_id *id,
                                struct strbuf *out,
                                struct diag *diag);

/* Store a text as a blob. */
MUST_USE enum err git_put_blob(struct git *git,
                               const char *text,
                               struct git_id *out,
                               struct diag *diag);

#endif /* GIT_GIT_H */
