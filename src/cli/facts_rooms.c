/* SPDX-License-Identifier: MIT */
/*
 * The same rules as in core/admit.c, over the plan instead of the core: a
 * limit applies to whatever has the attributes of its `where`, and has one
 * room for each value of its `per`; limits with `hold: group` are asked with
 * the attributes of the group. The cap is the first limit of every plan and
 * the first need of every shape.
 */
#include "cli/facts_internal.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/strmap.h"

#include <string.h>

/* While rooms and shapes are made. Keys are texts: the map borrows them. */
struct maker {
    struct facts_rooms *out;
    const struct plan *plan;
    struct arena arena;
    struct strmap rooms;
    struct strmap shapes;
    struct strbuf key;
    struct facts_need needs[FACTS_ROOMS_MAX];
    uint32_t need_count;
    uint32_t *worth;
    bool *background;
};

struct attributes {
    const struct plan_attribute *items;
    uint32_t count;
};

static const char *value_of(struct attributes attributes, const char *name)
{
    for (uint32_t ix = 0; ix < attributes.count; ix++) {
        if (strcmp(attributes.items[ix].name, name) == 0) {
            return attributes.items[ix].value;
        }
    }
    return NULL;
}

static bool matches(const struct plan_limit *limit, struct attributes of)
{
    for (uint32_t ix = 0; ix < limit->where_count; ix++) {
        const char *value = value_of(of, limit->where[ix].name);
        if (value == NULL || strcmp(value, limit->where[ix].value) != 0) {
            return false;
        }
    }
    return limit->per == NULL || value_of(of, limit->per) != NULL;
}

static uint32_t
room_of(struct maker *maker, uint32_t limit, struct attributes of)
{
    const char *per = maker->plan->limits[limit].per;
    strbuf_clear(&maker->key);
    strbuf_addf(&maker->key,
                "%u %s",
                limit,
                per != NULL ? value_of(of, per) : "");
    uint32_t found =
        strmap_find(&maker->rooms, maker->key.text, maker->key.len);
    if (found != STRMAP_NONE) {
        return found;
    }
    struct facts_rooms *out = maker->out;
    if (out->room_count % 64 == 0) {
        out->rooms = mem_resize(out->rooms,
                                (size_t)out->room_count + 64,
                                sizeof(out->rooms[0]));
    }
    out->rooms[out->room_count] = (struct facts_room){.limit = limit};
    char *kept = arena_strndup(&maker->arena, maker->key.text, maker->key.len);
    (void)strmap_add(&maker->rooms, kept, out->room_count);
    return out->room_count++;
}

/* Units of a limit that a task uses; 0: none. */
static uint32_t
units_of(const struct plan *plan, const struct plan_task *task, uint32_t ix)
{
    const struct plan_limit *limit = &plan->limits[ix];
    for (uint32_t n = 0; n < task->use_count; n++) {
        if (task->uses[n].limit == ix) {
            return task->uses[n].units;
        }
    }
    switch (limit->kind) {
    case PLAN_LIMIT_PLAIN:
    case PLAN_LIMIT_USAGE:
        return 1;
    case PLAN_LIMIT_RESOURCE:
    case PLAN_LIMIT_COST: /* when it held is not in the log */
        return 0;
    case PLAN_LIMIT_BUDGET_USD:
    case PLAN_LIMIT_BUDGET_TOKENS:
        return plan_budget_units(plan, limit, task);
    }
    return 0;
}

/* Collect what a task needs: of sessions, or of places for groups. */
static void collect(struct maker *maker, uint32_t ix, bool for_group)
{
    const struct plan *plan = maker->plan;
    const struct plan_task *task = &plan->tasks[ix];
    struct attributes of = {task->attributes, task->attribute_count};
    if (for_group && task->group != PLAN_NONE) {
        const struct plan_group *group = &plan->groups[task->group];
        of = (struct attributes){group->attributes, group->attribute_count};
    }
    maker->need_count = 0;
    for (uint32_t n = 0; n < plan->limit_count; n++) {
        const struct plan_limit *limit = &plan->limits[n];
        uint32_t units = units_of(plan, task, n);
        if (limit->hold_group != for_group || units == 0 ||
            !matches(limit, of) || maker->need_count == FACTS_ROOMS_MAX) {
            continue;
        }
        maker->needs[maker->need_count++] = (struct facts_need){
            .room = room_of(maker, n, of),
            .units = for_group ? 1 : units,
        };
    }
}

static struct facts_need *keep_needs(const struct maker *maker)
{
    struct facts_need *kept =
        mem_zalloc(maker->need_count, sizeof(maker->needs[0]));
    memcpy(kept, maker->needs, maker->need_count * sizeof(maker->needs[0]));
    return kept;
}

static void
add_key(struct strbuf *key, const struct facts_need *needs, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(key, " %u:%u", needs[ix].room, needs[ix].units);
    }
    strbuf_adds(key, " /");
}

