/* SPDX-License-Identifier: MIT */
/*
 * Limits and resources. The five default limits are created first; a plan that
 * names one of them changes only the given fields.
 *
 * Names in `where` and `per` are checked after all other parts: tasks can
 * introduce undeclared classes, providers and attributes. A limit that can
 * never match is an error, because it would have no effect.
 */
#include "plan/plan_internal.h"

#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_COUNT = 5,
    LIMIT_ISSUES = 1,
    LIMIT_MERGE = 3,
    LIMITS_MAX = 1000,
};

uint32_t plan_add_limit(struct plan *plan, struct plan_limit limit)
{
    struct plan_private *private = plan->private;
    MEM_GROW(plan->limits, plan->limit_count, private->limit_capacity);
    uint32_t ix = plan->limit_count++;
    plan->limits[ix] = limit;
    (void)strmap_add(&private->limit_names, limit.name, ix);
    return ix;
}

static const char *interned(struct plan *plan, const char *text)
{
    return plan_intern(plan, text, strlen(text));
}

struct plan_attribute *
plan_where(struct plan *plan, const char *name, const char *value)
{
    struct plan_attribute *where =
        arena_alloc(&plan->private->arena, 1, sizeof(where[0]));
    where->name = interned(plan, name);
    where->value = interned(plan, value);
    return where;
}

/*
 * Set the default of `issues`: as many open groups as sessions. For `fair`,
 * none: groups would wait until others are done instead of taking turns.
 */
static void set_issues(struct plan *plan, struct plan_limit *issues)
{
    bool fair = plan->policy == PLAN_POLICY_FAIR;
    issues->max = fair ? PLAN_UNLIMITED : 0;
    issues->percent = fair ? 0 : 100;
}

void plan_set_policy(struct plan *plan, enum plan_policy policy)
{
    struct plan_limit *issues = &plan->limits[LIMIT_ISSUES];
    plan->policy = policy;
    if (issues->mark.line == 0) {
        set_issues(plan, issues);
    }
}

static void add_defaults(struct plan *plan, uint32_t processors)
{
    int64_t sessions = plan->repo_count > 0 ? plan->repo_count : processors;
    const struct plan_limit limits[DEFAULT_COUNT] = {
        {.name = interned(plan, "sessions"),
         .max = sessions > 0 ? sessions : 1},
        {.name = interned(plan, "issues"), .hold_group = true},
        {.name = interned(plan, "active"),
         .max = 1,
         .per = interned(plan, "repo"),
         .hold_group = true},
        {.name = interned(plan, "merge"),
         .max = 1,
         .per = interned(plan, "repo"),
         .where = plan_where(plan, "class", "merge"),
         .where_count = 1},
        {.name = interned(plan, "review"),
         .percent = 34,
         .background = true,
         .where = plan_where(plan, "class", "review"),
         .where_count = 1},
    };
    for (int ix = 0; ix < DEFAULT_COUNT; ix++) {
        (void)plan_add_limit(plan, limits[ix]);
    }
    set_issues(plan, &plan->limits[LIMIT_ISSUES]);
}

struct raw_limit {
    const struct node *max;
    const struct node *where;
    const struct node *per;
    const struct node *count;
};

static const struct field limit_fields[] = {
    {FIELD(struct raw_limit, max, "max", fields_node)},
    {FIELD(struct raw_limit, where, "where", fields_node)},
    {FIELD(struct raw_limit, per, "per", fields_node)},
    {FIELD(struct raw_limit, count, "count", fields_node)},
};

static const struct schema limit_schema = SCHEMA("a limit", limit_fields);

static void read_max(struct reader *reader,
                     const struct node *node,
                     const char *label,
                     struct plan_limit *limit)
{
    bool sessions = strcmp(limit->name, "sessions") == 0;
    int64_t number = 0;
    uint32_t percent = 0;
    if (fields_is_word(node, "none")) {
        number = PLAN_UNLIMITED;
    } else if (fields_parse_percent(node, &percent) && sessions) {
        REPORT(reader,
               node,
               "\"sessions\" must be a number or none: percentages of "
               "other limits refer to it");
        return;
    } else if (percent == 0 && (!fields_parse_number(node, &number) ||
                                number > PLAN_UNITS_MAX)) {
        fields_expected(reader,
                        node,
                        label,
                        sessions ? "a number from 0 to 1000000, or none"
                                 : "a number from 0 to 1000000, a percentage "
                                   "from 1% to 100%, or none");
        return;
    }
    limit->max = number;
    limit->percent = percent;
}

