/* SPDX-License-Identifier: MIT */
/*
 * err: error codes, in one table.
 *
 * Columns: enumerator, name in logs and JSON, message, exit code of a command
 * that fails with it.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/macros.h"

#include <stdbool.h>

/* clang-format off */
#define ERR_TABLE(X)                                                           \
    X(OK,          "ok",          "no error",                  0)              \
    X(INVALID,     "invalid",     "invalid input",             2)              \
    X(NOT_FOUND,   "not-found",   "not found",                 2)              \
    X(CONFLICT,    "conflict",    "not allowed in this state", 1)              \
    X(BUSY,        "busy",        "in use by another process", 3)              \
    X(LIMIT,       "limit",       "a limit is exceeded",       2)              \
    X(DENIED,      "denied",      "permission denied",         3)              \
    X(TIMEOUT,     "timeout",     "timeout",                   3)              \
    X(CANCELLED,   "cancelled",   "cancelled",                 1)              \
    X(UNAVAILABLE, "unavailable", "not available",             3)              \
    X(IO,          "io",          "reading or writing failed", 3)              \
    X(CORRUPT,     "corrupt",     "stored data is damaged",    3)
/* clang-format on */

#define ERR_ENUM(id, name, text, code) ERR_##id,
enum err { ERR_TABLE(ERR_ENUM) ERR_COUNT };
#undef ERR_ENUM

/* Short name ("not-found"), for logs and JSON. */
const char *err_name(enum err err);

/* Return the code with that name, or ERR_IO. */
enum err err_from_name(const char *name);

/* Short message ("not found"). */
const char *err_text(enum err err);

/* Exit code of a command that fails with `err`. */
int err_exit_code(enum err err);

#endif /* BASE_ERR_H */
