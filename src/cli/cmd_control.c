/* SPDX-License-Identifier: MIT */
/*
 * The commands of an operator: add, answer, approve, cancel, cap, drain, first,
 * hold, pause, priority, release, rerun, resume, retry, rework, skip, tell.
 *
 * Each sends one request (see engine/request.h) and prints one answer. Only
 * errors that the command line alone shows are rejected here. The scheduler
 * checks the rest, because only the scheduler knows the current state.
 */
#include "base/clock.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/request.h"
#include "engine/request.h"
#include "view/client.h"
#include "work/owner.h"
#include "work/workers.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_DOWN = 1,
    OPT_TIMEOUT,
    OPT_UP,
    TEXT_BYTES_MAX = 64 << 10,
    DRAIN_US = 200000, /* between checks that the scheduler is alive */
};

/* A command line and its request. */
struct control {
    struct cli_line line;
    const char *provider;
    const char *key; /* of a fragment */
    const char *worker;
    int step; /* of the cap; 0: none */
    bool wait;
    int64_t timeout_ns; /* DURATION_MAX_NS: forever */
    char **operands;
    int operand_count;
    struct strbuf text;
    struct jsonw json;
};

static int
take(struct cli_line *line, const struct cli_option *option, char *argument)
{
    struct control *control = (struct control *)line;
    if (option->code == OPT_TIMEOUT) {
        control->wait = true;
        return cli_read_duration(line->command,
                                 "timeout",
                                 argument,
                                 &control->timeout_ns);
    }
    if (control->step != 0) {
        return cli_fail(line->command, "use --down or --up once");
    }
    control->step = option->code == OPT_UP ? 1 : -1;
    return CLI_OK;
}

/* Parse the options. Return CLI_END to continue, else the exit code. */
static int read_line(struct control *control,
                     const struct cli_command *command,
                     int argc,
                     char **argv)
{
    *control = (struct control){.timeout_ns = DURATION_MAX_NS};
    int code = cli_parse(&control->line, command, argc, argv);
    const char *run = control->line.wanted.run;
    if (code == CLI_END &&
        ((run != NULL && cli_check_id(command, "run", run) != CLI_OK) ||
         (control->provider != NULL &&
          cli_check_id(command, "provider", control->provider) != CLI_OK))) {
        return CLI_USAGE;
    }
    control->operands = argv + optind;
    control->operand_count = argc - optind;
    return code;
}

/* --- sending ------------------------------------------------------------ */

static struct jsonw *begin(struct control *control)
{
    strbuf_clear(&control->text);
    control->json = (struct jsonw){.out = &control->text};
    jsonw_object(&control->json, NULL);
    jsonw_text(&control->json, "verb", control->line.command->name);
    if (control->line.wanted.run != NULL) {
        jsonw_text(&control->json, "run", control->line.wanted.run);
    }
    return &control->json;
}

/* Send the request and print the answer; return the exit code. */
static int carry_out(struct control *control)
{
    jsonw_object_end(&control->json);
    int code = request_carry_out(&control->line, strbuf_text(&control->text));
    strbuf_release(&control->text);
    return code;
}

/* --- commands ----------------------------------------------------------- */

/* Parse a cap; if invalid, print an error and return false. */
static bool
read_cap(const struct cli_command *command, const char *text, int *out)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == '\0';
    if (!digits || errno != 0 || number > INT_MAX) {
        (void)cli_fail(
            command,
            "invalid cap \"%s\": use a number from 0 to %d, --down or --up",
            text,
            INT_MAX);
        return false;
    }
    *out = (int)number;
    return true;
}

static int run_cap(const struct cli_command *command, int argc, char **argv)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    int given = control.operand_count + (control.step != 0 ? 1 : 0);
    if (given == 0) {
        return cli_fail(command, "missing cap: use a number, --down or --up");
    }
    if (given > 1) {
        return cli_fail(command,
                        "too many arguments: use one number, --down or --up");
    }
    int max = 0;
    if (control.step == 0 && !read_cap(command, control.operands[0], &max)) {
        return CLI_USAGE;
    }
    struct jsonw *json = begin(&control);
    jsonw_int(json,
              control.step != 0 ? "step" : "max",
              control.step != 0 ? control.step : max);
    return carry_out(&control);
}

