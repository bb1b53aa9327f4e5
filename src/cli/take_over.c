/* SPDX-License-Identifier: MIT */
#include "cli/take_over.h"

#include "base/duration.h"
#include "work/owner.h"

#include <stdio.h>
#include <unistd.h>

enum {
    PING_MS = 1000, /* a slower scheduler may be replaced */
    KILL_TRIES = 200,
    KILL_WAIT_US = 10000,
};

/* A process that applies a request without a scheduler signals that it is alive
 * at its start and each second. If silent for this long, it hangs. */
#define REQUEST_SILENT_NS (60 * SECOND_NS)

/* Kill the process that holds the lock, if it is on this machine. */
static enum err end_owner(struct store *store, struct diag *diag)
{
    struct store_owner owner;
    enum err err = store_owner(store, &owner, diag);
    if (err == ERR_OK) {
        return owner_kill(&owner, diag);
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/*
 * Whether the lock holder will release the store soon: it applies a request
 * without being a scheduler, or it is a scheduler that is starting or exiting.
 * None of these listens on the socket.
 */
static bool is_brief(struct store *store)
{
    struct store_owner owner;
    struct diag ignored = {0};
    enum err err = store_ping(store, PING_MS, &ignored);
    if (err != ERR_NOT_FOUND ||
        store_owner(store, &owner, &ignored) != ERR_OK) {
        return err == ERR_NOT_FOUND; /* or the lock is free by now */
    }
    return owner.silent_ns >= 0 && owner.silent_ns < REQUEST_SILENT_NS;
}

enum err
take_over_store(struct store *store, uint64_t *epoch_out, struct diag *diag)
{
    struct store_owner self = owner_self();
    int tries = 0;       /* since the kill */
    bool waited = false; /* for an owner that was not killed */
    while (tries < KILL_TRIES) {
        enum err err = store_take(store, &self, epoch_out, diag);
        if (err != ERR_BUSY) {
            return err;
        }
        if (tries > 0) {
            tries++;
        } else if (!is_brief(store)) {
            err = end_owner(store, diag);
            if (err != ERR_OK) {
                return err;
            }
            tries = 1;
        } else if (!waited) {
            (void)fprintf(stderr,
                          "sluice run: another command is using the store; "
                          "waiting for it\n");
            waited = true;
        }
        (void)usleep(KILL_WAIT_US);
    }
    return ERR_BUSY;
}
