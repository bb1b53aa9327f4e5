/* SPDX-License-Identifier: MIT */
/*
 * What the files of the SQLite back end share.
 *
 *   sqlite.c          life of a store: open, take, beat, close
 *   sqlite_db.c       connections, statements, errors
 *   sqlite_schema.c   making and migrating the database; is it ours?
 *   sqlite_read.c     rows to structs
 *   sqlite_write.c    batches to rows
 *   sqlite_prune.c    removing finished runs
 *   sqlite_verify.c   looking for damage
 */
#ifndef STORE_SQLITE_INTERNAL_H
#define STORE_SQLITE_INTERNAL_H

#include "base/diag.h"
#include "store/event.h"
#include "store/lock.h"
#include "store/store.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* "slui", in the header of the database. */
enum { SQLITE_APPLICATION_ID = 0x736c7569 };

/* Statements that are kept prepared. */
enum sqlite_slot {
    SLOT_BEGIN,
    SLOT_BEGIN_IMMEDIATE,
    SLOT_COMMIT,
    SLOT_ROLLBACK,
    SLOT_HEAD,
    SLOT_HEAD_SET,
    SLOT_RUN_KNOWN,
    SLOT_RUN_NEW,
    SLOT_RUN_SET,
    SLOT_FRAGMENT,
    SLOT_LIMIT_SET,
    SLOT_PROVIDER,
    SLOT_SETTING,
    SLOT_SETTING_DROP,
    SLOT_TASK_SET,
    SLOT_CLAIM,
    SLOT_ATTEMPT_SET,
    SLOT_EVENT,
    SLOT_COMMAND_NEW,
    SLOT_COMMAND_ANSWER,
    SLOT_COUNT,
};

/* The row of `scheduler`, as far as batches need and change it. */
struct sqlite_head {
    uint64_t writes;
    uint64_t last_sum;
    struct store_info info;
};

struct sqlite_store {
    struct store base;
    enum store_mode mode;
    char *dir;
    char *path; /* of the database */
    int dir_fd;
    struct lock lock;
    struct lock_record record; /* as last written, while the lock is held */
    sqlite3 *db;               /* NULL: not open */
    sqlite3_stmt *slots[SLOT_COUNT];
    bool outdated;     /* the schema is too old to be read as it is */
    bool taken;        /* the lock is held and the connection can write */
    enum err broken;   /* not ERR_OK: never write again, not even at the end */
    int frames;        /* in the WAL after the last commit */
    int checkpoint_at; /* frames at which the next checkpoint is due */
    struct diag why;   /* of `broken` */
};

/* Open a store in a directory; as store_open(). */
MUST_USE enum err sqlite_open_store(struct store **out,
                                    const char *dir,
                                    enum store_mode mode,
                                    struct diag *diag);

/* --- sqlite_db.c --- */

/* Translate a result that is not OK, ROW or DONE, and say so in *diag. */
enum err sqlite_fail(struct sqlite_store *store, int rc, struct diag *diag);

/* The same for damage that we have noticed ourselves. */
enum err sqlite_corrupt(const struct sqlite_store *store,
                        struct diag *diag,
                        const char *format,
                        ...) PRINTF_LIKE(3, 4);

/* Open the connection, and check that the database is ours and whole enough
 * to be asked. Closed again on failure. */
MUST_USE enum err
sqlite_connect(struct sqlite_store *store, bool writable, struct diag *diag);

/* Close it; NULL is allowed. */
void sqlite_disconnect(struct sqlite_store *store);

/* Open it for reading unless it is open. */
MUST_USE enum err sqlite_need_db(struct sqlite_store *store, struct diag *diag);

/* A statement that stays prepared in a slot. */
MUST_USE enum err sqlite_slot(struct sqlite_store *store,
                              enum sqlite_slot slot,
                              const char *sql,
                              sqlite3_stmt **out,
                              struct diag *diag);

/* A statement for once; the caller finalizes it. */
MUST_USE enum err sqlite_prepare(struct sqlite_store *store,
                                 const char *sql,
                                 sqlite3_stmt **out,
                                 struct diag *diag);

