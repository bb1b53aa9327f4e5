/* SPDX-License-Identifier: MIT */
/*
 * A mirror is created under another name and renamed, so a mirror that exists
 * is complete. Beside it is its lock file. The file is not empty while its
 * holder changes refs: a holder that finds it so knows that the one before was
 * killed, and removes the locks that its git may have left.
 */
#include "git/hub.h"

#include "base/crash.h"
#include "base/sha256.h"
#include "git/files.h"
#include "git/log.h"
#include "git/names.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HASH_BYTES = 8,       /* in the name of a mirror */
    NAME_BYTES_MAX = 60,  /* of the URL's last component, encoded */
    SHA256_ID_BYTES = 64, /* of an object id, where SHA-1 has 40 */
    SHORT_ID_BYTES = 7,   /* at least, of an id in a plan */
    WALK_DESCRIPTORS = 16,
};

#define MIRROR_END ".git"

/* --- names --------------------------------------------------------------- */

void hub_add_name(struct strbuf *out, const char *url)
{
    const char *mark = strstr(url, "://");
    const char *host = mark != NULL ? mark + strlen("://") : url;
    size_t len = mark != NULL ? strcspn(host, "/") : 0;
    const char *at = len > 0 ? memrchr(host, '@', len) : NULL;
    strbuf_add(out, url, (size_t)(host - url));
    if (at == NULL) {
        strbuf_adds(out, host);
        return;
    }
    /* What is a user's name for ssh can be a secret for http. */
    size_t user =
        strncmp(url, "http", strlen("http")) == 0 ? 0 : strcspn(host, ":@");
    strbuf_add(out, host, user);
    strbuf_adds(out, user > 0 ? at : at + 1);
}

/* Append the last component of a URL, without ".git". */
static void add_last(struct strbuf *out, const char *url)
{
    size_t end = strlen(url);
    while (end > 0 && url[end - 1] == '/') {
        end--;
    }
    if (end > strlen(MIRROR_END) && strncmp(url + end - strlen(MIRROR_END),
                                            MIRROR_END,
                                            strlen(MIRROR_END)) == 0) {
        end -= strlen(MIRROR_END);
    }
    size_t begin = end;
    while (begin > 0 && strchr("/:@", url[begin - 1]) == NULL) {
        begin--;
    }
    struct strbuf last = {0};
    struct strbuf name = {0};
    strbuf_add(&last, url + begin, end - begin);
    names_add(&name, strbuf_text(&last));
    strbuf_add(out,
               strbuf_text(&name),
               name.len < NAME_BYTES_MAX ? name.len : NAME_BYTES_MAX);
    strbuf_release(&last);
    strbuf_release(&name);
}

void hub_add_mirror(struct strbuf *out, const char *home, const char *url)
{
    unsigned char hash[SHA256_BYTES];
    char *real = realpath(home, NULL);
    sha256(url, strlen(url), hash);
    strbuf_addf(out, "%s/mirrors/", real != NULL ? real : home);
    free(real);
    add_last(out, url);
    strbuf_adds(out, "-");
    for (size_t ix = 0; ix < HASH_BYTES; ix++) {
        strbuf_addf(out, "%02x", hash[ix]);
    }
    strbuf_adds(out, MIRROR_END);
}

/* --- errors -------------------------------------------------------------- */

/* Messages of git, of ssh and of servers after which it is pointless to try
 * again. Everything else may pass: a timeout, a server that starts again. */
