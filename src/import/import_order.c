/* SPDX-License-Identifier: MIT */
/*
 * Priorities: read from labels, inherited, and used to order the plan.
 *
 * An issue without a priority has that of its nearest ancestor with a priority.
 * The plan has the priority of each issue, and the scheduler propagates it to
 * the needs. The order of the plan is for people, and breaks ties: an issue is
 * as urgent as its most urgent dependent, and urgent issues come first.
 */
#include "base/mem.h"
#include "import/import_reference.h"

#include <stdlib.h>

enum { WORDS_MAX = 8, WORD_BYTES_MAX = 16 };

/* A word that gives a priority, in a label with "priority", "prio" or "pri"
 * before or after it; `alone`: also without. */
static const struct {
    const char *text;
    uint32_t priority;
    bool alone;
} words[] = {
    {"0", 0, false},         {"1", 1, false},         {"2", 2, false},
    {"3", 3, false},         {"4", 4, false},         {"asap", 0, false},
    {"awaiting", 4, false},  {"backlog", 4, false},   {"blocker", 0, false},
    {"critical", 0, true},   {"high", 1, false},      {"highest", 0, false},
    {"immediate", 0, false}, {"important", 1, false}, {"low", 3, false},
    {"lowest", 4, false},    {"major", 1, false},     {"medium", 2, false},
    {"minor", 3, false},     {"moderate", 2, false},  {"nice", 4, false},
    {"normal", 2, false},    {"p0", 0, true},         {"p1", 1, true},
    {"p2", 2, true},         {"p3", 3, true},         {"p4", 4, true},
    {"someday", 4, false},   {"soon", 1, false},      {"trivial", 4, false},
    {"urgent", 0, true},
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

/* Whether the word at `ix` announces a priority. "P" does only in "P-high". */
static bool
is_name(const struct import_span *parts, uint32_t ix, uint32_t count)
{
    static const char *const names[] = {"pri", "prio", "priority"};
    return import_is_one_of(parts[ix], names, ARRAY_COUNT(names)) ||
           (ix == 0 && count == 2 && import_is(parts[ix], "p"));
}

uint32_t import_label_priority(struct import_span label)
{
    struct import_span parts[WORDS_MAX];
    uint32_t count = split_words(label, parts);
    if (count == 0) {
        return IMPORT_PRIORITY_UNSET;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        bool named = is_name(parts, ix, count);
        if (named && ix + 2 < count && import_is(parts[ix + 2], "longterm")) {
            return IMPORT_PRIORITY_DEFAULT; /* "priority/important-longterm" */
        }
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
    issue->urgency = issue->priority;
}

/* Raise the needs of an issue to its urgency. The stack has room for all
 * issues: each is pushed once per urgency. */
static void hand_on(struct import *import, uint32_t start, uint32_t *stack)
{
    uint32_t urgency = import->issues[start].urgency;
    uint32_t depth = 0;
    stack[depth++] = start;
    while (depth > 0) {
        const struct import_issue *issue = &import->issues[stack[--depth]];
        for (uint32_t ix = 0; ix < issue->need_count; ix++) {
            struct import_issue *need = &import->issues[issue->needs[ix]];
            if (need->urgency > urgency) {
                need->urgency = urgency;
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
    for (uint32_t urgency = 0; urgency < IMPORT_PRIORITY_MAX; urgency++) {
        for (uint32_t ix = 0; ix < import->issue_count; ix++) {
            const struct import_issue *issue = &import->issues[ix];
            if (issue->chosen && issue->urgency == urgency) {
                hand_on(import, ix, stack);
            }
        }
    }
    for (uint32_t urgency = 0; urgency <= IMPORT_PRIORITY_MAX; urgency++) {
        for (uint32_t ix = 0; ix < import->issue_count; ix++) {
            const struct import_issue *issue = &import->issues[ix];
            if (issue->chosen && issue->urgency == urgency) {
                import->order[count++] = ix;
            }
        }
    }
    mem_free(stack);
}
