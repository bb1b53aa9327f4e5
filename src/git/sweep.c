/* SPDX-License-Identifier: MIT */
#include "git/sweep.h"

#include "base/crash.h"
#include "git/agent.h"
#include "git/files.h"
#include "git/hub.h"
#include "git/log.h"
#include "git/person.h"
#include "git/submodule.h"
#include "git/worktree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* State of the sweep of a repository. */
struct state {
    const struct sweep *sweep;
    struct git *git;
    struct names names;
    struct git_id agent;  /* tip; "": none, or of another owner */
    struct strbuf folder; /* directory of its worktrees */
    struct strbuf kept;   /* worktrees that stay: "/NAME/NAME/" */
};

static void tell(const struct state *state, const char *what, const char *why)
{
    state->sweep->tell(state->sweep->ctx, what, why);
}

/* Return whether a process works in the directory. An unreadable process
 * belongs to another user, and does not work there. */
static bool is_in_use(const char *path)
{
    DIR *list = opendir("/proc");
    size_t len = strlen(path);
    bool found = list == NULL;
    const struct dirent *entry;
    while (!found && (entry = readdir(list)) != NULL) {
        char name[PATH_MAX];
        char cwd[PATH_MAX];
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') {
            continue;
        }
        (void)snprintf(name, sizeof(name), "/proc/%s/cwd", entry->d_name);
        ssize_t got = readlink(name, cwd, sizeof(cwd) - 1);
        found = got >= (ssize_t)len && memcmp(cwd, path, len) == 0 &&
                ((size_t)got == len || cwd[len] == '/');
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return found;
}

/* Read one line of git's output in a worktree; false on error. */
static bool ask(const struct state *state,
                const char *path,
                const char *const *args,
                struct strbuf *out)
{
    struct git_call call = {
        .args = args,
        .folder = path,
        .output = out,
        .quiet = true,
    };
    bool good = git_call(state->git, &call, NULL, NULL) == ERR_OK;
    while (out->len > 0 && out->text[out->len - 1] == '\n') {
        out->text[--out->len] = '\0';
    }
    return good;
}

/* Return whether the agent branch contains the checked-out commit. */
static bool is_merged(const struct state *state, const char *path)
{
    struct strbuf head = {0};
    bool merged = false;
    bool good = ask(state, path, PROC_ARGS("rev-parse", "HEAD"), &head) &&
                git_is_ancestor(state->git,
                                strbuf_text(&head),
                                state->agent.text,
                                &merged,
                                NULL) == ERR_OK;
    strbuf_release(&head);
    return good && merged;
}

static bool is_clean(const struct state *state, const char *path)
{
    /* Do not query submodules, which have a configuration of their own: git
     * removes no worktree with submodules. */
    struct strbuf list = {0};
    bool clean =
        ask(state,
            path,
            PROC_ARGS("status", "--porcelain", "--ignore-submodules=dirty"),
            &list) &&
        list.len == 0;
    strbuf_release(&list);
    return clean;
}

/* Return whether only sessions have changed files, and not a person. */
static bool is_untouched(const struct state *state, const char *path)
{
    static const struct checkout_options none = {0};
    struct setup where = {.git = state->git, .path = path, .options = &none};
    const char *name = strrchr(path, '/') + 1;
    struct strbuf branch = {0};
    strbuf_add(&branch,
               state->names.agent,
               strlen(state->names.agent) - strlen("main"));
    strbuf_add(&branch, name, strcspn(name, "@"));
    bool same = person_is_untouched(&where, strbuf_text(&branch));
    strbuf_release(&branch);
    return same;
}

/* Return why a worktree must stay; NULL: remove it. The lock is held. */
static const char *why_kept(const struct state *state, const char *path)
{
    /* Checkouts of the queue and of the base have no work of their own. */
    bool queue = strrchr(path, '/')[1] == '+';
    if (!worktree_is_ours(state->git, path)) {
        return "sluice did not make it";
    }
    if (is_in_use(path)) {
        return "a process works in it";
    }
    if (!is_clean(state, path) && !is_untouched(state, path)) {
        return "it has uncommitted changes";
    }
    if (!queue && !is_merged(state, path)) {
        return "it has unmerged commits";
    }
    return NULL;
}

static void sweep_worktree(struct state *state, const char *name)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", strbuf_text(&state->folder), name);
    int lock = worktree_try_lock(strbuf_text(&path));
    const char *why = lock < 0 ? "it is in use" : why_kept(state, path.text);
    if (why == NULL && !state->sweep->dry &&
        worktree_remove(state->git, path.text, NULL) != ERR_OK) {
        why = "it cannot be removed";
    }
    tell(state, path.text, why);
    if (why != NULL) {
        strbuf_addf(&state->kept, "/%s/", name);
    }
    if (why == NULL && !state->sweep->dry) {
        strbuf_adds(&path, ".lock");
        (void)unlink(path.text);
    }
    worktree_leave(&lock);
    strbuf_release(&path);
}

