/* SPDX-License-Identifier: MIT */
#include "base/strbuf.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void strbuf_release(struct strbuf *buf)
{
    mem_free(buf->text);
    *buf = (struct strbuf){0};
}

void strbuf_clear(struct strbuf *buf)
{
    buf->len = 0;
    if (buf->text != NULL) {
        buf->text[0] = '\0';
    }
}

/* Make room for `more` bytes and the NUL. */
static void reserve(struct strbuf *buf, size_t more)
{
    size_t wanted = buf->len + more + 1;
    INVARIANT(wanted > buf->len);
    if (wanted <= buf->capacity) {
        return;
    }
    size_t capacity = buf->capacity * 2 > 64 ? buf->capacity * 2 : 64;
    if (capacity < wanted) {
        capacity = wanted;
    }
    buf->text = mem_resize(buf->text, capacity, 1);
    buf->capacity = capacity;
}

void strbuf_add(struct strbuf *buf, const char *bytes, size_t len)
{
    reserve(buf, len);
    if (len > 0) {
        memcpy(buf->text + buf->len, bytes, len);
    }
    buf->len += len;
    buf->text[buf->len] = '\0';
}

void strbuf_adds(struct strbuf *buf, const char *text)
{
    strbuf_add(buf, text, strlen(text));
}

void strbuf_pad(struct strbuf *buf, char byte, size_t count)
{
    reserve(buf, count);
    memset(buf->text + buf->len, byte, count);
    buf->len += count;
    buf->text[buf->len] = '\0';
}

void strbuf_addf(struct strbuf *buf, const char *format, ...)
{
    reserve(buf, strlen(format)); /* usually enough */
    size_t room = buf->capacity - buf->len;
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(buf->text + buf->len, room, format, args);
    va_end(args);
    INVARIANT(len >= 0);
    if ((size_t)len >= room) {
        reserve(buf, (size_t)len);
        int written =
            vsnprintf(buf->text + buf->len, (size_t)len + 1, format, again);
        INVARIANT(written == len);
    }
    va_end(again);
    buf->len += (size_t)len;
}

const char *strbuf_text(const struct strbuf *buf)
{
    return buf->text != NULL ? buf->text : "";
}
