/* SPDX-License-Identifier: MIT */
/*
 * Record formats. A record is text of RECORD_BYTES bytes: lines of a name, one
 * space and a value, all of them in this order; then spaces; then a newline as
 * the last byte. `sum` is FNV-1a (64 bits, hexadecimal) of everything before
 * its line. Times are wall-clock nanoseconds.
 *
 *   sluice-started 2        kind and version of the format
 *   nonce X                 of the attempt; version 1 has no such line
 *   boot UUID               boot id of the machine
 *   pid N                   of the shim; 0 for a fence
 *   ticks N                 its start time, field 22 of /proc/PID/stat
 *   at N                    when the record was written
 *   sum X
 *
 *   sluice-exit 3
 *   nonce X                 as in the start record. Versions 1 and 2 have no
 *                           such line
 *   cause NAME              exit, timeout, idle, cancelled, stopped, spawn,
 *                           prepare, lease
 *   code N                  -1: killed by a signal, or never ran
 *   signal N                0: none
 *   error N                 errno of the cause spawn, else 0
 *   begun N
 *   ended N
 *   cpu N                   nanoseconds of user and system time
 *   log N                   bytes written to the log
 *   cut N                   of these, bytes removed from its middle
 *   result N                bytes of the session's result; -1: none. Version 1
 *                           has neither this line nor the next
 *   result-sum N            FNV-1a of the result
 *   sum X
 *
 * After a power cut a directory may have the exit record without the result, or
 * with a part of it. Syncing both would cost more than all the rest of a short
 * session, so the record says what belongs to it.
 *
 * A directory may have been that of another attempt. A power cut can then leave
 * the start record of one and the exit record of the other, so both have the
 * nonce.
 *
 * To change a format, increment its version and let the reader accept both: a
 * session may outlive the program that started it.
 *
 * The reader extracts the values, writes the record again and compares all
 * bytes. So it accepts exactly the writer's output, and the checksum, ranges
 * and padding need no code of their own.
 */
#include "exec/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BOOT_ID_LEN = 36, CAUSE_COUNT = ATTEMPT_LEASE + 1 };

/* FNV-1a: the initial value. */
#define SUM_START UINT64_C(0xcbf29ce484222325)

/* A record being written. Everything fits by design. */
struct writer {
    char *bytes;
    size_t len;
};

/* A record being read. */
struct reader {
    const char *at;
    const char *end;
    bool bad;
};

static void put(struct writer *writer, const char *text, size_t len)
{
    if (writer->len + len < RECORD_BYTES) {
        memcpy(writer->bytes + writer->len, text, len);
        writer->len += len;
    }
}

static void put_text(struct writer *writer, const char *name, const char *value)
{
    put(writer, name, strlen(name));
    put(writer, " ", 1);
    put(writer, value, strlen(value));
    put(writer, "\n", 1);
}

/* Write a number, preceded by its sign. */
static void put_number(struct writer *writer,
                       const char *name,
                       bool is_negative,
                       uint64_t value)
{
    char digits[22];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    if (is_negative) {
        digits[--at] = '-';
    }
    put_text(writer, name, digits + at);
}

static void
put_unsigned(struct writer *writer, const char *name, uint64_t value)
{
    put_number(writer, name, false, value);
}

static void put_signed(struct writer *writer, const char *name, int64_t value)
{
    uint64_t size = (uint64_t)value;
    put_number(writer, name, value < 0, value < 0 ? 0 - size : size);
}

static uint64_t add_to_sum(uint64_t sum, const char *bytes, size_t len)
{
    for (size_t ix = 0; ix < len; ix++) {
        sum ^= (unsigned char)bytes[ix];
        sum *= UINT64_C(0x100000001b3);
    }
    return sum;
}

/* Add the checksum and the padding. */
static void finish(struct writer *writer)
{
    uint64_t sum = add_to_sum(SUM_START, writer->bytes, writer->len);
    char hex[17];
    for (int ix = 15; ix >= 0; ix--, sum >>= 4) {
        hex[ix] = "0123456789abcdef"[sum & 15];
    }
    hex[16] = '\0';
    put_text(writer, "sum", hex);
    memset(writer->bytes + writer->len, ' ', RECORD_BYTES - writer->len);
    writer->bytes[RECORD_BYTES - 1] = '\n';
}

