/* SPDX-License-Identifier: MIT */
/*
 * Copied files are ignored through info/exclude of the checkout's own
 * repository. A .gitignore in the tree has precedence and may include them
 * again, so git is asked afterwards: a copy that it does not ignore is removed.
 * In a worktree, which shares info/exclude with the user's repository, only
 * .gitignore decides.
 *
 * A directory with tracked files is excluded file by file, because a session
 * may add others to it. A directory without is excluded as a whole, and is an
 * exact copy: else a gate would see what a session left in it.
 *
 * The mark of a prepare command (.NAME.prepared-HASH next to the checkout NAME)
 * is the command and the untracked paths that it made, each with a NUL. It is
 * written after the command has succeeded and replaced by rename(), so after a
 * kill the command runs again. The lock file (.NAME.preparing) has the command
 * and the untracked paths before its first, unsuccessful run.
 */
#include "git/setup.h"

#include "base/crash.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "git/copy.h"
#include "git/lfs.h"
#include "git/log.h"
#include "git/submodule.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    TEXT_BYTES_MAX = 1 << 24, /* of a file that is read whole */
    FIXED_ARGS = 8,
    TOLD_MAX = 5,     /* paths named in a message */
    HASH_DIGITS = 16, /* of a mark */
};

/* A path of `copy`. */
struct item {
    const char *path;
    struct copy_list list;
    bool mixed; /* a directory with tracked files */
    bool skip;
};

/* All of them. */
struct items {
    struct item at[CHECKOUT_PATHS_MAX];
    size_t count;
    struct strbuf tracked; /* paths, each with a NUL */
    struct strmap is_tracked;
    bool quiet; /* the reasons were logged before */
};

void setup_add_beside(struct strbuf *out, const char *path, const char *end)
{
    const char *name = strrchr(path, '/') + 1;
    strbuf_addf(out, "%.*s.%s.%s", (int)(name - path), path, name, end);
}

/* Whether a file name ends so after ".NAME."; another checkout may be called
 * NAME.OTHER. */
static bool is_own_end(const char *end)
{
    static const char *const ends[] = {"copying", "prepared.new", "preparing"};
    static const char mark[] = "prepared-";
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        if (strcmp(end, ends[ix]) == 0) {
            return true;
        }
    }
    return strncmp(end, mark, strlen(mark)) == 0 &&
           strspn(end + strlen(mark), "0123456789abcdef") == HASH_DIGITS &&
           strlen(end) == strlen(mark) + HASH_DIGITS;
}

