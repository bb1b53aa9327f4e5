/* SPDX-License-Identifier: MIT */
/* Requests about tasks and groups; retry and cancel also name whole runs. */
#include "engine/request_internal.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "engine/carry.h"

#include <stdio.h>
#include <string.h>

/* Limits of one text for a session, and of several for the same. */
enum {
    TEXT_BYTES_MAX = 64 << 10,
    FEEDBACK_BYTES_MAX = 256 << 10,
};

/* What a request does to the tasks that it names. */
struct order {
    enum sched_event_type type;
    const char *what; /* after "cannot", before the name of the task */
    const char *done; /* after the name */
    int64_t max;      /* EVENT_PRIORITY */
};

static struct sched_task
view_of(const struct engine *engine, uint32_t run, uint32_t task)
{
    return sched_task(engine->sched, engine_core_task(engine, run, task));
}

/* --- refusals ----------------------------------------------------------- */

/* Return what a task does, after "it is". */
static const char *state_text(const struct sched_task *task)
{
    return task->unapproved && task->state == TASK_READY
               ? "waiting for approval"
               : sched_state_name(task->state);
}

static enum err refuse_approval(struct request *request,
                                const char *name,
                                const struct plan_task *plan,
                                const struct sched_task *task)
{
    struct diag *diag = &request->diag;
    if (!plan->approve) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "%s does not wait for approval: its plan has no "
                        "\"approve: true\" for it",
                        name);
    }
    if (task->unapproved && task->state == TASK_WAITING) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "%s does not wait for approval yet: its needs are not "
                        "met; 'sluice why %s' shows them",
                        name,
                        name);
    }
    return diag_set(diag,
                    ERR_CONFLICT,
                    "%s does not wait for approval: it is %s",
                    name,
                    sched_state_name(task->state));
}

/* Return what to do instead of running a task again, which is not done. */
static const char *rerun_hint(enum task_state state)
{
    switch (state) {
    case TASK_FAILED:
    case TASK_PARKED:
        return "; use 'sluice retry'";
    case TASK_WAITING:
    case TASK_READY:
        return " and will run anyway";
    case TASK_STARTING:
    case TASK_RUNNING:
        return "; wait until it is done, or cancel it";
    case TASK_DONE: /* in a cancelled run */
        return " in a run that is cancelled; start another one with 'sluice "
               "run --new'";
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        break;
    }
    return " for good; 'sluice add' can add it under another id";
}

/* Report why the core refuses an order. */
static enum err refuse_order(struct request *request,
                             const struct order *order,
                             const char *name,
                             const struct plan_task *plan,
                             const struct sched_task *task)
{
    if (order->type == EVENT_APPROVE) {
        return refuse_approval(request, name, plan, task);
    }
    struct strbuf text = {0};
    strbuf_addf(&text, "cannot %s %s", order->what, name);
    if (order->type == EVENT_RELEASE && task->unapproved) {
        strbuf_addf(&text,
                    ": it waits for approval; use 'sluice approve %s'",
                    name);
    } else if (order->type == EVENT_RELEASE) {
        strbuf_adds(&text, ": it is not held");
    } else {
        strbuf_addf(&text,
                    ": it is %s%s",
                    state_text(task),
                    order->type == EVENT_RERUN ? rerun_hint(task->state) : "");
    }
    enum err err =
        diag_set(&request->diag, ERR_CONFLICT, "%s", strbuf_text(&text));
    strbuf_release(&text);
    return err;
}

/* --- one task ----------------------------------------------------------- */

static enum err apply_event(struct engine *engine,
                            uint32_t run,
                            uint32_t task,
                            const struct order *order)
{
    enum err err = engine_apply(engine,
                                (struct sched_event){
                                    .type = order->type,
                                    .task = engine_core_task(engine, run, task),
                                    .max = order->max,
                                });
    if (err == ERR_OK &&
        (order->type == EVENT_RETRY || order->type == EVENT_RERUN)) {
        gates_forget(engine, run, task);
    }
    return err;
}

