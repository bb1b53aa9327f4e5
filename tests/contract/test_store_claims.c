/* SPDX-License-Identifier: MIT */
/*
 * Many processes want the same thing at one instant, on one SQLite store:
 * exactly one gets it, and the others are told so in words.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/contract/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    CLAIMERS_MAX = 256,
    ROUNDS = 1000,
    ROUNDS_MAX = 100000,
    HASTY = 2,    /* processes of a round that do not look first, about */
    STUBBORN = 8, /* ... that try until it is taken, if there are so many */
    WRITERS = 12,
    READERS = 4,
    ORDERS_EACH = 25,
};

/* What the processes of a test share. */
struct shared {
    pthread_barrier_t barrier;
    atomic_uint won[ROUNDS_MAX];
    atomic_uint conflicts;
    atomic_uint seen_taken;
    atomic_uint gave_up;
    atomic_uint writers_left;
    atomic_uint reads;
    atomic_uint failures;
    struct diag failure; /* one of them */
};

static struct shared *share(unsigned process_count)
{
    struct shared *shared = mmap(NULL,
                                 sizeof(*shared),
                                 PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS,
                                 -1,
                                 0);
    assert_true(shared != MAP_FAILED);
    pthread_barrierattr_t attr;
    assert_int_equal(pthread_barrierattr_init(&attr), 0);
    assert_int_equal(
        pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED),
        0);
    assert_int_equal(
        pthread_barrier_init(&shared->barrier, &attr, process_count),
        0);
    assert_int_equal(pthread_barrierattr_destroy(&attr), 0);
    return shared;
}

static void unshare_all(struct shared *shared)
{
    assert_int_equal(pthread_barrier_destroy(&shared->barrier), 0);
    assert_int_equal(munmap(shared, sizeof(*shared)), 0);
}

static void meet(struct shared *shared)
{
    (void)pthread_barrier_wait(&shared->barrier);
}

static void note_failure(struct shared *shared, const struct diag *diag)
{
    if (atomic_fetch_add(&shared->failures, 1) == 0) {
        shared->failure = *diag;
    }
}

/* One process. */
struct process {
    struct fixture *fixture;
    struct shared *shared;
    struct store *store;
    unsigned count; /* of the processes that race */
    struct rng rng;
};

/* Let the holder of the lock get on. */
static void give_way(struct process *process)
{
    struct timespec pause = {
        .tv_nsec = 100000 + rng_below(&process->rng, 400000),
    };
    (void)nanosleep(&pause, NULL);
}

/* Open without the asserts of the fixture, which are for the parent only. */
static void open_store(struct process *process)
{
    struct diag diag = {0};
    if (store_open(&process->store,
                   process->fixture->dir,
                   STORE_WRITE,
                   &diag) != ERR_OK) {
        note_failure(process->shared, &diag);
        _exit(1);
    }
}

static void reopen_store(struct process *process)
{
    store_close(process->store);
    open_store(process);
}

static uint64_t last_token(struct process *process)
{
    const struct store_query query = {0};
    const struct store_visitor visitor = {0};
    struct store_info info = {0};
    struct diag diag = {0};
    if (store_read(process->store, &query, &visitor, NULL, &info, &diag) !=
        ERR_OK) {
        note_failure(process->shared, &diag);
    }
    return info.last_token;
}

/* As the scheduler: claim the first attempt of the task of this round. */
static void claim(struct process *process, uint64_t epoch, uint32_t round)
{
    struct diag diag = {0};
    struct store_change change =
        fixture_claim(last_token(process) + 1, 1, round, 1);
    enum err err = fixture_write(process->store, epoch, &change, 1, &diag);
    if (err == ERR_OK) {
        atomic_fetch_add(&process->shared->won[round], 1);
    } else if (err == ERR_CONFLICT && strstr(diag.text, "exists") != NULL) {
        atomic_fetch_add(&process->shared->conflicts, 1);
    } else {
        note_failure(process->shared, &diag);
    }
    reopen_store(process);
}

