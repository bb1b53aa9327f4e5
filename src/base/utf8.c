/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

size_t utf8_decode(const char *text, size_t left, uint32_t *code_out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t size = bytes[0] < 0x80             ? 1
                  : (bytes[0] & 0xe0) == 0xc0 ? 2
                  : (bytes[0] & 0xf0) == 0xe0 ? 3
                  : (bytes[0] & 0xf8) == 0xf0 ? 4
                                              : 0;
    if (size == 0 || size > left) {
        return 0;
    }
    uint32_t code = size == 1 ? bytes[0] : bytes[0] & (0x7fU >> size);
    for (size_t ix = 1; ix < size; ix++) {
        if ((bytes[ix] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (bytes[ix] & 0x3fU);
    }
    *code_out = code;
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[size] || code > 0x10ffff || surrogate ? 0 : size;
}

/* Return how many bytes of ASCII the text begins with; most texts have no
 * others. */
static size_t skip_ascii(const char *text, size_t len)
{
    size_t at = 0;
    uint64_t word;
    for (; len - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, text + at, sizeof(word));
        if ((word & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
    }
    while (at < len && (unsigned char)text[at] < 0x80) {
        at++;
    }
    return at;
}

bool utf8_is_valid(const char *text, size_t len)
{
    size_t at = skip_ascii(text, len);
    while (at < len) {
        uint32_t code;
        size_t size = utf8_decode(text + at, len - at, &code);
        if (size == 0) {
            return false;
        }
        at += size;
    }
    return true;
}

void utf8_repair(char *text, size_t len)
{
    size_t at = skip_ascii(text, len);
    while (at < len) {
        uint32_t code;
        size_t size = utf8_decode(text + at, len - at, &code);
        if (size == 0) {
            text[at] = '?';
            size = 1;
        }
        at += size;
    }
}
