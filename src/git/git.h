/* SPDX-License-Identifier: MIT */
/*
 * git: a safe wrapper of the git program. A repository cannot make it run other
 * programs: hooks are off, and configuration keys that name programs are
 * overridden. Arguments are lists; no shell is involved.
 */
#ifndef GIT_GIT_H
#define GIT_GIT_H

#include "git/proc.h"

#include <stdint.h>

/* A file that cannot exist: of any other one, even an empty one, git says in
 * some commands that grafts are deprecated. */
#define GIT_NO_GRAFTS "/dev/null/none"

/* Bytes of an object id string, SHA-1 or SHA-256, with the NUL. */
enum { GIT_ID_BYTES = 65 };

struct git_id {
    char text[GIT_ID_BYTES]; /* "": none */
};

static inline bool git_is_set(const struct git_id *id)
{
    return id->text[0] != '\0';
}

struct git;

/*
 * Open the repository at `path`, which must be absolute. ERR_INVALID: it is not
 * a git repository, or git refuses to use it; ERR_UNAVAILABLE: git cannot run
 * now.
 */
MUST_USE enum err
git_open(struct git **out, const char *path, struct diag *diag);
void git_close(struct git *git);

/* Prepare calls of git in a directory that is no repository: only git_call().
 * The caller closes it. */
struct git *git_prepare(const char *path);

/*
 * Make the repository the mirror of a hub: changes of refs are pushed there
 * first (hub_push.h). `name` stands for it in messages. The strings are copied.
 */
void git_set_hub(struct git *git, const char *url, const char *name);

/* Return the URL of its hub; NULL: none. */
const char *git_hub(const struct git *git);

/* Return its directory, or the name of its hub, for messages. */
const char *git_name(const struct git *git);

/* Set how long a change of refs waits for a hub that cannot be reached, from
 * now on: 0, as by default, or longer where a result would be lost. */
void git_set_patience(struct git *git, int64_t patience_ns);
int64_t git_patience(const struct git *git);

/* Return the directory as given, and the directory shared by all worktrees. */
const char *git_path(const struct git *git);
const char *git_common_dir(const struct git *git);

/* Protocols that a call may use. Only a push, which is GIT_REMOTE by itself,
 * and a fetch have a reason to. */
enum git_network {
    GIT_OFFLINE,
    GIT_REMOTE,  /* to a remote of the user's configuration */
    GIT_FOREIGN, /* to a URL in a commit: no file of this machine */
    GIT_HUB,     /* to the hub that the plan names */
};

/* One call of git. Its arguments may begin with "-c" and a setting. */
struct git_call {
    const char *const *args; /* NULL-terminated, without "git" */
    const char *folder;      /* a checkout; NULL: the repository */
    const char *dir;         /* git directory; NULL: that of the folder */
    const char *objects;     /* object directory; NULL: that of `dir` */
    const char *input;       /* or NULL */
    int input_fd;            /* or 0 */
    struct strbuf *output;   /* or NULL: to our standard output */
    int output_fd;           /* or 0 */
    size_t output_max;       /* stop git after more bytes than this; 0: none */
    bool *cut_out;           /* gets whether it was; with output_max only */
    bool quiet;              /* no messages */
    struct strbuf *errors;   /* gets the messages, which are not logged */
    int codes;               /* highest exit code that is not an error */
    enum git_network network;
};

/* Call git; *code_out (or NULL) gets its exit code. ERR_CONFLICT: it failed. */
MUST_USE enum err git_call(struct git *git,
                           const struct git_call *call,
                           int *code_out,
                           struct diag *diag);

/* Note that another program ran that may have changed the configuration. */
void git_distrust(struct git *git);

/* Call git and append all of its output. */
MUST_USE enum err git_output(struct git *git,
                             const char *const *args,
                             struct strbuf *out,
                             struct diag *diag);

/* Return whether git prints this line in a worktree; false on error. */
bool git_says(struct git *git,
              const char *folder,
              const char *const *args,
              const char *line);

/* Return the next line of a list, NUL-terminated; NULL: no more. */
char *git_next_line(struct strbuf *list, size_t *cursor);

/*
 * Take a sluice lock in the directory that all worktrees share; `how` is as for
 * flock(). A git called meanwhile inherits the lock, so it is held while any
 * such git lives, even if the caller is killed. Return -1 on failure.
 */
int git_lock(const struct git *git, const char *name, int how);

/* Append a line "ID NAME" for each ref below the NULL-terminated prefixes. */
MUST_USE enum err git_list_refs(struct git *git,
                                const char *const *prefixes,
                                struct strbuf *out,
                                struct diag *diag);

/* Resolve a name to a commit: a branch, a tag, an id, a full ref.
 * ERR_NOT_FOUND: it does not exist. */
MUST_USE enum err git_resolve(struct git *git,
                              const char *name,
                              struct git_id *out,
                              struct diag *diag);

/* A ref by its full name, and its target; "": it does not exist. */
struct git_ref {
    const char *name;
    struct git_id id;
};

/* Read refs in one call, but not atomically: while another process creates
 * refs, it may find the second and miss the first. */
MUST_USE enum err git_read_refs(struct git *git,
                                struct git_ref *refs,
                                size_t count,
                                struct diag *diag);

/* One ref change in a transaction. */
struct git_ref_change {
    const char *ref;
    const char *to;   /* NULL: only verify `from` */
    const char *from; /* NULL: any value; "": must not exist */
};

/* Change refs, all or none. ERR_CONFLICT: a ref does not match its `from`. */
MUST_USE enum err git_change_refs(struct git *git,
                                  const struct git_ref_change *changes,
                                  size_t count,
                                  const char *why,
                                  struct diag *diag);

/*
 * Change refs by lines for `git update-ref --stdin`, all or none. With `alone`,
 * only sluice changes these refs. Every change of a ref in a user's repository
 * or a hub comes here.
 */
MUST_USE enum err git_transact(struct git *git,
                               const char *lines,
                               bool alone,
                               const char *why,
                               struct diag *diag);

/* The same in this repository only, even if it is the mirror of a hub. */
MUST_USE enum err git_transact_here(struct git *git,
                                    const char *lines,
                                    bool alone,
                                    const char *why,
                                    struct diag *diag);

/* Remove the ref lock that a killed git has left. The caller holds the lock
 * that sluice takes for every change of this ref. */
void git_unlock_ref(const struct git *git, const char *ref);

/* Check whether `ancestor` is reachable from `commit`. */
MUST_USE enum err git_is_ancestor(struct git *git,
                                  const char *ancestor,
                                  const char *commit,
                                  bool *out,
                                  struct diag *diag);

/* Read the id in the first line of git's output. ERR_IO: it has none. */
MUST_USE enum err
git_first_id(const struct strbuf *text, struct git_id *out, struct diag *diag);

/* Return the name of a branch without "refs/heads/". */
const char *git_short_name(const char *branch);

/* Append the content of a blob; nothing if the id is "". */
MUST_USE enum err git_read_blob(struct git *git,
                                const struct git_id *id,
                                struct strbuf *out,
                                struct diag *diag);

/* Store a string as a blob. */
MUST_USE enum err git_put_blob(struct git *git,
                               const char *text,
                               struct git_id *out,
                               struct diag *diag);

#endif /* GIT_GIT_H */