static bool has_end(const char *text, const char *end)
{
    size_t len = strlen(text);
    return len > strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

/* Return whether it is the name of a checkout, not of a file beside it. */
static bool is_checkout(const char *name)
{
    return name[0] != '.' && strchr(name + 1, '+') == NULL &&
           !has_end(name, ".lock") && !has_end(name, ".making");
}

/* Remove the lock of a checkout that was removed when its group landed. */
static void sweep_lock(const struct state *state, const char *name)
{
    struct strbuf path = {0};
    size_t len = strlen(name) - strlen(".lock");
    strbuf_addf(&path, "%s/%.*s", strbuf_text(&state->folder), (int)len, name);
    int lock = files_exist(strbuf_text(&path))
                   ? -1
                   : worktree_try_lock(strbuf_text(&path));
    if (lock >= 0) {
        strbuf_adds(&path, ".lock");
        (void)unlink(strbuf_text(&path));
    }
    worktree_leave(&lock);
    strbuf_release(&path);
}

/* Sweep all worktrees of the run in this repository. */
static void sweep_worktrees(struct state *state)
{
    DIR *list = opendir(strbuf_text(&state->folder));
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (is_checkout(entry->d_name)) {
            sweep_worktree(state, entry->d_name);
        } else if (has_end(entry->d_name, ".lock") && !state->sweep->dry) {
            sweep_lock(state, entry->d_name);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
        if (!state->sweep->dry) {
            if (state->kept.len == 0) {
                submodule_forget(strbuf_text(&state->folder));
            }
            (void)rmdir(strbuf_text(&state->folder)); /* if it is empty now */
        }
    }
}

/* Return whether the worktree that has the branch stays. */
static bool is_kept(const struct state *state, const char *ref)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "%s/", strrchr(ref, '/'));
    bool kept = strstr(strbuf_text(&state->kept), name.text) != NULL;
    strbuf_release(&name);
    return kept;
}

/* Return why a branch must stay; NULL: remove it. */
static const char *why_branch_kept(const struct state *state,
                                   const char *ref,
                                   const char *id,
                                   const char *into,
                                   const char *text)
{
    bool merged = false;
    if (git_is_ancestor(state->git, id, into, &merged, NULL) != ERR_OK ||
        !merged) {
        return text;
    }
    /* In a dry run, worktrees to be removed still exist. */
    bool used = is_kept(state, ref) ||
                (!state->sweep->dry &&
                 worktree_check_elsewhere(state->git, ref, NULL) != ERR_OK);
    if (used) {
        return "it is checked out";
    }
    return NULL;
}

/* Remove a branch and its private refs, all in `lines`. */
static bool
remove_branch(struct state *state, const char *ref, const struct strbuf *lines)
{
    bool good = git_transact(state->git,
                             strbuf_text(lines),
                             false,
                             "sluice: gc",
                             NULL) == ERR_OK;
    tell(state, git_short_name(ref), good ? NULL : "git cannot remove it");
    return good;
}

/* Append the lines that delete the private refs of a group. */
static void add_private(struct strbuf *out,
                        const struct state *state,
                        const char *component)
{
    struct strbuf prefix = {0};
    struct strbuf list = {0};
    strbuf_addf(&prefix,
                "%.*sgroups/%s/",
                (int)(strlen(state->names.owner) - strlen("owner")),
                state->names.owner,
                component);
    size_t cursor = 0;
    const char *line;
    bool good = git_list_refs(state->git,
                              PROC_ARGS(strbuf_text(&prefix)),
                              &list,
                              NULL) == ERR_OK;
    while (good && (line = git_next_line(&list, &cursor)) != NULL) {
        const char *space = strchr(line, ' ');
        if (space != NULL) {
            strbuf_addf(out, "delete %s\n", space + 1);
        }
    }
    strbuf_release(&prefix);
    strbuf_release(&list);
}

/* Sweep a group's branch, from a line "ID NAME". True: removed, or would be. */
static bool sweep_branch(struct state *state, char *line)
{
    char *space = strchr(line, ' ');
    if (space == NULL || strcmp(space + 1, state->names.agent) == 0) {
        return true;
    }
    *space = '\0';
    const char *ref = space + 1;
    const char *component = strrchr(ref, '/') + 1;
    if (strcmp(component, NAMES_GROUP_MAIN) == 0) {
        component = "main"; /* in private refs */
    }
    const char *why = why_branch_kept(state,
                                      ref,
                                      line,
                                      state->agent.text,
                                      "it is not merged");
    if (why != NULL || state->sweep->dry) {
        tell(state, git_short_name(ref), why);
        return why == NULL;
    }
    struct strbuf lines = {0};
    strbuf_addf(&lines, "delete %s %s\n", ref, line);
    add_private(&lines, state, component);
    bool good = remove_branch(state, ref, &lines);
    strbuf_release(&lines);
    return good;
}

