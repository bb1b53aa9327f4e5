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
 */
#include "base/crash.h"
#include "exec/shim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int shim_dir_finish(int dir_fd, int lock_fd, const struct attempt_exit *exit)
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
    error = crash_fault("rename");
    if (error == 0 && renameat(dir_fd, "lock", dir_fd, "exit") != 0) {
        error = errno;
    }
    if (error == 0) {
        crash_point("shim-exit-renamed");
    }
    return error;
}
