/* SPDX-License-Identifier: MIT */
#include "import/import.h"

#include "base/mem.h"
#include "base/strip.h"
#include "import/import_read.h"
#include "import/import_reference.h"
#include "plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1000 };

struct import *import_new(const struct import_options *options)
{
    struct import *import = mem_zalloc(1, sizeof(*import));
    import->options = *options;
    return import;
}

void import_free(struct import *import)
{
    if (import == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        strbuf_release(&import->issues[ix].dropped);
    }
    for (uint32_t ix = 0; ix < import->root_count; ix++) {
        json_decref(import->roots[ix]);
    }
    for (uint32_t ix = 0; ix < import->errors.count; ix++) {
        mem_free(import->errors.items[ix].text);
    }
    mem_free(import->errors.items);
    mem_free(import->roots);
    mem_free(import->issues);
    arena_release(&import->arena);
    mem_free(import);
}

PRINTF_LIKE(3, 0)
static void add_error(struct import *import,
                      const struct import_error *where,
                      const char *format,
                      va_list args)
{
    struct import_errors *errors = &import->errors;
    char text[TEXT_BYTES_MAX];
    int len = vsnprintf(text, sizeof(text), format, args);
    if (errors->count == IMPORT_ERRORS_MAX) {
        errors->cut = true;
        return;
    }
    MEM_GROW(errors->items, errors->count, errors->capacity);
    struct import_error *error = &errors->items[errors->count++];
    *error = *where;
    error->text = mem_strndup(text, len < 0 ? 0 : strlen(text));
}

void import_fail(struct import *import,
                 const char *file,
                 const char *format,
                 ...)
{
    va_list args;
    va_start(args, format);
    add_error(import, &(struct import_error){.file = file}, format, args);
    va_end(args);
}

void import_fail_issue(struct import *import,
                       const struct import_issue *issue,
                       const char *format,
                       ...)
{
    struct import_error where = {
        .file = issue->file,
        .key = issue->key,
        .issue = issue->number,
    };
    va_list args;
    va_start(args, format);
    add_error(import, &where, format, args);
    va_end(args);
}

void import_fail_at(struct import *import,
                    const struct import_error *where,
                    const char *format,
                    ...)
{
    va_list args;
    va_start(args, format);
    add_error(import, where, format, args);
    va_end(args);
}

struct import_span import_span(const char *text)
{
    return (struct import_span){text, text == NULL ? 0 : strlen(text)};
}

struct import_span import_keep(struct import *import, struct import_span text)
{
    return (struct import_span){
        arena_strndup(&import->arena, text.text, text.len),
        text.len,
    };
}

struct import_span import_take(struct import *import, struct strbuf *text)
{
    struct import_span span = {strbuf_text(text), text->len};
    span = import_keep(import, span);
    strbuf_release(text);
    return span;
}

/* Return the number of bytes at `text` that a line must not contain, or 0.
 * strip has removed terminal controls; YAML breaks lines at U+2028 and U+2029,
 * and rejects U+FEFF, U+FFFE and U+FFFF. */
static size_t unfit(const char *text)
{
    static const char *const characters[] = {
        "\xe2\x80\xa8",
        "\xe2\x80\xa9",
        "\xef\xbb\xbf",
        "\xef\xbf\xbe",
        "\xef\xbf\xbf",
    };
    if (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r') {
        return 1;
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(characters); ix++) {
        if (strncmp(text, characters[ix], 3) == 0) {
            return 3;
        }
    }
    return 0;
}

void import_add_line(struct strbuf *out, struct import_span text, size_t max)
{
    struct strbuf clean = {0};
    strip_text(&clean, text.text, text.len);
    size_t begin = out->len;
    bool blank = false; /* a space is due before the next character */
    const char *at = strbuf_text(&clean);
    while (*at != '\0') {
        size_t len = unfit(at);
        if (len > 0) {
            blank = out->len > begin;
            at += len;
            continue;
        }
        len = 1;
        while (((unsigned char)at[len] & 0xc0) == 0x80) {
            len++;
        }
        if (out->len - begin + len + (blank ? 1 : 0) > max) {
            break;
        }
        strbuf_adds(out, blank ? " " : "");
        strbuf_add(out, at, len);
        blank = false;
        at += len;
    }
    strbuf_release(&clean);
}

void import_add_lines(struct strbuf *out, struct import_span text)
{
    struct strbuf clean = {0};
    strip_text(&clean, text.text, text.len);
    size_t begin = out->len;
    size_t end = begin; /* after the last byte that is not blank */
    for (const char *at = strbuf_text(&clean); *at != '\0';) {
        size_t skipped = *at == '\r' ? 1 : unfit(at);
        bool blank = *at == ' ' || *at == '\t' || *at == '\n';
        if (skipped > 0 && !blank) {
            at += skipped;
            continue;
        }
        if (!blank || *at != '\n' || out->len > begin) {
            strbuf_add(out, at, 1);
        }
        end = blank ? end : out->len;
        at++;
    }
    if (out->len > end) {
        out->len = end;
        out->text[end] = '\0';
    }
    strbuf_release(&clean);
}

static unsigned char lower(char byte)
{
    bool upper = byte >= 'A' && byte <= 'Z';
    return (unsigned char)(upper ? byte - 'A' + 'a' : byte);
}