/* Apply an order to one task. */
static enum err apply_task(struct request *request,
                           uint32_t run,
                           uint32_t task,
                           const struct order *order)
{
    struct engine *engine = request->engine;
    const struct plan_task *plan = &engine->runs[run].plan->tasks[task];
    struct sched_task before = view_of(engine, run, task);
    if (apply_event(engine, run, task, order) != ERR_OK) {
        return refuse_order(request, order, plan->id, plan, &before);
    }
    if (order->type == EVENT_HOLD && before.unapproved) {
        strbuf_addf(&request->text,
                    "%s does not start before 'sluice approve %s'",
                    plan->id,
                    plan->id);
    } else {
        strbuf_addf(&request->text, "%s %s", plan->id, order->done);
    }
    request_add(request, "run", engine->runs[run].id);
    request_add(request, "task", plan->id);
    return ERR_OK;
}

/* --- groups ------------------------------------------------------------- */

/*
 * Return all tasks of a plan, dependents before their needs. Withdrawing a task
 * skips its dependents, which a request must withdraw before. The caller frees
 * the list.
 */
static uint32_t *list_dependents_first(const struct plan *plan)
{
    uint32_t count = plan->task_count;
    uint32_t *left = mem_zalloc(count, sizeof(left[0])); /* dependents */
    uint32_t *list = mem_zalloc(count, sizeof(list[0]));
    uint32_t filled = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        for (uint32_t n = 0; n < plan->tasks[ix].need_count; n++) {
            left[plan->tasks[ix].needs[n]]++;
        }
    }
    for (uint32_t ix = count; ix > 0; ix--) {
        if (left[ix - 1] == 0) {
            list[filled++] = ix - 1;
        }
    }
    for (uint32_t at = 0; at < filled; at++) {
        const struct plan_task *task = &plan->tasks[list[at]];
        for (uint32_t n = task->need_count; n > 0; n--) {
            if (--left[task->needs[n - 1]] == 0) {
                list[filled++] = task->needs[n - 1];
            }
        }
    }
    INVARIANT(filled == count); /* a plan has no cycle */
    mem_free(left);
    return list;
}

/* Whether a task belongs to a group or to a part of it. */
static bool is_of_group(const struct plan *plan, uint32_t task, uint32_t group)
{
    uint32_t own = plan->tasks[task].group;
    return own != PLAN_NONE && plan_is_within(plan, own, group);
}

/* The tasks of a group that a request is about. */
enum part {
    PART_ALL,
    PART_GIVEN_UP, /* failed or parked */
    PART_DELAYED,  /* back off */
    PART_USUAL,    /* all but those of `finally` */
};

static bool is_in_part(const struct engine *engine,
                       uint32_t run,
                       uint32_t task,
                       enum part part)
{
    struct sched_task view = view_of(engine, run, task);
    switch (part) {
    case PART_ALL:
        return true;
    case PART_GIVEN_UP:
        return view.state == TASK_PARKED || view.state == TASK_FAILED;
    case PART_DELAYED:
        return view.backing_off;
    case PART_USUAL:
        return !view.last;
    }
    return false;
}

/* A group whose tasks get an order, and the tasks that have taken it. */
struct many {
    uint32_t run;
    uint32_t group;
    const uint32_t *tasks; /* of the plan, dependents first */
    struct jsonw *list;
    uint32_t count;
};

/* Apply an order to every task of a part that allows it. */
static void apply_part(struct request *request,
                       struct many *many,
                       const struct order *order,
                       enum part part)
{
    struct engine *engine = request->engine;
    const struct plan *plan = engine->runs[many->run].plan;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t task = many->tasks[ix];
        if (is_of_group(plan, task, many->group) &&
            is_in_part(engine, many->run, task, part) &&
            apply_event(engine, many->run, task, order) == ERR_OK) {
            many->count++;
            jsonw_text(many->list, NULL, plan->tasks[task].id);
        }
    }
}

/*
 * Apply an order to the tasks of a group and of its parts: a retry to failed
 * and parked tasks, or else to those that back off; the withdrawal of tasks to
 * those of `finally` only if there are no others.
 */
