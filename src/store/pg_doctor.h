/* SPDX-License-Identifier: MIT */
/*
 * pg_doctor: checks of a PostgreSQL server as the place of a store: what it is,
 * what lies between, what it promises, and what this role may do.
 */
#ifndef STORE_PG_DOCTOR_H
#define STORE_PG_DOCTOR_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>

enum pg_level { PG_LEVEL_OK, PG_LEVEL_NOTE, PG_LEVEL_WARNING, PG_LEVEL_FAULT };

/* Called for each finding; the text says what to do about it. */
typedef void (*pg_finding_fn)(void *ctx,
                              enum pg_level level,
                              const char *check,
                              const char *text);

/*
 * Check the server of an address; nothing is changed. Appends the address
 * without secrets. Returns whether a store could be used there.
 */
bool pg_examine(const char *address,
                struct strbuf *shown,
                pg_finding_fn fn,
                void *ctx);

#endif /* STORE_PG_DOCTOR_H */
