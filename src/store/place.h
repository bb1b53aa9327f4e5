/* SPDX-License-Identifier: MIT */
/*
 * place: the address of a store, its identity, and this machine's directory for
 * it. For a store in a directory all three are that directory. For one in
 * PostgreSQL the identity is the random id in its tables, and the directory is
 * $SLUICE_HOME, or one for this address below $XDG_STATE_HOME/sluice
 * (~/.local/state/sluice).
 */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include "base/diag.h"

#include <stdbool.h>
#include <sys/un.h>

/* Starts as {0}. */
struct store_place {
    char *address; /* for store_open(); a directory is absolute. It may have a
                      password in it */
    char *shown;   /* the same for people, without secrets */
    char *id;      /* identifies it among stores, in marks left elsewhere */
    char *home; /* absolute: attempts, worktrees and the socket are below it */
};

/*
 * Find the store: `option`, $SLUICE_STORE, or the nearest directory .sluice
 * from here upward. With `make` it need not exist (default: .sluice here). On
 * error *diag has the remedy. Release *out in any case.
 */
MUST_USE enum err store_place_find(struct store_place *out,
                                   const char *option,
                                   bool make,
                                   struct diag *diag);

struct store_place store_place_copy(const struct store_place *place);
void store_place_release(struct store_place *place);

/* Name of the socket in `home` on which the scheduler takes requests. */
#define STORE_PLACE_SOCKET "socket"

/* Its address, by a descriptor of `home`: the path of a unix socket has at most
 * 107 bytes, and a store may be deeper than that. */
void store_place_socket(struct sockaddr_un *out, int home_fd);

#endif /* STORE_PLACE_H */
