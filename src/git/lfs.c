/* SPDX-License-Identifier: MIT */
/*
 * A large file is .git/lfs/objects/AB/CD/ABCD..., named by its SHA-256.
 * sha256sum checks it after it was copied, because a session may still write to
 * the original.
 */
#include "git/lfs.h"

#include "base/crash.h"
#include "git/copy.h"
#include "git/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OID_LEN = 64, ATTRIBUTES_BYTES_MAX = 1 << 20 };

static const char objects[] = "lfs/objects";

/* Where to look for large files. */
struct place {
    const struct setup *setup;
    const char *git_dir; /* absolute */
};

/* What to do with one large file; `dir` is its directory AB/CD. */
typedef enum err each_fn(const struct place *place,
                         const char *dir,
                         const char *oid,
                         struct diag *diag);

static bool is_hex(const char *text, size_t len)
{
    return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

/* Open a directory below the git directory; NULL: none. */
static DIR *open_list(const struct place *place, const char *path)
{
    int fd = copy_open_dir(place->git_dir, path, false);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && list == NULL) {
        (void)close(fd);
    }
    return list;
}

/* Call a function for the large files in one directory AB/CD. */
static enum err each_in(const struct place *place,
                        const char *dir,
                        each_fn *each,
                        struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", objects, dir);
    DIR *list = open_list(place, strbuf_text(&path));
    strbuf_release(&path);
    enum err err = ERR_OK;
    const struct dirent *entry;
    while (err == ERR_OK && list != NULL && (entry = readdir(list)) != NULL) {
        if (is_hex(entry->d_name, OID_LEN) &&
            strncmp(entry->d_name, dir, 2) == 0 &&
            strncmp(entry->d_name + 2, dir + 3, 2) == 0) {
            err = each(place, dir, entry->d_name, diag);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return err;
}

/* Call a function for all large files of the checkout. */
static enum err
each_object(const struct place *place, each_fn *each, struct diag *diag)
{
    enum err err = ERR_OK;
    DIR *list = open_list(place, objects);
    const struct dirent *entry;
    while (err == ERR_OK && list != NULL && (entry = readdir(list)) != NULL) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/%s", objects, entry->d_name);
        DIR *inner = is_hex(entry->d_name, 2)
                         ? open_list(place, strbuf_text(&path))
                         : NULL;
        const struct dirent *next;
        while (err == ERR_OK && inner != NULL &&
               (next = readdir(inner)) != NULL) {
            strbuf_clear(&path);
            strbuf_addf(&path, "%.2s/%s", entry->d_name, next->d_name);
            if (is_hex(next->d_name, 2)) {
                err = each_in(place, strbuf_text(&path), each, diag);
            }
        }
        if (inner != NULL) {
            (void)closedir(inner);
        }
        strbuf_release(&path);
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return err;
}

/* --- entering ------------------------------------------------------------- */

/* Remove a link to a large file of the user: a session could write to it. The
 * file in the checkout is a copy, and git-lfs finds the user's again. */
static enum err unlink_one(const struct place *place,
                           const char *dir,
                           const char *oid,
                           struct diag *diag)
{
    struct strbuf path = {0};
    struct stat status;
    enum err err = ERR_OK;
    strbuf_addf(&path, "%s/%s/%s/%s", place->git_dir, objects, dir, oid);
    if (lstat(path.text, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_nlink > 1 && unlink(path.text) != 0) {
        err =
            diag_set(diag, ERR_IO, "remove %s: %s", path.text, strerror(errno));
    }
    strbuf_release(&path);
    return err;
}

/* Whether the .gitattributes of the checkout's root name the filter. */
static bool uses_lfs(const struct setup *setup)
{
    int dir = copy_open_dir(setup->path, "", false);
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = dir >= 0 ? openat(dir, ".gitattributes", flags) : -1;
    struct strbuf text = {0};
    char chunk[4096];
    ssize_t got;
    while (fd >= 0 && text.len < ATTRIBUTES_BYTES_MAX &&
           (got = read(fd, chunk, sizeof(chunk))) > 0) {
        strbuf_add(&text, chunk, (size_t)got);
    }
    bool uses = strstr(strbuf_text(&text), "filter=lfs") != NULL;
    strbuf_release(&text);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    return uses;
}

/* Whether a filter of git-lfs is configured where sluice lets it run: not in
 * the repository itself. */
static bool is_set_up(const struct setup *setup)
{
    struct strbuf list = {0};
    struct git_call call = {
        .args = PROC_ARGS("config",
                          "--show-scope",
                          "--name-only",
                          "--get-regexp",
                          "^filter\\.lfs\\.(process|smudge)$"),
        .output = &list,
        .quiet = true,
        .codes = 1,
    };
    bool found = false;
    size_t cursor = 0;
    const char *line;
    bool good = git_call(setup->git, &call, NULL, NULL) == ERR_OK;
    while (good && (line = git_next_line(&list, &cursor)) != NULL) {
        found = found || strncmp(line, "global\t", 7) == 0 ||
                strncmp(line, "system\t", 7) == 0;
    }
    strbuf_release(&list);
    return found;
}

enum err lfs_enter(const struct setup *setup, struct diag *diag)
{
    if (!uses_lfs(setup)) {
        return ERR_OK;
    }
    if (!is_set_up(setup)) {
        log_line("the repository uses git-lfs, which is not set up here: its "
                 "large files are pointers (install git-lfs, then run 'git "
                 "lfs install')");
        return ERR_OK;
    }
    struct strbuf git_dir = {0};
    strbuf_addf(&git_dir, "%s/.git", setup->path);
    struct place place = {.setup = setup, .git_dir = git_dir.text};
    enum err err = each_object(&place, unlink_one, diag);
    strbuf_release(&git_dir);
    return err;
}

/* --- carrying back -------------------------------------------------------- */

/* Create the directories AB/CD in the user's repository, and return the path of
 * a large file there. */
static enum err make_target(const struct setup *setup,
                            struct strbuf *out,
                            const char *dir,
                            const char *oid,
                            struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", objects, dir);
    int fd =
        copy_open_dir(git_common_dir(setup->git), strbuf_text(&path), true);
    strbuf_addf(out,
                "%s/%s/%s",
                git_common_dir(setup->git),
                strbuf_text(&path),
                oid);
    strbuf_release(&path);
    if (fd < 0) {
        return diag_set(diag,
                        ERR_IO,
                        "make the directory of %s: %s",
                        strbuf_text(out),
                        strerror(errno));
    }
    (void)close(fd);
    return ERR_OK;
}

/* Check that the SHA-256 of a file is its name. */
static enum err check_oid(const char *path, const char *oid, struct diag *diag)
{
    struct strbuf text = {0};
    struct strbuf errors = {0};
    struct proc proc = {
        .argv = PROC_ARGS("sha256sum", "--", path),
        .env = (const char *const *)environ,
        .folder = "/",
        .output = &text,
        .errors = &errors,
    };
    struct proc_end end = {0};
    enum err err = proc_run(&proc, &end, diag);
    const char *sum = strbuf_text(&text);
    sum += sum[0] == '\\' ? 1 : 0; /* it escapes strange paths */
    if (err == ERR_OK && (end.code != 0 || end.signal != 0)) {
        err = diag_set(diag, ERR_UNAVAILABLE, "sha256sum failed");
    } else if (err == ERR_OK && strncmp(sum, oid, OID_LEN) != 0) {
        err = diag_set(diag,
                       ERR_CONFLICT,
                       "the large file %.12s is damaged",
                       oid);
    }
    strbuf_release(&text);
    strbuf_release(&errors);
    return err;
}

/* Copy one large file to the user's repository, unless it has it. */
static enum err carry_one(const struct place *place,
                          const char *dir,
                          const char *oid,
                          struct diag *diag)
{
    struct strbuf to = {0};
    struct strbuf temp = {0};
    struct strbuf from = {0};
    struct stat status;
    enum err err = make_target(place->setup, &to, dir, oid, diag);
    if (err == ERR_OK && lstat(to.text, &status) != 0) {
        strbuf_addf(&from, "%s/%s/%s", place->git_dir, objects, dir);
        strbuf_addf(&temp, "%s.sluice", to.text);
        err = copy_one_file(from.text, oid, temp.text, diag);
        crash_point("lfs-copied");
        if (err == ERR_OK) {
            err = check_oid(temp.text, oid, diag);
        }
        if (err == ERR_OK && rename(temp.text, to.text) != 0) {
            err = diag_set(diag,
                           ERR_IO,
                           "rename %s: %s",
                           temp.text,
                           strerror(errno));
        }
        (void)unlink(temp.text); /* if it is still there */
        crash_point("lfs-carried");
        if (err == ERR_OK && git_hub(place->setup->git) != NULL) {
            log_line("the large file %s is not sent to the hub: it is in %s",
                     oid,
                     git_path(place->setup->git));
        }
    }
    strbuf_release(&to);
    strbuf_release(&temp);
    strbuf_release(&from);
    return err;
}

enum err
lfs_carry(const struct setup *setup, const char *git_dir, struct diag *diag)
{
    struct place place = {.setup = setup, .git_dir = git_dir};
    return each_object(&place, carry_one, diag);
}
