/* SPDX-License-Identifier: MIT */
/*
 * A preloaded library that records what processes do to the files below one
 * directory, the disk, in one order: tests/power/disk.py makes disks after a
 * power cut of it.
 *
 *   POWER_LOG     the log; the harness creates it
 *   POWER_DISK    the disk: an absolute path without symbolic links
 *   POWER_MARKS   directory beside it; writes to its files are marks, which
 *                 say that something was told to the outside
 *   POWER_BOOT    file that is read as the boot id of the machine
 *
 * Each wrapper makes the system call and appends its record while it holds a
 * lock (flock) on the log. So records have the order of the calls, in all
 * processes and threads, and a sync covers exactly the records before it. The
 * log is opened for each call: programs close descriptors that they do not
 * know, and fork without exec. The kernel frees the lock of a process that
 * dies. If it dies between a call and its record, the harness finds that the
 * log does not give the files.
 *
 * Files are named by their inode, so a file that is renamed or has two names is
 * one file. Not recorded: modes and times; sockets; writes by mmap(), which are
 * those of SQLite to its -shm file, whose content does not outlive a boot;
 * writes that the C library makes for stdio.
 *
 * A machine that boots has another boot id and a younger boot clock. Recorded
 * processes are those that see another boot id, and a clock of CLOCK_AHEAD_S
 * more, so that the processes that find the disk need no preparation.
 *
 * A record is a struct head, then its names and its data. Integers are those of
 * the machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* A preloaded library replaces functions of the C library. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wredundant-decls"
#undef open
#undef open64
#undef openat
#undef openat64

#define EXPORT __attribute__((visibility("default")))
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

enum {
    HIGH_FD = 200, /* programs expect to get low descriptors in order */
    CLOCK_AHEAD_S = 1000 * 3600,
    MAGIC = 0x72776f70,
};

/* The words of tests/power/disk.py. */
enum kind {
    KIND_CREATE = 1, /* file `other` as `name` in `ino` */
    KIND_MKDIR,      /* the same with a directory */
    KIND_SYMLINK,    /* the same; the data is its target */
    KIND_WRITE,      /* data at `offset` of `ino` */
    KIND_SIZE,       /* `ino` has `offset` bytes */
    KIND_ZERO,       /* `other` bytes at `offset` of `ino` are zeros */
    KIND_SYNC,       /* file or directory `ino` */
    KIND_RENAME,     /* `name` in `ino` to `name2` in `other` */
    KIND_LINK,       /* file `offset` also as `name` in `ino` */
    KIND_UNLINK,     /* `name` in `ino`, of a file or directory */
    KIND_MARK,       /* data was written to `name` */
    KIND_SYNC_ALL,
};

struct head {
    uint32_t magic;
    uint32_t kind;
    uint64_t ino;
    uint64_t other;
    uint64_t offset;
    uint32_t name_len;
    uint32_t name2_len;
    uint64_t data_len;
};

/* A name in a directory of the disk. */
struct spot {
    bool here; /* on the disk */
    uint64_t dir;
    char name[NAME_MAX + 1];
    uint64_t ino; /* of what has the name; 0: nothing */
    uint64_t size;
};

/* A call that is being made: the lock, and the signals that wait. */
struct call {
    int fd; /* of the log; -1: nothing is recorded */
    sigset_t before;
};

static long call_openat(int dir, const char *path, int flags, unsigned mode)
{
    return syscall(SYS_openat, dir, path, flags, mode);
}

static void begin(struct call *call)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &call->before);
    call->fd = -1;
    const char *path = getenv("POWER_LOG");
    if (path == NULL) {
        return;
    }
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC;
    int low = (int)call_openat(AT_FDCWD, path, flags, 0);
    if (low < 0) {
        return;
    }
    call->fd = fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
    (void)syscall(SYS_close, low);
    if (call->fd >= 0 && flock(call->fd, LOCK_EX) != 0) {
        (void)syscall(SYS_close, call->fd);
        call->fd = -1;
    }
}

static void end(struct call *call)
{
    int error = errno;
    if (call->fd >= 0) {
        (void)flock(call->fd, LOCK_UN); /* also for a copy in another process */
        (void)syscall(SYS_close, call->fd);
    }
    (void)sigprocmask(SIG_SETMASK, &call->before, NULL);
    errno = error;
}

