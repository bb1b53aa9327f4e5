/* SPDX-License-Identifier: MIT */
/*
 * What a body says that its issue depends on.
 *
 * A phrase ("depends on") is followed by references, in its line or, when
 * nothing else stands behind it, in a list under it. All reading goes forward
 * within a line between `at` and `end`; a function that reads something returns
 * where it ends, or NULL when it is not there. What looks ahead does so for
 * LOOK_BYTES_MAX bytes at most.
 */
#include "plan/import_internal.h"

#include <string.h>

enum {
    LOOK_BYTES_MAX = 512,
    WORDS_BACK = 3, /* in which a "not" is looked for */
    NO_INDENT = -1,
};

/* A way to say it. Its words may be joined by "-" and "_" as well. */
struct phrase {
    const char *words[2]; /* the second may be NULL */
    bool loose; /* in a list under it, references need not come first */
};

static const struct phrase phrases[] = {
    {{"blocked", "by"}, true},
    {{"blocked", "on"}, true},
    {{"depend", "on"}, true},
    {{"dependencies", NULL}, false},
    {{"dependency", NULL}, false},
    {{"dependent", "on"}, true},
    {{"depending", "on"}, true},
    {{"depends", "on"}, true},
    {{"depends", "upon"}, true},
    {{"needs", NULL}, false},
    {{"requires", NULL}, false},
    {{"waiting", "for"}, false},
    {{"waiting", "on"}, false},
    {{"waits", "for"}, false},
};

/* Words that may stand before a reference, and between references. */
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
    bool open;      /* a list is expected, or has begun */
    bool loose;     /* see struct phrase */
    bool bare;      /* its last line was no item: a blank one ends it */
    bool flow;      /* it is a sentence that goes on in the next line */
    int32_t parent; /* indentation of the item that opened it */
    int32_t item;   /* indentation of its items, NO_INDENT before the first */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Part of a word; bytes of characters beyond ASCII are taken for letters. */
static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           is_digit(byte) || (unsigned char)byte >= 0x80;
}

static bool is_name_byte(char byte)
{
    return (is_letter(byte) && (unsigned char)byte < 0x80) || byte == '.' ||
           byte == '_' || byte == '-';
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at)) {
        at++;
    }
    return at;
}

static struct import_span between(const char *from, const char *to)
{
    return (struct import_span){from, (size_t)(to - from)};
}

/* A text, whatever its case. */
static const char *read_text(const char *at, const char *end, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(end - at) < len ||
        import_compare(between(at, at + len), import_span(text)) != 0) {
        return NULL;
    }
    return at + len;
}

/* A whole word, whatever its case. */
static const char *read_word(const char *at, const char *end, const char *word)
{
    const char *next = read_text(at, end, word);
    return next != NULL && next < end && is_letter(*next) ? NULL : next;
}

/* One of the words of a list. */
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

/* --- references --------------------------------------------------------- */

/* Digits that are not part of a longer word. */
static const char *read_number(const char *at, const char *end, int64_t *number)
{
    const char *from = at;
    int64_t sum = 0;
    for (; at < end && is_digit(*at); at++) {
        sum = sum > IMPORT_NUMBER_MAX ? sum : sum * 10 + (*at - '0');
    }
    const char *behind = at;
    while (behind < end && *behind == '_' && behind - at < 2) {
        behind++; /* the end of _#1_, not of #1_a */
    }
    if (at == from || (behind < end && is_letter(*behind))) {
        return NULL;
    }
    *number = sum > IMPORT_NUMBER_MAX ? 0 : sum;
    return at;
}

/* The name of an owner or a repository, and what must stand behind it. */
static const char *
read_name(const char *at, const char *end, char behind, struct import_span *out)
{
    const char *from = at;
    while (at < end && is_name_byte(*at)) {
        at++;
    }
    *out = between(from, at);
    return at > from && at < end && *at == behind ? at + 1 : NULL;
}

