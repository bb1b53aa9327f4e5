/* SPDX-License-Identifier: MIT */
/* Operand lookup. Reads the store once per name; one pass sees all matches. */
#include "view/target.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "plan/suggest.h"

#include <string.h>

/* The columns of a run that matter here. */
struct run_row {
    uint32_t number;
    char *id;
    bool finished;
};

struct search {
    const char *name;
    enum target_kind kind;
    struct run_row *runs; /* by number */
    uint32_t run_count;
    struct target found; /* a task */
    uint32_t found_count;
    struct store_info info; /* as of the first read */
};

static char *copy_text(const char *text)
{
    return text != NULL ? mem_strndup(text, strlen(text)) : NULL;
}

static enum err on_run(void *ctx, const struct store_run *row)
{
    struct search *search = ctx;
    search->runs = mem_resize(search->runs,
                              search->run_count + 1,
                              sizeof(search->runs[0]));
    search->runs[search->run_count++] = (struct run_row){
        .number = row->number,
        .id = copy_text(row->id),
        .finished = row->finished,
    };
    return ERR_OK;
}

static const struct run_row *find_run(const struct search *search,
                                      uint32_t number)
{
    for (uint32_t ix = search->run_count; ix > 0; ix--) {
        if (search->runs[ix - 1].number == number) {
            return &search->runs[ix - 1];
        }
    }
    return NULL;
}

static enum err on_task(void *ctx, const struct store_task *row)
{
    struct search *search = ctx;
    const struct run_row *run = find_run(search, row->run);
    if (run == NULL) {
        return ERR_OK; /* task without a run: `sluice doctor` reports it */
    }
    search->found_count++;
    target_release(&search->found);
    search->found = (struct target){
        .run = row->run,
        .task = row->ix,
        .run_id = copy_text(run->id),
        .task_id = copy_text(row->id),
        .state = copy_text(row->state),
        .reason = copy_text(row->reason),
        .number = row->number,
        .token = row->token,
        .finished = run->finished,
    };
    return ERR_OK;
}

/* Get the run of that name as a target; false if none exists. */
static bool take_run(const struct search *search, struct target *out)
{
    for (uint32_t ix = 0; ix < search->run_count; ix++) {
        const struct run_row *run = &search->runs[ix];
        if (strcmp(run->id, search->name) == 0) {
            *out = (struct target){
                .run = run->number,
                .task = STORE_NONE,
                .run_id = copy_text(run->id),
                .finished = run->finished,
            };
            return true;
        }
    }
    return false;
}

/* Search the finished runs for the task, newest first. */
static enum err
find_finished(struct search *search, struct store *store, struct diag *diag)
{
    static const struct store_visitor visitor = {.task = on_task};
    enum err err = ERR_OK;
    for (uint32_t ix = search->run_count;
         ix > 0 && err == ERR_OK && search->found_count == 0;
         ix--) {
        const struct run_row *run = &search->runs[ix - 1];
        struct store_query query = {.run = run->id, .task = search->name};
        if (run->finished) {
            err = store_read(store, &query, &visitor, search, NULL, diag);
        }
    }
    return err;
}

/* Search unfinished tasks, runs and finished tasks, in this order. */
static enum err find_any(struct search *search,
                         struct store *store,
                         const char *run,
                         struct target *out,
                         struct diag *diag)
{
    static const struct store_visitor names = {.run = on_run};
    static const struct store_visitor tasks = {.task = on_task};
    struct store_query query = {.finished = true, .run = run};
    enum err err =
        store_read(store, &query, &names, search, &search->info, diag);
    if (err == ERR_OK && run != NULL && search->run_count == 0) {
        err = diag_set(diag, ERR_NOT_FOUND, "no run \"%s\"", run);
    }
    query = (struct store_query){.run = run, .task = search->name};
    if (err == ERR_OK) {
        err = store_read(store, &query, &tasks, search, NULL, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (search->found_count > 1) {
        return diag_set(diag,
                        ERR_INVALID,
                        "several runs have a task \"%s\": name one with --run",
                        search->name);
    }
    bool open = search->found_count == 1 && !search->found.finished;
    if (!open && search->kind == TARGET_TASK_OR_RUN && take_run(search, out)) {
        return ERR_OK;
    }
    if (search->found_count == 0) {
        err = find_finished(search, store, diag);
    }
    if (err == ERR_OK && search->found_count == 0) {
        return diag_set(diag,
                        ERR_NOT_FOUND,
                        "no %s \"%s\"%s%s",
                        search->kind == TARGET_TASK_OR_GROUP ? "task"
                                                             : "task or run",
                        search->name,
                        run != NULL ? " in run " : "",
                        run != NULL ? run : "");
    }
    *out = search->found;
    search->found = (struct target){0};
    return err;
}

/* Find a task or run by its own name, not a group. */
static enum err find_plain(struct target *out,
                           struct store *store,
                           const char *name,
                           const char *run,
                           enum target_kind kind,
                           struct diag *diag)
{
    *out = (struct target){0};
    struct search search = {.name = name, .kind = kind};
    enum err err = find_any(&search, store, run, out, diag);
    out->last_event = search.info.last_event;
    target_release(&search.found);
    for (uint32_t ix = 0; ix < search.run_count; ix++) {
        mem_free(search.runs[ix].id);
    }
    mem_free(search.runs);
    return err;
}

/* --- groups ------------------------------------------------------------- */

/* Whether a task needs an outcome that may not come. */
static bool may_be_skipped(const struct plan_task *task)
{
    bool found = false;
    for (uint32_t ix = 0; ix < task->need_count && !found; ix++) {
        found = task->ons[ix] == PLAN_ON_FAILED;
    }
    return found;
}

/* Copy the tasks of a group to *out. */
static void take_group(struct target_group *out,
                       const struct engine_run_view *view,
                       uint32_t group)
{
    const struct plan *plan = view->plan;
    target_group_release(out);
    out->run_id = copy_text(view->id);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t of = plan->tasks[ix].group;
        if (of != PLAN_NONE && plan_is_within(plan, of, group)) {
            out->task_ids = mem_resize(out->task_ids,
                                       out->count + 1,
                                       sizeof(out->task_ids[0]));
            out->ends =
                mem_resize(out->ends, out->count + 1, sizeof(out->ends[0]));
            out->ends[out->count] = plan->tasks[ix].last ? TARGET_MAY_FAIL
                                    : may_be_skipped(&plan->tasks[ix])
                                        ? TARGET_MAY_SKIP
                                        : TARGET_MUST_DO;
            out->task_ids[out->count++] = copy_text(plan->tasks[ix].id);
        }
    }
}

/* Add a similar name to *diag. */
static void add_hint(struct diag *diag, struct engine *engine, const char *name)
{
    struct suggest guess;
    uint32_t budget = SUGGEST_BUDGET;
    suggest_init(&guess, name, strlen(name), &budget);
    for (uint32_t run = 0; run < engine_run_count(engine); run++) {
        struct engine_run_view view = engine_run(engine, run);
        (void)suggest_offer(&guess, view.id);
        for (uint32_t ix = 0; ix < view.plan->group_count; ix++) {
            (void)suggest_offer(&guess, view.plan->groups[ix].id);
        }
        for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
            (void)suggest_offer(&guess, view.plan->tasks[ix].id);
        }
    }
    struct diag before = *diag;
    (void)diag_set(diag,
                   ERR_NOT_FOUND,
                   "%s%s",
                   before.text,
                   suggest_hint(&guess));
}

