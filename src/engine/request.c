/* SPDX-License-Identifier: MIT */
/*
 * Processing of requests. Each is checked, applied to the core and answered;
 * the request and its answer become a row of the batch that makes it durable,
 * and the answer is sent when that batch is written.
 */
#include "engine/request.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "engine/carry.h"
#include "engine/engine_internal.h"
#include "plan/suggest.h"

#include <jansson.h>
#include <string.h>

/* A request being processed. */
struct request {
    struct engine *engine;
    json_t *json;
    const char *verb;
    struct strbuf text;  /* of the answer, for the user */
    struct strbuf extra; /* further members of the answer */
    bool silent;         /* not stored: repeating it is harmless */
    struct diag diag;
    enum err missing; /* of the last name that was not found */
};

/* Return a writer for further members. */
static struct jsonw extra_of(struct request *request)
{
    return (struct jsonw){.out = &request->extra};
}

static void
add_extra(struct request *request, const char *name, const char *text)
{
    struct jsonw json = extra_of(request);
    jsonw_text(&json, name, text);
}

static void add_count(struct request *request, const char *name, int64_t count)
{
    struct jsonw json = extra_of(request);
    jsonw_int(&json, name, count);
}

static const char *get_text(const struct request *request, const char *name)
{
    return json_string_value(json_object_get(request->json, name));
}

/* Return the run that the request names, or STORE_NONE with an error. */
static uint32_t find_run(struct request *request)
{
    struct engine *engine = request->engine;
    const char *id = get_text(request, "run");
    if (id != NULL) {
        uint32_t ix = engine_find_run(engine, id);
        if (ix == STORE_NONE) {
            request->missing = diag_set(&request->diag,
                                        ERR_NOT_FOUND,
                                        "no unfinished run \"%s\"",
                                        id);
        }
        return ix;
    }
    uint32_t found = STORE_NONE;
    struct strbuf names = {0};
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        if (!engine->runs[ix].finished) {
            found = ix;
            strbuf_addf(&names,
                        "%s%s",
                        count++ > 0 ? ", " : "",
                        engine->runs[ix].id);
        }
    }
    if (count == 0) {
        request->missing =
            diag_set(&request->diag, ERR_NOT_FOUND, "no unfinished run");
    } else if (count > 1) {
        found = STORE_NONE;
        request->missing =
            diag_set(&request->diag,
                     ERR_INVALID,
                     "several runs are unfinished (%s): name one with --run",
                     strbuf_text(&names));
    }
    strbuf_release(&names);
    return found;
}

/* Whether a request may refer to this run. */
static bool is_meant(const struct request *request, uint32_t ix)
{
    const struct engine_run *run = &request->engine->runs[ix];
    const char *id = get_text(request, "run");
    return id != NULL ? strcmp(run->id, id) == 0 : !run->finished;
}

/* Report that no task or group has that name, and suggest a similar name. */
static void refuse_name(struct request *request, const char *name)
{
    const struct engine *engine = request->engine;
    const char *run = get_text(request, "run");
    struct suggest guess;
    uint32_t budget = SUGGEST_BUDGET;
    suggest_init(&guess, name, strlen(name), &budget);
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        const struct plan *plan = engine->runs[ix].plan;
        if (!is_meant(request, ix)) {
            continue;
        }
        (void)suggest_offer(&guess, engine->runs[ix].id);
        for (uint32_t n = 0; n < plan->group_count; n++) {
            (void)suggest_offer(&guess, plan->groups[n].id);
        }
        for (uint32_t n = 0; n < plan->task_count; n++) {
            (void)suggest_offer(&guess, plan->tasks[n].id);
        }
    }
    request->missing = diag_set(&request->diag,
                                ERR_NOT_FOUND,
                                "no task \"%s\" in %s%s%s",
                                name,
                                run != NULL ? "run " : "an unfinished run",
                                run != NULL ? run : "",
                                suggest_hint(&guess));
}

/*
 * Find the task or group that the request names. *run_out is its run, *task_out
 * the task or PLAN_NONE, *group_out the group or PLAN_NONE; false with an
 * error. Within a run a task has precedence over a group of its name.
 */