/* Return the length of the next line's value; the line must have this name. */
static size_t
take(struct reader *reader, const char *name, const char **value_out)
{
    size_t name_len = strlen(name);
    size_t left = (size_t)(reader->end - reader->at);
    *value_out = "";
    if (reader->bad || left < name_len + 2 ||
        memcmp(reader->at, name, name_len) != 0 ||
        reader->at[name_len] != ' ') {
        reader->bad = true;
        return 0;
    }
    const char *value = reader->at + name_len + 1;
    const char *newline = memchr(value, '\n', left - name_len - 1);
    if (newline == NULL) {
        reader->bad = true;
        return 0;
    }
    *value_out = value;
    reader->at = newline + 1;
    return (size_t)(newline - value);
}

/* Wraps around if too large, and then does not compare equal. */
static uint64_t digits(const char *text, size_t len)
{
    uint64_t value = 0;
    for (size_t ix = 0; ix < len; ix++) {
        value = value * 10 + (uint64_t)(unsigned char)(text[ix] - '0');
    }
    return value;
}

static uint64_t take_unsigned(struct reader *reader, const char *name)
{
    const char *value;
    size_t len = take(reader, name, &value);
    return digits(value, len);
}

static int64_t take_signed(struct reader *reader, const char *name)
{
    const char *value;
    size_t len = take(reader, name, &value);
    if (len > 0 && value[0] == '-') {
        return (int64_t)((uint64_t)0 - digits(value + 1, len - 1));
    }
    return (int64_t)digits(value, len);
}

const char *record_cause_name(enum attempt_cause cause)
{
    static const char *const names[CAUSE_COUNT] = {
        [ATTEMPT_EXIT] = "exit",
        [ATTEMPT_TIMEOUT] = "timeout",
        [ATTEMPT_IDLE] = "idle",
        [ATTEMPT_CANCELLED] = "cancelled",
        [ATTEMPT_STOPPED] = "stopped",
        [ATTEMPT_SPAWN] = "spawn",
        [ATTEMPT_PREPARE] = "prepare",
        [ATTEMPT_LEASE] = "lease",
    };
    return names[cause];
}

static enum attempt_cause take_cause(struct reader *reader)
{
    const char *value;
    size_t len = take(reader, "cause", &value);
    for (int cause = 0; cause < CAUSE_COUNT; cause++) {
        const char *name = record_cause_name((enum attempt_cause)cause);
        if (strlen(name) == len && memcmp(name, value, len) == 0) {
            return (enum attempt_cause)cause;
        }
    }
    reader->bad = true;
    return ATTEMPT_EXIT;
}

/* Return false if it is too long. */
static bool take_nonce(struct reader *reader, char out[ATTEMPT_NONCE_BYTES])
{
    const char *value;
    size_t len = take(reader, "nonce", &value);
    if (len >= ATTEMPT_NONCE_BYTES) {
        return false;
    }
    memcpy(out, value, len);
    return true;
}

void record_write_started(char out[RECORD_BYTES],
                          const struct record_started *started)
{
    struct writer writer = {.bytes = out};
    put_unsigned(&writer, "sluice-started", started->nonce[0] != '\0' ? 2 : 1);
    if (started->nonce[0] != '\0') {
        put_text(&writer, "nonce", started->nonce);
    }
    put_text(&writer, "boot", started->boot_id);
    put_signed(&writer, "pid", started->pid);
    put_unsigned(&writer, "ticks", started->start_ticks);
    put_signed(&writer, "at", started->at_ns);
    finish(&writer);
}

void record_write_exit(char out[RECORD_BYTES], const struct attempt_exit *exit)
{
    struct writer writer = {.bytes = out};
    bool named = exit->sealed && exit->nonce[0] != '\0';
    put_unsigned(&writer, "sluice-exit", named ? 3 : exit->sealed ? 2 : 1);
    if (named) {
        put_text(&writer, "nonce", exit->nonce);
    }
    put_text(&writer, "cause", record_cause_name(exit->cause));
    put_signed(&writer, "code", exit->code);
    put_signed(&writer, "signal", exit->signal);
    put_signed(&writer, "error", exit->error);
    put_signed(&writer, "begun", exit->begun_ns);
    put_signed(&writer, "ended", exit->ended_ns);
    put_signed(&writer, "cpu", exit->cpu_ns);
    put_unsigned(&writer, "log", exit->log_bytes);
    put_unsigned(&writer, "cut", exit->log_cut_bytes);
    if (exit->sealed) {
        put_signed(&writer, "result", exit->result_bytes);
        put_unsigned(&writer, "result-sum", exit->result_sum);
    }
    finish(&writer);
}

