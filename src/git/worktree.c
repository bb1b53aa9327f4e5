/* SPDX-License-Identifier: MIT */
/*
 * A kill can occur between any two steps, and a session can do anything to its
 * checkout, so nothing in it is trusted: each entry replaces its repository by
 * a new one, with the index that sluice saved after the last entry, and lets
 * git reset and clean it. If that fails, the whole checkout is created again.
 */
#include "git/worktree.h"

#include "base/crash.h"
#include "base/mem.h"
#include "git/files.h"
#include "git/log.h"
#include "git/setup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LOCK_TRIES = 200, LOCK_PAUSE_US = 50000, CLEAN_WORDS = 5 };

/* The paths of one checkout. */
struct paths {
    struct strbuf mark;    /* PATH.making */
    struct strbuf index;   /* PATH+index */
    struct strbuf next;    /* PATH+git: the next private repository */
    struct strbuf git_dir; /* PATH/.git */
    struct strbuf left;    /* PATH+left: see person.h */
};

static void set_paths(struct paths *paths, const char *path)
{
    *paths = (struct paths){0};
    strbuf_addf(&paths->mark, "%s.making", path);
    strbuf_addf(&paths->index, "%s+index", path);
    strbuf_addf(&paths->next, "%s+git", path);
    strbuf_addf(&paths->git_dir, "%s/.git", path);
    strbuf_addf(&paths->left, "%s+left", path);
}

static void release_paths(struct paths *paths)
{
    strbuf_release(&paths->mark);
    strbuf_release(&paths->index);
    strbuf_release(&paths->next);
    strbuf_release(&paths->git_dir);
    strbuf_release(&paths->left);
}

/* Whether the file `name` in `dir` begins with the line `text`. */
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

/* Append git's directory of a worktree of the user's repository, which earlier
 * versions have used as checkouts; false and nothing appended: it is none. */
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

bool worktree_is_old(struct git *git, const char *path)
{
    struct strbuf admin = {0};
    bool old = add_admin_dir(git, path, &admin);
    strbuf_release(&admin);
    return old;
}

/* Remove what git knows of a worktree of an earlier version. */
static enum err forget(struct git *git, const char *path, struct diag *diag)
{
    struct strbuf admin = {0};
    enum err err = add_admin_dir(git, path, &admin)
                       ? files_remove(strbuf_text(&admin), diag)
                       : ERR_OK;
    strbuf_release(&admin);
    crash_point("worktree-forgotten");
    return err;
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

bool worktree_is_ours(struct git *git, const char *path)
{
    struct paths paths;
    struct strbuf admin = {0};
    set_paths(&paths, path);
    bool ours = files_exist(strbuf_text(&paths.index)) ||
                files_exist(strbuf_text(&paths.mark)) ||
                add_admin_dir(git, path, &admin);
    strbuf_release(&admin);
    release_paths(&paths);
    return ours;
}

/* Create an empty checkout, with its mark. */
static enum err begin(const char *path, const char *mark, struct diag *diag)
{
    enum err err = files_remove(path, diag);
    if (err != ERR_OK) {
        return err;
    }
    crash_point("worktree-cleared");
    int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return diag_set(diag, ERR_IO, "make %s: %s", mark, strerror(errno));
    }
    (void)close(fd);
    crash_point("worktree-marked");
    return files_make_dir(path, diag);
}

/* Find or create the directory; *fresh_out gets whether it is empty. */
static enum err make_or_find(struct git *git,
                             const char *path,
                             const struct paths *paths,
                             bool *fresh_out,
                             struct diag *diag)
{
    bool there = files_exist(path);
    *fresh_out = !files_is_dir(path) || is_empty_dir(path) ||
                 files_exist(strbuf_text(&paths->mark));
    if (there && !is_empty_dir(path) && !worktree_is_ours(git, path)) {
        return diag_set(
            diag,
            ERR_DENIED,
            "%s exists, but sluice did not make it: check it and move it away",
            path);
    }
    enum err err = forget(git, path, diag);
    if (err == ERR_OK && *fresh_out) {
        err = begin(path, strbuf_text(&paths->mark), diag);
    }
    return err;
}

/* Give the checkout a new repository, with sluice's index unless it is fresh.
 */
