/* SPDX-License-Identifier: MIT */
#include "sim/script.h"

#include "base/duration.h"
#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void add_good(struct sim_script *script, const char *line)
{
    struct diag diag = {0};
    if (sim_script_add(script, line, NULL, &diag) != ERR_OK) {
        fail_msg("%s: %s", line, diag.text);
    }
}

/* The one order of a line; the script owns its name. */
static struct script_at request_of(struct sim_script *script, const char *line)
{
    sim_script_release(script);
    add_good(script, line);
    assert_int_equal(script->request_count, 1);
    assert_int_equal(script->end_count, 0);
    return script->requests[0];
}

static void reads_every_request(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum script_request request;
        const char *name;
    } cases[] = {
        {"at 10m pause", SCRIPT_PAUSE, NULL},
        {"at 10m resume", SCRIPT_RESUME, NULL},
        {"at 10m hold a/b", SCRIPT_HOLD, "a/b"},
        {"at 10m release a#1", SCRIPT_RELEASE, "a#1"},
        {"at 10m retry a:1", SCRIPT_RETRY, "a:1"},
        {"at 10m retry run", SCRIPT_RETRY, "run"},
        {"at 10m skip a", SCRIPT_SKIP, "a"},
        {"at 10m cancel a", SCRIPT_CANCEL, "a"},
        {"at 10m cancel run", SCRIPT_CANCEL, "run"},
        {"at 10m revoke a", SCRIPT_REVOKE, "a"},
        {"at 10m add more.yaml", SCRIPT_ADD, "more.yaml"},
        {"at 10m cap 1", SCRIPT_CAP, NULL},
        {"at 10m limit review 1", SCRIPT_LIMIT, "review"},
        {"at 10m approve a", SCRIPT_APPROVE, "a"},
        {"at 10m first a/b", SCRIPT_FIRST, "a/b"},
        {"at 10m rerun a", SCRIPT_RERUN, "a"},
        {"at 10m priority a 0", SCRIPT_PRIORITY, "a"},
    };
    struct sim_script script = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct script_at at = request_of(&script, cases[ix].line);
        assert_int_equal(at.at_ns, 10 * MINUTE_NS);
        assert_int_equal(at.request, cases[ix].request);
        assert_null(at.text);
        if (cases[ix].name == NULL) {
            assert_null(at.name);
        } else {
            assert_string_equal(at.name, cases[ix].name);
        }
    }
    sim_script_release(&script);
}

static void reads_what_a_cap_and_a_limit_can_be(void **state)
{
    (void)state;
    struct sim_script script = {0};
    struct script_at at = request_of(&script, "at 1s cap 0");
    assert_int_equal(at.max, 0);
    assert_int_equal(at.percent, 0);
    at = request_of(&script, "at 1s cap 1000000");
    assert_int_equal(at.max, 1000000);
    at = request_of(&script, "at 1s limit review 7");
    assert_int_equal(at.max, 7);
    assert_int_equal(at.percent, 0);
    at = request_of(&script, "at 1s limit review 50%");
    assert_int_equal(at.percent, 50);
    at = request_of(&script, "at 1s limit review 100%");
    assert_int_equal(at.percent, 100);
    at = request_of(&script, "at 1s limit review none");
    assert_true(at.max == INT64_MAX);
    assert_int_equal(at.percent, 0);
    sim_script_release(&script);
}

