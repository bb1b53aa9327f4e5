/* SPDX-License-Identifier: MIT */
#include "view/waiting.h"

#include "base/mem.h"

#include <string.h>

/* Whether two reasons are about the same things. Names are those of one engine,
 * so equal ones are one string. */
static bool is_about_same(const struct reason *a, const struct reason *b)
{
    return a->code == b->code && a->task == b->task && a->run == b->run &&
           a->group == b->group && a->limit == b->limit &&
           a->limit_class == b->limit_class && a->provider == b->provider &&
           a->left_ns == b->left_ns && a->until_ns == b->until_ns &&
           a->max == b->max && a->stopped == b->stopped;
}

/* Whether two reasons are the same, so that their words are, too. */
static bool is_same(const struct reason *a, const struct reason *b)
{
    return is_about_same(a, b) && a->limit_store == b->limit_store &&
           a->limit_usd == b->limit_usd &&
           a->limit_unpriced == b->limit_unpriced && a->parked == b->parked &&
           a->state == b->state && a->on == b->on && a->of == b->of &&
           a->stop == b->stop && a->held == b->held &&
           a->revoked == b->revoked && a->broke == b->broke &&
           a->unread == b->unread && a->unready == b->unready &&
           a->base == b->base && a->bad_base == b->bad_base;
}

static void add_to_group(struct waiting_group *group, uint32_t task)
{
    if (group->count < WAITING_NAMES) {
        group->first[group->count] = task;
    }
    group->count++;
}

/* Find the group of a reason by its words, or begin one. Words are made only
 * while there are few groups: a plan may have a reason for each task. */
static struct waiting_group *find_group(struct waiting *waiting,
                                        const struct model *model,
                                        const struct reason *reason,
                                        uint32_t task)
{
    struct model_task ignored;
    struct strbuf text = {0};
    uint32_t ix = 0;
    if (waiting->count == WAITING_GROUPS) {
        return NULL;
    }
    model->describe(model, task, &ignored, &text);
    while (ix < waiting->count &&
           strcmp(waiting->groups[ix].text, strbuf_text(&text)) != 0) {
        ix++;
    }
    if (ix == waiting->count) {
        waiting->groups[waiting->count++] = (struct waiting_group){
            .text = mem_strdup(strbuf_text(&text)),
            .reason = *reason,
        };
    }
    strbuf_release(&text);
    return &waiting->groups[ix];
}

void waiting_fill(struct waiting *out, const struct model *model)
{
    *out = (struct waiting){0};
    uint32_t first = model->part_counts[MODEL_PEOPLE];
    uint32_t end = first + model->part_counts[MODEL_READY] +
                   model->part_counts[MODEL_WAITING];
    for (uint32_t row = first; row < end; row++) {
        uint32_t task = model->rows[row].task;
        struct reason reason = model->reason(model, task);
        uint32_t ix = 0;
        while (ix < out->count && !is_same(&out->groups[ix].reason, &reason)) {
            ix++;
        }
        struct waiting_group *group =
            ix < out->count ? &out->groups[ix]
                            : find_group(out, model, &reason, task);
        if (group != NULL) {
            add_to_group(group, task);
        } else {
            out->left++;
        }
    }
}

void waiting_release(struct waiting *waiting)
{
    for (uint32_t ix = 0; ix < waiting->count; ix++) {
        mem_free(waiting->groups[ix].text);
    }
    *waiting = (struct waiting){0};
}
