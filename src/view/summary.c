/* SPDX-License-Identifier: MIT */
/*
 * Summary of a run. A failed task keeps its state, so tasks skipped because of
 * it never make a run appear done: the failed task still counts. A failed
 * optional task is listed, but is no failure of the run, and neither are tasks
 * of `finally`, whatever their end.
 */
#include "view/summary.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/plain.h"
#include "view/lines.h"
#include "view/snapshot.h"
#include "view/usage.h"

enum {
    PEOPLE_MAX = 20, /* tasks listed with remedies */
    REST_MAX = 20,   /* other tasks listed */
};

/* Summary being written. */
struct summary {
    struct strbuf *out;
    struct engine *engine;
    struct snapshot *snapshot;
    struct engine_run_view view;
    uint32_t run;
};

static void add_head(const struct summary *summary)
{
    static const enum task_state order[] = {
        TASK_PARKED,
        TASK_FAILED,
        TASK_SKIPPED,
        TASK_CANCELLED,
        TASK_RUNNING,
        TASK_STARTING,
        TASK_READY,
        TASK_WAITING,
    };
    strbuf_addf(summary->out,
                "\n%s: %u of %u task%s done",
                summary->view.id,
                snapshot_count(summary->snapshot, summary->run, TASK_DONE),
                summary->view.plan->task_count,
                summary->view.plan->task_count == 1 ? "" : "s");
    uint32_t counts[TASK_STATE_COUNT];
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        counts[ix] = snapshot_count(summary->snapshot,
                                    summary->run,
                                    (enum task_state)ix);
    }
    lines_add_counts(summary->out, ", ", counts, order, ARRAY_COUNT(order));
    int64_t took_ns =
        engine_info(summary->engine)->wall_ns - summary->view.created_ns;
    strbuf_adds(summary->out, "; ");
    duration_add(summary->out, took_ns > 0 ? took_ns : 0);
    strbuf_adds(summary->out, " since it was submitted\n");
}

/* Add why the run is stopped, if it is. */
static void add_stop(const struct summary *summary)
{
    uint32_t task = snapshot_stopper(summary->snapshot, summary->run);
    if (summary->view.sched.stopped == SCHED_NOT_STOPPED) {
        return;
    }
    strbuf_adds(summary->out, "  ");
    reasons_add_halt(
        summary->out,
        summary->view.sched.stopped,
        task != PLAN_NONE ? summary->view.plan->tasks[task].id : NULL,
        engine_run_count(summary->engine) > 1 ? summary->view.id : NULL);
    strbuf_adds(summary->out, "\n");
}

/* Add the tasks that need an operator, with the commands that help. */
static void add_people(const struct summary *summary)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < summary->view.plan->task_count; ix++) {
        if (!snapshot_needs_person(summary->snapshot, summary->run, ix) ||
            ++count > PEOPLE_MAX) {
            continue;
        }
        struct reason reason =
            snapshot_reason(summary->snapshot, summary->run, ix);
        const char *said = engine_reason(summary->engine, summary->run, ix);
        strbuf_addf(summary->out, "\n  %s ", summary->view.plan->tasks[ix].id);
        reasons_add(summary->out, &reason);
        if (said != NULL) {
            strbuf_adds(summary->out, ": ");
            plain_add(summary->out, said);
        }
        strbuf_adds(summary->out, "\n");
        reasons_add_remedies(
            summary->out,
            &reason,
            summary->view.plan->tasks[ix].id,
            engine_run_count(summary->engine) > 1 ? summary->view.id : NULL,
            (struct reasons_layout){"", 4, 36});
    }
    if (count > PEOPLE_MAX) {
        strbuf_addf(summary->out,
                    "\n  ... and %u more; 'sluice status' lists them\n",
                    count - PEOPLE_MAX);
    }
}

/* Whether a task is not done and needs no operator; add_people() lists the
 * others. */
static bool is_rest(const struct summary *summary, uint32_t task)
{
    enum task_state state =
        snapshot_state(summary->snapshot, summary->run, task);
    return state != TASK_DONE &&
           !snapshot_needs_person(summary->snapshot, summary->run, task);
}

/* Add the other tasks that are not done, with their reasons. */
static void add_rest(const struct summary *summary)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < summary->view.plan->task_count; ix++) {
        if (!is_rest(summary, ix) || ++count > REST_MAX) {
            continue;
        }
        struct reason reason =
            snapshot_reason(summary->snapshot, summary->run, ix);
        strbuf_addf(summary->out,
                    "%s  %-30s %-10s ",
                    count == 1 ? "\n" : "",
                    summary->view.plan->tasks[ix].id,
                    sched_state_name(reason.state));
        const char *said = engine_reason(summary->engine, summary->run, ix);
        if (reason.state == TASK_FAILED) {
            strbuf_adds(summary->out,
                        summary->view.plan->tasks[ix].last ? "comes last: "
                                                           : "optional: ");
            plain_add(summary->out, said != NULL ? said : "no reason given");
        } else if (reason.code != WHY_RUNNING) {
            reasons_add(summary->out, &reason);
        } else {
            strbuf_adds(summary->out, "its session keeps running");
        }
        strbuf_adds(summary->out, "\n");
    }
    if (count > REST_MAX) {
        strbuf_addf(summary->out, "  ... and %u more\n", count - REST_MAX);
    }
}

void summary_add(struct strbuf *out, struct engine *engine, uint32_t run)
{
    struct summary summary = {
        .out = out,
        .engine = engine,
        .snapshot = snapshot_new(engine, false),
        .view = engine_run(engine, run),
        .run = run,
    };
    add_head(&summary);
    add_stop(&summary);
    usage_add_stopped(out, engine);
    add_people(&summary);
    add_rest(&summary);
    snapshot_free(summary.snapshot);
}

bool summary_is_done(struct engine *engine, uint32_t run)
{
    struct engine_run_view view = engine_run(engine, run);
    const struct sched *sched = engine_sched(engine);
    bool cancelled = sched_run(sched, (struct run_id){run}).cancelled;
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        struct sched_task task = sched_task(sched, load_task(view.loaded, ix));
        if (view.plan->tasks[ix].last) {
            continue;
        }
        bool good = task.state == TASK_DONE || task.state == TASK_SKIPPED ||
                    (task.state == TASK_FAILED && !cancelled &&
                     view.plan->tasks[ix].settings->optional);
        if (!good || task.revoked) {
            return false;
        }
    }
    return true;
}

const char *summary_outcome(struct engine *engine, uint32_t run)
{
    struct engine_run_view view = engine_run(engine, run);
    if (!view.finished && !view.quiet) {
        return NULL;
    }
    return view.sched.cancelled                      ? "cancelled"
           : summary_is_done(engine, run)            ? "done"
           : view.sched.stopped != SCHED_NOT_STOPPED ? "stopped"
                                                     : "failed";
}
