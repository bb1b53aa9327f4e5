/* SPDX-License-Identifier: MIT */
/*
 * sluice limit: list the limits of runs and of the store, or set one.
 *
 * In this command, --store alone means the limits of the store, and --store=DIR
 * names its directory: `sluice limit --store sessions 4` reads as it should,
 * and --store DIR, as in other commands, is reported.
 */
#include "base/jsonw.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/request.h"
#include "view/glance.h"
#include "view/snapshot.h"

#include <getopt.h>
#include <string.h>

enum { NAME_COLUMNS = 24, NAME_BYTES_MAX = 300 };

struct args {
    struct cli_line line;
    bool store; /* the limits of the store are meant */
};

/* Append the maximum of a limit: "4", "34% (1)", "none". */
static void add_max(struct strbuf *out, int64_t max, uint32_t percent)
{
    if (percent > 0) {
        strbuf_addf(out, "%u%%", percent);
        if (max != LIMIT_NONE) {
            strbuf_addf(out, " (%lld)", (long long)max);
        }
    } else if (max == LIMIT_NONE) {
        strbuf_adds(out, "none");
    } else {
        strbuf_addf(out, "%lld", (long long)max);
    }
}

/* Append the maximum in the plan, if an operator has set another one. */
static void add_change(struct strbuf *out,
                       const struct plan_limit *limit,
                       int64_t set,
                       uint32_t percent)
{
    if (limit->percent != percent || (percent == 0 && limit->max != set)) {
        strbuf_adds(out, "; in the plan: ");
        add_max(out,
                limit->percent > 0 ? LIMIT_NONE : limit->max,
                limit->percent);
    }
}

static void add_limit(struct strbuf *out,
                      const struct glance *glance,
                      uint32_t run,
                      uint32_t ix)
{
    const struct engine *engine = glance->view.engine;
    struct engine_run_view view = engine_run(engine, run);
    const struct plan_limit *limit = &view.plan->limits[ix];
    int64_t now =
        sched_limit_max(engine_sched(engine), load_limit(view.loaded, ix));
    int64_t set = engine_limit_set(engine, run, ix);
    uint32_t percent = engine_limit_percent(engine, run, ix);
    strbuf_addf(out,
                "  %-*s %lld of ",
                NAME_COLUMNS,
                limit->name,
                (long long)snapshot_used(glance->snapshot, run, ix));
    add_max(out, percent > 0 ? now : set, percent);
    if (limit->per != NULL) {
        strbuf_addf(out, " per %s", limit->per);
    }
    add_change(out, limit, set, percent);
    if (percent == 0 && now < set) {
        strbuf_addf(out, "; lowered to %lld", (long long)now);
    }
    strbuf_adds(out, "\n");
}

/* Append the limits of the store; without any, nothing. */
static void add_ceilings(struct strbuf *out, const struct engine *engine)
{
    uint32_t count = engine_ceiling_count(engine);
    if (count > 0) {
        strbuf_adds(out, "store, all runs together:\n");
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        struct engine_ceiling_view ceiling = engine_ceiling(engine, ix);
        strbuf_addf(out,
                    "  %-*s %lld of ",
                    NAME_COLUMNS,
                    ceiling.name,
                    (long long)ceiling.used);
        add_max(out, ceiling.max, 0);
        strbuf_adds(out,
                    ceiling.ordered && ceiling.from_file
                        ? "; instead of that in settings.yaml\n"
                    : ceiling.from_file ? "; from settings.yaml\n"
                                        : "\n");
    }
}

static void add_store(struct strbuf *out,
                      const struct glance *glance,
                      const struct glance_options *options)
{
    (void)options;
    add_ceilings(out, glance->view.engine);
    if (out->len == 0) {
        strbuf_adds(out, "the store has no limits\n");
    }
}

static void add_text(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    const struct engine *engine = glance->view.engine;
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view run = engine_run(engine, ix);
        if (!glance_is_meant(options, &run)) {
            continue;
        }
        strbuf_addf(out, "run %s, units in use:\n", run.id);
        for (uint32_t n = 0; n < run.plan->limit_count; n++) {
            if (!plan_is_paid(&run.plan->limits[n])) {
                add_limit(out, glance, ix, n);
            }
        }
    }
    if (out->len == 0) {
        strbuf_adds(out, "no unfinished run\n");
    }
    add_ceilings(out, engine);
}

