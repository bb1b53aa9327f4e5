/* SPDX-License-Identifier: MIT */
/*
 * A kill can occur between any two steps of creating a worktree, so an existing
 * worktree is not trusted: if it has the mark of an unfinished worktree, it is
 * removed and created again; otherwise the locks of killed processes are
 * removed, HEAD is set, and git resets and cleans it.
 */
#include "git/worktree.h"

#include "base/crash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALK_DESCRIPTORS = 16, LOCK_TRIES = 200, LOCK_PAUSE_US = 50000 };

static void add_beside(struct strbuf *out, const char *path, const char *end)
{
    strbuf_addf(out, "%s.%s", path, end);
}

/* Create a directory, unless it exists. The path of the store has no links (see
 * main.c); a link below it would lead out of the store. */
static enum err make_dir(const char *path, struct diag *diag)
{
    struct stat status;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return diag_set(diag,
                        errno == ENOSPC ? ERR_UNAVAILABLE : ERR_IO,
                        "make %s: %s",
                        path,
                        strerror(errno));
    }
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
        return diag_set(diag,
                        ERR_DENIED,
                        "%s is a symbolic link: remove it",
                        path);
    }
    return ERR_OK;
}

/* Create the directories above a path. */
static enum err make_above(const char *path, struct diag *diag)
{
    struct strbuf dir = {0};
    strbuf_adds(&dir, path);
    enum err err = ERR_OK;
    for (size_t ix = 1; err == ERR_OK && ix < dir.len; ix++) {
        if (dir.text[ix] == '/') {
            dir.text[ix] = '\0';
            err = make_dir(dir.text, diag);
            dir.text[ix] = '/';
        }
    }
    strbuf_release(&dir);
    return err;
}

static int remove_one(const char *path,
                      const struct stat *status,
                      int type,
                      struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

/* Remove a directory tree; do not follow links. */
static enum err remove_all(const char *path, struct diag *diag)
{
    if (nftw(path, remove_one, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0 ||
        errno == ENOENT) {
        return ERR_OK;
    }
    return diag_set(diag, ERR_IO, "remove %s: %s", path, strerror(errno));
}

/* Whether the file `name` in `dir` contains the line `text`. */
static bool has_line(const char *dir, const char *name, const char *text)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", dir, name);
    FILE *file = fopen(strbuf_text(&path), "re");
    strbuf_release(&path);
    if (file == NULL) {
        return false;
    }
    char line[PATH_MAX + 16] = "";
    bool read = fgets(line, sizeof(line), file) != NULL;
    (void)fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return read && strcmp(line, text) == 0;
}

/* Append git's administrative directory of the worktree; false and nothing
 * appended: git does not know the worktree. */
static bool add_admin_dir(struct git *git, const char *path, struct strbuf *out)
{
    struct strbuf dir = {0};
    struct strbuf link = {0};
    strbuf_addf(&dir, "%s/worktrees", git_common_dir(git));
    strbuf_addf(&link, "%s/.git", path);
    DIR *list = opendir(strbuf_text(&dir));
    bool found = false;
    const struct dirent *entry;
    while (list != NULL && !found && (entry = readdir(list)) != NULL) {
        struct strbuf one = {0};
        strbuf_addf(&one, "%s/%s", strbuf_text(&dir), entry->d_name);
        found = entry->d_name[0] != '.' && entry->d_type != DT_LNK &&
                has_line(strbuf_text(&one), "gitdir", strbuf_text(&link));
        if (found) {
            strbuf_adds(out, strbuf_text(&one));
        }
        strbuf_release(&one);
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    strbuf_release(&dir);
    strbuf_release(&link);
    return found;
}

static bool is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static bool is_empty_dir(const char *path)
{
    DIR *list = opendir(path);
    if (list == NULL) {
        return false;
    }
    int count = 0;
    while (readdir(list) != NULL) {
        count++;
    }
    (void)closedir(list);
    return count <= 2;
}

/* Return whether git, called in the directory, uses this worktree. */
static bool is_whole(const char *path, const char *admin)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "gitdir: %s", admin);
    bool whole = has_line(path, ".git", strbuf_text(&text)) &&
                 has_line(admin, "commondir", "../..");
    strbuf_release(&text);
    return whole;
}

/*
 * Git reads the data of all worktrees, and fails on a worktree that another git
 * is registering. So registering takes LOCK_EX, and reading LOCK_SH. Return -1
 * if the lock fails; the race then remains.
 */
static int lock_list(struct git *git, int how)
{
    return git_lock(git, "sluice-worktrees", how);
}

/* Remove what is left of an unfinished worktree, or one without directory. */
static enum err clear_away(struct git *git,
                           const char *path,
                           const struct strbuf *admin,
                           struct diag *diag)
{
    enum err err = remove_all(path, diag);
    if (err == ERR_OK && admin->len > 0) {
        int list = lock_list(git, LOCK_EX);
        err = remove_all(strbuf_text(admin), diag);
        worktree_leave(&list);
    }
    crash_point("worktree-cleared");
    return err;
}

