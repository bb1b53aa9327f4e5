/* SPDX-License-Identifier: MIT */
/*
 * Orders come from a scheduler and reports from a worker, which are of this
 * version: a text that is not as expected is damage, and is refused whole.
 * Missing members are null, false or 0.
 */
#include "work/wire.h"

#include "base/invariant.h"
#include "base/jsonw.h"
#include "exec/record.h"

#include <stdio.h>
#include <string.h>

/* --- writing ------------------------------------------------------------ */

static void add_text_if(struct jsonw *json, const char *name, const char *text)
{
    if (text != NULL) {
        jsonw_text(json, name, text);
    }
}

static void add_flag_if(struct jsonw *json, const char *name, bool flag)
{
    if (flag) {
        jsonw_bool(json, name, true);
    }
}

/* A list of texts; a NULL list is left out. */
static void add_list(struct jsonw *json,
                     const char *name,
                     const char *const *items,
                     uint32_t count)
{
    if (items == NULL) {
        return;
    }
    jsonw_array(json, name);
    for (uint32_t ix = 0; ix < count; ix++) {
        jsonw_text(json, NULL, items[ix]);
    }
    jsonw_array_end(json);
}

static uint32_t length(const char *const *items)
{
    uint32_t count = 0;
    while (items != NULL && items[count] != NULL) {
        count++;
    }
    return count;
}

