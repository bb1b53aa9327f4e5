/* SPDX-License-Identifier: MIT */
/*
 * The configuration is the user's own, flattened: includes are resolved, what
 * ties it to the user's directory is left out, relative paths of remotes become
 * absolute, and pushing is disabled.
 */
#include "git/private.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "git/files.h"
#include "git/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    UNPACK_OBJECTS = 200, /* fewer objects become loose ones */
    PACK_HEADER_BYTES = 12,
};

/* Keys that belong to the user's directory or its files. */
static const char *const left_out[] = {
    "core.bare",
    "core.fsmonitor",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.worktree",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "include.",
    "includeif.",
    "index.sparse",
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t len = strlen(text);
    size_t with_len = strlen(with);
    return len >= with_len && strcmp(text + len - with_len, with) == 0;
}

static bool is_left_out(const char *key, bool push)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(left_out); ix++) {
        const char *name = left_out[ix];
        if (ends(name, ".") ? begins(key, name) : strcmp(key, name) == 0) {
            return true;
        }
    }
    return !push && begins(key, "remote.") && ends(key, ".pushurl");
}

/* Append a string in double quotes, as in git's configuration. */
static void add_quoted(struct strbuf *out, const char *text, size_t len)
{
    strbuf_adds(out, "\"");
    for (size_t ix = 0; ix < len; ix++) {
        char byte = text[ix];
        if (byte == '\n') {
            strbuf_adds(out, "\\n");
            continue;
        }
        if (byte == '"' || byte == '\\') {
            strbuf_adds(out, "\\");
        }
        strbuf_add(out, &byte, 1);
    }
    strbuf_adds(out, "\"");
}

/* Append one key; value NULL: none, which means true. */
static void add_key(struct strbuf *out, const char *key, const char *value)
{
    const char *first = strchr(key, '.');
    const char *last = strrchr(key, '.');
    INVARIANT(first != NULL && last != NULL);
    strbuf_addf(out, "[%.*s", (int)(first - key), key);
    if (last > first) {
        strbuf_adds(out, " ");
        add_quoted(out, first + 1, (size_t)(last - first - 1));
    }
    strbuf_addf(out, "]\n\t%s", last + 1);
    if (value != NULL) {
        strbuf_adds(out, " = ");
        add_quoted(out, value, strlen(value));
    }
    strbuf_adds(out, "\n");
}

/* Return whether the URL of a remote is a path relative to the repository. */
static bool is_relative(const char *url)
{
    size_t host = strcspn(url, ":/");
    return url[0] != '/' && url[host] != ':';
}

/* Append the URL of a remote, and with `push` false, disable its push. */
static void add_remote(struct strbuf *out,
                       const struct git *git,
                       const char *key,
                       const char *url,
                       bool push)
{
    struct strbuf text = {0};
    if (is_relative(url)) {
        strbuf_addf(&text, "%s/", git_path(git));
    }
    strbuf_adds(&text, url);
    add_key(out, key, strbuf_text(&text));
    if (!push) { /* "./": git must not take it for a host name */
        strbuf_clear(&text);
        strbuf_add(&text, key, strlen(key) - strlen("url"));
        strbuf_adds(&text, "pushurl");
        add_key(out,
                strbuf_text(&text),
                "./disabled by sluice (remote: keep in the plan enables it)");
    }
    strbuf_release(&text);
}

/* Append the configuration. */
static enum err
add_config(struct strbuf *out, struct git *git, bool push, struct diag *diag)
{
    struct strbuf list = {0}; /* KEY LF VALUE NUL, or KEY NUL */
    enum err err =
        git_output(git,
                   PROC_ARGS("config", "--list", "--local", "--includes", "-z"),
                   &list,
                   diag);
    strbuf_adds(out, "[core]\n\tbare = false\n");
    for (size_t at = 0; err == ERR_OK && at < list.len;) {
        char *key = list.text + at;
        at += strlen(key) + 1;
        char *value = strchr(key, '\n');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (is_left_out(key, push) || strchr(key, '.') == NULL) {
            continue;
        }
        if (begins(key, "remote.") && ends(key, ".url") && value != NULL) {
            add_remote(out, git, key, value, push);
        } else {
            add_key(out, key, value);
        }
    }
    strbuf_release(&list);
    return err;
}

/* Append the refs in the format of packed-refs: the user's own, the agent
 * branch and the checked-out branch, but no other branch of sluice. */
