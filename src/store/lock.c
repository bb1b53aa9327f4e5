/* SPDX-License-Identifier: MIT */
/*
 * The scheduler's lock file. Its record is 1024 bytes: lines "NAME VALUE\n" in
 * the order below, then spaces, then a newline.
 *
 *   sluice-lock 1      format; another number is not read
 *   pid N              of the owner
 *   start N            start of that process, in ticks since boot
 *   host NAME          "-" for none
 *   boot ID            "-" for none
 *   epoch N            0 until the store has assigned one
 *   beat N             nanoseconds of CLOCK_BOOTTIME
 *   writes N           batches acknowledged so far: if the database has
 *                      fewer, it has lost some
 *   commits N          batches that this owner has written
 *   commit_ns N        total time of these commits
 *   trouble TEXT       "-" for none
 *   sum HEX            checksum of all lines before, 16 digits
 *
 * A reader can see a half-written record, which the sum detects: it then reads
 * again. To add a line, append it before `sum` and raise the format's number.
 *
 * A user may remove the file while it is locked. So a process that takes the
 * lock checks afterwards that its file is still the file of that name.
 */
#include "store/lock.h"

#include "base/invariant.h"
#include "base/strbuf.h"
#include "store/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LOCK_NAME "lock"

enum {
    RECORD_BYTES = 1024,
    TRIES_MAX = 100, /* to read a record, and to find the file */
};

void lock_init(struct lock *lock, const char *dir, int dir_fd)
{
    INVARIANT(dir != NULL && dir_fd >= -1);
    *lock = (struct lock){.dir = dir, .dir_fd = dir_fd, .fd = -1};
}

void lock_release(struct lock *lock)
{
    if (lock->fd >= 0) {
        /* Nothing needs to be on the disk, so ignore errors. */
        (void)close(lock->fd);
        lock->fd = -1;
    }
    INVARIANT(lock->fd == -1);
}

static enum err system_error(const struct lock *lock,
                             struct diag *diag,
                             const char *what,
                             int error)
{
    enum err err = ERR_IO;
    if (error == ENOSPC || error == EDQUOT) {
        err = ERR_LIMIT;
    } else if (error == EACCES || error == EPERM || error == EROFS ||
               error == ELOOP) {
        err = ERR_DENIED;
    }
    return diag_set(diag,
                    err,
                    "%s the store's file %s/" LOCK_NAME ": %s",
                    what,
                    lock->dir,
                    strerror(error));
}

