/* SPDX-License-Identifier: MIT */
#include "work/launch.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

enum {
    LOG_BYTES_MAX = 64 << 20,
    VARIABLES = 12, /* set here, in addition to files */
    WRAP_WORDS = 5, /* around the command of a program */
};

/* The environment, as strings that live until the request is sent. */
struct environment {
    struct arena arena;
    const char **items;
    uint32_t count;
    struct strbuf text; /* of the item being built */
};

static void set(struct environment *env,
                const char *name,
                const char *dir,
                const char *file)
{
    INVARIANT(env->text.len == 0);
    strbuf_addf(&env->text,
                "%s=%s%s%s",
                name,
                dir,
                file != NULL ? "/" : "",
                file != NULL ? file : "");
    env->items[env->count++] =
        arena_strndup(&env->arena, strbuf_text(&env->text), env->text.len);
    strbuf_clear(&env->text);
}

/* What a session needs to talk to its scheduler. Programs of the plan are no
 * sessions, and the gate of a merge does not speak for the merge: they have no
 * key, also if this scheduler runs inside a session of another one. */
static void set_door(struct environment *env,
                     const struct launch *launch,
                     const struct work_order *order)
{
    char key[KEY_BYTES];
    set(env, "SLUICE_FINISH", "", NULL); /* sluice-agent sets it */
    if (work_is_program(&order->id) || order->git.merge ||
        order->git.base_gate) {
        set(env, "SLUICE_DOOR", "", NULL);
        set(env, "SLUICE_KEY", "", NULL);
        return;
    }
    key_make(key, &launch->secret, order->id.token, order->id.nonce);
    set(env,
        "SLUICE_DOOR",
        launch->place->home,
        KEY_DOOR "/" STORE_PLACE_SOCKET);
    set(env, "SLUICE_KEY", key, NULL);
    set(env, "SLUICE_PROGRAM", launch->program, NULL);
}

static void set_all(struct environment *env,
                    const struct launch *launch,
                    const struct work_order *order,
                    const char *dir)
{
    uint32_t most = order->env_count + order->file_count + VARIABLES;
    env->items = arena_alloc(&env->arena, most, sizeof(env->items[0]));
    INVARIANT(env->count == 0);
    for (uint32_t ix = 0; ix < order->env_count; ix++) {
        INVARIANT(strchr(order->env[ix], '=') != NULL);
        env->items[env->count++] = order->env[ix];
    }
    /* Hooks are the operator's own; sessions and agents see no secrets. */
    bool trusted = work_is_program(&order->id) && !order->agent;
    if (!work_is_program(&order->id)) {
        set(env, "PWD", order->folder, NULL); /* some programs rely on it */
        set(env, "SLUICE_WORKTREE", order->checkout ? order->folder : "", NULL);
        set(env, "SLUICE_MESSAGES", dir, WORK_MESSAGES);
    }
    set_door(env, launch, order);
    set(env,
        "SLUICE_STORE",
        trusted ? launch->place->address : launch->place->shown,
        NULL);
    if (order->agent) {
        set(env, "SLUICE_AGENT_HOME", launch->place->home, NULL);
    }
    set(env, "SLUICE_RESULT", dir, "result");
    set(env, "SLUICE_PROGRESS", dir, "progress");
    set(env, "SLUICE_CHECKPOINT", dir, "checkpoint");
    for (uint32_t ix = 0; ix < order->file_count; ix++) {
        if (order->files[ix].variable != NULL) {
            set(env, order->files[ix].variable, dir, order->files[ix].name);
        }
    }
    INVARIANT(env->count <= most);
}

static enum err put_files(const struct launch *launch,
                          const struct work_order *order,
                          const char *dir,
                          struct diag *diag)
{
    enum err err = ERR_OK;
    struct strbuf text = {0};
    for (uint32_t ix = 0; err == ERR_OK && ix < order->file_count; ix++) {
        const struct work_file *file = &order->files[ix];
        INVARIANT(strchr(file->name, '/') == NULL);
        INVARIANT(file->text != NULL || file->len == 0);
        if (file->text != NULL) {
            strbuf_clear(&text);
            strbuf_add(&text, file->text, file->len);
            err =
                launch->machine->put(launch->ctx, dir, file->name, &text, diag);
        }
    }
    strbuf_release(&text);
    return err;
}

static uint32_t count_words(const char *const *argv)
{
    uint32_t count = 0;
    while (argv != NULL && argv[count] != NULL) {
        count++;
    }
    return count;
}

