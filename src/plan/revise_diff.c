/* SPDX-License-Identifier: MIT */
/*
 * Differences between two versions of a plan. Tasks are compared in their final
 * form, with all names resolved and defaults filled in; the other parts as
 * trees, ignoring the order of keys.
 */
#include "plan/revise.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "plan/plan_internal.h"

#include <string.h>

/* Two versions of a task and their plans. */
struct pair {
    const struct plan *old_plan;
    const struct plan *new_plan;
    const struct plan_task *old;
    const struct plan_task *new;
};

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_words(const char **a, const char **b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    while (*a != NULL && *b != NULL && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return *a == *b;
}

static const char *agent_of(const struct plan *plan, uint32_t agent)
{
    return agent == PLAN_NONE ? NULL : plan->agents[agent].name;
}

static const char *task_of(const struct plan *plan, uint32_t task)
{
    return task == PLAN_NONE ? NULL : plan->tasks[task].id;
}

static bool same_command(const struct pair *pair)
{
    return same_text(pair->old->run.shell, pair->new->run.shell) &&
           same_words(pair->old->run.argv, pair->new->run.argv) &&
           same_text(agent_of(pair->old_plan, pair->old->agent),
                     agent_of(pair->new_plan, pair->new->agent)) &&
           pair->old->merge == pair->new->merge &&
           pair->old->base_gate == pair->new->base_gate &&
           pair->old->settings->prepare_once ==
               pair->new->settings->prepare_once &&same_text(
                   pair->old->settings->prepare,
                   pair->new->settings->prepare);
}

#define SETTING(member, name)                                                  \
    {                                                                          \
        name, offsetof(struct plan_settings, member),                          \
            sizeof(((struct plan_settings *)0)->member)                        \
    }

/* Members that share a name are adjacent. */
static const struct {
    const char *name;
    size_t offset;
    size_t bytes;
} settings[] = {
    SETTING(estimate_ns, "estimate"),
    SETTING(priority, "priority"),
    SETTING(timeout_ns, "timeout"),
    SETTING(idle_timeout_ns, "idle_timeout"),
    SETTING(grace_ns, "grace"),
    SETTING(checkpoint_after_ns, "checkpoint"),
    SETTING(checkpoint_max, "checkpoint"),
    SETTING(retry_max, "retry"),
    SETTING(retry_backoff_ns, "retry"),
    SETTING(retry_backoff_ns_max, "retry"),
    SETTING(retry_on, "retry"),
    SETTING(on_failure, "on_failure"),
    SETTING(optional, "optional"),
    SETTING(allow_empty, "allow_empty"),
    SETTING(add_max, "add"),
    SETTING(add_depth, "add"),
    SETTING(cost, "cost"),
    SETTING(budget, "budget"),
};

static bool same_worker(const struct pair *pair)
{
    const char *old = pair->old->settings->worker;
    const char *new = pair->new->settings->worker;
    return old == new || (old != NULL && new != NULL &&strcmp(old, new) == 0);
}

static bool same_setting(const struct pair *pair, size_t ix)
{
    const char *old = (const char *)pair->old->settings;
    const char *new = (const char *)pair->new->settings;
    return memcmp(old + settings[ix].offset,
                  new + settings[ix].offset,
                  settings[ix].bytes) == 0;
}

static bool same_sandbox(const struct pair *pair)
{
    return plan_same_sandbox(pair->old->settings->sandbox,
                             pair->new->settings->sandbox);
}

static bool same_settings(const struct pair *pair)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(settings); ix++) {
        if (!same_setting(pair, ix)) {
            return false;
        }
    }
    return same_sandbox(pair) && same_worker(pair);
}

static bool same_needs(const struct pair *pair)
{
    uint32_t count = pair->old->need_count;
    return count == pair->new->need_count &&
           (count == 0 || (memcmp(pair->old->needs,
                                  pair->new->needs,
                                  count * sizeof(pair->old->needs[0])) == 0 &&
                           memcmp(pair->old->ons, pair->new->ons, count) == 0));
}

/* Return a group, or one without anything if it is PLAN_NONE. */
static const struct plan_group *group_of(const struct plan *plan,
                                         uint32_t group)
{
    static const struct plan_group none = {.parent = PLAN_NONE};
    return group == PLAN_NONE ? &none : &plan->groups[group];
}

static bool same_time(struct plan_time a, struct plan_time b)
{
    return a.kind == b.kind && a.value == b.value;
}

/* Whether both may start alike: approval, and times of the task, its group and
 * the group's parents. */
