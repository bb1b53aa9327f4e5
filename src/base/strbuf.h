/* SPDX-License-Identifier: MIT */
/*
 * strbuf: a growing string. Embed it; starts as {0}.
 */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include "base/macros.h"

#include <stddef.h>

struct strbuf {
    char *text; /* NUL-terminated, or NULL while nothing was added */
    size_t len;
    size_t capacity;
};

/* Free the memory and empty the buffer. */
void strbuf_release(struct strbuf *buf);

/* Empty the buffer but keep its memory. */
void strbuf_clear(struct strbuf *buf);

/* Append `len` bytes. */
void strbuf_add(struct strbuf *buf, const char *bytes, size_t len);

/* Append a NUL-terminated string. */
void strbuf_adds(struct strbuf *buf, const char *text);

/* Append `count` copies of one byte. */
void strbuf_pad(struct strbuf *buf, char byte, size_t count);

/* Append formatted text. */
void strbuf_addf(struct strbuf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/* Return the string, never NULL; borrowed until the buffer changes. */
const char *strbuf_text(const struct strbuf *buf);

#endif /* BASE_STRBUF_H */
