/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of the PostgreSQL back end share.
 *
 *   pg_link.c     one connection: errors, waiting, statements
 *   pg.c          life of a store: open, mark, close
 *   pg_lease.c    the right to write: take, beat, owner
 *   pg_schema.c   creating, checking and migrating the schema
 *   pg_row.c      rows to structs and back
 *   pg_read.c     queries
 *   pg_write.c    transactions that write
 *   pg_prune.c    removing finished runs
 *   pg_ask.c      requests to the scheduler, through a table
 */
#ifndef STORE_PG_INTERNAL_H
#define STORE_PG_INTERNAL_H

#include "base/arena.h"
#include "base/strmap.h"
#include "store/backend.h"
#include "store/columns.h"
#include "store/event.h"
#include "store/pg_link.h"

/* --- pg_row.c --- */

enum { PG_COLUMNS_MAX = 32 };

/* Rows for one statement: an array for each of its parameters. */
struct pg_group {
    enum store_kind kind;
    enum store_put how;
    uint32_t count;
    bool ended; /* an attempt of it has */
    struct strbuf arrays[PG_COLUMNS_MAX];
};

void pg_group_release(struct pg_group *group);

/* Append a row. */
void pg_group_add(struct pg_group *group, const union store_row *row);

/* Make the arrays complete; return how many there are. */
int pg_group_close(struct pg_group *group,
                   const char *values[PG_COLUMNS_MAX],
                   int lengths[PG_COLUMNS_MAX]);

/* Append the statement for a group of this kind. */
void pg_add_put(struct strbuf *sql, enum store_kind kind, enum store_put how);

/* Append the names of a table's columns, each with a prefix. */
void pg_add_names(struct strbuf *sql,
                  const struct column_table *table,
                  const char *prefix);

/* Append the text by which two rows of one kind are the same row; nothing:
 * rows of this kind never are. */
void pg_add_key(struct strbuf *out,
                enum store_kind kind,
                const union store_row *row);

/*
 * Read a row in the binary format of COPY. Strings are in `bytes`, which is
 * changed. false: a value does not fit, and *number_out is its first column.
 */
bool pg_get(char *bytes,
            size_t len,
            const struct column_table *table,
            union store_row *out,
            int64_t *number_out);

/* --- the store --- */

/* The lease of a scheduler that begins now. */
#define PG_LEASE_UNTIL                                                         \
    "clock_timestamp() + coalesce(nullif("                                     \
    "current_setting('sluice.lease', true), ''), '4000')::float8"              \
    " * interval '1 millisecond'"

enum { PG_KNOWN_RUNS = 16 };

struct pg_store {
    struct store base;
    enum store_mode mode;
    struct pg_link link;
    bool held;          /* between hold and let_go */
    bool writing;       /* between begin and end of a batch */
    bool open;          /* a transaction that writes has begun at the server */
    bool outdated;      /* the schema must be migrated before reading */
    uint64_t prepared;  /* number of the connection that has the
                           statements; 0: none */
    uint64_t listening; /* ... that hears of answers; 0: none */
    struct store_owner self; /* of the epoch */
    char holder[40];         /* of the epoch: no other process has it */
    struct store_info head;  /* after the last batch of this epoch */
    bool unknown;            /* whether the batch after `head` was committed */
    bool done;               /* it was, and the batch is being repeated */
    struct store_info found; /* the head then */
    struct pg_group *groups; /* of the batch */
    uint32_t group_count;
    uint32_t group_capacity;
    uint32_t rows;      /* in these groups */
    uint32_t segment;   /* index of the first group that can take rows */
    struct strmap keys; /* of the rows since `segment` */
    struct arena texts; /* of these keys */
    struct strbuf text; /* scratch */
    uint32_t known[PG_KNOWN_RUNS]; /* runs that exist; 0: none */
    uint32_t known_next;
};

/* --- pg_schema.c --- */

/* Check that a store of a version that we know is there. ERR_NOT_FOUND: none
 * is. ERR_UNAVAILABLE with `outdated`: an older one. */
MUST_USE enum err pg_check_schema(struct pg_store *store, struct diag *diag);

/* Create the schema, if there is none. */
MUST_USE enum err pg_make_schema(struct pg_store *store, struct diag *diag);

/* Upgrade it, within the transaction that takes the store. */
MUST_USE enum err pg_migrate(struct pg_store *store, struct diag *diag);

/* --- pg_read.c --- */

/* Columns of the head, for pg_get_head(). */
#define PG_HEAD                                                                \
    "epoch, engine_ns, wall_ns, last_token, last_event, last_command,"         \
    " last_run, last_sum, writes, id"
enum { PG_HEAD_COLUMNS = 10 };

/* Read the head from the first row of a result. */
MUST_USE enum err pg_get_head(struct pg_store *store,
                              const PGresult *result,
                              struct store_info *out,
                              struct diag *diag);

/* Connect for reading, and check the schema once. */
MUST_USE enum err pg_need(struct pg_store *store, struct diag *diag);

/* --- pg_write.c --- */

/* Begin the transaction at the server, and send what is pending. */
MUST_USE enum err pg_flush(struct pg_store *store, struct diag *diag);

/* Forget the batch. */
void pg_forget_batch(struct pg_store *store);

/* --- pg_lease.c --- */

/* Tell the lease that another connection is the scheduler's now. ERR_CONFLICT:
 * it is not the scheduler any more. */
MUST_USE enum err pg_rejoin(struct pg_store *store, struct diag *diag);

/* Read the head, and keep others from changing it meanwhile. ERR_CONFLICT,
 * ERR_CORRUPT: as pg_check_head(). */
MUST_USE enum err pg_settle_head(struct pg_store *store,
                                 struct store_info *out,
                                 struct diag *diag);

/* Check a head that the scheduler has read. ERR_CONFLICT: another process took
 * the store; ERR_CORRUPT: it lost writes. Then it never writes again. */
MUST_USE enum err pg_check_head(struct pg_store *store,
                                const struct store_info *found,
                                struct diag *diag);

/* --- functions of struct store_ops --- */

#define PG_OP(op) __typeof__(*((struct store_ops *)NULL)->op)
PG_OP(owner) pg_owner;
PG_OP(take) pg_take;
PG_OP(beat) pg_beat;
PG_OP(hold) pg_hold;
PG_OP(let_go) pg_let_go;
PG_OP(rows) pg_rows;
PG_OP(events) pg_events;
PG_OP(begin) pg_begin_batch;
PG_OP(end) pg_end_batch;
PG_OP(find_run) pg_find_run;
PG_OP(put) pg_put;
PG_OP(prune) pg_prune;
PG_OP(raise) pg_raise;
PG_OP(ask) pg_ask;

#endif /* STORE_PG_INTERNAL_H */
