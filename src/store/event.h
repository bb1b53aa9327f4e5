/* SPDX-License-Identifier: MIT */
/*
 * event: what every back end must do alike with rows of the log.
 */
#ifndef STORE_EVENT_H
#define STORE_EVENT_H

#include "store/batch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The sum of an event whose `number` is set, chained to `before`, the sum of
 * the event before it (0: this is the first). See docs/store.md for the bytes.
 */
uint64_t event_sum(uint64_t before, const struct store_event *event);

/*
 * The value of the member "to" of a JSON object, when it is a text without
 * escapes, as the names of states are: it is borrowed from `data` and *len_out
 * is set. NULL: there is none, or `data` is no object.
 */
const char *event_target(const char *data, size_t *len_out);

/*
 * Events that were removed: those from `first` to `last`, and the sum of the
 * last one, from which the chain goes on. Two gaps never touch. A gap is kept
 * as a setting, whose name sorts as `first` does.
 */
struct event_gap {
    uint64_t first;
    uint64_t last;
    uint64_t sum;
};

/* What the names of all gaps begin with. */
#define EVENT_GAP_PREFIX "events/"

/* A gap as a setting; both texts end with a NUL. */
struct event_gap_texts {
    char name[32];
    char value[80];
};
struct event_gap_texts event_gap_write(const struct event_gap *gap);

/* The reverse; false: it is no gap. */
bool event_gap_read(const char *name, const char *value, struct event_gap *out);

#endif /* STORE_EVENT_H */
