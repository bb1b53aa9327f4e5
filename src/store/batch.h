/* SPDX-License-Identifier: MIT */
/*
 * batch: what one pass of the scheduler changes in the store, as plain data.
 *
 * Changes are applied in their order. The batch owns copies of all texts that
 * are given to it, so it can be written by another thread, and again when the
 * disk was full. What is no valid UTF-8 in them becomes '?': databases and JSON
 * refuse it, and a session's log can have it. Made to be embedded; starts as
 * {0}.
 */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "No task", "no run", "no leader". */
#define STORE_NONE UINT32_MAX

/* Ceiling on the number of a run. */
enum { STORE_RUN_MAX = INT32_MAX };

/* One execution of a plan. `id` is for people and unique ("booking-wave-3"). */
struct store_run {
    uint32_t number; /* from 1, ascending; what other rows call it */
    const char *id;
    const char *name;
    const char *file;   /* the plan's, as given */
    const char *folder; /* absolute: what relative paths are relative to */
    const char *text;   /* of the plan, in STORE_RUN_NEW: its fragment 0 */
    size_t text_bytes;
    uint32_t processors; /* as when it was submitted */
    int64_t created_ns;  /* wall clock */
    /* What changes: */
    bool finished;
    bool paused;
    bool cancelled;
    uint32_t barrier; /* 1: its hook is due; N + 1: hook N is under way */
    uint32_t completions;
};

/* A text of a run: its plan, and what was added to it later. */
struct store_fragment {
    uint32_t run;
    uint32_t number; /* 0: the plan, which comes with STORE_RUN_NEW */
    const char *file;
    const char *text;
    size_t text_bytes;
};

/* A limit that an operator has changed. */
struct store_limit {
    uint32_t run;
    const char *name;
    int64_t max;
    uint32_t percent;
};

/* Back-off and circuit of one provider. */
struct store_provider {
    const char *name;
    uint32_t steps;
    uint32_t steps_kept;
    bool confirming;
    int64_t shut_until_ns;
    bool usage;
    uint32_t failures;
    bool circuit_open;
    uint64_t probe_token;
    uint32_t probe_steps;
    int64_t probe_at_ns;
    bool stopped;       /* until an operator resumes it */
    const char *reason; /* why it is stopped; NULL: it is not */
};

/* Something small with a name, such as what a usage meter showed last. */
struct store_setting {
    const char *name;
    const char *value; /* NULL: there is none (any more) */
};

/* The state of a task. Times are of the engine's clock unless said. */
struct store_task {
    uint32_t run;
    uint32_t ix; /* in the plan with its fragments */
    const char *id;
    const char *state; /* name of enum task_state */
    uint32_t flags;    /* SCHED_RECORD_... */
    uint32_t parked;   /* enum sched_parked */
    int64_t ready_ns;
    uint64_t ready_seq;
    int64_t until_ns;
    int64_t started_ns;
    int64_t service_ns; /* of its group */
    uint64_t version;   /* grows with every write of any task */
    uint64_t token;
    uint32_t leader; /* of its session: index of a task of this run */
    uint32_t place;  /* in its session, from 0 */
    uint32_t attempts;
    uint32_t number; /* of its last attempt; refused ones count */
    uint32_t tries;
    uint32_t reworks;
    uint32_t checkpoints;
    uint32_t cause;       /* index of a task of this run, or STORE_NONE */
    const char *reason;   /* in words; NULL: none */
    const char *feedback; /* for its next attempt; NULL: none */
    const char *carry;    /* JSON object: more for its next attempt, see
                             engine/carry.h; NULL: none */
    /* What all its attempts have cost, as their sessions said. */
    double usd;
    int64_t tokens;
};

