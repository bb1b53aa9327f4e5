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
 * Each shape has up to three queues: for tasks that also need units for their
 * group (closed), for tasks whose group is open already (open), and, of a
 * deferred class, for tasks in the background, which take units of the
 * background's limits and none for their group. When a group opens or closes,
 * its bins move from one queue to the other.
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

/* Ends a list in which ID_NONE stands for "not in the list". */
#define LEND_END (ID_NONE - 1)

/* Bits of a task index. */
enum { SCHED_TASK_BITS = 24 };

_Static_assert(SCHED_TASKS_MAX == UINT32_C(1) << SCHED_TASK_BITS,
               "a task's number fits");

/* Bits of the number of attempts of a task. */
enum { SCHED_ATTEMPT_BITS = 26 };

/* Work is counted in units of so many bits of nanoseconds. */
enum { SCHED_UNIT_SHIFT = 20 };

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
 * What many groups have in common. An open group holds its lanes. The units of
 * its issues it holds while a task keeps it open that is of no class with
 * `queue`: an issue that only waits for its merge does not count.
 */
struct group_kind {
    uint32_t run;
    uint32_t needs;  /* set of all pools of an open group: */
    uint32_t lanes;  /* set of those of limits with `per` */
    uint32_t issues; /* set of the others */
    uint32_t lane;   /* pool that bounds what its groups use: see lend.c */
    uint32_t next_same_hash;
};

/* Bits of the index of a kind. */
enum { SCHED_KIND_BITS = 29 };

/*
 * What all groups have. The index of a group encodes where it is: see
 * sched_group().
 */
struct group {
    uint32_t kind : SCHED_KIND_BITS; /* index of its kind */
    bool open : 1;
    bool working : 1; /* open, and holds the units of its issues */
    bool checking : 1;
    uint32_t check_next; /* list of groups to be closed if idle */
};

_Static_assert(sizeof(struct group) == 8, "every task may have one");

/* The rest of a declared group. Contains its first bin, because most groups
 * need only one. */
struct group_more {
    int64_t service_ns; /* time used by its sessions, for SCHED_FAIR */
    uint32_t busy;      /* tasks that keep it open */
    uint32_t queued;    /* of them, those of a class with `queue` */
    bool has_bin;
    struct bin bin; /* the first one; the others follow by next_of_group */
    uint64_t work;  /* of its unfinished tasks, see goal.c */
    uint32_t left;  /* foreground tasks that are not finished or stuck */
    uint32_t width; /* such tasks at once, at most: see lend.c */
};

/*
 * The group of a task that has no other, and its bin. The task is the only one
 * in them, so its flags say the rest: whether it keeps the group open, and
 * whether and on which side it is in the bin.
 */
struct solo {
    struct group group;
    uint32_t shape;
    uint32_t stamp; /* like that of a bin; only one side has an entry */
};

/* The place of a task in a declared group. */
struct member {
    uint32_t bin;
    struct pheap_link link; /* in the heap of its bin */
};

/*
 * Fields that every start and end of a task touches: two cache lines. A large
 * plan is walked in graph order, and the number of cache lines touched is the
 * cost. What others read of a task (its rank, its state) is in the first 32
 * bytes, which are in one of the two lines.
 */
struct task {
    int64_t rank_ns; /* longest estimated path from here to the end */
    unsigned attempts : SCHED_ATTEMPT_BITS;
    unsigned first : 1;    /* goes before all others */
    unsigned special : 1;  /* few are: its detail says more */
    unsigned priority : 4; /* best of its own and all its dependents' */
    uint16_t flags;
    uint8_t tier;  /* best of its class and all its dependents */
    uint8_t state; /* enum task_state */
    uint32_t group;
    unsigned failure : SCHED_TASK_BITS; /* index of its failure rules */
    uint8_t refusals; /* of its own in a row, without a named time */
    uint64_t token;
    int64_t ready_ns;   /* when it became ready */
    uint64_t ready_seq; /* order of becoming ready, then of declaration */
    int64_t estimate_ns;
    uint32_t leader;          /* first task of its session */
    uint32_t next_in_session; /* after it in the session, or ID_NONE */
    uint32_t flight_ix;       /* place in the list of tasks in flight */
    uint32_t dirty_next;
    union {
        struct solo solo; /* see sched_is_solo() */
        struct member member;
    };
    uint32_t cause; /* task that caused its skip or cancellation */
    uint32_t tries;
};

