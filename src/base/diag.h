/* SPDX-License-Identifier: MIT */
/*
 * diag: the text of an error, set where its cause is known.
 *
 * A plain value of fixed size, made by the caller: `struct diag diag = {0};`.
 * Functions that take one accept NULL, when nobody will read it.
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/err.h"
#include "base/macros.h"

enum { DIAG_BYTES = 1024 };

struct diag {
    char text[DIAG_BYTES]; /* "" until set; cut at the end when too long;
                              valid UTF-8, whatever it quotes */
};

/* Set the text (diag may be NULL) and return `err`. */
enum err diag_set(struct diag *diag, enum err err, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif /* BASE_DIAG_H */