static void read_where(struct reader *reader,
                       const struct node *node,
                       struct plan_limit *limit)
{
    struct plan *plan = reader->plan;
    if (!fields_is_small(reader,
                         node,
                         "\"where\"",
                         PLAN_ATTRIBUTES_MAX,
                         "attributes")) {
        return;
    }
    ARENA_ARRAY(&plan->private->arena, limit->where, node->count);
    limit->where_count = 0;
    NODE_EACH_KEY(node)
    {
        const struct node *value = node_value(key);
        if (fields_check_line(reader, value, QUOTED(key), PLAN_ID_BYTES_MAX) ==
            NULL) {
            continue;
        }
        limit->where[limit->where_count++] = (struct plan_attribute){
            .name = plan_intern(plan, key->text, key->count),
            .value = plan_intern(plan, value->text, value->count),
        };
    }
}

static void read_count(struct reader *reader,
                       const struct node *node,
                       struct plan_limit *limit)
{
    const struct alias *alias =
        fields_is_bare(node) ? alias_find("count", node->text, node->count)
                             : NULL;
    const char *word = alias != NULL ? alias->now : node->text;
    if (alias != NULL) {
        fields_note_old(reader, node, alias);
    }
    static const char *const words[] = {"sessions", "groups", "background"};
    uint32_t ix = 0;
    while (ix < ARRAY_COUNT(words) &&
           (!fields_is_bare(node) || strcmp(word, words[ix]) != 0)) {
        ix++;
    }
    if (ix == ARRAY_COUNT(words)) {
        fields_expected(reader,
                        node,
                        "\"count\"",
                        "sessions, groups or background");
        return;
    }
    limit->hold_group = ix == 1;
    limit->background = ix == 2;
}

/* Check that a limit that counts groups matches only group attributes. */
static void check_hold(struct reader *reader,
                       const struct node *node,
                       const struct plan_limit *limit)
{
    static const char *const task_only[] = {"class", "provider", "stage"};
    for (size_t ix = 0; ix < ARRAY_COUNT(task_only); ix++) {
        const char *name = task_only[ix];
        bool per = limit->per != NULL && strcmp(limit->per, name) == 0;
        if (limit->hold_group &&
            (per ||
             plan_attribute_value(limit->where, limit->where_count, name) !=
                 NULL)) {
            REPORT(reader,
                   node,
                   "limit %s counts groups, which have no \"%s\": match repo, "
                   "owner, group or a user-defined attribute",
                   QUOTED_TEXT(limit->name),
                   name);
        }
    }
}

static void read_fields(struct reader *reader,
                        const struct node *key,
                        struct plan_limit *limit,
                        bool is_new)
{
    const struct node *node = node_value(key);
    struct raw_limit raw = {0};
    bool sessions = strcmp(limit->name, "sessions") == 0;
    (void)fields_read(reader, node, &limit_schema, &raw);
    if (raw.max != NULL) {
        read_max(reader, raw.max, "\"max\"", limit);
    } else if (is_new && node->kind == NODE_MAPPING &&
               !fields_has_bad_key(node)) {
        REPORT(reader, node, "missing key \"max\": a limit needs it");
    }
    if (sessions && (raw.where || raw.per || raw.count)) {
        REPORT(reader,
               node,
               "\"sessions\" has only \"max\": it counts all sessions");
        return;
    }
    if (raw.where != NULL) {
        read_where(reader, raw.where, limit);
    }
    if (raw.per != NULL &&
        fields_check_id(reader, raw.per, "per", true) != NULL) {
        limit->per = plan_intern(reader->plan, raw.per->text, raw.per->count);
    }
    if (raw.count != NULL) {
        read_count(reader, raw.count, limit);
    }
    check_hold(reader, key, limit);
}

