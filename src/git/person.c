/* SPDX-License-Identifier: MIT */
#include "git/person.h"

#include "base/crash.h"
#include "git/files.h"
#include "git/found.h"
#include "git/log.h"
#include "git/private.h"
#include "git/worktree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A checkout as a session left it. */
struct left {
    struct git_id tip;  /* "": the branch was gone */
    struct git_id tree; /* of its files; "": as in the tip */
};

static bool is_same(const struct git_id *one, const struct git_id *other)
{
    return strcmp(one->text, other->text) == 0;
}

static void add_left_path(struct strbuf *out, const char *path)
{
    strbuf_addf(out, "%s+left", path);
}

/* Read the state; false: no session has left the checkout. */
static bool read_left(const char *path, struct left *left)
{
    struct strbuf name = {0};
    add_left_path(&name, path);
    FILE *file = fopen(strbuf_text(&name), "re");
    strbuf_release(&name);
    *left = (struct left){{""}, {""}};
    if (file == NULL) {
        return false;
    }
    char text[2 * GIT_ID_BYTES + 8] = "";
    bool good = fgets(text, sizeof(text), file) != NULL;
    (void)fclose(file);
    return good &&
           sscanf(text, "%64s %64s", left->tip.text, left->tree.text) > 0;
}

static enum err
write_left(const char *path, const struct left *left, struct diag *diag)
{
    struct strbuf name = {0};
    struct strbuf next = {0};
    struct strbuf text = {0};
    add_left_path(&name, path);
    strbuf_addf(&next, "%s+next", strbuf_text(&name));
    strbuf_addf(&text, "%s %s\n", left->tip.text, left->tree.text);
    enum err err = files_remove(strbuf_text(&next), diag);
    if (err == ERR_OK) {
        err = files_write(strbuf_text(&next), &text, diag);
    }
    if (err == ERR_OK && rename(strbuf_text(&next), strbuf_text(&name)) != 0) {
        err = diag_set(diag,
                       ERR_IO,
                       "rename %s: %s",
                       strbuf_text(&next),
                       strerror(errno));
    }
    crash_point("person-left-written");
    strbuf_release(&name);
    strbuf_release(&next);
    strbuf_release(&text);
    return err;
}

/* Find the tree of the files: "" if all are as in the tip. */
static enum err read_tree(const struct setup *where,
                          const struct git_id *tip,
                          struct git_id *out,
                          struct diag *diag)
{
    struct strbuf list = {0};
    struct git_id none;
    *out = (struct git_id){0};
    enum err err = found_count_changes(where, &list) > 0
                       ? found_snapshot(where, tip, NULL, out, &none, diag)
                       : ERR_OK;
    strbuf_release(&list);
    return err;
}

void person_note(const char *path,
                 const struct git_id *tip,
                 const struct git_id *tree)
{
    struct left left = {*tip, *tree};
    struct diag diag = {0};
    if (write_left(path, &left, &diag) != ERR_OK) {
        log_line("cannot note the state of the checkout: %s", diag.text);
    }
}

void person_leave(const struct setup *where,
                  const char *branch,
                  const struct git_id *start)
{
    struct found found;
    struct git_id tree = {0};
    struct diag diag = {0};
    enum err err = found_read(&found, where, branch, start, &diag);
    if (err == ERR_OK && git_is_set(&found.tip)) {
        err = read_tree(where, &found.tip, &tree, &diag);
    }
    if (err != ERR_OK) { /* a person's work there is saved, but not taken */
        log_line("cannot note the state of the checkout: %s", diag.text);
    } else if (git_is_set(&found.tip)) {
        person_note(where->path, &found.tip, &tree);
    }
    found_release(&found);
}

bool person_is_untouched(const struct setup *where, const char *branch)
{
    struct left left;
    struct found found;
    struct git_id tree = {0};
    bool known = read_left(where->path, &left);
    enum err err = known ? found_read(&found, where, branch, &left.tip, NULL)
                         : ERR_NOT_FOUND;
    if (err == ERR_OK) {
        err = read_tree(where, &found.tip, &tree, NULL);
    }
    bool same = err == ERR_OK && is_same(&found.tip, &left.tip) &&
                is_same(&tree, &left.tree);
    if (known) {
        found_release(&found);
    }
    return same;
}