static bool find_named(struct request *request,
                       uint32_t *run_out,
                       uint32_t *task_out,
                       uint32_t *group_out)
{
    struct engine *engine = request->engine;
    const char *id = get_text(request, "task");
    uint32_t count = 0;
    *task_out = PLAN_NONE;
    *group_out = PLAN_NONE;
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        if (!is_meant(request, ix)) {
            continue;
        }
        const struct plan *plan = engine->runs[ix].plan;
        uint32_t task = plan_find_task(plan, id);
        uint32_t group =
            task == PLAN_NONE ? plan_find_group(plan, id) : PLAN_NONE;
        if (task != PLAN_NONE || group != PLAN_NONE) {
            *run_out = ix;
            *task_out = task;
            *group_out = group;
            count++;
        }
    }
    if (count == 0) {
        refuse_name(request, id);
    } else if (count > 1) {
        request->missing =
            diag_set(&request->diag,
                     ERR_INVALID,
                     "several runs have a task \"%s\": name one with --run",
                     id);
    }
    return count == 1;
}

/* Find the task that the request names; false with an error. */
static bool find_task(struct request *request, uint32_t *run_out, uint32_t *out)
{
    uint32_t group;
    if (!find_named(request, run_out, out, &group)) {
        return false;
    }
    if (*out == PLAN_NONE) {
        refuse_name(request, get_text(request, "task"));
    }
    return *out != PLAN_NONE;
}

static enum err do_submit(struct request *request)
{
    const json_t *processors = json_object_get(request->json, "processors");
    struct runs_submission submission = {
        .file = get_text(request, "file"),
        .folder = get_text(request, "folder"),
        .text = get_text(request, "text"),
        .processors = (uint32_t)json_integer_value(processors),
        .anew = json_is_true(json_object_get(request->json, "new")),
    };
    if (submission.file == NULL || submission.folder == NULL ||
        submission.text == NULL || submission.processors == 0) {
        return diag_set(&request->diag, ERR_INVALID, "incomplete request");
    }
    uint32_t run;
    bool continued;
    enum err err = runs_submit(request->engine,
                               &submission,
                               &run,
                               &continued,
                               &request->diag);
    if (err != ERR_OK) {
        return err;
    }
    const struct engine_run *r = &request->engine->runs[run];
    add_extra(request, "run", r->id);
    add_count(request, "number", r->number);
    add_count(request, "tasks", r->task_count);
    if (r->finished) {
        struct jsonw json = extra_of(request);
        jsonw_bool(&json, "finished", true);
        strbuf_addf(&request->text, "run %s has finished", r->id);
        return ERR_OK;
    }
    if (continued && engine_is_quiet(request->engine, run)) {
        runs_tell(request->engine,
                  run,
                  EVENT_WORD_WAITING); /* for this client, too */
    }
    strbuf_addf(&request->text,
                continued ? "run %s is resumed" : "run %s is submitted",
                r->id);
    return ERR_OK;
}

static enum err do_cap(struct request *request)
{
    struct engine *engine = request->engine;
    uint32_t run = find_run(request);
    if (run == STORE_NONE) {
        return request->missing;
    }
    int64_t before = caps_configured(engine, run, 0);
    const json_t *max = json_object_get(request->json, "max");
    const json_t *step = json_object_get(request->json, "step");
    int64_t wanted = json_integer_value(max);
    if (json_is_integer(step)) {
        if (before == LIMIT_NONE) {
            return diag_set(&request->diag,
                            ERR_CONFLICT,
                            "the cap of run %s is \"none\": set a number",
                            engine->runs[run].id);
        }
        wanted = before + json_integer_value(step);
        wanted = wanted < 0 ? 0 : wanted;
    } else if (!json_is_integer(max) || wanted < 0 || wanted > INT32_MAX) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "the cap must be a number from 0 to %d",
                        INT32_MAX);
    }
    caps_set(engine, run, 0, wanted);
    struct limit_id limit = load_limit(engine->runs[run].loaded, 0);
    int64_t present = sched_limit_max(engine->sched, limit);
    strbuf_addf(&request->text,
                "cap of run %s: %lld",
                engine->runs[run].id,
                (long long)wanted);
    if (present < wanted) {
        strbuf_addf(&request->text,
                    ", lowered to %lld by its usage monitor",
                    (long long)present);
    }
    add_count(request, "max", wanted);
    add_extra(request, "run", engine->runs[run].id);
    return ERR_OK;
}

