/* SPDX-License-Identifier: MIT */
/*
 * What is below a store fails at every point of each of its operations, one
 * after the other: the connection to a server is cut, the disk cannot be read.
 * The operation then says so, or has succeeded all the same; it never reports
 * a damaged store, and afterwards everything is as it was.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "store/copy.h"
#include "store/pg_doctor.h"
#include "store/pg_roles.h"
#include "tests/contract/disk.h"
#include "tests/contract/fixture.h"
#include "tests/contract/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { POINTS_MAX = 1000000, WAIT_MS = 50 };

static struct server *server;
static struct wire *wire;

/* Something that is done with a store that is open, or NULL. */
typedef enum err (*operation_fn)(struct fixture *fixture,
                                 struct store *store,
                                 struct diag *diag);

static enum err
op_open(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)store;
    struct store *other = NULL;
    enum err err =
        store_open(&other, fixture_address(fixture), STORE_READ, diag);
    store_close(other);
    return err;
}

static enum err
op_take(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)store;
    struct store *other = NULL;
    struct store_owner self = fixture_self();
    uint64_t epoch = 0;
    enum err err =
        store_open(&other, fixture_address(fixture), STORE_WRITE, diag);
    if (err == ERR_OK) {
        err = store_take(other, &self, &epoch, diag);
    }
    store_close(other);
    return err;
}

static enum err
op_owner(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)fixture;
    struct store_owner owner;
    enum err err = store_owner(store, &owner, diag);
    return err == ERR_NOT_FOUND ? ERR_OK : err; /* nobody schedules */
}

static enum err
op_read(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)fixture;
    struct strbuf text = {0};
    const struct store_query query = {0};
    enum err err = fixture_add_rows(store, &query, &text, diag);
    strbuf_release(&text);
    return err;
}

static enum err
op_events(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)fixture;
    struct strbuf text = {0};
    enum err err = fixture_add_events(store, 0, &text, diag);
    strbuf_release(&text);
    return err;
}

static enum err
op_mark(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)fixture;
    struct store_mark mark;
    return store_mark(store, &mark, diag);
}

static enum err
op_verify(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)fixture;
    struct strbuf faults = {0};
    enum err err = fixture_verify(store, &faults, diag);
    if (err == ERR_OK) {
        fixture_assert_contains(&faults, "unknown state"); /* of the fixture */
    }
    strbuf_release(&faults);
    return err;
}

static enum err
op_ask(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)fixture;
    struct strbuf request = {0};
    struct store_key key;
    char *answer = NULL;
    enum err err = store_add_key(&request, &key, "{}", diag);
    if (err == ERR_OK) {
        err = store_ask(store,
                        &key,
                        strbuf_text(&request),
                        WAIT_MS,
                        &answer,
                        diag);
    }
    assert_null(answer);
    strbuf_release(&request);
    /* There is no scheduler; if that cannot be read, its fate is unknown. */
    return err == ERR_NOT_FOUND || err == ERR_IO ? ERR_OK : err;
}

static enum err
op_ping(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)fixture;
    enum err err = store_ping(store, WAIT_MS, diag);
    return err == ERR_NOT_FOUND || err == ERR_IO ? ERR_OK : err;
}

static enum err
op_roles(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)store;
    struct strbuf schema = {0};
    enum err err = pg_roles_apply(fixture_address(fixture), &schema, diag);
    strbuf_release(&schema);
    return err;
}

static void
on_finding(void *ctx, enum pg_level level, const char *name, const char *text)
{
    (void)ctx;
    (void)level;
    assert_true(name[0] != '\0' && text[0] != '\0');
}

static enum err
op_examine(struct fixture *fixture, struct store *store, struct diag *diag)
{
    (void)store;
    (void)diag;
    struct strbuf shown = {0};
    (void)pg_examine(fixture_address(fixture), &shown, on_finding, NULL);
    strbuf_release(&shown);
    return ERR_OK;
}

/* Whether an error says that something could not be reached or read. */
static bool is_fair(enum err err)
{
    return err == ERR_OK || err == ERR_BUSY || err == ERR_UNAVAILABLE ||
           err == ERR_TIMEOUT || err == ERR_IO;
}

/* What fails: arm(n) lets the n-th point fail; has_failed() tells. */
struct means {
    void (*arm)(void *ctx, uint32_t n);
    bool (*has_failed)(void *ctx);
    void (*heal)(void *ctx);
    void *ctx;
};

