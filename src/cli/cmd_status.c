/* SPDX-License-Identifier: MIT */
/* sluice status: print the scheduler, running sessions and waiting tasks. */
#include "base/duration.h"
#include "base/mem.h"
#include "base/plain.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "view/glance.h"
#include "view/labels.h"
#include "view/lines.h"
#include "view/model.h"
#include "view/usage.h"
#include "view/waiting.h"
#include "work/owner.h"

#include <string.h>

enum {
    PEOPLE_MAX = 20, /* listed tasks that need attention */
    NAME_COLUMNS = 30,
    PARTS_MAX = 40, /* listed groups with parts, and their parts */
    DEPTH_MAX = 8,  /* deeper parts are not indented further */
};

/* --- scheduler ---------------------------------------------------------- */

static void add_scheduler(struct strbuf *out, const struct client_view *view)
{
    long long pid = owner_process(&view->owner);
    strbuf_adds(out, "scheduler: ");
    if (!view->owned) {
        strbuf_adds(out,
                    "none; sessions keep running, 'sluice run' adopts them\n");
        return;
    }
    strbuf_addf(out, "pid %lld on ", pid);
    plain_add(out, view->owner.host);
    if (view->stopped) {
        strbuf_addf(
            out,
            " is STOPPED (SIGSTOP, Ctrl-Z or a debugger): 'kill -CONT %lld' "
            "continues it, 'sluice run --take-over' replaces it\n",
            pid);
        return;
    }
    if (view->silent_ns > 0) {
        strbuf_adds(out, " has been SILENT for ");
        duration_add(out, view->silent_ns);
        strbuf_adds(out,
                    ": it may hang; 'sluice run --take-over' replaces it\n");
        return;
    }
    bool troubled = view->owner.trouble[0] != '\0';
    if (view->owner.age_ns >= 0) {
        strbuf_adds(out, troubled ? ", running for " : ", alive for ");
        duration_add(out, view->owner.age_ns);
    }
    if (troubled) {
        strbuf_adds(out, ", in TROUBLE: ");
        plain_add(out, view->owner.trouble);
        strbuf_adds(out, "; it retries");
    }
    strbuf_adds(out, "\n");
}

/* --- run, as text ------------------------------------------------------- */

/* Append a name, padded to this many columns. */
static void add_columns(struct strbuf *out, const char *name, uint32_t wanted)
{
    size_t before = out->len;
    plain_add(out, name);
    uint32_t columns = plain_columns(out->text + before);
    strbuf_pad(out, ' ', columns < wanted ? wanted - columns : 1);
}

static void add_name(struct strbuf *out, const char *name)
{
    add_columns(out, name, NAME_COLUMNS);
}

static void add_head(struct strbuf *out, const struct model_run *run)
{
    strbuf_addf(out, "\nrun %s: ", run->id);
    plain_add(out, run->name);
    strbuf_adds(out, ", submitted ");
    duration_add(out, run->age_ns);
    strbuf_adds(out, " ago");
    strbuf_adds(out, run->finished ? ", finished" : "");
    strbuf_adds(out, run->cancelled ? ", cancelled" : "");
    strbuf_adds(out, run->paused ? ", PAUSED" : "");
    bool stopped = !run->finished && run->stopped != SCHED_NOT_STOPPED;
    strbuf_adds(out, stopped ? ", STOPPED" : "");
    strbuf_addf(out,
                "\n  %u task%s",
                run->task_count,
                run->task_count == 1 ? "" : "s");
    lines_add_counts(out, ": ", run->counts, model_order, TASK_STATE_COUNT);
    if (run->snoozed > 0) {
        strbuf_addf(out, "; %u snoozed", run->snoozed);
    }
    if (run->finished && run->outcome != NULL) {
        strbuf_addf(out, "; outcome: %s", run->outcome);
    }
    strbuf_adds(out, "\n");
}

/* Add why the run is stopped, or when it starts and will be stopped. */
static void add_stop(struct strbuf *out,
                     const struct glance *glance,
                     const struct model_run *run)
{
    bool several = engine_run_count(glance->view.engine) > 1;
    if (run->stopped != SCHED_NOT_STOPPED) {
        strbuf_adds(out, "  ");
        reasons_add_halt(out,
                         run->stopped,
                         run->stopper,
                         several ? run->id : NULL);
        strbuf_adds(out, "\n");
    }
    if (run->not_before_ns > glance->wall_ns) {
        strbuf_adds(out, "  starts nothing before ");
        usage_add_time(out, run->not_before_ns, glance->wall_ns);
        strbuf_adds(out, "\n");
    }
    if (run->stopped == SCHED_NOT_STOPPED && run->deadline_ns > 0) {
        strbuf_adds(out, "  deadline: ");
        usage_add_time(out, run->deadline_ns, glance->wall_ns);
        strbuf_adds(out, "\n");
    }
}

