/* SPDX-License-Identifier: MIT */
/*
 * ledger: what a store would keep of a case, and a scheduler made from it.
 *
 * Everything that was added is noted, and after each pass the records of the
 * tasks that the pass reported (EFFECT_TASK), and of no others: so a record
 * that changes without being reported is found when a scheduler that was made
 * from the ledger goes on in another way.
 */
#ifndef TESTS_PROPERTY_LEDGER_H
#define TESTS_PROPERTY_LEDGER_H

#include "tests/property/model.h"

enum { LEDGER_LIMITS = MODEL_LIMITS / MODEL_RUNS };

struct ledger_run {
    struct sched_run_spec spec;
    struct limit_spec limits[LEDGER_LIMITS];
    struct attribute where[LEDGER_LIMITS][MODEL_ATTRIBUTES];
    uint32_t first_task;
    uint32_t task_count;
    uint32_t first_group;
    uint32_t group_count;
    uint32_t first_scope;
    uint32_t scope_count;
};

struct ledger {
    struct provider_spec providers[MODEL_PROVIDERS];
    uint32_t provider_count;
    struct sched_class_spec classes[MODEL_CLASSES];
    uint32_t class_count;
    struct ledger_run runs[MODEL_RUNS];
    uint32_t run_count;
    struct sched_task_spec tasks[MODEL_TASKS];
    struct attribute attributes[MODEL_TASKS][MODEL_ATTRIBUTES];
    struct sched_use uses[MODEL_TASKS][MODEL_USES];
    uint32_t task_count;
    struct sched_group_spec groups[MODEL_GROUPS];
    struct attribute group_attributes[MODEL_GROUPS][MODEL_ATTRIBUTES];
    uint32_t group_count;
    struct sched_need needs[MODEL_NEEDS];
    uint32_t need_count;
    struct sched_scope_spec scopes[MODEL_SCOPES];
    uint32_t scope_count;
    uint32_t newest_run; /* that something was added to */
    bool mixed;          /* runs were added to in turns: indices would differ */

    struct sched_record records[MODEL_TASKS];
    bool changed[MODEL_TASKS]; /* reported in the present pass */
    uint64_t version;
};

/* How to make a scheduler. */
struct ledger_order {
    bool dump;            /* take all records from the live scheduler */
    bool providers_last;  /* restore providers after the tasks */
    bool limits_last;     /* set limits after the tasks */
    bool runs_one_by_one; /* add a run and its tasks, then the next run */
};

/* Note what was added to the scheduler, as it was given to it. */
void ledger_add_provider(struct ledger *ledger,
                         const struct provider_spec *spec);
void ledger_add_class(struct ledger *ledger,
                      const struct sched_class_spec *spec);
void ledger_add_run(struct ledger *ledger, const struct sched_run_spec *spec);
void ledger_add(struct ledger *ledger, const struct sched_addition *addition);

/* The pass is over: note the records of the tasks that have changed. */
void ledger_end_pass(struct ledger *ledger, const struct sched *live);

/*
 * Whether a scheduler made now would go on in exactly the same way. Not so if
 * tasks would get other numbers, or while a sync hook is under way that is due
 * once more, or that would not be begun again now because of EVENT_DRAIN.
 */
bool ledger_is_exact(const struct ledger *ledger, const struct model *model);

/* A scheduler made from what was noted, before its first pass. */
struct sched *ledger_make(const struct ledger *ledger,
                          const struct sched *live,
                          const struct model *model,
                          struct ledger_order order);

/* What is different between two schedulers after a pass; NULL: nothing. */
const char *ledger_compare(const struct ledger *ledger,
                           struct sched *live,
                           struct sched *made,
                           struct strbuf *log);

#endif /* TESTS_PROPERTY_LEDGER_H */
