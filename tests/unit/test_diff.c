/* SPDX-License-Identifier: MIT */
/* What diff_ask() makes of the ways in which sluice-git can end, and of calls
 * that fail. A shell script takes the place of sluice-git. */
#include "work/diff.h"

#include "base/macros.h"
#include "tests/support/calls.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct diff_wanted wanted = {
    .run = "run",
    .owner = "owner",
    .repo = "api",
    .path = "/repo",
    .home = "/home",
    .group = "issue",
};

static char program[] = "/tmp/sluice-diff-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(program);
    return fd >= 0 && close(fd) == 0 && chmod(program, 0700) == 0 &&
                   setenv("SLUICE_GIT", program, 1) == 0
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(program);
}

/* Have sluice-git be these commands. */
static void set_program(const char *commands)
{
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\n%s\n", commands) > 0);
    assert_int_equal(fclose(file), 0);
}

/* Nothing is left of a child. */
static void assert_reaped(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static enum err ask(const struct diff_wanted *what, struct strbuf *out)
{
    struct diag diag = {0};
    strbuf_clear(out);
    enum err err = diff_ask(out, what, &diag);
    assert_true((err == ERR_OK) == (diag.text[0] == '\0'));
    assert_reaped();
    return err;
}

static void the_answer_is_what_it_prints(void **state)
{
    struct strbuf out = {0};
    (void)state;
    set_program("echo \"$*\"");
    assert_int_equal(ask(&wanted, &out), ERR_OK);
    assert_string_equal(strbuf_text(&out),
                        "diff --run run --owner owner --repo api --path /repo "
                        "--store /home --task issue --group issue\n");
    struct diff_wanted other = wanted;
    other.url = "ssh://hub/api.git";
    other.shared = true;
    other.begun = true;
    assert_int_equal(ask(&other, &out), ERR_OK);
    assert_string_equal(strbuf_text(&out),
                        "diff --run run --owner owner --repo api --url "
                        "ssh://hub/api.git --store /home --task issue --group "
                        "issue --shared --begun\n");
    strbuf_release(&out);
}

static void a_program_that_fails_is_an_error(void **state)
{
    struct strbuf out = {0};
    (void)state;
    static const char *const commands[] = {
        "echo '{}'; exit 1",
        "echo '{}'; kill -KILL $$",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
        set_program(commands[ix]);
        assert_int_equal(ask(&wanted, &out), ERR_UNAVAILABLE);
    }
    assert_int_equal(setenv("SLUICE_GIT", "/none", 1), 0);
    assert_int_equal(ask(&wanted, &out), ERR_UNAVAILABLE);
    assert_int_equal(setenv("SLUICE_GIT", program, 1), 0);
    strbuf_release(&out);
}

static void an_endless_answer_is_cut(void **state)
{
    struct strbuf out = {0};
    (void)state;
    set_program("cat /dev/zero");
    assert_int_equal(ask(&wanted, &out), ERR_LIMIT);
    strbuf_release(&out);
}

/* The time of poll() is over at once. */
static void a_program_that_hangs_is_killed(void **state)
{
    struct strbuf out = {0};
    (void)state;
    set_program("sleep 1000 & wait");
    calls_fail(&(struct calls_fault){
        .only = "poll",
        .first = 1,
        .error = CALLS_NOTHING,
    });
    assert_int_equal(ask(&wanted, &out), ERR_TIMEOUT);
    assert_true(calls_end());
    strbuf_release(&out);
}

static void interrupted_calls_are_repeated(void **state)
{
    struct strbuf out = {0};
    (void)state;
    static const char *const names[] = {"poll", "read", "waitpid"};
    set_program("echo '{}'");
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        calls_fail(&(struct calls_fault){
            .only = names[ix],
            .first = 1,
            .count = 3,
            .error = EINTR,
        });
        assert_int_equal(ask(&wanted, &out), ERR_OK);
        assert_true(calls_end());
        assert_string_equal(strbuf_text(&out), "{}\n");
    }
    strbuf_release(&out);
}

static void any_call_can_fail(void **state)
{
    struct strbuf out = {0};
    unsigned failed = 0;
    (void)state;
    set_program("echo '{}'");
    for (unsigned n = 1; calls_more(); n++) {
        struct diag diag = {0};
        strbuf_clear(&out);
        calls_fail(&(struct calls_fault){.first = n});
        enum err err = diff_ask(&out, &wanted, &diag);
        bool struck = calls_end();
        if (struck && strcmp(calls_failed(), "close") != 0) {
            failed++;
            assert_true(err == ERR_UNAVAILABLE || err == ERR_IO);
            assert_string_not_equal(diag.text, "");
        } else {
            assert_int_equal(err, ERR_OK);
            assert_string_equal(strbuf_text(&out), "{}\n");
        }
        if (struck && strcmp(calls_failed(), "waitpid") == 0) {
            assert_true(wait(NULL) > 0); /* which did not happen */
        }
        assert_reaped();
    }
    assert_true(failed > 10);
    assert_int_equal(ask(&wanted, &out), ERR_OK);
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_what_it_prints),
        cmocka_unit_test(a_program_that_fails_is_an_error),
        cmocka_unit_test(an_endless_answer_is_cut),
        cmocka_unit_test(a_program_that_hangs_is_killed),
        cmocka_unit_test(interrupted_calls_are_repeated),
        cmocka_unit_test(any_call_can_fail),
    };
    return cmocka_run_group_tests_name("diff", tests, set_up, tear_down);
}