_Static_assert(sizeof(struct task) == 96, "a task touches two cache lines");

/* The other fields of a task. */
struct detail {
    int64_t until_ns; /* timer: when the back-off expires, or age; `early`,
                         before it is ready: when it may start */
    struct pheap_link timer; /* in the heap of timers */
    uint32_t rework_to;
    uint16_t reworks;
    uint16_t checkpoints;
    uint8_t blocked_tier;      /* best among its non-deferred dependents */
    unsigned parked : 2;       /* enum sched_parked, while it is parked */
    unsigned own_priority : 4; /* without its dependents */
    unsigned continued : 1;    /* a chain of its group goes on: see lend.c */
    unsigned stuck : 1;        /* keeps its dependents from starting */
    unsigned left : 1;         /* counts in its group's `left` */
    unsigned prioritised : 1;  /* by an operator */
    unsigned picky : 1;        /* has needs with an outcome other than done */
    unsigned watched : 1;      /* is such a need */
    unsigned touched : 1;      /* in the list of those to look at, deps.c */
    unsigned waits : 1;   /* for such a need or its scope: counts in `unmet` */
    unsigned last : 1;    /* starts when its scope rests */
    unsigned approve : 1; /* needs approval, each time it is to start anew */
    unsigned unapproved : 1; /* held until it is approved */
    unsigned snoozed : 1;    /* backing off, by its own wish */
    unsigned early : 1; /* has a time before which it must not start; backing
                           off: until then */
};

_Static_assert(sizeof(struct detail) == 32, "no more than that");

/* Times of a task that only some policies need. */
struct task_times {
    int64_t started_ns; /* when its attempt started */
    int64_t service_ns; /* of its group, if it has no other */
};

/* The place of a task among the scopes. */
struct scope_link {
    uint32_t scope; /* see scope.c */
    uint32_t next;  /* the list of all tasks of its scope */
};

/* The place of a task in the accounts of lend.c. */
struct lend_link {
    uint32_t stuck_needs; /* its needs that are stuck */
    uint32_t next;        /* in the list of those to look at */
};

/* A part of a run with tasks that come last: see scope.c. */
struct scope {
    uint32_t parent; /* like sched_task_spec.scope */
    uint32_t run;
    uint32_t child;      /* list of the scopes inside it */
    uint32_t next_child; /* of its parent */
    uint32_t members;    /* list of its own tasks... */
    uint32_t lasts;      /* ...and of those that come last */
    uint32_t witness;    /* member that did not rest when last seen */
    uint32_t depth;      /* of the tree; the run: 0 */
    uint32_t due_next;   /* in the list of scopes to look at */
    bool due;
    bool known; /* it was looked at */
    bool rests;
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
    uint32_t needs;            /* set of pools of an attempt */
    uint32_t group_needs;      /* set of pools of its group */
    uint32_t background_needs; /* of an attempt in the background, besides */
    uint32_t guard;            /* whose pool is in `needs`, or ID_NONE */
    uint32_t open_queue;
    uint32_t closed_queue;
    uint32_t background_queue; /* ID_NONE: its class is not deferred */
    uint32_t next_of_lane;     /* shapes whose groups have the same lane */
    uint32_t next_same_hash;
    uint32_t bin_count;
};

/* A task that keeps others from starting while it is parked. */
struct guard {
    uint32_t task;
    uint32_t pool;
};

