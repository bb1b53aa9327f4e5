/* SPDX-License-Identifier: MIT */
/*
 * Filter for the Markdown that distinguishes statements from examples: fenced,
 * indented and inline code, quotations, HTML comments and a few elements,
 * strikethrough. It makes one pass over the lines, and in each line one over
 * its bytes; each search is bounded, so that a hostile body costs no more than
 * a long one.
 */
#include "import/import_reference.h"

#include <string.h>

enum {
    TICKS_MAX = 32,  /* longer runs of backticks start no code */
    TAB_COLUMNS = 4, /* also the indentation of code */
    FENCE_MIN = 3,
    LEVEL_MAX = 6, /* of a heading */
    ORDINAL_MAX = 9,
};

/* An element to hide, from `open` to `close`. */
struct element {
    const char *open;
    const char *close;
    char fill;
};

struct cleaner {
    const struct element *inside; /* element open across lines, or NULL */
    char fence;                   /* '`' or '~' in fenced code, else 0 */
    size_t fence_len;
    bool list;  /* the last paragraph was a list item */
    bool blank; /* the previous line was blank */
    bool code;  /* the previous line was indented code */
};

static const struct element elements[] = {
    {"<!--", "-->", ' '},
    {"<blockquote", "</blockquote>", ' '},
    {"<code", "</code>", IMPORT_HIDDEN},
    {"<del", "</del>", ' '},
    {"<pre", "</pre>", IMPORT_HIDDEN},
    {"<s>", "</s>", ' '},
    {"<strike", "</strike>", ' '},
};

/* Return the number of bytes equal to `byte` at `at`. */
static size_t run_of(const char *at, const char *end, char byte)
{
    const char *from = at;
    while (at < end && *at == byte) {
        at++;
    }
    return (size_t)(at - from);
}

/* Return the length of a list bullet at `at`, with the blank after it. */
static size_t bullet_at(const char *at, const char *end)
{
    size_t len = 0;
    while (len < ORDINAL_MAX && at + len < end && import_is_digit(at[len])) {
        len++;
    }
    const char *marks = len > 0 ? ".)" : "-*+";
    if (at + len >= end || strchr(marks, at[len]) == NULL) {
        return 0;
    }
    len++;
    return at + len < end && import_is_blank(at[len]) ? len + 1 : 0;
}

struct import_shape import_shape(struct import_span line)
{
    struct import_shape shape = {0};
    const char *at = line.text;
    const char *end = line.text + line.len;
    for (; at < end && import_is_blank(*at); at++) {
        shape.indent += *at == '\t' ? TAB_COLUMNS : 1;
    }
    size_t len = bullet_at(at, end);
    if (len > 0) {
        shape.bullet = true;
        at += len;
        at = import_reference_skip(at, end);
        bool box = end - at >= 4 && at[0] == '[' && at[2] == ']' &&
                   strchr(" xX", at[1]) != NULL && import_is_blank(at[3]);
        if (box) {
            shape.ticked = at[1] != ' ';
            at += 4;
        }
    }
    size_t level = run_of(at, end, '#');
    if (level > 0 && level <= LEVEL_MAX &&
        (at + level == end || import_is_blank(at[level]))) {
        shape.heading = true;
        at += level;
    }
    at = import_reference_skip(at, end);
    shape.start = (size_t)(at - line.text);
    return shape;
}

static void fill(char *from, const char *to, char byte)
{
    memset(from, byte, (size_t)(to - from));
}

/* Blank the rest of the open element; return the position after it. */
static char *hide_element(struct cleaner *cleaner, char *at, char *end)
{
    const struct element *inside = cleaner->inside;
    char *from = at;
    for (; at < end; at++) {
        if (*at == inside->close[0] &&
            import_reference_text(at, end, inside->close) != NULL) {
            at += strlen(inside->close);
            cleaner->inside = NULL;
            break;
        }
    }
    fill(from, at, inside->fill);
    return at;
}

/* Return the element that opens at `at`, or NULL. */
static const struct element *element_at(const char *at, const char *end)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(elements); ix++) {
        size_t len = strlen(elements[ix].open);
        if (import_reference_text(at, end, elements[ix].open) != NULL) {
            bool whole = strchr("->", elements[ix].open[len - 1]) != NULL;
            if (whole || (at + len < end &&
                          (at[len] == '>' || import_is_blank(at[len])))) {
                return &elements[ix];
            }
        }
    }
    return NULL;
}