bool record_read_started(const char *bytes,
                         size_t len,
                         struct record_started *out)
{
    struct reader reader = {.at = bytes, .end = bytes + len};
    struct record_started found = {0};
    const char *boot;
    if (take_unsigned(&reader, "sluice-started") == 2 &&
        !take_nonce(&reader, found.nonce)) {
        return false;
    }
    size_t boot_len = take(&reader, "boot", &boot);
    if (boot_len != BOOT_ID_LEN || len != RECORD_BYTES) {
        return false;
    }
    memcpy(found.boot_id, boot, BOOT_ID_LEN);
    found.pid = take_signed(&reader, "pid");
    found.start_ticks = take_unsigned(&reader, "ticks");
    found.at_ns = take_signed(&reader, "at");
    char again[RECORD_BYTES];
    record_write_started(again, &found);
    if (reader.bad || memcmp(again, bytes, RECORD_BYTES) != 0) {
        return false;
    }
    *out = found;
    return true;
}

bool record_read_exit(const char *bytes, size_t len, struct attempt_exit *out)
{
    struct reader reader = {.at = bytes, .end = bytes + len};
    struct attempt_exit found = {0};
    uint64_t version = take_unsigned(&reader, "sluice-exit");
    found.sealed = version == 2 || version == 3;
    if (version == 3 && !take_nonce(&reader, found.nonce)) {
        return false;
    }
    found.cause = take_cause(&reader);
    found.code = (int)take_signed(&reader, "code");
    found.signal = (int)take_signed(&reader, "signal");
    found.error = (int)take_signed(&reader, "error");
    found.begun_ns = take_signed(&reader, "begun");
    found.ended_ns = take_signed(&reader, "ended");
    found.cpu_ns = take_signed(&reader, "cpu");
    found.log_bytes = take_unsigned(&reader, "log");
    found.log_cut_bytes = take_unsigned(&reader, "cut");
    if (found.sealed) {
        found.result_bytes = take_signed(&reader, "result");
        found.result_sum = take_unsigned(&reader, "result-sum");
    }
    char again[RECORD_BYTES];
    record_write_exit(again, &found);
    if (reader.bad || len != RECORD_BYTES ||
        memcmp(again, bytes, RECORD_BYTES) != 0) {
        return false;
    }
    *out = found;
    return true;
}

int record_seal(int dir_fd, struct attempt_exit *exit)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = openat(dir_fd, "result", flags);
    if (fd < 0 && errno != ENOENT && errno != ELOOP && errno != ENXIO) {
        return errno;
    }
    int64_t total = -1;
    uint64_t sum = SUM_START;
    struct stat status;
    int error = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        char bytes[4096];
        ssize_t len = 0;
        total = 0;
        while (total <= RECORD_RESULT_BYTES_MAX &&
               (len = read(fd, bytes, sizeof(bytes))) > 0) {
            sum = add_to_sum(sum, bytes, (size_t)len);
            total += len;
        }
        error = len < 0 ? errno : 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (error == 0) {
        exit->sealed = true;
        exit->result_bytes = total;
        exit->result_sum = sum;
    }
    return error;
}

bool record_read_stat(const char *bytes,
                      size_t len,
                      uint64_t fields[RECORD_STAT_COUNT])
{
    /* The name may contain spaces and parentheses; the last ) closes it. */
    const char *name_end = memrchr(bytes, ')', len);
    memset(fields, 0, RECORD_STAT_COUNT * sizeof(fields[0]));
    if (name_end == NULL) {
        return false;
    }
    const char *at = name_end + 1;
    const char *end = bytes + len;
    for (int field = 3; field <= 22; field++) {
        while (at < end && *at == ' ') {
            at++;
        }
        const char *value = at;
        while (at < end && *at != ' ' && *at != '\n') {
            at++;
        }
        if (at == value) {
            return false;
        }
        uint64_t number = digits(value, (size_t)(at - value));
        if (field == 3) {
            fields[RECORD_STAT_STATE] = (unsigned char)*value;
        } else if (field == 4) {
            fields[RECORD_STAT_PARENT] = number;
        } else if (field == 5) {
            fields[RECORD_STAT_GROUP] = number;
        } else if (field >= 14 && field <= 17) {
            fields[RECORD_STAT_CPU_TICKS] += number;
        } else if (field == 22) {
            fields[RECORD_STAT_START_TICKS] = number;
        }
    }
    return true;
}