/* pause, resume: the operand is a run. */
static int run_whole(const struct cli_command *command, int argc, char **argv)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (cli_run_operand(command, argc, argv, &control.line.wanted.run) !=
        CLI_OK) {
        return CLI_USAGE;
    }
    if (control.provider != NULL && control.line.wanted.run != NULL) {
        return cli_fail(command, "--provider and --run exclude each other");
    }
    struct jsonw *json = begin(&control);
    if (control.provider != NULL) {
        jsonw_text(json, "provider", control.provider);
    }
    return carry_out(&control);
}

/* Return the only operand, a task id; NULL after printing an error. */
static const char *read_task(const struct control *control)
{
    if (control->operand_count == 0) {
        (void)cli_fail(control->line.command, "missing TASK");
        return NULL;
    }
    if (control->operand_count > 1) {
        (void)cli_fail(control->line.command,
                       "unexpected argument \"%s\"; name one task",
                       control->operands[1]);
        return NULL;
    }
    const char *id = control->operands[0];
    return cli_check_id(control->line.command, "task", id) == CLI_OK ? id
                                                                     : NULL;
}

/* first, hold, release, rerun, skip: the operand is a task. */
static int run_task(const struct cli_command *command, int argc, char **argv)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    const char *task = read_task(&control);
    if (task == NULL) {
        return CLI_USAGE;
    }
    struct jsonw *json = begin(&control);
    jsonw_text(json, "task", task);
    return carry_out(&control);
}

static enum err give(struct control *control,
                     const struct store_place *place,
                     struct request_answer *out,
                     struct diag *diag)
{
    jsonw_object_end(&control->json);
    return request_give(place, strbuf_text(&control->text), out, diag);
}

/*
 * A name that is not a task id may be a run id. Send a second request instead
 * of a lookup before the first: a request that finds no task changes nothing.
 */
static int send_either(struct control *control, const char *name)
{
    struct diag diag = {0};
    struct request_answer answers[2] = {{0}, {0}};
    struct store_place place;
    enum err err =
        store_place_find(&place, control->line.wanted.store, false, &diag);
    jsonw_text(begin(control), "task", name);
    if (err == ERR_OK) {
        err = give(control, &place, &answers[0], &diag);
    }
    if (err == ERR_OK && answers[0].err == ERR_NOT_FOUND &&
        control->line.wanted.run == NULL) {
        control->line.wanted.run = name;
        (void)begin(control);
        err = give(control, &place, &answers[1], &diag);
    }
    bool other = answers[1].line != NULL && answers[1].err != ERR_NOT_FOUND;
    int code;
    if (err == ERR_OK) {
        code = request_show(&control->line, &answers[other ? 1 : 0]);
        request_tell_idle(&control->line, &place, &answers[other ? 1 : 0]);
    } else {
        code = request_fail(&control->line, err, &diag);
    }
    strbuf_release(&control->text);
    request_release(&answers[0]);
    request_release(&answers[1]);
    store_place_release(&place);
    return code;
}

/* retry, cancel: a task or a whole run. */
static int run_either(const struct cli_command *command, int argc, char **argv)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (control.operand_count > 0) {
        const char *name = read_task(&control);
        return name != NULL ? send_either(&control, name) : CLI_USAGE;
    }
    if (control.line.wanted.run == NULL) {
        return cli_fail(command, "missing TASK; name a whole run with --run");
    }
    (void)begin(&control);
    return carry_out(&control);
}

/* Read a text (operands or standard input), called `what` in messages. CLI_END,
 * or the exit code. */
