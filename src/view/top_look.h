/* SPDX-License-Identifier: MIT */
/*
 * top_look: the state of the store for `sluice top`, kept up to date.
 *
 * Each refresh checks whether the store was written to; only then it reads
 * everything again. The store is closed between refreshes, so the next refresh
 * notices a store that was moved or removed.
 */
#ifndef VIEW_TOP_LOOK_H
#define VIEW_TOP_LOOK_H

#include "view/model.h"

struct top_look;

/* Create it, without reading the store. `only`: the run to show, NULL: any.
 * The names of the labels must outlive it. */
struct top_look *top_look_new(const struct store_place *place,
                              const char *only,
                              const struct labels *labels);

/* Free it. NULL is allowed. */
void top_look_free(struct top_look *look);

/* Refresh. `run`: the run to show, or NULL. On error the model is unchanged
 * except for `trouble`. */
MUST_USE enum err
top_look_again(struct top_look *look, const char *run, struct diag *diag);

/* Show another of the known runs. */
void top_look_show(struct top_look *look, const char *run);

/* Return what the model is made of, without an open store; borrowed until the
 * next refresh. NULL: no refresh has succeeded. */
const struct glance *top_look_glance(const struct top_look *look);

/* Return the transactions of the store as of the last refresh, and the last
 * event then. */
const struct store_info *top_look_info(const struct top_look *look);

/* Return the model with the current time; borrowed until the next refresh. */
const struct model *top_look_model(struct top_look *look);

#endif /* VIEW_TOP_LOOK_H */