static void apply_many(struct request *request,
                       struct many *many,
                       const struct order *order)
{
    bool withdraws = order->type == EVENT_CANCEL || order->type == EVENT_SKIP;
    enum part first = order->type == EVENT_RETRY ? PART_GIVEN_UP
                      : withdraws                ? PART_USUAL
                                                 : PART_ALL;
    enum part second = order->type == EVENT_RETRY ? PART_DELAYED : PART_ALL;
    apply_part(request, many, order, first);
    if (many->count == 0 && first != PART_ALL) {
        apply_part(request, many, order, second);
    }
}

static enum err apply_group(struct request *request,
                            uint32_t run,
                            uint32_t group,
                            const struct order *order)
{
    const struct plan *plan = request->engine->runs[run].plan;
    const char *name = plan->groups[group].id;
    struct strbuf tasks = {0};
    struct jsonw list = {.out = &tasks};
    uint32_t *all = list_dependents_first(plan);
    struct many many = {
        .run = run,
        .group = group,
        .tasks = all,
        .list = &list,
    };
    jsonw_array(&list, NULL);
    apply_many(request, &many, order);
    jsonw_array_end(&list);
    enum err err = ERR_OK;
    if (many.count == 0) {
        err = diag_set(&request->diag,
                       ERR_CONFLICT,
                       "cannot %s %s: no task of it allows this; 'sluice why "
                       "%s' shows their state",
                       order->what,
                       name,
                       name);
    } else {
        strbuf_addf(&request->text,
                    "%s %s (%u task%s)",
                    name,
                    order->done,
                    many.count,
                    many.count == 1 ? "" : "s");
        request_add(request, "run", request->engine->runs[run].id);
        request_add(request, "group", name);
        struct jsonw json = request_extra(request);
        jsonw_raw(&json, "tasks", strbuf_text(&tasks));
    }
    strbuf_release(&tasks);
    mem_free(all);
    return err;
}

/* Apply an order to the task or group that the request names. */
static enum err apply(struct request *request, const struct order *order)
{
    uint32_t run;
    uint32_t task;
    uint32_t group;
    if (!request_find_named(request, &run, &task, &group)) {
        return request->missing;
    }
    return task != PLAN_NONE ? apply_task(request, run, task, order)
                             : apply_group(request, run, group, order);
}

/* --- verbs -------------------------------------------------------------- */

/* Hand a text to the next session of a task. */
static void
hand_over(struct engine *engine, uint32_t run, uint32_t task, const char *text)
{
    struct engine_past *past = runs_own_past(&engine->runs[run].tasks[task]);
    mem_set_text(&past->feedback, text);
    carry_answer(&past->carry, text);
}

/* Whether an approval would let the task start. */
static bool
waits_for_approval(const struct engine *engine, uint32_t run, uint32_t task)
{
    struct sched_task view = view_of(engine, run, task);
    return view.unapproved && view.state == TASK_READY;
}

/* Return the task of a group that an answer is for: the first parked task or
 * task that waits for approval, else the first failed task. PLAN_NONE with an
 * error: none. */
static uint32_t
find_asker(struct request *request, uint32_t run, uint32_t group)
{
    const struct plan *plan = request->engine->runs[run].plan;
    uint32_t found = PLAN_NONE;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        enum task_state state = view_of(request->engine, run, ix).state;
        if (!is_of_group(plan, ix, group)) {
            continue;
        }
        if (state == TASK_PARKED ||
            waits_for_approval(request->engine, run, ix)) {
            return ix;
        }
        found = state == TASK_FAILED && found == PLAN_NONE ? ix : found;
    }
    if (found == PLAN_NONE) {
        (void)diag_set(&request->diag,
                       ERR_CONFLICT,
                       "cannot answer %s: no task of it is parked or waits for "
                       "approval",
                       plan->groups[group].id);
    }
    return found;
}

/* Return the task of a group that a message is for: the only running one.
 * PLAN_NONE with an error. */