static enum err add_refs(struct strbuf *out,
                         struct git *git,
                         const struct private_options *options,
                         struct diag *diag)
{
    struct strbuf list = {0};
    enum err err =
        git_list_refs(git,
                      PROC_ARGS("refs/heads/", "refs/remotes/", "refs/tags/"),
                      &list,
                      diag);
    size_t cursor = 0;
    const char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        const char *name = strchr(line, ' ');
        bool own = name == NULL || (options->branch != NULL &&
                                    strcmp(name + 1, options->branch) == 0);
        bool agent = name != NULL && options->agent != NULL &&
                     strcmp(name + 1, options->agent) == 0;
        if (!own && (agent || !begins(name + 1, "refs/heads/sluice/")) &&
            !(begins(name + 1, "refs/remotes/") && ends(name, "/HEAD"))) {
            strbuf_addf(out, "%s\n", line);
        }
    }
    if (options->branch != NULL) {
        strbuf_addf(out, "%s %s\n", options->start.text, options->branch);
    }
    strbuf_release(&list);
    return err;
}

/* Write a file below `dir`. */
static enum err put(const char *dir,
                    const char *name,
                    const struct strbuf *text,
                    struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", dir, name);
    enum err err = files_write(strbuf_text(&path), text, diag);
    strbuf_release(&path);
    return err;
}

/* Copy a file of the user's repository, if it exists. */
static enum err copy(struct git *git,
                     const char *dir,
                     const char *name,
                     mode_t mode,
                     struct diag *diag)
{
    struct strbuf from = {0};
    struct strbuf to = {0};
    strbuf_addf(&from, "%s/%s", git_common_dir(git), name);
    strbuf_addf(&to, "%s/%s", dir, name);
    char *real = realpath(strbuf_text(&from), NULL);
    enum err err = real != NULL ? files_copy(real, strbuf_text(&to), mode, diag)
                                : ERR_NOT_FOUND;
    free(real);
    strbuf_release(&from);
    strbuf_release(&to);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Return whether git would run the file as a hook. */
static bool is_hook(int folder, const char *name)
{
    struct stat status;
    return name[0] != '.' && !ends(name, ".sample") &&
           fstatat(folder, name, &status, 0) == 0 && S_ISREG(status.st_mode) &&
           faccessat(folder, name, X_OK, 0) == 0;
}

static DIR *open_hooks(const char *git_dir)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/hooks", git_dir);
    DIR *list = opendir(strbuf_text(&path));
    strbuf_release(&path);
    return list;
}

