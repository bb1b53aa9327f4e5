/* SPDX-License-Identifier: MIT */
/* sluice check: validate a plan; print its errors or a summary. */
#include "base/clock.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/results.h"
#include "cli/warnings.h"
#include "engine/engine.h"
#include "git/names.h"
#include "plan/load.h"
#include "plan/twin.h"
#include "sim/profile.h"
#include "sim/sim.h"
#include "view/client.h"
#include "view/eta.h"
#include "view/usage.h"

#include <stdio.h>
#include <string.h>

/* The command line. */
struct check {
    struct cli_line line;
    bool no_disk; /* skip repositories and programs */
};

/* The data to print. */
struct summary {
    const struct cli_file *file;
    const char *folder; /* where relative paths of the plan begin */
    const struct plan *plan;
    struct profile profile;
    const struct sim_result *result;
    struct eta_end forecast;
    uint32_t *class_tasks;
    int64_t *class_work_ns;
    struct plan_errors warnings;
};

static void count_classes(struct summary *summary)
{
    const struct plan *plan = summary->plan;
    summary->class_tasks = mem_zalloc(plan->class_count, sizeof(uint32_t));
    summary->class_work_ns = mem_zalloc(plan->class_count, sizeof(int64_t));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        summary->class_tasks[task->class_ix]++;
        int64_t *work_ns = &summary->class_work_ns[task->class_ix];
        *work_ns = duration_sum(*work_ns, plan_estimate_ns(plan, task));
    }
}

static void add_max(struct strbuf *out, const struct plan_limit *limit)
{
    if (limit->percent > 0) {
        strbuf_addf(out, "%u%%", limit->percent);
    } else if (limit->max == PLAN_UNLIMITED) {
        strbuf_adds(out, "none");
    } else {
        strbuf_addf(out, "%lld", (long long)limit->max);
    }
    if (limit->per != NULL) {
        strbuf_addf(out, " per %s", limit->per);
    }
}

static void add_classes(struct strbuf *out, const struct summary *summary)
{
    strbuf_addf(out, "\n  %-16s %8s  %10s\n", "class", "tasks", "work");
    for (uint32_t ix = 0; ix < summary->plan->class_count; ix++) {
        if (summary->class_tasks[ix] > 0) {
            strbuf_addf(out,
                        "  %-16s %8u  ",
                        summary->plan->classes[ix].name,
                        summary->class_tasks[ix]);
            struct strbuf work = {0};
            duration_add(&work, summary->class_work_ns[ix]);
            strbuf_addf(out, "%10s\n", strbuf_text(&work));
            strbuf_release(&work);
        }
    }
}

/* Append the ids of the longest path, without the middle of a long path. */
static void add_path(struct strbuf *out, const struct summary *summary)
{
    enum { ENDS = 3 };
    const struct profile *profile = &summary->profile;
    for (uint32_t ix = 0; ix < profile->path_count; ix++) {
        if (ix == ENDS && profile->path_count > 2 * ENDS + 1) {
            ix = profile->path_count - ENDS;
            strbuf_adds(out, " -> ...");
        }
        strbuf_addf(out,
                    "%s%s",
                    ix > 0 ? " -> " : "",
                    summary->plan->tasks[profile->path[ix]].id);
    }
}

static void add_limits(struct strbuf *out, const struct summary *summary)
{
    bool any = false;
    for (uint32_t ix = 0; ix < summary->result->limit_count; ix++) {
        int64_t waited_ns = summary->result->limit_wait_ns[ix];
        if (waited_ns == 0) {
            continue;
        }
        const struct plan_limit *limit = &summary->plan->limits[ix];
        strbuf_adds(out, any ? "\n                     " : "");
        strbuf_addf(out, "%s: ", limit->name);
        add_max(out, limit);
        strbuf_adds(out, ", waited for it: ");
        duration_add(out, waited_ns);
        any = true;
    }
    strbuf_adds(out, any ? "\n" : "none\n");
}

/* Return the expected cost of one session per task. */
static struct plan_cost cost_of(const struct plan *plan)
{
    struct plan_cost sum = {0};
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        struct plan_cost cost = plan_expected_cost(plan, &plan->tasks[ix]);
        sum.usd += cost.usd;
        sum.tokens += cost.tokens;
    }
    return sum;
}

