/* SPDX-License-Identifier: MIT */
/*
 * jsonr: reader for JSON objects that this program wrote, without any spaces;
 * it finds members without building a tree. Foreign JSON is read with jansson.
 *
 * Other input does no harm: a member that is not found is absent.
 */
#ifndef BASE_JSONR_H
#define BASE_JSONR_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Borrowed from the input; {0}: absent. */
struct jsonr {
    const char *at;
    size_t len;
};

struct jsonr_member {
    struct jsonr name; /* with its quotes */
    struct jsonr value;
};

/* Return a whole document as a value. */
struct jsonr jsonr_of(const char *text);

/*
 * Return the next member of an object; *cursor starts as 0. False after the
 * last member, and if the input is not JSON.
 */
bool jsonr_next(struct jsonr object,
                size_t *cursor,
                struct jsonr_member *member_out);

/* Return a member of an object by its name, which needs no escapes. */
struct jsonr jsonr_get(struct jsonr object, const char *name);

/* Return whether it is the string `text`, which needs no escapes. */
bool jsonr_is(struct jsonr value, const char *text);

/* Append the unescaped string; return false and append nothing if it is
 * none. */
bool jsonr_add_text(struct strbuf *out, struct jsonr value);

/* A whole number, or 0. */
int64_t jsonr_int(struct jsonr value);

/* Return whether it is the literal true. */
bool jsonr_bool(struct jsonr value);

/* A number, or 0. */
double jsonr_number(struct jsonr value);

#endif /* BASE_JSONR_H */
