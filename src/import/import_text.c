/* SPDX-License-Identifier: MIT */
/*
 * Parser for dependencies in the body of an issue.
 *
 * References follow a phrase ("depends on"), in its line or, if the line has
 * nothing else after it, in a list or table below it. Functions parse forward
 * within a line between `at` and `end`. They return the position after the
 * parsed item, or NULL if it is absent. Lookahead stops after
 * IMPORT_LOOK_BYTES_MAX bytes.
 */
#include "import/import_reference.h"

#include <string.h>

enum {
    WORDS_BACK = 3, /* words to search for a "not" */
    NO_INDENT = -1,
    NO_COLUMN = 1000,
};

/* A phrase for a dependency. "-" and "_" may join its words as well. */
struct phrase {
    const char *words[2]; /* the second may be NULL */
    bool loose;           /* in a list below, references need not be first */
    bool direct;          /* references follow in its line; starts no list */
};

static const struct phrase phrases[] = {
    {.words = {"after"}, .direct = true},
    {.words = {"blocked", "by"}, .loose = true},
    {.words = {"blocked", "on"}, .loose = true},
    {.words = {"blocked", "until"}, .loose = true},
    {.words = {"depend", "on"}, .loose = true},
    {.words = {"dependencies"}},
    {.words = {"dependency"}},
    {.words = {"dependent", "on"}, .loose = true},
    {.words = {"depending", "on"}, .loose = true},
    {.words = {"depends", "on"}, .loose = true},
    {.words = {"depends", "upon"}, .loose = true},
    {.words = {"needs"}},
    {.words = {"pre", "requisite"}},
    {.words = {"pre", "requisites"}},
    {.words = {"prerequisite"}},
    {.words = {"prerequisites"}},
    {.words = {"requires"}},
    {.words = {"waiting", "for"}},
    {.words = {"waiting", "on"}},
    {.words = {"waits", "for"}},
};

/* Words allowed before a reference, and between references. */
static const char *const fillers[] = {
    "both",
    "issue",
    "issues",
    "pr",
    "prs",
    "pull",
    "request",
    "requests",
    "task",
    "tasks",
    "the",
    "ticket",
    "tickets",
};

static const char *const joints[] = {
    "also",
    "and",
    "by",
    "on",
    "or",
    "plus",
};

static const char *const negations[] = {
    "cannot",
    "longer",
    "never",
    "no",
    "none",
    "nor",
    "not",
    "without",
};

struct scan {
    import_reference_fn found;
    void *ctx;
    bool open;       /* a list is expected, or has started */
    bool loose;      /* see struct phrase */
    bool bare;       /* the last line was no item: a blank line closes it */
    bool flow;       /* a sentence that continues in the next line */
    bool table;      /* the previous line was a table row */
    uint32_t column; /* column of the references, or NO_COLUMN */
    int32_t parent;  /* indentation of the item that opened it */
    int32_t item;    /* indentation of its items, NO_INDENT before the first */
};

/* Parse a whole word, ignoring case. */
static const char *read_word(const char *at, const char *end, const char *word)
{
    const char *next = import_reference_text(at, end, word);
    return next != NULL && next < end && import_reference_is_letter(*next)
               ? NULL
               : next;
}

/* Parse one of the words of a list. */
static const char *read_one_of(const char *at,
                               const char *end,
                               const char *const *words,
                               size_t count)
{
    for (size_t ix = 0; ix < count; ix++) {
        const char *next = read_word(at, end, words[ix]);
        if (next != NULL) {
            return next;
        }
    }
    return NULL;
}

/* --- lists of references ------------------------------------------------ */

