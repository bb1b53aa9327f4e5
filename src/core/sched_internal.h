/* SPDX-License-Identifier: MIT */
/*
 * Internals shared by the files of the scheduler.
 *
 * Data structures:
 *
 *   task  --> bin --> queue --> pool
 *
 * A ready task is in a bin: the ready tasks of one group that have the same
 * shape (class, provider, pools needed). Bins with equal needs are in one
 * queue. A queue whose best entry does not fit waits at a pool that lacks
 * units: all its tasks need that pool, so none of them fits, and none is
 * examined until that pool has units again. So a decision costs the logarithm
 * of the number of ready tasks, however many of them are blocked.
 *
 * Each shape has two queues: for tasks that also need units for their group
 * (closed), and for tasks that do not (open: the group is open already, or the
 * task is in the background and takes no group units). When a group opens or
 * closes, its bins move from one queue to the other.
 *
 * All numbers in use (counters, groups' busy, runs' counts) follow from the
 * states of the tasks; sched_verify() checks each of them.
 */
#ifndef CORE_SCHED_INTERNAL_H
#define CORE_SCHED_INTERNAL_H

#include "core/graph.h"
#include "core/idmap.h"
#include "core/pheap.h"
#include "core/ready_queue.h"
#include "core/sched.h"

/* A pool that is always open: queues start here. */
#define POOL_OPEN UINT32_C(0)

/* Bits of a task index. */
enum { SCHED_TASK_BITS = 24 };

_Static_assert(SCHED_TASKS_MAX == UINT32_C(1) << SCHED_TASK_BITS,
               "a task's number fits");

/* Worse than any tier. */
#define TIER_NONE UINT8_C(255)

enum task_flag {
    TASK_HELD = 1 << 0,        /* by an operator */
    TASK_BACKING_OFF = 1 << 1, /* waits for until_ns after a failure */
    TASK_AGED = 1 << 2,        /* ready for longer than max_wait */
    TASK_BACKGROUND = 1 << 3, /* takes no group units: it blocks nothing better,
                                 or shares another's session */
    TASK_DIRTY = 1 << 4,      /* in the list of changed tasks */
    TASK_SATISFIED = 1 << 5,  /* a satisfied need of its dependents */
    TASK_REVOKED = 1 << 6,    /* done, but its result is in doubt */
    TASK_QUEUED = 1 << 7,     /* in its bin */
    TASK_COUNTED = 1 << 8,    /* keeps its group open */
    TASK_ENDING = 1 << 9,     /* to be stopped while in flight */
    TASK_END_DUE = 1 << 10,   /* of a leader: EFFECT_END is due */
    TASK_TO_SKIP = 1 << 11,   /* skip, not cancel, when it exits */
    TASK_ASKING = 1 << 12,    /* the run is paused because of it */
    TASK_TIMED = 1 << 13,     /* in the heap of timers */
    TASK_CASCADED = 1 << 14,  /* skipped because of a need */
    TASK_STALE = 1 << 15,     /* in flight with input that rework replaces */
};

/* Heaps of a bin: held tasks are in neither. */
enum bin_side { BIN_NORMAL, BIN_BACKGROUND, BIN_SIDES };

struct bin {
    uint32_t group;
    uint32_t shape;
    uint32_t next_of_group;
    uint32_t root[BIN_SIDES];  /* heap of tasks */
    uint32_t stamp[BIN_SIDES]; /* of the entry in a queue; odd: it exists */
};

/*
 * Contains its first bin, because most groups need only one. The index of a
 * group encodes where it is: see sched_group().
 */
struct group {
    int64_t service_ns; /* time used by its sessions, for SCHED_FAIR */
    uint32_t run;
    uint32_t needs;      /* set of pools of an open group */
    uint32_t busy;       /* tasks that keep it open */
    uint32_t check_next; /* list of groups to be closed if idle */
    bool open;
    bool checking;
    bool has_bin;
    struct bin bin; /* the first one; the others follow by next_of_group */
};

/*
 * Fields that every start and end of a task touches: two neighbouring cache
 * lines, which are fetched together. A large plan is walked in graph order, and
 * the number of cache lines touched is the cost.
 */
struct task {
    int64_t rank_ns;    /* longest estimated path from here to the end */
    int64_t ready_ns;   /* when it became ready */
    uint64_t ready_seq; /* order of becoming ready, then of declaration */
    uint64_t token;
    uint32_t group;
    uint32_t bin;
    uint32_t leader;          /* first task of its session */
    uint32_t next_in_session; /* after it in the session, or ID_NONE */
    uint32_t flight_ix;       /* place in the list of tasks in flight */
    uint32_t dirty_next;
    uint32_t attempts;
    uint16_t flags;
    uint8_t state;
    uint8_t tier;     /* best of its class and all its dependents */
    struct group own; /* its group, if it has no other */
    int64_t estimate_ns;
};

