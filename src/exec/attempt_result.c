/* SPDX-License-Identifier: MIT */
/*
 * Reading $SLUICE_RESULT. docs/attempts.md tells sessions what may be in it.
 *
 * Members that we do not know are ignored, so that an agent may write more
 * than we read. What we do know must be right: a result that is half
 * understood could say "done" of a task that is not.
 */
#include "exec/attempt_result.h"

#include "base/crash.h"
#include "base/mem.h"
#include "base/utc.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    RESULT_BYTES_MAX = 1 << 20,
    TASKS_MAX = 10000,
    TASK_BYTES_MAX = 1024, /* of the id of a task */
    REASON_BYTES_MAX = 4096,
    FEEDBACK_BYTES_MAX = 128 << 10,
    RESUME_BYTES_MAX = 4096,
};

#define TOKENS_MAX INT64_C(1000000000000000)
#define USD_MAX 1e9

static enum err bad(struct diag *diag, const char *what)
{
    return diag_set(diag, ERR_INVALID, "result: %s", what);
}

/* A text without control characters, cut to `max` bytes. */
static char *clean(const char *text, size_t len, size_t max)
{
    if (len > max) {
        len = max;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
            len--; /* not within a character of UTF-8 */
        }
    }
    char *copy = mem_strndup(text, len);
    for (size_t ix = 0; ix < len; ix++) {
        unsigned char byte = (unsigned char)copy[ix];
        unsigned char next = (unsigned char)copy[ix + 1];
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
            copy[ix] = ' ';
        } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
            copy[ix] = ' '; /* the C1 set of control characters */
            copy[++ix] = ' ';
        }
    }
    return copy;
}

/* Read `outcome`, which is optional. */
static enum err read_outcome(const json_t *object,
                             bool *has_out,
                             enum sched_outcome *out,
                             struct diag *diag)
{
    const json_t *value = json_object_get(object, "outcome");
    if (value == NULL || json_is_null(value)) {
        return ERR_OK;
    }
    *has_out = outcome_read_said(json_string_value(value), out);
    if (*has_out) {
        return ERR_OK;
    }
    return bad(diag,
               "outcome must be one of blocked, changes, checkpoint, done, "
               "failed, refused");
}

/* Read a text, which is optional, and cut it to `max` bytes. */
static enum err read_text(const json_t *object,
                          const char *name,
                          size_t max,
                          char **out,
                          struct diag *diag)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL || json_is_null(value)) {
        return ERR_OK;
    }
    if (!json_is_string(value)) {
        return diag_set(diag, ERR_INVALID, "result: %s must be a string", name);
    }
    *out = clean(json_string_value(value), json_string_length(value), max);
    return ERR_OK;
}

/* Read what is said for people, and for those who work again. */
static enum err read_words(const json_t *object,
                           char **reason_out,
                           char **feedback_out,
                           struct diag *diag)
{
    enum err err =
        read_text(object, "reason", REASON_BYTES_MAX, reason_out, diag);
    return err != ERR_OK ? err
                         : read_text(object,
                                     "feedback",
                                     FEEDBACK_BYTES_MAX,
                                     feedback_out,
                                     diag);
}

/* Read `resume`. A text that was cut would name something else. */
static enum err read_resume(const json_t *root, char **out, struct diag *diag)
{
    const json_t *value = json_object_get(root, "resume");
    if (json_string_length(value) > RESUME_BYTES_MAX) {
        return bad(diag, "resume is longer than 4096 bytes");
    }
    return read_text(root, "resume", RESUME_BYTES_MAX, out, diag);
}

/* Read a flag, which is optional. */
static enum err
read_flag(const json_t *root, const char *name, bool *out, struct diag *diag)
{
    const json_t *value = json_object_get(root, name);
    if (value != NULL && !json_is_null(value) && !json_is_boolean(value)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "result: %s must be true or false",
                        name);
    }
    *out = json_is_true(value);
    return ERR_OK;
}

/* Read `retry_at`: seconds since 1970, or a time as text. */
static enum err
read_retry_at(const json_t *root, int64_t *out, struct diag *diag)
{
    const json_t *value = json_object_get(root, "retry_at");
    if (value == NULL || json_is_null(value)) {
        return ERR_OK;
    }
    if (json_is_number(value)) {
        double seconds = json_number_value(value);
        if (seconds >= 0 && seconds <= (double)UTC_SECONDS_MAX) {
            *out = (int64_t)(seconds * 1e9);
            return ERR_OK;
        }
    } else if (json_is_string(value) &&
               utc_read(json_string_value(value), out)) {
        return ERR_OK;
    }
    *out = 0;
    return bad(diag,
               "retry_at must be seconds since 1970, or a time such as "
               "2030-01-31T12:00:00Z");
}

