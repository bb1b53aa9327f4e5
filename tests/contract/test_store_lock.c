/* SPDX-License-Identifier: MIT */
/* The lock file of a store: its record, and records that cannot be. */
#include "store/lock.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "store/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

struct place {
    char dir[32];
    int dir_fd;
    struct lock lock;
};

static int set_up(void **state)
{
    struct place *place = mem_zalloc(1, sizeof(*place));
    (void)snprintf(place->dir,
                   sizeof(place->dir),
                   "%s",
                   "/tmp/sluice-lock-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    place->dir_fd = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->dir_fd >= 0);
    lock_init(&place->lock, place->dir, place->dir_fd);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    lock_release(&place->lock);
    (void)unlinkat(place->dir_fd, "lock", 0);
    (void)close(place->dir_fd);
    (void)rmdir(place->dir);
    mem_free(place);
    return 0;
}

/* Replace the contents of the file. */
static void put(struct place *place, const char *text)
{
    int fd = openat(place->dir_fd,
                    "lock",
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                    0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static bool contains(struct place *place, const char *part)
{
    char text[2048] = {0};
    int fd = openat(place->dir_fd, "lock", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    assert_int_equal(close(fd), 0);
    return strstr(text, part) != NULL;
}

/* The lines of a record, in order, with values of their own. */
static const char *const lines[] = {
    "sluice-lock 1",
    "pid 7",
    "start 8",
    "host here",
    "boot b",
    "epoch 9",
    "beat 10",
    "writes 11",
    "commits 12",
    "commit_ns 13",
    "trouble the disk",
};

/* Put a record with a valid sum, in which a line is another one. */
static void put_record(struct place *place, size_t changed, const char *line)
{
    struct strbuf text = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        const char *own = ix == changed ? line : lines[ix];
        strbuf_addf(&text, "%s%s", own, own[0] != '\0' ? "\n" : "");
    }
    uint64_t sum = sum_add(SUM_START, text.text, text.len);
    strbuf_addf(&text, "sum %016" PRIx64 "\n   \n", sum);
    put(place, strbuf_text(&text));
    strbuf_release(&text);
}

/* Read a lock that is free; return its last holder. */
static struct lock_record read_free(const struct place *place)
{
    struct lock_record record;
    assert_int_equal(lock_read(&place->lock, &record, NULL), ERR_NOT_FOUND);
    return record;
}

static void a_record_is_read_as_it_was_written(void **state)
{
    struct place *place = *state;
    struct lock_record record = {
        .owner = {.pid = 1, .start_ticks = 2, .epoch = 3, .commits = 4},
        .beat_ns = 5,
        .writes = 6,
    };
    (void)snprintf(record.owner.host, sizeof(record.owner.host), "%s", "host");
    (void)snprintf(record.owner.boot_id,
                   sizeof(record.owner.boot_id),
                   "%s",
                   "boot");
    record.owner.commit_ns = 7;
    assert_int_equal(lock_take(&place->lock, NULL), ERR_OK);
    errno = EINTR; /* of an earlier call */
    assert_int_equal(lock_write(&place->lock, &record, NULL), ERR_OK);
    assert_true(contains(place, "\ntrouble -\n"));
    struct lock_record now;
    assert_int_equal(lock_read(&place->lock, &now, NULL), ERR_OK);
    assert_memory_equal(&now, &record, sizeof(now));
    lock_release(&place->lock);
    now = read_free(place);
    assert_memory_equal(&now, &record, sizeof(now));
}

static void each_line_of_a_record_counts(void **state)
{
    struct place *place = *state;
    put_record(place, SIZE_MAX, "");
    struct lock_record record = read_free(place);
    assert_int_equal(record.owner.pid, 7);
    assert_int_equal(record.owner.start_ticks, 8);
    assert_string_equal(record.owner.host, "here");
    assert_string_equal(record.owner.boot_id, "b");
    assert_int_equal(record.owner.epoch, 9);
    assert_int_equal(record.beat_ns, 10);
    assert_int_equal(record.writes, 11);
    assert_int_equal(record.owner.commits, 12);
    assert_int_equal(record.owner.commit_ns, 13);
    assert_string_equal(record.owner.trouble, "the disk");
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        put_record(place, ix, ""); /* it is missing */
        assert_int_equal(read_free(place).owner.epoch, 0);
        put_record(place, ix, "other 1");
        assert_int_equal(read_free(place).owner.epoch, 0);
    }
}

static void a_record_that_cannot_be_is_none(void **state)
{
    struct place *place = *state;
    static const struct {
        size_t line;
        const char *text;
    } cases[] = {
        {0, "sluice-lock 2"},
        {1, "pid -7"},
        {1, "pid  7"},
        {1, "pid 7x"},
        {1, "pid "},
        {1, "pid 9223372036854775808"}, /* 2^63 */
        {2, "start 18446744073709551616"},
        {6, "beat 9223372036854775808"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        put_record(place, cases[ix].line, cases[ix].text);
        assert_int_equal(read_free(place).owner.epoch, 0);
    }
    put_record(place, 1, "pid 9223372036854775807");
    assert_true(read_free(place).owner.pid == INT64_MAX);
    put_record(place, 6, "beat 9223372036854775807");
    assert_true(read_free(place).beat_ns == INT64_MAX);
}

static void texts_fit_or_the_record_is_none(void **state)
{
    struct place *place = *state;
    struct store_owner owner;
    struct strbuf line = {0};
    for (size_t len = sizeof(owner.boot_id) - 1; len <= sizeof(owner.boot_id);
         len++) {
        strbuf_clear(&line);
        strbuf_adds(&line, "boot ");
        strbuf_pad(&line, 'x', len);
        put_record(place, 4, strbuf_text(&line));
        assert_int_equal(read_free(place).owner.epoch,
                         len < sizeof(owner.boot_id) ? 9 : 0);
    }
    put_record(place, 4, "boot -"); /* none */
    assert_string_equal(read_free(place).owner.boot_id, "");
    assert_int_equal(read_free(place).owner.epoch, 9);
    strbuf_release(&line);
}

static void a_wrong_sum_makes_a_record_none(void **state)
{
    struct place *place = *state;
    put(place, "sluice-lock 1\npid 7\nsum 0000000000000001\n");
    assert_int_equal(read_free(place).owner.pid, 0);
    put(place, "sluice-lock 1\npid 7\n");
    assert_int_equal(read_free(place).owner.pid, 0);
    put(place, "");
    assert_int_equal(read_free(place).owner.pid, 0);
}

static void a_file_that_is_none_is_refused(void **state)
{
    struct place *place = *state;
    struct diag diag = {0};
    struct lock_record record;
    assert_int_equal(lock_read(&place->lock, &record, &diag), ERR_NOT_FOUND);
    assert_int_equal(mkfifoat(place->dir_fd, "lock", 0600), 0);
    assert_int_equal(lock_take(&place->lock, &diag), ERR_DENIED);
    assert_non_null(strstr(diag.text, "not a regular file"));
    assert_int_equal(unlinkat(place->dir_fd, "lock", 0), 0);
    assert_int_equal(symlinkat("elsewhere", place->dir_fd, "lock"), 0);
    assert_int_equal(lock_take(&place->lock, &diag), ERR_DENIED);
    assert_non_null(strstr(diag.text, "open the store's file "));
    assert_null(strstr(diag.text, "mode"));
    assert_int_equal(lock_read(&place->lock, &record, &diag), ERR_DENIED);
}

static void the_lock_has_one_holder(void **state)
{
    struct place *place = *state;
    struct lock other;
    lock_init(&other, place->dir, place->dir_fd);
    assert_int_equal(lock_make(&place->lock, NULL), ERR_OK);
    assert_int_equal(lock_take(&place->lock, NULL), ERR_OK);
    assert_int_equal(lock_take(&other, NULL), ERR_BUSY);
    assert_true(lock_has_file(&place->lock));
    assert_int_equal(unlinkat(place->dir_fd, "lock", 0), 0);
    assert_false(lock_has_file(&place->lock));
    assert_int_equal(lock_take(&other, NULL), ERR_OK); /* another file */
    lock_release(&other);
}

static void a_process_that_locks_a_database_is_found(void **state)
{
    struct place *place = *state;
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/lock", place->dir);
    put(place, "x");
    assert_int_equal(lock_foreign_pid(path), 0);
    int to_parent[2];
    int to_child[2];
    assert_int_equal(pipe(to_parent), 0);
    assert_int_equal(pipe(to_child), 0);
    pid_t child = fork();
    if (child == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR | O_CLOEXEC);
        char byte = 0;
        (void)close(to_child[1]);
        bool good = fcntl(fd, F_SETLK, &whole) == 0 &&
                    lock_foreign_pid(path) == 0 && /* its own */
                    write(to_parent[1], "x", 1) == 1 &&
                    read(to_child[0], &byte, 1) == 0;
        _exit(good ? 0 : 1);
    }
    char byte = 0;
    int status = -1;
    (void)close(to_parent[1]);
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_int_equal(lock_foreign_pid(path), child);
    (void)close(to_child[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(lock_foreign_pid(path), 0);
    (void)close(to_parent[0]);
    (void)close(to_child[0]);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_record_is_read_as_it_was_written),
        CASE(each_line_of_a_record_counts),
        CASE(a_record_that_cannot_be_is_none),
        CASE(texts_fit_or_the_record_is_none),
        CASE(a_wrong_sum_makes_a_record_none),
        CASE(a_file_that_is_none_is_refused),
        CASE(the_lock_has_one_holder),
        CASE(a_process_that_locks_a_database_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
