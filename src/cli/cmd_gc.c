/* SPDX-License-Identifier: MIT */
/*
 * sluice gc: remove attempt directories, worktrees and branches of finished
 * runs.
 *
 * Logs, results and other files below runs/ are removed. The history stays in
 * the store unless --rows is given (gc_rows.h). A directory is removed only
 * with positive evidence: the store knows its run, the run has finished, none
 * of its attempts is in flight, hooks have received all its events, no shim
 * holds a lock in it, and it finished long enough ago. A finished run never
 * starts a session and its id is never reused, so these facts stay true after
 * the check.
 *
 * Below the store, directories are opened relative to their parent and symbolic
 * links are not followed, because a session may have left any.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/strmap.h"
#include "cli/cli.h"
#include "cli/gc_rows.h"
#include "engine/engine.h"
#include "git/names.h"
#include "git/sweep.h"
#include "mcp/door.h"
#include "plan/twin.h"
#include "view/client.h"
#include "view/task_log.h"
#include "work/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEPTH_MAX = 64, /* nested directories */
};

/* Default time to keep files after a run has finished. */
#define KEEP_NS DAY_NS

/* Directories of programs of the plan that are not sessions. */
static const char *const program_folders[] = {".hooks", ".sync", ".usage"};

/* Amount removed. */
struct tally {
    uint32_t attempts;
    uint64_t bytes;
};

struct gc {
    struct cli_line line;
    bool dry;
    int64_t keep_ns;
    int64_t rows_ns; /* -1: keep rows */
    struct store_place place;
    struct store *store;
    struct strbuf text;    /* report */
    struct strbuf removed; /* lists of the JSON report */
    struct strbuf kept;
    uint64_t bytes;
    bool failed;
};

/* --- state in the store ------------------------------------------------- */

/* A run. Starts as {0}. */
struct known {
    bool found;
    bool finished;
    uint32_t number;
    uint32_t in_flight;
    uint32_t notices;    /* events not yet delivered to hooks */
    int64_t last_ns;     /* wall clock of the last change */
    struct strmap names; /* task directories */
    struct arena texts;
};

static void release_known(struct known *known)
{
    strmap_release(&known->names);
    arena_release(&known->texts);
}

static enum err on_run(void *ctx, const struct store_run *row)
{
    struct known *known = ctx;
    known->found = true;
    known->finished = row->finished;
    known->number = row->number;
    known->last_ns = row->created_ns;
    return ERR_OK;
}

static enum err on_task(void *ctx, const struct store_task *row)
{
    struct known *known = ctx;
    struct strbuf path = {0};
    home_add_attempt(&path, "", "", row->id, 1);
    /* "/runs//NAME/1" */
    path.text[path.len - 2] = '\0';
    const char *name = strrchr(path.text, '/') + 1;
    (void)strmap_add(&known->names,
                     arena_strndup(&known->texts, name, strlen(name)),
                     row->ix);
    strbuf_release(&path);
    return ERR_OK;
}

static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct known *known = ctx;
    known->in_flight += strcmp(row->state, "ended") == 0 ? 0 : 1;
    if (row->ended_ns > known->last_ns) {
        known->last_ns = row->ended_ns;
    }
    return ERR_OK;
}

/* Count the events not yet delivered to hooks: "notice/RUN/EVENT". */
static enum err on_setting(void *ctx, const struct store_setting *row)
{
    struct known *known = ctx;
    static const char prefix[] = "notice/";
    if (strncmp(row->name, prefix, strlen(prefix)) == 0 &&
        strtoul(row->name + strlen(prefix), NULL, 10) == known->number) {
        known->notices++;
    }
    return ERR_OK;
}

static enum err ask_store(const struct gc *gc,
                          const char *run,
                          struct known *out,
                          struct diag *diag)
{
    static const struct store_visitor visitor = {
        .run = on_run,
        .task = on_task,
        .attempt = on_attempt,
        .setting = on_setting,
    };
    struct store_query query = {.finished = true, .run = run, .ended = true};
    return store_read(gc->store, &query, &visitor, out, NULL, diag);
}

/* --- report ------------------------------------------------------------- */

static void add_bytes(struct strbuf *out, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 10240 && unit + 1 < ARRAY_COUNT(units)) {
        bytes = (bytes + 512) / 1024;
        unit++;
    }
    strbuf_addf(out, "%llu %s", (unsigned long long)bytes, units[unit]);
}

