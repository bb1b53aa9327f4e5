/* SPDX-License-Identifier: MIT */
/*
 * The disk fails at every point, one after the other; and the power goes off.
 * Afterwards every batch that was acknowledged is there, whole, and at most
 * the one that was under way besides.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/contract/disk.h"
#include "tests/contract/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    SEED = 4711,
    CUTS = 400,
    POINTS_MAX = 5000,
    TASKS = 10,
    EVENTS = 3, /* in each batch */
    LONG_TEXT_BYTES = 5 << 20,
};

struct world {
    struct fixture *fixture;
    struct disk *disk;
    uint64_t acknowledged; /* batches */
    uint64_t tried;
    struct strbuf long_text; /* put into a batch, if not empty */
};

static void set_up(struct world *world, struct fixture *fixture)
{
    *world = (struct world){.fixture = fixture, .disk = disk_install()};
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    assert_int_equal(fixture_write_one(store, epoch, fixture_run(1, "wave")),
                     ERR_OK);
    store_close(store);
}

static void tear_down(struct world *world)
{
    strbuf_release(&world->long_text);
    disk_uninstall(world->disk);
}

/* Batch n: the n-th token, three events, one task. */
static enum err
write_batch(struct world *world, struct store *store, uint64_t epoch)
{
    uint64_t number = world->acknowledged + 1;
    uint32_t task = (uint32_t)(number % TASKS);
    struct store_change changes[] = {
        fixture_claim(number, 1, task, (uint32_t)number),
        fixture_event(1, task, "ready"),
        fixture_event(1, task, "claimed"),
        fixture_task(1, task, "running"),
        fixture_event(1, task, "running"),
        fixture_order("add"),
    };
    uint32_t count = ARRAY_COUNT(changes) - 1;
    if (world->long_text.len > 0) {
        changes[count++].as.command.args = strbuf_text(&world->long_text);
    }
    struct diag diag = {0};
    world->tried = number;
    enum err err = fixture_write(store, epoch, changes, count, &diag);
    if (err == ERR_OK) {
        world->acknowledged = number;
    } else {
        assert_string_not_equal(diag.text, "");
    }
    return err;
}

/* With a sound disk: is everything there that must be, and nothing half? */
static void check(struct world *world, const char *what, uint32_t n)
{
    struct store *store = fixture_open(world->fixture, STORE_WRITE);
    struct store_owner self = fixture_self();
    uint64_t epoch = 0;
    struct diag diag = {0};
    if (store_take(store, &self, &epoch, &diag) != ERR_OK) {
        fail_msg("%s %u: store_take: %s", what, n, diag.text);
    }
    struct store_info info = fixture_info(store);
    if (info.last_token < world->acknowledged ||
        info.last_token > world->tried ||
        info.last_event != EVENTS * info.last_token) {
        fail_msg("%s %u: %lu acknowledged, %lu tried, %lu found, %lu events",
                 what,
                 n,
                 (unsigned long)world->acknowledged,
                 (unsigned long)world->tried,
                 (unsigned long)info.last_token,
                 (unsigned long)info.last_event);
    }
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    if (faults.len > 0) {
        fail_msg("%s %u: %s", what, n, strbuf_text(&faults));
    }
    world->acknowledged = info.last_token;
    world->tried = info.last_token;
    strbuf_release(&faults);
    store_close(store);
}

/* What came of one attempt to open, take and write with a fault. */
struct answer {
    enum err open;
    enum err take;
    enum err write;
};

/*
 * Open, take and write, while the fault may strike at any point. When the disk
 * was full, there is space again after the answer, and the same is tried once
 * more.
 */
static struct answer try_all(struct world *world)
{
    struct answer answer = {0};
    struct store *store = NULL;
    struct store_owner self = fixture_self();
    struct diag diag = {0};
    uint64_t epoch = 0;
    answer.open = store_open(&store, world->fixture->dir, STORE_WRITE, &diag);
    if (answer.open == ERR_OK) {
        answer.take = store_take(store, &self, &epoch, &diag);
        if (answer.take == ERR_LIMIT) {
            disk_heal(world->disk);
            assert_int_equal(store_take(store, &self, &epoch, &diag), ERR_OK);
        }
    }
    if (epoch > 0) {
        answer.write = write_batch(world, store, epoch);
        if (answer.write == ERR_LIMIT) {
            disk_heal(world->disk);
            assert_int_equal(write_batch(world, store, epoch), ERR_OK);
        } else if (answer.write != ERR_OK) {
            /* It fails for good, whatever the disk does now. */
            assert_int_equal(write_batch(world, store, epoch), answer.write);
        }
    } else {
        assert_string_not_equal(diag.text, "");
    }
    store_close(store);
    return answer;
}

static bool is_one_of(enum err err, enum err expected)
{
    return err == ERR_OK || err == expected;
}

