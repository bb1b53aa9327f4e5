/* SPDX-License-Identifier: MIT */
#include "view/status.h"

#include "base/jsonw.h"
#include "view/model.h"
#include "view/usage.h"
#include "work/owner.h"

const enum task_state status_order[TASK_STATE_COUNT] = {
    TASK_DONE,
    TASK_RUNNING,
    TASK_STARTING,
    TASK_READY,
    TASK_WAITING,
    TASK_PARKED,
    TASK_FAILED,
    TASK_SKIPPED,
    TASK_CANCELLED,
};

static void json_scheduler(struct jsonw *json, const struct client_view *view)
{
    const struct store_owner *owner = &view->owner;
    jsonw_object(json, "scheduler");
    jsonw_text(json, "state", client_state_name(view));
    jsonw_int_if(json, "pid", view->owned, owner_process(owner));
    jsonw_text(json, "host", view->owned ? owner->host : NULL);
    bool aged = view->owned && owner->age_ns >= 0;
    jsonw_duration_if(json, "age_s", aged, owner->age_ns);
    jsonw_duration(json, "silent_s", view->silent_ns);
    jsonw_text(json,
               "trouble",
               view->owned && owner->trouble[0] != '\0' ? owner->trouble
                                                        : NULL);
    jsonw_object_end(json);
}

static void json_head(struct jsonw *json, const struct model_run *run)
{
    jsonw_text(json, "run", run->id);
    jsonw_text(json, "name", run->name);
    jsonw_text(json, "plan", run->file);
    jsonw_line(json, 3);
    jsonw_bool(json, "finished", run->finished);
    jsonw_bool(json, "paused", run->paused);
    jsonw_bool(json, "cancelled", run->cancelled);
    jsonw_duration(json, "age_s", run->age_ns);
    bool ends = run->left_ns != SCHED_NEVER;
    jsonw_duration_if(json, "left_s", ends, run->left_ns);
    jsonw_line(json, 3);
    jsonw_object(json, "states");
    for (size_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        jsonw_int(json,
                  sched_state_name(status_order[ix]),
                  run->counts[status_order[ix]]);
    }
    jsonw_object_end(json);
}

static void json_limits(struct jsonw *json, const struct model *model)
{
    jsonw_list(json, 3, "limits");
    for (uint32_t ix = 0; ix < model->limit_total; ix++) {
        const struct model_limit *limit = &model->limits[ix];
        jsonw_object(json, NULL);
        jsonw_text(json, "limit", limit->name);
        jsonw_int(json, "used", limit->used);
        jsonw_int_if(json, "max", limit->max != LIMIT_NONE, limit->max);
        jsonw_text(json, "per", limit->per);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void json_sessions(struct jsonw *json, const struct model *model)
{
    jsonw_list(json, 3, "sessions");
    for (uint32_t ix = 0; ix < model->slot_count; ix++) {
        const struct model_slot *slot = &model->slots[ix];
        int64_t gone_ns = model->wall_ns - slot->since_ns;
        jsonw_item(json, 4);
        jsonw_text(json, "task", slot->task);
        jsonw_int(json, "attempt", slot->attempt);
        jsonw_int(json, "tasks", slot->more + 1);
        jsonw_int_if(json, "pid", slot->process > 0, slot->process);
        jsonw_bool(json, "started", slot->begun);
        jsonw_bool(json, "ended", slot->gone);
        jsonw_duration(json, "elapsed_s", gone_ns > 0 ? gone_ns : 0);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void
json_tasks(struct jsonw *json, const struct glance *glance, uint32_t run)
{
    const struct engine *engine = glance->view.engine;
    struct engine_run_view view = engine_run(engine, run);
    jsonw_list(json, 3, "tasks");
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        struct reason reason = snapshot_reason(glance->snapshot, run, ix);
        double usd;
        int64_t tokens;
        engine_task_cost(engine, run, ix, &usd, &tokens);
        jsonw_item(json, 4);
        jsonw_text(json, "id", view.plan->tasks[ix].id);
        jsonw_text(json, "state", sched_state_name(reason.state));
        jsonw_int(json, "attempt", engine_attempt_number(engine, run, ix));
        jsonw_text(json, "reason", engine_reason(engine, run, ix));
        jsonw_number(json, "usd", 10, usd);
        jsonw_int(json, "tokens", tokens);
        jsonw_line(json, 5);
        jsonw_name(json, "why");
        reasons_add_json(json->out, &reason);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void
json_run(struct jsonw *json, const struct glance *glance, uint32_t run)
{
    struct model model = {0};
    model_fill(&model, glance, engine_run(glance->view.engine, run).id, true);
    jsonw_item(json, 2);
    json_head(json, &model.runs[model.run]);
    json_limits(json, &model);
    jsonw_line(json, 3);
    jsonw_name(json, "usage");
    usage_json_monitors(json->out, glance, run);
    jsonw_line(json, 3);
    jsonw_name(json, "budgets");
    usage_json_budgets(json->out, glance, run);
    json_sessions(json, &model);
    json_tasks(json, glance, run);
    jsonw_object_end(json);
    model_release(&model);
}

void status_add_json(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    const struct engine *engine = glance->view.engine;
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "store", glance->place.address);
    jsonw_line(&json, 1);
    json_scheduler(&json, &glance->view);
    jsonw_line(&json, 1);
    jsonw_bool(&json, "override", engine_is_overridden(engine));
    jsonw_list(&json, 1, "runs");
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        if (glance_is_meant(options, &view)) {
            json_run(&json, glance, ix);
        }
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
}
