/* SPDX-License-Identifier: MIT */
/* sluice budget: what was spent of what; set how much there is. */
#include "base/jsonw.h"
#include "cli/cli.h"
#include "cli/request.h"
#include "engine/request.h"
#include "view/glance.h"
#include "view/target.h"
#include "view/usage.h"

#include <getopt.h>
#include <string.h>

enum { OPT_CLASS = 1, OPT_TASK, OPT_TOKENS, OPT_USD };

struct line {
    const struct cli_command *command;
    struct glance_options wanted;
    bool json;
    const char *class_name;
    const char *task;
    const char *usd;
    const char *tokens;
};

static int set(const struct line *line)
{
    int64_t usd = 0;
    int64_t tokens = 0;
    if ((line->usd != NULL && !plan_parse_usd(line->usd, &usd)) ||
        (line->tokens != NULL && !plan_parse_tokens(line->tokens, &tokens))) {
        return cli_fail(
            line->command,
            "invalid amount; use a number such as 20 or 0.5, up to 100000 "
            "dollars, or of tokens, such as 500k or 1.5M, up to 1G");
    }
    if (line->class_name != NULL && line->task != NULL) {
        return cli_fail(line->command, "--class and --task exclude each other");
    }
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "verb", "budget");
    if (line->wanted.run != NULL) {
        jsonw_text(&json, "run", line->wanted.run);
    }
    if (line->class_name != NULL) {
        jsonw_text(&json, "class", line->class_name);
    }
    if (line->task != NULL) {
        jsonw_text(&json, "task", line->task);
    }
    if (line->usd != NULL) {
        jsonw_number(&json, "usd", 10, (double)usd / PLAN_USD);
    }
    if (line->tokens != NULL) {
        jsonw_int(&json, "tokens", tokens);
    }
    jsonw_object_end(&json);
    int code = request_carry_out(line->command,
                                 line->wanted.store,
                                 line->json,
                                 strbuf_text(&text));
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

static int show(const struct line *line)
{
    if (line->class_name != NULL || line->task != NULL) {
        return cli_fail(line->command,
                        "missing amount: use --usd, --tokens or both");
    }
    return cli_show(line->command,
                    &line->wanted,
                    line->json ? add_json : add_text);
}

static int take_option(struct line *line, int code, const char *argument)
{
    switch (code) {
    case CLIENT_OPT_STORE:
        line->wanted.store = argument;
        return CLI_OK;
    case CLIENT_OPT_RUN:
        line->wanted.run = argument;
        return cli_check_id(line->command, "run", argument);
    case CLIENT_OPT_JSON:
        line->json = true;
        return CLI_OK;
    case OPT_CLASS:
        line->class_name = argument;
        return cli_check_id(line->command, "class", argument);
    case OPT_TASK:
        line->task = argument;
        return cli_check_id(line->command, "task", argument);
    case OPT_TOKENS:
        line->tokens = argument;
        return CLI_OK;
    case OPT_USD:
        line->usd = argument;
        return CLI_OK;
    default:
        return CLI_USAGE;
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct line line = {.command = command};
    for (;;) {
        const char *argument = NULL;
        int code = cli_next(command, argc, argv, &argument);
        if (code == CLI_END) {
            break;
        }
        if (code < 0) {
            return code == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        code = take_option(&line, code, argument);
        if (code != CLI_OK) {
            return code;
        }
    }
    int code = cli_run_operand(command, argc, argv, &line.wanted.run);
    if (code != CLI_OK) {
        return code;
    }
    return line.usd != NULL || line.tokens != NULL ? set(&line) : show(&line);
}

static const struct cli_option options[] = {
    {"class", "CLASS", "the budget of all tasks of a class", OPT_CLASS},
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"task", "TASK", "the budget of all sessions of a task", OPT_TASK},
    {"tokens", "N", "the budget in tokens", OPT_TOKENS},
    {"usd", "X", "the budget in US dollars", OPT_USD},
    {0},
};

const struct cli_command cli_budget = {
    .name = "budget",
    .synopsis = "[--usd X] [--tokens N] [OPTION]... [RUN]",
    .summary = "show what was spent, or change a budget",
    .options = options,
    .run = run,
};
