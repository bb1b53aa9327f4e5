/* SPDX-License-Identifier: MIT */
/*
 * record: the records `started` and `exit` in an attempt directory.
 *
 * The scheduler reads them; the shim writes them, and links nothing but the C
 * library: no base/, no stdio. record.c defines the formats.
 */
#ifndef EXEC_RECORD_H
#define EXEC_RECORD_H

#include "base/macros.h"
#include "exec/attempt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of every record. Both are in one file, the start record first; the file
 * has two names: `started`, and `lock`, which becomes `exit`. */
enum {
    RECORD_BYTES = 512,
    RECORD_EXIT_AT = RECORD_BYTES,
    RECORD_FILE_BYTES = RECORD_EXIT_AT + RECORD_BYTES,
    RECORD_RESULT_BYTES_MAX = 1 << 20, /* a longer result is invalid */
};

/* The record in `started`. */
struct record_started {
    char nonce[ATTEMPT_NONCE_BYTES]; /* of the attempt; "": none */
    char boot_id[37];
    int64_t pid; /* of the shim; 0: a fence, nothing ran */
    uint64_t start_ticks;
    int64_t at_ns; /* wall clock */
};

/* Fill `out`, without a NUL. boot_id must have 36 bytes. */
void record_write_started(char out[RECORD_BYTES],
                          const struct record_started *started);
void record_write_exit(char out[RECORD_BYTES], const struct attempt_exit *exit);

/* Read a record; return false unless the bytes are exactly one record. */
MUST_USE bool
record_read_started(const char *bytes, size_t len, struct record_started *out);
MUST_USE bool
record_read_exit(const char *bytes, size_t len, struct attempt_exit *out);

/*
 * Set size and checksum of the result in an attempt directory: of its first
 * RECORD_RESULT_BYTES_MAX bytes, about. Return 0, or the errno that prevented
 * it; `exit` is then unchanged.
 */
MUST_USE int record_seal(int dir_fd, struct attempt_exit *exit);

/* Stable name of a cause. */
const char *record_cause_name(enum attempt_cause cause);

/*
 * Fields of /proc/PID/stat. record_read_stat() returns false on invalid input.
 */
enum record_stat {
    RECORD_STAT_STATE, /* letter, of the first thread */
    RECORD_STAT_PARENT,
    RECORD_STAT_GROUP,
    RECORD_STAT_CPU_TICKS, /* own, and of children waited for */
    RECORD_STAT_START_TICKS,
    RECORD_STAT_COUNT,
};
MUST_USE bool record_read_stat(const char *bytes,
                               size_t len,
                               uint64_t fields[RECORD_STAT_COUNT]);

#endif /* EXEC_RECORD_H */