/* Parse a simple HTML tag, as in <b>Depends on:</b>. */
static const char *read_tag(const char *at, const char *end)
{
    if (at >= end || *at != '<') {
        return NULL;
    }
    at++;
    at += at < end && *at == '/' ? 1 : 0;
    const char *from = at;
    while (at < end && import_reference_is_letter(*at) &&
           at - from < IMPORT_LOOK_BYTES_MAX) {
        at++;
    }
    at = at > from ? import_reference_skip(at, end) : end;
    at += at < end && *at == '/' ? 1 : 0;
    return at < end && *at == '>' ? at + 1 : NULL;
}

/* Skip the words allowed between a phrase and its first reference. */
static const char *skip_fill(const char *at, const char *end)
{
    const char *next = at;
    while (next != NULL && next < end) {
        at = next;
        next = strchr(" \t*_:|-=\"'(", *at) != NULL ? at + 1 : NULL;
        next = next != NULL ? next : read_tag(at, end);
        next = next != NULL
                   ? next
                   : read_one_of(at, end, fillers, ARRAY_COUNT(fillers));
        /* "issue#12" and "the/repo#3" are references, not words. */
        if (next != NULL && next < end && import_reference_is_letter(*at) &&
            strchr("#/", *next) != NULL) {
            return at;
        }
    }
    return next == NULL ? at : next;
}

/* Parse a range mark between two references: "#3 - #5", "#3 to #5". */
static const char *read_range(const char *at, const char *end)
{
    static const char *const marks[] = {
        "-",
        "\xe2\x80\x93",
        "\xe2\x80\x94",
        "..",
        "\xe2\x80\xa6",
        "through",
        "to",
    };
    at = import_reference_skip(at, end);
    for (size_t ix = 0; ix < ARRAY_COUNT(marks); ix++) {
        const char *next = import_reference_text(at, end, marks[ix]);
        next = next == NULL ? NULL : import_reference_skip(next, end);
        if (next != NULL && next < end && *next == '#') {
            return next;
        }
    }
    return NULL;
}

/* Skip a remark in brackets, "#3 (the form), #4", unless it starts with a
 * reference. */
static const char *skip_remark(const char *at, const char *end)
{
    const char *open = import_reference_skip(at, end);
    if (open >= end || *open != '(') {
        return at;
    }
    struct import_reference reference;
    const char *inside = skip_fill(open + 1, end);
    const char *word = read_one_of(inside, end, joints, ARRAY_COUNT(joints));
    inside = word != NULL ? skip_fill(word, end) : inside;
    if (import_reference_read(inside, end, &reference) != NULL) {
        return inside;
    }
    size_t len = (size_t)(end - open);
    len = len < IMPORT_LOOK_BYTES_MAX ? len : IMPORT_LOOK_BYTES_MAX;
    const char *close = memchr(open, ')', len);
    return close != NULL ? close + 1 : at;
}

/* Skip separators between references. *joined: another one must follow. */
static const char *skip_joint(const char *at, const char *end, bool *joined)
{
    *joined = false;
    const char *next = skip_remark(at, end);
    while (next != NULL && next < end) {
        at = next;
        bool mark = strchr(",;&+/", *at) != NULL;
        next = mark || strchr(" \t*_|\"')", *at) != NULL ? at + 1 : NULL;
        if (next == NULL) {
            next = read_one_of(at, end, joints, ARRAY_COUNT(joints));
            mark = next != NULL;
        }
        if (next == NULL) {
            next = read_one_of(at, end, fillers, ARRAY_COUNT(fillers));
        }
        if (next != NULL && next < end && import_reference_is_letter(*at) &&
            strchr("#/", *next) != NULL) {
            return at;
        }
        *joined = *joined || mark;
    }
    return next == NULL ? at : next;
}

/*
 * Report the references at `at` one by one and set *count. *more: another
 * reference is expected after the line. Return the position after the last.
 */
