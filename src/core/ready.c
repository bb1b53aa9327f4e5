/* SPDX-License-Identifier: MIT */
/*
 * Ready tasks: from a task that becomes ready to an entry in a queue.
 *
 * The start order is one key (see key_of). The parts that change for a whole
 * group, whether it is open and its service, are only in the key of the bin's
 * entry: a change re-keys one entry per bin, not one per task.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"
#include "core/lookahead/lookahead.h"

/*
 * The high word of a key, from the top: one bit, the tier (7 bits), the
 * priority (4 bits), then the service of the group and whether it is closed.
 */
#define KEY_DEFERRED (UINT64_C(1) << 63)
#define KEY_TIER_SHIFT 56
#define KEY_PRIORITY_SHIFT 52
#define KEY_SERVICE_MAX ((UINT64_C(1) << 51) - 1)
#define KEY_SERVICE_UNIT 1024 /* nanoseconds */

/* High words of tasks that an operator put first, or that have waited for too
 * long. */
enum { KEY_FIRST, KEY_AGED, KEY_AGED_BACKGROUND };

bool ready_is_background(const struct sched *sched, uint32_t task)
{
    const struct sched_class_spec *spec = sched_class_of(sched, task);
    return spec->defer && sched->tasks[task].tier >= spec->tier &&
           sched->details[task].blocked_tier > spec->tier;
}

/*
 * Smaller starts first. A task that an operator put first precedes all others.
 * Then a task that has waited for too long, oldest first; in the background,
 * only in its turn: see dispatch.c. Then: not deferred; tier; priority; for
 * SCHED_FAIR the group with less service; a task of an open group before a task
 * that would open another; for SCHED_LOOKAHEAD the place in the schedule, if
 * any, else the longer path to the end (not for SCHED_FIFO, nor for classes
 * with `queue`, which precede); order of becoming ready, then of declaration.
 */
static struct ready_key
key_of(const struct sched *sched, uint32_t task, enum bin_side side)
{
    const struct task *t = &sched->tasks[task];
    struct ready_key key = {.low = t->ready_seq};
    if ((t->flags & TASK_AGED) != 0) {
        key.high = t->first != 0            ? KEY_FIRST
                   : side == BIN_BACKGROUND ? KEY_AGED_BACKGROUND
                                            : KEY_AGED;
        return key;
    }
    const struct group *group = sched_group(sched, t->group);
    enum sched_policy policy =
        sched->runs[sched_kind(sched, group)->run].policy;
    key.high = ((uint64_t)t->tier + 1) << KEY_TIER_SHIFT |
               (uint64_t)t->priority << KEY_PRIORITY_SHIFT;
    if (side == BIN_BACKGROUND) {
        key.high |= KEY_DEFERRED;
    } else if (!group->open) {
        key.high |= 1;
    }
    if (policy == SCHED_FAIR) {
        uint64_t service =
            (uint64_t)*sched_service(sched, t->group) / KEY_SERVICE_UNIT;
        service = service < KEY_SERVICE_MAX ? service : KEY_SERVICE_MAX;
        key.high |= service << 1;
    }
    if (policy != SCHED_FIFO && !sched_class_of(sched, task)->queue) {
        uint32_t place =
            policy == SCHED_LOOKAHEAD ? lookahead_place(sched, task) : ID_NONE;
        if (place != ID_NONE) {
            key.middle = (uint64_t)place + 1;
        } else {
            key.middle = policy == SCHED_FAIR
                             ? UINT64_MAX - (uint64_t)t->rank_ns
                             : goal_key(sched, task);
        }
    }
    return key;
}

/*
 * Return whether `a`, ready or not, would precede the ready task `b`, by more
 * than the order of becoming ready.
 */
bool ready_goes_before(const struct sched *sched, uint32_t a, uint32_t b)
{
    bool side_a = ready_is_background(sched, a);
    bool side_b = ready_is_background(sched, b);
    struct ready_key key_a =
        key_of(sched, a, side_a ? BIN_BACKGROUND : BIN_NORMAL);
    struct ready_key key_b =
        key_of(sched, b, side_b ? BIN_BACKGROUND : BIN_NORMAL);
    key_b.low = 0;
    key_a.low = 0;
    return ready_key_before(&key_a, &key_b);
}

