/* SPDX-License-Identifier: MIT */
/*
 * batch: the changes that one pass of the scheduler makes to the store, as
 * plain data.
 *
 * Changes are applied in order. The batch owns copies of all its strings, so
 * another thread can write it, and write it again after the disk was full.
 * Bytes that are not valid UTF-8 become '?': databases and JSON reject them,
 * and a session's log can contain them. Meant to be embedded; starts as {0}.
 */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "base/arena.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "No task", "no run", "no leader". */
#define STORE_NONE UINT32_MAX

/* Ceiling on the number of a run. */
enum { STORE_RUN_MAX = INT32_MAX };

/*
 * The columns of each kind of row, from which its struct and its table in
 * columns.c are generated. A new column is a line here and a step of the
 * schema. An update leaves FIXED columns unchanged. columns.h defines how types
 * are stored.
 */
#define STORE_TYPE_BOOL bool
#define STORE_TYPE_I32 int32_t
#define STORE_TYPE_U32 uint32_t
#define STORE_TYPE_U32_OR_NULL uint32_t
#define STORE_TYPE_I64 int64_t
#define STORE_TYPE_U64 uint64_t
#define STORE_TYPE_DOUBLE double
#define STORE_TYPE_TEXT const char *
#define STORE_TYPE_TEXT_OR_NULL const char *
#define STORE_TYPE_CHARS(bytes) __typeof__(char[bytes])
#define STORE_TYPE_BYTES const char *
#define STORE_MEMBER(type, name) STORE_TYPE_##type name;

/* One execution of a plan. `id` is unique and readable ("booking-wave-3"). */
#define STORE_RUN_COLUMNS(FIXED, SET)                                          \
    FIXED(U32, number) /* from 1, ascending; in other rows `run` */            \
    FIXED(TEXT, id)                                                            \
    FIXED(TEXT, name)                                                          \
    FIXED(TEXT, file)       /* the plan's, as given */                         \
    FIXED(TEXT, folder)     /* absolute: relative paths start there */         \
    FIXED(U32, processors)  /* at the time of submission */                    \
    FIXED(I64, created_ns)  /* wall clock */                                   \
    FIXED(U32, rules)       /* PLAN_RULES of its plan; 0: before version 5 */  \
    FIXED(BOOL, base_gates) /* its plan has tasks that gate bases */           \
    FIXED(I64, not_before_ns) /* wall clock; 0: none */                        \
    FIXED(CHARS(65), worker)  /* whose machine has its files; "": any */       \
    SET(BOOL, finished)                                                        \
    SET(BOOL, paused)                                                          \
    SET(BOOL, cancelled)                                                       \
    SET(U32, barrier) /* 1: its hook is due; N + 1: hook N runs */             \
    SET(U32, completions)                                                      \
    SET(U32, owed)    /* foreground tasks before an aged background one */     \
    SET(U32, stopped) /* enum sched_stop */                                    \
    SET(BOOL, deadline_over) /* its deadline has passed, and counts no more */
struct store_run {
    STORE_RUN_COLUMNS(STORE_MEMBER, STORE_MEMBER)
    const char *text; /* of the plan, in STORE_RUN_NEW: its fragment 0 */
    size_t text_bytes;
};

/* A text of a run: its plan, or a fragment that was added later. */
#define STORE_FRAGMENT_COLUMNS(FIXED, SET)                                     \
    FIXED(U32, run)                                                            \
    FIXED(U32, number) /* 0: the plan, from STORE_RUN_NEW */                   \
    FIXED(TEXT, file)                                                          \
    FIXED(TEXT_OR_NULL, key) /* chosen by its sender, unique in the run */     \
    FIXED(BYTES, text)
struct store_fragment {
    STORE_FRAGMENT_COLUMNS(STORE_MEMBER, STORE_MEMBER)
    size_t text_bytes;
};

/* A limit that an operator has changed. */
#define STORE_LIMIT_COLUMNS(FIXED, SET)                                        \
    FIXED(U32, run)                                                            \
    FIXED(TEXT, name)                                                          \
    SET(I64, max)                                                              \
    SET(U32, percent)
