/* SPDX-License-Identifier: MIT */
#include "git/result.h"

#include "base/crash.h"
#include "git/log.h"

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

/* Load the result so far, or an empty result; NULL: no result file is set. */
static json_t *load(void)
{
    const char *path = getenv("SLUICE_RESULT");
    json_t *root = path != NULL ? json_load_file(path, 0, NULL) : NULL;
    if (path != NULL && !json_is_object(root)) {
        json_decref(root);
        root = json_object();
    }
    return root;
}

/* Write the file atomically, by rename, unless building its content failed. */
static bool store(json_t *root, bool good)
{
    const char *path = getenv("SLUICE_RESULT");
    char next[4096];
    int len = snprintf(next, sizeof(next), "%s.next", path);
    bool written = good && len > 0 && (size_t)len < sizeof(next) &&
                   json_dump_file(root, next, JSON_COMPACT) == 0;
    crash_point("result-before-rename");
    written = written && rename(next, path) == 0;
    if (!written) {
        log_line("cannot write %s: %s", path, strerror(errno));
    }
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

void result_say_progress(void)
{
    json_t *root = load();
    if (root != NULL) {
        (void)store(root,
                    json_object_set_new(root, "progress", json_true()) == 0);
    }
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
