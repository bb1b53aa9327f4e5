/* SPDX-License-Identifier: MIT */
#include "agent/drive.h"

#include "agent/answer.h"
#include "agent/checkout.h"
#include "agent/conversation.h"
#include "agent/meters.h"
#include "agent/plant.h"
#include "agent/rollout.h"
#include "base/mem.h"
#include "base/strip.h"
#include "exec/attempt_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    ERRORS_BYTES_MAX = 8192, /* tail of standard error */
    UUID_BYTES = 37,
};

/* The file of the attempt by which the session finishes: $SLUICE_FINISH. */
#define FINISH_FILE "finish"

/* A running session. */
struct drive {
    const char *dir;
    const struct confine_prefix *prefix;
    struct brief brief;
    struct checkout checkout;
    struct conversation before; /* the conversation to continue */
    struct adapter_seen seen;
    struct adapter_usage told;                       /* usage as last written */
    struct adapter_meter meters[ADAPTER_METERS_MAX]; /* as last written */
    struct strbuf errors;
    struct strbuf line;
    bool said_long;
    bool unheard; /* an operator has a message for it */
    struct strbuf finish_file;
};

/* --- output while the program runs -------------------------------------- */

/* Print lines to the log; they also count as signs of life. Write errors do not
 * matter. */
static void print(const char *text, size_t len)
{
    struct strbuf clean = {0};
    strip_text(&clean, text, len);
    strbuf_adds(&clean, "\n");
    bool written =
        attempt_file_write_all(STDOUT_FILENO, strbuf_text(&clean), clean.len);
    (void)written;
    strbuf_release(&clean);
}

static void print_text(const char *text)
{
    print(text, strlen(text));
}

static struct adapter_usage usage_of(const struct drive *drive)
{
    return answer_price(conversation_part(&drive->before, &drive->seen.usage),
                        &drive->brief.price);
}

/* Write the usage so far, in case the session is killed. */
static void note_usage(struct drive *drive)
{
    const struct adapter_usage *now = &drive->seen.usage;
    if (now->known && (now->input != drive->told.input ||
                       now->output != drive->told.output)) {
        struct adapter_usage usage = usage_of(drive);
        drive->told = *now;
        if (answer_write_usage(drive->dir, &usage, NULL) != ERR_OK) {
            print_text("sluice-agent: cannot write the usage");
        }
    }
}

/* Return whether the program has reported a change of its limits. */
static bool has_news(const struct drive *drive)
{
    bool news = false;
    for (uint32_t ix = 0; ix < drive->seen.meter_count && !news; ix++) {
        const struct adapter_meter *now = &drive->seen.meters[ix];
        const struct adapter_meter *then = &drive->meters[ix];
        news = strcmp(now->name, then->name) != 0 ||
               now->percent != then->percent ||
               now->resets_at != then->resets_at;
    }
    return news;
}

/* Store the reported limits, for usage monitors. */
static void note_meters(struct drive *drive)
{
    const char *home = getenv("SLUICE_AGENT_HOME");
    const struct adapter *adapter = drive->brief.adapter;
    if (home != NULL && adapter->meters && adapter != &adapter_codex &&
        has_news(drive)) {
        memcpy(&drive->meters, &drive->seen.meters, sizeof(drive->meters));
        if (meters_keep(home, adapter, &drive->seen, NULL) != ERR_OK) {
            print_text("sluice-agent: cannot write the meters");
        }
    }
}

static void take_error(struct drive *drive, const char *line, size_t len)
{
    strbuf_add(&drive->errors, line, len);
    strbuf_adds(&drive->errors, "\n");
    if (drive->errors.len > 2 * (size_t)ERRORS_BYTES_MAX) {
        struct strbuf tail = {0};
        strbuf_add(&tail,
                   drive->errors.text + drive->errors.len - ERRORS_BYTES_MAX,
                   ERRORS_BYTES_MAX);
        strbuf_release(&drive->errors);
        drive->errors = tail;
    }
    print(line, len);
}

/* Return the event in a line, or NULL. Bytes that are not UTF-8, which a
 * program may copy from a tool, do not make the line invalid. */
static json_t *parse_event(const char *line, size_t len)
{
    json_t *event = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    if (event == NULL && len > 0 && line[0] == '{') {
        struct strbuf clean = {0};
        strip_text(&clean, line, len);
        event =
            json_loadb(strbuf_text(&clean), clean.len, JSON_ALLOW_NUL, NULL);
        strbuf_release(&clean);
    }
    if (!json_is_object(event)) {
        json_decref(event);
        return NULL;
    }
    return event;
}

