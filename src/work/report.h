/* SPDX-License-Identifier: MIT */
/*
 * report: state of one piece of work, from a worker to its scheduler.
 *
 * Reports are facts, read from the work directory, so repeating one is
 * harmless. The scheduler draws the conclusions.
 */
#ifndef WORK_REPORT_H
#define WORK_REPORT_H

#include "exec/attempt.h"
#include "exec/attempt_result.h"
#include "work/mark.h"

enum work_report_type {
    WORK_STARTED, /* it runs: `mark` */
    WORK_ENDED,   /* it has exited: `exit`, `result`, `log`, `output` */
    WORK_REFUSED, /* it has not begun, and never will: `error`, `text` */
    WORK_LOST,    /* it has begun, and no process is left: `result` */
    WORK_UNKNOWN, /* no trace of it: it can be assigned */
};

/* Strings are borrowed for the call. */
struct work_report {
    uint64_t token;
    enum work_report_type type;
    struct work_mark mark;
    struct attempt_exit exit;
    const struct attempt_result *result; /* never NULL in ENDED and LOST */
    enum err result_err; /* ERR_UNAVAILABLE: unreadable after all retries;
                            ERR_INVALID: it does not count */
    const char *log;     /* last lines; "" after a plain success */
    const char *output;  /* of a program; NULL: `text` has the reason */
    size_t output_len;
    int error;        /* errno of a start that failed; 0: none */
    const char *text; /* of the error, invalid result or output; or NULL */
    bool withdrawn;   /* REFUSED: because it was no longer wanted */
    bool elsewhere;   /* REFUSED: this machine cannot run it now; another may */
    bool vanished;    /* LOST: its directory was removed */
};

typedef void (*work_report_fn)(void *ctx, const struct work_report *report);

#endif /* WORK_REPORT_H */