/* HOST/OWNER/NAME/issues/NUMBER, with what may follow it in an address. */
static const char *
read_address(const char *at, const char *end, struct import_reference *out)
{
    static const char *const kinds[] = {"issues/", "pull/"};
    struct import_span host;
    const char *scheme = read_text(at, end, "https://");
    scheme = scheme != NULL ? scheme : read_text(at, end, "http://");
    at = read_name(scheme != NULL ? scheme : at, end, '/', &host);
    if (at == NULL || (scheme == NULL &&
                       import_compare(host, import_span("github.com")) != 0)) {
        return NULL;
    }
    at = read_name(at, end, '/', &out->owner);
    at = at == NULL ? NULL : read_name(at, end, '/', &out->name);
    const char *kind = NULL;
    for (size_t ix = 0; at != NULL && ix < ARRAY_COUNT(kinds); ix++) {
        kind = kind != NULL ? kind : read_text(at, end, kinds[ix]);
    }
    at = kind == NULL ? NULL : read_number(kind, end, &out->number);
    if (at != NULL && at < end && strchr("/#?", *at) != NULL) {
        while (at < end && strchr(" \t\n()<>[],;|\"'*", *at) == NULL) {
            at++;
        }
    }
    return at;
}

/* [TEXT](ADDRESS) or <ADDRESS>. */
static const char *
read_link(const char *at, const char *end, struct import_reference *out)
{
    char close = '>';
    const char *from = at + 1;
    if (*at == '[') {
        size_t len = (size_t)(end - at);
        len = len < LOOK_BYTES_MAX ? len : LOOK_BYTES_MAX;
        from = memmem(at, len, "](", 2);
        if (from == NULL) {
            return NULL;
        }
        from += 2;
        close = ')';
    }
    at = read_address(from, end, out);
    return at != NULL && at < end && *at == close ? at + 1 : NULL;
}

/* NAME#NUMBER or OWNER/NAME#NUMBER. */
static const char *
read_named(const char *at, const char *end, struct import_reference *out)
{
    static const char *const words[] = {"issue", "pr", "task", "ticket"};
    const char *next = read_name(at, end, '/', &out->owner);
    if (next == NULL) {
        out->owner = (struct import_span){0};
        next = at;
    }
    at = read_name(next, end, '#', &out->name);
    for (size_t ix = 0; at != NULL && ix < ARRAY_COUNT(words); ix++) {
        if (out->owner.len == 0 &&
            import_compare(out->name, import_span(words[ix])) == 0) {
            out->name = (struct import_span){0};
        }
    }
    return at == NULL ? NULL : read_number(at, end, &out->number);
}

static const char *
read_reference(const char *at, const char *end, struct import_reference *out)
{
    *out = (struct import_reference){0};
    if (at >= end) {
        return NULL;
    }
    const char *next = NULL;
    const char *dash = read_text(at, end, "GH-");
    if (*at == '#') {
        next = read_number(at + 1, end, &out->number);
    } else if (*at == '[' || *at == '<') {
        next = read_link(at, end, out);
    } else if (dash != NULL) {
        next = read_number(dash, end, &out->number);
    }
    if (next == NULL && is_name_byte(*at)) {
        next = read_address(at, end, out);
        if (next == NULL) {
            *out = (struct import_reference){0};
            next = read_named(at, end, out);
        }
    }
    out->text = next == NULL ? out->text : between(at, next);
    return next;
}

/* --- lists of references ------------------------------------------------ */

/* A simple tag of HTML, as in <b>Depends on:</b>. */
static const char *read_tag(const char *at, const char *end)
{
    if (at >= end || *at != '<') {
        return NULL;
    }
    at++;
    at += at < end && *at == '/' ? 1 : 0;
    const char *from = at;
    while (at < end && is_letter(*at) && at - from < LOOK_BYTES_MAX) {
        at++;
    }
    at = at > from ? skip_blanks(at, end) : end;
    at += at < end && *at == '/' ? 1 : 0;
    return at < end && *at == '>' ? at + 1 : NULL;
}

/* Skip what may stand between a phrase and its first reference. */
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
        if (next != NULL && next < end && is_letter(*at) &&
            strchr("#/", *next) != NULL) {
            return at;
        }
    }
    return next == NULL ? at : next;
}

/* The mark of a range between two references: "#3 - #5", "#3 to #5". */
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
    at = skip_blanks(at, end);
    for (size_t ix = 0; ix < ARRAY_COUNT(marks); ix++) {
        const char *next = read_text(at, end, marks[ix]);
        next = next == NULL ? NULL : skip_blanks(next, end);
        if (next != NULL && next < end && *next == '#') {
            return next;
        }
    }
    return NULL;
}

