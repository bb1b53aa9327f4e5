/* SPDX-License-Identifier: MIT */
/*
 * The scheduler answers questions and checks what changes something. A result
 * is checked there and then written here, into the file from which the end of
 * the session is judged: $SLUICE_FINISH for an agent, whose sluice-agent adds
 * the usage, else $SLUICE_RESULT. So a session can finish while no scheduler
 * runs; its result is checked when it is read.
 */
#include "mcp/session.h"

#include "base/macros.h"
#include "exec/attempt_file.h"
#include "exec/attempt_result.h"
#include "mcp/door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RESULT_BYTES_MAX = 1 << 20 }; /* as its reader has it */

/* --- questions ---------------------------------------------------------- */

/* Ask with the arguments as they are. */
static enum err ask_as(const char *verb,
                       const json_t *args,
                       struct strbuf *out,
                       struct diag *diag)
{
    json_t *request = json_pack("{s:s}", "verb", verb);
    const char *const names[] = {"task", "filter"};
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        const char *text = tool_text(args, names[ix]);
        if (text != NULL) {
            (void)json_object_set_new(request, names[ix], json_string(text));
        }
    }
    enum err err = door_ask(request, out, diag);
    json_decref(request);
    return err;
}

static enum err run_question(const struct tool *tool,
                             const json_t *args,
                             struct strbuf *out,
                             struct diag *diag)
{
    return ask_as(tool->name, args, out, diag);
}

enum err session_log(const char *task, struct strbuf *out, struct diag *diag)
{
    json_t *args = json_pack("{s:s}", "task", task);
    enum err err = args != NULL ? ask_as("log", args, out, diag)
                                : diag_set(diag, ERR_INVALID, "not UTF-8");
    json_decref(args);
    return err;
}

/* --- changes ------------------------------------------------------------ */

static enum err run_add(const struct tool *tool,
                        const json_t *args,
                        struct strbuf *out,
                        struct diag *diag)
{
    (void)tool;
    json_t *request = json_pack("{s:s, s:s, s:s}",
                                "verb",
                                "add",
                                "text",
                                tool_text(args, "fragment"),
                                "fragment_key",
                                tool_text(args, "key"));
    enum err err = door_ask(request, out, diag);
    json_decref(request);
    return err;
}

/* Touch the file that counts as a sign of life; failing to is no error. */
static void touch_progress(void)
{
    const char *path = getenv("SLUICE_PROGRESS");
    if (path == NULL || path[0] == '\0') {
        return;
    }
    int fd = open(path,
                  O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                  0600);
    if (fd >= 0) {
        (void)futimens(fd, NULL);
        (void)close(fd);
    }
}

static enum err run_progress(const struct tool *tool,
                             const json_t *args,
                             struct strbuf *out,
                             struct diag *diag)
{
    (void)tool;
    touch_progress();
    json_t *request = json_pack("{s:s, s:s}",
                                "verb",
                                "note",
                                "text",
                                tool_text(args, "note"));
    enum err err = door_ask(request, out, diag);
    json_decref(request);
    return err;
}

/* --- the result --------------------------------------------------------- */

/* Split the path of the file that takes the result. */
static enum err find_file(struct strbuf *dir,
                          const char **name_out,
                          bool *shared_out,
                          struct diag *diag)
{
    const char *path = getenv("SLUICE_FINISH");
    *shared_out = path == NULL || path[0] == '\0';
    if (*shared_out) {
        path = getenv("SLUICE_RESULT");
    }
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (slash == NULL) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "not inside a session of sluice: SLUICE_RESULT is not "
                        "set");
    }
    strbuf_add(dir, path, (size_t)(slash - path));
    *name_out = slash + 1;
    return ERR_OK;
}

/* Return what the session has written there itself, or an empty object. */
static json_t *load(const char *dir, const char *name)
{
    struct strbuf text = {0};
    json_t *root = NULL;
    if (attempt_file_read(dir, name, &text, NULL) == ERR_OK) {
        root = json_loadb(strbuf_text(&text), text.len, 0, NULL);
    }
    strbuf_release(&text);
    if (!json_is_object(root)) {
        json_decref(root);
        root = json_object();
    }
    return root;
}