static void put(const struct call *call,
                struct head head,
                const char *name,
                const char *name2,
                const struct iovec *data)
{
    int error = errno;
    struct iovec none = {0};
    head.magic = MAGIC;
    head.name_len = name != NULL ? (uint32_t)strlen(name) : 0;
    head.name2_len = name2 != NULL ? (uint32_t)strlen(name2) : 0;
    data = data != NULL ? data : &none;
    head.data_len = data->iov_len;
    union {
        const char *in;
        char *out;
    } names[2] = {{.in = name}, {.in = name2}};
    struct iovec parts[] = {
        {&head, sizeof(head)},
        {names[0].out, head.name_len},
        {names[1].out, head.name2_len},
        *data,
    };
    size_t total =
        sizeof(head) + head.name_len + head.name2_len + head.data_len;
    long done = call->fd < 0 ? 0 : syscall(SYS_writev, call->fd, parts, 4);
    if (call->fd >= 0 && done != (long)total) {
        abort(); /* the log would be worth nothing */
    }
    errno = error;
}

/* Whether `path` is `root` or in it; the part after it in *rest_out. */
static bool is_below(const char *path, const char *root, const char **rest_out)
{
    size_t len = root != NULL ? strlen(root) : 0;
    if (len == 0 || strncmp(path, root, len) != 0 ||
        (path[len] != '/' && path[len] != '\0')) {
        return false;
    }
    *rest_out = path + len + (path[len] == '/');
    return true;
}

/* The path of an open file; false: it has none. */
static bool path_of(int fd, char out[PATH_MAX])
{
    char name[64];
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    long len = syscall(SYS_readlinkat, AT_FDCWD, name, out, PATH_MAX - 1);
    out[len > 0 ? len : 0] = '\0';
    return len > 0 && out[0] == '/';
}

/* Whether an open file is of the disk; its inode. */
static bool is_on_disk(const struct call *call, int fd, struct stat *out)
{
    char path[PATH_MAX];
    const char *rest = NULL;
    return call->fd >= 0 && fstat(fd, out) == 0 &&
           (S_ISREG(out->st_mode) || S_ISDIR(out->st_mode)) &&
           path_of(fd, path) && is_below(path, getenv("POWER_DISK"), &rest);
}

/* Find where a path leads to. */
static struct spot find(const struct call *call, int dir, const char *path)
{
    struct spot spot = {0};
    char parent[PATH_MAX];
    size_t len = path != NULL ? strlen(path) : 0;
    int error = errno;
    if (call->fd < 0 || len == 0 || len >= sizeof(parent)) {
        return spot;
    }
    memcpy(parent, path, len + 1);
    while (len > 1 && parent[len - 1] == '/') {
        parent[--len] = '\0';
    }
    char *slash = strrchr(parent, '/');
    const char *name = slash != NULL ? slash + 1 : parent;
    if (strlen(name) > NAME_MAX) {
        return spot;
    }
    memcpy(spot.name, name, strlen(name) + 1);
    if (slash != NULL) {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int low = (int)call_openat(dir, slash != NULL ? parent : ".", flags, 0);
    int fd = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD) : -1;
    struct stat status;
    if (low >= 0) {
        (void)syscall(SYS_close, low);
    }
    if (fd >= 0 && is_on_disk(call, fd, &status)) {
        spot.here = true;
        spot.dir = status.st_ino;
        if (fstatat(fd, spot.name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            spot.ino = status.st_ino;
            spot.size = (uint64_t)status.st_size;
        }
    }
    if (fd >= 0) {
        (void)syscall(SYS_close, fd);
    }
    errno = error;
    return spot;
}

static uint64_t inode_at(const struct call *call, int dir, const char *path)
{
    return find(call, dir, path).ino;
}

/* --- opening ------------------------------------------------------------- */

static int do_open(int dir, const char *path, int flags, unsigned mode)
{
    if (path != NULL && strcmp(path, BOOT_ID) == 0 &&
        getenv("POWER_BOOT") != NULL) {
        path = getenv("POWER_BOOT");
    }
    if ((flags & (O_CREAT | O_TRUNC)) == 0) {
        return (int)call_openat(dir, path, flags, mode);
    }
    struct call call;
    begin(&call);
    struct spot spot = find(&call, dir, path);
    int fd = (int)call_openat(dir, path, flags, mode);
    struct stat status;
    if (fd >= 0 && spot.here && fstat(fd, &status) == 0) {
        if (spot.ino == 0) {
            put(&call,
                (struct head){
                    .kind = KIND_CREATE,
                    .ino = spot.dir,
                    .other = status.st_ino,
                },
                spot.name,
                NULL,
                NULL);
        } else if ((flags & O_TRUNC) != 0 && spot.size > 0) {
            put(&call,
                (struct head){.kind = KIND_SIZE, .ino = spot.ino},
                NULL,
                NULL,
                NULL);
        }
    }
    end(&call);
    return fd;
}

#define MODE_OF(flags, last)                                                   \
    unsigned mode = 0;                                                         \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                              \
        va_list list;                                                          \
        va_start(list, last);                                                  \
        mode = va_arg(list, unsigned);                                         \
        va_end(list);                                                          \
    }

