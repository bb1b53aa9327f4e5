/* SPDX-License-Identifier: MIT */
/* Requests about limits: cap, limit, usage, budget. */
#include "engine/request_internal.h"

#include "base/invariant.h"
#include "engine/carry.h"
#include "plan/site.h"
#include "plan/suggest.h"

#include <string.h>

enum err request_do_cap(struct request *request)
{
    struct engine *engine = request->engine;
    uint32_t run = request_find_run(request);
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
    caps_set(engine, run, 0, (struct caps_max){.max = wanted});
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
    request_add_count(request, "max", wanted);
    request_add(request, "run", engine->runs[run].id);
    return ERR_OK;
}

/* Return the limit that the request names, or PLAN_NONE with an error. */
static uint32_t
find_limit(struct request *request, uint32_t run, const char *name)
{
    const struct engine_run *r = &request->engine->runs[run];
    uint32_t limit = plan_find_limit(r->plan, name);
    if (limit == PLAN_NONE) {
        struct suggest guess;
        uint32_t budget = SUGGEST_BUDGET;
        suggest_init(&guess, name, strlen(name), &budget);
        for (uint32_t ix = 0; ix < r->plan->limit_count; ix++) {
            (void)suggest_offer(&guess, r->plan->limits[ix].name);
        }
        request->missing = diag_set(&request->diag,
                                    ERR_NOT_FOUND,
                                    "run %s has no limit \"%s\"%s; 'sluice "
                                    "limit' lists them",
                                    r->id,
                                    name,
                                    suggest_hint(&guess));
        return PLAN_NONE;
    }
    const struct plan_limit *found = &r->plan->limits[limit];
    if (plan_is_paid(found)) {
        request->missing =
            diag_set(&request->diag,
                     ERR_INVALID,
                     plan_is_budget(found)
                         ? "\"%s\" is a budget: change it with 'sluice budget'"
                         : "\"%s\" follows from the budgets: change these "
                           "with 'sluice budget'",
                     name);
        return PLAN_NONE;
    }
    return limit;
}

/* Parse the maximum of a limit: a number, a percentage or none. */
static enum err read_max(struct request *request,
                         uint32_t run,
                         uint32_t ix,
                         struct caps_max *out)
{
    const struct plan_limit *limit =
        &request->engine->runs[run].plan->limits[ix];
    const char *text = request_text(request, "max");
    bool share = ix > 0 && limit->kind == PLAN_LIMIT_PLAIN;
    bool window = limit->kind == PLAN_LIMIT_WINDOW;
    *out = (struct caps_max){0};
    if (text != NULL &&
        ((share && site_parse_percent(text, &out->percent)) ||
         (site_parse_max(text, &out->max) &&
          (!window || (out->max > 0 && out->max != PLAN_UNLIMITED))))) {
        return ERR_OK;
    }
    return diag_set(&request->diag,
                    ERR_INVALID,
                    "invalid maximum \"%s\" of \"%s\": use %s",
                    text != NULL ? text : "",
                    limit->name,
                    share    ? "a number from 0 to 1000000, a percentage of "
                               "\"sessions\" from 1% to 100%, or none"
                    : window ? "a number from 1 to 1000000"
                             : "a number from 0 to 1000000, or none");
}

/* Describe a maximum, and append it to the answer. */
static void
add_max(struct request *request, int64_t max, uint32_t percent, int64_t now)
{
    if (percent > 0) {
        strbuf_addf(&request->text, "%u%%", percent);
        request_add_count(request, "percent", percent);
        if (now != LIMIT_NONE) {
            strbuf_addf(&request->text, " (%lld)", (long long)now);
        }
    } else if (max == LIMIT_NONE) {
        strbuf_adds(&request->text, "none");
    } else {
        strbuf_addf(&request->text, "%lld", (long long)max);
    }
    int64_t effective = percent > 0 ? now : max;
    struct jsonw json = request_extra(request);
    jsonw_int_if(&json, "max", effective != LIMIT_NONE, effective);
}

/* Whether a limit of the store can have this name; *known_out: a run uses the
 * provider, or it is "sessions". False with an error: a similar name exists. */
static bool
check_ceiling(struct request *request, const char *name, bool *known_out)
{
    const struct engine *engine = request->engine;
    struct suggest guess;
    uint32_t budget = SUGGEST_BUDGET;
    suggest_init(&guess, name, strlen(name), &budget);
    (void)suggest_offer(&guess, "sessions");
    *known_out = strcmp(name, "sessions") == 0;
    for (uint32_t run = 0; run < engine->run_count; run++) {
        const struct load_run *loaded = engine->runs[run].loaded;
        for (uint32_t ix = 0; ix < load_store_limit_count(loaded); ix++) {
            const char *other =
                load_store_limit_name(loaded, load_store_limit_at(loaded, ix));
            (void)suggest_offer(&guess, other);
            *known_out = *known_out || strcmp(name, other) == 0;
        }
    }
    if (!*known_out && ceilings_find(engine, name) == NULL &&
        guess.best != NULL) {
        (void)diag_set(&request->diag,
                       ERR_NOT_FOUND,
                       "the store has no limit \"%s\"%s: use \"sessions\" or "
                       "the name of a provider",
                       name,
                       suggest_hint(&guess));
        return false;
    }
    return true;
}

