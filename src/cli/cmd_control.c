/* SPDX-License-Identifier: MIT */
/*
 * What an operator says to a scheduler: add, cap, pause, resume, hold, release,
 * retry, skip, cancel, answer, drain.
 *
 * Each is one request (see engine/request.h) and one answer. What can be seen
 * to be wrong from the command line alone is refused before anything is sent;
 * everything else is the scheduler's to judge, because only it knows the state
 * at that moment.
 */
#include "base/clock.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/request.h"
#include "engine/control_socket.h"
#include "engine/request.h"
#include "view/client.h"
#include "view/target.h"
#include "work/owner.h"

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
    OPT_PROVIDER,
    OPT_TIMEOUT,
    OPT_UP,
    OPT_WAIT,
    ANSWER_BYTES_MAX = 64 << 10,
    DRAIN_US = 200000, /* between looks at whether the scheduler has gone */
};

/* The command line. */
struct line {
    const struct cli_command *command;
    const char *store;
    const char *run;
    bool json;
    const char *provider;
    int step; /* of the cap; 0: none */
    bool wait;
    int64_t timeout_ns; /* DURATION_MAX_NS: no end */
    char **operands;
    int operand_count;
};

/* --- reading the command line ------------------------------------------- */

static int take_option(struct line *line, int code, const char *argument)
{
    switch (code) {
    case CLIENT_OPT_STORE:
        line->store = argument;
        return CLI_OK;
    case CLIENT_OPT_RUN:
        line->run = argument;
        return cli_check_id(line->command, "run", argument);
    case CLIENT_OPT_JSON:
        line->json = true;
        return CLI_OK;
    case OPT_PROVIDER:
        line->provider = argument;
        return cli_check_id(line->command, "provider", argument);
    case OPT_DOWN:
    case OPT_UP:
        if (line->step != 0) {
            return cli_fail(line->command, "use --down or --up once");
        }
        line->step = code == OPT_UP ? 1 : -1;
        return CLI_OK;
    case OPT_WAIT:
        line->wait = true;
        return CLI_OK;
    case OPT_TIMEOUT:
        line->wait = true;
        return cli_read_duration(line->command,
                                 "timeout",
                                 argument,
                                 &line->timeout_ns);
    default:
        return CLI_USAGE;
    }
}