/* One session. It is of one task, or of several when they were batched. */
struct store_attempt {
    uint64_t token;
    uint32_t run;
    uint32_t task; /* its first one */
    uint32_t number;
    uint32_t task_count;
    uint32_t slot;     /* from 1; no two sessions in flight have the same; 0:
                          not known */
    const char *state; /* "claimed", "running", "ended" */
    uint64_t epoch;    /* of the scheduler that claimed it */
    char boot_id[37];  /* of the boot in which it was claimed */
    char nonce[33];    /* that its files carry; "": of an earlier version */
    int64_t pid;       /* of its shim; 0: not known */
    uint64_t start_ticks;
    int64_t claimed_ns; /* all three: wall clock; 0: not yet */
    int64_t begun_ns;
    int64_t ended_ns;
    const char *outcome;  /* "done", "failed", ...; NULL until it has ended */
    const char *cause;    /* of its end: "exit", "timeout" ...; NULL */
    const char *reason;   /* in words, or NULL */
    int32_t code;         /* exit code; -1: none */
    int32_t signal;       /* that ended it; 0: none */
    int64_t input_tokens; /* cached ones included */
    int64_t cached_tokens;
    int64_t output_tokens;
    double usd;
};

/* Something that happened. `number` and `sum` are given by the store. */
struct store_event {
    uint64_t number;
    int64_t wall_ns;
    uint32_t run;     /* STORE_NONE: about the store */
    uint32_t task;    /* STORE_NONE: about no task */
    const char *kind; /* "task", "run", "order", "scheduler", ... */
    const char *data; /* JSON object */
    uint64_t sum;     /* of this row and of all before it */
};

/* An order of an operator, and its answer. */
struct store_command {
    uint64_t number; /* 0 in a batch: a new row */
    int64_t wall_ns;
    const char *who;
    const char *verb;
    const char *args;   /* JSON object */
    const char *key;    /* that its sender made up; NULL: none */
    const char *answer; /* JSON object; NULL: not answered yet */
};

/*
 * Rows of a finished run that go for good, a part at a time so that each batch
 * is small: its events from the oldest on (the state of a task is held against
 * its last one), then its tasks, then the run itself. A run that
 * is not there or has not finished is left alone, and so is what must go later:
 * a task with an attempt that has not ended, a run that still has tasks.
 */
enum store_prune_part {
    STORE_PRUNE_EVENTS, /* its events with numbers from first to last */
    STORE_PRUNE_TASKS,  /* tasks of these indexes, with their attempts; a run
                           whose tasks were cancelled counts as cancelled */
    STORE_PRUNE_RUN,    /* the run, its texts, limits and settings. Its id is
                           never given out again: setting "pruned/ID" */
};
struct store_prune {
    uint32_t run;
    enum store_prune_part part;
    uint64_t first;
    uint64_t last;
};

enum store_change_type {
    STORE_RUN_NEW,     /* run */
    STORE_RUN_SET,     /* run: number, and what changes */
    STORE_FRAGMENT,    /* fragment: append */
    STORE_LIMIT_SET,   /* limit */
    STORE_PROVIDER,    /* provider: set */
    STORE_SETTING,     /* setting: set, or removed */
    STORE_TASK_SET,    /* task: insert or replace */
    STORE_CLAIM,       /* attempt: must be new */
    STORE_ATTEMPT_SET, /* attempt: must be there and not have ended; what the
                          claim fixed (up to claimed_ns, but for state, pid
                          and start_ticks) stays */
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
    const char *trouble; /* borrowed: why the writer cannot write at present;
                            NULL: it can. Counts in a batch without changes */
    struct store_change *changes;
    uint32_t count;
    uint32_t capacity;
    struct arena texts;
};

/* Give everything back; the batch is then empty. */
void store_batch_release(struct store_batch *batch);

/* Forget the changes but keep the memory of the list, if it is not large. */
void store_batch_clear(struct store_batch *batch);

/* Add a change with copies of its texts. */
void store_batch_add(struct store_batch *batch,
                     const struct store_change *change);

#endif /* STORE_BATCH_H */