/*
 * Return the text to write: the result, and what the session has written there
 * itself, such as its usage. Nothing stays of an earlier finish. What was
 * checked must be what is read: if the rest would make it invalid, it is left
 * out.
 */
static char *merge_result(json_t *own_take, const json_t *result)
{
    static const char *const replaced[] = {"outcome",
                                           "reason",
                                           "feedback",
                                           "final",
                                           "lacks",
                                           "retry_after",
                                           "retry_at",
                                           "tasks"};
    struct attempt_result read = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(replaced); ix++) {
        (void)json_object_del(own_take, replaced[ix]);
    }
    if (json_is_true(json_object_get(own_take, "finish"))) {
        (void)json_object_del(own_take, "outputs");
    }
    json_t *given = json_deep_copy(result);
    (void)json_object_set_new(given, "finish", json_true());
    (void)json_object_update(own_take, given);
    char *text = json_dumps(own_take, JSON_COMPACT);
    if (text == NULL || strlen(text) > RESULT_BYTES_MAX ||
        attempt_parse_result(text, strlen(text), &read, NULL) != ERR_OK) {
        free(text);
        text = json_dumps(given, JSON_COMPACT);
    }
    attempt_result_release(&read);
    json_decref(given);
    json_decref(own_take);
    return text;
}

/* Write the result. Several processes of a session may finish at once: the last
 * one wins, and a lock on the directory keeps the files whole. */
