/* SPDX-License-Identifier: MIT */
/*
 * Sessions may do anything to the repository of a submodule, so it is removed
 * and created again whenever its checkout is entered. Its files stay: the index
 * is filled from the commit and refreshed, and git rewrites only files that
 * differ.
 *
 * Fetched objects are in bare repositories in the directory .modules next to
 * the checkouts of a run; nothing refers to them, and no gc runs there. A URL
 * from .gitmodules may not name a file of this machine, because any session can
 * write it; the user's own configuration may.
 */
#include "git/submodule.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "git/copy.h"
#include "git/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEVELS_MAX = 1000, DEPTH_MAX = 10 };

static const char mode[] = "160000 "; /* of a submodule in the index */

/* A repository whose submodules are checked out. */
struct level {
    const char *path;   /* in the checkout; absolute */
    const char *source; /* git directory of the user's copy, or NULL */
    const char *tree;   /* its files, or NULL */
    const char *label;  /* names of the submodules up to here, or "" */
    uint32_t depth;
};

/* One submodule of a level. */
struct module {
    const char *name;
    const char *path; /* relative to its level */
    const char *url;  /* or NULL */
    bool off;         /* update = none */
};

struct walk {
    const struct setup *setup;
    struct arena arena;
    struct level *levels;
    uint32_t count;
    uint32_t capacity;
};

/* A submodule that is being checked out. */
struct entry {
    struct walk *walk;
    const struct level *level;
    const struct module *module;
    const char *label;  /* for messages */
    const char *path;   /* absolute */
    const char *source; /* git directory of the user's copy, or NULL */
    const char *cache;  /* repository for fetched objects */
    struct git_id commit;
};

static const char *format(struct arena *arena, const char *text, ...)
    PRINTF_LIKE(2, 3);
static const char *format(struct arena *arena, const char *text, ...)
{
    va_list args;
    va_list again;
    va_start(args, text);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, text, args);
    INVARIANT(len >= 0);
    char *copy = arena_alloc(arena, (size_t)len + 1, 1);
    (void)vsnprintf(copy, (size_t)len + 1, text, again);
    va_end(again);
    va_end(args);
    return copy;
}

static bool is_dir(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Whether a name or path stays inside its directory, and out of ".git". */
static bool is_inside(const char *path)
{
    const char *at = path;
    bool good = *at != '\0' && *at != '/' && strchr(path, '\n') == NULL;
    while (good && *at != '\0') {
        size_t len = strcspn(at, "/");
        good = len > 0 && !(len == 1 && at[0] == '.') &&
               !(len == 2 && strncmp(at, "..", 2) == 0) &&
               !(len == 4 && strncasecmp(at, ".git", 4) == 0);
        at += len + (at[len] == '/' ? 1 : 0);
    }
    return good;
}

/* Read one line that git prints in a directory; false: it fails. */
static bool ask(struct git *git,
                const char *folder,
                const char *const *args,
                struct strbuf *out)
{
    int code = 0;
    struct git_call call = {
        .args = args,
        .folder = folder,
        .output = out,
        .quiet = true,
        .codes = 128,
    };
    bool good = git_call(git, &call, &code, NULL) == ERR_OK && code == 0;
    while (out->len > 0 && out->text[out->len - 1] == '\n') {
        out->text[--out->len] = '\0';
    }
    return good;
}

/* Call git in the directory of a submodule. */
static enum err in_entry(const struct entry *entry,
                         const char *const *args,
                         int codes,
                         struct diag *diag)
{
    struct git_call call = {
        .args = args,
        .folder = entry->path,
        .codes = codes,
    };
    return git_call(entry->walk->setup->git, &call, NULL, diag);
}

/* --- .gitmodules ---------------------------------------------------------- */

/* Return the submodule of that name, or NULL. */
static struct module *find_module(struct module *modules,
                                  uint32_t count,
                                  const char *name,
                                  size_t len)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        if (strlen(modules[ix].name) == len &&
            memcmp(modules[ix].name, name, len) == 0) {
            return &modules[ix];
        }
    }
    return NULL;
}

