/* SPDX-License-Identifier: MIT */
/*
 * address: where the servers of a store are.
 *
 * A server on a TCP port has a file in the directory `http-servers` of its
 * home, named by its port: its address, and the key of its links (gate.h). So
 * another command of the same user can make a link. The server holds a lock on
 * the file; one without a lock was left by a server that died.
 */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "http/gate.h"

/* Directory in the home of a store. */
#define ADDRESS_DIR "http-servers"

enum { ADDRESS_HOST_BYTES = 300 };

/*
 * Append an address that a user has given, as browsers write it: "https://" or
 * "http://", a host, and a port unless it is the default one, then a slash.
 * Return false if it is something else; a path is not allowed.
 */
bool address_add_url(struct strbuf *out, const char *text);

/* Append the host of such an address, as in the header Host. */
void address_add_host(struct strbuf *out, const char *url);

/* Whether only this machine can use an address: a name of the loopback, or of
 * no single machine, as 0.0.0.0. */
bool address_is_local(const char *url);

/* Where to listen. */
struct address_listen {
    char host[ADDRESS_HOST_BYTES]; /* as given, IPv6 with its brackets */
    int first;                     /* port; 0: any */
    int last;                      /* of a range, else the same */
};

/* Read "HOST:PORT" or "HOST:FIRST-LAST"; false: it is something else. */
bool address_read_listen(struct address_listen *out, const char *text);

/* The file of a server. Starts as {.fd = -1}. */
struct address {
    int dir;
    int fd; /* -1: none */
    char port[8];
};

/* Write the file of a server, and keep it locked. */
MUST_USE enum err address_publish(struct address *address,
                                  const char *home,
                                  const char *port,
                                  const char *url,
                                  const struct gate_key *key,
                                  struct diag *diag);

/* Remove the file, if there is one. */
void address_withdraw(struct address *address);

/* Find the server with this port, or the newest one if `port` is NULL; append
 * its address. ERR_NOT_FOUND: no such server lives. */
MUST_USE enum err address_find(struct strbuf *url,
                               struct gate_key *key,
                               const char *home,
                               const char *port,
                               struct diag *diag);

#endif /* HTTP_ADDRESS_H */
