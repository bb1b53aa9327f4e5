/* SPDX-License-Identifier: MIT */
/*
 * Groups that are parts of others.
 *
 * A group is read after its parent, wherever the file has it: it takes the
 * parent's labels and attributes, and a parent has a lower index than its
 * parts. So walks from parent to parent end.
 */
#include "plan/plan_internal.h"

#include "base/invariant.h"
#include "base/strbuf.h"

#include <string.h>

enum { NESTING_MAX = 32 };

/* The items of a `groups` list. */
struct nest {
    struct reader *reader;
    const struct node **items;
    bool *done;
    uint32_t count;
    struct strmap ids; /* to the index of the first item with the id */
};

/* Return the scalar that a key of the item has, or NULL. */
static const struct node *word_of(const struct node *item, const char *name)
{
    const struct node *key = node_find_key(item, name);
    const struct node *value = key != NULL ? node_value(key) : NULL;
    return value != NULL && node_is_scalar(value) && value->count > 0 ? value
                                                                      : NULL;
}

/* The same for a key that it has: others were found by it. */
static const struct node *known_word(const struct node *item, const char *name)
{
    const struct node *word = word_of(item, name);
    INVARIANT(word != NULL);
    return word;
}

/* Return the item that is the parent of this one, or PLAN_NONE. */
static uint32_t parent_of(const struct nest *nest, uint32_t ix)
{
    const struct node *name = word_of(nest->items[ix], "parent");
    return name == NULL ? PLAN_NONE : plan_lookup(&nest->ids, name);
}

static void
report_cycle(const struct nest *nest, const uint32_t *chain, uint32_t count)
{
    struct strbuf text = {0};
    const struct node *first = nest->items[chain[0]];
    for (uint32_t ix = 0; ix < count; ix++) {
        const char *id = QUOTED(known_word(nest->items[chain[ix]], "id"));
        strbuf_add(&text, id + 1, strlen(id) - 2);
        strbuf_adds(&text, " -> ");
    }
    const char *id = QUOTED(known_word(first, "id"));
    strbuf_add(&text, id + 1, strlen(id) - 2);
    REPORT(nest->reader,
           known_word(first, "parent"),
           "group %s is its own part: %s",
           QUOTED(known_word(first, "id")),
           strbuf_text(&text));
    strbuf_release(&text);
}

static void report_depth(struct reader *reader, const struct node *parent)
{
    REPORT(reader,
           parent,
           "group is nested too deep: at most %d levels",
           NESTING_MAX);
    reader->parents_bad = true;
}

/* Return the number of levels down to this group. */
static uint32_t level_of(const struct plan *plan, uint32_t group)
{
    uint32_t level = 0;
    for (; group != PLAN_NONE; group = plan->groups[group].parent) {
        level++;
    }
    return level;
}

/* Read an item after its parents. */
static void read_item(struct nest *nest,
                      uint32_t ix,
                      void (*read)(struct reader *, const struct node *))
{
    uint32_t chain[NESTING_MAX];
    uint32_t count = 0;
    while (ix != PLAN_NONE && !nest->done[ix] && count < NESTING_MAX) {
        for (uint32_t at = 0; at < count; at++) {
            if (chain[at] == ix) {
                report_cycle(nest, chain + at, count - at);
                nest->reader->parents_bad = true;
                nest->reader->orphan = nest->items[chain[count - 1]];
                ix = PLAN_NONE;
                break;
            }
        }
        if (ix != PLAN_NONE) {
            chain[count++] = ix;
            ix = parent_of(nest, ix);
        }
    }
    if (ix != PLAN_NONE && !nest->done[ix]) {
        report_depth(nest->reader, known_word(nest->items[chain[0]], "parent"));
        nest->reader->orphan = nest->items[chain[count - 1]];
    }
    while (count > 0) {
        count--;
        nest->done[chain[count]] = true;
        read(nest->reader, nest->items[chain[count]]);
    }
}

void plan_read_nested(struct reader *reader,
                      const struct node *node,
                      void (*read)(struct reader *, const struct node *))
{
    if (!fields_is_list(reader, node, "\"groups\"")) {
        reader->names_incomplete = true;
        return;
    }
    struct nest nest = {
        .reader = reader,
        .items = mem_zalloc(node->count, sizeof(const struct node *)),
        .done = mem_zalloc(node->count, sizeof(nest.done[0])),
    };
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        const struct node *id = word_of(item, "id");
        nest.items[nest.count] = item;
        if (id != NULL) {
            (void)strmap_add(&nest.ids, id->text, nest.count);
        }
        nest.count++;
    }
    for (uint32_t ix = 0; ix < nest.count && !reader->too_many; ix++) {
        if (!nest.done[ix]) {
            read_item(&nest, ix, read);
        }
    }
    strmap_release(&nest.ids);
    mem_free(nest.items);
    mem_free(nest.done);
}

uint32_t plan_find_parent(struct reader *reader,
                          const struct node *group,
                          const struct node *name)
{
    const struct plan *plan = reader->plan;
    if (!fields_is_text(reader, name, "\"parent\"", "the id of a group")) {
        reader->parents_bad = true;
        return PLAN_NONE;
    }
    if (reader->orphan == group) {
        return PLAN_NONE;
    }
    uint32_t target = plan_lookup(&plan->private->names, name);
    if (target != STRMAP_NONE && plan_target_is_group(target)) {
        uint32_t parent = plan_target_ix(target);
        if (level_of(plan, parent) < NESTING_MAX) {
            return parent;
        }
        report_depth(reader, name);
        return PLAN_NONE;
    }
    reader->parents_bad = true;
    if (target != STRMAP_NONE) {
        REPORT(reader, name, "%s is a task, not a group", QUOTED(name));
    } else if (!reader->names_incomplete) {
        struct suggest guess = plan_guess(reader, name);
        SUGGEST_ALL(&guess, plan->groups, plan->group_count, id);
        plan_report_unknown(reader, name, "parent", &guess);
    }
    return PLAN_NONE;
}

bool plan_is_within(const struct plan *plan, uint32_t group, uint32_t ancestor)
{
    while (group != PLAN_NONE && group != ancestor) {
        group = plan->groups[group].parent;
    }
    return group == ancestor;
}

void plan_set_scopes(struct reader *reader)
{
    struct plan *plan = reader->plan;
    for (uint32_t ix = reader->before.tasks; ix < plan->task_count; ix++) {
        uint32_t group = plan->tasks[ix].group;
        while (group != PLAN_NONE && !plan->groups[group].has_last) {
            group = plan->groups[group].parent;
        }
        plan->tasks[ix].scope = group;
    }
}