static enum err add_worktree(struct git *git,
                             const struct worktree *worktree,
                             const char *mark,
                             struct diag *diag)
{
    int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return diag_set(diag, ERR_IO, "make %s: %s", mark, strerror(errno));
    }
    (void)close(fd);
    crash_point("worktree-marked");
    struct git_call call = {
        .args = PROC_ARGS("worktree",
                          "add",
                          "--quiet",
                          "--detach",
                          "--no-checkout",
                          "--",
                          worktree->path,
                          worktree->start.text),
    };
    int list = lock_list(git, LOCK_EX);
    enum err err = git_call(git, &call, NULL, diag);
    worktree_leave(&list);
    crash_point("worktree-added");
    return err;
}

/* Find or create the worktree; *admin gets git's directory for it. */
static enum err make_or_find(struct git *git,
                             const struct worktree *worktree,
                             struct strbuf *admin,
                             struct diag *diag)
{
    struct strbuf mark = {0};
    add_beside(&mark, worktree->path, "making");
    bool known = add_admin_dir(git, worktree->path, admin);
    bool half = is_there(strbuf_text(&mark));
    bool there = is_there(worktree->path);
    enum err err = ERR_OK;
    if (known && there && !half && is_whole(worktree->path, admin->text)) {
        strbuf_release(&mark);
        return ERR_OK;
    }
    if (half || !there || is_empty_dir(worktree->path)) {
        err = clear_away(git, worktree->path, admin, diag);
    } else {
        err = diag_set(
            diag,
            ERR_DENIED,
            "%s exists, but is not a worktree of %s: check it and move it away",
            worktree->path,
            git_path(git));
    }
    strbuf_clear(admin);
    if (err == ERR_OK) {
        err = add_worktree(git, worktree, strbuf_text(&mark), diag);
    }
    if (err == ERR_OK && !add_admin_dir(git, worktree->path, admin)) {
        err = diag_set(diag,
                       ERR_IO,
                       "git created no worktree at %s",
                       worktree->path);
    }
    strbuf_release(&mark);
    return err;
}

