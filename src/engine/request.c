/* SPDX-License-Identifier: MIT */
/*
 * What a session is told: its command, its folder, its environment, its times.
 * Values reach the session as environment variables and files, never as part
 * of a shell's text.
 */
#include "engine/engine_internal.h"

#include "base/mem.h"
#include "engine/carry.h"

#include <ctype.h>
#include <string.h>

enum { LOG_BYTES_MAX = 64 << 20 };

/* A program that is no session has no settings of its own for this. */
#define PROGRAM_GRACE_NS (INT64_C(10) * 1000000000)

/* The environment, as texts that are kept until the request is sent. */
struct environment {
    struct arena arena;
    const char **items;
    uint32_t count;
    uint32_t capacity;
    struct strbuf text; /* of the item that is being made */
};

/* Add what was collected as the next item. */
static void take(struct environment *env)
{
    if (env->count == env->capacity) {
        env->capacity = env->capacity * 2 + 32;
        env->items =
            mem_resize(env->items, env->capacity, sizeof(env->items[0]));
    }
    env->items[env->count++] =
        arena_strndup(&env->arena, strbuf_text(&env->text), env->text.len);
    strbuf_clear(&env->text);
}

static void set(struct environment *env, const char *name, const char *value)
{
    strbuf_adds(&env->text, name);
    strbuf_adds(&env->text, "=");
    strbuf_adds(&env->text, value != NULL ? value : "");
    take(env);
}

static void
set_number(struct environment *env, const char *name, uint64_t value)
{
    strbuf_addf(&env->text, "%s=%llu", name, (unsigned long long)value);
    take(env);
}

/* A file in the directory of the attempt. */
static void set_file(struct environment *env,
                     const char *name,
                     const char *dir,
                     const char *file)
{
    strbuf_adds(&env->text, name);
    strbuf_adds(&env->text, "=");
    strbuf_adds(&env->text, dir);
    strbuf_adds(&env->text, "/");
    strbuf_adds(&env->text, file);
    take(env);
}

static void release(struct environment *env)
{
    arena_release(&env->arena);
    mem_free(env->items);
    strbuf_release(&env->text);
}

void request_add_dir(struct strbuf *out,
                     const struct engine *engine,
                     const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    engine_add_dir(out,
                   engine->store,
                   run->id,
                   run->plan->tasks[session->task].id,
                   session->number);
}

/* The text of the issue, as a file: the plan's, or one of the attempt. */
static enum err put_body(struct engine *engine,
                         const struct session *session,
                         const char *dir,
                         struct environment *env,
                         struct diag *diag)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan_task *task = &run->plan->tasks[session->task];
    const struct plan_group *group =
        task->group != PLAN_NONE ? &run->plan->groups[task->group] : NULL;
    bool own = group == NULL || task->body != NULL || task->body_file != NULL;
    const char *body = own ? task->body : group->body;
    const char *file = own ? task->body_file : group->body_file;
    enum err err = ERR_OK;
    if (file != NULL) {
        strbuf_adds(&env->text, "SLUICE_BODY=");
        engine_add_path(&env->text, run->folder, file);
        take(env);
    } else if (body != NULL) {
        struct strbuf text = {0};
        strbuf_adds(&text, body);
        err = engine->world->put(engine->ctx, dir, "body", &text, diag);
        strbuf_release(&text);
        set_file(env, "SLUICE_BODY", dir, "body");
    } else {
        set(env, "SLUICE_BODY", NULL);
    }
    return err;
}

/* Feedback for the session, and the list of the tasks of a batch. */
static enum err put_files(struct engine *engine,
                          const struct session *session,
                          const char *dir,
                          struct environment *env,
                          struct diag *diag)
{
    const struct engine_run *run = &engine->runs[session->run];
    const char *feedback = run->tasks[session->task].feedback;
    enum err err = ERR_OK;
    struct strbuf text = {0};
    if (feedback == NULL) {
        set(env, "SLUICE_FEEDBACK", NULL);
    } else {
        strbuf_adds(&text, feedback);
        err = engine->world->put(engine->ctx, dir, "feedback", &text, diag);
        set_file(env, "SLUICE_FEEDBACK", dir, "feedback");
    }
    if (session->task_count == 1) {
        set(env, "SLUICE_BATCH", NULL);
    } else if (err == ERR_OK) {
        strbuf_clear(&text);
        struct task_id next =
            engine_core_task(engine, session->run, session->task);
        for (uint32_t n = 0; n < session->task_count; n++) {
            uint32_t ix = load_plan_task(run->loaded, next);
            strbuf_addf(&text, "%s\n", run->plan->tasks[ix].id);
            next = sched_session_next(engine->sched, next);
        }
        err = engine->world->put(engine->ctx, dir, "batch", &text, diag);
        set_file(env, "SLUICE_BATCH", dir, "batch");
    }
    strbuf_release(&text);
    return err;
}

