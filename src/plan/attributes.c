/* SPDX-License-Identifier: MIT */
/*
 * Task and group attributes, which limits match.
 *
 * Attributes are compared by pointer, so every name and value here is interned
 * in the plan. Consecutive tasks often have the same attributes (same class,
 * repo and owner, no group) and then share one list.
 */
#include "plan/plan_internal.h"

#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>

/* The attributes that sluice itself sets, sorted by name. */
enum {
    OWN_CLASS,
    OWN_GROUP,
    OWN_OWNER,
    OWN_PROVIDER,
    OWN_REPO,
    OWN_STAGE,
    OWN_MAX,
};

static const char *const own_names[OWN_MAX] =
    {"class", "group", "owner", "provider", "repo", "stage"};

bool plan_is_own_attribute(const char *name)
{
    for (int ix = 0; ix < OWN_MAX; ix++) {
        if (strcmp(own_names[ix], name) == 0) {
            return true;
        }
    }
    return false;
}

const char *plan_attribute_value(const struct plan_attribute *list,
                                 uint32_t count,
                                 const char *name)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        if (strcmp(list[ix].name, name) == 0) {
            return list[ix].value;
        }
    }
    return NULL;
}

static int by_name(const void *left, const void *right)
{
    const struct plan_attribute *a = left;
    const struct plan_attribute *b = right;
    return strcmp(a->name, b->name);
}

void plan_read_attributes(struct reader *reader,
                          const struct node *node,
                          struct plan_attribute **out,
                          uint32_t *count_out)
{
    struct plan *plan = reader->plan;
    if (!fields_is_small(reader,
                         node,
                         "\"attributes\"",
                         PLAN_ATTRIBUTES_MAX,
                         "attributes")) {
        return;
    }
    struct plan_attribute *list =
        arena_alloc(&plan->private->arena, node->count, sizeof(list[0]));
    uint32_t count = 0;
    NODE_EACH_KEY(node)
    {
        const struct node *value = node_value(key);
        if (fields_check_id(reader, key, "attribute", true) == NULL) {
            continue;
        }
        if (plan_is_own_attribute(key->text)) {
            REPORT(reader,
                   key,
                   "attribute %s is reserved: use the key of that "
                   "name, or another name",
                   QUOTED(key));
            continue;
        }
        if (fields_check_line(reader, value, QUOTED(key), PLAN_ID_BYTES_MAX) ==
            NULL) {
            continue;
        }
        list[count++] = (struct plan_attribute){
            .name = plan_intern(plan, key->text, key->count),
            .value = plan_intern(plan, value->text, value->count),
        };
    }
    qsort(list, count, sizeof(list[0]), by_name);
    /* Fragments declare no limits, and their attributes may be undone. */
    for (uint32_t ix = 0; ix < count && !reader->fragment; ix++) {
        (void)strmap_add(&plan->private->free_names, list[ix].name, 0);
    }
    *out = list;
    *count_out = count;
}

/* Fill sluice's own attributes; omit attributes without a value. */
static uint32_t set_own(const struct plan *plan,
                        const char *const values[OWN_MAX],
                        struct plan_attribute *list)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < OWN_MAX; ix++) {
        if (values[ix] != NULL) {
            list[count++] = (struct plan_attribute){
                .name = plan->private->own_names[ix],
                .value = values[ix],
            };
        }
    }
    return count;
}

static const char *repo_name(const struct plan *plan, uint32_t repo)
{
    return repo != PLAN_NONE ? plan->repos[repo].name : NULL;
}

/* Append free attributes whose name is not in the list yet. */
static uint32_t add_free(struct plan_attribute *list,
                         uint32_t count,
                         const struct plan_attribute *free_ones,
                         uint32_t free_count)
{
    uint32_t before = count;
    for (uint32_t ix = 0; ix < free_count; ix++) {
        if (plan_attribute_value(list, before, free_ones[ix].name) == NULL) {
            list[count++] = free_ones[ix];
        }
    }
    return count;
}

