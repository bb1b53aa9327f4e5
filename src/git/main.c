/* SPDX-License-Identifier: MIT */
/*
 * sluice-git: the git operations of sluice, as a program that the shim runs, so
 * that they never block the scheduler and survive it.
 *
 *   sluice-git session OPTION... -- COMMAND ARG...
 *   sluice-git merge OPTION...
 *   sluice-git base OPTION...
 *   sluice-git diff OPTION...     prints the changes of an issue: see diff.h
 *
 * Users do not call it; work/launch_git.c builds its command line, and
 * work/diff.c that of a diff.
 */
#include "base/mem.h"
#include "git/base.h"
#include "git/diff.h"
#include "git/hub.h"
#include "git/log.h"
#include "git/merge.h"
#include "git/result.h"
#include "git/session.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    MEMBERS_MAX = 1000, /* the maximum of a batch */
    SANDBOX_MAX = 1000, /* words */
};

/* Variables that redirect git to another repository. A hook may have started
 * the scheduler. */
static const char *const misleading[] = {
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
};

/* What to do, by the first argument. */
enum mode { MODE_SESSION, MODE_MERGE, MODE_BASE, MODE_DIFF, MODE_COUNT };
static const char *const modes[MODE_COUNT] = {
    "session",
    "merge",
    "base",
    "diff",
};

/* The parsed command line. */
struct order {
    const char *store;
    const char *repo;
    const char *token;
    const char *round;
    const char *gate_retry;
    bool shared; /* the plan has another repo with this path */
    bool begun;  /* a session of the group has started */
    struct agent_options agent;
    struct session_options session;
    struct merge_options merge;
    struct agent_member members[MEMBERS_MAX];
    size_t member_count;
    const char *before[MEMBERS_MAX];
    size_t before_count;
    const char *sandbox[SANDBOX_MAX + 1];
    size_t sandbox_count;
};

/* Target of an option value: a string, a flag or a list of paths of the order,
 * a string of the current member, the next attempt before this one, or the next
 * word of the sandbox. */
enum kind { TEXT, FLAG, PATH, MEMBER, BEFORE, SANDBOX };
struct place {
    const char *name;
    enum kind kind;
    size_t at;
};

static const struct place places[] = {
    {"store", TEXT, offsetof(struct order, store)},
    {"run", TEXT, offsetof(struct order, agent.run)},
    {"owner", TEXT, offsetof(struct order, agent.owner)},
    {"repo", TEXT, offsetof(struct order, repo)},
    {"shared", FLAG, offsetof(struct order, shared)},
    {"begun", FLAG, offsetof(struct order, begun)},
    {"path", TEXT, offsetof(struct order, agent.repo)},
    {"url", TEXT, offsetof(struct order, agent.url)},
    {"base", TEXT, offsetof(struct order, agent.base)},
    {"task", MEMBER, offsetof(struct agent_member, task)}, /* starts a member */
    {"group", MEMBER, offsetof(struct agent_member, group)},
    {"title", MEMBER, offsetof(struct agent_member, title)},
    {"agent", MEMBER, offsetof(struct agent_member, agent)},
    {"token", TEXT, offsetof(struct order, token)},
    {"round", TEXT, offsetof(struct order, round)},
    {"dir", TEXT, offsetof(struct order, session.dir)},
    {"writes", FLAG, offsetof(struct order, session.writes)},
    {"allow-empty", FLAG, offsetof(struct order, session.allow_empty)},
    {"pristine", FLAG, offsetof(struct order, session.pristine)},
    {"commit", TEXT, offsetof(struct order, session.commit)},
    {"prepare", TEXT, offsetof(struct order, session.prepare)},
    {"keep", PATH, offsetof(struct order, agent.checkout.keep)},
    {"copy", PATH, offsetof(struct order, agent.checkout.copy)},
    {"remote-keep", FLAG, offsetof(struct order, agent.checkout.remote_keep)},
    {"fetch", FLAG, offsetof(struct order, agent.checkout.fetch)},
    {"once", FLAG, offsetof(struct order, agent.checkout.once)},
    {"gate", TEXT, offsetof(struct order, merge.gate)},
    {"gate-retry", TEXT, offsetof(struct order, gate_retry)},
    {"repair", TEXT, offsetof(struct order, merge.repair)},
    {"sync", FLAG, offsetof(struct order, merge.sync)},
    {"sandbox", SANDBOX, 0},
    {"before", BEFORE, 0},
};

