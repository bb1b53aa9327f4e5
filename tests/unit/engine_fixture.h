/* SPDX-License-Identifier: MIT */
/*
 * engine_fixture: an engine with a store in memory, whose world the test plays:
 * time stands still until the test moves it, orders are kept, and sessions
 * begin and end when the test says so. JSON is written with ' for ", so that it
 * stays readable. Failures fail the current cmocka test.
 */
#ifndef TESTS_UNIT_ENGINE_FIXTURE_H
#define TESTS_UNIT_ENGINE_FIXTURE_H

#include "base/duration.h"
#include "base/macros.h"
#include "engine/engine.h"
#include "sim/store/memory.h"
#include "store/backend.h"

/* When the engine's first batch is written. */
#define RIG_WALL_NS (INT64_C(1790000000) * SECOND_NS)

/* An order that was assigned, or offered. */
struct rig_order {
    uint64_t token;
    char nonce[ATTEMPT_NONCE_BYTES];
    char *run;
    char *task;
    char *name;
    enum work_want want;
    bool offered;
    /* Its command, variables ("NAME=value") and files ("[NAME] text"), what
     * sluice-git gets and where it may run: a line for each. */
    struct strbuf text;
};

/* The store's functions as the engine sees them. */
struct rig;
struct rig_ops {
    struct store_ops ops; /* first */
    const struct store_ops *real;
    struct rig *rig;
};

/* Starts as {0}; the settings may be changed before rig_start(). */
struct rig {
    /* Settings. */
    bool offers;   /* the world has `offer`, which takes every session */
    bool looks;    /* sessions can ask */
    bool keyless;  /* the engine has no secret */
    enum err look; /* the result of a question */
    struct work_mark mark;
    struct plan *plan_take; /* offered to the next engine, with its source */
    struct plan_source source;
    /* The store call of this number, from 1, fails with `fault` and changes
     * nothing; 0: none does. Starting to read or write, reading one kind of
     * rows, each change of a row and a commit are calls. */
    uint32_t fail_at;
    enum err fault;
    bool unnoticed; /* a commit that fails has happened */
    /* Called for each row that is read: it may change the row; false: the row
     * is missing. NULL: nothing is changed. */
    bool (*filter)(enum store_kind kind, union store_row *row);
    /* State. */
    struct rig_ops ops;
    uint32_t calls; /* of the store */
    struct store_memory_db *db;
    struct store *store;
    struct engine *engine; /* NULL: stopped */
    uint64_t epoch;
    int64_t now_ns;  /* since the first start */
    int64_t jump_ns; /* of the wall clock */
    const struct store_batch *batch;
    uint32_t writes; /* batches that the engine has begun to write */
    bool offered;    /* the batch that is written has orders */
    struct rig_order *orders;
    uint32_t order_count;
    char *answer;          /* the last one */
    uint64_t last_request; /* number of the last request */
    struct strbuf events;  /* durable ones: "KIND DATA", a line for each */
    struct strbuf log;     /* other calls of the engine, a line for each */
};

/*
 * Take the store and start an engine on it: the first one, or after rig_stop().
 * rig_try_start() returns the error of engine_load(), *diag is its message; the
 * engine is stopped again then.
 */
void rig_start(struct rig *rig);
MUST_USE enum err
rig_try_start(struct rig *rig, struct engine_update *update, struct diag *diag);
/* Kill it: what is not written is lost. */
void rig_stop(struct rig *rig);
void rig_restart(struct rig *rig);
/* Stop it and free everything. */
void rig_release(struct rig *rig);

/* Change a row behind the engine's back: it must be stopped. */
void rig_store(struct rig *rig, const struct store_change *change);
void rig_store_setting(struct rig *rig, const char *name, const char *value);

/* Run passes and write their batches until the engine waits; move the time,
 * and the same at each timer on the way. */
void rig_settle(struct rig *rig);
void rig_wait(struct rig *rig, int64_t wait_ns);

/* Send a request, settle, and return the answer. */
const char *rig_ask(struct rig *rig, const char *request);
/* Require success, or this error ("CONFLICT"); and a part of the answer. */
void rig_expect(struct rig *rig, const char *request, const char *part);
void rig_refuse(struct rig *rig,
                const char *request,
                const char *error,
                const char *part);
/* The same for a request of a running session, with its key; members as in
 * "'verb':'note'". */
void rig_say(struct rig *rig,
             const char *task,
             const char *members,
             const char *part);
void rig_deny(struct rig *rig,
              const char *task,
              const char *members,
              const char *error,
              const char *part);

/* Submit a plan, which must be valid. rig_offer() returns the answer. */
void rig_submit(struct rig *rig, const char *plan);
const char *rig_offer(struct rig *rig, const char *plan, const char *members);

/* The last order for a task, which must exist; the number of them all. */
const struct rig_order *rig_order(const struct rig *rig, const char *task);
uint32_t rig_orders(const struct rig *rig, const char *task);
/* Require that its text has this part. */
void rig_ordered(const struct rig *rig, const char *task, const char *part);

/* Report on the last order of a task, and settle. rig_begin(): it runs.
 * rig_end(): it exits with this code, and a result (with ' for "); NULL: none.
 * rig_report() fills in the token. */
void rig_begin(struct rig *rig, const char *task);
void rig_end(struct rig *rig, const char *task, int code, const char *result);
void rig_report(struct rig *rig,
                const char *task,
                const struct work_report *report);
/* A program of the plan has exited with this output. */
void rig_print(struct rig *rig, const char *task, int code, const char *output);

/* Require the state of a task of the first run that has it. */
void rig_state(const struct rig *rig, const char *task, const char *state);
/* Require a part of the reason of that task. */
void rig_reason(const struct rig *rig, const char *task, const char *part);
/* Require that a text has, or has not, this part (with ' for "). */
void rig_has(const struct strbuf *text, const char *part);
void rig_lacks(const struct strbuf *text, const char *part);

#endif /* TESTS_UNIT_ENGINE_FIXTURE_H */