static void set_task(struct environment *env,
                     const struct engine *engine,
                     const struct session *session,
                     const char *folder)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan *plan = run->plan;
    const struct plan_task *task = &plan->tasks[session->task];
    set(env, "PWD", folder); /* some programs believe it */
    set(env, "SLUICE_STORE", engine->store);
    set(env, "SLUICE_RUN", run->id);
    set(env, "SLUICE_TASK", task->id);
    set(env,
        "SLUICE_GROUP",
        task->group != PLAN_NONE ? plan->groups[task->group].id : NULL);
    set(env, "SLUICE_STAGE", task->stage);
    set(env, "SLUICE_CLASS", plan->classes[task->class_ix].name);
    const struct plan_repo *repo =
        task->repo != PLAN_NONE ? &plan->repos[task->repo] : NULL;
    set(env, "SLUICE_REPO", repo != NULL ? repo->name : NULL);
    set(env, "SLUICE_BASE", repo != NULL ? repo->base : NULL);
    set(env, "SLUICE_WORKTREE", repo != NULL ? folder : NULL);
    set(env, "SLUICE_BRANCH", NULL);
    set(env, "SLUICE_START", NULL); /* sluice-git knows them, here too */
    set(env,
        "SLUICE_TITLE",
        task->group != PLAN_NONE ? plan->groups[task->group].title
                                 : task->title);
    set(env, "SLUICE_PLAN_DIR", run->folder);
    set_number(env, "SLUICE_ATTEMPT", session->number);
    set_number(env, "SLUICE_TOKEN", session->token);
    set_number(env, "SLUICE_SLOT", session->slot);
}

/* Append a name as a part of a variable's. */
static void add_upper(struct strbuf *out, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        char letter = (char)toupper((unsigned char)*at);
        bool plain = (letter >= 'A' && letter <= 'Z') ||
                     (letter >= '0' && letter <= '9');
        strbuf_add(out, plain ? &letter : "_", 1);
    }
}

/* Where the repositories are: SLUICE_REPO_<NAME>, as a shell can write it. */
static void set_repos(struct environment *env, const struct engine_run *run)
{
    const struct plan *plan = run->plan;
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        if (plan->repos[ix].path == NULL) {
            continue;
        }
        strbuf_adds(&env->text, "SLUICE_REPO_");
        add_upper(&env->text, plan->repos[ix].name);
        strbuf_adds(&env->text, "=");
        engine_add_path(&env->text, run->folder, plan->repos[ix].path);
        take(env);
    }
}

/* What the attempt before has left, and when this one will be ended. */
static void set_story(struct environment *env,
                      struct engine *engine,
                      const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    int64_t timeout_ns = run->plan->tasks[session->task].settings.timeout_ns;
    struct carry carry = carry_read(run->tasks[session->task].carry);
    set(env, "SLUICE_RESUME", carry.resume);
    carry_release(&carry);
    if (timeout_ns == PLAN_UNSET || timeout_ns == PLAN_UNLIMITED) {
        set(env, "SLUICE_DEADLINE", NULL);
    } else {
        int64_t until_ns = engine->world->wall_ns(engine->ctx) + timeout_ns;
        set_number(env, "SLUICE_DEADLINE", (uint64_t)(until_ns / 1000000000));
    }
}

static void set_files(struct environment *env, const char *dir)
{
    set_file(env, "SLUICE_RESULT", dir, "result");
    set_file(env, "SLUICE_PROGRESS", dir, "progress");
    set_file(env, "SLUICE_CHECKPOINT", dir, "checkpoint");
}

static int64_t time_or_never(int64_t time_ns)
{
    return time_ns == PLAN_UNSET || time_ns == PLAN_UNLIMITED ? EXEC_NEVER
                                                              : time_ns;
}

static uint32_t count_words(const char *const *argv)
{
    uint32_t count = 0;
    while (argv[count] != NULL) {
        count++;
    }
    return count;
}

