/* SPDX-License-Identifier: MIT */
/*
 * A UTF-8 decoder in front of the states of a terminal's parser (ECMA-48). A
 * line break resets every state: an unterminated sequence hides only the rest
 * of its line. That is safe, because the following lines are filtered as well.
 */
#include "base/strip.h"

#include "base/utf8.h"

#include <string.h>

enum {
    TEXT,
    ESCAPE,  /* after ESC, and its intermediate characters */
    CONTROL, /* after ESC [ */
    STRING,  /* after ESC ] and similar: until BEL or the next ESC */
};

enum { BELL = 0x07, CANCEL = 0x18, SUBSTITUTE = 0x1a, ESC = 0x1b };

static bool is_break(uint32_t code)
{
    return code == '\n' || code == '\r' || code == '\t';
}

/* Return whether the character changes the writing direction. */
static bool is_turn(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* Take a character outside of sequences; return the next state. */
static uint8_t
take_text(const struct strip *strip, struct strbuf *out, uint32_t code)
{
    bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (is_break(code) || (!is_control && !is_turn(code))) {
        strbuf_add(out, strip->held, strip->held_count);
    }
    switch (code) {
    case ESC:
        return ESCAPE;
    case 0x9b:
        return CONTROL;
    case 0x90:
    case 0x98:
    case 0x9d:
    case 0x9e:
    case 0x9f:
        return STRING;
    default:
        return TEXT;
    }
}

/* Take a character after ESC; return the next state. */
static uint8_t
take_escape(const struct strip *strip, struct strbuf *out, uint32_t code)
{
    if (code == '[') {
        return CONTROL;
    }
    if (code < 0x80 && code > 0 && strchr("]PX^_", (int)code) != NULL) {
        return STRING;
    }
    if (code >= 0x20 && code < 0x30) {
        return ESCAPE;
    }
    return code >= 0x30 && code < 0x7f ? TEXT : take_text(strip, out, code);
}

/* Take a complete character, which is in `held`. */
static void take(struct strip *strip, struct strbuf *out, uint32_t code)
{
    switch (strip->state) {
    case ESCAPE:
        strip->state = take_escape(strip, out, code);
        break;
    case CONTROL:
        if (code >= 0x40 && code < 0x7f) {
            strip->state = TEXT;
        } else if (code < 0x20 || code >= 0x40) {
            strip->state = take_text(strip, out, code);
        }
        break;
    case STRING:
        if (code == ESC || is_break(code)) {
            strip->state = take_text(strip, out, code);
        } else if (code == BELL || code == CANCEL || code == SUBSTITUTE ||
                   code == 0x9c) {
            strip->state = TEXT;
        }
        break;
    default:
        strip->state = take_text(strip, out, code);
    }
    strip->held_count = 0;
}

/* Take an invalid byte sequence. */
static void take_bad(struct strip *strip, struct strbuf *out)
{
    strip->held[0] = '?';
    strip->held_count = 1;
    take(strip, out, '?');
}

/* Return the length of the character that begins with `first`; 0: invalid. */
static uint8_t bytes_of(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Take the first byte of a character. */
static void begin(struct strip *strip, struct strbuf *out, char byte)
{
    strip->held_needed = bytes_of((unsigned char)byte);
    if (strip->held_needed == 0) {
        take_bad(strip, out);
        return;
    }
    strip->held[0] = byte;
    strip->held_count = 1;
    if (strip->held_needed == 1) {
        take(strip, out, (unsigned char)byte);
    }
}

void strip_add(struct strip *strip,
               struct strbuf *out,
               const char *bytes,
               size_t len)
{
    for (size_t ix = 0; ix < len; ix++) {
        bool goes_on = ((unsigned char)bytes[ix] & 0xc0) == 0x80;
        if (strip->held_count > 0 && !goes_on) {
            take_bad(strip, out);
        }
        if (strip->held_count == 0) {
            begin(strip, out, bytes[ix]);
            continue;
        }
        strip->held[strip->held_count++] = bytes[ix];
        if (strip->held_count == strip->held_needed) {
            uint32_t code;
            if (utf8_decode(strip->held, strip->held_count, &code) == 0) {
                take_bad(strip, out);
            } else {
                take(strip, out, code);
            }
        }
    }
}

void strip_end(struct strip *strip, struct strbuf *out)
{
    if (strip->held_count > 0) {
        take_bad(strip, out);
    }
    strip->state = TEXT;
}

void strip_text(struct strbuf *out, const char *text, size_t len)
{
    struct strip strip = {0};
    strip_add(&strip, out, text, len);
    strip_end(&strip, out);
}
