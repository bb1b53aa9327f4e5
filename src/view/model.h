/* SPDX-License-Identifier: MIT */
/*
 * model: what `status`, `top` and the live picture of `run` show, as data,
 * of one moment. They differ in how much of it they draw.
 *
 * One run is shown in full: its slots, its tasks, its limits. The tasks are a
 * list of indices; what is to be said about one is asked for when it is drawn,
 * so that the picture of a large plan costs no more than its rows.
 */
#ifndef VIEW_MODEL_H
#define VIEW_MODEL_H

#include "view/glance.h"

/* No run. */
#define MODEL_NONE UINT32_MAX

/* The parts of the list of tasks, in their order. */
enum model_part {
    MODEL_PEOPLE,  /* a person must act on it */
    MODEL_FLIGHT,  /* in a session: tasks are listed as slots instead */
    MODEL_READY,   /* waits for nothing but room */
    MODEL_WAITING, /* waits for something else */
    MODEL_ENDED,   /* done, skipped, cancelled; optional, and failed */
    MODEL_COUNT,
};

struct model_run {
    const char *id;
    const char *name;
    const char *file; /* of the plan */
    uint32_t number;  /* in the store */
    uint32_t task_count;
    uint32_t counts[TASK_STATE_COUNT];
    uint32_t sessions; /* in flight */
    int64_t cap;       /* LIMIT_NONE: there is none */
    int64_t cap_set;   /* the same, but for usage monitors */
    int64_t age_ns;    /* since it was submitted */
    int64_t left_ns;   /* expected; SCHED_NEVER: the cap is 0 */
    bool paused;
    bool cancelled;
    bool finished;
    bool quiet; /* nothing more happens in it by itself */
};

/* A session in flight. */
struct model_slot {
    uint64_t token;
    const char *task;
    const char *class_name;
    const char *repo; /* or NULL */
    uint32_t attempt;
    uint32_t more;       /* tasks in it beside this one */
    int64_t since_ns;    /* wall clock */
    int64_t expected_ns; /* how long it should take */
    int64_t process;     /* its number, for people; 0: not known */
    bool begun;          /* false: it is being started */
    bool gone;           /* its process is known to have ended */
    bool held;
};

struct model_row {
    uint32_t task; /* index in the plan */
    enum model_part part;
};

/*
 * An issue: the tasks of a group, which are its stages; or one task that is in
 * no group and not in flight.
 */
struct model_issue {
    const char *id;   /* of the group, or of the task */
    bool group;       /* it is one */
    uint32_t first;   /* of its tasks, in the stages of the model */
    uint32_t count;   /* of them, in the order of the plan */
    uint32_t current; /* of them: the one that explains the part */
    enum model_part part;
};

/* What is said about one task. */
struct model_task {
    const char *id;
    const char *stage; /* or NULL */
    enum task_state state;
    uint32_t attempt; /* number of the last; 0: none yet */
    int64_t ran_ns;   /* all attempts that have ended; 0: none ran */
    bool held;
    bool revoked; /* done, but its result is in doubt */
};

struct model_limit {
    const char *name;
    const char *per; /* counts for each value of this attribute, or NULL */
    int64_t used;
    int64_t max; /* LIMIT_NONE: there is none */
    int64_t set; /* the same, but for usage monitors */
};

/* A line of the log of events. */
struct model_event {
    uint32_t run;    /* its number; STORE_NONE: about the store */
    char *text;      /* plain; begins with the time of day */
    int64_t wall_ns; /* when it was; 0: not known */
};

/* How much of an allowance is used. */
struct model_gauge {
    const char *name;
    double percent;
    int64_t resets_ns; /* wall clock; 0: not known */
    bool governs;      /* it is the one that decides the cap now */
    char text[80];     /* amounts: "4.50 USD of 20.00 USD"; "": none */
};

/* A usage monitor. */
struct model_monitor {
    const char *provider; /* NULL: of no provider */
    const char *error;    /* why it cannot be read, or NULL */
    bool lowers;          /* it lowers a limit, or pauses */
    struct strbuf state;  /* in words */
};

/*
 * A plain value; starts as {0}. Texts are borrowed from what it was made of.
 * model_fill() makes slots, rows, issues, stages, runs, limits, monitors
 * and what is called `made`, which model_release() frees; the rest is
 * borrowed, too.
 */
struct model {
    const char *store;
    const char *scheduler; /* who schedules, in words */
    bool well;             /* and is well */
    bool draining;
    const char *trouble; /* why the last look failed, or NULL */
    int64_t wall_ns;     /* present time */

    struct model_run *runs;
    uint32_t run_count;
    uint32_t run;   /* that is shown, or MODEL_NONE */
    uint32_t shown; /* the same, as the source of the model counts */

    struct model_slot *slots;
    uint32_t slot_count;
    struct model_row *rows; /* by part */
    uint32_t row_count;
    uint32_t part_counts[MODEL_COUNT];
    struct model_issue *issues; /* by part */
    uint32_t issue_count;       /* 0: the plan has no groups */
    uint32_t issue_counts[MODEL_COUNT];
    uint32_t *stages;           /* tasks, issue by issue */
    struct model_limit *limits; /* in the order of the plan, but for budgets */
    uint32_t limit_total;
    uint32_t limit_count; /* of them: those that have a maximum */
    struct model_monitor *monitors;
    uint32_t monitor_count;
    bool overridden; /* usage monitors count for nothing */

    const struct model_event *events; /* oldest first */
    uint32_t event_count;
    const struct model_gauge *gauges;
    uint32_t gauge_count;
    const char *usage; /* what follows from them, in words; or NULL */
    struct model_gauge *gauges_made;
    struct strbuf usage_made;

    const void *ctx;
    /* The id of a task of the run that is shown. */
    const char *(*id)(const struct model *model, uint32_t task);
    /* What is said about it: the reason is appended, which is plain. */
    void (*describe)(const struct model *model,
                     uint32_t task,
                     struct model_task *out,
                     struct strbuf *reason);
};

/*
 * Fill in runs, slots, rows, limits and gauges from a glance, which must live
 * as long.
 * The run of that id is shown; NULL, or when it is not there: the first one
 * that is not finished, else the first. `only`: no other run is listed.
 */
void model_fill(struct model *model,
                const struct glance *glance,
                const char *run,
                bool only);
void model_release(struct model *model);

/* The order in which states of tasks are counted and listed. */
extern const enum task_state model_order[TASK_STATE_COUNT];

/* Append the state of a store as one JSON object and a new line: who schedules,
 * and for each run asked for its limits, sessions and tasks. See
 * sluice-status(1). */
void model_add_json(struct strbuf *out,
                    const struct glance *glance,
                    const struct glance_options *options);

/* The columns of a bar up to which a run is done, in flight, in trouble. */
enum { MODEL_BAR_PARTS = 3 };
void model_bar(const struct model_run *run,
               uint32_t columns,
               uint32_t ends[MODEL_BAR_PARTS]);

/* The task that an issue's current stage is. */
uint32_t model_current(const struct model *model,
                       const struct model_issue *issue);

/* Append who schedules, in one line for a narrow terminal; whether it is well.
 */
bool model_add_scheduler(struct strbuf *out, const struct client_view *view);

#endif /* VIEW_MODEL_H */
