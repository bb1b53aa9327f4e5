/* SPDX-License-Identifier: MIT */
/*
 * Programs are shell scripts in a folder of their own. A script that must wait
 * for the runner waits for a file that the runner writes, never for a time.
 */
#include "agent/runner.h"

#include "base/macros.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const files[] = {"checkpoint",
                                    "messages",
                                    "events",
                                    "input",
                                    "pid"};

/* Everything that a program printed. */
struct output {
    struct strbuf lines;  /* the first bytes, each line in brackets */
    struct strbuf errors; /* the same for standard error */
    uint64_t count;
    uint64_t bytes;
    uint32_t too_long;
    size_t longest;
};

static void take_line(void *ctx, const char *line, size_t len, bool error)
{
    struct output *output = ctx;
    struct strbuf *text = error ? &output->errors : &output->lines;
    if (line == NULL) {
        output->too_long++;
        return;
    }
    output->count++;
    output->bytes += len;
    output->longest = len > output->longest ? len : output->longest;
    if (len < 100 && text->len < 1000) {
        strbuf_adds(text, "[");
        strbuf_add(text, line, len);
        strbuf_adds(text, "]");
    }
}

static void release(struct output *output)
{
    strbuf_release(&output->lines);
    strbuf_release(&output->errors);
    *output = (struct output){0};
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void remove_files(void)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(files); ix++) {
        (void)unlink(files[ix]);
    }
}

/* Run a script to its end, in a clean folder. */
static struct runner_end run(const char *script, struct output *output)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct runner_end end = {0};
    struct diag diag = {0};
    struct runner runner = {
        .argv = argv,
        .env = (const char *const *)environ,
        .input = "input",
        .events = "events",
        .checkpoint = "checkpoint",
        .messages = "messages",
        .messages_bytes = strlen("old\n"),
        .line = take_line,
        .ctx = output,
    };
    write_file("input", "a prompt\n");
    if (runner_run(&runner, &end, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return end;
}

/* Require lines, and an exit by itself with code 0. */
static void expect_lines(const char *script, const char *lines)
{
    struct output output = {0};
    remove_files();
    struct runner_end end = run(script, &output);
    assert_int_equal(end.code, 0);
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.stop, RUNNER_RAN);
    assert_string_equal(strbuf_text(&output.lines), lines);
    assert_int_equal(output.errors.len, 0);
    release(&output);
}

static void lines_come_whole(void **state)
{
    (void)state;
    expect_lines("echo one; echo two", "[one][two]");
    expect_lines("printf 'one\\ntwo'", "[one][two]");
    expect_lines("printf 'one\\n\\n\\ntwo\\n'", "[one][two]");
    expect_lines("exit 0", "");
    expect_lines("printf 'on'; until [ -s events ]; do sleep 0.01; done;"
                 "printf 'e\\ntwo'; until grep -q two events; do sleep 0.01;"
                 "done; echo",
                 "[one][two]");
}

static void bytes_stay_as_they_are(void **state)
{
    (void)state;
    struct output output = {0};
    struct stat stat_buf;
    remove_files();
    struct runner_end end = run("printf 'a\\377\\000b\\r\\n'", &output);
    assert_int_equal(end.code, 0);
    assert_int_equal(output.lines.len, 7);
    assert_memory_equal(output.lines.text, "[a\xff\0b\r]", 7);
    assert_int_equal(stat("events", &stat_buf), 0);
    assert_int_equal(stat_buf.st_size, 6);
    release(&output);
}

static void the_prompt_is_standard_input(void **state)
{
    (void)state;
    expect_lines("cat", "[a prompt]");
}

static void standard_error_comes_apart(void **state)
{
    (void)state;
    struct output output = {0};
    struct stat stat_buf;
    remove_files();
    (void)run("echo out; echo error >&2; printf half >&2", &output);
    assert_string_equal(strbuf_text(&output.lines), "[out]");
    assert_string_equal(strbuf_text(&output.errors), "[error][half]");
    assert_int_equal(stat("events", &stat_buf), 0);
    assert_int_equal(stat_buf.st_size, 4);
    release(&output);
}

static void long_lines_are_whole_up_to_a_limit(void **state)
{
    (void)state;
    struct output output = {0};
    remove_files();
    (void)run("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo next",
              &output);
    assert_int_equal(output.longest, 10000000);
    assert_int_equal(output.count, 2);
    assert_int_equal(output.too_long, 0);
    release(&output);

    (void)run("head -c 40000000 /dev/zero | tr '\\0' x; echo; echo next;"
              "head -c 17000000 /dev/zero | tr '\\0' x",
              &output);
    assert_int_equal(output.too_long, 2);
    assert_int_equal(output.count, 1);
    assert_string_equal(strbuf_text(&output.lines), "[next]");
    release(&output);
}

