/* SPDX-License-Identifier: MIT */
#include "core/lookahead/model.h"

#include "base/invariant.h"

/* Invert the needs. */
static void find_dependents(struct lookahead_model *model)
{
    uint32_t *first = model->first_dependent;
    for (uint32_t ix = 0; ix < model->count + 2; ix++) {
        first[ix] = 0;
    }
    uint32_t edges = model->first_need[model->count];
    INVARIANT(edges <= model->edge_capacity);
    for (uint32_t edge = 0; edge < edges; edge++) {
        first[model->needs[edge] + 2]++;
    }
    for (uint32_t ix = 2; ix < model->count + 2; ix++) {
        first[ix] += first[ix - 1];
    }
    for (uint32_t ix = 0; ix < model->count; ix++) {
        for (uint32_t edge = model->first_need[ix];
             edge < model->first_need[ix + 1];
             edge++) {
            INVARIANT(model->needs[edge] < ix);
            model->dependents[first[model->needs[edge] + 1]++] = ix;
        }
    }
    INVARIANT(first[model->count] == edges);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Return the length of the work if only this lane is scarce. */
static int64_t work_bound(const struct lookahead_model *model, uint32_t lane)
{
    uint32_t word = lane / LOOKAHEAD_LANES;
    uint32_t shift = lane % LOOKAHEAD_LANES * 16;
    uint64_t pool = model->pool[word] >> shift & LOOKAHEAD_UNITS_MAX;
    double work = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        uint64_t units = model->units[(size_t)ix * model->words + word];
        work += (double)(units >> shift & LOOKAHEAD_UNITS_MAX) *
                (double)model->length_ns[ix];
    }
    for (uint32_t ix = 0; ix < model->busy_count; ix++) {
        const struct lookahead_busy *busy = &model->busy[ix];
        work += (double)(busy->units[word] >> shift & LOOKAHEAD_UNITS_MAX) *
                (double)busy->until_ns;
    }
    return pool > 0 ? (int64_t)(work / (double)pool) : 0;
}

/* Find the least units of each lane that a task uses. */
static void find_least(struct lookahead_model *model)
{
    for (uint32_t word = 0; word < model->words; word++) {
        model->least[word] = 0;
        for (uint32_t lane = 0; lane < LOOKAHEAD_LANES; lane++) {
            uint64_t least = LOOKAHEAD_UNITS_MAX;
            for (uint32_t ix = 0; ix < model->count; ix++) {
                uint64_t units = model->units[(size_t)ix * model->words + word];
                units = units >> lane * 16 & LOOKAHEAD_UNITS_MAX;
                least = units < least ? units : least;
            }
            model->least[word] |= least << lane * 16;
        }
    }
}

void lookahead_model_finish(struct lookahead_model *model)
{
    INVARIANT(model->count <= model->capacity);
    INVARIANT(model->words > 0 && model->words <= LOOKAHEAD_WORDS_MAX);
    find_dependents(model);
    find_least(model);
    model->bound_ns = 0;
    for (uint32_t ix = model->count; ix-- > 0;) {
        INVARIANT(model->length_ns[ix] > 0 && model->release_ns[ix] >= 0);
        int64_t after_ns = 0;
        for (uint32_t edge = model->first_dependent[ix];
             edge < model->first_dependent[ix + 1];
             edge++) {
            after_ns =
                larger(after_ns, model->tail_ns[model->dependents[edge]]);
        }
        model->tail_ns[ix] = model->length_ns[ix] + after_ns;
        model->bound_ns =
            larger(model->bound_ns, model->release_ns[ix] + model->tail_ns[ix]);
    }
    for (uint32_t ix = 0; ix < model->busy_count; ix++) {
        model->bound_ns = larger(model->bound_ns, model->busy[ix].until_ns);
    }
    for (uint32_t lane = 0; lane < model->words * LOOKAHEAD_LANES; lane++) {
        model->bound_ns = larger(model->bound_ns, work_bound(model, lane));
    }
}
