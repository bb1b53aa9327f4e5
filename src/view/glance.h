/* SPDX-License-Identifier: MIT */
/*
 * glance: what `status` and `why` look at: the store, who schedules, all
 * unfinished runs, and a snapshot of them.
 *
 * All of them are loaded, also when only one is asked for: runs share limits,
 * and a reason may lie in another run.
 */
#ifndef VIEW_GLANCE_H
#define VIEW_GLANCE_H

#include "view/client.h"
#include "view/snapshot.h"

/* How long the attempts of each task of a run have run. */
struct glance_times {
    uint32_t number; /* of the run */
    uint32_t task_count;
    int64_t *ran_ns;
};

/* Starts as {0}. */
struct glance {
    struct store_place place; /* of the store */
    struct client_view view;
    struct snapshot *snapshot;
    int64_t wall_ns;            /* when it was taken */
    struct glance_times *times; /* of each run; NULL: not read */
    uint32_t times_count;
};

struct glance_options {
    const char *store; /* as given on the command line, or NULL */
    const char *run;   /* must be there, finished or not; NULL: any */
    bool finished;     /* finished runs, too */
    bool alone;        /* load no other run than the named one: of a finished
                          one, because nothing in it waits for another */
};

/*
 * Look. ERR_NOT_FOUND: there is no store, or no such run. Release *out in any
 * case.
 */
MUST_USE enum err glance_take(struct glance *out,
                              const struct glance_options *options,
                              struct diag *diag);
void glance_release(struct glance *glance);

/*
 * A glance at an engine between two passes. Nothing of it is released but the
 * snapshot.
 */
void glance_of(struct glance *out, struct engine *engine, int64_t wall_ns);

/*
 * Read how long the attempts of each task have run. `run`: of this run only;
 * NULL: of all that were loaded. The store must be open.
 */
MUST_USE enum err
glance_read_times(struct glance *glance, const char *run, struct diag *diag);

/*
 * How long the attempts of a task that have ended ran, all together; 0: none
 * ran, it took part in the sessions of other tasks, or it was not read.
 */
int64_t glance_ran_ns(const struct glance *glance, uint32_t run, uint32_t task);

/* Whether a run was asked for: the one that is named, or any. */
bool glance_is_meant(const struct glance_options *options,
                     const struct engine_run_view *run);

/* Append `"runs": [{"run": ID, "NAME": ...}]` for those asked for; `fn` appends
 * what belongs to one. */
typedef void (*glance_run_fn)(struct strbuf *out,
                              const struct glance *glance,
                              uint32_t run);
void glance_json_runs(struct strbuf *out,
                      const struct glance *glance,
                      const struct glance_options *options,
                      const char *name,
                      glance_run_fn fn);

/*
 * The sessions of a run in order of their start: the first with a token
 * greater than `after`, or false when there is none.
 */
bool glance_next_session(const struct glance *glance,
                         uint32_t run,
                         uint64_t after,
                         struct engine_session_view *out);

/* How long the session has been running, or being started. */
int64_t glance_elapsed_ns(const struct glance *glance,
                          const struct engine_session_view *session);

#endif /* VIEW_GLANCE_H */
