/* SPDX-License-Identifier: MIT */
/*
 * Free units over time are a sorted array of points; between two points nothing
 * changes. Schedules of some hundred tasks have few points, and moving a part
 * of the array is cheaper than any tree.
 */
#include "core/lookahead/sgs.h"

#include "base/invariant.h"

#include <string.h>

/* ---- free units over time ---- */

/* Return the point at or before a time, searched from the back. */
static uint32_t point_before(const struct lookahead_sgs *sgs, int64_t at_ns)
{
    uint32_t low = 0;
    uint32_t high = sgs->point_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (sgs->at_ns[middle] <= at_ns) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Insert a point at this time, after point `before`; return its index. */
static uint32_t split(struct lookahead_sgs *sgs, uint32_t before, int64_t at_ns)
{
    INVARIANT(before < sgs->point_count);
    INVARIANT(sgs->at_ns[before] <= at_ns);
    if (sgs->at_ns[before] == at_ns) {
        return before;
    }
    uint32_t words = sgs->model->words;
    uint32_t after = before + 1;
    uint32_t moved = sgs->point_count - after;
    INVARIANT(sgs->point_count < sgs->point_capacity);
    memmove(&sgs->at_ns[after + 1],
            &sgs->at_ns[after],
            moved * sizeof(sgs->at_ns[0]));
    memmove(&sgs->free[(size_t)(after + 1) * words],
            &sgs->free[(size_t)after * words],
            (size_t)moved * words * sizeof(sgs->free[0]));
    sgs->at_ns[after] = at_ns;
    for (uint32_t ix = 0; ix < words; ix++) {
        sgs->free[(size_t)after * words + ix] =
            sgs->free[(size_t)before * words + ix];
    }
    sgs->point_count++;
    INVARIANT(after + 1 == sgs->point_count || at_ns < sgs->at_ns[after + 1]);
    return after;
}

/* Take units for an interval; point `from` is at or before its start. */
static void occupy(struct lookahead_sgs *sgs,
                   uint32_t from,
                   int64_t begin_ns,
                   int64_t end_ns,
                   const uint64_t *units)
{
    INVARIANT(begin_ns < end_ns);
    uint32_t words = sgs->model->words;
    uint32_t point = split(sgs, from, begin_ns);
    for (;;) {
        bool last = point + 1 == sgs->point_count;
        if (last || sgs->at_ns[point + 1] > end_ns) {
            (void)split(sgs, point, end_ns);
        }
        uint64_t *free = &sgs->free[(size_t)point * words];
        for (uint32_t ix = 0; ix < words; ix++) {
            free[ix] -= units[ix];
            INVARIANT((free[ix] & LOOKAHEAD_GUARDS) == 0);
        }
        point++;
        if (sgs->at_ns[point] == end_ns) {
            return;
        }
    }
}

/* Start with only the sessions in flight. */
static void begin(struct lookahead_sgs *sgs)
{
    const struct lookahead_model *model = sgs->model;
    sgs->point_count = 1;
    sgs->at_ns[0] = 0;
    for (uint32_t ix = 0; ix < model->words; ix++) {
        sgs->free[ix] = model->pool[ix];
    }
    for (uint32_t ix = 0; ix < model->busy_count; ix++) {
        occupy(sgs, 0, 0, model->busy[ix].until_ns, model->busy[ix].units);
    }
    sgs->open_ns = 0;
    sgs->close_ns = INT64_MAX;
}

static bool is_full(const struct lookahead_sgs *sgs, uint32_t point)
{
    const struct lookahead_model *model = sgs->model;
    return !lookahead_fits(model,
                           &sgs->free[(size_t)point * model->words],
                           model->least);
}

/* Find the first time at which a task could run. */
static void find_open(struct lookahead_sgs *sgs)
{
    uint32_t point = point_before(sgs, sgs->open_ns);
    while (is_full(sgs, point)) {
        point++;
        INVARIANT(point < sgs->point_count); /* the last point is free */
        sgs->open_ns = sgs->at_ns[point];
    }
}

/* Find the last such time before `until_ns`. */
static void find_close(struct lookahead_sgs *sgs, int64_t until_ns)
{
    if (sgs->close_ns > until_ns) {
        sgs->close_ns = until_ns;
    }
    uint32_t point = point_before(sgs, sgs->close_ns - 1);
    while (point > 0 && is_full(sgs, point)) {
        sgs->close_ns = sgs->at_ns[point];
        point--;
    }
}

/* Return the earliest start at or after `from_ns`; its point in *point_out. */
static int64_t earliest(const struct lookahead_sgs *sgs,
                        uint32_t task,
                        int64_t from_ns,
                        uint32_t *point_out)
{
    const struct lookahead_model *model = sgs->model;
    const uint64_t *units = &model->units[(size_t)task * model->words];
    int64_t length_ns = model->length_ns[task];
    uint32_t first = point_before(sgs, from_ns);
    int64_t start_ns = from_ns;
    for (uint32_t point = first; point < sgs->point_count; point++) {
        if (sgs->at_ns[point] >= start_ns + length_ns) {
            break;
        }
        if (!lookahead_fits(model,
                            &sgs->free[(size_t)point * model->words],
                            units)) {
            first = point + 1;
            INVARIANT(first < sgs->point_count); /* the last point is free */
            start_ns = sgs->at_ns[first];
        }
    }
    *point_out = first;
    return start_ns;
}

/* Return the latest start that finishes by `until_ns`; its point likewise. */
static int64_t latest(const struct lookahead_sgs *sgs,
                      uint32_t task,
                      int64_t until_ns,
                      uint32_t *point_out)
{
    const struct lookahead_model *model = sgs->model;
    const uint64_t *units = &model->units[(size_t)task * model->words];
    int64_t length_ns = model->length_ns[task];
    int64_t end_ns = until_ns;
    uint32_t point = point_before(sgs, until_ns - 1);
    for (;;) {
        if (!lookahead_fits(model,
                            &sgs->free[(size_t)point * model->words],
                            units)) {
            end_ns = sgs->at_ns[point];
        }
        if (sgs->at_ns[point] <= end_ns - length_ns) {
            break;
        }
        INVARIANT(point > 0); /* its old position is still free */
        point--;
    }
    *point_out = point;
    return end_ns - length_ns;
}

/* ---- schemes ---- */

int64_t lookahead_sgs_serial(struct lookahead_sgs *sgs,
                             const uint32_t *list,
                             int64_t *start_ns)
{
    const struct lookahead_model *model = sgs->model;
    int64_t makespan_ns = 0;
    begin(sgs);
    for (uint32_t place = 0; place < model->count; place++) {
        uint32_t task = list[place];
        int64_t from_ns = model->release_ns[task];
        for (uint32_t edge = model->first_need[task];
             edge < model->first_need[task + 1];
             edge++) {
            uint32_t need = model->needs[edge];
            int64_t end_ns = start_ns[need] + model->length_ns[need];
            from_ns = end_ns > from_ns ? end_ns : from_ns;
        }
        uint32_t point;
        from_ns = sgs->open_ns > from_ns ? sgs->open_ns : from_ns;
        start_ns[task] = earliest(sgs, task, from_ns, &point);
        INVARIANT(start_ns[task] >= from_ns);
        int64_t end_ns = start_ns[task] + model->length_ns[task];
        occupy(sgs,
               point,
               start_ns[task],
               end_ns,
               &model->units[(size_t)task * model->words]);
        find_open(sgs);
        makespan_ns = end_ns > makespan_ns ? end_ns : makespan_ns;
    }
    return makespan_ns;
}

/* Start each task as late as its dependents allow, latest finish first. */
static void
justify_right(struct lookahead_sgs *sgs, int64_t *start_ns, int64_t makespan_ns)
{
    const struct lookahead_model *model = sgs->model;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        sgs->key_ns[ix] = -(start_ns[ix] + model->length_ns[ix]);
        sgs->list[ix] = model->count - 1 - ix;
    }
    lookahead_sgs_sort(sgs, sgs->key_ns, sgs->list);
    begin(sgs);
    for (uint32_t place = 0; place < model->count; place++) {
        uint32_t task = sgs->list[place];
        int64_t until_ns = makespan_ns;
        for (uint32_t edge = model->first_dependent[task];
             edge < model->first_dependent[task + 1];
             edge++) {
            int64_t next_ns = start_ns[model->dependents[edge]];
            until_ns = next_ns < until_ns ? next_ns : until_ns;
        }
        uint32_t point;
        int64_t was_ns = start_ns[task];
        until_ns = sgs->close_ns < until_ns ? sgs->close_ns : until_ns;
        start_ns[task] = latest(sgs, task, until_ns, &point);
        INVARIANT(start_ns[task] >= was_ns);
        occupy(sgs,
               point,
               start_ns[task],
               start_ns[task] + model->length_ns[task],
               &model->units[(size_t)task * model->words]);
        find_close(sgs, makespan_ns);
    }
}

