/* SPDX-License-Identifier: MIT */
/*
 * sluice-git: what sluice does in repositories, as a program that its shim
 * runs, so that it never keeps the scheduler waiting, and outlives it.
 *
 *   sluice-git session OPTION... -- COMMAND ARG...
 *   sluice-git merge OPTION...
 *
 * Users do not call it; its options are those of request.c.
 */
#include "base/mem.h"
#include "git/merge.h"
#include "git/result.h"
#include "git/say.h"
#include "git/session.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMBERS_MAX = 1000 }; /* as many as a batch may have */

/* Variables that would make git work somewhere else than where it is called.
 * The scheduler may have been started by a hook. */
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

enum option_id {
    OPTION_STORE = 256,
    OPTION_RUN,
    OPTION_OWNER,
    OPTION_REPO,
    OPTION_PATH,
    OPTION_BASE,
    OPTION_TASK,
    OPTION_GROUP,
    OPTION_TITLE,
    OPTION_TOKEN,
    OPTION_ROUND,
    OPTION_DIR,
    OPTION_WRITES,
    OPTION_ALLOW_EMPTY,
    OPTION_COMMIT,
    OPTION_PREPARE,
    OPTION_GATE,
    OPTION_REPAIR,
    OPTION_SYNC,
};

static const struct option options[] = {
    {"store", required_argument, NULL, OPTION_STORE},
    {"run", required_argument, NULL, OPTION_RUN},
    {"owner", required_argument, NULL, OPTION_OWNER},
    {"repo", required_argument, NULL, OPTION_REPO},
    {"path", required_argument, NULL, OPTION_PATH},
    {"base", required_argument, NULL, OPTION_BASE},
    {"task", required_argument, NULL, OPTION_TASK},
    {"group", required_argument, NULL, OPTION_GROUP},
    {"title", required_argument, NULL, OPTION_TITLE},
    {"token", required_argument, NULL, OPTION_TOKEN},
    {"round", required_argument, NULL, OPTION_ROUND},
    {"dir", required_argument, NULL, OPTION_DIR},
    {"writes", no_argument, NULL, OPTION_WRITES},
    {"allow-empty", no_argument, NULL, OPTION_ALLOW_EMPTY},
    {"commit", required_argument, NULL, OPTION_COMMIT},
    {"prepare", required_argument, NULL, OPTION_PREPARE},
    {"gate", required_argument, NULL, OPTION_GATE},
    {"repair", required_argument, NULL, OPTION_REPAIR},
    {"sync", no_argument, NULL, OPTION_SYNC},
    {0},
};

/* All that the command line says. */
struct order {
    const char *store;
    const char *repo;
    struct agent_options agent;
    struct session_options session;
    struct merge_options merge;
    struct merge_member members[MEMBERS_MAX];
    size_t member_count;
};

/* The member that is being described; --task begins one. */
static struct merge_member *member(struct order *order)
{
    return &order->members[order->member_count > 0 ? order->member_count - 1
                                                   : 0];
}

/* Take an option about what is to be done. False: it is none of those. */
static bool take_part(struct order *order, int id)
{
    switch (id) {
    case OPTION_TASK:
        if (order->member_count == MEMBERS_MAX) {
            return false;
        }
        order->member_count++;
        member(order)->task = optarg;
        return true;
    case OPTION_GROUP:
        member(order)->group = optarg;
        return true;
    case OPTION_TITLE:
        member(order)->title = optarg;
        return true;
    case OPTION_WRITES:
        order->session.writes = true;
        return true;
    case OPTION_ALLOW_EMPTY:
        order->session.allow_empty = true;
        return true;
    case OPTION_COMMIT:
        order->session.commit = optarg;
        return true;
    case OPTION_PREPARE:
        order->session.prepare = optarg;
        return true;
    case OPTION_GATE:
        order->merge.gate = optarg;
        return true;
    case OPTION_REPAIR:
        order->merge.repair = optarg;
        return true;
    case OPTION_SYNC:
        order->merge.sync = true;
        return true;
    default:
        return false;
    }
}