static uint32_t
find_listener(struct request *request, uint32_t run, uint32_t group)
{
    const struct plan *plan = request->engine->runs[run].plan;
    uint32_t found = PLAN_NONE;
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        enum task_state state = view_of(request->engine, run, ix).state;
        if (is_of_group(plan, ix, group) &&
            (state == TASK_STARTING || state == TASK_RUNNING)) {
            found = ix;
            count++;
        }
    }
    if (count != 1) {
        (void)diag_set(&request->diag,
                       ERR_CONFLICT,
                       count == 0 ? "no task of %s is running: wait until one "
                                    "runs, or use 'sluice answer'"
                                  : "several tasks of %s are running: name one",
                       plan->groups[group].id);
    }
    return count == 1 ? found : PLAN_NONE;
}

/* Send a message to a running session. */
enum err request_do_tell(struct request *request)
{
    const char *text = request_text(request, "text");
    uint32_t run;
    uint32_t task;
    uint32_t group;
    if (!request_find_named(request, &run, &task, &group)) {
        return request->missing;
    }
    task = task != PLAN_NONE ? task : find_listener(request, run, group);
    if (task == PLAN_NONE) {
        return ERR_CONFLICT;
    }
    enum err err = messages_tell(request->engine,
                                 run,
                                 task,
                                 text != NULL ? text : "",
                                 &request->diag);
    if (err == ERR_OK) {
        const struct engine_run *r = &request->engine->runs[run];
        const char *name = r->plan->tasks[task].id;
        strbuf_addf(&request->text, "%s is told", name);
        request_add(request, "run", r->id);
        request_add(request, "task", name);
    }
    return err;
}

static const struct order approve = {
    .type = EVENT_APPROVE,
    .what = "approve",
    .done = "is approved",
};

/* Retry or approve the task; its next attempt gets the answer. */
enum err request_do_answer(struct request *request)
{
    static const struct order retry = {
        .type = EVENT_RETRY,
        .what = "answer",
        .done = "is answered",
    };
    const char *text = request_text(request, "text");
    uint32_t run;
    uint32_t task;
    uint32_t group;
    if (text == NULL) {
        return diag_set(&request->diag, ERR_INVALID, "empty answer");
    }
    if (!request_find_named(request, &run, &task, &group)) {
        return request->missing;
    }
    task = task != PLAN_NONE ? task : find_asker(request, run, group);
    if (task == PLAN_NONE) {
        return ERR_CONFLICT;
    }
    bool approves = waits_for_approval(request->engine, run, task);
    enum err err = apply_task(request, run, task, approves ? &approve : &retry);
    if (err == ERR_OK) {
        hand_over(request->engine, run, task, text);
    }
    return err;
}

/* Approve a task, or all tasks of a group that wait for it. With a text, which
 * is for one session, only a task. */
enum err request_do_approve(struct request *request)
{
    const char *text = request_text(request, "text");
    uint32_t run;
    uint32_t task;
    uint32_t group;
    if (!request_find_named(request, &run, &task, &group)) {
        return request->missing;
    }
    if (task == PLAN_NONE && text == NULL) {
        return apply_group(request, run, group, &approve);
    }
    task = task != PLAN_NONE ? task : find_asker(request, run, group);
    if (task == PLAN_NONE) {
        return ERR_CONFLICT;
    }
    enum err err = apply_task(request, run, task, &approve);
    if (err == ERR_OK && text != NULL) {
        hand_over(request->engine, run, task, text);
    }
    return err;
}

enum err request_do_hold(struct request *request)
{
    return apply(request,
                 &(struct order){
                     .type = EVENT_HOLD,
                     .what = "hold",
                     .done = "is held",
                 });
}

enum err request_do_release(struct request *request)
{
    return apply(request,
                 &(struct order){
                     .type = EVENT_RELEASE,
                     .what = "release",
                     .done = "is released",
                 });
}

enum err request_do_retry(struct request *request)
{
    if (request_text(request, "task") == NULL) {
        return request_apply_run(request,
                                 EVENT_RETRY_RUN,
                                 "will retry its failed and parked tasks");
    }
    return apply(request,
                 &(struct order){
                     .type = EVENT_RETRY,
                     .what = "retry",
                     .done = "will be retried",
                 });
}