/* Whether this process is one of about `wanted` in this round. */
static bool is_chosen(struct process *process, uint32_t wanted)
{
    return rng_below(&process->rng, process->count) < wanted;
}

static void race(struct process *process, uint32_t round)
{
    struct store_owner self = fixture_self();
    bool stubborn = is_chosen(process, STUBBORN);
    /* Most look first, as one that comes late would; a few do not. */
    if (!is_chosen(process, HASTY) && last_token(process) > round) {
        atomic_fetch_add(&process->shared->seen_taken, 1);
        return;
    }
    for (;;) {
        uint64_t epoch = 0;
        struct diag diag = {0};
        enum err err = store_take(process->store, &self, &epoch, &diag);
        if (err == ERR_OK) {
            claim(process, epoch, round);
            return;
        }
        if (err != ERR_BUSY) {
            note_failure(process->shared, &diag);
            return;
        }
        if (!stubborn) { /* whoever has the lock gets it, or is late, too */
            atomic_fetch_add(&process->shared->gave_up, 1);
            return;
        }
        give_way(process);
        if (last_token(process) > round) {
            atomic_fetch_add(&process->shared->seen_taken, 1);
            return;
        }
    }
}

static void run_claimer(struct process *process, uint32_t rounds)
{
    open_store(process);
    for (uint32_t round = 0; round < rounds; round++) {
        meet(process->shared);
        race(process, round);
        meet(process->shared); /* nobody is early for the next one */
    }
    store_close(process->store);
    _exit(0);
}

/* Wait for all children, which must all end well. The others would wait for
 * ever for one that does not. */
static void
wait_for(const struct shared *shared, const pid_t *children, unsigned count)
{
    int bad = 0;
    for (unsigned ix = 0; ix < count; ix++) {
        int status = 0;
        assert_true(waitpid(-1, &status, 0) > 0);
        if (status != 0 && bad == 0) {
            bad = status;
            for (unsigned other = 0; other < count; other++) {
                (void)kill(children[other], SIGKILL);
            }
        }
    }
    if (atomic_load(&shared->failures) > 0) {
        fail_msg("%u failures, as: %s",
                 atomic_load(&shared->failures),
                 shared->failure.text);
    }
    assert_int_equal(bad, 0);
}

/* SLUICE_ROUNDS in the environment replaces the usual number of rounds. */
static uint32_t rounds_wanted(void)
{
    const char *text = getenv("SLUICE_ROUNDS");
    unsigned long rounds = text != NULL ? strtoul(text, NULL, 10) : ROUNDS;
    assert_true(rounds > 0 && rounds <= ROUNDS_MAX);
    return (uint32_t)rounds;
}

static void race_of(struct fixture *fixture, unsigned count)
{
    assert_true(count <= CLAIMERS_MAX);
    uint32_t rounds = rounds_wanted();
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    assert_int_equal(fixture_write_one(store, epoch, fixture_run(1, "wave")),
                     ERR_OK);
    store_close(store);
    struct shared *shared = share(count);
    pid_t children[CLAIMERS_MAX];
    for (unsigned ix = 0; ix < count; ix++) {
        children[ix] = fork();
        assert_true(children[ix] >= 0);
        if (children[ix] == 0) {
            struct process process = {
                .fixture = fixture,
                .shared = shared,
                .count = count,
            };
            rng_init(&process.rng, fixture_seed(ix));
            run_claimer(&process, rounds);
        }
    }
    wait_for(shared, children, count);
    for (uint32_t round = 0; round < rounds; round++) {
        assert_int_equal(atomic_load(&shared->won[round]), 1);
    }
    print_message("# %u rounds: %u came too late, %u saw so, %u gave up\n",
                  rounds,
                  atomic_load(&shared->conflicts),
                  atomic_load(&shared->seen_taken),
                  atomic_load(&shared->gave_up));
    unsigned losers = atomic_load(&shared->conflicts) +
                      atomic_load(&shared->seen_taken) +
                      atomic_load(&shared->gave_up);
    assert_int_equal(losers, (count - 1) * rounds);
    store = fixture_open(fixture, STORE_READ);
    assert_int_equal(fixture_info(store).last_token, rounds);
    store_close(store);
    unshare_all(shared);
}

