/* SPDX-License-Identifier: MIT */
/* Entries of `needs` lists, resolved to tasks and groups: step 1 of needs.c. */
#include "plan/needs_internal.h"

#include <string.h>

static const char *target_id(const struct plan *plan, uint32_t target)
{
    uint32_t ix = plan_target_ix(target);
    return plan_target_is_group(target) ? plan->groups[ix].id
                                        : plan->tasks[ix].id;
}

/* Whether the name may be a stage of a group that was unreadable. */
static bool is_in_bad_group(const struct plan *plan, const struct node *name)
{
    if (name->count > 2 * PLAN_ID_BYTES_MAX) {
        return false;
    }
    for (uint32_t len = name->count; len > 0; len--) {
        if (name->text[len - 1] != '/') {
            continue;
        }
        uint32_t target =
            strmap_find(&plan->private->names, name->text, len - 1);
        if (target != STRMAP_NONE && plan_target_is_group(target) &&
            plan->private->group_more[plan_target_ix(target)].bad) {
            return true;
        }
    }
    return false;
}

void needs_report_unknown(struct reader *reader,
                          const struct node *name,
                          const char *what)
{
    const struct plan *plan = reader->plan;
    if (reader->names_incomplete || is_in_bad_group(plan, name)) {
        return;
    }
    struct suggest guess = plan_guess(reader, name);
    SUGGEST_ALL(&guess, plan->groups, plan->group_count, id);
    SUGGEST_ALL(&guess, plan->tasks, plan->task_count, id);
    plan_report_unknown(reader, name, what, &guess);
}

/* Return the error in the need of a group on another, or NULL. */
static const char *
group_fault(const struct plan *plan, uint32_t dependent, uint32_t need)
{
    if (plan_is_within(plan, dependent, need)) {
        return "its own parent";
    }
    return plan_is_within(plan, need, dependent) ? "its own part" : NULL;
}

/* Return the error in this need, or NULL. */
static const char *
need_fault(const struct resolver *resolver, uint32_t dependent, uint32_t need)
{
    const struct plan *plan = resolver->plan;
    uint32_t dependent_ix = plan_target_ix(dependent);
    uint32_t need_ix = plan_target_ix(need);
    if (dependent == need) {
        return "itself";
    }
    if (plan_target_is_group(dependent)) {
        if (plan_target_is_group(need)) {
            return group_fault(plan, dependent_ix, need_ix);
        }
        return plan_is_within(plan, plan->tasks[need_ix].group, dependent_ix)
                   ? "its own task"
                   : NULL;
    }
    const struct plan_task *task = &plan->tasks[dependent_ix];
    if (task->last || !needs_is_loose(resolver, need) ||
        !plan_is_within(plan, task->group, need_ix)) {
        return NULL;
    }
    return task->group == need_ix ? "its own group" : "the parent of its group";
}

/* Whether it is a mapping that names a need. */
static bool is_named(const struct node *node)
{
    return node_find_key(node, "task") != NULL ||
           node_find_key(node, "group") != NULL;
}

struct raw_need {
    const struct node *task;
    const struct node *group;
    const struct node *on;
};

/* Read an entry of a list of needs: an id, or a mapping. Return the node of the
 * id; NULL after an error. */
static const struct node *
read_need(struct reader *reader, const struct node *node, enum plan_on *on_out)
{
    static const struct field fields[] = {
        {FIELD(struct raw_need, task, "task", fields_node)},
        {FIELD(struct raw_need, group, "group", fields_node)},
        {FIELD(struct raw_need, on, "on", fields_node)},
    };
    static const struct schema schema = SCHEMA("a need", fields);
    static const char *const words[] = {
        [PLAN_ON_DONE] = "done",
        [PLAN_ON_FAILED] = "failed",
        [PLAN_ON_ANY] = "any",
    };
    struct raw_need raw = {0};
    *on_out = PLAN_ON_DONE;
    if (!is_named(node)) {
        return fields_is_text(reader,
                              node,
                              "a need",
                              "the id of a task or group, or a mapping with "
                              "task and on")
                   ? node
                   : NULL;
    }
    (void)fields_read(reader, node, &schema, &raw);
    const struct node *name = raw.task != NULL ? raw.task : raw.group;
    if (raw.task != NULL && raw.group != NULL) {
        REPORT(reader, node, "\"task\" and \"group\" exclude each other");
        return NULL;
    }
    if (raw.on != NULL) {
        uint32_t ix = fields_find_word(raw.on, words, ARRAY_COUNT(words));
        if (ix == ARRAY_COUNT(words)) {
            fields_expected(reader, raw.on, "\"on\"", "done, failed or any");
        } else {
            *on_out = (enum plan_on)ix;
        }
    }
    bool good = name != NULL &&
                fields_is_text(reader,
                               name,
                               name == raw.task ? "\"task\"" : "\"group\"",
                               "the id of a task or group");
    return good ? name : NULL;
}

/* Report a need for the failure of a group, which edges cannot express. */
static void
refuse_failure(struct reader *reader, const struct node *name, uint32_t group)
{
    const struct plan *plan = reader->plan;
    uint32_t last = plan->private->group_more[group].last_task;
    if (last != PLAN_NONE) {
        REPORT(reader,
               name,
               "on: failed needs a task, and %s is a group: name its stage, "
               "such as %s",
               QUOTED(name),
               plan->tasks[last].id);
    } else {
        REPORT(reader,
               name,
               "on: failed needs a task, and %s is a group: name its tasks",
               QUOTED(name));
    }
}

