/* SPDX-License-Identifier: MIT */
#include "view/waiting.h"

#include "base/mem.h"

#include <string.h>

static void
add_to_group(struct waiting *waiting, const struct strbuf *text, uint32_t task)
{
    uint32_t ix = 0;
    while (ix < waiting->count &&
           strcmp(waiting->groups[ix].text, strbuf_text(text)) != 0) {
        ix++;
    }
    if (ix == WAITING_GROUPS) {
        waiting->left++;
        return;
    }
    struct waiting_group *group = &waiting->groups[ix];
    if (ix == waiting->count) {
        waiting->count++;
        group->text = mem_strndup(strbuf_text(text), text->len);
    }
    if (group->count < WAITING_NAMES) {
        group->first[group->count] = task;
    }
    group->count++;
}

void waiting_fill(struct waiting *out, const struct model *model)
{
    *out = (struct waiting){0};
    uint32_t first = model->part_counts[MODEL_PEOPLE];
    uint32_t end = first + model->part_counts[MODEL_READY] +
                   model->part_counts[MODEL_WAITING];
    for (uint32_t ix = first; ix < end; ix++) {
        struct model_task task;
        struct strbuf text = {0};
        model->describe(model, model->rows[ix].task, &task, &text);
        add_to_group(out, &text, model->rows[ix].task);
        strbuf_release(&text);
    }
}

void waiting_release(struct waiting *waiting)
{
    for (uint32_t ix = 0; ix < waiting->count; ix++) {
        mem_free(waiting->groups[ix].text);
    }
    *waiting = (struct waiting){0};
}
