/* SPDX-License-Identifier: MIT */
#include "git/found.h"

#include "base/crash.h"
#include "git/files.h"
#include "git/lfs.h"
#include "git/log.h"
#include "git/private.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CODE_ERROR = 128, /* git's own errors */
    TOLD_MAX = 20,    /* lines */
};

/* Read HEAD and the branch. */
static enum err read_refs(struct found *found,
                          const struct setup *where,
                          const char *branch,
                          struct diag *diag)
{
    struct strbuf text = {0};
    int code = 0;
    struct git_call call = {
        .args = PROC_ARGS("rev-parse", "HEAD", "--symbolic-full-name", "HEAD"),
        .folder = where->path,
        .output = &text,
        .codes = CODE_ERROR,
        .quiet = true,
    };
    enum err err = git_call(where->git, &call, &code, diag);
    if (err == ERR_OK && code == 0) {
        size_t cursor = 0;
        err = git_first_id(&text, &found->head, diag);
        (void)git_next_line(&text, &cursor);
        const char *name = git_next_line(&text, &cursor);
        strbuf_adds(&found->head_name, name != NULL ? name : "");
    }
    if (strcmp(strbuf_text(&found->head_name), branch) == 0) {
        found->branch = found->head;
    } else if (err == ERR_OK) {
        strbuf_clear(&text);
        call.args = PROC_ARGS("for-each-ref", "--format=%(objectname)", branch);
        call.codes = 0;
        err = git_call(where->git, &call, NULL, diag);
        if (err == ERR_OK && text.len > 0) {
            err = git_first_id(&text, &found->branch, diag);
        }
    }
    strbuf_release(&text);
    return err;
}

/* Append the object directory of the checkout. */
static void add_objects(struct strbuf *out, const struct setup *where)
{
    strbuf_addf(out, "%s/.git/objects", where->path);
}

/* Choose the tip. A session may have left the branch for another one. */
static enum err choose(struct found *found,
                       const struct setup *where,
                       const char *branch,
                       const struct git_id *start,
                       struct diag *diag)
{
    const struct git_id *from =
        git_is_set(&found->branch) ? &found->branch : start;
    found->tip = git_is_set(&found->branch) ? found->branch : found->head;
    if (!git_is_set(&found->head) ||
        strcmp(found->head.text, from->text) == 0) {
        return ERR_OK;
    }
    struct strbuf objects = {0};
    int code = 1;
    add_objects(&objects, where);
    struct git_call call = {
        .args = PROC_ARGS("merge-base",
                          "--is-ancestor",
                          from->text,
                          found->head.text),
        .objects = strbuf_text(&objects),
        .codes = 1,
    };
    enum err err = git_call(where->git, &call, &code, diag);
    found->tip = code == 0 ? found->head : found->branch;
    if (err == ERR_OK && code == 0) {
        log_line("HEAD (%s) continues %s: its commits are taken",
                 strbuf_text(&found->head_name),
                 git_short_name(branch));
    }
    strbuf_release(&objects);
    return err;
}

enum err found_read(struct found *found,
                    const struct setup *where,
                    const char *branch,
                    const struct git_id *start,
                    struct diag *diag)
{
    *found = (struct found){0};
    if (!private_is_whole(where->path)) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "its repository %s/.git was removed or replaced",
                        where->path);
    }
    enum err err = read_refs(found, where, branch, diag);
    return err == ERR_OK ? choose(found, where, branch, start, diag) : err;
}

void found_release(struct found *found)
{
    strbuf_release(&found->head_name);
    *found = (struct found){0};
}

size_t found_count_changes(const struct setup *where, struct strbuf *list)
{
    /* Do not query submodules: they have a configuration of their own. */
    struct git_call call = {
        .args = PROC_ARGS("status", "--porcelain", "--ignore-submodules=dirty"),
        .folder = where->path,
        .output = list,
        .quiet = true,
    };
    size_t count = 0;
    if (git_call(where->git, &call, NULL, NULL) == ERR_OK) {
        for (size_t ix = 0; ix < list->len; ix++) {
            count += list->text[ix] == '\n' ? 1 : 0;
        }
    }
    return count;
}