/* Copy the user's hooks: sessions have them as the user has. */
static enum err copy_hooks(struct git *git, const char *dir, struct diag *diag)
{
    enum err err = ERR_OK;
    DIR *list = open_hooks(git_common_dir(git));
    const struct dirent *entry;
    while (err == ERR_OK && list != NULL && (entry = readdir(list)) != NULL) {
        if (is_hook(dirfd(list), entry->d_name)) {
            struct strbuf name = {0};
            strbuf_addf(&name, "hooks/%s", entry->d_name);
            err = copy(git, dir, strbuf_text(&name), 0700, diag);
            strbuf_release(&name);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return err;
}

static enum err make_dirs(const char *dir, struct diag *diag)
{
    static const char *const names[] = {
        "",
        "/hooks",
        "/info",
        "/objects",
        "/objects/info",
        "/objects/pack",
        "/refs",
        "/refs/heads",
        "/refs/tags",
    };
    enum err err = ERR_OK;
    struct strbuf path = {0};
    for (size_t ix = 0; err == ERR_OK && ix < ARRAY_COUNT(names); ix++) {
        strbuf_clear(&path);
        strbuf_addf(&path, "%s%s", dir, names[ix]);
        err = files_make_dir(strbuf_text(&path), diag);
    }
    strbuf_release(&path);
    return err;
}

/* Write HEAD and where the objects are. */
static enum err put_pointers(struct git *git,
                             const char *dir,
                             const struct private_options *options,
                             struct diag *diag)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%s/objects\n", git_common_dir(git));
    enum err err = put(dir, "objects/info/alternates", &text, diag);
    strbuf_clear(&text);
    if (options->branch != NULL) {
        strbuf_addf(&text, "ref: %s\n", options->branch);
    } else {
        strbuf_addf(&text, "%s\n", options->start.text);
    }
    if (err == ERR_OK) {
        err = put(dir, "HEAD", &text, diag);
    }
    strbuf_release(&text);
    return err;
}

enum err private_make(struct git *git,
                      const char *dir,
                      const struct private_options *options,
                      struct diag *diag)
{
    struct strbuf config = {0};
    struct strbuf refs = {0};
    enum err err = add_config(&config, git, options->push, diag);
    if (err == ERR_OK && !options->own) {
        err = add_refs(&refs, git, options, diag);
    }
    if (err == ERR_OK) {
        err = make_dirs(dir, diag);
    }
    crash_point("private-directories");
    if (err == ERR_OK) {
        err = put(dir, "config", &config, diag);
    }
    if (err == ERR_OK) {
        err = put(dir, "packed-refs", &refs, diag);
    }
    strbuf_release(&config);
    strbuf_release(&refs);
    static const char *const names[] = {"shallow",
                                        "info/attributes",
                                        "info/exclude"};
    for (size_t ix = 0; err == ERR_OK && ix < ARRAY_COUNT(names); ix++) {
        err = copy(git, dir, names[ix], 0600, diag);
    }
    if (err == ERR_OK && !options->own) {
        err = copy_hooks(git, dir, diag);
    }
    crash_point("private-copied");
    return err == ERR_OK ? put_pointers(git, dir, options, diag) : err;
}

/* Return whether a directory can be listed and has no symbolic links in it. */
static bool has_no_links(const char *dir)
{
    DIR *list = opendir(dir);
    const struct dirent *entry;
    bool good = list != NULL;
    while (good && (entry = readdir(list)) != NULL) {
        struct stat status;
        good =
            fstatat(dirfd(list), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ==
                0 &&
            !S_ISLNK(status.st_mode);
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return good;
}

/* Return whether git can open its files: one that opens a FIFO waits forever.
 */
static bool has_files(const char *dir)
{
    static const char *const names[] = {"HEAD",
                                        "config",
                                        "index",
                                        "packed-refs",
                                        "shallow"};
    bool good = true;
    for (size_t ix = 0; good && ix < ARRAY_COUNT(names); ix++) {
        struct stat status;
        struct strbuf name = {0};
        strbuf_addf(&name, "%s/%s", dir, names[ix]);
        good =
            stat(strbuf_text(&name), &status) != 0 || S_ISREG(status.st_mode);
        strbuf_release(&name);
    }
    return good;
}

bool private_is_whole(const char *path)
{
    struct strbuf dir = {0};
    struct strbuf objects = {0};
    struct strbuf common = {0};
    strbuf_addf(&dir, "%s/.git", path);
    strbuf_addf(&objects, "%s/.git/objects", path);
    strbuf_addf(&common, "%s/.git/commondir", path);
    bool whole = files_is_dir(path) && files_is_dir(strbuf_text(&dir)) &&
                 files_is_dir(strbuf_text(&objects)) &&
                 has_no_links(strbuf_text(&objects)) &&
                 has_files(strbuf_text(&dir)) &&
                 !files_exist(strbuf_text(&common));
    strbuf_release(&dir);
    strbuf_release(&objects);
    strbuf_release(&common);
    return whole;
}

/* Append the object directory of a checkout. */
static void add_objects(struct strbuf *out, const char *path)
{
    strbuf_addf(out, "%s/.git/objects", path);
}

/* Read the number of objects in a pack; false: it is no pack. */
static bool count_objects(int fd, uint32_t *out)
{
    unsigned char head[PACK_HEADER_BYTES];
    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        memcmp(head, "PACK", 4) != 0) {
        return false;
    }
    *out = (uint32_t)head[8] << 24 | (uint32_t)head[9] << 16 |
           (uint32_t)head[10] << 8 | head[11];
    return true;
}

/* Write a pack of what the checkout has and the user's repository lacks. */
static enum err pack(struct git *git,
                     const char *path,
                     const struct git_id *id,
                     const char *const *known,
                     int fd,
                     struct diag *diag)
{
    struct strbuf revs = {0};
    struct strbuf objects = {0};
    add_objects(&objects, path);
    strbuf_addf(&revs, "%s\n--not\n", id->text);
    for (size_t ix = 0; known[ix] != NULL; ix++) {
        if (known[ix][0] != '\0') {
            strbuf_addf(&revs, "%s\n", known[ix]);
        }
    }
    struct git_call call = {
        .args = PROC_ARGS("pack-objects",
                          "--quiet",
                          "--revs",
                          "--local",
                          "--stdout"),
        .objects = strbuf_text(&objects),
        .input = strbuf_text(&revs),
        .output_fd = fd,
    };
    enum err err = git_call(git, &call, NULL, diag);
    strbuf_release(&revs);
    strbuf_release(&objects);
    return err;
}

/* Add the objects of the pack to the user's repository, checked. */
static enum err unpack(struct git *git, int fd, struct diag *diag)
{
    uint32_t count = 0;
    if (!count_objects(fd, &count) || lseek(fd, 0, SEEK_SET) != 0) {
        return diag_set(diag, ERR_IO, "git wrote no pack");
    }
    const char *const few[] = {"unpack-objects", "-q", "--strict", NULL};
    const char *const many[] = {"index-pack",
                                "--stdin",
                                "--strict",
                                "--fix-thin",
                                NULL};
    struct strbuf name = {0}; /* of the new pack: nobody needs it */
    struct git_call call = {
        .args = count < UNPACK_OBJECTS ? few : many,
        .input_fd = fd,
        .output = &name,
    };
    enum err err = count > 0 ? git_call(git, &call, NULL, diag) : ERR_OK;
    strbuf_release(&name);
    return err;
}

enum err private_import(struct git *git,
                        const char *path,
                        const struct git_id *id,
                        const char *const *known,
                        struct diag *diag)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "%s+pack", path);
    enum err err = files_remove(strbuf_text(&name), diag);
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = err == ERR_OK ? open(strbuf_text(&name), flags, 0600) : -1;
    if (err == ERR_OK && fd < 0) {
        err = diag_set(diag,
                       ERR_IO,
                       "make %s: %s",
                       strbuf_text(&name),
                       strerror(errno));
    }
    if (err == ERR_OK) {
        err = pack(git, path, id, known, fd, diag);
        crash_point("private-packed");
    }
    if (err == ERR_OK) {
        err = unpack(git, fd, diag);
        crash_point("private-unpacked");
    }
    if (fd >= 0) {
        (void)close(fd);
        (void)unlink(strbuf_text(&name)); /* the next import removes it, too */
    }
    strbuf_release(&name);
    return err;
}

