/* SPDX-License-Identifier: MIT */
/*
 * What a store in PostgreSQL alone can suffer: connections that break at any
 * byte, servers that crash, are restored or refuse, and other schedulers at the
 * same instant.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "store/pg_link.h"
#include "tests/contract/fixture.h"
#include "tests/contract/server.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SEED = 20 };

/* A server of this program, beside that of the fixture, for tests that stop
 * it; and a wire to it. */
static struct server *server;
static struct wire *wire;

/* A fixture by that wire. */
static int set_up(void **state)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    if (server == NULL) {
        server = server_start(NULL);
    }
    if (wire == NULL) {
        wire = wire_open(server);
    }
    fixture->backend = BACKEND_POSTGRES;
    fixture->address = fixture_address_at(wire_address(wire));
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
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

static void pause_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* The event of a step; `step` makes it different from all others. */
static struct store_change event_of(uint64_t step, struct strbuf *data)
{
    struct store_change change = fixture_event(STORE_NONE, STORE_NONE, "ready");
    strbuf_clear(data);
    strbuf_addf(data, "{\"step\":%" PRIu64 "}", step);
    change.as.event.kind = "settings";
    change.as.event.data = strbuf_text(data);
    return change;
}

/* Write it, again and again until it is known to be written. Most have
 * an order for a worker, and are seen before they are on disk. */
static unsigned write_step(struct store *store, uint64_t epoch, uint64_t step)
{
    struct strbuf data = {0};
    struct store_change change = event_of(step, &data);
    struct store_batch batch = {
        .epoch = epoch,
        .engine_ns = 1000,
        .wall_ns = 2000,
    };
    struct diag diag = {0};
    unsigned tries = 1;
    enum err err;
    store_batch_add(&batch, &change);
    if (step % 8 != 0) {
        strbuf_addf(&batch.orders,
                    "{\"token\":%" PRIu64 ",\"nonce\":\"n\",\"worker\":\"w\","
                    "\"instance\":\"i\",\"body\":\"{}\"}",
                    step);
    }
    while ((err = store_write(store, &batch, &diag)) == ERR_BUSY) {
        pause_ms(2);
        tries++;
    }
    if (err != ERR_OK) {
        fail_msg("step %" PRIu64 ": %s", step, diag.text);
    }
    store_batch_release(&batch);
    strbuf_release(&data);
    return tries;
}

/* Events must be the steps, each once and in order. */
struct counted {
    uint64_t next;
    uint64_t wrong;
};

static enum err count_step(void *ctx, const struct store_event *event)
{
    struct counted *counted = ctx;
    uint64_t step = strtoull(event->data + strlen("{\"step\":"), NULL, 10);
    counted->wrong += step != counted->next ? 1 : 0;
    counted->next++;
    return ERR_OK;
}

static void assert_steps(struct fixture *fixture, uint64_t steps)
{
    wire_set(wire, WIRE_PASS, 0);
    struct store *store = fixture_open(fixture, STORE_READ);
    struct store_range range = {0};
    struct counted counted = {0};
    assert_int_equal(store_events(store, &range, count_step, &counted, NULL),
                     ERR_OK);
    assert_int_equal(counted.wrong, 0);
    assert_int_equal(counted.next, steps);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    strbuf_release(&faults);
    store_close(store);
}

/* --- connections -------------------------------------------------------- */

static void cut_at_a_commit_it_is_written_once(void **state)
{
    static const enum wire_fault faults[] = {
        WIRE_CUT_BEFORE_COMMIT,
        WIRE_CUT_AFTER_COMMIT,
        WIRE_LATE_COMMIT,
        WIRE_LATE_BATCH,
    };
    uint64_t epoch = 0;
    uint64_t steps = 0;
    struct store *store = fixture_take(*state, &epoch);
    for (int round = 0; round < 10; round++) {
        for (size_t ix = 0; ix < ARRAY_COUNT(faults); ix++) {
            (void)write_step(store, epoch, steps++);
            wire_set(wire, faults[ix], 0);
            (void)write_step(store, epoch, steps++);
            assert_true(wire_has_failed(wire));
        }
    }
    store_close(store);
    assert_steps(*state, steps);
}

