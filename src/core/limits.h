/* SPDX-License-Identifier: MIT */
/*
 * limits: maxima, and the units in use.
 *
 * - A limit defines how many units may be in use (a number, a percentage of
 *   another limit, or none) and to which attributes it applies.
 * - A counter holds the units in use for one value of the limit's `per`
 *   attribute, or for all. Limits of several runs may share counters.
 * - A pool is a pair of limit and counter, from which tasks take units. Its
 *   free units are the limit's current maximum less the counter's use.
 *
 * A run, a provider and a guard have their own pool, whose maximum is none
 * (open) or 0 (closed: the run is paused, the provider backs off, the guard is
 * parked). So one mechanism decides which tasks may start.
 *
 * Memory: grows only when limits or pools are added, that is at admission.
 */
#ifndef CORE_LIMITS_H
#define CORE_LIMITS_H

#include "core/idmap.h"
#include "core/ids.h"
#include "core/pheap.h"

#include <stddef.h>

/* No maximum. */
#define LIMIT_NONE INT64_MAX

/* An attribute of a task or group: two ids that the caller interned. */
struct attribute {
    uint32_t name;
    uint32_t value;
};

enum limit_kind {
    LIMIT_PLAN,
    LIMIT_RUN_POOL,
    LIMIT_PROVIDER_POOL,
    LIMIT_GUARD_POOL,     /* closed while a guard is parked */
    LIMIT_LOOKAHEAD_POOL, /* closed while a run's schedule holds tasks back */
};

/* Declaration of a limit. A plain value. */
struct limit_spec {
    int64_t max;      /* units or LIMIT_NONE; not used when percent > 0 */
    uint32_t percent; /* of `base`, 1 to 100; 0: max is a number */
    uint32_t base;    /* index of the limit that percent refers to */
    uint32_t per;     /* attribute name, or ID_NONE */
    uint32_t share;   /* limits of equal share use the same counters, across
                         runs; ID_NONE: this limit has its own */
    const struct attribute *where; /* all must match */
    uint32_t where_count;
    bool hold_group; /* counts open groups instead of attempts */
    bool background; /* of tasks of deferred classes, counts only those that
                        block nothing better */
    bool resource;   /* only for tasks that ask for it */
    bool budget;     /* used units do not come back: its max shrinks */
};

struct limit {
    struct limit_spec spec;
    struct attribute *where; /* own copy of spec.where */
    int64_t max_now;         /* derived from spec and the base's maximum */
    int64_t ahead_now;       /* ...and with the units of `ahead` */
    uint32_t ahead;     /* units that tasks may take beyond it: those that start
                           when others have ended */
    int64_t foreground; /* of a share that lends: the units that others could
                           use; LIMIT_NONE: it lends nothing */
    uint32_t waiting;   /* pools of it with waiting queues */
    uint32_t first_pool;
    enum limit_kind kind;
    uint32_t owner; /* run, provider or guard */
};

struct counter {
    int64_t used;
    uint32_t first_pool;
    int64_t
        until_ns;  /* when that task will have its units, see backfill.c... */
    int64_t spare; /* ...and what is left over then */
    uint32_t reserved_for;  /* task that reserved the free units, or ID_NONE */
    uint32_t next_reserved; /* next counter with a reservation */
    bool strict;            /* nobody else may take them */
};

struct pool {
    uint32_t limit;
    uint32_t counter;
    uint32_t next_of_limit;
    uint32_t next_of_counter;
    uint32_t waiting; /* heap of the queues that wait for this pool */
    uint32_t holder;  /* group that took this pool last, or ID_NONE */
    uint32_t widest;  /* of the groups that may take it, see core/lend.c... */
    int64_t left;     /* ...sum of the widths of those that are left... */
    int64_t part;     /* ...and what they could use at once */
    uint64_t work;    /* of these groups, see core/goal.c */
    uint32_t first_shape; /* of tasks of these groups */
    uint32_t lane_next;   /* in the list of lanes whose work has changed */
    bool awake;           /* in the heap of pools to examine */
};

/* Embed it; starts as {0}. */
struct limits {
    struct limit *limits;
    uint32_t limit_count;
    uint32_t limit_capacity;
    struct counter *counters;
    uint32_t counter_count;
    uint32_t counter_capacity;
    struct pool *pools;
    struct pheap_link *pool_links;
    uint32_t pool_count;
    uint32_t pool_capacity;
    struct idmap pools_by_key;
    struct idmap counters_by_key;
};

/* Free the memory. */
void limits_release(struct limits *limits);

/* Add a limit (the attributes of `where` are copied); return its index. */
uint32_t limits_add(struct limits *limits, const struct limit_spec *spec);

/* Add a limit with one open pool; return the index of the pool. */
uint32_t
limits_add_pool(struct limits *limits, enum limit_kind kind, uint32_t owner);

/* Return a limit's pool for a value of `per` (or ID_NONE), created if new. */
uint32_t limits_pool(struct limits *limits, uint32_t limit, uint32_t key);

/*
 * Return whether the limit applies to these attributes, and in *key_out the
 * value of its `per` attribute (ID_NONE without `per`).
 */
bool limits_match(const struct limits *limits,
                  uint32_t limit,
                  const struct attribute *attributes,
                  uint32_t count,
                  uint32_t *key_out);

/* Set the maximum: a number, LIMIT_NONE, or a percentage if percent > 0. */
void limits_set_max(struct limits *limits,
                    uint32_t limit,
                    int64_t max,
                    uint32_t percent);

/* Set how many units may be taken beyond the maximum. */
void limits_set_ahead(struct limits *limits, uint32_t limit, uint32_t ahead);

/* Recompute max_now of this limit from its spec and its base. */
void limits_derive(struct limits *limits, uint32_t limit);

/* Return the free units of the pool; negative if the limit was lowered. */
static inline int64_t limits_free(const struct limits *limits, uint32_t pool)
{
    const struct pool *r = &limits->pools[pool];
    const struct limit *limit = &limits->limits[r->limit];
    return limit->ahead_now - limits->counters[r->counter].used;
}

/* Return the task for which the free units are reserved, or ID_NONE. */
static inline uint32_t limits_reserved(const struct limits *limits,
                                       uint32_t pool)
{
    return limits->counters[limits->pools[pool].counter].reserved_for;
}

/* Return whether nobody but that task may take them. */
static inline bool limits_is_shut(const struct limits *limits, uint32_t pool)
{
    const struct counter *counter =
        &limits->counters[limits->pools[pool].counter];
    return counter->reserved_for != ID_NONE && counter->strict;
}

/* Memory in bytes. */
size_t limits_bytes(const struct limits *limits);

#endif /* CORE_LIMITS_H */