/* Order inside a bin: the group's part of the key is equal there. */
static bool task_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct sched *sched = ctx;
    struct ready_key key_a = key_of(sched, a, BIN_NORMAL);
    struct ready_key key_b = key_of(sched, b, BIN_NORMAL);
    if (key_a.high == key_b.high && (key_a.middle & key_b.middle) >> 63 != 0) {
        /* Neither is critical, or for SCHED_FAIR: as if both were. */
        int64_t rank_a = sched->tasks[a].rank_ns;
        int64_t rank_b = sched->tasks[b].rank_ns;
        if (rank_a != rank_b) {
            return rank_a > rank_b;
        }
    }
    return ready_key_before(&key_a, &key_b);
}

static struct pheap_forest bin_forest(const struct sched *sched)
{
    return (struct pheap_forest){&sched->tasks[0].member.link,
                                 sizeof(struct task),
                                 task_before,
                                 sched};
}

static uint32_t item_of(uint32_t bin, enum bin_side side)
{
    return bin * BIN_SIDES + side;
}

/* Return the stamp of a bin's side; in a bin of one task both have the same. */
static uint32_t *stamp_at(const struct sched *sched, uint32_t item)
{
    uint32_t bin = item / BIN_SIDES;
    return sched_is_solo_bin(bin)
               ? &sched->tasks[bin / 4].solo.stamp
               : &sched_bin(sched, bin)->stamp[item % BIN_SIDES];
}

static uint32_t stamp_of(const void *ctx, uint32_t item)
{
    uint32_t stamp = *stamp_at(ctx, item);
    return stamp % 2 != 0 ? stamp : 0;
}

uint32_t ready_head(struct sched *sched, uint32_t queue)
{
    const struct ready_entry *top = ready_queue_top(sched_block(sched, queue),
                                                    sched->queues[queue].end,
                                                    stamp_of,
                                                    sched);
    if (top == NULL) {
        return ID_NONE;
    }
    uint32_t root = sched_best_of(sched, top->item);
    INVARIANT(root != ID_NONE); /* a side with an entry has tasks */
    return root;
}

uint32_t ready_head_of_shape(struct sched *sched, const struct shape *shape)
{
    const uint32_t queues[] = {
        shape->open_queue,
        shape->closed_queue,
        shape->background_queue,
    };
    uint32_t best = ID_NONE;
    const struct ready_key *key = NULL;
    for (uint32_t ix = 0; ix < ARRAY_COUNT(queues); ix++) {
        uint32_t head =
            queues[ix] == ID_NONE ? ID_NONE : ready_head(sched, queues[ix]);
        if (head == ID_NONE) {
            continue;
        }
        const struct ready_key *top = &sched_entry(sched, queues[ix], 0)->key;
        if (key == NULL || ready_key_before(top, key)) {
            best = head;
            key = top;
        }
    }
    return best;
}

/*
 * Prefetch the best task and its possible successors while other work is done:
 * in a large plan they lie anywhere in memory.
 */
static void fetch_ahead(const struct sched *sched, uint32_t queue)
{
    enum { AHEAD = 5 };
    uint32_t count = sched_entries(sched, queue);
    for (uint32_t ix = 0; ix < AHEAD && ix < count; ix++) {
        uint64_t ready_seq = sched_entry(sched, queue, ix)->key.low;
        uint32_t task = (uint32_t)ready_seq & (SCHED_TASKS_MAX - 1);
        __builtin_prefetch(&sched->tasks[task], 1);
        __builtin_prefetch(&sched->tasks[task].tries, 1);
        if (ix ==
            0) { /* The end of its session needs these, and may be near. */
            __builtin_prefetch(&sched->graph.nodes[task]);
            __builtin_prefetch(&sched->unmet[task]);
        }
    }
}