enum err request_start(struct engine *engine,
                       const struct session *session,
                       struct diag *diag)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan_task *task = &run->plan->tasks[session->task];
    struct environment env = {0};
    struct strbuf dir = {0};
    request_add_dir(&dir, engine, session);
    const char *folder = run->folder;
    if (task->repo != PLAN_NONE && run->plan->repos[task->repo].path != NULL) {
        engine_add_path(&env.text,
                        run->folder,
                        run->plan->repos[task->repo].path);
        folder =
            arena_strndup(&env.arena, strbuf_text(&env.text), env.text.len);
        strbuf_clear(&env.text);
    }
    set_task(&env, engine, session, folder);
    set_repos(&env, run);
    set_story(&env, engine, session);
    set_files(&env, strbuf_text(&dir));
    const char *shell[] = {"/bin/sh", "-c", task->shell, NULL};
    const char *agent[] = {engine->agent, strbuf_text(&dir), NULL};
    const char *const *words = (const char *const *)task->argv;
    if (words == NULL) {
        words = task->agent != PLAN_NONE ? agent : shell;
    }
    struct exec_request request = {
        .id = session->token,
        .nonce = session->nonce,
        .dir = strbuf_text(&dir),
        .folder = folder,
        .prepare = task->prepare,
        .argv = words,
        .argc = count_words(words),
        .timeout_ns = time_or_never(task->settings.timeout_ns),
        .idle_ns = time_or_never(task->settings.idle_timeout_ns),
        .idle_ignores_cpu = task->agent != PLAN_NONE,
        .checkpoint_ns = time_or_never(task->settings.checkpoint_after_ns),
        .grace_ns = task->settings.grace_ns,
        .log_bytes_max = LOG_BYTES_MAX,
    };
    if (request_is_git(engine, session)) {
        request_wrap(engine,
                     session,
                     request.dir,
                     folder,
                     &env.arena,
                     &request);
    }
    enum err err = put_files(engine, session, request.dir, &env, diag);
    if (err == ERR_OK) {
        err = put_body(engine, session, request.dir, &env, diag);
    }
    if (err == ERR_OK && task->agent != PLAN_NONE) {
        err = request_put_brief(engine, session, request.dir, diag);
    }
    request.env = env.items;
    request.env_count = env.count;
    if (err == ERR_OK) {
        err = engine->world->start(engine->ctx, &request, diag);
    }
    strbuf_release(&dir);
    release(&env);
    return err;
}

/*
 * The command of a program, whose standard input or output is a file: a shell
 * connects it, and is then replaced.
 */
static uint32_t wrap_program(const struct program_call *call,
                             struct arena *arena,
                             const char **words)
{
    struct strbuf text = {0};
    char sign = call->input != NULL ? '<' : '>';
    strbuf_addf(&text,
                call->argv == NULL ? "exec %c\"$%s\"\n%s"
                                   : "exec %c\"$%s\" \"$@\"",
                sign,
                call->variable,
                call->argv == NULL ? call->shell : "");
    uint32_t count = 0;
    words[count++] = "/bin/sh";
    words[count++] = "-c";
    words[count++] = arena_strndup(arena, strbuf_text(&text), text.len);
    strbuf_release(&text);
    if (call->argv != NULL) {
        words[count++] = "sh"; /* $0 */
    }
    for (uint32_t ix = 0; call->argv != NULL && call->argv[ix] != NULL; ix++) {
        words[count++] = call->argv[ix];
    }
    return count;
}

enum err request_start_program(struct engine *engine,
                               const struct program *program,
                               const char *dir,
                               struct diag *diag)
{
    enum { WRAP_WORDS = 4 };
    struct program_call call = program->ops->call(engine, program);
    struct environment env = {0};
    set(&env, "SLUICE_STORE", engine->store);
    set(&env, "SLUICE_RUN", call.run);
    set_file(&env, call.variable, dir, call.file);
    set_files(&env, dir);
    uint32_t given =
        call.argv != NULL ? count_words((const char *const *)call.argv) : 0;
    const char **words =
        arena_alloc(&env.arena, given + WRAP_WORDS, sizeof(words[0]));
    struct exec_request request = {
        .id = program->id,
        .nonce = program->nonce,
        .dir = dir,
        .folder = call.folder,
        .argv = words,
        .argc = wrap_program(&call, &env.arena, words),
        .env = env.items,
        .env_count = env.count,
        .timeout_ns = call.timeout_ns,
        .idle_ns = EXEC_NEVER,
        .checkpoint_ns = EXEC_NEVER,
        .grace_ns = PROGRAM_GRACE_NS,
        .log_bytes_max = LOG_BYTES_MAX,
    };
    enum err err = ERR_OK;
    if (call.input != NULL) {
        struct strbuf text = {0};
        strbuf_adds(&text, call.input);
        err = engine->world->put(engine->ctx, dir, call.file, &text, diag);
        strbuf_release(&text);
    }
    if (err == ERR_OK) {
        err = engine->world->start(engine->ctx, &request, diag);
    }
    release(&env);
    return err;
}
