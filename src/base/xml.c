/* SPDX-License-Identifier: MIT */
#include "base/xml.h"

#include <stdint.h>
#include <string.h>

size_t xml_character_len(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0x20, 0x80, 0x800, 0x10000};
    size_t len = text[0] < 0x80             ? 1
                 : (text[0] & 0xe0) == 0xc0 ? 2
                 : (text[0] & 0xf0) == 0xe0 ? 3
                 : (text[0] & 0xf8) == 0xf0 ? 4
                                            : 0;
    if (len == 0) {
        return 0;
    }
    uint32_t code = len == 1 ? text[0] : text[0] & (0x7fU >> len);
    for (size_t ix = 1; ix < len; ix++) {
        if ((text[ix] & 0xc0) != 0x80) { /* stops at a NUL, too */
            return 0;
        }
        code = code << 6 | (text[ix] & 0x3fU);
    }
    bool is_other = (code >= 0x7f && code < 0xa0) ||
                    (code >= 0xd800 && code < 0xe000) || code == 0xfffe ||
                    code == 0xffff || code > 0x10ffff;
    return code < least[len] || is_other ? 0 : len;
}

bool xml_is_turn(const char *text, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t code = 0;
    if (len == 2) {
        code = (bytes[0] & 0x1fU) << 6 | (bytes[1] & 0x3fU);
    } else if (len == 3) {
        code = (bytes[0] & 0x0fU) << 12 | (bytes[1] & 0x3fU) << 6 |
               (bytes[2] & 0x3fU);
    }
    return code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

void xml_add(struct strbuf *out, const char *text)
{
    while (*text != '\0') {
        size_t len = xml_character_len((const unsigned char *)text);
        if (len > 1 && xml_is_turn(text, len)) {
            strbuf_adds(out, "\xef\xbf\xbd");
        } else if (len == 0) {
            bool is_space = *text == '\t' || *text == '\n' || *text == '\r';
            strbuf_adds(out, is_space ? " " : "\xef\xbf\xbd");
            len = 1;
        } else if (*text == '&') {
            strbuf_adds(out, "&amp;");
        } else if (*text == '<') {
            strbuf_adds(out, "&lt;");
        } else if (*text == '>') {
            strbuf_adds(out, "&gt;");
        } else if (*text == '"') {
            strbuf_adds(out, "&quot;");
        } else if (*text == '\'') {
            strbuf_adds(out, "&#39;");
        } else {
            strbuf_add(out, text, len);
        }
        text += len;
    }
}
