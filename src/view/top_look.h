/* SPDX-License-Identifier: MIT */
/*
 * top_look: the store as `sluice top` sees it, kept up to date.
 *
 * A look asks the store whether anything was written since; only then all is
 * read again. Between two looks nothing of the store is open, so that a store
 * which is moved away or removed is noticed by the next one.
 */
#ifndef VIEW_TOP_LOOK_H
#define VIEW_TOP_LOOK_H

#include "view/model.h"

struct top_look;

/* Look at the store. `only`: the run to show, NULL: any. */
struct top_look *top_look_new(const struct store_place *place,
                              const char *only);

/* Free it. NULL is allowed. */
void top_look_free(struct top_look *look);

/* Look again. `run`: which one to show, or NULL. An error: the model is as it
 * was, but for the trouble that it tells. */
MUST_USE enum err
top_look_again(struct top_look *look, const char *run, struct diag *diag);

/* Show another run of those that are known. */
void top_look_show(struct top_look *look, const char *run);

/* What was seen; borrowed until the next look. The time in it is the present
 * one. */
const struct model *top_look_model(struct top_look *look);

#endif /* VIEW_TOP_LOOK_H */
