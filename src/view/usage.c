/* SPDX-License-Identifier: MIT */
#include "view/usage.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "base/plain.h"

void usage_add_time(struct strbuf *out, int64_t at_ns, int64_t wall_ns)
{
    bool near = at_ns - wall_ns < DAY_NS && wall_ns - at_ns < DAY_NS;
    plain_add_clock(out, at_ns, near ? PLAIN_SECONDS : PLAIN_DATE);
}

void usage_add_state(struct strbuf *out,
                     const struct engine *engine,
                     uint32_t run,
                     uint32_t ix,
                     int64_t wall_ns)
{
    struct engine_usage_view view = engine_usage(engine, run, ix);
    if (view.read_ns == 0) {
        strbuf_adds(out, "not read yet: no session starts until then");
        if (view.error != NULL) {
            strbuf_adds(out, "; next reading at ");
            usage_add_time(out, view.next_ns, wall_ns);
        }
        return;
    }
    if (view.cap == LIMIT_NONE) {
        strbuf_adds(out, "lowers no cap");
    } else if (view.cap > 0) {
        strbuf_addf(out, "cap %lld", (long long)view.cap);
    } else {
        strbuf_adds(out, "paused");
        if (view.until_ns > 0) {
            strbuf_adds(out, " until ");
            usage_add_time(out, view.until_ns, wall_ns);
        } else {
            strbuf_adds(out, ", reset unknown, next reading at ");
            usage_add_time(out, view.next_ns, wall_ns);
        }
    }
    if (view.cap != LIMIT_NONE && view.meter_count > 0) {
        struct engine_meter meter =
            engine_usage_meter(engine, run, ix, view.governs);
        strbuf_adds(out, " by ");
        plain_add(out, meter.name);
        strbuf_addf(out, " at %.4g %%", meter.percent);
    }
}

static void add_steps(struct strbuf *out, const struct plan_usage *usage)
{
    for (uint32_t ix = 0; ix < usage->step_count; ix++) {
        strbuf_addf(out,
                    "%s%u %%: %u",
                    ix > 0 ? ", " : "; steps ",
                    usage->steps[ix].percent,
                    usage->steps[ix].cap);
    }
}

static void add_meters(struct strbuf *out,
                       const struct engine *engine,
                       uint32_t run,
                       uint32_t ix,
                       int64_t wall_ns,
                       const char *indent)
{
    struct engine_usage_view view = engine_usage(engine, run, ix);
    for (uint32_t n = 0; n < view.meter_count; n++) {
        struct engine_meter meter = engine_usage_meter(engine, run, ix, n);
        strbuf_addf(out, "%s  ", indent);
        plain_add(out, meter.name);
        strbuf_addf(out, " %.4g %%", meter.percent);
        if (meter.resets_ns > 0) {
            strbuf_adds(out, ", resets at ");
            usage_add_time(out, meter.resets_ns, wall_ns);
        }
        strbuf_adds(out,
                    n == view.governs && view.meter_count > 1 ? ", governs\n"
                                                              : "\n");
    }
}

void usage_add_monitors(struct strbuf *out,
                        const struct engine *engine,
                        uint32_t run,
                        int64_t wall_ns,
                        const char *indent)
{
    const struct plan *plan = engine_plan(engine, run);
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        struct engine_usage_view view = engine_usage(engine, run, ix);
        strbuf_addf(out, "%susage", indent);
        if (view.provider != NULL) {
            strbuf_addf(out, " of %s", view.provider);
        }
        strbuf_adds(out, ": ");
        usage_add_state(out, engine, run, ix, wall_ns);
        add_steps(out, &plan->usages[ix]);
        strbuf_adds(out, "\n");
        add_meters(out, engine, run, ix, wall_ns, indent);
        if (view.error != NULL) {
            strbuf_addf(out, "%s  cannot be read: ", indent);
            plain_add(out, view.error);
            strbuf_adds(out, "\n");
        }
    }
}

void usage_add_stopped(struct strbuf *out, const struct engine *engine)
{
    const struct load *load = engine_loader(engine);
    for (uint32_t ix = 0; ix < load_provider_count(load); ix++) {
        struct provider_id id = {ix};
        const char *reason = engine_stop_reason(engine, id);
        if (reason != NULL) {
            const char *name = load_provider_name(load, id);
            strbuf_addf(out, "provider %s is stopped: ", name);
            plain_add(out, reason);
            strbuf_addf(out,
                        "\n    sluice resume --provider %s: use it again\n",
                        name);
        }
    }
}

void usage_add_override(struct strbuf *out, const struct engine *engine)
{
    if (engine_is_overridden(engine)) {
        strbuf_adds(out,
                    "usage is OVERRIDDEN: it pauses nothing and lowers no cap "
                    "(undo: 'sluice usage --override off')\n");
    }
}

void usage_add_amount(struct strbuf *out,
                      enum plan_limit_kind kind,
                      int64_t units)
{
    if (kind == PLAN_LIMIT_BUDGET_USD) {
        strbuf_addf(out, "%.2f USD", (double)units / PLAN_USD);
    } else {
        strbuf_addf(out, "%lld tokens", (long long)units);
    }
}

