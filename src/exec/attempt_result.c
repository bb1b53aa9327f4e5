/* SPDX-License-Identifier: MIT */
/*
 * Parser of $SLUICE_RESULT, which docs/attempts.md documents for sessions.
 *
 * Unknown members are ignored, so that an agent may write more than we read.
 * Known members must be valid: a half-understood result could report "done" for
 * a task that is not.
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

/* A result being read: the first error counts, and nothing is read after it. */
struct reader {
    enum err err;
    struct diag *diag;
};

static void bad(struct reader *reader, const char *name, const char *what)
{
    if (reader->err == ERR_OK) {
        reader->err =
            diag_set(reader->diag, ERR_INVALID, "result: %s%s", name, what);
    }
}

/* Return a member that exists and is not null, or NULL. */
static const json_t *
get(const struct reader *reader, const json_t *object, const char *name)
{
    const json_t *value =
        reader->err == ERR_OK ? json_object_get(object, name) : NULL;
    return json_is_null(value) ? NULL : value;
}

/* Copy a string without control characters, cut to `max` bytes. */
static char *clean(const char *text, size_t len, size_t max)
{
    if (len > max) {
        len = max;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
            len--; /* not within a UTF-8 character */
        }
    }
    char *copy = mem_strndup(text, len);
    for (size_t ix = 0; ix < len; ix++) {
        unsigned char byte = (unsigned char)copy[ix];
        unsigned char next = (unsigned char)copy[ix + 1];
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
            copy[ix] = ' ';
        } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
            copy[ix] = ' '; /* C1 control characters */
            copy[++ix] = ' ';
        }
    }
    return copy;
}

/* Read `outcome`; return whether it exists. */
static bool read_outcome(struct reader *reader,
                         const json_t *object,
                         enum sched_outcome *out)
{
    const json_t *value = get(reader, object, "outcome");
    bool said =
        value != NULL && outcome_read_said(json_string_value(value), out);
    if (value != NULL && !said) {
        bad(reader,
            "outcome",
            " must be one of blocked, changes, checkpoint, done, failed, "
            "refused");
    }
    return said;
}

/* Read an optional string and cut it to `max` bytes. */
static void read_text(struct reader *reader,
                      const json_t *object,
                      const char *name,
                      size_t max,
                      char **out)
{
    const json_t *value = get(reader, object, name);
    if (json_is_string(value)) {
        *out = clean(json_string_value(value), json_string_length(value), max);
    } else if (value != NULL) {
        bad(reader, name, " must be a string");
    }
}

/* Read an optional flag. */
static void read_flag(struct reader *reader,
                      const json_t *root,
                      const char *name,
                      bool *out)
{
    const json_t *value = get(reader, root, name);
    if (value != NULL && !json_is_boolean(value)) {
        bad(reader, name, " must be true or false");
    }
    *out = json_is_true(value);
}

/* Read `retry_at`: seconds since 1970, or a time as a string. */
static void
read_retry_at(struct reader *reader, const json_t *root, int64_t *out)
{
    const json_t *value = get(reader, root, "retry_at");
    double seconds = json_is_number(value) ? json_number_value(value) : -1;
    if (seconds >= 0 && seconds <= (double)UTC_SECONDS_MAX) {
        *out = (int64_t)(seconds * 1e9);
    } else if (value != NULL && (!json_is_string(value) ||
                                 !utc_read(json_string_value(value), out))) {
        bad(reader,
            "retry_at",
            " must be seconds since 1970, or a time such as "
            "2030-01-31T12:00:00Z");
    }
}

/* Read a number of tokens; return whether it exists. */
static bool read_tokens(struct reader *reader,
                        const json_t *usage,
                        const char *name,
                        int64_t *out)
{
    const json_t *value = get(reader, usage, name);
    int64_t count = json_is_integer(value) ? json_integer_value(value) : -1;
    if (value != NULL && (count < 0 || count > TOKENS_MAX)) {
        bad(reader, "usage", ": token counts must be integers");
    } else if (value != NULL) {
        *out = count;
    }
    return value != NULL;
}

static void read_usage(struct reader *reader,
                       const json_t *root,
                       struct attempt_result *out)
{
    const json_t *usage = get(reader, root, "usage");
    if (usage != NULL && !json_is_object(usage)) {
        bad(reader, "usage", " must be an object");
    }
    bool in = read_tokens(reader, usage, "input_tokens", &out->input_tokens);
    bool made =
        read_tokens(reader, usage, "output_tokens", &out->output_tokens);
    (void)read_tokens(reader, usage, "cached_tokens", &out->cached_tokens);
    out->has_usage = in || made;
    const json_t *usd = get(reader, usage, "usd");
    out->has_usd = usd != NULL;
    out->usd = json_number_value(usd);
    if (usd != NULL &&
        (!json_is_number(usd) || out->usd < 0 || out->usd > USD_MAX)) {
        bad(reader, "usage", ": usd must be a number, at least 0");
    }
}

