/* SPDX-License-Identifier: MIT */
/*
 * The first replay has the settings of the run, and shows how far a replay can
 * be trusted. The differences of others are to that replay, not to the run:
 * both leave out the same.
 */
#include "cli/from_run.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "cli/results.h"
#include "sim/chart.h"
#include "view/client.h"

#include <string.h>

enum {
    REPLAYS_MAX = 8,
    FAR_PERCENT = 10, /* a replay that differs more deserves a warning */
};

/* One replay, or the run itself. */
struct outcome {
    char *label;
    struct plan *plan; /* NULL for the run, which has that of its history */
    struct sim_result *result;
};

struct replays {
    const struct from_run *options;
    const struct run_history *history;
    struct whatif whatif;
    struct outcome outcomes[REPLAYS_MAX]; /* first with its own settings */
    uint32_t count;
};

/* --- replaying ----------------------------------------------------------- */

/* Replay with these settings, and keep the outcome. */
static int replay(struct replays *replays,
                  const struct whatif_settings *settings)
{
    INVARIANT(replays->count < REPLAYS_MAX);
    struct diag diag = {0};
    struct strbuf label = {0};
    struct outcome *outcome = &replays->outcomes[replays->count];
    enum err err = whatif_run(&replays->whatif,
                              settings,
                              &outcome->plan,
                              &outcome->result,
                              &diag);
    if (err != ERR_OK) {
        return err == ERR_INVALID || err == ERR_LIMIT
                   ? cli_fail(replays->options->line->command, "%s", diag.text)
                   : cli_fail_store(replays->options->line->command,
                                    err,
                                    &diag);
    }
    changes_add_text(&label, replays->history->plan, settings);
    outcome->label =
        mem_strdup(label.len > 0 ? label.text : "replay, same settings");
    replays->count++;
    strbuf_release(&label);
    return CLI_OK;
}

/* Replay every policy, and the default policy with every goal. */
static int replay_policies(struct replays *replays,
                           struct whatif_settings settings)
{
    static const struct {
        enum plan_policy policy;
        enum plan_goal goal;
    } variants[] = {
        {PLAN_POLICY_RANK, PLAN_GOAL_FINISH_ALL},
        {PLAN_POLICY_FAIR, PLAN_GOAL_FINISH_ALL},
        {PLAN_POLICY_FIFO, PLAN_GOAL_FINISH_ALL},
        {PLAN_POLICY_LOOKAHEAD, PLAN_GOAL_FINISH_ALL},
        {PLAN_POLICY_RANK, PLAN_GOAL_FINISH_MANY},
    };
    const enum plan_goal *wanted = settings.goal;
    uint32_t count = ARRAY_COUNT(variants) - (wanted != NULL ? 1 : 0);
    int code = CLI_OK;
    for (uint32_t ix = 0; ix < count && code == CLI_OK; ix++) {
        bool has_goals = variants[ix].policy == PLAN_POLICY_RANK ||
                         variants[ix].policy == PLAN_POLICY_LOOKAHEAD;
        settings.policy = &variants[ix].policy;
        settings.goal = !has_goals       ? NULL
                        : wanted != NULL ? wanted
                                         : &variants[ix].goal;
        code = replay(replays, &settings);
    }
    return code;
}

static int replay_all(struct replays *replays)
{
    const struct from_run *options = replays->options;
    struct changes_found found;
    int code = changes_find(options->changes,
                            options->line->command,
                            replays->history->plan,
                            &found);
    if (code == CLI_OK) {
        code = replay(replays, &(struct whatif_settings){0});
    }
    if (code == CLI_OK && options->compare) {
        code = replay_policies(replays, found.settings);
    } else if (code == CLI_OK &&
               (found.settings.limit_count > 0 ||
                found.settings.policy != NULL || found.settings.goal != NULL)) {
        code = replay(replays, &found.settings);
    }
    return code;
}

/* --- text ---------------------------------------------------------------- */