static bool has_group(const struct engine *engine, const char *name)
{
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        if (plan_find_group(engine_plan(engine, ix), name) != PLAN_NONE) {
            return true;
        }
    }
    return false;
}

static enum err load(struct engine **out,
                     struct store *store,
                     const struct store_query *query,
                     struct diag *diag)
{
    *out = engine_new(&(struct engine_options){.wall_ns = clock_wall_ns()});
    return engine_load(*out, store, query, diag);
}

enum err target_find_group(struct target_group *out,
                           struct store *store,
                           const char *name,
                           const char *run,
                           struct diag *diag)
{
    *out = (struct target_group){0};
    struct diag problem = {0};
    struct engine *engine = NULL;
    enum err err =
        load(&engine, store, &(struct store_query){.run = run}, &problem);
    if (err == ERR_OK && run == NULL && !has_group(engine, name)) {
        engine_free(engine);
        err = load(&engine,
                   store,
                   &(struct store_query){.finished = true},
                   &problem);
    }
    uint32_t open = 0;
    for (uint32_t ix = 0; err == ERR_OK && ix < engine_run_count(engine);
         ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        uint32_t group = plan_find_group(view.plan, name);
        if (group != PLAN_NONE && (!view.finished || open == 0)) {
            take_group(out, &view, group);
            open += view.finished ? 0 : 1;
        }
    }
    if (err != ERR_OK) {
        (void)diag_set(diag, err, "%s", problem.text);
    } else if (open > 1) {
        err = diag_set(diag,
                       ERR_INVALID,
                       "several runs have a group \"%s\": name one with --run",
                       name);
    } else if (out->count == 0) {
        add_hint(diag, engine, name);
        err = ERR_NOT_FOUND;
    }
    engine_free(engine);
    return err;
}

void target_group_release(struct target_group *group)
{
    for (uint32_t ix = 0; ix < group->count; ix++) {
        mem_free(group->task_ids[ix]);
    }
    mem_free(group->task_ids);
    mem_free(group->ends);
    mem_free(group->run_id);
    *group = (struct target_group){0};
}

enum err target_find(struct target *out,
                     struct store *store,
                     const char *name,
                     const char *run,
                     enum target_kind kind,
                     struct diag *diag)
{
    enum err err = find_plain(out, store, name, run, kind, diag);
    struct target_group group = {0};
    if (err == ERR_NOT_FOUND && kind == TARGET_TASK_OR_GROUP) {
        err = target_find_group(&group, store, name, run, diag);
    }
    for (uint32_t ix = 0; err == ERR_OK && ix < group.count; ix++) {
        struct target stage;
        err = find_plain(&stage,
                         store,
                         group.task_ids[ix],
                         group.run_id,
                         TARGET_TASK_OR_GROUP,
                         diag);
        if (err == ERR_OK && (ix == 0 || stage.token > out->token)) {
            target_release(out);
            *out = stage;
        } else {
            target_release(&stage);
        }
    }
    target_group_release(&group);
    return err;
}

void target_release(struct target *target)
{
    mem_free(target->run_id);
    mem_free(target->task_id);
    mem_free(target->state);
    mem_free(target->reason);
    *target = (struct target){0};
}
