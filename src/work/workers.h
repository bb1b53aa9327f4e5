/* SPDX-License-Identifier: MIT */
/*
 * workers: the workers of a store, for operators.
 */
#ifndef WORK_WORKERS_H
#define WORK_WORKERS_H

#include "base/diag.h"

#include <stdbool.h>
#include <stdint.h>

/* A worker; strings are borrowed for the call. */
struct workers_row {
    const char *name;
    const char *host;
    const char *labels; /* separated by commas, without its name and "any" */
    const char *version;
    const char *state; /* "up", "draining", "lost", "gone", "late", "other
                          version" or "trouble" */
    const char *why;   /* of the last two; or "" */
    uint32_t slots;    /* CREW_SLOTS_ANY: no limit of its own */
    uint32_t used;
    int64_t silent_ns; /* since its last turn */
    int64_t since_ns;  /* since its process began */
};

typedef void (*workers_fn)(void *ctx, const struct workers_row *row);

/* Call `fn` for each worker of a store, by name. A store in a directory has
 * none. */
MUST_USE enum err
workers_list(const char *address, workers_fn fn, void *ctx, struct diag *diag);

/* Have a worker drain. ERR_NOT_FOUND: there is no such worker. */
MUST_USE enum err
workers_drain(const char *address, const char *name, struct diag *diag);

/* Declare a worker lost now. The caller knows that its machine is off: else its
 * sessions may run along with those that replace them. */
MUST_USE enum err
workers_lose(const char *address, const char *name, struct diag *diag);

/* Whether a text can be a name or a label. */
bool workers_is_name(const char *text);

/* The name of this machine's worker: $SLUICE_WORKER, or that of the host. */
void workers_own_name(char out[65]);

/* The protocol that a worker states: WIRE_PROTO, or for tests
 * $SLUICE_TEST_PROTO. */
int64_t workers_proto(void);

#endif /* WORK_WORKERS_H */
