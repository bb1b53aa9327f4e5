/* SPDX-License-Identifier: MIT */
/*
 * Sessions in git repositories. The shim runs sluice-git, which moves the
 * checkout of the group to the start commit of the session, runs the session
 * there, and keeps its commits; or which merges by itself. So the scheduler
 * never waits for git, and a merge is a session like any other: it has a log,
 * timeouts and a fencing token, outlives its scheduler, and is adopted.
 */
#include "work/launch.h"

#include "base/invariant.h"
#include "git/names.h"
#include "work/home.h"

#include <stdarg.h>
#include <stdio.h>

enum { WORDS_FIXED = 32, WORDS_PER_TASK = 8 };

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

/* Add an option for each path. */
static void
add_paths(struct words *words, const char *name, const struct work_paths *paths)
{
    for (uint32_t ix = 0; ix < paths->count; ix++) {
        add_option(words, name, paths->items[ix]);
    }
}

/* The set-up of a checkout. */
static void add_checkout(struct words *words, const struct work_git *git)
{
    add_paths(words, "--keep", &git->keep);
    add_paths(words, "--copy", &git->copy);
    if (git->remote_keep) {
        add(words, "--remote-keep");
    }
    if (git->fetch) {
        add(words, "--fetch");
    }
}

/* The first argument of sluice-git. */
static const char *mode_of(const struct work_git *git)
{
    return git->merge ? "merge" : git->base_gate ? "base" : "session";
}

/* The gate of a repository. */
static void add_gate(struct words *words, const struct work_git *git)
{
    add_option(words, "--gate", git->gate);
    if (git->gate_retry > 0) {
        add_textf(words, "--gate-retry", "%u", git->gate_retry);
    }
}

/* A merge stage. */
static void add_merge(struct words *words,
                      const struct launch *launch,
                      const struct work_order *order)
{
    const struct work_git *git = &order->git;
    struct strbuf dir = {0};
    for (uint32_t ix = 0; ix < git->before_count; ix++) {
        if (git->before[ix].elsewhere) {
            continue; /* nothing of it is here: the hub decides who is first */
        }
        strbuf_clear(&dir);
        home_add_dir(&dir,
                     launch->place->home,
                     order->id.run,
                     git->before[ix].task,
                     git->before[ix].name);
        add_option(words,
                   "--before",
                   arena_strndup(words->arena, strbuf_text(&dir), dir.len));
    }
    strbuf_release(&dir);
    add_gate(words, git);
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
    if (git->pristine) {
        add(words, "--pristine");
    }
    add_option(words, "--commit", git->message);
    add_option(words, "--prepare", request->prepare);
    if (git->once) {
        add(words, "--once");
    }
    add(words, "--");
    for (uint32_t ix = 0; ix < request->argc; ix++) {
        add(words, request->argv[ix]);
    }
}

void launch_wrap_git(const struct launch *launch,
                     const struct work_order *order,
                     const struct launch_prefix *prefix,
                     struct arena *arena,
                     struct exec_request *request)
{
    const struct work_git *git = &order->git;
    INVARIANT(git->member_count > 0);
    INVARIANT(git->merge || git->base_gate || request->argc > 0);
    struct words words = {
        .arena = arena,
        .capacity = WORDS_FIXED + request->argc + 2 * prefix->count +
                    WORDS_PER_TASK * git->member_count +
                    2 * (git->keep.count + git->copy.count + git->before_count),
    };
    words.items = arena_alloc(arena, words.capacity, sizeof(words.items[0]));
    struct strbuf owner = {0};
    names_add_owner(&owner, launch->place->id, git->created_ns);
    add(&words, launch->git);
    add(&words, mode_of(git));
    add_option(&words, "--store", launch->place->home);
    add_option(&words, "--run", order->id.run);
    add_option(&words,
               "--owner",
               arena_strndup(arena, strbuf_text(&owner), owner.len));
    strbuf_release(&owner);
    add_option(&words, "--repo", git->repo);
    if (git->shared) {
        add(&words, "--shared");
    }
    if (git->url != NULL) {
        add_option(&words, "--url", git->url);
        request->folder = launch->place->home; /* which exists */
    } else {
        add_option(&words, "--path", order->folder);
    }
    add_option(&words, "--base", git->base);
    add_option(&words, "--dir", request->dir);
    add_textf(&words, "--token", "%llu", (unsigned long long)order->id.token);
    for (uint32_t ix = 0; ix < git->member_count; ix++) {
        add_option(&words, "--task", git->members[ix].task);
        add_option(&words, "--group", git->members[ix].group);
        add_option(&words, "--title", git->members[ix].title);
        add_option(&words, "--agent", git->members[ix].agent);
    }
    for (uint32_t ix = 0; ix < prefix->count; ix++) {
        add_option(&words, "--sandbox", prefix->items[ix]);
    }
    add_checkout(&words, git);
    if (git->merge) {
        add_merge(&words, launch, order);
        request->checkpoint_ns = EXEC_NEVER; /* a merge has nothing to resume */
    } else if (git->base_gate) {
        add_gate(&words, git);
        request->checkpoint_ns = EXEC_NEVER;
    } else {
        add_session(&words, git, request);
    }
    INVARIANT(words.count > git->member_count);
    request->argv = words.items;
    request->argc = words.count;
    request->prepare = NULL;
}