/* Let an operation fail at each point until it passes all of them. */
static void fail_at_each_point(struct fixture *fixture,
                               const struct means *means,
                               operation_fn operation,
                               bool opens)
{
    struct store *before = fixture_open(fixture, STORE_READ);
    struct strbuf contents = fixture_contents(before);
    store_close(before);
    uint32_t n = 0;
    bool failed = true;
    while (failed) {
        assert_true(n < POINTS_MAX);
        struct diag diag = {0};
        struct store *store = opens ? NULL : fixture_open(fixture, STORE_READ);
        uint32_t next = n + 1 + n / 64; /* the first ones all, then some */
        means->arm(means->ctx, next);
        enum err err = operation(fixture, store, &diag);
        failed = means->has_failed(means->ctx);
        means->heal(means->ctx);
        store_close(store);
        if (!failed && err == ERR_BUSY) {
            /* The server has not noticed the last cut yet: once more. */
            failed = true;
            (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            continue;
        }
        n = next;
        if (!is_fair(err) || (!failed && err != ERR_OK)) {
            fail_msg("point %u: %s: %s", n, err_name(err), diag.text);
        }
        assert_true(err == ERR_OK || diag.text[0] != '\0');
    }
    assert_true(n > 1);
    struct store *after = fixture_open(fixture, STORE_READ);
    struct strbuf now = fixture_contents(after);
    store_close(after);
    assert_string_equal(strbuf_text(&now), strbuf_text(&contents));
    strbuf_release(&now);
    strbuf_release(&contents);
}

static void fill(struct fixture *fixture)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(fixture, &epoch);
    store_close(store);
}

/* --- connections -------------------------------------------------------- */

static void arm_wire(void *ctx, uint32_t n)
{
    (void)ctx;
    wire_set(wire, WIRE_CUT_LATER, n);
}

static bool wire_failed(void *ctx)
{
    (void)ctx;
    return wire_has_failed(wire);
}

static void heal_wire(void *ctx)
{
    (void)ctx;
    wire_set(wire, WIRE_PASS, 0);
}

static const struct means cuts = {
    .arm = arm_wire,
    .has_failed = wire_failed,
    .heal = heal_wire,
};

static int set_up_wire(void **state)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    server = server != NULL ? server : server_start(NULL);
    wire = wire != NULL ? wire : wire_open(server);
    fixture->backend = BACKEND_POSTGRES;
    fixture->address = fixture_address_at(wire_address(wire));
    *state = fixture;
    return 0;
}

static int tear_down_wire(void **state)
{
    wire_set(wire, WIRE_PASS, 0);
    return fixture_tear_down(state);
}

static int stop_server(void **state)
{
    (void)state;
    wire_close(wire);
    server_stop(server);
    return 0;
}

static void a_cut_connection_damages_no_operation(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    fail_at_each_point(fixture, &cuts, op_open, true);
    fail_at_each_point(fixture, &cuts, op_owner, false);
    fail_at_each_point(fixture, &cuts, op_read, false);
    fail_at_each_point(fixture, &cuts, op_events, false);
    fail_at_each_point(fixture, &cuts, op_mark, false);
    fail_at_each_point(fixture, &cuts, op_verify, false);
    fail_at_each_point(fixture, &cuts, op_ask, false);
    fail_at_each_point(fixture, &cuts, op_ping, false);
}

static void a_cut_connection_leaves_the_lease_to_be_taken(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    fail_at_each_point(fixture, &cuts, op_take, true);
    fail_at_each_point(fixture, &cuts, op_roles, true);
    fail_at_each_point(fixture, &cuts, op_examine, true);
}

/* --- disks -------------------------------------------------------------- */

static void arm_disk(void *ctx, uint32_t n)
{
    disk_arm(ctx, DISK_READ_EIO, n);
}

static bool disk_failed(void *ctx)
{
    return disk_has_struck(ctx);
}

static void heal_disk(void *ctx)
{
    disk_heal(ctx);
}

static void a_disk_that_cannot_be_read_damages_no_operation(void **state)
{
    struct fixture *fixture = *state;
    struct disk *disk = disk_install();
    const struct means reads = {
        .arm = arm_disk,
        .has_failed = disk_failed,
        .heal = heal_disk,
        .ctx = disk,
    };
    fill(fixture);
    fail_at_each_point(fixture, &reads, op_open, true);
    fail_at_each_point(fixture, &reads, op_take, true);
    fail_at_each_point(fixture, &reads, op_read, false);
    fail_at_each_point(fixture, &reads, op_events, false);
    fail_at_each_point(fixture, &reads, op_verify, false);
    disk_uninstall(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cut_connection_damages_no_operation,
                                        set_up_wire,
                                        tear_down_wire),
        cmocka_unit_test_setup_teardown(
            a_cut_connection_leaves_the_lease_to_be_taken,
            set_up_wire,
            tear_down_wire),
        FIXTURE_SQLITE(a_disk_that_cannot_be_read_damages_no_operation),
    };
    return cmocka_run_group_tests_name("store_cuts", tests, NULL, stop_server);
}
