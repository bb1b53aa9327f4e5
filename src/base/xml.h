/* SPDX-License-Identifier: MIT */
/*
 * xml: texts of others in XML and HTML, between tags and in attributes.
 */
#ifndef BASE_XML_H
#define BASE_XML_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at `text`, or 0 when it is none that XML can
 * hold. The text ends with a NUL. */
size_t xml_character_len(const unsigned char *text);

/*
 * Append a text: markup is escaped, line breaks and tabs become spaces, and
 * what XML cannot hold (control characters, bytes that are not UTF-8) or turns
 * the direction of writing becomes U+FFFD.
 */
void xml_add(struct strbuf *out, const char *text);

/* Whether the character of `len` bytes turns the direction of writing, or marks
 * it: a text that has it may show as another one. */
bool xml_is_turn(const char *text, size_t len);

#endif /* BASE_XML_H */
