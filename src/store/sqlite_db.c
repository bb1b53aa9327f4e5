/* SPDX-License-Identifier: MIT */
/*
 * Connections, and the translation of SQLite's errors.
 *
 * Only the holder of the scheduler's lock has a writable connection, and it
 * alone checkpoints. Two concurrent checkpoints can damage the file with SQLite
 * versions 3.7.0 to 3.51.2, which include Debian 12's.
 */
#include "store/sqlite_internal.h"

#include "base/invariant.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    READ_BUSY_MS = 5000,
    WRITE_BUSY_MS = 2000,
    /* Longer values are damage: a plan has 256 MiB at most. */
    TEXT_BYTES_MAX = 300 << 20,
};

#define DAMAGED                                                                \
    "Copy the directory, then restore a backup, or move it away "              \
    "to start with an empty store"

enum err sqlite_corrupt(const struct sqlite_store *store,
                        struct diag *diag,
                        const char *format,
                        ...)
{
    char text[DIAG_BYTES / 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return diag_set(diag,
                    ERR_CORRUPT,
                    "the store %s is damaged: %s. " DAMAGED,
                    store->dir,
                    text);
}

static bool is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/*
 * After a failed fsync() the data may or may not be on the disk, for any errno,
 * so never report it as "the disk is full, nothing was written".
 */
static enum err class_of(int rc, int error)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        return ERR_LIMIT;
    case SQLITE_IOERR:
        return is_full(error) && rc != SQLITE_IOERR_FSYNC &&
                       rc != SQLITE_IOERR_DIR_FSYNC
                   ? ERR_LIMIT
                   : ERR_IO;
    case SQLITE_CANTOPEN:
        if (is_full(error)) {
            return ERR_LIMIT;
        }
        return error == EACCES || error == EPERM ? ERR_DENIED : ERR_IO;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return ERR_BUSY;
    case SQLITE_CONSTRAINT:
        return ERR_CONFLICT;
    case SQLITE_AUTH:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return ERR_DENIED;
    default:
        /* NOTADB and CORRUPT; and errors that our own SQL can get only if the
         * schema was changed. */
        return ERR_CORRUPT;
    }
}

/* Another process holds a lock that only a scheduler should hold. */
static enum err fail_busy(const struct sqlite_store *store, struct diag *diag)
{
    char shm[DIAG_BYTES];
    (void)snprintf(shm, sizeof(shm), "%s-shm", store->path);
    int64_t pid = lock_foreign_pid(shm);
    if (pid == 0) {
        pid = lock_foreign_pid(store->path);
    }
    if (pid == 0) {
        return diag_set(diag,
                        ERR_BUSY,
                        "another process keeps %s locked",
                        store->path);
    }
    return diag_set(diag,
                    ERR_BUSY,
                    "the process %lld keeps %s locked",
                    (long long)pid,
                    store->path);
}

enum err sqlite_fail(struct sqlite_store *store, int rc, struct diag *diag)
{
    INVARIANT(rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE);
    INVARIANT((rc & 0xff) != SQLITE_MISUSE);
    int error = store->db != NULL ? sqlite3_system_errno(store->db) : 0;
    const char *text =
        store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
    enum err err = class_of(rc, error);
    INVARIANT(err != ERR_OK && err != ERR_NOT_FOUND);
    if (err == ERR_CORRUPT) {
        return sqlite_corrupt(store, diag, "%s", text);
    }
    if (err == ERR_BUSY) {
        return fail_busy(store, diag);
    }
    if ((rc & 0xff) == SQLITE_FULL || (err == ERR_LIMIT && is_full(error))) {
        return diag_set(diag,
                        err,
                        "no space left on the disk of %s",
                        store->path);
    }
    bool has_errno =
        (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN;
    return diag_set(diag,
                    err,
                    "%s: %s%s%s",
                    store->path,
                    text,
                    has_errno && error != 0 ? ": " : "",
                    has_errno && error != 0 ? strerror(error) : "");
}

/* Called after each commit with the number of frames in the WAL. */
static int note_frames(void *ctx, sqlite3 *db, const char *name, int frames)
{
    (void)name;
    struct sqlite_store *store = ctx;
    INVARIANT(store->db == db && frames >= 0);
    if (frames < store->frames) {
        store->checkpoint_at = 0; /* the WAL restarts */
    }
    store->frames = frames;
    return SQLITE_OK;
}

/* Settings that do not access the file. */
static enum err configure(struct sqlite_store *store, bool writable)
{
    sqlite3 *db = store->db;
    INVARIANT(db != NULL);
    INVARIANT(!writable || store->mode == STORE_WRITE);
    int persist = 1;
    (void)sqlite3_extended_result_codes(db, 1);
    (void)sqlite3_busy_timeout(db, writable ? WRITE_BUSY_MS : READ_BUSY_MS);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, TEXT_BYTES_MAX);
    (void)sqlite3_file_control(db, NULL, SQLITE_FCNTL_PERSIST_WAL, &persist);
    /* A file from another source must not run code. */
    if (sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) != 0 ||
        sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) != 0 ||
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) != 0) {
        return ERR_UNAVAILABLE;
    }
    if (writable) {
        /* Also disables SQLite's automatic checkpoints. */
        (void)sqlite3_wal_hook(db, note_frames, store);
        store->frames = 0;
        store->checkpoint_at = 0;
    }
    return ERR_OK;
}