static bool same_start(const struct pair *pair)
{
    bool same = pair->old->approve ==
                pair->new->approve &&same_time(pair->old->not_before,
                                               pair->new->not_before);
    uint32_t old = pair->old->group;
    uint32_t new = pair->new->group;
    while (same && (old != PLAN_NONE || new != PLAN_NONE)) {
        const struct plan_group *a = group_of(pair->old_plan, old);
        const struct plan_group *b = group_of(pair->new_plan, new);
        same = same_time(a->not_before, b->not_before);
        old = a->parent;
        new = b->parent;
    }
    return same;
}

static bool same_labels(const struct plan_labels *a,
                        const struct plan_labels *b)
{
    uint32_t ix = 0;
    while (ix < a->count && ix < b->count &&
           strcmp(a->items[ix], b->items[ix]) == 0) {
        ix++;
    }
    return ix == a->count && ix == b->count;
}

/* Whether people see both alike. */
static bool same_issue(const struct pair *pair)
{
    const struct plan_group *old = group_of(pair->old_plan, pair->old->group);
    const struct plan_group *new = group_of(pair->new_plan, pair->new->group);
    return same_labels(&pair->old->labels, &pair->new->labels) &&
           same_text(pair->old->words->url, pair->new->words->url) &&
           same_text(pair->old->words->description,
                     pair->new->words->description) &&
           same_text(old->url, new->url) &&
           same_text(old->description, new->description) &&
           same_text(group_of(pair->old_plan, old->parent)->id,
                     group_of(pair->new_plan, new->parent)->id);
}

static bool same_texts(const struct pair *pair)
{
    const struct plan_group *old = group_of(pair->old_plan, pair->old->group);
    const struct plan_group *new = group_of(pair->new_plan, pair->new->group);
    return same_text(pair->old->words->title, pair->new->words->title) &&
           same_text(pair->old->words->body, pair->new->words->body) &&
           same_text(pair->old->words->body_file,
                     pair->new->words->body_file) &&
           same_text(old->title, new->title) &&
           same_text(old->body, new->body) &&
           same_text(old->body_file, new->body_file);
}

static bool same_uses(const struct pair *pair)
{
    if (pair->old->use_count != pair->new->use_count) {
        return false;
    }
    /* Uses are sorted by limit, and the limits may have another order. */
    uint32_t found = 0;
    for (uint32_t a = 0; a < pair->old->use_count; a++) {
        const struct plan_use *old = &pair->old->uses[a];
        for (uint32_t b = 0; b < pair->new->use_count; b++) {
            const struct plan_use *new = &pair->new->uses[b];
            found += old->units ==
                             new->units &&strcmp(
                                 pair->old_plan->limits[old->limit].name,
                                 pair->new_plan->limits[new->limit].name) == 0
                         ? 1
                         : 0;
        }
    }
    return found == pair->old->use_count;
}

/* Class, group, repo, stage, provider and owner are attributes. */
static bool same_place(const struct pair *pair)
{
    if (pair->old->attribute_count != pair->new->attribute_count ||
        pair->old->rework_max != pair->new->rework_max ||
        pair->old->last != pair->new->last ||
        !same_text(task_of(pair->old_plan, pair->old->rework_to),
                   task_of(pair->new_plan, pair->new->rework_to))) {
        return false;
    }
    for (uint32_t ix = 0; ix < pair->old->attribute_count; ix++) {
        const struct plan_attribute *old = &pair->old->attributes[ix];
        const struct plan_attribute *new = &pair->new->attributes[ix];
        if (strcmp(old->name, new->name) != 0 ||
            strcmp(old->value, new->value) != 0) {
            return false;
        }
    }
    return same_uses(pair);
}

static struct pair
pair_of(const struct plan *old, const struct plan *new, uint32_t task)
{
    return (struct pair){
        .old_plan = old,
        .new_plan = new,
        .old = &old->tasks[task],
        .new = &new->tasks[task],
    };
}

uint32_t
revise_compare(const struct plan *old, const struct plan *new, uint32_t task)
{
    struct pair pair = pair_of(old, new, task);
    bool gone = revise_is_removed(old, task);
    if (gone != revise_is_removed(new, task)) {
        return UINT32_MAX;
    }
    if (gone) {
        return 0;
    }
    uint32_t found = 0;
    found |= same_command(&pair) ? 0 : REVISE_COMMAND;
    found |= same_settings(&pair) ? 0 : REVISE_SETTINGS;
    found |= same_needs(&pair) ? 0 : REVISE_NEEDS;
    found |= same_texts(&pair) ? 0 : REVISE_TEXT;
    found |=
        same_text(pair.old->settings->prompt, pair.new->settings->prompt) &&
                same_text(pair.old->settings->prompt_file,
                          pair.new->settings->prompt_file)
            ? 0
            : REVISE_PROMPT;
    found |= same_place(&pair) ? 0 : REVISE_PLACE;
    found |= same_start(&pair) ? 0 : REVISE_START;
    found |= same_issue(&pair) ? 0 : REVISE_ISSUE;
    return found;
}

