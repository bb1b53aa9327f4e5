/* SPDX-License-Identifier: MIT */
/*
 * Error list of one reading. The steps of reading do not process the file in
 * order, so the list holds more errors than it returns: the errors nearest to
 * the top of the file are reported.
 */
#include "plan/plan_internal.h"

#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 2000 };

void plan_errors_add(struct plan_errors *errors,
                     struct plan_mark mark,
                     const char *format,
                     ...)
{
    if (errors->count >= PLAN_ERRORS_HELD_MAX) {
        errors->cut = true;
        return;
    }
    char text[TEXT_BYTES_MAX];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    MEM_GROW(errors->items, errors->count, errors->capacity);
    errors->items[errors->count++] = (struct plan_error){
        .mark = mark,
        .text = mem_strndup(text, len < 0 ? 0 : strlen(text)),
    };
}

static int by_position(const void *left, const void *right)
{
    const struct plan_error *a = left;
    const struct plan_error *b = right;
    if (a->mark.line != b->mark.line) {
        return a->mark.line < b->mark.line ? -1 : 1;
    }
    if (a->mark.column != b->mark.column) {
        return a->mark.column < b->mark.column ? -1 : 1;
    }
    return strcmp(a->text, b->text);
}

void plan_errors_finish(struct plan_errors *errors)
{
    if (errors->count == 0) {
        return;
    }
    qsort(errors->items, errors->count, sizeof(errors->items[0]), by_position);
    while (errors->count > PLAN_ERRORS_MAX) {
        mem_free(errors->items[--errors->count].text);
        errors->cut = true;
    }
}

void plan_errors_release(struct plan_errors *errors)
{
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        mem_free(errors->items[ix].text);
    }
    mem_free(errors->items);
    *errors = (struct plan_errors){0};
}

/* Append one byte, escaped if a terminal would interpret it. */
static size_t put_byte(char *out, size_t at, unsigned char byte)
{
    if (byte == '\n' || byte == '\r' || byte == '\t') {
        out[at++] = '\\';
        out[at++] = byte == '\n' ? 'n' : byte == '\r' ? 'r' : 't';
    } else {
        out[at++] = byte < ' ' || byte == 0x7f ? '?' : (char)byte;
    }
    return at;
}

const char *plan_quoted(struct quoted *out, const char *text, size_t len)
{
    static const char cut[] = "...";
    size_t at = 0;
    size_t ix = 0;
    size_t end = sizeof(out->text) - sizeof(cut) - 8;
    out->text[at++] = '"';
    while (ix < len && at < end) {
        at = put_byte(out->text, at, (unsigned char)text[ix++]);
    }
    if (ix < len) {
        /* Do not split a character: go back to where it starts. */
        while (ix > 0 && ((unsigned char)text[ix] & 0xc0) == 0x80) {
            ix--;
            at--;
        }
        memcpy(out->text + at, cut, sizeof(cut) - 1);
        at += sizeof(cut) - 1;
    }
    out->text[at++] = '"';
    out->text[at] = '\0';
    return out->text;
}

struct suggest plan_guess(struct reader *reader, const struct node *name)
{
    struct suggest guess;
    suggest_init(&guess, name->text, name->count, &reader->suggest_budget);
    return guess;
}

void plan_report_unknown(struct reader *reader,
                         const struct node *name,
                         const char *what,
                         struct suggest *guess)
{
    REPORT(reader,
           name,
           "unknown %s %s%s",
           what,
           QUOTED(name),
           suggest_hint(guess));
}