/* Create a git directory for the files of the checkout. */
static enum err make_dir(const struct setup *where,
                         const struct git_call *call,
                         const struct git_id *tip,
                         struct diag *diag)
{
    struct private_options repo = {.start = *tip, .own = true};
    enum err err = files_remove(call->dir, diag);
    if (err == ERR_OK) {
        err = private_make(where->git, call->dir, &repo, diag);
    }
    if (err == ERR_OK) {
        err = setup_exclude(where, call->dir, diag);
    }
    return err;
}

/* Stage what is in the checkout. Its index knows which ignored files were
 * added; if there is none, or git cannot read a copy of it (it can have a part
 * in another file), take that of the tip. */
static enum err stage(const struct setup *where,
                      const struct git_call *call,
                      const struct git_id *tip,
                      bool *changed_out,
                      struct diag *diag)
{
    enum err err = private_copy_index(where->path, call->dir, diag);
    if (err == ERR_OK) {
        err = private_stage(where->git, call, changed_out, diag);
    }
    if (err == ERR_NOT_FOUND || err == ERR_CONFLICT) {
        struct git_call read = *call;
        read.args = PROC_ARGS("read-tree", tip->text);
        err = git_call(where->git, &read, NULL, diag);
        if (err == ERR_OK) {
            err = private_stage(where->git, call, changed_out, diag);
        }
    }
    return err;
}

/* Read the id that a call prints. */
static enum err ask(struct git *git,
                    struct git_call *call,
                    struct git_id *out,
                    struct diag *diag)
{
    struct strbuf text = {0};
    call->output = &text;
    enum err err = git_call(git, call, NULL, diag);
    if (err == ERR_OK) {
        err = git_first_id(&text, out, diag);
    }
    call->output = NULL;
    strbuf_release(&text);
    return err;
}

enum err found_snapshot(const struct setup *where,
                        const struct git_id *tip,
                        const char *message,
                        struct git_id *tree_out,
                        struct git_id *commit_out,
                        struct diag *diag)
{
    struct strbuf dir = {0};
    struct strbuf objects = {0};
    strbuf_addf(&dir, "%s+end", where->path);
    add_objects(&objects, where);
    struct git_call call = {
        .folder = where->path,
        .dir = strbuf_text(&dir),
        .objects = strbuf_text(&objects),
    };
    bool changed = false;
    *tree_out = (struct git_id){0};
    enum err err = make_dir(where, &call, tip, diag);
    if (err == ERR_OK) {
        err = stage(where, &call, tip, &changed, diag);
    }
    if (err == ERR_OK && changed) {
        call.args = PROC_ARGS("write-tree");
        err = ask(where->git, &call, tree_out, diag);
    }
    if (err == ERR_OK && changed && message != NULL) {
        call.args = PROC_ARGS("commit-tree",
                              "-p",
                              tip->text,
                              "-m",
                              message,
                              tree_out->text);
        err = ask(where->git, &call, commit_out, diag);
    }
    if (err == ERR_OK && changed && message != NULL) {
        err = lfs_carry(where, strbuf_text(&dir), diag);
    }
    crash_point("found-snapshot");
    if (err == ERR_OK) {
        err = files_remove(strbuf_text(&dir), diag);
    }
    strbuf_release(&dir);
    strbuf_release(&objects);
    return err;
}

/* Append a line for each line "ID REF" of `list`: "ID missing" if the user's
 * repository does not have the object. False: git failed. */
static bool find_known(const struct setup *where,
                       const struct strbuf *list,
                       struct strbuf *out)
{
    struct strbuf ids = {0};
    for (size_t at = 0; at < list->len;
         at += strcspn(list->text + at, "\n") + 1) {
        const char *line = list->text + at;
        strbuf_addf(&ids, "%.*s\n", (int)strcspn(line, " "), line);
    }
    struct git_call call = {
        .args = PROC_ARGS("cat-file", "--batch-check"),
        .input = strbuf_text(&ids),
        .output = out,
        .quiet = true,
    };
    bool good = git_call(where->git, &call, NULL, NULL) == ERR_OK;
    strbuf_release(&ids);
    return good;
}