EXPORT int open(const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return do_open(AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return do_open(AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return do_open(dir, path, flags, mode);
}

EXPORT int openat64(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return do_open(dir, path, flags, mode);
}

/* What the compiler makes of calls without a mode. */
EXPORT int __open_2(const char *path, int flags)
{
    return do_open(AT_FDCWD, path, flags, 0);
}

EXPORT int __open64_2(const char *path, int flags)
{
    return do_open(AT_FDCWD, path, flags, 0);
}

EXPORT int __openat_2(int dir, const char *path, int flags)
{
    return do_open(dir, path, flags, 0);
}

EXPORT int __openat64_2(int dir, const char *path, int flags)
{
    return do_open(dir, path, flags, 0);
}

EXPORT int creat(const char *path, mode_t mode)
{
    return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT int creat64(const char *path, mode_t mode)
{
    return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* --- contents ------------------------------------------------------------ */

/* Where a write without an offset has ended. */
static uint64_t offset_after(int fd)
{
    long at = syscall(SYS_lseek, fd, 0L, SEEK_CUR);
    return at > 0 ? (uint64_t)at : 0;
}

/* Record `done` bytes that were written at `offset`, or, if it is negative,
 * up to the present position. */
static void
wrote(const struct call *call, int fd, struct iovec data, off_t offset)
{
    char path[PATH_MAX];
    const char *rest = NULL;
    struct stat status;
    int error = errno;
    if (is_on_disk(call, fd, &status)) {
        bool append = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
        uint64_t at = (uint64_t)offset;
        if (offset < 0) {
            at = offset_after(fd) - data.iov_len;
        } else if (append) { /* the kernel ignores the offset then */
            at = (uint64_t)status.st_size - data.iov_len;
        }
        put(call,
            (struct head){
                .kind = KIND_WRITE,
                .ino = status.st_ino,
                .offset = at,
            },
            NULL,
            NULL,
            &data);
    } else if (call->fd >= 0 && path_of(fd, path) &&
               is_below(path, getenv("POWER_MARKS"), &rest)) {
        put(call, (struct head){.kind = KIND_MARK}, rest, NULL, &data);
    }
    errno = error;
}

/* Pipes and sockets may block: no call to them holds the lock. */
static bool is_file(int fd)
{
    struct stat status;
    int error = errno;
    bool file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    errno = error;
    return file;
}

static ssize_t do_write(int fd, const void *bytes, size_t len, off_t offset)
{
    union {
        const void *in;
        void *out;
    } pointer = {.in = bytes};
    struct call call = {.fd = -1};
    bool file = is_file(fd);
    if (file) {
        begin(&call);
    }
    long done = offset < 0 ? syscall(SYS_write, fd, bytes, len)
                           : syscall(SYS_pwrite64, fd, bytes, len, offset);
    if (file) {
        if (done > 0) {
            wrote(&call, fd, (struct iovec){pointer.out, (size_t)done}, offset);
        }
        end(&call);
    }
    return done;
}

static ssize_t
do_writev(int fd, const struct iovec *parts, int count, off_t offset)
{
    ssize_t total = 0;
    if (!is_file(fd)) {
        return offset < 0 ? syscall(SYS_writev, fd, parts, count)
                          : syscall(SYS_pwritev, fd, parts, count, offset, 0L);
    }
    for (int ix = 0; ix < count; ix++) {
        ssize_t done = do_write(fd,
                                parts[ix].iov_base,
                                parts[ix].iov_len,
                                offset < 0 ? -1 : offset + total);
        if (done < 0) {
            return total > 0 ? total : -1;
        }
        total += done;
        if ((size_t)done < parts[ix].iov_len) {
            break;
        }
    }
    return total;
}

EXPORT ssize_t write(int fd, const void *bytes, size_t len)
{
    return do_write(fd, bytes, len, -1);
}

EXPORT ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    return do_write(fd, bytes, len, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
    return do_write(fd, bytes, len, offset);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return do_writev(fd, parts, count, -1);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return do_writev(fd, parts, count, at);
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at)
{
    return do_writev(fd, parts, count, at);
}

/* Give a file a size, and record the size that it has then. */
static void sized(const struct call *call, int fd)
{
    struct stat status;
    if (is_on_disk(call, fd, &status)) {
        put(call,
            (struct head){
                .kind = KIND_SIZE,
                .ino = status.st_ino,
                .offset = (uint64_t)status.st_size,
            },
            NULL,
            NULL,
            NULL);
    }
}

EXPORT int ftruncate(int fd, off_t size)
{
    struct call call;
    begin(&call);
    int rc = (int)syscall(SYS_ftruncate, fd, size);
    if (rc == 0) {
        sized(&call, fd);
    }
    end(&call);
    return rc;
}

EXPORT int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

EXPORT int truncate(const char *path, off_t size)
{
    int fd = do_open(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    int rc = fd >= 0 ? ftruncate(fd, size) : -1;
    if (fd >= 0) {
        (void)syscall(SYS_close, fd);
    }
    return rc;
}

EXPORT int truncate64(const char *path, off_t size)
{
    return truncate(path, size);
}

/* Holes are the zeros that they read as; moving bytes is not supported, and a
 * program that asks for it has another way. */
EXPORT int fallocate(int fd, int mode, off_t offset, off_t len)
{
    enum { KEEP = 1, PUNCH = 2, ZERO = 16 };
    if ((mode & ~(KEEP | PUNCH | ZERO)) != 0) {
        errno = EOPNOTSUPP;
        return -1;
    }
    struct call call;
    struct stat status;
    begin(&call);
    int rc = (int)syscall(SYS_fallocate, fd, mode, offset, len);
    if (rc == 0 && is_on_disk(&call, fd, &status)) {
        if ((mode & (PUNCH | ZERO)) != 0) {
            put(&call,
                (struct head){
                    .kind = KIND_ZERO,
                    .ino = status.st_ino,
                    .other = (uint64_t)len,
                    .offset = (uint64_t)offset,
                },
                NULL,
                NULL,
                NULL);
        }
        sized(&call, fd);
    }
    end(&call);
    return rc;
}

EXPORT int fallocate64(int fd, int mode, off_t offset, off_t len)
{
    return fallocate(fd, mode, offset, len);
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t len)
{
    int error = errno;
    int result = fallocate(fd, 0, offset, len) == 0 ? 0 : errno;
    errno = error;
    return result;
}

EXPORT int posix_fallocate64(int fd, off_t offset, off_t len)
{
    return posix_fallocate(fd, offset, len);
}

/* --- syncs --------------------------------------------------------------- */

static int do_sync(long number, int fd)
{
    struct call call;
    struct stat status;
    begin(&call);
    int rc = (int)syscall(number, fd);
    if (rc == 0 && is_on_disk(&call, fd, &status)) {
        put(&call,
            (struct head){
                .kind = number == SYS_syncfs ? KIND_SYNC_ALL : KIND_SYNC,
                .ino = status.st_ino,
            },
            NULL,
            NULL,
            NULL);
    }
    end(&call);
    return rc;
}

EXPORT int fsync(int fd)
{
    return do_sync(SYS_fsync, fd);
}

EXPORT int fdatasync(int fd)
{
    return do_sync(SYS_fdatasync, fd);
}

EXPORT int syncfs(int fd)
{
    return do_sync(SYS_syncfs, fd);
}

EXPORT void sync(void)
{
    struct call call;
    begin(&call);
    (void)syscall(SYS_sync);
    put(&call, (struct head){.kind = KIND_SYNC_ALL}, NULL, NULL, NULL);
    end(&call);
}

/* --- names --------------------------------------------------------------- */

EXPORT int renameat2(int dir,
                     const char *path,
                     int dir2,
                     const char *path2,
                     unsigned flags)
{
    enum { NOREPLACE = 1 };
    if ((flags & ~(unsigned)NOREPLACE) != 0) {
        errno = EINVAL;
        return -1;
    }
    struct call call;
    begin(&call);
    struct spot from = find(&call, dir, path);
    struct spot to = find(&call, dir2, path2);
    int rc = (int)syscall(SYS_renameat2, dir, path, dir2, path2, flags);
    if (rc == 0 && from.here && to.here && from.ino != to.ino) {
        put(&call,
            (struct head){
                .kind = KIND_RENAME,
                .ino = from.dir,
                .other = to.dir,
            },
            from.name,
            to.name,
            NULL);
    } else if (rc == 0 && from.here != to.here) {
        abort(); /* the disk has no other file systems */
    }
    end(&call);
    return rc;
}

EXPORT int renameat(int dir, const char *path, int dir2, const char *path2)
{
    return renameat2(dir, path, dir2, path2, 0);
}

EXPORT int rename(const char *path, const char *path2)
{
    return renameat2(AT_FDCWD, path, AT_FDCWD, path2, 0);
}

EXPORT int
linkat(int dir, const char *path, int dir2, const char *path2, int flags)
{
    struct call call;
    begin(&call);
    struct spot to = find(&call, dir2, path2);
    int rc = (int)syscall(SYS_linkat, dir, path, dir2, path2, flags);
    if (rc == 0 && to.here) {
        put(&call,
            (struct head){
                .kind = KIND_LINK,
                .ino = to.dir,
                .offset = inode_at(&call, dir2, path2),
            },
            to.name,
            NULL,
            NULL);
    }
    end(&call);
    return rc;
}

EXPORT int link(const char *path, const char *path2)
{
    return linkat(AT_FDCWD, path, AT_FDCWD, path2, 0);
}

EXPORT int unlinkat(int dir, const char *path, int flags)
{
    struct call call;
    begin(&call);
    struct spot spot = find(&call, dir, path);
    int rc = (int)syscall(SYS_unlinkat, dir, path, flags);
    if (rc == 0 && spot.here) {
        put(&call,
            (struct head){
                .kind = KIND_UNLINK,
                .ino = spot.dir,
                .other = spot.ino,
            },
            spot.name,
            NULL,
            NULL);
    }
    end(&call);
    return rc;
}

EXPORT int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

EXPORT int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

EXPORT int remove(const char *path)
{
    int rc = unlinkat(AT_FDCWD, path, 0);
    return rc != 0 && errno == EISDIR ? rmdir(path) : rc;
}

EXPORT int mkdirat(int dir, const char *path, mode_t mode)
{
    struct call call;
    begin(&call);
    struct spot spot = find(&call, dir, path);
    int rc = (int)syscall(SYS_mkdirat, dir, path, mode);
    if (rc == 0 && spot.here) {
        put(&call,
            (struct head){
                .kind = KIND_MKDIR,
                .ino = spot.dir,
                .other = inode_at(&call, dir, path),
            },
            spot.name,
            NULL,
            NULL);
    }
    end(&call);
    return rc;
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

EXPORT int symlinkat(const char *target, int dir, const char *path)
{
    union {
        const char *in;
        char *out;
    } text = {.in = target};
    struct call call;
    begin(&call);
    struct spot spot = find(&call, dir, path);
    int rc = (int)syscall(SYS_symlinkat, target, dir, path);
    if (rc == 0 && spot.here) {
        put(&call,
            (struct head){
                .kind = KIND_SYMLINK,
                .ino = spot.dir,
                .other = inode_at(&call, dir, path),
            },
            spot.name,
            NULL,
            &(struct iovec){text.out, strlen(target)});
    }
    end(&call);
    return rc;
}

EXPORT int symlink(const char *target, const char *path)
{
    return symlinkat(target, AT_FDCWD, path);
}

/* --- the machine before the cut ------------------------------------------ */

EXPORT int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    if (rc == 0 && clock == CLOCK_BOOTTIME) {
        out->tv_sec += CLOCK_AHEAD_S;
    }
    return rc;
}
