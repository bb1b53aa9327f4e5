/* SPDX-License-Identifier: MIT */
/*
 * pg_link: one connection to PostgreSQL.
 *
 * Every wait has an end: a server that does not reply, and a network that
 * drops everything, are noticed within seconds, and the connection is closed.
 * The next call connects again. Results are text.
 *
 * Settings of the database, the role or the address, which hold for all who
 * use a store:
 *
 *   sluice.schema        the schema with its tables; default: sluice
 *   sluice.lease         of a scheduler, in ms; default: 4000
 *   sluice.worker_lease  of a worker, in ms; default: 120000; 0: never ends
 */
#ifndef STORE_PG_LINK_H
#define STORE_PG_LINK_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

/* A reply that takes longer than this never comes. */
enum { PG_WAIT_MS = 30000 };

enum { PG_PARAMS_MAX = 24 };

/* Channels of notifications, which only wake: a request, a report or a worker
 * has come; an answer has; an order has. */
#define PG_TO_SCHEDULER "sluice_scheduler"
#define PG_ASKED "ask" /* what such a notification says of a request */
#define PG_ANSWERED "sluice_answer"
#define PG_TO_WORKERS "sluice_workers"

/* Starts with pg_link_init(). */
struct pg_link {
    char *address;
    char *shown;     /* the address without secrets, for messages */
    PGconn *conn;    /* NULL: not connected */
    uint64_t number; /* of the connection: grows with each */
    bool lost;       /* the last error was of the connection */
};

/* Parameters of a statement, $1 and so on; starts as {0}. */
struct pg_params {
    const char *values[PG_PARAMS_MAX]; /* borrowed, or in `numbers` */
    char numbers[PG_PARAMS_MAX][24];
    int count;
};

/* Whether a store's address is of PostgreSQL. */
bool pg_is_address(const char *address);

/* Append an address without secrets, for messages. ERR_INVALID: libpq does not
 * understand it. */
MUST_USE enum err
pg_add_shown(struct strbuf *out, const char *address, struct diag *diag);

/* Remember the address; ERR_INVALID, too. */
MUST_USE enum err
pg_link_init(struct pg_link *link, const char *address, struct diag *diag);

/* Close the connection, and free the memory. */
void pg_link_release(struct pg_link *link);

/* Close the connection only. */
void pg_link_drop(struct pg_link *link);

/* Connect, unless connected. ERR_UNAVAILABLE: it cannot be reached. */
MUST_USE enum err pg_link_need(struct pg_link *link, struct diag *diag);

void pg_add_i64(struct pg_params *params, int64_t value);
void pg_add_text(struct pg_params *params, const char *text); /* or NULL */

/*
 * Run a statement; without parameters (NULL) the text may have several, of
 * which the last one counts. Returns its result, which the caller clears, or
 * NULL with the error in *err_out. ERR_BUSY: it may be tried again: the
 * connection is lost, or a lock was not free.
 */
PGresult *pg_run(struct pg_link *link,
                 const char *sql,
                 const struct pg_params *params,
                 enum err *err_out,
                 struct diag *diag);

/* The same for a prepared statement. */
PGresult *pg_run_prepared(struct pg_link *link,
                          const char *name,
                          const struct pg_params *params,
                          enum err *err_out,
                          struct diag *diag);

/* The same for statements without a result. `rows_out`: how many rows were
 * changed; or NULL. */
MUST_USE enum err pg_do(struct pg_link *link,
                        const char *sql,
                        const struct pg_params *params,
                        int64_t *rows_out,
                        struct diag *diag);

/* Wait until the connection can be read, or also written, or until `until_ns`
 * of clock_boot_ns(). ERR_TIMEOUT: it was not. */
MUST_USE enum err
pg_wait(struct pg_link *link, bool write, int64_t until_ns, struct diag *diag);

/* Return the next result of what was sent, or NULL at its end; *err_out tells
 * a lost connection. */
PGresult *pg_next(struct pg_link *link, enum err *err_out, struct diag *diag);

/* The error of a failed result, or of the connection (NULL); sets *diag. Drops
 * a connection that is lost. */
enum err
pg_fail(struct pg_link *link, const PGresult *result, struct diag *diag);

/* A column of the first row, or of row `row`. */
int64_t pg_i64(const PGresult *result, int row, int column);
const char *pg_text(const PGresult *result, int row, int column);
bool pg_bool(const PGresult *result, int row, int column);

#endif /* STORE_PG_LINK_H */
