/* SPDX-License-Identifier: MIT */
/*
 * model: the data that `status`, `top` and the live display of `run` show, as
 * of one moment. The commands differ in how much they draw.
 *
 * One run is shown in full: slots, tasks, limits. The task list has indices
 * only; describe() computes the details of a task when it is drawn, so that
 * displaying a large plan costs no more than its visible rows.
 */
#ifndef VIEW_MODEL_H
#define VIEW_MODEL_H

#include "view/glance.h"
#include "view/queue.h"

/* No run. */
#define MODEL_NONE UINT32_MAX

/* Parts of the task list, in order. */
enum model_part {
    MODEL_PEOPLE,  /* needs an operator */
    MODEL_FLIGHT,  /* in a session; listed as slots instead */
    MODEL_READY,   /* waits only for capacity */
    MODEL_WAITING, /* waits for something else */
    MODEL_ENDED,   /* done, skipped, cancelled; failed and optional */
    MODEL_COUNT,
};

struct model_run {
    const char *id;
    const char *name;
    const char *file; /* of the plan */
    uint32_t number;  /* in the store */
    uint32_t task_count;
    uint32_t counts[TASK_STATE_COUNT];
    uint32_t sessions;       /* in flight */
    int64_t cap;             /* LIMIT_NONE: unlimited */
    int64_t cap_set;         /* the cap without usage monitors */
    int64_t age_ns;          /* since submission */
    int64_t left_ns;         /* by estimates alone; SCHED_NEVER: the cap is 0 */
    struct eta_end forecast; /* `runs` is 0: none */
    int64_t forecast_ns;     /* wall clock, when it was made */
    bool paused;
    bool cancelled;
    bool finished;
    bool quiet; /* it cannot make progress by itself */
    enum sched_stop stopped;
    const char *stopper;   /* task that stopped it, or NULL */
    int64_t deadline_ns;   /* wall clock: when it will be stopped; 0: never */
    int64_t not_before_ns; /* wall clock: it starts nothing before; 0: none */
    uint32_t snoozed;      /* tasks */
    uint32_t early;        /* tasks before their `not_before` */
    uint32_t unapproved;   /* tasks that wait for approval */
    const char *outcome;   /* without tasks of `finally`; NULL: not ended */
};

/* A session in flight. */
struct model_slot {
    uint64_t token;
    const char *task;
    const char *class_name;
    const char *repo; /* or NULL */
    uint32_t attempt;
    uint32_t more;       /* further tasks in it */
    int64_t since_ns;    /* wall clock */
    int64_t expected_ns; /* estimated duration */
    int64_t process;     /* pid, for display; 0: unknown */
    char worker[65];     /* that has it; "": the scheduler's own */
    bool begun;          /* false: it is starting */
    bool gone;           /* its process is known to have exited */
    bool held;
    struct queue_view queue; /* of a merge */
};

struct model_row {
    uint32_t task; /* index in the plan */
    enum model_part part;
};

/*
 * An issue: the tasks of a group, which are its stages; or a task that has no
 * group and is not in flight. Parts of a group follow it in the list.
 */
struct model_issue {
    const char *id;   /* of the group or the task */
    bool group;       /* false: a single task */
    uint32_t index;   /* of the group in the plan; PLAN_NONE: none */
    uint32_t first;   /* index of its first task in model.stages */
    uint32_t count;   /* number of tasks, in plan order; 0: it has only parts */
    uint32_t current; /* stage that determines the part */
    enum model_part part;
    bool has_parts;        /* it is a parent */
    uint32_t depth;        /* number of its parents */
    enum model_part whole; /* first part of its tasks and those of its parts */
    uint32_t done;         /* tasks, with those of its parts */
    uint32_t total;
};

/* Details of one task. */
struct model_task {
    const char *id;
    const char *stage; /* or NULL */
    enum task_state state;
    uint32_t attempt; /* last number; 0: none yet */
    int64_t ran_ns;   /* all finished attempts; 0: none ran */
    bool held;        /* by an operator */
    bool unapproved;  /* ready, and waits for approval */
    bool revoked;     /* done, but its result was revoked */
};

struct model_limit {
    const char *name;
    const char *per; /* attribute that has a pool per value, or NULL */
    int64_t used;
    int64_t max; /* LIMIT_NONE: unlimited */
    int64_t set; /* the maximum without usage monitors */
};