static void reads_every_end(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum script_outcome outcome;
        const char *name;
        uint32_t count;
    } cases[] = {
        {"fail t:2", SCRIPT_FAIL, "t", 2},
        {"fail t", SCRIPT_FAIL, "t", 1},
        {"fail a:b:3", SCRIPT_FAIL, "a:b", 3},
        {"fail api#5:2", SCRIPT_FAIL, "api#5", 2},
        {"changes t/review:1", SCRIPT_CHANGES, "t/review", 1},
        {"checkpoint t:4", SCRIPT_CHECKPOINT, "t", 4},
        {"fatal t:2", SCRIPT_FATAL, "t", 2},
        {"fatal t", SCRIPT_FATAL, "t", 1},
        {"later t:3", SCRIPT_LATER, "t", 3},
        {"later t:3=10m", SCRIPT_LATER, "t", 3},
        {"later t=1h30m", SCRIPT_LATER, "t", 1},
        {"block t", SCRIPT_BLOCK, "t", 1},
        {"block t:1", SCRIPT_BLOCK, "t:1", 1},
        {"refuse local:3", SCRIPT_REFUSE, "local", 3},
        {"reject claude", SCRIPT_REFUSE, "claude", 1},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct sim_script script = {0};
        add_good(&script, cases[ix].line);
        assert_int_equal(script.request_count, 0);
        assert_int_equal(script.end_count, 1);
        assert_int_equal(script.ends[0].outcome, cases[ix].outcome);
        assert_string_equal(script.ends[0].name, cases[ix].name);
        assert_int_equal(script.ends[0].count, cases[ix].count);
        sim_script_release(&script);
    }
}

static void reads_how_much_later(void **state)
{
    (void)state;
    struct sim_script script = {0};
    add_good(&script, "later t:2=90s");
    add_good(&script, "later t:2");
    assert_int_equal(script.ends[0].later_ns, 90 * SECOND_NS);
    assert_string_equal(script.ends[0].word, "t:2");
    assert_int_equal(script.ends[1].later_ns, 0);
    sim_script_release(&script);
}

static void reads_priorities(void **state)
{
    (void)state;
    struct sim_script script = {0};
    assert_int_equal(request_of(&script, "at 1s priority a 0").max, 0);
    assert_int_equal(request_of(&script, "at 1s priority a 9").max, 9);
    sim_script_release(&script);
}

static const char at_form[] =
    "expected \"at TIME REQUEST\", such as \"at 10m cap 1\"";