/* On a file system without shared memory SQLite uses another mode. */
static enum err set_wal(struct sqlite_store *store, struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err =
        sqlite_prepare(store, "PRAGMA journal_mode = WAL", &stmt, diag);
    if (err != ERR_OK) {
        return err;
    }
    int rc = sqlite3_step(stmt);
    struct sqlite_row row = {.stmt = stmt};
    if (rc != SQLITE_ROW) {
        INVARIANT(rc != SQLITE_DONE);
        err = sqlite_fail(store, rc, diag);
    } else if (strcmp(sqlite_text(&row, 0), "wal") != 0) {
        err = diag_set(diag,
                       ERR_UNAVAILABLE,
                       "unsuitable file system of %s: use a local disk",
                       store->dir);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

/* Run SQL without parameters or results. */
static enum err
run_sql(struct sqlite_store *store, const char *sql, struct diag *diag)
{
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ERR_OK : sqlite_fail(store, rc, diag);
}

/* Settings by SQL, which read the file. */
static enum err
set_pragmas(struct sqlite_store *store, bool writable, struct diag *diag)
{
    enum err err = run_sql(store,
                           "PRAGMA cell_size_check = ON;"
                           "PRAGMA mmap_size = 0",
                           diag);
    if (err == ERR_OK && writable) {
        err = set_wal(store, diag);
    }
    if (err == ERR_OK && writable) {
        /* Negative sizes are in KiB, others in bytes. */
        err = run_sql(store,
                      "PRAGMA synchronous = FULL;"
                      "PRAGMA cache_size = -2000;"
                      "PRAGMA journal_size_limit = 16777216",
                      diag);
    }
    return err;
}

static enum err
open_connection(struct sqlite_store *store, bool writable, struct diag *diag)
{
    int flags = writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int rc = sqlite3_open_v2(store->path, &store->db, flags, NULL);
    INVARIANT(store->db != NULL); /* or out of memory */
    if (rc != SQLITE_OK) {
        return sqlite_fail(store, rc, diag);
    }
    if (configure(store, writable) != ERR_OK) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "this build of SQLite (%s) lacks required features",
                        sqlite3_libversion());
    }
    enum err err = sqlite_check_file(store, diag);
    if (err == ERR_OK) {
        err = set_pragmas(store, writable, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_check_schema(store, writable, diag);
    }
    return err;
}

enum err
sqlite_connect(struct sqlite_store *store, bool writable, struct diag *diag)
{
    INVARIANT(store->db == NULL);
    INVARIANT(store->dir_fd >= 0 && store->path != NULL);
    INVARIANT(!writable || store->lock.fd >= 0);
    enum err err = open_connection(store, writable, diag);
    if (err != ERR_OK) {
        sqlite_disconnect(store);
    }
    INVARIANT((err == ERR_OK) == (store->db != NULL));
    return err;
}

void sqlite_disconnect(struct sqlite_store *store)
{
    INVARIANT(!store->held && !store->writing);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        (void)sqlite3_finalize(store->slots[slot]);
        store->slots[slot] = NULL;
    }
    int rc = sqlite3_close(store->db);
    INVARIANT(rc == SQLITE_OK); /* BUSY: a statement was not finalized */
    store->db = NULL;
}