/*
 * Build the command of a program whose standard input or output is a file: a
 * shell opens the file and executes the program.
 */
static uint32_t wrap_program(const struct launch *launch,
                             const struct work_order *order,
                             struct arena *arena,
                             const char **words)
{
    INVARIANT(order->files[0].variable != NULL);
    INVARIANT(!order->agent || order->argv != NULL);
    struct strbuf text = {0};
    bool shell = order->argv == NULL;
    strbuf_addf(&text,
                shell ? "exec %c\"$%s\"\n%s" : "exec %c\"$%s\" \"$@\"%s",
                order->files[0].text != NULL ? '<' : '>',
                order->files[0].variable,
                shell ? order->shell : "");
    uint32_t count = 0;
    words[count++] = "/bin/sh";
    words[count++] = "-c";
    words[count++] = arena_strndup(arena, strbuf_text(&text), text.len);
    strbuf_release(&text);
    if (!shell) {
        words[count++] = "sh"; /* $0 */
    }
    if (order->agent) {
        words[count++] = launch->agent;
    }
    for (uint32_t ix = 0; ix < count_words(order->argv); ix++) {
        words[count++] = order->argv[ix];
    }
    return count;
}

/* Build the words of the command; return their count. sluice-agent itself is
 * not confined: it confines its program. */
static uint32_t add_words(const struct launch *launch,
                          const struct work_order *order,
                          const char *dir,
                          const struct launch_prefix *prefix,
                          struct arena *arena,
                          const char **words)
{
    if (work_is_program(&order->id)) {
        return wrap_program(launch, order, arena, words);
    }
    uint32_t count = 0;
    if (order->agent) {
        words[count++] = launch->agent;
        words[count++] = dir;
    }
    for (uint32_t ix = 0; ix < prefix->count; ix++) {
        words[count++] = prefix->items[ix];
    }
    if (prefix->count > 0 && !order->agent) {
        words[count++] = "--";
    }
    if (order->agent) {
        return count;
    }
    if (order->argv == NULL) {
        words[count++] = "/bin/sh";
        words[count++] = "-c";
        words[count++] = order->shell;
    }
    for (uint32_t ix = 0; ix < count_words(order->argv); ix++) {
        words[count++] = order->argv[ix];
    }
    return count;
}

enum err launch_start(const struct launch *launch,
                      const struct work_order *order,
                      const char *dir,
                      const char *spare,
                      struct diag *diag)
{
    INVARIANT(order->shell != NULL || order->argv != NULL || order->agent ||
              order->git.merge || order->git.base_gate);
    INVARIANT(!work_is_program(&order->id) || order->file_count > 0);
    INVARIANT(!work_is_program(&order->id) || order->git.repo == NULL);
    INVARIANT(order->want == WORK_RUN);
    struct environment env = {0};
    set_all(&env, launch, order, dir);
    struct launch_prefix prefix =
        launch_prefix_of(launch, order, dir, &env.arena);
    uint32_t most = count_words(order->argv) + prefix.count + WRAP_WORDS;
    const char **words = arena_alloc(&env.arena, most, sizeof(words[0]));
    struct exec_request request = {
        .id = order->id.token,
        .nonce = order->id.nonce,
        .dir = dir,
        .folder = order->folder,
        .prepare = order->prepare,
        .argv = words,
        .argc = add_words(launch, order, dir, &prefix, &env.arena, words),
        .env = env.items,
        .env_count = env.count,
        .timeout_ns = order->timeout_ns,
        .idle_ns = order->idle_ns,
        .idle_ignores_cpu = order->agent,
        .checkpoint_ns = order->checkpoint_ns,
        .grace_ns = order->grace_ns,
        .log_bytes_max = LOG_BYTES_MAX,
        .lease = launch->lease,
        .spare = spare,
    };
    INVARIANT(request.argc <= most);
    if (order->git.repo != NULL) {
        launch_wrap_git(launch, order, &prefix, &env.arena, &request);
    } else {
        request.prepare = launch_confine(&prefix, order->prepare, &env.arena);
    }
    INVARIANT(request.argc > 0);
    enum err err = put_files(launch, order, dir, diag);
    if (err == ERR_OK) {
        err = launch->machine->start(launch->ctx, &request, diag);
    }
    arena_release(&env.arena);
    strbuf_release(&env.text);
    return err;
}
