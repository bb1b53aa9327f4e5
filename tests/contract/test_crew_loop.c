/* SPDX-License-Identifier: MIT */
/*
 * The process of a worker, which runs inside of this one. Between two waits of
 * its loop, the step of a case looks at what has become of it, and goes on.
 */
#include "work/crew_loop.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "tests/contract/fixture.h"
#include "tests/support/calls.h"
#include "work/key.h"
#include "work/order.h"
#include "work/wire.h"
#include "work/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define NONCE "0123456789abcdef0123456789abcdef"

enum { PATIENCE_S = 120, TOKEN = 7 };

struct station {
    struct fixture *fixture;
    char home[64];
    struct store_place place;
    const char *labels;
    struct strbuf said; /* to people */
    int parent[2];      /* a pipe; -1: none */
    int door;           /* a client's socket; -1: none */
    struct strbuf answers;
    uint32_t stage; /* of the case */
    void (*step)(struct station *station);
};

static void on_say(void *ctx, const char *text)
{
    struct station *station = ctx;
    strbuf_addf(&station->said, "%s\n", text);
}

static void on_tick(void *ctx)
{
    struct station *station = ctx;
    station->step(station);
}

static void begin(struct station *station, struct fixture *fixture)
{
    static const char *const variables[] = {"SLUICE_GIT",
                                            "SLUICE_AGENT",
                                            "SLUICE_SANDBOX",
                                            "SLUICE_MAIN"};
    uint64_t epoch = 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(variables); ix++) {
        assert_int_equal(setenv(variables[ix], "/bin/true", 1), 0);
    }
    *station = (struct station){
        .fixture = fixture,
        .labels = "",
        .parent = {-1, -1},
        .door = -1,
    };
    (void)snprintf(station->home,
                   sizeof(station->home),
                   "/tmp/sluice-crew-XXXXXX");
    assert_non_null(mkdtemp(station->home));
    station->place = (struct store_place){
        .address = fixture->address,
        .shown = fixture->address,
        .id = station->home,
        .home = station->home,
    };
    store_close(fixture_take(fixture, &epoch)); /* its tables are made */
    fixture_sql(fixture, "UPDATE scheduler SET quiet_until = now()");
    (void)alarm(PATIENCE_S);
}