int import_compare(struct import_span a, struct import_span b)
{
    for (size_t ix = 0; ix < a.len && ix < b.len; ix++) {
        if (lower(a.text[ix]) != lower(b.text[ix])) {
            return lower(a.text[ix]) < lower(b.text[ix]) ? -1 : 1;
        }
    }
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

bool import_is(struct import_span text, const char *word)
{
    return import_compare(text, import_span(word)) == 0;
}

bool import_is_one_of(struct import_span text,
                      const char *const *words,
                      size_t count)
{
    size_t ix = 0;
    while (ix < count && !import_is(text, words[ix])) {
        ix++;
    }
    return ix < count;
}

bool import_next_line(struct import_span *rest, struct import_span *line)
{
    const char *end =
        rest->len == 0 ? NULL : memchr(rest->text, '\n', rest->len);
    *line = *rest;
    line->len = end != NULL ? (size_t)(end - rest->text) : rest->len;
    bool any = rest->len > 0;
    size_t skipped = line->len + (end != NULL ? 1 : 0);
    rest->text += skipped;
    rest->len -= skipped;
    return any;
}

/* Take the run of digits at *text, without leading zeros, and advance *text. */
static struct import_span take_digits(const char **text)
{
    while (**text == '0') {
        (*text)++;
    }
    struct import_span digits = {*text, 0};
    while (import_is_digit(**text)) {
        (*text)++;
        digits.len++;
    }
    return digits;
}

int import_compare_keys(const char *a, const char *b)
{
    const char *left = a == NULL ? "" : a;
    const char *right = b == NULL ? "" : b;
    const char *whole_left = left;
    const char *whole_right = right;
    while (*left != '\0' && *right != '\0') {
        if (import_is_digit(*left) && import_is_digit(*right)) {
            struct import_span x = take_digits(&left);
            struct import_span y = take_digits(&right);
            if (x.len != y.len) {
                return x.len < y.len ? -1 : 1;
            }
            int order = memcmp(x.text, y.text, x.len);
            if (order != 0) {
                return order;
            }
            continue;
        }
        if (*left != *right) {
            return (unsigned char)*left < (unsigned char)*right ? -1 : 1;
        }
        left++;
        right++;
    }
    if (*left != *right) {
        return *left == '\0' ? -1 : 1;
    }
    return strcmp(whole_left, whole_right);
}

/* Whether the byte is an ASCII letter or digit. */
static bool is_plain(char byte)
{
    unsigned char small = lower(byte);
    return (small >= 'a' && small <= 'z') || import_is_digit(byte);
}

bool import_is_key(struct import_span key)
{
    if (key.len == 0 || key.len > IMPORT_KEY_BYTES_MAX ||
        !is_plain(key.text[0])) {
        return false;
    }
    for (size_t ix = 0; ix < key.len; ix++) {
        char byte = key.text[ix];
        bool twice = byte == '.' && key.text[ix - 1] == '.';
        if (twice || !import_reference_is_name(byte)) {
            return false;
        }
    }
    return true;
}

bool import_is_name(struct import_span name)
{
    bool any = false; /* has a letter or a digit */
    for (size_t ix = 0; ix < name.len; ix++) {
        char byte = name.text[ix];
        if (!import_reference_is_name(byte)) {
            return false;
        }
        any = any || is_plain(byte);
    }
    return any && name.len <= IMPORT_NAME_BYTES_MAX;
}

bool import_split(struct import_span text,
                  struct import_span *owner,
                  struct import_span *name)
{
    const char *slash = text.len == 0 ? NULL : memchr(text.text, '/', text.len);
    *owner = (struct import_span){0};
    *name = text;
    if (slash != NULL) {
        owner->text = text.text;
        owner->len = (size_t)(slash - text.text);
        name->text = slash + 1;
        name->len = text.len - owner->len - 1;
    }
    return import_is_name(*name) && (slash == NULL || import_is_name(*owner));
}

struct import_span import_label(const json_t *labels, size_t ix)
{
    const json_t *label = json_array_get(labels, ix);
    if (json_is_object(label)) {
        label = json_object_get(label, "name");
    }
    return import_read_text(label);
}

struct import_tie *import_add_tie(struct import *import,
                                  struct import_issue *issue,
                                  enum import_tie_kind kind)
{
    struct import_tie *tie = arena_alloc(&import->arena, 1, sizeof(*tie));
    tie->kind = kind;
    if (issue->last_tie == NULL) {
        issue->ties = tie;
    } else {
        issue->last_tie->next = tie;
    }
    issue->last_tie = tie;
    return tie;
}

/* Check the output by reading it as a plan: no invalid plan is returned. */
static void check_plan(struct import *import, const struct strbuf *text)
{
    struct plan_source source = {
        .file = "plan",
        .text = strbuf_text(text),
        .len = text->len,
        .processors = 1,
    };
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        for (uint32_t ix = 0; ix < errors.count; ix++) {
            import_fail(import,
                        NULL,
                        "the resulting plan is invalid: line %u: %s",
                        errors.items[ix].mark.line,
                        errors.items[ix].text);
        }
    }
    plan_errors_release(&errors);
    plan_free(plan);
}

bool import_plan(struct import *import, struct strbuf *out)
{
    if (import->errors.count > 0 || !import_link(import)) {
        return false;
    }
    import_find_cycles(import);
    if (import->errors.count > 0) {
        return false;
    }
    import_set_order(import);
    struct strbuf text = {0};
    import_write(import, &text);
    check_plan(import, &text);
    if (import->errors.count == 0) {
        strbuf_add(out, strbuf_text(&text), text.len);
    }
    strbuf_release(&text);
    return import->errors.count == 0;
}

const struct import_errors *import_errors(const struct import *import)
{
    return &import->errors;
}

struct import_counts import_counts(const struct import *import)
{
    return import->counts;
}

bool import_next_body(const struct import *import,
                      uint32_t *ix,
                      struct import_body *out)
{
    for (; *ix < import->counts.issues; (*ix)++) {
        const struct import_issue *issue = &import->issues[import->order[*ix]];
        if (issue->file_body.path != NULL) {
            *out = issue->file_body;
            (*ix)++;
            return true;
        }
    }
    return false;
}
