/* SPDX-License-Identifier: MIT */
/*
 * sluice simulate: run a plan under a virtual clock, in one or more variants.
 *
 * Each simulation parses the plan again, because a simulation changes it.
 */
#include "base/clock.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "cli/changes.h"
#include "cli/cli.h"
#include "cli/from_run.h"
#include "cli/results.h"
#include "plan/alias.h"
#include "sim/sim.h"
#include "view/client.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_AT = 1,
    OPT_BLOCK,
    OPT_CAP,
    OPT_CHANGES,
    OPT_CHECKPOINT,
    OPT_FAIL,
    OPT_FATAL,
    OPT_GOAL,
    OPT_JITTER,
    OPT_LATER,
    OPT_LIMIT,
    OPT_NOW,
    OPT_POLICY,
    OPT_REFUSE,
    OPT_RULES,
    OPT_SCRIPT,
    OPT_SEED,
};

enum { JITTER_MAX = 300, RUNS_MAX = 17 };

static const enum plan_policy policies[] = {
    PLAN_POLICY_RANK,
    PLAN_POLICY_FAIR,
    PLAN_POLICY_FIFO,
    PLAN_POLICY_LOOKAHEAD,
};

/* The command line. */
struct args {
    struct cli_line line;
    struct sim_options options;
    struct sim_script script;
    const char *svg_path;
    struct changes changes;
    const char *from_run;
    bool planned; /* options that only a simulation of a plan has */
    bool baseline;
    bool compare;
    bool compare_rules;
    bool gantt;
};

/* Parse "all", "none", or a comma-separated list of the four names. */
static int set_rules(struct args *args, const char *list)
{
    uint32_t rules = 0;
    if (strcmp(list, "all") == 0 || strcmp(list, "none") == 0) {
        args->options.rules = list[0] == 'a' ? SIM_RULES_ALL : 0;
        return CLI_OK;
    }
    for (const char *at = list; at != NULL;) {
        size_t len = strcspn(at, ",");
        uint32_t ix = 0;
        while (ix < RESULTS_RULES &&
               (strlen(results_rules[ix]) != len ||
                memcmp(results_rules[ix], at, len) != 0)) {
            ix++;
        }
        if (ix == RESULTS_RULES) {
            return cli_fail(args->line.command,
                            "unknown rule in \"%s\" (known: priority, cap, "
                            "defer, batch; or all, none)",
                            list);
        }
        rules |= 1U << ix;
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    args->options.rules = rules;
    return CLI_OK;
}

static int set_number(const struct args *args,
                      const struct cli_option *option,
                      const char *text,
                      unsigned long long max,
                      unsigned long long *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 ||
        *out > max) {
        return cli_fail(args->line.command,
                        "--%s takes a number from 0 to %llu, not \"%s\"",
                        option->name,
                        max,
                        text);
    }
    return CLI_OK;
}

static int add_line(struct args *args, const char *word, const char *rest)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "%s %s", word, rest);
    struct diag diag = {0};
    int code = CLI_OK;
    if (strchr(rest, '\n') != NULL ||
        sim_script_add(&args->script, line.text, NULL, &diag) != ERR_OK) {
        code = cli_fail(args->line.command,
                        "--%s: %s",
                        word,
                        diag.text[0] != '\0' ? diag.text : "one line only");
    }
    strbuf_release(&line);
    return code;
}

/* Set the time at which the simulation starts. */
static int set_now(struct args *args, const char *text)
{
    struct plan_time time;
    if (!plan_parse_time(text, &time)) {
        return cli_fail(args->line.command,
                        "--now takes a time such as 22:00 or \"2030-01-31 "
                        "22:00\", not \"%s\"",
                        text);
    }
    args->options.start_ns = plan_time_ns(time, args->options.start_ns);
    return CLI_OK;
}

