/* SPDX-License-Identifier: MIT */
/*
 * glance: input of `status` and `why`: the store, the scheduler state, all
 * unfinished runs, and a snapshot of them.
 *
 * It loads all runs even if the user names one: runs share limits, and the
 * cause may be in another run.
 */
#ifndef VIEW_GLANCE_H
#define VIEW_GLANCE_H

#include "view/client.h"
#include "view/eta.h"
#include "view/labels.h"
#include "view/snapshot.h"

/* Total attempt time of each task of a run. */
struct glance_times {
    uint32_t number; /* of the run */
    uint32_t task_count;
    int64_t *ran_ns;
};

/* Starts as {0}. */
struct glance {
    struct store_place place; /* of the store */
    struct client_view view;
    bool inside; /* the engine is the scheduler's */
    struct snapshot *snapshot;
    int64_t wall_ns;            /* when the glance was taken */
    struct glance_times *times; /* of each run; NULL: not read */
    uint32_t times_count;
    struct eta *eta;      /* forecast; NULL: not computed */
    struct labels labels; /* selected tasks */
};

struct glance_options {
    const char *store; /* as given on the command line, or NULL */
    const char *run;   /* must exist, finished or not; NULL: any */
    bool finished;     /* include finished runs */
    bool alone; /* load only the named run; for a finished run, which waits for
                   no other */
    bool forecast;        /* forecast the ends of the runs */
    struct engine *spare; /* see client_look_again(); or NULL */
    struct labels labels; /* show only these tasks, where tasks are listed */
};

/*
 * Read the store. ERR_NOT_FOUND: the store or the run does not exist. Release
 * *out in any case.
 */
MUST_USE enum err glance_take(struct glance *out,
                              const struct glance_options *options,
                              struct diag *diag);
void glance_release(struct glance *glance);

/*
 * Take a glance at an engine between two passes. The caller frees only its
 * snapshot: glance_release() would free the engine.
 */
void glance_of(struct glance *out, struct engine *engine, int64_t wall_ns);

/*
 * Take a glance at the engine of a scheduler between two passes, as
 * glance_take() would read it. ERR_NOT_FOUND: it does not have the run. Release
 * *out in any case; this keeps the engine.
 */
MUST_USE enum err glance_inside(struct glance *out,
                                struct engine *engine,
                                const struct store_place *place,
                                const struct glance_options *options,
                                struct diag *diag);

/*
 * Read how long the attempts of each task ran. `run`: of this run only; NULL:
 * of all loaded runs. The store must be open.
 */
MUST_USE enum err
glance_read_times(struct glance *glance, const char *run, struct diag *diag);

/*
 * Total time of the finished attempts of a task; 0: none ran, it shared the
 * sessions of other tasks, or the times were not read.
 */
int64_t glance_ran_ns(const struct glance *glance, uint32_t run, uint32_t task);

/* Whether the options select a run: by name, or all. */
bool glance_is_meant(const struct glance_options *options,
                     const struct engine_run_view *run);

/* Append `"runs": [{"run": ID, "NAME": ...}]` for the selected runs; `fn`
 * appends the value for a run. */
typedef void (*glance_run_fn)(struct strbuf *out,
                              const struct glance *glance,
                              uint32_t run);
void glance_json_runs(struct strbuf *out,
                      const struct glance *glance,
                      const struct glance_options *options,
                      const char *name,
                      glance_run_fn fn);

/*
 * Iterate over the sessions of a run in start order: get the first session with
 * a token greater than `after`; false at the end.
 */
bool glance_next_session(const struct glance *glance,
                         uint32_t run,
                         uint64_t after,
                         struct engine_session_view *out);

/* Time since the session began; if it is starting, since its claim. */
int64_t glance_elapsed_ns(const struct glance *glance,
                          const struct engine_session_view *session);

#endif /* VIEW_GLANCE_H */