static int
remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void end(struct station *station)
{
    (void)alarm(0);
    strbuf_release(&station->said);
    strbuf_release(&station->answers);
    for (size_t ix = 0; ix < ARRAY_COUNT(station->parent); ix++) {
        if (station->parent[ix] >= 0) {
            (void)close(station->parent[ix]);
        }
    }
    if (station->door >= 0) {
        (void)close(station->door);
    }
    (void)nftw(station->home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Run the worker `w` until it leaves. */
static enum err run(struct station *station, struct diag *diag)
{
    *diag = (struct diag){0};
    station->stage = 0;
    return crew_loop_run(
        &(struct crew_loop_options){
            .place = &station->place,
            .name = "w",
            .labels = station->labels,
            .slots = 2,
            .proto = WIRE_PROTO,
            .parent_fd = station->parent[0],
            .say = on_say,
            .tick = on_tick,
            .ctx = station,
        },
        diag);
}

/* Run it, which must succeed. */
static void run_well(struct station *station)
{
    struct diag diag;
    if (run(station, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

/* A path in the home, until the next call. */
static const char *path_of(const struct station *station, const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", station->home, name);
    return path;
}

static bool exists(const struct station *station, const char *name)
{
    return access(path_of(station, name), F_OK) == 0;
}

static void touch(const struct station *station, const char *name)
{
    int fd = open(path_of(station, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static bool says(const struct station *station, const char *text)
{
    return strstr(strbuf_text(&station->said), text) != NULL;
}

static void note_state(void *ctx, const struct workers_row *row)
{
    strbuf_addf(ctx, "%s %s [%s]", row->name, row->state, row->labels);
}

/* Whether the row of the worker is this one. */
static bool has_row(const struct station *station, const char *expected)
{
    struct strbuf state = {0};
    struct diag diag = {0};
    assert_int_equal(
        workers_list(station->fixture->address, note_state, &state, &diag),
        ERR_OK);
    bool has = strcmp(strbuf_text(&state), expected) == 0;
    strbuf_release(&state);
    return has;
}

/* --- life --------------------------------------------------------------- */

/* Have it drain as soon as it has a lease of the first generation. */
static void drain_step(struct station *station)
{
    if (station->stage == 0 && exists(station, "lease-w-1")) {
        station->stage = 1;
        assert_int_equal(raise(SIGTERM), 0);
    }
}

static void a_worker_registers_and_leaves(void **state)
{
    struct station station;
    begin(&station, *state);
    station.step = drain_step;
    run_well(&station);
    assert_true(says(&station, "draining"));
    assert_true(has_row(&station, "w gone []"));
    station.labels = "gpu,big";
    run_well(&station); /* once more, with the same home */
    assert_true(has_row(&station, "w gone [gpu,big]"));
    end(&station);
}

/* Whatever fails while it begins, it says so, and the next one begins. */
static void fail_step(struct station *station)
{
    (void)calls_end();
    drain_step(station);
}

static void any_call_of_its_set_up_can_fail(void **state)
{
    struct station station;
    unsigned failed = 0;
    begin(&station, *state);
    station.step = fail_step;
    assert_int_equal(pipe2(station.parent, O_CLOEXEC), 0);
    for (unsigned n = 1; calls_more(); n++) {
        struct diag diag;
        (void)alarm(PATIENCE_S);
        (void)unlink(path_of(&station, n % 2 == 0 ? "worker" : "lease-w-1"));
        calls_fail(&(struct calls_fault){.first = n});
        enum err err = run(&station, &diag);
        (void)calls_end();
        failed += err != ERR_OK ? 1 : 0;
        assert_true((err == ERR_OK) == (diag.text[0] == '\0'));
        (void)unlink(path_of(&station, "lease-w-1"));
    }
    assert_true(failed > 10);
    run_well(&station);
    assert_true(has_row(&station, "w gone []"));
    end(&station);
}

/* --- its home ----------------------------------------------------------- */

static void no_step(struct station *station)
{
    (void)station;
    fail_msg("it has begun");
}

static void a_home_is_used_by_one_process(void **state)
{
    struct station station;
    struct diag diag;
    begin(&station, *state);
    station.step = no_step;
    touch(&station, "worker");
    int fd = open(path_of(&station, "worker"), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(run(&station, &diag), ERR_BUSY);
    assert_non_null(strstr(diag.text, station.home));
    /* With a parent it waits, until the parent has exited. */
    assert_int_equal(pipe2(station.parent, O_CLOEXEC), 0);
    assert_int_equal(write(station.parent[1], "x", 1), 1);
    assert_int_equal(close(station.parent[1]), 0);
    station.parent[1] = -1;
    assert_int_equal(run(&station, &diag), ERR_BUSY);
    (void)close(fd);
    end(&station);
}

static void what_a_worker_needs_must_be_there(void **state)
{
    struct station station;
    struct diag diag;
    char none[] = "/dev/null/home";
    begin(&station, *state);
    station.step = no_step;
    station.place.home = none;
    assert_int_not_equal(run(&station, &diag), ERR_OK);
    assert_string_not_equal(diag.text, "");
    station.place.home = station.home;
    touch(&station, KEY_DOOR); /* in place of a directory */
    assert_int_not_equal(run(&station, &diag), ERR_OK);
    assert_string_not_equal(diag.text, "");
    assert_int_equal(unlink(path_of(&station, KEY_DOOR)), 0);
    assert_int_equal(setenv("SLUICE_GIT", "/none", 1), 0);
    assert_int_equal(run(&station, &diag), ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "SLUICE_GIT"));
    end(&station);
}

/* Sessions of a generation that is over must not find a lease. */
static void only_the_lease_of_its_generation_is_kept(void **state)
{
    struct station station;
    begin(&station, *state);
    station.step = drain_step;
    run_well(&station);
    fixture_sql(station.fixture, "UPDATE worker SET generation = 40");
    touch(&station, "lease-w-39");
    touch(&station, "lease-w-24");
    touch(&station, "lease-v-39");
    run_well(&station); /* it finds that of the first generation */
    assert_false(exists(&station, "lease-w-39"));
    assert_false(exists(&station, "lease-w-24"));
    assert_true(exists(&station, "lease-v-39")); /* of another worker */
    assert_true(exists(&station, "lease-w-40"));
    end(&station);
}

static void wake(const struct station *station)
{
    fixture_sql(station->fixture, "NOTIFY sluice_workers, 'w'");
}

/* The lease cannot be written: at first, or later. */
static void lease_step(struct station *station)
{
    if (says(station, "cannot write") && station->stage < 2) {
        station->stage = 2;
        assert_true(says(station, "its sessions will be stopped"));
        assert_int_equal(rmdir(path_of(station, "lease-w-1")), 0);
        assert_int_equal(raise(SIGTERM), 0);
    } else if (station->stage == 0 && exists(station, "lease-w-1") &&
               unlink(path_of(station, "lease-w-1")) == 0) {
        station->stage = 1;
        assert_int_equal(mkdir(path_of(station, "lease-w-1"), 0700), 0);
        wake(station);
    }
}

static void a_lease_that_cannot_be_written_is_told(void **state)
{
    struct station station;
    begin(&station, *state);
    station.step = lease_step;
    assert_int_equal(mkdir(path_of(&station, "lease-w-1"), 0700), 0);
    run_well(&station);
    assert_true(says(&station, "lease-w-1"));
    strbuf_clear(&station.said);
    (void)unlink(path_of(&station, "lease-w-1"));
    run_well(&station);
    end(&station);
}

/* --- the store ---------------------------------------------------------- */

/* The function of a turn fails with a code of the table `mode`. */
static const char failing_turn[] =
    "CREATE TABLE mode (code text);"
    "ALTER FUNCTION worker_turn(jsonb) RENAME TO real_turn;"
    "CREATE FUNCTION worker_turn(said jsonb) RETURNS json LANGUAGE plpgsql AS"
    " $$ DECLARE code text := (SELECT max(mode.code) FROM mode);"
    " BEGIN"
    "  IF code <> '' THEN"
    "   RAISE 'a turn failed' USING ERRCODE = code;"
    "  END IF;"
    "  RETURN real_turn(said);"
    " END $$;"
    "INSERT INTO mode VALUES ('53100')";

static void set_code(const struct station *station, const char *code)
{
    struct strbuf sql = {0};
    strbuf_addf(&sql, "UPDATE mode SET code = '%s'", code);
    fixture_sql(station->fixture, strbuf_text(&sql));
    strbuf_release(&sql);
}

/* Failures that pass, one after the other, and then one that does not. */
static void failing_step(struct station *station)
{
    static const char *const codes[] = {"22000", "40001", "42501"};
    if (says(station, "a turn failed")) {
        assert_true(says(station, "trying again"));
        strbuf_clear(&station->said);
        set_code(station, "");
    } else if (says(station, "can be reached again")) {
        strbuf_clear(&station->said);
        set_code(station, codes[station->stage++]);
        wake(station);
    }
}

static void a_worker_leaves_a_store_that_refuses_it(void **state)
{
    struct station station;
    struct diag diag;
    begin(&station, *state);
    fixture_sql(station.fixture, failing_turn);
    station.step = failing_step;
    assert_int_equal(run(&station, &diag), ERR_DENIED);
    assert_non_null(strstr(diag.text, "a turn failed"));
    assert_int_equal(station.stage, 3);
    end(&station);
}

/* Another process has its name. */
static void replaced_step(struct station *station)
{
    if (station->stage == 0 && exists(station, "lease-w-1")) {
        station->stage = 1;
        fixture_sql(station->fixture, "UPDATE worker SET instance = 'other'");
        wake(station);
    }
}

static void a_worker_that_was_replaced_leaves(void **state)
{
    struct station station;
    struct diag diag;
    begin(&station, *state);
    station.step = replaced_step;
    assert_int_equal(run(&station, &diag), ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "worker w"));
    end(&station);
}

/* --- its parent --------------------------------------------------------- */

static void parent_step(struct station *station)
{
    static const char *const calls[] = {"open", "flock"};
    bool struck = calls_end();
    if (station->stage == 0 && exists(station, "lease-w-1")) {
        station->stage = 1;
        assert_int_equal(write(station->parent[1], "x", 1), 1);
        assert_int_equal(close(station->parent[1]), 0);
        station->parent[1] = -1;
        return;
    }
    station->stage += struck ? 1 : 0;
    if (station->stage > 0 && station->stage <= ARRAY_COUNT(calls)) {
        /* Whether there is a successor cannot be seen now. */
        calls_fail(&(struct calls_fault){
            .only = calls[station->stage - 1],
            .first = 1,
        });
    }
}

static void a_worker_leaves_after_its_parent(void **state)
{
    struct station station;
    begin(&station, *state);
    station.step = parent_step;
    assert_int_equal(pipe2(station.parent, O_CLOEXEC), 0);
    run_well(&station);
    (void)calls_end();
    assert_true(has_row(&station, "w gone []"));
    end(&station);
}

/* --- a session ---------------------------------------------------------- */

/* Give the worker an order, which makes the file `begun` in its directory, and
 * waits for the file `go`. */
static void give_order(const struct station *station)
{
    struct strbuf body = {0};
    struct strbuf sql = {0};
    wire_add_order(&body,
                   &(struct work_order){
                       .id = {TOKEN, NONCE, "run", "task", "1"},
                       .folder = station->home,
                       .named = true,
                       .shell = "touch begun; until test -e go; do sleep 0.01;"
                                " done",
                       .timeout_ns = EXEC_NEVER,
                       .idle_ns = EXEC_NEVER,
                       .checkpoint_ns = EXEC_NEVER,
                   });
    strbuf_addf(&sql,
                "INSERT INTO work (token, nonce, worker, instance, body, want,"
                " state) SELECT %d, '" NONCE "', name, instance, '%s', 'run',"
                " 'assigned' FROM worker",
                TOKEN,
                strbuf_text(&body));
    fixture_sql(station->fixture, strbuf_text(&sql));
    wake(station);
    strbuf_release(&body);
    strbuf_release(&sql);
}

/* Drain, stop, leave: all at once, while a session runs. */
static void leaving_step(struct station *station)
{
    if (station->stage == 0 && exists(station, "lease-w-1")) {
        station->stage = 1;
        give_order(station);
    } else if (station->stage == 1 && exists(station, "begun")) {
        station->stage = 2;
        for (int times = 0; times < 3; times++) {
            assert_int_equal(raise(SIGTERM), 0);
        }
    }
}

static void a_third_signal_leaves_the_sessions(void **state)
{
    struct station station;
    begin(&station, *state);
    station.step = leaving_step;
    run_well(&station);
    assert_true(says(&station, "stopping the sessions"));
    assert_false(has_row(&station, "w gone []"));
    strbuf_clear(&station.said);
    (void)unlink(path_of(&station, "lease-w-1"));
    station.step = drain_step; /* the next process waits for its end */
    run_well(&station);
    assert_true(has_row(&station, "w gone []"));
    end(&station);
}

/* --- its door ----------------------------------------------------------- */

static void send_request(struct station *station, const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (station->door < 0) {
        station->door =
            socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)snprintf(address.sun_path,
                       sizeof(address.sun_path),
                       "%s",
                       path_of(station, KEY_DOOR "/" STORE_PLACE_SOCKET));
        assert_int_equal(connect(station->door,
                                 (const struct sockaddr *)&address,
                                 sizeof(address)),
                         0);
    }
    assert_int_equal(write(station->door, text, strlen(text)), strlen(text));
}

/* Read what has come; return how many answers there are so far. */
static uint32_t count_answers(struct station *station)
{
    char text[256];
    uint32_t count = 0;
    ssize_t len = station->door >= 0
                      ? recv(station->door, text, sizeof(text), MSG_DONTWAIT)
                      : -1;
    if (len > 0) {
        strbuf_add(&station->answers, text, (size_t)len);
    }
    for (const char *at = strbuf_text(&station->answers);
         (at = strchr(at, '\n')) != NULL;
         at++) {
        count++;
    }
    return count;
}

/* The key of the session; of another token with `token`. */
static void send_with_key(struct station *station, uint64_t token)
{
    struct key_secret secret;
    struct diag diag = {0};
    char key[KEY_BYTES];
    struct strbuf text = {0};
    assert_int_equal(key_load(&secret, station->home, &diag), ERR_OK);
    key_make(key, &secret, token, NONCE);
    strbuf_addf(&text, "{\"session\":\"%s\",\"verb\":\"x\"}\n", key);
    send_request(station, strbuf_text(&text));
    strbuf_release(&text);
}

static void door_step(struct station *station)
{
    uint32_t answers = count_answers(station);
    if (station->stage == 0 && exists(station, "lease-w-1")) {
        station->stage = 1;
        give_order(station);
    } else if (station->stage == 1 && exists(station, "begun")) {
        station->stage = 2;
        send_request(station,
                     "damaged\n{}\n{\"session\":7}\n"
                     "{\"session\":\"no key\"}\n"
                     "{\"session\":\"7-" NONCE "\"}\n");
        send_with_key(station, TOKEN + 1);
    } else if (station->stage == 2 && answers == 6) {
        station->stage = 3;
        assert_null(strstr(strbuf_text(&station->answers), "unavailable"));
        strbuf_clear(&station->answers);
        send_with_key(station, TOKEN);
    } else if (station->stage == 3) {
        station->stage = 4;
        fixture_sql(station->fixture, "DELETE FROM work"); /* nobody wants it */
        wake(station);
    } else if (station->stage == 4 && answers == 1) {
        station->stage = 5;
        assert_non_null(strstr(strbuf_text(&station->answers), "unavailable"));
        assert_int_equal(raise(SIGTERM), 0);
    }
}

static void requests_need_the_key_of_a_session(void **state)
{
    struct station station;
    begin(&station, *state);
    station.step = door_step;
    run_well(&station);
    assert_int_equal(station.stage, 5);
    end(&station);
}

/* The worker is asked while it cannot reach the store, and once it has. */
static void early_step(struct station *station)
{
    uint32_t answers = count_answers(station);
    if (station->stage == 0 && says(station, "a turn failed")) {
        station->stage = 1;
        send_with_key(station, TOKEN);
    } else if (station->stage == 1 && answers == 1) {
        station->stage = 2;
        assert_non_null(strstr(strbuf_text(&station->answers), "unavailable"));
        strbuf_clear(&station->answers);
        set_code(station, "");
    } else if (station->stage == 2 && exists(station, "lease-w-1")) {
        station->stage = 3;
        send_with_key(station, TOKEN);
    } else if (station->stage == 3 && answers == 1) {
        station->stage = 4;
        assert_non_null(strstr(strbuf_text(&station->answers), "denied"));
        assert_int_equal(raise(SIGTERM), 0);
    }
}

static void no_key_is_denied_before_the_sessions_are_known(void **state)
{
    struct station station;
    begin(&station, *state);
    fixture_sql(station.fixture, failing_turn);
    station.step = early_step;
    run_well(&station);
    assert_int_equal(station.stage, 4);
    end(&station);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_POSTGRES(a_worker_registers_and_leaves),
        FIXTURE_POSTGRES(any_call_of_its_set_up_can_fail),
        FIXTURE_POSTGRES(a_home_is_used_by_one_process),
        FIXTURE_POSTGRES(what_a_worker_needs_must_be_there),
        FIXTURE_POSTGRES(only_the_lease_of_its_generation_is_kept),
        FIXTURE_POSTGRES(a_lease_that_cannot_be_written_is_told),
        FIXTURE_POSTGRES(a_worker_leaves_a_store_that_refuses_it),
        FIXTURE_POSTGRES(a_worker_that_was_replaced_leaves),
        FIXTURE_POSTGRES(a_worker_leaves_after_its_parent),
        FIXTURE_POSTGRES(a_third_signal_leaves_the_sessions),
        FIXTURE_POSTGRES(requests_need_the_key_of_a_session),
        FIXTURE_POSTGRES(no_key_is_denied_before_the_sessions_are_known),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as the program has it */
    return cmocka_run_group_tests_name("crew_loop", tests, NULL, NULL);
}
