/* SPDX-License-Identifier: MIT */
/*
 * Reading the directory of an attempt, while a shim may be writing it.
 *
 * The shim's order is: lock `lock`; make `started`, a link of it, which fails
 * when there is one; run; write the record into `lock`; rename it to `exit`;
 * die, which frees the lock. Records are in record.c.
 *
 * The lock is an open file description lock (F_OFD_SETLK). It is looked at
 * with F_OFD_GETLK, which takes nothing: a probe can never make a shim believe
 * that another one holds it.
 *
 * attempt_inspect() looks at `started`, then at the lock, then at `exit`, and
 * that order makes it right under any interleaving:
 *  - `started` was there, the lock was free or its file gone: the shim that
 *    made `started` has held the lock from before, so it has died or written
 *    its record in between. `exit`, looked at last, tells which.
 *  - `started` was not there and the lock was free: nothing had begun then. If
 *    `started` is there now, all is looked at again; it can only appear once.
 *
 * A shim that comes late may hold the lock for a moment, until it finds
 * `started`. So a live shim is also compared with the process of that number;
 * when it is another one, the answer is to look again.
 *
 * `started` counts by being there, whole or not: what has made it may have run
 * something. (A shim killed while it writes it has not, but to say so would
 * need more than a file.) A fence makes it with the pid 0, and the attempt is
 * then lost.
 */
#include "exec/attempt.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/utf8.h"
#include "exec/attempt_file.h"
#include "exec/proctree.h"
#include "exec/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    /* Nothing in the directory can change so often; a session that plays
     * with its own files must not keep us here. */
    LOOKS_MAX = 8,
    LOG_TAIL_BYTES_MAX = 1 << 20,
    STALE_MAX = 1000, /* directories of other attempts with the same name */
};

/* How the lock was found. */
enum lock_state { LOCK_FREE, LOCK_HELD };

/* How a record was found. */
enum record_state { RECORD_ABSENT, RECORD_DAMAGED, RECORD_WHOLE };

void attempt_boot_id(char out[37])
{
    proctree_boot_id(out);
}

/* One field of /proc/PID/stat; 0: there is no such process. */
static uint64_t read_stat(int64_t pid, enum record_stat field)
{
    uint64_t stat[RECORD_STAT_COUNT];
    bool good =
        pid > 0 && pid <= INT_MAX && proctree_read_stat((pid_t)pid, stat);
    return good ? stat[field] : 0;
}

uint64_t attempt_start_ticks(int64_t pid)
{
    return read_stat(pid, RECORD_STAT_START_TICKS);
}

char attempt_process_state(int64_t pid)
{
    return (char)read_stat(pid, RECORD_STAT_STATE);
}

/* A directory that is being looked at. */
struct place {
    int dir_fd;
    int error; /* that kept us from looking (too many open files ...), or 0 */
};

/* Open a file of the directory for reading, whatever it may have been
 * replaced by; -1: it is not there, or no regular file, or we cannot know. */
static int open_file(struct place *place, const char *name)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = openat(place->dir_fd, name, flags);
    struct stat stat;
    if (fd < 0 && errno != ENOENT && errno != ELOOP && errno != ENXIO &&
        errno != ENODEV && errno != ENOTDIR) {
        place->error = errno;
    }
    if (fd >= 0 && (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode))) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Whether a name is there, as anything. */