/* --- in words ------------------------------------------------------------- */

static void add_word(struct strbuf *out, uint32_t *count, const char *word)
{
    strbuf_addf(out, "%s%s", (*count)++ > 0 ? ", " : "", word);
}

/* Append a string, shortened to one line. */
static void add_short(struct strbuf *out, const char *text)
{
    struct quoted quoted;
    strbuf_adds(out,
                text != NULL ? plan_quoted(&quoted, text, strlen(text))
                             : "none");
}

static void add_duration(struct strbuf *out, int64_t duration_ns)
{
    if (duration_ns == PLAN_UNSET) {
        strbuf_adds(out, "none");
    } else {
        duration_add(out, duration_ns);
    }
}

static void add_durations(struct strbuf *out, int64_t old_ns, int64_t new_ns)
{
    strbuf_adds(out, " ");
    add_duration(out, old_ns);
    strbuf_adds(out, " -> ");
    add_duration(out, new_ns);
}

static void
add_settings(struct strbuf *out, const struct pair *pair, uint32_t *count)
{
    const char *last = "";
    for (size_t ix = 0; ix < ARRAY_COUNT(settings); ix++) {
        if (same_setting(pair, ix) || strcmp(settings[ix].name, last) == 0) {
            continue;
        }
        last = settings[ix].name;
        add_word(out, count, last);
        if (strcmp(last, "estimate") == 0) {
            add_durations(out,
                          pair->old->settings->estimate_ns,
                          pair->new->settings->estimate_ns);
        } else if (strcmp(last, "timeout") == 0) {
            add_durations(out,
                          pair->old->settings->timeout_ns,
                          pair->new->settings->timeout_ns);
        } else if (strcmp(last, "priority") == 0) {
            strbuf_addf(out,
                        " %u -> %u",
                        pair->old->settings->priority,
                        pair->new->settings->priority);
        }
    }
    if (!same_sandbox(pair)) {
        add_word(out, count, "sandbox");
    }
    if (!same_worker(pair)) {
        add_word(out, count, "where");
    }
}

static void
add_change(struct strbuf *out, const struct pair *pair, uint32_t found)
{
    uint32_t count = 0;
    strbuf_addf(out, "changed: task %s: ", pair->new->id);
    if ((found & REVISE_COMMAND) != 0) {
        add_word(out, &count, "command");
        if (!same_text(pair->old->run.shell, pair->new->run.shell)) {
            strbuf_adds(out, " ");
            add_short(out, pair->old->run.shell);
            strbuf_adds(out, " -> ");
            add_short(out, pair->new->run.shell);
        }
    }
    if ((found & REVISE_SETTINGS) != 0) {
        add_settings(out, pair, &count);
    }
    static const struct {
        uint32_t bit;
        const char *word;
    } words[] = {
        {REVISE_NEEDS, "needs"},
        {REVISE_TEXT, "title or body"},
        {REVISE_PROMPT, "prompt"},
        {REVISE_PLACE,
         "class, repo, provider, uses, rework, attributes or finally"},
        {REVISE_START, "approve or not_before"},
        {REVISE_ISSUE, "labels, url, description or parent"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(words); ix++) {
        if ((found & words[ix].bit) != 0) {
            add_word(out, &count, words[ix].word);
        }
    }
    strbuf_adds(out, "\n");
}

uint32_t revise_add_tasks(struct strbuf *out,
                          const struct plan *old,
                          const struct plan *new)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < new->task_count; ix++) {
        bool was = ix < old->task_count && !revise_is_removed(old, ix);
        bool is = !revise_is_removed(new, ix);
        if (was && is) {
            uint32_t found = revise_compare(old, new, ix);
            if (found != 0) {
                struct pair pair = pair_of(old, new, ix);
                add_change(out, &pair, found);
                count++;
            }
        } else if (was || is) {
            strbuf_addf(out,
                        "%s: task %s\n",
                        is ? "added" : "removed",
                        new->tasks[ix].id);
            count++;
        }
    }
    return count;
}

/* --- other parts, as trees ------------------------------------------------ */

/* Return the value of a key, or NULL. */
static const struct node *find_key(const struct node *map, const char *key)
{
    const struct node *at = map != NULL ? node_find_key(map, key) : NULL;
    return at != NULL ? node_value(at) : NULL;
}

