/* SPDX-License-Identifier: MIT */
/*
 * import_reference: references to issues in a text, and the pieces they are
 * read with.
 *
 * All reading goes forward within a line between `at` and `end`; a function
 * that reads something returns its end, or NULL when it is not there.
 */
#ifndef IMPORT_IMPORT_REFERENCE_H
#define IMPORT_IMPORT_REFERENCE_H

#include "import/import_internal.h"

/* Longest distance that a reader looks ahead. */
enum { IMPORT_LOOK_BYTES_MAX = 512 };

/* Part of a word; bytes of characters beyond ASCII are taken for letters. */
bool import_reference_is_letter(char byte);

/* Part of the name of an owner or a repository. */
bool import_reference_is_name(char byte);

/* Behind blanks. */
const char *import_reference_skip(const char *at, const char *end);

/* A text, whatever its case. */
const char *
import_reference_text(const char *at, const char *end, const char *text);

/*
 * A reference: #11, GH-11, web#7, owner/web#7, an address such as
 * https://github.com/owner/web/issues/7, or a link to one.
 */
const char *import_reference_read(const char *at,
                                  const char *end,
                                  struct import_reference *out);

#endif /* IMPORT_IMPORT_REFERENCE_H */
