/* SPDX-License-Identifier: MIT */
/* What the files of facts share. */
#ifndef CLI_FACTS_INTERNAL_H
#define CLI_FACTS_INTERNAL_H

#include "base/duration.h"
#include "cli/facts.h"

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

/* facts_rooms.c: which limits a task needs. */
enum { FACTS_ROOMS_MAX = 64 };

/* Units of one limit, for one value of its `per` attribute. */
struct facts_need {
    uint32_t room;
    uint32_t units;
};

/* Tasks of one shape fit or do not fit together. */
struct facts_shape {
    uint32_t class_ix;
    uint32_t provider; /* see facts_provider() */
    uint32_t worth;    /* tier by which starvation is measured; 0 is best */
    bool background;   /* deferred, and gates nothing better */
    struct facts_need *needs;
    uint32_t need_count;
    struct facts_need *group_needs; /* until its group is open */
    uint32_t group_need_count;
};

struct facts_room {
    uint32_t limit; /* of the plan */
    int64_t used;
};

struct facts_rooms {
    struct facts_room *rooms;
    uint32_t room_count;
    struct facts_shape *shapes;
    uint32_t shape_count;
    uint32_t *shape_of; /* of each task */
    uint32_t worth_worst;
};

void facts_rooms_init(struct facts_rooms *rooms, const struct plan *plan);
void facts_rooms_release(struct facts_rooms *rooms);

/* Who takes the sessions of a task: its provider or, without one, its class
 * (see plan/load.h). Numbers are below provider_count + class_count. */
static inline uint32_t facts_provider(const struct plan *plan,
                                      const struct plan_task *task)
{
    return task->provider != PLAN_LOCAL ? task->provider
                                        : plan->provider_count + task->class_ix;
}

#endif /* CLI_FACTS_INTERNAL_H */
