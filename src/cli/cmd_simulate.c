/* SPDX-License-Identifier: MIT */
/*
 * sluice simulate: run a plan under a virtual clock, in one or more variants.
 *
 * Each simulation parses the plan again, because a simulation changes it.
 */
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/results.h"
#include "plan/alias.h"
#include "sim/gantt.h"
#include "sim/sim.h"
#include "sim/svg.h"
#include "view/client.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_AT = 1,
    OPT_BLOCK,
    OPT_CHANGES,
    OPT_CHECKPOINT,
    OPT_FAIL,
    OPT_JITTER,
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
    bool policy_given;
    bool baseline;
    bool compare;
    bool compare_rules;
    bool gantt;
};

static int set_policy(struct args *args, const char *name)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(policies); ix++) {
        if (strcmp(name, sim_policy_name(policies[ix])) == 0) {
            args->options.policy = policies[ix];
            args->policy_given = true;
            return CLI_OK;
        }
    }
    return cli_fail(
        args->line.command,
        "unknown policy \"%s\" (known: rank, fair, fifo, lookahead)",
        name);
}

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

static int take_option(struct cli_line *line,
                       const struct cli_option *option,
                       char *argument)
{
    struct args *args = (struct args *)line;
    unsigned long long number = 0;
    int result = CLI_OK;
    switch (option->code) {
    case OPT_AT:
        return add_at(args, argument, line->argc, line->argv);
    case OPT_BLOCK:
    case OPT_CHANGES:
    case OPT_CHECKPOINT:
    case OPT_FAIL:
    case OPT_REFUSE:
        return add_line(args, option->name, argument);
    case OPT_SCRIPT:
        return add_script(args, argument);
    case OPT_POLICY:
        return set_policy(args, argument);
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

/* One way to simulate; `own_policy`: the policy of the plan. */
struct variant {
    enum plan_policy policy;
    bool own_policy;
    uint32_t rules;
};

/* List the requested simulations. */
static uint32_t list_variants(const struct args *args, struct variant *variants)
{
    uint32_t count = 0;
    uint32_t rules = args->options.rules;
    if (args->baseline) {
        variants[count++] = (struct variant){.policy = PLAN_POLICY_FIFO};
    }
    if (args->compare) {
        for (uint32_t ix = 0; ix < ARRAY_COUNT(policies); ix++) {
            variants[count++] =
                (struct variant){.policy = policies[ix], .rules = rules};
        }
        return count;
    }
    uint32_t first = args->compare_rules ? 0 : rules;
    uint32_t last = args->compare_rules ? SIM_RULES_ALL : rules;
    for (uint32_t ix = first; ix <= last; ix++) {
        variants[count++] = (struct variant){
            .policy = args->options.policy,
            .own_policy = !args->policy_given,
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
    *out = (struct outcome){.plan = cli_read_plan(file, args->line.json)};
    if (out->plan == NULL) {
        return CLI_USAGE;
    }
    if (args->line.wanted.store != NULL) {
        enum err err = client_expect(out->plan, args->line.wanted.store, &diag);
        if (err != ERR_OK) {
            return cli_fail_store(args->line.command, err, &diag);
        }
    }
    struct sim_options options = args->options;
    options.script = &args->script;
    options.policy = variant.own_policy ? out->plan->policy : variant.policy;
    options.rules = variant.rules;
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
    struct strbuf out = {0};
    struct svg_options options = {.title = outcomes[0].plan->name};
    struct svg_panel panels[RUNS_MAX];
    for (uint32_t ix = 0; ix < count; ix++) {
        panels[ix] = (struct svg_panel){
            .plan = outcomes[ix].plan,
            .result = outcomes[ix].result,
            .caption = count > 1 ? outcomes[ix].label.text : NULL,
        };
    }
    svg_compare(&out, panels, count, &options);
    int error = cli_write_file(args->svg_path, &out);
    strbuf_release(&out);
    return error == 0 ? CLI_OK
                      : cli_fail(args->line.command,
                                 "%s: %s",
                                 args->svg_path,
                                 strerror(error));
}

static void add_gantt(struct strbuf *out, const struct outcome *outcome)
{
    struct gantt_options options = {
        .width = cli_columns(),
        .colour = cli_colours(),
        .unicode = cli_unicode(),
    };
    strbuf_adds(out, "\n");
    gantt_text(out, outcome->plan, outcome->result, &options);
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
        const struct sim_result *results[RUNS_MAX];
        for (uint32_t ix = 0; ix < count; ix++) {
            results[ix] = outcomes[ix].result;
        }
        results_table(out, outcomes[0].plan, results, count);
    }
    for (uint32_t ix = 0; gantt && ix < count; ix++) {
        if (count > 1) {
            strbuf_addf(out, "\n%s:", outcomes[ix].label.text);
        }
        add_gantt(out, &outcomes[ix]);
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
    if (code == CLI_OK && outcomes[count - 1].result->left_count > 0) {
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

static int run_args(struct args *args)
{
    int argc = args->line.argc;
    char **argv = args->line.argv;
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
    struct args args = {.options = {.rules = SIM_RULES_ALL, .seed = 1}};
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
    {"changes",
     "TASK:N",
     "the first N attempts of TASK request changes",
     OPT_CHANGES},
    {"checkpoint",
     "TASK:N",
     "the first N attempts of TASK exit with a checkpoint",
     OPT_CHECKPOINT},
    {"compare", NULL, "compare all policies", CLI_AT(args, compare)},
    {"compare-rules",
     NULL,
     "compare all combinations of rules",
     CLI_AT(args, compare_rules)},
    {"fail", "TASK:N", "the first N attempts of TASK fail", OPT_FAIL},
    {"gantt", NULL, "draw the timeline", CLI_AT(args, gantt)},
    {"jitter", "PERCENT", "random durations around the estimates", OPT_JITTER},
    {"json",
     NULL,
     "print one JSON object, or an array of them",
     CLI_AT(cli_line, json)},
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
     "take estimates from the history of a store",
     CLI_AT(cli_line, wanted.store)},
    {"svg", "FILE", "write the timeline as SVG", CLI_AT(args, svg_path)},
    {0},
};

const struct cli_command cli_simulate = {
    .name = "simulate",
    .synopsis = "[OPTION]... PLAN",
    .summary = "run a plan in virtual time and show what runs when",
    .options = options,
    .run = run,
    .take = take_option,
};
