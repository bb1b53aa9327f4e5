# SPDX-License-Identifier: MIT
"""QR codes on a terminal: finds them in what a program has printed, and decodes
them.

    codes = qr.find(text)       # each a list of rows, of booleans: black
    qr.decode(codes[0])         # the text; an exception if it is damaged
    qr.picture(codes[0])        # the bytes of a PGM file, for other decoders

The decoder reads versions 1 to 5 with the lowest level of error correction, one
block of bytes. It corrects nothing: an error is an error.
"""

import re

# What sluice prints: black text on white, whatever the colours of the terminal.
LINE = re.compile("\x1b\\[38;5;16;48;5;231m([ \u2580\u2584\u2588]*)\x1b\\[0m\r?\n")
UPPER = "\u2580\u2588"
LOWER = "\u2584\u2588"

MARGIN = 4
# Codewords by version: all, and those with data.
WORDS = {1: (26, 19), 2: (44, 34), 3: (70, 55), 4: (100, 80), 5: (134, 108)}
MASKS = (
    lambda row, column: (row + column) % 2,
    lambda row, column: row % 2,
    lambda row, column: column % 3,
    lambda row, column: (row + column) % 3,
    lambda row, column: (row // 2 + column // 3) % 2,
    lambda row, column: row * column % 2 + row * column % 3,
    lambda row, column: (row * column % 2 + row * column % 3) % 2,
    lambda row, column: ((row + column) % 2 + row * column % 3) % 2,
)
FINDER = ("1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111")


def find(text):
    """The codes in a text: lines of half blocks that follow each other."""
    codes = []
    end = None
    for match in LINE.finditer(text):
        if match.start() != end:
            codes.append([])
        codes[-1].append([cell in UPPER for cell in match.group(1)])
        codes[-1].append([cell in LOWER for cell in match.group(1)])
        end = match.end()
    return codes


def crop(code):
    """A code without its margin, which must be white."""
    side = len(code[0]) - 2 * MARGIN
    inner = [row[MARGIN : MARGIN + side] for row in code[MARGIN : MARGIN + side]]
    black = sum(map(sum, code))
    assert all(len(row) == len(code[0]) for row in code), "no square"
    assert len(code) in (side + 2 * MARGIN, side + 2 * MARGIN + 1), "no square"
    assert black == sum(map(sum, inner)), "the margin is not white"
    return inner


def is_function(side, row, column):
    """Whether a module belongs to a pattern or the format, and not to data."""
    corner = (
        (row < 9 and column < 9)
        or (row < 9 and column >= side - 8)
        or (row >= side - 8 and column < 9)
    )
    middle = side - 7
    aligned = side > 21 and abs(row - middle) <= 2 and abs(column - middle) <= 2
    return corner or aligned or row == 6 or column == 6


def read_format(code):
    """The mask; both copies of the format must agree."""
    side = len(code)
    first = [(8, at) for at in (0, 1, 2, 3, 4, 5, 7, 8)]
    first += [(at, 8) for at in (7, 5, 4, 3, 2, 1, 0)]
    second = [(side - 1 - at, 8) for at in range(7)]
    second += [(8, side - 8 + at) for at in range(8)]
    words = [
        int("".join("01"[code[row][column]] for row, column in places), 2)
        for places in (first, second)
    ]
    assert words[0] == words[1], f"two formats: {words}"
    word = words[0] ^ 0b101010000010010
    assert word >> 13 == 0b01, "not the lowest level of correction"
    return MASKS[word >> 10 & 7]


def read_words(code, mask):
    """The codewords, in the zigzag from the lower right."""
    side = len(code)
    bits = []
    columns = [at for at in range(side - 1, 0, -1) if at > 6]
    columns += [at for at in range(5, -1, -1)]
    for pair in range(0, len(columns), 2):
        rows = range(side) if pair // 2 % 2 else range(side - 1, -1, -1)
        for row in rows:
            for column in columns[pair : pair + 2]:
                if not is_function(side, row, column):
                    bits.append(code[row][column] ^ (mask(row, column) == 0))
    return [
        int("".join("01"[bit] for bit in bits[at : at + 8]), 2)
        for at in range(0, len(bits) - 7, 8)
    ]


def check_words(words, count):
    """Require that the words are of the Reed-Solomon code."""
    powers = [1]
    for _ in range(254):
        power = powers[-1] << 1
        powers.append(power ^ 0x11D if power > 255 else power)
    logs = {power: log for log, power in enumerate(powers)}
    for root in range(count):
        total = 0
        for word in words:
            product = powers[(logs[total] + root) % 255] if total else 0
            total = product ^ word
        assert total == 0, "errors in the code"


def decode(code):
    """The text of a code."""
    code = crop(code)
    side = len(code)
    for row, column in ((0, 0), (0, side - 7), (side - 7, 0)):
        seen = [code[row + at][column : column + 7] for at in range(7)]
        seen = tuple("".join("01"[module] for module in line) for line in seen)
        assert seen == FINDER, f"no finder: {seen}"
    total, data = WORDS[(side - 17) // 4]
    words = read_words(code, read_format(code))
    assert len(words) == total, f"{len(words)} words"
    check_words(words, total - data)
    bits = "".join(f"{word:08b}" for word in words[:data])
    assert bits[:4] == "0100", f"mode {bits[:4]}, not bytes"
    length = int(bits[4:12], 2)
    text = [int(bits[at : at + 8], 2) for at in range(12, 12 + 8 * length, 8)]
    return bytes(text).decode("ascii")


def picture(code, scale=6):
    """A PGM file."""
    rows = [
        bytes(0 if module else 255 for module in row for _ in range(scale))
        for row in code
        for _ in range(scale)
    ]
    return b"P5\n%d %d\n255\n" % (len(rows[0]), len(rows)) + b"".join(rows)