/* Take "submodule.NAME.KEY\nVALUE". */
static void take_value(struct walk *walk,
                       char *line,
                       struct module **modules,
                       uint32_t *count,
                       uint32_t *capacity)
{
    static const char head[] = "submodule.";
    size_t key_len = strcspn(line, "\n");
    const char *value = line[key_len] == '\n' ? line + key_len + 1 : "";
    line[key_len] = '\0';
    const char *name = line + strlen(head);
    const char *key = strrchr(line, '.');
    if (strncmp(line, head, strlen(head)) != 0 || key <= name) {
        return;
    }
    size_t len = (size_t)(key - name);
    struct module *module = find_module(*modules, *count, name, len);
    if (module == NULL) {
        MEM_GROW(*modules, *count, *capacity);
        module = &(*modules)[(*count)++];
        *module = (struct module){
            .name = arena_strndup(&walk->arena, name, len),
        };
    }
    const char *copy = arena_strndup(&walk->arena, value, strlen(value));
    if (strcmp(key, ".path") == 0) {
        module->path = copy;
    } else if (strcmp(key, ".url") == 0) {
        module->url = copy;
    } else if (strcmp(key, ".update") == 0) {
        module->off = strcmp(value, "none") == 0;
    }
}

/* Read .gitmodules of a level; *out is for mem_free(). */
static enum err read_modules(struct walk *walk,
                             const struct level *level,
                             struct module **out,
                             uint32_t *count_out,
                             struct diag *diag)
{
    struct strbuf list = {0};
    uint32_t capacity = 0;
    *out = NULL;
    *count_out = 0;
    if (!is_file(format(&walk->arena, "%s/.gitmodules", level->path))) {
        return ERR_OK;
    }
    struct git_call call = {
        .args = PROC_ARGS("config",
                          "--file",
                          ".gitmodules",
                          "-z",
                          "--get-regexp",
                          "^submodule\\..*\\.(path|url|update)$"),
        .folder = level->path,
        .output = &list,
        .codes = 1,
    };
    enum err err = git_call(walk->setup->git, &call, NULL, diag);
    for (size_t at = 0; err == ERR_OK && at < list.len;) {
        size_t len = strlen(list.text + at);
        take_value(walk, list.text + at, out, count_out, &capacity);
        at += len + 1;
    }
    strbuf_release(&list);
    return err;
}

/* Find the commit of a submodule in the index; "": it is none. */
static enum err find_commit(struct entry *entry, struct diag *diag)
{
    struct strbuf text = {0};
    struct git_call call = {
        .args = PROC_ARGS("ls-files",
                          "--stage",
                          "-z",
                          "--",
                          format(&entry->walk->arena,
                                 ":(top,literal)%s",
                                 entry->module->path)),
        .folder = entry->level->path,
        .output = &text,
    };
    enum err err = git_call(entry->walk->setup->git, &call, NULL, diag);
    const char *line = strbuf_text(&text);
    const char *tab = strchr(line, '\t');
    if (err == ERR_OK && strncmp(line, mode, strlen(mode)) == 0 &&
        tab != NULL && strcmp(tab + 1, entry->module->path) == 0) {
        size_t len = strcspn(line + strlen(mode), " ");
        if (len < sizeof(entry->commit.text)) {
            memcpy(entry->commit.text, line + strlen(mode), len);
            entry->commit.text[len] = '\0';
        }
    }
    strbuf_release(&text);
    return err;
}

/* --- the user's copy ------------------------------------------------------ */

/* Return the git directory of the user's copy, or NULL. */
static const char *find_source(const struct entry *entry)
{
    struct arena *arena = &entry->walk->arena;
    const struct level *level = entry->level;
    const char *path = NULL;
    if (level->source != NULL) {
        path =
            format(arena, "%s/modules/%s", level->source, entry->module->name);
    }
    if ((path == NULL || !is_dir(format(arena, "%s/objects", path))) &&
        level->tree != NULL) { /* an old submodule has its own .git */
        path = format(arena, "%s/%s/.git", level->tree, entry->module->path);
    }
    return path != NULL && is_dir(format(arena, "%s/objects", path)) ? path
                                                                     : NULL;
}

