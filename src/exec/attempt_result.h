/* SPDX-License-Identifier: MIT */
/*
 * attempt_result: what a session says about itself, in the file
 * $SLUICE_RESULT. docs/attempts.md tells sessions what may be in it.
 */
#ifndef EXEC_ATTEMPT_RESULT_H
#define EXEC_ATTEMPT_RESULT_H

#include "base/diag.h"
#include "exec/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a session says in $SLUICE_RESULT about one task of a batch. */
struct attempt_task_result {
    char *task;
    enum sched_outcome outcome;
    char *reason;   /* or NULL */
    char *feedback; /* or NULL */
};

/* The file $SLUICE_RESULT, read and checked. Starts as {0}. */
struct attempt_result {
    bool present;
    bool has_outcome; /* it names one */
    enum sched_outcome outcome;
    char *reason;            /* or NULL */
    char *feedback;          /* for the stage that works again, or NULL */
    char *resume;            /* for the next session of the task, or NULL */
    int64_t retry_at_ns;     /* wall clock; 0: none */
    enum outcome_lack lacks; /* of a blocked one */
    bool stop;            /* its provider is of no use until an operator acts */
    bool progress;        /* of a checkpoint: it has made new commits */
    bool has_usage;       /* it says how many tokens it used */
    bool has_usd;         /* it says what it cost */
    int64_t input_tokens; /* cached ones included */
    int64_t cached_tokens;
    int64_t output_tokens;
    double usd;
    char *add; /* text of a plan fragment, or NULL */
    struct attempt_task_result *tasks;
    uint32_t task_count;
};

/*
 * Read `result`. It is the session's: whatever is wrong with it (not JSON, too
 * large, a link, unknown outcome) gives ERR_INVALID and a text, never more.
 * A file that is not there is not an error: `present` is false.
 * ERR_UNAVAILABLE: it cannot be read now (too many open files, no memory, the
 * disk failed), which says nothing about the session: read it again.
 */
MUST_USE enum err attempt_read_result(const char *dir,
                                      struct attempt_result *out,
                                      struct diag *diag);
/* The same for bytes in memory. */
MUST_USE enum err attempt_parse_result(const char *bytes,
                                       size_t len,
                                       struct attempt_result *out,
                                       struct diag *diag);
void attempt_result_release(struct attempt_result *result);

#endif /* EXEC_ATTEMPT_RESULT_H */