void ready_requeue(struct sched *sched, uint32_t queue)
{
    struct queue *q = &sched->queues[queue];
    const struct ready_entry *top =
        ready_queue_top(sched_block(sched, queue), q->end, stamp_of, sched);
    uint32_t pool = q->at_pool;
    if (top == NULL) {
        if (pool != ID_NONE) {
            dispatch_leave(sched, queue);
        }
        return;
    }
    if (q->aside) {
        return;
    }
    fetch_ahead(sched, queue);
    uint64_t urgency = top->key.middle;
    if (q->lane != ID_NONE) {
        uint32_t best = sched_best_of(sched, top->item);
        urgency = goal_urgency(sched, best, urgency);
    }
    if (pool == ID_NONE) {
        q->top = top->key;
        q->urgency = urgency;
        dispatch_wait(sched, queue, POOL_OPEN);
    } else if (urgency != q->urgency || ready_key_before(&top->key, &q->top) ||
               ready_key_before(&q->top, &top->key)) {
        dispatch_leave(sched, queue);
        q->top = top->key;
        q->urgency = urgency;
        dispatch_wait(sched, queue, pool);
    }
}

/* The work of a lane has changed, and with it the urgency of its queues. */
void ready_requeue_lane(struct sched *sched, uint32_t lane)
{
    for (uint32_t ix = sched->limits.pools[lane].first_shape; ix != ID_NONE;
         ix = sched->shapes[ix].next_of_lane) {
        const struct shape *shape = &sched->shapes[ix];
        ready_requeue(sched, shape->open_queue);
        ready_requeue(sched, shape->closed_queue);
        if (shape->background_queue != ID_NONE) {
            ready_requeue(sched, shape->background_queue);
        }
    }
}

/* Return the queue where the entry of a bin's side belongs now. */
static uint32_t
queue_of(const struct sched *sched, uint32_t bin, enum bin_side side)
{
    const struct shape *shape = &sched->shapes[sched_bin_shape(sched, bin)];
    if (side == BIN_BACKGROUND) {
        INVARIANT(shape->background_queue != ID_NONE);
        return shape->background_queue;
    }
    uint32_t group = bin % 2 == 0 ? bin / 2 : sched_bin(sched, bin)->group;
    return sched_group(sched, group)->open ? shape->open_queue
                                           : shape->closed_queue;
}

/* Note the path of a task that has an entry in a queue. */
static void note_length(struct sched *sched, uint32_t queue, uint32_t task)
{
    uint64_t theta = sched_run_of(sched, task)->theta;
    uint64_t length = sched_units(sched->tasks[task].rank_ns);
    struct queue *q = &sched->queues[queue];
    if (length < theta && length > q->longest) {
        q->longest = length;
    }
}

/* A queue whose keys are computed again. */
struct requeued {
    struct sched *sched;
    uint32_t queue;
};

/* Push a new entry of a bin's side to its queue, or none if it is empty. */
static void rekey(struct sched *sched, uint32_t bin, enum bin_side side)
{
    uint32_t queue = queue_of(sched, bin, side);
    uint32_t item = item_of(bin, side);
    uint32_t best = sched_best_of(sched, item);
    uint32_t *stamp = stamp_at(sched, item);
    *stamp += *stamp % 2; /* an entry dies */
    if (best != ID_NONE) {
        ++*stamp;
        struct ready_entry entry = {
            .key = key_of(sched, best, side),
            .item = item,
            .stamp = *stamp,
        };
        ready_queue_push(sched_block(sched, queue),
                         sched->queues[queue].end,
                         entry,
                         stamp_of,
                         sched);
        if (entry.key.middle >> 63 != 0) { /* not critical, or not by rank */
            note_length(sched, queue, best);
        }
    }
    ready_requeue(sched, queue);
}

/* Compute the key of an entry again. */
static struct ready_key rekeyed(void *ctx, uint32_t item)
{
    const struct requeued *requeued = ctx;
    uint32_t task = sched_best_of(requeued->sched, item);
    note_length(requeued->sched, requeued->queue, task);
    return key_of(requeued->sched, task, item % BIN_SIDES);
}

static void rekey_queue(struct sched *sched, uint32_t queue)
{
    struct requeued requeued = {sched, queue};
    sched->queues[queue].longest = 0;
    ready_queue_rekey(sched_block(sched, queue),
                      sched->queues[queue].end,
                      stamp_of,
                      sched,
                      rekeyed,
                      &requeued);
    ready_requeue(sched, queue);
}

/*
 * The threshold of a run has changed. If it fell, keys change only in queues
 * that have a task that was not critical with a path as long as the new one.
 */
