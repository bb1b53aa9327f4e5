/* SPDX-License-Identifier: MIT */
/*
 * Directories are opened component by component with O_NOFOLLOW, and files
 * relative to their open directory, so that a link that a session plants leads
 * nowhere. A list grows while it is walked: no recursion.
 */
#include "git/copy.h"

#include "base/crash.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/strmap.h"
#include "git/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    ENTRIES_MAX = 1000000,
    CHUNK_BYTES = 65536,
    WALK_DESCRIPTORS = 16,
    MODE_BITS = 0777,
    DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
};

/* Open a component of a path; with `create`, create it if it is missing. */
static int open_part(int at, const char *name, bool create)
{
    int fd = openat(at, name, DIR_FLAGS);
    if (fd < 0 && errno == ENOENT && create &&
        (mkdirat(at, name, 0700) == 0 || errno == EEXIST)) {
        fd = openat(at, name, DIR_FLAGS);
    }
    return fd;
}

int copy_open_dir(const char *root, const char *path, bool create)
{
    int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *part = path;
    while (at >= 0 && *part != '\0') {
        char name[NAME_MAX + 1];
        size_t len = strcspn(part, "/");
        if (len >= sizeof(name)) {
            (void)close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, part, len);
        name[len] = '\0';
        part += len + (part[len] == '/' ? 1 : 0);
        int next = open_part(at, name, create);
        int cause = errno;
        (void)close(at);
        errno = cause;
        at = next;
    }
    return at;
}

/* Return the last component of a path; *dir gets the part before it. */
static const char *split(const char *path, struct strbuf *dir)
{
    const char *last = strrchr(path, '/');
    strbuf_clear(dir);
    if (last != NULL) {
        strbuf_add(dir, path, (size_t)(last - path));
    }
    return last != NULL ? last + 1 : path;
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

enum err copy_remove(const char *path, struct diag *diag)
{
    if (nftw(path, remove_one, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0 ||
        errno == ENOENT) {
        return ERR_OK;
    }
    return diag_set(diag, ERR_IO, "remove %s: %s", path, strerror(errno));
}

/* --- the list ------------------------------------------------------------- */

/* Return whether a link at `path` leads out of the tree, or into ".git". */
static bool leads_out(const char *path, const char *target)
{
    long depth = 0;
    for (const char *at = path; *at != '\0'; at++) {
        depth += *at == '/' ? 1 : 0;
    }
    bool out = target[0] == '/' || target[0] == '\0';
    while (!out && *target != '\0') {
        size_t len = strcspn(target, "/");
        bool up = len == 2 && strncmp(target, "..", 2) == 0;
        bool stays = len == 0 || (len == 1 && target[0] == '.');
        depth += up ? -1 : (stays ? 0 : 1);
        out = depth < 0 || (len == 4 && strncasecmp(target, ".git", 4) == 0);
        target += len + (target[len] == '/' ? 1 : 0);
    }
    return out;
}

/* Return why an entry cannot be copied, or NULL. */
static const char *
fault_of(int dir, const char *name, const char *path, const struct stat *status)
{
    char target[PATH_MAX];
    if (strcasecmp(name, ".git") == 0) {
        return "it is the directory of a git repository";
    }
    if (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode)) {
        return NULL;
    }
    if (!S_ISLNK(status->st_mode)) {
        return "it is no file, directory or link";
    }
    ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);
    if (len < 0 || (size_t)len >= sizeof(target) - 1) {
        return "the link cannot be read";
    }
    target[len] = '\0';
    return leads_out(path, target) ? "it is a link out of the repository"
                                   : NULL;
}