void person_enter(const char *path)
{
    struct strbuf name = {0};
    add_left_path(&name, path);
    (void)unlink(strbuf_text(&name)); /* usually it exists */
    strbuf_release(&name);
}

/* Move the branch to a person's commit. */
static enum err take(struct agent *agent,
                     const struct person *person,
                     const struct git_id *tip,
                     const char *where,
                     struct diag *diag)
{
    struct fence fence = person->fence;
    struct strbuf lines = {0};
    strbuf_addf(&lines,
                "update %s %s\nupdate %s %s\n",
                person->names->branch,
                tip->text,
                person->names->kept,
                tip->text);
    if (person->passed) {
        strbuf_addf(&lines, "update %s %s\n", person->names->passed, tip->text);
    }
    log_line("taking commit %s, which was made on %s in %s",
             tip->text,
             git_short_name(person->names->branch),
             where);
    crash_point("person-before-take");
    enum err err = fence_change(agent->git,
                                &fence,
                                1,
                                strbuf_text(&lines),
                                true,
                                "sluice: take",
                                diag);
    crash_point("person-taken");
    strbuf_release(&lines);
    return err;
}

/* Copy a commit to the user's repository. */
static enum err import(struct agent *agent,
                       const struct setup *where,
                       const struct git_id *commit,
                       struct diag *diag)
{
    struct diag why = {0};
    enum err err = private_import(agent->git,
                                  where->path,
                                  commit,
                                  PROC_ARGS(agent->tip.text),
                                  &why);
    return err == ERR_CONFLICT
               ? diag_set(diag,
                          ERR_DENIED,
                          "cannot take commit %s from %s (%.200s): move the "
                          "directory away",
                          commit->text,
                          where->path,
                          why.text)
           : err != ERR_OK ? diag_set(diag, err, "%s", why.text)
                           : ERR_OK;
}

/* Return whether the user's repository has a commit. */
static bool is_known(struct agent *agent, const struct git_id *commit)
{
    struct git_call call = {
        .args = PROC_ARGS("cat-file", "-e", commit->text),
        .quiet = true,
    };
    return git_call(agent->git, &call, NULL, NULL) == ERR_OK;
}

/* Keep a commit of the checkout under a ref. */
static enum err save(struct agent *agent,
                     const struct person *person,
                     const struct setup *where,
                     const struct git_id *commit,
                     struct diag *diag)
{
    struct strbuf ref = {0};
    strbuf_addf(&ref,
                "%.*sleft/%" PRIu64,
                (int)(strlen(person->names->kept) - strlen("kept")),
                person->names->kept,
                person->fence.token);
    struct git_ref_change change = {
        .ref = strbuf_text(&ref),
        .to = commit->text,
    };
    enum err err = import(agent, where, commit, diag);
    if (err == ERR_OK) {
        err = git_change_refs(agent->git, &change, 1, "sluice: save", diag);
    }
    if (err == ERR_OK) {
        log_line("work in %s that is not taken is kept as %s",
                 where->path,
                 strbuf_text(&ref));
    }
    crash_point("person-files-saved");
    strbuf_release(&ref);
    return err;
}

/* Save uncommitted files that no session left. */
static enum err save_files(struct agent *agent,
                           const struct person *person,
                           const struct setup *where,
                           const struct git_id *tip,
                           struct left *left,
                           struct diag *diag)
{
    struct git_id tree = {0};
    struct git_id commit = {0};
    enum err err = read_tree(where, tip, &tree, diag);
    if (err != ERR_OK || !git_is_set(&tree) || is_same(&tree, &left->tree)) {
        return err;
    }
    left->tree = tree;
    err = found_snapshot(where,
                         tip,
                         "Files that were not committed",
                         &tree,
                         &commit,
                         diag);
    return err == ERR_OK ? save(agent, person, where, &commit, diag) : err;
}