static const char *const lasting[] = {
    "Access denied",
    "Authentication failed",
    "Host key verification failed",
    "Permission denied",
    "Permission to ",
    "access denied",
    "could not read Password",
    "could not read Username",
    "dubious ownership",
    "does not appear to be a git repository",
    "does not exist",
    "does not support --atomic",
    "insufficient permission",
    "nable to find remote helper",
    "no path specified",
    "not allowed",
    "not exported",
    "not found",
    "not valid: is this a git repository?",
    "returned error: 401",
    "returned error: 403",
    "returned error: 404",
    "returned error: 413", /* the push is too large for the server */
    "service not enabled",
    "terminal prompts disabled",
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Return whether a line of messages contains a text. */
static bool has(const char *line, size_t len, const char *text)
{
    return memmem(line, len, text, strlen(text)) != NULL;
}

static bool is_lasting(const char *line, size_t len)
{
    bool found = false;
    for (size_t ix = 0; ix < ARRAY_COUNT(lasting); ix++) {
        found = found || has(line, len, lasting[ix]);
    }
    return found;
}

enum err hub_judge(const char *name,
                   const char *doing,
                   const char *messages,
                   struct diag *diag)
{
    const char *best = "git says nothing";
    size_t best_len = strlen(best);
    bool final = false;
    bool chosen = false;
    size_t len;
    for (const char *at = messages; *at != '\0' && !final;
         at += len + (at[len] == '\n' ? 1 : 0)) {
        len = strcspn(at, "\n");
        final = is_lasting(at, len);
        bool first = !chosen && len > 0 && !begins(at, "warning:") &&
                     !begins(at, "Warning:");
        if (final || first) {
            best = at;
            best_len = len;
            chosen = true;
        }
    }
    return diag_set(diag,
                    final ? ERR_DENIED : ERR_UNAVAILABLE,
                    "cannot %s the hub %s: %.*s",
                    doing,
                    name,
                    (int)best_len,
                    best);
}

/* --- the lock ------------------------------------------------------------ */

static int open_lock(const char *mirror, struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_add(&path, mirror, strlen(mirror) - strlen(MIRROR_END));
    strbuf_adds(&path, ".lock");
    int fd = open(strbuf_text(&path),
                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    if (fd >= 0 && !proc_lock(fd, LOCK_EX)) {
        (void)close(fd);
        fd = -1;
    }
    if (fd < 0) {
        (void)diag_set(diag,
                       ERR_UNAVAILABLE,
                       "lock %s: %s",
                       strbuf_text(&path),
                       strerror(errno));
    }
    strbuf_release(&path);
    return fd;
}

int hub_lock(const struct git *git, struct diag *diag)
{
    return open_lock(git_path(git), diag);
}

/* For nftw(): remove the lock of a ref. */
static int
drop_lock(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status;
    (void)at;
    size_t len = strlen(path);
    if (kind == FTW_F && len > 5 && strcmp(path + len - 5, ".lock") == 0) {
        (void)unlink(path);
    }
    return 0;
}

/* Note that refs of the mirror are going to change. Remove what a killed git
 * has left, if the note of its caller is there. */
static enum err begin_change(const struct git *git, int lock, struct diag *diag)
{
    struct stat status;
    if (fstat(lock, &status) == 0 && status.st_size > 0) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/refs", git_path(git));
        (void)nftw(strbuf_text(&path), drop_lock, WALK_DESCRIPTORS, FTW_PHYS);
        strbuf_clear(&path);
        strbuf_addf(&path, "%s/packed-refs.lock", git_path(git));
        (void)unlink(strbuf_text(&path)); /* usually does not exist */
        strbuf_release(&path);
    } else if (pwrite(lock, "1", 1, 0) != 1) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "write the lock of %s: %s",
                        git_path(git),
                        strerror(errno));
    }
    return ERR_OK;
}

static void end_change(int lock)
{
    if (ftruncate(lock, 0) != 0) {
        return; /* the next holder looks for locks in vain */
    }
}

enum err
hub_set_locked(struct git *git, int lock, const char *lines, struct diag *diag)
{
    enum err err = begin_change(git, lock, diag);
    if (err == ERR_OK) {
        err = git_transact_here(git, lines, true, "sluice: hub", diag);
        end_change(lock);
    }
    return err;
}

/* --- the mirror ---------------------------------------------------------- */

