/* SPDX-License-Identifier: MIT */
#include "git/fetch.h"

#include "base/crash.h"

#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Where a branch comes from. */
struct source {
    struct strbuf remote; /* name or URL */
    struct strbuf branch; /* full ref there */
};

/* Read one value of the configuration; false: it is not set. */
static bool read_config(struct git *git, struct strbuf *out, const char *key)
{
    int code = 0;
    struct strbuf text = {0};
    struct git_call call = {
        .args = PROC_ARGS("config", "--get", key),
        .output = &text,
        .quiet = true,
        .codes = 1,
    };
    bool good = git_call(git, &call, &code, NULL) == ERR_OK && code == 0;
    strbuf_add(out, strbuf_text(&text), strcspn(strbuf_text(&text), "\n"));
    strbuf_release(&text);
    return good && out->len > 0;
}

/* Find the upstream of a branch. */
static bool
find_upstream(struct git *git, const char *branch, struct source *out)
{
    struct strbuf key = {0};
    strbuf_addf(&key, "branch.%s.remote", branch);
    bool good = read_config(git, &out->remote, strbuf_text(&key));
    strbuf_clear(&key);
    strbuf_addf(&key, "branch.%s.merge", branch);
    good = good && read_config(git, &out->branch, strbuf_text(&key));
    strbuf_release(&key);
    return good;
}

/* Find a remote for a branch without upstream, in a list of remotes. */
static bool
choose_remote(struct strbuf *list, const char *branch, struct source *out)
{
    struct strbuf chosen = {0};
    size_t cursor = 0;
    size_t count = 0;
    const char *line;
    bool origin = false;
    while ((line = git_next_line(list, &cursor)) != NULL) {
        size_t len = strlen(line);
        if (strncmp(branch, line, len) == 0 && branch[len] == '/' &&
            branch[len + 1] != '\0') {
            strbuf_clear(&out->remote);
            strbuf_adds(&out->remote, line);
            strbuf_addf(&out->branch, "refs/heads/%s", branch + len + 1);
            strbuf_release(&chosen);
            return true;
        }
        if (!origin) {
            origin = strcmp(line, "origin") == 0;
            strbuf_clear(&chosen);
            strbuf_adds(&chosen, line);
        }
        count++;
    }
    bool good = origin || count == 1;
    if (good) {
        strbuf_adds(&out->remote, strbuf_text(&chosen));
        strbuf_addf(&out->branch, "refs/heads/%s", branch);
    }
    strbuf_release(&chosen);
    return good;
}

static enum err find_source(struct git *git,
                            const char *base,
                            struct source *out,
                            struct diag *diag)
{
    static const char heads[] = "refs/heads/";
    static const char remotes[] = "refs/remotes/";
    const char *branch = base;
    if (strncmp(base, heads, strlen(heads)) == 0) {
        branch += strlen(heads);
    } else if (strncmp(base, remotes, strlen(remotes)) == 0) {
        branch += strlen(remotes);
    }
    if (find_upstream(git, branch, out)) {
        return ERR_OK;
    }
    strbuf_clear(&out->remote);
    strbuf_clear(&out->branch);
    struct strbuf list = {0};
    enum err err = git_output(git, PROC_ARGS("remote"), &list, diag);
    if (err == ERR_OK && !choose_remote(&list, branch, out)) {
        err = diag_set(diag,
                       ERR_INVALID,
                       "cannot fetch \"%s\": %s has no remote for it; add an "
                       "upstream, or remove \"fetch\" from the repo",
                       base,
                       git_path(git));
    }
    strbuf_release(&list);
    return err;
}

/* Call git, and tell failures apart. */
static enum err fetch(struct git *git,
                      const struct source *source,
                      const char *ref,
                      struct diag *diag)
{
    struct strbuf spec = {0};
    struct diag why = {0};
    strbuf_addf(&spec, "+%s:%s", strbuf_text(&source->branch), ref);
    struct git_call call = {
        .args = PROC_ARGS("fetch",
                          "--quiet",
                          "--no-tags",
                          "--no-prune",
                          "--no-write-fetch-head",
                          "--no-auto-maintenance",
                          "--no-write-commit-graph",
                          "--no-recurse-submodules",
                          "--refmap=",
                          "--",
                          strbuf_text(&source->remote),
                          strbuf_text(&spec)),
        .network = GIT_REMOTE,
    };
    enum err err = git_call(git, &call, NULL, &why);
    if (err == ERR_CONFLICT) {
        bool missing = strstr(why.text, "find remote ref") != NULL;
        err = diag_set(diag,
                       missing ? ERR_INVALID : ERR_UNAVAILABLE,
                       "cannot fetch %s from %s: %s",
                       git_short_name(strbuf_text(&source->branch)),
                       strbuf_text(&source->remote),
                       why.text);
    } else if (err != ERR_OK) {
        (void)diag_set(diag, err, "%s", why.text);
    }
    strbuf_release(&spec);
    return err;
}

enum err fetch_base(struct git *git,
                    const char *base,
                    const char *ref,
                    struct diag *diag)
{
    struct source source = {{0}, {0}};
    enum err err = find_source(git, base, &source, diag);
    if (err == ERR_OK &&
        strncmp(strbuf_text(&source.branch), "refs/heads/", 11) != 0) {
        err = diag_set(diag,
                       ERR_INVALID,
                       "the upstream of \"%s\" is no branch: %s",
                       base,
                       strbuf_text(&source.branch));
    }
    if (err == ERR_OK) {
        /* One at a time, so that a lock of this ref is of a killed git. */
        int lock = git_lock(git, "sluice-fetch", LOCK_EX);
        if (lock >= 0) {
            git_unlock_ref(git, ref);
        }
        crash_point("git-before-fetch");
        err = fetch(git, &source, ref, diag);
        crash_point("git-fetched");
        if (lock >= 0) {
            (void)close(lock);
        }
    }
    strbuf_release(&source.remote);
    strbuf_release(&source.branch);
    return err;
}