_Static_assert(sizeof(struct task) == 128, "a task is two cache lines");

/* The other fields of a task. */
struct detail {
    int64_t until_ns;   /* timer: when the back-off expires, or age */
    int64_t started_ns; /* when its attempt started */
    uint32_t failure;   /* index of its failure rules */
    uint32_t rework_to;
    uint32_t cause; /* task that caused its skip or cancellation */
    uint32_t tries;
    uint16_t reworks;
    uint16_t checkpoints;
    uint8_t blocked_tier; /* best among its non-deferred dependents */
    uint8_t parked;       /* enum sched_parked, while it is parked */
    uint8_t refusals;     /* of its own in a row, without a named time */
};

/* One pool and the units needed of it. */
struct pool_need {
    uint32_t pool;
    uint32_t units;
};

/* A list of pools needed together, inside `needs`; equal lists are shared. */
struct need_set {
    uint32_t first;
    uint32_t count;
    uint32_t next_same_hash;
};

struct shape {
    uint32_t class_ix;
    uint32_t provider;
    uint32_t run;
    uint32_t batch_key;
    uint32_t needs;       /* set of pools of an attempt */
    uint32_t group_needs; /* set of pools of its group */
    uint32_t open_queue;
    uint32_t closed_queue;
    uint32_t next_same_hash;
    uint32_t bin_count;
};

struct queue {
    struct ready_queue heap;
    struct ready_key top; /* key of its best entry, while it is in a pool */
    uint32_t sets[2];     /* need sets; ID_NONE in [1]: only one */
    uint32_t at_pool;     /* where it waits; ID_NONE: empty or set aside */
    uint32_t aside_next;
    bool aside; /* lacks several pools: examined again next pass */
};

struct run {
    enum sched_policy policy;
    uint32_t first_limit;
    uint32_t limit_count;
    uint32_t pool; /* closed while it is paused */
    uint32_t counts[TASK_STATE_COUNT];
    uint32_t backing_off;
    uint32_t held_ready;
    uint32_t sessions;
    uint32_t asking;
    uint32_t asked; /* the first task that asks, if any */
    uint32_t completions;
    uint32_t sync_every;
    uint32_t check_next;
    bool sync_drain;
    bool paused;
    bool cancelled;
    bool barrier_due;
    bool barrier_running;
    bool checking; /* in the list of runs to check this pass */
    bool quiet;    /* EFFECT_RUN was given and nothing changed since */
};

struct sched {
    int64_t now_ns;
    uint64_t event_seq; /* counts passes' inputs; orders becoming ready */
    uint64_t last_token;

    struct graph graph;
    struct task *tasks;
    struct detail *details;
    uint32_t *unmet; /* unsatisfied needs, per task; separate, for the cache */
    struct pheap_link *bin_links;
    struct pheap_link *timer_links;
    uint32_t *in_flight;
    uint32_t in_flight_count;
    uint32_t task_count;
    uint32_t task_capacity;

    /* Scratch of walks over the graph, one place per task. */
    uint32_t *marks;
    uint32_t *stack;
    uint32_t *list;
    uint32_t *tally;
    uint32_t *doubts; /* tasks that may have to be skipped */
    uint32_t doubt_count;
    uint32_t mark;

    struct group *groups; /* the declared ones */
    uint32_t group_count;
    uint32_t group_capacity;
    struct bin *bins; /* all but the first bins of groups */
    uint32_t bin_count;
    uint32_t bin_capacity;

    struct shape *shapes;
    uint32_t shape_count;
    uint32_t shape_capacity;
    struct queue *queues;
    struct pheap_link *queue_links;
    uint32_t queue_count;
    uint32_t queue_capacity;
    struct need_set *sets;
    uint32_t set_count;
    uint32_t set_capacity;
    struct pool_need *needs;
    uint32_t need_count;
    uint32_t need_capacity;
    struct idmap bins_by_key; /* bins in `bins` by group and shape */
    struct idmap shapes_by_hash;
    struct idmap sets_by_hash;

    struct limits limits;
    struct provider *providers;
    uint32_t provider_count;
    struct sched_class_spec *classes;
    uint32_t class_count;
    bool has_deferred; /* a class is deferred */
    struct sched_failure_spec *failures;
    uint32_t failure_count;
    uint32_t failure_capacity;
    struct run *runs;
    uint32_t run_count;

