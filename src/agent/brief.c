/* SPDX-License-Identifier: MIT */
#include "agent/brief.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 4 << 20, BRIEF_BYTES_MAX = 64 << 20 };

/* Read a file into an empty *out. */
static enum err
read_all(struct strbuf *out, const char *path, size_t max, struct diag *diag)
{
    char piece[16384];
    ssize_t len = 0;
    struct stat stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return diag_set(diag, ERR_INVALID, "%s: %s", path, strerror(errno));
    }
    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        (void)close(fd);
        return diag_set(diag, ERR_INVALID, "%s: not a regular file", path);
    }
    while (out->len <= max && (len = read(fd, piece, sizeof(piece))) > 0) {
        strbuf_add(out, piece, (size_t)len);
    }
    int error = errno;
    (void)close(fd);
    if (len < 0) {
        return diag_set(diag, ERR_IO, "%s: %s", path, strerror(error));
    }
    if (out->len > max) {
        return diag_set(diag,
                        ERR_INVALID,
                        "%s: larger than %zu MiB",
                        path,
                        max >> 20);
    }
    return ERR_OK;
}

enum err
brief_read_file(struct strbuf *out, const char *path, struct diag *diag)
{
    return read_all(out, path, FILE_BYTES_MAX, diag);
}

/* Return a string member, or NULL. */
static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* Return a list of strings; the caller frees it. */
static const char **words_of(const json_t *list, uint32_t *count_out)
{
    size_t count = json_array_size(list);
    const char **words = mem_zalloc(count + 1, sizeof(words[0]));
    for (size_t ix = 0; ix < count; ix++) {
        const char *word = json_string_value(json_array_get(list, ix));
        words[ix] = word != NULL ? word : "";
    }
    *count_out = (uint32_t)count;
    return words;
}

static void read_agent(struct brief *brief, const json_t *agent)
{
    struct adapter_call *call = &brief->call;
    const char *permissions = text_of(agent, "permissions");
    const json_t *price = json_object_get(agent, "price");
    call->model = text_of(agent, "model");
    call->permissions = ADAPTER_FULL;
    if (permissions != NULL && strcmp(permissions, "edit") == 0) {
        call->permissions = ADAPTER_EDIT;
    } else if (permissions != NULL && strcmp(permissions, "tools") == 0) {
        call->permissions = ADAPTER_TOOLS;
    }
    call->tools = words_of(json_object_get(agent, "tools"), &call->tool_count);
    call->args = words_of(json_object_get(agent, "args"), &call->arg_count);
    brief->env = words_of(json_object_get(agent, "env"), &brief->env_count);
    call->retries = (uint32_t)adapter_int(agent, "retries");
    brief->mcp = json_is_true(json_object_get(agent, "mcp"));
    brief->price = (struct brief_price){
        .known = json_is_object(price),
        .input = adapter_number(price, "input"),
        .cached = adapter_number(price, "cached"),
        .output = adapter_number(price, "output"),
    };
}

static void read_tasks(struct brief *brief, const json_t *tasks)
{
    size_t count = json_array_size(tasks);
    brief->tasks = mem_zalloc(count, sizeof(brief->tasks[0]));
    brief->task_count = (uint32_t)count;
    for (size_t ix = 0; ix < count; ix++) {
        const json_t *task = json_array_get(tasks, ix);
        brief->tasks[ix] = (struct brief_task){
            .task = adapter_text(task, "task"),
            .issue = adapter_text(task, "issue"),
            .title = text_of(task, "title"),
            .body = text_of(task, "body"),
            .body_file = text_of(task, "body_file"),
        };
    }
}

static void read_root(struct brief *brief)
{
    const json_t *root = brief->root;
    const json_t *usd_left = json_object_get(root, "usd_left");
    brief->adapter =
        adapter_find(adapter_text(json_object_get(root, "agent"), "program"));
    read_agent(brief, json_object_get(root, "agent"));
    read_tasks(brief, json_object_get(root, "tasks"));
    brief->kind = BRIEF_WORK;
    if (adapter_is(root, "kind", "review")) {
        brief->kind = BRIEF_REVIEW;
    } else if (adapter_is(root, "kind", "batch")) {
        brief->kind = BRIEF_BATCH;
    }
    brief->writes = json_is_true(json_object_get(root, "writes"));
    brief->cause = adapter_text(root, "cause");
    brief->reason = text_of(root, "reason");
    brief->feedback = text_of(root, "feedback");
    brief->question = text_of(root, "question");
    brief->answer = text_of(root, "answer");
    brief->prompt = text_of(root, "prompt");
    brief->prompt_file = text_of(root, "prompt_file");
    brief->messages =
        words_of(json_object_get(root, "messages"), &brief->message_count);
    brief->heard = (uint32_t)adapter_int(root, "heard");
    brief->outputs = json_object_get(root, "outputs");
    brief->call.resume = text_of(root, "resume");
    brief->call.usd_left =
        json_is_number(usd_left) ? json_number_value(usd_left) : -1;
}

enum err brief_read(struct brief *out, const char *dir, struct diag *diag)
{
    struct strbuf path = {0};
    struct strbuf text = {0};
    json_error_t error = {0};
    *out = (struct brief){0};
    strbuf_addf(&path, "%s/brief", dir);
    enum err err = read_all(&text, strbuf_text(&path), BRIEF_BYTES_MAX, diag);
    if (err == ERR_OK) {
        out->root = json_loadb(strbuf_text(&text), text.len, 0, &error);
        if (!json_is_object(out->root)) {
            err = diag_set(diag,
                           ERR_INVALID,
                           "%s: line %d: %s",
                           strbuf_text(&path),
                           error.line,
                           error.text);
        }
    }
    if (err == ERR_OK) {
        read_root(out);
        if (out->adapter == NULL || out->task_count == 0) {
            err = diag_set(diag,
                           ERR_INVALID,
                           "%s: missing program or task",
                           strbuf_text(&path));
        }
    }
    if (err != ERR_OK) {
        brief_release(out);
    }
    strbuf_release(&path);
    strbuf_release(&text);
    return err;
}

size_t brief_messages_bytes(const struct brief *brief)
{
    size_t bytes = 0;
    for (uint32_t ix = 0; ix < brief->message_count; ix++) {
        bytes += strlen(brief->messages[ix]) + 1; /* its newline */
    }
    return bytes;
}

/* Adapters get these lists as const, but the brief owns them. */
static void free_words(const char *const *words)
{
    union {
        const char *const *given;
        void *ours;
    } list = {.given = words};
    mem_free(list.ours);
}

void brief_release(struct brief *brief)
{
    json_decref(brief->root);
    free_words(brief->call.tools);
    free_words(brief->call.args);
    free_words(brief->env);
    free_words(brief->messages);
    mem_free(brief->tasks);
    *brief = (struct brief){0};
}