/* Read a number of tokens, which is optional. */
static enum err read_tokens(const json_t *usage,
                            const char *name,
                            int64_t *out,
                            struct diag *diag)
{
    const json_t *value = json_object_get(usage, name);
    if (value == NULL || json_is_null(value)) {
        return ERR_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > TOKENS_MAX) {
        return bad(diag, "usage: token counts must be integers");
    }
    *out = json_integer_value(value);
    return ERR_OK;
}

static enum err
read_usage(const json_t *root, struct attempt_result *out, struct diag *diag)
{
    const json_t *usage = json_object_get(root, "usage");
    if (usage == NULL || json_is_null(usage)) {
        return ERR_OK;
    }
    if (!json_is_object(usage)) {
        return bad(diag, "usage must be an object");
    }
    enum err err = read_tokens(usage, "input_tokens", &out->input_tokens, diag);
    if (err == ERR_OK) {
        err = read_tokens(usage, "output_tokens", &out->output_tokens, diag);
    }
    if (err == ERR_OK) {
        err = read_tokens(usage, "cached_tokens", &out->cached_tokens, diag);
    }
    out->has_usage = json_is_integer(json_object_get(usage, "input_tokens")) ||
                     json_is_integer(json_object_get(usage, "output_tokens"));
    const json_t *usd = json_object_get(usage, "usd");
    if (err != ERR_OK || usd == NULL || json_is_null(usd)) {
        return err;
    }
    double amount = json_number_value(usd);
    if (!json_is_number(usd) || amount < 0 || amount > USD_MAX) {
        return bad(diag, "usage: usd must be a number, at least 0");
    }
    out->usd = amount;
    out->has_usd = true;
    return ERR_OK;
}

/* Read one element of `tasks`; what it allocates is in *out at once. */
static enum err read_task(const json_t *value,
                          struct attempt_task_result *out,
                          struct diag *diag)
{
    const json_t *task = json_object_get(value, "task");
    size_t len = json_string_length(task);
    if (!json_is_string(task) || len == 0 || len > TASK_BYTES_MAX) {
        return bad(diag, "tasks: each entry needs a task, its id");
    }
    out->task = clean(json_string_value(task), len, TASK_BYTES_MAX);
    bool has = false;
    enum err err = read_outcome(value, &has, &out->outcome, diag);
    if (err == ERR_OK && !has) {
        err = bad(diag, "tasks: each entry needs an outcome");
    }
    if (err == ERR_OK) {
        err = read_words(value, &out->reason, &out->feedback, diag);
    }
    return err;
}

/* Read `tasks`, the outcomes of a batch. */
static enum err
read_tasks(const json_t *root, struct attempt_result *out, struct diag *diag)
{
    const json_t *tasks = json_object_get(root, "tasks");
    if (tasks == NULL || json_is_null(tasks)) {
        return ERR_OK;
    }
    size_t count = json_array_size(tasks);
    if (!json_is_array(tasks) || count > TASKS_MAX) {
        return bad(diag, "tasks must be a list of at most 10,000 entries");
    }
    out->tasks = mem_zalloc(count, sizeof(out->tasks[0]));
    enum err err = ERR_OK;
    for (size_t ix = 0; ix < count && err == ERR_OK; ix++) {
        out->task_count++;
        err = read_task(json_array_get(tasks, ix), &out->tasks[ix], diag);
    }
    return err;
}

/* Read `add`, a plan fragment: an object, or its text. */
static enum err read_add(const json_t *root, char **out, struct diag *diag)
{
    const json_t *value = json_object_get(root, "add");
    if (value == NULL || json_is_null(value)) {
        return ERR_OK;
    }
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        *out = mem_strndup(text, strlen(text));
        return ERR_OK;
    }
    if (!json_is_object(value)) {
        return bad(diag, "add must be an object, or a fragment as a string");
    }
    char *text = json_dumps(value, JSON_INDENT(1));
    if (text == NULL) {
        return bad(diag, "add cannot be read");
    }
    *out = mem_strndup(text, strlen(text));
    free(text);
    return ERR_OK;
}

