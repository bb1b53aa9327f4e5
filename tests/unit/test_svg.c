/* SPDX-License-Identifier: MIT */
#include "sim/svg.h"

#include "tests/support/made.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { DEPTH_MAX = 8, NAME_MAX_BYTES = 16 };

/* Names of the elements that are open. */
struct open_elements {
    char names[DEPTH_MAX][NAME_MAX_BYTES];
    size_t depth;
};

/* Read the attributes of a tag; return what stands behind them. */
static const char *skip_attributes(const char *at)
{
    while (*at == ' ' || *at == '\n') {
        at++;
        assert_true(isalpha((unsigned char)*at));
        at += strcspn(at, "= <>\"");
        assert_memory_equal(at, "=\"", 2);
        at += 2;
        at += strcspn(at, "\"<");
        assert_int_equal(*at, '"');
        at++;
    }
    return at;
}

/* Read a tag; return what stands behind it. */
static const char *read_tag(struct open_elements *open, const char *at)
{
    bool closes = at[1] == '/';
    at += closes ? 2 : 1;
    size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz");
    assert_true(len > 0 && len < NAME_MAX_BYTES);
    if (closes) {
        assert_true(open->depth > 0);
        const char *name = open->names[--open->depth];
        assert_int_equal(strlen(name), len);
        assert_memory_equal(name, at, len);
        assert_int_equal(at[len], '>');
        return at + len + 1;
    }
    const char *behind = skip_attributes(at + len);
    if (*behind == '/') {
        assert_int_equal(behind[1], '>');
        return behind + 2;
    }
    assert_int_equal(*behind, '>');
    assert_true(open->depth < DEPTH_MAX);
    snprintf(open->names[open->depth++], NAME_MAX_BYTES, "%.*s", (int)len, at);
    return behind + 1;
}

static void check_entity(const char *at)
{
    static const char *const known[] = {
        "&amp;",
        "&lt;",
        "&gt;",
        "&quot;",
        "&#39;",
    };
    for (size_t ix = 0; ix < sizeof(known) / sizeof(known[0]); ix++) {
        if (strncmp(at, known[ix], strlen(known[ix])) == 0) {
            return;
        }
    }
    fail_msg("not an entity: %.20s", at);
}

/* Require well-formed XML with no control characters. */
static void check_document(const char *text)
{
    struct open_elements open = {0};
    assert_int_equal(strncmp(text, "<svg xmlns=", 11), 0);
    for (const char *at = text; *at != '\0';) {
        assert_true((unsigned char)*at >= ' ' || *at == '\n');
        if (*at == '<') {
            at = read_tag(&open, at);
            continue;
        }
        if (*at == '&') {
            check_entity(at);
        }
        assert_true(open.depth > 0 || *at == '\n');
        at++;
    }
    assert_int_equal(open.depth, 0);
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "href"));
    assert_null(strstr(text, "url("));
    assert_null(strstr(text, "=\"-"));
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;
    for (text = strstr(text, part); text != NULL; text = strstr(text, part)) {
        count++;
        text += strlen(part);
    }
    return count;
}

static void
draw(struct strbuf *out, struct made *made, struct svg_options options)
{
    struct svg_panel panel = {.plan = &made->plan, .result = &made->result};
    svg_compare(out, &panel, 1, &options);
    check_document(strbuf_text(out));
}

static void assert_contains(const struct strbuf *out, const char *part)
{
    if (strstr(strbuf_text(out), part) == NULL) {
        fail_msg("not there: %s", part);
    }
}

static void draws_one_bar_with_a_tooltip_per_session(void **state)
{
    (void)state;
    struct made made;
    made_flood(&made, true);
    struct strbuf out = {0};
    draw(&out, &made, (struct svg_options){.title = "The flood"});
    assert_contains(&out, "<title>The flood</title>");
    assert_contains(&out,
                    "<title>pre-94 (review)\n"
                    "waited 6 min 20 s, started at 6 min 20 s, "
                    "took 6 min 50 s</title>");
    assert_contains(&out, "class=\"bright\">101-2</text>");
    assert_contains(&out, "implement starved 26 min");
    assert_contains(&out, "implement waits");
    assert_int_equal(count_of(strbuf_text(&out), "<g>"), 21);
    assert_int_equal(count_of(strbuf_text(&out), "class=\"finish\""), 1);
    strbuf_release(&out);
    made_release(&made);
}