static void all_lines_come_but_not_all_are_kept(void **state)
{
    (void)state;
    struct output output = {0};
    struct stat stat_buf;
    remove_files();
    (void)run("yes $(head -c 999 /dev/zero | tr '\\0' x) | head -n 70000",
              &output);
    assert_int_equal(output.count, 70000);
    assert_int_equal(output.bytes, 70000 * 999);
    assert_int_equal(stat("events", &stat_buf), 0);
    assert_in_range(stat_buf.st_size, 64 << 20, (64 << 20) + 65536);
    release(&output);
}

static void codes_and_signals_are_reported(void **state)
{
    (void)state;
    struct output output = {0};
    remove_files();
    struct runner_end end = run("exit 7", &output);
    assert_int_equal(end.code, 7);
    assert_int_equal(end.signal, 0);
    end = run("kill -9 $$", &output);
    assert_int_equal(end.code, -1);
    assert_int_equal(end.signal, SIGKILL);
    assert_int_equal(end.stop, RUNNER_RAN);
    release(&output);
}

static void a_program_starts_with_clean_signals_and_files(void **state)
{
    (void)state;
    /* Signals from 32 on are the C library's. */
    expect_lines("exec grep -cE '^SigBlk:.0{16}$|^SigIgn:.{9}[08]0{7}$' "
                 "/proc/self/status",
                 "[2]");
    expect_lines("exec find /proc/self/fd -name '[3-9]*' -lname '/*events'",
                 "");
}

static void a_program_that_is_missing_is_not_found(void **state)
{
    (void)state;
    const char *const argv[] = {"no-such-program-here", NULL};
    struct runner_end end = {0};
    struct diag diag = {0};
    struct output output = {0};
    struct runner runner = {
        .argv = argv,
        .env = (const char *const *)environ,
        .input = "/dev/null",
        .events = "events",
        .line = take_line,
        .ctx = &output,
    };
    assert_int_equal(runner_run(&runner, &end, &diag), ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "no-such-program-here"));
    runner.input = "no-such-file";
    assert_int_equal(runner_run(&runner, &end, &diag), ERR_IO);
    assert_non_null(strstr(diag.text, "no-such-file"));
}

/* Run a script that asks for its own end. Its handler prints a line. */
static void
expect_stop(const char *ask, enum runner_stop stop, const char *lines)
{
    struct output output = {0};
    struct strbuf script = {0};
    remove_files();
    strbuf_addf(&script,
                "trap 'echo stopped; exit 5' TERM; %s;"
                "while :; do sleep 0.01; done",
                ask);
    struct runner_end end = run(strbuf_text(&script), &output);
    assert_int_equal(end.stop, stop);
    assert_int_equal(end.code, 5);
    assert_string_equal(strbuf_text(&output.lines), lines);
    release(&output);
    strbuf_release(&script);
}

static void signals_stop_the_program_with_sigterm(void **state)
{
    (void)state;
    expect_stop("kill -TERM $PPID", RUNNER_TERMINATED, "[stopped]");
    expect_stop("kill -INT $PPID", RUNNER_TERMINATED, "[stopped]");
    expect_stop("kill -HUP $PPID", RUNNER_TERMINATED, "[stopped]");
    expect_stop("kill -USR1 $PPID", RUNNER_CHECKPOINT, "[stopped]");
}

static void a_file_asks_for_a_checkpoint(void **state)
{
    (void)state;
    /* The line wakes the runner, which would look only now and then. */
    expect_stop(": > checkpoint; echo line",
                RUNNER_CHECKPOINT,
                "[line][stopped]");
}

static void a_new_message_stops_the_program(void **state)
{
    (void)state;
    expect_stop("printf 'old\\nnew\\n' > messages; echo line",
                RUNNER_MESSAGE,
                "[line][stopped]");
    /* It knows the first one, and a directory is no message. */
    remove_files();
    expect_lines("printf 'old\\n' > messages; echo line", "[line]");
    struct runner runner = {.messages = "messages", .messages_bytes = 4};
    assert_false(runner_has_message(&runner));
    runner.messages_bytes = 3;
    assert_true(runner_has_message(&runner));
    runner.messages = ".";
    assert_false(runner_has_message(&runner));
    runner.messages = "no-such-file";
    assert_false(runner_has_message(&runner));
    runner.messages = NULL;
    assert_false(runner_has_message(&runner));
}