static void
json_limits(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    const struct engine *engine = glance->view.engine;
    struct engine_run_view view = engine_run(engine, run);
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_array(&json, NULL);
    for (uint32_t ix = 0; ix < view.plan->limit_count; ix++) {
        const struct plan_limit *limit = &view.plan->limits[ix];
        int64_t now =
            sched_limit_max(engine_sched(engine), load_limit(view.loaded, ix));
        int64_t set = engine_limit_set(engine, run, ix);
        uint32_t percent = engine_limit_percent(engine, run, ix);
        set = percent > 0 ? now : set;
        if (plan_is_paid(limit)) {
            continue;
        }
        jsonw_object(&json, NULL);
        jsonw_text(&json, "limit", limit->name);
        jsonw_text(&json, "per", limit->per);
        jsonw_int(&json, "used", snapshot_used(glance->snapshot, run, ix));
        jsonw_int_if(&json, "max", now != LIMIT_NONE, now);
        jsonw_int_if(&json, "set", set != LIMIT_NONE, set);
        jsonw_int_if(&json, "percent", percent > 0, percent);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
}

static void json_ceilings(struct strbuf *out, const struct engine *engine)
{
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_array(&json, "store");
    for (uint32_t ix = 0; ix < engine_ceiling_count(engine); ix++) {
        struct engine_ceiling_view ceiling = engine_ceiling(engine, ix);
        jsonw_object(&json, NULL);
        jsonw_text(&json, "limit", ceiling.name);
        jsonw_int(&json, "used", ceiling.used);
        jsonw_int_if(&json, "max", ceiling.max != LIMIT_NONE, ceiling.max);
        jsonw_bool(&json, "ordered", ceiling.ordered);
        jsonw_bool(&json, "settings", ceiling.from_file);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
}

static void add_json(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    strbuf_adds(out, "{");
    glance_json_runs(out, glance, options, "limits", json_limits);
    strbuf_adds(out, ", ");
    json_ceilings(out, glance->view.engine);
    strbuf_adds(out, "}\n");
}

static void add_store_json(struct strbuf *out,
                           const struct glance *glance,
                           const struct glance_options *options)
{
    (void)options;
    strbuf_adds(out, "{");
    json_ceilings(out, glance->view.engine);
    strbuf_adds(out, "}\n");
}

static int set(const struct args *args, const char *name, const char *max)
{
    const struct cli_line *line = &args->line;
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "verb", "limit");
    if (line->wanted.run != NULL) {
        jsonw_text(&json, "run", line->wanted.run);
    }
    jsonw_text(&json, "limit", name);
    jsonw_text(&json, "max", max);
    if (args->store) {
        jsonw_bool(&json, "store", true);
    }
    jsonw_object_end(&json);
    int code = request_carry_out(line, strbuf_text(&text));
    strbuf_release(&text);
    return code;
}

/* Check that an operand can be sent. */
static int check_text(const struct cli_command *command, const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len > NAME_BYTES_MAX) {
        return cli_fail(command,
                        len == 0 ? "an argument is empty"
                                 : "an argument is too long");
    }
    return utf8_is_valid(text, len)
               ? CLI_OK
               : cli_fail(command, "an argument is not valid UTF-8");
}

/* Remove --store alone from the words and return whether it was there. */
static bool take_store(int *argc, char **argv)
{
    int kept = 0;
    bool found = false;
    bool over = false;
    for (int ix = 0; ix < *argc; ix++) {
        over = over || strcmp(argv[ix], "--") == 0;
        if (!over && strcmp(argv[ix], "--store") == 0) {
            found = true;
        } else {
            argv[kept++] = argv[ix];
        }
    }
    *argc = kept;
    return found;
}

/* Report operands that are not the name of a limit and its maximum. */
static int refuse_count(const struct args *args, char **operands, int count)
{
    const struct cli_command *command = args->line.command;
    const char *wanted = args->store
                             ? "use a number, none, or default for that of "
                               "settings.yaml"
                             : "use a number, a percentage such as 50%, or "
                               "none";
    if (args->store && (count == 3 || strchr(operands[0], '/') != NULL)) {
        return cli_fail(command,
                        "--store alone means the limits of the store: name its "
                        "directory as --store=%s",
                        operands[0]);
    }
    return count == 1 ? cli_fail(command,
                                 "missing maximum of \"%s\": %s",
                                 operands[0],
                                 wanted)
                      : cli_fail(command,
                                 "unexpected argument \"%s\"; name one limit "
                                 "and its maximum",
                                 operands[2]);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {.store = take_store(&argc, argv)};
    struct cli_line *line = &args.line;
    int code = cli_parse(line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    char **operands = argv + optind;
    int count = argc - optind;
    const char *of_run = line->wanted.run;
    if (of_run != NULL && args.store) {
        return cli_fail(command, "--store and --run exclude each other");
    }
    if (of_run != NULL && cli_check_id(command, "run", of_run) != CLI_OK) {
        return CLI_USAGE;
    }
    if (count == 0 && args.store) {
        return cli_show(line, line->json ? add_store_json : add_store);
    }
    if (count == 0) {
        return cli_show(line, line->json ? add_json : add_text);
    }
    if (count != 2) {
        return refuse_count(&args, operands, count);
    }
    if (check_text(command, operands[0]) != CLI_OK ||
        check_text(command, operands[1]) != CLI_OK ||
        (args.store && cli_check_id(command, "limit", operands[0]) != CLI_OK)) {
        return CLI_USAGE;
    }
    return set(&args, operands[0], operands[1]);
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    {"store",
     "DIR",
     "with =DIR: the store; alone: the limits of the store",
     CLIENT_OPT_STORE},
    {0},
};

const struct cli_command cli_limit = {
    .name = "limit",
    .synopsis = "[OPTION]... [NAME N|P%|none]",
    .summary = "list the limits, or change one",
    .options = options,
    .run = run,
};
