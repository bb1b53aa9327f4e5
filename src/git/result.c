/* SPDX-License-Identifier: MIT */
#include "git/result.h"

#include "base/crash.h"
#include "exec/attempt_file.h"
#include "git/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int result_code(enum err err)
{
    switch (err) {
    case ERR_OK:
        return OUTCOME_EXIT_DONE;
    case ERR_DENIED:
    case ERR_INVALID:
    case ERR_NOT_FOUND:
        return OUTCOME_EXIT_BLOCKED;
    case ERR_BUSY:
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
        return OUTCOME_EXIT_REFUSED;
    case ERR_CONFLICT:
    case ERR_LIMIT:
    case ERR_CANCELLED:
    case ERR_IO:
    case ERR_CORRUPT:
    case ERR_COUNT:
        break;
    }
    return OUTCOME_EXIT_FAILED;
}

/* Put outcome and reason into a JSON object. Git paths may have any bytes. */
static bool set(json_t *object, int code, const char *reason)
{
    json_t *text = json_string(reason);
    if (text == NULL) {
        text = json_string("see its log"); /* the reason is not UTF-8 */
    }
    return json_object_set_new(
               object,
               "outcome",
               json_string(outcome_name(outcome_of_code(code)))) == 0 &&
           (reason[0] == '\0'
                ? (json_decref(text), true)
                : json_object_set_new(object, "reason", text) == 0);
}

/* Split a path into its directory and its name. */
static const char *split(const char *path, struct strbuf *dir)
{
    const char *slash = strrchr(path, '/');
    strbuf_add(dir, path, slash != NULL ? (size_t)(slash - path) : 0);
    return slash != NULL ? slash + 1 : path;
}

/* Read a file; links, which the session may have planted, are not followed. */
static bool read_file(const char *path, struct strbuf *out)
{
    struct strbuf dir = {0};
    const char *name = split(path, &dir);
    bool read = attempt_file_read(strbuf_text(&dir), name, out, NULL) == ERR_OK;
    strbuf_release(&dir);
    return read;
}

/* Load the result so far, or an empty result; NULL: no result file is set. */
static json_t *load(void)
{
    const char *path = getenv("SLUICE_RESULT");
    struct strbuf text = {0};
    json_t *root = NULL;
    if (path != NULL && read_file(path, &text)) {
        root = json_loadb(strbuf_text(&text), text.len, 0, NULL);
    }
    strbuf_release(&text);
    if (path != NULL && !json_is_object(root)) {
        json_decref(root);
        root = json_object();
    }
    return root;
}

/* Write the file atomically, by rename, unless building its content failed. */
static bool store(json_t *root, bool good)
{
    struct strbuf text = {0};
    struct strbuf dir = {0};
    struct diag diag = {0};
    char *made = good ? json_dumps(root, JSON_COMPACT) : NULL;
    const char *name = split(getenv("SLUICE_RESULT"), &dir);
    strbuf_adds(&text, made != NULL ? made : "");
    free(made);
    crash_point("result-before-rename");
    bool written =
        text.len > 0 &&
        attempt_file_write(strbuf_text(&dir), name, &text, &diag) == ERR_OK;
    if (!written) {
        log_line("cannot write the result: %s", diag.text);
    }
    strbuf_release(&text);
    strbuf_release(&dir);
    json_decref(root);
    return written;
}

/* Write the result; `lacks` is a word of exec/outcome.h, or NULL. */
static void say_whole(int code, const char *reason, const char *lacks)
{
    if (reason[0] != '\0') {
        log_line("%s", reason);
    }
    json_t *root = load();
    if (root != NULL) {
        (void)store(
            root,
            set(root, code, reason) &&
                (lacks == NULL ||
                 json_object_set_new(root, "lacks", json_string(lacks)) == 0));
    }
}

void result_say(int code, const char *reason)
{
    say_whole(code, reason, NULL);
}

void result_refuse(int code, const char *reason)
{
    bool blocked = outcome_of_code(code) == OUTCOME_BLOCKED;
    char text[DIAG_BYTES + 64];
    (void)snprintf(text,
                   sizeof(text),
                   "%s%s",
                   blocked ? "it could not be started: " : "",
                   reason);
    say_whole(code,
              text,
              blocked ? outcome_lack_name(OUTCOME_LACKS_START) : NULL);
}