/* Enable or disable usage monitors, in the whole store. */
static enum err do_usage(struct request *request)
{
    struct engine *engine = request->engine;
    const json_t *override = json_object_get(request->json, "override");
    if (!json_is_boolean(override)) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"override\" must be true or false");
    }
    engine->override = json_is_true(override);
    rows_setting(engine, "override", engine->override ? "true" : NULL);
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        (void)engine_now(engine);
        caps_apply(engine, ix);
    }
    if (engine->override) {
        enum err err =
            engine_apply(engine, (struct sched_event){.type = EVENT_OPEN});
        INVARIANT(err == ERR_OK);
    }
    strbuf_adds(
        &request->text,
        engine->override
            ? "usage is overridden: meters and reported limits have no effect"
            : "usage is no longer overridden");
    struct jsonw json = extra_of(request);
    jsonw_bool(&json, "override", engine->override);
    return ERR_OK;
}

/* Return the budget that the request names, or PLAN_NONE with an error. */
static uint32_t
find_budget(struct request *request, uint32_t run, const char *unit)
{
    const struct plan *plan = request->engine->runs[run].plan;
    const char *class_name = get_text(request, "class");
    struct strbuf name = {0};
    strbuf_addf(&name,
                "%s budget%s%s",
                unit,
                class_name != NULL ? " of " : "",
                class_name != NULL ? class_name : "");
    uint32_t limit = plan_find_limit(plan, strbuf_text(&name));
    if (limit == PLAN_NONE) {
        (void)diag_set(
            &request->diag,
            ERR_NOT_FOUND,
            "the plan of run %s has no %s: budgets can be changed, not added",
            request->engine->runs[run].id,
            strbuf_text(&name));
    }
    strbuf_release(&name);
    return limit;
}

/* Set the budget of one task; retry it if it was parked for money. */
static enum err set_task_budget(struct request *request,
                                const struct plan_cost *amount)
{
    struct engine *engine = request->engine;
    uint32_t run;
    uint32_t task;
    if (!find_task(request, &run, &task)) {
        return request->missing;
    }
    struct plan_cost budget = caps_task_budget(engine, run, task);
    budget.usd = amount->usd != PLAN_UNSET ? amount->usd : budget.usd;
    budget.tokens =
        amount->tokens != PLAN_UNSET ? amount->tokens : budget.tokens;
    caps_raise(engine, run, task, &budget);
    const struct engine_task *t = &engine->runs[run].tasks[task];
    struct task_id id = engine_core_task(engine, run, task);
    struct strbuf reason = {0};
    if (sched_task(engine->sched, id).state == TASK_PARKED &&
        carry_lack(t->carry, t->reason) == OUTCOME_LACKS_MONEY &&
        !caps_is_broke(engine, run, task, &reason)) {
        enum err err =
            engine_apply(engine,
                         (struct sched_event){.type = EVENT_RETRY, .task = id});
        INVARIANT(err == ERR_OK);
    }
    strbuf_release(&reason);
    strbuf_addf(&request->text,
                "budget of %s is set",
                engine->runs[run].plan->tasks[task].id);
    return ERR_OK;
}

/* Read an amount in units of a budget; false: it is invalid. */
static bool read_amount(const struct request *request,
                        const char *name,
                        double scale,
                        int64_t max,
                        int64_t *out)
{
    const json_t *value = json_object_get(request->json, name);
    *out = PLAN_UNSET;
    if (value == NULL) {
        return true;
    }
    double amount = json_number_value(value) * scale;
    if (!json_is_number(value) || amount < 0 || amount > (double)max) {
        return false;
    }
    *out = (int64_t)(amount + 0.5);
    return true;
}

/* Append the limits that the request has set, with their maximum. */
static void add_budgets(struct request *request,
                        uint32_t run,
                        uint32_t usd,
                        uint32_t tokens,
                        const struct plan_cost *amount)
{
    const struct engine_run *r = &request->engine->runs[run];
    struct jsonw json = extra_of(request);
    jsonw_text(&json, "run", r->id);
    jsonw_object(&json, "limits");
    if (amount->usd != PLAN_UNSET) {
        jsonw_name(&json, r->plan->limits[usd].name);
        jsonw_int(&json, NULL, amount->usd);
    }
    if (amount->tokens != PLAN_UNSET) {
        jsonw_name(&json, r->plan->limits[tokens].name);
        jsonw_int(&json, NULL, amount->tokens);
    }
    jsonw_object_end(&json);
}

