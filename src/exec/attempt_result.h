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
    bool final;     /* of OUTCOME_FAILED: no retry helps */
    char *outputs;  /* or NULL, as in struct attempt_result */
};

/* The verdict of a gate, reported by a merge. */
enum attempt_gate_verdict {
    ATTEMPT_GATE_PASSED,
    ATTEMPT_GATE_FAILED,
    ATTEMPT_GATE_FLAKY, /* it failed first, and passed then */
};
struct attempt_gate {
    char *tree;
    char *commit;
    char *command;
    enum attempt_gate_verdict verdict;
    uint32_t tries; /* how often it ran */
    char *output;   /* of a failure: its last lines, or NULL */
};

/* Its name, "passed"; and the other way: false if there is no such name. */
const char *attempt_gate_name(enum attempt_gate_verdict verdict);
bool attempt_gate_read(const char *name, enum attempt_gate_verdict *out);

/* The file $SLUICE_RESULT, parsed and validated. Starts as {0}. */
struct attempt_result {
    bool present;
    bool has_outcome; /* it has a valid `outcome` ... */
    bool finish;      /* ... that counts whatever the exit code */
    enum sched_outcome outcome;
    char *reason;            /* or NULL */
    char *feedback;          /* for the stage that reworks, or NULL */
    char *resume;            /* for the next session of the task, or NULL */
    int64_t retry_at_ns;     /* wall clock; 0: none */
    int64_t retry_after_ns;  /* from the end of the session on; 0: none */
    bool final;              /* of a failure: no retry helps */
    char *outputs;           /* small texts for dependents: a JSON object of
                                strings, or NULL */
    enum outcome_lack lacks; /* if blocked */
    bool stop;            /* its provider is unusable until an operator acts */
    bool progress;        /* of a checkpoint: the session made new commits */
    bool has_usage;       /* it reports its tokens */
    bool has_usd;         /* it reports its cost */
    int64_t input_tokens; /* including cached tokens */
    int64_t cached_tokens;
    int64_t output_tokens;
    double usd;
    char *add;         /* plan fragment, or NULL */
    uint32_t restarts; /* of a merge: how often it was restarted in its queue */
    char *on;          /* of a merge: tasks it was built on, or NULL */
    char *base_commit; /* of a merge: the base it tried to merge, or NULL */
    char *base_reason; /* why it could not, or NULL */
    bool base_failed;
    struct attempt_task_result *tasks;
    uint32_t task_count;
    struct attempt_gate *gates; /* of a merge */
    uint32_t gate_count;
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

/* Return the outputs of a task: its own, if it is listed with outputs, else
 * those of the session. NULL: none. */
const char *attempt_result_outputs(const struct attempt_result *result,
                                   const char *task);

#endif /* EXEC_ATTEMPT_RESULT_H */
