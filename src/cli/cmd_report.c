/* SPDX-License-Identifier: MIT */
/*
 * sluice report: report a run as a page, a picture, a summary or JSON. It only
 * reads the store. Unless --output names a file, the page is written to report/
 * in the home directory of the store.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "exec/attempt_file.h"
#include "report/report.h"
#include "view/client.h"
#include "view/target.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct args {
    struct cli_line line; /* default run: the newest */
    const char *output;   /* NULL: standard output, or the store */
    bool md;
    bool svg;
};

/* --- writing ------------------------------------------------------------ */

/* Write the page into the store: STORE/report/RUN.html. */
static enum err put_page(const char *home,
                         const struct run_history *history,
                         const struct strbuf *text,
                         struct strbuf *path,
                         struct diag *diag)
{
    struct strbuf folder = {0};
    struct strbuf name = {0};
    strbuf_addf(&folder, "%s/report", home);
    strbuf_addf(&name, "%s.html", history->id);
    enum err err = attempt_file_write(strbuf_text(&folder),
                                      strbuf_text(&name),
                                      text,
                                      diag);
    if (err == ERR_OK) {
        strbuf_addf(path, "%s/%s", folder.text, name.text);
    } else {
        char why[sizeof(diag->text)];
        (void)snprintf(why, sizeof(why), "%s", diag->text);
        err =
            diag_set(diag, ERR_INVALID, "%.300s; use -o for another file", why);
    }
    strbuf_release(&folder);
    strbuf_release(&name);
    return err;
}

static int write_out(const struct args *args,
                     const char *home,
                     const struct run_history *history,
                     const struct strbuf *text)
{
    struct diag diag = {0};
    struct strbuf path = {0};
    bool page = !args->line.json && !args->md && !args->svg;
    bool to_output =
        args->output != NULL ? strcmp(args->output, "-") == 0 : !page;
    if (to_output) {
        return cli_write(text);
    }
    enum err err = ERR_OK;
    if (args->output != NULL) {
        int error = cli_write_file(args->output, text);
        if (error != 0) {
            err = diag_set(&diag,
                           ERR_INVALID,
                           "write %s: %s",
                           args->output,
                           strerror(error));
        }
        strbuf_adds(&path, args->output);
    } else {
        err = put_page(home, history, text, &path, &diag);
    }
    strbuf_adds(&path, "\n");
    if (err == ERR_OK) {
        return cli_print(&path);
    }
    strbuf_release(&path);
    return cli_fail_store(args->line.command, err, &diag);
}

/* --- creating ----------------------------------------------------------- */

static int make(const struct args *args,
                const char *home,
                const struct run_history *history,
                const struct hindsight *hindsight)
{
    struct stats stats;
    struct forecast forecast;
    stats_init(&stats, history);
    forecast_init(&forecast, &stats);
    struct report report = {
        .history = history,
        .stats = &stats,
        .forecast = &forecast,
        .hindsight = hindsight,
        .wall_ns = clock_wall_ns(),
        .labels = args->line.wanted.labels,
    };
    struct strbuf text = {0};
    (args->line.json ? report_json
     : args->md      ? report_md
     : args->svg     ? report_svg
                     : report_html)(&text, &report);
    int code = write_out(args, home, history, &text);
    strbuf_release(&text);
    forecast_release(&forecast);
    stats_release(&stats);
    return code;
}

static int carry_out(const struct args *args)
{
    struct diag diag = {0};
    struct store *store = NULL;
    struct run_history history = {0};
    struct store_place place;
    enum err err =
        store_place_find(&place, args->line.wanted.store, false, &diag);
    if (err == ERR_OK) {
        err = store_open(&store, place.address, STORE_READ, &diag);
    }
    if (err == ERR_OK) {
        err = run_history_read(&history,
                               store,
                               args->line.wanted.run,
                               clock_wall_ns(),
                               &diag);
    }
    struct hindsight hindsight = {0};
    if (err == ERR_OK) {
        err = hindsight_read(&hindsight, store, history.number, &diag);
    }
    store_close(store);
    int code = err == ERR_OK ? make(args, place.home, &history, &hindsight)
                             : cli_fail_store(args->line.command, err, &diag);
    run_history_release(&history);
    store_place_release(&place);
    return code;
}

/* --- command line ------------------------------------------------------- */

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (args.line.json + args.md + args.svg > 1) {
        return cli_fail(command, "--json, --md and --svg exclude each other");
    }
    if (args.output != NULL && args.output[0] == '\0') {
        return cli_fail(command, "--output needs a file name");
    }
    return carry_out(&args);
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_LABEL,
    {"md", NULL, "print a summary in Markdown", CLI_AT(args, md)},
    {"output",
     "FILE",
     "write to this file; - is standard output",
     CLI_SHORT('o', args, output)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"svg", NULL, "print the timeline as SVG", CLI_AT(args, svg)},
    {0},
};

const struct cli_command cli_report = {
    .name = "report",
    .synopsis = "[OPTION]... [RUN]",
    .summary = "report on a run as HTML, SVG, Markdown or JSON",
    .options = options,
    .operand = CLI_OPERAND_RUN,
    .run = run,
};