static enum err do_budget(struct request *request)
{
    struct plan_cost amount;
    if (!read_amount(request, "usd", PLAN_USD, PLAN_USD_MAX, &amount.usd) ||
        !read_amount(request, "tokens", 1, PLAN_TOKENS_MAX, &amount.tokens) ||
        (amount.usd == PLAN_UNSET && amount.tokens == PLAN_UNSET)) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "a budget needs \"usd\" up to 100000, or \"tokens\" "
                        "up to 1000000000");
    }
    if (get_text(request, "task") != NULL) {
        return set_task_budget(request, &amount);
    }
    uint32_t run = find_run(request);
    if (run == STORE_NONE) {
        return request->missing;
    }
    uint32_t usd = 0;
    uint32_t tokens = 0;
    if ((amount.usd != PLAN_UNSET &&
         (usd = find_budget(request, run, "usd")) == PLAN_NONE) ||
        (amount.tokens != PLAN_UNSET &&
         (tokens = find_budget(request, run, "tokens")) == PLAN_NONE)) {
        return ERR_NOT_FOUND;
    }
    if (amount.usd != PLAN_UNSET) {
        caps_set(request->engine, run, usd, amount.usd);
    }
    if (amount.tokens != PLAN_UNSET) {
        caps_set(request->engine, run, tokens, amount.tokens);
    }
    request->engine->runs[run].broke = false;
    strbuf_addf(&request->text,
                "budget of run %s is set",
                request->engine->runs[run].id);
    add_budgets(request, run, usd, tokens, &amount);
    return ERR_OK;
}

/* Apply a request about a whole run. */
static enum err
do_run(struct request *request, enum sched_event_type type, const char *done)
{
    uint32_t run = find_run(request);
    if (run == STORE_NONE) {
        return request->missing;
    }
    enum err err =
        engine_apply(request->engine,
                     (struct sched_event){.type = type, .run = {run}});
    if (err != ERR_OK) {
        return diag_set(&request->diag,
                        err,
                        "the state of the run does not allow it");
    }
    strbuf_addf(&request->text,
                "run %s %s",
                request->engine->runs[run].id,
                done);
    add_extra(request, "run", request->engine->runs[run].id);
    return ERR_OK;
}

/* Apply an event to one task. */
static enum err apply_task(struct request *request,
                           uint32_t run,
                           uint32_t task,
                           enum sched_event_type type,
                           const char *done)
{
    struct engine *engine = request->engine;
    struct task_id id = engine_core_task(engine, run, task);
    enum task_state state = sched_task(engine->sched, id).state;
    enum err err =
        engine_apply(engine, (struct sched_event){.type = type, .task = id});
    const char *name = engine->runs[run].plan->tasks[task].id;
    if (err != ERR_OK) {
        return diag_set(&request->diag,
                        err,
                        "cannot %s %s: it is %s",
                        request->verb,
                        name,
                        type == EVENT_RELEASE ? "not held"
                                              : sched_state_name(state));
    }
    strbuf_addf(&request->text, "%s %s", name, done);
    add_extra(request, "run", engine->runs[run].id);
    add_extra(request, "task", name);
    return ERR_OK;
}

static bool
needs_person(const struct engine *engine, uint32_t run, uint32_t task)
{
    struct task_id id = engine_core_task(engine, run, task);
    enum task_state state = sched_task(engine->sched, id).state;
    return state == TASK_PARKED || state == TASK_FAILED;
}

/*
 * Apply an event to every task of a group that allows it; a retry only to
 * failed or parked tasks. The last task comes first: withdrawing a task skips
 * its dependents, which this request must withdraw itself.
 */
