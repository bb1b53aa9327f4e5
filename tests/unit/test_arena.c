/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void blocks_are_zeroed_and_aligned(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (size_t round = 0; round < 2000; round++) {
        (void)arena_strndup(&arena, "xyz", round % 4);
        uint64_t *block = arena_alloc(&arena, 3, sizeof(*block));
        assert_int_equal((uintptr_t)block % ARENA_ALIGN, 0);
        for (int ix = 0; ix < 3; ix++) {
            assert_int_equal(block[ix], 0);
            block[ix] = UINT64_MAX;
        }
    }
    arena_release(&arena);
    assert_null(arena.newest);
}

static void texts_are_copied_with_a_nul(void **state)
{
    (void)state;
    struct arena arena = {0};
    char text[] = "one two";
    char *copy = arena_strndup(&arena, text, 3);
    text[0] = 'X';
    assert_string_equal(copy, "one");
    assert_string_equal(arena_strndup(&arena, NULL, 0), "");
    arena_release(&arena);
}

static void a_block_larger_than_any_chunk_fits(void **state)
{
    (void)state;
    struct arena arena = {0};
    char *small = arena_alloc(&arena, 1, 1);
    char *large = arena_alloc(&arena, 5, 1 << 20);
    memset(large, 'x', (size_t)5 << 20);
    *small = 'y';
    assert_int_equal(large[0], 'x');
    assert_int_equal(large[((size_t)5 << 20) - 1], 'x');
    assert_int_equal(*small, 'y');
    arena_release(&arena);
}

static void old_blocks_stay_in_place(void **state)
{
    (void)state;
    struct arena arena = {0};
    uint32_t *blocks[5000];
    for (uint32_t ix = 0; ix < 5000; ix++) {
        blocks[ix] = arena_alloc(&arena, 1, sizeof(uint32_t));
        *blocks[ix] = ix;
    }
    for (uint32_t ix = 0; ix < 5000; ix++) {
        assert_int_equal(*blocks[ix], ix);
    }
    arena_release(&arena);
}

static void rewinding_gives_back_what_is_newer(void **state)
{
    (void)state;
    struct arena arena = {0};
    char *old = arena_strndup(&arena, "old", 3);
    struct arena_mark mark = arena_mark(&arena);
    for (int round = 0; round < 3; round++) {
        for (int ix = 0; ix < 10000; ix++) {
            (void)arena_strndup(&arena, "new", 3);
        }
        assert_ptr_not_equal(arena.newest, mark.chunk);
        arena_rewind(&arena, mark);
        assert_ptr_equal(arena.newest, mark.chunk);
        assert_string_equal(old, "old");
    }
    arena_release(&arena);
}

static void rewinding_to_an_empty_arena_empties_it(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct arena_mark mark = arena_mark(&arena);
    (void)arena_alloc(&arena, 100, 100);
    arena_rewind(&arena, mark);
    assert_null(arena.newest);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_and_aligned),
        cmocka_unit_test(texts_are_copied_with_a_nul),
        cmocka_unit_test(a_block_larger_than_any_chunk_fits),
        cmocka_unit_test(old_blocks_stay_in_place),
        cmocka_unit_test(rewinding_gives_back_what_is_newer),
        cmocka_unit_test(rewinding_to_an_empty_arena_empties_it),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