enum err sqlite_need_db(struct sqlite_store *store, struct diag *diag)
{
    if (store->db != NULL) {
        return ERR_OK;
    }
    INVARIANT(store->base.epoch == 0); /* a scheduler stays connected */
    enum err err = sqlite_find_database(store, diag);
    if (err == ERR_OK) {
        err = sqlite_connect(store, false, diag);
    }
    INVARIANT((err == ERR_OK) == (store->db != NULL));
    return err;
}

enum err sqlite_slot(struct sqlite_store *store,
                     int slot,
                     const char *sql,
                     sqlite3_stmt **out,
                     struct diag *diag)
{
    INVARIANT(slot >= 0 && slot < SLOT_COUNT);
    INVARIANT(store->db != NULL);
    if (store->slots[slot] == NULL) {
        int rc = sqlite3_prepare_v3(store->db,
                                    sql,
                                    -1,
                                    SQLITE_PREPARE_PERSISTENT,
                                    &store->slots[slot],
                                    NULL);
        if (rc != SQLITE_OK) {
            return sqlite_fail(store, rc, diag);
        }
    }
    *out = store->slots[slot];
    INVARIANT(*out != NULL && sqlite3_stmt_busy(*out) == 0);
    INVARIANT(sqlite3_db_handle(*out) == store->db);
    return ERR_OK;
}

enum err sqlite_prepare(struct sqlite_store *store,
                        const char *sql,
                        sqlite3_stmt **out,
                        struct diag *diag)
{
    *out = NULL;
    INVARIANT(store->db != NULL);
    int rc = sqlite3_prepare_v2(store->db, sql, -1, out, NULL);
    INVARIANT((rc == SQLITE_OK) == (*out != NULL));
    return rc == SQLITE_OK ? ERR_OK : sqlite_fail(store, rc, diag);
}

enum err
sqlite_step(struct sqlite_store *store, sqlite3_stmt *stmt, struct diag *diag)
{
    INVARIANT(sqlite3_stmt_busy(stmt) == 0);
    INVARIANT(sqlite3_db_handle(stmt) == store->db);
    int rc = sqlite3_step(stmt);
    enum err err = ERR_OK;
    if (rc != SQLITE_DONE) {
        INVARIANT(rc != SQLITE_ROW);
        err = sqlite_fail(store, rc, diag);
    }
    (void)sqlite3_reset(stmt); /* repeats the error of the step */
    INVARIANT(sqlite3_stmt_busy(stmt) == 0);
    return err;
}

/* Run a statement without parameters. */
static enum err run_slot(struct sqlite_store *store,
                         enum sqlite_slot slot,
                         const char *sql,
                         struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_slot(store, (int)slot, sql, &stmt, diag);
    return err == ERR_OK ? sqlite_step(store, stmt, diag) : err;
}

/* Whether a transaction is open. */
static bool is_open(const struct sqlite_store *store)
{
    INVARIANT(store->db != NULL);
    return sqlite3_get_autocommit(store->db) == 0;
}

enum err sqlite_begin(struct sqlite_store *store, struct diag *diag)
{
    INVARIANT(!is_open(store));
    enum err err = run_slot(store, SLOT_BEGIN, "BEGIN", diag);
    INVARIANT((err == ERR_OK) == is_open(store));
    return err;
}

enum err sqlite_begin_write(struct sqlite_store *store, struct diag *diag)
{
    INVARIANT(!is_open(store));
    INVARIANT(store->lock.fd >= 0); /* the only writer */
    enum err err =
        run_slot(store, SLOT_BEGIN_IMMEDIATE, "BEGIN IMMEDIATE", diag);
    INVARIANT((err == ERR_OK) == is_open(store));
    return err;
}

enum err sqlite_commit(struct sqlite_store *store, struct diag *diag)
{
    INVARIANT(is_open(store));
    INVARIANT(store->lock.fd >= 0);
    enum err err = run_slot(store, SLOT_COMMIT, "COMMIT", diag);
    INVARIANT(err != ERR_OK || !is_open(store));
    return err;
}

void sqlite_rollback(struct sqlite_store *store)
{
    if (!is_open(store)) {
        return; /* SQLite has rolled back after a severe error */
    }
    /* If this fails, closing the connection has the same effect. */
    (void)run_slot(store, SLOT_ROLLBACK, "ROLLBACK", NULL);
}