enum err hub_fetch_locked(struct git *git, int lock, struct diag *diag)
{
    struct strbuf errors = {0};
    struct diag why = {0};
    struct git_call call = {
        .args = PROC_ARGS("fetch",
                          "--quiet",
                          "--prune",
                          "--no-tags",
                          "--no-write-fetch-head",
                          "--no-auto-maintenance",
                          "--no-write-commit-graph",
                          "--no-recurse-submodules",
                          "--refmap=",
                          "--upload-pack=git-upload-pack",
                          "--end-of-options",
                          git_hub(git),
                          "+refs/heads/*:refs/heads/*",
                          "+refs/tags/*:refs/tags/*",
                          "+refs/sluice/*:refs/sluice/*"),
        .network = GIT_HUB,
        .errors = &errors,
    };
    enum err err = begin_change(git, lock, diag);
    crash_point("hub-before-fetch");
    if (err == ERR_OK) {
        err = git_call(git, &call, NULL, &why);
        end_change(lock);
        crash_point("hub-fetched");
    }
    if (err == ERR_CONFLICT) {
        err =
            hub_judge(git_name(git), "fetch from", strbuf_text(&errors), diag);
    } else if (err != ERR_OK && why.text[0] != '\0') {
        (void)diag_set(diag, err, "%s", why.text);
    }
    strbuf_release(&errors);
    return err;
}

enum err hub_fetch(struct git *git, struct diag *diag)
{
    if (git_hub(git) == NULL) {
        return ERR_OK;
    }
    int lock = hub_lock(git, diag);
    if (lock < 0) {
        return ERR_UNAVAILABLE;
    }
    enum err err = hub_fetch_locked(git, lock, diag);
    (void)close(lock);
    return err;
}

/* Create an empty repository at `path`. A session has the URL as its remote. */
static enum err
init(const char *path, const char *url, const char *format, struct diag *diag)
{
    struct strbuf above = {0};
    struct strbuf config = {0};
    strbuf_add(&above, path, (size_t)(strrchr(path, '/') - path));
    strbuf_addf(&config, "%s/config", path);
    struct git *git = git_prepare(strbuf_text(&above));
    const char *const file = strbuf_text(&config);
    const char *const *const steps[] = {
        PROC_ARGS("init", "--quiet", "--bare", "--template=", format, path),
        PROC_ARGS("config", "--file", file, "remote.origin.url", url),
        PROC_ARGS("config",
                  "--file",
                  file,
                  "remote.origin.fetch",
                  "+refs/heads/*:refs/remotes/origin/*"),
    };
    enum err err = files_remove(path, diag);
    for (size_t ix = 0; err == ERR_OK && ix < ARRAY_COUNT(steps); ix++) {
        struct git_call call = {.args = steps[ix]};
        err = git_call(git, &call, NULL, diag);
    }
    git_close(git);
    strbuf_release(&above);
    strbuf_release(&config);
    return err;
}

/* List the refs of a hub that match one of two names, or all. */
static enum err list_refs(struct git *git,
                          const char *url,
                          const char *const names[2],
                          struct strbuf *out,
                          struct diag *diag)
{
    struct strbuf errors = {0};
    struct strbuf name = {0};
    struct git_call call = {
        .args = PROC_ARGS("ls-remote",
                          "--upload-pack=git-upload-pack",
                          "--end-of-options",
                          url,
                          names[0],
                          names[1]),
        .network = GIT_HUB,
        .output = out,
        .errors = &errors,
    };
    hub_add_name(&name, url);
    enum err err = git_call(git, &call, NULL, diag);
    if (err == ERR_CONFLICT) {
        err = hub_judge(strbuf_text(&name), "read", strbuf_text(&errors), diag);
    }
    strbuf_release(&errors);
    strbuf_release(&name);
    return err;
}

/* Find out whether the hub can be used, and whether its ids are SHA-256. */
static enum err
ask_hub(const char *path, const char *url, bool *sha256_out, struct diag *diag)
{
    struct git *git = NULL;
    struct strbuf list = {0};
    enum err err = git_open(&git, path, diag);
    if (err == ERR_OK) {
        err = list_refs(git, url, (const char *const[2]){0}, &list, diag);
    }
    *sha256_out = strcspn(strbuf_text(&list), "\t\n") == SHA256_ID_BYTES;
    git_close(git);
    strbuf_release(&list);
    return err;
}

