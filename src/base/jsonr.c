/* SPDX-License-Identifier: MIT */
#include "base/jsonr.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES_MAX = 48 };

struct jsonr jsonr_of(const char *text)
{
    return (struct jsonr){.at = text, .len = strlen(text)};
}

/* Return the index after the string that begins at `ix`; 0: unterminated. */
static size_t skip_string(struct jsonr text, size_t ix)
{
    for (ix++; ix < text.len; ix++) {
        if (text.at[ix] == '\\') {
            ix++;
        } else if (text.at[ix] == '"') {
            return ix + 1;
        }
    }
    return 0;
}

/* Return the index after the value that begins at `ix`; 0: no value. Brackets
 * are counted, not matched: the input is well-formed. */
static size_t skip_value(struct jsonr text, size_t ix)
{
    size_t depth = 0;
    size_t begin = ix;
    while (ix < text.len) {
        char byte = text.at[ix];
        if (byte == '"') {
            ix = skip_string(text, ix);
            if (ix == 0) {
                return 0;
            }
        } else if (byte == '{' || byte == '[') {
            depth++;
            ix++;
        } else if (depth > 0 && (byte == '}' || byte == ']')) {
            depth--;
            ix++;
        } else if (depth == 0 && (byte == ',' || byte == '}' || byte == ']')) {
            break;
        } else {
            ix++;
        }
    }
    return depth == 0 && ix > begin ? ix : 0;
}

bool jsonr_next(struct jsonr object,
                size_t *cursor,
                struct jsonr_member *member_out)
{
    size_t name = *cursor + 1;
    if (name >= object.len || object.at[name] != '"' ||
        object.at[*cursor] != (*cursor == 0 ? '{' : ',')) {
        return false;
    }
    size_t colon = skip_string(object, name);
    if (colon == 0 || colon >= object.len || object.at[colon] != ':') {
        return false;
    }
    size_t value = colon + 1;
    size_t end = skip_value(object, value);
    if (end == 0) {
        return false;
    }
    *member_out = (struct jsonr_member){
        .name = {.at = object.at + name, .len = colon - name},
        .value = {.at = object.at + value, .len = end - value},
    };
    *cursor = end;
    return true;
}

struct jsonr jsonr_get(struct jsonr object, const char *name)
{
    struct jsonr_member member;
    size_t cursor = 0;
    while (jsonr_next(object, &cursor, &member)) {
        if (jsonr_is(member.name, name)) {
            return member.value;
        }
    }
    return (struct jsonr){0};
}

bool jsonr_is(struct jsonr value, const char *text)
{
    size_t len = strlen(text);
    return value.len == len + 2 && value.at[0] == '"' &&
           memcmp(value.at + 1, text, len) == 0;
}

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* Append the character of a "\u" escape. Other writers escape more than we do;
 * a non-ASCII character becomes '?'. */
static void add_escaped(struct strbuf *out, const char digits[4])
{
    unsigned code = 0;
    for (size_t ix = 0; ix < 4; ix++) {
        int digit = hex_digit(digits[ix]);
        code = digit < 0 ? 0x80 : code * 16 + (unsigned)digit;
    }
    char byte = '?';
    if (code > 0 && code < 0x80) {
        byte = (char)code;
    }
    strbuf_add(out, &byte, 1);
}

bool jsonr_add_text(struct strbuf *out, struct jsonr value)
{
    static const char names[] = "bfnrt";
    static const char bytes[] = "\b\f\n\r\t";
    if (value.len < 2 || value.at[0] != '"') {
        return false;
    }
    size_t end = value.len - 1;
    for (size_t ix = 1; ix < end; ix++) {
        size_t begin = ix;
        while (ix < end && value.at[ix] != '\\') {
            ix++;
        }
        strbuf_add(out, value.at + begin, ix - begin);
        if (++ix >= end) {
            break;
        }
        if (value.at[ix] == 'u' && end - ix > 4) {
            add_escaped(out, value.at + ix + 1);
            ix += 4;
            continue;
        }
        const char *name = strchr(names, value.at[ix]);
        strbuf_add(out, name != NULL ? &bytes[name - names] : &value.at[ix], 1);
    }
    return true;
}

/* Copy a possible number, for the C library to parse; "": not a number. */
static void copy_number(struct jsonr value, char text[static NUMBER_BYTES_MAX])
{
    size_t len = value.len < NUMBER_BYTES_MAX ? value.len : 0;
    if (len > 0) {
        memcpy(text, value.at, len);
    }
    text[len] = '\0';
}

double jsonr_number(struct jsonr value)
{
    char text[NUMBER_BYTES_MAX];
    char *end;
    copy_number(value, text);
    double number = strtod(text, &end);
    return *end == '\0' ? number : 0;
}

int64_t jsonr_int(struct jsonr value)
{
    char text[NUMBER_BYTES_MAX];
    char *end;
    copy_number(value, text);
    long long number = strtoll(text, &end, 10);
    return *end == '\0' ? number : 0;
}

bool jsonr_bool(struct jsonr value)
{
    return value.len == strlen("true") && memcmp(value.at, "true", 4) == 0;
}