struct queue {
    struct ready_queue block; /* of its own, or with that of the next queue */
    struct ready_key top;     /* key of its best entry, while it is in a pool */
    uint64_t urgency;         /* its middle word, raised by its lane */
    uint64_t longest;         /* no entry of a task that is not critical has a
                                 longer path, see ready_rekey_run() */
    uint32_t sets[2];         /* need sets; ID_NONE in [1]: only one */
    uint32_t lane;            /* of the groups of its tasks, or ID_NONE */
    uint32_t at_pool;         /* where it waits; ID_NONE: empty or set aside */
    uint32_t aside_next;
    uint8_t end; /* enum ready_end; READY_BACK: in the block of the queue
                    before it */
    bool aside;  /* lacks several pools: examined again next pass */
};

struct run {
    enum sched_policy policy;
    enum sched_goal goal;
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
    uint32_t owed;      /* see struct sched_run_record */
    uint32_t late_pool; /* of tasks that come last: open while it is stopped */
    uint32_t lasts;     /* number of these tasks */
    int64_t deadline_ns;
    enum sched_stop stopped;
    struct scope scope; /* the run itself */
    uint32_t kind;      /* of all its groups, if it has no limits on groups */
    int64_t foreground; /* sessions that foreground work could use at most */
    uint64_t work;      /* of its pending tasks, see goal.c... */
    uint64_t theta;     /* ...and how long a path makes a task critical */
    bool goal_due;      /* that may have changed */
    bool lends;         /* foreground is known: see lend.c */
    bool lend_due;      /* it has changed; see also in struct sched */
    bool sync_drain;
    bool paused;
    bool cancelled;
    bool picky; /* some needs want another outcome than done */
    bool deadline_over;
    bool stop_due; /* EFFECT_STOPPED is due */
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
    uint32_t *in_flight;
    uint32_t in_flight_count;
    uint32_t task_count;
    uint32_t task_capacity;

    /* Per task as well, but few schedulers need them; else NULL. */
    struct task_times *times;
    struct lend_link *lend_links;
    struct scope_link *scope_links;

    /* Scratch of walks over the graph, one place per task. The tally is by
     * task, the list by place; a walk has one of the two. */
    uint16_t *marks;
    uint32_t *stack;
    union {
        uint32_t *list;
        uint32_t *tally;
    };
    uint32_t *doubts; /* tasks that may have to be skipped */
    uint32_t doubt_count;
    uint32_t *touched; /* special tasks that have changed, see deps.c */
    uint32_t touched_count;
    uint32_t special_count; /* tasks that are special */
    uint16_t mark;

    struct scope *scopes; /* without those of the runs */
    uint32_t scope_count;
    uint32_t scope_capacity;
    struct group *groups;    /* the declared ones */
    struct group_more *more; /* of them */
    uint32_t group_count;
    uint32_t group_capacity;
    struct group_kind *kinds;
    uint32_t kind_count;
    uint32_t kind_capacity;
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
    struct idmap kinds_by_hash;

    struct limits limits;
    struct provider *providers;
    uint32_t provider_count;
    struct sched_class_spec *classes;
    uint32_t class_count;
    bool has_deferred;  /* a class is deferred */
    bool has_wide;      /* a task needs several units of a pool */
    bool has_deadlines; /* a run has one */
    struct guard *guards;
    uint32_t guard_count;
    struct sched_failure_spec *failures;
    uint32_t failure_count;
    uint32_t failure_capacity;
    struct run *runs;
    uint32_t run_count;

    uint32_t timers;     /* heap of tasks */
    uint32_t awake;      /* heap of pools */
    uint32_t reserved;   /* list of counters */
    uint32_t asides;     /* list of queues */
    uint32_t postponed;  /* list of queues */
    uint32_t refused;    /* queues that may not pass, in this scan */
    uint32_t lend_first; /* list of tasks, see lend.c; LEND_END: empty */
    bool lend_due;       /* of a run */
    uint32_t lanes_due;  /* list of pools, see goal.c; LEND_END: empty */
    uint32_t scopes_due; /* list of scopes, see scope.c; LEND_END: empty */
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
    bool guards_due;   /* a task was parked, or no longer is */

    struct lookahead *lookahead; /* NULL: no run uses lookahead */
};

