/* SPDX-License-Identifier: MIT */
#include "http/form.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A form, and what it becomes. */
struct row {
    const char *body;
    const char *wanted;
};

/* Return a copy without a byte too many, for the sanitizer. */
static char *copy_of(const char *bytes, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    return copy;
}

static enum err
read_form(struct form_order *out, const char *body, struct diag *diag)
{
    size_t len = strlen(body);
    char *copy = copy_of(body, len);
    enum err err = form_read(out, copy, len, diag);
    free(copy);
    return err;
}

static void expect_json(const struct row *row)
{
    struct form_order order;
    struct diag diag = {0};
    if (read_form(&order, row->body, &diag) != ERR_OK) {
        fail_msg("%s: %s", row->body, diag.text);
    }
    assert_string_equal(strbuf_text(&order.json), row->wanted);
    assert_int_equal(order.seen_ns, 0);
    form_release(&order);
}

static void expect_back(const struct row *row)
{
    struct form_order order;
    struct diag diag = {0};
    (void)read_form(&order, row->body, &diag);
    assert_string_equal(strbuf_text(&order.back), row->wanted);
    form_release(&order);
}

static void expect_refused(const char *body, const char *text)
{
    struct form_order order;
    struct diag diag = {0};
    if (read_form(&order, body, &diag) != ERR_INVALID) {
        fail_msg("accepted: %s", body);
    }
    assert_string_equal(diag.text, text);
    assert_int_equal(order.json.len, 0);
    assert_int_equal(order.seen_ns, 0);
    /* The page with the reason leads back. */
    assert_int_equal(strbuf_text(&order.back)[0], '/');
    form_release(&order);
}

static void fields_become_members(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"verb=pause", "{\"verb\":\"pause\"}"},
        {"verb=drain&run=made&task=", "{\"verb\":\"drain\",\"run\":\"made\"}"},
        {"task=c%2Fd&verb=hold&run=made",
         "{\"verb\":\"hold\",\"run\":\"made\",\"task\":\"c/d\"}"},
        {"verb=answer&task=a&text=a+b%2Bc",
         "{\"verb\":\"answer\",\"task\":\"a\",\"text\":\"a b+c\"}"},
        {"verb=rework&task=a&text=no",
         "{\"verb\":\"rework\",\"task\":\"a\",\"text\":\"no\"}"},
        {"verb=cap&step=1", "{\"verb\":\"cap\",\"step\":1}"},
        {"verb=cap&step=-1", "{\"verb\":\"cap\",\"step\":-1}"},
        /* A text is not for all of them, and other names for none. */
        {"verb=hold&task=a&text=x", "{\"verb\":\"hold\",\"task\":\"a\"}"},
        {"verb=pause&key=k&session=s&max=9&x=y&Verb=skip&verbs=skip",
         "{\"verb\":\"pause\"}"},
        {"verb=tell&task=%22%5C%0A&text=%3C%C3%A4",
         "{\"verb\":\"tell\",\"task\":\"\\\"\\\\\\u000a\",\"text\":\"<"
         "\xc3\xa4\"}"},
        {"&&verb=pause&&=x&run&", "{\"verb\":\"pause\"}"},
        {"verb=tell&task=a&text=b=c",
         "{\"verb\":\"tell\",\"task\":\"a\",\"text\":\"b=c\"}"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        expect_json(&rows[ix]);
    }
}

static void line_breaks_are_those_of_unix(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"verb=tell&task=a&text=one%0D%0Atwo%0D%0A",
         "{\"verb\":\"tell\",\"task\":\"a\",\"text\":"
         "\"one\\u000atwo\\u000a\"}"},
        {"verb=tell&task=a&text=one%0Dtwo",
         "{\"verb\":\"tell\",\"task\":\"a\",\"text\":\"onetwo\"}"},
        {"verb=tell&task=a&text=%0D", "{\"verb\":\"tell\",\"task\":\"a\"}"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        expect_json(&rows[ix]);
    }
}

static void of_equal_names_the_first_counts(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"verb=pause&verb=cancel", "{\"verb\":\"pause\"}"},
        {"verb=hold&task=a&task=b&run=r&run=s",
         "{\"verb\":\"hold\",\"run\":\"r\",\"task\":\"a\"}"},
        /* An empty one is none. */
        {"verb=hold&task=&task=b", "{\"verb\":\"hold\",\"task\":\"b\"}"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        expect_json(&rows[ix]);
    }
}

#define REWORK "{\"verb\":\"rework\",\"task\":\"a\",\"text\":\""
#define UP_TO "Comments on the changes up to commit "

