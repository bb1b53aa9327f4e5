/* SPDX-License-Identifier: MIT */
#include "base/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_xml(const char *text, const char *wanted)
{
    struct strbuf out = {0};
    xml_add(&out, text);
    assert_string_equal(strbuf_text(&out), wanted);
    strbuf_release(&out);
}

static void markup_is_text(void **state)
{
    (void)state;
    assert_xml("", "");
    assert_xml("plain", "plain");
    assert_xml("</script><b a='1' b=\"2\">&amp;",
               "&lt;/script&gt;&lt;b a=&#39;1&#39; b=&quot;2&quot;&gt;"
               "&amp;amp;");
}

static void characters_of_every_length_stay(void **state)
{
    (void)state;
    assert_xml("a\u00e4\u20ac\U0001f600", "a\u00e4\u20ac\U0001f600");
}

static void what_xml_cannot_hold_is_replaced(void **state)
{
    (void)state;
    assert_xml("a\tb\r\nc", "a b  c");
    /* U+202E, U+2066 and U+200F, as bytes: they would turn this text, too. */
    static const char turned[] = {'a',
                                  '\xe2',
                                  '\x80',
                                  '\xae',
                                  'b',
                                  '\xe2',
                                  '\x81',
                                  '\xa6',
                                  'c',
                                  '\xe2',
                                  '\x80',
                                  '\x8f',
                                  'd',
                                  '\0'};
    assert_xml(turned, "a\ufffdb\ufffdc\ufffdd");
    assert_xml("\x01\x1b[0m\x7f", "\ufffd\ufffd[0m\ufffd");
    assert_xml("\xff", "\ufffd");
    assert_xml("\xc3", "\ufffd");                     /* cut off */
    assert_xml("\xc0\x80", "\ufffd\ufffd");           /* too long a form */
    assert_xml("\xed\xa0\x80", "\ufffd\ufffd\ufffd"); /* half of a pair */
    assert_xml("\xef\xbf\xbe", "\ufffd\ufffd\ufffd"); /* no character */
    assert_xml("\xf5\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_is_text),
        cmocka_unit_test(characters_of_every_length_stay),
        cmocka_unit_test(what_xml_cannot_hold_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