/* Begin an entry of a JSON list. */
static struct jsonw begin_entry(struct strbuf *list)
{
    struct jsonw json = {.out = list, .spaced = true};
    jsonw_item(&json, 2);
    return json;
}

static void tell_removed(struct gc *gc, const char *run, struct tally tally)
{
    gc->bytes += tally.bytes;
    strbuf_adds(&gc->text, gc->dry ? "would remove " : "removed ");
    plain_add(&gc->text, run);
    strbuf_addf(&gc->text,
                ": %u attempt%s, ",
                tally.attempts,
                tally.attempts == 1 ? "" : "s");
    add_bytes(&gc->text, tally.bytes);
    strbuf_adds(&gc->text, "\n");
    struct jsonw json = begin_entry(&gc->removed);
    jsonw_text(&json, "run", run);
    jsonw_int(&json, "attempts", tally.attempts);
    jsonw_int(&json, "bytes", (int64_t)tally.bytes);
    jsonw_object_end(&json);
}

/* Report that `path`, below runs/, stays. */
static void tell_kept(struct gc *gc, const char *path, const char *reason)
{
    struct strbuf name = {0};
    plain_add(&name, path); /* untrusted bytes */
    strbuf_addf(&gc->text, "kept %s: %s\n", strbuf_text(&name), reason);
    struct jsonw json = begin_entry(&gc->kept);
    jsonw_text(&json, "path", strbuf_text(&name));
    jsonw_text(&json, "reason", reason);
    jsonw_object_end(&json);
    strbuf_release(&name);
}

/* Report a failed removal. */
static void tell_failed(struct gc *gc, const char *path, int error)
{
    gc->failed = true;
    tell_kept(gc, path, strerror(error));
}

static int print_report(const struct gc *gc)
{
    struct strbuf out = {0};
    if (gc->line.json) {
        struct jsonw json = {.out = &out, .spaced = true};
        jsonw_object(&json, NULL);
        jsonw_bool(&json, "dry_run", gc->dry);
        jsonw_int(&json, "bytes", (int64_t)gc->bytes);
        jsonw_list(&json, 1, "removed");
        jsonw_raw(&json, NULL, strbuf_text(&gc->removed));
        jsonw_array_end(&json);
        jsonw_list(&json, 1, "kept");
        jsonw_raw(&json, NULL, strbuf_text(&gc->kept));
        jsonw_array_end(&json);
        jsonw_finish(&json);
    } else {
        strbuf_adds(&out,
                    gc->text.len > 0 ? strbuf_text(&gc->text)
                                     : "nothing to remove\n");
    }
    int code = cli_print(&out);
    return code == CLI_OK && gc->failed ? CLI_NOT_ALL_DONE : code;
}

/* --- removing a directory ----------------------------------------------- */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Return the next entry other than "." and ".."; NULL after the last or, with
 * *error set, on failure. */
static const struct dirent *next_entry(DIR *dir, int *error)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            *error = errno;
        }
        if (entry == NULL || !is_dots(entry->d_name)) {
            return entry;
        }
    }
}

/* Open a subdirectory for reading; on failure, return NULL and set errno. */
static DIR *open_beneath(int parent_fd, const char *name)
{
    int fd = openat(parent_fd,
                    name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int error = errno;
        (void)close(fd);
        errno = error;
    }
    return dir;
}

/* The directory being removed, with the open directories above it. */
struct walk {
    int top_fd;
    dev_t device;
    bool dry;
    struct {
        DIR *dir;
        char *name;
        uint64_t bytes;
    } levels[DEPTH_MAX];
    uint32_t depth;
    uint64_t bytes; /* removed, or to be removed in a dry run */
};

/* Enter a directory; return 0 or an errno. */
static int enter(struct walk *walk, int parent_fd, const char *name)
{
    if (walk->depth == DEPTH_MAX) {
        return ELOOP;
    }
    DIR *dir = open_beneath(parent_fd, name);
    struct stat stat;
    if (dir == NULL) {
        return errno;
    }
    int error = fstat(dirfd(dir), &stat) == 0 ? 0 : errno;
    if (error == 0 && stat.st_dev != walk->device) {
        error = EXDEV; /* a mount point */
    }
    if (error != 0) {
        (void)closedir(dir);
        return error;
    }
    walk->levels[walk->depth].bytes = (uint64_t)stat.st_blocks * 512;
    walk->levels[walk->depth].dir = dir;
    walk->levels[walk->depth].name = mem_strndup(name, strlen(name));
    walk->depth++;
    return 0;
}