/*
 * sched.c: begin an input at a time, without and with the effects of that time;
 * return a mark that no task has yet, for a walk.
 */
void sched_arrive(struct sched *sched, int64_t now_ns);
void sched_advance(struct sched *sched, int64_t now_ns);
uint16_t sched_new_mark(struct sched *sched);

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
void ready_requeue_lane(struct sched *sched, uint32_t lane);
void ready_rekey_run(struct sched *sched, uint32_t run, uint64_t before);
void ready_recount_provider(struct sched *sched, uint32_t provider);
void ready_recount_guard(struct sched *sched, uint32_t guard);
void ready_recount_run(struct sched *sched, uint32_t run);
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
void dispatch_occupy_session(struct sched *sched, uint32_t leader);
void dispatch_give_session(struct sched *sched, uint32_t leader);
void dispatch_wait(struct sched *sched, uint32_t queue, uint32_t pool);
void dispatch_leave(struct sched *sched, uint32_t queue);
void dispatch_wake_limit(struct sched *sched, uint32_t limit);
void dispatch_set_open(struct sched *sched, uint32_t pool, bool open);
bool dispatch_takes(const struct sched *sched, uint32_t provider);
bool dispatch_admits(const struct sched *sched, uint32_t task);
bool dispatch_is_closed(const struct sched *sched, uint32_t task);
void dispatch_check_guards(struct sched *sched);
void dispatch_check_provider(struct sched *sched, uint32_t provider);
void dispatch_rouse(struct sched *sched, uint32_t queue);
void dispatch_open_group(struct sched *sched, uint32_t group);
void dispatch_work_on(struct sched *sched, uint32_t group);
uint32_t dispatch_close_group(struct sched *sched);
uint32_t dispatch_start(struct sched *sched);

/* shape.c: which pools tasks and groups need. */
uint32_t shape_kind_of(struct sched *sched,
                       uint32_t run,
                       const struct sched_group_spec *spec);
uint32_t shape_for(struct sched *sched,
                   const struct sched_task_spec *spec,
                   const struct group_kind *kind);

/* backfill.c: what may pass a reservation. */
void backfill_plan(struct sched *sched, uint32_t pool, uint32_t units);
bool backfill_admits(const struct sched *sched,
                     uint32_t task,
                     struct pool_need need);

/* lend.c: what foreground work could use, and shares that lend the rest. */
void lend_add_run(struct sched *sched, uint32_t run);
void lend_measure(struct sched *sched,
                  uint32_t run,
                  uint32_t first,
                  uint32_t edges,
                  bool forward);
void lend_touch(struct sched *sched, uint32_t task);
void lend_change_limit(struct sched *sched, uint32_t limit);
void lend_settle(struct sched *sched);
void lend_verify(const struct sched *sched);

/* goal.c: what finishes early. */
void goal_add(struct sched *sched, uint32_t task);
void goal_note(struct sched *sched,
               struct run *run,
               uint32_t task,
               enum task_state before);
void goal_touch_lane(struct sched *sched, uint32_t lane);
uint64_t goal_key(const struct sched *sched, uint32_t task);
uint64_t goal_urgency(const struct sched *sched, uint32_t task, uint64_t key);
void goal_settle(struct sched *sched);
uint64_t goal_units(int64_t time_ns);

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
void deps_revive(struct sched *sched, const uint32_t *seeds, uint32_t count);
void deps_doubt(struct sched *sched, uint32_t task);
void deps_cut(struct sched *sched);
bool deps_has_given_up(const struct sched *sched, uint32_t task);
bool deps_is_dead(const struct sched *sched, uint32_t edge);
bool deps_has_to_wait(const struct sched *sched, uint32_t task);
void deps_weigh(struct sched *sched, uint32_t task);
void deps_settle_task(struct sched *sched, uint32_t task);
void deps_touch(struct sched *sched, uint32_t task);
void deps_settle(struct sched *sched);