static const struct {
    const char *line;
    const char *text;
} wrong_lines[] = {
    {"at", at_form},
    {"at 10m", at_form},
    {"at now cap 1", at_form},
    {"at 10 cap 1", at_form},
    {"at -5m cap 1", at_form},
    {"at 400d cap 1", at_form},
    {"at cap 1", at_form},
    {"at 10m stop",
     "unknown request \"stop\" (known: add, approve, cancel, cap, first, "
     "hold, limit, pause, priority, release, rerun, resume, retry, revoke, "
     "skip)"},
    {"at 10m CAP 1",
     "unknown request \"CAP\" (known: add, approve, cancel, cap, first, "
     "hold, limit, pause, priority, release, rerun, resume, retry, revoke, "
     "skip)"},
    {"at 10m cap", "expected \"cap NUMBER\""},
    {"at 10m cap x", "expected \"cap NUMBER\""},
    {"at 10m cap -1", "expected \"cap NUMBER\""},
    {"at 10m cap +1", "expected \"cap NUMBER\""},
    {"at 10m cap 1x", "expected \"cap NUMBER\""},
    {"at 10m cap 50%", "expected \"cap NUMBER\""},
    {"at 10m cap none", "expected \"cap NUMBER\""},
    {"at 10m cap 1000001", "expected \"cap NUMBER\""},
    {"at 10m cap 99999999999999999999", "expected \"cap NUMBER\""},
    {"at 10m cap 1 2", "expected \"cap NUMBER\""},
    {"at 10m limit", "expected \"limit NAME NUMBER|PERCENT%|none\""},
    {"at 10m limit a", "expected \"limit NAME NUMBER|PERCENT%|none\""},
    {"at 10m limit a b", "expected \"limit NAME NUMBER|PERCENT%|none\""},
    {"at 10m limit a 0%", "expected \"limit NAME NUMBER|PERCENT%|none\""},
    {"at 10m limit a 101%", "expected \"limit NAME NUMBER|PERCENT%|none\""},
    {"at 10m limit a 50%%", "expected \"limit NAME NUMBER|PERCENT%|none\""},
    {"at 10m limit a 1 2", "expected \"limit NAME NUMBER|PERCENT%|none\""},
    {"at 10m pause now", "expected \"pause\""},
    {"at 10m resume all", "expected \"resume\""},
    {"at 10m hold", "expected \"hold NAME\""},
    {"at 10m release", "expected \"release NAME\""},
    {"at 10m retry a b", "expected \"retry NAME\""},
    {"at 10m skip", "expected \"skip NAME\""},
    {"at 10m cancel", "expected \"cancel NAME\""},
    {"at 10m revoke", "expected \"revoke NAME\""},
    {"at 10m add", "expected \"add NAME\""},
    {"at 10m add a b", "expected \"add NAME\""},
    {"at 10m approve", "expected \"approve NAME\""},
    {"at 10m first a b", "expected \"first NAME\""},
    {"at 10m rerun", "expected \"rerun NAME\""},
    {"at 10m priority a", "expected \"priority NAME 0..9\""},
    {"at 10m priority 1", "expected \"priority NAME 0..9\""},
    {"at 10m priority a 10", "expected \"priority NAME 0..9\""},
    {"at 10m priority a none", "expected \"priority NAME 0..9\""},
    {"at 1 2 3 4 5 6", "too many words"},
    {"fail", "expected \"fail TASK:COUNT\""},
    {"fail t:0", "expected \"fail TASK:COUNT\""},
    {"fail t:", "expected \"fail TASK:COUNT\""},
    {"fail t:x", "expected \"fail TASK:COUNT\""},
    {"fail t:-1", "expected \"fail TASK:COUNT\""},
    {"fail t:1x", "expected \"fail TASK:COUNT\""},
    {"fail t:1000001", "expected \"fail TASK:COUNT\""},
    {"fail :1", "expected \"fail TASK:COUNT\""},
    {"fail t u", "expected \"fail TASK:COUNT\""},
    {"changes", "expected \"changes TASK:COUNT\""},
    {"checkpoint", "expected \"checkpoint TASK:COUNT\""},
    {"fatal", "expected \"fatal TASK:COUNT\""},
    {"fatal t:1=5m", "expected \"fatal TASK:COUNT\""},
    {"later", "expected \"later TASK:COUNT[=DURATION]\""},
    {"later t:0", "expected \"later TASK:COUNT[=DURATION]\""},
    {"later t:1=", "expected \"later TASK:COUNT[=DURATION]\""},
    {"later t:1=0s", "expected \"later TASK:COUNT[=DURATION]\""},
    {"later t:1=soon", "expected \"later TASK:COUNT[=DURATION]\""},
    {"later t:1=400d", "expected \"later TASK:COUNT[=DURATION]\""},
    {"later =5m", "expected \"later TASK:COUNT[=DURATION]\""},
    {"block", "expected \"block TASK\""},
    {"block a b", "expected \"block TASK\""},
    {"refuse", "expected \"refuse PROVIDER:COUNT\""},
    {"refuse local:0", "expected \"refuse PROVIDER:COUNT\""},
    {"explode t",
     "unknown word \"explode\" (known: at, block, changes, checkpoint, fail, "
     "fatal, later, refuse)"},
};

static void says_what_is_wrong(void **state)
{
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(wrong_lines); ix++) {
        struct sim_script script = {0};
        struct diag diag = {0};
        assert_int_equal(
            sim_script_add(&script, wrong_lines[ix].line, NULL, &diag),
            ERR_INVALID);
        assert_string_equal(diag.text, wrong_lines[ix].text);
        assert_int_equal(script.request_count, 0);
        assert_int_equal(script.end_count, 0);
        sim_script_release(&script);
    }
}

static void errors_need_no_diag(void **state)
{
    (void)state;
    struct sim_script script = {0};
    assert_int_equal(sim_script_add(&script, "at 1m", NULL, NULL), ERR_INVALID);
    assert_int_equal(sim_script_read(&script, "x\n", 2, NULL, NULL),
                     ERR_INVALID);
    sim_script_release(&script);
}