/* Append a path. False: too many. */
static bool take_path(struct checkout_paths *paths)
{
    if (paths->count == CHECKOUT_PATHS_MAX) {
        return false;
    }
    paths->items[paths->count++] = optarg;
    return true;
}

/* Store one option. False: too many. */
static bool take(struct order *order, const struct place *place)
{
    char *base = (char *)order;
    if (place->kind == BEFORE) {
        if (order->before_count == MEMBERS_MAX) {
            return false;
        }
        order->before[order->before_count++] = optarg;
        return true;
    }
    if (place->kind == SANDBOX) {
        bool fits = order->sandbox_count < SANDBOX_MAX;
        order->sandbox[order->sandbox_count] = optarg;
        order->sandbox_count += fits ? 1 : 0;
        order->agent.sandbox = order->sandbox;
        return fits;
    }
    if (place->kind == MEMBER) {
        bool begins = place->at == offsetof(struct agent_member, task);
        if (begins && order->member_count == MEMBERS_MAX) {
            return false;
        }
        order->member_count += begins ? 1 : 0;
        size_t last = order->member_count > 0 ? order->member_count - 1 : 0;
        base = (char *)&order->members[last];
    }
    void *at = base + place->at;
    bool *flag = at;
    const char **text = at;
    if (place->kind == PATH) {
        return take_path(at);
    }
    if (place->kind == FLAG) {
        *flag = true;
    } else {
        *text = optarg;
    }
    return true;
}

/* Parse the options after the first argument. False: an option is unknown. */
static bool take_all(struct order *order, int argc, char **argv)
{
    struct option options[ARRAY_COUNT(places) + 1] = {{0}};
    for (size_t ix = 0; ix < ARRAY_COUNT(places); ix++) {
        options[ix].name = places[ix].name;
        options[ix].has_arg =
            places[ix].kind == FLAG ? no_argument : required_argument;
    }
    int found;
    int ix = 0;
    optind = 2;
    while ((found = getopt_long(argc, argv, "+", options, &ix)) == 0) {
        if (!take(order, &places[ix])) {
            return false;
        }
    }
    if (order->token != NULL) {
        order->agent.token = strtoull(order->token, NULL, 10);
    }
    if (order->round != NULL) {
        order->session.round = (uint32_t)strtoul(order->round, NULL, 10);
    }
    if (order->gate_retry != NULL) {
        order->merge.gate_retry =
            (uint32_t)strtoul(order->gate_retry, NULL, 10);
    }
    return found == -1;
}

static bool is_complete(const struct order *order, int mode)
{
    bool grouped = order->member_count > 0;
    for (size_t ix = 0; ix < order->member_count; ix++) {
        grouped = grouped && order->members[ix].group != NULL;
    }
    bool placed = order->agent.url != NULL ? order->store != NULL
                                           : order->agent.repo != NULL &&
                                                 order->agent.repo[0] == '/';
    bool known = grouped && order->repo != NULL && order->agent.run != NULL &&
                 order->agent.owner != NULL && placed;
    return known && (mode == MODE_DIFF ||
                     (order->store != NULL && order->agent.base != NULL &&
                      order->session.dir != NULL));
}

/* Return the path of a worktree with links resolved, as git writes it. */
static char *worktree_path(const struct order *order, const char *group)
{
    char *store = realpath(order->store, NULL);
    struct strbuf path = {0};
    names_add_worktree(&path,
                       store != NULL ? store : order->store,
                       order->agent.run,
                       order->repo,
                       group);
    free(store);
    return path.text;
}

