/* SPDX-License-Identifier: MIT */
/*
 * Creation and migration of the database. It is created under another name and
 * then renamed, so a file with its name is complete: an empty or truncated file
 * is damage, never a new database.
 *
 * The schema's version is user_version. Step N in schema/ leads from version N
 * - 1 to N; a new database gets all of them. A released step never changes.
 */
#include "store/sqlite_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/strbuf.h"
#include "store/schema/steps.h"
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATABASE "sluice.db"
#define UNFINISHED "sluice.db.new"

enum { SCHEMA = ARRAY_COUNT(steps) };

/* The first bytes of every SQLite database, with the NUL. */
#define MAGIC "SQLite format 3"

enum {
    HEADER_BYTES = 100,
    HEADER_VERSION = 60, /* offsets of big-endian numbers */
    HEADER_APPLICATION = 68,
};

int sqlite_schema_version(void)
{
    return SCHEMA;
}

enum err sqlite_find_database(const struct sqlite_store *store,
                              struct diag *diag)
{
    struct stat status;
    if (fstatat(store->dir_fd, DATABASE, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISREG(status.st_mode)) {
            return ERR_OK;
        }
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "%s is not a regular file",
                        store->path);
    }
    if (errno != ENOENT) {
        return diag_set(diag,
                        ERR_IO,
                        "inspect %s: %s",
                        store->path,
                        strerror(errno));
    }
    if (fstatat(store->dir_fd, DATABASE "-wal", &status, 0) == 0) {
        return sqlite_corrupt(store,
                              diag,
                              "there is " DATABASE "-wal, but no " DATABASE);
    }
    return diag_set(diag, ERR_NOT_FOUND, "no store in %s", store->dir);
}

static int exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* Set a number in the header of the database. */
static int set_number(sqlite3 *db, const char *name, int number)
{
    struct strbuf sql = {0};
    strbuf_addf(&sql, "PRAGMA %s = %d", name, number);
    int rc = exec(db, strbuf_text(&sql));
    strbuf_release(&sql);
    return rc;
}

/* Run the steps from `version` on, and set the version. */
static int run_steps(sqlite3 *db, uint32_t version)
{
    INVARIANT(version < SCHEMA);
    INVARIANT(sqlite3_get_autocommit(db) == 0 || version == 0);
    for (uint32_t ix = version; ix < ARRAY_COUNT(steps); ix++) {
        int rc = exec(db, steps[ix]);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return set_number(db, "user_version", SCHEMA);
}

enum err sqlite_build_schema(sqlite3 *db)
{
    return run_steps(db, 0) == SQLITE_OK ? ERR_OK : ERR_UNAVAILABLE;
}

static int fill_database(sqlite3 *db)
{
    int rc = exec(db,
                  "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL;"
                  "BEGIN");
    if (rc == SQLITE_OK) {
        rc = run_steps(db, 0);
    }
    if (rc == SQLITE_OK) {
        rc = set_number(db, "application_id", SQLITE_APPLICATION_ID);
    }
    return rc == SQLITE_OK ? exec(db, "COMMIT; PRAGMA journal_mode = WAL") : rc;
}

/* Create and fill the unfinished database, and sync it. */
static int fill_unfinished(const char *path, int fd)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(db, 1);
        rc = fill_database(db);
    }
    int closed = sqlite3_close(db);
    INVARIANT(closed == SQLITE_OK);
    if (rc == SQLITE_OK && fsync(fd) != 0) {
        rc = SQLITE_IOERR_FSYNC;
    }
    return rc;
}

static void remove_unfinished(const struct sqlite_store *store)
{
    static const char *const names[] = {
        UNFINISHED,
        UNFINISHED "-journal",
        UNFINISHED "-shm",
        UNFINISHED "-wal",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        /* It need not exist; if it remains, creating the file reports it. */
        (void)unlinkat(store->dir_fd, names[ix], 0);
    }
}

static enum err make_failed(const struct sqlite_store *store,
                            int error,
                            const char *text,
                            struct diag *diag)
{
    enum err err = ERR_IO;
    if (error == ENOSPC || error == EDQUOT) {
        err = ERR_LIMIT;
    } else if (error == EACCES || error == EPERM || error == EROFS) {
        err = ERR_DENIED;
    }
    return diag_set(diag, err, "make %s: %s", store->path, text);
}

/*
 * Sync the name of the store's directory, which may be new. Before the database
 * has its name: whoever finds a database need not care. A parent that this user
 * can search but not read cannot be synced. Returns 0, or -1 with errno.
 */
static int sync_parent(const struct sqlite_store *store)
{
    int fd = openat(store->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno == EACCES ? 0 : -1;
    }
    int rc = fsync(fd);
    int error = errno;
    (void)close(fd);
    errno = error;
    return rc;
}