/* --at takes two arguments: the time and the request. */
static int add_at(struct args *args, const char *time, int argc, char **argv)
{
    if (optind >= argc) {
        return cli_fail(
            args->line.command,
            "--at takes a time and a request, such as --at 10m \"cap 1\"");
    }
    struct strbuf rest = {0};
    strbuf_addf(&rest, "%s %s", time, argv[optind++]);
    int code = add_line(args, "at", rest.text);
    strbuf_release(&rest);
    return code;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? mem_strndup(".", 1)
                         : mem_strndup(path, (size_t)(slash - path));
}

static int add_script(struct args *args, const char *path)
{
    struct cli_file file;
    struct diag diag = {0};
    if (cli_read_file(&file, path, &diag) != ERR_OK) {
        return cli_fail(args->line.command, "%s", diag.text);
    }
    char *folder = folder_of(path);
    enum err err =
        sim_script_read(&args->script, file.text, file.bytes, folder, &diag);
    mem_free(folder);
    cli_release_file(&file);
    if (args->script.old != NULL) {
        (void)fprintf(stderr,
                      "sluice %s: warning: %s: \"%s\" is an old word; use "
                      "\"%s\"\n",
                      args->line.command->name,
                      path,
                      args->script.old->old,
                      args->script.old->now);
    }
    return err == ERR_OK
               ? CLI_OK
               : cli_fail(args->line.command, "%s:%s", path, diag.text);
}

/* Whether an option changes a setting that a run has. */
static bool is_setting(int code)
{
    return code == OPT_CAP || code == OPT_GOAL || code == OPT_LIMIT ||
           code == OPT_POLICY;
}

static int take_option(struct cli_line *line,
                       const struct cli_option *option,
                       char *argument)
{
    struct args *args = (struct args *)line;
    unsigned long long number = 0;
    int result = CLI_OK;
    args->planned = args->planned || !is_setting(option->code);
    switch (option->code) {
    case OPT_AT:
        return add_at(args, argument, line->argc, line->argv);
    case OPT_BLOCK:
    case OPT_CHANGES:
    case OPT_CHECKPOINT:
    case OPT_FAIL:
    case OPT_FATAL:
    case OPT_LATER:
    case OPT_REFUSE:
        return add_line(args, option->name, argument);
    case OPT_SCRIPT:
        return add_script(args, argument);
    case OPT_CAP:
        return changes_cap(&args->changes, line->command, argument);
    case OPT_LIMIT:
        return changes_limit(&args->changes, line->command, argument);
    case OPT_GOAL:
        return changes_goal(&args->changes, line->command, argument);
    case OPT_POLICY:
        return changes_policy(&args->changes, line->command, argument);
    case OPT_NOW:
        return set_now(args, argument);
    case OPT_RULES:
        return set_rules(args, argument);
    case OPT_JITTER:
        result = set_number(args, option, argument, JITTER_MAX, &number);
        args->options.jitter_percent = (uint32_t)number;
        return result;
    default:
        result = set_number(args, option, argument, UINT64_MAX, &number);
        args->options.seed = number;
        return result;
    }
}

/* Read the fragments of the script, so that the simulator reads no files. */
static int read_additions(struct args *args)
{
    for (uint32_t ix = 0; ix < args->script.request_count; ix++) {
        struct script_at *at = &args->script.requests[ix];
        if (at->request != SCRIPT_ADD) {
            continue;
        }
        struct cli_file file;
        struct diag diag = {0};
        if (cli_read_file(&file, at->name, &diag) != ERR_OK) {
            return cli_fail(args->line.command, "%s", diag.text);
        }
        at->text = file.text;
        at->text_bytes = file.bytes;
        mem_free(file.path);
    }
    return CLI_OK;
}

/* One simulation, its plan, and its label in comparisons. */
struct outcome {
    struct plan *plan;
    struct sim_result *result;
    struct results_label label;
};

static void release(struct outcome *outcomes, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        sim_result_free(outcomes[ix].result);
        plan_free(outcomes[ix].plan);
    }
}