static void add_members(struct jsonw *json, const struct work_git *git)
{
    jsonw_array(json, "members");
    for (uint32_t ix = 0; ix < git->member_count; ix++) {
        const struct work_member *member = &git->members[ix];
        jsonw_object(json, NULL);
        jsonw_text(json, "task", member->task);
        jsonw_text(json, "group", member->group);
        add_text_if(json, "title", member->title);
        add_text_if(json, "agent", member->agent);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
    jsonw_array(json, "before");
    for (uint32_t ix = 0; ix < git->before_count; ix++) {
        jsonw_object(json, NULL);
        jsonw_text(json, "task", git->before[ix].task);
        jsonw_text(json, "name", git->before[ix].name);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_git(struct jsonw *json, const struct work_git *git)
{
    jsonw_object(json, "git");
    jsonw_text(json, "repo", git->repo);
    add_text_if(json, "url", git->url);
    add_text_if(json, "base", git->base);
    add_flag_if(json, "shared", git->shared);
    jsonw_int(json, "created_ns", git->created_ns);
    add_flag_if(json, "merge", git->merge);
    add_flag_if(json, "base_gate", git->base_gate);
    add_flag_if(json, "update", git->update);
    add_flag_if(json, "writes", git->writes);
    add_flag_if(json, "allow_empty", git->allow_empty);
    add_flag_if(json, "pristine", git->pristine);
    jsonw_int(json, "round", git->round);
    add_text_if(json, "gate", git->gate);
    add_text_if(json, "repair", git->repair);
    add_text_if(json, "message", git->message);
    add_list(json, "keep", git->keep.items, git->keep.count);
    add_list(json, "copy", git->copy.items, git->copy.count);
    add_flag_if(json, "remote_keep", git->remote_keep);
    add_flag_if(json, "fetch", git->fetch);
    add_flag_if(json, "once", git->once);
    jsonw_int(json, "gate_retry", git->gate_retry);
    add_members(json, git);
    jsonw_object_end(json);
}

static void add_sandbox(struct jsonw *json, const struct work_sandbox *sandbox)
{
    jsonw_object(json, "sandbox");
    add_flag_if(json, "network", sandbox->network);
    add_list(json, "write", sandbox->write, length(sandbox->write));
    add_list(json, "read", sandbox->read, length(sandbox->read));
    add_list(json, "env", sandbox->env, length(sandbox->env));
    jsonw_object_end(json);
}

static void add_files(struct jsonw *json, const struct work_order *order)
{
    jsonw_array(json, "files");
    for (uint32_t ix = 0; ix < order->file_count; ix++) {
        const struct work_file *file = &order->files[ix];
        INVARIANT(file->text == NULL || strlen(file->text) == file->len);
        jsonw_object(json, NULL);
        jsonw_text(json, "name", file->name);
        add_text_if(json, "variable", file->variable);
        add_text_if(json, "text", file->text);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static const char *const wants[] = {
    [WORK_RUN] = "run",
    [WORK_WITHDRAW] = "withdraw",
    [WORK_CANCEL] = "cancel",
    [WORK_STOP] = "stop",
};

const char *wire_want_name(enum work_want want)
{
    INVARIANT(want <= WORK_STOP);
    return wants[want];
}

enum work_want wire_read_want(const char *name)
{
    for (int want = WORK_RUN; want <= WORK_STOP; want++) {
        if (strcmp(name, wants[want]) == 0) {
            return (enum work_want)want;
        }
    }
    return WORK_STOP;
}

bool wire_has_label(const char *labels, const char *label)
{
    size_t len = strlen(label);
    const char *at = labels;
    while (at != NULL && (strncmp(at, label, len) != 0 ||
                          (at[len] != ',' && at[len] != '\0'))) {
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL;
}

void wire_add_order(struct strbuf *out, const struct work_order *order)
{
    struct jsonw json = {.out = out};
    INVARIANT(order->want == WORK_RUN && order->folder != NULL);
    INVARIANT(!work_is_program(&order->id) && !order->again);
    jsonw_object(&json, NULL);
    jsonw_int(&json, "token", (int64_t)order->id.token);
    jsonw_text(&json, "nonce", order->id.nonce);
    jsonw_text(&json, "run", order->id.run);
    jsonw_text(&json, "task", order->id.task);
    jsonw_text(&json, "name", order->id.name);
    jsonw_text(&json, "folder", order->folder);
    add_flag_if(&json, "checkout", order->checkout);
    add_flag_if(&json, "named", order->named);
    add_text_if(&json, "prepare", order->prepare);
    add_text_if(&json, "shell", order->shell);
    add_list(&json, "argv", order->argv, length(order->argv));
    add_flag_if(&json, "agent", order->agent);
    add_list(&json, "env", order->env, order->env_count);
    add_files(&json, order);
    jsonw_int(&json, "timeout_ns", order->timeout_ns);
    jsonw_int(&json, "idle_ns", order->idle_ns);
    jsonw_int(&json, "checkpoint_ns", order->checkpoint_ns);
    jsonw_int(&json, "grace_ns", order->grace_ns);
    if (order->git.repo != NULL) {
        add_git(&json, &order->git);
    }
    if (order->sandbox.on) {
        add_sandbox(&json, &order->sandbox);
    }
    jsonw_object_end(&json);
}

static const char *const types[] = {
    [WORK_STARTED] = "started",
    [WORK_ENDED] = "ended",
    [WORK_REFUSED] = "refused",
    [WORK_LOST] = "lost",
    [WORK_UNKNOWN] = "unknown",
};

static void add_exit(struct jsonw *json, const struct attempt_exit *exit)
{
    jsonw_object(json, "exit");
    jsonw_text(json, "cause", record_cause_name(exit->cause));
    jsonw_int(json, "code", exit->code);
    jsonw_int(json, "signal", exit->signal);
    jsonw_int(json, "error", exit->error);
    jsonw_int(json, "begun_ns", exit->begun_ns);
    jsonw_int(json, "ended_ns", exit->ended_ns);
    jsonw_int(json, "cpu_ns", exit->cpu_ns);
    jsonw_int(json, "log_bytes", (int64_t)exit->log_bytes);
    jsonw_int(json, "log_cut_bytes", (int64_t)exit->log_cut_bytes);
    jsonw_object_end(json);
}

void wire_add_report(struct strbuf *out,
                     const struct work_report *report,
                     const char *result)
{
    struct jsonw json = {.out = out};
    INVARIANT(report->output == NULL);
    jsonw_object(&json, NULL);
    jsonw_int(&json, "token", (int64_t)report->token);
    jsonw_text(&json, "type", types[report->type]);
    if (report->type == WORK_STARTED) {
        jsonw_int(&json, "pid", report->mark.pid);
        jsonw_int(&json, "start_ticks", (int64_t)report->mark.start_ticks);
        jsonw_text(&json, "boot_id", report->mark.boot_id);
    }
    if (report->type == WORK_ENDED) {
        add_exit(&json, &report->exit);
    }
    add_text_if(&json, "result", result);
    if (report->result_err != ERR_OK) {
        jsonw_text(&json, "result_err", err_name(report->result_err));
    }
    if (report->log != NULL && report->log[0] != '\0') {
        jsonw_text(&json, "log", report->log);
    }
    jsonw_int(&json, "error", report->error);
    add_text_if(&json, "text", report->text);
    add_flag_if(&json, "withdrawn", report->withdrawn);
    add_flag_if(&json, "elsewhere", report->elsewhere);
    add_flag_if(&json, "vanished", report->vanished);
    jsonw_object_end(&json);
}

/* --- reading ------------------------------------------------------------ */

static const char *get_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int64_t get_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static bool get_flag(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

/* Return a list with a final NULL; NULL: it is missing. */
static const char *const *get_list(struct wire_order *wire,
                                   const json_t *object,
                                   const char *name,
                                   uint32_t *count_out)
{
    const json_t *array = json_object_get(object, name);
    size_t count = json_array_size(array);
    if (count_out != NULL) {
        *count_out = (uint32_t)count;
    }
    if (array == NULL) {
        return NULL;
    }
    const char **items = arena_alloc(&wire->arena, count + 1, sizeof(items[0]));
    for (size_t ix = 0; ix < count; ix++) {
        const char *text = json_string_value(json_array_get(array, ix));
        items[ix] = text != NULL ? text : "";
    }
    return items;
}

static void get_members(struct wire_order *wire, const json_t *json)
{
    struct work_git *git = &wire->order.git;
    const json_t *array = json_object_get(json, "members");
    git->member_count = (uint32_t)json_array_size(array);
    struct work_member *members =
        arena_alloc(&wire->arena, git->member_count, sizeof(members[0]));
    for (uint32_t ix = 0; ix < git->member_count; ix++) {
        const json_t *member = json_array_get(array, ix);
        members[ix] = (struct work_member){
            .task = get_text(member, "task"),
            .group = get_text(member, "group"),
            .title = get_text(member, "title"),
            .agent = get_text(member, "agent"),
        };
    }
    git->members = members;
    array = json_object_get(json, "before");
    git->before_count = (uint32_t)json_array_size(array);
    struct work_before *before =
        arena_alloc(&wire->arena, git->before_count, sizeof(before[0]));
    for (uint32_t ix = 0; ix < git->before_count; ix++) {
        const json_t *item = json_array_get(array, ix);
        before[ix] = (struct work_before){
            .task = get_text(item, "task"),
            .name = get_text(item, "name"),
        };
    }
    git->before = before;
}

static void get_git(struct wire_order *wire, const json_t *json)
{
    struct work_git *git = &wire->order.git;
    *git = (struct work_git){
        .repo = get_text(json, "repo"),
        .url = get_text(json, "url"),
        .base = get_text(json, "base"),
        .shared = get_flag(json, "shared"),
        .created_ns = get_int(json, "created_ns"),
        .merge = get_flag(json, "merge"),
        .base_gate = get_flag(json, "base_gate"),
        .update = get_flag(json, "update"),
        .writes = get_flag(json, "writes"),
        .allow_empty = get_flag(json, "allow_empty"),
        .pristine = get_flag(json, "pristine"),
        .round = (uint32_t)get_int(json, "round"),
        .gate = get_text(json, "gate"),
        .repair = get_text(json, "repair"),
        .message = get_text(json, "message"),
        .remote_keep = get_flag(json, "remote_keep"),
        .fetch = get_flag(json, "fetch"),
        .once = get_flag(json, "once"),
        .gate_retry = (uint32_t)get_int(json, "gate_retry"),
    };
    git->keep.items = get_list(wire, json, "keep", &git->keep.count);
    git->copy.items = get_list(wire, json, "copy", &git->copy.count);
    get_members(wire, json);
}

static void get_files(struct wire_order *wire)
{
    struct work_order *order = &wire->order;
    const json_t *array = json_object_get(wire->json, "files");
    order->file_count = (uint32_t)json_array_size(array);
    struct work_file *files =
        arena_alloc(&wire->arena, order->file_count, sizeof(files[0]));
    for (uint32_t ix = 0; ix < order->file_count; ix++) {
        const json_t *file = json_array_get(array, ix);
        files[ix] = (struct work_file){
            .name = get_text(file, "name"),
            .variable = get_text(file, "variable"),
            .text = get_text(file, "text"),
            .len = json_string_length(json_object_get(file, "text")),
        };
    }
    order->files = files;
}

/* Whether what every order needs is there. */
static bool is_whole(const struct work_order *order)
{
    const struct work_id *id = &order->id;
    bool whole = id->token != 0 && id->nonce != NULL &&
                 strlen(id->nonce) < ATTEMPT_NONCE_BYTES && id->run != NULL &&
                 id->task != NULL && id->task[0] != '.' && id->name != NULL &&
                 order->folder != NULL;
    whole = whole && (order->shell != NULL || order->argv != NULL ||
                      order->agent || order->git.merge || order->git.base_gate);
    for (uint32_t ix = 0; whole && ix < order->file_count; ix++) {
        const char *name = order->files[ix].name;
        whole = name != NULL && strchr(name, '/') == NULL;
    }
    for (uint32_t ix = 0; whole && ix < order->env_count; ix++) {
        whole = strchr(order->env[ix], '=') != NULL;
    }
    const struct work_git *git = &order->git;
    whole = whole && (git->repo == NULL || git->member_count > 0);
    for (uint32_t ix = 0; whole && ix < git->member_count; ix++) {
        whole = git->members[ix].task != NULL && git->members[ix].group != NULL;
    }
    for (uint32_t ix = 0; whole && ix < git->before_count; ix++) {
        whole = git->before[ix].task != NULL && git->before[ix].name != NULL;
    }
    return whole;
}

enum err
wire_read_order(struct wire_order *out, const char *text, struct diag *diag)
{
    *out = (struct wire_order){.json = json_loads(text, 0, NULL)};
    const json_t *json = out->json;
    struct work_order *order = &out->order;
    *order = (struct work_order){
        .id =
            {
                .token = (uint64_t)get_int(json, "token"),
                .nonce = get_text(json, "nonce"),
                .run = get_text(json, "run"),
                .task = get_text(json, "task"),
                .name = get_text(json, "name"),
            },
        .folder = get_text(json, "folder"),
        .checkout = get_flag(json, "checkout"),
        .named = get_flag(json, "named"),
        .prepare = get_text(json, "prepare"),
        .shell = get_text(json, "shell"),
        .argv = get_list(out, json, "argv", NULL),
        .agent = get_flag(json, "agent"),
        .timeout_ns = get_int(json, "timeout_ns"),
        .idle_ns = get_int(json, "idle_ns"),
        .checkpoint_ns = get_int(json, "checkpoint_ns"),
        .grace_ns = get_int(json, "grace_ns"),
    };
    order->env = get_list(out, json, "env", &order->env_count);
    get_files(out);
    const json_t *git = json_object_get(json, "git");
    if (git != NULL) {
        get_git(out, git);
    }
    const json_t *sandbox = json_object_get(json, "sandbox");
    if (sandbox != NULL) {
        order->sandbox = (struct work_sandbox){
            .on = true,
            .network = get_flag(sandbox, "network"),
            .write = get_list(out, sandbox, "write", NULL),
            .read = get_list(out, sandbox, "read", NULL),
            .env = get_list(out, sandbox, "env", NULL),
        };
    }
    return is_whole(order) ? ERR_OK
                           : diag_set(diag,
                                      ERR_CORRUPT,
                                      "an order in the store is damaged");
}

void wire_release_order(struct wire_order *order)
{
    json_decref(order->json);
    arena_release(&order->arena);
    *order = (struct wire_order){0};
}

static bool get_exit(const json_t *json, struct attempt_exit *out)
{
    const char *name = get_text(json, "cause");
    *out = (struct attempt_exit){
        .code = (int)get_int(json, "code"),
        .signal = (int)get_int(json, "signal"),
        .error = (int)get_int(json, "error"),
        .begun_ns = get_int(json, "begun_ns"),
        .ended_ns = get_int(json, "ended_ns"),
        .cpu_ns = get_int(json, "cpu_ns"),
        .log_bytes = (uint64_t)get_int(json, "log_bytes"),
        .log_cut_bytes = (uint64_t)get_int(json, "log_cut_bytes"),
    };
    for (int cause = ATTEMPT_EXIT; cause <= ATTEMPT_LEASE; cause++) {
        if (name != NULL &&
            strcmp(name, record_cause_name((enum attempt_cause)cause)) == 0) {
            out->cause = (enum attempt_cause)cause;
            return true;
        }
    }
    return false;
}

/* Read what comes with the end of a session. */
static bool get_end(struct wire_report *wire)
{
    struct work_report *report = &wire->report;
    const json_t *exit = json_object_get(wire->json, "exit");
    if ((report->type == WORK_ENDED) != (exit != NULL) ||
        (exit != NULL && !get_exit(exit, &report->exit))) {
        return false;
    }
    const char *log = get_text(wire->json, "log");
    const char *failed = get_text(wire->json, "result_err");
    const json_t *result = json_object_get(wire->json, "result");
    report->log = log != NULL ? log : "";
    report->result = &wire->result;
    report->result_err = failed != NULL ? err_from_name(failed) : ERR_OK;
    struct diag ignored = {0};
    return result == NULL || attempt_parse_result(json_string_value(result),
                                                  json_string_length(result),
                                                  &wire->result,
                                                  &ignored) == ERR_OK;
}

enum err
wire_read_report(struct wire_report *out, const char *text, struct diag *diag)
{
    *out = (struct wire_report){.json = json_loads(text, 0, NULL)};
    struct work_report *report = &out->report;
    const char *type = get_text(out->json, "type");
    const char *boot_id = get_text(out->json, "boot_id");
    bool good = false;
    for (size_t ix = 0; type != NULL && ix < ARRAY_COUNT(types); ix++) {
        if (strcmp(type, types[ix]) == 0) {
            report->type = (enum work_report_type)ix;
            good = true;
        }
    }
    report->token = (uint64_t)get_int(out->json, "token");
    report->mark.pid = get_int(out->json, "pid");
    report->mark.start_ticks = (uint64_t)get_int(out->json, "start_ticks");
    (void)snprintf(report->mark.boot_id,
                   sizeof(report->mark.boot_id),
                   "%s",
                   boot_id != NULL ? boot_id : "");
    report->error = (int)get_int(out->json, "error");
    report->text = get_text(out->json, "text");
    report->withdrawn = get_flag(out->json, "withdrawn");
    report->elsewhere = get_flag(out->json, "elsewhere");
    report->vanished = get_flag(out->json, "vanished");
    good = good && report->token != 0;
    if (good && (report->type == WORK_ENDED || report->type == WORK_LOST)) {
        good = get_end(out);
    }
    return good ? ERR_OK
                : diag_set(diag,
                           ERR_CORRUPT,
                           "a report in the store is damaged");
}

void wire_release_report(struct wire_report *report)
{
    attempt_result_release(&report->result);
    json_decref(report->json);
    *report = (struct wire_report){0};
}
