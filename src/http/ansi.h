/* SPDX-License-Identifier: MIT */
/*
 * ansi: the output of a program for a terminal, as HTML. Pure.
 *
 * Colours and bold text become classes of the style sheet; every other escape
 * sequence is dropped. Nothing can become markup.
 */
#ifndef HTTP_ANSI_H
#define HTTP_ANSI_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* The style at a place of the text; starts as {0}. */
struct ansi {
    uint8_t colour; /* 0: none; 1 to 16: black, red ... bright white */
    bool bold;
    bool faint;
};

/* Append one line of `len` bytes, without its line break, and follow the
 * style. Each line is complete HTML. */
void ansi_add(struct strbuf *out,
              struct ansi *ansi,
              const char *text,
              size_t len);

#endif /* HTTP_ANSI_H */
