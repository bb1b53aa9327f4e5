/* SPDX-License-Identifier: MIT */
/* sluice budget: show spending and budgets of runs, or set a budget. */
#include "base/jsonw.h"
#include "base/macros.h"
#include "cli/cli.h"
#include "cli/request.h"
#include "engine/request.h"
#include "view/glance.h"
#include "view/target.h"
#include "view/usage.h"

#include <getopt.h>
#include <string.h>

struct args {
    struct cli_line line;
    const char *class_name;
    const char *task;
    const char *usd;
    const char *tokens;
};

static int set(const struct args *args)
{
    int64_t usd = 0;
    int64_t tokens = 0;
    if ((args->usd != NULL && !plan_parse_usd(args->usd, &usd)) ||
        (args->tokens != NULL && !plan_parse_tokens(args->tokens, &tokens))) {
        return cli_fail(
            args->line.command,
            "invalid amount; use a number such as 20 or 0.5, up to 100000 "
            "dollars, or of tokens, such as 500k or 1.5M, up to 1G");
    }
    if (args->class_name != NULL && args->task != NULL) {
        return cli_fail(args->line.command,
                        "--class and --task exclude each other");
    }
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "verb", "budget");
    if (args->line.wanted.run != NULL) {
        jsonw_text(&json, "run", args->line.wanted.run);
    }
    if (args->class_name != NULL) {
        jsonw_text(&json, "class", args->class_name);
    }
    if (args->task != NULL) {
        jsonw_text(&json, "task", args->task);
    }
    if (args->usd != NULL) {
        jsonw_number(&json, "usd", 10, (double)usd / PLAN_USD);
    }
    if (args->tokens != NULL) {
        jsonw_int(&json, "tokens", tokens);
    }
    jsonw_object_end(&json);
    int code = request_carry_out(&args->line, strbuf_text(&text));
    strbuf_release(&text);
    return code;
}

static void add_text(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    const struct engine *engine = glance->view.engine;
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view run = engine_run(engine, ix);
        size_t before = out->len;
        if (glance_is_meant(options, &run)) {
            strbuf_addf(out, "run %s:\n", run.id);
            size_t head = out->len;
            usage_add_budgets(out, glance, ix, "  ");
            if (out->len == head) {
                out->len = before;
                strbuf_addf(out, "run %s has no budget\n", run.id);
            }
        }
    }
    if (out->len == 0) {
        strbuf_adds(out, "no unfinished run\n");
    }
}

static void add_json(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    strbuf_adds(out, "{");
    glance_json_runs(out, glance, options, "budgets", usage_json_budgets);
    strbuf_adds(out, "}\n");
}

static int show(const struct args *args)
{
    const struct cli_line *line = &args->line;
    if (args->class_name != NULL || args->task != NULL) {
        return cli_fail(line->command,
                        "missing amount: use --usd, --tokens or both");
    }
    return cli_show(line, line->json ? add_json : add_text);
}

/* Check the ids; return CLI_OK, or print an error and return CLI_USAGE. */
static int check_names(const struct args *args)
{
    const char *const names[][2] = {
        {"run", args->line.wanted.run},
        {"class", args->class_name},
        {"task", args->task},
    };
    int code = CLI_OK;
    for (size_t ix = 0; ix < ARRAY_COUNT(names) && code == CLI_OK; ix++) {
        if (names[ix][1] != NULL) {
            code = cli_check_id(args->line.command, names[ix][0], names[ix][1]);
        }
    }
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    code = check_names(&args);
    if (code != CLI_OK) {
        return code;
    }
    return args.usd != NULL || args.tokens != NULL ? set(&args) : show(&args);
}

static const struct cli_option options[] = {
    {"class",
     "CLASS",
     "the budget of all tasks of a class",
     CLI_AT(args, class_name)},
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"task",
     "TASK",
     "the budget of all sessions of a task",
     CLI_AT(args, task)},
    {"tokens", "N", "the budget in tokens", CLI_AT(args, tokens)},
    {"usd", "X", "the budget in US dollars", CLI_AT(args, usd)},
    {0},
};

const struct cli_command cli_budget = {
    .name = "budget",
    .synopsis = "[--usd X] [--tokens N] [OPTION]... [RUN]",
    .summary = "show what was spent, or change a budget",
    .options = options,
    .operand = CLI_OPERAND_RUN,
    .run = run,
};
