/* SPDX-License-Identifier: MIT */
#include "base/jsonw.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/utc.h"
#include "base/utf8.h"

#include <string.h>

/* Return whether a value precedes, so that a comma is due. */
static bool is_after_value(const struct strbuf *out)
{
    size_t len = out->len;
    while (len > 0 && out->text[len - 1] == ' ') {
        len--;
    }
    return len > 0 && strchr("{[:,\n", out->text[len - 1]) == NULL;
}

/* Write the separator before a member or an element, and its name. */
static void begin(struct jsonw *json, const char *name)
{
    struct strbuf *out = json->out;
    bool comma = is_after_value(out);
    if (json->indent > 0) {
        strbuf_adds(out, comma ? ",\n" : "\n");
        strbuf_pad(out, ' ', json->indent);
        json->indent = 0;
    } else if (comma) {
        strbuf_adds(out, json->spaced ? ", " : ",");
    }
    if (name != NULL) {
        strbuf_adds(out, "\"");
        strbuf_adds(out, name);
        strbuf_adds(out, json->spaced ? "\": " : "\":");
    }
}

void jsonw_line(struct jsonw *json, uint32_t indent)
{
    INVARIANT(indent > 0);
    json->indent = indent;
}

void jsonw_object(struct jsonw *json, const char *name)
{
    begin(json, name);
    strbuf_adds(json->out, "{");
}

void jsonw_object_end(struct jsonw *json)
{
    strbuf_adds(json->out, "}");
}

void jsonw_array(struct jsonw *json, const char *name)
{
    begin(json, name);
    strbuf_adds(json->out, "[");
}

void jsonw_array_end(struct jsonw *json)
{
    strbuf_adds(json->out, "]");
}

void jsonw_list(struct jsonw *json, uint32_t indent, const char *name)
{
    jsonw_line(json, indent);
    jsonw_array(json, name);
}

void jsonw_item(struct jsonw *json, uint32_t indent)
{
    jsonw_line(json, indent);
    jsonw_object(json, NULL);
}

void jsonw_finish(struct jsonw *json)
{
    jsonw_object_end(json);
    strbuf_adds(json->out, "\n");
}

void jsonw_text(struct jsonw *json, const char *name, const char *text)
{
    begin(json, name);
    jsonw_string(json->out, text);
}

void jsonw_int(struct jsonw *json, const char *name, int64_t number)
{
    /* Not printf(), which is slow: events have several numbers each. */
    char text[24];
    size_t at = sizeof(text);
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) {
        text[--at] = '-';
    }
    begin(json, name);
    strbuf_add(json->out, text + at, sizeof(text) - at);
}

void jsonw_bool(struct jsonw *json, const char *name, bool value)
{
    jsonw_raw(json, name, value ? "true" : "false");
}

void jsonw_null(struct jsonw *json, const char *name)
{
    jsonw_raw(json, name, "null");
}

void jsonw_number(struct jsonw *json,
                  const char *name,
                  int digits,
                  double number)
{
    begin(json, name);
    strbuf_addf(json->out, "%.*g", digits, number);
}

void jsonw_duration(struct jsonw *json, const char *name, int64_t duration_ns)
{
    bool negative = duration_ns < 0;
    uint64_t ns = negative ? 0 - (uint64_t)duration_ns : (uint64_t)duration_ns;
    uint64_t part = ns % (uint64_t)SECOND_NS;
    struct strbuf *out = json->out;
    begin(json, name);
    strbuf_addf(out,
                "%s%llu",
                negative ? "-" : "",
                (unsigned long long)(ns / (uint64_t)SECOND_NS));
    if (part > 0) {
        strbuf_addf(out, ".%09llu", (unsigned long long)part);
        while (out->text[out->len - 1] == '0') {
            out->text[--out->len] = '\0';
        }
    }
}

void jsonw_moment(struct jsonw *json, const char *name, int64_t wall_ns)
{
    struct strbuf *out = json->out;
    begin(json, name);
    size_t start = out->len;
    strbuf_adds(out, "\"");
    if (utc_add(out, wall_ns)) {
        strbuf_adds(out, "\"");
    } else {
        out->len = start;
        strbuf_adds(out, "null");
    }
}

void jsonw_int_if(struct jsonw *json,
                  const char *name,
                  bool known,
                  int64_t number)
{
    if (known) {
        jsonw_int(json, name, number);
    } else {
        jsonw_null(json, name);
    }
}

void jsonw_duration_if(struct jsonw *json,
                       const char *name,
                       bool known,
                       int64_t duration_ns)
{
    if (known) {
        jsonw_duration(json, name, duration_ns);
    } else {
        jsonw_null(json, name);
    }
}

void jsonw_raw(struct jsonw *json, const char *name, const char *value)
{
    begin(json, name);
    strbuf_adds(json->out, value != NULL ? value : "null");
}

void jsonw_name(struct jsonw *json, const char *name)
{
    INVARIANT(name != NULL);
    begin(json, NULL);
    jsonw_string(json->out, name);
    strbuf_adds(json->out, json->spaced ? ": " : ":");
}

void jsonw_string(struct strbuf *out, const char *text)
{
    if (text == NULL) {
        strbuf_adds(out, "null");
        return;
    }
    strbuf_adds(out, "\"");
    size_t begin = out->len;
    unsigned char seen = 0; /* all bytes ORed: ASCII needs no repair */
    while (*text != '\0') {
        size_t plain = 0;
        while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
               text[plain] != '\\') {
            seen |= (unsigned char)text[plain++];
        }
        strbuf_add(out, text, plain);
        text += plain;
        if (*text != '\0') {
            unsigned char byte = (unsigned char)*text++;
            if (byte == '"' || byte == '\\') {
                strbuf_addf(out, "\\%c", byte);
            } else {
                strbuf_addf(out, "\\u%04x", byte);
            }
        }
    }
    if (seen >= 0x80) {
        utf8_repair(out->text + begin, out->len - begin);
    }
    strbuf_adds(out, "\"");
}
