/* SPDX-License-Identifier: MIT */
/*
 * sluice report: what a run amounted to, as a page, a picture, a summary or
 * JSON. It only reads the store; the page goes beside the run's other files
 * there unless another place is named.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "exec/attempt_file.h"
#include "report/report.h"
#include "view/client.h"
#include "view/target.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_MD = 1, OPT_SVG, OPT_OUTPUT = 'o' };

enum form { FORM_HTML, FORM_JSON, FORM_MD, FORM_SVG };

struct request {
    const struct cli_command *command;
    const char *store_option;
    const char *run;    /* NULL: the newest */
    const char *output; /* NULL: standard output, or the store */
    enum form form;
    bool form_given;
};

typedef void (*form_fn)(struct strbuf *out, const struct report *report);

/* --- writing ------------------------------------------------------------ */

/* What cannot be replaced by renaming (a terminal, a pipe) is written to. */
static bool is_plain(const char *path)
{
    struct stat info;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

/*
 * Write the file whole: under a name of its own beside it, then by rename, so
 * that nobody ever sees half of it, and an old one stays when this fails. A
 * link is followed: the file that it names is replaced.
 */
static enum err
write_file(const char *path, const struct strbuf *text, struct diag *diag)
{
    char *real = is_plain(path) ? realpath(path, NULL) : NULL;
    const char *target = real != NULL ? real : path;
    struct strbuf made = {0};
    bool plain = is_plain(target);
    strbuf_adds(&made, target);
    if (plain) {
        strbuf_addf(&made, ".%ld.new", (long)getpid());
    }
    int flags = O_WRONLY | O_CLOEXEC | (plain ? O_CREAT | O_EXCL : 0);
    int fd = open(strbuf_text(&made), flags, 0666);
    bool good =
        fd >= 0 && attempt_file_write_all(fd, strbuf_text(text), text->len);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        error = errno;
        good = false;
    }
    if (good && plain && rename(strbuf_text(&made), target) != 0) {
        error = errno;
        good = false;
    }
    if (!good && plain && fd >= 0) {
        (void)unlink(strbuf_text(&made));
    }
    strbuf_release(&made);
    free(real);
    return good ? ERR_OK
                : diag_set(diag,
                           ERR_INVALID,
                           "write %s: %s",
                           path,
                           strerror(error));
}

/* The page, into the store: STORE/report/RUN.html. */
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

static int write_out(const struct request *request,
                     const char *home,
                     const struct run_history *history,
                     const struct strbuf *text)
{
    struct diag diag = {0};
    struct strbuf path = {0};
    bool to_output = request->output != NULL ? strcmp(request->output, "-") == 0
                                             : request->form != FORM_HTML;
    if (to_output) {
        return cli_write(text);
    }
    enum err err = ERR_OK;
    if (request->output != NULL) {
        err = write_file(request->output, text, &diag);
        strbuf_adds(&path, request->output);
    } else {
        err = put_page(home, history, text, &path, &diag);
    }
    strbuf_adds(&path, "\n");
    int code = err == ERR_OK ? cli_write(&path)
                             : cli_fail_store(request->command, err, &diag);
    strbuf_release(&path);
    return code;
}

/* --- making ------------------------------------------------------------- */

static int make(const struct request *request,
                const char *home,
                const struct run_history *history)
{
    static const form_fn forms[] = {
        [FORM_HTML] = report_html,
        [FORM_JSON] = report_json,
        [FORM_MD] = report_md,
        [FORM_SVG] = report_svg,
    };
    struct stats stats;
    struct forecast forecast;
    stats_init(&stats, history);
    forecast_init(&forecast, &stats);
    struct report report = {
        .history = history,
        .stats = &stats,
        .forecast = &forecast,
        .wall_ns = clock_wall_ns(),
    };
    struct strbuf text = {0};
    forms[request->form](&text, &report);
    int code = write_out(request, home, history, &text);
    strbuf_release(&text);
    forecast_release(&forecast);
    stats_release(&stats);
    return code;
}

static int carry_out(const struct request *request)
{
    struct diag diag = {0};
    struct store *store = NULL;
    struct run_history history = {0};
    struct store_place place;
    enum err err =
        store_place_find(&place, request->store_option, false, &diag);
    if (err == ERR_OK) {
        err = store_open(&store, place.address, STORE_READ, &diag);
    }
    if (err == ERR_OK) {
        err = run_history_read(&history,
                               store,
                               request->run,
                               clock_wall_ns(),
                               &diag);
    }
    store_close(store);
    int code = err == ERR_OK ? make(request, place.home, &history)
                             : cli_fail_store(request->command, err, &diag);
    run_history_release(&history);
    store_place_release(&place);
    return code;
}

/* --- the command line --------------------------------------------------- */

static int set_form(struct request *request, enum form form)
{
    if (request->form_given && request->form != form) {
        return cli_fail(request->command,
                        "--json, --md and --svg exclude each other");
    }
    request->form = form;
    request->form_given = true;
    return CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request = {.command = command};
    const char *argument;
    int option;
    while ((option = cli_next(command, argc, argv, &argument)) != CLI_END) {
        int code = CLI_OK;
        switch (option) {
        case CLIENT_OPT_JSON:
            code = set_form(&request, FORM_JSON);
            break;
        case OPT_MD:
            code = set_form(&request, FORM_MD);
            break;
        case OPT_SVG:
            code = set_form(&request, FORM_SVG);
            break;
        case OPT_OUTPUT:
            request.output = argument;
            break;
        case CLIENT_OPT_RUN:
            request.run = argument;
            break;
        case CLIENT_OPT_STORE:
            request.store_option = argument;
            break;
        default:
            return option == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        if (code != CLI_OK) {
            return code;
        }
    }
    if (request.output != NULL && request.output[0] == '\0') {
        return cli_fail(command, "--output needs a file name");
    }
    int code = cli_run_operand(command, argc, argv, &request.run);
    return code == CLI_OK ? carry_out(&request) : code;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    {"md", NULL, "print a summary in Markdown", OPT_MD},
    {"output", "FILE", "write to this file; - is standard output", OPT_OUTPUT},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"svg", NULL, "print the timeline as SVG", OPT_SVG},
    {0},
};

const struct cli_command cli_report = {
    .name = "report",
    .synopsis = "[OPTION]... [RUN]",
    .summary = "report on a run as HTML, SVG, Markdown or JSON",
    .options = options,
    .run = run,
};
