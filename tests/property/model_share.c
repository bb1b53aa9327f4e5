/* SPDX-License-Identifier: MIT */
/* What is left to do, and what the background may use meanwhile. */
#include "tests/property/model.h"

/* The lane of a pool, noted if it is new. */
static uint32_t
lane_of(struct model *model, uint32_t run, const struct model_pool *pool)
{
    uint32_t ix = 0;
    while (ix < model->lane_count && (model->lanes[ix].run != run ||
                                      model->lanes[ix].limit != pool->limit ||
                                      model->lanes[ix].key != pool->key)) {
        ix++;
    }
    if (ix == model->lane_count) {
        model->lanes[model->lane_count++] = (struct model_lane){
            .run = run,
            .limit = pool->limit,
            .key = pool->key,
        };
    }
    return ix;
}

/* The need of the same group that a task continues the chain of, or ID_NONE. */
static uint32_t
continues(const struct model *model, uint32_t task, const bool *continued)
{
    uint32_t best = ID_NONE;
    for (uint32_t ix = 0; ix < model->need_count; ix++) {
        uint32_t need = model->needs[ix].need;
        if (model->needs[ix].dependent == task && need < task && need < best &&
            model->tasks[need].group == model->tasks[task].group &&
            !continued[need]) {
            best = need;
        }
    }
    return best;
}

void model_measure(struct model *model)
{
    bool continued[MODEL_TASKS] = {false};
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        struct model_group *g = &model->groups[ix];
        g->width = 0;
        g->lane = ID_NONE;
        /* Its pools are in the order of the limits. */
        for (uint32_t n = 0; n < g->pool_count && g->lane == ID_NONE; n++) {
            if (g->pools[n].key != ID_NONE) {
                g->lane = lane_of(model, g->run, &g->pools[n]);
            }
        }
    }
    for (uint32_t task = 0; task < model->task_count; task++) {
        uint32_t need = continues(model, task, continued);
        if (need == ID_NONE) {
            model->groups[model->tasks[task].group].width++;
        } else {
            continued[need] = true;
        }
    }
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        const struct model_group *g = &model->groups[ix];
        if (g->lane != ID_NONE && g->width > model->lanes[g->lane].width) {
            model->lanes[g->lane].width = g->width;
        }
    }
}

/*
 * Which pending tasks cannot start before somebody acts. That spreads along
 * needs to be done. Of others nobody knows what they will come to: a last task
 * does not count while it waits for one, or for its scope.
 */
static void find_stuck(const struct model *model, bool *stuck)
{
    bool dead[MODEL_TASKS];
    model_find_dead(model, dead);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        bool waits = t->last && !model_has_rested(model, t);
        stuck[ix] = model_is_pending(t) && (t->held || waits);
    }
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            struct sched_need need = model->needs[ix];
            const struct model_task *t = &model->tasks[need.dependent];
            bool blocked = model->tasks[need.need].state == TASK_PARKED ||
                           dead[need.need] || stuck[need.need];
            if (need.on != SCHED_ON_DONE) {
                blocked = t->last && model_is_open(model, need);
            }
            if (model_is_pending(t) && !stuck[need.dependent] && blocked) {
                stuck[need.dependent] = true;
                changed = true;
            }
        }
    }
}

/* An estimate in units of about a millisecond. */
static int64_t work_of(const struct model_task *task)
{
    int64_t work = task->estimate_ns >> 20;
    int64_t most = INT64_C(1) << 36;
    return work < most ? work : most;
}

/* What the foreground of a run could ever use at once. */
static int64_t width_of(const struct model *model, uint32_t run)
{
    int64_t width = 0;
    for (uint32_t ix = 0; ix < model->lane_count; ix++) {
        const struct model_lane *lane = &model->lanes[ix];
        if (lane->run == run) {
            int64_t max = model_max(model, lane->limit);
            /* A lane has fewer groups than that. */
            max = max < MODEL_GROUPS ? max : MODEL_GROUPS;
            int64_t most = max * lane->width;
            width += lane->left < most ? lane->left : most;
        }
    }
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        const struct model_group *g = &model->groups[ix];
        if (g->run == run && g->left && g->lane == ID_NONE) {
            width += g->width;
        }
    }
    return width;
}

/* Round down to three significant bits. */
static int64_t rounded(int64_t number)
{
    int64_t unit = 1;
    while (number / unit >= 8) {
        unit *= 2;
    }
    return number / unit * unit;
}

/* From which length on a task of the run is critical. */
static int64_t critical_of(const struct model *model, uint32_t run)
{
    const struct model_run *r = &model->runs[run];
    int64_t cap = model_max(model, r->first_limit);
    if (cap == LIMIT_NONE || cap == 0) {
        return 0;
    }
    int64_t work = 0;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        work += t->run == run && model_is_pending(t) ? work_of(t) : 0;
    }
    int64_t each = work / cap;
    return rounded(r->goal == SCHED_FINISH_ALL ? each / 4 : each * 4 / 5);
}

void model_count(struct model *model)
{
    bool stuck[MODEL_TASKS];
    find_stuck(model, stuck);
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        model->groups[ix].left = false;
        model->groups[ix].work = 0;
    }
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        struct model_group *g = &model->groups[t->group];
        bool live = model_is_pending(t) || model_in_flight(t);
        g->left =
            g->left || (live && !stuck[ix] && !model_is_background(model, t));
        g->work += live ? work_of(t) : 0;
    }
    for (uint32_t ix = 0; ix < model->lane_count; ix++) {
        model->lanes[ix].left = 0;
        model->lanes[ix].work = 0;
    }
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        const struct model_group *g = &model->groups[ix];
        if (g->lane != ID_NONE) {
            model->lanes[g->lane].left += g->left ? g->width : 0;
            model->lanes[g->lane].work += g->work;
        }
    }
    for (uint32_t run = 0; run < model->run_count; run++) {
        model->runs[run].width = width_of(model, run);
    }
}

void model_set_goals(struct model *model)
{
    for (uint32_t run = 0; run < model->run_count; run++) {
        model->runs[run].critical = critical_of(model, run);
    }
}

int64_t model_max(const struct model *model, uint32_t limit)
{
    const struct limit_spec *spec = &model->limits[limit].spec;
    if (spec->percent == 0) {
        return spec->max;
    }
    int64_t base = model->limits[spec->base].spec.max;
    if (base == LIMIT_NONE) {
        return LIMIT_NONE;
    }
    int64_t max = base * spec->percent / 100;
    max = max > 0 ? max : 1;
    int64_t idle = base - model->runs[model->limits[limit].run].width;
    return spec->background && idle > max ? idle : max;
}

void model_take_turn(struct model *model, uint32_t leader, uint32_t count)
{
    const struct model_task *t = &model->tasks[leader];
    struct model_run *run = &model->runs[t->run];
    if (t->background && t->first) {
        return; /* it was an operator's wish */
    }
    if (!t->background) {
        run->owed = run->owed > count ? run->owed - count : 0;
        return;
    }
    uint32_t percent = 101;
    for (uint32_t ix = 0; ix < t->pool_count; ix++) {
        const struct limit_spec *spec = &model->limits[t->pools[ix].limit].spec;
        if (spec->background && spec->percent > 0 && spec->percent < percent) {
            percent = spec->percent;
        }
    }
    percent = percent <= 100 ? percent : 34;
    run->owed = count * ((100 + percent - 1) / percent - 1);
}