/* scope.c: tasks that come last. */
void scope_add_old(struct sched *sched);
void scope_add(struct sched *sched,
               uint32_t run,
               const struct sched_scope_spec *spec);
void scope_add_task(struct sched *sched,
                    uint32_t task,
                    const struct sched_task_spec *spec);
bool scope_rests(const struct sched *sched, uint32_t task);
void scope_touch(struct sched *sched, uint32_t task);
void scope_touch_run(struct sched *sched, uint32_t run);
void scope_settle(struct sched *sched);
void scope_restore(struct sched *sched, uint32_t run);
bool scope_is_busy(struct sched *sched, uint32_t run, bool shut);
uint32_t scope_find_busy(struct sched *sched, uint32_t task);

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
void control_stop_run(struct sched *sched, uint32_t run, enum sched_stop why);
void control_ask_approval(struct sched *sched, uint32_t task);
void control_reset(struct sched *sched, uint32_t task);
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
                          : &sched->tasks[group / 2].solo.group;
}

static inline const struct group_kind *sched_kind(const struct sched *sched,
                                                  const struct group *group)
{
    return &sched->kinds[group->kind];
}

static inline bool sched_is_solo(uint32_t group)
{
    return group % 2 != 0;
}

/* Return how many tasks keep a group open. */
static inline uint32_t sched_busy(const struct sched *sched, uint32_t group)
{
    if (!sched_is_solo(group)) {
        return sched->more[group / 2].busy;
    }
    return (sched->tasks[group / 2].flags & TASK_COUNTED) != 0 ? 1 : 0;
}

/* Return whether the time used by the sessions of a group is kept. */
static inline bool sched_has_service(const struct sched *sched, uint32_t group)
{
    return !sched_is_solo(group) || sched->times != NULL;
}

/* Return where it is kept. */
static inline int64_t *sched_service(const struct sched *sched, uint32_t group)
{
    return sched_is_solo(group) ? &sched->times[group / 2].service_ns
                                : &sched->more[group / 2].service_ns;
}

/*
 * Return whether a bin, by its index, has only the task of a group that is not
 * declared. There is no struct bin for it.
 */
static inline bool sched_is_solo_bin(uint32_t bin)
{
    return bin % 2 == 0 && sched_is_solo(bin / 2);
}

/* Return another bin by its index: even ones are in groups, odd ones in
 * `bins`. */
static inline struct bin *sched_bin(const struct sched *sched, uint32_t bin)
{
    return bin % 2 == 0 ? &sched->more[bin / 4].bin : &sched->bins[bin / 2];
}

/* Return the next bin of the same group, or ID_NONE. */
static inline uint32_t sched_next_bin(const struct sched *sched, uint32_t bin)
{
    return sched_is_solo_bin(bin) ? ID_NONE
                                  : sched_bin(sched, bin)->next_of_group;
}

/* Return the bin of a task. */
static inline uint32_t sched_bin_of(const struct sched *sched, uint32_t task)
{
    const struct task *t = &sched->tasks[task];
    return sched_is_solo(t->group) ? t->group * 2 : t->member.bin;
}

/* Return the block that has the entries of a queue. */
static inline struct ready_queue *sched_block(const struct sched *sched,
                                              uint32_t queue)
{
    return &sched->queues[queue - sched->queues[queue].end].block;
}

/* Return the number of entries of a queue, live or not. */
static inline uint32_t sched_entries(const struct sched *sched, uint32_t queue)
{
    return sched_block(sched, queue)->count[sched->queues[queue].end];
}

/* Return an entry of a queue; entry 0 is its best. */
static inline const struct ready_entry *
sched_entry(const struct sched *sched, uint32_t queue, uint32_t ix)
{
    return ready_queue_at(sched_block(sched, queue),
                          sched->queues[queue].end,
                          ix);
}

