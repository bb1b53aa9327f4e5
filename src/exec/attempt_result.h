/* SPDX-License-Identifier: MIT */
/*
 * attempt_result: the result file of a session, $SLUICE_RESULT.
 * docs/attempts.md documents its members for sessions.
 */
#ifndef EXEC_ATTEMPT_RESULT_H
#define EXEC_ATTEMPT_RESULT_H

#include "base/diag.h"
#include "exec/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The result of one task of a batch, as the session reports it. */
struct attempt_task_result {
    char *task;
    enum sched_outcome outcome;
    char *reason;   /* or NULL */
    char *feedback; /* or NULL */
};

/* The file $SLUICE_RESULT, parsed and validated. Starts as {0}. */
struct attempt_result {
    bool present;
    bool has_outcome; /* it has a valid `outcome` */
    enum sched_outcome outcome;
    char *reason;            /* or NULL */
    char *feedback;          /* for the stage that reworks, or NULL */
    char *resume;            /* for the next session of the task, or NULL */
    int64_t retry_at_ns;     /* wall clock; 0: none */
    enum outcome_lack lacks; /* if blocked */
    bool stop;            /* its provider is unusable until an operator acts */
    bool progress;        /* of a checkpoint: the session made new commits */
    bool has_usage;       /* it reports its tokens */
    bool has_usd;         /* it reports its cost */
    int64_t input_tokens; /* including cached tokens */
    int64_t cached_tokens;
    int64_t output_tokens;
    double usd;
    char *add; /* plan fragment, or NULL */
    struct attempt_task_result *tasks;
    uint32_t task_count;
};

/*
 * Read `result`. The session wrote it: any error in it (not JSON, too large, a
 * link, unknown outcome) gives ERR_INVALID and a message, never more. A missing
 * file is not an error: `present` is false. ERR_UNAVAILABLE: the file is
 * unreadable for now (too many open files, no memory, disk failure), which
 * implies nothing about the session: read it again.
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
