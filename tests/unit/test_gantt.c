/* SPDX-License-Identifier: MIT */
#include "sim/gantt.h"

#include "tests/support/made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Columns of the widest line; escapes and bytes after a first one are none. */
static uint32_t columns_of(const char *text)
{
    uint32_t widest = 0;
    uint32_t columns = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\x1b') {
            text = strchr(text, 'm');
            assert_non_null(text);
        } else if (*text == '\n') {
            columns = 0;
        } else if (((unsigned char)*text & 0xc0) != 0x80) {
            columns++;
            widest = columns > widest ? columns : widest;
        }
    }
    return widest;
}

/* The chart of `made`; checked for what holds for every chart. */
static void
draw(struct strbuf *out, struct made *made, struct gantt_options options)
{
    gantt_text(out, &made->plan, &made->result, &options);
    uint32_t width = options.width == 0 ? GANTT_WIDTH : options.width;
    width = width < GANTT_WIDTH_MIN ? GANTT_WIDTH_MIN : width;
    assert_true(columns_of(strbuf_text(out)) <= width);
    assert_true(out->len > 0 && out->text[out->len - 1] == '\n');
    for (size_t ix = 0; ix < out->len; ix++) {
        unsigned char byte = (unsigned char)out->text[ix];
        assert_true(byte >= ' ' || byte == '\n' ||
                    (byte == 0x1b && options.colour));
        assert_true(byte < 0x7f || (byte >= 0x80 && options.unicode));
    }
    const char *escape = strrchr(strbuf_text(out), '\x1b');
    assert_true(escape == NULL || strncmp(escape, "\x1b[0m", 4) == 0);
}

static void assert_chart(struct made *made,
                         struct gantt_options options,
                         const char *expected)
{
    struct strbuf out = {0};
    draw(&out, made, options);
    assert_string_equal(strbuf_text(&out), expected);
    strbuf_release(&out);
}

static void assert_contains(struct made *made,
                            struct gantt_options options,
                            const char *expected)
{
    struct strbuf out = {0};
    draw(&out, made, options);
    assert_non_null(strstr(strbuf_text(&out), expected));
    strbuf_release(&out);
}

static void draws_the_flood_in_ascii(void **state)
{
    (void)state;
    struct made made;
    made_flood(&made, true);
    static const char expected[] =
        "        0      15m     30m     45m     1h      1h15m   1h30m\n"
        "        +------+-------+-------+-------+-------+-------+----\n"
        "slot 1  |RR|RRR|RR|RRR|IIIII|IIIIII|IIIII\n"
        "slot 2  |RR|RRR|RR|RRR|IIIII|IIIIII|IIIII|IIIII|IIIIII|IIIII\n"
        "slot 3  |RRR|RR|RR|RRR\n"
        "starved ^^^^^^^^^^^^^^ implement 26m\n"
        "\n"
        "II implement 9   RR review 12\n"
        "makespan 1h 38m, 3 slots 63 % busy\n";
    assert_chart(&made, (struct gantt_options){.width = 60}, expected);
    made_release(&made);
}

static void names_the_bars_that_have_room(void **state)
{
    (void)state;
    struct made made;
    made_flood(&made, false);
    static const char expected[] =
        "        0        15m       30m       45m       1h\n"
        "        +--------+---------+---------+---------+---------+--\n"
        "slot 1  |102-5 I|102-6 I|102-7 I\n"
        "slot 2  |101-2 I|101-3 I|101-4 I|101-5 I|101-6 I|101-7 I\n"
        "slot 3  |RRR|RRRR|RRR|RRRR|RRR|RRR|RRR|RRR|RRRR|RRR|RRRR|RRR\n"
        "\n"
        "II implement 9   RR review 12\n"
        "makespan 1h 18m, 3 slots 79 % busy\n";
    assert_chart(&made, (struct gantt_options){.width = 60}, expected);
    made_release(&made);
}

static void draws_each_task_in_unicode(void **state)
{
    (void)state;
    static const char expected[] =
        "        0             5m            10m\n"
        "        ├─────────────┼─────────────┼─────────────\n"
        "slot 1  ▏api-1 █████████████████████▏api-2 ▒▒▒▒▒▒!\n"
        "slot 2     ▏web-1 ▓▓▓▓▓▓▓▓▓▓\n"
        "\n"
        "        0             5m            10m\n"
        "        ├─────────────┼─────────────┼─────────────\n"
        "api-1   ████████████████████████████\n"
        "web-1   ···▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓\n"
        "api-2                 ··············▒▒▒▒▒▒▒▒▒▒▒▒▒!\n"
        "\n"
        "██ implement 1   ▒▒ gate 1   ▓▓ review 1\n"
        "· waiting   ! did not succeed\n"
        "makespan 15m, 2 slots 70 % busy\n";
    struct made made;
    made_init(&made);
    made_add(&made, "api-1", MADE_IMPLEMENT, (struct made_when){0, 0, 0, 600});
    made_add(&made, "web-1", MADE_REVIEW, (struct made_when){1, 0, 60, 420});
    made_add(&made, "api-2", MADE_GATE, (struct made_when){0, 300, 600, 900})
        ->end = SIM_END_FAILED;
    made_settle(&made);
    assert_chart(&made,
                 (struct gantt_options){
                     .width = 50,
                     .unicode = true,
                     .by_task = true,
                 },
                 expected);
    made_release(&made);
}

