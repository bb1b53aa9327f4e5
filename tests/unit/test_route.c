/* SPDX-License-Identifier: MIT */
#include "http/route.h"

#include "base/macros.h"
#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOG "/runs/{run}/tasks/{task*}/attempts/{number}/log"
#define TASK "/runs/{run}/tasks/{task*}"

enum { LONG = 1 << 16 };

/* Parts of a path that fits a pattern; the rest is NULL. */
struct row {
    const char *pattern;
    const char *path;
    const char *parts[ROUTE_PARTS_MAX];
};

static void expect_parts(const struct row *row)
{
    struct route_parts parts;
    uint32_t count = 0;
    if (!route_match(row->pattern, row->path, &parts)) {
        fail_msg("%s does not fit %s", row->path, row->pattern);
    }
    for (; count < ROUTE_PARTS_MAX && row->parts[count] != NULL; count++) {
        const struct strbuf *part = &parts.items[count];
        assert_string_equal(strbuf_text(part), row->parts[count]);
        assert_int_equal(part->len, strlen(row->parts[count]));
    }
    assert_int_equal(parts.count, count);
    route_release(&parts);
    assert_int_equal(parts.count, 0);
}

static void expect_none(const char *pattern, const char *path)
{
    struct route_parts parts;
    memset(&parts, 0xff, sizeof(parts));
    if (route_match(pattern, path, &parts)) {
        fail_msg("%s fits %s", path, pattern);
    }
    /* Nothing is left to free. */
    assert_int_equal(parts.count, 0);
    for (size_t ix = 0; ix < ROUTE_PARTS_MAX; ix++) {
        assert_null(parts.items[ix].text);
    }
    route_release(&parts);
}

static void expect_all(const struct row *rows, size_t count)
{
    for (size_t ix = 0; ix < count; ix++) {
        expect_parts(&rows[ix]);
    }
}

static void
expect_none_of(const char *pattern, const char *const *paths, size_t count)
{
    for (size_t ix = 0; ix < count; ix++) {
        expect_none(pattern, paths[ix]);
    }
}

static void a_text_fits_itself_only(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "/",
        "/statu",
        "/status/",
        "/statuss",
        "//status",
        "status",
        "/Status",
        "/status?x",
        "/%73tatus", /* a path is compared as it was sent */
        "/status%2f",
        "/./status",
        "/x/../status",
        " /status",
        "/status ",
    };
    expect_parts(&(struct row){"/status", "/status", {NULL}});
    expect_none_of("/status", others, ARRAY_COUNT(others));
    expect_parts(&(struct row){"/", "/", {NULL}});
    expect_none("/", "");
    expect_none("/", "//");
}

static void a_part_is_one_segment(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"/runs/{run}", "/runs/made", {"made"}},
        {"/runs/{run}", "/runs/-", {"-"}},
        {"/runs/{run}", "/runs/.", {"."}},
        {"/runs/{run}", "/runs/..", {".."}},
        {"/runs/{run}", "/runs/{run}", {"{run}"}},
        {"/runs/{run}", "/runs/a b", {"a b"}},
        {"/runs/{run}", "/runs/a+b", {"a+b"}}, /* only a query has that */
        {"/runs/{run}", "/runs/\xc3\xa4", {"\xc3\xa4"}},
        {"/runs/{run}", "/runs/\xff", {"\xff"}},
        {"/runs/{run}/tasks", "/runs/made/tasks", {"made"}},
        {"/runs/{run}/tasks", "/runs/tasks/tasks", {"tasks"}},
        {"/{a}/{b}/{c}", "/1/2/3", {"1", "2", "3"}},
        {"/{a}/x/{b}", "/x/x/x", {"x", "x"}},
    };
    static const char *const others[] = {
        "",
        "/",
        "/runs",
        "/runs/",
        "/runs//",
        "/runs//made",
        "/runs/made/",
        "/runs/made/tasks",
        "/runs/a/b",
        "//runs/made",
        "/run/made",
    };
    expect_all(rows, ARRAY_COUNT(rows));
    expect_none_of("/runs/{run}", others, ARRAY_COUNT(others));
    expect_none("/runs/{run}/tasks", "/runs//tasks");
    expect_none("/runs/{run}/tasks", "/runs/made/tasks/");
    expect_none("/runs/{run}/tasks", "/runs/made/task");
    expect_none("/{a}/{b}/{c}", "/1/2");
    expect_none("/{a}/{b}/{c}", "/1/2/");
    expect_none("/{a}/{b}/{c}", "/1/2/3/4");
    expect_none("/{a}/{b}/{c}", "/1//3");
}