static void of_8_processes_one_claims(void **state)
{
    race_of(*state, 8);
}

static void of_64_processes_one_claims(void **state)
{
    race_of(*state, 64);
}

static void of_256_processes_one_claims(void **state)
{
    race_of(*state, 256);
}

/* Take the store for each order, and give it back. */
static void run_writer(struct process *process)
{
    struct store_owner self = fixture_self();
    open_store(process);
    meet(process->shared);
    for (uint32_t done = 0; done < ORDERS_EACH;) {
        uint64_t epoch = 0;
        struct diag diag = {0};
        enum err err = store_take(process->store, &self, &epoch, &diag);
        if (err == ERR_BUSY) {
            if (strstr(diag.text, "is the scheduler of") == NULL) {
                note_failure(process->shared, &diag);
            }
            give_way(process);
            continue;
        }
        struct store_change order = fixture_order("cap");
        if (err == ERR_OK) {
            err = fixture_write(process->store, epoch, &order, 1, &diag);
        }
        if (err != ERR_OK) {
            note_failure(process->shared, &diag);
            _exit(1);
        }
        reopen_store(process);
        done++;
    }
    atomic_fetch_sub(&process->shared->writers_left, 1);
    store_close(process->store);
    _exit(0);
}

/* Read all the time, and look who the scheduler is. */
static void run_reader(struct process *process)
{
    open_store(process);
    meet(process->shared);
    uint64_t before = 0;
    while (atomic_load(&process->shared->writers_left) > 0) {
        const struct store_query query = {.answered = true};
        const struct store_visitor visitor = {0};
        struct store_info info = {0};
        struct store_owner owner;
        struct diag diag = {0};
        enum err err =
            store_read(process->store, &query, &visitor, NULL, &info, &diag);
        if (err == ERR_OK && info.last_command < before) {
            err = diag_set(&diag, ERR_CONFLICT, "the store went backwards");
        }
        before = info.last_command;
        enum err owned = store_owner(process->store, &owner, &diag);
        if (err != ERR_OK || (owned != ERR_OK && owned != ERR_NOT_FOUND)) {
            note_failure(process->shared, &diag);
            _exit(1);
        }
        atomic_fetch_add(&process->shared->reads, 1);
        give_way(process);
    }
    store_close(process->store);
    _exit(0);
}

static void many_writers_never_find_the_database_locked(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    store_close(fixture_take(fixture, &epoch));
    struct shared *shared = share(WRITERS + READERS);
    atomic_store(&shared->writers_left, WRITERS);
    pid_t children[WRITERS + READERS];
    for (unsigned ix = 0; ix < WRITERS + READERS; ix++) {
        children[ix] = fork();
        assert_true(children[ix] >= 0);
        if (children[ix] == 0) {
            struct process process = {.fixture = fixture, .shared = shared};
            rng_init(&process.rng, fixture_seed(ix));
            if (ix < WRITERS) {
                run_writer(&process);
            }
            run_reader(&process);
        }
    }
    wait_for(shared, children, WRITERS + READERS);
    assert_true(atomic_load(&shared->reads) >= READERS);
    struct store *store = fixture_open(fixture, STORE_READ);
    assert_int_equal(fixture_info(store).last_command, WRITERS * ORDERS_EACH);
    assert_int_equal(fixture_info(store).epoch, WRITERS * ORDERS_EACH + 1);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    store_close(store);
    unshare_all(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_SQLITE(of_8_processes_one_claims),
        FIXTURE_SQLITE(of_64_processes_one_claims),
        FIXTURE_SQLITE(of_256_processes_one_claims),
        FIXTURE_SQLITE(many_writers_never_find_the_database_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
