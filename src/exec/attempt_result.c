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
#include "base/duration.h"
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
    GATES_MAX = 2000,
    GATE_BYTES_MAX = 16 << 10, /* of a gate's output */
    ID_BYTES_MIN = 40,         /* of a git object */
    ID_BYTES_MAX = 64,
    COMMIT_BYTES_MAX = 64,
    OUTPUTS_MAX = 32,
    OUTPUT_NAME_BYTES_MAX = 64,
    OUTPUT_BYTES_MAX = 4 << 10,
    OUTPUTS_BYTES_MAX = 32 << 10, /* of all texts together */
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
            "later, refused");
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

/* Read `retry_after`: seconds, or a duration as a string. */
static void
read_retry_after(struct reader *reader, const json_t *root, int64_t *out)
{
    const json_t *value = get(reader, root, "retry_after");
    const char *text = json_string_value(value);
    double seconds = json_is_number(value) ? json_number_value(value) : 0;
    if (seconds > 0 && seconds * 1e9 <= (double)DURATION_MAX_NS) {
        *out = (int64_t)(seconds * 1e9);
    } else if (text != NULL &&
               duration_read(text, strlen(text), out) != ERR_OK) {
        *out = 0;
    }
    if (value != NULL && *out <= 0) {
        bad(reader,
            "retry_after",
            " must be seconds, or a duration such as 10m, at most 365 days");
    }
}

/* Whether a text can be the name of an output. */
static bool is_output_name(const char *text)
{
    size_t len = strlen(text);
    bool letter = (text[0] >= 'A' && text[0] <= 'Z') ||
                  (text[0] >= 'a' && text[0] <= 'z');
    return letter && len <= OUTPUT_NAME_BYTES_MAX &&
           strspn(text,
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                  "0123456789_") == len;
}

/* Read one output into `made`; return its length. */
static size_t read_output(struct reader *reader,
                          const char *name,
                          const json_t *value,
                          json_t *made)
{
    size_t len = json_string_length(value);
    if (reader->err == ERR_OK && !is_output_name(name)) {
        reader->err = diag_set(reader->diag,
                               ERR_INVALID,
                               "result: outputs: \"%.*s\" is not a name: use "
                               "letters, digits and _, first a letter, at most "
                               "64",
                               OUTPUT_NAME_BYTES_MAX,
                               name);
    } else if (!json_is_string(value) || len > OUTPUT_BYTES_MAX) {
        struct strbuf what = {0};
        strbuf_addf(&what,
                    ": %s %s",
                    name,
                    json_is_string(value)
                        ? "is longer than 4 KiB: write long results to a file, "
                          "and output its name"
                        : "must be a string");
        bad(reader, "outputs", strbuf_text(&what));
        strbuf_release(&what);
    } else {
        char *text = clean(json_string_value(value), len, OUTPUT_BYTES_MAX);
        (void)json_object_set_new(made, name, json_string(text));
        mem_free(text);
    }
    return len;
}

