/* SPDX-License-Identifier: MIT */
/*
 * The life of a store in a directory:
 *
 *   DIR/sluice.db        the database; its -wal and -shm files always stay
 *   DIR/sluice.db.new    only while the database is being created
 *   DIR/lock             the scheduler's lock; see lock.c
 *
 * The directory must belong to the user, and other users must not be able to
 * write to it: a user who can replace these files controls the commands that
 * are run.
 */
#include "store/sqlite.h"

#include "base/clock.h"
#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "store/sqlite_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err
system_error(struct diag *diag, const char *what, const char *dir, int error)
{
    enum err err = ERR_IO;
    if (error == ENOENT || error == ENOTDIR) {
        err = ERR_NOT_FOUND;
    } else if (error == ENOSPC || error == EDQUOT) {
        err = ERR_LIMIT;
    } else if (error == EACCES || error == EPERM || error == EROFS) {
        err = ERR_DENIED;
    } else if (error == ENAMETOOLONG || error == ELOOP) {
        err = ERR_INVALID;
    }
    return diag_set(diag, err, "%s %s: %s", what, dir, strerror(error));
}

/* Reject a symbolic link of another user, which could point anywhere. */
static enum err check_link(const char *dir, struct diag *diag)
{
    struct stat status;
    if (lstat(dir, &status) != 0) {
        return errno == ENOENT
                   ? diag_set(diag, ERR_NOT_FOUND, "no store %s", dir)
                   : system_error(diag, "inspect", dir, errno);
    }
    if (S_ISLNK(status.st_mode) && status.st_uid != geteuid()) {
        return diag_set(
            diag,
            ERR_DENIED,
            "%s is a symbolic link of another user: use the directory itself",
            dir);
    }
    return ERR_OK;
}

/* Check that only this user can change the contents of the directory. */
static enum err check_rights(int dir_fd, const char *dir, struct diag *diag)
{
    struct stat status;
    struct stat parent;
    if (fstat(dir_fd, &status) != 0 ||
        fstatat(dir_fd, "..", &parent, AT_SYMLINK_NOFOLLOW) != 0) {
        return system_error(diag, "inspect", dir, errno);
    }
    if (status.st_uid != geteuid()) {
        return diag_set(
            diag,
            ERR_DENIED,
            "the store %s belongs to user %u: use a store of your own",
            dir,
            (unsigned)status.st_uid);
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return diag_set(diag,
                        ERR_DENIED,
                        "other users can write to the store %s (mode %o): run "
                        "`chmod 700` on it",
                        dir,
                        (unsigned)status.st_mode & 07777);
    }
    if ((parent.st_mode & S_IWOTH) != 0 && (parent.st_mode & S_ISVTX) == 0) {
        return diag_set(diag,
                        ERR_DENIED,
                        "any user can replace the store %s: its parent "
                        "directory has mode %o; run `chmod o-w` on that",
                        dir,
                        (unsigned)parent.st_mode & 07777);
    }
    return ERR_OK;
}

static enum err open_directory(struct sqlite_store *store, struct diag *diag)
{
    if (store->mode == STORE_WRITE && mkdir(store->dir, 0700) != 0 &&
        errno != EEXIST) {
        return system_error(diag, "make", store->dir, errno);
    }
    enum err err = check_link(store->dir, diag);
    if (err != ERR_OK) {
        return err;
    }
    store->dir_fd = open(store->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->dir_fd < 0) {
        return system_error(diag, "open", store->dir, errno);
    }
    return check_rights(store->dir_fd, store->dir, diag);
}

/*
 * Find the path for SQLite, which does not support directory descriptors. It is
 * absolute, so that changing the working directory does not matter.
 */
static enum err find_path(struct sqlite_store *store, struct diag *diag)
{
    char *real = realpath(store->dir, NULL);
    if (real == NULL) {
        return system_error(diag, "find", store->dir, errno);
    }
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/sluice.db", real);
    free(real);
    INVARIANT(path.text[0] == '/');
    store->path = mem_strndup(path.text, path.len);
    strbuf_release(&path);
    return ERR_OK;
}

static void close_store(struct store *base)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (store->db != NULL) {
        sqlite_checkpoint_last(store);
        sqlite_disconnect(store);
    }
    /* Only now, so that no two processes have a writable connection. */
    INVARIANT(store->db == NULL);
    lock_release(&store->lock);
    INVARIANT(store->lock.fd < 0);
    if (store->dir_fd >= 0) {
        (void)close(store->dir_fd);
    }
    mem_free(store->path);
    mem_free(store->dir);
    mem_free(store);
}