static void a_part_may_be_several_segments(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {TASK, "/runs/r/tasks/a", {"r", "a"}},
        {TASK, "/runs/r/tasks/a/b", {"r", "a/b"}},
        {TASK, "/runs/r/tasks/a/b/c/d/e", {"r", "a/b/c/d/e"}},
        {TASK, "/runs/r/tasks/tasks", {"r", "tasks"}},
        {TASK, "/runs/r/tasks/tasks/tasks", {"r", "tasks/tasks"}},
        {TASK, "/runs/tasks/tasks/tasks", {"tasks", "tasks"}},
        /* It is for the handler to say that there is no such task. */
        {TASK, "/runs/r/tasks/a/", {"r", "a/"}},
        {TASK, "/runs/r/tasks//", {"r", "/"}},
        {TASK, "/runs/r/tasks/../../secret", {"r", "../../secret"}},
        {TASK, "/runs/r/tasks/a/attempts/1/log", {"r", "a/attempts/1/log"}},
    };
    expect_all(rows, ARRAY_COUNT(rows));
    expect_none(TASK, "/runs/r/tasks");
    expect_none(TASK, "/runs/r/tasks/");
    expect_none(TASK, "/runs/r/s/tasks/a");
    expect_none(TASK, "/runs//tasks/a");
}

/* As the task has any number of segments, the last suffix that fits counts. */
static void a_suffix_follows_several_segments(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {LOG, "/runs/r/tasks/a/attempts/1/log", {"r", "a", "1"}},
        {LOG, "/runs/r/tasks/a/b/attempts/12/log", {"r", "a/b", "12"}},
        {LOG, "/runs/r/tasks/a/attempts/x/log", {"r", "a", "x"}},
        {LOG,
         "/runs/r/tasks/a/attempts/1/log/attempts/2/log",
         {"r", "a/attempts/1/log", "2"}},
        {LOG,
         "/runs/r/tasks/attempts/attempts/attempts/log",
         {"r", "attempts", "attempts"}},
        {LOG, "/runs/r/tasks/a//attempts/1/log", {"r", "a/", "1"}},
        {"{all*}", "/", {"/"}},
        {"{all*}b", "bbb", {"bb"}},
        {"{first*}/{second*}", "a/b/c", {"a/b", "c"}},
    };
    static const char *const others[] = {
        "/runs/r/tasks/a/attempts/1/log/",
        "/runs/r/tasks/a/attempts/1/logs",
        "/runs/r/tasks/a/attempts/1",
        "/runs/r/tasks/a/attempts//log",
        "/runs/r/tasks/a/attempts/1/2/log",
        "/runs/r/tasks/attempts/1/log",
        "/runs/r/tasks//attempts/1/lo",
        "/runs/r/attempts/1/log",
        "/runs/r/tasks/a/ATTEMPTS/1/log",
        "/runs/r/tasks/a%2fattempts/1/log",
    };
    expect_all(rows, ARRAY_COUNT(rows));
    expect_none_of(LOG, others, ARRAY_COUNT(others));
    expect_none("{all*}b", "b");
    expect_none("{all*}", "");
}

static void escapes_are_decoded_once(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"/{a}", "/%41", {"A"}},
        {"/{a}", "/x%41", {"xA"}},
        {"/{a}", "/%41x", {"Ax"}},
        {"/{a}", "/%41%42%43", {"ABC"}},
        {"/{a}", "/a%2Fb", {"a/b"}}, /* ... and divides nothing */
        {"/{a}", "/a%2fb", {"a/b"}},
        {"/{a}", "/%2e%2E%2f%2e.", {"../.."}},
        {"/{a}", "/%2541", {"%41"}},
        {"/{a}", "/%25", {"%"}},
        {"/{a}", "/%25%32%35", {"%25"}},
        {"/{a}", "/%0d%0a", {"\r\n"}},
        {"/{a}", "/%01%7f", {"\x01\x7f"}},
        {"/{a}", "/%C3%A4%ff", {"\xc3\xa4\xff"}},
        {"/{a}", "/%3Cscript%3E", {"<script>"}},
        {"/{a}", "/%7Ba%7D", {"{a}"}},
        {"/{a}/{b}", "/%2f/%2f", {"/", "/"}},
        {TASK, "/runs/%72/tasks/a%2Fb/c", {"r", "a/b/c"}},
    };
    expect_all(rows, ARRAY_COUNT(rows));
}

static void every_byte_but_nul_can_be_escaped(void **state)
{
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char lower[8];
        char upper[8];
        const char text[] = {(char)byte, '\0'};
        (void)snprintf(lower, sizeof(lower), "/%%%02x", (unsigned)byte);
        (void)snprintf(upper, sizeof(upper), "/%%%02X", (unsigned)byte);
        expect_parts(&(struct row){"/{a}", lower, {text}});
        expect_parts(&(struct row){"/{a}", upper, {text}});
    }
}

