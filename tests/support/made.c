/* SPDX-License-Identifier: MIT */
#include "tests/support/made.h"

#include "base/duration.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

void made_init(struct made *made)
{
    static const char *const names[MADE_CLASS_COUNT] = {
        [MADE_IMPLEMENT] = "implement",
        [MADE_GATE] = "gate",
        [MADE_MERGE] = "merge",
        [MADE_REVIEW] = "review",
    };
    *made = (struct made){
        .plan = {.name = "made", .class_count = MADE_CLASS_COUNT},
        .result = {.class_count = MADE_CLASS_COUNT},
    };
    for (uint32_t ix = 0; ix < MADE_CLASS_COUNT; ix++) {
        uint32_t tier = ix == MADE_REVIEW ? 1 : 0;
        made->classes[ix] = (struct plan_class){
            .name = names[ix],
            .tier = tier,
            .base_tier = tier,
        };
    }
    made->plan.classes = made->classes;
    made->result.classes = made->class_results;
}

void made_release(struct made *made)
{
    for (uint32_t ix = 0; ix < made->plan.task_count; ix++) {
        const char *id = made->plan.tasks[ix].id;
        char *copy;
        memcpy(&copy, &id, sizeof(copy));
        mem_free(copy);
    }
    mem_free(made->plan.tasks);
    mem_free(made->result.spans);
    *made = (struct made){0};
}

static void reserve(struct made *made)
{
    if (made->plan.task_count < made->task_capacity) {
        return;
    }
    made->task_capacity = 2 * made->task_capacity + 16;
    made->plan.tasks = mem_resize(made->plan.tasks,
                                  made->task_capacity,
                                  sizeof(*made->plan.tasks));
    made->result.spans = mem_resize(made->result.spans,
                                    made->task_capacity,
                                    sizeof(*made->result.spans));
}

struct sim_span *made_add(struct made *made,
                          const char *id,
                          enum made_class class_ix,
                          struct made_when when)
{
    reserve(made);
    uint32_t task = made->plan.task_count++;
    made->plan.tasks[task] = (struct plan_task){
        .id = mem_strndup(id, strlen(id)),
        .class_ix = class_ix,
        .group = PLAN_NONE,
        .repo = PLAN_NONE,
    };
    struct sim_span *span = &made->result.spans[made->result.span_count++];
    *span = (struct sim_span){
        .task = task,
        .attempt = 1,
        .ready_ns = when.ready_s * SECOND_NS,
        .start_ns = when.start_s * SECOND_NS,
        .end_ns = when.end_s * SECOND_NS,
        .lane = when.lane,
        .session = task,
        .end = SIM_END_DONE,
    };
    made->result.task_count++;
    return span;
}

void made_settle(struct made *made)
{
    struct sim_result *result = &made->result;
    int64_t busy_ns = 0;
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        busy_ns += span->end_ns - span->start_ns;
        if (span->end_ns > result->makespan_ns) {
            result->makespan_ns = span->end_ns;
        }
        if (span->lane >= result->lane_count) {
            result->lane_count = span->lane + 1;
        }
    }
    if (result->makespan_ns > 0) {
        result->slot_use = (double)busy_ns / (double)result->makespan_ns /
                           (double)result->lane_count;
    }
}

/* The twelve reviews: in all lanes from the start, or in one. */
static void add_reviews(struct made *made, bool first_come)
{
    static const int64_t lengths_s[12] = {
        380,
        390,
        400,
        410,
        390,
        370,
        380,
        390,
        395,
        390,
        400,
        395,
    };
    int64_t free_s[3] = {0};
    for (uint32_t ix = 0; ix < 12; ix++) {
        char id[24];
        snprintf(id, sizeof(id), "pre-%u", 91 + ix);
        uint32_t lane = first_come ? ix % 3 : 2;
        int64_t start_s = free_s[lane];
        free_s[lane] += lengths_s[ix];
        made_add(made,
                 id,
                 MADE_REVIEW,
                 (struct made_when){lane, 0, start_s, free_s[lane]});
    }
}

struct chain {
    int spec;
    int first;
    int last;
    uint32_t lane;
};

/* The groups of a spec, one after the other, 12 minutes each. */
static void add_chain(struct made *made, struct chain chain, int64_t start_s)
{
    int64_t ready_s = 0;
    for (int group = chain.first; group <= chain.last; group++) {
        char id[24];
        snprintf(id, sizeof(id), "%d-%d", chain.spec, group);
        made_add(made,
                 id,
                 MADE_IMPLEMENT,
                 (struct made_when){
                     chain.lane,
                     ready_s,
                     start_s,
                     start_s + 720,
                 });
        start_s += 720;
        ready_s = start_s;
    }
}

void made_flood(struct made *made, bool first_come)
{
    made_init(made);
    made->result.policy = first_come ? PLAN_POLICY_FIFO : PLAN_POLICY_RANK;
    add_reviews(made, first_come);
    add_chain(made, (struct chain){101, 2, 7, 1}, first_come ? 1560 : 0);
    add_chain(made, (struct chain){102, 5, 7, 0}, first_come ? 1560 : 0);
    if (first_come) {
        made->class_results[MADE_IMPLEMENT].starved_ns = 1560 * SECOND_NS;
    }
    made_settle(made);
}