static struct plan_attribute *
keep_list(struct plan *plan, const struct plan_attribute *list, uint32_t count)
{
    struct plan_attribute *kept =
        arena_alloc(&plan->private->arena, count, sizeof(kept[0]));
    if (count > 0) {
        memcpy(kept, list, count * sizeof(kept[0]));
    }
    return kept;
}

void plan_intern_own_names(struct plan *plan)
{
    for (int ix = 0; ix < OWN_MAX; ix++) {
        plan->private->own_names[ix] =
            plan_intern(plan, own_names[ix], strlen(own_names[ix]));
    }
}

void plan_inherit_attributes(struct reader *reader, uint32_t group_ix)
{
    struct plan *plan = reader->plan;
    const struct plan_group *group = &plan->groups[group_ix];
    struct plan_group_more *more = &plan->private->group_more[group_ix];
    if (group->parent == PLAN_NONE) {
        return;
    }
    const struct plan_group_more *farther =
        &plan->private->group_more[group->parent];
    struct plan_attribute list[2 * PLAN_ATTRIBUTES_MAX];
    uint32_t count = add_free(list, 0, more->free_ones, more->free_count);
    count = add_free(list, count, farther->free_ones, farther->free_count);
    if (count > PLAN_ATTRIBUTES_MAX) {
        plan_errors_add(reader->errors,
                        group->mark,
                        "group %s has more than %d attributes, with those of "
                        "its parents",
                        QUOTED_TEXT(group->id),
                        PLAN_ATTRIBUTES_MAX);
        return;
    }
    qsort(list, count, sizeof(list[0]), by_name);
    more->free_ones = keep_list(plan, list, count);
    more->free_count = count;
}

void plan_set_group_attributes(struct plan *plan,
                               uint32_t group_ix,
                               const char *owner)
{
    struct plan_group *group = &plan->groups[group_ix];
    const struct plan_group_more *more = &plan->private->group_more[group_ix];
    struct plan_attribute list[OWN_MAX + PLAN_ATTRIBUTES_MAX];
    const char *const values[OWN_MAX] = {
        [OWN_GROUP] = group->id,
        [OWN_OWNER] = owner,
        [OWN_REPO] = repo_name(plan, group->repo),
    };
    uint32_t count = set_own(plan, values, list);
    count = add_free(list, count, more->free_ones, more->free_count);
    if (more->free_count > 0) {
        qsort(list, count, sizeof(list[0]), by_name);
    }
    group->attributes = keep_list(plan, list, count);
    group->attribute_count = count;
}

void plan_set_task_attributes(struct plan *plan,
                              uint32_t task_ix,
                              const char *owner,
                              const struct plan_attribute *free_ones,
                              uint32_t free_count)
{
    struct plan_task *task = &plan->tasks[task_ix];
    struct plan_attribute list[OWN_MAX + 2 * PLAN_ATTRIBUTES_MAX];
    const char *const values[OWN_MAX] = {
        [OWN_CLASS] = plan->classes[task->class_ix].name,
        [OWN_GROUP] =
            task->group != PLAN_NONE ? plan->groups[task->group].id : NULL,
        [OWN_OWNER] = owner,
        [OWN_PROVIDER] = task->provider != PLAN_LOCAL
                             ? plan->providers[task->provider].name
                             : NULL,
        [OWN_REPO] = repo_name(plan, task->repo),
        [OWN_STAGE] = task->stage,
    };
    uint32_t own = set_own(plan, values, list);
    uint32_t count = add_free(list, own, free_ones, free_count);
    if (task->group != PLAN_NONE) {
        const struct plan_group_more *more =
            &plan->private->group_more[task->group];
        count = add_free(list, count, more->free_ones, more->free_count);
    }
    INVARIANT(count <= ARRAY_COUNT(list));
    if (count > own) {
        qsort(list, count, sizeof(list[0]), by_name);
    }
    task->attribute_count = (uint16_t)count;
    const struct plan_task *last = task_ix > 0 ? task - 1 : task;
    if (last != task && last->attribute_count == count &&
        memcmp(last->attributes, list, count * sizeof(list[0])) == 0) {
        task->attributes = last->attributes;
        return;
    }
    task->attributes = keep_list(plan, list, count);
}