static void a_signal_before_the_start_counts(void **state)
{
    (void)state;
    struct output output = {0};
    remove_files();
    assert_int_equal(raise(SIGUSR1), 0);
    struct runner_end end = run("exec sleep 1000", &output);
    assert_int_equal(end.stop, RUNNER_CHECKPOINT);
    assert_int_equal(end.signal, SIGTERM);
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    end = run("exec sleep 1000", &output);
    assert_int_equal(end.stop, RUNNER_TERMINATED);
    release(&output);
}

static void a_program_that_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    struct output output = {0};
    remove_files();
    struct runner_end end =
        run("trap '' TERM; kill -TERM $PPID; while :; do sleep 0.1; done",
            &output);
    assert_int_equal(end.stop, RUNNER_TERMINATED);
    assert_int_equal(end.signal, SIGKILL);
    release(&output);
}

/* The process in the file `pid` must be gone. */
static void assert_gone(void)
{
    FILE *file = fopen("pid", "re");
    char text[32] = "";
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_int_equal(fclose(file), 0);
    long pid = strtol(text, NULL, 10);
    assert_true(pid > 1);
    errno = 0;
    assert_int_equal(kill((pid_t)pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void descendants_do_not_survive(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        /* in the group of the program */
        "sleep 1000 >/dev/null 2>&1 & echo $! > pid",
        /* in a session of its own; it keeps the output open */
        "setsid sh -c 'echo $$ > pid; exec sleep 1000' &"
        "until [ -s pid ]; do sleep 0.01; done",
        /* far away, and deaf */
        "setsid sh -c \"trap '' TERM; (setsid sh -c 'echo \\$\\$ > pid;"
        "while :; do sleep 0.1; done' &); while :; do sleep 0.1; done\""
        " >/dev/null 2>&1 & until [ -s pid ]; do sleep 0.01; done",
        /* when the program is stopped */
        "setsid sh -c 'echo $$ > pid; exec sleep 1000' >/dev/null 2>&1 &"
        "until [ -s pid ]; do sleep 0.01; done; kill -TERM $PPID; wait",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(scripts); ix++) {
        struct output output = {0};
        remove_files();
        (void)run(scripts[ix], &output);
        assert_gone();
        release(&output);
    }
}

static void a_short_command_has_output_and_code(void **state)
{
    (void)state;
    struct strbuf out = {0};
    const char *const good[] = {"sh", "-c", "echo a; echo b >&2", NULL};
    const char *const bad[] = {"sh", "-c", "cat; exit 3", NULL};
    const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    const char *const missing[] = {"no-such-program-here", NULL};
    assert_int_equal(runner_output(&out, good), 0);
    assert_string_equal(strbuf_text(&out), "a\n");
    assert_int_equal(runner_output(&out, bad), 3);
    assert_int_equal(runner_output(&out, killed), -1);
    assert_int_equal(runner_output(&out, missing), -1);
    assert_string_equal(strbuf_text(&out), "a\n");
    strbuf_release(&out);
}

static int set_up(void **state)
{
    static char folder[] = "/tmp/test-runner.XXXXXX";
    *state = folder;
    return mkdtemp(folder) == NULL || chdir(folder) != 0 ||
           runner_prepare(NULL) != ERR_OK;
}

static int tear_down(void **state)
{
    remove_files();
    return chdir("/") != 0 || rmdir(*state) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole),
        cmocka_unit_test(bytes_stay_as_they_are),
        cmocka_unit_test(the_prompt_is_standard_input),
        cmocka_unit_test(standard_error_comes_apart),
        cmocka_unit_test(long_lines_are_whole_up_to_a_limit),
        cmocka_unit_test(all_lines_come_but_not_all_are_kept),
        cmocka_unit_test(codes_and_signals_are_reported),
        cmocka_unit_test(a_program_starts_with_clean_signals_and_files),
        cmocka_unit_test(a_program_that_is_missing_is_not_found),
        cmocka_unit_test(signals_stop_the_program_with_sigterm),
        cmocka_unit_test(a_file_asks_for_a_checkpoint),
        cmocka_unit_test(a_new_message_stops_the_program),
        cmocka_unit_test(a_signal_before_the_start_counts),
        cmocka_unit_test(a_program_that_ignores_sigterm_is_killed),
        cmocka_unit_test(descendants_do_not_survive),
        cmocka_unit_test(a_short_command_has_output_and_code),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
