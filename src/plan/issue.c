/* SPDX-License-Identifier: MIT */
/* Fields of issues that sluice only shows: labels and addresses. */
#include "plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sort the labels and drop duplicates. */
static void settle(struct plan_labels *labels)
{
    uint32_t kept = 0;
    if (labels->count > 1) {
        qsort(labels->items, labels->count, sizeof(labels->items[0]), by_text);
    }
    for (uint32_t ix = 0; ix < labels->count; ix++) {
        if (kept == 0 ||
            strcmp(labels->items[kept - 1], labels->items[ix]) != 0) {
            labels->items[kept++] = labels->items[ix];
        }
    }
    labels->count = kept;
}

void plan_read_labels(const struct entry *entry)
{
    struct reader *reader = entry->reader;
    struct plan *plan = reader->plan;
    const struct node *node = entry->value;
    struct plan_labels *labels = entry->out;
    if (node->kind != NODE_LIST) {
        fields_wrong(entry, "a list of strings");
        return;
    }
    if (node->count > PLAN_LABELS_MAX) {
        fields_wrong(entry, "at most 64 labels");
        return;
    }
    labels->count = 0; /* may be set by a misspelt key before */
    ARENA_ARRAY(&plan->private->arena, labels->items, node->count);
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        if (fields_check_line(reader, item, "a label", PLAN_ID_BYTES_MAX)) {
            labels->items[labels->count++] =
                plan_intern(plan, item->text, item->count);
        }
    }
    settle(labels);
}

struct plan_labels plan_join_labels(struct plan *plan,
                                    struct plan_labels own,
                                    struct plan_labels farther)
{
    if (own.count == 0 || farther.count == 0) {
        return own.count == 0 ? farther : own;
    }
    struct plan_labels all = {0};
    ARENA_ARRAY(&plan->private->arena, all.items, own.count + farther.count);
    for (uint32_t ix = 0; ix < own.count; ix++) {
        all.items[all.count++] = own.items[ix];
    }
    for (uint32_t ix = 0; ix < farther.count; ix++) {
        all.items[all.count++] = farther.items[ix];
    }
    settle(&all);
    return all;
}

void plan_read_url(const struct entry *entry)
{
    const char *text = node_is_scalar(entry->value) ? entry->value->text : "";
    bool web =
        strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
    if (!web || strpbrk(text, " \"<>") != NULL) {
        fields_wrong(entry, "an http or https address");
        return;
    }
    fields_line(entry);
}