static void read_limit(struct reader *reader, const struct node *key)
{
    struct plan *plan = reader->plan;
    (void)fields_check_id(reader, key, "limit", true);
    uint32_t ix = plan_lookup(&plan->private->limit_names, key);
    bool is_new = ix == PLAN_NONE;
    struct plan_limit limit = {
        .name = plan_intern(plan, key->text, key->count),
        .max = PLAN_UNLIMITED,
    };
    if (!is_new) {
        limit = plan->limits[ix];
    }
    limit.mark = node_mark(key);
    const struct node *value = node_value(key);
    if (node_is_scalar(value)) {
        read_max(reader, value, QUOTED(key), &limit);
    } else {
        read_fields(reader, key, &limit, is_new);
    }
    if (is_new) {
        (void)plan_add_limit(plan, limit);
    } else {
        plan->limits[ix] = limit;
    }
}

/* Check that one more limit is allowed; otherwise report it. */
static bool has_room(struct reader *reader, const struct node *key)
{
    if (reader->plan->limit_count < LIMITS_MAX) {
        return true;
    }
    REPORT(reader, key, "more than %d limits and resources", LIMITS_MAX);
    return false;
}

void plan_read_limits(struct reader *reader,
                      const struct node *node,
                      uint32_t processors)
{
    add_defaults(reader->plan, processors);
    if (node == NULL || !fields_is_mapping(reader, node, "\"limits\"")) {
        return;
    }
    NODE_EACH_KEY(node)
    {
        if (!has_room(reader, key)) {
            return;
        }
        read_limit(reader, key);
    }
}

/* Return the number of units that `key` gives; 0 after an error. */
static int64_t read_units(struct reader *reader, const struct node *key)
{
    const struct node *value = node_value(key);
    int64_t units = 0;
    if (fields_parse_number(value, &units) && units >= 1 &&
        units <= PLAN_UNITS_MAX) {
        return units;
    }
    fields_expected(reader, value, QUOTED(key), "a number from 1 to 1000000");
    return 0;
}

void plan_read_resources(struct reader *reader, const struct node *node)
{
    struct plan *plan = reader->plan;
    if (!fields_is_mapping(reader, node, "\"resources\"")) {
        return;
    }
    NODE_EACH_KEY(node)
    {
        if (!has_room(reader, key)) {
            return;
        }
        (void)fields_check_id(reader, key, "resource", true);
        uint32_t ix = plan_lookup(&plan->private->limit_names, key);
        if (ix != PLAN_NONE) {
            REPORT(
                reader,
                key,
                plan->limits[ix].kind == PLAN_LIMIT_RESOURCE
                    ? "duplicate resource %s"
                    : "%s is already a limit: give the resource another name",
                QUOTED(key));
            continue;
        }
        int64_t max = read_units(reader, key);
        (void)plan_add_limit(
            plan,
            (struct plan_limit){
                .name = plan_intern(plan, key->text, key->count),
                .max = max > 0 ? max : PLAN_UNLIMITED,
                .kind = PLAN_LIMIT_RESOURCE,
                .mark = node_mark(key),
            });
    }
}

/* Sessions of a merge queue, without `window`. */
static int64_t default_window(const struct plan *plan)
{
    enum { WINDOW_DEFAULT = 8 };
    const struct plan_private *private = plan->private;
    const struct plan_limit *limit = &plan->limits[LIMIT_MERGE];
    uint32_t class_ix =
        strmap_find(&private->class_names, "merge", strlen("merge"));
    if (limit->mark.line > 0 && limit->percent == 0 &&
        limit->max != PLAN_UNLIMITED) {
        return limit->max; /* the plan's own limit */
    }
    if (private->merge_window > 0) {
        return private->merge_window;
    }
    return plan->classes[class_ix].batch > 1 ? 1 : WINDOW_DEFAULT;
}