/* One way to simulate; `own_...`: that of the plan. */
struct variant {
    enum plan_policy policy;
    enum plan_goal goal;
    bool own_policy;
    bool own_goal;
    uint32_t rules;
};

/* Add a variant for each policy; and if no goal was asked for, the other goal
 * of the default policy. */
static uint32_t
add_policies(const struct args *args, struct variant *variants, uint32_t count)
{
    for (uint32_t ix = 0; ix < ARRAY_COUNT(policies); ix++) {
        variants[count++] = (struct variant){
            .policy = policies[ix],
            .goal = args->changes.goal,
            .rules = args->options.rules,
        };
    }
    if (!args->changes.goal_given) {
        variants[count++] = (struct variant){
            .policy = PLAN_POLICY_RANK,
            .goal = PLAN_GOAL_FINISH_MANY,
            .rules = args->options.rules,
        };
    }
    return count;
}

/* List the requested simulations. */
static uint32_t list_variants(const struct args *args, struct variant *variants)
{
    uint32_t count = 0;
    uint32_t rules = args->options.rules;
    if (args->baseline) {
        variants[count++] = (struct variant){.policy = PLAN_POLICY_FIFO};
    }
    if (args->compare) {
        return add_policies(args, variants, count);
    }
    uint32_t first = args->compare_rules ? 0 : rules;
    uint32_t last = args->compare_rules ? SIM_RULES_ALL : rules;
    for (uint32_t ix = first; ix <= last; ix++) {
        variants[count++] = (struct variant){
            .policy = args->changes.policy,
            .goal = args->changes.goal,
            .own_policy = !args->changes.policy_given,
            .own_goal = !args->changes.goal_given,
            .rules = ix,
        };
    }
    return count;
}

static int simulate(const struct args *args,
                    const struct cli_file *file,
                    struct variant variant,
                    struct outcome *out)
{
    struct diag diag = {0};
    *out = (struct outcome){
        .plan = cli_read_plan(file, args->options.start_ns, args->line.json),
    };
    if (out->plan == NULL) {
        return CLI_USAGE;
    }
    if (args->line.wanted.store != NULL) {
        enum err err = client_expect(out->plan, args->line.wanted.store, &diag);
        if (err != ERR_OK) {
            return cli_fail_store(args->line.command, err, &diag);
        }
    }
    struct changes_found found;
    int code =
        changes_find(&args->changes, args->line.command, out->plan, &found);
    if (code != CLI_OK) {
        return code;
    }
    if (whatif_set(out->plan, &found.settings, &diag) != ERR_OK) {
        return cli_fail(args->line.command, "%s", diag.text);
    }
    struct sim_options options = args->options;
    options.script = &args->script;
    options.policy = variant.own_policy ? out->plan->policy : variant.policy;
    options.rules = variant.rules;
    out->plan->goal = variant.own_goal ? out->plan->goal : variant.goal;
    if (sim_run(&out->result, out->plan, &options, &diag) != ERR_OK) {
        return cli_fail(args->line.command, "%s: %s", file->path, diag.text);
    }
    out->label = results_label(out->result);
    return CLI_OK;
}

static int write_svg(const struct args *args,
                     const struct outcome *outcomes,
                     uint32_t count)
{
    INVARIANT(count > 0 && outcomes[0].plan != NULL);
    struct results_row rows[RUNS_MAX] = {{0}};
    for (uint32_t ix = 0; ix < count; ix++) {
        rows[ix] = (struct results_row){
            .label = count > 1 ? outcomes[ix].label.text : NULL,
            .result = outcomes[ix].result,
        };
    }
    return results_svg(args->line.command,
                       args->svg_path,
                       outcomes[0].plan,
                       rows,
                       count);
}