void ready_rekey_run(struct sched *sched, uint32_t run, uint64_t before)
{
    uint64_t theta = sched->runs[run].theta;
    for (uint32_t ix = 0; ix < sched->shape_count; ix++) {
        const struct shape *shape = &sched->shapes[ix];
        uint32_t queues[] = {
            shape->open_queue,
            shape->closed_queue,
            shape->background_queue,
        };
        for (uint32_t n = 0; n < ARRAY_COUNT(queues); n++) {
            if (shape->run != run || queues[n] == ID_NONE) {
                continue;
            }
            if (theta > before || sched->queues[queues[n]].longest >= theta) {
                rekey_queue(sched, queues[n]);
            } else {
                ready_requeue(sched, queues[n]); /* by its lane */
            }
        }
    }
}

void ready_rekey_group(struct sched *sched, uint32_t group)
{
    uint32_t bin = group * 2;
    while (bin != ID_NONE) {
        const struct shape *shape = &sched->shapes[sched_bin_shape(sched, bin)];
        if (sched_best_of(sched, item_of(bin, BIN_NORMAL)) != ID_NONE) {
            INVARIANT(bin % 2 == 0 || sched_bin(sched, bin)->group == group);
            rekey(sched, bin, BIN_NORMAL);
            /* The group may just have opened or closed: one entry is dead. */
            ready_requeue(sched, shape->open_queue);
            ready_requeue(sched, shape->closed_queue);
        }
        if (sched_best_of(sched, item_of(bin, BIN_BACKGROUND)) != ID_NONE) {
            rekey(sched, bin, BIN_BACKGROUND);
        }
        bin = sched_next_bin(sched, bin);
    }
}

/* List a group to be closed if no task keeps it open. */
void ready_check_group(struct sched *sched, uint32_t group)
{
    struct group *g = sched_group(sched, group);
    uint32_t busy = sched_busy(sched, group);
    bool idle = (g->open && busy == 0) ||
                (g->working && busy == sched_queued(sched, group));
    if (idle && !g->checking) {
        INVARIANT(sched->group_checks != group);
        g->checking = true;
        g->check_next = sched->group_checks;
        sched->group_checks = group;
    }
}

void ready_count_in(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->tasks[task].state == TASK_READY ||
              state_in_flight(sched, task) ||
              sched_has(sched, task, TASK_BACKING_OFF));
    if (!sched_has(sched, task, TASK_COUNTED)) {
        uint32_t ix = sched->tasks[task].group;
        const struct group *group = sched_group(sched, ix);
        bool queues = sched_class_of(sched, task)->queue;
        sched_raise(sched, task, TASK_COUNTED);
        if (!sched_is_solo(ix)) {
            sched->more[ix / 2].busy++;
            sched->more[ix / 2].queued += queues ? 1 : 0;
        }
        INVARIANT(sched_busy(sched, ix) >= sched_queued(sched, ix));
        if (!queues && group->open && !group->working) {
            dispatch_work_on(sched, ix);
        }
    }
}

void ready_count_out(struct sched *sched, uint32_t task)
{
    if (!sched_has(sched, task, TASK_COUNTED)) {
        return;
    }
    sched_lower(sched, task, TASK_COUNTED);
    uint32_t ix = sched->tasks[task].group;
    if (!sched_is_solo(ix)) {
        struct group_more *more = &sched->more[ix / 2];
        INVARIANT(more->busy > 0 && more->queued <= more->busy);
        more->busy--;
        more->queued -= sched_class_of(sched, task)->queue ? 1 : 0;
    }
    ready_check_group(sched, ix);
}

/* A ready task keeps its group open if its provider accepts sessions, its guard
 * is not parked and its run is not stopped. */
static void recount(struct sched *sched, uint32_t task)
{
    if (!sched_has(sched, task, TASK_BACKGROUND) &&
        dispatch_admits(sched, task)) {
        ready_count_in(sched, task);
    } else {
        ready_count_out(sched, task);
    }
}