static enum err apply_group(struct request *request,
                            uint32_t run,
                            uint32_t group,
                            enum sched_event_type type,
                            const char *done)
{
    struct engine *engine = request->engine;
    const struct plan *plan = engine->runs[run].plan;
    struct strbuf tasks = {0};
    struct jsonw list = {.out = &tasks};
    uint32_t count = 0;
    jsonw_array(&list, NULL);
    for (uint32_t ix = plan->task_count; ix > 0; ix--) {
        uint32_t task = ix - 1;
        if (plan->tasks[task].group != group ||
            (type == EVENT_RETRY && !needs_person(engine, run, task))) {
            continue;
        }
        struct sched_event event = {
            .type = type,
            .task = engine_core_task(engine, run, task),
        };
        if (engine_apply(engine, event) == ERR_OK) {
            count++;
            jsonw_text(&list, NULL, plan->tasks[task].id);
        }
    }
    enum err err = ERR_OK;
    if (count == 0) {
        err = diag_set(&request->diag,
                       ERR_CONFLICT,
                       "cannot %s %s: no task of it allows this; 'sluice why "
                       "%s' shows their state",
                       request->verb,
                       plan->groups[group].id,
                       plan->groups[group].id);
    } else {
        strbuf_addf(&request->text,
                    "%s %s (%u task%s)",
                    plan->groups[group].id,
                    done,
                    count,
                    count == 1 ? "" : "s");
        add_extra(request, "run", engine->runs[run].id);
        add_extra(request, "group", plan->groups[group].id);
        struct jsonw json = extra_of(request);
        jsonw_array_end(&list);
        jsonw_raw(&json, "tasks", strbuf_text(&tasks));
    }
    strbuf_release(&tasks);
    return err;
}

static enum err
do_task(struct request *request, enum sched_event_type type, const char *done)
{
    uint32_t run;
    uint32_t task;
    uint32_t group;
    if (!find_named(request, &run, &task, &group)) {
        return request->missing;
    }
    return task != PLAN_NONE ? apply_task(request, run, task, type, done)
                             : apply_group(request, run, group, type, done);
}

/* Return the task of a group that an answer is for: the first parked task, else
 * the first failed task. PLAN_NONE with an error: none. */
static uint32_t
find_asker(struct request *request, uint32_t run, uint32_t group)
{
    const struct plan *plan = request->engine->runs[run].plan;
    uint32_t found = PLAN_NONE;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        struct task_id id = engine_core_task(request->engine, run, ix);
        enum task_state state = sched_task(request->engine->sched, id).state;
        if (plan->tasks[ix].group != group) {
            continue;
        }
        if (state == TASK_PARKED) {
            return ix;
        }
        found = state == TASK_FAILED && found == PLAN_NONE ? ix : found;
    }
    if (found == PLAN_NONE) {
        (void)diag_set(&request->diag,
                       ERR_CONFLICT,
                       "cannot answer %s: no task of it is parked",
                       plan->groups[group].id);
    }
    return found;
}

/* Retry the task; its next attempt gets the answer. */
static enum err do_answer(struct request *request)
{
    const char *text = get_text(request, "text");
    uint32_t run;
    uint32_t task;
    uint32_t group;
    if (text == NULL) {
        return diag_set(&request->diag, ERR_INVALID, "empty answer");
    }
    if (!find_named(request, &run, &task, &group)) {
        return request->missing;
    }
    task = task != PLAN_NONE ? task : find_asker(request, run, group);
    if (task == PLAN_NONE) {
        return ERR_CONFLICT;
    }
    enum err err = apply_task(request, run, task, EVENT_RETRY, "is answered");
    if (err == ERR_OK) {
        struct engine_task *t = &request->engine->runs[run].tasks[task];
        mem_free(t->feedback);
        t->feedback = mem_strndup(text, strlen(text));
        carry_answer(&t->carry, text);
    }
    return err;
}

/* Add a fragment to an unfinished run. */
static enum err do_add(struct request *request)
{
    const char *file = get_text(request, "file");
    const char *text = get_text(request, "text");
    if (file == NULL || text == NULL) {
        return diag_set(&request->diag, ERR_INVALID, "incomplete request");
    }
    if (revise_is_update(file)) {
        file += strlen(REVISE_MARK); /* this name is reserved for updates */
    }
    uint32_t ix = find_run(request);
    if (ix == STORE_NONE) {
        return request->missing;
    }
    struct engine_run *run = &request->engine->runs[ix];
    uint32_t before = run->plan->task_count;
    enum err err = runs_hot_load(request->engine,
                                 ix,
                                 file,
                                 text,
                                 strlen(text),
                                 &request->diag);
    if (err == ERR_OK) {
        uint32_t added = run->plan->task_count - before;
        add_extra(request, "run", run->id);
        add_count(request, "tasks", added);
        strbuf_addf(&request->text,
                    "%u task%s added to run %s",
                    added,
                    added == 1 ? "" : "s",
                    run->id);
    }
    return err;
}

static enum err do_drain(struct request *request)
{
    engine_drain(request->engine, true);
    strbuf_addf(&request->text,
                "draining; sessions still running: %u",
                request->engine->session_count);
    add_count(request, "sessions", request->engine->session_count);
    return ERR_OK;
}