/* Return the best task of a bin's side (a queue item), or ID_NONE. */
static inline uint32_t sched_best_of(const struct sched *sched, uint32_t item)
{
    uint32_t bin = item / BIN_SIDES;
    uint32_t side = item % BIN_SIDES;
    if (!sched_is_solo_bin(bin)) {
        return sched_bin(sched, bin)->root[side];
    }
    const unsigned both = TASK_QUEUED | TASK_BACKGROUND;
    unsigned flags = sched->tasks[bin / 4].flags & both;
    return flags == (side == BIN_BACKGROUND ? both : TASK_QUEUED) ? bin / 4
                                                                  : ID_NONE;
}

/* Return the shape of a bin. */
static inline uint32_t sched_bin_shape(const struct sched *sched, uint32_t bin)
{
    return sched_is_solo_bin(bin) ? sched->tasks[bin / 4].solo.shape
                                  : sched_bin(sched, bin)->shape;
}

static inline const struct shape *sched_shape_of(const struct sched *sched,
                                                 uint32_t task)
{
    return &sched->shapes[sched_bin_shape(sched, sched_bin_of(sched, task))];
}

static inline const struct sched_class_spec *
sched_class_of(const struct sched *sched, uint32_t task)
{
    return &sched->classes[sched_shape_of(sched, task)->class_ix];
}

static inline const struct sched_failure_spec *
sched_failure_of(const struct sched *sched, uint32_t task)
{
    return &sched->failures[sched->tasks[task].failure];
}

/* Return how many tasks of a class with `queue` keep a group open. */
static inline uint32_t sched_queued(const struct sched *sched, uint32_t group)
{
    if (!sched_is_solo(group)) {
        return sched->more[group / 2].queued;
    }
    return sched_class_of(sched, group / 2)->queue ? sched_busy(sched, group)
                                                   : 0;
}

static inline uint32_t sched_run_ix(const struct sched *sched, uint32_t task)
{
    const struct group *group = sched_group(sched, sched->tasks[task].group);
    return sched_kind(sched, group)->run;
}

static inline struct run *sched_run_of(struct sched *sched, uint32_t task)
{
    return &sched->runs[sched_run_ix(sched, task)];
}

/* Return whether the run orders by rank, so that its work is counted. */
static inline bool sched_has_goal(const struct run *run)
{
    return run->policy == SCHED_RANK || run->policy == SCHED_LOOKAHEAD;
}

/* Return a time in units of work. */
static inline uint64_t sched_units(int64_t time_ns)
{
    return (uint64_t)time_ns >> SCHED_UNIT_SHIFT;
}

static inline bool
sched_has(const struct sched *sched, uint32_t task, enum task_flag flag)
{
    return (sched->tasks[task].flags & (unsigned)flag) != 0;
}

static inline void
sched_raise(struct sched *sched, uint32_t task, enum task_flag flag)
{
    sched->tasks[task].flags |= (uint16_t)flag;
}

static inline void
sched_lower(struct sched *sched, uint32_t task, enum task_flag flag)
{
    sched->tasks[task].flags &= (uint16_t)~flag;
}

/* Return whether a task that backs off does not keep its group open: it was
 * refused, has asked for it, or must not start yet. */
static inline bool sched_is_away(const struct sched *sched, uint32_t task)
{
    const struct detail *detail = &sched->details[task];
    return sched->tasks[task].refusals > 0 || detail->snoozed != 0 ||
           detail->early != 0;
}

/* Prefetch some dependents: what they pass on, or all of them. */
static inline void
sched_fetch_dependents(const struct sched *sched, uint32_t task, bool all)
{
    enum { AHEAD = 8 };
    const struct graph *graph = &sched->graph;
    uint32_t edge = graph_first_dependent(graph, task);
    for (uint32_t n = 0; n < AHEAD && edge != ID_NONE; n++) {
        uint32_t dependent = graph_dependent(graph, edge);
        __builtin_prefetch(&sched->tasks[dependent], 1);
        if (all) {
            __builtin_prefetch(&sched->unmet[dependent], 1);
            __builtin_prefetch(&sched->tasks[dependent].tries, 1);
        }
        edge = graph_next_dependent(graph, edge);
    }
}

#endif /* CORE_SCHED_INTERNAL_H */