/* Skip a remark in brackets, "#3 (the form), #4", unless a reference is at its
 * beginning. */
static const char *skip_remark(const char *at, const char *end)
{
    const char *open = skip_blanks(at, end);
    if (open >= end || *open != '(') {
        return at;
    }
    struct import_reference reference;
    const char *inside = skip_fill(open + 1, end);
    const char *word = read_one_of(inside, end, joints, ARRAY_COUNT(joints));
    inside = word != NULL ? skip_fill(word, end) : inside;
    if (read_reference(inside, end, &reference) != NULL) {
        return inside;
    }
    size_t len = (size_t)(end - open);
    len = len < LOOK_BYTES_MAX ? len : LOOK_BYTES_MAX;
    const char *close = memchr(open, ')', len);
    return close != NULL ? close + 1 : at;
}

/* Skip what may stand between two references. *joined: it asks for one more. */
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
        if (next != NULL && next < end && is_letter(*at) &&
            strchr("#/", *next) != NULL) {
            return at;
        }
        *joined = *joined || mark;
    }
    return next == NULL ? at : next;
}

/*
 * The references from `at` on, told one by one; *count is how many. *more: the
 * line ends where another one is expected. The end of the last one.
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
        const char *next = read_reference(at, end, &reference);
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

/* The first reference anywhere in a line. */
static void
read_anywhere(const struct scan *scan, const char *line, const char *end)
{
    struct import_reference reference;
    for (const char *at = line; at < end; at++) {
        bool starts = at == line || !(is_name_byte(at[-1]) ||
                                      strchr("/#@\\", at[-1]) != NULL);
        if (starts && read_reference(at, end, &reference) != NULL) {
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
    for (size_t ix = 0; ix < ARRAY_COUNT(negations); ix++) {
        if (import_compare(word, import_span(negations[ix])) == 0) {
            return true;
        }
    }
    return ends_with(word, "n't") || ends_with(word, "n\xe2\x80\x99t");
}

/* Whether a "not" stands among the words just before `at`. */
static bool is_negated(const char *line, const char *at)
{
    for (uint32_t count = 0; count < WORDS_BACK; count++) {
        while (at > line && strchr(" \t*_", at[-1]) != NULL) {
            at--;
        }
        const char *end = at;
        while (at > line && (is_letter(at[-1]) || at[-1] == '\'') &&
               end - at < LOOK_BYTES_MAX) {
            at--;
        }
        if (at == end) {
            return false;
        }
        if (is_negation(between(at, end))) {
            return true;
        }
    }
    return false;
}

/* Read all phrases of a line, with the references behind them. */
static void scan_phrases(struct scan *scan,
                         struct import_span line,
                         const struct import_shape *shape)
{
    const char *end = line.text + line.len;
    const char *at = line.text + shape->start;
    while (at < end) {
        const struct phrase *phrase = NULL;
        bool starts = at == line.text || !is_letter(at[-1]);
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
        if (more || (count == 0 && skip_fill(next, end) == end)) {
            scan->open = true;
            scan->loose = phrase->loose;
            scan->bare = more;
            scan->flow = more;
            scan->parent = shape->bullet ? shape->indent : NO_INDENT;
            scan->item = NO_INDENT;
        }
    }
}

/* --- lines -------------------------------------------------------------- */

/* A line in a list under a phrase; false when it is not of the list. */
static bool scan_item(struct scan *scan,
                      struct import_span line,
                      const struct import_shape *shape)
{
    const char *at = line.text + shape->start;
    const char *end = line.text + line.len;
    uint32_t count = 0;
    bool more = false;
    if (!shape->bullet) {
        struct import_reference reference;
        at = skip_joint(at, end, &more);
        bool first =
            read_reference(skip_fill(at, end), end, &reference) != NULL;
        if (first && !shape->heading) {
            scan->bare = true;
            (void)read_list(scan, at, end, &count, &more);
            scan->open = more || !scan->flow;
            return true;
        }
        /* What belongs to an item is indented deeper than it. */
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
    const char *at = strbuf_text(&clean);
    const char *end = at + clean.len;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end == NULL ? end : line_end;
        scan_line(&scan, between(at, line_end));
        at = line_end < end ? line_end + 1 : end;
    }
    strbuf_release(&clean);
}
