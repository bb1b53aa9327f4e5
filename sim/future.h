/* SPDX-License-Identifier: MIT */
/* future: the events to come of a simulation, soonest first. */
#ifndef SIM_FUTURE_H
#define SIM_FUTURE_H

#include <stdint.h>

/* The end of a session, or something that happens by itself. */
struct future {
    int64_t at_ns;
    uint64_t seq;     /* set by future_push(); breaks ties */
    uint64_t token;   /* of the session; differs if it was cancelled */
    uint32_t session; /* ID_NONE: no session ends */
    uint32_t round;   /* of the session; differs if it restarted */
    uint32_t run;     /* the rest is for the caller */
    uint32_t item;
};

/* Starts as {0}. */
struct futures {
    struct future *items; /* heap: the first comes first */
    uint32_t count;
    uint32_t capacity;
    uint64_t seq;
};

void future_push(struct futures *futures, struct future future);

/* Take the first out; there must be one. */
struct future future_pop(struct futures *futures);

/* Return when the first one comes, but at most `at_ns`. */
int64_t future_next_ns(const struct futures *futures, int64_t at_ns);

/* Remove all; the memory stays until future_release(). */
void future_clear(struct futures *futures);
void future_release(struct futures *futures);

#endif /* SIM_FUTURE_H */
