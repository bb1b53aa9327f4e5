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

static void the_target_is_the_member_to_of_the_outermost_object(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        const char *target; /* NULL: none */
    } cases[] = {
        {"{\"to\":\"done\"}", "done"},
        {" {\n\t\"from\" : \"ready\" ,\r\n \"to\" : \"claimed\" } ", "claimed"},
        {"{\"a\":{\"to\":\"no\"},\"b\":[\"to\",1],\"to\":\"yes\"}", "yes"},
        {"{\"reason\":\"\\\"to\\\":\\\"x\\\"\",\"to\":\"done\"}", "done"},
        {"{\"a\":\"to\",\"to\":\"done\"}", "done"},
        {"{\"a\":[{\"to\":\"no\"}]}", NULL},
        {"{\"to\":\"\"}", ""},
        {"{\"to\":\"d\\u006fne\"}", NULL},
        {"{\"to\":7}", NULL},
        {"{\"to\":{\"to\":\"x\"}}", NULL},
        {"{\"too\":\"x\"}", NULL},
        {"{\"to\"}", NULL},
        {"[\"to\",\"x\"]", NULL},
        {"\"to\"", NULL},
        {"}{\"to\":\"x\"}", NULL},
        {"{}{\"to\":\"x\"}", NULL},
        {"{\"to\":\"cut off", NULL},
        {"{\"to", NULL},
        {"{\"a\\", NULL},
        {"{\"to\":", NULL},
        {"", NULL},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        size_t len = 0;
        const char *target = event_target(cases[ix].data, &len);
        if (cases[ix].target == NULL) {
            assert_null(target);
            continue;
        }
        assert_non_null(target);
        assert_int_equal(len, strlen(cases[ix].target));
        assert_memory_equal(target, cases[ix].target, len);
    }
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
        cmocka_unit_test(the_target_is_the_member_to_of_the_outermost_object),
        cmocka_unit_test(the_sum_is_of_the_bytes_that_are_written_down),
        cmocka_unit_test(every_part_of_an_event_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