/* A line of the event log. */
struct model_event {
    uint32_t run;    /* run number; STORE_NONE: about the store */
    char *text;      /* plain; starts with the time of day */
    int64_t wall_ns; /* time of the event; 0: unknown */
};

/* Used part of an allowance. */
struct model_gauge {
    const char *name;
    double percent;
    int64_t resets_ns; /* wall clock; 0: unknown */
    bool governs;      /* it determines the cap now */
    char text[80];     /* amounts: "4.50 USD of 20.00 USD"; or "" */
};

/* A usage monitor. */
struct model_monitor {
    const char *provider; /* NULL: no provider */
    const char *error;    /* why reading fails, or NULL */
    bool lowers;          /* it lowers a limit or pauses */
    struct strbuf state;  /* in words */
};

/*
 * A plain value; starts as {0}. model_fill() allocates slots, rows, issues,
 * stages, runs, limits, monitors and the *_made members, and model_release()
 * frees them. All other members and the strings are borrowed from the source.
 */
struct model {
    const char *store;
    const char *scheduler; /* scheduler state in words */
    bool well;             /* the scheduler is alive and healthy */
    bool draining;
    const char *trouble; /* why the last refresh failed, or NULL */
    int64_t wall_ns;     /* current time */

    struct model_run *runs;
    uint32_t run_count;
    const struct labels *labels; /* of the listed tasks; NULL: any */
    uint32_t run;                /* index of the shown run, or MODEL_NONE */
    uint32_t shown;              /* its index in the source of the model */

    struct model_slot *slots;
    uint32_t slot_count;
    struct model_row *rows; /* by part */
    uint32_t row_count;
    uint32_t part_counts[MODEL_COUNT];
    struct model_issue *issues; /* by part; parts after their parent */
    uint32_t issue_count;       /* 0: the plan has no groups */
    uint32_t issue_counts[MODEL_COUNT];
    uint32_t *stages;           /* tasks, issue by issue */
    struct model_limit *limits; /* in plan order, without budgets */
    uint32_t limit_total;
    uint32_t limit_count; /* limits that have a maximum */
    struct model_monitor *monitors;
    uint32_t monitor_count;
    bool overridden; /* usage monitors are overridden */

    const struct model_event *events; /* oldest first */
    uint32_t event_count;
    const struct model_gauge *gauges;
    uint32_t gauge_count;
    const char *usage; /* effect of the monitors in words, or NULL */
    struct model_gauge *gauges_made;
    struct strbuf usage_made;

    const void *ctx;
    /* Return the id of a task of the shown run. */
    const char *(*id)(const struct model *model, uint32_t task);
    /* Return why a task is not running. */
    struct reason (*reason)(const struct model *model, uint32_t task);
    /* Describe a task; append its reason as plain text. */
    void (*describe)(const struct model *model,
                     uint32_t task,
                     struct model_task *out,
                     struct strbuf *reason);
};

/*
 * Fill in runs, slots, rows, limits and gauges from a glance, which must
 * outlive the model. Show the run `run`; if it is NULL or does not exist, the
 * first unfinished run, else the first run. `only`: list no other run.
 */
void model_fill(struct model *model,
                const struct glance *glance,
                const char *run,
                bool only);
void model_release(struct model *model);

/* Order in which task states are counted and listed. */
extern const enum task_state model_order[TASK_STATE_COUNT];

/* Append the state of a store as one JSON object and a newline: the scheduler,
 * and for each selected run its limits, sessions and tasks. See
 * sluice-status(1). */
void model_add_json(struct strbuf *out,
                    const struct glance *glance,
                    const struct glance_options *options);

/* Bar columns up to which a run is done, in flight, in trouble. */
enum { MODEL_BAR_PARTS = 3 };
void model_bar(const struct model_run *run,
               uint32_t columns,
               uint32_t ends[MODEL_BAR_PARTS]);

/* Return the part of the list that a task of a run belongs to. */
enum model_part
model_part_of(const struct glance *glance, uint32_t run, uint32_t task);

/* Return the task that is the current stage of an issue that has tasks. */
uint32_t model_current(const struct model *model,
                       const struct model_issue *issue);

/* Append the scheduler state as one line for a narrow terminal, `aged`: with
 * times that pass; return whether the scheduler is alive and healthy. */
bool model_add_scheduler(struct strbuf *out,
                         const struct client_view *view,
                         bool aged);

#endif /* VIEW_MODEL_H */