enum err hub_probe(const char *url, const char *base, struct diag *diag)
{
    struct git *git = git_prepare("/");
    struct strbuf list = {0};
    struct strbuf branch = {0};
    struct strbuf tag = {0};
    struct strbuf name = {0};
    bool full = strncmp(base, "refs/", strlen("refs/")) == 0;
    strbuf_addf(&branch, "%s%s", full ? "" : "refs/heads/", base);
    strbuf_addf(&tag, "%s%s", full ? "" : "refs/tags/", base);
    hub_add_name(&name, url);
    const char *const names[2] = {strbuf_text(&branch), strbuf_text(&tag)};
    enum err err = list_refs(git, url, names, &list, diag);
    size_t hex = strspn(base, "0123456789abcdef");
    bool id = base[hex] == '\0' && hex >= SHORT_ID_BYTES;
    if (err == ERR_OK && list.len == 0 && !id) {
        err = diag_set(diag,
                       ERR_NOT_FOUND,
                       "the hub %s has no branch or tag \"%s\"",
                       strbuf_text(&name),
                       base);
    }
    git_close(git);
    strbuf_release(&list);
    strbuf_release(&branch);
    strbuf_release(&tag);
    strbuf_release(&name);
    return err;
}

/* Create the mirror. The caller holds its lock. */
static enum err make(const char *path, const char *url, struct diag *diag)
{
    struct strbuf temp = {0};
    bool long_ids = false;
    strbuf_addf(&temp, "%s.new", path);
    const char *from = strbuf_text(&temp);
    enum err err = init(from, url, "--object-format=sha1", diag);
    crash_point("hub-mirror-begun");
    if (err == ERR_OK) {
        err = ask_hub(from, url, &long_ids, diag);
    }
    if (err == ERR_OK && long_ids) {
        err = init(from, url, "--object-format=sha256", diag);
    }
    crash_point("hub-mirror-made");
    if (err == ERR_OK && rename(from, path) != 0) {
        err = diag_set(diag,
                       ERR_UNAVAILABLE,
                       "rename %s: %s",
                       from,
                       strerror(errno));
    }
    crash_point("hub-mirror-named");
    strbuf_release(&temp);
    return err;
}

enum err
hub_open(struct git **out, const char *home, const char *url, struct diag *diag)
{
    struct strbuf path = {0};
    struct strbuf name = {0};
    *out = NULL;
    hub_add_mirror(&path, home, url);
    hub_add_name(&name, url);
    enum err err = files_make_above(strbuf_text(&path), diag);
    int lock = err == ERR_OK ? open_lock(strbuf_text(&path), diag) : -1;
    if (err == ERR_OK && lock < 0) {
        err = ERR_UNAVAILABLE;
    }
    bool made = err == ERR_OK && !files_is_dir(strbuf_text(&path));
    if (made) {
        err = make(strbuf_text(&path), url, diag);
    }
    if (err == ERR_OK) {
        err = git_open(out, strbuf_text(&path), diag);
    }
    if (err == ERR_OK) {
        git_set_hub(*out, url, strbuf_text(&name));
        err = hub_fetch_locked(*out, lock, diag);
    }
    if (err == ERR_OK && made) { /* not a file for each ref */
        err = git_output(*out, PROC_ARGS("pack-refs", "--all"), &path, diag);
    }
    if (err != ERR_OK) {
        git_close(*out);
        *out = NULL;
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    strbuf_release(&path);
    strbuf_release(&name);
    return err;
}

enum err hub_open_either(struct git **out,
                         const char *home,
                         const char *path,
                         const char *url,
                         struct diag *diag)
{
    return url != NULL ? hub_open(out, home, url, diag)
                       : git_open(out, path, diag);
}