enum err sqlite_make_database(const struct sqlite_store *store,
                              struct diag *diag)
{
    enum err err = ERR_OK;
    struct strbuf path = {0};
    INVARIANT(store->lock.fd >= 0 && store->record.writes == 0);
    INVARIANT(store->db == NULL);
    remove_unfinished(store);
    /* Create it here to set its mode: other users must not read it. */
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(store->dir_fd, UNFINISHED, flags, 0600);
    if (fd < 0) {
        err = make_failed(store, errno, strerror(errno), diag);
        goto out;
    }
    strbuf_addf(&path, "%s.new", store->path);
    crash_point("store-unfinished");
    int rc = fill_unfinished(strbuf_text(&path), fd);
    (void)close(fd);
    if (rc != SQLITE_OK) {
        int error = (rc & 0xff) == SQLITE_FULL ? ENOSPC : EIO;
        err = make_failed(store, error, sqlite3_errstr(rc), diag);
        goto out;
    }
    crash_point("store-before-rename");
    if (sync_parent(store) != 0 ||
        renameat(store->dir_fd, UNFINISHED, store->dir_fd, DATABASE) != 0 ||
        fsync(store->dir_fd) != 0) {
        err = make_failed(store, errno, strerror(errno), diag);
    }
    crash_point("store-made");
out:
    if (err != ERR_OK) {
        remove_unfinished(store);
    }
    strbuf_release(&path);
    return err;
}

static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

static enum err check_version(struct sqlite_store *store,
                              uint32_t version,
                              bool writable,
                              struct diag *diag)
{
    if (version > SCHEMA) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "the store %s has version %u, but this sluice (%s) "
                        "supports versions up to %d: use a newer sluice",
                        store->dir,
                        version,
                        SLUICE_VERSION,
                        SCHEMA);
    }
    if (version == 0) {
        return sqlite_corrupt(store, diag, "no version");
    }
    INVARIANT(version >= 1 && version <= SCHEMA);
    store->outdated = version < SCHEMA && !writable;
    if (store->outdated) {
        return diag_set(
            diag,
            ERR_UNAVAILABLE,
            "the store %s has version %u, but this sluice (%s) reads version "
            "%d: `sluice run` upgrades it, once no older sluice uses it",
            store->dir,
            version,
            SLUICE_VERSION,
            SCHEMA);
    }
    return ERR_OK;
}

/*
 * Reads through the connection's own file: opening and closing the file again
 * would release this process's locks on it.
 */
enum err sqlite_check_file(struct sqlite_store *store, struct diag *diag)
{
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(store->db,
                                  NULL,
                                  SQLITE_FCNTL_FILE_POINTER,
                                  (void *)&file);
    if (rc != SQLITE_OK || file == NULL || file->pMethods == NULL) {
        return diag_set(diag, ERR_IO, "cannot read %s", store->path);
    }
    sqlite3_int64 size = 0;
    rc = file->pMethods->xFileSize(file, &size);
    if (rc != SQLITE_OK) {
        return diag_set(diag, ERR_IO, "cannot read %s", store->path);
    }
    if (size < HEADER_BYTES) {
        return sqlite_corrupt(store,
                              diag,
                              DATABASE " has only %lld bytes",
                              (long long)size);
    }
    unsigned char header[HEADER_BYTES];
    rc = file->pMethods->xRead(file, header, sizeof(header), 0);
    if (rc != SQLITE_OK) {
        return diag_set(diag,
                        ERR_IO,
                        "read %s: %s",
                        store->path,
                        sqlite3_errstr(rc));
    }
    if (memcmp(header, MAGIC, sizeof(MAGIC)) != 0) {
        return sqlite_corrupt(store,
                              diag,
                              DATABASE " is not an SQLite database");
    }
    if (number_at(header + HEADER_APPLICATION) != SQLITE_APPLICATION_ID) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "%s is an SQLite database, but not a sluice store (or "
                        "its header is damaged)",
                        store->path);
    }
    /* Accept an older version: the WAL may contain the upgrade. */
    uint32_t version = number_at(header + HEADER_VERSION);
    return check_version(store, version, true, diag);
}

static enum err
read_version(struct sqlite_store *store, uint32_t *out, struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(store, "PRAGMA user_version", &stmt, diag);
    if (err == ERR_OK) {
        int rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            *out = (uint32_t)sqlite3_column_int(stmt, 0);
        } else {
            err = rc == SQLITE_DONE ? sqlite_corrupt(store, diag, "no version")
                                    : sqlite_fail(store, rc, diag);
        }
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

enum err sqlite_check_schema(struct sqlite_store *store,
                             bool writable,
                             struct diag *diag)
{
    uint32_t version = 0;
    enum err err = read_version(store, &version, diag);
    if (err == ERR_OK) {
        err = check_version(store, version, writable, diag);
    }
    return err;
}

enum err sqlite_migrate(struct sqlite_store *store, struct diag *diag)
{
    uint32_t version = 0;
    enum err err = read_version(store, &version, diag);
    if (err != ERR_OK || version == SCHEMA) {
        return err;
    }
    INVARIANT(version < SCHEMA);
    INVARIANT(store->base.epoch == 0 && store->lock.fd >= 0);
    err = sqlite_begin_write(store, diag);
    if (err == ERR_OK) {
        int rc = run_steps(store->db, version);
        if (rc != SQLITE_OK) {
            err = sqlite_fail(store, rc, diag);
        }
    }
    if (err == ERR_OK) {
        err = sqlite_commit(store, diag);
    }
    if (err != ERR_OK) {
        sqlite_rollback(store);
    }
    return err;
}