enum err request_do_skip(struct request *request)
{
    return apply(request,
                 &(struct order){
                     .type = EVENT_SKIP,
                     .what = "skip",
                     .done = "is skipped",
                 });
}

enum err request_do_cancel(struct request *request)
{
    if (request_text(request, "task") == NULL) {
        return request_apply_run(request, EVENT_CANCEL_RUN, "is cancelled");
    }
    return apply(request,
                 &(struct order){
                     .type = EVENT_CANCEL,
                     .what = "cancel",
                     .done = "is cancelled",
                 });
}

enum err request_do_priority(struct request *request)
{
    int64_t priority = request_number(request, "priority");
    if (priority < 0 || priority > SCHED_PRIORITY_MAX) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "the priority must be a number from 0, the most "
                        "urgent, to %u",
                        SCHED_PRIORITY_MAX);
    }
    char done[32];
    (void)snprintf(done, sizeof(done), "has priority %d", (int)priority);
    request_add_count(request, "priority", priority);
    return apply(request,
                 &(struct order){
                     .type = EVENT_PRIORITY,
                     .what = "change the priority of",
                     .done = done,
                     .max = priority,
                 });
}

enum err request_do_first(struct request *request)
{
    uint32_t run;
    uint32_t task;
    if (!request_find_task(request, &run, &task)) {
        return request->missing;
    }
    return apply_task(request,
                      run,
                      task,
                      &(struct order){
                          .type = EVENT_FIRST,
                          .what = "promote",
                          .done = "goes first",
                      });
}

/* Return how many tasks need not run any more: done, given up, or in flight
 * with a result that will count. */
static uint32_t count_settled(const struct engine *engine, uint32_t run)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < engine->runs[run].task_count; ix++) {
        struct sched_record record =
            sched_record(engine->sched, engine_core_task(engine, run, ix));
        bool over = record.state == TASK_DONE || record.state == TASK_FAILED ||
                    record.state == TASK_PARKED;
        bool in_flight =
            record.state == TASK_STARTING || record.state == TASK_RUNNING;
        bool stale = (record.flags & SCHED_RECORD_STALE) != 0;
        count += over || (in_flight && !stale) ? 1 : 0;
    }
    return count;
}

/* Run a done task again, and all that depends on it. */
static enum err rerun(struct request *request,
                      uint32_t run,
                      uint32_t task,
                      const struct order *order)
{
    struct engine *engine = request->engine;
    uint32_t before = count_settled(engine, run);
    enum err err = apply_task(request, run, task, order);
    if (err == ERR_OK) {
        uint32_t more = before - count_settled(engine, run);
        INVARIANT(more > 0);
        request_add_count(request, "tasks", more);
        if (more > 1) {
            strbuf_addf(&request->text,
                        ", and %u task%s that depend%s on it",
                        more - 1,
                        more == 2 ? "" : "s",
                        more == 2 ? "s" : "");
        }
    }
    return err;
}

enum err request_do_rerun(struct request *request)
{
    uint32_t run;
    uint32_t task;
    if (!request_find_task(request, &run, &task)) {
        return request->missing;
    }
    return rerun(request,
                 run,
                 task,
                 &(struct order){
                     .type = EVENT_RERUN,
                     .what = "rerun",
                     .done = "runs again",
                 });
}

/* --- rework ------------------------------------------------------------- */

/*
 * Return the stage of a group to which work is sent back: where its last stage
 * that can do so sends it, else its first stage. PLAN_NONE with an error: the
 * group has several parts.
 */
static uint32_t
find_worker(struct request *request, uint32_t run, uint32_t group)
{
    const struct plan *plan = request->engine->runs[run].plan;
    uint32_t first = PLAN_NONE;
    uint32_t found = PLAN_NONE;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        if (!is_of_group(plan, ix, group)) {
            continue;
        }
        first = first == PLAN_NONE ? ix : first;
        if (task->group != plan->tasks[first].group) {
            (void)diag_set(&request->diag,
                           ERR_CONFLICT,
                           "%s has several parts: name one, such as %s or %s",
                           plan->groups[group].id,
                           plan->groups[plan->tasks[first].group].id,
                           plan->groups[task->group].id);
            return PLAN_NONE;
        }
        found = task->rework_to != PLAN_NONE ? task->rework_to : found;
    }
    if (first == PLAN_NONE) {
        (void)diag_set(&request->diag,
                       ERR_CONFLICT,
                       "cannot rework %s: it has no task",
                       plan->groups[group].id);
    }
    return found != PLAN_NONE ? found : first;
}

