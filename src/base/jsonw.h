/* SPDX-License-Identifier: MIT */
/*
 * jsonw: JSON output. The writer puts commas, colons and quotes; the caller
 * says what is in an object or an array:
 *
 *   struct jsonw json = {.out = &text};
 *   jsonw_object(&json, NULL);
 *   jsonw_text(&json, "task", id);
 *   jsonw_object_end(&json);
 *
 * Whether a comma is due is seen from the end of `out`, so that several
 * functions may write parts of one object, each with a writer of its own.
 */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* An open struct: {.out = &text} writes without spaces. */
struct jsonw {
    struct strbuf *out;
    bool spaced;     /* a space behind each comma and colon, for people */
    uint32_t indent; /* the next member is on a line of its own, indented by
                        this many spaces; set by jsonw_line() */
};

/* The next member or element begins a line, behind `indent` spaces: 1 or more.
 */
void jsonw_line(struct jsonw *json, uint32_t indent);

/*
 * What follows writes one member of an object, or, when `name` is NULL, one
 * element of an array or a value that stands alone. A name needs no escapes.
 */
void jsonw_object(struct jsonw *json, const char *name);
void jsonw_object_end(struct jsonw *json);
void jsonw_array(struct jsonw *json, const char *name);
void jsonw_array_end(struct jsonw *json);

/* The same on a line of its own: an array that is a member, and an object that
 * is an element. */
void jsonw_list(struct jsonw *json, uint32_t indent, const char *name);
void jsonw_item(struct jsonw *json, uint32_t indent);

/* End an object that stands alone, and its line. */
void jsonw_finish(struct jsonw *json);

/* The text of jsonw_string(); NULL is null. */
void jsonw_text(struct jsonw *json, const char *name, const char *text);
void jsonw_int(struct jsonw *json, const char *name, int64_t number);
void jsonw_bool(struct jsonw *json, const char *name, bool value);
void jsonw_null(struct jsonw *json, const char *name);

/* Null, unless it is `known`. */
void jsonw_int_if(struct jsonw *json,
                  const char *name,
                  bool known,
                  int64_t number);
void jsonw_duration_if(struct jsonw *json,
                       const char *name,
                       bool known,
                       int64_t duration_ns);

/* With at most so many digits that count, as "%.*g" writes it. */
void jsonw_number(struct jsonw *json,
                  const char *name,
                  int digits,
                  double number);

/* Nanoseconds as seconds, exact, without useless zeros: 90, 0.25. */
void jsonw_duration(struct jsonw *json, const char *name, int64_t duration_ns);

/* A time of the wall clock in UTC, to the millisecond, as a string. */
void jsonw_moment(struct jsonw *json, const char *name, int64_t wall_ns);

/* A value that is JSON already; NULL is null. Without a name, `value` may also
 * be members of an object, as another writer has made them. */
void jsonw_raw(struct jsonw *json, const char *name, const char *value);

/* Only the name, which may need escapes: the caller appends one value. */
void jsonw_name(struct jsonw *json, const char *name);

/* --- values without punctuation ----------------------------------------- */

/* Append a text as a JSON string, with quotes; NULL becomes null. Bytes that
 * are not UTF-8 become question marks: what comes out is always JSON. */
void jsonw_string(struct strbuf *out, const char *text);

#endif /* BASE_JSONW_H */