static void place_task(struct maker *maker, uint32_t ix)
{
    const struct plan_task *task = &maker->plan->tasks[ix];
    collect(maker, ix, false);
    struct facts_shape shape = {
        .class_ix = task->class_ix,
        .provider = facts_provider(maker->plan, task),
        .worth = maker->worth[ix],
        .background = maker->background[ix],
        .needs = keep_needs(maker),
        .need_count = maker->need_count,
    };
    collect(maker, ix, true);
    shape.group_needs = keep_needs(maker);
    shape.group_need_count = maker->need_count;
    struct strbuf key = {0};
    strbuf_addf(&key,
                "%u %u %u %d",
                shape.class_ix,
                shape.provider,
                shape.worth,
                shape.background);
    add_key(&key, shape.needs, shape.need_count);
    add_key(&key, shape.group_needs, shape.group_need_count);
    uint32_t found = strmap_find(&maker->shapes, key.text, key.len);
    struct facts_rooms *out = maker->out;
    if (found == STRMAP_NONE) {
        if (out->shape_count % 64 == 0) {
            out->shapes = mem_resize(out->shapes,
                                     (size_t)out->shape_count + 64,
                                     sizeof(out->shapes[0]));
        }
        found = out->shape_count++;
        out->shapes[found] = shape;
        (void)strmap_add(&maker->shapes,
                         arena_strndup(&maker->arena, key.text, key.len),
                         found);
    } else {
        mem_free(shape.needs);
        mem_free(shape.group_needs);
    }
    out->shape_of[ix] = found;
    strbuf_release(&key);
}

/* What tasks behind a task are at best; see rank_tasks(). */
struct behind {
    uint32_t worth;      /* best tier by which starvation is measured */
    uint32_t tier;       /* best tier */
    uint32_t plain_tier; /* best tier of a class that is not deferred */
};

static void improve(struct behind *out, struct behind with)
{
    out->worth = with.worth < out->worth ? with.worth : out->worth;
    out->tier = with.tier < out->tier ? with.tier : out->tier;
    out->plain_tier =
        with.plain_tier < out->plain_tier ? with.plain_tier : out->plain_tier;
}

/* Pass on from the ends of the graph what is behind each task. */
static void rank_tasks(struct maker *maker)
{
    const struct plan *plan = maker->plan;
    uint32_t count = plan->task_count;
    struct behind *behind = mem_zalloc(count, sizeof(behind[0]));
    uint32_t *waiting = mem_zalloc(count, sizeof(waiting[0]));
    uint32_t *queue = mem_zalloc(count, sizeof(queue[0]));
    uint32_t queued = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        behind[ix] = (struct behind){UINT32_MAX, UINT32_MAX, UINT32_MAX};
        for (uint32_t n = 0; n < plan->tasks[ix].need_count; n++) {
            waiting[plan->tasks[ix].needs[n]]++;
        }
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        if (waiting[ix] == 0) {
            queue[queued++] = ix;
        }
    }
    for (uint32_t ix = 0; ix < queued; ix++) {
        const struct plan_task *task = &plan->tasks[queue[ix]];
        const struct plan_class *class = &plan->classes[task->class_ix];
        struct behind now = behind[queue[ix]];
        maker->background[queue[ix]] = class->defer &&
                                       now.tier >= class->tier &&
                                       now.plain_tier > class->tier;
        improve(&now,
                (struct behind){
                    class->base_tier,
                    class->tier,
                    class->defer ? UINT32_MAX : class->tier,
                });
        maker->worth[queue[ix]] = now.worth;
        for (uint32_t n = 0; n < task->need_count; n++) {
            improve(&behind[task->needs[n]], now);
            if (--waiting[task->needs[n]] == 0) {
                queue[queued++] = task->needs[n];
            }
        }
    }
    mem_free(behind);
    mem_free(waiting);
    mem_free(queue);
}

void facts_rooms_init(struct facts_rooms *rooms, const struct plan *plan)
{
    *rooms = (struct facts_rooms){
        .shape_of = mem_zalloc(plan->task_count, sizeof(rooms->shape_of[0])),
    };
    struct maker maker = {
        .out = rooms,
        .plan = plan,
        .worth = mem_zalloc(plan->task_count, sizeof(maker.worth[0])),
        .background = mem_zalloc(plan->task_count, sizeof(bool)),
    };
    rank_tasks(&maker);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        place_task(&maker, ix);
        uint32_t worth = maker.worth[ix];
        rooms->worth_worst =
            worth > rooms->worth_worst ? worth : rooms->worth_worst;
    }
    strmap_release(&maker.rooms);
    strmap_release(&maker.shapes);
    strbuf_release(&maker.key);
    arena_release(&maker.arena);
    mem_free(maker.worth);
    mem_free(maker.background);
}

void facts_rooms_release(struct facts_rooms *rooms)
{
    for (uint32_t ix = 0; ix < rooms->shape_count; ix++) {
        mem_free(rooms->shapes[ix].needs);
        mem_free(rooms->shapes[ix].group_needs);
    }
    mem_free(rooms->rooms);
    mem_free(rooms->shapes);
    mem_free(rooms->shape_of);
    *rooms = (struct facts_rooms){0};
}