void plan_add_windows(struct plan *plan)
{
    int64_t window = default_window(plan);
    for (uint32_t ix = 0; ix < plan->repo_count && window > 1; ix++) {
        const struct plan_repo *repo = &plan->repos[ix];
        if (repo->base == NULL || repo->gate == NULL) {
            continue;
        }
        struct strbuf name = {0};
        strbuf_addf(&name, "merge queue of %s", repo->name);
        struct plan_attribute *where =
            arena_alloc(&plan->private->arena, 2, sizeof(where[0]));
        where[0] = *plan_where(plan, "class", "merge");
        where[1] = *plan_where(plan, "repo", repo->name);
        (void)plan_add_limit(
            plan,
            (struct plan_limit){
                .name = plan_intern(plan, strbuf_text(&name), name.len),
                .max = window,
                .kind = PLAN_LIMIT_WINDOW,
                .where = where,
                .where_count = 2,
            });
        strbuf_release(&name);
        if (plan->limits[LIMIT_MERGE].mark.line == 0) {
            plan->limits[LIMIT_MERGE].max = window;
        }
    }
}

uint32_t plan_window_of(const struct plan *plan, const struct plan_task *task)
{
    for (uint32_t ix = 0; task->merge && ix < plan->limit_count; ix++) {
        const struct plan_limit *limit = &plan->limits[ix];
        if (limit->kind == PLAN_LIMIT_WINDOW && task->repo != PLAN_NONE &&
            strcmp(limit->where[1].value, plan->repos[task->repo].name) == 0) {
            return ix;
        }
    }
    return PLAN_NONE;
}

/* where and per, checked when all tasks are known */

/* Report a name that no task has, and why it is an error here. */
static void report_unused(struct reader *reader,
                          struct suggest *guess,
                          const char *what,
                          const struct node *name)
{
    REPORT(reader,
           name,
           "unknown %s %s%s%s",
           what,
           QUOTED(name),
           suggest_hint(guess),
           guess->best != NULL
               ? ""
               : ": no group or task has it, so the limit would have "
                 "no effect");
}

static void check_attribute(struct reader *reader, const struct node *node)
{
    static const struct {
        const char *name;
    } own[] =
        {{"class"}, {"repo"}, {"group"}, {"stage"}, {"provider"}, {"owner"}};
    if (plan_is_own_attribute(node->text) ||
        plan_lookup(&reader->plan->private->free_names, node) != PLAN_NONE) {
        return;
    }
    struct suggest guess = plan_guess(reader, node);
    SUGGEST_ALL(&guess, own, ARRAY_COUNT(own), name);
    report_unused(reader, &guess, "attribute", node);
}

static void check_value(struct reader *reader,
                        const struct node *key,
                        const struct node *value)
{
    const struct plan *plan = reader->plan;
    const struct plan_private *private = plan->private;
    struct suggest guess = plan_guess(reader, value);
    if (strcmp(key->text, "repo") == 0) {
        (void)plan_resolve_repo(reader, value);
    } else if (strcmp(key->text, "class") == 0 &&
               plan_lookup(&private->class_names, value) == PLAN_NONE) {
        SUGGEST_ALL(&guess, plan->classes, plan->class_count, name);
        report_unused(reader, &guess, "class", value);
    } else if (strcmp(key->text, "provider") == 0 &&
               plan_lookup(&private->provider_names, value) == PLAN_NONE) {
        SUGGEST_ALL(&guess, plan->providers, plan->provider_count, name);
        report_unused(reader, &guess, "provider", value);
    }
}

static void check_where(struct reader *reader, const struct node *where)
{
    NODE_EACH_KEY(where)
    {
        const struct node *value = node_value(key);
        check_attribute(reader, key);
        if (node_is_scalar(value) && !fields_is_empty(value)) {
            check_value(reader, key, value);
        }
    }
}

void plan_check_limits(struct reader *reader, const struct node *node)
{
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        const struct node *limit = node_value(key);
        if (limit->kind != NODE_MAPPING) {
            continue;
        }
        for (const struct node *part = node_first(limit); part != NULL;
             part = node_next_key(part)) {
            const struct node *value = node_value(part);
            if (fields_is_word(part, "where") && value->kind == NODE_MAPPING) {
                check_where(reader, value);
            } else if (fields_is_word(part, "per") && node_is_scalar(value) &&
                       value->count > 0) {
                check_attribute(reader, value);
            }
        }
    }
}