/* Save all work in a checkout whose last session was killed: a person may have
 * been there since. */
static void save_all(struct agent *agent,
                     const struct person *person,
                     const struct setup *where,
                     const struct git_id *tip)
{
    struct left left = {{""}, {""}};
    struct diag diag = {0};
    enum err err = save_files(agent, person, where, tip, &left, &diag);
    if (err == ERR_OK && !git_is_set(&left.tree) && !is_known(agent, tip)) {
        err = save(agent, person, where, tip, &diag);
    }
    if (err != ERR_OK) {
        log_line("cannot save what is in %s: %s", where->path, diag.text);
    }
}

/* Take what is in the checkout. The lock is held alone. */
static enum err take_checkout(struct agent *agent,
                              const struct person *person,
                              const struct git_id *branch,
                              struct diag *diag)
{
    struct setup where = {
        .git = agent->git,
        .path = person->path,
        .options = &agent->options->checkout,
    };
    struct left before;
    struct found found;
    bool known = read_left(person->path, &before);
    struct left left = before;
    enum err err = found_read(&found,
                              &where,
                              person->names->branch,
                              known ? &left.tip : branch,
                              diag);
    if (err != ERR_OK || !git_is_set(&found.tip)) {
        found_release(&found);
        return err == ERR_CONFLICT ? ERR_OK : err; /* no repository to read */
    }
    if (!known) {
        save_all(agent, person, &where, &found.tip);
        found_release(&found);
        return ERR_OK;
    }
    err = save_files(agent, person, &where, &found.tip, &left, diag);
    if (err == ERR_OK && !is_same(&found.tip, &left.tip) &&
        !is_same(&found.tip, branch)) {
        err = import(agent, &where, &found.tip, diag);
        if (err == ERR_OK) {
            err = take(agent, person, &found.tip, person->path, diag);
        }
    }
    left.tip = found.tip;
    if (err == ERR_OK && (!is_same(&left.tip, &before.tip) ||
                          !is_same(&left.tree, &before.tree))) {
        err = write_left(person->path, &left, diag);
    }
    found_release(&found);
    return err;
}

/* Check whether the branch has commits that none of the others contains. */
static enum err has_more(struct git *git,
                         const struct git_ref *branch,
                         const struct git_id *const *others,
                         size_t count,
                         bool *out,
                         struct diag *diag)
{
    enum err err = ERR_OK;
    *out = git_is_set(&branch->id);
    for (size_t ix = 0; err == ERR_OK && *out && ix < count; ix++) {
        bool within = is_same(&branch->id, others[ix]);
        if (!within && git_is_set(others[ix])) {
            err = git_is_ancestor(git,
                                  branch->id.text,
                                  others[ix]->text,
                                  &within,
                                  diag);
        }
        *out = !within;
    }
    return err;
}

enum err
person_take(struct agent *agent, const struct person *person, struct diag *diag)
{
    struct git_ref refs[] = {
        {.name = person->names->branch},
        {.name = person->names->kept},
        {.name = person->names->passed},
    };
    enum err err = git_read_refs(agent->git, refs, ARRAY_COUNT(refs), diag);
    const struct git_id *const others[] = {&refs[1].id,
                                           &refs[2].id,
                                           &agent->tip};
    bool more = false;
    if (err == ERR_OK) {
        err = has_more(agent->git,
                       &refs[0],
                       others,
                       ARRAY_COUNT(others),
                       &more,
                       diag);
    }
    if (err == ERR_OK && more && !worktree_is_old(agent->git, person->path)) {
        err = take(agent, person, &refs[0].id, git_path(agent->git), diag);
    }
    int lock = err == ERR_OK && files_is_dir(person->path)
                   ? worktree_try_lock(person->path)
                   : -1;
    if (lock >= 0) {
        err = take_checkout(agent, person, &refs[0].id, diag);
    }
    worktree_leave(&lock);
    return err;
}