static enum err append(struct copy_list *list,
                       int dir,
                       const char *name,
                       const char *path,
                       const char **fault_out,
                       struct diag *diag)
{
    struct stat status;
    *fault_out = NULL;
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? diag_set(diag,
                                          ERR_NOT_FOUND,
                                          "%s: it does not exist",
                                          path)
                               : diag_set(diag,
                                          ERR_IO,
                                          "read %s: %s",
                                          path,
                                          strerror(errno));
    }
    *fault_out = fault_of(dir, name, path, &status);
    if (*fault_out != NULL) {
        return ERR_OK;
    }
    if (list->count >= ENTRIES_MAX) {
        return diag_set(diag,
                        ERR_LIMIT,
                        "more than %d files to copy",
                        ENTRIES_MAX);
    }
    MEM_GROW(list->entries, list->count, list->capacity);
    list->entries[list->count++] = (struct copy_entry){
        .path = arena_strndup(&list->arena, path, strlen(path)),
        .status = status,
    };
    return ERR_OK;
}

/* Append the content of the directory at `ix`. */
static enum err read_dir(struct copy_list *list,
                         const char *from,
                         uint32_t ix,
                         struct diag *diag)
{
    const char *path = list->entries[ix].path;
    int fd = copy_open_dir(from, path, false);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        log_line("not copied: %s: %s", path, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return ERR_OK;
    }
    enum err err = ERR_OK;
    struct strbuf name = {0};
    const struct dirent *entry;
    while (err == ERR_OK && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        const char *fault;
        strbuf_clear(&name);
        strbuf_addf(&name, "%s/%s", path, entry->d_name);
        err = append(list, dirfd(dir), entry->d_name, name.text, &fault, diag);
        err = err == ERR_NOT_FOUND ? ERR_OK : err; /* removed meanwhile */
        if (err == ERR_OK && fault != NULL) {
            log_line("not copied: %s: %s", name.text, fault);
        }
    }
    strbuf_release(&name);
    (void)closedir(dir);
    return err;
}

enum err copy_list_path(struct copy_list *list,
                        const char *from,
                        const char *path,
                        struct diag *diag)
{
    struct strbuf above = {0};
    const char *name = split(path, &above);
    const char *fault = NULL;
    enum err err = ERR_OK;
    int dir = copy_open_dir(from, strbuf_text(&above), false);
    if (dir < 0) {
        bool missing = errno == ENOENT;
        err = diag_set(diag,
                       missing ? ERR_NOT_FOUND : ERR_DENIED,
                       "%s: %s",
                       path,
                       missing ? "it does not exist" : strerror(errno));
    } else {
        err = append(list, dir, name, path, &fault, diag);
        (void)close(dir);
    }
    if (err == ERR_OK && fault != NULL) {
        err = diag_set(diag, ERR_DENIED, "%s: %s", path, fault);
    }
    strbuf_release(&above);
    for (uint32_t ix = 0; err == ERR_OK && ix < list->count; ix++) {
        if (S_ISDIR(list->entries[ix].status.st_mode)) {
            err = read_dir(list, from, ix, diag);
        }
    }
    return err;
}

void copy_list_release(struct copy_list *list)
{
    mem_free(list->entries);
    arena_release(&list->arena);
    *list = (struct copy_list){0};
}

/* --- the copies ----------------------------------------------------------- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Return whether the file is there already. */
static bool is_copied(int dir, const char *name, const struct copy_entry *entry)
{
    struct stat there;
    return fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(there.st_mode) && there.st_nlink == 1 &&
           there.st_size == entry->status.st_size &&
           ((there.st_mode ^ entry->status.st_mode) & MODE_BITS) == 0 &&
           same_time(&there.st_mtim, &entry->status.st_mtim);
}

/* Remove what is at the place of an entry, if it is of another kind. */
static enum err make_way(const struct copy_trees *trees,
                         int dir,
                         const char *name,
                         const struct copy_entry *entry,
                         struct diag *diag)
{
    struct stat there;
    if (fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return ERR_OK;
    }
    bool was_dir = S_ISDIR(there.st_mode);
    bool is_dir = S_ISDIR(entry->status.st_mode);
    if (was_dir && is_dir) {
        return ERR_OK;
    }
    if (!was_dir) {
        (void)unlinkat(dir, name, 0);
        return ERR_OK;
    }
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", trees->to, entry->path);
    enum err err = copy_remove(strbuf_text(&path), diag);
    strbuf_release(&path);
    return err;
}

