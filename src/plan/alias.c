/* SPDX-License-Identifier: MIT */
#include "plan/alias.h"

#include "base/macros.h"

#include <string.h>

static const struct alias aliases[] = {
    {"a limit", "hold", "count"},
    {"count", "attempt", "sessions"},
    {"count", "group", "groups"},
    {"import", "folder", "clones"},
    {"script", "reject", "refuse"},
    {"simulate", "reject", "refuse"},
};

const struct alias *alias_find(const char *scope, const char *old, size_t len)
{
    const struct alias *alias = NULL;
    for (uint32_t ix = 0; (alias = alias_at(scope, ix)) != NULL; ix++) {
        if (strlen(alias->old) == len && memcmp(alias->old, old, len) == 0) {
            break;
        }
    }
    return alias;
}

const struct alias *alias_at(const char *scope, uint32_t ix)
{
    for (size_t at = 0; at < ARRAY_COUNT(aliases); at++) {
        if (strcmp(aliases[at].scope, scope) == 0 && ix-- == 0) {
            return &aliases[at];
        }
    }
    return NULL;
}
