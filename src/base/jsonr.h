/* SPDX-License-Identifier: MIT */
/*
 * jsonr: members of JSON objects that this program wrote, without any spaces,
 * found without making a tree of them. Foreign JSON is read with jansson.
 *
 * Text that is not such JSON does no harm: what cannot be found is absent.
 */
#ifndef BASE_JSONR_H
#define BASE_JSONR_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Borrowed from the text that was read; {0}: absent. */
struct jsonr {
    const char *at;
    size_t len;
};

struct jsonr_member {
    struct jsonr name; /* with its quotes */
    struct jsonr value;
};

/* A whole text, as a value. */
struct jsonr jsonr_of(const char *text);

/*
 * The next member of an object; *cursor begins as 0. False at the end, and
 * where the text is not JSON.
 */
bool jsonr_next(struct jsonr object,
                size_t *cursor,
                struct jsonr_member *member_out);

/* A member of an object by its name, which needs no escapes. */
struct jsonr jsonr_get(struct jsonr object, const char *name);

/* Whether it is the string `text`, which needs no escapes. */
bool jsonr_is(struct jsonr value, const char *text);

/* Append the text of a string; false and nothing appended: it is none. */
bool jsonr_add_text(struct strbuf *out, struct jsonr value);

/* A whole number, or 0. */
int64_t jsonr_int(struct jsonr value);

/* Whether it is true. */
bool jsonr_bool(struct jsonr value);

/* A number, or 0. */
double jsonr_number(struct jsonr value);

#endif /* BASE_JSONR_H */