void result_blame_base(const char *reason)
{
    say_whole(OUTCOME_EXIT_BLOCKED,
              reason,
              outcome_lack_name(OUTCOME_LACKS_BASE));
}

void result_say_base(bool merged, const char *commit, const char *reason)
{
    json_t *root = load();
    if (root == NULL) {
        return;
    }
    json_t *text = json_string(reason);
    json_t *base = json_pack("{s:s, s:s, s:o}",
                             "verdict",
                             merged ? "passed" : "failed",
                             "commit",
                             commit,
                             "reason",
                             text != NULL ? text : json_string("see its log"));
    (void)store(root,
                base != NULL && json_object_set_new(root, "base", base) == 0);
}

void result_say_feedback(const char *text)
{
    json_t *root = load();
    if (root != NULL) {
        (void)store(root,
                    json_object_set_new(root, "feedback", json_string(text)) ==
                        0);
    }
}

void result_say_progress(void)
{
    json_t *root = load();
    if (root != NULL) {
        (void)store(root,
                    json_object_set_new(root, "progress", json_true()) == 0);
    }
}

void result_touch_progress(void)
{
    const char *progress = getenv("SLUICE_PROGRESS");
    int fd =
        progress != NULL
            ? open(progress, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
            : -1;
    if (fd >= 0) {
        (void)futimens(fd, NULL);
        (void)close(fd);
    }
}

void result_say_queue(uint32_t restarts, const char *on)
{
    json_t *root = load();
    if (root == NULL) {
        return;
    }
    json_t *queue = json_object();
    json_t *tasks = json_array();
    bool good =
        json_object_set_new(queue, "restarts", json_integer(restarts)) == 0;
    for (size_t len; (len = strcspn(on, "\n")) > 0; on += len + 1) {
        good = json_array_append_new(tasks, json_stringn(on, len)) == 0 && good;
    }
    good = json_object_set_new(queue, "on", tasks) == 0 && good;
    good = json_object_set_new(root, "queue", queue) == 0 && good;
    (void)store(root, good);
}

bool result_say_task(const char *task, int code, const char *reason)
{
    log_line("%s: %s%s%s",
             task,
             outcome_name(outcome_of_code(code)),
             reason[0] != '\0' ? ": " : "",
             reason);
    json_t *root = load();
    if (root == NULL) {
        return false;
    }
    json_t *tasks = json_object_get(root, "tasks");
    if (!json_is_array(tasks)) {
        tasks = json_array();
        (void)json_object_set_new(root, "tasks", tasks);
    }
    json_t *one = json_object();
    bool good = json_object_set_new(one, "task", json_string(task)) == 0 &&
                set(one, code, reason) && json_array_append(tasks, one) == 0;
    json_decref(one);
    return store(root, good);
}

static json_t *gate_of(const struct gate_verdict *verdict, const char *command)
{
    json_t *gate = json_pack("{s:s, s:s, s:s, s:s, s:I}",
                             "tree",
                             verdict->tree.text,
                             "commit",
                             verdict->commit.text,
                             "command",
                             command,
                             "verdict",
                             attempt_gate_name(verdict->verdict),
                             "tries",
                             (json_int_t)verdict->tries);
    if (gate != NULL && verdict->output != NULL) {
        (void)json_object_set_new(gate, "output", json_string(verdict->output));
    }
    return gate;
}

void result_say_gates(const struct gate_memory *memory, const char *command)
{
    json_t *root = load();
    json_t *gates = json_array();
    bool good = root != NULL && gates != NULL;
    for (uint32_t ix = 0; good && ix < memory->count; ix++) {
        if (memory->items[ix].commit.text[0] != '\0') {
            good = json_array_append_new(
                       gates,
                       gate_of(&memory->items[ix], command)) == 0;
        }
    }
    good = good && json_object_set(root, "gates", gates) == 0;
    json_decref(gates);
    if (root != NULL) {
        (void)store(root, good);
    }
}