/* Append lines that delete the refs of killed merges: see merge_queue.c. */
static void add_queue_refs(struct state *state, struct strbuf *lines)
{
    struct strbuf prefix = {0};
    struct strbuf list = {0};
    strbuf_add(&prefix,
               state->names.owner,
               strlen(state->names.owner) - strlen("owner"));
    strbuf_adds(&prefix, "queue/");
    size_t cursor = 0;
    char *line;
    if (git_list_refs(state->git,
                      PROC_ARGS(strbuf_text(&prefix)),
                      &list,
                      NULL) != ERR_OK) {
        strbuf_clear(&list);
    }
    while ((line = git_next_line(&list, &cursor)) != NULL) {
        strbuf_addf(lines, "delete%s\n", line + strcspn(line, " "));
    }
    strbuf_release(&prefix);
    strbuf_release(&list);
}

static enum err sweep_branches(struct state *state, struct diag *diag)
{
    struct strbuf prefix = {0};
    struct strbuf list = {0};
    strbuf_add(&prefix,
               state->names.agent,
               strlen(state->names.agent) - strlen("main"));
    enum err err =
        git_list_refs(state->git, PROC_ARGS(strbuf_text(&prefix)), &list, diag);
    bool all = true;
    size_t cursor = 0;
    char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        all = sweep_branch(state, line) && all;
    }
    strbuf_release(&list);
    strbuf_release(&prefix);
    struct git_id base = {0};
    const char *why = "branches of its groups are kept";
    if (err == ERR_OK && all) {
        bool known =
            git_resolve(state->git, state->sweep->base, &base, NULL) == ERR_OK;
        why = known ? why_branch_kept(state,
                                      state->names.agent,
                                      state->agent.text,
                                      base.text,
                                      "it is not merged into its base")
                    : "its base is gone";
    }
    if (err == ERR_OK && (why != NULL || state->sweep->dry)) {
        tell(state, git_short_name(state->names.agent), why);
    } else if (err == ERR_OK) {
        struct strbuf lines = {0};
        strbuf_addf(&lines,
                    "delete %s %s\n"
                    "delete %s\ndelete %s\ndelete %s\ndelete %s\n",
                    state->names.agent,
                    state->agent.text,
                    state->names.owner,
                    state->names.base,
                    state->names.gated,
                    state->names.fence);
        add_queue_refs(state, &lines);
        (void)remove_branch(state, state->names.agent, &lines);
        strbuf_release(&lines);
    }
    return err;
}

enum err sweep_run(const struct sweep *sweep, struct diag *diag)
{
    struct state state = {.sweep = sweep};
    enum err err = hub_open_either(&state.git,
                                   sweep->store,
                                   sweep->repo_path,
                                   sweep->url,
                                   diag);
    names_init(&state.names, sweep->run, sweep->entry, "");
    names_add_worktree(&state.folder,
                       sweep->store,
                       sweep->run,
                       sweep->repo,
                       NULL);
    state.folder.len -= strlen("/+merge");
    state.folder.text[state.folder.len] = '\0';
    if (err == ERR_OK) {
        err = agent_find(state.git,
                         &state.names,
                         sweep->owner,
                         &state.agent,
                         diag);
    }
    if (err == ERR_OK && state.agent.text[0] != '\0') {
        sweep_worktrees(&state);
        err = sweep_branches(&state, diag);
    }
    names_release(&state.names);
    strbuf_release(&state.folder);
    strbuf_release(&state.kept);
    git_close(state.git);
    return err;
}

/* Remove one checkout of a group that has landed. */
static void remove_landed(struct state *state, const char *path)
{
    int lock = files_is_dir(path) ? worktree_try_lock(path) : -1;
    if (lock >= 0 && why_kept(state, path) == NULL) {
        struct diag diag = {0};
        if (worktree_remove(state->git, path, &diag) != ERR_OK) {
            log_line("%s", diag.text); /* 'sluice gc' tries again */
        }
        crash_point("sweep-landed");
    }
    worktree_leave(&lock);
}

void sweep_landed(struct agent *agent, const char *path)
{
    struct sweep sweep = {.base = agent->options->base};
    struct state state = {
        .sweep = &sweep,
        .git = agent->git,
        .names = agent->names,
    };
    struct git_ref ref = {.name = agent->names.agent};
    if (git_read_refs(agent->git, &ref, 1, NULL) != ERR_OK) {
        return;
    }
    state.agent = ref.id;
    remove_landed(&state, path);
    for (unsigned lane = 2; lane <= NAMES_LANES_MAX; lane++) {
        struct strbuf other = {0};
        strbuf_addf(&other, "%s@%u", path, lane);
        remove_landed(&state, strbuf_text(&other));
        strbuf_release(&other);
    }
}
