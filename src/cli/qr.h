/* SPDX-License-Identifier: MIT */
/*
 * qr: a text as a QR code for a terminal.
 *
 * Two modules are one character, a half block. Black and white are set
 * explicitly, with a margin of four modules, so that scanners can read the code
 * on dark and on light terminals. Pure.
 */
#ifndef CLI_QR_H
#define CLI_QR_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Append the code as lines of at most `columns` columns; false, and nothing is
 * appended: it does not fit. */
bool qr_add(struct strbuf *out, const char *text, uint32_t columns);

#endif /* CLI_QR_H */