static int
read_text(const struct control *control, const char *what, struct strbuf *out)
{
    char **words = control->operands + 1;
    int count = control->operand_count - 1;
    if (count == 1 && strcmp(words[0], "-") == 0) {
        struct cli_file file;
        struct diag diag = {0};
        if (cli_read_file(&file, "-", &diag) != ERR_OK) {
            return cli_fail(control->line.command, "%s", diag.text);
        }
        strbuf_add(out, file.text, file.bytes);
        cli_release_file(&file);
    } else {
        for (int ix = 0; ix < count; ix++) {
            strbuf_adds(out, ix > 0 ? " " : "");
            strbuf_adds(out, words[ix]);
        }
    }
    const char *text = strbuf_text(out);
    if (text[strspn(text, " \t\r\n")] == '\0') {
        return cli_fail(control->line.command, "empty %s", what);
    }
    if (out->len > TEXT_BYTES_MAX) {
        return cli_fail(control->line.command,
                        "the %s has %zu bytes, more than %d: put it into a "
                        "file and send its path",
                        what,
                        out->len,
                        TEXT_BYTES_MAX);
    }
    json_t *checked = json_stringn(text, out->len);
    bool good = checked != NULL && strlen(text) == out->len;
    json_decref(checked);
    return good ? CLI_END
                : cli_fail(control->line.command,
                           "the %s is not valid UTF-8",
                           what);
}

static int check_key(const struct cli_command *command, const char *key)
{
    size_t len = strlen(key);
    if (len == 0 || len > REQUEST_KEY_BYTES_MAX) {
        return cli_fail(command,
                        "the key has %zu bytes: use 1 to %d",
                        len,
                        REQUEST_KEY_BYTES_MAX);
    }
    for (const char *at = key; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 127) {
            return cli_fail(command, "the key contains a control character");
        }
    }
    return utf8_is_valid(key, len)
               ? CLI_OK
               : cli_fail(command, "the key is not valid UTF-8");
}

static int run_add(const struct cli_command *command, int argc, char **argv)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    const char *path = cli_operand(command, argc, argv);
    if (path == NULL ||
        (control.key != NULL && check_key(command, control.key) != CLI_OK)) {
        return CLI_USAGE;
    }
    struct cli_file file = {0};
    struct diag diag = {0};
    if (cli_read_file(&file, path, &diag) != ERR_OK) {
        return cli_fail(command, "%s", diag.text);
    }
    if (memchr(file.text, '\0', file.bytes) != NULL) {
        code = cli_fail(command, "%s contains a NUL byte", file.path);
    } else {
        struct jsonw *json = begin(&control);
        if (control.key != NULL) {
            jsonw_text(json, "fragment_key", control.key);
        }
        jsonw_text(json, "file", file.path);
        jsonw_text(json, "text", file.text);
        code = carry_out(&control);
    }
    cli_release_file(&file);
    return code;
}

/* answer, approve, rework, tell: the operands are a task and a text, which
 * `optional` lets be absent. */
static int send_text(const struct cli_command *command,
                     int argc,
                     char **argv,
                     const char *what,
                     bool optional)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    bool absent = control.operand_count == 1;
    if (control.operand_count == 0 || (absent && !optional)) {
        return cli_fail(command,
                        absent     ? "missing TEXT (use - for standard input)"
                        : optional ? "missing TASK"
                                   : "missing TASK and TEXT");
    }
    const char *task = control.operands[0];
    if (cli_check_id(command, "task", task) != CLI_OK) {
        return CLI_USAGE;
    }
    struct strbuf text = {0};
    code = absent ? CLI_END : read_text(&control, what, &text);
    if (code == CLI_END) {
        struct jsonw *json = begin(&control);
        jsonw_text(json, "task", task);
        if (!absent) {
            jsonw_text(json, "text", strbuf_text(&text));
        }
        code = carry_out(&control);
    }
    strbuf_release(&text);
    return code;
}

static int run_answer(const struct cli_command *command, int argc, char **argv)
{
    return send_text(command, argc, argv, "answer", false);
}

static int run_rework(const struct cli_command *command, int argc, char **argv)
{
    return send_text(command, argc, argv, "text", false);
}

static int run_approve(const struct cli_command *command, int argc, char **argv)
{
    return send_text(command, argc, argv, "text", true);
}

static int run_tell(const struct cli_command *command, int argc, char **argv)
{
    return send_text(command, argc, argv, "message", false);
}

