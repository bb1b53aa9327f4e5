/* SPDX-License-Identifier: MIT */
/*
 * The directory of an attempt, in every state that it can be found in. What
 * runs beside the test is in test_exec.c.
 */
#include "exec/attempt.h"

#include "base/mem.h"
#include "exec/record.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A folder of its own for each test, and the present boot. */
struct fixture {
    char folder[64];
    char dir[128];
    char boot_id[37];
};

static int set_up(void **state)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    (void)snprintf(fixture->folder,
                   sizeof(fixture->folder),
                   "/tmp/sluice-att-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void)snprintf(fixture->dir,
                   sizeof(fixture->dir),
                   "%s/run/task/1",
                   fixture->folder);
    attempt_boot_id(fixture->boot_id);
    *state = fixture;
    return 0;
}

static int
remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    (void)nftw(fixture->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(fixture);
    return 0;
}

static void make_dir(const struct fixture *fixture)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/run", fixture->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/run/task", fixture->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(fixture->dir, 0700), 0);
}

/* Write a file of the directory, and return it open. */
static int write_file(const struct fixture *fixture,
                      const char *name,
                      const void *bytes,
                      size_t len)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    return fd;
}

static void put_file(const struct fixture *fixture,
                     const char *name,
                     const void *bytes,
                     size_t len)
{
    assert_int_equal(close(write_file(fixture, name, bytes, len)), 0);
}

/* `started` as a shim with this identity would make it. */
static void
put_started(const struct fixture *fixture, int64_t pid, uint64_t ticks)
{
    struct record_started started = {
        .pid = pid,
        .start_ticks = ticks,
        .at_ns = 12345,
    };
    memcpy(started.boot_id, fixture->boot_id, sizeof(started.boot_id));
    char bytes[RECORD_BYTES];
    record_write_started(bytes, &started);
    put_file(fixture, "started", bytes, sizeof(bytes));
}

static const struct attempt_exit sample = {
    .cause = ATTEMPT_TIMEOUT,
    .code = -1,
    .signal = 15,
    .begun_ns = INT64_C(1700000000000000001),
    .ended_ns = INT64_C(1700000001000000002),
    .cpu_ns = 7000,
    .log_bytes = UINT64_MAX,
    .log_cut_bytes = 4096,
};

static void put_exit(const struct fixture *fixture)
{
    char bytes[RECORD_FILE_BYTES] = {0};
    record_write_exit(bytes + RECORD_EXIT_AT, &sample);
    put_file(fixture, "exit", bytes, sizeof(bytes));
}