/* Read `outputs`: an object of strings; empty: the same as none. */
static void
read_outputs(struct reader *reader, const json_t *object, char **out)
{
    const json_t *value = get(reader, object, "outputs");
    if (value != NULL && !json_is_object(value)) {
        bad(reader, "outputs", " must be an object of strings");
    } else if (json_object_size(value) > OUTPUTS_MAX) {
        bad(reader, "outputs", ": there are more than 32");
    }
    if (json_object_size(value) == 0 || reader->err != ERR_OK) {
        return;
    }
    json_t *made = json_object();
    json_t *all = json_object_get(object, "outputs");
    size_t bytes = 0;
    const char *name;
    json_t *text;
    json_object_foreach(all, name, text)
    {
        bytes += read_output(reader, name, text, made);
    }
    if (bytes > OUTPUTS_BYTES_MAX) {
        bad(reader, "outputs", ": they are longer than 32 KiB together");
    }
    if (reader->err == ERR_OK) {
        char *dumped = json_dumps(made, JSON_COMPACT | JSON_SORT_KEYS);
        *out = mem_strdup(dumped);
        free(dumped);
    }
    json_decref(made);
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
    read_flag(reader, value, "final", &out->final);
    read_outputs(reader, value, &out->outputs);
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

static const char *const gate_names[] = {
    [ATTEMPT_GATE_PASSED] = "passed",
    [ATTEMPT_GATE_FAILED] = "failed",
    [ATTEMPT_GATE_FLAKY] = "flaky",
};

const char *attempt_gate_name(enum attempt_gate_verdict verdict)
{
    return gate_names[verdict];
}

bool attempt_gate_read(const char *name, enum attempt_gate_verdict *out)
{
    for (size_t ix = 0; name != NULL && ix < ARRAY_COUNT(gate_names); ix++) {
        if (strcmp(name, gate_names[ix]) == 0) {
            *out = (enum attempt_gate_verdict)ix;
            return true;
        }
    }
    return false;
}

/* Whether a text can be the id of a git object. */
static bool is_object(const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;
    return len >= ID_BYTES_MIN && len <= ID_BYTES_MAX &&
           strspn(text, "0123456789abcdef") == len;
}

/* Read one element of `gates`; false: it is none. */
static bool read_gate(const json_t *value, struct attempt_gate *out)
{
    const char *tree = json_string_value(json_object_get(value, "tree"));
    const char *commit = json_string_value(json_object_get(value, "commit"));
    const json_t *command = json_object_get(value, "command");
    json_int_t tries = json_integer_value(json_object_get(value, "tries"));
    const char *verdict = json_string_value(json_object_get(value, "verdict"));
    if (!is_object(tree) || !is_object(commit) || !json_is_string(command) ||
        tries < 1 || tries > INT32_MAX ||
        !attempt_gate_read(verdict, &out->verdict)) {
        return false;
    }
    out->tree = mem_strdup(tree);
    out->commit = mem_strdup(commit);
    out->command = mem_strdup(json_string_value(command));
    out->tries = (uint32_t)tries;
    const json_t *output = json_object_get(value, "output");
    if (json_is_string(output)) {
        out->output = clean(json_string_value(output),
                            json_string_length(output),
                            GATE_BYTES_MAX);
    }
    return true;
}

/* Read `gates`. They have no effect on the outcome, and only those of a merge
 * count: skip what is not valid. */
static void read_gates(const json_t *root, struct attempt_result *out)
{
    const json_t *gates = json_object_get(root, "gates");
    size_t count = json_array_size(gates);
    count = count < GATES_MAX ? count : GATES_MAX;
    out->gates = mem_zalloc(count, sizeof(out->gates[0]));
    for (size_t ix = 0; ix < count; ix++) {
        if (read_gate(json_array_get(gates, ix),
                      &out->gates[out->gate_count])) {
            out->gate_count++;
        }
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

/* Read `queue`: how a merge went through its queue. */
static void read_queue(struct reader *reader,
                       const json_t *root,
                       struct attempt_result *out)
{
    const json_t *queue = get(reader, root, "queue");
    const json_t *restarts = json_object_get(queue, "restarts");
    const json_t *on = json_object_get(queue, "on");
    json_int_t count = json_integer_value(restarts);
    out->restarts = count > 0 && count < UINT32_MAX ? (uint32_t)count : 0;
    struct strbuf text = {0};
    for (size_t ix = 0; ix < json_array_size(on); ix++) {
        const json_t *task = json_array_get(on, ix);
        size_t len = json_string_length(task);
        if (len > 0 && text.len + len < REASON_BYTES_MAX) {
            strbuf_adds(&text, text.len > 0 ? ", " : "");
            strbuf_adds(&text, json_string_value(task));
        }
    }
    if (text.len > 0) {
        out->on = clean(text.text, text.len, REASON_BYTES_MAX);
    }
    strbuf_release(&text);
}

/* Copy a string member, or return NULL. */
static char *text_of(const json_t *object, const char *name, size_t max)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value)
               ? clean(json_string_value(value), json_string_length(value), max)
               : NULL;
}

/* Read {"verdict": "failed", "commit": ID, "reason": TEXT}. sluice-git writes
 * it; in a session's result it means nothing, whatever it is. */
static void read_base(const json_t *root, struct attempt_result *out)
{
    const json_t *base = json_object_get(root, "base");
    const char *verdict = json_string_value(json_object_get(base, "verdict"));
    out->base_failed = verdict != NULL && strcmp(verdict, "failed") == 0;
    out->base_commit = text_of(base, "commit", COMMIT_BYTES_MAX);
    out->base_reason = text_of(base, "reason", REASON_BYTES_MAX);
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
    read_retry_after(&reader, root, &out->retry_after_ns);
    if (out->retry_at_ns > 0 && out->retry_after_ns > 0) {
        bad(&reader, "retry_at", " and retry_after: give one of them");
    }
    read_flag(&reader, root, "final", &out->final);
    read_flag(&reader, root, "finish", &out->finish);
    read_outputs(&reader, root, &out->outputs);
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
    read_gates(root, out);
    read_add(&reader, root, &out->add);
    read_queue(&reader, root, out);
    read_base(root, out);
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
        mem_free(result->tasks[ix].outputs);
    }
    mem_free(result->tasks);
    for (uint32_t ix = 0; ix < result->gate_count; ix++) {
        mem_free(result->gates[ix].tree);
        mem_free(result->gates[ix].commit);
        mem_free(result->gates[ix].command);
        mem_free(result->gates[ix].output);
    }
    mem_free(result->gates);
    mem_free(result->reason);
    mem_free(result->feedback);
    mem_free(result->resume);
    mem_free(result->outputs);
    mem_free(result->add);
    mem_free(result->on);
    mem_free(result->base_commit);
    mem_free(result->base_reason);
    *result = (struct attempt_result){0};
}

const char *attempt_result_outputs(const struct attempt_result *result,
                                   const char *task)
{
    const char *outputs = result->outputs;
    for (uint32_t ix = 0; ix < result->task_count; ix++) {
        const struct attempt_task_result *said = &result->tasks[ix];
        if (said->outputs != NULL && strcmp(said->task, task) == 0) {
            outputs = said->outputs;
        }
    }
    return outputs;
}