/* Leave the innermost directory, and remove it if `whole` and not a dry run.
 * Return 0 or an errno. */
static int leave(struct walk *walk, bool whole)
{
    walk->depth--;
    (void)closedir(walk->levels[walk->depth].dir);
    int parent_fd = walk->depth > 0 ? dirfd(walk->levels[walk->depth - 1].dir)
                                    : walk->top_fd;
    int error = 0;
    if (whole && !walk->dry &&
        unlinkat(parent_fd, walk->levels[walk->depth].name, AT_REMOVEDIR) !=
            0) {
        error = errno;
    }
    walk->bytes += whole && error == 0 ? walk->levels[walk->depth].bytes : 0;
    mem_free(walk->levels[walk->depth].name);
    return error;
}

/* Remove or enter an entry of the innermost directory; 0 or an errno. */
static int take_entry(struct walk *walk, const char *name)
{
    int fd = dirfd(walk->levels[walk->depth - 1].dir);
    struct stat stat;
    if (fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : errno;
    }
    if (S_ISDIR(stat.st_mode)) {
        return enter(walk, fd, name);
    }
    if (!walk->dry && unlinkat(fd, name, 0) != 0) {
        return errno;
    }
    walk->bytes += (uint64_t)stat.st_blocks * 512;
    return 0;
}

/* Remove a directory tree and count the bytes. Return 0 or an errno. */
static int remove_tree(int top_fd, const char *name, bool dry, uint64_t *bytes)
{
    struct stat stat;
    if (fstat(top_fd, &stat) != 0) {
        return errno;
    }
    struct walk walk = {
        .top_fd = top_fd,
        .device = stat.st_dev,
        .dry = dry,
    };
    int error = enter(&walk, top_fd, name);
    while (error == 0 && walk.depth > 0) {
        const struct dirent *entry =
            next_entry(walk.levels[walk.depth - 1].dir, &error);
        if (entry != NULL) {
            error = take_entry(&walk, entry->d_name);
        } else if (error == 0) {
            error = leave(&walk, true);
        }
    }
    while (walk.depth > 0) {
        (void)leave(&walk, false);
    }
    *bytes += walk.bytes;
    return error;
}

/* --- run directory ------------------------------------------------------ */

/* A run directory being processed. */
struct folder {
    struct gc *gc;
    const char *run;
    struct known known;
    DIR *dir;
    struct tally tally;
    bool kept; /* an entry stays */
};

static bool is_known(const struct folder *folder, const char *name)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(program_folders); ix++) {
        if (strcmp(name, program_folders[ix]) == 0) {
            return true;
        }
    }
    return strmap_find(&folder->known.names, name, strlen(name)) != STRMAP_NONE;
}

/* Whether the shim of an attempt is alive; true if that is unknown. */
static bool
is_live(const struct folder *folder, const char *task, const char *attempt)
{
    struct strbuf path = {0};
    strbuf_addf(&path,
                "%s/runs/%s/%s/%s",
                folder->gc->place.home,
                folder->run,
                task,
                attempt);
    bool live = !task_log_is_over(strbuf_text(&path), NULL);
    strbuf_release(&path);
    return live;
}

/* Whether all attempts of a task are known to be dead. */
static bool is_task_quiet(const struct folder *folder, const char *task)
{
    DIR *dir = open_beneath(dirfd(folder->dir), task);
    if (dir == NULL) {
        return errno == ENOTDIR || errno == ELOOP; /* not created by sluice */
    }
    const struct dirent *entry;
    bool live = false;
    int error = 0;
    while (!live && (entry = next_entry(dir, &error)) != NULL) {
        live = is_live(folder, task, entry->d_name);
    }
    (void)closedir(dir);
    return !live && error == 0;
}

