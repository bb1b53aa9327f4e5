/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of requests share, private to them. The verbs are
 * in engine/request.h.
 */
#ifndef ENGINE_REQUEST_INTERNAL_H
#define ENGINE_REQUEST_INTERNAL_H

#include "base/jsonw.h"
#include "engine/engine_internal.h"
#include "engine/request.h"

#include <jansson.h>

/* A request being processed. */
struct request {
    struct engine *engine;
    json_t *json;
    struct session *session; /* that makes it; NULL: an operator does */
    bool door;               /* it came where only sessions may ask */
    struct strbuf who;       /* of a session */
    const char *verb;
    struct strbuf text;  /* of the answer, for the user */
    struct strbuf extra; /* further members of the answer */
    bool known;          /* it was carried out before, and changed nothing */
    bool silent;         /* not stored: repeating it is harmless */
    struct diag diag;
    enum err missing; /* of the last name that was not found */
};

/* request_find.c: a writer for further members of the answer; add one. */
struct jsonw request_extra(struct request *request);
void request_add(struct request *request, const char *name, const char *text);
void request_add_count(struct request *request,
                       const char *name,
                       int64_t count);
/* Return a member of the request; NULL: absent or of another type. */
const char *request_text(const struct request *request, const char *name);
/* Return a number of the request, from 0 on; -1: absent. */
int64_t request_number(const struct request *request, const char *name);
/* Return the run that the request names, or STORE_NONE with an error. */
uint32_t request_find_run(struct request *request);
/*
 * Find the task or group that the request names. *run_out is its run, *task_out
 * the task or PLAN_NONE, *group_out the group or PLAN_NONE; false with an
 * error. Within a run a task has precedence over a group of its name.
 */
bool request_find_named(struct request *request,
                        uint32_t *run_out,
                        uint32_t *task_out,
                        uint32_t *group_out);
/* Find the task that the request names; false with an error. */
bool request_find_task(struct request *request,
                       uint32_t *run_out,
                       uint32_t *out);

/* Check the key of a fragment, `shown` in messages and stored as `key`. *out:
 * the run has got the fragment before, and the request is answered. */
enum err request_find_key(struct request *request,
                          const struct engine_run *run,
                          const char *shown,
                          const char *key,
                          const char *text,
                          bool *out);

/* request_show.c */
enum err request_do_show(struct request *request);
/* Have the world answer a question. */
enum err request_look(struct request *request, const struct engine_look *look);

/* request_limits.c */
enum err request_do_budget(struct request *request);
enum err request_do_cap(struct request *request);
enum err request_do_limit(struct request *request);
enum err request_do_usage(struct request *request);

/* request_runs.c */
enum err request_do_add(struct request *request);
enum err request_do_drain(struct request *request);
enum err request_do_pause(struct request *request);
enum err request_do_prune(struct request *request);
enum err request_do_resume(struct request *request);
enum err request_do_submit(struct request *request);
/* Apply an event to the run that the request names. */
enum err request_apply_run(struct request *request,
                           enum sched_event_type type,
                           const char *done);

/* request_session.c: find out which session makes the request, if one does;
 * and apply a request of a session. */
enum err request_identify(struct request *request);
/* Whether another refusal of a session's request is logged. */
bool request_is_logged(struct engine *engine);
enum err request_do_session(struct request *request);

/* request_tasks.c */
enum err request_do_answer(struct request *request);
enum err request_do_approve(struct request *request);
enum err request_do_cancel(struct request *request);
enum err request_do_first(struct request *request);
enum err request_do_hold(struct request *request);
enum err request_do_priority(struct request *request);
enum err request_do_release(struct request *request);
enum err request_do_rerun(struct request *request);
enum err request_do_retry(struct request *request);
enum err request_do_rework(struct request *request);
enum err request_do_skip(struct request *request);
enum err request_do_tell(struct request *request);

#endif /* ENGINE_REQUEST_INTERNAL_H */