/* `lock`, held as a shim holds it; closing it lets go. */
static int hold_lock(const struct fixture *fixture)
{
    int fd = write_file(fixture, "lock", "", 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return fd;
}

static struct attempt_found inspect(const struct fixture *fixture)
{
    struct attempt_found found;
    assert_int_equal(
        attempt_inspect(fixture->dir, fixture->boot_id, &found, NULL),
        ERR_OK);
    return found;
}

static bool fences(const struct fixture *fixture)
{
    bool fenced = false;
    assert_int_equal(attempt_fence(fixture->dir, "", &fenced, NULL), ERR_OK);
    return fenced;
}

static void records_come_back_as_they_were(void **state)
{
    (void)state;
    struct attempt_exit exit;
    char bytes[RECORD_BYTES];
    record_write_exit(bytes, &sample);
    assert_int_equal(bytes[RECORD_BYTES - 1], '\n');
    assert_true(record_read_exit(bytes, sizeof(bytes), &exit));
    assert_memory_equal(&exit, &sample, sizeof(exit));
    for (int cause = ATTEMPT_EXIT; cause <= ATTEMPT_LEASE; cause++) {
        struct attempt_exit other = {.cause = (enum attempt_cause)cause,
                                     .begun_ns = INT64_MIN,
                                     .ended_ns = INT64_MAX};
        record_write_exit(bytes, &other);
        assert_true(record_read_exit(bytes, sizeof(bytes), &exit));
        assert_int_equal(exit.cause, cause);
        assert_true(exit.begun_ns == INT64_MIN);
    }
    assert_string_equal(record_cause_name(ATTEMPT_IDLE), "idle");
}

static void every_damaged_byte_of_a_record_is_seen(void **state)
{
    (void)state;
    struct attempt_exit exit;
    struct record_started started = {
        .nonce = "0123456789abcdef0123456789abcdef",
        .pid = 7,
    };
    struct record_started read;
    memset(started.boot_id, 'b', 36);
    char whole[RECORD_BYTES];
    char other[RECORD_BYTES];
    record_write_exit(whole, &sample);
    record_write_started(other, &started);
    assert_true(record_read_started(other, sizeof(other), &read));
    assert_string_equal(read.nonce, started.nonce);
    for (size_t ix = 0; ix < RECORD_BYTES; ix++) {
        whole[ix] ^= 1;
        other[ix] ^= 1;
        assert_false(record_read_exit(whole, RECORD_BYTES, &exit));
        assert_false(record_read_started(other, RECORD_BYTES, &read));
        whole[ix] ^= 1;
        other[ix] ^= 1;
        assert_false(record_read_exit(whole, ix, &exit));
        assert_false(record_read_started(other, ix, &read));
    }
    assert_false(record_read_exit(other, RECORD_BYTES, &exit));
    assert_false(record_read_started(whole, RECORD_BYTES, &read));
}

static void numbers_out_of_range_are_no_record(void **state)
{
    (void)state;
    /* 2^64 more than what was written would wrap around to the same. */
    struct attempt_exit exit;
    char bytes[RECORD_BYTES];
    record_write_exit(bytes, &sample);
    char *code = memmem(bytes, RECORD_BYTES, "code -1\n", 8);
    assert_non_null(code);
    memcpy(code, "code  1\n", 8);
    assert_false(record_read_exit(bytes, RECORD_BYTES, &exit));
    memcpy(code, "code 4x\n", 8);
    assert_false(record_read_exit(bytes, RECORD_BYTES, &exit));
}

static void a_stat_line_is_read_whatever_the_name_is(void **state)
{
    (void)state;
    static const char line[] =
        "77 (a ) R 9 9) S 5 6 7 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 "
        "987654 1 2\n";
    uint64_t stat[RECORD_STAT_COUNT];
    assert_true(record_read_stat(line, sizeof(line) - 1, stat));
    assert_int_equal(stat[RECORD_STAT_STATE], 'S');
    assert_int_equal(stat[RECORD_STAT_PARENT], 5);
    assert_int_equal(stat[RECORD_STAT_GROUP], 6);
    assert_int_equal(stat[RECORD_STAT_CPU_TICKS], 127);
    assert_int_equal(stat[RECORD_STAT_START_TICKS], 987654);
    static const char runs[] =
        "77 (S) R 5 6 7 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 987654 1 2\n";
    assert_true(record_read_stat(runs, sizeof(runs) - 1, stat));
    assert_int_equal(stat[RECORD_STAT_STATE], 'R');
    assert_false(record_read_stat("77 (x) S 5", 10, stat));
    assert_false(record_read_stat("", 0, stat));
    assert_true(attempt_start_ticks(getpid()) > 0);
    assert_int_equal(attempt_start_ticks(0), 0);
    assert_int_equal(attempt_start_ticks(-1), 0);
    assert_int_equal(attempt_start_ticks(INT64_MAX), 0);
}

static void without_a_directory_nothing_ever_ran(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(inspect(fixture).state, ATTEMPT_NEVER);
    make_dir(fixture);
    assert_int_equal(inspect(fixture).state, ATTEMPT_NEVER);
    /* A shim died between making `lock` and taking it. */
    put_file(fixture, "lock", "", 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_NEVER);
}

static void a_held_lock_alone_is_a_start(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    int fd = hold_lock(fixture);
    assert_int_equal(inspect(fixture).state, ATTEMPT_STARTING);
    assert_false(fences(fixture));
    assert_int_equal(close(fd), 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_NEVER);
}

static void looking_takes_no_lock(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    put_file(fixture, "lock", "", 0);
    for (int ix = 0; ix < 10; ix++) {
        (void)inspect(fixture);
        assert_int_equal(close(hold_lock(fixture)), 0);
    }
}

static void a_held_lock_with_started_is_live(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    uint64_t ticks = attempt_start_ticks(getpid());
    put_started(fixture, getpid(), ticks);
    int fd = hold_lock(fixture);
    struct attempt_found found = inspect(fixture);
    assert_int_equal(found.state, ATTEMPT_LIVE);
    assert_int_equal(found.pid, getpid());
    assert_true(found.start_ticks == ticks);
    assert_string_equal(found.boot_id, fixture->boot_id);
    assert_false(fences(fixture));
    assert_int_equal(close(fd), 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_LOST);
}

static void another_process_of_that_number_is_not_the_shim(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    put_started(fixture, getpid(), attempt_start_ticks(getpid()) + 1);
    int fd = hold_lock(fixture);
    /* Someone holds the lock who did not make `started`: a late shim. */
    assert_int_equal(inspect(fixture).state, ATTEMPT_STARTING);
    assert_int_equal(close(fd), 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_LOST);
}

static void a_record_is_the_end_whoever_holds_the_lock(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    put_started(fixture, getpid(), attempt_start_ticks(getpid()));
    put_exit(fixture);
    struct attempt_found found = inspect(fixture);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_memory_equal(&found.exit, &sample, sizeof(sample));
    int fd = hold_lock(fixture);
    assert_int_equal(inspect(fixture).state, ATTEMPT_ENDED);
    assert_int_equal(close(fd), 0);
    assert_false(fences(fixture));
}

static void a_record_of_an_older_shim_is_the_end(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    put_started(fixture, 1, 1);
    char bytes[RECORD_BYTES];
    record_write_exit(bytes, &sample);
    put_file(fixture, "exit", bytes, sizeof(bytes));
    struct attempt_found found = inspect(fixture);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_memory_equal(&found.exit, &sample, sizeof(sample));
}

/* Inspect as after a boot: the attempt was claimed in another one. */
static enum attempt_state inspect_later(const struct fixture *fixture)
{
    struct attempt_found found;
    const char *before = "00000000-1111-2222-3333-444444444444";
    assert_int_equal(attempt_inspect(fixture->dir, before, &found, NULL),
                     ERR_OK);
    return found.state;
}

static void after_a_boot_an_end_counts_with_its_result_only(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "{\"outcome\": \"changes\"}";
    make_dir(fixture);
    put_started(fixture, 1, 1);
    put_file(fixture, "result", text, sizeof(text) - 1);
    int fd = open(fixture->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct attempt_exit sealed = sample;
    assert_int_equal(record_seal(fd, &sealed), 0);
    assert_int_equal(sealed.result_bytes, sizeof(text) - 1);
    char bytes[RECORD_FILE_BYTES] = {0};
    record_write_exit(bytes + RECORD_EXIT_AT, &sealed);
    put_file(fixture, "exit", bytes, sizeof(bytes));
    struct attempt_found found = inspect(fixture);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_true(found.exit.sealed);
    assert_int_equal(found.exit.result_sum, sealed.result_sum);
    assert_int_equal(inspect_later(fixture), ATTEMPT_ENDED);
    /* A power cut has kept a part, or zeros, or nothing of the result. */
    put_file(fixture, "result", text, 5);
    assert_int_equal(inspect_later(fixture), ATTEMPT_LOST);
    assert_int_equal(inspect(fixture).state, ATTEMPT_ENDED);
    static const char zeros[sizeof(text)] = {0};
    put_file(fixture, "result", zeros, sizeof(text) - 1);
    assert_int_equal(inspect_later(fixture), ATTEMPT_LOST);
    assert_int_equal(unlinkat(fd, "result", 0), 0);
    assert_int_equal(inspect_later(fixture), ATTEMPT_LOST);
    /* A session without a result. */
    assert_int_equal(record_seal(fd, &sealed), 0);
    assert_int_equal(sealed.result_bytes, -1);
    record_write_exit(bytes + RECORD_EXIT_AT, &sealed);
    put_file(fixture, "exit", bytes, sizeof(bytes));
    assert_int_equal(inspect_later(fixture), ATTEMPT_ENDED);
    assert_int_equal(close(fd), 0);
}

static void damaged_records_do_not_count(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    put_started(fixture, 1, 1);
    put_exit(fixture);
    put_file(fixture, "exit", "sluice-exit 1\ncause exit\n", 25);
    assert_int_equal(inspect(fixture).state, ATTEMPT_LOST);
    /* Whatever it holds, `started` was made by someone who may have run. */
    put_file(fixture, "started", "", 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_LOST);
    int fd = hold_lock(fixture);
    assert_int_equal(inspect(fixture).state, ATTEMPT_STARTING);
    assert_int_equal(close(fd), 0);
    assert_false(fences(fixture));
}

static void links_and_folders_in_place_of_files_do_not_count(void **state)
{
    struct fixture *fixture = *state;
    char path[256];
    make_dir(fixture);
    (void)snprintf(path, sizeof(path), "%s/exit", fixture->dir);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_NEVER);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_NEVER);
    (void)snprintf(path, sizeof(path), "%s/lock", fixture->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_NEVER);
    (void)snprintf(path, sizeof(path), "%s/started", fixture->dir);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(inspect(fixture).state, ATTEMPT_LOST);
}

