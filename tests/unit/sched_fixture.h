/* SPDX-License-Identifier: MIT */
/*
 * sched_fixture: a scheduler under test, with names instead of numbers.
 *
 * 1. fixture_init(), then fixture_run() or fixture_cap(): there is one
 *    provider, and classes `work` (tier 0) and `review` (tier 1).
 * 2. Set what the next tasks are like in `spec` and `failure`, and add them
 *    with fixture_task(). A task whose `spec.group` is ID_NONE is alone.
 * 3. fixture_run_pass() returns the names of what started, in order.
 * 4. fixture_release().
 *
 * What is expected to succeed is asserted here; the fixture_try functions
 * return the error instead. Each pass ends with sched_verify(). Only for
 * cmocka tests, which include <cmocka.h> and what it needs themselves.
 */
#ifndef TESTS_UNIT_SCHED_FIXTURE_H
#define TESTS_UNIT_SCHED_FIXTURE_H

#include "base/strbuf.h"
#include "core/why.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

enum {
    FIXTURE_NAMES = 64,
    FIXTURE_NAME_BYTES = 16,
    FIXTURE_RUNS = 4,
};

/* Names of attributes that tests use. */
enum { FIXTURE_REPO = 1, FIXTURE_CLASS = 2, FIXTURE_PROVIDER = 3 };

struct fixture {
    struct sched *sched;
    int64_t now_ns;
    struct provider_id provider;
    struct class_id work;
    struct class_id review;
    struct run_id run; /* where tasks are added; the newest one */
    uint32_t run_count;
    struct limit_id first_limit; /* of the newest run */
    uint32_t limit_count;        /* limits that tests can see, all runs */
    struct limit_id limits[32];
    struct sched_task_spec spec; /* of tasks to be added */
    struct sched_failure_spec failure;
    struct attribute attributes[4]; /* of tasks, if spec counts them */
    char names[FIXTURE_NAMES][FIXTURE_NAME_BYTES];

    /* What the last pass gave, names separated by blanks. */
    struct strbuf started; /* sessions; those of one session joined by + */
    struct strbuf ended;   /* EFFECT_END */
    struct strbuf changed; /* EFFECT_TASK */
    uint32_t circuits;
    uint32_t barriers;
    uint32_t stops;
    uint32_t quiet; /* EFFECT_RUN */
    struct strbuf scratch;
};

/* Prepare, and give everything back. */
void fixture_init(struct fixture *f);
void fixture_release(struct fixture *f);

/* Add a run with these limits; `limits[ix]` of the fixture are theirs. */
void fixture_run(struct fixture *f,
                 enum sched_policy policy,
                 const struct limit_spec *limits,
                 uint32_t count);

/* Add a run with cap 1 that is stopped at this time. */
void fixture_deadline_run(struct fixture *f, int64_t deadline_ns);

/* Add a scope, for `spec.scope`. */
uint32_t fixture_scope(struct fixture *f, uint32_t parent);

/* Add a run with a barrier after every `sync_every` completions, cap 3. */
void fixture_sync_run(struct fixture *f, uint32_t sync_every, bool drain);

/* Add a run by rank with one limit: the cap. */
void fixture_cap(struct fixture *f, int64_t cap);

/* Specs of limits: a number; a percentage of the first one; per attribute. */
struct limit_spec fixture_max(int64_t max);
struct limit_spec fixture_percent(uint32_t percent);
struct limit_spec fixture_per(int64_t max, uint32_t attribute);

/* Add a class. */
struct class_id fixture_class(struct fixture *f,
                              uint32_t tier,
                              bool defer,
                              uint32_t batch,
                              int64_t max_wait_ns);

/* Add a group with one attribute (name 0: none), for `spec.group`. */
uint32_t fixture_group(struct fixture *f, uint32_t attribute, uint32_t value);

/* Let the next tasks have this one attribute (name 0: none). */
void fixture_attribute(struct fixture *f, uint32_t name, uint32_t value);

/* Add a task that needs those named in `needs`, separated by blanks, and ended
 * by `:failed` or `:any` if they need not be done. */
struct task_id
fixture_task(struct fixture *f, const char *name, const char *needs);

/* Add many tasks without names and needs at once; return the first. */
struct task_id fixture_tasks(struct fixture *f, uint32_t count);

/* As fixture_task(); the caller releases a rejection. */
MUST_USE enum err fixture_try_task(struct fixture *f,
                                   const char *name,
                                   const char *needs,
                                   struct sched_rejection *rejection);

/* Let an old task need another. */
MUST_USE enum err fixture_try_need(struct fixture *f,
                                   const char *dependent,
                                   const char *need,
                                   struct sched_rejection *rejection);

/* Run a whole pass; return what started, as "a b+c d". */
const char *fixture_run_pass(struct fixture *f);

/* Let time pass, with a tick at the end of it. */
void fixture_pass(struct fixture *f, int64_t ns);

/* The session of this task was accepted. */
void fixture_accept(struct fixture *f, const char *name);

/* The session of this task is over, with one outcome for all of it. */
void fixture_end(struct fixture *f,
                 const char *name,
                 enum sched_outcome outcome);
MUST_USE enum err fixture_try_end(struct fixture *f,
                                  const char *name,
                                  uint64_t token,
                                  enum sched_outcome outcome);

void fixture_end_id(struct fixture *f,
                    struct task_id task,
                    enum sched_outcome outcome);

/* The same for several, separated by blanks, all done. */
void fixture_done(struct fixture *f, const char *names);

/* The session of this task asks to run later. */
void fixture_snooze(struct fixture *f, const char *name, int64_t retry_at_ns);

/* The session of this task was refused; SCHED_NEVER: no time was given. */
void fixture_refuse(struct fixture *f, const char *name, int64_t retry_at_ns);

/* An order about a task, or about a run. */
void fixture_order(struct fixture *f,
                   enum sched_event_type type,
                   const char *name);
MUST_USE enum err fixture_try_order(struct fixture *f,
                                    enum sched_event_type type,
                                    const char *name);
void fixture_order_run(struct fixture *f, enum sched_event_type type);

/* Set limit `ix` of the fixture: a number, or with percent > 0 a share. */
void fixture_set_limit(struct fixture *f,
                       uint32_t ix,
                       int64_t max,
                       uint32_t percent);

/* What is known. */
struct task_id fixture_id(const struct fixture *f, const char *name);
struct sched_task fixture_get(const struct fixture *f, const char *name);
enum task_state fixture_state(const struct fixture *f, const char *name);
struct why fixture_why(struct fixture *f, const char *name);
int64_t fixture_used(const struct fixture *f, uint32_t limit_ix);
int64_t fixture_max_now(const struct fixture *f, uint32_t limit_ix);

/* Everything that can be seen of the scheduler, to be compared as text; the
 * caller frees it with mem_free(). */
char *fixture_picture(struct fixture *f);

#endif /* TESTS_UNIT_SCHED_FIXTURE_H */