/* Append a list of files as git prints them, quoted, without the slash that
 * marks a nested repository. */
static void add_names(struct strbuf *out, const struct strbuf *list)
{
    for (size_t ix = 0; ix < list->len; ix++) {
        const char *at = list->text + ix;
        if (strncmp(at, "/\n", 2) != 0 && strncmp(at, "/\"\n", 3) != 0) {
            strbuf_add(out, at, 1);
        }
    }
}

/* Stage all files. `git add` would query submodules, which have a configuration
 * of their own. */
static enum err
stage_all(struct git *git, const struct git_call *where, struct diag *diag)
{
    struct strbuf list = {0};
    struct strbuf names = {0};
    struct git_call call = *where;
    call.args = PROC_ARGS("ls-files",
                          "--deleted",
                          "--exclude-standard",
                          "--modified",
                          "--others");
    call.output = &list;
    enum err err = git_call(git, &call, NULL, diag);
    add_names(&names, &list);
    call.args = PROC_ARGS("update-index", "--add", "--remove", "--stdin");
    call.input = strbuf_text(&names);
    call.output = NULL;
    if (err == ERR_OK && names.len > 0) {
        err = git_call(git, &call, NULL, diag);
    }
    strbuf_release(&list);
    strbuf_release(&names);
    return err;
}

enum err private_stage(struct git *git,
                       const struct git_call *where,
                       bool *changed_out,
                       struct diag *diag)
{
    struct git_call call = *where;
    int code = 0;
    call.args = PROC_ARGS("diff", "--cached", "--quiet", "HEAD");
    call.codes = 1;
    enum err err = stage_all(git, where, diag);
    if (err == ERR_OK) {
        err = git_call(git, &call, &code, diag);
    }
    *changed_out = code != 0;
    return err;
}

enum err
private_copy_index(const char *path, const char *dir, struct diag *diag)
{
    struct strbuf from = {0};
    struct strbuf to = {0};
    strbuf_addf(&from, "%s/.git/index", path);
    strbuf_addf(&to, "%s/index", dir);
    enum err err = files_copy(strbuf_text(&from), strbuf_text(&to), 0600, diag);
    strbuf_release(&from);
    strbuf_release(&to);
    return err;
}
