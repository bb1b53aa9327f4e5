/* SPDX-License-Identifier: MIT */
/*
 * owner: the process that holds the lock of a store, as this machine sees it.
 */
#ifndef WORK_OWNER_H
#define WORK_OWNER_H

#include "store/store.h"

/* This process, for store_take(). */
struct store_owner owner_self(void);

/* Number of its process, for people. */
long long owner_process(const struct store_owner *owner);

bool owner_is_same(const struct store_owner *a, const struct store_owner *b);

/* Whether it is stopped (SIGSTOP, debugger); false also: not known here. */
bool owner_is_stopped(const struct store_owner *owner);

/* Kill it; no error if it has gone. ERR_DENIED: it is on another
 * machine, or belongs to another user. */
MUST_USE enum err owner_kill(const struct store_owner *owner,
                             struct diag *diag);

/* Whether the process at the other end of a unix socket may make requests: it
 * is root's, or of this user. `who` says who it is, when that is known. */
bool owner_trusts_peer(int fd, char who[64]);

#endif /* WORK_OWNER_H */
