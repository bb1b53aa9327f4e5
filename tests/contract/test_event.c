/* SPDX-License-Identifier: MIT */
/*
 * What all back ends do alike with the log.
 */
#include "store/event.h"

#include "base/macros.h"
#include "store/sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_state_is_the_member_to_of_the_outermost_object(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        uint32_t to; /* TASK_STATE_COUNT: none */
    } cases[] = {
        {"{\"to\":\"done\"}", TASK_DONE},
        {"{\"from\":\"ready\",\"to\":\"failed\"}", TASK_FAILED},
        {"{\"a\":{\"to\":\"done\"},\"b\":[\"to\",1],\"to\":\"ready\"}",
         TASK_READY},
        {"{\"reason\":\"\\\"to\\\":\\\"x\\\"\",\"to\":\"done\"}", TASK_DONE},
        {"{\"a\":\"to\",\"to\":\"done\"}", TASK_DONE},
        {"{\"a\":[{\"to\":\"done\"}]}", TASK_STATE_COUNT},
        {"{\"to\":\"\"}", TASK_STATE_COUNT},
        {"{\"to\":\"don\"}", TASK_STATE_COUNT},
        {"{\"to\":7}", TASK_STATE_COUNT},
        {"{\"to\":{\"to\":\"done\"}}", TASK_STATE_COUNT},
        {"{\"too\":\"done\"}", TASK_STATE_COUNT},
        {"{\"to\"}", TASK_STATE_COUNT},
        {"[\"to\",\"done\"]", TASK_STATE_COUNT},
        {"\"to\"", TASK_STATE_COUNT},
        {"}{\"to\":\"done\"}", TASK_STATE_COUNT},
        {"{}{\"to\":\"done\"}", TASK_STATE_COUNT},
        {"{\"to\":\"done", TASK_STATE_COUNT},
        {"{\"to", TASK_STATE_COUNT},
        {"{\"a\\", TASK_STATE_COUNT},
        {"{\"to\":", TASK_STATE_COUNT},
        {"", TASK_STATE_COUNT},
    };
    struct event event = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        const struct store_event row = {
            .kind = event_kind_name(EVENT_KIND_TASK),
            .data = cases[ix].data,
        };
        event_read(&event, &row);
        assert_int_equal(event.as.task.to, cases[ix].to);
    }
    event_release(&event);
}

/* The bytes are part of the format: see docs/store.md. */
static void the_sum_is_of_the_bytes_that_are_written_down(void **state)
{
    (void)state;
    const struct store_event event = {
        .number = 0x0102,
        .wall_ns = -1,
        .run = 3,
        .task = STORE_NONE,
        .kind = "k",
        .data = "{}",
    };
    static const unsigned char bytes[] = {
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* sum before */
        0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* number */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* wall_ns */
        0x03, 0x00, 0x00, 0x00,                         /* run */
        0xff, 0xff, 0xff, 0xff,                         /* task */
        'k',  0x00, '{',  '}',  0x00,
    };
    assert_true(event_sum(UINT64_C(0x1122334455667788), &event) ==
                sum_add(SUM_START, bytes, sizeof(bytes)));
    /* A value that is known from elsewhere. */
    assert_true(sum_add(SUM_START, "foobar", 6) ==
                UINT64_C(0x85944171f73967e8));
}

static void every_part_of_an_event_counts(void **state)
{
    (void)state;
    const struct store_event event = {
        .number = 1,
        .wall_ns = 2,
        .run = 3,
        .task = 4,
        .kind = "kind",
        .data = "{}",
    };
    struct store_event others[] = {event, event, event, event, event, event};
    others[0].number = 2;
    others[1].wall_ns = 3;
    others[2].run = STORE_NONE;
    others[3].task = 5;
    others[4].kind = "kin";
    others[5].data = "{ }";
    uint64_t sum = event_sum(9, &event);
    assert_true(sum == event_sum(9, &event));
    assert_true(sum != event_sum(8, &event));
    for (size_t ix = 0; ix < ARRAY_COUNT(others); ix++) {
        assert_true(sum != event_sum(9, &others[ix]));
    }
    /* What one text loses does not go to the other. */
    struct store_event shifted = event;
    shifted.kind = "kind{";
    shifted.data = "}";
    assert_true(sum != event_sum(9, &shifted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_is_the_member_to_of_the_outermost_object),
        cmocka_unit_test(the_sum_is_of_the_bytes_that_are_written_down),
        cmocka_unit_test(every_part_of_an_event_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
