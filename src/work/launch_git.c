/* SPDX-License-Identifier: MIT */
/*
 * Sessions in git repositories. The shim runs sluice-git, which moves the
 * worktree of the group to the start commit of the session, runs the session
 * there, and keeps its commits; or which merges by itself. So the scheduler
 * never waits for git, and a merge is a session like any other: it has a log,
 * timeouts and a fencing token, outlives its scheduler, and is adopted.
 */
#include "work/launch.h"

#include "base/invariant.h"
#include "git/names.h"

#include <stdarg.h>
#include <stdio.h>

enum { WORDS_FIXED = 32, WORDS_PER_TASK = 6 };

/* The command line being built. */
struct words {
    struct arena *arena;
    const char **items;
    uint32_t count;
    uint32_t capacity;
};

static void add(struct words *words, const char *word)
{
    INVARIANT(words->count < words->capacity);
    INVARIANT(word != NULL);
    words->items[words->count++] = word;
}

/* Add an option, unless it has no value. */
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

/* A merge stage. */
static void add_merge(struct words *words, const struct work_git *git)
{
    add_option(words, "--gate", git->gate);
    add_option(words, "--repair", git->repair);
    if (git->update) {
        add(words, "--sync");
    }
}

/* Any other stage: the command without sluice-git comes last. */
static void add_session(struct words *words,
                        const struct work_git *git,
                        const struct exec_request *request)
{
    if (git->writes) {
        add(words, "--writes");
        add_textf(words, "--round", "%u", git->round);
    }
    if (git->allow_empty) {
        add(words, "--allow-empty");
    }
    add_option(words, "--commit", git->message);
    add_option(words, "--prepare", request->prepare);
    add(words, "--");
    for (uint32_t ix = 0; ix < request->argc; ix++) {
        add(words, request->argv[ix]);
    }
}

void launch_wrap_git(const struct launch *launch,
                     const struct work_order *order,
                     struct arena *arena,
                     struct exec_request *request)
{
    const struct work_git *git = &order->git;
    INVARIANT(git->member_count > 0);
    INVARIANT(git->merge || request->argc > 0);
    struct words words = {
        .arena = arena,
        .capacity =
            WORDS_FIXED + request->argc + WORDS_PER_TASK * git->member_count,
    };
    words.items = arena_alloc(arena, words.capacity, sizeof(words.items[0]));
    struct strbuf owner = {0};
    names_add_owner(&owner, launch->place->id, git->created_ns);
    add(&words, launch->git);
    add(&words, git->merge ? "merge" : "session");
    add_option(&words, "--store", launch->place->home);
    add_option(&words, "--run", order->id.run);
    add_option(&words,
               "--owner",
               arena_strndup(arena, strbuf_text(&owner), owner.len));
    strbuf_release(&owner);
    add_option(&words, "--repo", git->repo);
    add_option(&words, "--path", order->folder);
    add_option(&words, "--base", git->base);
    add_option(&words, "--dir", request->dir);
    add_textf(&words, "--token", "%llu", (unsigned long long)order->id.token);
    for (uint32_t ix = 0; ix < git->member_count; ix++) {
        add_option(&words, "--task", git->members[ix].task);
        add_option(&words, "--group", git->members[ix].group);
        add_option(&words, "--title", git->members[ix].title);
    }
    if (git->merge) {
        add_merge(&words, git);
        request->checkpoint_ns = EXEC_NEVER; /* a merge has nothing to resume */
    } else {
        add_session(&words, git, request);
    }
    INVARIANT(words.count > git->member_count);
    request->argv = words.items;
    request->argc = words.count;
    request->prepare = NULL;
}
