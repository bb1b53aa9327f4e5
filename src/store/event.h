/* SPDX-License-Identifier: MIT */
/*
 * event: what every back end must do alike with rows of the log.
 */
#ifndef STORE_EVENT_H
#define STORE_EVENT_H

#include "store/batch.h"

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

#endif /* STORE_EVENT_H */