/* Write all bytes of one file to another; false with errno on failure. */
static bool pour(int from, int to)
{
    char *chunk = mem_zalloc(CHUNK_BYTES, 1);
    ssize_t got;
    bool good = true;
    while (good && (got = read(from, chunk, CHUNK_BYTES)) != 0) {
        if (got < 0) {
            good = errno == EINTR;
            continue;
        }
        for (ssize_t at = 0; good && at < got;) {
            ssize_t put = write(to, chunk + at, (size_t)(got - at));
            good = put >= 0 || errno == EINTR;
            at += put > 0 ? put : 0;
        }
    }
    mem_free(chunk);
    return good;
}

/* Open a plain file to read; -1: it is none. */
static int open_plain(int dir, const char *name, struct stat *status)
{
    /* It may have become a FIFO meanwhile: do not wait for its writer. */
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(dir, name, flags);
    if (fd >= 0 && (fstat(fd, status) != 0 || !S_ISREG(status->st_mode))) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Copy an open file to the new file `to`, with its times and mode. */
static enum err fill_file(int from,
                          const struct stat *status,
                          const char *to,
                          struct diag *diag)
{
    (void)unlink(to);
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(to, flags, 0600);
    struct timespec times[2] = {status->st_atim, status->st_mtim};
    crash_point("copy-before-file");
    enum err err = ERR_OK;
    if (fd < 0 || !pour(from, fd) ||
        fchmod(fd, status->st_mode & MODE_BITS) != 0 ||
        futimens(fd, times) != 0) {
        err = diag_set(diag,
                       errno == ENOSPC ? ERR_UNAVAILABLE : ERR_IO,
                       "write %s: %s",
                       to,
                       strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return err;
}

enum err copy_one_file(const char *dir,
                       const char *name,
                       const char *to,
                       struct diag *diag)
{
    struct stat status;
    int at = copy_open_dir(dir, "", false);
    int from = at >= 0 ? open_plain(at, name, &status) : -1;
    enum err err =
        from >= 0
            ? fill_file(from, &status, to, diag)
            : diag_set(diag, ERR_NOT_FOUND, "%s/%s is no file", dir, name);
    if (at >= 0) {
        (void)close(at);
    }
    if (from >= 0) {
        (void)close(from);
    }
    return err;
}

/* Copy a file through the temporary one. */
static enum err copy_file(const struct copy_trees *trees,
                          int from_dir,
                          int to_dir,
                          const char *name,
                          const struct copy_entry *entry,
                          struct diag *diag)
{
    if (is_copied(to_dir, name, entry)) {
        return ERR_OK;
    }
    struct stat status;
    int from = open_plain(from_dir, name, &status);
    if (from < 0) {
        log_line("not copied: %s: it cannot be read", entry->path);
        return ERR_OK;
    }
    enum err err = fill_file(from, &status, trees->temp, diag);
    (void)close(from);
    if (err == ERR_OK) {
        err = make_way(trees, to_dir, name, entry, diag);
    }
    crash_point("copy-before-rename");
    if (err == ERR_OK && renameat(AT_FDCWD, trees->temp, to_dir, name) != 0) {
        err =
            diag_set(diag, ERR_IO, "copy %s: %s", entry->path, strerror(errno));
    }
    return err;
}

static enum err copy_link(const struct copy_trees *trees,
                          int from_dir,
                          int to_dir,
                          const char *name,
                          const struct copy_entry *entry,
                          struct diag *diag)
{
    char target[PATH_MAX] = "";
    char there[PATH_MAX] = "";
    ssize_t len = readlinkat(from_dir, name, target, sizeof(target) - 1);
    ssize_t old = readlinkat(to_dir, name, there, sizeof(there) - 1);
    if (len < 0 || leads_out(entry->path, target)) {
        log_line("not copied: %s: it has changed", entry->path);
        return ERR_OK;
    }
    if (old == len && memcmp(target, there, (size_t)len) == 0) {
        return ERR_OK;
    }
    enum err err = make_way(trees, to_dir, name, entry, diag);
    if (err == ERR_OK && symlinkat(target, to_dir, name) != 0) {
        err =
            diag_set(diag, ERR_IO, "copy %s: %s", entry->path, strerror(errno));
    }
    return err;
}

static enum err copy_dir(const struct copy_trees *trees,
                         int to_dir,
                         const char *name,
                         const struct copy_entry *entry,
                         struct diag *diag)
{
    mode_t mode = (entry->status.st_mode & MODE_BITS) | 0700;
    enum err err = make_way(trees, to_dir, name, entry, diag);
    if (err == ERR_OK &&
        ((mkdirat(to_dir, name, mode) != 0 && errno != EEXIST) ||
         fchmodat(to_dir, name, mode, 0) != 0)) {
        err = diag_set(diag,
                       errno == ENOSPC ? ERR_UNAVAILABLE : ERR_IO,
                       "make %s: %s",
                       entry->path,
                       strerror(errno));
    }
    return err;
}

/* Copy one entry. Its directory exists in both trees, unless it changed. */
static enum err copy_one(const struct copy_trees *trees,
                         const struct copy_entry *entry,
                         bool first,
                         struct diag *diag)
{
    struct strbuf above = {0};
    const char *name = split(entry->path, &above);
    int from = copy_open_dir(trees->from, strbuf_text(&above), false);
    int to = copy_open_dir(trees->to, strbuf_text(&above), first);
    enum err err = ERR_OK;
    if (from < 0) {
        log_line("not copied: %s: it has changed", entry->path);
    } else if (to < 0) {
        err = diag_set(diag,
                       ERR_DENIED,
                       "%s: %s is no directory in the checkout",
                       entry->path,
                       strbuf_text(&above));
    } else if (S_ISDIR(entry->status.st_mode)) {
        err = copy_dir(trees, to, name, entry, diag);
    } else if (S_ISLNK(entry->status.st_mode)) {
        err = copy_link(trees, from, to, name, entry, diag);
    } else {
        err = copy_file(trees, from, to, name, entry, diag);
    }
    if (from >= 0) {
        (void)close(from);
    }
    if (to >= 0) {
        (void)close(to);
    }
    strbuf_release(&above);
    return err;
}

/* Remove all entries of a copied directory that the list does not have. */
static enum err prune_dir(const struct copy_trees *trees,
                          const struct strmap *known,
                          const char *path,
                          struct diag *diag)
{
    int fd = copy_open_dir(trees->to, path, false);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        return diag_set(diag, ERR_IO, "read %s: %s", path, strerror(errno));
    }
    enum err err = ERR_OK;
    struct strbuf name = {0};
    const struct dirent *entry;
    while (err == ERR_OK && (entry = readdir(dir)) != NULL) {
        strbuf_clear(&name);
        strbuf_addf(&name, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0 &&
            strmap_find(known, name.text, name.len) == STRMAP_NONE) {
            strbuf_clear(&name);
            strbuf_addf(&name, "%s/%s/%s", trees->to, path, entry->d_name);
            err = copy_remove(name.text, diag);
        }
    }
    strbuf_release(&name);
    (void)closedir(dir);
    return err;
}

static enum err prune(const struct copy_trees *trees,
                      const struct copy_list *list,
                      struct diag *diag)
{
    struct strmap known = {0};
    for (uint32_t ix = 0; ix < list->count; ix++) {
        (void)strmap_add(&known, list->entries[ix].path, ix);
    }
    enum err err = ERR_OK;
    for (uint32_t ix = 0; err == ERR_OK && ix < list->count; ix++) {
        if (S_ISDIR(list->entries[ix].status.st_mode)) {
            err = prune_dir(trees, &known, list->entries[ix].path, diag);
        }
    }
    strmap_release(&known);
    return err;
}

enum err copy_entries(const struct copy_trees *trees,
                      const struct copy_list *list,
                      struct diag *diag)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0; err == ERR_OK && ix < list->count; ix++) {
        if (!list->entries[ix].omit) {
            err = copy_one(trees, &list->entries[ix], ix == 0, diag);
        }
    }
    if (err == ERR_OK && trees->mirror) {
        err = prune(trees, list, diag);
    }
    crash_point("copy-done");
    return err;
}