static void after_another_boot_only_a_record_counts(void **state)
{
    struct fixture *fixture = *state;
    struct attempt_found found;
    const char *before = "00000000-0000-0000-0000-000000000001";
    assert_int_equal(attempt_inspect(fixture->dir, before, &found, NULL),
                     ERR_OK);
    assert_int_equal(found.state, ATTEMPT_LOST);
    make_dir(fixture);
    put_started(fixture, getpid(), attempt_start_ticks(getpid()));
    int fd = hold_lock(fixture);
    assert_int_equal(attempt_inspect(fixture->dir, before, &found, NULL),
                     ERR_OK);
    assert_int_equal(found.state, ATTEMPT_LOST);
    put_exit(fixture);
    assert_int_equal(attempt_inspect(fixture->dir, before, &found, NULL),
                     ERR_OK);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_int_equal(close(fd), 0);
}

static void a_fence_is_made_once_and_stays(void **state)
{
    struct fixture *fixture = *state;
    assert_true(fences(fixture));
    assert_false(fences(fixture));
    assert_int_equal(inspect(fixture).state, ATTEMPT_LOST);
    assert_true(inspect(fixture).fenced);
}

/* The directory was that of another attempt, whose exit record a power cut has
 * kept. */
static void an_exit_record_with_another_nonce_does_not_count(void **state)
{
    struct fixture *fixture = *state;
    make_dir(fixture);
    char bytes[RECORD_FILE_BYTES] = {0};
    struct record_started started = {.pid = 1, .nonce = "one"};
    struct attempt_exit exit = sample;
    memcpy(started.boot_id, fixture->boot_id, sizeof(started.boot_id));
    exit.sealed = true;
    exit.result_bytes = -1;
    static const struct {
        const char *nonce;
        enum attempt_state state;
    } cases[] = {
        {"one", ATTEMPT_ENDED},
        {"two", ATTEMPT_LOST},
        {"", ATTEMPT_ENDED}, /* of an earlier version */
    };
    for (size_t ix = 0; ix < sizeof(cases) / sizeof(cases[0]); ix++) {
        (void)snprintf(exit.nonce, sizeof(exit.nonce), "%s", cases[ix].nonce);
        record_write_started(bytes, &started);
        record_write_exit(bytes + RECORD_EXIT_AT, &exit);
        put_file(fixture, "started", bytes, sizeof(bytes));
        put_file(fixture, "exit", bytes, sizeof(bytes));
        assert_int_equal(inspect(fixture).state, cases[ix].state);
        assert_false(inspect(fixture).fenced);
    }
}

