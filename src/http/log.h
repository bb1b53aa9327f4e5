/* SPDX-License-Identifier: MIT */
/*
 * log: parts of the log of an attempt. A log may have any size and any bytes;
 * each call reads a bounded part of it.
 */
#ifndef HTTP_LOG_H
#define HTTP_LOG_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "store/place.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a log is read: its end. */
#define LOG_END UINT64_MAX

enum {
    LOG_BYTES_MAX = 256 << 10, /* of one part */
    LOG_FOUND_MAX = 200,       /* lines of one search */
    LOG_LINE_BYTES = 300,      /* of such a line */
};

/* The attempt whose log to read. */
struct log_name {
    const struct store_place *place;
    const char *run;
    const char *task;
    uint32_t number; /* 0: the last */
};

/* A part of a log. */
struct log_part {
    uint32_t number;   /* of the attempt */
    bool over;         /* the attempt has ended: the log grows no more */
    uint64_t from;     /* offset of the text */
    uint64_t next;     /* offset after it */
    uint64_t size;     /* of the log now */
    struct strbuf raw; /* as in the file */
};

/* Read at most `max` bytes from an offset, or the last ones. ERR_NOT_FOUND: no
 * such attempt or log. Release *out in any case. */
MUST_USE enum err log_read(struct log_part *out,
                           const struct log_name *name,
                           uint64_t from,
                           size_t max,
                           struct diag *diag);
void log_part_release(struct log_part *part);

/* Append the text of a part as valid UTF-8 without NUL. */
void log_add_text(struct strbuf *out, const struct log_part *part);

/* A line that was found. */
struct log_line {
    uint64_t at;
    char text[LOG_LINE_BYTES];
};

struct log_found {
    struct log_line *lines;
    uint32_t count;
    uint64_t
        next; /* where to go on; LOG_END: the log was searched to its end */
    uint64_t size;
};

/* Find lines with a string, from an offset on, for some seconds at most. */
MUST_USE enum err log_find(struct log_found *out,
                           const struct log_name *name,
                           const char *text,
                           uint64_t from,
                           struct diag *diag);
void log_found_release(struct log_found *found);

#endif /* HTTP_LOG_H */