static void compares_results_on_one_time_scale(void **state)
{
    (void)state;
    struct made before;
    struct made after;
    made_flood(&before, true);
    made_flood(&after, false);
    const struct svg_panel panels[] = {
        {&before.plan, &before.result, "first come", NULL},
        {&after.plan, &after.result, "sluice defaults", NULL},
    };
    struct strbuf out = {0};
    svg_compare(&out, panels, 2, &(struct svg_options){0});
    check_document(strbuf_text(&out));
    assert_contains(&out, ">first come</tspan>");
    assert_contains(&out, ">sluice defaults</tspan>");
    assert_contains(&out, "implement starved 26 min");
    assert_contains(&out, ">starved 0</tspan>");
    assert_int_equal(count_of(strbuf_text(&out), ">30m</text>"), 2);
    assert_int_equal(count_of(strbuf_text(&out), "class=\"starved\""), 2);
    strbuf_release(&out);
    made_release(&before);
    made_release(&after);
}

static void texts_of_others_are_escaped(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made.classes[MADE_GATE].name = "<gate>";
    made_add(&made,
             "</title>&\"'\x1b[0m",
             MADE_GATE,
             (struct made_when){0, 0, 9, 600});
    made_settle(&made);
    struct strbuf out = {0};
    draw(&out,
         &made,
         (struct svg_options){
             .title = "<script>alert(1)</script>",
             .subtitle = "a & b\t\"c\"\n'd' \x01\x7f end",
         });
    assert_null(strstr(strbuf_text(&out), "<script"));
    strbuf_release(&out);
    made_release(&made);
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    (void)state;
    static const char *const titles[] = {
        "\x80|",             /* a continuation alone */
        "\xc3|",             /* cut short */
        "\xc0\xaf|",         /* too long a form */
        "\xed\xa0\x80|",     /* a surrogate */
        "\xf4\x90\x80\x80|", /* beyond the last character */
        "\xef\xbf\xbf|",     /* not a character */
        "\xff|",
        "\xe2\x82",
    };
    struct made made;
    made_init(&made);
    for (size_t ix = 0; ix < sizeof(titles) / sizeof(titles[0]); ix++) {
        struct strbuf out = {0};
        draw(&out, &made, (struct svg_options){.title = titles[ix]});
        assert_contains(&out, "<title>\xef\xbf\xbd");
        strbuf_release(&out);
    }
    struct strbuf out = {0};
    draw(&out, &made, (struct svg_options){.title = "Grüße 🚀"});
    assert_contains(&out, "<title>Grüße 🚀</title>");
    strbuf_release(&out);
    made_release(&made);
}

static void says_so_when_nothing_ran(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    struct strbuf out = {0};
    draw(&out, &made, (struct svg_options){0});
    assert_contains(&out, "nothing ran");
    strbuf_release(&out);
    made_release(&made);
}

static void shows_sessions_that_take_no_time(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made, "now", MADE_MERGE, (struct made_when){0});
    made_settle(&made);
    struct strbuf out = {0};
    draw(&out, &made, (struct svg_options){0});
    assert_contains(&out, "width=\"0.5\" height=\"26\" class=\"c2\"/>");
    assert_contains(&out, "done in 0 s");
    assert_contains(&out, "of 1 slot used");
    strbuf_release(&out);
    made_release(&made);
}

static void shows_how_a_session_ended(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    struct made_when when = {0, 0, 0, 60};
    struct sim_span *span = made_add(&made, "a", MADE_IMPLEMENT, when);
    span->end = SIM_END_FAILED;
    span->attempt = 3;
    made_settle(&made);
    struct strbuf out = {0};
    draw(&out, &made, (struct svg_options){0});
    assert_contains(&out, "took 1 min, attempt 3, failed</title>");
    assert_contains(&out, "did not succeed");
    strbuf_release(&out);
    made_release(&made);
}

