/* SPDX-License-Identifier: MIT */
/*
 * sluice top: a live view of a store, with keys to control it.
 *
 * One loop waits for keys, signals, child commands and the next reading of the
 * store. Signals arrive through a descriptor, so that all exits pass through
 * one place, which restores the terminal. A key runs the command of its name as
 * a child process (see child.h): one request at a time, in the order of the
 * keys, each with its run and task.
 */
#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "cli/cli.h"
#include "term/child.h"
#include "term/screen.h"
#include "term/top.h"
#include "view/client.h"
#include "view/target.h"
#include "view/top_look.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { OPT_INTERVAL = 1 };

enum {
    REQUESTS_MAX = 16, /* unanswered */
    KEYS_MAX = 256,    /* read between two draws */
};

#define INTERVAL_MIN_NS (100 * MS_NS)
#define INTERVAL_MAX_NS (3600 * SECOND_NS)

/* Reading the store takes at most 1/LOOK_SHARE of the time. */
enum { LOOK_SHARE = 10 };

struct view {
    struct cli_line line;
    bool read_only;
    int64_t interval_ns;

    struct store_place place;
    bool unicode;
    struct top top;
    struct top_look *look;
    struct screen *screen;
    struct grid grid;
    int signal_fd;
    sigset_t old_mask;
    int64_t next_look_ns; /* by clock_boot_ns() */

    struct top_request requests[REQUESTS_MAX]; /* [0] is being sent */
    uint32_t request_count;
    struct child request; /* sends requests[0] */
    struct strbuf answer;
    struct child shown; /* output is in the pager */

    bool quit;
    int code;
};

/* --- requests ------------------------------------------------------------- */

/* Build a command line; `words` has space for all its words. */
static void make_words(const struct view *view,
                       const struct top_request *request,
                       const char **words)
{
    uint32_t count = 0;
    words[count++] = request->verb;
    if (request->deed == TOP_SEND) {
        words[count++] = "--json";
    } else if (strcmp(request->verb, "log") == 0) {
        words[count++] = "--follow";
    }
    words[count++] = "--store";
    words[count++] = view->place.address;
    words[count++] = "--run";
    words[count++] = request->run;
    if (request->option != NULL) {
        words[count++] = request->option;
    }
    if (request->task != NULL) {
        words[count++] = "--";
        words[count++] = request->task;
    }
    if (request->text != NULL) {
        words[count++] = request->text;
    }
    words[count] = NULL;
}

/* "hold api-4", for messages. */
static void add_request(struct strbuf *out, const struct top_request *request)
{
    strbuf_addf(out,
                "%s %s",
                request->verb,
                request->task != NULL ? request->task : request->run);
}

static void drop_first(struct view *view)
{
    top_request_release(&view->requests[0]);
    view->request_count--;
    memmove(view->requests,
            view->requests + 1,
            view->request_count * sizeof(view->requests[0]));
}

/* Send the next request, unless a request is being sent. */
static void give_next(struct view *view)
{
    while (view->request_count > 0 && view->request.process == 0) {
        const char *words[12];
        struct diag diag = {0};
        make_words(view, &view->requests[0], words);
        strbuf_clear(&view->answer);
        if (child_start(&view->request, words, false, &diag) != ERR_OK) {
            top_say(&view->top, true, "%s", diag.text);
            drop_first(view);
        }
    }
}

static void take_request(struct view *view, struct top_request *request)
{
    if (view->request_count == REQUESTS_MAX) {
        top_say(&view->top,
                true,
                "%s: too many requests wait for a reply",
                request->verb);
        return;
    }
    view->requests[view->request_count++] = *request;
    *request = (struct top_request){0};
    struct strbuf text = {0};
    add_request(&text, &view->requests[view->request_count - 1]);
    top_say(&view->top, false, "%s ...", strbuf_text(&text));
    strbuf_release(&text);
    give_next(view);
}

/* Show the answer to the first request. */
static void say_answer(struct view *view, int code)
{
    json_t *json =
        json_loadb(strbuf_text(&view->answer), view->answer.len, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "text"));
    bool good = json_is_true(json_object_get(json, "ok"));
    struct strbuf name = {0};
    add_request(&name, &view->requests[0]);
    if (text == NULL) {
        top_say(&view->top,
                true,
                "%s: exited with code %d and no reply",
                strbuf_text(&name),
                code);
    } else if (good) {
        top_say(&view->top, false, "%s", text);
    } else {
        top_say(&view->top, true, "%s: %s", strbuf_text(&name), text);
    }
    strbuf_release(&name);
    json_decref(json);
}

/* Read the output of the child that sends a request. */
static void read_request(struct view *view)
{
    if (!child_read(&view->request, &view->answer)) {
        say_answer(view, child_wait(&view->request));
        drop_first(view);
        view->next_look_ns = 0; /* show the effect */
        give_next(view);
    }
}