static void cut_anywhere_it_is_written_once(void **state)
{
    enum { STEPS = 400 };
    struct rng rng;
    rng_init(&rng, fixture_seed(SEED));
    uint64_t epoch = 0;
    uint64_t failed = 0;
    struct store *store = fixture_take(*state, &epoch);
    for (uint64_t step = 0; step < STEPS; step++) {
        wire_set(wire, WIRE_CUT_LATER, 1 + rng_below(&rng, 6));
        (void)write_step(store, epoch, step);
        failed += wire_has_failed(wire) ? 1 : 0;
        if (rng_below(&rng, 8) == 0) { /* a heartbeat in between */
            enum err err = fixture_write(store, epoch, NULL, 0, NULL);
            assert_true(err == ERR_OK || err == ERR_BUSY);
        }
    }
    assert_true(failed > STEPS / 4);
    store_close(store);
    assert_steps(*state, STEPS);
}

/* While no server is there, nothing is known; afterwards it is. */
static void an_outage_loses_nothing(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take(*state, &epoch);
    struct strbuf data = {0};
    struct store_change change = event_of(0, &data);
    struct diag diag = {0};
    wire_set(wire, WIRE_CUT_AFTER_COMMIT, 0);
    assert_int_equal(fixture_write(store, epoch, &change, 1, NULL), ERR_OK);
    wire_set(wire, WIRE_DOWN, 0);
    change = event_of(1, &data);
    for (int ix = 0; ix < 3; ix++) {
        assert_int_equal(fixture_write(store, epoch, &change, 1, &diag),
                         ERR_BUSY);
        assert_int_equal(fixture_write(store, epoch, NULL, 0, &diag), ERR_BUSY);
        assert_true(diag.text[0] != '\0');
    }
    wire_set(wire, WIRE_PASS, 0);
    assert_int_equal(fixture_write(store, epoch, &change, 1, NULL), ERR_OK);
    strbuf_release(&data);
    store_close(store);
    assert_steps(*state, 2);
}

/* --- the server --------------------------------------------------------- */

/* What a second thread does to the server while steps are written. */
struct trouble {
    const struct fixture *fixture;
    atomic_bool stop;
    atomic_uint done;
};

/* Terminate the connection of the scheduler, all the time. */
static void *terminate(void *ctx)
{
    struct trouble *trouble = ctx;
    struct pg_link link;
    struct diag diag = {0};
    if (pg_link_init(&link, trouble->fixture->address, &diag) != ERR_OK) {
        return NULL;
    }
    while (!atomic_load(&trouble->stop)) {
        int64_t rows = 0;
        if (pg_link_need(&link, &diag) == ERR_OK &&
            pg_do(&link,
                  "SELECT FROM scheduler WHERE pg_terminate_backend("
                  "backend_pid::int)",
                  NULL,
                  &rows,
                  &diag) == ERR_OK) {
            atomic_fetch_add(&trouble->done, (unsigned)rows);
        }
        pause_ms(3);
    }
    pg_link_release(&link);
    return NULL;
}

