/* SPDX-License-Identifier: MIT */
/*
 * server: a PostgreSQL server of a test, and a wire to it that can be cut.
 *
 * A server ends with the program that started it. Functions must succeed, or
 * the test fails.
 */
#ifndef TESTS_CONTRACT_SERVER_H
#define TESTS_CONTRACT_SERVER_H

#include <stdbool.h>

struct server;

/* Start one, with words of tests/support/postgres, ended by NULL; or NULL. */
struct server *server_start(const char *const *words);
void server_stop(struct server *server);

const char *server_address(const struct server *server);

/* Its directory, in which --tls makes certificates. */
const char *server_dir(const struct server *server);

/* Have it carry out a command of tests/support/postgres. */
void server_do(struct server *server, const char *command);

/* --- a wire ------------------------------------------------------------- */

/* What the wire does once, and then passes everything on again. */
enum wire_fault {
    WIRE_PASS,
    WIRE_CUT_BEFORE_COMMIT, /* the server never sees the COMMIT */
    WIRE_CUT_AFTER_COMMIT,  /* the client never sees the reply to it */
    WIRE_LATE_COMMIT,       /* cut for the client; the server sees the COMMIT
                               when another connection waits for it */
    WIRE_LATE_BATCH,        /* the same with all of the batch, when another
                               connection has looked and sends it again */
    WIRE_CUT_LATER,         /* after so many pieces, in either direction */
    WIRE_DOWN,              /* cut, and no new connection, until set again */
};

struct wire;

/* Listen on a port of the loopback address, for a server. */
struct wire *wire_open(const struct server *server);
void wire_close(struct wire *wire);

/* The server's address by the wire. */
const char *wire_address(const struct wire *wire);

/* Set what happens next; `pieces` are for WIRE_CUT_LATER. */
void wire_set(struct wire *wire, enum wire_fault fault, unsigned pieces);

/* Whether the fault that was set has happened. */
bool wire_has_failed(const struct wire *wire);

#endif /* TESTS_CONTRACT_SERVER_H */
