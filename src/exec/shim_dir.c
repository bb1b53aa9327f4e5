/* SPDX-License-Identifier: MIT */
/*
 * Attempt directory, as the shim writes it; attempt.c reads it, and explains
 * why the protocol is safe.
 *
 * `lock`, `started` and `exit` are one file: `started` is a second name of
 * `lock`, and finally `lock` is renamed to `exit`. Its first record is the
 * start record; its second, blank until then, the exit record. So the exit
 * record has its space even if the disk is full by then, and two fewer files
 * have to be created.
 *
 * Even so, directories and files are most of the cost of a short session. So
 * the directory of a first attempt that left nothing, and whose end is in the
 * store, can become that of another one. The shim locks its file, writes its
 * own start record over the old ones, and renames the parent: the name of the
 * attempt appears together with a lock and a whole start record, and only if
 * it did not exist. The file keeps the names `exit` and `started`. If anything
 * in the directory is not as a shim has made it, a new one is created.
 */
#include "base/crash.h"
#include "exec/shim_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rename a file, unless the new name exists. musl has no function for it. */
static int rename_new(const char *from, const char *to)
{
#ifdef RENAME_NOREPLACE
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
#else
    enum { NO_REPLACE = 1 };
    int at = AT_FDCWD;
    return (int)syscall(SYS_renameat2, at, from, at, to, NO_REPLACE);
#endif
}

/* Create a directory and its missing parents. Usually one or two are missing,
 * so walk up first; the first attempt of a task lacks its parent, too, so skip
 * the plain mkdir. Return 0 or an errno: EEXIST if it existed. */
static int make_dir(const char *dir)
{
    char path[PATH_MAX];
    size_t len = strlen(dir);
    bool first = len > 2 && len < sizeof(path) && dir[len - 2] == '/' &&
                 dir[len - 1] == '1';
    if (!first && mkdir(dir, 0700) == 0) {
        return 0;
    }
    if (!first && (errno != ENOENT || len >= sizeof(path))) {
        return errno;
    }
    memcpy(path, dir, len + 1);
    size_t at = len;
    do { /* up, until mkdir succeeds */
        while (at > 0 && path[at] != '/') {
            at--;
        }
        path[at] = '\0';
    } while (at > 0 && mkdir(path, 0700) != 0 && errno == ENOENT);
    int error = 0;
    while (at < len) { /* and down again */
        path[at] = '/';
        error = mkdir(path, 0700) == 0 ? 0 : errno;
        at += strlen(path + at);
    }
    return error;
}

/* Open the directory, and create it if necessary; return 0 or an errno. */
static int open_dir(const char *dir, int *fd_out)
{
    crash_point("shim-before-mkdir");
    bool made = make_dir(dir) == 0; /* openat() reports a failure */
    crash_point("shim-after-mkdir");
    int error = crash_fault("open");
    if (error != 0) {
        return error;
    }
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(AT_FDCWD, dir, flags);
    if (fd < 0) {
        return errno;
    }
    *fd_out = fd;
    /* Do not touch a directory that a shim has used. name_started() decides;
     * this only avoids the work. */
    bool seen = !made && faccessat(fd, "started", F_OK, 0) == 0;
    return seen ? EEXIST : 0;
}

/* Write records to a file; return 0 or an errno. */
static int write_records(int fd, const char *bytes, size_t len, off_t at)
{
    int error = crash_fault("write");
    if (error != 0) {
        return error;
    }
    ssize_t written = pwrite(fd, bytes, len, at);
    if (written == (ssize_t)len) {
        return 0;
    }
    return written < 0 ? errno : ENOSPC;
}

/* Lock the attempt. The file may have become `exit` meanwhile: do not change it
 * before `started` is ours. */
static int take_lock(int dir_fd, int *fd_out)
{
    int fd = openat(dir_fd,
                    "lock",
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                    0600);
    if (fd < 0) {
        return errno;
    }
    *fd_out = fd;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        return errno == EACCES ? EAGAIN : errno;
    }
    crash_point("shim-locked");
    return 0;
}

/* Create `started`, as another name of `lock` or, on a file system without
 * links, as a separate file with the same record; return 0 or an errno. */
static int name_started(int dir_fd, const char *record)
{
    int error = crash_fault("link");
    if (error == 0 && linkat(dir_fd, "lock", dir_fd, "started", 0) != 0) {
        error = errno == ENOENT ? EEXIST : errno; /* it has become `exit` */
    }
    if (error == 0 || error == EEXIST) {
        return error;
    }
    int fd = openat(dir_fd,
                    "started",
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0) {
        return errno;
    }
    error = write_records(fd, record, RECORD_BYTES, 0);
    (void)close(fd);
    if (error != 0) {
        (void)unlinkat(dir_fd, "started", 0);
    }
    return error;
}

/*
 * Create `started`, and reserve the space of the exit record. On failure,
 * remove `started` again: we hold the lock, so no other process has used it,
 * and nothing has begun.
 */
static int
make_started(int dir_fd, int lock_fd, const struct record_started *started)
{
    char records[RECORD_FILE_BYTES];
    record_write_started(records, started);
    memset(records + RECORD_EXIT_AT, ' ', RECORD_BYTES);
    int error = name_started(dir_fd, records);
    if (error != 0) {
        return error;
    }
    crash_point("shim-started-empty");
    error = write_records(lock_fd, records, sizeof(records), 0);
    if (error != 0) {
        (void)unlinkat(dir_fd, "started", 0);
    }
    return error;
}