/* --- pager -------------------------------------------------------------- */

static void show(struct view *view, const struct top_request *request)
{
    const char *words[12];
    struct diag diag = {0};
    child_drop(&view->shown, true);
    make_words(view, request, words);
    if (child_start(&view->shown, words, true, &diag) != ERR_OK) {
        view->top.running = false;
        pager_add(&view->top.pager, diag.text, strlen(diag.text));
    }
}

static void read_shown(struct view *view)
{
    struct strbuf text = {0};
    bool more = child_read(&view->shown, &text);
    if (view->top.mode == TOP_PAGER) {
        pager_add(&view->top.pager, strbuf_text(&text), text.len);
    }
    if (!more) {
        (void)child_wait(&view->shown);
        view->top.running = false;
    }
    strbuf_release(&text);
}

/* --- reading and drawing ------------------------------------------------ */

/* Read the store, and schedule the next reading so that readings take little of
 * the time. */
static void look(struct view *view)
{
    int64_t begin_ns = clock_boot_ns();
    struct diag ignored;
    top_look_show(view->look, view->top.run);
    if (top_look_again(view->look, &ignored) == ERR_OK) {
        top_update(&view->top, top_look_model(view->look));
    }
    int64_t end_ns = clock_boot_ns();
    int64_t pause_ns = (end_ns - begin_ns) * LOOK_SHARE;
    view->next_look_ns =
        end_ns + (pause_ns > view->interval_ns ? pause_ns : view->interval_ns);
}

static void draw(struct view *view)
{
    uint32_t columns;
    uint32_t rows;
    screen_size(view->screen, &columns, &rows);
    grid_resize(&view->grid, columns, rows);
    top_draw(&view->grid,
             &view->top,
             top_look_model(view->look),
             view->unicode);
    screen_show(view->screen, &view->grid);
}

/* --- loop --------------------------------------------------------------- */

static void do_request(struct view *view, struct top_request *request)
{
    switch (request->deed) {
    case TOP_NOTHING:
        break;
    case TOP_QUIT:
        view->quit = true;
        break;
    case TOP_SEND:
        take_request(view, request);
        break;
    case TOP_SHOW:
        show(view, request);
        break;
    case TOP_CLOSE:
        child_drop(&view->shown, true);
        break;
    case TOP_RUN:
        top_look_show(view->look, view->top.run);
        top_update(&view->top, top_look_model(view->look));
        break;
    }
}

static void read_keys(struct view *view)
{
    for (uint32_t count = 0; count < KEYS_MAX && !view->quit; count++) {
        int32_t key = screen_key(view->screen);
        if (key == SCREEN_NO_KEY) {
            return;
        }
        struct top_request request;
        top_key(&view->top,
                top_look_model(view->look),
                (uint32_t)key,
                &request);
        do_request(view, &request);
        top_request_release(&request);
    }
}

static void read_signal(struct view *view)
{
    struct signalfd_siginfo info;
    ssize_t got = read(view->signal_fd, &info, sizeof(info));
    if (got == (ssize_t)sizeof(info) && info.ssi_signo != SIGWINCH) {
        view->quit = true;
        view->code = CLI_INTERRUPTED;
    }
}

/* Wait for an event, or until the next reading is due. */
static void wait(struct view *view)
{
    struct pollfd fds[] = {
        {.fd = view->signal_fd, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = view->request.fd, .events = POLLIN}, /* -1: ignored */
        {.fd = view->shown.fd, .events = POLLIN},
    };
    int64_t left_ns = view->next_look_ns - clock_boot_ns();
    int64_t left_ms = left_ns > 0 ? (left_ns + MS_NS - 1) / MS_NS : 0;
    int got = poll(fds, sizeof(fds) / sizeof(fds[0]), (int)left_ms);
    if (got < 0) {
        if (errno != EINTR) {
            view->quit = true;
            view->code = CLI_USAGE;
        }
        return; /* after Ctrl-Z and fg: draw again */
    }
    if (fds[0].revents != 0) {
        read_signal(view);
    }
    if ((fds[1].revents & POLLIN) != 0) {
        read_keys(view);
    } else if (fds[1].revents != 0) {
        view->quit = true; /* the terminal is gone */
        view->code = CLI_INTERRUPTED;
    }
    if (fds[2].revents != 0) {
        read_request(view);
    }
    if (fds[3].revents != 0) {
        read_shown(view);
    }
}

static void loop(struct view *view)
{
    while (!view->quit) {
        if (clock_boot_ns() >= view->next_look_ns) {
            look(view);
        }
        draw(view);
        wait(view);
    }
}