/* Add a text to the feedback of a task that will run anyway. */
static enum err add_feedback(struct request *request,
                             uint32_t run,
                             uint32_t task,
                             const char *text)
{
    struct engine_run *r = &request->engine->runs[run];
    struct engine_past *past = runs_own_past(&r->tasks[task]);
    const char *name = r->plan->tasks[task].id;
    struct strbuf all = {0};
    if (past->feedback != NULL) {
        strbuf_addf(&all, "%s\n", past->feedback);
    }
    strbuf_adds(&all, text);
    if (all.len > FEEDBACK_BYTES_MAX) {
        strbuf_release(&all);
        return diag_set(&request->diag,
                        ERR_LIMIT,
                        "%s has got too much feedback: it would be more than "
                        "%d bytes",
                        name,
                        FEEDBACK_BYTES_MAX);
    }
    mem_set_text(&past->feedback, strbuf_text(&all));
    strbuf_release(&all);
    rows_set_task(request->engine, run, task);
    strbuf_addf(&request->text, "%s gets the text when it starts", name);
    request_add(request, "run", r->id);
    request_add(request, "task", name);
    return ERR_OK;
}

/* Send work back to a task, by its state. */
static enum err send_back(struct request *request,
                          uint32_t run,
                          uint32_t task,
                          const char *text)
{
    static const struct order order = {
        .type = EVENT_RERUN,
        .what = "rework",
        .done = "works on it again",
    };
    static const struct order retry = {
        .type = EVENT_RETRY,
        .what = "rework",
        .done = "will be retried with the text",
    };
    const struct engine_run *r = &request->engine->runs[run];
    struct engine_past *past = runs_own_past(&r->tasks[task]);
    const struct plan_task *plan = &r->plan->tasks[task];
    struct sched_task view = view_of(request->engine, run, task);
    enum err err = ERR_CONFLICT;
    switch (view.state) {
    case TASK_DONE:
        err = rerun(request, run, task, &order);
        if (err == ERR_OK) {
            mem_set_text(&past->feedback, text);
            carry_send_back_since(&past->carry, view.token);
        }
        return err;
    case TASK_PARKED:
    case TASK_FAILED:
        err = apply_task(request, run, task, &retry);
        INVARIANT(err == ERR_OK); /* such a task can be retried */
        hand_over(request->engine, run, task, text);
        return err;
    case TASK_WAITING:
    case TASK_READY:
        return add_feedback(request, run, task, text);
    case TASK_STARTING:
    case TASK_RUNNING:
        return diag_set(&request->diag,
                        ERR_CONFLICT,
                        "%s is running; use 'sluice tell'",
                        plan->id);
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        break;
    }
    return refuse_order(request, &order, plan->id, plan, &view);
}

/* Send work back to a stage, with the text as its feedback. */
enum err request_do_rework(struct request *request)
{
    const char *text = request_text(request, "text");
    uint32_t run;
    uint32_t task;
    uint32_t group;
    if (text == NULL || text[strspn(text, " \t\r\n")] == '\0') {
        return diag_set(&request->diag, ERR_INVALID, "empty text");
    }
    if (strlen(text) > TEXT_BYTES_MAX) {
        return diag_set(&request->diag,
                        ERR_LIMIT,
                        "the text has %zu bytes, more than %d: put it into a "
                        "file and send its path",
                        strlen(text),
                        TEXT_BYTES_MAX);
    }
    if (!request_find_named(request, &run, &task, &group)) {
        return request->missing;
    }
    task = task != PLAN_NONE ? task : find_worker(request, run, group);
    return task != PLAN_NONE ? send_back(request, run, task, text)
                             : ERR_CONFLICT;
}
