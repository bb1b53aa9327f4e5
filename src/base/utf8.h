/* SPDX-License-Identifier: MIT */
/*
 * utf8: validation and repair of external UTF-8.
 *
 * Valid is what JSON and SQLite accept: no overlong forms, no surrogates,
 * nothing above U+10FFFF. A NUL is a valid character here.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return the length of the character at `text`, of which `left` bytes (at least
 * one) are readable, and its code; 0: invalid. */
size_t utf8_decode(const char *text, size_t left, uint32_t *code_out);

/* Return whether all of the string is valid. */
bool utf8_is_valid(const char *text, size_t len);

/* Replace each byte that is not part of a valid character by '?'. */
void utf8_repair(char *text, size_t len);

#endif /* BASE_UTF8_H */
