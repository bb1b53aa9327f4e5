/* SPDX-License-Identifier: MIT */
#include "base/plain.h"

#include "base/strip.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

static const char ellipsis[] = "...";

static uint32_t width_of(uint32_t code)
{
    int width = wcwidth((wchar_t)code);
    return width >= 0 ? (uint32_t)width : 1;
}

struct plain_character plain_decode(const char *at)
{
    const unsigned char first = (unsigned char)at[0];
    uint32_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc0) {
        return (struct plain_character){.code = first, .bytes = 1};
    }
    uint32_t code = first & (0x7fU >> bytes);
    for (uint32_t ix = 1; ix < bytes; ix++) {
        unsigned char next = (unsigned char)at[ix];
        if ((next & 0xc0) != 0x80) { /* stops at a NUL, too */
            return (struct plain_character){.code = first, .bytes = 1};
        }
        code = code << 6 | (next & 0x3fU);
    }
    return (struct plain_character){.code = code, .bytes = bytes};
}

void plain_add(struct strbuf *out, const char *text)
{
    struct strbuf clean = {0};
    strip_text(&clean, text, strlen(text));
    bool any = false;
    bool blank = false; /* a space is due before the next word */
    for (const char *at = strbuf_text(&clean); *at != '\0'; at++) {
        if (strchr(" \t\r\n", *at) != NULL) {
            blank = any;
            continue;
        }
        strbuf_adds(out, blank ? " " : "");
        strbuf_add(out, at, 1);
        any = true;
        blank = false;
    }
    strbuf_release(&clean);
}

/* Return the bytes of `text` that fit into `columns` columns. */
static size_t bytes_in(const char *text, uint32_t columns)
{
    size_t bytes = 0;
    uint32_t used = 0;
    while (text[bytes] != '\0') {
        struct plain_character character = plain_decode(text + bytes);
        used += width_of(character.code);
        if (used > columns) {
            break;
        }
        bytes += character.bytes;
    }
    return bytes;
}

void plain_add_cut(struct strbuf *out, const char *text, uint32_t columns)
{
    size_t whole = bytes_in(text, columns);
    if (text[whole] == '\0') {
        strbuf_add(out, text, whole);
        return;
    }
    uint32_t dots = (uint32_t)strlen(ellipsis);
    dots = dots < columns ? dots : columns;
    strbuf_add(out, text, bytes_in(text, columns - dots));
    strbuf_add(out, ellipsis, dots);
}

uint32_t plain_columns(const char *text)
{
    uint32_t columns = 0;
    while (*text != '\0') {
        struct plain_character character = plain_decode(text);
        columns += width_of(character.code);
        text += character.bytes;
    }
    return columns;
}

void plain_add_clock(struct strbuf *out, int64_t wall_ns, enum plain_clock as)
{
    time_t seconds = (time_t)(wall_ns / INT64_C(1000000000));
    struct tm local = {0};
    char text[64];
    bool good = localtime_r(&seconds, &local) != NULL &&
                strftime(text,
                         sizeof(text),
                         as == PLAIN_MINUTES   ? "%H:%M"
                         : as == PLAIN_SECONDS ? "%H:%M:%S"
                         : as == PLAIN_DATE    ? "%Y-%m-%d %H:%M"
                                               : "%Y-%m-%d %H:%M:%S %z",
                         &local) > 0;
    strbuf_adds(out, good ? text : "?");
}