    uint32_t timers;   /* heap of tasks */
    uint32_t awake;    /* heap of pools */
    uint32_t reserved; /* list of counters */
    uint32_t asides;   /* list of queues */
    uint32_t group_checks;
    uint32_t run_checks;
    uint32_t dirty_first;
    uint32_t dirty_last;
    uint32_t ends;     /* sessions with EFFECT_END due */
    uint32_t end_from; /* where in in_flight to search for the next one */
    bool notices;      /* a provider has a notice */
    bool in_pass;      /* a pass is handing out effects */
    bool draining;     /* no run starts anything */
    bool restoring;    /* restored from records; before the first pass */

    struct lookahead *lookahead; /* NULL: no run uses lookahead */
};

/*
 * sched.c: begin an input at a time, without and with the effects of that time;
 * return a mark that no task has yet, for a walk.
 */
void sched_arrive(struct sched *sched, int64_t now_ns);
void sched_advance(struct sched *sched, int64_t now_ns);
uint32_t sched_new_mark(struct sched *sched);

/* state.c: change a task and all its counts. */
void state_set(struct sched *sched, uint32_t task, enum task_state state);
void state_touch(struct sched *sched, uint32_t task);
void state_check_run(struct sched *sched, uint32_t run);
void state_set_timer(struct sched *sched, uint32_t task, int64_t until_ns);
void state_clear_timer(struct sched *sched, uint32_t task);
void state_restore(struct sched *sched, uint32_t task, enum task_state state);
void state_join_ready(struct sched *sched, uint32_t task);
void state_ready_or_wait(struct sched *sched, uint32_t task);
void state_ready_again(struct sched *sched, uint32_t task);
void state_unready(struct sched *sched, uint32_t task);
void state_drop(struct sched *sched, uint32_t task);
void state_clear_backoff(struct sched *sched, uint32_t task);
void state_age(struct sched *sched, uint32_t task);

static inline bool state_in_flight(const struct sched *sched, uint32_t task)
{
    uint8_t state = sched->tasks[task].state;
    return state == TASK_STARTING || state == TASK_RUNNING;
}

static inline bool state_is_pending(const struct sched *sched, uint32_t task)
{
    uint8_t state = sched->tasks[task].state;
    return state == TASK_WAITING || state == TASK_READY;
}

static inline bool state_is_final(enum task_state state)
{
    return state == TASK_DONE || state == TASK_SKIPPED ||
           state == TASK_CANCELLED;
}

/* ready.c: bins, queues and groups. */
void ready_enqueue(struct sched *sched, uint32_t task);
void ready_dequeue(struct sched *sched, uint32_t task);
void ready_rekey_group(struct sched *sched, uint32_t group);
void ready_requeue(struct sched *sched, uint32_t queue);
void ready_recount_provider(struct sched *sched, uint32_t provider);
void ready_check_group(struct sched *sched, uint32_t group);
void ready_count_in(struct sched *sched, uint32_t task);
void ready_count_out(struct sched *sched, uint32_t task);
uint32_t ready_head(struct sched *sched, uint32_t queue);
uint32_t ready_list_heap(struct sched *sched, uint32_t root);
uint32_t ready_head_of_shape(struct sched *sched, const struct shape *shape);
bool ready_is_background(const struct sched *sched, uint32_t task);
bool ready_goes_before(const struct sched *sched, uint32_t a, uint32_t b);

/* dispatch.c: pools, and which tasks start. */
void dispatch_occupy(struct sched *sched, uint32_t set);
void dispatch_give(struct sched *sched, uint32_t set);
void dispatch_wait(struct sched *sched, uint32_t queue, uint32_t pool);
void dispatch_leave(struct sched *sched, uint32_t queue);
void dispatch_wake_limit(struct sched *sched, uint32_t limit);
void dispatch_set_open(struct sched *sched, uint32_t pool, bool open);
bool dispatch_takes(const struct sched *sched, uint32_t provider);
void dispatch_check_provider(struct sched *sched, uint32_t provider);
void dispatch_rouse(struct sched *sched, uint32_t queue);
void dispatch_open_group(struct sched *sched, uint32_t group);
uint32_t dispatch_close_group(struct sched *sched);
uint32_t dispatch_start(struct sched *sched);

/* priority.c: tier and rank. */
void priority_of_new(struct sched *sched,
                     uint32_t first,
                     uint32_t edges_before,
                     bool forward);
void priority_refresh(struct sched *sched,
                      const uint32_t *seeds,
                      uint32_t count);

/* deps.c: propagate completion to dependents. */
bool deps_is_complete(const struct sched *sched, uint32_t task);
bool deps_is_dead_end(const struct sched *sched, uint32_t task);
void deps_satisfy(struct sched *sched, uint32_t task);
void deps_revert(struct sched *sched, uint32_t task);
void deps_skip_dependents(struct sched *sched, uint32_t task);
void deps_withdraw(struct sched *sched, uint32_t task, bool skip);
void deps_skip(struct sched *sched, uint32_t task, uint32_t cause);
uint32_t deps_find_dead_end(struct sched *sched, uint32_t task);
void deps_revive(struct sched *sched, uint32_t task);
void deps_doubt(struct sched *sched, uint32_t task);
void deps_cut(struct sched *sched);