static enum err
get_owner(struct store *base, struct store_owner *out, struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct lock_record record;
    enum err err = lock_read(&store->lock, &record, diag);
    *out = record.owner;
    out->age_ns = -1;
    out->silent_ns = -1;
    long ticks = sysconf(_SC_CLK_TCK);
    if (err == ERR_OK && ticks > 0) {
        /* The owner runs on this kernel, so it uses the same clock. */
        int64_t now_ns = clock_boot_ns();
        int64_t begun_ns =
            (int64_t)(record.owner.start_ticks / (uint64_t)ticks) * 1000000000;
        out->silent_ns = now_ns > record.beat_ns ? now_ns - record.beat_ns : 0;
        if (record.owner.start_ticks > 0) {
            out->age_ns = now_ns > begun_ns ? now_ns - begun_ns : 0;
        }
        INVARIANT(out->silent_ns >= 0 && out->age_ns >= -1);
    }
    return err;
}

/* Time after which a change of a file surely has another time stamp: file
 * systems use the tick of the kernel, up to 10 ms. */
#define TICK_NS (50 * MS_NS)

/* Whether a file was changed long enough ago; its time can be any. */
static bool is_settled(const struct stat *stat)
{
    int64_t now_ns = clock_wall_ns();
    int64_t second = stat->st_mtim.tv_sec;
    return second < now_ns / SECOND_NS - 1 ||
           (second <= now_ns / SECOND_NS &&
            now_ns - (second * SECOND_NS + stat->st_mtim.tv_nsec) > TICK_NS);
}