static void keeps_requests_sorted_by_time(void **state)
{
    (void)state;
    struct sim_script script = {0};
    add_good(&script, "at 3m cap 3");
    add_good(&script, "at 1m cap 1");
    add_good(&script, "at 2m cap 2");
    add_good(&script, "at 1m cap 11");
    add_good(&script, "at 0s cap 0");
    static const int64_t wanted[] = {0, 1, 11, 2, 3};
    static const uint32_t places[] = {4, 1, 3, 2, 0};
    assert_int_equal(script.request_count, 5);
    for (uint32_t ix = 0; ix < 5; ix++) {
        assert_int_equal(script.requests[ix].max, wanted[ix]);
        assert_int_equal(script.requests[ix].place, places[ix]);
    }
    sim_script_release(&script);
    assert_int_equal(script.request_count, 0);
    assert_null(script.requests);
}

static void comments_and_empty_lines_say_nothing(void **state)
{
    (void)state;
    struct sim_script script = {0};
    static const char text[] = "# first\n"
                               "\n"
                               "  \t\r\n"
                               "\tat 1m  cap\t2 # less\r\n"
                               "fail t:2 #twice\n"
                               "block u";
    struct diag diag = {0};
    assert_int_equal(
        sim_script_read(&script, text, sizeof(text) - 1, NULL, &diag),
        ERR_OK);
    assert_int_equal(script.request_count, 1);
    assert_int_equal(script.requests[0].max, 2);
    assert_int_equal(script.end_count, 2);
    assert_string_equal(script.ends[0].name, "t");
    assert_string_equal(script.ends[1].name, "u");
    sim_script_release(&script);
}

static void an_empty_file_is_an_empty_script(void **state)
{
    (void)state;
    struct sim_script script = {0};
    assert_int_equal(sim_script_read(&script, "", 0, NULL, NULL), ERR_OK);
    assert_int_equal(script.request_count, 0);
    assert_int_equal(script.end_count, 0);
    sim_script_release(&script);
}

static void names_the_line_of_an_error(void **state)
{
    (void)state;
    struct sim_script script = {0};
    static const char text[] = "at 1m cap 2\n# no\n\nat 2m cap\nexplode\n";
    struct diag diag = {0};
    assert_int_equal(
        sim_script_read(&script, text, sizeof(text) - 1, NULL, &diag),
        ERR_INVALID);
    assert_string_equal(diag.text, "4: expected \"cap NUMBER\"");
    sim_script_release(&script);
}

static void refuses_a_nul_byte(void **state)
{
    (void)state;
    struct sim_script script = {0};
    struct diag diag = {0};
    static const char text[] = "at 1m cap 2\nfail t\0:2\n";
    assert_int_equal(
        sim_script_read(&script, text, sizeof(text) - 1, NULL, &diag),
        ERR_INVALID);
    assert_non_null(strstr(diag.text, "the script contains a NUL byte"));
    assert_int_equal(script.request_count, 0);
    sim_script_release(&script);
}

static void files_are_relative_to_the_script(void **state)
{
    (void)state;
    struct sim_script script = {0};
    struct diag diag = {0};
    static const char text[] = "at 1m add more.yaml\n"
                               "at 2m add sub/more.yaml\n"
                               "at 3m add /abs/more.yaml\n"
                               "at 4m hold more\n";
    assert_int_equal(
        sim_script_read(&script, text, sizeof(text) - 1, "plans/x", &diag),
        ERR_OK);
    assert_string_equal(script.requests[0].name, "plans/x/more.yaml");
    assert_string_equal(script.requests[1].name, "plans/x/sub/more.yaml");
    assert_string_equal(script.requests[2].name, "/abs/more.yaml");
    assert_string_equal(script.requests[3].name, "more");
    sim_script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_request),
        cmocka_unit_test(reads_what_a_cap_and_a_limit_can_be),
        cmocka_unit_test(reads_every_end),
        cmocka_unit_test(reads_how_much_later),
        cmocka_unit_test(reads_priorities),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(errors_need_no_diag),
        cmocka_unit_test(keeps_requests_sorted_by_time),
        cmocka_unit_test(comments_and_empty_lines_say_nothing),
        cmocka_unit_test(an_empty_file_is_an_empty_script),
        cmocka_unit_test(names_the_line_of_an_error),
        cmocka_unit_test(refuses_a_nul_byte),
        cmocka_unit_test(files_are_relative_to_the_script),
    };
    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
