/* SPDX-License-Identifier: MIT */
/*
 * route: matching of paths. Pure.
 *
 * In a pattern, "{name}" stands for one segment, and "{name*}" for one or more
 * of them: ids of tasks contain slashes.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

enum { ROUTE_PARTS_MAX = 3 };

/* The parts of a path, decoded. Release with route_release(). */
struct route_parts {
    struct strbuf items[ROUTE_PARTS_MAX];
    uint32_t count;
};

/* Whether a path, as sent, fits a pattern; *out has the parts. A path with an
 * invalid escape, or an encoded NUL, fits none. */
bool route_match(const char *pattern,
                 const char *path,
                 struct route_parts *out);
void route_release(struct route_parts *parts);

/* Append a text without its escapes; false: one is invalid, or a NUL. In forms
 * and queries (`plus`), "+" is a blank. */
bool route_decode(struct strbuf *out, const char *text, size_t len, bool plus);

#endif /* HTTP_ROUTE_H */
