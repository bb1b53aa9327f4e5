/* SPDX-License-Identifier: MIT */
/*
 * Priorities: read from labels, propagated, and used to order the plan.
 *
 * The scheduler breaks ties by the order of declaration, so urgent issues come
 * first. An issue without a priority inherits that of its nearest ancestor with
 * a priority; and an issue is as urgent as its most urgent dependent.
 */
#include "base/mem.h"
#include "import/import_reference.h"

#include <stdlib.h>

enum { WORDS_MAX = 8, WORD_BYTES_MAX = 16 };

/* A word that gives a priority, in a label with "priority" or "prio" before or
 * after it; `alone`: also without. */
static const struct {
    const char *text;
    uint32_t priority;
    bool alone;
} words[] = {
    {"0", 0, false},       {"1", 1, false},         {"2", 2, false},
    {"3", 3, false},       {"4", 4, false},         {"backlog", 4, false},
    {"blocker", 0, false}, {"critical", 0, true},   {"high", 1, false},
    {"highest", 0, false}, {"important", 1, false}, {"low", 3, false},
    {"lowest", 4, false},  {"major", 1, false},     {"medium", 2, false},
    {"minor", 3, false},   {"normal", 2, false},    {"p0", 0, true},
    {"p1", 1, true},       {"p2", 2, true},         {"p3", 3, true},
    {"p4", 4, true},       {"trivial", 4, false},   {"urgent", 0, true},
};

/* Split a label into words of letters and digits; return their number. */
static uint32_t split_words(struct import_span label,
                            struct import_span out[WORDS_MAX])
{
    uint32_t count = 0;
    size_t at = 0;
    while (at < label.len && count < WORDS_MAX) {
        size_t begin = at;
        while (at < label.len && import_reference_is_letter(label.text[at])) {
            at++;
        }
        if (at > begin) {
            out[count++] = (struct import_span){label.text + begin, at - begin};
        }
        at += at < label.len ? 1 : 0;
    }
    return count;
}

static uint32_t find_word(struct import_span text, bool alone)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(words); ix++) {
        if (import_is(text, words[ix].text) && (words[ix].alone || !alone)) {
            return words[ix].priority;
        }
    }
    return IMPORT_PRIORITY_UNSET;
}

uint32_t import_label_priority(struct import_span label)
{
    struct import_span parts[WORDS_MAX];
    uint32_t count = split_words(label, parts);
    if (count == 0) {
        return IMPORT_PRIORITY_UNSET;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        bool named =
            import_is(parts[ix], "priority") || import_is(parts[ix], "prio");
        if (named && ix + 1 < count) {
            return find_word(parts[ix + 1], false);
        }
        if (named && ix > 0) {
            return find_word(parts[ix - 1], false);
        }
    }
    /* "P1: high" and "P1" are priorities; "critical path" is not. */
    uint32_t first = find_word(parts[0], true);
    bool short_form = parts[0].len == 2;
    return count == 1 || short_form ? first : IMPORT_PRIORITY_UNSET;
}

/* --- the order ---------------------------------------------------------- */

static void inherit_priority(struct import *import, struct import_issue *issue)
{
    for (uint32_t ix = issue->parent;
         issue->priority == IMPORT_PRIORITY_UNSET && ix != IMPORT_NONE;
         ix = import->issues[ix].parent) {
        issue->priority = import->issues[ix].priority;
    }
    if (issue->priority == IMPORT_PRIORITY_UNSET) {
        issue->priority = IMPORT_PRIORITY_DEFAULT;
    }
}

/* Raise the needs of an issue to its priority. The stack has room for all
 * issues: each is pushed once per priority. */
static void hand_on(struct import *import, uint32_t start, uint32_t *stack)
{
    uint32_t priority = import->issues[start].priority;
    uint32_t depth = 0;
    stack[depth++] = start;
    while (depth > 0) {
        const struct import_issue *issue = &import->issues[stack[--depth]];
        for (uint32_t ix = 0; ix < issue->need_count; ix++) {
            struct import_issue *need = &import->issues[issue->needs[ix]];
            if (need->priority > priority) {
                need->priority = priority;
                stack[depth++] = issue->needs[ix];
            }
        }
    }
}

void import_set_order(struct import *import)
{
    uint32_t *stack =
        mem_zalloc((size_t)import->issue_count + 1, sizeof(stack[0]));
    uint32_t count = 0;
    ARENA_ARRAY(&import->arena, import->order, (size_t)import->issue_count + 1);
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        if (import->issues[ix].chosen) {
            inherit_priority(import, &import->issues[ix]);
        }
    }
    for (uint32_t priority = 0; priority < IMPORT_PRIORITY_MAX; priority++) {
        for (uint32_t ix = 0; ix < import->issue_count; ix++) {
            const struct import_issue *issue = &import->issues[ix];
            if (issue->chosen && issue->priority == priority) {
                hand_on(import, ix, stack);
            }
        }
    }
    for (uint32_t priority = 0; priority <= IMPORT_PRIORITY_MAX; priority++) {
        for (uint32_t ix = 0; ix < import->issue_count; ix++) {
            const struct import_issue *issue = &import->issues[ix];
            if (issue->chosen && issue->priority == priority) {
                import->order[count++] = ix;
            }
        }
    }
    mem_free(stack);
}