static void lists_the_tasks_of_a_batch(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    for (uint32_t ix = 0; ix < 15; ix++) {
        char id[24];
        snprintf(id, sizeof(id), "r%u", ix);
        struct made_when when = {0, 0, 0, 60};
        made_add(&made, id, MADE_REVIEW, when)->session = 1;
    }
    made_settle(&made);
    struct strbuf out = {0};
    draw(&out, &made, (struct svg_options){0});
    assert_contains(&out, "<title>r0, r1, r2,");
    assert_contains(&out, "r11 and 3 more (review)");
    assert_contains(&out, ">r0+14</text>");
    assert_int_equal(count_of(strbuf_text(&out), "<g>"), 1);
    strbuf_release(&out);
    made_release(&made);
}

/* `count` sessions of all classes in turn, in so many lanes. */
static void fill(struct made *made, uint32_t lanes, uint32_t count)
{
    made_init(made);
    for (uint32_t ix = 0; ix < count; ix++) {
        char id[24];
        snprintf(id, sizeof(id), "task-%u", ix);
        int64_t start_s = (int64_t)(ix / lanes) * 60;
        struct made_when when = {ix % lanes, 0, start_s, start_s + 60};
        made_add(made, id, (enum made_class)(ix % MADE_CLASS_COUNT), when);
    }
    made_settle(made);
}

static void draws_200_lanes_at_every_width(void **state)
{
    (void)state;
    static const uint32_t widths[] = {0, 1, 320, 880, 2000, 100000};
    struct made made;
    fill(&made, 200, 1000);
    for (size_t ix = 0; ix < sizeof(widths) / sizeof(widths[0]); ix++) {
        struct strbuf out = {0};
        draw(&out, &made, (struct svg_options){.width = widths[ix]});
        assert_contains(&out, ">slot 200</text>");
        assert_null(strstr(strbuf_text(&out), ">slot 199</text>"));
        strbuf_release(&out);
    }
    made_release(&made);
}

static void counts_the_lanes_that_it_leaves_out(void **state)
{
    (void)state;
    struct made made;
    fill(&made, SVG_LANES_MAX + 50, 1000);
    struct strbuf out = {0};
    draw(&out, &made, (struct svg_options){0});
    assert_contains(&out, "and 50 more slots");
    strbuf_release(&out);
    made_release(&made);
}

static void too_many_bars_are_merged(void **state)
{
    (void)state;
    struct made made;
    fill(&made, 3, SVG_BARS_MAX);
    struct strbuf all = {0};
    draw(&all, &made, (struct svg_options){0});
    assert_int_equal(count_of(strbuf_text(&all), "<g>"), SVG_BARS_MAX);
    strbuf_release(&all);
    made_release(&made);

    fill(&made, 3, 20 * SVG_BARS_MAX);
    struct strbuf merged = {0};
    draw(&merged, &made, (struct svg_options){0});
    assert_true(count_of(strbuf_text(&merged), "<rect") < 2 * SVG_BARS_MAX);
    assert_true(merged.len < 2000000);
    strbuf_release(&merged);
    made_release(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_one_bar_with_a_tooltip_per_session),
        cmocka_unit_test(compares_results_on_one_time_scale),
        cmocka_unit_test(texts_of_others_are_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(says_so_when_nothing_ran),
        cmocka_unit_test(shows_sessions_that_take_no_time),
        cmocka_unit_test(shows_how_a_session_ended),
        cmocka_unit_test(lists_the_tasks_of_a_batch),
        cmocka_unit_test(draws_200_lanes_at_every_width),
        cmocka_unit_test(counts_the_lanes_that_it_leaves_out),
        cmocka_unit_test(too_many_bars_are_merged),
    };
    return cmocka_run_group_tests_name("svg", tests, NULL, NULL);
}