static const char *read_list(const struct scan *scan,
                             const char *at,
                             const char *end,
                             uint32_t *count,
                             bool *more)
{
    const char *last = at;
    struct import_reference reference;
    bool range = false;
    *count = 0;
    *more = false;
    at = skip_fill(at, end);
    for (;;) {
        const char *next = import_reference_read(at, end, &reference);
        if (next == NULL) {
            *more = *more && at == end;
            return last;
        }
        reference.range = range;
        scan->found(scan->ctx, &reference);
        (*count)++;
        last = next;
        at = read_range(next, end);
        range = at != NULL;
        if (!range) {
            at = skip_joint(next, end, more);
        }
    }
}

/* Report the first reference anywhere in a line. */
static void
read_anywhere(const struct scan *scan, const char *line, const char *end)
{
    struct import_reference reference;
    for (const char *at = line; at < end; at++) {
        bool starts = at == line || !(import_reference_is_name(at[-1]) ||
                                      strchr("/#@\\", at[-1]) != NULL);
        if (starts && import_reference_read(at, end, &reference) != NULL) {
            scan->found(scan->ctx, &reference);
            return;
        }
    }
}

/* --- phrases ------------------------------------------------------------ */

static const char *
read_phrase(const char *at, const char *end, const struct phrase **out)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(phrases); ix++) {
        const char *next = read_word(at, end, phrases[ix].words[0]);
        if (next != NULL && phrases[ix].words[1] != NULL) {
            const char *gap = next;
            while (next < end && strchr(" \t-_", *next) != NULL) {
                next++;
            }
            next =
                next == gap ? NULL : read_word(next, end, phrases[ix].words[1]);
        }
        if (next != NULL) {
            *out = &phrases[ix];
            return next;
        }
    }
    return NULL;
}

static bool ends_with(struct import_span word, const char *end)
{
    struct import_span tail = import_span(end);
    return word.len >= tail.len &&
           import_compare(
               (struct import_span){word.text + word.len - tail.len, tail.len},
               tail) == 0;
}

static bool is_negation(struct import_span word)
{
    return import_is_one_of(word, negations, ARRAY_COUNT(negations)) ||
           ends_with(word, "n't") || ends_with(word, "n\xe2\x80\x99t");
}

/* Whether one of the words just before `at` is a "not". */
static bool is_negated(const char *line, const char *at)
{
    for (uint32_t count = 0; count < WORDS_BACK; count++) {
        while (at > line && strchr(" \t*_", at[-1]) != NULL) {
            at--;
        }
        const char *end = at;
        while (at > line &&
               (import_reference_is_letter(at[-1]) || at[-1] == '\'') &&
               end - at < IMPORT_LOOK_BYTES_MAX) {
            at--;
        }
        if (at == end) {
            return false;
        }
        if (is_negation(import_between(at, end))) {
            return true;
        }
    }
    return false;
}

/* Parse all phrases of a line, with the references after them. */
static void scan_phrases(struct scan *scan,
                         struct import_span line,
                         const struct import_shape *shape)
{
    const char *end = line.text + line.len;
    const char *at = line.text + shape->start;
    while (at < end) {
        const struct phrase *phrase = NULL;
        bool starts = at == line.text || !import_reference_is_letter(at[-1]);
        const char *next = starts ? read_phrase(at, end, &phrase) : NULL;
        if (next == NULL) {
            at++;
            continue;
        }
        if (is_negated(line.text, at)) {
            at = next;
            continue;
        }
        uint32_t count = 0;
        bool more = false;
        at = read_list(scan, next, end, &count, &more);
        if (more ||
            (count == 0 && !phrase->direct && skip_fill(next, end) == end)) {
            scan->open = true;
            scan->loose = phrase->loose;
            scan->bare = more;
            scan->flow = more;
            scan->table = false;
            scan->parent = shape->bullet ? shape->indent : NO_INDENT;
            scan->item = NO_INDENT;
        }
    }
}

/* --- tables ------------------------------------------------------------- */

/* Find the next bar that is not escaped, or `end`. */
static const char *cell_end(const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at == '|' && at[-1] != '\\') {
            return at;
        }
    }
    return end;
}

