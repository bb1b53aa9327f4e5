/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *text, const char *wanted)
{
    char copy[64];
    size_t len = strlen(text);
    assert_true(len < sizeof(copy));
    memcpy(copy, text, len + 1);
    utf8_repair(copy, len);
    assert_string_equal(copy, wanted);
    assert_int_equal(utf8_is_valid(text, len), strcmp(text, wanted) == 0);
    assert_true(utf8_is_valid(copy, len));
}

static void valid_text_stays(void **state)
{
    (void)state;
    expect("", "");
    expect("a\x7f\n", "a\x7f\n");
    expect("\xc2\x80 \xdf\xbf", "\xc2\x80 \xdf\xbf");
    expect("\xe0\xa0\x80 \xef\xbf\xbf", "\xe0\xa0\x80 \xef\xbf\xbf");
    expect("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf",
           "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf");
    assert_true(utf8_is_valid("a\0b", 3));
}

static void each_bad_byte_is_a_question_mark(void **state)
{
    (void)state;
    expect("\x80 \xbf", "? ?");              /* goes on with nothing */
    expect("\xc3", "?");                     /* cut */
    expect("\xe2\x82", "??");                /* cut */
    expect("\xf0\x9f\x98", "???");           /* cut */
    expect("\xc0\xaf \xc1\xbf", "?? ??");    /* overlong */
    expect("\xe0\x9f\xbf", "???");           /* overlong */
    expect("\xf0\x8f\xbf\xbf", "????");      /* overlong */
    expect("\xed\xa0\x80", "???");           /* a surrogate */
    expect("\xf4\x90\x80\x80", "????");      /* above U+10FFFF */
    expect("\xf8\x88\x80\x80\x80", "?????"); /* five bytes */
    expect("\xe2\x41", "?A");
}

/* A text that is cut inside a character (13.13). */
static void the_text_of_an_error_is_valid(void **state)
{
    (void)state;
    struct diag diag = {0};
    char many[2 * DIAG_BYTES];
    for (size_t ix = 0; ix + 3 < sizeof(many); ix += 3) {
        memcpy(many + ix, "\xe2\x82\xac", 4);
    }
    for (size_t shift = 0; shift < 3; shift++) {
        const char *before = &"xx"[shift];
        (void)diag_set(&diag, ERR_IO, "%s%s", before, many);
        assert_int_equal(strlen(diag.text), DIAG_BYTES - 1);
        assert_true(utf8_is_valid(diag.text, strlen(diag.text)));
    }
    (void)diag_set(&diag, ERR_IO, "open %s", "a\xfc");
    assert_string_equal(diag.text, "open a?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_stays),
        cmocka_unit_test(each_bad_byte_is_a_question_mark),
        cmocka_unit_test(the_text_of_an_error_is_valid),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
