/* SPDX-License-Identifier: MIT */
/*
 * Sessions in git repositories. The shim runs sluice-git, which brings the
 * worktree of the group to where the session begins, runs the session there,
 * and keeps what it has committed; or which does the merging itself. So the
 * scheduler never waits for git, and a merge is a session like any other: it
 * has a log, timeouts and a token, outlives its scheduler, and is adopted.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "git/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_FIXED = 32, WORDS_PER_TASK = 6 };

/* The command line that is being made. */
struct words {
    struct arena *arena;
    const char **items;
    uint32_t count;
    uint32_t capacity;
};

static void add(struct words *words, const char *word)
{
    INVARIANT(words->count < words->capacity);
    words->items[words->count++] = word;
}

/* An option, unless it has no value. */
static void add_option(struct words *words, const char *name, const char *value)
{
    if (value != NULL) {
        add(words, name);
        add(words, value);
    }
}

static void
add_textf(struct words *words, const char *name, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void
add_textf(struct words *words, const char *name, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    INVARIANT(len > 0 && (size_t)len < sizeof(text));
    add_option(words, name, arena_strndup(words->arena, text, (size_t)len));
}

bool request_is_git(const struct engine *engine, const struct session *session)
{
    const struct plan *plan = engine->runs[session->run].plan;
    uint32_t repo = plan->tasks[session->task].repo;
    return repo != PLAN_NONE && plan->repos[repo].path != NULL &&
           plan->repos[repo].base != NULL;
}

/* A task, its group and what that is about. A task without a group is a group
 * of its own. */
static void
add_member(struct words *words, const struct plan *plan, uint32_t task_ix)
{
    const struct plan_task *task = &plan->tasks[task_ix];
    bool grouped = task->group != PLAN_NONE;
    add_option(words, "--task", task->id);
    add_option(words,
               "--group",
               grouped ? plan->groups[task->group].id : task->id);
    add_option(words,
               "--title",
               grouped ? plan->groups[task->group].title : task->title);
}

static void add_members(struct words *words,
                        const struct engine *engine,
                        const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    struct task_id next = engine_core_task(engine, session->run, session->task);
    for (uint32_t n = 0; n < session->task_count; n++) {
        add_member(words, run->plan, load_plan_task(run->loaded, next));
        next = sched_session_next(engine->sched, next);
    }
}

/* How often a task was sent back to work again, by whatever follows it. */
static uint32_t round_of(const struct engine *engine,
                         const struct session *session)
{
    const struct plan *plan = engine->runs[session->run].plan;
    uint32_t round = 0;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        if (plan->tasks[ix].rework_to == session->task) {
            struct task_id id = engine_core_task(engine, session->run, ix);
            round += sched_record(engine->sched, id).reworks;
        }
    }
    return round;
}

/* A merge stage. */
static void add_merge(struct words *words, const struct plan_repo *repo)
{
    add_option(words, "--gate", repo->gate);
    add_option(words, "--repair", repo->repair);
    if (repo->sync) {
        add(words, "--sync");
    }
}

/* The message of a commit that an agent has not made: the title. */
static void add_message(struct words *words,
                        const struct plan *plan,
                        const struct plan_task *task)
{
    const struct plan_group *group =
        task->group != PLAN_NONE ? &plan->groups[task->group] : NULL;
    const char *id = group != NULL ? group->id : task->id;
    const char *title = group != NULL ? group->title : task->title;
    struct strbuf text = {0};
    strbuf_addf(&text,
                "%s%s%s",
                id,
                title != NULL ? ": " : "",
                title != NULL ? title : "");
    add_option(words,
               "--commit",
               arena_strndup(words->arena, strbuf_text(&text), text.len));
    strbuf_release(&text);
}

/* Any other stage: what it would have been without sluice-git comes last. */
static void add_session(struct words *words,
                        const struct plan *plan,
                        const struct plan_task *task,
                        uint32_t round,
                        const struct exec_request *request)
{
    if (strcmp(plan->classes[task->class_ix].name, "implement") == 0) {
        add(words, "--writes");
        add_textf(words, "--round", "%u", round);
    }
    if (task->settings.allow_empty) {
        add(words, "--allow-empty");
    }
    if (task->agent != PLAN_NONE) {
        add_message(words, plan, task);
    }
    add_option(words, "--prepare", request->prepare);
    add(words, "--");
    for (uint32_t ix = 0; ix < request->argc; ix++) {
        add(words, request->argv[ix]);
    }
}

void request_wrap(const struct engine *engine,
                  const struct session *session,
                  const char *dir,
                  const char *path,
                  struct arena *arena,
                  struct exec_request *request)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan_task *task = &run->plan->tasks[session->task];
    const struct plan_repo *repo = &run->plan->repos[task->repo];
    struct words words = {
        .arena = arena,
        .capacity =
            WORDS_FIXED + request->argc + WORDS_PER_TASK * session->task_count,
    };
    words.items = arena_alloc(arena, words.capacity, sizeof(words.items[0]));
    struct strbuf owner = {0};
    names_add_owner(&owner, engine->store, run->created_ns);
    add(&words, engine->git);
    add(&words, task->merge ? "merge" : "session");
    add_option(&words, "--store", engine->store);
    add_option(&words, "--run", run->id);
    add_option(&words,
               "--owner",
               arena_strndup(arena, strbuf_text(&owner), owner.len));
    add_option(&words, "--repo", repo->name);
    add_option(&words, "--path", path);
    add_option(&words, "--base", repo->base);
    add_option(&words, "--dir", dir);
    add_textf(&words, "--token", "%llu", (unsigned long long)session->token);
    add_members(&words, engine, session);
    if (task->merge) {
        add_merge(&words, repo);
    } else {
        add_session(&words,
                    run->plan,
                    task,
                    round_of(engine, session),
                    request);
    }
    strbuf_release(&owner);
    if (task->merge) {
        request->checkpoint_ns = EXEC_NEVER; /* it has nothing to go on with */
    }
    request->argv = words.items;
    request->argc = words.count;
    request->prepare = NULL;
}