static void append(struct reader *reader, struct plan_need need)
{
    MEM_GROW(reader->needs, reader->need_count, reader->need_capacity);
    reader->needs[reader->need_count++] = need;
}

static void resolve_entry(struct resolver *resolver,
                          uint32_t dependent,
                          const struct node *node)
{
    struct reader *reader = resolver->reader;
    struct plan *plan = resolver->plan;
    enum plan_on on;
    const struct node *name = read_need(reader, node, &on);
    if (name == NULL) {
        return;
    }
    uint32_t need = plan_lookup(&plan->private->names, name);
    if (need == STRMAP_NONE) {
        needs_report_unknown(reader, name, "task or group");
        return;
    }
    if (!plan_target_is_group(need) && node_find_key(node, "group") != NULL) {
        REPORT(reader, name, "%s is a task, not a group", QUOTED(name));
        return;
    }
    const char *fault = need_fault(resolver, dependent, need);
    if (fault != NULL) {
        REPORT(reader,
               name,
               "%s %s needs %s%s%s",
               plan_target_is_group(dependent) ? "group" : "task",
               QUOTED_TEXT(target_id(plan, dependent)),
               fault,
               dependent == need ? "" : " ",
               dependent == need ? "" : QUOTED(name));
        return;
    }
    if (on == PLAN_ON_FAILED && plan_target_is_group(need)) {
        refuse_failure(reader, name, plan_target_ix(need));
        return;
    }
    if (resolver->seen[need] == resolver->serial) {
        REPORT(reader, name, "%s is listed twice", QUOTED(name));
        return;
    }
    resolver->seen[need] = resolver->serial;
    struct plan_need entry = {
        .dependent = dependent,
        .need = need,
        .on = on,
        .mark = node_mark(name),
    };
    append(reader, entry);
    if (plan_target_is_group(dependent)) {
        struct plan_private *private = plan->private;
        MEM_GROW(private->group_needs,
                 private->group_need_count,
                 private->group_need_capacity);
        private->group_needs[private->group_need_count++] = entry;
    }
}

void plan_add_need(struct reader *reader,
                   uint32_t task,
                   uint32_t need,
                   enum plan_on on)
{
    struct plan_need entry = {
        .dependent = plan_target(task, false),
        .need = plan_target(need, false),
        .on = on,
        .mark = reader->plan->tasks[task].mark,
    };
    append(reader, entry);
}

/* Give a new part of an old group the needs of that group and its parents. */
static void inherit_needs(struct reader *reader, uint32_t group)
{
    const struct plan *plan = reader->plan;
    uint32_t parent = plan->groups[group].parent;
    for (uint32_t ix = 0; ix < reader->before.group_needs; ix++) {
        struct plan_need entry = plan->private->group_needs[ix];
        if (plan_is_within(plan, parent, plan_target_ix(entry.dependent))) {
            entry.dependent = plan_target(group, true);
            entry.mark = plan->groups[group].mark;
            append(reader, entry);
        }
    }
}

static void resolve_list(struct resolver *resolver,
                         uint32_t dependent,
                         const struct node *node)
{
    resolver->serial++;
    if (is_named(node) || (node_is_scalar(node) && !fields_is_empty(node))) {
        resolve_entry(resolver, dependent, node);
        return;
    }
    if (node->kind != NODE_LIST) {
        fields_expected(resolver->reader,
                        node,
                        "\"needs\"",
                        "an id or a list of ids of tasks and groups");
        return;
    }
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        resolve_entry(resolver, dependent, item);
    }
}

/* Read `needs` at the top of a fragment: more needs for tasks and groups. */
static void resolve_extra(struct resolver *resolver, const struct node *extra)
{
    struct reader *reader = resolver->reader;
    if (!fields_is_mapping(reader, extra, "\"needs\"")) {
        return;
    }
    NODE_EACH_KEY(extra)
    {
        uint32_t dependent = plan_lookup(&resolver->plan->private->names, key);
        if (dependent == STRMAP_NONE) {
            needs_report_unknown(reader, key, "task or group");
        } else {
            resolve_list(resolver, dependent, node_value(key));
        }
    }
}

void needs_read(struct resolver *resolver, const struct node *extra)
{
    const struct reader *reader = resolver->reader;
    const struct plan *plan = resolver->plan;
    for (uint32_t ix = reader->before.groups; ix < plan->group_count; ix++) {
        const struct node *node =
            reader->pending_groups[ix - reader->before.groups].needs;
        if (node != NULL) {
            resolve_list(resolver, plan_target(ix, true), node);
        }
    }
    for (uint32_t ix = reader->before.groups; ix < plan->group_count; ix++) {
        if (plan->groups[ix].parent < reader->before.groups) {
            inherit_needs(resolver->reader, ix);
        }
    }
    for (uint32_t ix = reader->before.tasks; ix < plan->task_count; ix++) {
        const struct node *node =
            reader->pending[ix - reader->before.tasks].needs;
        if (node != NULL) {
            resolve_list(resolver, plan_target(ix, false), node);
        }
    }
    if (extra != NULL) {
        resolve_extra(resolver, extra);
    }
}
