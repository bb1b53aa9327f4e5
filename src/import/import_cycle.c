/* SPDX-License-Identifier: MIT */
/*
 * Cycle search among the chosen issues: a depth-first walk with an explicit
 * stack. Each edge to an issue on the stack closes a cycle, which is reported
 * from that issue on. The walk visits every issue and every need once.
 */
#include "base/mem.h"
#include "import/import_internal.h"

#include <inttypes.h>

enum { SHOWN_MAX = 12 }; /* issues of a cycle to name */

enum colour { NOT_SEEN, ON_STACK, FINISHED };

struct walk {
    struct import *import;
    uint8_t *colours; /* enum colour */
    uint32_t *next;   /* next need to visit, for each issue */
    uint32_t *stack;
    uint32_t depth;
};

/* Report the cycle: the stack from `first` on. */
static void report(const struct walk *walk, uint32_t first)
{
    const struct import *import = walk->import;
    uint32_t from = walk->depth;
    while (walk->stack[from - 1] != first) {
        from--;
    }
    from--;
    struct strbuf text = {0};
    uint32_t count = walk->depth - from;
    for (uint32_t ix = 0; ix < count && ix < SHOWN_MAX; ix++) {
        const struct import_issue *issue =
            &import->issues[walk->stack[from + ix]];
        strbuf_addf(&text, "%s needs ", issue->id);
    }
    if (count > SHOWN_MAX) {
        strbuf_addf(&text, "%u more, the last needs ", count - SHOWN_MAX);
    }
    strbuf_adds(&text, import->issues[first].id);
    import_fail_issue(
        walk->import,
        &import->issues[first],
        "cycle of %u issues: %s; remove one of these dependencies",
        count,
        strbuf_text(&text));
    strbuf_release(&text);
}

static void push(struct walk *walk, uint32_t ix)
{
    walk->colours[ix] = ON_STACK;
    walk->stack[walk->depth++] = ix;
}

static void walk_from(struct walk *walk, uint32_t start)
{
    push(walk, start);
    while (walk->depth > 0) {
        uint32_t ix = walk->stack[walk->depth - 1];
        const struct import_issue *issue = &walk->import->issues[ix];
        if (walk->next[ix] == issue->need_count) {
            walk->colours[ix] = FINISHED;
            walk->depth--;
            continue;
        }
        uint32_t need = issue->needs[walk->next[ix]++];
        if (walk->colours[need] == ON_STACK) {
            report(walk, need);
        } else if (walk->colours[need] == NOT_SEEN) {
            push(walk, need);
        }
    }
}

void import_find_cycles(struct import *import)
{
    uint32_t count = import->issue_count;
    struct walk walk = {
        .import = import,
        .colours = mem_zalloc(count, sizeof(walk.colours[0])),
        .next = mem_zalloc(count, sizeof(walk.next[0])),
        .stack = mem_zalloc(count, sizeof(walk.stack[0])),
    };
    for (uint32_t ix = 0; ix < count && !import->errors.cut; ix++) {
        if (import->issues[ix].chosen && walk.colours[ix] == NOT_SEEN) {
            walk_from(&walk, ix);
        }
    }
    mem_free(walk.colours);
    mem_free(walk.next);
    mem_free(walk.stack);
}