static void add_cost(struct strbuf *out,
                     enum plan_limit_kind kind,
                     int64_t cost,
                     int64_t budget)
{
    if (cost == 0 && budget == PLAN_UNSET) {
        return;
    }
    strbuf_adds(out, "  expected cost      ");
    usage_add_amount(out, kind, cost);
    if (budget != PLAN_UNSET) {
        strbuf_adds(out,
                    cost > budget ? ", more than the budget of "
                                  : " of a budget of ");
        usage_add_amount(out, kind, budget);
    }
    strbuf_adds(out, "\n");
}

static void add_costs(struct strbuf *out, const struct plan *plan)
{
    struct plan_cost cost = cost_of(plan);
    uint32_t unknown = 0;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        unknown += plan_is_cost_unknown(plan, &plan->tasks[ix]) ? 1 : 0;
    }
    if (unknown > 0) {
        strbuf_addf(out,
                    "  unknown cost       %u task%s: one session per class at "
                    "a time until it is known (see \"cost\")\n",
                    unknown,
                    unknown == 1 ? "" : "s");
    }
    add_cost(out, PLAN_LIMIT_BUDGET_USD, cost.usd, plan->budget.usd);
    add_cost(out, PLAN_LIMIT_BUDGET_TOKENS, cost.tokens, plan->budget.tokens);
}

/* Append the repos that have the path of repo `ix`, from the first of them on,
 * as names or as their agent branches. */
static void add_twins(struct strbuf *out,
                      const struct summary *summary,
                      uint32_t ix,
                      bool branches)
{
    const struct plan *plan = summary->plan;
    for (uint32_t at = ix; at < plan->repo_count; at++) {
        const char *name = plan->repos[at].name;
        if (at != ix && twin_find(plan, summary->folder, at) != ix) {
            continue;
        }
        strbuf_adds(out, at == ix ? "" : " and ");
        if (branches) {
            names_add_branch(out, "RUN", name, NULL);
        } else {
            strbuf_adds(out, name);
        }
    }
}

/* Whether repo `ix` is the first of several with its path. */
static bool is_first_twin(const struct summary *summary, uint32_t ix)
{
    uint32_t twin = twin_find(summary->plan, summary->folder, ix);
    return twin != PLAN_NONE && twin > ix;
}

/* Return the path or URL of a repo, as written. */
static const char *place_of(const struct plan_repo *repo)
{
    return repo->url != NULL ? repo->url : repo->path;
}

static void add_shared(struct strbuf *out, const struct summary *summary)
{
    for (uint32_t ix = 0; ix < summary->plan->repo_count; ix++) {
        if (is_first_twin(summary, ix)) {
            strbuf_addf(out,
                        "  one repository     %s: ",
                        place_of(&summary->plan->repos[ix]));
            add_twins(out, summary, ix, false);
            strbuf_adds(out, ", which merge into ");
            add_twins(out, summary, ix, true);
            strbuf_adds(out, "\n");
        }
    }
}