static enum err do_ping(struct request *request)
{
    strbuf_adds(&request->text, "alive");
    return ERR_OK;
}

static enum err do_pause(struct request *request)
{
    return do_run(request, EVENT_PAUSE, "is paused");
}

/* Resume a provider that was stopped or backs off, at once. */
static enum err resume_provider(struct request *request, const char *name)
{
    struct engine *engine = request->engine;
    struct provider_id id = load_find_provider(engine->load, name);
    if (id.v == ID_NONE) {
        return diag_set(&request->diag,
                        ERR_NOT_FOUND,
                        "no unfinished run uses a provider \"%s\"",
                        name);
    }
    enum err err = engine_apply(
        engine,
        (struct sched_event){.type = EVENT_REOPEN, .provider = id});
    INVARIANT(err == ERR_OK);
    rows_stop_reason(engine, id, NULL);
    strbuf_addf(&request->text, "provider %s is used again", name);
    add_extra(request, "provider", name);
    return ERR_OK;
}

static enum err do_resume(struct request *request)
{
    const char *provider = get_text(request, "provider");
    if (provider != NULL) {
        return resume_provider(request, provider);
    }
    return do_run(request, EVENT_RESUME, "is resumed");
}

static enum err do_hold(struct request *request)
{
    return do_task(request, EVENT_HOLD, "is held");
}

static enum err do_release(struct request *request)
{
    return do_task(request, EVENT_RELEASE, "is released");
}

static enum err do_retry(struct request *request)
{
    return get_text(request, "task") != NULL
               ? do_task(request, EVENT_RETRY, "will be retried")
               : do_run(request,
                        EVENT_RETRY_RUN,
                        "will retry its failed and parked tasks");
}

static enum err do_skip(struct request *request)
{
    return do_task(request, EVENT_SKIP, "is skipped");
}

static enum err do_cancel(struct request *request)
{
    return get_text(request, "task") != NULL
               ? do_task(request, EVENT_CANCEL, "is cancelled")
               : do_run(request, EVENT_CANCEL_RUN, "is cancelled");
}

/* Return a number of the request, from 0 on; -1: absent. */
static int64_t get_number(const struct request *request, const char *name)
{
    const json_t *value = json_object_get(request->json, name);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/*
 * Remove rows of a finished run, one part of them. The store checks that the
 * run has finished; here the run must not be loaded, because this scheduler
 * might still write to it.
 */
static enum err do_prune(struct request *request)
{
    static const char *const parts[] = {
        [STORE_PRUNE_EVENTS] = "events",
        [STORE_PRUNE_TASKS] = "tasks",
        [STORE_PRUNE_RUN] = "run",
    };
    const struct engine *engine = request->engine;
    const char *part = get_text(request, "part");
    int64_t number = get_number(request, "number");
    int64_t first = get_number(request, "first");
    int64_t last = get_number(request, "last");
    struct store_change change = {.type = STORE_PRUNE};
    uint32_t ix = 0;
    while (part != NULL && ix < ARRAY_COUNT(parts) &&
           strcmp(parts[ix], part) != 0) {
        ix++;
    }
    if (part == NULL || ix == ARRAY_COUNT(parts) || number < 1 ||
        number > STORE_RUN_MAX || first < 0 || last < first ||
        (ix == STORE_PRUNE_TASKS && last >= STORE_NONE)) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"prune\" needs part, number, first and last");
    }
    for (uint32_t run = 0; run < engine->run_count; run++) {
        if (engine->runs[run].number == number) {
            return diag_set(&request->diag,
                            ERR_CONFLICT,
                            "the scheduler still has run \"%s\" in memory: "
                            "restart 'sluice run' first",
                            engine->runs[run].id);
        }
    }
    change.as.prune = (struct store_prune){
        .run = (uint32_t)number,
        .part = (enum store_prune_part)ix,
        .first = (uint64_t)first,
        .last = (uint64_t)last,
    };
    store_batch_add(&request->engine->batch, &change);
    request->silent = ix != STORE_PRUNE_RUN;
    strbuf_addf(&request->text,
                "%srun number %d removed from the store",
                ix == STORE_PRUNE_EVENTS  ? "events of "
                : ix == STORE_PRUNE_TASKS ? "tasks of "
                                          : "",
                (int)number);
    return ERR_OK;
}

typedef enum err (*request_fn)(struct request *request);