/* Find the URL in the user's configuration of the level; false: none. */
static bool find_own_url(const struct entry *entry, struct strbuf *out)
{
    struct arena *arena = &entry->walk->arena;
    if (entry->level->source == NULL) {
        return false;
    }
    return ask(entry->walk->setup->git,
               NULL,
               PROC_ARGS(
                   "config",
                   "--file",
                   format(arena, "%s/config", entry->level->source),
                   "--get",
                   format(arena, "submodule.%s.url", entry->module->name)),
               out) &&
           out->len > 0;
}

/* Whether the user has the submodule in the tree, but not initialised. */
static bool is_left_out(const struct entry *entry)
{
    struct git *git = entry->walk->setup->git;
    struct strbuf text = {0};
    const char *tree = entry->level->tree;
    bool known = tree != NULL &&
                 ask(git,
                     entry->level->depth > 0 ? tree : NULL,
                     PROC_ARGS("ls-tree",
                               "HEAD",
                               "--",
                               format(&entry->walk->arena,
                                      ":(top,literal)%s",
                                      entry->module->path)),
                     &text) &&
                 strncmp(strbuf_text(&text), "160000 ", 7) == 0;
    strbuf_release(&text);
    return known;
}

/* --- checking out --------------------------------------------------------- */

static enum err write_alternates(const struct entry *entry, struct diag *diag)
{
    struct strbuf text = {0};
    if (entry->source != NULL) {
        strbuf_addf(&text, "%s/objects\n", entry->source);
    }
    if (is_dir(entry->cache)) {
        strbuf_addf(&text, "%s/objects\n", entry->cache);
    }
    const char *path = format(&entry->walk->arena,
                              "%s/.git/objects/info/alternates",
                              entry->path);
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags, 0600);
    enum err err = ERR_OK;
    if (fd < 0 ||
        write(fd, strbuf_text(&text), text.len) != (ssize_t)text.len) {
        err = diag_set(diag, ERR_IO, "write %s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    strbuf_release(&text);
    return err;
}

/* Create an empty repository in a directory that exists. */
static enum err make_repository(const struct entry *entry,
                                const char *path,
                                bool bare,
                                struct diag *diag)
{
    struct git_call call = {
        .args =
            PROC_ARGS("init",
                      "--quiet",
                      "--template=",
                      "--initial-branch=main",
                      strlen(entry->commit.text) > 40 ? "--object-format=sha256"
                                                      : "--object-format=sha1",
                      bare ? "--bare" : "--quiet",
                      "--",
                      path),
    };
    return git_call(entry->walk->setup->git, &call, NULL, diag);
}

/* Make sure that the submodule's directory is one, and without repository. */
static enum err make_place(const struct entry *entry, struct diag *diag)
{
    int fd = copy_open_dir(entry->level->path, entry->module->path, true);
    if (fd < 0) {
        return diag_set(diag,
                        ERR_DENIED,
                        "submodule %s: cannot use %s: %s",
                        entry->label,
                        entry->path,
                        strerror(errno));
    }
    (void)close(fd);
    return copy_remove(format(&entry->walk->arena, "%s/.git", entry->path),
                       diag);
}

static bool has_commit(const struct entry *entry)
{
    struct strbuf text = {0};
    const char *name =
        format(&entry->walk->arena, "%s^{commit}", entry->commit.text);
    bool has = ask(entry->walk->setup->git,
                   entry->path,
                   PROC_ARGS("cat-file", "-e", name),
                   &text);
    strbuf_release(&text);
    return has;
}

static enum err fetch_from(const struct entry *entry,
                           const char *url,
                           const char *what,
                           bool own,
                           struct diag *diag)
{
    struct git_call call = {
        .args = PROC_ARGS("fetch",
                          "--quiet",
                          "--no-tags",
                          "--no-write-fetch-head",
                          "--no-auto-maintenance",
                          "--no-recurse-submodules",
                          "--",
                          url,
                          what),
        .folder = entry->cache,
        .dir = entry->cache,
        .quiet = true,
        .network = own ? GIT_REMOTE : GIT_FOREIGN,
    };
    return git_call(entry->walk->setup->git, &call, NULL, diag);
}

/* Fetch the commit into the cache; servers may allow only whole branches. */
static enum err fetch_commit(const struct entry *entry, struct diag *diag)
{
    struct strbuf url = {0};
    struct diag why = {0};
    bool own = find_own_url(entry, &url);
    if (!own && entry->module->url != NULL) {
        strbuf_adds(&url, entry->module->url);
    }
    if (mkdir(format(&entry->walk->arena,
                     "%.*s",
                     (int)(strrchr(entry->cache, '/') - entry->cache),
                     entry->cache),
              0700) != 0 &&
        errno != EEXIST) {
        log_line("make %s: %s", entry->cache, strerror(errno));
    }
    enum err err = ERR_OK;
    if (url.len == 0 || strncmp(url.text, "..", 2) == 0 || url.text[0] == '.') {
        err = diag_set(&why, ERR_INVALID, "it has no absolute URL");
    }
    if (err == ERR_OK) {
        err = make_repository(entry, entry->cache, true, &why);
    }
    if (err == ERR_OK) {
        log_line("submodule %s: fetching %s", entry->label, url.text);
        crash_point("submodule-before-fetch");
        err = fetch_from(entry, url.text, entry->commit.text, own, &why);
    }
    if (err == ERR_CONFLICT) {
        err = fetch_from(entry,
                         url.text,
                         "+refs/heads/*:refs/heads/*",
                         own,
                         &why);
    }
    crash_point("submodule-fetched");
    if (err == ERR_OK) {
        err = write_alternates(entry, diag);
    }
    if (err != ERR_OK || !has_commit(entry)) {
        err = diag_set(diag,
                       ERR_DENIED,
                       "submodule %s: commit %.12s is not in %s and cannot be "
                       "fetched: %s",
                       entry->label,
                       entry->commit.text,
                       git_path(entry->walk->setup->git),
                       why.text[0] != '\0' ? why.text : "the URL lacks it");
    }
    strbuf_release(&url);
    return err;
}

/* Bring the files to the commit; unchanged files are not written. */
static enum err check_out(const struct entry *entry, struct diag *diag)
{
    const char *id = entry->commit.text;
    bool all = entry->walk->setup->clean;
    enum err err = in_entry(entry,
                            PROC_ARGS("update-ref", "--no-deref", "HEAD", id),
                            0,
                            diag);
    if (err == ERR_OK) {
        err = in_entry(entry, PROC_ARGS("read-tree", id), 0, diag);
    }
    if (err == ERR_OK) {
        err = in_entry(entry,
                       PROC_ARGS("update-index", "-q", "--refresh"),
                       1,
                       diag);
    }
    if (err == ERR_OK) {
        crash_point("submodule-before-reset");
        err = in_entry(entry, PROC_ARGS("reset", "--quiet", "--hard"), 0, diag);
    }
    if (err == ERR_OK) {
        err = in_entry(entry,
                       PROC_ARGS("clean", "--quiet", all ? "-ffdx" : "-ffd"),
                       0,
                       diag);
    }
    return err;
}

/* Note the URL, so that git's own commands know the submodule and its remote;
 * without `remote: keep`, it cannot be pushed to. */
static enum err set_url(const struct entry *entry, struct diag *diag)
{
    struct strbuf url = {0};
    const char *level = entry->level->path;
    enum err err = ERR_OK;
    if (find_own_url(entry, &url)) {
        err = in_entry(entry,
                       PROC_ARGS("config", "remote.origin.url", url.text),
                       0,
                       diag);
        struct git_call call = {
            .args = PROC_ARGS("config",
                              format(&entry->walk->arena,
                                     "submodule.%s.url",
                                     entry->module->name),
                              url.text),
            .folder = level,
        };
        /* The checkout itself has the user's configuration. */
        if (err == ERR_OK && entry->level->depth > 0) {
            err = git_call(entry->walk->setup->git, &call, NULL, diag);
        }
    }
    if (err == ERR_OK && url.len > 0 &&
        !entry->walk->setup->options->remote_keep) {
        err = in_entry(
            entry,
            PROC_ARGS("config", "remote.origin.pushurl", "push-is-disabled"),
            0,
            diag);
    }
    strbuf_release(&url);
    return err;
}

/* Check out one submodule. */
static enum err enter_one(struct entry *entry, struct diag *diag)
{
    enum err err = make_place(entry, diag);
    if (err == ERR_OK) {
        crash_point("submodule-removed");
        err = make_repository(entry, entry->path, false, diag);
    }
    if (err == ERR_OK) {
        err = mkdir(format(&entry->walk->arena,
                           "%s/.git/objects/info",
                           entry->path),
                    0700) == 0 ||
                      errno == EEXIST
                  ? write_alternates(entry, diag)
                  : diag_set(diag,
                             ERR_IO,
                             "make %s: %s",
                             entry->path,
                             strerror(errno));
    }
    if (err == ERR_OK && !has_commit(entry)) {
        err = fetch_commit(entry, diag);
    }
    if (err == ERR_OK) {
        err = check_out(entry, diag);
    }
    if (err == ERR_OK) {
        err = set_url(entry, diag);
    }
    return err;
}

static enum err push_level(const struct entry *entry, struct diag *diag)
{
    struct walk *walk = entry->walk;
    if (walk->count >= LEVELS_MAX || entry->level->depth >= DEPTH_MAX) {
        return diag_set(diag,
                        ERR_DENIED,
                        "submodule %s: too many submodules",
                        entry->label);
    }
    struct level level = {
        .path = entry->path,
        .source = entry->source,
        .tree = entry->level->tree != NULL ? format(&walk->arena,
                                                    "%s/%s",
                                                    entry->level->tree,
                                                    entry->module->path)
                                           : NULL,
        .label = entry->label,
        .depth = entry->level->depth + 1,
    };
    if (level.tree != NULL && !is_dir(level.tree)) {
        level.tree = NULL;
    }
    MEM_GROW(walk->levels, walk->count, walk->capacity);
    walk->levels[walk->count++] = level;
    return ERR_OK;
}

/* Append the directory of all fetched submodules. */
static const char *cache_of(struct walk *walk, const char *label)
{
    struct strbuf path = {0};
    const char *checkout = walk->setup->path;
    strbuf_add(&path, checkout, (size_t)(strrchr(checkout, '/') - checkout));
    strbuf_adds(&path, "/.modules/");
    names_add(&path, label);
    const char *copy = arena_strndup(&walk->arena, path.text, path.len);
    strbuf_release(&path);
    return copy;
}

static enum err enter_module(struct walk *walk,
                             const struct level *level,
                             const struct module *module,
                             struct diag *diag)
{
    struct strbuf url = {0};
    if (module->path == NULL || module->off || !is_inside(module->path) ||
        !is_inside(module->name)) {
        return ERR_OK;
    }
    struct entry entry = {
        .walk = walk,
        .level = level,
        .module = module,
        .label = format(&walk->arena,
                        "%s%s%s",
                        level->label,
                        level->label[0] != '\0' ? "/" : "",
                        module->name),
        .path = format(&walk->arena, "%s/%s", level->path, module->path),
    };
    entry.cache = cache_of(walk, entry.label);
    entry.source = find_source(&entry);
    enum err err = find_commit(&entry, diag);
    if (err != ERR_OK || entry.commit.text[0] == '\0') {
        return err;
    }
    bool own = entry.source != NULL || find_own_url(&entry, &url);
    strbuf_release(&url);
    if (!own && is_left_out(&entry)) {
        log_line("submodule %s is not initialised in %s: it stays empty",
                 entry.label,
                 git_path(walk->setup->git));
        return ERR_OK;
    }
    err = enter_one(&entry, diag);
    return err == ERR_OK ? push_level(&entry, diag) : err;
}

static void begin_walk(struct walk *walk, const struct setup *setup)
{
    const char *tree = git_path(setup->git);
    bool bare = strcmp(tree, git_common_dir(setup->git)) == 0;
    *walk = (struct walk){.setup = setup};
    MEM_GROW(walk->levels, walk->count, walk->capacity);
    walk->levels[walk->count++] = (struct level){
        .path = setup->path,
        .source = git_common_dir(setup->git),
        .tree = bare ? NULL : tree,
        .label = "",
    };
}

static void end_walk(struct walk *walk)
{
    mem_free(walk->levels);
    arena_release(&walk->arena);
}

static bool is_entered(const struct walk *walk, const char *path)
{
    for (uint32_t ix = 0; ix < walk->count; ix++) {
        if (strcmp(walk->levels[ix].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* Empty a directory of the level; a link is none. */
static enum err
empty(const struct level *level, const char *path, struct diag *diag)
{
    struct strbuf name = {0};
    int fd = is_inside(path) ? copy_open_dir(level->path, path, false) : -1;
    if (fd < 0) {
        return ERR_OK;
    }
    (void)close(fd);
    strbuf_addf(&name, "%s/%s", level->path, path);
    enum err err = copy_remove(strbuf_text(&name), diag);
    if (err == ERR_OK && mkdir(strbuf_text(&name), 0777) != 0) {
        err = diag_set(diag,
                       ERR_IO,
                       "make %s: %s",
                       strbuf_text(&name),
                       strerror(errno));
    }
    strbuf_release(&name);
    return err;
}

/* Empty the directories of submodules that are not checked out: git neither
 * resets nor cleans them. */
static enum err
empty_others(struct walk *walk, const struct level *level, struct diag *diag)
{
    struct strbuf list = {0};
    struct git_call call = {
        .args = PROC_ARGS("ls-files", "--stage", "-z"),
        .folder = level->path,
        .output = &list,
    };
    enum err err = git_call(walk->setup->git, &call, NULL, diag);
    for (size_t at = 0; err == ERR_OK && at < list.len;
         at += strlen(list.text + at) + 1) {
        const char *line = list.text + at;
        const char *tab = strchr(line, '\t');
        if (strncmp(line, mode, strlen(mode)) == 0 && tab != NULL &&
            !is_entered(walk,
                        format(&walk->arena, "%s/%s", level->path, tab + 1))) {
            err = empty(level, tab + 1, diag);
        }
    }
    strbuf_release(&list);
    return err;
}

enum err submodule_enter(const struct setup *setup, struct diag *diag)
{
    struct walk walk;
    begin_walk(&walk, setup);
    enum err err = ERR_OK;
    for (uint32_t ix = 0; err == ERR_OK && ix < walk.count; ix++) {
        struct level level = walk.levels[ix]; /* the array may move */
        struct module *modules;
        uint32_t count;
        err = read_modules(&walk, &level, &modules, &count, diag);
        for (uint32_t n = 0; err == ERR_OK && n < count; n++) {
            err = enter_module(&walk, &level, &modules[n], diag);
        }
        mem_free(modules);
        if (err == ERR_OK && setup->clean && !setup->fresh) {
            err = empty_others(&walk, &level, diag);
        }
    }
    end_walk(&walk);
    return err;
}

/* Whether the commit that is checked out in a submodule is a loose object of
 * its own, not borrowed: then a session has made it. */
static bool has_own_commit(struct walk *walk, const char *path)
{
    struct strbuf head = {0};
    bool own =
        is_dir(format(&walk->arena, "%s/.git/objects", path)) &&
        ask(walk->setup->git, path, PROC_ARGS("rev-parse", "HEAD"), &head) &&
        head.len > 2 &&
        is_file(format(&walk->arena,
                       "%s/.git/objects/%.2s/%s",
                       path,
                       head.text,
                       head.text + 2));
    strbuf_release(&head);
    return own;
}

void submodule_tell(const struct setup *setup)
{
    struct walk walk;
    begin_walk(&walk, setup);
    struct module *modules;
    uint32_t count;
    if (read_modules(&walk, &walk.levels[0], &modules, &count, NULL) !=
        ERR_OK) {
        count = 0;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        const char *path = modules[ix].path;
        if (path != NULL && is_inside(path) &&
            has_own_commit(&walk,
                           format(&walk.arena, "%s/%s", setup->path, path))) {
            log_line("submodule %s: its new commits are not kept; push them "
                     "to its remote",
                     modules[ix].name);
        }
    }
    mem_free(modules);
    end_walk(&walk);
}

void submodule_forget(const char *folder)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/.modules", folder);
    (void)!copy_remove(strbuf_text(&path), NULL);
    strbuf_release(&path);
}
