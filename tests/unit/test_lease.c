/* SPDX-License-Identifier: MIT */
#include "exec/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
    char dir[32];
    char path[48];
};

static int set_up(void **state)
{
    static struct place place;
    (void)snprintf(place.dir, sizeof(place.dir), "/tmp/sluice-lease-XXXXXX");
    assert_non_null(mkdtemp(place.dir));
    (void)snprintf(place.path, sizeof(place.path), "%s/lease", place.dir);
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    const struct place *place = *state;
    (void)unlink(place->path);
    return rmdir(place->dir);
}

/* A lease whose bytes differ from those of other seeds. */
static struct lease lease_of(int seed)
{
    struct lease lease;
    memset(&lease, seed, sizeof(lease));
    return lease;
}

static void a_lease_is_read_as_it_was_written(void **state)
{
    const struct place *place = *state;
    for (int seed = 1; seed <= 2; seed++) { /* the second one in its place */
        struct lease lease = lease_of(seed);
        struct lease found = lease_of(9);
        assert_int_equal(lease_write(place->path, &lease), 0);
        assert_true(lease_read(place->path, &found));
        assert_memory_equal(&found, &lease, sizeof(lease));
    }
}

static void a_lease_that_is_not_whole_is_none(void **state)
{
    const struct place *place = *state;
    struct lease lease = lease_of(1);
    assert_false(lease_read(place->path, &lease)); /* not there */
    assert_int_equal(lease_write(place->path, &lease), 0);
    assert_int_equal(truncate(place->path, (off_t)sizeof(lease) - 1), 0);
    assert_false(lease_read(place->path, &lease));
    assert_int_equal(truncate(place->path, 0), 0);
    assert_false(lease_read(place->path, &lease));
}

static void a_link_is_not_followed(void **state)
{
    const struct place *place = *state;
    struct lease lease = lease_of(1);
    assert_int_equal(symlink("/dev/zero", place->path), 0);
    assert_int_equal(lease_write(place->path, &lease), ELOOP);
    assert_false(lease_read(place->path, &lease));
    assert_int_equal(lease_write(place->dir, &lease), EISDIR);
}

/* A process may have been started without standard input. */
static void any_descriptor_will_do(void **state)
{
    const struct place *place = *state;
    struct lease lease = lease_of(1);
    struct lease found = lease_of(9);
    int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    (void)close(STDIN_FILENO);
    int written = lease_write(place->path, &lease);
    bool known = lease_read(place->path, &found);
    if (input >= 0) {
        assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
        assert_int_equal(close(input), 0);
    }
    assert_int_equal(written, 0);
    assert_true(known);
    assert_memory_equal(&found, &lease, sizeof(lease));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_lease_is_read_as_it_was_written),
        CASE(a_lease_that_is_not_whole_is_none),
        CASE(a_link_is_not_followed),
        CASE(any_descriptor_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