/* Put the tasks of a bin's heap into sched->list; return their number. */
uint32_t ready_list_heap(struct sched *sched, uint32_t root)
{
    uint32_t count = 0;
    sched->list[count++] = root;
    if (sched_is_solo(sched->tasks[root].group)) {
        return count; /* alone in its bin, and not linked */
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        uint32_t task = sched->list[ix];
        const struct pheap_link *link = &sched->tasks[task].member.link;
        if (link->child != ID_NONE) {
            sched->list[count++] = link->child;
        }
        if (task != root && link->next != ID_NONE) {
            sched->list[count++] = link->next;
        }
        INVARIANT(count <= sched->task_count);
    }
    return count;
}

static void recount_queue(struct sched *sched, uint32_t queue)
{
    for (uint32_t ix = 0; ix < sched_entries(sched, queue); ix++) {
        const struct ready_entry *entry = sched_entry(sched, queue, ix);
        if (stamp_of(sched, entry->item) == entry->stamp) {
            uint32_t best = sched_best_of(sched, entry->item);
            for (uint32_t n = ready_list_heap(sched, best); n-- > 0;) {
                recount(sched, sched->list[n]);
            }
        }
    }
}

void ready_recount_provider(struct sched *sched, uint32_t provider)
{
    INVARIANT(provider < sched->provider_count);
    for (uint32_t ix = 0; ix < sched->shape_count; ix++) {
        if (sched->shapes[ix].provider == provider) {
            recount_queue(sched, sched->shapes[ix].open_queue);
            recount_queue(sched, sched->shapes[ix].closed_queue);
        }
    }
}

void ready_recount_run(struct sched *sched, uint32_t run)
{
    INVARIANT(run < sched->run_count);
    for (uint32_t ix = 0; ix < sched->shape_count; ix++) {
        if (sched->shapes[ix].run == run) {
            recount_queue(sched, sched->shapes[ix].open_queue);
            recount_queue(sched, sched->shapes[ix].closed_queue);
        }
    }
}

void ready_recount_guard(struct sched *sched, uint32_t guard)
{
    INVARIANT(guard < sched->guard_count);
    for (uint32_t ix = 0; ix < sched->shape_count; ix++) {
        if (sched->shapes[ix].guard == guard) {
            recount_queue(sched, sched->shapes[ix].open_queue);
            recount_queue(sched, sched->shapes[ix].closed_queue);
        }
    }
}

static enum bin_side side_of(const struct sched *sched, uint32_t task)
{
    return sched_has(sched, task, TASK_BACKGROUND) ? BIN_BACKGROUND
                                                   : BIN_NORMAL;
}

void ready_enqueue(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->tasks[task].state == TASK_READY);
    INVARIANT((sched->tasks[task].flags & (TASK_QUEUED | TASK_HELD)) == 0);
    if (ready_is_background(sched, task)) {
        sched_raise(sched, task, TASK_BACKGROUND);
    } else {
        sched_lower(sched, task, TASK_BACKGROUND);
    }
    recount(sched, task);
    sched_raise(sched, task, TASK_QUEUED);
    uint32_t bin = sched_bin_of(sched, task);
    enum bin_side side = side_of(sched, task);
    if (!sched_is_solo_bin(bin)) {
        struct pheap_forest forest = bin_forest(sched);
        uint32_t *root = &sched_bin(sched, bin)->root[side];
        *root = pheap_add(&forest, *root, task);
    }
    if (sched_best_of(sched, item_of(bin, side)) == task) {
        rekey(sched, bin, side);
    }
    INVARIANT(*stamp_at(sched, item_of(bin, side)) % 2 != 0);
    if (sched_has(sched, task, TASK_AGED)) {
        /* It may now reserve the units it lacks. */
        dispatch_rouse(sched, queue_of(sched, bin, side));
    }
}

void ready_dequeue(struct sched *sched, uint32_t task)
{
    INVARIANT(sched_has(sched, task, TASK_QUEUED));
    sched_lower(sched, task, TASK_QUEUED);
    uint32_t bin = sched_bin_of(sched, task);
    enum bin_side side = side_of(sched, task);
    bool was_best = true;
    if (!sched_is_solo_bin(bin)) {
        struct pheap_forest forest = bin_forest(sched);
        uint32_t *root = &sched_bin(sched, bin)->root[side];
        was_best = *root == task;
        *root = pheap_remove(&forest, *root, task);
    }
    INVARIANT(sched_best_of(sched, item_of(bin, side)) != task);
    if (was_best) {
        rekey(sched, bin, side);
    }
}
