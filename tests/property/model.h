/* SPDX-License-Identifier: MIT */
/*
 * model: the rules of the scheduler, written down the slow and obvious way.
 *
 * Nothing is kept that can be worked out: satisfied needs, units in use and the
 * best task are computed from everything, each time. Only small
 * cases: at most MODEL_TASKS tasks. Providers are the core's own, which has
 * unit tests of its own.
 */
#ifndef TESTS_PROPERTY_MODEL_H
#define TESTS_PROPERTY_MODEL_H

#include "base/strbuf.h"
#include "core/sched.h"

enum {
    MODEL_TASKS = 100,
    MODEL_GROUPS = 400,
    MODEL_NEEDS = 400,
    MODEL_LIMITS = 24,
    MODEL_RUNS = 3,
    MODEL_CLASSES = 8,
    MODEL_PROVIDERS = 4,
    MODEL_ATTRIBUTES = 4,
    MODEL_USES = 4,
    MODEL_POOLS = 16,
};

struct model_limit {
    struct limit_spec spec;
    struct attribute where[MODEL_ATTRIBUTES];
    uint32_t run;
};

/* One thing a task or an open group takes units of. */
struct model_pool {
    uint32_t limit;
    uint32_t share; /* limits of equal share and key count together */
    uint32_t key;
    uint32_t units;
};

struct model_group {
    uint32_t run;
    bool open;
    int64_t service_ns;
    struct model_pool pools[MODEL_POOLS];
    uint32_t pool_count;
};

struct model_task {
    enum task_state state;
    uint32_t run;
    uint32_t group;
    uint32_t class_ix;
    uint32_t provider;
    uint32_t batch_key;
    uint32_t rework_to;
    struct sched_failure_spec failure;
    struct model_pool pools[MODEL_POOLS];
    uint32_t pool_count;
    int64_t estimate_ns;
    int64_t ready_ns;
    uint64_t ready_seq;
    int64_t until_ns;
    int64_t started_ns;
    uint64_t token;
    uint32_t leader;
    uint32_t tries;
    uint32_t reworks;
    uint32_t checkpoints;
    uint32_t refusals; /* in a row */
    bool held;
    bool revoked;
    bool backing_off;
    bool background; /* as it was when it was ready last */
    bool ending;
    bool to_skip;
    bool end_due;
    bool asking;
    bool cascaded;
    bool stale;
    /* Worked out by model_look(). */
    bool satisfied;
    int64_t rank_ns;
    uint32_t tier;
    uint32_t blocked_tier;
};

struct model_run {
    enum sched_policy policy;
    uint32_t sync_every;
    bool sync_drain;
    bool paused;
    bool barrier_due;
    bool barrier_running;
    bool cancelled;
    uint32_t completions;
};

struct model {
    int64_t now_ns;
    bool draining;
    uint64_t event_seq;
    uint64_t last_token;
    struct model_task tasks[MODEL_TASKS];
    uint32_t task_count;
    struct model_group groups[MODEL_GROUPS];
    uint32_t group_count;
    struct sched_need needs[MODEL_NEEDS];
    uint32_t need_count;
    struct model_limit limits[MODEL_LIMITS];
    uint32_t limit_count;
    struct sched_class_spec classes[MODEL_CLASSES];
    uint32_t class_count;
    struct provider providers[MODEL_PROVIDERS];
    uint32_t provider_count;
    struct model_run runs[MODEL_RUNS];
    uint32_t run_count;
};

/* What one pass did. */
struct model_pass {
    struct strbuf starts; /* a line for each start: token and tasks */
    bool ends[MODEL_TASKS];
    bool circuits[MODEL_PROVIDERS];
    bool barriers[MODEL_RUNS];
};

void model_add_provider(struct model *model, const struct provider_spec *spec);
void model_add_class(struct model *model, const struct sched_class_spec *spec);
void model_add_run(struct model *model, const struct sched_run_spec *spec);

/* As the functions of the scheduler of the same name. */
MUST_USE enum err model_add(struct model *model,
                            int64_t now_ns,
                            const struct sched_addition *addition);
/* Skip what is pending behind what nobody can ever pass. */
void model_cut(struct model *model);

MUST_USE enum err model_apply(struct model *model,
                              const struct sched_event *event);
void model_take_pass(struct model *model, struct model_pass *pass);

/* Whether nothing will happen in the run by itself. */
bool model_is_quiet(const struct model *model, uint32_t run);

/* Units in use of what the pool counts. */
int64_t model_used(const struct model *model, const struct model_pool *pool);

/* Present maximum of a limit. */
int64_t model_max(const struct model *model, uint32_t limit);

#endif /* TESTS_PROPERTY_MODEL_H */