static void json_shared(struct jsonw *json, const struct summary *summary)
{
    const struct plan *plan = summary->plan;
    jsonw_array(json, "shared");
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        if (!is_first_twin(summary, ix)) {
            continue;
        }
        jsonw_object(json, NULL);
        jsonw_text(json,
                   plan->repos[ix].url != NULL ? "url" : "path",
                   place_of(&plan->repos[ix]));
        jsonw_array(json, "repos");
        jsonw_text(json, NULL, plan->repos[ix].name);
        for (uint32_t at = ix + 1; at < plan->repo_count; at++) {
            if (twin_find(plan, summary->folder, at) == ix) {
                jsonw_text(json, NULL, plan->repos[at].name);
            }
        }
        jsonw_array_end(json);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_forecast(struct strbuf *out, const struct eta_end *forecast)
{
    if (forecast->runs > 0) {
        strbuf_adds(out, "  forecast           ");
        eta_add_range(out, forecast);
        strbuf_adds(out, "\n");
    }
}

static void print_text(struct strbuf *out, const struct summary *summary)
{
    const struct plan *plan = summary->plan;
    strbuf_addf(out, "%s: ok\n", summary->file->path);
    strbuf_addf(out,
                "%s: %u task%s, %u group%s, %u repo%s\n",
                plan->name,
                plan->task_count,
                plan->task_count == 1 ? "" : "s",
                plan->group_count,
                plan->group_count == 1 ? "" : "s",
                plan->repo_count,
                plan->repo_count == 1 ? "" : "s");
    add_classes(out, summary);
    strbuf_adds(out, "\n  longest path       ");
    duration_add(out, summary->profile.longest_ns);
    strbuf_addf(out,
                ", %u task%s: ",
                summary->profile.path_count,
                summary->profile.path_count == 1 ? "" : "s");
    add_path(out, summary);
    strbuf_addf(out,
                "\n  peak parallelism   %u without limits, %u with them\n",
                summary->profile.peak,
                summary->result->lane_count);
    strbuf_adds(out, "  expected time      ");
    duration_add(out, summary->result->makespan_ns);
    strbuf_addf(out,
                " with policy %s\n",
                sim_policy_name(summary->result->policy));
    add_forecast(out, &summary->forecast);
    add_costs(out, plan);
    add_shared(out, summary);
    strbuf_adds(out, "  binding limits     ");
    add_limits(out, summary);
    if (summary->result->left_count > 0) {
        const struct sim_left *left = &summary->result->left[0];
        strbuf_addf(out,
                    "  would not finish   %u task%s; %s: ",
                    summary->result->left_count,
                    summary->result->left_count == 1 ? "" : "s",
                    plan->tasks[left->task].id);
        results_reason(out, plan, left);
        strbuf_adds(out, "\n");
    }
}

/* Print warnings to standard error, as errors. */
static void print_warnings(const struct summary *summary)
{
    for (uint32_t ix = 0; ix < summary->warnings.count; ix++) {
        const struct plan_error *warning = &summary->warnings.items[ix];
        (void)fprintf(stderr,
                      "%s:%u:%u: warning: %s\n",
                      summary->file->path,
                      warning->mark.line,
                      warning->mark.column,
                      warning->text);
    }
}

static void json_classes(struct jsonw *json, const struct summary *summary)
{
    jsonw_array(json, "classes");
    for (uint32_t ix = 0; ix < summary->plan->class_count; ix++) {
        if (summary->class_tasks[ix] > 0) {
            jsonw_object(json, NULL);
            jsonw_text(json, "class", summary->plan->classes[ix].name);
            jsonw_int(json, "tasks", summary->class_tasks[ix]);
            jsonw_duration(json, "work_s", summary->class_work_ns[ix]);
            jsonw_object_end(json);
        }
    }
    jsonw_array_end(json);
}

static void json_limits(struct jsonw *json, const struct summary *summary)
{
    jsonw_array(json, "limits");
    for (uint32_t ix = 0; ix < summary->plan->limit_count; ix++) {
        const struct plan_limit *limit = &summary->plan->limits[ix];
        if (limit->kind == PLAN_LIMIT_COST) {
            continue;
        }
        struct strbuf max = {0};
        add_max(&max, limit);
        jsonw_object(json, NULL);
        jsonw_text(json, "limit", limit->name);
        jsonw_text(json, "max", strbuf_text(&max));
        jsonw_duration(json, "waited_s", summary->result->limit_wait_ns[ix]);
        jsonw_object_end(json);
        strbuf_release(&max);
    }
    jsonw_array_end(json);
}

static void json_warnings(struct jsonw *json,
                          const struct plan_errors *warnings)
{
    jsonw_array(json, "warnings");
    for (uint32_t ix = 0; ix < warnings->count; ix++) {
        const struct plan_error *warning = &warnings->items[ix];
        jsonw_object(json, NULL);
        jsonw_int(json, "line", warning->mark.line);
        jsonw_int(json, "column", warning->mark.column);
        jsonw_text(json, "message", warning->text);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void print_json(struct strbuf *out, const struct summary *summary)
{
    const struct plan *plan = summary->plan;
    const struct profile *profile = &summary->profile;
    struct plan_cost cost = cost_of(plan);
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "plan", summary->file->path);
    jsonw_text(&json, "name", plan->name);
    jsonw_int(&json, "tasks", plan->task_count);
    jsonw_int(&json, "groups", plan->group_count);
    jsonw_int(&json, "repos", plan->repo_count);
    jsonw_line(&json, 1);
    json_classes(&json, summary);
    jsonw_line(&json, 1);
    jsonw_duration(&json, "longest_path_s", profile->longest_ns);
    jsonw_array(&json, "longest_path");
    for (uint32_t ix = 0; ix < profile->path_count; ix++) {
        jsonw_text(&json, NULL, plan->tasks[profile->path[ix]].id);
    }
    jsonw_array_end(&json);
    jsonw_line(&json, 1);
    jsonw_int(&json, "peak_parallelism", profile->peak);
    jsonw_int(&json, "peak_sessions", summary->result->lane_count);
    jsonw_duration(&json, "makespan_s", summary->result->makespan_ns);
    jsonw_line(&json, 1);
    eta_add_json(&json, "forecast", &summary->forecast);
    jsonw_line(&json, 1);
    jsonw_number(&json, "expected_usd", 10, (double)cost.usd / PLAN_USD);
    jsonw_int(&json, "expected_tokens", cost.tokens);
    jsonw_line(&json, 1);
    json_limits(&json, summary);
    jsonw_line(&json, 1);
    jsonw_int(&json, "not_done", summary->result->left_count);
    jsonw_line(&json, 1);
    json_shared(&json, summary);
    jsonw_line(&json, 1);
    json_warnings(&json, &summary->warnings);
    jsonw_finish(&json);
}

/* Whether the plan would run on this machine; print the errors if not. */
static bool can_run(const struct cli_file *file,
                    const struct plan *plan,
                    const char *folder,
                    const struct check *check)
{
    struct diag diag = {0};
    struct plan_errors faults = {0};
    if (!check->no_disk) {
        faults = warnings_find_faults(plan, folder);
    }
    struct plan_mark mark;
    if (engine_check(plan, &mark, &diag) != ERR_OK) {
        warnings_add(&faults, mark, "%s", diag.text);
    }
    bool good = faults.count == 0;
    if (!good) {
        cli_print_errors(file, &faults, check->line.json);
    }
    plan_errors_release(&faults);
    return good;
}

static int summarise(const struct cli_file *file,
                     struct plan *plan,
                     const char *folder,
                     const struct check *check)
{
    struct diag diag = {0};
    struct sim_result *result = NULL;
    struct sim_options options = {
        .policy = plan->policy,
        .rules = SIM_RULES_ALL,
        .start_ns = clock_wall_ns(),
    };
    if (sim_run(&result, plan, &options, &diag) != ERR_OK) {
        return cli_fail(check->line.command, "%s: %s", file->path, diag.text);
    }
    struct summary summary = {
        .file = file,
        .folder = folder,
        .plan = plan,
        .profile = profile_of(plan),
        .result = result,
        .forecast = eta_of_plan(plan, options.start_ns),
    };
    count_classes(&summary);
    summary.warnings = warnings_find(plan, folder, !check->no_disk);
    struct strbuf out = {0};
    if (check->line.json) {
        print_json(&out, &summary);
    } else {
        print_warnings(&summary);
        print_text(&out, &summary);
    }
    int code = cli_print(&out);
    plan_errors_release(&summary.warnings);
    mem_free(summary.class_tasks);
    mem_free(summary.class_work_ns);
    profile_release(&summary.profile);
    sim_result_free(result);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct check check = {0};
    int code = cli_parse(&check.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    const char *store = check.line.wanted.store;
    const char *path = cli_operand(command, argc, argv);
    if (path == NULL) {
        return CLI_USAGE;
    }
    struct cli_file file;
    struct diag diag = {0};
    if (cli_read_file(&file, path, &diag) != ERR_OK) {
        return cli_fail(command, "%s", diag.text);
    }
    struct plan *plan = cli_read_plan(&file, clock_wall_ns(), check.line.json);
    enum err err = ERR_OK;
    if (plan != NULL && store != NULL) {
        err = client_expect(plan, store, &diag);
    }
    code = CLI_USAGE;
    char *folder = cli_folder(path);
    if (err != ERR_OK) {
        code = cli_fail_store(command, err, &diag);
    } else if (plan != NULL && folder == NULL) {
        code = cli_fail(command, "%s: cannot find its directory", path);
    } else if (plan != NULL && can_run(&file, plan, folder, &check)) {
        code = summarise(&file, plan, folder, &check);
    }
    mem_free(folder);
    plan_free(plan);
    cli_release_file(&file);
    return code;
}

static const struct cli_option options[] = {
    {"json", NULL, "print one JSON object", CLI_AT(cli_line, json)},
    {"no-disk",
     NULL,
     "do not check repositories and programs on this machine",
     CLI_AT(check, no_disk)},
    {"store",
     "DIR",
     "take estimates from the history of a store",
     CLI_AT(cli_line, wanted.store)},
    {0},
};

const struct cli_command cli_check = {
    .name = "check",
    .synopsis = "[--json] [--no-disk] [--store DIR] PLAN",
    .summary = "validate a plan; print its errors or a summary",
    .options = options,
    .run = run,
};