/* Remove git's own locks in a directory: of the index, HEAD, ORIG_HEAD, ... */
static void remove_locks(const char *admin)
{
    DIR *list = opendir(admin);
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        size_t len = strlen(entry->d_name);
        if (len > 5 && strcmp(entry->d_name + len - 5, ".lock") == 0) {
            (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

/* Remove files of a killed process from git's directory for the worktree. The
 * caller holds the lock, so no other process uses them. */
static void remove_leftovers(const char *admin)
{
    static const char *const names[] = {
        "AUTO_MERGE",
        "BISECT_LOG",
        "CHERRY_PICK_HEAD",
        "MERGE_HEAD",
        "MERGE_MODE",
        "MERGE_MSG",
        "REBASE_HEAD",
        "REVERT_HEAD",
        "rebase-apply",
        "rebase-merge",
        "sequencer",
    };
    struct strbuf path = {0};
    remove_locks(admin);
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        strbuf_clear(&path);
        strbuf_addf(&path, "%s/%s", admin, names[ix]);
        (void)!remove_all(strbuf_text(&path), NULL);
    }
    strbuf_release(&path);
}

enum err worktree_check_elsewhere(struct git *git,
                                  const struct worktree *worktree,
                                  struct diag *diag)
{
    struct strbuf list = {0};
    struct git_call call = {
        .args = PROC_ARGS("worktree", "list", "--porcelain", "-z"),
        .output = &list,
    };
    int lock = lock_list(git, LOCK_SH);
    enum err err = git_call(git, &call, NULL, diag);
    worktree_leave(&lock);
    const char *path = "";
    for (size_t at = 0; err == ERR_OK && at < list.len;
         at += strlen(list.text + at) + 1) {
        const char *line = list.text + at;
        if (strncmp(line, "worktree ", 9) == 0) {
            path = line + 9;
        } else if (strncmp(line, "branch ", 7) == 0 &&
                   strcmp(line + 7, worktree->branch) == 0 &&
                   strcmp(path, worktree->path) != 0 && is_there(path)) {
            err = diag_set(diag,
                           ERR_DENIED,
                           "the branch %s is checked out in %s: switch that "
                           "worktree to another branch",
                           git_short_name(worktree->branch),
                           path);
        }
    }
    strbuf_release(&list);
    return err;
}

/* Set the branch and HEAD. */
static enum err
set_head(struct git *git, const struct worktree *worktree, struct diag *diag)
{
    const char *const attach[] = {"symbolic-ref",
                                  "HEAD",
                                  worktree->branch,
                                  NULL};
    const char *const detach[] = {"update-ref",
                                  "--no-deref",
                                  "HEAD",
                                  worktree->start.text,
                                  NULL};
    if (worktree->branch != NULL) {
        enum err err = worktree_check_elsewhere(git, worktree, diag);
        git_unlock_ref(git, worktree->branch); /* only its worktree uses it */
        struct git_ref_change change = {
            .ref = worktree->branch,
            .to = worktree->start.text,
        };
        if (err == ERR_OK) {
            err = git_change_refs(git, &change, 1, "sluice: start", diag);
        }
        if (err != ERR_OK) {
            return err;
        }
        crash_point("worktree-branch-set");
    }
    struct git_call call = {
        .args = worktree->branch != NULL ? attach : detach,
        .folder = worktree->path,
    };
    return git_call(git, &call, NULL, diag);
}

/* Bring it to a clean checkout of the commit. The lock is held alone. */
static enum err
bring(struct git *git, const struct worktree *worktree, struct diag *diag)
{
    static const char *const reset[] = {"reset", "--quiet", "--hard", NULL};
    static const char *const clean[] = {"clean", "--quiet", "-ffd", NULL};
    struct strbuf admin = {0};
    enum err err = make_or_find(git, worktree, &admin, diag);
    if (err == ERR_OK) {
        remove_leftovers(strbuf_text(&admin));
        err = set_head(git, worktree, diag);
    }
    strbuf_release(&admin);
    struct git_call call = {.args = reset, .folder = worktree->path};
    if (err == ERR_OK) {
        crash_point("worktree-before-reset");
        err = git_call(git, &call, NULL, diag);
    }
    if (err == ERR_OK) {
        crash_point("worktree-before-clean");
        call.args = clean;
        err = git_call(git, &call, NULL, diag);
    }
    if (err == ERR_OK) {
        struct strbuf mark = {0};
        add_beside(&mark, worktree->path, "making");
        crash_point("worktree-before-unmark");
        (void)unlink(strbuf_text(&mark));
        strbuf_release(&mark);
    }
    crash_point("worktree-ready");
    return err;
}

/* Return whether a shared worktree is at the commit. */
static bool is_at(struct git *git, const struct worktree *worktree)
{
    return git_says(git,
                    worktree->path,
                    PROC_ARGS("rev-parse", "HEAD"),
                    worktree->start.text);
}

/* Share it if it is at the commit; bring it there if it is not in use. */
static enum err share(struct git *git,
                      const struct worktree *worktree,
                      int lock,
                      struct diag *diag)
{
    for (int ix = 0; ix < LOCK_TRIES; ix++) {
        if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
            enum err err = bring(git, worktree, diag);
            if (err != ERR_OK) {
                return err;
            }
        }
        if (proc_lock(lock, LOCK_SH) && is_at(git, worktree)) {
            return ERR_OK;
        }
        (void)flock(lock, LOCK_UN);
        (void)usleep(LOCK_PAUSE_US);
    }
    return diag_set(diag,
                    ERR_BUSY,
                    "%s is in use with another commit",
                    worktree->path);
}

/* Open the lock file of a worktree; return -1 with errno set on failure. */
static int open_lock(const char *path)
{
    struct strbuf name = {0};
    add_beside(&name, path, "lock");
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int lock = open(strbuf_text(&name), flags, 0600);
    strbuf_release(&name);
    return lock;
}

enum err worktree_enter(struct git *git,
                        const struct worktree *worktree,
                        int *lock_out,
                        struct diag *diag)
{
    *lock_out = -1;
    enum err err = make_above(worktree->path, diag);
    if (err != ERR_OK) {
        return err;
    }
    int lock = open_lock(worktree->path);
    if (lock >= 0 && !worktree->alone) {
        err = share(git, worktree, lock, diag);
    } else if (lock >= 0 && proc_lock(lock, LOCK_EX)) {
        err = bring(git, worktree, diag);
    } else {
        err = diag_set(diag,
                       ERR_IO,
                       "%s %s.lock: %s",
                       lock < 0 ? "open" : "lock",
                       worktree->path,
                       strerror(errno));
    }
    if (err != ERR_OK && lock >= 0) {
        (void)close(lock);
    } else {
        *lock_out = lock;
    }
    return err;
}

void worktree_leave(int *lock)
{
    if (*lock >= 0) {
        (void)close(*lock);
        *lock = -1;
    }
}

void worktree_unlock(struct git *git, const char *path)
{
    struct strbuf admin = {0};
    if (add_admin_dir(git, path, &admin)) {
        remove_locks(strbuf_text(&admin));
    }
    strbuf_release(&admin);
}

int worktree_try_lock(const char *path)
{
    int lock = open_lock(path);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        (void)close(lock);
        lock = -1;
    }
    return lock;
}

enum worktree_kind worktree_look(struct git *git, const char *path)
{
    struct strbuf admin = {0};
    enum worktree_kind kind = WORKTREE_FOREIGN;
    if (add_admin_dir(git, path, &admin) && is_whole(path, admin.text)) {
        strbuf_adds(&admin, "/locked");
        kind = is_there(admin.text) ? WORKTREE_LOCKED : WORKTREE_WHOLE;
    }
    strbuf_release(&admin);
    return kind;
}

enum err worktree_remove(struct git *git, const char *path, struct diag *diag)
{
    struct git_call call = {
        .args = PROC_ARGS("worktree", "remove", "--", path),
        .quiet = true,
    };
    int list = lock_list(git, LOCK_EX);
    enum err err = git_call(git, &call, NULL, diag);
    worktree_leave(&list);
    return err;
}
