/* SPDX-License-Identifier: MIT */
/* Who goes first: the rules one after the other, as numbers to be compared. */
#include "tests/property/model.h"

enum { KEYS = 10 };

/* A ready task and its place in the order: the smaller number first. */
struct place {
    uint32_t task;
    int64_t in_bin[KEYS]; /* among equal tasks of its group */
    int64_t key[KEYS];    /* among all */
};

bool model_is_aged(const struct model *model, const struct model_task *task)
{
    int64_t max_wait_ns = model->classes[task->class_ix].max_wait_ns;
    return task->first || (max_wait_ns != SCHED_NEVER &&
                           model->now_ns - task->ready_ns >= max_wait_ns);
}

/* A first-come run and a class that is a queue have no ranks: their tasks go
 * before others'. */
static int64_t rank_of(const struct model *model, const struct model_task *t)
{
    return model->runs[t->run].policy == SCHED_FIFO ||
                   model->classes[t->class_ix].queue
               ? INT64_MAX
               : t->rank_ns;
}

/* Its rank, or what is left in its lane if that takes longer. */
static int64_t length_of(const struct model *model, const struct model_task *t)
{
    uint32_t ix = model->groups[t->group].lane;
    int64_t rank_ns = rank_of(model, t);
    if (ix == ID_NONE) {
        return rank_ns;
    }
    const struct model_lane *lane = &model->lanes[ix];
    int64_t max = model_max(model, lane->limit);
    int64_t work = max == 0 ? lane->work : lane->work / max;
    return work << 20 > rank_ns ? work << 20 : rank_ns;
}

/*
 * The order of rank. What could delay the end goes first, the longest first;
 * of those that only their lane makes that long, and of the others, those
 * whose group has the least left to do.
 */
static void order_by_rank(const struct model *model,
                          const struct model_task *t,
                          int64_t *key)
{
    int64_t work = model->groups[t->group].work;
    int64_t critical = model->runs[t->run].critical;
    int64_t rank_ns = rank_of(model, t);
    int64_t length_ns = length_of(model, t);
    if (length_ns >> 20 < critical) {
        key[0] = 1;
        key[1] = work;
        return;
    }
    key[1] = -length_ns;
    key[2] = rank_ns >> 20 < critical ? 1 : 0;
    key[3] = key[2] == 1 ? work : -rank_ns;
}

/* An operator's wish, age and deferral. */
static int64_t
turn_of(const struct model *model, const struct model_task *t, bool riding)
{
    if (t->first) {
        return -1;
    }
    bool aged = model_is_aged(model, t);
    if (!t->background) {
        return aged ? 0 : 2;
    }
    if (!aged) {
        return 4;
    }
    return riding || model->runs[t->run].owed == 0 ? 1 : 3;
}

/* Its place; `riding`: among those that may ride along in a session, where
 * nobody waits for a turn. */
static void
find_place(const struct model *model, struct place *place, bool riding)
{
    const struct model_task *t = &model->tasks[place->task];
    const struct model_group *g = &model->groups[t->group];
    int64_t seq = (int64_t)t->ready_seq;
    place->key[0] = turn_of(model, t, riding);
    place->in_bin[0] = place->key[0];
    for (uint32_t ix = 1; ix < KEYS; ix++) {
        place->key[ix] = model_is_aged(model, t) ? seq : 0;
        place->in_bin[ix] = place->key[ix];
    }
    if (model_is_aged(model, t)) {
        return;
    }
    enum sched_policy policy = model->runs[t->run].policy;
    int64_t *key = place->key;
    key[1] = t->tier;
    key[2] = t->urgency;
    key[3] = policy == SCHED_FAIR ? g->service_ns / 1024 : 0;
    key[4] = t->background || g->open ? 0 : 1;
    /* Of another run, those in the order of rank go before. */
    key[5] = policy == SCHED_FAIR && rank_of(model, t) != INT64_MAX ? 2 : 0;
    key[6] = -rank_of(model, t);
    key[KEYS - 1] = seq;
    for (uint32_t ix = 1; ix < KEYS; ix++) {
        place->in_bin[ix] = key[ix];
    }
    if (policy != SCHED_FAIR && rank_of(model, t) != INT64_MAX) {
        order_by_rank(model, t, &key[5]);
    }
}

static bool before(const int64_t *a, const int64_t *b)
{
    uint32_t ix = 0;
    while (ix + 1 < KEYS && a[ix] == b[ix]) {
        ix++;
    }
    return a[ix] < b[ix];
}

static bool same_queue(const struct model *model,
                       const struct model_task *a,
                       const struct model_task *b)
{
    return a->shape == b->shape && a->background == b->background &&
           (a->background ||
            model->groups[a->group].open == model->groups[b->group].open);
}

/*
 * Whether this one is the best of its queue. Of equal tasks of one group, its
 * bin, the best by rank stands for all.
 */
static bool is_head(const struct model *model,
                    const struct place *places,
                    uint32_t count,
                    uint32_t at)
{
    const struct model_task *t = &model->tasks[places[at].task];
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct model_task *other = &model->tasks[places[ix].task];
        if (ix != at && same_queue(model, t, other) &&
            other->group == t->group &&
            before(places[ix].in_bin, places[at].in_bin)) {
            return false;
        }
    }
    return true;
}

uint32_t model_sort(const struct model *model, uint32_t shape, uint32_t *out)
{
    struct place places[MODEL_TASKS];
    uint32_t ready = 0;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (t->state == TASK_READY && !t->held &&
            (shape == ID_NONE || shape == t->shape)) {
            places[ready].task = ix;
            find_place(model, &places[ready++], shape != ID_NONE);
        }
    }
    uint32_t sorted[MODEL_TASKS];
    uint32_t heads = 0;
    for (uint32_t ix = 0; ix < ready; ix++) {
        if (!is_head(model, places, ready, ix)) {
            continue;
        }
        uint32_t at = heads++;
        while (at > 0 && before(places[ix].key, places[sorted[at - 1]].key)) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = ix;
    }
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < heads; ix++) {
        uint32_t task = places[sorted[ix]].task;
        bool best = true;
        for (uint32_t n = 0; n < count && best; n++) {
            best =
                !same_queue(model, &model->tasks[task], &model->tasks[out[n]]);
        }
        if (best) {
            out[count++] = task;
        }
    }
    return count;
}
