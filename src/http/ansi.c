/* SPDX-License-Identifier: MIT */
#include "http/ansi.h"

#include "base/macros.h"
#include "base/xml.h"

#include <string.h>

enum { ESCAPE = 0x1b };

/* Apply one parameter of "select graphic rendition". */
static void apply(struct ansi *ansi, uint32_t code)
{
    if (code == 0) {
        *ansi = (struct ansi){0};
    } else if (code == 1) {
        ansi->bold = true;
    } else if (code == 2) {
        ansi->faint = true;
    } else if (code == 22) {
        ansi->bold = false;
        ansi->faint = false;
    } else if (code == 39) {
        ansi->colour = 0;
    } else if (code >= 30 && code <= 37) {
        ansi->colour = (uint8_t)(code - 29);
    } else if (code >= 90 && code <= 97) {
        ansi->colour = (uint8_t)(code - 81);
    }
}

/* Apply "ESC [ ... m"; *text is after the bracket. */
static void apply_all(struct ansi *ansi, const char *text, const char *end)
{
    uint32_t code = 0;
    bool part = false; /* of a parameter: "4:3" is a kind of underline */
    for (; text <= end; text++) {
        char byte = (char)(text < end ? *text : ';');
        if (byte == ':') {
            part = true;
        } else if (byte != ';') {
            bool counts = !part && code < 1000;
            code = counts ? code * 10 + (uint32_t)(byte - '0') : code;
        } else if (code == 38 || code == 48 || code == 58) {
            return; /* one of 256 colours, or more: its parameters follow */
        } else {
            apply(ansi, code);
            code = 0;
            part = false;
        }
    }
}

static bool is_between(char byte, char least, char most)
{
    return byte >= least && byte <= most;
}

/* Skip "ESC [ ... FINAL"; apply a style. */
static size_t skip_control(struct ansi *ansi, const char *text, size_t len)
{
    size_t digits = 2;
    while (digits < len && is_between(text[digits], '0', ';')) {
        digits++;
    }
    size_t ix = digits;
    while (ix < len && is_between(text[ix], ' ', '?')) {
        ix++; /* parameters of others, and intermediate bytes */
    }
    if (ix == len || !is_between(text[ix], '@', '~')) {
        return ix; /* no end: what follows is something else */
    }
    if (text[ix] == 'm' && ix == digits) {
        apply_all(ansi, text + 2, text + ix);
    }
    return ix + 1;
}

/* Skip a title, a link: up to BEL or ESC \. */
static size_t skip_string(const char *text, size_t len)
{
    size_t ix = 2;
    while (ix < len && text[ix] != 0x07 && text[ix] != ESCAPE) {
        ix++;
    }
    if (ix < len && text[ix] == 0x07) {
        return ix + 1;
    }
    return ix + 1 < len && text[ix + 1] == '\\' ? ix + 2 : ix;
}

/* Skip an escape sequence at `text`, which has `len` bytes; return its length.
 * A style is applied. */
static size_t skip(struct ansi *ansi, const char *text, size_t len)
{
    size_t ix = 1;
    if (len > 1 && text[1] == '[') {
        return skip_control(ansi, text, len);
    }
    if (len > 1 && text[1] != '\0' && strchr("]PX^_", text[1]) != NULL) {
        return skip_string(text, len);
    }
    while (ix < len && is_between(text[ix], ' ', '/')) {
        ix++; /* such as the "(" of "ESC ( B" */
    }
    return ix < len && is_between(text[ix], '0', '~') ? ix + 1 : ix;
}

static void open_style(struct strbuf *out, const struct ansi *ansi)
{
    strbuf_adds(out, "<span class=\"");
    if (ansi->colour > 0) {
        strbuf_addf(out, "a%u ", ansi->colour);
    }
    strbuf_addf(out,
                "%s%s\">",
                ansi->bold ? "ab " : "",
                ansi->faint ? "af" : "");
}

static bool is_plain(const struct ansi *ansi)
{
    return ansi->colour == 0 && !ansi->bold && !ansi->faint;
}

/* Append text without escapes, in a style. */
static void add_plain(struct strbuf *out,
                      const struct ansi *ansi,
                      const char *text,
                      size_t len)
{
    struct strbuf copy = {0};
    if (len == 0) {
        return;
    }
    for (size_t ix = 0; ix < len; ix++) {
        char byte = text[ix];
        if (byte == '\0' || byte == '\r') {
            byte = ' ';
        }
        if (byte == '\t') {
            strbuf_pad(&copy, ' ', 8 - copy.len % 8);
        } else {
            strbuf_add(&copy, &byte, 1);
        }
    }
    if (!is_plain(ansi)) {
        open_style(out, ansi);
    }
    xml_add(out, strbuf_text(&copy));
    if (!is_plain(ansi)) {
        strbuf_adds(out, "</span>");
    }
    strbuf_release(&copy);
}

void ansi_add(struct strbuf *out,
              struct ansi *ansi,
              const char *text,
              size_t len)
{
    size_t at = 0;
    while (at < len) {
        const char *escape = memchr(text + at, ESCAPE, len - at);
        size_t end = escape != NULL ? (size_t)(escape - text) : len;
        add_plain(out, ansi, text + at, end - at);
        at = end;
        if (at < len) {
            at += skip(ansi, text + at, len - at);
        }
    }
}
