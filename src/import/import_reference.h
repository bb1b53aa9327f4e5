/* SPDX-License-Identifier: MIT */
/*
 * import_reference: parser for references to issues in bodies.
 *
 * Functions parse forward within a line between `at` and `end`. They return the
 * position after the parsed item, or NULL if it is absent.
 */
#ifndef IMPORT_IMPORT_REFERENCE_H
#define IMPORT_IMPORT_REFERENCE_H

#include "import/import_internal.h"

/* Maximum lookahead. */
enum { IMPORT_LOOK_BYTES_MAX = 512 };

/* Part of a word; non-ASCII bytes count as letters. */
bool import_reference_is_letter(char byte);

/* Part of the name of an owner or a repository. */
bool import_reference_is_name(char byte);

/* Skip blanks. */
const char *import_reference_skip(const char *at, const char *end);

/* Parse a fixed string, ignoring case. */
const char *
import_reference_text(const char *at, const char *end, const char *text);

/*
 * Parse a reference: #11, GH-11, web#7, owner/web#7, an address such as
 * https://github.com/owner/web/issues/7, or a link to one.
 */
const char *import_reference_read(const char *at,
                                  const char *end,
                                  struct import_reference *out);

#endif /* IMPORT_IMPORT_REFERENCE_H */