static void a_terminated_connection_loses_and_doubles_nothing(void **state)
{
    enum { TERMINATED = 60 };
    struct trouble trouble = {.fixture = *state};
    uint64_t epoch = 0;
    uint64_t steps = 0;
    pthread_t thread;
    struct store *store = fixture_take(*state, &epoch);
    assert_int_equal(pthread_create(&thread, NULL, terminate, &trouble), 0);
    while (atomic_load(&trouble.done) < TERMINATED) {
        (void)write_step(store, epoch, steps++);
    }
    atomic_store(&trouble.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    store_close(store);
    assert_true(steps > 0);
    assert_steps(*state, steps);
}

/* Crash the server a few times. */
static void *crash(void *ctx)
{
    struct trouble *trouble = ctx;
    for (int ix = 0; ix < 3; ix++) {
        server_do(server, "restart");
        atomic_fetch_add(&trouble->done, 1);
    }
    atomic_store(&trouble->stop, true);
    return NULL;
}

static void a_server_that_crashes_loses_and_doubles_nothing(void **state)
{
    struct trouble trouble = {.fixture = *state};
    uint64_t epoch = 0;
    uint64_t steps = 0;
    unsigned tries = 0;
    pthread_t thread;
    struct store *store = fixture_take(*state, &epoch);
    assert_int_equal(pthread_create(&thread, NULL, crash, &trouble), 0);
    while (!atomic_load(&trouble.stop)) {
        tries += write_step(store, epoch, steps++);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)write_step(store, epoch, steps++);
    store_close(store);
    assert_true(tries > steps); /* some had to wait */
    assert_steps(*state, steps);
}

/* As if a standby without the last writes had become the server. */
static void lost_writes_are_noticed(void **state)
{
    struct strbuf data = {0};
    struct diag diag = {0};
    uint64_t epoch = 0;
    struct store *store = fixture_take(*state, &epoch);
    (void)write_step(store, epoch, 0);
    server_do(server, "save");
    (void)write_step(store, epoch, 1);
    (void)write_step(store, epoch, 2);
    server_do(server, "restore");
    struct store_change change = event_of(3, &data);
    assert_int_equal(fixture_write(store, epoch, &change, 1, &diag),
                     ERR_CORRUPT);
    assert_non_null(strstr(diag.text, "lost acknowledged writes"));
    assert_non_null(strstr(diag.text, "standby"));
    assert_int_equal(fixture_write(store, epoch, &change, 1, NULL),
                     ERR_CORRUPT);
    store_close(store);
    /* Another scheduler continues, from what there is. */
    fixture_lose_lock(*state);
    store = fixture_take(*state, &epoch);
    (void)write_step(store, epoch, 1);
    strbuf_release(&data);
    store_close(store);
    assert_steps(*state, 2);
}

/* The epoch itself is among what was lost, and another process has the same
 * number now. */
static void a_lost_epoch_is_not_taken_for_another(void **state)
{
    struct diag diag = {0};
    struct strbuf data = {0};
    uint64_t epochs[3] = {0};
    struct store *store = fixture_take(*state, &epochs[0]);
    (void)write_step(store, epochs[0], 0);
    store_close(store);
    server_do(server, "save");
    store = fixture_take(*state, &epochs[1]);
    server_do(server, "restore");
    enum err err;
    do { /* the first one finds the connection broken */
        err = fixture_write(store, epochs[1], NULL, 0, &diag);
    } while (err == ERR_BUSY);
    assert_int_equal(err, ERR_CORRUPT);
    store_close(store);
    server_do(server, "save");
    store = fixture_take(*state, &epochs[1]);
    server_do(server, "restore");
    struct store *other = fixture_take(*state, &epochs[2]);
    assert_int_equal(epochs[2], epochs[1]);
    (void)write_step(other, epochs[2], 1);
    struct store_change change = event_of(2, &data);
    assert_int_equal(fixture_write(store, epochs[1], &change, 1, &diag),
                     ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "another process"));
    (void)write_step(other, epochs[2], 2);
    strbuf_release(&data);
    store_close(store);
    store_close(other);
    assert_steps(*state, 3);
}

/* --- schedulers at the same instant ------------------------------------- */

/* A superseded scheduler tries to write a few times more. */
enum { RIVALS = 2, TAKE_OVERS = 300, TOO_LATE = 4 };

/* One of the schedulers. */
struct rival {
    const char *address;
    atomic_uint *taken; /* take-overs of all */
    uint32_t accepted;
    uint32_t refused;
    struct diag failure;
};