static void fits_every_width(void **state)
{
    (void)state;
    static const uint32_t widths[] = {0, 1, 40, 41, 80, 120, 200, 1000};
    for (size_t ix = 0; ix < sizeof(widths) / sizeof(widths[0]); ix++) {
        for (unsigned bits = 0; bits < 16; bits++) {
            struct made made;
            made_flood(&made, (bits & 8) != 0);
            struct gantt_options options = {
                .width = widths[ix],
                .colour = (bits & 1) != 0,
                .unicode = (bits & 2) != 0,
                .by_task = (bits & 4) != 0,
            };
            struct strbuf out = {0};
            draw(&out, &made, options);
            strbuf_release(&out);
            made_release(&made);
        }
    }
}

static void uses_the_whole_width(void **state)
{
    (void)state;
    struct made made;
    made_flood(&made, true);
    struct strbuf out = {0};
    draw(&out, &made, (struct gantt_options){.width = 200});
    assert_int_equal(columns_of(strbuf_text(&out)), 200);
    strbuf_release(&out);
    made_release(&made);
}

static void says_so_when_nothing_ran(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    assert_chart(&made,
                 (struct gantt_options){.by_task = true, .colour = true},
                 "nothing ran\nmakespan 0s, 0 slots 0 % busy\n");
    made_release(&made);
}

static void shows_sessions_that_take_no_time(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made, "now", MADE_MERGE, (struct made_when){0});
    made_settle(&made);
    struct gantt_options options = {.by_task = true};
    assert_contains(&made, options, "\nslot 1  M\n");
    assert_contains(&made, options, "\nnow     M\n");
    assert_contains(&made, options, "makespan 0s, 1 slot 0 % busy\n");
    made_release(&made);
}

static void more_slots_than_rows_are_counted(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    for (uint32_t lane = 0; lane < 200; lane++) {
        char id[24];
        snprintf(id, sizeof(id), "task-%u", lane);
        struct made_when when = {lane, 0, 0, 60 + lane};
        made_add(&made, id, MADE_IMPLEMENT, when);
    }
    made_settle(&made);
    struct gantt_options options = {.rows_max = 7, .by_task = true};
    assert_contains(&made, options, "\n... and 193 more slots\n");
    assert_contains(&made, options, "\n... and 193 more tasks\n");
    options.rows_max = 200;
    assert_contains(&made, options, "\nslot 200 |task-199 II");
    made_release(&made);
}

static void ids_cannot_send_escapes_to_the_terminal(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made,
             "\x1b[2J\a\xc3\xa9\x7f\r\n",
             MADE_IMPLEMENT,
             (struct made_when){0, 0, 0, 60});
    made_settle(&made);
    struct gantt_options options = {.by_task = true};
    assert_contains(&made, options, "\nslot 1     |?[2J?????? II");
    assert_contains(&made, options, "\n?[2J?????? II");
    made_release(&made);
}

static void long_ids_take_a_third_at_most(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made,
             "an-id-that-is-longer-than-a-third-of-the-chart",
             MADE_IMPLEMENT,
             (struct made_when){0, 0, 0, 60});
    made_settle(&made);
    struct gantt_options options = {.width = 60, .by_task = true};
    assert_contains(&made, options, "\nan-id-that-is-long~ IIII");
    made_release(&made);
}

static void batches_count_their_other_tasks(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    struct made_when when = {0, 0, 0, 60};
    made_add(&made, "r-1", MADE_REVIEW, when)->session = 1;
    made_add(&made, "r-2", MADE_REVIEW, when)->session = 1;
    made_add(&made, "r-3", MADE_REVIEW, when)->session = 1;
    made_settle(&made);
    struct gantt_options options = {0};
    assert_contains(&made, options, "\nslot 1  |r-1+2 RR");
    assert_contains(&made, options, "RR review 3\n");
    made_release(&made);
}

static void classes_of_one_initial_get_letters_of_their_own(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made.classes[MADE_IMPLEMENT].name = "gg";
    made.classes[MADE_MERGE].name = "gm";
    made.classes[MADE_REVIEW].name = "g";
    for (uint32_t ix = 0; ix < MADE_CLASS_COUNT; ix++) {
        struct made_when when = {ix, 0, 0, 60};
        made_add(&made, "t", (enum made_class)ix, when);
    }
    made_settle(&made);
    assert_contains(&made,
                    (struct gantt_options){0},
                    "GG gg 1   AA gate 1   MM gm 1   BB g 1\n");
    made_release(&made);
}

static void a_late_starvation_gets_a_line_for_its_text(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made, "r", MADE_REVIEW, (struct made_when){0, 0, 0, 600});
    made_add(&made, "i", MADE_IMPLEMENT, (struct made_when){0, 60, 600, 660});
    made_settle(&made);
    made.class_results[MADE_IMPLEMENT].starved_ns = 540 * INT64_C(1000000000);
    assert_contains(&made,
                    (struct gantt_options){.width = 40},
                    "^^^\n        implement 9m\n");
    made_release(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_the_flood_in_ascii),
        cmocka_unit_test(draws_each_task_in_unicode),
        cmocka_unit_test(names_the_bars_that_have_room),
        cmocka_unit_test(fits_every_width),
        cmocka_unit_test(uses_the_whole_width),
        cmocka_unit_test(says_so_when_nothing_ran),
        cmocka_unit_test(shows_sessions_that_take_no_time),
        cmocka_unit_test(more_slots_than_rows_are_counted),
        cmocka_unit_test(ids_cannot_send_escapes_to_the_terminal),
        cmocka_unit_test(long_ids_take_a_third_at_most),
        cmocka_unit_test(batches_count_their_other_tasks),
        cmocka_unit_test(classes_of_one_initial_get_letters_of_their_own),
        cmocka_unit_test(a_late_starvation_gets_a_line_for_its_text),
    };
    return cmocka_run_group_tests_name("gantt", tests, NULL, NULL);
}
