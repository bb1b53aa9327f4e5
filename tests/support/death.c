/* SPDX-License-Identifier: MIT */
/*
 * Everything is read, so that the child never waits or gets SIGPIPE; what
 * does not fit is dropped.
 */
#include "tests/support/death.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void death_expect(death_fn fn, void *ctx, const char *text)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL); /* cmocka may have set a handler */
        fn(ctx);
        _exit(0);
    }
    close(ends[1]);

    char said[4096] = "";
    size_t len = 0;
    ssize_t got = 0;
    do {
        char piece[256];
        got = read(ends[0], piece, sizeof(piece));
        if (got > 0 && len + (size_t)got < sizeof(said)) {
            memcpy(said + len, piece, (size_t)got);
            len += (size_t)got;
        }
    } while (got > 0);
    close(ends[0]);

    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, text));
}
