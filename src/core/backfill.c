/* SPDX-License-Identifier: MIT */
/*
 * Backfill beside reservations, as EASY does it (Lifka 1995).
 *
 * A wide task that lacks units of a counter reserves the free ones. By the
 * estimates of the sessions in flight it is known when it will have them all,
 * and what is left over then. A later task may take free units if it is
 * expected to return them before, or if it takes no more than what is left
 * over: so the wide task does not start later. A session that takes longer than
 * estimated is expected to end now, so a wrong estimate lets nothing pass
 * twice.
 */
#include "core/sched_internal.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "core/lookahead/lookahead.h"

/* Return the units of a counter that a set has. */
static int64_t
units_in(const struct sched *sched, uint32_t ix, uint32_t counter)
{
    int64_t units = 0;
    if (ix == ID_NONE) {
        return 0;
    }
    const struct need_set *set = &sched->sets[ix];
    for (uint32_t n = 0; n < set->count; n++) {
        struct pool_need need = sched->needs[set->first + n];
        if (sched->limits.pools[need.pool].counter == counter) {
            units += need.units;
        }
    }
    return units;
}

/* Return the units of a counter that a session has. */
static int64_t
units_of(const struct sched *sched, uint32_t leader, uint32_t counter)
{
    const struct shape *shape = sched_shape_of(sched, leader);
    int64_t units = units_in(sched, shape->needs, counter);
    if (sched_has(sched, leader, TASK_BACKGROUND)) {
        units += units_in(sched, shape->background_needs, counter);
    }
    return units;
}

/* Return when a session is expected to end. */
static int64_t end_of(const struct sched *sched, uint32_t leader)
{
    int64_t end_ns = duration_sum(sched->times[leader].started_ns,
                                  lookahead_session_ns(sched, leader));
    return end_ns > sched->now_ns ? end_ns : sched->now_ns;
}

/*
 * Move the session that ends first, of those in sched->list from `from` on, to
 * that place; return when it ends.
 */
static int64_t pick_first(struct sched *sched, uint32_t from, uint32_t count)
{
    INVARIANT(from < count);
    int64_t first_ns = end_of(sched, sched->list[from]);
    for (uint32_t ix = from + 1; ix < count; ix++) {
        int64_t end_ns = end_of(sched, sched->list[ix]);
        if (end_ns < first_ns) {
            uint32_t swapped = sched->list[from];
            first_ns = end_ns;
            sched->list[from] = sched->list[ix];
            sched->list[ix] = swapped;
        }
    }
    return first_ns;
}

/* Work out when a pool will have these units, and what is left over then. */
void backfill_plan(struct sched *sched, uint32_t pool, uint32_t units)
{
    uint32_t ix = sched->limits.pools[pool].counter;
    struct counter *counter = &sched->limits.counters[ix];
    int64_t free = limits_free(&sched->limits, pool);
    uint32_t count = 0;
    for (uint32_t n = 0; n < sched->in_flight_count; n++) {
        uint32_t task = sched->in_flight[n];
        if (sched->tasks[task].leader == task &&
            units_of(sched, task, ix) > 0) {
            sched->list[count++] = task;
        }
    }
    counter->until_ns = sched->now_ns;
    for (uint32_t n = 0; n < count; n++) {
        int64_t end_ns = pick_first(sched, n, count);
        if (free >= units && end_ns > counter->until_ns) {
            break;
        }
        counter->until_ns = end_ns;
        free += units_of(sched, sched->list[n], ix);
    }
    counter->spare = free - units;
    counter->strict = free < units; /* open groups have the others */
}

/* Return whether a task may take units of a reserved counter. */
bool backfill_admits(const struct sched *sched,
                     uint32_t task,
                     struct pool_need need)
{
    const struct counter *counter =
        &sched->limits.counters[sched->limits.pools[need.pool].counter];
    INVARIANT(counter->reserved_for != ID_NONE);
    int64_t end_ns =
        duration_sum(sched->now_ns, sched->tasks[task].estimate_ns);
    return !counter->strict &&
           limits_free(&sched->limits, need.pool) >= need.units &&
           (end_ns <= counter->until_ns || need.units <= counter->spare);
}