/* Take the store, whoever has it, and write until another one has it. */
static void *rival_run(void *ctx)
{
    struct rival *rival = ctx;
    struct diag *diag = &rival->failure;
    struct strbuf data = {0};
    enum err err = ERR_OK;
    while (err == ERR_OK &&
           atomic_fetch_add(rival->taken, 1) < TAKE_OVERS + RIVALS) {
        struct store_owner self = fixture_self();
        struct store *store = NULL;
        uint64_t epoch = 0;
        err = store_open(&store, rival->address, STORE_WRITE, diag);
        if (err == ERR_OK) {
            err = store_take(store, &self, &epoch, diag);
        }
        while (err == ERR_OK &&
               atomic_load(rival->taken) < TAKE_OVERS + RIVALS) {
            struct store_change change = event_of(rival->accepted, &data);
            err = fixture_write(store, epoch, &change, 1, diag);
            rival->accepted += err == ERR_OK ? 1 : 0;
        }
        for (int ix = 0; ix < TOO_LATE && err == ERR_CONFLICT; ix++) {
            struct store_change change = event_of(UINT64_MAX, &data);
            err = fixture_write(store, epoch, &change, 1, diag);
            rival->refused++;
        }
        err = err == ERR_CONFLICT ? ERR_OK : err;
        store_close(store);
    }
    if (err == ERR_OK) {
        diag->text[0] = '\0';
    }
    strbuf_release(&data);
    return NULL;
}

static void of_two_schedulers_the_newest_alone_writes(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf address = {0}; /* with leases that have always ended */
    strbuf_addf(&address, "%s%%20-csluice.lease%%3D0", fixture->address);
    atomic_uint taken = 0;
    struct rival rivals[RIVALS];
    pthread_t threads[RIVALS];
    uint64_t epoch = 0;
    store_close(fixture_take(fixture, &epoch));
    for (int ix = 0; ix < RIVALS; ix++) {
        rivals[ix] = (struct rival){
            .address = strbuf_text(&address),
            .taken = &taken,
        };
        assert_int_equal(
            pthread_create(&threads[ix], NULL, rival_run, &rivals[ix]),
            0);
    }
    uint64_t accepted = 0;
    uint32_t refused = 0;
    for (int ix = 0; ix < RIVALS; ix++) {
        assert_int_equal(pthread_join(threads[ix], NULL), 0);
        assert_string_equal(rivals[ix].failure.text, "");
        accepted += rivals[ix].accepted;
        refused += rivals[ix].refused;
    }
    /* An acknowledged write is there, a refused one is not. */
    struct store *store = fixture_open(fixture, STORE_READ);
    assert_int_equal(fixture_info(store).last_event, accepted);
    assert_true(fixture_info(store).epoch >= TAKE_OVERS);
    assert_true(refused >= (TAKE_OVERS - RIVALS) * TOO_LATE);
    print_message("# %u take-overs, %" PRIu64 " writes, %u came too late\n",
                  TAKE_OVERS,
                  accepted,
                  refused);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    strbuf_release(&faults);
    strbuf_release(&address);
    store_close(store);
}

/* --- refusals ----------------------------------------------------------- */

