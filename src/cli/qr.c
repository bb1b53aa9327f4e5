/* SPDX-License-Identifier: MIT */
#include "cli/qr.h"

#include <qrencode.h>

enum { MARGIN = 4 /* modules, as scanners expect it */ };

/* Whether a module is black; the margin is white. */
static bool is_black(const QRcode *code, int row, int column)
{
    row -= MARGIN;
    column -= MARGIN;
    return row >= 0 && column >= 0 && row < code->width &&
           column < code->width &&
           (code->data[row * code->width + column] & 1) != 0;
}

bool qr_add(struct strbuf *out, const char *text, uint32_t columns)
{
    /* By the state of the upper module, then of the lower one: black is the
     * colour of the text, white that of its background. */
    static const char *const blocks[2][2] = {
        {" ", "\xe2\x96\x84"},
        {"\xe2\x96\x80", "\xe2\x96\x88"},
    };
    /* The lowest level of error correction: a screen has no stains, and a small
     * code is easier to read from it. */
    QRcode *code =
        QRcode_encodeString8bit(text, 0 /* any version */, QR_ECLEVEL_L);
    int side = code != NULL ? code->width + 2 * MARGIN : 0;
    bool fits = code != NULL && (uint32_t)side <= columns;
    for (int row = 0; fits && row < side; row += 2) {
        /* Colours 16 and 231 of 256 are black and white in every theme. */
        strbuf_adds(out, "\x1b[38;5;16;48;5;231m");
        for (int column = 0; column < side; column++) {
            bool upper = is_black(code, row, column);
            bool lower = is_black(code, row + 1, column);
            strbuf_adds(out, blocks[upper][lower]);
        }
        strbuf_adds(out, "\x1b[0m\n");
    }
    QRcode_free(code);
    return fits;
}
