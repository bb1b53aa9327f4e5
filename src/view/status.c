/* SPDX-License-Identifier: MIT */
#include "view/status.h"

#include "base/jsonw.h"
#include "view/model.h"
#include "view/usage.h"

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

static void json_scheduler(struct strbuf *out, const struct client_view *view)
{
    int64_t age_ns = view->owned ? view->owner.age_ns : -1;
    strbuf_addf(out, "{\"state\": \"%s\", \"pid\": ", client_state_name(view));
    if (view->owned) {
        strbuf_addf(out, "%lld", (long long)view->owner.pid);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_adds(out, ", \"host\": ");
    jsonw_string(out, view->owned ? view->owner.host : NULL);
    strbuf_adds(out, ", \"age_s\": ");
    if (age_ns >= 0) {
        jsonw_seconds(out, age_ns);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_adds(out, ", \"silent_s\": ");
    jsonw_seconds(out, view->silent_ns);
    strbuf_adds(out, ", \"trouble\": ");
    jsonw_string(out,
                 view->owned && view->owner.trouble[0] != '\0'
                     ? view->owner.trouble
                     : NULL);
    strbuf_adds(out, "}");
}

static void json_head(struct strbuf *out, const struct model_run *run)
{
    strbuf_adds(out, "{\"run\": ");
    jsonw_string(out, run->id);
    strbuf_adds(out, ", \"name\": ");
    jsonw_string(out, run->name);
    strbuf_adds(out, ", \"plan\": ");
    jsonw_string(out, run->file);
    strbuf_addf(out,
                ",\n   \"finished\": %s, \"paused\": %s, \"cancelled\": %s, "
                "\"age_s\": ",
                run->finished ? "true" : "false",
                run->paused ? "true" : "false",
                run->cancelled ? "true" : "false");
    jsonw_seconds(out, run->age_ns);
    strbuf_adds(out, ", \"left_s\": ");
    if (run->left_ns == SCHED_NEVER) {
        strbuf_adds(out, "null");
    } else {
        jsonw_seconds(out, run->left_ns);
    }
    strbuf_adds(out, ",\n   \"states\": {");
    for (size_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        strbuf_addf(out,
                    "%s\"%s\": %u",
                    ix > 0 ? ", " : "",
                    sched_state_name(status_order[ix]),
                    run->counts[status_order[ix]]);
    }
    strbuf_adds(out, "}");
}

static void json_limits(struct strbuf *out, const struct model *model)
{
    strbuf_adds(out, ",\n   \"limits\": [");
    for (uint32_t ix = 0; ix < model->limit_total; ix++) {
        const struct model_limit *limit = &model->limits[ix];
        strbuf_adds(out, ix > 0 ? ", {\"limit\": " : "{\"limit\": ");
        jsonw_string(out, limit->name);
        strbuf_addf(out, ", \"used\": %lld, \"max\": ", (long long)limit->used);
        if (limit->max == LIMIT_NONE) {
            strbuf_adds(out, "null");
        } else {
            strbuf_addf(out, "%lld", (long long)limit->max);
        }
        strbuf_adds(out, ", \"per\": ");
        jsonw_string(out, limit->per);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void json_sessions(struct strbuf *out, const struct model *model)
{
    strbuf_adds(out, ",\n   \"sessions\": [");
    for (uint32_t ix = 0; ix < model->slot_count; ix++) {
        const struct model_slot *slot = &model->slots[ix];
        int64_t gone_ns = model->wall_ns - slot->since_ns;
        strbuf_adds(out, ix > 0 ? ",\n    {\"task\": " : "\n    {\"task\": ");
        jsonw_string(out, slot->task);
        strbuf_addf(out,
                    ", \"attempt\": %u, \"tasks\": %u, \"pid\": ",
                    slot->attempt,
                    slot->more + 1);
        if (slot->pid > 0) {
            strbuf_addf(out, "%lld", (long long)slot->pid);
        } else {
            strbuf_adds(out, "null");
        }
        strbuf_addf(out,
                    ", \"started\": %s, \"ended\": %s, \"elapsed_s\": ",
                    slot->begun ? "true" : "false",
                    slot->gone ? "true" : "false");
        jsonw_seconds(out, gone_ns > 0 ? gone_ns : 0);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void
json_tasks(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    strbuf_adds(out, ",\n   \"tasks\": [");
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        struct reason reason = snapshot_reason(glance->snapshot, run, ix);
        strbuf_adds(out, ix > 0 ? ",\n    {\"id\": " : "\n    {\"id\": ");
        jsonw_string(out, view.plan->tasks[ix].id);
        strbuf_addf(out,
                    ", \"state\": \"%s\", \"attempt\": %u, \"reason\": ",
                    sched_state_name(reason.state),
                    engine_attempt_number(glance->view.engine, run, ix));
        jsonw_string(out, engine_reason(glance->view.engine, run, ix));
        double usd;
        int64_t tokens;
        engine_task_cost(glance->view.engine, run, ix, &usd, &tokens);
        strbuf_addf(out,
                    ", \"usd\": %.10g, \"tokens\": %lld",
                    usd,
                    (long long)tokens);
        strbuf_adds(out, ",\n     \"why\": ");
        reasons_add_json(out, &reason);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]}");
}

void status_add_json(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    struct engine *engine = glance->view.engine;
    const char *comma = "";
    strbuf_adds(out, "{\"store\": ");
    jsonw_string(out, glance->dir);
    strbuf_adds(out, ",\n \"scheduler\": ");
    json_scheduler(out, &glance->view);
    strbuf_addf(out,
                ",\n \"override\": %s,\n \"runs\": [",
                engine_is_overridden(engine) ? "true" : "false");
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        if (glance_is_meant(options, &view)) {
            strbuf_addf(out, "%s\n  ", comma);
            comma = ",";
            struct model model = {0};
            model_fill(&model, glance, view.id, true);
            json_head(out, &model.runs[model.run]);
            json_limits(out, &model);
            strbuf_adds(out, ",\n   \"usage\": ");
            usage_json_monitors(out, glance, ix);
            strbuf_adds(out, ",\n   \"budgets\": ");
            usage_json_budgets(out, glance, ix);
            json_sessions(out, &model);
            json_tasks(out, glance, ix);
            model_release(&model);
        }
    }
    strbuf_adds(out, "]}\n");
}
