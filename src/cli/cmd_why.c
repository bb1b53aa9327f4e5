/* SPDX-License-Identifier: MIT */
/* sluice why: print why a task waits, the root cause and the remedy. */
#include "base/plain.h"
#include "cli/cli.h"
#include "view/chain.h"

#include <getopt.h>

/* --- text --------------------------------------------------------------- */

/* Append the command that releases a held task. */
static void add_release(struct strbuf *out, const struct chain *chain)
{
    struct strbuf command = {0};
    const char *run = chain_run(chain, 0);
    strbuf_addf(&command, "sluice release %s", chain_id(chain, 0));
    if (run != NULL) {
        strbuf_addf(&command, " --run %s", run);
    }
    strbuf_addf(out,
                "  %-40s let it start when nothing else blocks it\n",
                strbuf_text(&command));
    strbuf_release(&command);
}

/* Append the command for a run that is stopped because of the root. */
static void add_resume(struct strbuf *out, const struct chain *chain)
{
    uint32_t ix = chain_halted(chain);
    if (ix == CHAIN_MAX) {
        return;
    }
    struct reason reason = chain_reason(chain, ix);
    reasons_add_remedies(out,
                         &reason,
                         chain_id(chain, ix),
                         chain_run(chain, ix),
                         (struct reasons_layout){"", 2, 40});
}

/* Add that the base of the task's repository is not merged, if so. */
static void add_base(struct strbuf *out, const struct chain *chain)
{
    const struct engine *engine = chain->glance.view.engine;
    struct chain_link link = chain->links[0];
    const struct plan *plan = engine_plan(engine, link.run);
    struct engine_bad_base bad;
    if (engine_bad_base(engine, link.run, plan->tasks[link.task].repo, &bad)) {
        strbuf_adds(out, "\nnote:   ");
        reasons_add_base(out, &bad);
        strbuf_adds(out, "\n");
    }
}

static void add_text(struct strbuf *out, const struct chain *chain)
{
    chain_add_links(out, chain);
    uint32_t root = chain->count - 1;
    struct chain_link link = chain->links[root];
    const struct client_view *view = &chain->glance.view;
    const char *said = engine_reason(view->engine, link.run, link.task);
    struct reason reason = chain_reason(chain, root);
    if (said != NULL && reason.state != TASK_DONE) {
        strbuf_adds(out, "\nreason: ");
        plain_add(out, said);
        strbuf_adds(out, "\n");
    }
    add_base(out, chain);
    struct strbuf log = {0};
    if (chain_add_log(&log, chain, root)) {
        strbuf_addf(out,
                    "%slog:    %s\n",
                    said != NULL && reason.state != TASK_DONE ? "" : "\n",
                    strbuf_text(&log));
    }
    strbuf_adds(out,
                link.confined ? "sandbox: its session was confined\n" : "");
    strbuf_release(&log);
    reasons_add_remedies(out,
                         &reason,
                         chain_id(chain, root),
                         chain_run(chain, root),
                         (struct reasons_layout){"\nto do:\n", 2, 40});
    add_resume(out, chain);
    struct reason first = chain_reason(chain, 0);
    if (first.held && first.code != WHY_HELD) {
        strbuf_adds(out, "\nalso held:\n");
        add_release(out, chain);
    }
    if (!view->owned && reason.code == WHY_STARTABLE) {
        strbuf_adds(out,
                    "\nto do:\n  sluice run PLAN    start a scheduler; none is "
                    "running\n");
    }
}

/* --- command ------------------------------------------------------------ */

static int show(const struct cli_line *line, const char *name)
{
    struct chain chain;
    struct diag diag = {0};
    struct strbuf out = {0};
    enum err err = chain_find(&chain, &line->wanted, name, &diag);
    if (err == ERR_OK) {
        err = chain_read_attempts(&chain, &diag);
    }
    int code = CLI_OK;
    if (err != ERR_OK) {
        code = cli_fail_store(line->command, err, &diag);
    } else {
        (line->json ? chain_add_json : add_text)(&out, &chain);
        code = cli_print(&out);
    }
    chain_release(&chain);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_line line = {0};
    int code = cli_parse(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (optind == argc) {
        return cli_fail(command, "missing TASK");
    }
    if (optind + 1 < argc) {
        return cli_fail(command,
                        "unexpected argument \"%s\"; name one task",
                        argv[optind + 1]);
    }
    code = cli_check_id(command, "task", argv[optind]);
    return code == CLI_OK ? show(&line, argv[optind]) : code;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_why = {
    .name = "why",
    .synopsis = "[--json] [--run RUN] [--store DIR] TASK",
    .summary = "explain why a task is not running, and what to do",
    .options = options,
    .run = run,
};