/* uses */

static int by_limit(const void *left, const void *right)
{
    const struct plan_use *a = left;
    const struct plan_use *b = right;
    return a->limit < b->limit ? -1 : a->limit > b->limit ? 1 : 0;
}

void plan_read_uses(struct reader *reader,
                    const struct node *node,
                    struct plan_use **uses_out,
                    uint32_t *count_out)
{
    struct plan *plan = reader->plan;
    if (!fields_is_small(reader, node, "\"uses\"", LIMITS_MAX, "limits")) {
        return;
    }
    struct plan_use *uses =
        arena_alloc(&plan->private->arena, node->count, sizeof(uses[0]));
    uint32_t count = 0;
    NODE_EACH_KEY(node)
    {
        uint32_t limit = plan_lookup(&plan->private->limit_names, key);
        if (limit == PLAN_NONE) {
            struct suggest guess = plan_guess(reader, key);
            SUGGEST_ALL(&guess, plan->limits, plan->limit_count, name);
            plan_report_unknown(reader, key, "limit or resource", &guess);
            continue;
        }
        int64_t units = read_units(reader, key);
        if (units > 0) {
            uses[count++] = (struct plan_use){limit, (uint32_t)units};
        }
    }
    qsort(uses, count, sizeof(uses[0]), by_limit);
    *uses_out = uses;
    *count_out = count;
}

/* Return the attribute by which the limit excludes this task, or NULL. */
static const char *mismatch(const struct plan_limit *limit,
                            const struct plan_task *task)
{
    for (uint32_t ix = 0; ix < limit->where_count; ix++) {
        const char *value = plan_attribute_value(task->attributes,
                                                 task->attribute_count,
                                                 limit->where[ix].name);
        if (value == NULL || strcmp(value, limit->where[ix].value) != 0) {
            return limit->where[ix].name;
        }
    }
    if (limit->per != NULL && plan_attribute_value(task->attributes,
                                                   task->attribute_count,
                                                   limit->per) == NULL) {
        return limit->per;
    }
    return NULL;
}

/* Return the most units that the limit can have in this plan. */
static int64_t most_units(const struct plan *plan,
                          const struct plan_limit *limit)
{
    int64_t sessions = plan->limits[0].max;
    if (limit->percent == 0) {
        return limit->max;
    }
    if (sessions == PLAN_UNLIMITED || limit->background) {
        return sessions; /* such a share can grow to all sessions */
    }
    int64_t share = sessions * limit->percent / 100;
    return share > 1 ? share : 1;
}

bool plan_check_uses(struct reader *reader,
                     const struct plan_task *task,
                     const struct node *uses,
                     const char *subject)
{
    bool good = true;
    for (uint32_t ix = 0; ix < task->use_count; ix++) {
        const struct plan_limit *limit =
            &reader->plan->limits[task->uses[ix].limit];
        const char *other = mismatch(limit, task);
        struct plan_mark mark = task->mark;
        if (uses != NULL) {
            const struct node *key = node_find_key(uses, limit->name);
            mark = node_mark(key != NULL ? key : uses);
        }
        if (limit->hold_group) {
            plan_errors_add(reader->errors,
                            mark,
                            "%s cannot use %s: that limit counts groups",
                            subject,
                            QUOTED_TEXT(limit->name));
        } else if (other != NULL) {
            plan_errors_add(
                reader->errors,
                mark,
                "%s cannot use %s: that limit does not apply to it, "
                "because of its %s",
                subject,
                QUOTED_TEXT(limit->name),
                QUOTED_TEXT(other));
        } else if (most_units(reader->plan, limit) > 0 &&
                   task->uses[ix].units > most_units(reader->plan, limit)) {
            plan_errors_add(
                reader->errors,
                mark,
                "%s uses %u of %s, which has only %lld, and could never start",
                subject,
                task->uses[ix].units,
                QUOTED_TEXT(limit->name),
                (long long)most_units(reader->plan, limit));
        } else {
            continue;
        }
        good = false;
    }
    return good;
}