/* Send pending requests after the view has closed. */
static void finish_requests(struct view *view)
{
    while (view->request_count > 0 && view->code == CLI_OK) {
        struct pollfd fds[] = {
            {.fd = view->signal_fd, .events = POLLIN},
            {.fd = view->request.fd, .events = POLLIN},
        };
        if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno != EINTR) {
            return;
        }
        if (fds[0].revents != 0) {
            read_signal(view);
        }
        if (fds[1].revents != 0) {
            struct strbuf name = {0};
            uint32_t before = view->request_count;
            add_request(&name, &view->requests[0]);
            read_request(view);
            if (view->request_count < before) {
                (void)fprintf(stderr,
                              "sluice top: %s: %s\n",
                              strbuf_text(&name),
                              strbuf_text(&view->top.message));
            }
            strbuf_release(&name);
        }
    }
}

/* --- command ------------------------------------------------------------ */

/* Receive signals through a descriptor. */
static enum err catch_signals(struct view *view, struct diag *diag)
{
    sigset_t mask;
    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGHUP);
    (void)sigaddset(&mask, SIGINT);
    (void)sigaddset(&mask, SIGQUIT);
    (void)sigaddset(&mask, SIGTERM);
    (void)sigaddset(&mask, SIGWINCH);
    if (sigprocmask(SIG_BLOCK, &mask, &view->old_mask) != 0) {
        return diag_set(diag, ERR_IO, "signals: %s", strerror(errno));
    }
    view->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return view->signal_fd >= 0
               ? ERR_OK
               : diag_set(diag, ERR_IO, "signals: %s", strerror(errno));
}

/* Run the view; return the exit code. */
static int watch(struct view *view)
{
    struct diag diag = {0};
    const struct glance_options *wanted = &view->line.wanted;
    view->look = top_look_new(&(struct top_look_options){
        .place = &view->place,
        .only = wanted->run,
        .labels = wanted->labels,
        .times = true,
        .forecast = true,
    });
    enum err err = top_look_again(view->look, &diag);
    if (err != ERR_OK) {
        return cli_fail_store(view->line.command, err, &diag);
    }
    top_update(&view->top, top_look_model(view->look));
    err = catch_signals(view, &diag);
    if (err == ERR_OK) {
        err = screen_open(&view->screen, cli_colours(), &diag);
    }
    if (err != ERR_OK) {
        (void)fprintf(stderr,
                      "sluice %s: %s\n",
                      view->line.command->name,
                      diag.text);
        return CLI_USAGE;
    }
    view->next_look_ns = clock_boot_ns() + view->interval_ns;
    loop(view);
    screen_close(view->screen);
    view->screen = NULL;
    child_drop(&view->shown, true);
    finish_requests(view);
    child_drop(&view->request, false);
    return view->code;
}

static void release(struct view *view)
{
    while (view->request_count > 0) {
        drop_first(view);
    }
    if (view->signal_fd >= 0) {
        (void)close(view->signal_fd);
    }
    strbuf_release(&view->answer);
    grid_release(&view->grid);
    top_release(&view->top);
    top_look_free(view->look);
    store_place_release(&view->place);
}

static int take_option(struct cli_line *line,
                       const struct cli_option *option,
                       char *argument)
{
    INVARIANT(option->code == OPT_INTERVAL);
    int64_t *ns = &((struct view *)line)->interval_ns;
    int bad = cli_read_duration(line->command, option->name, argument, ns);
    return bad == CLI_OK && (*ns < INTERVAL_MIN_NS || *ns > INTERVAL_MAX_NS)
               ? cli_fail(line->command,
                          "--interval %s: use 100ms to 1h",
                          argument)
               : bad;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct view view = {
        .interval_ns = SECOND_NS,
        .signal_fd = -1,
        .request = {.fd = -1},
        .shown = {.fd = -1},
        .unicode = cli_unicode(),
    };
    int code = cli_parse(&view.line, command, argc, argv);
    const char *run = view.line.wanted.run;
    if (code != CLI_END) {
        return code;
    }
    if (run != NULL && cli_check_id(command, "run", run) != CLI_OK) {
        return CLI_USAGE;
    }
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
        return cli_fail(command,
                        "standard input and output must be a terminal; use "
                        "'sluice status' instead");
    }
    code = cli_find_store(&view.line, &view.place);
    if (code != CLI_OK) {
        return code;
    }
    top_init(&view.top, view.read_only);
    code = watch(&view);
    release(&view);
    return code;
}

static const struct cli_option options[] = {
    {"interval",
     "TIME",
     "poll the store at this interval (default: 1s)",
     OPT_INTERVAL},
    CLIENT_OPTION_LABEL,
    {"read-only",
     NULL,
     "disable the keys that change something",
     CLI_AT(view, read_only)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_top = {
    .name = "top",
    .synopsis = "[--interval TIME] [--label LABEL]... [--read-only] "
                "[--store DIR] [RUN]",
    .summary = "watch and control runs on the full terminal",
    .options = options,
    .operand = CLI_OPERAND_RUN,
    .run = run,
    .take = take_option,
};