/* Append "8 min less (3 %)" or "no difference". */
static void add_difference(struct strbuf *out, int64_t ns, int64_t than_ns)
{
    int64_t more_ns = ns - than_ns;
    int64_t size_ns = more_ns < 0 ? -more_ns : more_ns;
    if (size_ns < SECOND_NS / 2) {
        strbuf_adds(out, "no difference");
        return;
    }
    chart_add_duration(out, size_ns);
    strbuf_adds(out, more_ns < 0 ? " less" : " more");
    if (than_ns > 0) {
        strbuf_addf(out,
                    " (%.0f %%)",
                    100.0 * (double)size_ns / (double)than_ns);
    }
}

/* Append which sessions are left out. */
static void add_omissions(struct strbuf *out, const struct whatif *whatif)
{
    const struct {
        uint32_t count;
        const char *what;
    } parts[] = {
        {whatif->refused, "refused by a provider"},
        {whatif->stopped, "stopped"},
        {whatif->running, "not finished"},
    };
    const char *before = "  left out:";
    for (uint32_t ix = 0; ix < ARRAY_COUNT(parts); ix++) {
        if (parts[ix].count > 0) {
            strbuf_addf(out,
                        "%s %u session%s %s",
                        before,
                        parts[ix].count,
                        parts[ix].count == 1 ? "" : "s",
                        parts[ix].what);
            before = ",";
        }
    }
    strbuf_adds(out, before[0] == ',' ? "\n" : "");
}

static void add_head(struct strbuf *out, const struct replays *replays)
{
    const struct whatif *whatif = &replays->whatif;
    const struct run_history *history = replays->history;
    int64_t took_ns = whatif->run.makespan_ns;
    int64_t again_ns = replays->outcomes[0].result->makespan_ns;
    strbuf_addf(out,
                "run %s: %u task%s, %u session%s in ",
                history->id,
                history->plan->task_count,
                history->plan->task_count == 1 ? "" : "s",
                whatif->replayed,
                whatif->replayed == 1 ? "" : "s");
    chart_add_duration(out, took_ns);
    strbuf_adds(out,
                history->finished
                    ? "\n"
                    : "; the run is not finished: only what it has done so far "
                      "is replayed\n");
    add_omissions(out, whatif);
    strbuf_adds(out, "replay with the same settings: ");
    add_difference(out, again_ns, took_ns);
    strbuf_adds(out, "\n");
    int64_t far_ns =
        again_ns > took_ns ? again_ns - took_ns : took_ns - again_ns;
    if (far_ns > took_ns / 100 * FAR_PERCENT && far_ns >= SECOND_NS) {
        strbuf_addf(out,
                    "  more than %d %% off: what a replay leaves out mattered "
                    "in this run\n",
                    FAR_PERCENT);
    }
    for (uint32_t ix = 1; ix < replays->count; ix++) {
        strbuf_addf(out, "%s: ", replays->outcomes[ix].label);
        add_difference(out,
                       replays->outcomes[ix].result->makespan_ns,
                       again_ns);
        strbuf_adds(out, "\n");
    }
}

static void add_text(struct strbuf *out, const struct replays *replays)
{
    struct results_row rows[REPLAYS_MAX + 1] = {
        {"the run itself", &replays->whatif.run},
    };
    for (uint32_t ix = 0; ix < replays->count; ix++) {
        rows[ix + 1] = (struct results_row){
            replays->outcomes[ix].label,
            replays->outcomes[ix].result,
        };
    }
    add_head(out, replays);
    strbuf_adds(out, "\n");
    results_table(out, replays->history->plan, rows, replays->count + 1);
    for (uint32_t ix = 0; ix < replays->count; ix++) {
        const struct outcome *outcome = &replays->outcomes[ix];
        uint32_t lost = whatif_lost(&replays->whatif, outcome->result);
        if (lost > 0) {
            strbuf_addf(out,
                        "\n%s: %u task%s that the run has done would not be\n",
                        outcome->label,
                        lost,
                        lost == 1 ? "" : "s");
            results_left(out, outcome->plan, outcome->result);
        }
    }
    for (uint32_t ix = 0; replays->options->gantt && ix <= replays->count;
         ix++) {
        strbuf_addf(out, "\n%s:", rows[ix].label);
        results_gantt(out, replays->history->plan, rows[ix].result);
    }
}

/* --- JSON and SVG -------------------------------------------------------- */