static enum err give_repo(struct git *git,
                          const struct worktree *worktree,
                          const struct paths *paths,
                          bool fresh,
                          struct diag *diag)
{
    const char *next = strbuf_text(&paths->next);
    enum err err = files_remove(next, diag);
    if (err == ERR_OK) {
        err = private_make(git, next, &worktree->repo, diag);
    }
    if (err == ERR_OK && !fresh) {
        struct strbuf index = {0};
        strbuf_addf(&index, "%s/index", next);
        err = files_copy(strbuf_text(&paths->index),
                         strbuf_text(&index),
                         0600,
                         diag);
        err = err == ERR_NOT_FOUND ? ERR_OK : err; /* git makes another */
        strbuf_release(&index);
    }
    crash_point("worktree-repo-made");
    if (err == ERR_OK) {
        err = files_remove(strbuf_text(&paths->git_dir), diag);
    }
    crash_point("worktree-repo-removed");
    if (err == ERR_OK && rename(next, strbuf_text(&paths->git_dir)) != 0) {
        err = diag_set(diag, ERR_IO, "rename %s: %s", next, strerror(errno));
    }
    crash_point("worktree-repo-given");
    return err;
}

/* Append "-e PATTERN" for each path. The arena owns the patterns. */
static void add_exceptions(const char **args,
                           size_t *count,
                           const struct checkout_paths *paths,
                           struct arena *arena)
{
    for (size_t ix = 0; ix < paths->count; ix++) {
        struct strbuf pattern = {0};
        setup_add_pattern(&pattern, paths->items[ix]);
        args[(*count)++] = "-e";
        args[(*count)++] = arena_strndup(arena, pattern.text, pattern.len);
        strbuf_release(&pattern);
    }
}

/* Remove untracked files; if the checkout is to be pristine, ignored ones, too.
 * Copied files stay: setup_enter() makes them exact. */
static enum err
clean(struct git *git, const struct worktree *worktree, struct diag *diag)
{
    const char *args[CLEAN_WORDS + 4 * CHECKOUT_PATHS_MAX] = {
        "clean",
        "--quiet",
        "-ffd",
    };
    struct arena arena = {0};
    size_t count = 3;
    if (worktree->pristine) {
        args[count++] = "-x";
        add_exceptions(args, &count, &worktree->checkout->keep, &arena);
    }
    add_exceptions(args, &count, &worktree->checkout->copy, &arena);
    struct git_call call = {.args = args, .folder = worktree->path};
    enum err err = git_call(git, &call, NULL, diag);
    arena_release(&arena);
    return err;
}

/* Keep a copy of the index for the next entry. */
static enum err save_index(const struct paths *paths, struct diag *diag)
{
    struct strbuf from = {0};
    struct strbuf next = {0};
    strbuf_addf(&from, "%s/index", strbuf_text(&paths->git_dir));
    strbuf_addf(&next, "%s+next", strbuf_text(&paths->index));
    enum err err = files_remove(strbuf_text(&next), diag);
    if (err == ERR_OK) {
        err = files_copy(strbuf_text(&from), strbuf_text(&next), 0600, diag);
    }
    if (err == ERR_OK &&
        rename(strbuf_text(&next), strbuf_text(&paths->index)) != 0) {
        err = diag_set(diag,
                       ERR_IO,
                       "rename %s: %s",
                       strbuf_text(&next),
                       strerror(errno));
    }
    strbuf_release(&from);
    strbuf_release(&next);
    return err;
}

/* Make the files equal to the commit. */
static enum err fill(struct git *git,
                     const struct worktree *worktree,
                     const struct paths *paths,
                     bool fresh,
                     struct diag *diag)
{
    static const char *const reset[] = {"reset", "--quiet", "--hard", NULL};
    struct git_call call = {.args = reset, .folder = worktree->path};
    crash_point("worktree-before-reset");
    enum err err = git_call(git, &call, NULL, diag);
    crash_point("worktree-before-clean");
    if (err == ERR_OK && !fresh) {
        err = clean(git, worktree, diag);
    }
    struct setup setup = {
        .git = git,
        .path = worktree->path,
        .options = worktree->checkout,
        .fresh = fresh,
        .clean = worktree->pristine,
    };
    if (err == ERR_OK) {
        err = setup_enter(&setup, diag);
    }
    if (err == ERR_OK) {
        err = save_index(paths, diag);
    }
    crash_point("worktree-before-unmark");
    if (err == ERR_OK && unlink(strbuf_text(&paths->mark)) != 0 &&
        errno != ENOENT) {
        err = diag_set(diag,
                       ERR_IO,
                       "remove %s: %s",
                       strbuf_text(&paths->mark),
                       strerror(errno));
    }
    return err;
}

