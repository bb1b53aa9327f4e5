/* SPDX-License-Identifier: MIT */
/*
 * Reader of settings.yaml. The strict YAML of plans, with a position in every
 * error; the readers of plans need no plan for what is used here.
 */
#include "plan/site.h"

#include "base/mem.h"
#include "plan/fields.h"
#include "plan/plan_internal.h"

#include <string.h>

struct raw_site {
    const struct node *limits;
};

static const struct field site_fields[] = {
    {FIELD(struct raw_site, limits, "limits", fields_node)},
};

static const struct schema site_schema = SCHEMA("the settings", site_fields);

void site_release(struct site *site)
{
    for (uint32_t ix = 0; ix < site->limit_count; ix++) {
        mem_free(site->limits[ix].name);
    }
    mem_free(site->limits);
    *site = (struct site){0};
}

static void add_limit(struct site *site, const char *name, int64_t max)
{
    MEM_EXTEND(site->limits, site->limit_count);
    site->limits[site->limit_count++] = (struct site_limit){
        .name = mem_strdup(name),
        .max = max,
    };
}

static void
read_limits(struct reader *reader, const struct node *node, struct site *site)
{
    if (node == NULL || fields_is_empty(node) ||
        !fields_is_small(reader,
                         node,
                         "\"limits\"",
                         SITE_LIMITS_MAX,
                         "limits")) {
        return;
    }
    NODE_EACH_KEY(node)
    {
        const struct node *value = node_value(key);
        const char *name = fields_check_id(reader, key, "limit", true);
        int64_t max = PLAN_UNLIMITED;
        if (name == NULL || value->kind == NODE_BAD) {
            continue;
        }
        if (!fields_is_word(value, "none") &&
            (!fields_parse_number(value, &max) || max > PLAN_UNITS_MAX)) {
            struct quoted label;
            fields_expected(reader,
                            value,
                            plan_quoted(&label, name, strlen(name)),
                            "a number from 0 to 1000000, or none");
            continue;
        }
        add_limit(site, name, max);
    }
}

bool site_read(struct site *out,
               const char *text,
               size_t len,
               struct plan_errors *errors)
{
    *out = (struct site){0};
    struct node_tree tree = {0};
    struct plan nothing = {0}; /* has no deprecated names */
    struct reader reader = {
        .plan = &nothing,
        .errors = errors,
        .suggest_budget = SUGGEST_BUDGET,
    };
    struct raw_site raw = {0};
    bool good = node_tree_read(&tree, text, len, errors);
    if (good && tree.count > 0 &&
        fields_read(&reader, &tree.nodes[0], &site_schema, &raw)) {
        read_limits(&reader, raw.limits, out);
    }
    good = good && errors->count == 0;
    if (!good) {
        plan_errors_finish(errors);
        site_release(out);
    }
    node_tree_release(&tree);
    return good;
}

static struct node plain(const char *text)
{
    return (struct node){
        .text = text,
        .count = (uint32_t)strlen(text),
        .kind = NODE_PLAIN,
    };
}

bool site_parse_max(const char *text, int64_t *out)
{
    if (strcmp(text, "none") == 0) {
        *out = PLAN_UNLIMITED;
        return true;
    }
    const struct node node = plain(text);
    return fields_parse_number(&node, out) && *out <= PLAN_UNITS_MAX;
}

bool site_parse_percent(const char *text, uint32_t *out)
{
    const struct node node = plain(text);
    return fields_parse_percent(&node, out);
}
