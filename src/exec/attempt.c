/* SPDX-License-Identifier: MIT */
/*
 * Reader of an attempt directory that a shim may be writing.
 *
 * The shim locks `lock`; creates `started` as a link to it, which fails if
 * `started` exists; runs the session; writes the exit record into `lock`;
 * renames `lock` to `exit`; and exits, which frees the lock. See record.c.
 *
 * The lock is an open file description lock (F_OFD_SETLK). attempt_inspect()
 * probes it with F_OFD_GETLK, which takes nothing: a probe can never make a
 * shim believe that another shim holds the lock.
 *
 * attempt_inspect() reads `started`, then the lock, then `exit`. That order is
 * correct under any interleaving:
 *  - `started` existed, and the lock was free or its file gone: the shim that
 *    created `started` held the lock before that, so it has since died or
 *    written its record. Reading `exit` last distinguishes the two.
 *  - `started` did not exist and the lock was free: nothing had begun. If
 *    `started` exists now, repeat all steps; it can only appear once.
 *
 * A shim that comes late may hold the lock for a moment, until it finds
 * `started`. So attempt_inspect() also compares a live shim with the process of
 * that pid, and returns ATTEMPT_STARTING if they differ.
 *
 * The existence of `started` counts, whole or not: its creator may have run
 * something. (A shim killed while writing it has not, but recording that takes
 * more than a file.) A fence creates it with pid 0; the attempt is then lost.
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
    /* Nothing in the directory changes this often; bounds the loop if a session
     * modifies its own files. */
    LOOKS_MAX = 8,
    LOG_TAIL_BYTES_MAX = 1 << 20,
    STALE_MAX = 1000, /* directories of other attempts with the same name */
};

/* State of the lock. */
enum lock_state { LOCK_FREE, LOCK_HELD };

/* State of a record. */
enum record_state { RECORD_ABSENT, RECORD_DAMAGED, RECORD_WHOLE };

void attempt_boot_id(char out[37])
{
    proctree_boot_id(out);
}

/* Return one field of /proc/PID/stat, or 0 if the process does not exist. */
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

/* A directory being inspected. */
struct place {
    int dir_fd;
    int error; /* errno that prevented inspection (EMFILE...), or 0 */
};

/* Open a file of the directory for reading, whatever may have replaced it.
 * Return -1 if it does not exist, is not regular, or could not be opened. */
static int open_file(struct place *place, const char *name)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = openat(place->dir_fd, name, flags);
    struct stat stat;
    if (fd < 0 && errno != ENOENT && errno != ELOOP && errno != ENXIO &&
        errno != ENODEV && errno != ENOTDIR) {
        place->error = errno;
    }
    bool known = fd >= 0 && fstat(fd, &stat) == 0;
    if (fd >= 0 && !known) {
        place->error = errno;
    }
    if (fd >= 0 && (!known || !S_ISREG(stat.st_mode))) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Whether a name exists, as any type of file. */
static bool is_there(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Read one or two records; return the length. */
static size_t read_records(struct place *place,
                           const char *name,
                           char bytes[RECORD_FILE_BYTES])
{
    int fd = open_file(place, name);
    if (fd < 0) {
        return 0;
    }
    ssize_t len = pread(fd, bytes, RECORD_FILE_BYTES, 0);
    if (len < 0) {
        place->error = errno;
    }
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
    /* Shims of the first store version wrote it alone. */
    size_t at = len > RECORD_BYTES ? RECORD_EXIT_AT : 0;
    if (!record_read_exit(bytes + at, len - at, &out->exit)) {
        return false;
    }
    if (at > 0) { /* on failure the record has no nonce */
        (void)!record_read_started(bytes, RECORD_BYTES, &started);
    }
    if (out->exit.nonce[0] != '\0' &&
        strcmp(out->exit.nonce, started.nonce) != 0) {
        return false; /* of the attempt that had the directory before */
    }
    set_nonce(out, &started);
    out->state = ATTEMPT_ENDED;
    return true;
}

/*
 * Whether the result is that of the exit record. A power cut can lose either of
 * them: without its result, a session that requests changes would be done.
 */
static bool has_its_result(struct place *place, const struct attempt_exit *exit)
{
    struct attempt_exit now = {0};
    int error = exit->sealed ? record_seal(place->dir_fd, &now) : 0;
    if (error != 0) {
        place->error = error;
    }
    return !now.sealed || (now.result_bytes == exit->result_bytes &&
                           now.result_sum == exit->result_sum);
}

static enum lock_state probe_lock(struct place *place)
{
    int fd = open_file(place, "lock");
    if (fd < 0) { /* the directory was that of another attempt before */
        fd = open_file(place, "started");
    }
    if (fd < 0) {
        return LOCK_FREE;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) {
        place->error = errno;
    }
    (void)close(fd);
    return lock.l_type != F_UNLCK ? LOCK_HELD : LOCK_FREE;
}

/* A shim holds the lock: is it the shim that created `started`? */
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

/* Inspect once, in the order above; return false to inspect again. */
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
        out->fenced = started.pid == 0;
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
    bool ended = place.dir_fd >= 0 && read_exit(&place, out);
    if (!ended || !has_its_result(&place, &out->exit)) {
        char present[37];
        attempt_boot_id(present);
        if (present[0] == '0' && strspn(present, "0") == 36) {
            place.error = EMFILE; /* the boot id was unreadable */
        } else if (strcmp(present, boot_id) != 0) {
            struct record_started started;
            out->state = ATTEMPT_LOST;
            if (place.dir_fd >= 0 &&
                read_started(&place, &started) == RECORD_WHOLE) {
                set_nonce(out, &started);
            }
        } else if (!ended && place.dir_fd >= 0) {
            bool settled = false;
            for (int ix = 0; ix < LOOKS_MAX && !settled; ix++) {
                settled = look(&place, out);
            }
        }
    }
    if (place.dir_fd >= 0) {
        (void)close(place.dir_fd);
    }
    /* An unreadable file is not absent: the caller inspects again. */
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
        /* rename() replaces nothing but an empty directory. */
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

/* Create `started` under our lock; return 0 or an errno. */
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
    /* Its existence counts; its content is informative. */
    (void)!write(fd, bytes, sizeof(bytes));
    (void)close(fd);
    return 0;
}

/* Fence the directory; return 0 or an errno. EAGAIN, EEXIST: a shim has it. */
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
    (void)!attempt_file_make_dir(dir, diag); /* open() reports a failure */
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

/* Append the bytes that are safe on a terminal: no control characters (ASCII,
 * or the C1 set in UTF-8) except newline and tab. */
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

/* Read the log tail, and one byte more to find where a line begins. */
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
