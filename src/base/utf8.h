/* SPDX-License-Identifier: MIT */
/*
 * utf8: UTF-8 from outside, checked and repaired.
 *
 * Valid means what JSON and SQLite accept: no overlong forms, no surrogates,
 * nothing above U+10FFFF. A NUL is a valid character here.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `text`, of which `left` bytes (one at least) can
 * be read, and its code; 0: no valid character begins there. */
size_t utf8_decode(const char *text, size_t left, uint32_t *code_out);

/* Whether all of the text is valid. */
bool utf8_is_valid(const char *text, size_t len);

/* Replace each byte that is not part of a valid character by '?'. */
void utf8_repair(char *text, size_t len);

#endif /* BASE_UTF8_H */