/* Take an option about where it is to be done. */
static bool take_place(struct order *order, int id)
{
    switch (id) {
    case OPTION_STORE:
        order->store = optarg;
        return true;
    case OPTION_RUN:
        order->agent.run = optarg;
        return true;
    case OPTION_OWNER:
        order->agent.owner = optarg;
        return true;
    case OPTION_REPO:
        order->repo = optarg;
        return true;
    case OPTION_PATH:
        order->agent.repo = optarg;
        return true;
    case OPTION_BASE:
        order->agent.base = optarg;
        return true;
    case OPTION_TOKEN:
        order->agent.token = strtoull(optarg, NULL, 10);
        return true;
    case OPTION_ROUND:
        order->session.round = (uint32_t)strtoul(optarg, NULL, 10);
        return true;
    case OPTION_DIR:
        order->session.dir = optarg;
        return true;
    default:
        return false;
    }
}

static bool is_complete(const struct order *order)
{
    bool grouped = order->member_count > 0;
    for (size_t ix = 0; ix < order->member_count; ix++) {
        grouped = grouped && order->members[ix].group != NULL;
    }
    return grouped && order->store != NULL && order->repo != NULL &&
           order->agent.run != NULL && order->agent.owner != NULL &&
           order->agent.repo != NULL && order->agent.repo[0] == '/' &&
           order->agent.base != NULL && order->session.dir != NULL;
}

/* The path of a worktree, without links: git writes it so, too. */
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

static int run_session(struct order *order, const char *const *argv)
{
    char *path = worktree_path(order, order->members[0].group);
    struct strbuf branch = {0};
    names_add_branch(&branch, order->agent.run, order->members[0].group);
    order->agent.group = order->members[0].group;
    order->session.agent = order->agent;
    struct range_member members[MEMBERS_MAX];
    for (size_t ix = 0; ix < order->member_count; ix++) {
        members[ix] = (struct range_member){
            .task = order->members[ix].task,
            .group = order->members[ix].group,
        };
    }
    order->session.members = members;
    order->session.member_count = order->member_count;
    order->session.worktree = path;
    order->session.argv = argv;
    int code = OUTCOME_EXIT_REFUSED;
    if (setenv("SLUICE_WORKTREE", path, 1) == 0 &&
        setenv("PWD", path, 1) == 0 &&
        setenv("SLUICE_BRANCH", strbuf_text(&branch), 1) == 0) {
        code = session_run(&order->session);
    }
    strbuf_release(&branch);
    mem_free(path);
    return code;
}

static int run_merge(struct order *order)
{
    char *path = worktree_path(order, NULL);
    struct strbuf branch = {0};
    names_add_branch(&branch, order->agent.run, NULL);
    order->merge.agent = order->agent;
    order->merge.worktree = path;
    order->merge.members = order->members;
    order->merge.member_count = order->member_count;
    int code = OUTCOME_EXIT_REFUSED;
    if (setenv("SLUICE_WORKTREE", path, 1) == 0 &&
        setenv("SLUICE_BRANCH", strbuf_text(&branch), 1) == 0) {
        code = merge_run(&order->merge);
    }
    strbuf_release(&branch);
    mem_free(path);
    return code;
}

/* End as the session has ended. */
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
    bool good = argc > 1;
    bool merges = good && strcmp(argv[1], "merge") == 0;
    bool known = merges || (good && strcmp(argv[1], "session") == 0);
    int id;
    optind = 2;
    while (good && (id = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        good = take_part(&order, id) || take_place(&order, id);
    }
    if (!good || !known || !is_complete(&order) || merges == (optind < argc)) {
        say("sluice-git is internal: sluice runs it");
        return OUTCOME_EXIT_BLOCKED;
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(misleading); ix++) {
        (void)unsetenv(misleading[ix]);
    }
    proc_pass_signals();
    if (merges) {
        return end_with(run_merge(&order));
    }
    return end_with(run_session(&order, (const char *const *)(argv + optind)));
}
