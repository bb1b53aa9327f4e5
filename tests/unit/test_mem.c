/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void zalloc_gives_zeroes(void **state)
{
    (void)state;
    static const char zeroes[800];
    char *block = mem_zalloc(100, 8);
    assert_memory_equal(block, zeroes, sizeof(zeroes));
    mem_free(block);
}

static void zalloc_of_nothing_is_still_a_block(void **state)
{
    (void)state;
    void *block = mem_zalloc(0, 8);
    assert_non_null(block);
    mem_free(block);
}

static void resize_starts_grows_and_shrinks(void **state)
{
    (void)state;
    uint32_t *block = mem_resize(NULL, 2, sizeof(block[0]));
    block[0] = 17;
    block[1] = 18;
    block = mem_resize(block, 1000, sizeof(block[0]));
    assert_int_equal(block[0], 17);
    assert_int_equal(block[1], 18);
    block[999] = 19;
    block = mem_resize(block, 1, sizeof(block[0]));
    assert_int_equal(block[0], 17);
    mem_free(block);
}

static void resize_to_nothing_is_still_a_block(void **state)
{
    (void)state;
    char *block = mem_resize(mem_zalloc(10, 1), 0, 1);
    assert_non_null(block);
    mem_free(block);
}

static void an_array_grows_when_it_is_full_and_keeps_what_it_has(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    uint32_t capacity = 0;
    uint32_t growths = 0;
    for (uint32_t count = 0; count < 1000; count++) {
        uint32_t before = capacity;
        MEM_GROW(items, count, capacity);
        assert_true(count < capacity);
        growths += capacity != before ? 1 : 0;
        items[count] = count;
    }
    for (uint32_t ix = 0; ix < 1000; ix++) {
        assert_int_equal(items[ix], ix);
    }
    assert_in_range(growths, 2, 15);
    mem_free(items);
}

static void strndup_takes_so_many_bytes_and_a_nul(void **state)
{
    (void)state;
    char *copy = mem_strndup("task-12", 4);
    assert_string_equal(copy, "task");
    mem_free(copy);
    copy = mem_strndup("task", 0);
    assert_string_equal(copy, "");
    mem_free(copy);
}

static void free_accepts_null(void **state)
{
    (void)state;
    mem_free(NULL);
}

static void allocate_too_much(void *ctx)
{
    *(void **)ctx = mem_resize(NULL, SIZE_MAX / 2, 4);
}

static void a_size_that_overflows_stops_the_program(void **state)
{
    (void)state;
    void *block = NULL;
    death_expect(allocate_too_much, (void *)&block, "count <= SIZE_MAX");
    assert_null(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zalloc_gives_zeroes),
        cmocka_unit_test(zalloc_of_nothing_is_still_a_block),
        cmocka_unit_test(resize_starts_grows_and_shrinks),
        cmocka_unit_test(resize_to_nothing_is_still_a_block),
        cmocka_unit_test(an_array_grows_when_it_is_full_and_keeps_what_it_has),
        cmocka_unit_test(strndup_takes_so_many_bytes_and_a_nul),
        cmocka_unit_test(free_accepts_null),
        cmocka_unit_test(a_size_that_overflows_stops_the_program),
    };
    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