/* Read the options. CLI_END: go on; else it is the exit code. */
static int read_line(struct line *line,
                     const struct cli_command *command,
                     int argc,
                     char **argv)
{
    *line = (struct line){
        .command = command,
        .timeout_ns = DURATION_MAX_NS,
    };
    for (;;) {
        const char *argument = NULL;
        int code = cli_next(command, argc, argv, &argument);
        if (code == CLI_END) {
            line->operands = argv + optind;
            line->operand_count = argc - optind;
            return CLI_END;
        }
        if (code < 0) {
            return code == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        code = take_option(line, code, argument);
        if (code != CLI_OK) {
            return code;
        }
    }
}

/* --- giving the request --------------------------------------------------- */

static void begin_request(struct jsonw *json, const struct line *line)
{
    jsonw_object(json, NULL);
    jsonw_text(json, "verb", line->command->name);
    if (line->run != NULL) {
        jsonw_text(json, "run", line->run);
    }
}

/* --- the commands ------------------------------------------------------- */

/* Read a cap; false, with an error printed, when it is none. */
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
    struct line line;
    int code = read_line(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    int given = line.operand_count + (line.step != 0 ? 1 : 0);
    if (given == 0) {
        return cli_fail(command, "missing cap: use a number, --down or --up");
    }
    if (given > 1) {
        return cli_fail(command,
                        "too many arguments: use one number, --down or --up");
    }
    int max = 0;
    if (line.step == 0 && !read_cap(command, line.operands[0], &max)) {
        return CLI_USAGE;
    }
    struct strbuf request = {0};
    struct jsonw json = {.out = &request};
    begin_request(&json, &line);
    jsonw_int(&json,
              line.step != 0 ? "step" : "max",
              line.step != 0 ? line.step : max);
    jsonw_object_end(&json);
    code = request_carry_out(command,
                             line.store,
                             line.json,
                             strbuf_text(&request));
    strbuf_release(&request);
    return code;
}

/* pause, resume: a run is all that can be named. */
static int run_whole(const struct cli_command *command, int argc, char **argv)
{
    struct line line;
    int code = read_line(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (cli_run_operand(command, argc, argv, &line.run) != CLI_OK) {
        return CLI_USAGE;
    }
    if (line.provider != NULL && line.run != NULL) {
        return cli_fail(command, "--provider and --run exclude each other");
    }
    struct strbuf request = {0};
    struct jsonw json = {.out = &request};
    begin_request(&json, &line);
    if (line.provider != NULL) {
        jsonw_text(&json, "provider", line.provider);
    }
    jsonw_object_end(&json);
    code = request_carry_out(command,
                             line.store,
                             line.json,
                             strbuf_text(&request));
    strbuf_release(&request);
    return code;
}

/* The one operand as a task's id; NULL with an error printed. */
static const char *read_task(const struct line *line)
{
    if (line->operand_count == 0) {
        (void)cli_fail(line->command, "missing TASK");
        return NULL;
    }
    if (line->operand_count > 1) {
        (void)cli_fail(line->command,
                       "unexpected argument \"%s\"; name one task",
                       line->operands[1]);
        return NULL;
    }
    const char *id = line->operands[0];
    return cli_check_id(line->command, "task", id) == CLI_OK ? id : NULL;
}

/* hold, release, skip: a task must be named. */
static int run_task(const struct cli_command *command, int argc, char **argv)
{
    struct line line;
    int code = read_line(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    const char *task = read_task(&line);
    if (task == NULL) {
        return CLI_USAGE;
    }
    struct strbuf request = {0};
    struct jsonw json = {.out = &request};
    begin_request(&json, &line);
    jsonw_text(&json, "task", task);
    jsonw_object_end(&json);
    code = request_carry_out(command,
                             line.store,
                             line.json,
                             strbuf_text(&request));
    strbuf_release(&request);
    return code;
}

/*
 * A name that is no task's may be a run's. The request is given once more
 * rather than looked up before: what the first one did not find it has not
 * changed.
 */
static int request_either(const struct line *line, const char *name)
{
    struct diag diag = {0};
    struct request_answer first = {0};
    struct request_answer second = {0};
    struct strbuf request = {0};
    struct jsonw json = {.out = &request};
    int code;
    struct store_place place;
    if (store_place_find(&place, line->store, false, &diag) != ERR_OK) {
        return request_fail(line->command, line->json, ERR_NOT_FOUND, &diag);
    }
    begin_request(&json, line);
    jsonw_text(&json, "task", name);
    jsonw_object_end(&json);
    enum err err = request_give(&place, strbuf_text(&request), &first, &diag);
    if (err == ERR_OK && first.err == ERR_NOT_FOUND && line->run == NULL) {
        struct line whole = *line;
        whole.run = name;
        strbuf_clear(&request);
        begin_request(&json, &whole);
        jsonw_object_end(&json);
        err = request_give(&place, strbuf_text(&request), &second, &diag);
    }
    if (err != ERR_OK) {
        code = request_fail(line->command, line->json, err, &diag);
    } else if (second.line != NULL && second.err != ERR_NOT_FOUND) {
        code = request_show(line->command, line->json, &second);
        request_tell_idle(line->command, &place, line->store, &second);
    } else {
        code = request_show(line->command, line->json, &first);
        request_tell_idle(line->command, &place, line->store, &first);
    }
    strbuf_release(&request);
    request_release(&first);
    request_release(&second);
    store_place_release(&place);
    return code;
}

/* retry, cancel: a task, or a whole run. */
static int run_either(const struct cli_command *command, int argc, char **argv)
{
    struct line line;
    int code = read_line(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (line.operand_count > 0) {
        const char *name = read_task(&line);
        return name != NULL ? request_either(&line, name) : CLI_USAGE;
    }
    if (line.run == NULL) {
        return cli_fail(command, "missing TASK; name a whole run with --run");
    }
    struct strbuf request = {0};
    struct jsonw json = {.out = &request};
    begin_request(&json, &line);
    jsonw_object_end(&json);
    code = request_carry_out(command,
                             line.store,
                             line.json,
                             strbuf_text(&request));
    strbuf_release(&request);
    return code;
}

/* The words of an answer, or standard input; an exit code, or CLI_END. */
static int read_text(const struct line *line, struct strbuf *out)
{
    char **words = line->operands + 1;
    int count = line->operand_count - 1;
    if (count == 1 && strcmp(words[0], "-") == 0) {
        struct cli_file file;
        struct diag diag = {0};
        if (cli_read_file(&file, "-", &diag) != ERR_OK) {
            return cli_fail(line->command, "%s", diag.text);
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
        return cli_fail(line->command, "empty answer");
    }
    if (out->len > ANSWER_BYTES_MAX) {
        return cli_fail(line->command,
                        "the answer has %zu bytes, more than %d: put it into a "
                        "file and answer with its path",
                        out->len,
                        ANSWER_BYTES_MAX);
    }
    json_t *checked = json_stringn(text, out->len);
    bool good = checked != NULL && strlen(text) == out->len;
    json_decref(checked);
    return good ? CLI_END
                : cli_fail(line->command, "the answer is not valid UTF-8");
}

static int run_add(const struct cli_command *command, int argc, char **argv)
{
    struct line line;
    int code = read_line(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    const char *path = cli_operand(command, argc, argv);
    if (path == NULL) {
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
        struct strbuf request = {0};
        struct jsonw json = {.out = &request};
        begin_request(&json, &line);
        jsonw_text(&json, "file", file.path);
        jsonw_text(&json, "text", file.text);
        jsonw_object_end(&json);
        code = request_carry_out(command,
                                 line.store,
                                 line.json,
                                 strbuf_text(&request));
        strbuf_release(&request);
    }
    cli_release_file(&file);
    return code;
}

static int run_answer(const struct cli_command *command, int argc, char **argv)
{
    struct line line;
    int code = read_line(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (line.operand_count < 2) {
        return cli_fail(command,
                        line.operand_count == 0
                            ? "missing TASK and TEXT"
                            : "missing TEXT (use - for standard input)");
    }
    const char *task = line.operands[0];
    if (cli_check_id(command, "task", task) != CLI_OK) {
        return CLI_USAGE;
    }
    struct strbuf text = {0};
    struct strbuf request = {0};
    struct jsonw json = {.out = &request};
    code = read_text(&line, &text);
    if (code == CLI_END) {
        begin_request(&json, &line);
        jsonw_text(&json, "task", task);
        jsonw_text(&json, "text", strbuf_text(&text));
        jsonw_object_end(&json);
        code = request_carry_out(command,
                                 line.store,
                                 line.json,
                                 strbuf_text(&request));
    }
    strbuf_release(&text);
    strbuf_release(&request);
    return code;
}

/* --- drain -------------------------------------------------------------- */

/* Who is the scheduler, if there is one. */
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

/* Say what keeps the scheduler. */
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

/* The time is over: what still runs? */
static int report_running(const struct line *line,
                          const struct store_place *place)
{
    struct client_view view;
    struct diag diag = {0};
    struct strbuf out = {0};
    int code = CLI_NOT_ALL_DONE;
    enum err err = client_look(&view, place, NULL, &diag);
    if (err != ERR_OK) {
        code = request_fail(line->command, line->json, err, &diag);
    } else if (line->json) {
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
                    line->command->name,
                    owner_process(&view.owner));
        add_sessions(&out, &view, false);
        (void)fputs(strbuf_text(&out), stderr);
    }
    client_view_release(&view);
    strbuf_release(&out);
    return code;
}

/* Say this; nothing runs. */
static int say_none(const struct line *line, const char *text)
{
    struct strbuf out = {0};
    struct jsonw json = {.out = &out};
    if (line->json) {
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

static int wait_for_end(const struct line *line,
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
            return request_fail(line->command, line->json, err, &diag);
        }
        if (!owned || !owner_is_same(&owner, drained)) {
            return say_none(line, "the scheduler has exited");
        }
        if (clock_boot_ns() - begun_ns >= line->timeout_ns) {
            return report_running(line, place);
        }
        (void)usleep(DRAIN_US);
    }
}

/* There is nobody who could start anything. */
static int say_nobody(const struct line *line)
{
    return say_none(line, "no scheduler is running");
}

static int drain(const struct line *line, const struct store_place *place)
{
    struct diag diag = {0};
    struct store_owner owner = {0};
    struct request_answer answer = {0};
    bool owned = false;
    int code;
    enum err err = find_owner(place, &owner, &owned, &diag);
    if (err == ERR_OK && !owned) {
        return say_nobody(line);
    }
    if (err == ERR_OK) {
        err = request_give(place, "{\"verb\":\"drain\"}", &answer, &diag);
    }
    if (err == ERR_IO && owned && line->wait) {
        code = wait_for_end(line, place, &owner); /* it went away meanwhile */
    } else if (err != ERR_OK) {
        code = request_fail(line->command, line->json, err, &diag);
    } else {
        bool waits = line->wait && answer.err == ERR_OK;
        code = waits && line->json
                   ? CLI_OK
                   : request_show(line->command, line->json, &answer);
        if (code == CLI_OK && waits) {
            code = wait_for_end(line, place, &owner);
        }
    }
    request_release(&answer);
    return code;
}

static int run_drain(const struct cli_command *command, int argc, char **argv)
{
    struct line line;
    int code = read_line(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (line.operand_count > 0) {
        return cli_fail(
            command,
            "unexpected argument \"%s\"; drain applies to the whole scheduler",
            line.operands[0]);
    }
    struct diag diag = {0};
    struct store_place place;
    if (store_place_find(&place, line.store, false, &diag) != ERR_OK) {
        return request_fail(line.command, line.json, ERR_NOT_FOUND, &diag);
    }
    code = drain(&line, &place);
    store_place_release(&place);
    return code;
}

/* --- the tables --------------------------------------------------------- */

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
    {"provider", "NAME", "use a stopped provider again", OPT_PROVIDER},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

static const struct cli_option drain_options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_STORE,
    {"timeout", "TIME", "as --wait, but at most this long", OPT_TIMEOUT},
    {"wait", NULL, "wait until the scheduler has exited", OPT_WAIT},
    {0},
};

const struct cli_command cli_add = {
    .name = "add",
    .synopsis = "[OPTION]... FRAGMENT",
    .summary = "add tasks and groups to an unfinished run",
    .options = common_options,
    .run = run_add,
};

const struct cli_command cli_answer = {
    .name = "answer",
    .synopsis = "[OPTION]... TASK TEXT...",
    .summary = "answer a parked task's question and retry it",
    .options = common_options,
    .run = run_answer,
};

const struct cli_command cli_cancel = {
    .name = "cancel",
    .synopsis = "[OPTION]... TASK | --run RUN",
    .summary = "cancel a task or a run for good",
    .options = common_options,
    .run = run_either,
};

const struct cli_command cli_cap = {
    .name = "cap",
    .synopsis = "[OPTION]... N | --down | --up",
    .summary = "set how many sessions may run at once",
    .options = cap_options,
    .run = run_cap,
};

const struct cli_command cli_drain = {
    .name = "drain",
    .synopsis = "[OPTION]...",
    .summary = "start no more sessions; stop after the last one",
    .options = drain_options,
    .run = run_drain,
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

const struct cli_command cli_release = {
    .name = "release",
    .synopsis = "[OPTION]... TASK",
    .summary = "let a held task start",
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

const struct cli_command cli_skip = {
    .name = "skip",
    .synopsis = "[OPTION]... TASK",
    .summary = "skip a task and its dependents",
    .options = common_options,
    .run = run_task,
};
