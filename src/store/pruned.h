/* SPDX-License-Identifier: MIT */
/*
 * pruned: the remains of a removed run, the setting "pruned/ID".
 *
 * No other run gets its id, and its plan is not run again by mistake.
 */
#ifndef STORE_PRUNED_H
#define STORE_PRUNED_H

#include "base/strbuf.h"
#include "store/batch.h"

/* Prefix of the names of these settings; the id follows. */
#define PRUNED_PREFIX "pruned/"

/* The sum of a plan's text in these settings, 16 digits and a NUL. */
struct pruned_text {
    char digits[17];
};
struct pruned_text pruned_text(const char *text, size_t len);

/* Append the value for a run: JSON. The text must be of its last version. */
void pruned_add(struct strbuf *out, const struct store_run *run);

#endif /* STORE_PRUNED_H */