/* Append the refs that have commits of their own. */
static void
tell_refs(const struct setup *where, const char *branch, struct strbuf *out)
{
    struct strbuf list = {0};
    struct strbuf known = {0};
    struct git_call call = {
        .args = PROC_ARGS("for-each-ref", "--format=%(objectname) %(refname)"),
        .folder = where->path,
        .output = &list,
        .quiet = true,
    };
    size_t count = 0;
    size_t cursor = 0;
    size_t known_cursor = 0;
    const char *line;
    const char *answer;
    bool good = git_call(where->git, &call, NULL, NULL) == ERR_OK &&
                find_known(where, &list, &known);
    while (good && count < TOLD_MAX &&
           (line = git_next_line(&list, &cursor)) != NULL &&
           (answer = git_next_line(&known, &known_cursor)) != NULL) {
        const char *name = strchr(line, ' ');
        if (name != NULL && strcmp(name + 1, branch) != 0 &&
            strstr(answer, " missing") != NULL) {
            strbuf_addf(out, "%s with commits of its own\n", name + 1);
            count++;
        }
    }
    strbuf_release(&list);
    strbuf_release(&known);
}

/* Append the names of the remotes, one per line; `folder` as in a call. */
static void
list_remotes(const struct setup *where, const char *folder, struct strbuf *out)
{
    struct git_call call = {
        .args = PROC_ARGS("remote"),
        .folder = folder,
        .output = out,
        .quiet = true,
    };
    if (git_call(where->git, &call, NULL, NULL) != ERR_OK) {
        strbuf_clear(out);
    }
}

/* Return whether a list has this line. */
static bool has_line(const struct strbuf *list, const char *line)
{
    size_t len = strlen(line);
    const char *at = strbuf_text(list);
    while (*at != '\0') {
        size_t end = strcspn(at, "\n");
        if (end == len && memcmp(at, line, len) == 0) {
            return true;
        }
        at += end + (at[end] == '\n' ? 1 : 0);
    }
    return false;
}

/* Append the remotes that the user does not have. */
static void tell_remotes(const struct setup *where, struct strbuf *out)
{
    struct strbuf own = {0};
    struct strbuf user = {0};
    list_remotes(where, where->path, &own);
    if (own.len > 0) {
        list_remotes(where, NULL, &user);
    }
    size_t cursor = 0;
    const char *line;
    size_t count = 0;
    while (count < TOLD_MAX && (line = git_next_line(&own, &cursor)) != NULL) {
        if (!has_line(&user, line)) {
            strbuf_addf(out, "remote %s\n", line);
            count++;
        }
    }
    strbuf_release(&own);
    strbuf_release(&user);
}

/* Append the hooks that the user does not have. */
static void tell_hooks(const struct setup *where, struct strbuf *out)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/.git/hooks", where->path);
    DIR *list = opendir(strbuf_text(&path));
    const struct dirent *entry;
    size_t count = 0;
    while (list != NULL && count < TOLD_MAX &&
           (entry = readdir(list)) != NULL) {
        const char *name = entry->d_name;
        strbuf_clear(&path);
        strbuf_addf(&path, "%s/hooks/%s", git_common_dir(where->git), name);
        if (name[0] != '.' && strstr(name, ".sample") == NULL &&
            faccessat(dirfd(list), name, X_OK, 0) == 0 &&
            access(strbuf_text(&path), F_OK) != 0) {
            strbuf_addf(out, "hook %s\n", name);
            count++;
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    strbuf_release(&path);
}

void found_tell(const struct setup *where,
                const char *branch,
                struct strbuf *out)
{
    tell_refs(where, branch, out);
    tell_remotes(where, out);
    tell_hooks(where, out);
}