static void add_json(struct strbuf *out,
                     const struct outcome *outcomes,
                     uint32_t count,
                     bool array)
{
    strbuf_adds(out, array ? "[" : "");
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_adds(out, ix > 0 ? ",\n" : "");
        results_json(out, outcomes[ix].plan, outcomes[ix].result);
    }
    strbuf_adds(out, array ? "]\n" : "\n");
}

static void add_text(struct strbuf *out,
                     const struct outcome *outcomes,
                     uint32_t count,
                     bool gantt)
{
    if (count == 1) {
        results_text(out, outcomes[0].plan, outcomes[0].result);
    } else {
        struct results_row rows[RUNS_MAX] = {{0}};
        for (uint32_t ix = 0; ix < count; ix++) {
            rows[ix].result = outcomes[ix].result;
        }
        strbuf_addf(out,
                    "%s: %u task%s, %u issue%s\n\n",
                    outcomes[0].plan->name,
                    rows[0].result->task_count,
                    rows[0].result->task_count == 1 ? "" : "s",
                    rows[0].result->issues.count,
                    rows[0].result->issues.count == 1 ? "" : "s");
        results_table(out, outcomes[0].plan, rows, count);
    }
    for (uint32_t ix = 0; gantt && ix < count; ix++) {
        if (count > 1) {
            strbuf_addf(out, "\n%s:", outcomes[ix].label.text);
        }
        results_gantt(out, outcomes[ix].plan, outcomes[ix].result);
    }
}

static int
print(const struct args *args, const struct outcome *outcomes, uint32_t count)
{
    INVARIANT(count > 0 && outcomes[count - 1].result != NULL);
    struct strbuf out = {0};
    if (args->line.json) {
        bool array = args->compare || args->compare_rules || args->baseline;
        add_json(&out, outcomes, count, array);
    } else {
        add_text(&out, outcomes, count, args->gantt);
    }
    int code = cli_print(&out);
    if (code == CLI_OK && args->svg_path != NULL) {
        code = write_svg(args, outcomes, count);
    }
    const struct outcome *last = &outcomes[count - 1];
    if (code == CLI_OK && !results_finished(last->plan, last->result)) {
        code = CLI_NOT_ALL_DONE;
    }
    return code;
}

static int run_all(const struct args *args, const struct cli_file *file)
{
    struct variant variants[RUNS_MAX] = {{0}};
    struct outcome outcomes[RUNS_MAX] = {{0}};
    uint32_t wanted = list_variants(args, variants);
    uint32_t count = 0;
    int code = CLI_OK;
    while (code == CLI_OK && count < wanted) {
        code = simulate(args, file, variants[count], &outcomes[count]);
        count++;
    }
    if (code == CLI_OK) {
        code = print(args, outcomes, count);
    }
    release(outcomes, count);
    return code;
}

/* Replay a run; only some of the options apply. */
static int run_again(const struct args *args)
{
    const struct cli_command *command = args->line.command;
    if (optind < args->line.argc) {
        return cli_fail(command,
                        "unexpected argument \"%s\": with --from-run the plan "
                        "is that of the run",
                        args->line.argv[optind]);
    }
    if (args->baseline || args->compare_rules || args->planned) {
        return cli_fail(command,
                        "with --from-run, only --cap, --limit, --policy, "
                        "--goal, --compare, --gantt, --svg, --json and --store "
                        "can be given");
    }
    if (args->from_run[0] == '\0') {
        return cli_fail(command, "--from-run takes the id of a run");
    }
    struct from_run wanted = {
        .line = &args->line,
        .run = args->from_run,
        .changes = &args->changes,
        .compare = args->compare,
        .gantt = args->gantt,
        .svg_path = args->svg_path,
    };
    return from_run(&wanted);
}

