/* SPDX-License-Identifier: MIT */
/*
 * xml: untrusted text in XML and HTML, between tags and in attributes.
 */
#ifndef BASE_XML_H
#define BASE_XML_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* Return the length of the UTF-8 character at `text`, or 0 if XML does not
 * allow it. The string is NUL-terminated. */
size_t xml_character_len(const unsigned char *text);

/*
 * Append a string: escape markup, turn line breaks and tabs into spaces, and
 * replace by U+FFFD all characters that XML does not allow (control characters,
 * invalid UTF-8) or that change the writing direction.
 */
void xml_add(struct strbuf *out, const char *text);

/* Return whether the character of `len` bytes changes or marks the writing
 * direction: a string with it can display as a different one. */
bool xml_is_turn(const char *text, size_t len);

#endif /* BASE_XML_H */