struct node_pair {
    const struct node *a;
    const struct node *b;
};

/* Stack of node pairs to compare. */
struct pending {
    struct node_pair *pairs;
    uint32_t count;
    uint32_t capacity;
};

static void
push(struct pending *pending, const struct node *a, const struct node *b)
{
    MEM_GROW(pending->pairs, pending->count, pending->capacity);
    pending->pairs[pending->count++] = (struct node_pair){a, b};
}

/* Compare two nodes, and push their children. */
static bool
same_node(struct pending *pending, const struct node *a, const struct node *b)
{
    if (node_is_scalar(a) && node_is_scalar(b)) {
        return strcmp(a->text, b->text) == 0;
    }
    if (a->kind != b->kind || a->count != b->count) {
        return false;
    }
    const struct node *y = node_first(b);
    const struct node *x = node_first(a);
    while (x != NULL && a->kind == NODE_LIST) {
        INVARIANT(y != NULL); /* their counts are equal */
        push(pending, x, y);
        x = node_next(x);
        y = node_next(y);
    }
    for (; x != NULL; x = node_next_key(x)) {
        const struct node *other =
            node_is_scalar(x) ? find_key(b, x->text) : NULL;
        if (other == NULL) {
            return false;
        }
        push(pending, node_value(x), other);
    }
    return true;
}

static bool same_tree(const struct node *a, const struct node *b)
{
    struct pending pending = {0};
    bool same = true;
    push(&pending, a, b);
    while (same && pending.count > 0) {
        struct node_pair pair = pending.pairs[--pending.count];
        same = same_node(&pending, pair.a, pair.b);
    }
    mem_free(pending.pairs);
    return same;
}

/* Append the difference of one key of a part; NULL: a plan lacks the key. */
static uint32_t add_part(struct strbuf *out,
                         const char *part,
                         const char *key,
                         const struct node *old,
                         const struct node *new)
{
    if (old != NULL && new != NULL && same_tree(old, new)) {
        return 0;
    }
    strbuf_addf(out,
                "%s: %s%s%s",
                old == NULL ? "added" : (new == NULL ? "removed" : "changed"),
                part,
                key != NULL ? "." : "",
                key != NULL ? key : "");
    if (new != NULL && node_is_scalar(new)) {
        bool both = old != NULL && node_is_scalar(old);
        strbuf_adds(out, ": ");
        if (both) {
            add_short(out, old->text);
            strbuf_adds(out, " -> ");
        }
        add_short(out, new->text);
    }
    strbuf_adds(out, "\n");
    return 1;
}

static uint32_t compare_part(struct strbuf *out,
                             const char *part,
                             const struct node *old,
                             const struct node *new)
{
    bool maps = (old == NULL || old->kind == NODE_MAPPING) &&
                (new == NULL || new->kind == NODE_MAPPING);
    uint32_t count = 0;
    if (old == NULL && new == NULL) {
        return 0;
    }
    if (!maps) {
        return add_part(out, part, NULL, old, new);
    }
    for (const struct node *key = old != NULL ? node_first(old) : NULL;
         key != NULL;
         key = node_next_key(key)) {
        count += add_part(out,
                          part,
                          key->text,
                          node_value(key),
                          find_key(new, key->text));
    }
    for (const struct node *key = new != NULL ? node_first(new) : NULL;
         key != NULL;
         key = node_next_key(key)) {
        if (find_key(old, key->text) == NULL) {
            count += add_part(out, part, key->text, NULL, node_value(key));
        }
    }
    return count;
}

uint32_t revise_add_parts(struct strbuf *out, const char *old, const char *new)
{
    /* Changes of other parts are reported as differences of tasks. */
    static const char *const parts[] = {
        "repos",
        "limits",
        "resources",
        "classes",
        "providers",
        "agents",
        "policy",
        "goal",
        "lookahead",
        "sync",
        "usage",
        "budget",
        "hooks",
        "not_before",
        "deadline",
    };
    struct node_tree trees[2] = {{0}, {0}};
    struct plan_errors errors = {0};
    uint32_t count = 0;
    bool good = node_tree_read(&trees[0], old, strlen(old), &errors) &&
                node_tree_read(&trees[1], new, strlen(new), &errors) &&
                trees[0].count > 0 && trees[1].count > 0;
    for (size_t ix = 0; good && ix < ARRAY_COUNT(parts); ix++) {
        count += compare_part(out,
                              parts[ix],
                              find_key(trees[0].nodes, parts[ix]),
                              find_key(trees[1].nodes, parts[ix]));
    }
    plan_errors_release(&errors);
    node_tree_release(&trees[0]);
    node_tree_release(&trees[1]);
    return count;
}