static void add_json(struct strbuf *out, const struct replays *replays)
{
    const struct whatif *whatif = &replays->whatif;
    const struct run_history *history = replays->history;
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "run", history->id);
    jsonw_bool(&json, "finished", history->finished);
    jsonw_int(&json, "replayed", whatif->replayed);
    jsonw_int(&json, "refused", whatif->refused);
    jsonw_int(&json, "stopped", whatif->stopped);
    jsonw_int(&json, "running", whatif->running);
    jsonw_duration(&json, "took_s", whatif->run.makespan_ns);
    jsonw_list(&json, 1, "replays");
    int64_t than_ns = whatif->run.makespan_ns;
    for (uint32_t ix = 0; ix < replays->count; ix++) {
        const struct outcome *outcome = &replays->outcomes[ix];
        struct strbuf text = {0};
        results_json(&text, outcome->plan, outcome->result);
        jsonw_item(&json, 2);
        jsonw_text(&json, "settings", outcome->label);
        jsonw_duration(&json,
                       "difference_s",
                       outcome->result->makespan_ns - than_ns);
        jsonw_int(&json, "lost", whatif_lost(whatif, outcome->result));
        jsonw_raw(&json, "result", strbuf_text(&text));
        jsonw_object_end(&json);
        strbuf_release(&text);
        than_ns = replays->outcomes[0].result->makespan_ns;
    }
    jsonw_array_end(&json);
    jsonw_object_end(&json);
    strbuf_adds(out, "\n");
}

static int write_svg(const struct replays *replays)
{
    struct results_row rows[REPLAYS_MAX + 1] = {
        {"the run itself", &replays->whatif.run},
    };
    for (uint32_t ix = 0; ix < replays->count; ix++) {
        rows[ix + 1] = (struct results_row){
            replays->outcomes[ix].label,
            replays->outcomes[ix].result,
        };
    }
    return results_svg(replays->options->line->command,
                       replays->options->svg_path,
                       replays->history->plan,
                       rows,
                       replays->count + 1);
}

/* --- the whole ----------------------------------------------------------- */

static int print(const struct replays *replays)
{
    struct strbuf out = {0};
    if (replays->options->line->json) {
        add_json(&out, replays);
    } else {
        add_text(&out, replays);
    }
    int code = cli_print(&out);
    if (code == CLI_OK && replays->options->svg_path != NULL) {
        code = write_svg(replays);
    }
    for (uint32_t ix = 0; ix < replays->count && code == CLI_OK; ix++) {
        if (whatif_lost(&replays->whatif, replays->outcomes[ix].result) > 0) {
            code = CLI_NOT_ALL_DONE;
        }
    }
    return code;
}

static int replay_history(const struct from_run *options,
                          const struct run_history *history)
{
    struct stats stats;
    struct replays replays = {.options = options, .history = history};
    stats_init(&stats, history);
    whatif_init(&replays.whatif, &stats);
    int code = CLI_OK;
    if (replays.whatif.replayed == 0) {
        code = cli_fail(options->line->command,
                        "run %s has no finished session to replay",
                        history->id);
    }
    if (code == CLI_OK) {
        code = replay_all(&replays);
    }
    if (code == CLI_OK) {
        code = print(&replays);
    }
    for (uint32_t ix = 0; ix < replays.count; ix++) {
        mem_free(replays.outcomes[ix].label);
        sim_result_free(replays.outcomes[ix].result);
        plan_free(replays.outcomes[ix].plan);
    }
    whatif_release(&replays.whatif);
    stats_release(&stats);
    return code;
}

int from_run(const struct from_run *options)
{
    struct diag diag = {0};
    struct store *store = NULL;
    struct run_history history = {0};
    struct store_place place;
    int code = cli_find_store(options->line, &place);
    enum err err = ERR_OK;
    if (code == CLI_OK) {
        err = store_open(&store, place.address, STORE_READ, &diag);
    }
    if (code == CLI_OK && err == ERR_OK) {
        err = run_history_read(&history,
                               store,
                               options->run,
                               clock_wall_ns(),
                               &diag);
    }
    store_close(store);
    if (err != ERR_OK) {
        code = cli_fail_store(options->line->command, err, &diag);
    }
    if (code == CLI_OK) {
        code = replay_history(options, &history);
    }
    run_history_release(&history);
    store_place_release(&place);
    return code;
}