/* Expected cost of the sessions in flight for a budget. */
static int64_t
expected(const struct glance *glance, uint32_t run, uint32_t limit)
{
    const struct plan *plan = engine_plan(glance->view.engine, run);
    const struct plan_limit *of = &plan->limits[limit];
    struct engine_session_view session = {0};
    int64_t units = 0;
    while (glance_next_session(glance, run, session.token, &session)) {
        const struct plan_task *task = &plan->tasks[session.task];
        struct plan_cost cost = plan_expected_cost(plan, task);
        if (plan_budget_units(plan, of, task) > 0) {
            units += of->kind == PLAN_LIMIT_BUDGET_USD ? cost.usd : cost.tokens;
        }
    }
    return units;
}

void usage_add_budgets(struct strbuf *out,
                       const struct glance *glance,
                       uint32_t run,
                       const char *indent)
{
    const struct engine *engine = glance->view.engine;
    struct engine_run_view view = engine_run(engine, run);
    for (uint32_t ix = 0; ix < view.plan->limit_count; ix++) {
        const struct plan_limit *limit = &view.plan->limits[ix];
        if (!plan_is_budget(limit)) {
            continue;
        }
        int64_t used = expected(glance, run, ix);
        strbuf_addf(out, "%s%s: ", indent, limit->name);
        usage_add_amount(out, limit->kind, engine_limit_spent(engine, run, ix));
        strbuf_adds(out, " of ");
        usage_add_amount(out, limit->kind, engine_limit_set(engine, run, ix));
        strbuf_adds(out, " spent");
        if (used > 0) {
            strbuf_adds(out, ", ");
            usage_add_amount(out, limit->kind, used);
            strbuf_adds(out, " expected of running sessions");
        }
        strbuf_adds(out, "\n");
    }
}

/* --- JSON --------------------------------------------------------------- */

static void json_time(struct jsonw *json, const char *name, int64_t at_ns)
{
    if (at_ns > 0) {
        jsonw_moment(json, name, at_ns);
    } else {
        jsonw_null(json, name);
    }
}

static void json_meters(struct jsonw *json,
                        const struct engine *engine,
                        uint32_t run,
                        uint32_t ix)
{
    struct engine_usage_view view = engine_usage(engine, run, ix);
    jsonw_array(json, "meters");
    for (uint32_t n = 0; n < view.meter_count; n++) {
        struct engine_meter meter = engine_usage_meter(engine, run, ix, n);
        jsonw_object(json, NULL);
        jsonw_text(json, "name", meter.name);
        jsonw_number(json, "percent", 10, meter.percent);
        json_time(json, "resets_at", meter.resets_ns);
        jsonw_bool(json, "governs", n == view.governs);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

void usage_json_monitors(struct strbuf *out,
                         const struct glance *glance,
                         uint32_t run)
{
    const struct engine *engine = glance->view.engine;
    const struct plan *plan = engine_plan(engine, run);
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_array(&json, NULL);
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        struct engine_usage_view view = engine_usage(engine, run, ix);
        jsonw_object(&json, NULL);
        jsonw_text(&json, "provider", view.provider);
        jsonw_int_if(&json, "cap", view.cap != LIMIT_NONE, view.cap);
        jsonw_bool(&json, "paused", view.cap == 0);
        json_time(&json, "until", view.until_ns);
        json_time(&json, "read_at", view.read_ns);
        jsonw_text(&json, "error", view.error);
        json_meters(&json, engine, run, ix);
        jsonw_array(&json, "steps");
        for (uint32_t n = 0; n < plan->usages[ix].step_count; n++) {
            jsonw_object(&json, NULL);
            jsonw_int(&json, "percent", plan->usages[ix].steps[n].percent);
            jsonw_int(&json, "cap", plan->usages[ix].steps[n].cap);
            jsonw_object_end(&json);
        }
        jsonw_array_end(&json);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
}

static void json_amount(struct jsonw *json,
                        const char *name,
                        const struct plan_limit *limit,
                        int64_t units)
{
    if (limit->kind == PLAN_LIMIT_BUDGET_USD) {
        jsonw_number(json, name, 10, (double)units / PLAN_USD);
    } else {
        jsonw_int(json, name, units);
    }
}

void usage_json_budgets(struct strbuf *out,
                        const struct glance *glance,
                        uint32_t run)
{
    const struct engine *engine = glance->view.engine;
    struct engine_run_view view = engine_run(engine, run);
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_array(&json, NULL);
    for (uint32_t ix = 0; ix < view.plan->limit_count; ix++) {
        const struct plan_limit *limit = &view.plan->limits[ix];
        if (!plan_is_budget(limit)) {
            continue;
        }
        bool usd = limit->kind == PLAN_LIMIT_BUDGET_USD;
        jsonw_object(&json, NULL);
        jsonw_text(&json, "budget", limit->name);
        jsonw_text(&json,
                   "class",
                   limit->where_count > 0 ? limit->where[0].value : NULL);
        jsonw_text(&json, "unit", usd ? "usd" : "tokens");
        json_amount(&json, "max", limit, engine_limit_set(engine, run, ix));
        json_amount(&json, "spent", limit, engine_limit_spent(engine, run, ix));
        json_amount(&json, "expected", limit, expected(glance, run, ix));
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
}
