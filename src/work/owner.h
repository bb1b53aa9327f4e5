/* SPDX-License-Identifier: MIT */
/*
 * owner: process that holds the store lock, as this machine sees it.
 */
#ifndef WORK_OWNER_H
#define WORK_OWNER_H

#include "store/store.h"

/* This process, for store_take(). */
struct store_owner owner_self(void);

/* Return its pid, for messages. */
long long owner_process(const struct store_owner *owner);

bool owner_is_same(const struct store_owner *a, const struct store_owner *b);

/* Whether it is stopped (SIGSTOP, debugger); false also if unknown here. */
bool owner_is_stopped(const struct store_owner *owner);

/* Kill it; do nothing if it is gone. ERR_DENIED: it runs on another machine, or
 * belongs to another user. */
MUST_USE enum err owner_kill(const struct store_owner *owner,
                             struct diag *diag);

/* Whether the peer of a Unix socket may make requests: it belongs to root or to
 * this user. `who` identifies the peer, if known. */
bool owner_trusts_peer(int fd, char who[64]);

#endif /* WORK_OWNER_H */