/* Count the attempt directories of a task. */
static uint32_t count_attempts(const struct folder *folder, const char *task)
{
    DIR *dir = open_beneath(dirfd(folder->dir), task);
    uint32_t count = 0;
    int error = 0;
    while (dir != NULL && next_entry(dir, &error) != NULL) {
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Whether no session runs in the directory. */
static bool is_quiet(struct folder *folder)
{
    bool quiet = true;
    int error = 0;
    const struct dirent *entry;
    while (quiet && (entry = next_entry(folder->dir, &error)) != NULL) {
        if (is_known(folder, entry->d_name)) {
            quiet = is_task_quiet(folder, entry->d_name);
        }
    }
    rewinddir(folder->dir);
    return quiet && error == 0;
}

static void keep_entry(struct folder *folder, const char *name, int error)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", folder->run, name);
    folder->kept = true;
    if (error != 0) {
        tell_failed(folder->gc, strbuf_text(&path), error);
    } else {
        tell_kept(folder->gc, strbuf_text(&path), "no such task in the store");
    }
    strbuf_release(&path);
}

/* Remove a task directory and count the removed part, even after an error.
 * Return 0 or an errno. */
static int remove_task(struct folder *folder, const char *name)
{
    uint32_t before = count_attempts(folder, name);
    int error = remove_tree(dirfd(folder->dir),
                            name,
                            folder->gc->dry,
                            &folder->tally.bytes);
    uint32_t left = error != 0 ? count_attempts(folder, name) : 0;
    folder->tally.attempts += before > left ? before - left : 0;
    return error;
}

static void remove_folder(struct folder *folder, int runs_fd)
{
    const struct gc *gc = folder->gc;
    const struct dirent *entry;
    int error = 0;
    while ((entry = next_entry(folder->dir, &error)) != NULL) {
        bool known = is_known(folder, entry->d_name);
        int failed = known ? remove_task(folder, entry->d_name) : 0;
        if (!known || failed != 0) {
            keep_entry(folder, entry->d_name, failed);
        }
    }
    if (error == 0 && !gc->dry && !folder->kept &&
        unlinkat(runs_fd, folder->run, AT_REMOVEDIR) != 0) {
        error = errno;
    }
    if (error != 0) {
        tell_failed(folder->gc, folder->run, error);
    }
    if (!folder->kept || folder->tally.attempts > 0) {
        tell_removed(folder->gc, folder->run, folder->tally);
    }
}

/* Return why a run must stay; NULL: it can be removed. */
static const char *
why_kept(const struct gc *gc, const struct known *known, struct strbuf *text)
{
    int64_t since_ns = clock_wall_ns() - known->last_ns;
    if (!known->found) {
        return "no such run in the store";
    }
    if (!known->finished) {
        return "the run has not finished";
    }
    if (known->in_flight > 0) {
        return "an attempt is in flight: check with 'sluice doctor'";
    }
    if (known->notices > 0) {
        return "an event is not yet delivered to a hook";
    }
    if (since_ns < gc->keep_ns) {
        strbuf_adds(text, "it finished ");
        duration_add(text, since_ns > 0 ? since_ns : 0);
        strbuf_adds(text, " ago; --keep is ");
        duration_add(text, gc->keep_ns);
        return strbuf_text(text);
    }
    return NULL;
}

/* Process one entry of runs/. */
static enum err
take_run(struct gc *gc, int runs_fd, const char *name, struct diag *diag)
{
    struct folder folder = {.gc = gc, .run = name};
    struct strbuf text = {0};
    const char *reason = NULL;
    folder.dir = open_beneath(runs_fd, name);
    if (folder.dir == NULL) {
        bool other = errno == ENOTDIR || errno == ELOOP;
        if (other) {
            tell_kept(gc, name, "it is not a directory");
        } else {
            tell_failed(gc, name, errno);
        }
        return ERR_OK;
    }
    enum err err = ask_store(gc, name, &folder.known, diag);
    if (err == ERR_OK) {
        reason = why_kept(gc, &folder.known, &text);
        if (reason == NULL && !is_quiet(&folder)) {
            reason = "a session is still running in it";
        }
        if (reason != NULL) {
            tell_kept(gc, name, reason);
        } else {
            remove_folder(&folder, runs_fd);
        }
    }
    (void)closedir(folder.dir);
    release_known(&folder.known);
    strbuf_release(&text);
    return err;
}

/* --- worktrees and branches --------------------------------------------- */

/* Context of on_swept(): where to report, and whether anything stays. */
struct listener {
    struct gc *gc;
    bool kept;
};

/* Report a worktree or branch that was removed or, with `reason`, kept. */
static void on_swept(void *ctx, const char *what, const char *reason)
{
    struct listener *listener = ctx;
    struct gc *gc = listener->gc;
    if (reason != NULL) {
        listener->kept = true;
        tell_kept(gc, what, reason);
        return;
    }
    strbuf_adds(&gc->text, gc->dry ? "would remove " : "removed ");
    plain_add(&gc->text, what);
    strbuf_adds(&gc->text, "\n");
    struct jsonw json = begin_entry(&gc->removed);
    jsonw_text(&json, "git", what);
    jsonw_object_end(&json);
}

/* Remove the directory of the run's worktrees, if it is empty. */
static void remove_folders(const char *home, const char *run)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/worktrees/", home);
    names_add(&path, run);
    (void)rmdir(strbuf_text(&path));
    strbuf_release(&path);
}

