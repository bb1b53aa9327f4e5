/* SPDX-License-Identifier: MIT */
/*
 * jsonw: JSON output. The writer adds commas, colons and quotes; the caller
 * names the members of an object and the elements of an array:
 *
 *   struct jsonw json = {.out = &text};
 *   jsonw_object(&json, NULL);
 *   jsonw_text(&json, "task", id);
 *   jsonw_object_end(&json);
 *
 * The last byte of `out` shows whether a comma is due, so that several
 * functions can write parts of one object, each with its own writer.
 */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* An open struct: {.out = &text} writes without spaces. */
struct jsonw {
    struct strbuf *out;
    bool spaced;     /* a space after each comma and colon, for readability */
    uint32_t indent; /* the next member is on its own line, indented by this
                        many spaces; set by jsonw_line() */
};

/* Put the next member or element on a new line after `indent` spaces, >= 1. */
void jsonw_line(struct jsonw *json, uint32_t indent);

/*
 * The functions below write one member of an object or, if `name` is NULL, one
 * element of an array or a top-level value. A name needs no escapes.
 */
void jsonw_object(struct jsonw *json, const char *name);
void jsonw_object_end(struct jsonw *json);
void jsonw_array(struct jsonw *json, const char *name);
void jsonw_array_end(struct jsonw *json);

/* The same on its own line: an array that is a member, and an object that is an
 * element. */
void jsonw_list(struct jsonw *json, uint32_t indent, const char *name);
void jsonw_item(struct jsonw *json, uint32_t indent);

/* Close a top-level object and its line. */
void jsonw_finish(struct jsonw *json);

/* Write as jsonw_string() does; NULL is null. */
void jsonw_text(struct jsonw *json, const char *name, const char *text);
void jsonw_int(struct jsonw *json, const char *name, int64_t number);
void jsonw_bool(struct jsonw *json, const char *name, bool value);
void jsonw_null(struct jsonw *json, const char *name);

/* Write null unless `known`. */
void jsonw_int_if(struct jsonw *json,
                  const char *name,
                  bool known,
                  int64_t number);
void jsonw_duration_if(struct jsonw *json,
                       const char *name,
                       bool known,
                       int64_t duration_ns);

/* With at most `digits` significant digits, as "%.*g". */
void jsonw_number(struct jsonw *json,
                  const char *name,
                  int digits,
                  double number);

/* Nanoseconds as seconds, exact, without trailing zeros: 90, 0.25. */
void jsonw_duration(struct jsonw *json, const char *name, int64_t duration_ns);

/* A wall-clock time in UTC, to the millisecond, as a string. */
void jsonw_moment(struct jsonw *json, const char *name, int64_t wall_ns);

/* A value that is JSON already; NULL is null. Without a name, `value` may also
 * be members of an object, written by another writer. */
void jsonw_raw(struct jsonw *json, const char *name, const char *value);

/* Only the name, which may need escapes: the caller appends one value. */
void jsonw_name(struct jsonw *json, const char *name);

/* --- values without punctuation ----------------------------------------- */

/* Append a JSON string with quotes; NULL becomes null. Invalid UTF-8 becomes
 * question marks, so the output is always JSON. */
void jsonw_string(struct strbuf *out, const char *text);

#endif /* BASE_JSONW_H */