static void take_line(void *ctx, const char *line, size_t len, bool error)
{
    struct drive *drive = ctx;
    if (line == NULL) {
        if (!drive->said_long) {
            print_text(
                "sluice-agent: skipped a line of output longer than 16 MiB");
        }
        drive->said_long = true;
        return;
    }
    if (error) {
        take_error(drive, line, len);
        return;
    }
    json_t *event = parse_event(line, len);
    if (event == NULL) {
        print(line, len);
        return;
    }
    strbuf_clear(&drive->line);
    drive->brief.adapter->event(&drive->seen, event, &drive->line);
    json_decref(event);
    if (drive->line.len > 0) {
        print(strbuf_text(&drive->line), drive->line.len);
    }
    note_usage(drive);
    note_meters(drive);
}

/* --- the program -------------------------------------------------------- */

static bool make_uuid(char out[UUID_BYTES])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return false;
    }
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    char *at = out;
    for (size_t ix = 0; ix < sizeof(bytes); ix++) {
        bool dash = ix == 4 || ix == 6 || ix == 8 || ix == 10;
        size_t room = (size_t)(out + UUID_BYTES - at);
        at += snprintf(at, room, dash ? "-%02x" : "%02x", bytes[ix]);
    }
    return true;
}

static bool is_named(const char *item, const char *like)
{
    size_t len = strcspn(like, "=");
    return strncmp(item, like, len) == 0 && item[len] == '=';
}

/* Append to a NULL-terminated list, replacing an item of the same name. */
static void add_env(const char **list, uint32_t *count, const char *item)
{
    uint32_t ix = 0;
    while (ix < *count && !is_named(list[ix], item)) {
        ix++;
    }
    list[ix] = item;
    *count += ix == *count ? 1 : 0;
}