int64_t lookahead_sgs_justify(struct lookahead_sgs *sgs,
                              int64_t *start_ns,
                              int64_t end_ns)
{
    justify_right(sgs, start_ns, end_ns);
    lookahead_sgs_list(sgs, start_ns, sgs->list);
    return lookahead_sgs_serial(sgs, sgs->list, start_ns);
}

/* ---- the parallel scheme ---- */

/*
 * Free units only grow between two starts, so one vector of them is enough.
 * Ends are in a heap (`running`, by `key_ns`); sessions in flight follow the
 * tasks in it. Tasks whose needs are finished are in `list`, in the order of
 * the given list (`place`).
 */
struct parallel {
    struct lookahead_sgs *sgs;
    uint64_t free[LOOKAHEAD_WORDS_MAX];
    uint32_t running;
    uint32_t eligible;
    uint32_t early; /* of the eligible ones: may not start yet */
};

static void push_end(struct parallel *p, uint32_t item, int64_t end_ns)
{
    uint32_t *heap = p->sgs->running;
    int64_t *key_ns = p->sgs->key_ns;
    key_ns[item] = end_ns;
    uint32_t hole = p->running++;
    while (hole > 0 && key_ns[heap[(hole - 1) / 2]] > end_ns) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = item;
}

static uint32_t pop_end(struct parallel *p)
{
    INVARIANT(p->running > 0);
    uint32_t *heap = p->sgs->running;
    const int64_t *key_ns = p->sgs->key_ns;
    uint32_t first = heap[0];
    uint32_t last = heap[--p->running];
    uint32_t hole = 0;
    for (uint32_t child = 1; child < p->running; child = 2 * hole + 1) {
        if (child + 1 < p->running &&
            key_ns[heap[child + 1]] < key_ns[heap[child]]) {
            child++;
        }
        if (key_ns[last] <= key_ns[heap[child]]) {
            break;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    return first;
}

/* The needs of a task are finished. */
static void make_eligible(struct parallel *p, uint32_t task, int64_t now_ns)
{
    uint32_t *list = p->sgs->list;
    const uint32_t *place = p->sgs->place;
    uint32_t hole = p->eligible++;
    while (hole > 0 && place[list[hole - 1]] > place[task]) {
        list[hole] = list[hole - 1];
        hole--;
    }
    list[hole] = task;
    p->early += p->sgs->model->release_ns[task] > now_ns ? 1 : 0;
}

/* Finish a task, or a session in flight. */
static void end_item(struct parallel *p, uint32_t item, int64_t now_ns)
{
    const struct lookahead_model *model = p->sgs->model;
    bool flies = item >= model->count;
    const uint64_t *units = flies ? model->busy[item - model->count].units
                                  : &model->units[(size_t)item * model->words];
    for (uint32_t ix = 0; ix < model->words; ix++) {
        p->free[ix] += units[ix];
        INVARIANT((p->free[ix] & LOOKAHEAD_GUARDS) == 0);
    }
    for (uint32_t edge = flies ? 0 : model->first_dependent[item];
         !flies && edge < model->first_dependent[item + 1];
         edge++) {
        uint32_t to = model->dependents[edge];
        INVARIANT(p->sgs->missing[to] > 0);
        if (--p->sgs->missing[to] == 0) {
            make_eligible(p, to, now_ns);
        }
    }
}

/* Start what fits, best first; return how many were started. */
static uint32_t
start_fitting(struct parallel *p, int64_t *start_ns, int64_t now_ns)
{
    const struct lookahead_model *model = p->sgs->model;
    uint32_t *list = p->sgs->list;
    uint32_t kept = 0;
    uint32_t ix = 0;
    for (; ix < p->eligible; ix++) {
        if (!lookahead_fits(model, p->free, model->least)) {
            break; /* nothing fits any more */
        }
        uint32_t task = list[ix];
        const uint64_t *units = &model->units[(size_t)task * model->words];
        if (model->release_ns[task] > now_ns ||
            !lookahead_fits(model, p->free, units)) {
            list[kept++] = task;
            continue;
        }
        for (uint32_t word = 0; word < model->words; word++) {
            p->free[word] -= units[word];
        }
        start_ns[task] = now_ns;
        push_end(p, task, now_ns + model->length_ns[task]);
    }
    uint32_t started = ix - kept;
    memmove(&list[kept], &list[ix], (p->eligible - ix) * sizeof(list[0]));
    p->eligible -= started;
    return started;
}

/* Return the next time at which something finishes or may start. */
static int64_t next_time(struct parallel *p, int64_t now_ns)
{
    const struct lookahead_sgs *sgs = p->sgs;
    int64_t next_ns = p->running > 0 ? sgs->key_ns[sgs->running[0]] : INT64_MAX;
    if (p->early == 0) {
        return next_ns;
    }
    p->early = 0;
    for (uint32_t ix = 0; ix < p->eligible; ix++) {
        int64_t release_ns = sgs->model->release_ns[sgs->list[ix]];
        if (release_ns > now_ns) {
            p->early++;
            next_ns = release_ns < next_ns ? release_ns : next_ns;
        }
    }
    return next_ns;
}

static void begin_parallel(struct parallel *p, const uint32_t *list)
{
    struct lookahead_sgs *sgs = p->sgs;
    const struct lookahead_model *model = sgs->model;
    for (uint32_t ix = 0; ix < model->words; ix++) {
        p->free[ix] = model->pool[ix];
    }
    for (uint32_t ix = 0; ix < model->busy_count; ix++) {
        for (uint32_t word = 0; word < model->words; word++) {
            p->free[word] -= model->busy[ix].units[word];
            INVARIANT((p->free[word] & LOOKAHEAD_GUARDS) == 0);
        }
        push_end(p, model->count + ix, model->busy[ix].until_ns);
    }
    for (uint32_t ix = 0; ix < model->count; ix++) {
        sgs->place[list[ix]] = ix;
        sgs->missing[ix] = model->first_need[ix + 1] - model->first_need[ix];
    }
    for (uint32_t ix = 0; ix < model->count; ix++) {
        if (sgs->missing[list[ix]] == 0) {
            make_eligible(p, list[ix], 0);
        }
    }
}

int64_t lookahead_sgs_parallel(struct lookahead_sgs *sgs,
                               const uint32_t *list,
                               int64_t *start_ns)
{
    const struct lookahead_model *model = sgs->model;
    struct parallel p = {.sgs = sgs};
    INVARIANT(list != sgs->list);
    begin_parallel(&p, list);
    uint32_t left = model->count;
    int64_t now_ns = 0;
    for (;;) {
        left -= start_fitting(&p, start_ns, now_ns);
        if (left == 0) {
            break;
        }
        int64_t next_ns = next_time(&p, now_ns);
        INVARIANT(next_ns > now_ns && next_ns < INT64_MAX);
        now_ns = next_ns;
        while (p.running > 0 && sgs->key_ns[sgs->running[0]] <= now_ns) {
            end_item(&p, pop_end(&p), now_ns);
        }
    }
    int64_t makespan_ns = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        int64_t end_ns = start_ns[ix] + model->length_ns[ix];
        makespan_ns = end_ns > makespan_ns ? end_ns : makespan_ns;
    }
    return makespan_ns;
}

/* ---- sorting ---- */

/* Merge sort, starting from short insertion sorts. */
void lookahead_sgs_sort(struct lookahead_sgs *sgs,
                        const int64_t *key_ns,
                        uint32_t *list)
{
    enum { SHORT = 32 };
    uint32_t count = sgs->model->count;
    for (uint32_t first = 0; first < count; first += SHORT) {
        uint32_t end = count - first < SHORT ? count : first + SHORT;
        for (uint32_t ix = first + 1; ix < end; ix++) {
            uint32_t task = list[ix];
            uint32_t hole = ix;
            while (hole > first && key_ns[list[hole - 1]] > key_ns[task]) {
                list[hole] = list[hole - 1];
                hole--;
            }
            list[hole] = task;
        }
    }
    for (uint32_t length = SHORT; length < count; length *= 2) {
        for (uint32_t first = 0; first < count; first += 2 * length) {
            uint32_t middle = count - first < length ? count : first + length;
            uint32_t end = count - middle < length ? count : middle + length;
            uint32_t left = first;
            uint32_t right = middle;
            for (uint32_t ix = first; ix < end; ix++) {
                bool take_right =
                    left == middle ||
                    (right < end && key_ns[list[right]] < key_ns[list[left]]);
                sgs->other[ix] = list[take_right ? right++ : left++];
            }
        }
        memcpy(list, sgs->other, count * sizeof(list[0]));
    }
}

void lookahead_sgs_list(struct lookahead_sgs *sgs,
                        const int64_t *start_ns,
                        uint32_t *list)
{
    for (uint32_t ix = 0; ix < sgs->model->count; ix++) {
        list[ix] = ix;
    }
    lookahead_sgs_sort(sgs, start_ns, list);
}