static void comments_follow_the_text_in_order(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"verb=rework&task=a&commit=0123456789abcdef0123&at=src%2Fa.c%3A12&"
         "note=why%3F",
         REWORK UP_TO "0123456789ab:\\u000a- src/a.c:12: why?\\u000a\"}"},
        {"verb=rework&task=a&commit=0123&text=no&at=b%3A9&note=two&at=a%3A1&"
         "note=one&at=b%3A3&note=three",
         REWORK "no\\u000a\\u000a" UP_TO "0123:\\u000a- b:9: two\\u000a- a:1: "
                "one\\u000a- b:3: three\\u000a\"}"},
        /* Wherever the text is. */
        {"at=a%3A1&note=x&text=no&verb=rework&task=a&commit=0",
         REWORK "no\\u000a\\u000a" UP_TO "0:\\u000a- a:1: x\\u000a\"}"},
        /* Of several lines, and with line breaks at its end. */
        {"verb=rework&task=a&commit=0&at=a%3A1&note=one%0D%0Atwo%0D%0A%0D%0A",
         REWORK UP_TO "0:\\u000a- a:1: one\\u000atwo\\u000a\"}"},
        /* Empty ones are left out, and so is their place. */
        {"verb=rework&task=a&commit=0&at=a%3A1&note=&at=b%3A2&note=x&at=c%3A3&"
         "note=%0D%0A",
         REWORK UP_TO "0:\\u000a- b:2: x\\u000a\"}"},
        {"verb=rework&task=a&commit=0&text=no&at=a%3A1&note=&at=b%3A2&note=",
         REWORK "no\"}"},
        {"verb=rework&task=a&commit=0&at=a%3A1&note=",
         "{\"verb\":\"rework\",\"task\":\"a\"}"},
        {"verb=rework&task=a&commit=0&note=x",
         REWORK UP_TO "0:\\u000a- : x\\u000a\"}"},
        /* An order without a text has no comments. */
        {"verb=skip&task=a&commit=0&at=a%3A1&note=x",
         "{\"verb\":\"skip\",\"task\":\"a\"}"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        expect_json(&rows[ix]);
    }
}

static void what_was_seen_is_not_an_order(void **state)
{
    (void)state;
    struct form_order order;
    struct diag diag = {0};
    enum err err =
        read_form(&order, "verb=seen&run=r&seen=1790000000000000001", &diag);
    assert_int_equal(err, ERR_OK);
    assert_true(order.seen_ns == INT64_C(1790000000000000001));
    assert_int_equal(order.json.len, 0);
    assert_string_equal(strbuf_text(&order.back), "/?run=%72");
    form_release(&order);
    static const char *const bodies[] = {
        "verb=seen",
        "verb=seen&seen=",
        "verb=seen&seen=0",
        "verb=seen&seen=-1",
        "verb=seen&seen=x",
        "verb=seen&seen=1x",
        "verb=seen&seen=+1",
        "verb=seen&seen=1.5",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(bodies); ix++) {
        expect_refused(bodies[ix], "\"seen\" must be a time");
    }
}

static void other_verbs_are_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "verb",
        "verb=",
        "verb=submit&text=x",
        "verb=add",
        "verb=ping",
        "verb=prune",
        "verb=Pause",
        "verb=pause+",
        "run=made",
        "{\"verb\":\"pause\"}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(bodies); ix++) {
        expect_refused(bodies[ix], "the page has no such order");
    }
}

static void malformed_values_are_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "verb=pause&run=%",
        "verb=pause&run=%4",
        "verb=pause&run=%zz",
        "verb=pause&run=a%00b",
        "verb=pause&run=%ff",
        "verb=tell&task=a&text=%C3",
        "verb=tell&task=a&text=%ED%A0%80",
        "verb=rework&task=a&at=%&note=x",
        "verb=rework&task=a&at=a&note=%ff",
        "verb=%",
        "verb=pause&back=%",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(bodies); ix++) {
        expect_refused(bodies[ix], "the form is malformed");
    }
}

static void the_way_back_stays_here(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"verb=pause", "/?run="},
        {"verb=pause&run=a%2Fb", "/?run=%61%2F%62"},
        {"verb=pause&run=r%0D%0AX%3A+y", "/?run=%72%0A%58%3A%20%79"},
        {"verb=pause&run=r&back=/", "/"},
        {"verb=pause&run=r&back=%2F%3Frun%3Dr%26task%3Da%23task",
         "/?run=r&task=a#task"},
        {"verb=zz&back=/log", "/log"},
        {"verb=pause&back=//evil.example", "/?run="},
        {"verb=pause&back=/%5Cevil.example", "/?run="},
        {"verb=pause&back=/a%5Cevil.example", "/?run="},
        {"verb=pause&back=/%0D/evil.example", "/?run="},
        {"verb=pause&back=/%0A/evil.example", "/?run="},
        {"verb=pause&back=/%09/evil.example", "/?run="},
        {"verb=pause&back=/x%0D%0AX-Evil:+yes", "/?run="},
        {"verb=pause&back=http://evil.example", "/?run="},
        {"verb=pause&back=javascript:alert(1)", "/?run="},
        {"verb=pause&back=+/", "/?run="},
        {"verb=pause&back=/%3Cb%3E", "/?run="},
        {"verb=pause&back=/%22", "/?run="},
        {"verb=pause&back=/a&back=//evil.example", "/a"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        expect_back(&rows[ix]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_become_members),
        cmocka_unit_test(line_breaks_are_those_of_unix),
        cmocka_unit_test(of_equal_names_the_first_counts),
        cmocka_unit_test(comments_follow_the_text_in_order),
        cmocka_unit_test(what_was_seen_is_not_an_order),
        cmocka_unit_test(other_verbs_are_refused),
        cmocka_unit_test(malformed_values_are_refused),
        cmocka_unit_test(the_way_back_stays_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