/* Add the labels that the listed tasks have. */
static void add_labels(struct strbuf *out,
                       const struct glance *glance,
                       const struct model *model)
{
    if (glance->labels.count > 0) {
        strbuf_adds(out, "  with label ");
        labels_add(out, &glance->labels);
        strbuf_addf(out,
                    ": %u task%s, %u session%s in flight\n",
                    model->row_count,
                    model->row_count == 1 ? "" : "s",
                    model->slot_count,
                    model->slot_count == 1 ? "" : "s");
    }
}

/* Add the groups with parts, each part below its parent. Finished parts of an
 * unfinished parent are counted only. */
static void add_parts(struct strbuf *out,
                      const struct glance *glance,
                      const struct model *model)
{
    const struct plan *plan = engine_plan(glance->view.engine, model->shown);
    uint32_t lines = 0;
    uint32_t left = 0;
    for (uint32_t ix = 0; ix < model->issue_count; ix++) {
        const struct model_issue *issue = &model->issues[ix];
        if ((issue->depth == 0 && !issue->has_parts) ||
            issue->whole == MODEL_ENDED) {
            continue;
        }
        if (lines == PARTS_MAX) {
            left++;
            continue;
        }
        strbuf_adds(out, lines++ == 0 ? "  groups:\n" : "");
        uint32_t depth = issue->depth < DEPTH_MAX ? issue->depth : DEPTH_MAX;
        strbuf_pad(out, ' ', 4 + 2 * depth);
        add_columns(out, issue->id, NAME_COLUMNS - 2 * depth);
        strbuf_addf(out, "%u of %u done", issue->done, issue->total);
        labels_add_own(out, &plan->groups[issue->index].labels);
        strbuf_adds(out, "\n");
    }
    if (left > 0) {
        strbuf_addf(out, "    ... and %u more\n", left);
    }
}

/* Append limits, the cap first, as in the plan; omit limits that are unused or
 * unlimited. */
static void add_limits(struct strbuf *out, const struct model *model)
{
    strbuf_adds(out, "  limits:");
    const char *comma = " ";
    for (uint32_t ix = 0; ix < model->limit_total; ix++) {
        const struct model_limit *limit = &model->limits[ix];
        if (ix > 0 && (limit->used == 0 || limit->max == LIMIT_NONE)) {
            continue;
        }
        strbuf_addf(out,
                    "%s%s %lld",
                    comma,
                    limit->name,
                    (long long)limit->used);
        comma = ", ";
        if (limit->max == LIMIT_NONE) {
            strbuf_adds(out, " (no limit)");
            continue;
        }
        strbuf_addf(out,
                    limit->per != NULL ? " (at most %lld per " : " of %lld",
                    (long long)limit->max);
        if (limit->per != NULL) {
            strbuf_addf(out, "%s)", limit->per);
        }
        if (limit->set > limit->max) {
            strbuf_adds(out, " (lowered by usage");
            if (limit->set != LIMIT_NONE) {
                strbuf_addf(out, " from %lld", (long long)limit->set);
            }
            strbuf_adds(out, ")");
        }
    }
    strbuf_adds(out, "\n");
}

static void
add_sessions(struct strbuf *out, const struct model *model, bool owned)
{
    strbuf_adds(out, model->slot_count > 0 ? "  in flight:\n" : "");
    for (uint32_t ix = 0; ix < model->slot_count; ix++) {
        const struct model_slot *slot = &model->slots[ix];
        int64_t gone_ns = model->wall_ns - slot->since_ns;
        strbuf_adds(out, "    ");
        add_name(out, slot->task);
        strbuf_addf(out, "attempt %u, ", slot->attempt);
        if (slot->process > 0) {
            strbuf_addf(out, "pid %lld", (long long)slot->process);
            strbuf_addf(out,
                        "%s%s, ",
                        slot->worker[0] != '\0' ? " on " : "",
                        slot->worker);
        }
        strbuf_adds(out, slot->begun ? "" : "starting for ");
        duration_add(out, gone_ns > 0 ? gone_ns : 0);
        if (slot->more > 0) {
            strbuf_addf(out, ", with %u more tasks", slot->more);
        }
        queue_add(out, &slot->queue);
        if (!owned && slot->gone) {
            strbuf_adds(out, ", has exited: the next scheduler records it");
        }
        strbuf_adds(out, "\n");
    }
}

static void add_people(struct strbuf *out,
                       const struct glance *glance,
                       const struct model *model)
{
    uint32_t count = model->part_counts[MODEL_PEOPLE];
    strbuf_adds(
        out,
        count == 0
            ? ""
            : "  need attention ('sluice why TASK' explains what to do):\n");
    for (uint32_t ix = 0; ix < count && ix < PEOPLE_MAX; ix++) {
        uint32_t task = model->rows[ix].task;
        struct reason reason =
            snapshot_reason(glance->snapshot, model->shown, task);
        const char *said =
            engine_reason(glance->view.engine, model->shown, task);
        strbuf_adds(out, "    ");
        add_name(out, model->id(model, task));
        reasons_add(out, &reason);
        if (said != NULL) {
            strbuf_adds(out, ": ");
            plain_add(out, said);
        }
        strbuf_adds(out, "\n");
    }
    if (count > PEOPLE_MAX) {
        strbuf_addf(out, "    ... and %u more\n", count - PEOPLE_MAX);
    }
}

