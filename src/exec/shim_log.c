/* SPDX-License-Identifier: MIT */
/*
 * The log. The session writes to it directly, so nothing stands between a
 * session and its output, and a full disk is the session's own error. The shim
 * can only check its size from time to time.
 *
 * If it exceeds bytes_max bytes, the middle is removed: the shim punches a hole
 * between the first quarter of bytes_max and its last half. Offsets are
 * unchanged, so readers that follow the log need not know. The hole begins with
 * a line that reports how many bytes were cut; the rest reads as NUL bytes. On
 * a file system without holes the shim truncates the file after its first
 * quarter, and appends that line; later output follows.
 *
 * When to check: soon after the log has grown, a little later each time, up to
 * PAUSE_NS_MAX. If it has not grown since the last check, ask the kernel for a
 * signal at the next change in the directory (F_NOTIFY, one-shot) and sleep;
 * without that, PAUSE_NS_BLIND is the longest sleep. So a quiet session costs
 * nothing, and the limit is exceeded by no more than the output of
 * PAUSE_NS_MAX. (inotify would do the same, but a user may have only about a
 * hundred instances.)
 */
#include "base/crash.h"
#include "base/duration.h"
#include "exec/shim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAUSE_NS_MIN (50 * MS_NS)
#define PAUSE_NS_MAX (250 * MS_NS)
#define PAUSE_NS_BLIND (2 * SECOND_NS)

enum {
    BLOCK_BYTES = 4096, /* holes begin and end at multiples of this */
    BYTES_MAX_MIN = 4 * BLOCK_BYTES,
    MARK_DIGITS = 20,
};

#define MARK "\n[sluice: ____________________ bytes were cut here]\n"
#define MARK_BYTES (sizeof(MARK) - 1)

int shim_log_open(struct shim_log *log,
                  int dir_fd,
                  uint64_t bytes_max,
                  int64_t now_ns)
{
    *log = (struct shim_log){.dir_fd = dir_fd, .bytes_max = bytes_max};
    if (bytes_max > 0 && bytes_max < BYTES_MAX_MIN) {
        log->bytes_max = BYTES_MAX_MIN;
    }
    log->cut_begin = log->bytes_max / 4 / BLOCK_BYTES * BLOCK_BYTES;
    log->pause_ns = PAUSE_NS_MIN;
    log->next_ns = bytes_max > 0 ? now_ns + PAUSE_NS_MIN : SHIM_NEVER;
    log->fd = openat(dir_fd,
                     "log",
                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
                         O_NONBLOCK,
                     0600);
    return log->fd >= 0 ? 0 : errno;
}

static uint64_t size_now(const struct shim_log *log)
{
    struct stat stat;
    return fstat(log->fd, &stat) == 0 ? (uint64_t)stat.st_size : log->size;
}

/* Format the mark. Its length does not depend on the number, so that a later
 * mark covers it. */
static void make_mark(char line[MARK_BYTES + 1], uint64_t number)
{
    memcpy(line, MARK, MARK_BYTES + 1);
    char *digits = strchr(line, '_');
    for (int ix = MARK_DIGITS - 1; ix >= 0; ix--) {
        bool leading = number == 0 && ix < MARK_DIGITS - 1;
        digits[ix] = (char)(leading ? ' ' : '0' + (char)(number % 10));
        number /= 10;
    }
}

/* Punch out the middle of the log; return false if that fails. */
static bool punch(struct shim_log *log, int fd)
{
    uint64_t end = (log->size - log->bytes_max / 2) / BLOCK_BYTES * BLOCK_BYTES;
    uint64_t old = log->cut_begin + log->cut_bytes;
    if (log->no_holes || crash_fault("punch") != 0 ||
        fallocate(fd,
                  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)old,
                  (off_t)(end - old)) != 0) {
        return false;
    }
    log->cut_bytes = end - log->cut_begin;
    char line[MARK_BYTES + 1];
    make_mark(line, log->cut_bytes);
    (void)!pwrite(fd, line, MARK_BYTES, (off_t)log->cut_begin);
    return true;
}

/* Truncate the log to its head. Append the mark, after any output that the
 * session has written meanwhile. */
static void truncate_log(struct shim_log *log, int fd)
{
    if (ftruncate(fd, (off_t)log->cut_begin) != 0) {
        return;
    }
    uint64_t removed = log->size - log->cut_begin;
    removed -= log->no_holes ? MARK_BYTES : 0; /* the mark before */
    log->no_holes = true;
    log->cut_bytes += removed;
    log->dropped_bytes += log->size - log->cut_begin - MARK_BYTES;
    char line[MARK_BYTES + 1];
    make_mark(line, log->cut_bytes);
    (void)!write(log->fd, line, MARK_BYTES);
}

static void cut(struct shim_log *log)
{
    /* Not the append descriptor: it ignores offsets. */
    int fd = openat(log->dir_fd, "log", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return;
    }
    if (!punch(log, fd)) {
        truncate_log(log, fd);
    }
    (void)close(fd);
    log->size = size_now(log);
}

/* Request a SIGIO at the next directory change; return false on failure. */
static bool watch(const struct shim_log *log)
{
    return crash_fault("notify") == 0 &&
           fcntl(log->dir_fd, F_NOTIFY, DN_MODIFY) == 0;
}

/* Check the size, and cut if it is too large. */
static void measure(struct shim_log *log)
{
    log->size = size_now(log);
    uint64_t kept = log->size - (log->no_holes ? 0 : log->cut_bytes);
    if (log->bytes_max > 0 && kept > log->bytes_max) {
        cut(log);
    }
}

void shim_log_look(struct shim_log *log, int64_t now_ns)
{
    uint64_t before = log->size;
    measure(log);
    if (log->bytes_max == 0) {
        return;
    }
    bool quiet = log->size == before;
    if (quiet && watch(log)) {
        /* Output between the check and the watch gives no signal. */
        quiet = size_now(log) == log->size;
        if (quiet) {
            log->next_ns = SHIM_NEVER;
            log->pause_ns = PAUSE_NS_MIN / 2;
            return;
        }
    }
    int64_t pause_ns = log->pause_ns * 2;
    int64_t most_ns = quiet ? PAUSE_NS_BLIND : PAUSE_NS_MAX;
    log->pause_ns = pause_ns < most_ns ? pause_ns : most_ns;
    log->next_ns = shim_sum(now_ns, log->pause_ns);
}

void shim_log_end(struct shim_log *log)
{
    measure(log);
}

uint64_t shim_log_written(const struct shim_log *log)
{
    return log->size + log->dropped_bytes;
}

void shim_log_say(const struct shim_log *log,
                  const char *what,
                  const char *name,
                  const char *why)
{
    const char *texts[] = {"sluice: ", what, " ", name, ": ", why, "\n"};
    struct iovec parts[ARRAY_COUNT(texts)];
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        union {
            const char *in;
            void *out;
        } text = {.in = texts[ix]};
        parts[ix].iov_base = text.out;
        parts[ix].iov_len = strlen(texts[ix]);
    }
    (void)!writev(log->fd, parts, ARRAY_COUNT(texts));
}