/* Read one element of `tasks`; *out owns its allocations at once. */
static void read_task(struct reader *reader,
                      const json_t *value,
                      struct attempt_task_result *out)
{
    const json_t *task = json_object_get(value, "task");
    size_t len = json_string_length(task);
    if (len == 0 || len > TASK_BYTES_MAX) {
        bad(reader, "tasks", ": each entry needs a task, its id");
        return;
    }
    out->task = clean(json_string_value(task), len, TASK_BYTES_MAX);
    if (!read_outcome(reader, value, &out->outcome)) {
        bad(reader, "tasks", ": each entry needs an outcome");
    }
    read_text(reader, value, "reason", REASON_BYTES_MAX, &out->reason);
    read_text(reader, value, "feedback", FEEDBACK_BYTES_MAX, &out->feedback);
}

/* Read `tasks`, the outcomes of a batch. */
static void read_tasks(struct reader *reader,
                       const json_t *root,
                       struct attempt_result *out)
{
    const json_t *tasks = get(reader, root, "tasks");
    size_t count = json_array_size(tasks);
    if (tasks != NULL && (!json_is_array(tasks) || count > TASKS_MAX)) {
        bad(reader, "tasks", " must be a list of at most 10,000 entries");
        return;
    }
    out->tasks = mem_zalloc(count, sizeof(out->tasks[0]));
    for (size_t ix = 0; ix < count && reader->err == ERR_OK; ix++) {
        out->task_count++;
        read_task(reader, json_array_get(tasks, ix), &out->tasks[ix]);
    }
}

/* Read `add`, a plan fragment: an object or a string. */
static void read_add(struct reader *reader, const json_t *root, char **out)
{
    const json_t *value = get(reader, root, "add");
    const char *text = json_string_value(value);
    char *made =
        json_is_object(value) ? json_dumps(value, JSON_INDENT(1)) : NULL;
    text = made != NULL ? made : text;
    if (text != NULL) {
        *out = mem_strdup(text);
    } else if (value != NULL) {
        bad(reader,
            "add",
            json_is_object(value)
                ? " cannot be read"
                : " must be an object, or a fragment as a string");
    }
    free(made);
}

static enum err
read_root(const json_t *root, struct attempt_result *out, struct diag *diag)
{
    struct reader reader = {.diag = diag};
    if (!json_is_object(root)) {
        bad(&reader, "", "it must be an object");
    }
    out->has_outcome = read_outcome(&reader, root, &out->outcome);
    read_text(&reader, root, "reason", REASON_BYTES_MAX, &out->reason);
    read_text(&reader, root, "feedback", FEEDBACK_BYTES_MAX, &out->feedback);
    read_retry_at(&reader, root, &out->retry_at_ns);
    /* A truncated value would name something else. */
    const json_t *resume = get(&reader, root, "resume");
    if (json_string_length(resume) > RESUME_BYTES_MAX) {
        bad(&reader, "resume", " is longer than 4096 bytes");
    }
    read_text(&reader, root, "resume", RESUME_BYTES_MAX, &out->resume);
    out->lacks =
        outcome_read_lack(json_string_value(json_object_get(root, "lacks")));
    read_flag(&reader, root, "stop", &out->stop);
    read_flag(&reader, root, "progress", &out->progress);
    read_usage(&reader, root, out);
    read_tasks(&reader, root, out);
    read_add(&reader, root, &out->add);
    return reader.err;
}

/* The result is not valid JSON. */
static enum err unfit(struct diag *diag, const char *what)
{
    return diag_set(diag, ERR_INVALID, "result: %s", what);
}

enum err attempt_parse_result(const char *bytes,
                              size_t len,
                              struct attempt_result *out,
                              struct diag *diag)
{
    json_error_t error = {0};
    *out = (struct attempt_result){0};
    if (len > RESULT_BYTES_MAX) {
        return unfit(diag, "it is larger than 1 MiB");
    }
    if (memchr(bytes, '\0', len) != NULL) {
        return unfit(diag, "it contains a NUL byte: write JSON only");
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

/* Classify a read error: is it about the file, or temporary? */
static enum err unreadable(struct diag *diag, int error)
{
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO) {
        return diag_set(diag, ERR_UNAVAILABLE, "result: %s", strerror(error));
    }
    return unfit(diag, strerror(error));
}

/* Read an open file into `text`, up to the size limit. */
static enum err read_file(int fd, struct strbuf *text, struct diag *diag)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        return unfit(diag, "it is not a regular file");
    }
    char piece[16384];
    ssize_t len;
    while ((len = read(fd, piece, sizeof(piece))) > 0) {
        strbuf_add(text, piece, (size_t)len);
        if (text->len > RESULT_BYTES_MAX) {
            return unfit(diag, "it is larger than 1 MiB");
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
        err = unfit(diag, "it is a symbolic link");
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