static bool is_there(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Read what should be one or two records; their length. */
static size_t read_records(struct place *place,
                           const char *name,
                           char bytes[RECORD_FILE_BYTES])
{
    int fd = open_file(place, name);
    if (fd < 0) {
        return 0;
    }
    ssize_t len = pread(fd, bytes, RECORD_FILE_BYTES, 0);
    (void)close(fd);
    return len > 0 ? (size_t)len : 0;
}

static enum record_state read_started(struct place *place,
                                      struct record_started *out)
{
    char bytes[RECORD_FILE_BYTES];
    *out = (struct record_started){0};
    size_t len = read_records(place, "started", bytes);
    if (len >= RECORD_BYTES && record_read_started(bytes, RECORD_BYTES, out)) {
        return RECORD_WHOLE;
    }
    return is_there(place->dir_fd, "started") ? RECORD_DAMAGED : RECORD_ABSENT;
}

static void set_nonce(struct attempt_found *out,
                      const struct record_started *started)
{
    out->named = true;
    memcpy(out->nonce, started->nonce, sizeof(out->nonce));
}

static bool read_exit(struct place *place, struct attempt_found *out)
{
    char bytes[RECORD_FILE_BYTES];
    struct record_started started = {0};
    size_t len = read_records(place, "exit", bytes);
    /* Shims of the first store's time wrote it alone. */
    size_t at = len > RECORD_BYTES ? RECORD_EXIT_AT : 0;
    if (!record_read_exit(bytes + at, len - at, &out->exit)) {
        return false;
    }
    if (at > 0) { /* if that fails, it has no nonce */
        (void)!record_read_started(bytes, RECORD_BYTES, &started);
    }
    set_nonce(out, &started);
    out->state = ATTEMPT_ENDED;
    return true;
}

static enum lock_state probe_lock(struct place *place)
{
    int fd = open_file(place, "lock");
    if (fd < 0) {
        return LOCK_FREE;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    (void)close(fd);
    return held ? LOCK_HELD : LOCK_FREE;
}

/* A shim holds the lock: is it the one that has begun? */
static void found_held(struct place *place, struct attempt_found *out)
{
    struct record_started started;
    out->state = ATTEMPT_STARTING;
    if (read_started(place, &started) == RECORD_WHOLE && started.pid > 0 &&
        attempt_start_ticks(started.pid) == started.start_ticks) {
        out->state = ATTEMPT_LIVE;
        set_nonce(out, &started);
        out->pid = started.pid;
        out->start_ticks = started.start_ticks;
        memcpy(out->boot_id, started.boot_id, sizeof(out->boot_id));
    }
}

/* Look once, in the order above; false: look again. */
static bool look(struct place *place, struct attempt_found *out)
{
    struct record_started started;
    enum record_state record = read_started(place, &started);
    bool begun = record != RECORD_ABSENT;
    memcpy(out->boot_id, started.boot_id, sizeof(out->boot_id));
    if (probe_lock(place) == LOCK_HELD) {
        found_held(place, out);
        return true;
    }
    if (read_exit(place, out)) {
        return true;
    }
    out->state = begun ? ATTEMPT_LOST : ATTEMPT_NEVER;
    if (record == RECORD_WHOLE) {
        set_nonce(out, &started);
    }
    return begun || !is_there(place->dir_fd, "started");
}

enum err attempt_inspect(const char *dir,
                         const char *boot_id,
                         struct attempt_found *out,
                         struct diag *diag)
{
    *out = (struct attempt_found){.state = ATTEMPT_NEVER};
    struct place place = {
        .dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
    };
    if (place.dir_fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        bool short_of = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return diag_set(diag,
                        short_of ? ERR_UNAVAILABLE : ERR_IO,
                        "open %s: %s",
                        dir,
                        strerror(errno));
    }
    if (place.dir_fd < 0 || !read_exit(&place, out)) {
        char present[37];
        attempt_boot_id(present);
        if (present[0] == '0' && strspn(present, "0") == 36) {
            place.error = EMFILE; /* the kernel always has one to tell */
        } else if (strcmp(present, boot_id) != 0) {
            struct record_started started;
            out->state = ATTEMPT_LOST;
            if (place.dir_fd >= 0 &&
                read_started(&place, &started) == RECORD_WHOLE) {
                set_nonce(out, &started);
            }
        } else if (place.dir_fd >= 0) {
            bool settled = false;
            for (int ix = 0; ix < LOOKS_MAX && !settled; ix++) {
                settled = look(&place, out);
            }
        }
    }
    if (place.dir_fd >= 0) {
        (void)close(place.dir_fd);
    }
    /* What could not be looked at is not absent: whoever asks looks again. */
    return place.error == 0 ? ERR_OK
                            : diag_set(diag,
                                       ERR_UNAVAILABLE,
                                       "inspect %s: %s",
                                       dir,
                                       strerror(place.error));
}

enum err attempt_set_aside(const char *dir, struct diag *diag)
{
    int error = EEXIST;
    struct strbuf path = {0};
    for (int n = 1; n <= STALE_MAX && (error == EEXIST || error == ENOTEMPTY);
         n++) {
        strbuf_clear(&path);
        strbuf_addf(&path, "%s.stale-%d", dir, n);
        /* It replaces nothing but an empty directory. */
        error = rename(dir, path.text) == 0 ? 0 : errno;
    }
    strbuf_release(&path);
    return error == 0 || error == ENOENT
               ? ERR_OK
               : diag_set(diag,
                          ERR_IO,
                          "%s holds the files of another attempt and cannot "
                          "be renamed: %s",
                          dir,
                          strerror(error));
}

/* Make `started` under our lock; 0 or an errno. */
static int make_started(int dir_fd, const char *nonce)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct record_started started = {
        .at_ns = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec,
    };
    attempt_boot_id(started.boot_id);
    (void)snprintf(started.nonce, sizeof(started.nonce), "%s", nonce);
    char bytes[RECORD_BYTES];
    record_write_started(bytes, &started);
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(dir_fd, "started", flags, 0600);
    if (fd < 0) {
        return errno;
    }
    /* It counts by being there; its text is for people. */
    (void)!write(fd, bytes, sizeof(bytes));
    (void)close(fd);
    return 0;
}

/* Fence the open directory; 0, or an errno. EAGAIN, EEXIST: a shim has it. */
static int fence(int dir_fd, const char *nonce)
{
    if (is_there(dir_fd, "started")) {
        return EEXIST;
    }
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(dir_fd, "lock", flags, 0600);
    if (fd < 0) {
        return errno;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int error = fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
    crash_point("fence-locked");
    if (error == 0) {
        error = make_started(dir_fd, nonce);
        crash_point("fence-made");
    }
    (void)close(fd);
    return error == EACCES ? EAGAIN : error;
}

enum err attempt_fence(const char *dir,
                       const char *nonce,
                       bool *fenced_out,
                       struct diag *diag)
{
    *fenced_out = false;
    (void)!attempt_file_make_dir(dir, diag); /* what failed shows in the open */
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0) {
        return diag_set(diag, ERR_IO, "open %s: %s", dir, strerror(errno));
    }
    int error = fence(dir_fd, nonce);
    (void)close(dir_fd);
    if (error == EAGAIN || error == EEXIST) {
        return ERR_OK;
    }
    if (error != 0) {
        return diag_set(diag, ERR_IO, "fence %s: %s", dir, strerror(error));
    }
    *fenced_out = true;
    return ERR_OK;
}

/* Append the bytes that a terminal can be shown: no control characters, be
 * they ASCII or the C1 set in UTF-8, but newline and tab. */
static void add_printable(struct strbuf *out, const char *bytes, size_t len)
{
    size_t begin = 0;
    for (size_t ix = 0; ix < len; ix++) {
        unsigned char byte = (unsigned char)bytes[ix];
        bool c1 = byte == 0xc2 && ix + 1 < len &&
                  (unsigned char)bytes[ix + 1] >= 0x80 &&
                  (unsigned char)bytes[ix + 1] < 0xa0;
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f ||
            c1) {
            strbuf_add(out, bytes + begin, ix - begin);
            ix += c1 ? 1 : 0;
            begin = ix + 1;
        }
    }
    strbuf_add(out, bytes + begin, len - begin);
}