void setup_forget(const char *path)
{
    struct strbuf stem = {0};
    setup_add_beside(&stem, path, "");
    size_t dir_len = (size_t)(strrchr(path, '/') - path);
    const char *name = strbuf_text(&stem) + dir_len + 1;
    char *slash = stem.text + dir_len;
    *slash = '\0';
    DIR *list = opendir(stem.text);
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, name, strlen(name)) == 0 &&
            is_own_end(entry->d_name + strlen(name))) {
            (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    strbuf_release(&stem);
}

void setup_add_pattern(struct strbuf *out, const char *path)
{
    strbuf_adds(out, "/");
    for (const char *at = path; *at != '\0'; at++) {
        bool special = strchr("*?[\\ ", *at) != NULL;
        /* A pattern cannot contain a line break: match any character. */
        bool control = (unsigned char)*at < ' ';
        strbuf_addf(out, "%s%c", special ? "\\" : "", control ? '?' : *at);
    }
}

/* Append a file's content; false: it does not exist or is no plain file. */
static bool read_whole(int dir, const char *name, struct strbuf *out)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(dir, name, flags);
    struct stat status;
    bool good = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    char chunk[4096];
    ssize_t got = 0;
    while (good && out->len < TEXT_BYTES_MAX &&
           (got = read(fd, chunk, sizeof(chunk))) > 0) {
        strbuf_add(out, chunk, (size_t)got);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return good && got == 0;
}

/* Replace the file `name` in a directory, through the file `temp`. */
static enum err replace(int dir,
                        const char *name,
                        const char *temp,
                        const struct strbuf *text,
                        struct diag *diag)
{
    (void)unlink(temp);
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(temp, flags, 0600);
    size_t done = 0;
    while (fd >= 0 && done < text->len) {
        ssize_t put = write(fd, text->text + done, text->len - done);
        if (put < 0 && errno != EINTR) {
            break;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    bool good = fd >= 0 && done == text->len;
    int cause = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    crash_point("setup-before-rename");
    if (good && renameat(AT_FDCWD, temp, dir, name) != 0) {
        good = false;
        cause = errno;
    }
    return good ? ERR_OK
                : diag_set(diag,
                           cause == ENOSPC ? ERR_UNAVAILABLE : ERR_IO,
                           "write %s: %s",
                           name,
                           strerror(cause));
}

/* --- copies --------------------------------------------------------------- */

/* Call git in a directory (NULL: the user's) with the paths of `copy` as
 * literal arguments, after `words`. */
static enum err call_with_paths(const struct setup *setup,
                                const char *folder,
                                const char *const *words,
                                struct strbuf *output,
                                struct diag *diag)
{
    const char *args[FIXED_ARGS + CHECKOUT_PATHS_MAX] = {NULL};
    struct arena arena = {0};
    struct strbuf text = {0};
    size_t count = 0;
    for (; words[count] != NULL; count++) {
        args[count] = words[count];
    }
    const struct checkout_paths *paths = &setup->options->copy;
    for (size_t ix = 0; ix < paths->count; ix++) {
        strbuf_clear(&text);
        strbuf_addf(&text, ":(top,literal)%s", paths->items[ix]);
        args[count++] = arena_strndup(&arena, text.text, text.len);
    }
    struct git_call call = {
        .args = args,
        .folder = folder,
        .output = output,
    };
    enum err err = git_call(setup->git, &call, NULL, diag);
    strbuf_release(&text);
    arena_release(&arena);
    return err;
}

/* Whether a path of the plan contains the checkout itself. */
static bool holds_checkout(const struct setup *setup, const char *path)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%s/%s", git_path(setup->git), path);
    char *real = realpath(strbuf_text(&text), NULL);
    size_t len = real != NULL ? strlen(real) : 0;
    bool holds = len > 0 && strncmp(setup->path, real, len) == 0 &&
                 (setup->path[len] == '/' || setup->path[len] == '\0');
    free(real);
    strbuf_release(&text);
    return holds;
}

/* Find the tracked files among the paths. */
static enum err
find_tracked(const struct setup *setup, struct items *items, struct diag *diag)
{
    enum err err = call_with_paths(setup,
                                   setup->path,
                                   PROC_ARGS("ls-files", "-z", "--"),
                                   &items->tracked,
                                   diag);
    for (size_t at = 0; err == ERR_OK && at < items->tracked.len;
         at += strlen(items->tracked.text + at) + 1) {
        (void)strmap_add(&items->is_tracked, items->tracked.text + at, 0);
    }
    return err;
}

/* Whether a path is tracked, or a directory above it: a submodule, a link. */
static bool is_tracked(const struct items *items, const char *path)
{
    size_t len = 0;
    do {
        len += strcspn(path + len + (len > 0 ? 1 : 0), "/") + (len > 0 ? 1 : 0);
        if (strmap_find(&items->is_tracked, path, len) != STRMAP_NONE) {
            return true;
        }
    } while (path[len] != '\0');
    return false;
}

static void tell(const struct items *items, const char *path, const char *why)
{
    if (!items->quiet) {
        log_line("not copied: %s%s%s", path, why[0] != '\0' ? ": " : "", why);
    }
}

/* Whether a tracked file is below the path. */
static bool has_tracked(const struct items *items, const char *path)
{
    size_t len = strlen(path);
    for (size_t at = 0; at < items->tracked.len;
         at += strlen(items->tracked.text + at) + 1) {
        const char *one = items->tracked.text + at;
        if (strncmp(one, path, len) == 0 && one[len] == '/') {
            return true;
        }
    }
    return false;
}

/* List the files of one path, and decide about each. */
static enum err list_item(const struct setup *setup,
                          const struct items *items,
                          struct item *item,
                          struct diag *diag)
{
    struct diag why = {0};
    enum err err = ERR_OK;
    if (is_tracked(items, item->path)) {
        err =
            diag_set(&why, ERR_DENIED, "%s: it is tracked by git", item->path);
    } else if (holds_checkout(setup, item->path)) {
        err = diag_set(&why,
                       ERR_DENIED,
                       "%s: it contains the checkout",
                       item->path);
    } else {
        err =
            copy_list_path(&item->list, git_path(setup->git), item->path, &why);
    }
    if (err == ERR_NOT_FOUND || err == ERR_DENIED) {
        tell(items, why.text, "");
        item->skip = true;
        return ERR_OK;
    }
    if (err != ERR_OK) {
        return diag_set(diag, err, "%s", why.text);
    }
    item->mixed = has_tracked(items, item->path);
    for (uint32_t ix = 0; ix < item->list.count; ix++) {
        struct copy_entry *entry = &item->list.entries[ix];
        entry->omit = is_tracked(items, entry->path);
        if (entry->omit) {
            tell(items, entry->path, "it is tracked by git");
        }
    }
    return ERR_OK;
}

static enum err
list_items(const struct setup *setup, struct items *items, struct diag *diag)
{
    const struct checkout_paths *paths = &setup->options->copy;
    enum err err = find_tracked(setup, items, diag);
    for (size_t ix = 0; err == ERR_OK && ix < paths->count; ix++) {
        struct item *item = &items->at[items->count++];
        item->path = paths->items[ix];
        err = list_item(setup, items, item, diag);
    }
    return err;
}

static void items_release(struct items *items)
{
    for (size_t ix = 0; ix < items->count; ix++) {
        copy_list_release(&items->at[ix].list);
    }
    strmap_release(&items->is_tracked);
    strbuf_release(&items->tracked);
}

static void add_excludes(struct strbuf *out, const struct item *item)
{
    for (uint32_t ix = 0; ix < item->list.count; ix++) {
        const struct copy_entry *entry = &item->list.entries[ix];
        bool whole = !item->mixed && ix == 0;
        bool single =
            item->mixed && !entry->omit && !S_ISDIR(entry->status.st_mode);
        if (whole || single) {
            setup_add_pattern(out, entry->path);
            strbuf_adds(out, "\n");
        }
    }
}

/* Write info/exclude of a git directory: the user's own, and the copies. */
static enum err write_excludes(const struct setup *setup,
                               const struct items *items,
                               const char *git_dir,
                               struct diag *diag)
{
    int dir = copy_open_dir(git_dir, "info", true);
    int from = copy_open_dir(git_common_dir(setup->git), "info", false);
    struct strbuf text = {0};
    struct strbuf old = {0};
    struct strbuf temp = {0};
    if (from >= 0) {
        (void)read_whole(from, "exclude", &text);
        (void)close(from);
    }
    strbuf_adds(&text,
                text.len > 0 && text.text[text.len - 1] != '\n' ? "\n" : "");
    for (size_t ix = 0; ix < items->count; ix++) {
        add_excludes(&text, &items->at[ix]);
    }
    setup_add_beside(&temp, setup->path, "copying");
    enum err err = ERR_OK;
    if (dir < 0) {
        err = diag_set(diag,
                       ERR_IO,
                       "open %s/info: %s",
                       git_dir,
                       strerror(errno));
    } else if (!read_whole(dir, "exclude", &old) || old.len != text.len ||
               (text.len > 0 && memcmp(old.text, text.text, text.len) != 0)) {
        err = replace(dir, "exclude", strbuf_text(&temp), &text, diag);
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    strbuf_release(&text);
    strbuf_release(&old);
    strbuf_release(&temp);
    return err;
}

/* Copy one path. Obstacles in the checkout are logged. */
static enum err
copy_item(const struct setup *setup, const struct item *item, struct diag *diag)
{
    struct strbuf temp = {0};
    struct diag why = {0};
    setup_add_beside(&temp, setup->path, "copying");
    struct copy_trees trees = {
        .from = git_path(setup->git),
        .to = setup->path,
        .temp = strbuf_text(&temp),
        .mirror = !item->mixed,
    };
    enum err err = copy_entries(&trees, &item->list, &why);
    (void)unlink(strbuf_text(&temp));
    strbuf_release(&temp);
    if (err == ERR_DENIED) {
        log_line("not copied: %s", why.text);
        return ERR_OK;
    }
    return err == ERR_OK ? ERR_OK : diag_set(diag, err, "%s", why.text);
}

/* Whether the path is one of the copies. */
static bool is_copy(const struct items *items, const char *path)
{
    for (size_t ix = 0; ix < items->count; ix++) {
        const struct copy_list *list = &items->at[ix].list;
        for (uint32_t n = 0; n < list->count; n++) {
            if (!list->entries[n].omit &&
                strcmp(list->entries[n].path, path) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Remove the copies that git does not ignore: they would be committed. */
static enum err remove_visible(const struct setup *setup,
                               const struct items *items,
                               struct diag *diag)
{
    struct strbuf list = {0};
    struct strbuf path = {0};
    enum err err = call_with_paths(
        setup,
        setup->path,
        PROC_ARGS("ls-files", "-z", "--others", "--exclude-standard", "--"),
        &list,
        diag);
    for (size_t at = 0; err == ERR_OK && at < list.len;
         at += strlen(list.text + at) + 1) {
        const char *one = list.text + at;
        if (!is_copy(items, one)) {
            continue;
        }
        log_line("not copied: %s: git does not ignore it here, so it could "
                 "be committed; add it to .gitignore",
                 one);
        strbuf_clear(&path);
        strbuf_addf(&path, "%s/%s", setup->path, one);
        err = copy_remove(path.text, diag);
    }
    strbuf_release(&list);
    strbuf_release(&path);
    return err;
}

enum err
setup_exclude(const struct setup *setup, const char *git_dir, struct diag *diag)
{
    struct items items = {.quiet = true};
    enum err err = ERR_OK;
    if (setup->options->copy.count > 0) {
        err = list_items(setup, &items, diag);
    }
    if (err == ERR_OK) {
        err = write_excludes(setup, &items, git_dir, diag);
    }
    items_release(&items);
    return err;
}

static enum err copy_all(const struct setup *setup, struct diag *diag)
{
    struct items items = {0};
    bool any = setup->options->copy.count > 0;
    struct strbuf git_dir = {0};
    struct stat status;
    enum err err = any ? list_items(setup, &items, diag) : ERR_OK;
    strbuf_addf(&git_dir, "%s/.git", setup->path);
    if (err == ERR_OK && lstat(git_dir.text, &status) == 0 &&
        S_ISDIR(status.st_mode)) {
        err = write_excludes(setup, &items, git_dir.text, diag);
        crash_point("setup-excluded");
    }
    strbuf_release(&git_dir);
    for (size_t ix = 0; err == ERR_OK && ix < items.count; ix++) {
        if (!items.at[ix].skip) {
            err = copy_item(setup, &items.at[ix], diag);
        }
    }
    if (err == ERR_OK && any) {
        crash_point("setup-copied");
        err = remove_visible(setup, &items, diag);
    }
    items_release(&items);
    return err;
}

enum err setup_check(const struct setup *setup,
                     const struct git_id *from,
                     const struct git_id *to,
                     struct diag *diag)
{
    struct strbuf list = {0};
    struct strbuf range = {0};
    struct strbuf told = {0};
    if (setup->options->copy.count == 0) {
        return ERR_OK;
    }
    strbuf_addf(&range, "%s..%s", from->text, to->text);
    enum err err = call_with_paths(setup,
                                   NULL,
                                   PROC_ARGS("log",
                                             "--format=",
                                             "--name-only",
                                             "--diff-filter=A",
                                             "-z",
                                             strbuf_text(&range),
                                             "--"),
                                   &list,
                                   diag);
    size_t count = 0;
    for (size_t at = 0; err == ERR_OK && at < list.len && count < TOLD_MAX;
         at += strlen(list.text + at) + 1) {
        struct copy_list source = {0};
        const char *path = list.text + at;
        /* A file that the user does not have is the session's own. */
        if (path[0] != '\0' &&
            copy_list_path(&source, git_path(setup->git), path, NULL) ==
                ERR_OK) {
            strbuf_addf(&told, "%s%s", count++ > 0 ? ", " : "", path);
        }
        copy_list_release(&source);
    }
    if (count > 0) {
        err = diag_set(diag,
                       ERR_CONFLICT,
                       "it committed copied files, which belong to no commit: "
                       "%s",
                       strbuf_text(&told));
    }
    strbuf_release(&list);
    strbuf_release(&range);
    strbuf_release(&told);
    return err;
}

/* --- prepare -------------------------------------------------------------- */

/* Append all untracked paths of the checkout, each with a NUL. */
static enum err
list_untracked(const struct setup *setup, struct strbuf *out, struct diag *diag)
{
    struct git_call call = {
        .args = PROC_ARGS("ls-files",
                          "-z",
                          "--others",
                          "--directory",
                          "--no-empty-directory"),
        .folder = setup->path,
        .output = out,
    };
    return git_call(setup->git, &call, NULL, diag);
}

/* Append the path of a command's mark. Its content tells commands with the same
 * hash (FNV-1a) apart. */
static void
add_mark(struct strbuf *out, const struct setup *setup, const char *command)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *at = command; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    }
    struct strbuf end = {0};
    strbuf_addf(&end, "prepared-%016" PRIx64, hash);
    setup_add_beside(out, setup->path, strbuf_text(&end));
    strbuf_release(&end);
}

/* Whether the mark is of this command, and all that it made is still there. */
static bool is_prepared(const struct setup *setup, const char *command)
{
    struct strbuf name = {0};
    struct strbuf text = {0};
    struct strbuf path = {0};
    add_mark(&name, setup, command);
    bool good = read_whole(AT_FDCWD, strbuf_text(&name), &text) &&
                text.len > 0 && text.text[text.len - 1] == '\0' &&
                strcmp(text.text, command) == 0;
    size_t at = good ? strlen(text.text) + 1 : 0;
    for (; good && at < text.len; at += strlen(text.text + at) + 1) {
        struct stat status;
        strbuf_clear(&path);
        strbuf_addf(&path, "%s/%s", setup->path, text.text + at);
        good = lstat(path.text, &status) == 0;
        if (!good) {
            log_line("%s is gone: preparing again", text.text + at);
        }
    }
    strbuf_release(&name);
    strbuf_release(&text);
    strbuf_release(&path);
    return good;
}

/* Write all of the bytes to the start of a file. */
static bool write_whole(int fd, const char *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t put = pwrite(fd, bytes + done, len - done, (off_t)done);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* Find the untracked paths before the first run of this command. */
static enum err
find_before(struct setup_prepare *prepare, const char *name, struct diag *diag)
{
    size_t len = strlen(prepare->command) + 1;
    struct strbuf text = {0};
    enum err err = ERR_OK;
    if (read_whole(AT_FDCWD, name, &text) && text.len >= len &&
        memcmp(text.text, prepare->command, len) == 0) {
        strbuf_add(&prepare->before, text.text + len, text.len - len);
    } else {
        strbuf_clear(&text);
        err = list_untracked(prepare->setup, &prepare->before, diag);
        strbuf_add(&text, prepare->command, len);
        strbuf_add(&text, strbuf_text(&prepare->before), prepare->before.len);
    }
    if (err == ERR_OK && (ftruncate(prepare->lock, 0) != 0 ||
                          !write_whole(prepare->lock, text.text, text.len))) {
        err = diag_set(diag,
                       errno == ENOSPC ? ERR_UNAVAILABLE : ERR_IO,
                       "write %s: %s",
                       name,
                       strerror(errno));
    }
    strbuf_release(&text);
    return err;
}

enum err setup_begin_prepare(struct setup_prepare *prepare,
                             const struct setup *setup,
                             const char *command,
                             bool *must_out,
                             struct diag *diag)
{
    *prepare = (struct setup_prepare){
        .setup = setup,
        .command = command,
        .lock = -1,
    };
    *must_out = true;
    if (!setup->options->once) {
        return ERR_OK;
    }
    struct strbuf name = {0};
    setup_add_beside(&name, setup->path, "preparing");
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    prepare->lock = open(strbuf_text(&name), flags, 0600);
    enum err err = ERR_OK;
    if (prepare->lock < 0 || !proc_lock(prepare->lock, LOCK_EX)) {
        err = diag_set(diag,
                       ERR_IO,
                       "lock %s: %s",
                       strbuf_text(&name),
                       strerror(errno));
    } else if (is_prepared(setup, command)) {
        *must_out = false;
    } else {
        err = find_before(prepare, strbuf_text(&name), diag);
        crash_point("setup-before-prepare");
    }
    strbuf_release(&name);
    return err;
}

/* Write the mark: the command, and the paths that are new. */
static enum err put_mark(struct setup_prepare *prepare, struct diag *diag)
{
    struct strbuf after = {0};
    struct strbuf text = {0};
    struct strmap known = {0};
    enum err err = list_untracked(prepare->setup, &after, diag);
    const struct strbuf *before = &prepare->before;
    /* A strbuf ends in a NUL, even if a kill has cut the list. */
    for (size_t at = 0; at < before->len; at += strlen(before->text + at) + 1) {
        (void)strmap_add(&known, before->text + at, 0);
    }
    strbuf_add(&text, prepare->command, strlen(prepare->command) + 1);
    for (size_t at = 0; err == ERR_OK && at < after.len;) {
        size_t len = strlen(after.text + at);
        if (strmap_find(&known, after.text + at, len) == STRMAP_NONE) {
            strbuf_add(&text, after.text + at, len + 1);
        }
        at += len + 1;
    }
    struct strbuf name = {0};
    struct strbuf temp = {0};
    add_mark(&name, prepare->setup, prepare->command);
    setup_add_beside(&temp, prepare->setup->path, "prepared.new");
    if (err == ERR_OK) {
        crash_point("setup-before-mark");
        err = replace(AT_FDCWD,
                      strbuf_text(&name),
                      strbuf_text(&temp),
                      &text,
                      diag);
        crash_point("setup-marked");
    }
    if (err == ERR_OK && ftruncate(prepare->lock, 0) != 0) {
        err = diag_set(diag, ERR_IO, "truncate: %s", strerror(errno));
    }
    strbuf_release(&name);
    strbuf_release(&temp);
    strbuf_release(&after);
    strbuf_release(&text);
    strmap_release(&known);
    return err;
}

enum err setup_end_prepare(struct setup_prepare *prepare,
                           bool succeeded,
                           struct diag *diag)
{
    enum err err = ERR_OK;
    if (succeeded && prepare->lock >= 0) {
        err = put_mark(prepare, diag);
    }
    if (prepare->lock >= 0) {
        (void)close(prepare->lock);
        prepare->lock = -1;
    }
    strbuf_release(&prepare->before);
    return err;
}

enum err setup_enter(const struct setup *setup, struct diag *diag)
{
    if (setup->fresh) {
        setup_forget(setup->path);
        crash_point("setup-forgotten");
    }
    enum err err = lfs_enter(setup, diag);
    if (err == ERR_OK) {
        err = submodule_enter(setup, diag);
    }
    return err == ERR_OK ? copy_all(setup, diag) : err;
}