/* Build the program's environment: ours, overridden by the adapter's. */
static const char **make_env(const struct adapter_command *command)
{
    uint32_t ours = 0;
    while (environ[ours] != NULL) {
        ours++;
    }
    const char **list =
        mem_zalloc(ours + command->env_count + 1, sizeof(list[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < ours; ix++) {
        list[count++] = environ[ix];
    }
    for (uint32_t ix = 0; ix < command->env_count; ix++) {
        add_env(list, &count, command->env[ix]);
    }
    return list;
}

/* Write the prompt and the schema of the answer. */
static enum err
put_texts(struct drive *drive, const char *schema, struct diag *diag)
{
    struct strbuf text = {0};
    enum err err = prompt_add(&text,
                              &drive->brief,
                              &drive->checkout.prompt,
                              drive->brief.call.resume != NULL,
                              diag);
    if (err == ERR_OK) {
        err = attempt_file_write(drive->dir, "prompt", &text, diag);
    }
    strbuf_clear(&text);
    strbuf_adds(&text, schema);
    if (err == ERR_OK) {
        err = attempt_file_write(drive->dir, "schema", &text, diag);
    }
    strbuf_release(&text);
    return err;
}

/* Return the path of sluice, if the program gets its MCP server. */
static const char *mcp_of(const struct drive *drive)
{
    const char *variable = drive->brief.adapter->mcp_variable;
    const char *key = getenv("SLUICE_KEY");
    bool taken = variable != NULL && getenv(variable) != NULL;
    return drive->brief.mcp && !taken && key != NULL ? getenv("SLUICE_PROGRAM")
                                                     : NULL;
}

/* Run the program once. */
static enum err
run_program(struct drive *drive, struct runner_end *end, struct diag *diag)
{
    char uuid[UUID_BYTES];
    struct strbuf input = {0};
    struct strbuf schema_file = {0};
    struct strbuf events = {0};
    struct adapter_command command = {0};
    const char **env = NULL;
    const char *planted = NULL;
    struct adapter_call *call = &drive->brief.call;
    const char *schema = prompt_schema(drive->brief.kind);
    enum err err = put_texts(drive, schema, diag);
    if (err == ERR_OK && !make_uuid(uuid)) {
        err = diag_set(diag, ERR_IO, "getrandom: %s", strerror(errno));
    }
    if (err != ERR_OK) {
        goto out;
    }
    strbuf_addf(&input, "%s/prompt", drive->dir);
    strbuf_addf(&schema_file, "%s/schema", drive->dir);
    strbuf_addf(&events, "%s/events.jsonl", drive->dir);
    call->fresh = uuid;
    call->schema = schema;
    call->schema_file = strbuf_text(&schema_file);
    call->git_dir = drive->checkout.git_dir;
    call->common_dir = drive->checkout.common_dir;
    call->mcp = mcp_of(drive);
    drive->brief.adapter->command(&command, call);
    planted = plant_put(&command, drive->checkout.common_dir);
    confine_command(&command, &drive->brief, drive->prefix);
    env = make_env(&command);
    struct runner runner = {
        .argv = command.words,
        .env = env,
        .input = strbuf_text(&input),
        .events = strbuf_text(&events),
        .checkpoint = getenv("SLUICE_CHECKPOINT"),
        .finish = strbuf_text(&drive->finish_file),
        .messages = getenv("SLUICE_MESSAGES"),
        .messages_bytes = brief_messages_bytes(&drive->brief),
        .confined = drive->prefix->count > 0,
        .line = take_line,
        .ctx = drive,
    };
    err = runner_run(&runner, end, diag);
    drive->unheard = runner_has_message(&runner);
out:
    plant_drop(planted);
    mem_free(env);
    adapter_command_release(&command);
    strbuf_release(&input);
    strbuf_release(&schema_file);
    strbuf_release(&events);
    return err;
}

/* Read data that only the program's files have: exact times and tokens. */
static void read_files(struct drive *drive)
{
    struct adapter_seen *seen = &drive->seen;
    if (drive->brief.adapter == &adapter_codex && seen->conversation != NULL) {
        (void)rollout_read(seen, seen->conversation);
    }
}

/* --- from the brief to the result --------------------------------------- */

/* Read how the session has finished, if it has; an invalid file counts as
 * absent: the scheduler checks it before it is written. */
static bool read_finish(struct attempt_result *out, const struct drive *drive)
{
    struct strbuf text = {0};
    struct diag diag = {0};
    bool found =
        attempt_file_read(drive->dir, FINISH_FILE, &text, NULL) == ERR_OK;
    bool good =
        found &&
        attempt_parse_result(strbuf_text(&text), text.len, out, &diag) ==
            ERR_OK;
    if (found && !good) {
        print_text(diag.text);
    }
    strbuf_release(&text);
    return good;
}

static struct judgement judge(struct drive *drive, const struct runner_end *end)
{
    struct attempt_result finish = {0};
    bool finished = read_finish(&finish, drive);
    while (drive->errors.len > 0 &&
           drive->errors.text[drive->errors.len - 1] == '\n') {
        drive->errors.text[--drive->errors.len] = '\0';
    }
    struct judge_input input = {
        .brief = &drive->brief,
        .seen = &drive->seen,
        .end = end,
        .errors = strbuf_text(&drive->errors),
        .committed = checkout_has_moved(&drive->checkout),
        .unheard = drive->unheard,
        .finish = finished ? &finish : NULL,
        .now = (int64_t)time(NULL),
    };
    struct judgement judgement = judge_session(&input);
    attempt_result_release(&finish);
    return judgement;
}

/* Judge a failed start. A missing program concerns the provider: every session
 * would fail alike. */
static struct judgement judge_start(enum err err, const struct diag *diag)
{
    struct judgement out = {
        .outcome = err == ERR_NOT_FOUND || err == ERR_IO ? OUTCOME_REFUSED
                                                         : OUTCOME_BLOCKED,
        .stop = err == ERR_NOT_FOUND,
    };
    strbuf_adds(&out.reason, diag->text);
    if (err == ERR_NOT_FOUND) {
        strbuf_adds(&out.reason, "; install it, or put it into PATH");
    }
    return out;
}

/* The program was not run, because it cannot be confined. */
static struct judgement judge_refusal(const char *reason)
{
    struct judgement out = {
        .outcome = OUTCOME_BLOCKED,
        .lacks = OUTCOME_LACKS_START,
    };
    strbuf_adds(&out.reason, "it could not be confined: ");
    strbuf_add(&out.reason, reason, strcspn(reason, "\n"));
    return out;
}

/* Return whether the program lacks a requirement to start; *out names it. */
static bool lacks(const struct drive *drive, struct judgement *out)
{
    const struct adapter *adapter = drive->brief.adapter;
    const char *name = adapter->root_variable;
    bool given = name == NULL || geteuid() != 0 || drive->prefix->count > 0 ||
                 drive->brief.call.permissions != ADAPTER_FULL ||
                 getenv(name) != NULL;
    if (given) {
        return false;
    }
    *out = (struct judgement){.outcome = OUTCOME_REFUSED, .stop = true};
    strbuf_addf(&out->reason,
                "%s refuses permissions: full as root without %s=1 in its "
                "environment; set it (agents: {%s: {env: {%s: \"1\"}}}) if "
                "this machine is a sandbox, or run as another user",
                adapter->name,
                name,
                adapter->name,
                name);
    return true;
}

/* Run the program; again without the conversation if that is gone. */
static struct judgement run_twice(struct drive *drive)
{
    struct runner_end end = {0};
    struct diag diag = {0};
    struct judgement missing;
    if (lacks(drive, &missing)) {
        return missing;
    }
    for (;;) {
        enum err err = run_program(drive, &end, &diag);
        if (err != ERR_OK) {
            return judge_start(err, &diag);
        }
        const char *refusal = confine_refusal(drive->prefix,
                                              end.code,
                                              strbuf_text(&drive->errors));
        if (refusal != NULL) {
            return judge_refusal(refusal);
        }
        read_files(drive);
        struct judgement judgement = judge(drive, &end);
        if (!judgement.again || end.stop != RUNNER_RAN) {
            return judgement;
        }
        print_text(
            "sluice-agent: the conversation is gone; starting a new one");
        judge_release(&judgement);
        drive->brief.call.resume = NULL;
        conversation_release(&drive->before);
        adapter_seen_release(&drive->seen);
        strbuf_clear(&drive->errors);
    }
}

/* Append the state for the next session of the task; empty: none. Each review
 * starts a new conversation. */
static void add_resume(struct strbuf *out, const struct drive *drive)
{
    const struct adapter_seen *seen = &drive->seen;
    if (drive->brief.kind != BRIEF_WORK) {
        return;
    }
    if (seen->conversation != NULL) {
        conversation_add(out, seen->conversation, &seen->usage);
    } else if (drive->before.id != NULL) {
        conversation_add(out, drive->before.id, &drive->before.used);
    }
}

static int finish(struct drive *drive, const struct judgement *judgement)
{
    struct strbuf resume = {0};
    struct strbuf line = {0};
    struct diag diag = {0};
    struct adapter_usage usage = usage_of(drive);
    add_resume(&resume, drive);
    adapter_describe(&line, outcome_name(judgement->outcome), "");
    if (judgement->reason.len > 0) {
        adapter_describe(&line, ": ", strbuf_text(&judgement->reason));
    }
    print(strbuf_text(&line), line.len);
    enum err err = answer_write(drive->dir,
                                &drive->brief,
                                judgement,
                                &usage,
                                resume.len > 0 ? strbuf_text(&resume) : NULL,
                                &diag);
    int code = outcome_code(judgement->outcome);
    if (err != ERR_OK) {
        print_text(diag.text);
        code = code == 0 ? 1 : code;
    }
    strbuf_release(&resume);
    strbuf_release(&line);
    return code;
}

/* Set a variable of the plan in this process, too: it may name the directory of
 * the program's files. */
static void take_variable(const char *item)
{
    struct strbuf name = {0};
    size_t len = strcspn(item, "=");
    strbuf_add(&name, item, len);
    if (item[len] != '=' ||
        setenv(strbuf_text(&name), item + len + 1, 1) != 0) {
        print_text("sluice-agent: cannot set a variable of the plan");
    }
    strbuf_release(&name);
}

int drive_session(const char *dir, const struct confine_prefix *prefix)
{
    struct drive drive = {.dir = dir, .prefix = prefix};
    struct diag diag = {0};
    struct judgement judgement = {0};
    enum err err = runner_prepare(&diag);
    if (err == ERR_OK) {
        err = brief_read(&drive.brief, dir, &diag);
    }
    if (err != ERR_OK) {
        print_text(diag.text);
        return outcome_code(OUTCOME_BLOCKED);
    }
    for (uint32_t ix = 0; ix < drive.brief.env_count; ix++) {
        take_variable(drive.brief.env[ix]);
    }
    strbuf_addf(&drive.finish_file, "%s/" FINISH_FILE, dir);
    if (setenv("SLUICE_FINISH", strbuf_text(&drive.finish_file), 1) != 0) {
        print_text("sluice-agent: cannot set SLUICE_FINISH");
    }
    drive.before = conversation_read(drive.brief.call.resume);
    drive.brief.call.resume = drive.before.id;
    err = checkout_find(&drive.checkout, dir, &drive.brief, &diag);
    judgement = err == ERR_OK ? run_twice(&drive) : judge_start(err, &diag);
    int code = finish(&drive, &judgement);
    judge_release(&judgement);
    conversation_release(&drive.before);
    adapter_seen_release(&drive.seen);
    strbuf_release(&drive.errors);
    strbuf_release(&drive.line);
    strbuf_release(&drive.finish_file);
    checkout_release(&drive.checkout);
    brief_release(&drive.brief);
    return code;
}