/* Read the end of the log, and one byte more to see where a line begins. */
static void add_tail(int fd, size_t bytes, struct strbuf *out)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0 || stat.st_size <= 0) {
        return;
    }
    size_t size = (size_t)stat.st_size;
    size_t want = size > bytes ? bytes + 1 : size;
    struct strbuf tail = {0};
    strbuf_pad(&tail, '\0', want);
    size_t len = 0;
    ssize_t got = 1;
    while (len < want && got > 0) {
        off_t at = (off_t)(size - want + len);
        got = pread(fd, tail.text + len, want - len, at);
        len += got > 0 ? (size_t)got : 0;
    }
    char *begin = tail.text;
    if (size > bytes && len > 0) {
        char *newline = memchr(begin, '\n', len - 1);
        begin = newline != NULL ? newline + 1 : begin + 1;
    }
    len -= (size_t)(begin - tail.text);
    utf8_repair(begin, len);
    add_printable(out, begin, len);
    strbuf_release(&tail);
}

void attempt_add_log_tail(const char *dir, size_t bytes, struct strbuf *out)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0) {
        return;
    }
    struct place place = {.dir_fd = dir_fd};
    int fd = open_file(&place, "log");
    if (fd >= 0) {
        add_tail(fd,
                 bytes < LOG_TAIL_BYTES_MAX ? bytes : LOG_TAIL_BYTES_MAX,
                 out);
        (void)close(fd);
    }
    (void)close(dir_fd);
}
