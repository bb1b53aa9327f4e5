/* SPDX-License-Identifier: MIT */
#include "git/result.h"

#include "base/crash.h"
#include "git/say.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int result_code(enum err err)
{
    switch (err) {
    case ERR_OK:
        return RESULT_DONE;
    case ERR_DENIED:
    case ERR_INVALID:
    case ERR_NOT_FOUND:
        return RESULT_BLOCKED;
    case ERR_BUSY:
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
        return RESULT_REFUSED;
    case ERR_CONFLICT:
    case ERR_LIMIT:
    case ERR_CANCELLED:
    case ERR_IO:
    case ERR_CORRUPT:
    case ERR_COUNT:
        break;
    }
    return RESULT_FAILED;
}

const char *result_outcome(int code)
{
    switch (code) {
    case RESULT_DONE:
        return "done";
    case RESULT_CHANGES:
        return "changes";
    case RESULT_BLOCKED:
        return "blocked";
    case RESULT_REFUSED:
        return "refused";
    default:
        return "failed";
    }
}

/* Outcome and reason into a JSON object. Git's paths may have any bytes. */
static bool set(json_t *object, int code, const char *reason)
{
    json_t *text = json_string(reason);
    if (text == NULL) {
        text = json_string("see its log"); /* the reason is not UTF-8 */
    }
    return json_object_set_new(object,
                               "outcome",
                               json_string(result_outcome(code))) == 0 &&
           (reason[0] == '\0'
                ? (json_decref(text), true)
                : json_object_set_new(object, "reason", text) == 0);
}

/* Write the file whole, by rename. */
static bool store(const char *path, const json_t *root)
{
    char next[4096];
    int len = snprintf(next, sizeof(next), "%s.next", path);
    bool written = len > 0 && (size_t)len < sizeof(next) &&
                   json_dump_file(root, next, JSON_COMPACT) == 0;
    crash_point("result-before-rename");
    return written && rename(next, path) == 0;
}

static json_t *load(const char *path)
{
    json_t *root = json_load_file(path, 0, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        root = json_object();
    }
    return root;
}

void result_say(int code, const char *reason)
{
    const char *path = getenv("SLUICE_RESULT");
    if (reason[0] != '\0') {
        say("%s", reason);
    }
    if (path == NULL) {
        return;
    }
    json_t *root = load(path);
    if (!set(root, code, reason) || !store(path, root)) {
        say("%s cannot be written: %s", path, strerror(errno));
    }
    json_decref(root);
}

void result_refuse(int code, const char *reason)
{
    char text[DIAG_BYTES + 64];
    (void)snprintf(text,
                   sizeof(text),
                   "%s%s",
                   code == RESULT_BLOCKED ? "it could not be started: " : "",
                   reason);
    result_say(code, text);
}

void result_say_progress(void)
{
    const char *path = getenv("SLUICE_RESULT");
    if (path == NULL) {
        return;
    }
    json_t *root = load(path);
    if (json_object_set_new(root, "progress", json_true()) != 0 ||
        !store(path, root)) {
        say("%s cannot be written: %s", path, strerror(errno));
    }
    json_decref(root);
}

bool result_say_task(const char *task, int code, const char *reason)
{
    const char *path = getenv("SLUICE_RESULT");
    say("%s: %s%s%s",
        task,
        result_outcome(code),
        reason[0] != '\0' ? ": " : "",
        reason);
    if (path == NULL) {
        return false;
    }
    json_t *root = load(path);
    json_t *tasks = json_object_get(root, "tasks");
    if (!json_is_array(tasks)) {
        tasks = json_array();
        (void)json_object_set_new(root, "tasks", tasks);
    }
    json_t *one = json_object();
    bool written = json_object_set_new(one, "task", json_string(task)) == 0 &&
                   set(one, code, reason) &&
                   json_array_append(tasks, one) == 0 && store(path, root);
    if (!written) {
        say("%s cannot be written: %s", path, strerror(errno));
    }
    json_decref(one);
    json_decref(root);
    return written;
}