/* Bring it to a clean checkout of the commit. The lock is held alone. */
static enum err
bring(struct git *git, const struct worktree *worktree, struct diag *diag)
{
    struct paths paths;
    set_paths(&paths, worktree->path);
    enum err err = ERR_CONFLICT;
    bool fresh = false;
    /* ERR_IO: a session can leave directories that cannot be written. */
    for (int ix = 0; ix < 2 && (err == ERR_CONFLICT || err == ERR_IO) && !fresh;
         ix++) {
        err = ERR_OK;
        if (ix > 0) {
            log_line("making the checkout again: %s", diag->text);
            err = begin(worktree->path, strbuf_text(&paths.mark), diag);
        }
        if (err == ERR_OK) {
            err = make_or_find(git, worktree->path, &paths, &fresh, diag);
        }
        if (err == ERR_OK) {
            err = give_repo(git, worktree, &paths, fresh, diag);
        }
        if (err == ERR_OK) {
            err = fill(git, worktree, &paths, fresh, diag);
        }
    }
    crash_point("worktree-ready");
    release_paths(&paths);
    return err;
}

/* Return whether a shared checkout is at the commit. */
static bool is_at(struct git *git, const struct worktree *worktree)
{
    return git_says(git,
                    worktree->path,
                    PROC_ARGS("rev-parse", "HEAD"),
                    worktree->repo.start.text);
}

/* Share it if it is at the commit; bring it there if it is not in use. */
static enum err share(struct git *git,
                      const struct worktree *worktree,
                      int lock,
                      struct diag *diag)
{
    int tries = worktree->now ? 1 : LOCK_TRIES;
    for (int ix = 0; ix < tries; ix++) {
        if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
            enum err err = bring(git, worktree, diag);
            if (err != ERR_OK) {
                return err;
            }
        }
        bool shared = worktree->now ? flock(lock, LOCK_SH | LOCK_NB) == 0
                                    : proc_lock(lock, LOCK_SH);
        if (shared && is_at(git, worktree)) {
            return ERR_OK;
        }
        (void)flock(lock, LOCK_UN);
        if (ix + 1 < tries) {
            (void)usleep(LOCK_PAUSE_US);
        }
    }
    return diag_set(diag,
                    ERR_BUSY,
                    "%s is in use with another commit",
                    worktree->path);
}

/* Open the lock file of a checkout; return -1 with errno set on failure. */
static int open_lock(const char *path)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "%s.lock", path);
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
    enum err err = files_make_above(worktree->path, diag);
    if (err != ERR_OK) {
        return err;
    }
    int lock = open_lock(worktree->path);
    if (lock >= 0 && !worktree->alone) {
        err = share(git, worktree, lock, diag);
    } else if (lock >= 0 && worktree->now &&
               flock(lock, LOCK_EX | LOCK_NB) != 0) {
        err = diag_set(diag, ERR_BUSY, "%s is in use", worktree->path);
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

int worktree_try_lock(const char *path)
{
    int lock = open_lock(path);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        (void)close(lock);
        lock = -1;
    }
    return lock;
}

enum err worktree_remove(struct git *git, const char *path, struct diag *diag)
{
    struct paths paths;
    set_paths(&paths, path);
    enum err err = forget(git, path, diag);
    if (err == ERR_OK) {
        err = files_remove(path, diag);
    }
    crash_point("worktree-removed");
    const char *const beside[] = {
        strbuf_text(&paths.next),
        strbuf_text(&paths.mark),
        strbuf_text(&paths.index),
        strbuf_text(&paths.left),
    };
    for (size_t ix = 0; err == ERR_OK && ix < ARRAY_COUNT(beside); ix++) {
        err = files_remove(beside[ix], diag);
    }
    if (err == ERR_OK) {
        setup_forget(path);
    }
    release_paths(&paths);
    return err;
}

enum err
worktree_check_elsewhere(struct git *git, const char *branch, struct diag *diag)
{
    struct strbuf list = {0};
    struct git_call call = {
        .args = PROC_ARGS("worktree", "list", "--porcelain", "-z"),
        .output = &list,
    };
    enum err err = git_call(git, &call, NULL, diag);
    const char *path = "";
    for (size_t at = 0; err == ERR_OK && at < list.len;
         at += strlen(list.text + at) + 1) {
        const char *line = list.text + at;
        if (strncmp(line, "worktree ", 9) == 0) {
            path = line + 9;
        } else if (strncmp(line, "branch ", 7) == 0 &&
                   strcmp(line + 7, branch) == 0 && files_exist(path)) {
            err = diag_set(diag,
                           ERR_DENIED,
                           "the branch %s is checked out in %s: switch that "
                           "worktree to another branch",
                           git_short_name(branch),
                           path);
        }
    }
    strbuf_release(&list);
    return err;
}