/* Run a session with this command, merge, or gate the base. */
static int run(struct order *order, enum mode mode, const char *const *argv)
{
    const char *group = mode == MODE_SESSION ? order->members[0].group : NULL;
    char *path = worktree_path(order, mode == MODE_BASE ? NAMES_BASE : group);
    struct strbuf branch = {0};
    order->agent.entry = order->shared ? order->repo : NULL;
    names_add_branch(&branch, order->agent.run, order->agent.entry, group);
    int code = OUTCOME_EXIT_REFUSED;
    if (setenv("SLUICE_WORKTREE", path, 1) != 0 ||
        setenv("SLUICE_BRANCH", strbuf_text(&branch), 1) != 0) {
        goto out;
    }
    order->agent.group = group;
    if (mode == MODE_BASE) {
        struct base_options base = {
            .agent = order->agent,
            .task = order->members[0].task,
            .worktree = path,
            .dir = order->session.dir,
            .gate = order->merge.gate,
            .gate_retry = order->merge.gate_retry,
        };
        code = base_run(&base);
    } else if (mode == MODE_MERGE) {
        order->merge.agent = order->agent;
        order->merge.worktree = path;
        order->merge.dir = order->session.dir;
        order->merge.before = order->before;
        order->merge.before_count = order->before_count;
        order->merge.members = order->members;
        order->merge.member_count = order->member_count;
        code = merge_run(&order->merge);
    } else if (setenv("PWD", path, 1) == 0) {
        order->session.agent = order->agent;
        order->session.worktree = path;
        order->session.members = order->members;
        order->session.member_count = order->member_count;
        order->session.argv = argv;
        code = session_run(&order->session);
    }
out:
    strbuf_release(&branch);
    mem_free(path);
    return code;
}

/* Print the changes of an issue. The process that reads them gives up after
 * some time: this process ends with it, or when it ends. */
static int print_diff(const struct order *order)
{
    struct strbuf answer = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    diff_answer(&answer,
                &(struct diff_options){
                    .path = order->agent.repo,
                    .home = order->store,
                    .url = order->agent.url,
                    .run = order->agent.run,
                    .entry = order->shared ? order->repo : NULL,
                    .owner = order->agent.owner,
                    .group = order->members[0].group,
                    .begun = order->begun,
                });
    size_t at = 0;
    ssize_t count = 0;
    while (at < answer.len && (count >= 0 || errno == EINTR)) {
        count = write(STDOUT_FILENO, answer.text + at, answer.len - at);
        at += count > 0 ? (size_t)count : 0;
    }
    bool written = at == answer.len;
    strbuf_release(&answer);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Exit as the session has exited. */
static int end_with(int code)
{
    if (code < 0) {
        (void)signal(-code, SIG_DFL);
        (void)raise(-code);
        return 128 - code;
    }
    return code;
}

int main(int argc, char **argv)
{
    struct order order = {0};
    int mode = 0;
    while (mode < MODE_COUNT &&
           (argc < 2 || strcmp(argv[1], modes[mode]) != 0)) {
        mode++;
    }
    if (mode == MODE_COUNT || !take_all(&order, argc, argv) ||
        !is_complete(&order, mode) ||
        (mode == MODE_SESSION) != (optind < argc) ||
        (mode == MODE_BASE && order.merge.gate == NULL)) {
        log_line("sluice-git is internal: sluice runs it");
        return OUTCOME_EXIT_BLOCKED;
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(misleading); ix++) {
        (void)unsetenv(misleading[ix]);
    }
    /* Sessions and gates see the history that sluice sees. */
    (void)setenv("GIT_GRAFT_FILE", GIT_NO_GRAFTS, 1);
    if (mode == MODE_DIFF) {
        return print_diff(&order);
    }
    proc_pass_signals();
    const char *const *command = (const char *const *)(argv + optind);
    struct strbuf name = {0};
    if (order.agent.url != NULL) {
        hub_add_name(&name, order.agent.url);
        order.agent.repo = strbuf_text(&name);
        order.agent.home = order.store;
    }
    int code = run(&order, (enum mode)mode, command);
    strbuf_release(&name);
    return end_with(code);
}