/* Report why it cannot be opened; for missing rights, with the remedy. */
static enum err open_error(const struct lock *lock, struct diag *diag)
{
    int error = errno;
    struct stat status;
    const char *name = "/" LOCK_NAME;
    const char *rights = "u+rw";
    if (error != EACCES && error != EPERM) {
        return system_error(lock, diag, "open", error);
    }
    if (fstatat(lock->dir_fd, LOCK_NAME, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        name = ""; /* cannot create or search it */
        rights = "u+rwx";
        if (fstat(lock->dir_fd, &status) != 0) {
            return system_error(lock, diag, "open", error);
        }
    }
    if (status.st_uid != geteuid()) {
        return diag_set(diag,
                        ERR_DENIED,
                        "open the store's file %s/" LOCK_NAME
                        ": %s: %s%s belongs to user %u, but this is user %u; "
                        "as root, run `chown -R %u %s`",
                        lock->dir,
                        strerror(error),
                        lock->dir,
                        name,
                        (unsigned)status.st_uid,
                        (unsigned)geteuid(),
                        (unsigned)geteuid(),
                        lock->dir);
    }
    return diag_set(diag,
                    ERR_DENIED,
                    "open the store's file %s/" LOCK_NAME ": %s (mode %o); run "
                    "`chmod %s %s%s`",
                    lock->dir,
                    strerror(error),
                    (unsigned)status.st_mode & 07777,
                    rights,
                    lock->dir,
                    name);
}

/* Write the record in place. Returns an error number, or 0. */
static int write_record(int fd, const struct strbuf *text)
{
    ssize_t done;
    INVARIANT(fd >= 0 && text->len == RECORD_BYTES);
    do {
        done = pwrite(fd, text->text, text->len, 0);
    } while (done < 0 && errno == EINTR);
    if (done < 0) {
        return errno;
    }
    return (size_t)done == text->len ? 0 : ENOSPC;
}

/* Open the file, and create it if needed; *fd_out is then at least 0. */
static enum err
open_file(const struct lock *lock, int *fd_out, struct diag *diag)
{
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    INVARIANT(lock->dir_fd >= 0);
    int fd = openat(lock->dir_fd, LOCK_NAME, flags, 0600);
    if (fd < 0) {
        return open_error(lock, diag);
    }
    struct stat status;
    enum err err = ERR_OK;
    if (fstat(fd, &status) != 0) {
        err = system_error(lock, diag, "inspect", errno);
    } else if (!S_ISREG(status.st_mode)) {
        err = diag_set(diag,
                       ERR_DENIED,
                       "the store's \"" LOCK_NAME "\" is not a regular file");
    } else if (status.st_size < RECORD_BYTES) {
        /* Reserves the space, and keeps the data of other processes. */
        int error = posix_fallocate(fd, 0, RECORD_BYTES);
        if (error == 0 && fsync(fd) != 0) {
            error = errno;
        }
        if (error != 0) {
            err = system_error(lock, diag, "write", error);
        }
    }
    if (err != ERR_OK) {
        (void)close(fd);
        return err;
    }
    INVARIANT(fd >= 0);
    *fd_out = fd;
    return ERR_OK;
}

enum err lock_make(struct lock *lock, struct diag *diag)
{
    int fd = -1;
    enum err err = open_file(lock, &fd, diag);
    if (err == ERR_OK) {
        (void)close(fd);
    }
    return err;
}

/* Whether the open file still has the name. */
static bool has_name(int dir_fd, int fd)
{
    struct stat here;
    struct stat there;
    return fstat(fd, &here) == 0 &&
           fstatat(dir_fd, LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

enum err lock_take(struct lock *lock, struct diag *diag)
{
    INVARIANT(lock->fd < 0 && lock->dir_fd >= 0);
    for (int try = 0; try < TRIES_MAX; try++) {
        int fd = -1;
        enum err err = open_file(lock, &fd, diag);
        if (err != ERR_OK) {
            return err;
        }
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
            int error = errno;
            (void)close(fd);
            if (error == EAGAIN || error == EACCES) {
                return diag_set(diag, ERR_BUSY, "the store has a scheduler");
            }
            return system_error(lock, diag, "lock", error);
        }
        if (has_name(lock->dir_fd, fd)) {
            lock->fd = fd;
            return ERR_OK;
        }
        (void)close(fd);
    }
    return diag_set(diag,
                    ERR_IO,
                    "the store's file \"" LOCK_NAME
                    "\" is replaced repeatedly");
}

/* Return the value of a line, and move past it; NULL: not `name`. */
static const char *take_line(char **at, const char *name)
{
    char *end = strchr(*at, '\n');
    size_t len = strlen(name);
    if (end == NULL || strncmp(*at, name, len) != 0 || (*at)[len] != ' ') {
        return NULL;
    }
    *end = '\0';
    const char *value = *at + len + 1;
    *at = end + 1;
    return value;
}

static bool take_number(char **at, const char *name, int base, uint64_t *out)
{
    const char *value = take_line(at, name);
    if (value == NULL || *value < '0') { /* no sign, no space */
        return false;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(value, &end, base);
    *out = number;
    return errno == 0 && *end == '\0';
}

static bool take_text(char **at, const char *name, char *out, size_t bytes)
{
    const char *value = take_line(at, name);
    if (value == NULL || strlen(value) >= bytes) {
        return false;
    }
    if (strcmp(value, "-") != 0) {
        memcpy(out, value, strlen(value) + 1);
    }
    return true;
}

/* Parse a record in place; false: invalid or incomplete. */
static bool parse(char *text, struct lock_record *out)
{
    struct lock_record record = {0};
    struct store_owner *owner = &record.owner;
    const char *sum_line = strstr(text, "\nsum ");
    if (sum_line == NULL) {
        return false;
    }
    uint64_t sum = sum_add(SUM_START, text, (size_t)(sum_line + 1 - text));
    uint64_t format = 0;
    uint64_t pid = 0;
    uint64_t beat = 0;
    uint64_t stored = 0;
    char *at = text;
    if (!take_number(&at, "sluice-lock", 10, &format) || format != 1 ||
        !take_number(&at, "pid", 10, &pid) || pid > INT64_MAX ||
        !take_number(&at, "start", 10, &owner->start_ticks) ||
        !take_text(&at, "host", owner->host, sizeof(owner->host)) ||
        !take_text(&at, "boot", owner->boot_id, sizeof(owner->boot_id)) ||
        !take_number(&at, "epoch", 10, &owner->epoch) ||
        !take_number(&at, "beat", 10, &beat) || beat > INT64_MAX ||
        !take_number(&at, "writes", 10, &record.writes) ||
        !take_number(&at, "commits", 10, &owner->commits) ||
        !take_number(&at, "commit_ns", 10, &owner->commit_ns) ||
        !take_text(&at, "trouble", owner->trouble, sizeof(owner->trouble)) ||
        !take_number(&at, "sum", 16, &stored) || stored != sum) {
        return false;
    }
    INVARIANT(strlen(owner->host) < sizeof(owner->host));
    INVARIANT(strlen(owner->boot_id) < sizeof(owner->boot_id));
    owner->pid = (int64_t)pid;
    record.beat_ns = (int64_t)beat;
    *out = record;
    return true;
}

/* Read the record; zeros if it is invalid. */
static enum err read_record(const struct lock *lock,
                            int fd,
                            struct lock_record *out,
                            struct diag *diag)
{
    *out = (struct lock_record){0};
    for (int try = 0; try < TRIES_MAX; try++) {
        char text[RECORD_BYTES + 1];
        ssize_t got = pread(fd, text, RECORD_BYTES, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return system_error(lock, diag, "read", errno);
        }
        INVARIANT((size_t)got < sizeof(text));
        text[got] = '\0';
        if (parse(text, out)) {
            return ERR_OK;
        }
        if (text[0] == '\0') {
            return ERR_OK; /* never taken */
        }
    }
    return ERR_OK;
}

/* Whether another process holds the lock of the file. */
static enum err
is_held(const struct lock *lock, int fd, bool *out, struct diag *diag)
{
    struct flock probe = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &probe) != 0) {
        return system_error(lock, diag, "query the lock of", errno);
    }
    *out = probe.l_type != F_UNLCK;
    return ERR_OK;
}

enum err
lock_read(const struct lock *lock, struct lock_record *out, struct diag *diag)
{
    *out = (struct lock_record){0};
    if (lock->fd >= 0) {
        return read_record(lock, lock->fd, out, diag);
    }
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(lock->dir_fd, LOCK_NAME, flags);
    if (fd < 0 && errno == ENOENT) {
        return diag_set(diag, ERR_NOT_FOUND, "the store has no scheduler");
    }
    if (fd < 0) {
        return open_error(lock, diag);
    }
    /* First the lock: the record, read later, is then at least as new. */
    bool held = false;
    enum err err = is_held(lock, fd, &held, diag);
    if (err == ERR_OK) {
        err = read_record(lock, fd, out, diag);
    }
    if (err == ERR_OK && !held) {
        err = diag_set(diag, ERR_NOT_FOUND, "the store has no scheduler");
    }
    (void)close(fd);
    return err;
}

/* Append a line, without characters that would break the record. */
static void add_text(struct strbuf *out, const char *name, const char *text)
{
    strbuf_addf(out, "%s ", name);
    if (text[0] == '\0') {
        strbuf_adds(out, "-");
    }
    for (const char *at = text; *at != '\0'; at++) {
        strbuf_pad(out, (unsigned char)*at < ' ' ? ' ' : *at, 1);
    }
    strbuf_adds(out, "\n");
}

enum err lock_write(const struct lock *lock,
                    const struct lock_record *record,
                    struct diag *diag)
{
    INVARIANT(lock->fd >= 0);
    const struct store_owner *owner = &record->owner;
    INVARIANT(owner->pid >= 0 && record->beat_ns >= 0);
    struct strbuf text = {0};
    strbuf_addf(&text, "sluice-lock 1\npid %" PRId64 "\n", owner->pid);
    strbuf_addf(&text, "start %" PRIu64 "\n", owner->start_ticks);
    add_text(&text, "host", owner->host);
    add_text(&text, "boot", owner->boot_id);
    strbuf_addf(&text, "epoch %" PRIu64 "\n", owner->epoch);
    strbuf_addf(&text, "beat %" PRId64 "\n", record->beat_ns);
    strbuf_addf(&text, "writes %" PRIu64 "\n", record->writes);
    strbuf_addf(&text, "commits %" PRIu64 "\n", owner->commits);
    strbuf_addf(&text, "commit_ns %" PRIu64 "\n", owner->commit_ns);
    add_text(&text, "trouble", owner->trouble);
    uint64_t sum = sum_add(SUM_START, text.text, text.len);
    strbuf_addf(&text, "sum %016" PRIx64 "\n", sum);
    INVARIANT(text.len < RECORD_BYTES);
    strbuf_pad(&text, ' ', RECORD_BYTES - 1 - text.len);
    strbuf_adds(&text, "\n");
    int error = write_record(lock->fd, &text);
    strbuf_release(&text);
    return error == 0 ? ERR_OK : system_error(lock, diag, "write", error);
}

bool lock_has_file(const struct lock *lock)
{
    INVARIANT(lock->fd >= 0);
    struct stat status;
    return fstat(lock->fd, &status) == 0 && status.st_nlink > 0;
}

/* The process that /proc/locks lists for a file; 0: none. */
static int64_t listed_pid(const char *file)
{
    FILE *list = fopen("/proc/locks", "re");
    if (list == NULL) {
        return 0;
    }
    int64_t found = 0;
    char line[256];
    while (found == 0 && fgets(line, sizeof(line), list) != NULL) {
        char kind[16];
        char access[16];
        char pid[16];
        char name[64];
        int count = sscanf(line,
                           "%*s %15s %*s %15s %15s %63s",
                           kind,
                           access,
                           pid,
                           name);
        if (count == 4 && strcmp(kind, "POSIX") == 0 &&
            strcmp(access, "WRITE") == 0 && strcmp(name, file) == 0) {
            long long number = strtoll(pid, NULL, 10); /* 0: other namespace */
            found = number != getpid() ? number : 0;
        }
    }
    (void)fclose(list);
    return found;
}

/*
 * A process that opens and closes a file loses its own locks on it, so do not
 * touch the file: read /proc/locks. An entry can be missed while other entries
 * come and go, so read it more than once.
 */
int64_t lock_foreign_pid(const char *path)
{
    enum { LOOKS = 4 };
    struct stat status;
    if (stat(path, &status) != 0) {
        return 0;
    }
    char file[64]; /* in the format of the list */
    (void)snprintf(file,
                   sizeof(file),
                   "%02x:%02x:%llu",
                   major(status.st_dev),
                   minor(status.st_dev),
                   (unsigned long long)status.st_ino);
    int64_t found = 0;
    for (int look = 0; look < LOOKS && found == 0; look++) {
        found = listed_pid(file);
    }
    return found;
}
