/* SPDX-License-Identifier: MIT */
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void an_unused_buffer_is_the_empty_text(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    assert_string_equal(strbuf_text(&buf), "");
    strbuf_clear(&buf);
    assert_string_equal(strbuf_text(&buf), "");
    strbuf_release(&buf);
}

static void appends_in_order(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    strbuf_add(&buf, "one two", 3);
    strbuf_adds(&buf, ", ");
    strbuf_addf(&buf, "%d-%s", 2, "three");
    strbuf_pad(&buf, '.', 4);
    assert_string_equal(strbuf_text(&buf), "one, 2-three....");
    assert_int_equal(buf.len, 16);
    strbuf_release(&buf);
}

static void appending_nothing_changes_nothing(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    strbuf_add(&buf, NULL, 0);
    strbuf_adds(&buf, "");
    strbuf_addf(&buf, "%s", "");
    strbuf_pad(&buf, ' ', 0);
    assert_int_equal(buf.len, 0);
    assert_string_equal(strbuf_text(&buf), "");
    strbuf_release(&buf);
}

static void keeps_bytes_of_every_value(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    strbuf_add(&buf, "a\0b\xff", 4);
    assert_int_equal(buf.len, 4);
    assert_memory_equal(strbuf_text(&buf), "a\0b\xff", 5);
    strbuf_release(&buf);
}

static void stays_terminated_across_each_growth(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    for (size_t len = 0; len < 1000; len++) {
        assert_int_equal(buf.len, len);
        assert_int_equal(strlen(strbuf_text(&buf)), len);
        assert_true(len == 0 || buf.capacity > len);
        strbuf_add(&buf, "x", 1);
    }
    strbuf_release(&buf);
}

static void one_large_piece_fits_at_once(void **state)
{
    (void)state;
    enum { LARGE_BYTES = 100000, ALL_BYTES = 2 * LARGE_BYTES };
    struct strbuf buf = {0};
    strbuf_pad(&buf, 'a', LARGE_BYTES);
    strbuf_addf(&buf, "%0*d", LARGE_BYTES, 7);
    assert_int_equal(buf.len, ALL_BYTES);
    assert_int_equal(buf.text[LARGE_BYTES - 1], 'a');
    assert_int_equal(buf.text[LARGE_BYTES], '0');
    assert_int_equal(buf.text[ALL_BYTES - 1], '7');
    assert_int_equal(buf.text[ALL_BYTES], '\0');
    strbuf_release(&buf);
}

static void clear_keeps_the_memory(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    strbuf_adds(&buf, "some text");
    const char *text = buf.text;
    size_t capacity = buf.capacity;
    strbuf_clear(&buf);
    assert_string_equal(strbuf_text(&buf), "");
    strbuf_adds(&buf, "other");
    assert_ptr_equal(buf.text, text);
    assert_int_equal(buf.capacity, capacity);
    assert_string_equal(strbuf_text(&buf), "other");
    strbuf_release(&buf);
}

static void release_leaves_it_ready_for_use(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    strbuf_adds(&buf, "first");
    strbuf_release(&buf);
    assert_null(buf.text);
    assert_int_equal(buf.len, 0);
    assert_int_equal(buf.capacity, 0);
    strbuf_release(&buf);
    strbuf_adds(&buf, "second");
    assert_string_equal(strbuf_text(&buf), "second");
    strbuf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_buffer_is_the_empty_text),
        cmocka_unit_test(appends_in_order),
        cmocka_unit_test(appending_nothing_changes_nothing),
        cmocka_unit_test(keeps_bytes_of_every_value),
        cmocka_unit_test(stays_terminated_across_each_growth),
        cmocka_unit_test(one_large_piece_fits_at_once),
        cmocka_unit_test(clear_keeps_the_memory),
        cmocka_unit_test(release_leaves_it_ready_for_use),
    };
    return cmocka_run_group_tests_name("strbuf", tests, NULL, NULL);
}