/* Find a run of exactly `len` bytes equal to `byte`; NULL if none. */
static char *find_run(char *at, const char *end, char byte, size_t len)
{
    while (at < end) {
        size_t found = run_of(at, end, byte);
        if (found == len) {
            return at;
        }
        at += found > 0 ? found : 1;
    }
    return NULL;
}

/* Blank code, strikethrough and elements within a line. */
static void clean_inline(struct cleaner *cleaner, char *at, char *end)
{
    uint64_t unclosed = 0; /* lengths of backtick runs without a match */
    bool struck = true;    /* a second "~~" may still follow */
    while (at < end) {
        size_t ticks = run_of(at, end, '`');
        if (ticks > 0 && ticks <= TICKS_MAX && (unclosed >> ticks & 1) == 0) {
            char *close = find_run(at + ticks, end, '`', ticks);
            unclosed |= close == NULL ? UINT64_C(1) << ticks : 0;
            if (close != NULL) {
                fill(at, close + ticks, IMPORT_HIDDEN);
                at = close + ticks;
                continue;
            }
        }
        size_t tildes = struck ? run_of(at, end, '~') : 0;
        if (tildes == 2) {
            char *close = find_run(at + 2, end, '~', 2);
            struck = close != NULL;
            if (close != NULL) {
                fill(at, close + 2, ' ');
                at = close + 2;
                continue;
            }
        }
        cleaner->inside = *at == '<' ? element_at(at, end) : NULL;
        if (cleaner->inside != NULL) {
            at = hide_element(cleaner, at, end);
        } else {
            at += ticks + tildes > 0 ? ticks + tildes : 1;
        }
    }
}

/* Whether a code fence opens or closes here. */
static bool is_fence(const struct cleaner *cleaner, char *at, char *end)
{
    size_t len = at < end ? run_of(at, end, *at) : 0;
    if (len < FENCE_MIN || (*at != '`' && *at != '~')) {
        return false;
    }
    if (cleaner->fence == 0) {
        return *at == '~' ||
               memchr(at + len, '`', (size_t)(end - at) - len) == NULL;
    }
    char *rest = at + len;
    while (rest < end && import_is_blank(*rest)) {
        rest++;
    }
    return *at == cleaner->fence && len >= cleaner->fence_len && rest == end;
}

/* Whether the whole line is code or quotation; update the state for the next
 * line. */
static bool is_hidden(struct cleaner *cleaner, char *line, char *end)
{
    struct import_shape shape = import_shape(import_between(line, end));
    char *start = line + shape.start;
    if (is_fence(cleaner, start, end)) {
        bool opens = cleaner->fence == 0;
        cleaner->fence_len = opens ? run_of(start, end, *start) : 0;
        cleaner->fence = (char)(opens ? *start : 0);
        return true;
    }
    if (cleaner->fence != 0) {
        return true;
    }
    if (start == end) {
        cleaner->blank = true;
        return false;
    }
    bool code = shape.indent >= TAB_COLUMNS && !cleaner->list &&
                (cleaner->blank || cleaner->code);
    if (shape.bullet && !code) {
        cleaner->list = true;
    } else if (shape.indent == 0 && cleaner->blank) {
        cleaner->list = false;
    }
    cleaner->code = code;
    cleaner->blank = false;
    return code || *start == '>';
}

static void clean_line(struct cleaner *cleaner, char *line, char *end)
{
    if (cleaner->inside != NULL) {
        line = hide_element(cleaner, line, end);
    } else if (is_hidden(cleaner, line, end)) {
        fill(line, end, IMPORT_HIDDEN);
        return;
    }
    clean_inline(cleaner, line, end);
}

/* Replace control characters and no-break spaces by spaces. */
static void even_out(char *text, size_t len)
{
    for (size_t ix = 0; ix < len; ix++) {
        unsigned char byte = (unsigned char)text[ix];
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
            text[ix] = ' ';
        } else if (byte == 0xc2 && ix + 1 < len &&
                   (unsigned char)text[ix + 1] == 0xa0) {
            text[ix] = ' ';
            text[ix + 1] = ' ';
        }
    }
}

void import_clean(struct strbuf *out, struct import_span body)
{
    size_t begin = out->len;
    strbuf_add(out, body.text, body.len);
    char *at = out->text + begin;
    char *end = at + body.len;
    even_out(at, body.len);
    struct cleaner cleaner = {.blank = true};
    while (at < end) {
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end == NULL ? end : line_end;
        clean_line(&cleaner, at, line_end);
        at = line_end < end ? line_end + 1 : end;
    }
}
