/* SPDX-License-Identifier: MIT */
/*
 * err: the reasons for which a function can fail, in one table.
 *
 * Columns: enumerator, name in logs and JSON, text for people, HTTP status,
 * exit code of a command that ends with it, whether trying again can help.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/macros.h"

#include <stdbool.h>

/* clang-format off */
#define ERR_TABLE(X)                                                           \
    X(OK,          "ok",          "no error",                 200, 0, false)   \
    X(INVALID,     "invalid",     "invalid input",            400, 2, false)   \
    X(NOT_FOUND,   "not-found",   "not found",                404, 2, false)   \
    X(CONFLICT,    "conflict",    "not allowed in this state", 409, 1, false)  \
    X(BUSY,        "busy",        "in use by another process", 409, 3, true)   \
    X(LIMIT,       "limit",       "a limit is exceeded",      413, 2, false)   \
    X(DENIED,      "denied",      "permission denied",        403, 3, false)   \
    X(TIMEOUT,     "timeout",     "timeout",                  504, 3, true)    \
    X(CANCELLED,   "cancelled",   "cancelled",                409, 1, false)   \
    X(UNAVAILABLE, "unavailable", "not available",            503, 3, true)    \
    X(IO,          "io",          "reading or writing failed", 500, 3, true)   \
    X(CORRUPT,     "corrupt",     "stored data is damaged",   500, 3, false)
/* clang-format on */

#define ERR_ENUM(id, name, text, http, code, again) ERR_##id,
enum err { ERR_TABLE(ERR_ENUM) ERR_COUNT };
#undef ERR_ENUM

/* Short name ("not-found"), for logs and JSON. */
const char *err_name(enum err err);

/* The reason of that name; ERR_IO when there is none. */
enum err err_from_name(const char *name);

/* A sentence fragment for people ("not found"). */
const char *err_text(enum err err);

/* HTTP status of an answer that fails with `err`. */
int err_http_status(enum err err);

/* Exit code of a command that ends with `err`. */
int err_exit_code(enum err err);

/* Whether the same call may succeed later. */
bool err_can_retry(enum err err);

#endif /* BASE_ERR_H */