static void bad_escapes_fit_nothing(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/%",
        "/%4",
        "/a%",
        "/a%4",
        "/%%",
        "/%%41",
        "/%g1",
        "/%1g",
        "/%G1",
        "/%:0",
        "/%/1",
        "/%-1",
        "/%+1",
        "/% 1",
        "/%1 ",
        "/%0x",
        "/%x41",
        "/%u0041",
        "/%\xff\xff",
        /* NUL, which would end a string early */
        "/%00",
        "/a%00b",
        "/%41%00",
        "/%00%41",
        "/%2500%00",
    };
    expect_none_of("/{a}", paths, ARRAY_COUNT(paths));
    expect_none_of("/{a*}", paths, ARRAY_COUNT(paths));
    /* Nor in any other part: those before it are freed. */
    expect_none("/{a}/{b}/{c}", "/%41/%42/%");
    expect_none("/{a}/{b}/{c}", "/%41/%4/%43");
    expect_none("/{a}/{b}", "/%/b");
    /* An escape does not reach over the end of its part. */
    expect_none("/{a}/41", "/%/41");
    expect_none("/{a}/1", "/%4/1");
    expect_none("/{a*}41", "/%41");
    expect_none("/{a*}1", "/x%41");
}

/* A long path takes neither a deep stack nor a time that grows with its square.
 */
static void a_path_may_be_long(void **state)
{
    (void)state;
    char *path = malloc(LONG);
    assert_non_null(path);
    memset(path, 'a', LONG - 1);
    path[LONG - 1] = '\0';
    path[0] = '/';
    expect_parts(&(struct row){"/{a}", path, {path + 1}});
    expect_parts(&(struct row){"/{a*}", path, {path + 1}});
    expect_none("/{a*}/log", path);
    expect_none(LOG, path);
    for (size_t ix = 0; ix < LONG - 1; ix++) {
        path[ix] = ix % 2 == 0 ? '/' : 'a';
    }
    expect_none("/{a}", path);
    expect_parts(&(struct row){"/{a*}", path, {path + 1}});
    expect_none("/{a*}/log", path);
    expect_none("/{a*}/{b}/log", path);
    memset(path, '/', LONG - 1);
    expect_none("/{a}", path);
    expect_none("/{a*}/{b}/log", path);
    size_t count = (LONG - 2) / 3;
    for (size_t ix = 0; ix < count; ix++) {
        memcpy(path + 1 + 3 * ix, "%41", 3);
    }
    path[1 + 3 * count] = '\0';
    struct route_parts parts;
    assert_true(route_match("/{a}", path, &parts));
    assert_int_equal(parts.items[0].len, count);
    route_release(&parts);
    free(path);
}

/* Nearly a suffix, again and again. */
static void a_suffix_may_almost_fit_many_times(void **state)
{
    (void)state;
    struct strbuf path = {0};
    struct route_parts parts;
    strbuf_adds(&path, "/runs/r/tasks/t");
    for (int ix = 0; ix < 1000; ix++) {
        strbuf_adds(&path, "/attempts/1/lo");
    }
    expect_none(LOG, strbuf_text(&path));
    strbuf_adds(&path, "/attempts/2/log");
    assert_true(route_match(LOG, strbuf_text(&path), &parts));
    assert_string_equal(strbuf_text(&parts.items[2]), "2");
    route_release(&parts);
    strbuf_release(&path);
}

static void releasing_twice_is_harmless(void **state)
{
    (void)state;
    struct route_parts parts;
    assert_true(route_match("/{a}/{b}", "/1/2", &parts));
    route_release(&parts);
    route_release(&parts);
    assert_true(route_match("/{a}/{b}", "/3/4", &parts));
    assert_string_equal(strbuf_text(&parts.items[1]), "4");
    route_release(&parts);
}

static void match_too_many(void *ctx)
{
    (void)route_match("/{a}/{b}/{c}/{d}", "/1/2/3/4", ctx);
}

static void match_unclosed(void *ctx)
{
    (void)route_match("/{a", "/1", ctx);
}

static void a_wrong_pattern_is_a_bug(void **state)
{
    (void)state;
    struct route_parts parts;
    death_expect(match_too_many, &parts, "ROUTE_PARTS_MAX");
    death_expect(match_unclosed, &parts, "close");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_fits_itself_only),
        cmocka_unit_test(a_part_is_one_segment),
        cmocka_unit_test(a_part_may_be_several_segments),
        cmocka_unit_test(a_suffix_follows_several_segments),
        cmocka_unit_test(escapes_are_decoded_once),
        cmocka_unit_test(every_byte_but_nul_can_be_escaped),
        cmocka_unit_test(bad_escapes_fit_nothing),
        cmocka_unit_test(a_path_may_be_long),
        cmocka_unit_test(a_suffix_may_almost_fit_many_times),
        cmocka_unit_test(releasing_twice_is_harmless),
        cmocka_unit_test(a_wrong_pattern_is_a_bug),
    };
    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