struct store_limit {
    STORE_LIMIT_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/* Back-off and circuit of one provider. */
#define STORE_PROVIDER_COLUMNS(FIXED, SET)                                     \
    FIXED(TEXT, name)                                                          \
    SET(U32, steps)                                                            \
    SET(U32, steps_kept)                                                       \
    SET(BOOL, confirming)                                                      \
    SET(I64, shut_until_ns)                                                    \
    SET(BOOL, usage)                                                           \
    SET(U32, failures)                                                         \
    SET(BOOL, circuit_open)                                                    \
    SET(U64, probe_token)                                                      \
    SET(U32, probe_steps)                                                      \
    SET(I64, probe_at_ns)                                                      \
    SET(BOOL, stopped)        /* until an operator resumes it */               \
    SET(TEXT_OR_NULL, reason) /* why it is stopped; NULL: it is in use */
struct store_provider {
    STORE_PROVIDER_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/* A small named value, such as the last reading of a usage meter. */
#define STORE_SETTING_COLUMNS(FIXED, SET)                                      \
    FIXED(TEXT, name)                                                          \
    SET(TEXT_OR_NULL, value) /* NULL: absent, or removed */
struct store_setting {
    STORE_SETTING_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/*
 * The state of a task. Times are of the engine's clock unless noted. The last
 * two columns are the cost of all its attempts, as reported by their sessions.
 */
#define STORE_TASK_COLUMNS(FIXED, SET)                                         \
    SET(TEXT, id)                                                              \
    SET(TEXT, state) /* name of enum task_state */                             \
    SET(U32, flags)  /* SCHED_RECORD_... */                                    \
    SET(U32, parked) /* enum sched_parked */                                   \
    SET(I64, ready_ns)                                                         \
    SET(U64, ready_seq)                                                        \
    SET(I64, until_ns)                                                         \
    SET(I64, started_ns)                                                       \
    SET(I64, service_ns) /* of its group */                                    \
    SET(U64, version)    /* grows with every write of any task */              \
    SET(U64, token)                                                            \
    SET(U32_OR_NULL, leader) /* of its session: index of a task */             \
    SET(U32, place)          /* in its session, from 0 */                      \
    SET(U32, attempts)                                                         \
    SET(U32, number) /* of its last attempt; refused ones count */             \
    SET(U32, tries)                                                            \
    SET(U32, reworks)                                                          \
    SET(U32, checkpoints)                                                      \
    SET(U32_OR_NULL, cause)     /* index of a task of this run */              \
    SET(TEXT_OR_NULL, reason)   /* in words */                                 \
    SET(TEXT_OR_NULL, feedback) /* for its next attempt */                     \
    SET(TEXT_OR_NULL, carry)    /* JSON object, see engine/carry.h */          \
    SET(TEXT_OR_NULL, outputs)  /* JSON object of strings, for dependents */   \
    SET(DOUBLE, usd)                                                           \
    SET(I64, tokens)
struct store_task {
    uint32_t run;
    uint32_t ix; /* in the plan with its fragments */
    STORE_TASK_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/* One session, of one task or of a batch of tasks. */
#define STORE_ATTEMPT_COLUMNS(FIXED, SET)                                      \
    FIXED(U64, token)                                                          \
    FIXED(U32, run)                                                            \
    FIXED(U32, task) /* its first task */                                      \
    FIXED(U32, number)                                                         \
    FIXED(U32, task_count)                                                     \
    FIXED(U32, slot)          /* from 1, unique in flight; 0: unknown */       \
    SET(TEXT, state)          /* "claimed", "running", "ended" */              \
    FIXED(U64, epoch)         /* of the scheduler that claimed it */           \
    FIXED(CHARS(37), boot_id) /* of the boot in which it was claimed */        \
    FIXED(CHARS(33), nonce)   /* in its files; "": unknown */                  \
    SET(I64, pid)             /* of its shim; 0: unknown */                    \
    SET(U64, start_ticks)                                                      \
    FIXED(I64, claimed_ns) /* all three: wall clock; 0: not yet */             \
    SET(I64, begun_ns)                                                         \
    SET(I64, ended_ns)                                                         \
    SET(TEXT_OR_NULL, outcome) /* "done", "failed"; NULL: not ended */         \
    SET(TEXT_OR_NULL, cause)   /* "exit", "timeout" ... */                     \
    SET(TEXT_OR_NULL, reason)  /* in words */                                  \
    SET(I32, code)             /* exit code; -1: none */                       \
    SET(I32, signal)           /* that killed it; 0: none */                   \
    SET(I64, input_tokens)     /* cached tokens included */                    \
    SET(I64, cached_tokens)                                                    \
    SET(I64, output_tokens)                                                    \
    SET(DOUBLE, usd)                                                           \
    FIXED(BOOL, confined)  /* by a sandbox */                                  \
    SET(CHARS(65), worker) /* that has it; "": the scheduler's own */
struct store_attempt {
    STORE_ATTEMPT_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/* The verdict of a gate on a tree of files, by a merge. Verdicts are for all
 * later merges into that repository, of every run. */
#define STORE_GATE_COLUMNS(FIXED, SET)                                         \
    FIXED(U64, token) /* of the attempt that ran it */                         \
    FIXED(U32, place) /* in that attempt, from 0 */                            \
    FIXED(U32, run)                                                            \
    FIXED(U32, task)            /* first task of the attempt */                \
    FIXED(TEXT, repo)           /* absolute path */                            \
    FIXED(TEXT, tree)           /* id of the git tree */                       \
    FIXED(TEXT, commit_id)      /* with that tree */                           \
    FIXED(TEXT, command)        /* the gate */                                 \
    FIXED(TEXT, verdict)        /* "passed", "failed", "flaky" */              \
    FIXED(U32, tries)           /* how often it ran */                         \
    FIXED(I64, wall_ns)         /* of the end of the attempt */                \
    FIXED(TEXT, tested_by)      /* "RUN, TASK", for messages */                \
    FIXED(TEXT_OR_NULL, output) /* of a failure: its last lines */
struct store_gate {
    STORE_GATE_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/* An event. The store sets `number` and `sum`. */
#define STORE_EVENT_COLUMNS(FIXED, SET)                                        \
    FIXED(U64, number)                                                         \
    FIXED(I64, wall_ns)                                                        \
    FIXED(U32_OR_NULL, run)  /* STORE_NONE: about the store */                 \
    FIXED(U32_OR_NULL, task) /* STORE_NONE: about no task */                   \
    FIXED(TEXT, kind)        /* "task", "run", "order", "scheduler", ... */    \
    FIXED(TEXT, data)        /* JSON object */                                 \
    FIXED(U64, sum)          /* of this row and of all rows before it */
struct store_event {
    STORE_EVENT_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/* A request of an operator, and its answer. */
#define STORE_COMMAND_COLUMNS(FIXED, SET)                                      \
    FIXED(U64, number) /* 0 in a batch: a new row */                           \
    FIXED(I64, wall_ns)                                                        \
    FIXED(TEXT, who)                                                           \
    FIXED(TEXT, verb)                                                          \
    FIXED(TEXT, args)         /* JSON object */                                \
    FIXED(TEXT_OR_NULL, key)  /* chosen by its sender */                       \
    SET(TEXT_OR_NULL, answer) /* JSON object; NULL: not answered yet */
struct store_command {
    STORE_COMMAND_COLUMNS(STORE_MEMBER, STORE_MEMBER)
};

/*
 * Rows of a finished run to remove for good, in parts so that each batch is
 * small: its events from the oldest on (verify.c compares the state of a task
 * with its last event), then its tasks, then the run itself. No effect if the
 * run does not exist or has not finished, nor on rows that must go later: a
 * task with an attempt that has not ended, a run that still has tasks.
 */
enum store_prune_part {
    STORE_PRUNE_EVENTS, /* its events with numbers from first to last */
    STORE_PRUNE_TASKS,  /* tasks of these indexes, with their attempts and
                           gates; a run whose tasks were cancelled counts as
                           cancelled */
    STORE_PRUNE_RUN,    /* the run, its texts, limits and settings. Its id is
                           never used again: setting "pruned/ID" */
};
struct store_prune {
    uint32_t run;
    enum store_prune_part part;
    uint64_t first;
    uint64_t last;
};

enum store_change_type {
    STORE_RUN_NEW,     /* run */
    STORE_RUN_SET,     /* run: number, and changeable columns */
    STORE_FRAGMENT,    /* fragment: append */
    STORE_LIMIT_SET,   /* limit */
    STORE_PROVIDER,    /* provider: set */
    STORE_SETTING,     /* setting: set, or remove */
    STORE_TASK_SET,    /* task: insert or replace */
    STORE_CLAIM,       /* attempt: must be new */
    STORE_ATTEMPT_SET, /* attempt: must exist and not have ended; columns that
                          the claim fixed (up to claimed_ns, but for state,
                          pid and start_ticks) stay */
    STORE_GATE,        /* gate: must be new */
    STORE_EVENT,       /* event: append */
    STORE_COMMAND,     /* command: append with its answer, or answer */
    STORE_PRUNE,       /* prune; after all other changes of its batch */
};

/* Kinds of rows; store/columns.h has their columns. */
enum store_kind {
    STORE_KIND_RUN,
    STORE_KIND_FRAGMENT,
    STORE_KIND_LIMIT,
    STORE_KIND_PROVIDER,
    STORE_KIND_SETTING,
    STORE_KIND_TASK,
    STORE_KIND_ATTEMPT,
    STORE_KIND_GATE,
    STORE_KIND_COMMAND,
    STORE_KIND_EVENT,
    STORE_KINDS,
};

union store_row {
    struct store_run run;
    struct store_fragment fragment;
    struct store_limit limit;
    struct store_provider provider;
    struct store_setting setting;
    struct store_task task;
    struct store_attempt attempt;
    struct store_gate gate;
    struct store_event event;
    struct store_command command;
    struct store_prune prune; /* in a change only */
};

struct store_change {
    enum store_change_type type;
    union store_row as;
};

struct store_batch {
    uint64_t epoch; /* of the writer */
    int64_t engine_ns;
    int64_t wall_ns;
    const char *trouble; /* borrowed: why the writer cannot write now; NULL: it
                            can. Used in a batch without changes */
    struct store_change *changes;
    uint32_t count;
    uint32_t capacity;
    struct arena texts;
    /* Orders for workers, which go with the changes: objects of JSON, separated
     * by commas. Only for a store that other machines use. */
    struct strbuf orders;
};

/* Free its memory; the batch is then empty. */
void store_batch_release(struct store_batch *batch);

/* Remove the changes but keep the memory of the list, if it is not large. */
void store_batch_clear(struct store_batch *batch);

/* Add a change with copies of its strings. */
void store_batch_add(struct store_batch *batch,
                     const struct store_change *change);

#endif /* STORE_BATCH_H */