/* A commit appends to the log of SQLite, or overwrites it from its start. */
static enum err
get_mark(struct store *base, struct store_mark *out, struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct strbuf log = {0};
    struct stat stats[2] = {0};
    strbuf_addf(&log, "%s-wal", store->path);
    bool known = stat(store->path, &stats[0]) == 0 &&
                 (stat(strbuf_text(&log), &stats[1]) == 0 || errno == ENOENT);
    int error = errno;
    strbuf_release(&log);
    if (!known) {
        (void)system_error(diag, "inspect", store->path, error);
        return error == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    out->place[0] = (uint64_t)stats[0].st_dev;
    out->place[1] = (uint64_t)stats[0].st_ino;
    out->settled = true;
    for (size_t ix = 0; ix < 2; ix++) {
        out->state[2 * ix] = (uint64_t)stats[ix].st_size;
        out->state[2 * ix + 1] =
            (uint64_t)stats[ix].st_mtim.tv_sec * SECOND_NS +
            (uint64_t)stats[ix].st_mtim.tv_nsec;
        out->settled = out->settled && is_settled(&stats[ix]);
    }
    return ERR_OK;
}

/* Report who has the lock. */
static enum err name_owner(struct sqlite_store *store, struct diag *diag)
{
    struct lock_record record;
    enum err err = lock_read(&store->lock, &record, NULL);
    const struct store_owner *owner = &record.owner;
    if (err != ERR_OK || owner->pid == 0) {
        return diag_set(diag,
                        ERR_BUSY,
                        "another process is the scheduler of %s",
                        store->dir);
    }
    return diag_set(diag,
                    ERR_BUSY,
                    "the process %" PRId64 " on %s is the scheduler of %s",
                    owner->pid,
                    owner->host[0] != '\0' ? owner->host : "this machine",
                    store->dir);
}

/* Create the database if it does not exist and was not lost. */
static enum err make_if_missing(struct sqlite_store *store, struct diag *diag)
{
    enum err err = sqlite_find_database(store, diag);
    if (err != ERR_NOT_FOUND) {
        return err;
    }
    if (store->record.writes > 0) {
        return diag_set(
            diag,
            ERR_CORRUPT,
            "the store %s has lost its database, sluice.db: restore a backup, "
            "or remove %s/lock to start with an empty one",
            store->dir,
            store->dir);
    }
    return sqlite_make_database(store, diag);
}

/* With the lock held: update the record and begin a new epoch. */
static enum err become_owner(struct sqlite_store *store,
                             const struct store_owner *self,
                             uint64_t *epoch_out,
                             struct diag *diag)
{
    INVARIANT(store->lock.fd >= 0 && store->db == NULL);
    enum err err = lock_read(&store->lock, &store->record, diag);
    if (err != ERR_OK) {
        return err;
    }
    store->record.owner = *self;
    store->record.owner.epoch = 0;
    store->record.beat_ns = clock_boot_ns();
    err = lock_write(&store->lock, &store->record, diag);
    crash_point("store-lock-taken");
    if (err == ERR_OK) {
        err = make_if_missing(store, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_connect(store, true, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_migrate(store, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_begin_epoch(store, &store->record.owner.epoch, diag);
    }
    crash_point("store-epoch-begun");
    if (err == ERR_OK) {
        err = lock_write(&store->lock, &store->record, diag);
    }
    crash_point("store-taken");
    if (err == ERR_OK) {
        INVARIANT(store->record.owner.epoch > 0);
        INVARIANT(store->record.writes > 0);
        *epoch_out = store->record.owner.epoch;
    }
    return err;
}

static enum err take(struct store *base,
                     const struct store_owner *self,
                     uint64_t *epoch_out,
                     struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(store->mode == STORE_WRITE);
    INVARIANT(!store->held && !store->writing);
    enum err err = lock_take(&store->lock, diag);
    if (err == ERR_BUSY) {
        return name_owner(store, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    crash_point("store-locked");
    sqlite_disconnect(store); /* used for reading */
    err = become_owner(store, self, epoch_out, diag);
    if (err != ERR_OK) {
        sqlite_disconnect(store);
        lock_release(&store->lock);
    }
    INVARIANT((err == ERR_OK) == (store->lock.fd >= 0));
    INVARIANT((err == ERR_OK) == (store->db != NULL));
    return err;
}

static enum err beat(struct store *base, const char *trouble, struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct store_owner *owner = &store->record.owner;
    INVARIANT(owner->epoch == base->epoch && base->epoch > 0);
    INVARIANT(store->lock.fd >= 0);
    INVARIANT(base->commits >= owner->commits);
    store->record.beat_ns = clock_boot_ns();
    owner->commits = base->commits;
    owner->commit_ns = base->commit_ns;
    (void)snprintf(owner->trouble, sizeof(owner->trouble), "%s", trouble);
    return lock_write(&store->lock, &store->record, diag);
}

static const struct store_ops store_sqlite_ops = {
    .name = "sqlite",
    .close = close_store,
    .owner = get_owner,
    .mark = get_mark,
    .take = take,
    .beat = beat,
    .hold = sqlite_hold,
    .let_go = sqlite_let_go,
    .rows = sqlite_rows,
    .events = sqlite_events,
    .begin = sqlite_begin_batch,
    .end = sqlite_end_batch,
    .find_run = sqlite_find_run,
    .put = sqlite_put,
    .prune = sqlite_prune,
    .raise = sqlite_raise,
    .check = sqlite_check,
    .ask = sqlite_ask,
};

static enum err open_files(struct sqlite_store *store, struct diag *diag)
{
    INVARIANT(store->dir_fd < 0 && store->path == NULL);
    enum err err = open_directory(store, diag);
    if (err == ERR_OK) {
        err = find_path(store, diag);
    }
    INVARIANT(err != ERR_OK || (store->dir_fd >= 0 && store->path != NULL));
    lock_init(&store->lock, store->dir, store->dir_fd);
    if (err == ERR_OK && store->mode == STORE_WRITE) {
        err = lock_make(&store->lock, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_need_db(store, diag);
        if (store->mode == STORE_WRITE &&
            (err == ERR_NOT_FOUND || store->outdated)) {
            err = ERR_OK; /* created or migrated when the lock is taken */
        }
    }
    return err;
}

enum err sqlite_open_store(struct store **out,
                           const char *dir,
                           enum store_mode mode,
                           struct diag *diag)
{
    struct sqlite_store *store = mem_zalloc(1, sizeof(*store));
    store->base.ops = &store_sqlite_ops;
    store->mode = mode;
    store->dir = mem_strndup(dir, strlen(dir));
    store->dir_fd = -1;
    enum err err = open_files(store, diag);
    if (err != ERR_OK) {
        close_store(&store->base);
        return err;
    }
    *out = &store->base;
    return ERR_OK;
}
