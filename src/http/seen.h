/* SPDX-License-Identifier: MIT */
/*
 * seen: what needs an operator is new until somebody has seen it. The moment up
 * to which everything was seen is in a file of the home, "http-seen", so that
 * it is the same in every browser and after a restart.
 */
#ifndef HTTP_SEEN_H
#define HTTP_SEEN_H

#include "base/diag.h"

#include <stdint.h>

/* Return the moment, as nanoseconds of the wall clock; 0: nothing was seen. */
int64_t seen_read(const char *home);

/* Store it. */
MUST_USE enum err
seen_write(const char *home, int64_t seen_ns, struct diag *diag);

#endif /* HTTP_SEEN_H */