/*
 * Sweep all repositories of a finished run (see git/sweep.h). Remove its
 * directory below worktrees/ only if nothing was kept: while it exists, each gc
 * sweeps the run again.
 */
static enum err sweep(struct gc *gc, const char *run, struct diag *diag)
{
    struct client_view view;
    struct store_query query = {.run = run};
    struct listener listener = {.gc = gc};
    char real[PATH_MAX]; /* git knows its worktrees by it */
    const char *home =
        realpath(gc->place.home, real) != NULL ? real : gc->place.home;
    enum err err = client_look(&view, &gc->place, &query, diag);
    bool found = err == ERR_OK && engine_run_count(view.engine) == 1;
    struct engine_run_view of_run = {0};
    if (found) {
        of_run = engine_run(view.engine, 0);
    }
    for (uint32_t ix = 0; found && ix < of_run.plan->repo_count; ix++) {
        const struct plan_repo *repo = &of_run.plan->repos[ix];
        if (!plan_is_git(repo)) {
            continue;
        }
        struct strbuf path = {0};
        struct strbuf owner = {0};
        engine_add_repo(&path, of_run.folder, repo);
        names_add_owner(&owner, gc->place.id, of_run.created_ns);
        struct sweep of_repo = {
            .repo_path = strbuf_text(&path),
            .url = repo->url,
            .store = home,
            .run = run,
            .repo = repo->name,
            .entry = twin_name(of_run.plan, of_run.folder, ix),
            .owner = strbuf_text(&owner),
            .base = repo->base,
            .dry = gc->dry,
            .tell = on_swept,
            .ctx = &listener,
        };
        struct diag why = {0};
        if (sweep_run(&of_repo, &why) != ERR_OK) {
            on_swept(&listener, strbuf_text(&path), why.text);
        }
        strbuf_release(&path);
        strbuf_release(&owner);
    }
    if (found && !gc->dry && !listener.kept) {
        remove_folders(home, run);
    }
    client_view_release(&view);
    return err;
}

/* Process one entry of worktrees/. */
static enum err
take_worktrees(struct gc *gc, const char *name, struct diag *diag)
{
    struct known known = {0};
    struct strbuf text = {0};
    enum err err = ask_store(gc, name, &known, diag);
    if (err == ERR_OK) {
        const char *reason = why_kept(gc, &known, &text);
        if (reason == NULL) {
            err = sweep(gc, name, diag);
        } else {
            struct strbuf path = {0};
            strbuf_addf(&path, "worktrees/%s", name);
            tell_kept(gc, strbuf_text(&path), reason);
            strbuf_release(&path);
        }
    }
    release_known(&known);
    strbuf_release(&text);
    return err;
}

/* --- command ------------------------------------------------------------ */

/* Process the entries of a directory of the store. */
static enum err take_all(struct gc *gc,
                         int store_fd,
                         const char *folder,
                         bool git,
                         struct diag *diag)
{
    DIR *list = open_beneath(store_fd, folder);
    if (list == NULL) {
        return errno == ENOENT ? ERR_OK
                               : diag_set(diag,
                                          ERR_IO,
                                          "open %s/%s: %s",
                                          gc->place.home,
                                          folder,
                                          strerror(errno));
    }
    const struct dirent *entry;
    int error = 0;
    enum err err = ERR_OK;
    while (err == ERR_OK && (entry = next_entry(list, &error)) != NULL) {
        err = git ? take_worktrees(gc, entry->d_name, diag)
                  : take_run(gc, dirfd(list), entry->d_name, diag);
    }
    if (error != 0) {
        tell_failed(gc, "", error);
    }
    (void)closedir(list);
    return err;
}