/* Set a limit of the store, or leave it to settings.yaml. */
static enum err set_ceiling(struct request *request, const char *name)
{
    struct engine *engine = request->engine;
    const char *text = request_text(request, "max");
    bool unset = text != NULL && strcmp(text, "default") == 0;
    bool known;
    int64_t max = 0;
    if (text == NULL || (!unset && !site_parse_max(text, &max))) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "invalid maximum \"%s\" of \"%s\": use a number from "
                        "0 to 1000000, none, or default for that of "
                        "settings.yaml",
                        text != NULL ? text : "",
                        name);
    }
    if (!check_ceiling(request, name, &known)) {
        return ERR_NOT_FOUND;
    }
    if (unset) {
        ceilings_unset(engine, name);
    } else {
        ceilings_set(engine, name, max);
    }
    const struct engine_ceiling *ceiling = ceilings_find(engine, name);
    bool from_file = ceiling != NULL && !ceiling->ordered && ceiling->from_file;
    strbuf_addf(&request->text, "limit %s of the store: ", name);
    add_max(request,
            ceiling != NULL ? ceilings_max(ceiling) : LIMIT_NONE,
            0,
            LIMIT_NONE);
    if (from_file) {
        strbuf_adds(&request->text, ", from settings.yaml");
    }
    if (!known) {
        strbuf_addf(&request->text,
                    "; no unfinished run has a provider \"%s\"",
                    name);
    }
    request_add(request, "limit", name);
    struct jsonw json = request_extra(request);
    jsonw_bool(&json, "store", true);
    return ERR_OK;
}

enum err request_do_limit(struct request *request)
{
    struct engine *engine = request->engine;
    const char *name = request_text(request, "limit");
    if (name == NULL) {
        return diag_set(&request->diag,
                        ERR_INVALID,
                        "\"limit\" needs the name of a limit");
    }
    if (json_is_true(json_object_get(request->json, "store"))) {
        return set_ceiling(request, name);
    }
    uint32_t run = request_find_run(request);
    uint32_t limit =
        run != STORE_NONE ? find_limit(request, run, name) : PLAN_NONE;
    if (limit == PLAN_NONE) {
        return request->missing;
    }
    struct caps_max max;
    enum err err = read_max(request, run, limit, &max);
    if (err != ERR_OK) {
        return err;
    }
    caps_set(engine, run, limit, max);
    int64_t now = sched_limit_max(engine->sched,
                                  load_limit(engine->runs[run].loaded, limit));
    strbuf_addf(&request->text,
                "limit %s of run %s: ",
                name,
                engine->runs[run].id);
    add_max(request, max.max, max.percent, now);
    if (max.percent == 0 && now < max.max) {
        strbuf_addf(&request->text,
                    ", lowered to %lld for now; 'sluice status' shows why",
                    (long long)now);
    }
    request_add(request, "limit", name);
    request_add(request, "run", engine->runs[run].id);
    return ERR_OK;
}

/* Enable or disable usage monitors, in the whole store. */
enum err request_do_usage(struct request *request)
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
    struct jsonw json = request_extra(request);
    jsonw_bool(&json, "override", engine->override);
    return ERR_OK;
}

/* Return the budget that the request names, or PLAN_NONE with an error. */
static uint32_t
find_budget(struct request *request, uint32_t run, const char *unit)
{
    const struct plan *plan = request->engine->runs[run].plan;
    const char *class_name = request_text(request, "class");
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
    if (!request_find_task(request, &run, &task)) {
        return request->missing;
    }
    struct plan_cost budget = caps_task_budget(engine, run, task);
    budget.usd = amount->usd != PLAN_UNSET ? amount->usd : budget.usd;
    budget.tokens =
        amount->tokens != PLAN_UNSET ? amount->tokens : budget.tokens;
    caps_raise(engine, run, task, &budget);
    const struct engine_past *past = runs_past(&engine->runs[run].tasks[task]);
    struct task_id id = engine_core_task(engine, run, task);
    struct strbuf reason = {0};
    if (sched_task(engine->sched, id).state == TASK_PARKED &&
        carry_lack(past->carry, past->reason) == OUTCOME_LACKS_MONEY &&
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
    struct jsonw json = request_extra(request);
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

enum err request_do_budget(struct request *request)
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
    if (request_text(request, "task") != NULL) {
        return set_task_budget(request, &amount);
    }
    uint32_t run = request_find_run(request);
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
        caps_set(request->engine,
                 run,
                 usd,
                 (struct caps_max){.max = amount.usd});
    }
    if (amount.tokens != PLAN_UNSET) {
        caps_set(request->engine,
                 run,
                 tokens,
                 (struct caps_max){.max = amount.tokens});
    }
    request->engine->runs[run].broke = false;
    strbuf_addf(&request->text,
                "budget of run %s is set",
                request->engine->runs[run].id);
    add_budgets(request, run, usd, tokens, &amount);
    return ERR_OK;
}