/* outcome.c: session outcomes. */
enum err outcome_apply(struct sched *sched, const struct sched_event *event);
void outcome_started(struct sched *sched, uint32_t leader);

/* restore.c: restoring from records. */
uint32_t restore_find_bad(const struct sched_addition *addition);
void restore_tasks(struct sched *sched,
                   const struct sched_addition *addition,
                   uint32_t first,
                   uint32_t edges);
void restore_finish(struct sched *sched);

/* control.c: operator requests. */
enum err control_apply(struct sched *sched, const struct sched_event *event);
void control_cancel_run(struct sched *sched, uint32_t run, uint32_t cause);
void control_check_run(struct sched *sched, uint32_t run);
void control_ask(struct sched *sched, uint32_t task);
/* Stop a session if all its tasks are to be stopped. */
void control_end_session(struct sched *sched, uint32_t leader);

/*
 * Return a group by its index: even ones are declared, in `groups`; odd ones
 * belong to tasks without a declared group, which contain them.
 */
static inline struct group *sched_group(const struct sched *sched,
                                        uint32_t group)
{
    return group % 2 == 0 ? &sched->groups[group / 2]
                          : &sched->tasks[group / 2].own;
}

static inline bool sched_is_solo(uint32_t group)
{
    return group % 2 != 0;
}

/* Return a bin by its index: even ones are in groups, odd ones in `bins`. */
static inline struct bin *sched_bin(const struct sched *sched, uint32_t bin)
{
    return bin % 2 == 0 ? &sched_group(sched, bin / 2)->bin
                        : &sched->bins[bin / 2];
}

/* Return the best task of a bin's side (a queue item), or ID_NONE. */
static inline uint32_t sched_best_of(const struct sched *sched, uint32_t item)
{
    return sched_bin(sched, item / BIN_SIDES)->root[item % BIN_SIDES];
}

static inline const struct shape *sched_shape_of(const struct sched *sched,
                                                 uint32_t task)
{
    return &sched->shapes[sched_bin(sched, sched->tasks[task].bin)->shape];
}

static inline const struct sched_class_spec *
sched_class_of(const struct sched *sched, uint32_t task)
{
    return &sched->classes[sched_shape_of(sched, task)->class_ix];
}

static inline const struct sched_failure_spec *
sched_failure_of(const struct sched *sched, uint32_t task)
{
    return &sched->failures[sched->details[task].failure];
}

static inline uint32_t sched_run_ix(const struct sched *sched, uint32_t task)
{
    return sched_group(sched, sched->tasks[task].group)->run;
}

static inline struct run *sched_run_of(struct sched *sched, uint32_t task)
{
    return &sched->runs[sched_run_ix(sched, task)];
}

static inline bool
sched_has(const struct sched *sched, uint32_t task, enum task_flag flag)
{
    return (sched->tasks[task].flags & (unsigned)flag) != 0;
}

static inline void
sched_raise(struct sched *sched, uint32_t task, enum task_flag flag)
{
    sched->tasks[task].flags =
        (uint16_t)(sched->tasks[task].flags | (unsigned)flag);
}

static inline void
sched_lower(struct sched *sched, uint32_t task, enum task_flag flag)
{
    sched->tasks[task].flags =
        (uint16_t)(sched->tasks[task].flags & ~(unsigned)flag);
}

/* Return whether it backs off after a refusal, not keeping its group open. */
static inline bool sched_is_refused(const struct sched *sched, uint32_t task)
{
    return sched_has(sched, task, TASK_BACKING_OFF) &&
           sched->details[task].refusals > 0;
}

/* Prefetch some dependents. */
static inline void sched_fetch_dependents(const struct sched *sched,
                                          uint32_t task)
{
    enum { AHEAD = 8 };
    const struct graph *graph = &sched->graph;
    uint32_t edge = graph_first_dependent(graph, task);
    for (uint32_t n = 0; n < AHEAD && edge != ID_NONE; n++) {
        uint32_t dependent = graph_dependent(graph, edge);
        __builtin_prefetch(&sched->unmet[dependent], 1);
        __builtin_prefetch(&sched->tasks[dependent], 1);
        __builtin_prefetch(&sched->tasks[dependent].own, 1);
        edge = graph_next_dependent(graph, edge);
    }
}

#endif /* CORE_SCHED_INTERNAL_H */
