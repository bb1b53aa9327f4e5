/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of the SQLite back end share.
 *
 *   sqlite.c          life of a store: open, take, beat, close
 *   sqlite_db.c       connections, statements, errors
 *   sqlite_schema.c   creating, checking and migrating the database
 *   sqlite_row.c      rows to structs and back
 *   sqlite_read.c     queries
 *   sqlite_write.c    transactions that write
 *   sqlite_prune.c    removing finished runs
 *   sqlite_verify.c   checking for damage below the rows
 *   sqlite_ask.c      requests to the scheduler, over its socket
 */
#ifndef STORE_SQLITE_INTERNAL_H
#define STORE_SQLITE_INTERNAL_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "store/backend.h"
#include "store/columns.h"
#include "store/event.h"
#include "store/lock.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* "slui", in the header of the database. */
enum { SQLITE_APPLICATION_ID = 0x736c7569 };

/* Prepared statements. */
enum sqlite_slot {
    SLOT_BEGIN,
    SLOT_BEGIN_IMMEDIATE,
    SLOT_COMMIT,
    SLOT_ROLLBACK,
    SLOT_HEAD,
    SLOT_HEAD_SET,
    SLOT_RUN_KNOWN,
    SLOT_PUT, /* one for each kind of row and store_put */
    SLOT_COUNT = SLOT_PUT + STORE_KINDS * STORE_PUTS,
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
    bool outdated;     /* the schema must be migrated before reading */
    bool held;         /* between hold and let_go */
    bool writing;      /* between begin and end of a batch */
    int frames;        /* in the WAL after the last commit */
    int checkpoint_at; /* frames at which the next checkpoint is due */
};

/* --- sqlite_db.c --- */

/* Translate a result that is not OK, ROW or DONE, and set *diag. */
enum err sqlite_fail(struct sqlite_store *store, int rc, struct diag *diag);

/* The same for damage that we have detected ourselves. */
enum err sqlite_corrupt(const struct sqlite_store *store,
                        struct diag *diag,
                        const char *format,
                        ...) PRINTF_LIKE(3, 4);

/* Open the connection, and check that the database is ours and intact enough to
 * be queried. Closed again on failure. */
MUST_USE enum err
sqlite_connect(struct sqlite_store *store, bool writable, struct diag *diag);

/* Close it; NULL is allowed. */
void sqlite_disconnect(struct sqlite_store *store);

/* Open it for reading unless it is open. */
MUST_USE enum err sqlite_need_db(struct sqlite_store *store, struct diag *diag);

/* Return the statement of a slot, prepared on first use. */
MUST_USE enum err sqlite_slot(struct sqlite_store *store,
                              int slot,
                              const char *sql,
                              sqlite3_stmt **out,
                              struct diag *diag);

/* Prepare a statement; the caller finalizes it. */
MUST_USE enum err sqlite_prepare(struct sqlite_store *store,
                                 const char *sql,
                                 sqlite3_stmt **out,
                                 struct diag *diag);

/* Run a statement that returns no row, and reset it. */
MUST_USE enum err
sqlite_step(struct sqlite_store *store, sqlite3_stmt *stmt, struct diag *diag);

/* Begin to read, begin to write, commit. Rolling back cannot fail. */
MUST_USE enum err sqlite_begin(struct sqlite_store *store, struct diag *diag);
MUST_USE enum err sqlite_begin_write(struct sqlite_store *store,
                                     struct diag *diag);
MUST_USE enum err sqlite_commit(struct sqlite_store *store, struct diag *diag);
void sqlite_rollback(struct sqlite_store *store);

/* --- sqlite_schema.c --- */

/* Find the database; ERR_NOT_FOUND: neither it nor its WAL exists. */
MUST_USE enum err sqlite_find_database(const struct sqlite_store *store,
                                       struct diag *diag);

/* Create the database atomically; it must not exist. */
MUST_USE enum err sqlite_make_database(const struct sqlite_store *store,
                                       struct diag *diag);

/* Check that the file is a store of a version that we know. Reads the file
 * only, before SQLite does more than that. */
MUST_USE enum err sqlite_check_file(struct sqlite_store *store,
                                    struct diag *diag);

/* The same by the database's version; and whether the schema is usable. */
MUST_USE enum err sqlite_check_schema(struct sqlite_store *store,
                                      bool writable,
                                      struct diag *diag);

/* Upgrade the schema of a writable connection. */
MUST_USE enum err sqlite_migrate(struct sqlite_store *store, struct diag *diag);

/* Run all steps on an empty database, for comparison. */
MUST_USE enum err sqlite_build_schema(sqlite3 *db);

/* --- sqlite_row.c --- */

/* Columns of the current row, checked. `bad`: a column had a value that is
 * invalid for its struct member. */
struct sqlite_row {
    sqlite3_stmt *stmt;
    bool bad;
};
int64_t sqlite_i64(struct sqlite_row *row, int column);
const char *sqlite_text(struct sqlite_row *row, int column);

/* Read the current row of a statement that has the columns of a table. */
void sqlite_get(struct sqlite_row *row,
                const struct column_table *table,
                union store_row *out);

/* Append the names of a table's columns. */
void sqlite_add_names(struct strbuf *sql, const struct column_table *table);

/* Append the statement for a store_put; bind its parameters. */
void sqlite_add_put(struct strbuf *sql,
                    enum store_kind kind,
                    enum store_put how);
void sqlite_bind(sqlite3_stmt *stmt,
                 const struct column_table *table,
                 enum store_put how,
                 const union store_row *row);

/* --- functions of struct store_ops, in the files named above ---  */

#define SQLITE_OP(op) __typeof__(*((struct store_ops *)NULL)->op)
SQLITE_OP(hold) sqlite_hold;
SQLITE_OP(let_go) sqlite_let_go;
SQLITE_OP(rows) sqlite_rows;
SQLITE_OP(events) sqlite_events;
SQLITE_OP(begin) sqlite_begin_batch;
SQLITE_OP(end) sqlite_end_batch;
SQLITE_OP(find_run) sqlite_find_run;
SQLITE_OP(put) sqlite_put;
SQLITE_OP(prune) sqlite_prune;
SQLITE_OP(raise) sqlite_raise;
SQLITE_OP(check) sqlite_check;
SQLITE_OP(ask) sqlite_ask;

/* --- sqlite_read.c --- */

/* Read the row of `scheduler`. */
MUST_USE enum err sqlite_read_head(struct sqlite_store *store,
                                   struct store_info *out,
                                   struct diag *diag);

/* --- sqlite_write.c --- */

/* Begin a new epoch, with the current lock record as its owner. */
MUST_USE enum err sqlite_begin_epoch(struct sqlite_store *store,
                                     uint64_t *epoch_out,
                                     struct diag *diag);

/* Checkpoint the WAL into the database, before closing. */
void sqlite_checkpoint_last(struct sqlite_store *store);

/* --- sqlite_prune.c --- */

/* The gap in the event log that begins with this event, or ERR_NOT_FOUND. */
MUST_USE enum err sqlite_find_gap(struct sqlite_store *store,
                                  uint64_t first,
                                  struct event_gap *out,
                                  struct diag *diag);

#endif /* STORE_SQLITE_INTERNAL_H */