int shim_dir_claim(const char *dir,
                   const struct record_started *started,
                   int *dir_fd_out,
                   int *lock_fd_out)
{
    int error = open_dir(dir, dir_fd_out);
    if (error == 0) {
        error = take_lock(*dir_fd_out, lock_fd_out);
    }
    if (error == 0) {
        error = make_started(*dir_fd_out, *lock_fd_out, started);
    }
    return error;
}

/* Length of the path of a directory's parent. */
static size_t parent_len(const char *dir)
{
    const char *slash = strrchr(dir, '/');
    return slash != NULL ? (size_t)(slash - dir) : 0;
}

/* Whether it is the directory of a task's first attempt. */
static bool is_first(const char *dir)
{
    return strlen(dir) < PATH_MAX && strcmp(dir + parent_len(dir), "/1") == 0;
}

/* Whether a file is as a shim creates it. */
static bool is_own(const struct stat *stat, mode_t mode, nlink_t links)
{
    return stat->st_mode == mode && stat->st_nlink == links &&
           stat->st_uid == geteuid();
}

/* Whether a directory has only the files of a session that left none. */
static bool has_no_more(int dir_fd)
{
    static const char *const names[] = {".", "..", "exit", "log", "started"};
    alignas(struct dirent) char bytes[1024];
    size_t found = 0;
    ssize_t len;
    while ((len = getdents64(dir_fd, (void *)bytes, sizeof(bytes))) > 0) {
        for (ssize_t at = 0; at < len; found++) {
            const struct dirent *entry = (const void *)(bytes + at);
            size_t ix = 0;
            while (ix < ARRAY_COUNT(names) &&
                   strcmp(entry->d_name, names[ix]) != 0) {
                ix++;
            }
            if (ix == ARRAY_COUNT(names)) {
                return false;
            }
            at += entry->d_reclen;
        }
    }
    return len == 0 && found == ARRAY_COUNT(names);
}

/* Whether nothing was left in a spare directory, and its parent has no other
 * attempt: a directory has a link for each that is in it, and two more. */
static bool is_untouched(int dir_fd)
{
    struct stat dir;
    struct stat log;
    struct stat above;
    return fstat(dir_fd, &dir) == 0 && is_own(&dir, S_IFDIR | 0700, 2) &&
           fstatat(dir_fd, "..", &above, 0) == 0 &&
           is_own(&above, S_IFDIR | 0700, 3) &&
           fstatat(dir_fd, "log", &log, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_own(&log, S_IFREG | 0600, 1) && log.st_size == 0 &&
           has_no_more(dir_fd);
}

/* Rename the parent of one directory to that of another, which must not exist.
 * Return 0 or an errno. */
static int rename_parent(const char *from, const char *to)
{
    char old[PATH_MAX];
    char new[PATH_MAX];
    size_t old_len = parent_len(from);
    size_t new_len = parent_len(to);
    memcpy(old, from, old_len);
    old[old_len] = '\0';
    memcpy(new, to, new_len);
    new[new_len] = '\0';
    return rename_new(old, new) == 0 ? 0 : errno;
}

/* Make a spare directory that of this attempt, under its old name. */
static int
prepare_spare(int dir_fd, const struct record_started *started, int *fd_out)
{
    char records[RECORD_FILE_BYTES];
    struct stat stat;
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(dir_fd, "exit", flags);
    if (fd < 0) {
        return errno;
    }
    *fd_out = fd;
    if (fstat(fd, &stat) != 0 || !is_own(&stat, S_IFREG | 0600, 2)) {
        return EINVAL;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        return errno;
    }
    record_write_started(records, started);
    memset(records + RECORD_EXIT_AT, ' ', RECORD_BYTES);
    crash_point("shim-spare-locked");
    return write_records(fd, records, sizeof(records), 0);
}

bool shim_dir_reuse(const char *spare,
                    const char *dir,
                    const struct record_started *started,
                    int *dir_fd_out,
                    int *lock_fd_out)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int dir_fd =
        is_first(spare) && is_first(dir) ? openat(AT_FDCWD, spare, flags) : -1;
    int lock_fd = -1;
    bool good = dir_fd >= 0 && is_untouched(dir_fd) &&
                prepare_spare(dir_fd, started, &lock_fd) == 0 &&
                rename_parent(spare, dir) == 0;
    if (good) {
        crash_point("shim-spare-renamed");
        *dir_fd_out = dir_fd;
        *lock_fd_out = lock_fd;
        return true;
    }
    if (lock_fd >= 0) {
        (void)close(lock_fd);
    }
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    return false;
}

int shim_dir_finish(int dir_fd,
                    int lock_fd,
                    bool reused,
                    const struct attempt_exit *exit)
{
    char bytes[RECORD_BYTES];
    struct attempt_exit sealed = *exit;
    /* Without a seal, the record counts as that of an earlier version. */
    (void)!record_seal(dir_fd, &sealed);
    record_write_exit(bytes, &sealed);
    crash_point("shim-before-exit");
    int error = write_records(lock_fd, bytes, sizeof(bytes), RECORD_EXIT_AT);
    if (error != 0) {
        return error;
    }
    crash_point("shim-exit-written");
    if (reused) {
        return 0; /* it has its name */
    }
    error = crash_fault("rename");
    if (error == 0 && renameat(dir_fd, "lock", dir_fd, "exit") != 0) {
        error = errno;
    }
    if (error == 0) {
        crash_point("shim-exit-renamed");
    }
    return error;
}
