/* SPDX-License-Identifier: MIT */
#include "import/import_reference.h"

#include <string.h>

bool import_reference_is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           import_is_digit(byte) || (unsigned char)byte >= 0x80;
}

bool import_reference_is_name(char byte)
{
    return (import_reference_is_letter(byte) && (unsigned char)byte < 0x80) ||
           byte == '.' || byte == '_' || byte == '-';
}

const char *import_reference_skip(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

const char *
import_reference_text(const char *at, const char *end, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(end - at) < len ||
        !import_is(import_between(at, at + len), text)) {
        return NULL;
    }
    return at + len;
}

/* Read digits that are not part of a longer word. */
static const char *read_number(const char *at, const char *end, int64_t *number)
{
    const char *from = at;
    int64_t sum = 0;
    for (; at < end && import_is_digit(*at); at++) {
        sum = sum > IMPORT_NUMBER_MAX ? sum : sum * 10 + (*at - '0');
    }
    const char *behind = at;
    while (behind < end && *behind == '_' && behind - at < 2) {
        behind++; /* closes _#1_; #1_a is one word */
    }
    if (at == from || (behind < end && import_reference_is_letter(*behind))) {
        return NULL;
    }
    *number = sum > IMPORT_NUMBER_MAX ? 0 : sum;
    return at;
}

/* Read the name of an owner or a repository, and the byte that must follow. */
static const char *
read_name(const char *at, const char *end, char behind, struct import_span *out)
{
    const char *from = at;
    while (at < end && import_reference_is_name(*at)) {
        at++;
    }
    *out = import_between(from, at);
    return at > from && at < end && *at == behind ? at + 1 : NULL;
}

/* Read HOST/OWNER/NAME/issues/NUMBER, with the rest of the address. */
static const char *
read_address(const char *at, const char *end, struct import_reference *out)
{
    static const char *const kinds[] = {"issues/", "pull/"};
    struct import_span host;
    const char *scheme = import_reference_text(at, end, "https://");
    scheme =
        scheme != NULL ? scheme : import_reference_text(at, end, "http://");
    at = read_name(scheme != NULL ? scheme : at, end, '/', &host);
    if (at == NULL || (scheme == NULL && !import_is(host, "github.com"))) {
        return NULL;
    }
    at = read_name(at, end, '/', &out->owner);
    at = at == NULL ? NULL : read_name(at, end, '/', &out->name);
    const char *kind = NULL;
    for (size_t ix = 0; at != NULL && ix < ARRAY_COUNT(kinds); ix++) {
        kind = kind != NULL ? kind : import_reference_text(at, end, kinds[ix]);
    }
    out->pull = kind != NULL && kind[-2] == 'l';
    at = kind == NULL ? NULL : read_number(kind, end, &out->number);
    if (at != NULL && at < end && strchr("/#?", *at) != NULL) {
        while (at < end && strchr(" \t\n()<>[],;|\"'*", *at) == NULL) {
            at++;
        }
    }
    return at;
}

/* Read [TEXT](ADDRESS) or <ADDRESS>. */
static const char *
read_link(const char *at, const char *end, struct import_reference *out)
{
    char close = '>';
    const char *from = at + 1;
    if (*at == '[') {
        size_t len = (size_t)(end - at);
        len = len < IMPORT_LOOK_BYTES_MAX ? len : IMPORT_LOOK_BYTES_MAX;
        from = memmem(at, len, "](", 2);
        if (from == NULL) {
            return NULL;
        }
        from += 2;
        close = ')';
    }
    at = read_address(from, end, out);
    return at != NULL && at < end && *at == close ? at + 1 : NULL;
}

/* Read NAME#NUMBER or OWNER/NAME#NUMBER. */
static const char *
read_named(const char *at, const char *end, struct import_reference *out)
{
    static const char *const words[] = {"issue", "pr", "task", "ticket"};
    const char *next = read_name(at, end, '/', &out->owner);
    if (next == NULL) {
        out->owner = (struct import_span){0};
        next = at;
    }
    at = read_name(next, end, '#', &out->name);
    for (size_t ix = 0; at != NULL && ix < ARRAY_COUNT(words); ix++) {
        if (out->owner.len == 0 && import_is(out->name, words[ix])) {
            out->name = (struct import_span){0};
        }
    }
    return at == NULL ? NULL : read_number(at, end, &out->number);
}

const char *import_reference_read(const char *at,
                                  const char *end,
                                  struct import_reference *out)
{
    *out = (struct import_reference){0};
    if (at >= end) {
        return NULL;
    }
    const char *next = NULL;
    const char *dash = import_reference_text(at, end, "GH-");
    if (*at == '#') {
        next = read_number(at + 1, end, &out->number);
    } else if (*at == '[' || *at == '<') {
        next = read_link(at, end, out);
    } else if (dash != NULL) {
        next = read_number(dash, end, &out->number);
    }
    if (next == NULL && import_reference_is_name(*at)) {
        next = read_address(at, end, out);
        if (next == NULL) {
            *out = (struct import_reference){0};
            next = read_named(at, end, out);
        }
    }
    out->text = next == NULL ? out->text : import_between(at, next);
    return next;
}
