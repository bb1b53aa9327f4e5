/* SPDX-License-Identifier: MIT */
#include "cli/warnings.h"

#include "agent/runner.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cli/survey.h"
#include "engine/engine.h"
#include "exec/exec.h"
#include "git/hub.h"
#include "plan/alias.h"
#include "plan/suggest.h"
#include "plan/twin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    VERSION_BYTES = 32,
    GATE_BYTES = 200, /* of a command that a warning suggests */
};

void warnings_add(struct plan_errors *list,
                  struct plan_mark mark,
                  const char *format,
                  ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len > 0) {
        MEM_GROW(list->items, list->count, list->capacity);
        list->items[list->count++] = (struct plan_error){
            .mark = mark,
            .text = mem_strndup(text, strlen(text)),
        };
    }
}

/* --- reviews by a bare agent program ------------------------------------ */

/* Return the first word of a shell command after assignments and exec, without
 * its directory; set *len_out to its length. */
static const char *first_word(const char *shell, size_t *len_out)
{
    const char *at = shell;
    for (;;) {
        at += strspn(at, " \t\n");
        size_t len = strcspn(at, " \t\n;&|<>()");
        const char *equals = memchr(at, '=', len);
        bool passed =
            equals != NULL || (len == 4 && memcmp(at, "exec", 4) == 0);
        if (!passed || len == 0) {
            const char *slash = memrchr(at, '/', len);
            const char *name = slash != NULL ? slash + 1 : at;
            *len_out = len - (size_t)(name - at);
            return name;
        }
        at += len;
    }
}

/* Return the agent whose program the task's command starts with, or NULL. */
static const struct adapter *bare_program(const struct plan_task *task)
{
    const char *command =
        task->run.argv != NULL ? task->run.argv[0] : task->run.shell;
    if (command == NULL) {
        return NULL;
    }
    size_t len;
    const char *name = first_word(command, &len);
    for (uint32_t ix = 0; adapter_at(ix) != NULL; ix++) {
        if (strlen(adapter_at(ix)->name) == len &&
            memcmp(adapter_at(ix)->name, name, len) == 0) {
            return adapter_at(ix);
        }
    }
    return NULL;
}

/* Tasks of a stage share a command: report each command once. */
static void find_bare(struct plan_errors *warnings, const struct plan *plan)
{
    const char *told_shell = NULL;
    const char **told_argv = NULL;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        const struct adapter *adapter =
            plan_is_review(plan, task) ? bare_program(task) : NULL;
        if (adapter == NULL ||
            (task->run.shell == told_shell && task->run.argv == told_argv)) {
            continue;
        }
        told_shell = task->run.shell;
        told_argv = task->run.argv;
        warnings_add(warnings,
                     task->mark,
                     "%s reviews by running %s itself, which exits with 0 "
                     "whatever the result, so everything is approved; use "
                     "\"agent: %s\" instead of \"run\"",
                     task->id,
                     adapter->name,
                     adapter->name);
    }
}

/* --- programs ----------------------------------------------------------- */

/* Get the version that a program prints; "" if none. */
static void ask_version(const char *name, char out[VERSION_BYTES])
{
    const char *const argv[] =
        {"timeout", "-k", "1", "20", name, "--version", NULL};
    struct strbuf text = {0};
    int code = runner_output(&text, argv);
    const char *at = strbuf_text(&text);
    at += strcspn(at, "0123456789");
    size_t len = strspn(at, "0123456789.");
    (void)snprintf(out,
                   VERSION_BYTES,
                   "%.*s",
                   code == 0 && len < VERSION_BYTES ? (int)len : 0,
                   at);
    strbuf_release(&text);
}

/* Whether `version` is the tested version or an extension of it. */
static bool is_tried(const char *version, const char *tried)
{
    size_t len = strlen(tried);
    return strncmp(version, tried, len) == 0 &&
           (version[len] == '.' || version[len] == '\0');
}

static bool has_variable(const struct plan_agent *agent, const char *name)
{
    bool given = getenv(name) != NULL;
    for (uint32_t ix = 0; ix < agent->env_count && !given; ix++) {
        given = strncmp(agent->env[ix], name, strlen(name)) == 0 &&
                agent->env[ix][strlen(name)] == '=';
    }
    return given;
}