static void on_rows_removed(void *ctx, const struct gc_rows_run *run)
{
    struct gc *gc = ctx;
    strbuf_addf(&gc->text,
                "%s the rows of %s: %u task%s, %u attempt%s, %llu event%s\n",
                gc->dry ? "would remove" : "removed",
                run->id,
                run->tasks,
                run->tasks == 1 ? "" : "s",
                run->attempts,
                run->attempts == 1 ? "" : "s",
                (unsigned long long)run->events,
                run->events == 1 ? "" : "s");
    struct jsonw json = begin_entry(&gc->removed);
    jsonw_text(&json, "rows", run->id);
    jsonw_int(&json, "tasks", run->tasks);
    jsonw_int(&json, "attempts", run->attempts);
    jsonw_int(&json, "events", (int64_t)run->events);
    jsonw_object_end(&json);
}

static void
on_rows_kept(void *ctx, const char *id, const char *reason, bool failed)
{
    struct gc *gc = ctx;
    struct strbuf name = {0};
    strbuf_addf(&name, "rows of %s", id);
    gc->failed = gc->failed || failed;
    tell_kept(gc, strbuf_text(&name), reason);
    strbuf_release(&name);
}

static enum err take_rows(struct gc *gc, struct diag *diag)
{
    struct gc_rows rows = {
        .place = &gc->place,
        .store = gc->store,
        .wall_ns = clock_wall_ns(),
        .age_ns = gc->rows_ns,
        .keep_ns = gc->keep_ns,
        .dry = gc->dry,
        .ctx = gc,
        .removed = on_rows_removed,
        .kept = on_rows_kept,
    };
    return gc_rows_prune(&rows, diag);
}

static enum err collect(struct gc *gc, struct diag *diag)
{
    enum err err = store_open(&gc->store, gc->place.address, STORE_READ, diag);
    if (err != ERR_OK) {
        return err;
    }
    int store_fd = open(gc->place.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store_fd < 0) {
        return diag_set(diag,
                        ERR_IO,
                        "open %s: %s",
                        gc->place.home,
                        strerror(errno));
    }
    err = take_all(gc, store_fd, "worktrees", true, diag);
    if (err == ERR_OK) {
        err = take_all(gc, store_fd, "runs", false, diag);
    }
    if (err == ERR_OK && gc->rows_ns >= 0) {
        err = take_rows(gc, diag);
    }
    (void)close(store_fd);
    return err;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct gc gc = {.keep_ns = KEEP_NS, .rows_ns = -1};
    struct diag diag = {0};
    int code = cli_parse(&gc.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    code = cli_find_store(&gc.line, &gc.place);
    if (code == CLI_OK && !gc.dry && door_is_of(&gc.place)) {
        store_place_release(&gc.place);
        return cli_fail(command,
                        "removing files is for operators, and this is a "
                        "session: use --dry-run");
    }
    if (code != CLI_OK) {
        return code;
    }
    enum err err = collect(&gc, &diag);
    code =
        err == ERR_OK ? print_report(&gc) : cli_fail_store(command, err, &diag);
    strbuf_release(&gc.text);
    strbuf_release(&gc.removed);
    strbuf_release(&gc.kept);
    store_close(gc.store);
    store_place_release(&gc.place);
    return code;
}

static const struct cli_option options[] = {
    {"dry-run",
     NULL,
     "print what would be removed; remove nothing",
     CLI_SHORT('n', gc, dry)},
    CLIENT_OPTION_JSON,
    {"keep",
     "TIME",
     "keep runs finished less than this ago (default: 1d)",
     CLI_AT(gc, keep_ns)},
    {"rows",
     "TIME",
     "also remove runs finished longer ago from the store",
     CLI_AT(gc, rows_ns)},
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_gc = {
    .name = "gc",
    .synopsis = "[OPTION]...",
    .summary = "remove files, checkouts and branches of finished runs",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .run = run,
};