static int run_args(struct args *args)
{
    int argc = args->line.argc;
    char **argv = args->line.argv;
    if (args->from_run != NULL) {
        return run_again(args);
    }
    if (args->compare && args->compare_rules) {
        return cli_fail(args->line.command,
                        "--compare and --compare-rules exclude each other");
    }
    const char *path = cli_operand(args->line.command, argc, argv);
    int code = path != NULL ? read_additions(args) : CLI_USAGE;
    if (code != CLI_OK) {
        return code;
    }
    struct cli_file file;
    struct diag diag = {0};
    if (cli_read_file(&file, path, &diag) != ERR_OK) {
        return cli_fail(args->line.command, "%s", diag.text);
    }
    code = run_all(args, &file);
    cli_release_file(&file);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {
        .options =
            {
                .rules = SIM_RULES_ALL,
                .seed = 1,
                .start_ns = clock_wall_ns(),
            },
    };
    int code = cli_parse(&args.line, command, argc, argv);
    code = code == CLI_END ? run_args(&args) : code;
    sim_script_release(&args.script);
    return code;
}

static const struct cli_option options[] = {
    {"at", "TIME REQUEST", "apply a request then: --at 10m \"cap 1\"", OPT_AT},
    {"baseline",
     NULL,
     "first print first come, first served without rules",
     CLI_AT(args, baseline)},
    {"block", "TASK", "TASK reports that it is blocked", OPT_BLOCK},
    {"cap", "N", "another cap, or a step: +2, -1", OPT_CAP},
    {"changes",
     "TASK:N",
     "the first N attempts of TASK request changes",
     OPT_CHANGES},
    {"checkpoint",
     "TASK:N",
     "the first N attempts of TASK exit with a checkpoint",
     OPT_CHECKPOINT},
    {"compare", NULL, "compare all policies and goals", CLI_AT(args, compare)},
    {"compare-rules",
     NULL,
     "compare all combinations of rules",
     CLI_AT(args, compare_rules)},
    {"fail", "TASK:N", "the first N attempts of TASK fail", OPT_FAIL},
    {"fatal",
     "TASK:N",
     "the first N attempts of TASK fail for good",
     OPT_FATAL},
    {"from-run",
     "RUN",
     "replay a run of the store, with other settings",
     CLI_AT(args, from_run)},
    {"gantt", NULL, "draw the timeline", CLI_AT(args, gantt)},
    {"goal",
     "NAME",
     "finish-all or finish-many (default: the plan's)",
     OPT_GOAL},
    {"jitter", "PERCENT", "random durations around the estimates", OPT_JITTER},
    {"json",
     NULL,
     "print one JSON object, or an array of them",
     CLI_AT(cli_line, json)},
    {"later",
     "TASK:N=TIME",
     "the first N attempts of TASK ask to be run again",
     OPT_LATER},
    {"limit",
     "NAME=N",
     "another maximum of a limit: N, +N, -N, P%, none",
     OPT_LIMIT},
    {"now", "TIME", "when the simulation starts (default: now)", OPT_NOW},
    {"policy",
     "NAME",
     "rank, fair, fifo or lookahead (default: the plan's)",
     OPT_POLICY},
    {"refuse",
     "PROVIDER:N",
     "the provider refuses the first N starts",
     OPT_REFUSE},
    {"rules",
     "LIST",
     "only these: priority,cap,defer,batch; all, none",
     OPT_RULES},
    {"script",
     "FILE",
     "requests and outcomes from a file, one per line",
     OPT_SCRIPT},
    {"seed", "N", "seed of the random numbers (default: 1)", OPT_SEED},
    {"store",
     "DIR",
     "take estimates, or the run, from a store",
     CLI_AT(cli_line, wanted.store)},
    {"svg", "FILE", "write the timeline as SVG", CLI_AT(args, svg_path)},
    {0},
};

const struct cli_command cli_simulate = {
    .name = "simulate",
    .synopsis = "[OPTION]... PLAN | --from-run RUN",
    .summary = "run a plan in virtual time and show what runs when",
    .options = options,
    .run = run,
    .take = take_option,
};
