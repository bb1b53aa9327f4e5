/* SPDX-License-Identifier: MIT */
/*
 * pruned: what is left of a run that was removed, the setting "pruned/ID".
 *
 * No other run gets its id, and its plan is not run again by mistake.
 */
#ifndef STORE_PRUNED_H
#define STORE_PRUNED_H

#include "base/strbuf.h"
#include "store/batch.h"

/* What the names of all such settings begin with; the id follows. */
#define PRUNED_PREFIX "pruned/"

/* The text of a plan in these settings, 16 digits and a NUL. */
struct pruned_text {
    char digits[17];
};
struct pruned_text pruned_text(const char *text, size_t len);

/* Append the value for a run: JSON. Its text is that of its last version. */
void pruned_add(struct strbuf *out, const struct store_run *run);

#endif /* STORE_PRUNED_H */
