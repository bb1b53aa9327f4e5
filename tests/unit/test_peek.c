/* SPDX-License-Identifier: MIT */
#include "work/peek.h"

#include "base/macros.h"
#include "base/mem.h"
#include "tests/support/calls.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 256 << 10 }; /* bytes of a log at once */

struct place {
    char dir[64];
    char log[96];
};

static int set_up(void **state)
{
    static struct place place;
    (void)snprintf(place.dir, sizeof(place.dir), "/tmp/sluice-peek-XXXXXX");
    if (mkdtemp(place.dir) == NULL) {
        return -1;
    }
    (void)snprintf(place.log, sizeof(place.log), "%s/log", place.dir);
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    const struct place *place = *state;
    (void)unlink(place->log);
    return rmdir(place->dir);
}

static void write_log(const struct place *place, const char *text, size_t len)
{
    int fd = open(place->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    assert_int_equal(close(fd), 0);
}

/* The element is in *out, which the caller releases. */
static void
add_piece(struct strbuf *out, const char *dir, uint64_t first, bool ended)
{
    struct jsonw json = {.out = out};
    struct peek peek = {.token = 7, .first = first};
    strbuf_clear(out);
    peek_add_piece(&json, &peek, dir, ended);
}

static void add_copy(struct strbuf *out, const char *dir)
{
    struct jsonw json = {.out = out};
    strbuf_clear(out);
    peek_add_copy(&json, 7, dir);
}

static void a_piece_begins_where_it_is_wanted(void **state)
{
    const struct place *place = *state;
    struct strbuf out = {0};
    write_log(place, "one two", 7);
    add_piece(&out, place->dir, 4, false);
    assert_string_equal(strbuf_text(&out),
                        "{\"token\":7,\"start\":4,\"text\":\"dHdv\","
                        "\"ended\":false}");
    add_piece(&out, place->dir, 7, false); /* nothing new */
    assert_string_equal(strbuf_text(&out),
                        "{\"token\":7,\"start\":7,\"text\":\"\","
                        "\"ended\":false}");
    add_piece(&out, "", 4, true); /* there is no such session */
    assert_string_equal(strbuf_text(&out),
                        "{\"token\":7,\"start\":4,\"text\":\"\","
                        "\"ended\":true}");
    strbuf_release(&out);
}

static void base64_is_padded(void **state)
{
    const struct place *place = *state;
    struct strbuf out = {0};
    write_log(place, "a", 1);
    add_copy(&out, place->dir);
    assert_string_equal(strbuf_text(&out),
                        "{\"token\":7,\"bytes\":1,\"start\":0,"
                        "\"text\":\"YQ==\"}");
    write_log(place, "ab", 2);
    add_copy(&out, place->dir);
    assert_non_null(strstr(strbuf_text(&out), "\"text\":\"YWI=\""));
    strbuf_release(&out);
}

static void a_copy_is_the_end_of_a_long_log(void **state)
{
    const struct place *place = *state;
    struct strbuf out = {0};
    char *text = mem_zalloc(MOST + 3, 1);
    memset(text, 'x', MOST + 3);
    write_log(place, text, MOST + 3);
    add_copy(&out, place->dir);
    assert_ptr_equal(strstr(strbuf_text(&out),
                            "{\"token\":7,\"bytes\":262147,"
                            "\"start\":3,\"text\":\"eHh4"),
                     strbuf_text(&out));
    mem_free(text);
    strbuf_release(&out);
}

/* A log that is not a file is none, whoever has made it. */
static void another_kind_of_file_is_no_log(void **state)
{
    const struct place *place = *state;
    struct strbuf out = {0};
    static const char none[] =
        "{\"token\":7,\"bytes\":0,\"start\":0,\"text\":\"\"}";
    add_copy(&out, place->dir);
    assert_string_equal(strbuf_text(&out), none);
    add_copy(&out, place->log); /* no such directory */
    assert_string_equal(strbuf_text(&out), none);
    assert_int_equal(mkdir(place->log, 0700), 0);
    add_copy(&out, place->dir);
    assert_string_equal(strbuf_text(&out), none);
    assert_int_equal(rmdir(place->log), 0);
    assert_int_equal(symlink("/etc/passwd", place->log), 0);
    add_copy(&out, place->dir);
    assert_string_equal(strbuf_text(&out), none);
    strbuf_release(&out);
}

static void a_log_that_cannot_be_read_is_empty(void **state)
{
    const struct place *place = *state;
    struct strbuf out = {0};
    write_log(place, "text", 4);
    for (unsigned n = 1; calls_more(); n++) {
        calls_fail(&(struct calls_fault){.first = n});
        add_piece(&out, place->dir, 1, false);
        bool whole = !calls_end() || strcmp(calls_failed(), "close") == 0;
        assert_string_equal(strbuf_text(&out),
                            whole ? "{\"token\":7,\"start\":1,\"text\":"
                                    "\"ZXh0\",\"ended\":false}"
                                  : "{\"token\":7,\"start\":1,\"text\":\"\","
                                    "\"ended\":false}");
    }
    strbuf_release(&out);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_piece_begins_where_it_is_wanted),
        CASE(base64_is_padded),
        CASE(a_copy_is_the_end_of_a_long_log),
        CASE(another_kind_of_file_is_no_log),
        CASE(a_log_that_cannot_be_read_is_empty),
    };
    return cmocka_run_group_tests_name("peek", tests, NULL, NULL);
}