static void a_directory_that_cannot_be_made_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct attempt_found found;
    struct diag diag = {0};
    bool fenced = true;
    char dir[256];
    make_dir(fixture);
    put_file(fixture, "no-folder", "", 0);
    (void)snprintf(dir, sizeof(dir), "%s/no-folder/1", fixture->dir);
    assert_int_equal(attempt_fence(dir, "", &fenced, &diag), ERR_IO);
    assert_false(fenced);
    assert_non_null(strstr(diag.text, "no-folder"));
    /* Nothing can ever have run there. */
    assert_int_equal(attempt_inspect(dir, fixture->boot_id, &found, NULL),
                     ERR_OK);
    assert_int_equal(found.state, ATTEMPT_NEVER);
}

static void
expect_tail(const struct fixture *fixture, size_t bytes, const char *wanted)
{
    struct strbuf out = {0};
    attempt_add_log_tail(fixture->dir, bytes, &out);
    assert_string_equal(strbuf_text(&out), wanted);
    strbuf_release(&out);
}

/*
 * With so many descriptors left, nothing is found out, and with all of them
 * back what is there is found; 0, or the line that tells what went wrong.
 */
static int
look_with(const struct fixture *fixture, rlim_t spare, enum attempt_state truth)
{
    struct rlimit all;
    struct attempt_found found;
    int lowest = dup(STDOUT_FILENO);
    if (lowest < 0 || close(lowest) != 0 || getrlimit(RLIMIT_NOFILE, &all)) {
        return __LINE__;
    }
    struct rlimit few = {(rlim_t)lowest + spare, all.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) {
        return __LINE__;
    }
    for (int ix = 0; ix < 2; ix++) { /* the first one must not use any up */
        struct diag diag = {0};
        enum err err =
            attempt_inspect(fixture->dir, fixture->boot_id, &found, &diag);
        if (err != ERR_UNAVAILABLE || strstr(diag.text, "many") == NULL) {
            return __LINE__;
        }
    }
    if (setrlimit(RLIMIT_NOFILE, &all) != 0 ||
        attempt_inspect(fixture->dir, fixture->boot_id, &found, NULL) !=
            ERR_OK ||
        found.state != truth) {
        return __LINE__;
    }
    return 0;
}

