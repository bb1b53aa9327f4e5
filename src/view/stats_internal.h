/* SPDX-License-Identifier: MIT */
/* What the files of facts share. */
#ifndef VIEW_STATS_INTERNAL_H
#define VIEW_STATS_INTERNAL_H

#include "base/duration.h"
#include "view/stats.h"

/* Add `count` times a length; what is too long stays at INT64_MAX. */
static inline void facts_add(int64_t *sum, int64_t count, int64_t length_ns)
{
    int64_t product;
    if (__builtin_mul_overflow(count, length_ns, &product)) {
        product = INT64_MAX;
    }
    *sum = duration_sum(*sum, product);
}

/* facts_replay.c: slots, waiting and starvation over time. */
void facts_replay(struct facts *facts);

/* facts_path.c: the critical path that really was. */
void facts_walk(struct facts *facts);

/* facts_chart.c: the chronicle as a result of a simulation. */
void facts_draw(struct facts *facts);

#endif /* VIEW_STATS_INTERNAL_H */
