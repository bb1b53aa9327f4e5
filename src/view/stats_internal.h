/* SPDX-License-Identifier: MIT */
/* What the files of stats share. */
#ifndef VIEW_STATS_INTERNAL_H
#define VIEW_STATS_INTERNAL_H

#include "base/duration.h"
#include "view/stats.h"

/* Add `count` times a length; what is too long stays at INT64_MAX. */
static inline void stats_add(int64_t *sum, int64_t count, int64_t length_ns)
{
    int64_t product;
    if (__builtin_mul_overflow(count, length_ns, &product)) {
        product = INT64_MAX;
    }
    *sum = duration_sum(*sum, product);
}

/* stats_replay.c: slots, waiting and starvation over time. */
void stats_replay(struct stats *stats);

/* stats_path.c: the critical path that really was. */
void stats_walk(struct stats *stats);

/* stats_chart.c: the history as a result of a simulation. */
void stats_draw(struct stats *stats);

#endif /* VIEW_STATS_INTERNAL_H */