/* In a process of its own, which may be left without descriptors. */
static void expect_unavailable(const struct fixture *fixture,
                               rlim_t spare,
                               enum attempt_state truth)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int line = look_with(fixture, spare, truth);
        if (line != 0) {
            print_error("%s:%d: %d left, state %d\n",
                        __FILE__,
                        line,
                        (int)spare,
                        (int)truth);
        }
        _exit(line != 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void without_descriptors_nothing_is_said_to_be_absent(void **state)
{
    struct fixture *fixture = *state;
    expect_unavailable(fixture, 0, ATTEMPT_NEVER);
    make_dir(fixture);
    expect_unavailable(fixture, 0, ATTEMPT_NEVER);
    expect_unavailable(fixture, 1, ATTEMPT_NEVER);
    put_started(fixture, getpid(), attempt_start_ticks(getpid()));
    expect_unavailable(fixture, 0, ATTEMPT_LOST);
    expect_unavailable(fixture, 1, ATTEMPT_LOST);
    int fd = hold_lock(fixture);
    expect_unavailable(fixture, 0, ATTEMPT_LIVE);
    expect_unavailable(fixture, 1, ATTEMPT_LIVE);
    assert_int_equal(close(fd), 0);
    put_exit(fixture);
    expect_unavailable(fixture, 0, ATTEMPT_ENDED);
    expect_unavailable(fixture, 1, ATTEMPT_ENDED);
}

static void the_tail_of_a_log_begins_with_a_line(void **state)
{
    struct fixture *fixture = *state;
    expect_tail(fixture, 100, "");
    make_dir(fixture);
    expect_tail(fixture, 100, "");
    put_file(fixture, "log", "one\ntwo\nthree\n", 14);
    expect_tail(fixture, 100, "one\ntwo\nthree\n");
    expect_tail(fixture, 14, "one\ntwo\nthree\n");
    expect_tail(fixture, 13, "two\nthree\n");
    expect_tail(fixture, 10, "two\nthree\n");
    expect_tail(fixture, 9, "three\n");
    expect_tail(fixture, 4, "ree\n"); /* a long line is shown from within */
    put_file(fixture, "log", "", 0);
    expect_tail(fixture, 4, "");
}

static void the_tail_of_a_log_is_safe_for_a_terminal(void **state)
{
    struct fixture *fixture = *state;
    static const char log[] = "a\033]52;c;x\007b\r\n\0\0\0c\t\x7f\xc2\x9b"
                              "d\xc3\xa4\xc2\n";
    make_dir(fixture);
    put_file(fixture, "log", log, sizeof(log) - 1);
    expect_tail(fixture, 100, "a]52;c;xb\nc\td\xc3\xa4?\n");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_they_were),
        cmocka_unit_test(every_damaged_byte_of_a_record_is_seen),
        cmocka_unit_test(numbers_out_of_range_are_no_record),
        cmocka_unit_test(a_stat_line_is_read_whatever_the_name_is),
        CASE(without_a_directory_nothing_ever_ran),
        CASE(a_held_lock_alone_is_a_start),
        CASE(looking_takes_no_lock),
        CASE(a_held_lock_with_started_is_live),
        CASE(another_process_of_that_number_is_not_the_shim),
        CASE(a_record_is_the_end_whoever_holds_the_lock),
        CASE(a_record_of_an_older_shim_is_the_end),
        CASE(damaged_records_do_not_count),
        CASE(links_and_folders_in_place_of_files_do_not_count),
        CASE(after_a_boot_an_end_counts_with_its_result_only),
        CASE(after_another_boot_only_a_record_counts),
        CASE(a_fence_is_made_once_and_stays),
        CASE(an_exit_record_with_another_nonce_does_not_count),
        CASE(a_directory_that_cannot_be_made_is_an_error),
        CASE(without_descriptors_nothing_is_said_to_be_absent),
        CASE(the_tail_of_a_log_begins_with_a_line),
        CASE(the_tail_of_a_log_is_safe_for_a_terminal),
    };
    return cmocka_run_group_tests_name("attempt", tests, NULL, NULL);
}
