/* SPDX-License-Identifier: MIT */
#include "cli/disk.h"

#include "base/strbuf.h"
#include "engine/engine.h"
#include "git/git.h"
#include "plan/suggest.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The branch of the repository whose name is near to `name`, as a hint. */
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

/* A base that cannot be found: there is no commit at all, or another name. */
static void refuse_base(struct warnings *found,
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

static void check_git(struct warnings *found,
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

static void check_repo(struct warnings *found,
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

struct warnings disk_find(const struct plan *plan, const char *folder)
{
    struct warnings found = {0};
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        if (plan->repos[ix].path != NULL) {
            check_repo(&found, &plan->repos[ix], folder);
        }
    }
    return found;
}