static enum err
read_root(const json_t *root, struct attempt_result *out, struct diag *diag)
{
    if (!json_is_object(root)) {
        return bad(diag, "it must be an object");
    }
    enum err err = read_outcome(root, &out->has_outcome, &out->outcome, diag);
    if (err == ERR_OK) {
        err = read_words(root, &out->reason, &out->feedback, diag);
    }
    if (err == ERR_OK) {
        err = read_retry_at(root, &out->retry_at_ns, diag);
    }
    if (err == ERR_OK) {
        err = read_resume(root, &out->resume, diag);
    }
    out->lacks =
        outcome_read_lack(json_string_value(json_object_get(root, "lacks")));
    if (err == ERR_OK) {
        err = read_flag(root, "stop", &out->stop, diag);
    }
    if (err == ERR_OK) {
        err = read_flag(root, "progress", &out->progress, diag);
    }
    if (err == ERR_OK) {
        err = read_usage(root, out, diag);
    }
    if (err == ERR_OK) {
        err = read_tasks(root, out, diag);
    }
    if (err == ERR_OK) {
        err = read_add(root, &out->add, diag);
    }
    return err;
}

enum err attempt_parse_result(const char *bytes,
                              size_t len,
                              struct attempt_result *out,
                              struct diag *diag)
{
    json_error_t error = {0};
    *out = (struct attempt_result){0};
    if (len > RESULT_BYTES_MAX) {
        return bad(diag, "it is larger than 1 MiB");
    }
    if (memchr(bytes, '\0', len) != NULL) {
        return bad(diag, "it contains a NUL byte: write JSON only");
    }
    json_t *root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        return diag_set(diag,
                        ERR_INVALID,
                        "result: line %d, column %d: %s",
                        error.line,
                        error.column,
                        error.text);
    }
    enum err err = read_root(root, out, diag);
    json_decref(root);
    if (err != ERR_OK) {
        attempt_result_release(out);
        return err;
    }
    out->present = true;
    return ERR_OK;
}

/* What kept us from reading it: of the file, or only of this moment? */
static enum err unreadable(struct diag *diag, int error)
{
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO) {
        return diag_set(diag, ERR_UNAVAILABLE, "result: %s", strerror(error));
    }
    return bad(diag, strerror(error));
}

/* Read all of an open file into `text`, which must not be too large. */
static enum err read_file(int fd, struct strbuf *text, struct diag *diag)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        return bad(diag, "it is not a regular file");
    }
    char piece[16384];
    ssize_t len;
    while ((len = read(fd, piece, sizeof(piece))) > 0) {
        strbuf_add(text, piece, (size_t)len);
        if (text->len > RESULT_BYTES_MAX) {
            return bad(diag, "it is larger than 1 MiB");
        }
    }
    return len == 0 ? ERR_OK : unreadable(diag, errno);
}

enum err attempt_read_result(const char *dir,
                             struct attempt_result *out,
                             struct diag *diag)
{
    struct strbuf path = {0};
    struct strbuf text = {0};
    enum err err = ERR_OK;
    *out = (struct attempt_result){0};
    strbuf_addf(&path, "%s/result", dir);
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fault = crash_fault("result");
    int fd = fault == 0 ? open(path.text, flags) : -1;
    errno = fault != 0 ? fault : errno;
    if (fd >= 0) {
        err = read_file(fd, &text, diag);
        (void)close(fd);
        if (err == ERR_OK) {
            err = attempt_parse_result(strbuf_text(&text), text.len, out, diag);
        }
    } else if (errno == ELOOP) {
        err = bad(diag, "it is a symbolic link");
    } else if (errno != ENOENT) {
        err = unreadable(diag, errno);
    }
    strbuf_release(&path);
    strbuf_release(&text);
    return err;
}

void attempt_result_release(struct attempt_result *result)
{
    for (uint32_t ix = 0; ix < result->task_count; ix++) {
        mem_free(result->tasks[ix].task);
        mem_free(result->tasks[ix].reason);
        mem_free(result->tasks[ix].feedback);
    }
    mem_free(result->tasks);
    mem_free(result->reason);
    mem_free(result->feedback);
    mem_free(result->resume);
    mem_free(result->add);
    *result = (struct attempt_result){0};
}