/* The verbs, their functions, and whether they need a task. */
static const struct {
    const char *verb;
    request_fn run;
    bool needs_task;
} verbs[] = {
    {"add", do_add, false},
    {"answer", do_answer, true},
    {"budget", do_budget, false},
    {"cancel", do_cancel, false},
    {"cap", do_cap, false},
    {"drain", do_drain, false},
    {"hold", do_hold, true},
    {"pause", do_pause, false},
    {"ping", do_ping, false},
    {"prune", do_prune, false},
    {"release", do_release, true},
    {"resume", do_resume, false},
    {"retry", do_retry, false},
    {"skip", do_skip, true},
    {"submit", do_submit, false},
    {"usage", do_usage, false},
};

static enum err carry_out(struct request *request)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (strcmp(verbs[ix].verb, request->verb) != 0) {
            continue;
        }
        if (verbs[ix].needs_task && get_text(request, "task") == NULL) {
            return diag_set(&request->diag,
                            ERR_INVALID,
                            "\"%s\" needs a task",
                            request->verb);
        }
        return verbs[ix].run(request);
    }
    return diag_set(&request->diag,
                    ERR_INVALID,
                    "unknown request \"%s\"",
                    request->verb);
}

static char *make_answer(struct request *request, enum err err)
{
    struct strbuf out = {0};
    struct jsonw json = {.out = &out};
    jsonw_object(&json, NULL);
    jsonw_bool(&json, "ok", err == ERR_OK);
    if (err != ERR_OK) {
        jsonw_text(&json, "error", err_name(err));
        jsonw_text(&json, "text", request->diag.text);
    } else {
        jsonw_text(&json, "text", strbuf_text(&request->text));
        if (request->extra.len > 0) {
            jsonw_raw(&json, NULL, strbuf_text(&request->extra));
        }
    }
    jsonw_object_end(&json);
    char *copy = mem_strndup(out.text, out.len);
    strbuf_release(&out);
    return copy;
}

static void keep_answer(struct engine *engine, uint64_t request, char *json)
{
    struct engine_todo *todo = &engine->todo;
    MEM_GROW(todo->answers, todo->answer_count, todo->answer_capacity);
    todo->answers[todo->answer_count++] =
        (struct engine_answer){.request = request, .json = json};
}

/* Add the row of a request. A plan's text is in the row of its run. */
static void note(const struct request *request,
                 uint64_t number,
                 const char *who,
                 const char *answer)
{
    struct engine *engine = request->engine;
    (void)json_object_del(request->json, "text");
    char *args = json_dumps(request->json, JSON_COMPACT);
    INVARIANT(args != NULL);
    struct store_change change = {
        .type = STORE_COMMAND,
        .as.command =
            {
                .number = number,
                .wall_ns = engine->world->wall_ns(engine->ctx),
                .who = who,
                .verb = request->verb,
                .args = args,
                .key = get_text(request, "key"),
                .answer = answer,
            },
    };
    store_batch_add(&engine->batch, &change);
    free(args);
    struct event event = {
        .kind = EVENT_KIND_REQUEST,
        .as.request = {.verb = request->verb, .by = who, .answer = answer},
    };
    rows_event(engine, STORE_NONE, STORE_NONE, &event);
}

void request_apply(struct engine *engine,
                   uint64_t id,
                   uint64_t number,
                   const char *who,
                   const char *json)
{
    struct request request = {.engine = engine, .verb = "?"};
    json_error_t error;
    enum err err;
    request.json = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(request.json)) {
        json_decref(request.json);
        request.json = json_object();
        err = diag_set(&request.diag,
                       ERR_INVALID,
                       "the request is not a JSON object: %s",
                       error.text);
    } else if (get_text(&request, "verb") == NULL) {
        err = diag_set(&request.diag, ERR_INVALID, "the request has no verb");
    } else {
        request.verb = get_text(&request, "verb");
        err = carry_out(&request);
    }
    crash_point("request-applied");
    char *answer = make_answer(&request, err);
    if (strcmp(request.verb, "ping") != 0 && !(request.silent && number == 0)) {
        note(&request, number, who, answer);
    }
    if (number == 0) {
        keep_answer(engine, id, answer);
    } else {
        mem_free(answer); /* read from the store: no client waits for it */
    }
    json_decref(request.json);
    strbuf_release(&request.text);
    strbuf_release(&request.extra);
}