static enum err write_result(const json_t *result, struct diag *diag)
{
    const char *name = NULL;
    bool shared = false;
    struct strbuf dir = {0};
    struct strbuf text = {0};
    enum err err = find_file(&dir, &name, &shared, diag);
    int fd = err == ERR_OK
                 ? open(strbuf_text(&dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : -1;
    if (err == ERR_OK && (fd < 0 || flock(fd, LOCK_EX) != 0)) {
        err = diag_set(diag,
                       ERR_IO,
                       "%s: %s",
                       strbuf_text(&dir),
                       strerror(errno));
    }
    if (err == ERR_OK) {
        json_t *own = shared ? load(strbuf_text(&dir), name) : json_object();
        char *made = merge_result(own, result);
        strbuf_adds(&text, made != NULL ? made : "{}");
        free(made);
        err = attempt_file_write(strbuf_text(&dir), name, &text, diag);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    strbuf_release(&dir);
    strbuf_release(&text);
    return err;
}

/* Have the result checked, and write it; `said` is for the caller. */
static enum err finish(json_t *result, struct strbuf *out, struct diag *diag)
{
    struct strbuf checked = {0};
    json_t *request =
        json_pack("{s:s, s:O}", "verb", "finish", "result", result);
    enum err err = door_ask(request, &checked, diag);
    json_decref(request);
    if (err == ERR_OK || err == ERR_UNAVAILABLE) {
        err = write_result(result, diag);
    }
    if (err == ERR_OK) {
        const char *outcome = tool_text(result, "outcome");
        strbuf_addf(out,
                    "finished: %s%s; end the session now\n",
                    outcome,
                    checked.len == 0 ? " (not checked: no scheduler is running)"
                                     : "");
    }
    strbuf_release(&checked);
    return err;
}

static enum err run_finish(const struct tool *tool,
                           const json_t *args,
                           struct strbuf *out,
                           struct diag *diag)
{
    json_t *result = json_object();
    for (uint32_t ix = 0; ix < tool->param_count; ix++) {
        const char *name = tool->params[ix].name;
        json_t *value = json_object_get(args, name);
        if (value != NULL && !json_is_null(value)) {
            (void)json_object_set(result, name, value);
        }
    }
    enum err err = ERR_OK;
    if (tool_text(result, "outcome") == NULL) {
        if (json_array_size(json_object_get(result, "tasks")) == 0) {
            err = diag_set(diag,
                           ERR_INVALID,
                           "finish: \"outcome\" is missing: %s",
                           tool->params[0].words);
        }
        (void)json_object_set_new(result, "outcome", json_string("done"));
    }
    if (err == ERR_OK) {
        err = finish(result, out, diag);
    }
    json_decref(result);
    return err;
}

static enum err run_ask(const struct tool *tool,
                        const json_t *args,
                        struct strbuf *out,
                        struct diag *diag)
{
    (void)tool;
    json_t *result = json_pack("{s:s, s:s}",
                               "outcome",
                               "blocked",
                               "reason",
                               tool_text(args, "question"));
    enum err err = finish(result, out, diag);
    json_decref(result);
    return err;
}

/* --- table -------------------------------------------------------------- */

static const struct tool_param plan_params[] = {
    {"filter",
     TOOL_STRING,
     false,
     "a state (ready, running, parked, done ...) or a part of ids",
     NULL,
     NULL},
};

static const struct tool_param why_params[] = {
    {"task", TOOL_STRING, false, "id; default: your own", NULL, NULL},
};

static const struct tool_param add_params[] = {
    {"key",
     TOOL_STRING,
     true,
     "your name for this addition; repeating a key adds nothing",
     NULL,
     NULL},
    {"fragment",
     TOOL_STRING,
     true,
     "YAML, as in: tasks: [{id: docs, run: make docs, needs: [api-1]}]",
     NULL,
     NULL},
};

static const struct tool_param progress_params[] = {
    {"note", TOOL_STRING, true, NULL, NULL, NULL},
};

static const struct tool_param finish_params[] = {
    {"outcome",
     TOOL_STRING,
     false,
     "changes: send the work back; checkpoint: continue in a new session; "
     "not needed with tasks",
     "done|changes|blocked|checkpoint|failed|later",
     NULL},
    {"reason",
     TOOL_STRING,
     false,
     "summary; for changes what to change; for blocked the question",
     NULL,
     NULL},
    {"tasks",
     TOOL_LIST,
     false,
     "in a batch: one for each task",
     NULL,
     "{\"items\": {\"type\": \"object\", \"properties\": {\"task\": {\"type\": "
     "\"string\"}, \"outcome\": {\"type\": \"string\"}, \"reason\": "
     "{\"type\": \"string\"}}, \"required\": [\"task\", \"outcome\"]}}"},
    {"outputs",
     TOOL_OBJECT,
     false,
     "short strings for tasks that need this one",
     NULL,
     "{\"additionalProperties\": {\"type\": \"string\"}}"},
    {"usage",
     TOOL_OBJECT,
     false,
     "input_tokens, output_tokens, usd",
     NULL,
     NULL},
    {"retry_after", TOOL_STRING, false, "for later: 10m", NULL, NULL},
};

static const struct tool_param ask_params[] = {
    {"question", TOOL_STRING, true, NULL, NULL, NULL},
};

const struct tool session_tools[] = {
    {.name = "task",
     .text = "Your task: issue, feedback, needs, deadline, budget.",
     .reads = true,
     .run = run_question},
    {.name = "plan",
     .text = "Tasks of the run with their states, a line each.",
     .params = plan_params,
     .param_count = ARRAY_COUNT(plan_params),
     .reads = true,
     .run = run_question},
    {.name = "why",
     .text = "Why a task is not running.",
     .params = why_params,
     .param_count = ARRAY_COUNT(why_params),
     .reads = true,
     .run = run_question},
    {.name = "add",
     .text = "Add tasks to the run: follow-up work that is not your task.",
     .params = add_params,
     .param_count = ARRAY_COUNT(add_params),
     .run = run_add},
    {.name = "progress",
     .text = "Leave a note for the operator; a sign of life in long work.",
     .params = progress_params,
     .param_count = ARRAY_COUNT(progress_params),
     .run = run_progress},
    {.name = "finish",
     .text = "State how your task ended; then stop. It counts more than the "
             "exit code. The last call wins.",
     .params = finish_params,
     .param_count = ARRAY_COUNT(finish_params),
     .run = run_finish},
    {.name = "ask",
     .text = "Ask a person, if you cannot go on without an answer; then stop. "
             "The answer comes as feedback in your next session.",
     .params = ask_params,
     .param_count = ARRAY_COUNT(ask_params),
     .run = run_ask},
};

const uint32_t session_tool_count = ARRAY_COUNT(session_tools);