static int
run_priority(const struct cli_command *command, int argc, char **argv)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (control.operand_count < 2) {
        return cli_fail(command,
                        control.operand_count == 0 ? "missing TASK and N"
                                                   : "missing N");
    }
    if (control.operand_count > 2) {
        return cli_fail(command,
                        "unexpected argument \"%s\"; name one task or group",
                        control.operands[2]);
    }
    const char *task = control.operands[0];
    const char *text = control.operands[1];
    if (cli_check_id(command, "task", task) != CLI_OK) {
        return CLI_USAGE;
    }
    if (text[0] < '0' || text[0] > '9' || text[1] != '\0') {
        return cli_fail(command,
                        "invalid priority \"%s\": use a number from 0, the "
                        "most urgent, to 9",
                        text);
    }
    struct jsonw *json = begin(&control);
    jsonw_text(json, "task", task);
    jsonw_int(json, "priority", text[0] - '0');
    return carry_out(&control);
}

/* --- drain -------------------------------------------------------------- */

/* Find the scheduler, if any. */
static enum err find_owner(const struct store_place *place,
                           struct store_owner *out,
                           bool *owned_out,
                           struct diag *diag)
{
    struct store *store;
    enum err err = store_open(&store, place->address, STORE_READ, diag);
    if (err != ERR_OK) {
        return err;
    }
    err = store_owner(store, out, diag);
    *owned_out = err == ERR_OK;
    store_close(store);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* List the running sessions, for which the scheduler waits. */
static void
add_sessions(struct strbuf *out, const struct client_view *view, bool json)
{
    uint32_t count = engine_session_count(view->engine);
    for (uint32_t ix = 0; ix < count; ix++) {
        struct engine_session_view session = engine_session(view->engine, ix);
        struct engine_run_view run = engine_run(view->engine, session.run);
        const char *task = run.plan->tasks[session.task].id;
        int64_t begun_ns =
            session.begun_ns > 0 ? session.begun_ns : session.claimed_ns;
        int64_t since_ns = clock_wall_ns() - begun_ns;
        since_ns = since_ns > 0 ? since_ns : 0;
        if (json) {
            struct jsonw writer = {.out = out};
            jsonw_object(&writer, NULL);
            jsonw_text(&writer, "run", run.id);
            jsonw_text(&writer, "task", task);
            jsonw_int(&writer, "attempt", session.number);
            jsonw_duration(&writer, "seconds", since_ns);
            jsonw_object_end(&writer);
        } else {
            strbuf_addf(out, "  %s, attempt %u, for ", task, session.number);
            duration_add(out, since_ns);
            strbuf_adds(out, "\n");
        }
    }
}

/* Report the sessions that run at the timeout. */
static int report_running(const struct control *control,
                          const struct store_place *place)
{
    struct client_view view;
    struct diag diag = {0};
    struct strbuf out = {0};
    int code = CLI_NOT_ALL_DONE;
    enum err err = client_look(&view, place, NULL, &diag);
    if (err != ERR_OK) {
        code = request_fail(&control->line, err, &diag);
    } else if (control->line.json) {
        struct jsonw json = {.out = &out};
        jsonw_object(&json, NULL);
        jsonw_bool(&json, "ok", false);
        jsonw_text(&json, "error", err_name(ERR_TIMEOUT));
        jsonw_text(&json, "text", "the scheduler has not exited");
        jsonw_array(&json, "running");
        add_sessions(&out, &view, true);
        jsonw_array_end(&json);
        jsonw_object_end(&json);
        strbuf_adds(&out, "\n");
        (void)cli_write(&out);
    } else {
        strbuf_addf(&out,
                    "sluice %s: the scheduler (pid %lld) has not exited and "
                    "keeps draining; still running:\n",
                    control->line.command->name,
                    owner_process(&view.owner));
        add_sessions(&out, &view, false);
        (void)fputs(strbuf_text(&out), stderr);
    }
    client_view_release(&view);
    strbuf_release(&out);
    return code;
}

/* Report success with 0 sessions. */
static int say_none(const struct control *control, const char *text)
{
    struct strbuf out = {0};
    struct jsonw json = {.out = &out};
    if (control->line.json) {
        jsonw_object(&json, NULL);
        jsonw_bool(&json, "ok", true);
        jsonw_text(&json, "text", text);
        jsonw_int(&json, "sessions", 0);
        jsonw_object_end(&json);
    } else {
        strbuf_adds(&out, text);
    }
    strbuf_adds(&out, "\n");
    int code = cli_write(&out);
    strbuf_release(&out);
    return code;
}

static int wait_for_end(const struct control *control,
                        const struct store_place *place,
                        const struct store_owner *drained)
{
    int64_t begun_ns = clock_boot_ns();
    struct diag diag = {0};
    for (;;) {
        struct store_owner owner = {0};
        bool owned = false;
        enum err err = find_owner(place, &owner, &owned, &diag);
        if (err != ERR_OK) {
            return request_fail(&control->line, err, &diag);
        }
        if (!owned || !owner_is_same(&owner, drained)) {
            return say_none(control, "the scheduler has exited");
        }
        if (clock_boot_ns() - begun_ns >= control->timeout_ns) {
            return report_running(control, place);
        }
        (void)usleep(DRAIN_US);
    }
}

static int drain(const struct control *control, const struct store_place *place)
{
    struct diag diag = {0};
    struct store_owner owner = {0};
    struct request_answer answer = {0};
    bool owned = false;
    int code;
    enum err err = find_owner(place, &owner, &owned, &diag);
    if (err == ERR_OK && !owned) {
        return say_none(control, "no scheduler is running");
    }
    if (err == ERR_OK) {
        err = request_give(place, "{\"verb\":\"drain\"}", &answer, &diag);
    }
    if (err == ERR_IO && owned && control->wait) {
        code = wait_for_end(control, place, &owner); /* it exited meanwhile */
    } else if (err != ERR_OK) {
        code = request_fail(&control->line, err, &diag);
    } else {
        bool waits = control->wait && answer.err == ERR_OK;
        code = waits && control->line.json
                   ? CLI_OK
                   : request_show(&control->line, &answer);
        if (code == CLI_OK && waits) {
            code = wait_for_end(control, place, &owner);
        }
    }
    request_release(&answer);
    return code;
}

static int drain_worker(const struct control *control,
                        const struct store_place *place)
{
    struct diag diag = {0};
    struct strbuf text = {0};
    enum err err = workers_drain(place->address, control->worker, &diag);
    if (err != ERR_OK) {
        return request_fail(&control->line, err, &diag);
    }
    strbuf_addf(&text,
                "worker %s takes nothing more, and exits after its last "
                "session",
                control->worker);
    int code = say_none(control, strbuf_text(&text));
    strbuf_release(&text);
    return code;
}

static int run_drain(const struct cli_command *command, int argc, char **argv)
{
    struct control control;
    int code = read_line(&control, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (control.operand_count > 0) {
        return cli_fail(
            command,
            "unexpected argument \"%s\"; drain applies to the whole scheduler",
            control.operands[0]);
    }
    struct diag diag = {0};
    struct store_place place;
    enum err err =
        store_place_find(&place, control.line.wanted.store, false, &diag);
    if (err == ERR_OK && control.worker != NULL) {
        code = drain_worker(&control, &place);
    } else if (err == ERR_OK) {
        code = drain(&control, &place);
    } else {
        code = request_fail(&control.line, err, &diag);
    }
    store_place_release(&place);
    return code;
}

/* --- tables ------------------------------------------------------------- */

static const struct cli_option common_options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

static const struct cli_option cap_options[] = {
    {"down", NULL, "lower the cap by one", OPT_DOWN},
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {"up", NULL, "raise the cap by one", OPT_UP},
    {0},
};

static const struct cli_option resume_options[] = {
    CLIENT_OPTION_JSON,
    {"provider",
     "NAME",
     "use a stopped provider again",
     CLI_AT(control, provider)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

static const struct cli_option drain_options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_STORE,
    {"timeout", "TIME", "as --wait, but at most this long", OPT_TIMEOUT},
    {"wait",
     NULL,
     "wait until the scheduler has exited",
     CLI_AT(control, wait)},
    {"worker",
     "NAME",
     "drain this worker, and not the scheduler",
     CLI_AT(control, worker)},
    {0},
};

static const struct cli_option add_options[] = {
    CLIENT_OPTION_JSON,
    {"key",
     "KEY",
     "add nothing if the run has a fragment of this key",
     CLI_AT(control, key)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_add = {
    .name = "add",
    .synopsis = "[OPTION]... FRAGMENT",
    .summary = "add tasks and groups to an unfinished run",
    .options = add_options,
    .run = run_add,
};

const struct cli_command cli_answer = {
    .name = "answer",
    .synopsis = "[OPTION]... TASK TEXT...",
    .summary = "answer a parked task's question and retry it",
    .options = common_options,
    .run = run_answer,
};

const struct cli_command cli_approve = {
    .name = "approve",
    .synopsis = "[OPTION]... TASK [TEXT...]",
    .summary = "let a task start that waits for approval",
    .options = common_options,
    .run = run_approve,
};

const struct cli_command cli_cancel = {
    .name = "cancel",
    .synopsis = "[OPTION]... TASK | --run RUN",
    .summary = "cancel a task, a group or a run for good",
    .options = common_options,
    .run = run_either,
};

const struct cli_command cli_cap = {
    .name = "cap",
    .synopsis = "[OPTION]... N | --down | --up",
    .summary = "set how many sessions may run at once",
    .options = cap_options,
    .take = take,
    .run = run_cap,
};

const struct cli_command cli_drain = {
    .name = "drain",
    .synopsis = "[OPTION]...",
    .summary = "start no more sessions; stop after the last one",
    .options = drain_options,
    .take = take,
    .run = run_drain,
};

const struct cli_command cli_first = {
    .name = "first",
    .synopsis = "[OPTION]... TASK",
    .summary = "let a task start before all others",
    .options = common_options,
    .run = run_task,
};

const struct cli_command cli_hold = {
    .name = "hold",
    .synopsis = "[OPTION]... TASK",
    .summary = "keep a task from starting",
    .options = common_options,
    .run = run_task,
};

const struct cli_command cli_pause = {
    .name = "pause",
    .synopsis = "[OPTION]... [RUN]",
    .summary = "start no more sessions of a run until it is resumed",
    .options = common_options,
    .run = run_whole,
};

const struct cli_command cli_priority = {
    .name = "priority",
    .synopsis = "[OPTION]... TASK N",
    .summary = "change the priority of a task or group",
    .options = common_options,
    .run = run_priority,
};

const struct cli_command cli_release = {
    .name = "release",
    .synopsis = "[OPTION]... TASK",
    .summary = "let a held task start",
    .options = common_options,
    .run = run_task,
};

const struct cli_command cli_rerun = {
    .name = "rerun",
    .synopsis = "[OPTION]... TASK",
    .summary = "run a done task again, and all that depends on it",
    .options = common_options,
    .run = run_task,
};

const struct cli_command cli_resume = {
    .name = "resume",
    .synopsis = "[OPTION]... [RUN]",
    .summary = "resume a paused run or a stopped provider",
    .options = resume_options,
    .run = run_whole,
};

const struct cli_command cli_retry = {
    .name = "retry",
    .synopsis = "[OPTION]... TASK | --run RUN",
    .summary = "retry a failed or parked task, or all of a run",
    .options = common_options,
    .run = run_either,
};

const struct cli_command cli_rework = {
    .name = "rework",
    .synopsis = "[OPTION]... TASK TEXT...",
    .summary = "send work back to a stage, with what to change",
    .options = common_options,
    .run = run_rework,
};

const struct cli_command cli_skip = {
    .name = "skip",
    .synopsis = "[OPTION]... TASK",
    .summary = "skip a task and its dependents",
    .options = common_options,
    .run = run_task,
};

const struct cli_command cli_tell = {
    .name = "tell",
    .synopsis = "[OPTION]... TASK TEXT...",
    .summary = "send a message to a running session",
    .options = common_options,
    .run = run_tell,
};
