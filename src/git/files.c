/* SPDX-License-Identifier: MIT */
#include "git/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALK_DESCRIPTORS = 16, COPY_BYTES = 1 << 30 };

bool files_exist(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

bool files_is_dir(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Report a failed system call; a full disk passes by itself. */
static enum err fail(const char *what, const char *path, struct diag *diag)
{
    enum err err =
        errno == ENOSPC || errno == EDQUOT ? ERR_UNAVAILABLE : ERR_IO;
    return diag_set(diag, err, "%s %s: %s", what, path, strerror(errno));
}

enum err files_make_dir(const char *path, struct diag *diag)
{
    struct stat status;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return fail("make", path, diag);
    }
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
        return diag_set(diag,
                        ERR_DENIED,
                        "%s is a symbolic link: remove it",
                        path);
    }
    return ERR_OK;
}

enum err files_make_above(const char *path, struct diag *diag)
{
    struct strbuf dir = {0};
    strbuf_adds(&dir, path);
    enum err err = ERR_OK;
    for (size_t ix = 1; err == ERR_OK && ix < dir.len; ix++) {
        if (dir.text[ix] == '/') {
            dir.text[ix] = '\0';
            err = files_make_dir(dir.text, diag);
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

static int open_one(const char *path,
                    const struct stat *status,
                    int type,
                    struct FTW *where)
{
    (void)status;
    (void)where;
    /* FTW_DNR: it could not be read; the next pass sees what is in it. */
    return type != FTW_D && type != FTW_DNR ? 0
           : chmod(path, 0700) == 0         ? 0
                                            : -1;
}

static bool remove_all(const char *path)
{
    return nftw(path, remove_one, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS) ==
               0 ||
           errno == ENOENT;
}

enum err files_remove(const char *path, struct diag *diag)
{
    enum { DEPTH_MAX = 64 }; /* of nested directories that cannot be read */
    bool removed = remove_all(path);
    for (int ix = 0; !removed && errno == EACCES && ix < DEPTH_MAX; ix++) {
        (void)nftw(path, open_one, WALK_DESCRIPTORS, FTW_PHYS);
        removed = remove_all(path);
    }
    return removed ? ERR_OK : fail("remove", path, diag);
}

static bool write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t count = write(fd, text, len);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        text += count > 0 ? count : 0;
        len -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

enum err
files_write(const char *path, const struct strbuf *text, struct diag *diag)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags, 0600);
    if (fd < 0) {
        return fail("make", path, diag);
    }
    bool good = write_all(fd, strbuf_text(text), text->len);
    enum err err = good ? ERR_OK : fail("write", path, diag);
    if (close(fd) != 0 && good) {
        err = fail("write", path, diag);
    }
    return err;
}

/* Copy the content and the time of modification. */
static bool copy_content(int from, int to, const struct stat *status)
{
    ssize_t count;
    do {
        count = sendfile(to, from, NULL, COPY_BYTES);
    } while (count > 0 || (count < 0 && errno == EINTR));
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, status->st_mtim};
    return count == 0 && futimens(to, times) == 0;
}

enum err
files_copy(const char *from, const char *to, mode_t mode, struct diag *diag)
{
    struct stat status;
    int source = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (source < 0 || fstat(source, &status) != 0 || !S_ISREG(status.st_mode)) {
        if (source >= 0) {
            (void)close(source);
        }
        return diag_set(diag, ERR_NOT_FOUND, "%s is no regular file", from);
    }
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int target = open(to, flags, mode);
    enum err err = ERR_OK;
    if (target < 0) {
        err = fail("make", to, diag);
    } else if (!copy_content(source, target, &status)) {
        err = fail("write", to, diag);
    }
    if (target >= 0 && close(target) != 0 && err == ERR_OK) {
        err = fail("write", to, diag);
    }
    (void)close(source);
    return err;
}
