/* SPDX-License-Identifier: MIT */
/*
 * alias: one table of deprecated names that are still accepted, with a warning:
 * plan keys and values, command options, script words.
 */
#ifndef PLAN_ALIAS_H
#define PLAN_ALIAS_H

#include <stddef.h>
#include <stdint.h>

/* A plain value in a const table. */
struct alias {
    const char *scope; /* mapping kind ("a limit"), key or command */
    const char *old;
    const char *now;
};

/* Return the alias whose old name is `old` (`len` bytes), or NULL. */
const struct alias *alias_find(const char *scope, const char *old, size_t len);

/* Return the alias number `ix` of a scope, or NULL after the last. */
const struct alias *alias_at(const char *scope, uint32_t ix);

#endif /* PLAN_ALIAS_H */