/* A connection for what somebody else does. */
static void open_link(struct pg_link *link, const struct fixture *fixture)
{
    struct diag diag = {0};
    if (pg_link_init(link, fixture->address, &diag) != ERR_OK ||
        pg_link_need(link, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

static void a_locked_row_is_waited_for_and_then_reported(void **state)
{
    struct strbuf data = {0};
    struct diag diag = {0};
    struct pg_link other;
    uint64_t epoch = 0;
    struct store *store = fixture_take(*state, &epoch);
    open_link(&other, *state);
    assert_int_equal(pg_do(&other,
                           "BEGIN; SELECT FROM scheduler FOR UPDATE",
                           NULL,
                           NULL,
                           &diag),
                     ERR_OK);
    struct store_change change = event_of(0, &data);
    assert_int_equal(fixture_write(store, epoch, &change, 1, &diag), ERR_BUSY);
    assert_non_null(strstr(diag.text, "lock timeout"));
    assert_int_equal(pg_do(&other, "ROLLBACK", NULL, NULL, &diag), ERR_OK);
    pg_link_release(&other);
    (void)write_step(store, epoch, 0);
    strbuf_release(&data);
    store_close(store);
    assert_steps(*state, 1);
}

static void a_read_only_server_is_waited_for(void **state)
{
    struct strbuf data = {0};
    struct diag diag = {0};
    struct pg_link other;
    uint64_t epoch = 0;
    struct store *store = fixture_take(*state, &epoch);
    (void)write_step(store, epoch, 0);
    open_link(&other, *state);
    assert_int_equal(pg_do(&other,
                           "ALTER SYSTEM SET default_transaction_read_only"
                           " = on",
                           NULL,
                           NULL,
                           &diag),
                     ERR_OK);
    server_do(server, "restart");
    struct store_change change = event_of(1, &data);
    assert_int_equal(fixture_write(store, epoch, &change, 1, &diag), ERR_BUSY);
    assert_non_null(strstr(diag.text, "read-only"));
    assert_int_equal(fixture_write(store, epoch, NULL, 0, &diag), ERR_BUSY);
    struct strbuf address = {0};
    strbuf_addf(&address, "%s&target_session_attrs=any", other.address);
    pg_link_release(&other);
    assert_int_equal(pg_link_init(&other, strbuf_text(&address), &diag),
                     ERR_OK);
    assert_int_equal(pg_link_need(&other, &diag), ERR_OK);
    assert_int_equal(pg_do(&other,
                           "ALTER SYSTEM RESET default_transaction_read_only",
                           NULL,
                           NULL,
                           &diag),
                     ERR_OK);
    pg_link_release(&other);
    server_do(server, "restart");
    (void)write_step(store, epoch, 1);
    strbuf_release(&address);
    strbuf_release(&data);
    store_close(store);
    assert_steps(*state, 2);
}

/* A text that a heartbeat cuts in the middle of a character. */
static void a_cut_character_does_no_harm(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take(*state, &epoch);
    struct strbuf trouble = {0};
    for (int ix = 0; ix < 126; ix++) {
        strbuf_adds(&trouble, "x");
    }
    strbuf_adds(&trouble, "\xc3\xa9\xff");
    struct store_batch batch = {
        .epoch = epoch,
        .trouble = strbuf_text(&trouble),
    };
    assert_int_equal(store_write(store, &batch, NULL), ERR_OK);
    struct store_owner owner;
    assert_int_equal(store_owner(store, &owner, NULL), ERR_OK);
    assert_string_equal(owner.trouble + 124, "xx?");
    store_batch_release(&batch);
    strbuf_release(&trouble);
    struct store_query query = {.run = "\xff", .task = "\xff"};
    struct strbuf text = {0};
    assert_int_equal(fixture_add_rows(store, &query, &text, NULL), ERR_OK);
    strbuf_release(&text);
    store_close(store);
}

#define WITH_WIRE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WIRE(cut_at_a_commit_it_is_written_once),
        WITH_WIRE(cut_anywhere_it_is_written_once),
        WITH_WIRE(an_outage_loses_nothing),
        WITH_WIRE(a_terminated_connection_loses_and_doubles_nothing),
        WITH_WIRE(a_server_that_crashes_loses_and_doubles_nothing),
        WITH_WIRE(lost_writes_are_noticed),
        WITH_WIRE(a_lost_epoch_is_not_taken_for_another),
        FIXTURE_POSTGRES(of_two_schedulers_the_newest_alone_writes),
        WITH_WIRE(a_locked_row_is_waited_for_and_then_reported),
        WITH_WIRE(a_read_only_server_is_waited_for),
        WITH_WIRE(a_cut_character_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, stop_server);
}
