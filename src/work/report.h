/* SPDX-License-Identifier: MIT */
/*
 * report: what a worker tells its scheduler about one piece of work.
 *
 * Reports are facts, found in the directory of the work, so it does not matter
 * how often one comes. What follows from them is the scheduler's business.
 */
#ifndef WORK_REPORT_H
#define WORK_REPORT_H

#include "exec/attempt.h"
#include "exec/attempt_result.h"
#include "work/mark.h"

enum work_report_type {
    WORK_STARTED, /* it runs: `mark` */
    WORK_ENDED,   /* it has ended: `exit`, `result`, `log`, `output` */
    WORK_REFUSED, /* it has not begun, and never will: `error`, `text` */
    WORK_LOST,    /* it has begun, and nothing of it is left: `result` */
    WORK_UNKNOWN, /* there is no trace of it: it can be assigned */
};

/* Strings are borrowed for the call. */
struct work_report {
    uint64_t token;
    enum work_report_type type;
    struct work_mark mark;
    struct attempt_exit exit;
    const struct attempt_result *result; /* never NULL in ENDED and LOST */
    enum err result_err; /* ERR_UNAVAILABLE: it could not be read, however
                            often; ERR_INVALID: it says nothing that counts */
    const char *log;     /* last lines; "" if it ended plainly well */
    const char *output;  /* of a program; NULL: `text` says why */
    size_t output_len;
    int error;        /* errno of a start that failed; 0: none */
    const char *text; /* of the error, of a bad result or output; or NULL */
    bool withdrawn;   /* REFUSED: because it was no longer wanted */
    bool vanished;    /* LOST: its directory was removed */
};

typedef void (*work_report_fn)(void *ctx, const struct work_report *report);

#endif /* WORK_REPORT_H */
