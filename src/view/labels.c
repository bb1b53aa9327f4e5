/* SPDX-License-Identifier: MIT */
#include "view/labels.h"

#include "base/plain.h"

#include <string.h>

static bool has(const struct plan_labels *labels, const char *name)
{
    for (uint32_t ix = 0; ix < labels->count; ix++) {
        if (strcmp(labels->items[ix], name) == 0) {
            return true;
        }
    }
    return false;
}

bool labels_match(const struct labels *labels, const struct plan_task *task)
{
    uint32_t ix = 0;
    while (ix < labels->count && has(&task->labels, labels->names[ix])) {
        ix++;
    }
    return ix == labels->count;
}

void labels_add(struct strbuf *out, const struct labels *labels)
{
    for (uint32_t ix = 0; ix < labels->count; ix++) {
        strbuf_adds(out, ix > 0 ? ", " : "");
        plain_add(out, labels->names[ix]);
    }
}

void labels_add_own(struct strbuf *out, const struct plan_labels *labels)
{
    for (uint32_t ix = 0; ix < labels->count; ix++) {
        strbuf_adds(out, ix > 0 ? ", " : " [");
        plain_add(out, labels->items[ix]);
    }
    strbuf_adds(out, labels->count > 0 ? "]" : "");
}

static void json_labels(struct jsonw *json, const struct plan_labels *labels)
{
    jsonw_array(json, "labels");
    for (uint32_t ix = 0; ix < labels->count; ix++) {
        jsonw_text(json, NULL, labels->items[ix]);
    }
    jsonw_array_end(json);
}

void labels_json_task(struct jsonw *json,
                      const struct plan *plan,
                      const struct plan_task *task)
{
    const struct plan_group *group =
        task->group != PLAN_NONE ? &plan->groups[task->group] : NULL;
    const char *url = task->words->url;
    const char *description = task->words->description;
    if (group != NULL) {
        url = url != NULL ? url : group->url;
        description = description != NULL ? description : group->description;
    }
    json_labels(json, &task->labels);
    jsonw_text(json, "url", url);
    jsonw_text(json, "description", description);
}

void labels_json_group(struct jsonw *json,
                       const struct plan *plan,
                       const struct plan_group *group)
{
    jsonw_text(json,
               "parent",
               group->parent != PLAN_NONE ? plan->groups[group->parent].id
                                          : NULL);
    json_labels(json, &group->labels);
    jsonw_text(json, "url", group->url);
    jsonw_text(json, "description", group->description);
}