static void check_agent(struct plan_errors *warnings,
                        const struct plan_agent *agent,
                        bool confined,
                        struct plan_mark mark)
{
    const struct adapter *adapter = agent->adapter;
    const char *name = adapter->name;
    char version[VERSION_BYTES];
    if (!survey_is_in_path(name)) {
        warnings_add(warnings,
                     mark,
                     "agent %s: %s is not in PATH; install it",
                     agent->name,
                     name);
        return;
    }
    ask_version(name, version);
    if (version[0] == '\0') {
        warnings_add(warnings,
                     mark,
                     "agent %s: '%s --version' prints no version; sluice is "
                     "tested with %s",
                     agent->name,
                     name,
                     adapter->version);
    } else if (!is_tried(version, adapter->version)) {
        warnings_add(
            warnings,
            mark,
            "agent %s: version %s of %s is untested; sluice is tested with %s",
            agent->name,
            version,
            name,
            adapter->version);
    }
    if (adapter->root_variable != NULL && geteuid() == 0 &&
        agent->permissions == ADAPTER_FULL && !confined &&
        !has_variable(agent, adapter->root_variable)) {
        warnings_add(
            warnings,
            mark,
            "agent %s: as root, %s refuses permissions: full without %s=1; "
            "set it under \"env\" if this machine is a sandbox, or run sluice "
            "as another user",
            agent->name,
            name,
            adapter->root_variable);
    }
}