/* Each point in turn; every answer is `expected` or none. */
static void fail_at_each_point(struct world *world,
                               enum disk_fault fault,
                               enum err expected,
                               const char *what)
{
    uint32_t struck = 0;
    uint32_t n = 1;
    for (; n < POINTS_MAX; n++) {
        disk_arm(world->disk, fault, n);
        struct answer answer = try_all(world);
        bool has_struck = disk_has_struck(world->disk) ||
                          answer.take == ERR_LIMIT || answer.write == ERR_LIMIT;
        disk_heal(world->disk);
        if (!is_one_of(answer.open, expected) ||
            !is_one_of(answer.take, expected) ||
            !is_one_of(answer.write, expected)) {
            fail_msg("%s %u: %s, %s, %s",
                     what,
                     n,
                     err_name(answer.open),
                     err_name(answer.take),
                     err_name(answer.write));
        }
        struck += answer.open != ERR_OK || answer.take != ERR_OK ||
                  answer.write != ERR_OK;
        check(world, what, n);
        if (!has_struck) {
            break;
        }
    }
    assert_true(n < POINTS_MAX);
    assert_true(struck > 0);
}

static void a_full_disk_writes_nothing_and_can_be_tried_again(void **state)
{
    struct world world;
    set_up(&world, *state);
    fail_at_each_point(&world, DISK_FULL, ERR_LIMIT, "write");
    tear_down(&world);
}

static void a_write_that_fails_is_an_error_of_the_disk(void **state)
{
    struct world world;
    set_up(&world, *state);
    fail_at_each_point(&world, DISK_WRITE_EIO, ERR_IO, "write");
    tear_down(&world);
}

static void a_sync_that_fails_is_never_acknowledged(void **state)
{
    struct world world;
    set_up(&world, *state);
    fail_at_each_point(&world, DISK_SYNC_EIO, ERR_IO, "sync");
    tear_down(&world);
}

static void a_file_that_cannot_be_opened_is_reported(void **state)
{
    struct world world;
    set_up(&world, *state);
    fail_at_each_point(&world, DISK_OPEN_FAILS, ERR_IO, "open");
    tear_down(&world);
}

/* The checkpoint comes after the commit, so the batch itself has succeeded. */
static void
a_checkpoint_that_fails_ends_the_writing_but_loses_nothing(void **state)
{
    struct world world;
    set_up(&world, *state);
    strbuf_pad(&world.long_text, 'x', LONG_TEXT_BYTES);
    uint32_t failed_later = 0;
    for (uint32_t n = 1; n <= 5; n++) {
        uint64_t epoch = 0;
        struct store *store = fixture_take(world.fixture, &epoch);
        disk_arm(world.disk, DISK_SYNC_EIO, n);
        enum err err = write_batch(&world, store, epoch);
        bool struck = disk_has_struck(world.disk);
        disk_heal(world.disk);
        assert_true(is_one_of(err, ERR_IO));
        enum err next = write_batch(&world, store, epoch);
        /* Not even with a disk that now claims to be sound. */
        assert_int_equal(next, struck ? ERR_IO : ERR_OK);
        failed_later += err == ERR_OK && next == ERR_IO;
        store_close(store);
        check(&world, "sync", n);
    }
    assert_true(failed_later > 0);
    tear_down(&world);
}

/* The shared memory does not survive. */
static void forget_shm(struct fixture *fixture)
{
    char *path = fixture_path(fixture, "sluice.db-shm");
    assert_int_equal(unlink(path), 0);
    mem_free(path);
}

static void a_power_cut_loses_nothing_that_was_acknowledged(void **state)
{
    struct world world;
    set_up(&world, *state);
    struct rng rng;
    rng_init(&rng, fixture_seed(SEED));
    uint32_t unfinished = 0;
    for (uint32_t n = 0; n < CUTS; n++) {
        disk_set_sectors(world.disk, n % 2 == 0 ? 512 : 4096, &rng);
        disk_arm(world.disk, DISK_POWER_CUT, 1 + rng_below(&rng, 150));
        struct store *store = NULL;
        struct store_owner self = fixture_self();
        uint64_t epoch = 0;
        enum err err =
            store_open(&store, world.fixture->dir, STORE_WRITE, NULL);
        if (err == ERR_OK) {
            err = store_take(store, &self, &epoch, NULL);
        }
        for (int ix = 0; ix < 20 && err == ERR_OK; ix++) {
            err = write_batch(&world, store, epoch);
        }
        unfinished += err != ERR_OK;
        store_close(store); /* or at the latest there */
        if (disk_has_struck(world.disk)) {
            forget_shm(world.fixture);
        }
        disk_heal(world.disk);
        check(&world, "cut", n);
    }
    assert_true(unfinished > CUTS / 2);
    tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_SQLITE(a_full_disk_writes_nothing_and_can_be_tried_again),
        FIXTURE_SQLITE(a_write_that_fails_is_an_error_of_the_disk),
        FIXTURE_SQLITE(a_sync_that_fails_is_never_acknowledged),
        FIXTURE_SQLITE(a_file_that_cannot_be_opened_is_reported),
        FIXTURE_SQLITE(
            a_checkpoint_that_fails_ends_the_writing_but_loses_nothing),
        FIXTURE_SQLITE(a_power_cut_loses_nothing_that_was_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
