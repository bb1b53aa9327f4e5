/* SPDX-License-Identifier: MIT */
/* The groups of a made-up model, whose words are those of its reasons. */
#include "view/waiting.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS_MAX = 100 };

/* A run whose first tasks need an operator, and whose others wait. */
struct made {
    struct model model;
    struct model_row rows[TASKS_MAX];
    struct reason reasons[TASKS_MAX];
    uint32_t described; /* how often */
};

static struct reason reason_of(const struct model *model, uint32_t task)
{
    const struct made *made = model->ctx;
    return made->reasons[task];
}

static void describe(const struct model *model,
                     uint32_t task,
                     struct model_task *out,
                     struct strbuf *text)
{
    const void *const *ctx = &model->ctx;
    struct made *made;
    memcpy(&made, ctx, sizeof(*ctx)); /* it counts */
    made->described++;
    *out = (struct model_task){0};
    reasons_add(text, &made->reasons[task]);
}

static void make(struct made *made)
{
    *made = (struct made){
        .model =
            {
                .rows = made->rows,
                .ctx = made,
                .reason = reason_of,
                .describe = describe,
            },
    };
}

/* Add the next task to a part; parts come in order. */
static void
add(struct made *made, enum model_part part, const struct reason *reason)
{
    uint32_t task = made->model.row_count++;
    assert_true(task < TASKS_MAX);
    made->rows[task].task = task;
    made->reasons[task] = *reason;
    made->model.part_counts[part]++;
}

/* The groups as "COUNT WORDS: TASK TASK|..." */
static void expect_groups(const struct made *made, const char *wanted)
{
    struct waiting waiting;
    struct strbuf text = {0};
    waiting_fill(&waiting, &made->model);
    for (uint32_t ix = 0; ix < waiting.count; ix++) {
        const struct waiting_group *group = &waiting.groups[ix];
        strbuf_addf(&text, "%u %s:", group->count, group->text);
        for (uint32_t n = 0; n < group->count && n < WAITING_NAMES; n++) {
            strbuf_addf(&text, " %u", group->first[n]);
        }
        strbuf_adds(&text, "|");
    }
    strbuf_addf(&text, "%u left", waiting.left);
    assert_string_equal(strbuf_text(&text), wanted);
    strbuf_release(&text);
    waiting_release(&waiting);
    assert_int_equal(waiting.count, 0);
}

/* --- tests -------------------------------------------------------------- */

static void tasks_are_grouped_in_the_order_of_their_first(void **state)
{
    static const char limit[] = "sessions";
    static const char need[] = "a";
    const struct reason parked = {.code = WHY_PARKED};
    const struct reason full = {.code = WHY_LIMIT, .limit = limit, .max = 2};
    const struct reason needs = {.code = WHY_NEEDS, .task = need};
    struct made made;
    (void)state;
    make(&made);
    expect_groups(&made, "0 left");
    add(&made, MODEL_PEOPLE, &parked); /* it waits for nobody but you */
    add(&made, MODEL_READY, &full);
    add(&made, MODEL_READY, &full);
    add(&made, MODEL_WAITING, &needs);
    add(&made, MODEL_WAITING, &full);
    add(&made, MODEL_WAITING, &needs);
    add(&made, MODEL_WAITING, &full);
    expect_groups(&made, "4 limit sessions: 1 2 4|2 needs a: 3 5|0 left");
    assert_int_equal(made.described, 2); /* once for each reason */
}

/* Equal reasons in other strings, as of another run, have the same words. */
static void equal_words_are_one_group(void **state)
{
    char first[] = "a";
    char second[] = "a";
    struct made made;
    (void)state;
    make(&made);
    add(&made,
        MODEL_WAITING,
        &(struct reason){.code = WHY_NEEDS, .task = first});
    add(&made,
        MODEL_WAITING,
        &(struct reason){.code = WHY_NEEDS, .task = second});
    expect_groups(&made, "2 needs a: 0 1|0 left");
}

/* Reasons that differ in one member that the words show are two groups. */
static void a_member_that_the_words_show_makes_a_group(void **state)
{
    static const char limit[] = "sessions";
    static const char class_name[] = "small";
    static const char task[] = "a";
    static const char provider[] = "p";
    static const struct {
        struct reason a;
        struct reason b;
    } pairs[] = {
        {{.code = WHY_LIMIT, .limit = limit, .max = 2},
         {.code = WHY_LIMIT, .limit = limit, .max = 0}},
        {{.code = WHY_LIMIT, .limit = limit, .max = 2},
         {.code = WHY_LIMIT, .limit = limit, .max = 2, .limit_store = true}},
        {{.code = WHY_BUDGET, .limit = limit, .limit_class = class_name},
         {.code = WHY_BUDGET,
          .limit = limit,
          .limit_class = class_name,
          .limit_unpriced = true}},
        {{.code = WHY_USAGE, .left_ns = SCHED_NEVER},
         {.code = WHY_USAGE, .left_ns = SCHED_NEVER, .unread = true}},
        {{.code = WHY_USAGE, .provider = provider, .left_ns = SCHED_NEVER},
         {.code = WHY_USAGE, .provider = provider, .left_ns = 1000}},
        {{.code = WHY_NEEDS, .task = task},
         {.code = WHY_NEEDS, .task = task, .on = PLAN_ON_FAILED}},
        {{.code = WHY_PARKED}, {.code = WHY_PARKED, .unready = true}},
        {{.code = WHY_PARKED}, {.code = WHY_PARKED, .broke = true}},
        {{.code = WHY_PARKED}, {.code = WHY_PARKED, .bad_base = true}},
    };
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(pairs); ix++) {
        struct made made;
        struct strbuf wanted = {0};
        make(&made);
        add(&made, MODEL_WAITING, &pairs[ix].a);
        add(&made, MODEL_WAITING, &pairs[ix].b);
        strbuf_adds(&wanted, "1 ");
        reasons_add(&wanted, &pairs[ix].a);
        strbuf_adds(&wanted, ": 0|1 ");
        reasons_add(&wanted, &pairs[ix].b);
        strbuf_adds(&wanted, ": 1|0 left");
        expect_groups(&made, strbuf_text(&wanted));
        strbuf_release(&wanted);
    }
}

static void other_reasons_are_counted(void **state)
{
    char names[WAITING_GROUPS + 3][8];
    struct made made;
    struct waiting waiting;
    (void)state;
    make(&made);
    for (uint32_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        (void)snprintf(names[ix], sizeof(names[ix]), "t%u", ix);
        add(&made,
            MODEL_WAITING,
            &(struct reason){.code = WHY_NEEDS, .task = names[ix]});
    }
    add(&made, MODEL_WAITING, &made.reasons[0]); /* of a listed group */
    waiting_fill(&waiting, &made.model);
    assert_int_equal(waiting.count, WAITING_GROUPS);
    assert_int_equal(waiting.left, 3);
    assert_int_equal(waiting.groups[0].count, 2);
    assert_int_equal(waiting.groups[WAITING_GROUPS - 1].count, 1);
    assert_int_equal(made.described, WAITING_GROUPS); /* no more words */
    waiting_release(&waiting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_grouped_in_the_order_of_their_first),
        cmocka_unit_test(equal_words_are_one_group),
        cmocka_unit_test(a_member_that_the_words_show_makes_a_group),
        cmocka_unit_test(other_reasons_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