/* Whether a cell contains a phrase only. */
static bool is_phrase(const char *at, const char *end)
{
    const struct phrase *phrase = NULL;
    const char *next = read_phrase(skip_fill(at, end), end, &phrase);
    return next != NULL && !phrase->direct && skip_fill(next, end) == end;
}

/* Whether a cell has a ticked box. */
static bool is_ticked(const char *at, const char *end)
{
    size_t len = (size_t)(end - at);
    return memmem(at, len, "[x]", 3) != NULL ||
           memmem(at, len, "[X]", 3) != NULL;
}

/*
 * Parse a table row below a phrase; `at` is after its first bar. In the first
 * row, a cell that is a phrase selects the column. Without such a cell, the
 * first cell of a row that begins with a reference counts.
 */
static void scan_row(struct scan *scan, const char *at, const char *end)
{
    bool head = !scan->table;
    bool found = is_ticked(at, end);
    scan->column = head ? NO_COLUMN : scan->column;
    for (uint32_t column = 0; at < end && column < NO_COLUMN; column++) {
        const char *stop = cell_end(at, end);
        uint32_t count = 0;
        bool more = false;
        if (head && scan->column == NO_COLUMN && is_phrase(at, stop)) {
            scan->column = column;
        } else if (!found &&
                   (scan->column == NO_COLUMN || scan->column == column)) {
            (void)read_list(scan, at, stop, &count, &more);
            found = count > 0;
        }
        at = stop < end ? stop + 1 : end;
    }
    scan->table = true;
}

/* --- lines -------------------------------------------------------------- */

/* Parse a line in a list below a phrase; false if it is not part of it. */
static bool scan_item(struct scan *scan,
                      struct import_span line,
                      const struct import_shape *shape)
{
    const char *at = line.text + shape->start;
    const char *end = line.text + line.len;
    uint32_t count = 0;
    bool more = false;
    bool row = !shape->bullet && !shape->heading && at < end && *at == '|';
    if (row && !scan->flow) {
        scan->bare = false;
        scan_row(scan, at + 1, end);
        return true;
    }
    scan->table = false;
    if (!shape->bullet) {
        struct import_reference reference;
        at = skip_joint(at, end, &more);
        bool first =
            import_reference_read(skip_fill(at, end), end, &reference) != NULL;
        if (first && !shape->heading) {
            scan->bare = true;
            (void)read_list(scan, at, end, &count, &more);
            scan->open = more || !scan->flow;
            return true;
        }
        /* Lines that belong to an item are indented deeper than it. */
        return scan->item != NO_INDENT && shape->indent > scan->item &&
               !shape->heading;
    }
    if (shape->indent <= scan->parent) {
        return false;
    }
    scan->item = scan->item == NO_INDENT ? shape->indent : scan->item;
    scan->bare = false;
    if (shape->indent > scan->item + 1 || shape->ticked) {
        return true;
    }
    (void)read_list(scan, at, end, &count, &more);
    if (count == 0 && scan->loose) {
        read_anywhere(scan, at, end);
    }
    return true;
}

static void scan_line(struct scan *scan, struct import_span line)
{
    struct import_shape shape = import_shape(line);
    if (shape.start == line.len && !shape.bullet) {
        scan->open = scan->open && !scan->bare;
        scan->table = false;
        return;
    }
    if (scan->open && scan_item(scan, line, &shape)) {
        return;
    }
    scan->open = false;
    if (!shape.ticked) {
        scan_phrases(scan, line, &shape);
    }
}

void import_scan(struct import_span body, import_reference_fn found, void *ctx)
{
    struct strbuf clean = {0};
    import_clean(&clean, body);
    struct scan scan = {.found = found, .ctx = ctx};
    struct import_span rest = {strbuf_text(&clean), clean.len};
    struct import_span line;
    while (import_next_line(&rest, &line)) {
        scan_line(&scan, line);
    }
    strbuf_release(&clean);
}
