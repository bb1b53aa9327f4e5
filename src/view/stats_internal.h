/* SPDX-License-Identifier: MIT */
/* Internal interface between the stats files. */
#ifndef VIEW_STATS_INTERNAL_H
#define VIEW_STATS_INTERNAL_H

#include "base/duration.h"
#include "view/stats.h"

/* Add `count` times a length; saturates at INT64_MAX. */
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

/* stats_tree.c: groups with their parts. */
void stats_sum_groups(struct stats *stats);

/* stats_path.c: the actual critical path. */
void stats_walk(struct stats *stats);

/* stats_chart.c: the history as a simulation result. */
void stats_draw(struct stats *stats);

#endif /* VIEW_STATS_INTERNAL_H */
