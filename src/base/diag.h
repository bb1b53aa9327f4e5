/* SPDX-License-Identifier: MIT */
/*
 * diag: an error message, set where the cause is known.
 *
 * A plain value of fixed size that the caller creates: `struct diag diag =
 * {0};`. Functions that take one accept NULL if the caller needs no message.
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/err.h"
#include "base/macros.h"

enum { DIAG_BYTES = 1024 };

struct diag {
    char text[DIAG_BYTES]; /* "" until set; truncated if too long; valid UTF-8,
                              even if it quotes invalid input */
};

/* Set the message (diag may be NULL) and return `err`. */
enum err diag_set(struct diag *diag, enum err err, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif /* BASE_DIAG_H */