/* Carry out a statement that gives no row, and reset it. */
MUST_USE enum err
sqlite_step(struct sqlite_store *store, sqlite3_stmt *stmt, struct diag *diag);

/* Run SQL without parameters or results. */
MUST_USE enum err
sqlite_run(struct sqlite_store *store, const char *sql, struct diag *diag);

/* Begin to read, begin to write, end. Rolling back cannot fail. */
MUST_USE enum err sqlite_begin(struct sqlite_store *store, struct diag *diag);
MUST_USE enum err sqlite_begin_write(struct sqlite_store *store,
                                     struct diag *diag);
MUST_USE enum err sqlite_commit(struct sqlite_store *store, struct diag *diag);
void sqlite_rollback(struct sqlite_store *store);

/* --- sqlite_schema.c --- */

/* Whether there is a database; ERR_NOT_FOUND: none, but also no rest of one. */
MUST_USE enum err sqlite_find_database(const struct sqlite_store *store,
                                       struct diag *diag);

/* Make the database, whole or not at all; there must be none. */
MUST_USE enum err sqlite_make_database(const struct sqlite_store *store,
                                       struct diag *diag);

/* Is what was opened a store of a version that we know? Looks at the file
 * only, before SQLite does more than that. */
MUST_USE enum err sqlite_check_file(struct sqlite_store *store,
                                    struct diag *diag);

/* The same, as the database says; and whether the schema can be used. */
MUST_USE enum err sqlite_check_schema(struct sqlite_store *store,
                                      bool writable,
                                      struct diag *diag);

/* Bring the schema of a writable connection up to date. */
MUST_USE enum err sqlite_migrate(struct sqlite_store *store, struct diag *diag);

/* Run all steps on an empty database, for comparison. */
MUST_USE enum err sqlite_build_schema(sqlite3 *db);

/* --- sqlite_read.c --- */

/* Columns of the present row, checked. `bad` tells that one had a value which
 * its place in a struct cannot have. */
struct sqlite_row {
    sqlite3_stmt *stmt;
    bool bad;
};
uint64_t sqlite_u64(struct sqlite_row *row, int column);
int64_t sqlite_i64(struct sqlite_row *row, int column);
uint32_t sqlite_u32(struct sqlite_row *row, int column);
const char *sqlite_text(struct sqlite_row *row, int column);

/* Read the row of `scheduler`. */
MUST_USE enum err sqlite_read_head(struct sqlite_store *store,
                                   struct sqlite_head *out,
                                   struct diag *diag);

enum err sqlite_read(struct store *base,
                     const struct store_query *query,
                     const struct store_visitor *visitor,
                     void *ctx,
                     struct store_info *info_out,
                     struct diag *diag);
enum err sqlite_events(struct store *base,
                       uint64_t after,
                       store_event_fn fn,
                       void *ctx,
                       struct diag *diag);

/* --- sqlite_write.c --- */

enum err sqlite_write(struct store *base,
                      const struct store_batch *batch,
                      struct diag *diag);
enum err sqlite_submit(struct store *base,
                       const struct store_command *command,
                       uint64_t *number_out,
                       struct diag *diag);

/* Begin a new epoch, with the present record of the lock as its owner. */
MUST_USE enum err sqlite_begin_epoch(struct sqlite_store *store,
                                     uint64_t *epoch_out,
                                     struct diag *diag);

/* Write what is in the WAL into the database, at the end. */
void sqlite_checkpoint_last(struct sqlite_store *store);

/* --- sqlite_prune.c --- */

/* Carry out a STORE_PRUNE, within a transaction. */
MUST_USE enum err sqlite_prune(struct sqlite_store *store,
                               const struct store_prune *prune,
                               struct diag *diag);

/* The gap in the log that begins with this event; ERR_NOT_FOUND: none does. */
MUST_USE enum err sqlite_find_gap(struct sqlite_store *store,
                                  uint64_t first,
                                  struct event_gap *out,
                                  struct diag *diag);

/* --- sqlite_verify.c --- */

enum err sqlite_verify(struct store *base,
                       store_fault_fn fn,
                       void *ctx,
                       struct diag *diag);

#endif /* STORE_SQLITE_INTERNAL_H */