static void add_group(struct strbuf *out,
                      const struct model *model,
                      const struct waiting_group *group)
{
    strbuf_adds(out, "    ");
    if (group->count == 1) {
        add_name(out, model->id(model, group->first[0]));
        strbuf_addf(out, "%s\n", group->text);
        return;
    }
    struct strbuf name = {0};
    strbuf_addf(&name, "%u tasks", group->count);
    add_name(out, strbuf_text(&name));
    strbuf_release(&name);
    strbuf_addf(out, "%s (", group->text);
    for (uint32_t n = 0; n < group->count && n < WAITING_NAMES; n++) {
        strbuf_addf(out,
                    "%s%s",
                    n > 0 ? ", " : "",
                    model->id(model, group->first[n]));
    }
    strbuf_adds(out, group->count > WAITING_NAMES ? ", ...)\n" : ")\n");
}

static void add_waiting(struct strbuf *out, const struct model *model)
{
    struct waiting waiting;
    waiting_fill(&waiting, model);
    strbuf_adds(out, waiting.count > 0 ? "  waiting:\n" : "");
    for (uint32_t ix = 0; ix < waiting.count; ix++) {
        add_group(out, model, &waiting.groups[ix]);
    }
    if (waiting.left > 0) {
        strbuf_addf(out,
                    "    ... and %u more, for other reasons (--json lists "
                    "all)\n",
                    waiting.left);
    }
    waiting_release(&waiting);
}

/* Add the bases that are not merged, although `sync: merge` asks for it. */
static void
add_bases(struct strbuf *out, const struct engine *engine, uint32_t run)
{
    struct engine_bad_base bad;
    for (uint32_t ix = 0; ix < engine_plan(engine, run)->repo_count; ix++) {
        if (engine_bad_base(engine, run, ix, &bad)) {
            strbuf_adds(out, "  ");
            reasons_add_base(out, &bad);
            strbuf_adds(out, "\n");
        }
    }
}

/* Add when the run is expected to end. */
static void add_end(struct strbuf *out, const struct model_run *run)
{
    if (run->left_ns <= 0 || run->left_ns == SCHED_NEVER) {
        return;
    }
    if (run->forecast.runs > 0) {
        strbuf_adds(out, "  end ");
        eta_add_text(out, &run->forecast, run->forecast_ns);
        strbuf_adds(out, "\n");
    } else {
        strbuf_adds(out, "  about ");
        duration_add(out, run->left_ns);
        strbuf_adds(out, " left by estimates\n");
    }
}

static void
add_run(struct strbuf *out, const struct glance *glance, const char *id)
{
    struct model model = {0};
    model_fill(&model, glance, id, true);
    const struct model_run *run = &model.runs[model.run];
    add_head(out, run);
    if (!run->finished) {
        struct engine *engine = glance->view.engine;
        add_stop(out, glance, run);
        add_labels(out, glance, &model);
        add_limits(out, &model);
        usage_add_monitors(out, engine, model.shown, glance->wall_ns, "  ");
        usage_add_budgets(out, glance, model.shown, "  ");
        add_bases(out, engine, model.shown);
        add_sessions(out, &model, glance->view.owned);
        add_people(out, glance, &model);
        add_waiting(out, &model);
        add_parts(out, glance, &model);
        add_end(out, run);
    }
    model_release(&model);
}

/* --- command ------------------------------------------------------------ */

/* Whether a run is shown. A scheduler may still have finished ones. */
static bool is_shown(const struct glance_options *options,
                     const struct engine_run_view *run)
{
    return glance_is_meant(options, run) &&
           (!run->finished || options->finished || options->run != NULL);
}

void cmd_status_add(struct strbuf *out,
                    const struct glance *glance,
                    const struct glance_options *options)
{
    struct engine *engine = glance->view.engine;
    uint32_t count = 0;
    strbuf_addf(out, "store: %s\n", glance->place.shown);
    add_scheduler(out, &glance->view);
    usage_add_override(out, engine);
    usage_add_stopped(out, engine);
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        if (is_shown(options, &view)) {
            add_run(out, glance, view.id);
            count++;
        }
    }
    if (count == 0) {
        strbuf_adds(
            out,
            "\nno unfinished run; 'sluice status --all' lists finished ones\n");
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_line line = {0};
    int code = cli_parse(&line, command, argc, argv);
    line.wanted.forecast = true;
    return code == CLI_END
               ? cli_show(&line, line.json ? model_add_json : cmd_status_add)
               : code;
}

static const struct cli_option options[] = {
    {"all", NULL, "show finished runs, too", CLI_AT(cli_line, wanted.finished)},
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_LABEL,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_status = {
    .name = "status",
    .synopsis = "[--all] [--json] [--label LABEL]... [--store DIR] [RUN]",
    .summary = "show the scheduler, running sessions, and why tasks wait",
    .options = options,
    .operand = CLI_OPERAND_RUN,
    .run = run,
};
