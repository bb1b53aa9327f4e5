/* SPDX-License-Identifier: MIT */
/*
 * alias: old names that are still accepted, with a warning: keys and values of
 * plans, options of commands, words of scripts. One table has them all.
 */
#ifndef PLAN_ALIAS_H
#define PLAN_ALIAS_H

#include <stddef.h>
#include <stdint.h>

/* A plain value in a const table. */
struct alias {
    const char *scope; /* what a mapping is ("a limit"), a key, a command */
    const char *old;
    const char *now;
};

/* The alias with this old name of `len` bytes, or NULL. */
const struct alias *alias_find(const char *scope, const char *old, size_t len);

/* The aliases of a scope, one by one; NULL after the last. */
const struct alias *alias_at(const char *scope, uint32_t ix);

#endif /* PLAN_ALIAS_H */