static void find_agents(struct plan_errors *warnings, const struct plan *plan)
{
    bool *checked = mem_zalloc(plan->agent_count + 1, sizeof(checked[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        if (task->agent != PLAN_NONE && !checked[task->agent]) {
            const struct plan_agent *agent = &plan->agents[task->agent];
            checked[task->agent] = true;
            check_agent(warnings,
                        agent,
                        task->settings->sandbox != NULL,
                        agent->mark.line > 0 ? agent->mark : task->mark);
        }
    }
    mem_free(checked);
}

static void add_olds(struct plan_errors *out, const struct plan *plan)
{
    for (const struct plan_old *old = plan->olds; old != NULL;
         old = old->next) {
        warnings_add(out,
                     old->mark,
                     "\"%s\" is an old name; use \"%s\"",
                     old->alias->old,
                     old->alias->now);
    }
}

/* --- repositories ------------------------------------------------------- */

/* Append the branch whose name is similar to `name`, as a hint. */
static void add_hint(struct strbuf *out, struct git *git, const char *name)
{
    const char *const args[] = {"for-each-ref",
                                "--format=%(refname:short)",
                                "refs/heads",
                                NULL};
    struct strbuf list = {0};
    struct diag ignored = {0};
    struct suggest guess;
    uint32_t budget = SUGGEST_BUDGET;
    suggest_init(&guess, name, strlen(name), &budget);
    if (git_output(git, args, &list, &ignored) == ERR_OK && list.len > 0) {
        for (char *at = list.text; *at != '\0';) {
            size_t len = strcspn(at, "\n");
            bool last = at[len] == '\0';
            at[len] = '\0';
            (void)suggest_offer(&guess, at);
            at += len + (last ? 0 : 1);
        }
    }
    strbuf_adds(out, suggest_hint(&guess));
    strbuf_release(&list);
}

/* Report a base that does not exist: no commit at all, or a wrong name. */
static void refuse_base(struct plan_errors *found,
                        const struct plan_repo *repo,
                        struct git *git)
{
    struct git_id head;
    struct diag ignored = {0};
    struct strbuf hint = {0};
    add_hint(&hint, git, repo->base);
    bool empty = hint.len == 0 &&
                 git_resolve(git, "HEAD", &head, &ignored) == ERR_NOT_FOUND;
    warnings_add(found,
                 repo->mark,
                 "repo \"%s\": %s has no branch or commit \"%s\"%s%s",
                 repo->name,
                 git_path(git),
                 repo->base,
                 empty ? ": it is empty; create a first commit" : "",
                 strbuf_text(&hint));
    strbuf_release(&hint);
}

static void check_git(struct plan_errors *found,
                      const struct plan_repo *repo,
                      const char *path)
{
    struct git *git = NULL;
    struct git_id id;
    struct diag diag = {0};
    enum err err = git_open(&git, path, &diag);
    if (err == ERR_INVALID) {
        warnings_add(found,
                     repo->mark,
                     "repo \"%s\": %s is not a usable git repository; clone it "
                     "there, or remove \"base\"",
                     repo->name,
                     path);
        return;
    }
    if (err == ERR_OK) {
        err = git_resolve(git, repo->base, &id, &diag);
    }
    if (err == ERR_NOT_FOUND && git != NULL) {
        refuse_base(found, repo, git);
    } else if (err != ERR_OK) {
        warnings_add(found,
                     repo->mark,
                     "repo \"%s\": %s",
                     repo->name,
                     diag.text);
    }
    git_close(git);
}

static void check_repo(struct plan_errors *found,
                       const struct plan_repo *repo,
                       const char *folder)
{
    struct strbuf path = {0};
    struct stat info;
    engine_add_path(&path, folder, repo->path);
    if (stat(strbuf_text(&path), &info) != 0) {
        warnings_add(found,
                     repo->mark,
                     "repo \"%s\": cannot find its path %s: %s",
                     repo->name,
                     strbuf_text(&path),
                     strerror(errno));
    } else if (!S_ISDIR(info.st_mode)) {
        warnings_add(found,
                     repo->mark,
                     "repo \"%s\": its path %s is not a directory",
                     repo->name,
                     strbuf_text(&path));
    } else if (repo->base != NULL) {
        check_git(found, repo, strbuf_text(&path));
    }
    strbuf_release(&path);
}

/* A hub that cannot be reached now is no fault of the plan. */
static void check_hub(struct plan_errors *found, const struct plan_repo *repo)
{
    struct diag diag = {0};
    enum err err = hub_probe(repo->url, repo->base, &diag);
    if (err != ERR_OK && err != ERR_UNAVAILABLE) {
        warnings_add(found,
                     repo->mark,
                     "repo \"%s\": %s",
                     repo->name,
                     diag.text);
    }
}

/* Return the command of a stage that tests in this repo, or NULL. */
static const char *gate_of(const struct plan *plan, uint32_t repo)
{
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        if (task->repo == repo && task->run.shell != NULL &&
            plan_has_role(plan, task, PLAN_ROLE_GATE)) {
            return task->run.shell;
        }
    }
    return NULL;
}

/* Find repositories with untested merge results. */
static void find_ungated(struct plan_errors *warnings, const struct plan *plan)
{
    bool *merges = mem_zalloc(plan->repo_count + 1, sizeof(merges[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        if (plan->tasks[ix].merge) {
            merges[plan->tasks[ix].repo] = true;
        }
    }
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        const struct plan_repo *repo = &plan->repos[ix];
        if (!merges[ix] || repo->gate != NULL || repo->ungated) {
            continue;
        }
        struct strbuf command = {0};
        const char *gate = gate_of(plan, ix);
        jsonw_string(&command, gate != NULL ? gate : "make test");
        warnings_add(warnings,
                     repo->mark,
                     "repo \"%s\" merges without a gate: issues that pass "
                     "alone may break together; add \"gate\" to it (such as "
                     "gate: %.*s), or \"gate: none\"",
                     repo->name,
                     GATE_BYTES,
                     strbuf_text(&command));
        strbuf_release(&command);
    }
    mem_free(merges);
}

/* Return the directory that all worktrees of a repo share; NULL: it is no git
 * repository. The caller frees it. */
static char *find_common_dir(const struct plan_repo *repo, const char *folder)
{
    struct strbuf path = {0};
    struct git *git = NULL;
    struct diag ignored = {0};
    char *found = NULL;
    engine_add_path(&path, folder, repo->path);
    if (git_open(&git, strbuf_text(&path), &ignored) == ERR_OK) {
        found = realpath(git_common_dir(git), NULL);
        git_close(git);
    }
    strbuf_release(&path);
    return found;
}

/* Report repo `ix` if an earlier repo is the same by another path. */
static void find_twin(struct plan_errors *found,
                      const struct plan *plan,
                      const char *folder,
                      char *const *dirs,
                      uint32_t ix)
{
    struct strbuf own = {0};
    struct strbuf other = {0};
    bool told = dirs[ix] == NULL;
    twin_add_path(&own, folder, plan->repos[ix].path);
    for (uint32_t at = 0; at < ix && !told; at++) {
        if (dirs[at] == NULL || strcmp(dirs[at], dirs[ix]) != 0) {
            continue;
        }
        strbuf_clear(&other);
        twin_add_path(&other, folder, plan->repos[at].path);
        told = strcmp(strbuf_text(&own), strbuf_text(&other)) != 0;
        if (told) {
            warnings_add(found,
                         plan->repos[ix].mark,
                         "repo \"%s\" is the same git repository as \"%s\" by "
                         "another path; write the path %s for both",
                         plan->repos[ix].name,
                         plan->repos[at].name,
                         plan->repos[at].path);
        }
    }
    strbuf_release(&own);
    strbuf_release(&other);
}

struct plan_errors warnings_find_twins(const struct plan *plan,
                                       const char *folder)
{
    struct plan_errors found = {0};
    char **dirs = mem_zalloc(plan->repo_count + 1, sizeof(dirs[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        const struct plan_repo *repo = &plan->repos[ix];
        count += repo->path != NULL && repo->base != NULL ? 1 : 0;
    }
    for (uint32_t ix = 0; count > 1 && ix < plan->repo_count; ix++) {
        const struct plan_repo *repo = &plan->repos[ix];
        if (repo->path != NULL && repo->base != NULL) {
            dirs[ix] = find_common_dir(repo, folder);
            find_twin(&found, plan, folder, dirs, ix);
        }
    }
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        free(dirs[ix]);
    }
    mem_free(dirs);
    return found;
}

/* Find repos with the same path and the same base. */
static void find_doubles(struct plan_errors *warnings,
                         const struct plan *plan,
                         const char *folder)
{
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        const struct plan_repo *repo = &plan->repos[ix];
        uint32_t twin = twin_find(plan, folder, ix);
        if (twin < ix && strcmp(plan->repos[twin].base, repo->base) == 0) {
            warnings_add(warnings,
                         repo->mark,
                         "repos \"%s\" and \"%s\" have the same %s and the "
                         "same base, but merge into two branches; use one of "
                         "them, or another base",
                         plan->repos[twin].name,
                         repo->name,
                         repo->url != NULL ? "url" : "path");
        }
    }
}

/* --- sandbox ------------------------------------------------------------ */

/* Report the first confined task, if sessions cannot be confined here. */
static void check_sandbox(struct plan_errors *found, const struct plan *plan)
{
    uint32_t first = 0;
    while (first < plan->task_count &&
           plan->tasks[first].settings->sandbox == NULL) {
        first++;
    }
    if (first == plan->task_count) {
        return;
    }
    struct strbuf path = {0};
    struct strbuf reason = {0};
    struct diag diag = {0};
    enum err err =
        exec_find_program("sluice-sandbox", "SLUICE_SANDBOX", &path, &diag);
    const char *const argv[] = {strbuf_text(&path), "--probe", NULL};
    if (err != ERR_OK || runner_output(&reason, argv) != 0) {
        const char *text = err != ERR_OK ? diag.text : strbuf_text(&reason);
        warnings_add(found,
                     plan->tasks[first].mark,
                     "%s has a sandbox, which cannot work here: %.*s",
                     plan->tasks[first].id,
                     (int)strcspn(text, "\n"),
                     text);
    }
    strbuf_release(&path);
    strbuf_release(&reason);
}

/* --- all ---------------------------------------------------------------- */

struct plan_errors
warnings_find(const struct plan *plan, const char *folder, bool probe)
{
    struct plan_errors warnings = {0};
    add_olds(&warnings, plan);
    find_bare(&warnings, plan);
    find_ungated(&warnings, plan);
    find_doubles(&warnings, plan, folder);
    if (probe) {
        find_agents(&warnings, plan);
    }
    return warnings;
}

struct plan_errors warnings_find_faults(const struct plan *plan,
                                        const char *folder)
{
    struct plan_errors faults = {0};
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        if (plan->repos[ix].url != NULL) {
            check_hub(&faults, &plan->repos[ix]);
        } else if (plan->repos[ix].path != NULL) {
            check_repo(&faults, &plan->repos[ix], folder);
        }
    }
    check_sandbox(&faults, plan);
    struct plan_errors twins = warnings_find_twins(plan, folder);
    for (uint32_t ix = 0; ix < twins.count; ix++) {
        warnings_add(&faults, twins.items[ix].mark, "%s", twins.items[ix].text);
    }
    plan_errors_release(&twins);
    return faults;
}
