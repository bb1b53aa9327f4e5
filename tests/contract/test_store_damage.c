/* SPDX-License-Identifier: MIT */
/*
 * Files that were damaged by chance: nothing crashes, every refusal has a
 * text, and what happened to the log is found.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/contract/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    SEED = 85,
    MUTATIONS = 500, /* of each of two stores */
    BATCHES = 30,
    TASKS = 40,
    PAGE_BYTES = 4096,
    HEADER_BYTES = 100,
};

/* A file as it was, to be damaged again and again. */
struct original {
    const char *name;
    struct strbuf bytes;
};

struct world {
    struct fixture *fixture;
    struct original database;
    struct original wal;
    struct original lock;
    struct strbuf events;
    struct rng rng;
};

static void load(struct world *world, struct original *file, const char *name)
{
    char *path = fixture_path(world->fixture, name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    char buf[PAGE_BYTES];
    size_t got;
    while ((got = fread(buf, 1, sizeof(buf), in)) > 0) {
        strbuf_add(&file->bytes, buf, got);
    }
    assert_int_equal(fclose(in), 0);
    mem_free(path);
    file->name = name;
}

static void save(struct world *world, const char *name, struct strbuf *bytes)
{
    char *path = fixture_path(world->fixture, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(strbuf_text(bytes), 1, bytes->len, out),
                     bytes->len);
    assert_int_equal(fclose(out), 0);
    mem_free(path);
}

static void write_rows(struct store *store, uint64_t epoch, uint64_t batch)
{
    uint32_t task = (uint32_t)(batch % TASKS);
    struct store_change changes[] = {
        fixture_claim(batch, 1, task, (uint32_t)batch),
        fixture_event(1, task, "claimed"),
        fixture_event(1, task, "running"),
        fixture_task(1, task, "running"),
        fixture_order("cap"),
    };
    enum err err =
        fixture_write(store, epoch, changes, ARRAY_COUNT(changes), NULL);
    assert_int_equal(err, ERR_OK);
}

/* Fill a store. The second half stays in the WAL if the process just ends. */
static void fill(struct fixture *fixture, bool dies)
{
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t epoch = 0;
        struct store *store = fixture_take(fixture, &epoch);
        if (half == 0) {
            assert_int_equal(
                fixture_write_one(store, epoch, fixture_run(1, "wave")),
                ERR_OK);
        }
        for (uint64_t ix = 1; ix <= BATCHES / 2; ix++) {
            write_rows(store, epoch, half * BATCHES / 2 + ix);
        }
        if (half == 1 && dies) {
            _exit(0);
        }
        store_close(store);
    }
}

static void set_up(struct world *world, struct fixture *fixture, bool dies)
{
    *world = (struct world){.fixture = fixture};
    rng_init(&world->rng, fixture_seed(SEED));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fill(fixture, dies);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    load(world, &world->database, "sluice.db");
    load(world, &world->wal, "sluice.db-wal");
    load(world, &world->lock, "lock");
    assert_true((world->wal.bytes.len > 0) == dies);
    struct store *store = fixture_open(fixture, STORE_READ);
    assert_int_equal(fixture_add_events(store, 0, &world->events, NULL),
                     ERR_OK);
    store_close(store);
}

static void tear_down(struct world *world)
{
    strbuf_release(&world->database.bytes);
    strbuf_release(&world->wal.bytes);
    strbuf_release(&world->lock.bytes);
    strbuf_release(&world->events);
}

static uint32_t below(struct world *world, size_t bound)
{
    return rng_below(&world->rng, (uint32_t)bound);
}

static void flip_bits(struct world *world, struct strbuf *bytes, size_t limit)
{
    uint32_t count = 1 + below(world, 8);
    for (uint32_t ix = 0; ix < count && limit > 0; ix++) {
        uint32_t at = below(world, limit);
        bytes->text[at] = (char)(bytes->text[at] ^ (1 << below(world, 8)));
    }
}

/* Overwrite a piece with zeros, or with chance. */
static void
overwrite(struct world *world, struct strbuf *bytes, uint32_t piece, bool zero)
{
    if (bytes->len < piece) {
        return;
    }
    uint32_t at = below(world, bytes->len / piece) * piece;
    for (uint32_t ix = 0; ix < piece; ix++) {
        bytes->text[at + ix] = zero ? '\0' : (char)below(world, 256);
    }
}

/* Damage one file in one of many ways; says which. */
static const char *damage(struct world *world, struct strbuf *bytes)
{
    switch (below(world, 7)) {
    case 0:
        flip_bits(world, bytes, bytes->len);
        return "bits flipped";
    case 1:
        flip_bits(world,
                  bytes,
                  bytes->len < HEADER_BYTES ? bytes->len : HEADER_BYTES);
        return "bits of the header flipped";
    case 2:
        if (bytes->len > 0) {
            bytes->len = below(world, bytes->len);
        }
        return "cut off";
    case 3:
        overwrite(world, bytes, PAGE_BYTES, true);
        return "a page of zeros";
    case 4:
        overwrite(world, bytes, PAGE_BYTES, false);
        return "a page of chance";
    case 5:
        overwrite(world, bytes, 16, false);
        return "sixteen bytes of chance";
    default:
        flip_bits(world, bytes, bytes->len / 2);
        return "bits of the first half flipped";
    }
}

static struct strbuf copy_of(const struct original *file)
{
    struct strbuf copy = {0};
    strbuf_add(&copy, strbuf_text(&file->bytes), file->bytes.len);
    return copy;
}

/* Read everything, in every way. */
static void look(struct world *world, struct store *store, const char *what)
{
    const struct store_query all = {
        .finished = true,
        .ended = true,
        .answered = true,
    };
    struct strbuf rows = {0};
    struct strbuf events = {0};
    struct strbuf faults = {0};
    struct diag diag = {0};
    enum err read = fixture_add_rows(store, &all, &rows, &diag);
    assert_true(read == ERR_OK || diag.text[0] != '\0');
    diag.text[0] = '\0';
    enum err listed = fixture_add_events(store, 0, &events, &diag);
    assert_true(listed == ERR_OK || diag.text[0] != '\0');
    diag.text[0] = '\0';
    enum err verified = fixture_verify(store, &faults, &diag);
    assert_true(verified == ERR_OK || diag.text[0] != '\0');
    bool same = listed == ERR_OK &&
                strcmp(strbuf_text(&events), strbuf_text(&world->events)) == 0;
    if (!same && verified == ERR_OK && faults.len == 0) {
        fail_msg("%s: the log is not what it was, and nobody says so", what);
    }
    strbuf_release(&rows);
    strbuf_release(&events);
    strbuf_release(&faults);
}

/* Open for reading, and look; then take, and write. */
static void use(struct world *world, const char *what)
{
    struct store *store = NULL;
    struct diag diag = {0};
    enum err err = store_open(&store, world->fixture->dir, STORE_READ, &diag);
    assert_true(err == ERR_OK || diag.text[0] != '\0');
    if (err == ERR_OK) {
        look(world, store, what);
    }
    store_close(store);

    diag.text[0] = '\0';
    err = store_open(&store, world->fixture->dir, STORE_WRITE, &diag);
    uint64_t epoch = 0;
    if (err == ERR_OK) {
        struct store_owner self = fixture_self();
        err = store_take(store, &self, &epoch, &diag);
    }
    assert_true(err == ERR_OK || diag.text[0] != '\0');
    if (err == ERR_OK) {
        diag.text[0] = '\0';
        struct store_change change = fixture_order("cap");
        err = fixture_write(store, epoch, &change, 1, &diag);
        assert_true(err == ERR_OK || diag.text[0] != '\0');
        look(world, store, what);
    }
    store_close(store);
}

static void remove_shm(struct world *world)
{
    char *path = fixture_path(world->fixture, "sluice.db-shm");
    (void)unlink(path); /* it need not be there */
    mem_free(path);
}

/* As it was, with one file damaged. */
static void damage_and_use(struct world *world, uint32_t number)
{
    struct strbuf database = copy_of(&world->database);
    struct strbuf wal = copy_of(&world->wal);
    bool in_wal = wal.len > 0 && below(world, 2) == 0;
    const char *how = damage(world, in_wal ? &wal : &database);
    char what[128];
    (void)snprintf(what,
                   sizeof(what),
                   "mutation %u: %s: %s",
                   number,
                   in_wal ? "sluice.db-wal" : "sluice.db",
                   how);
    remove_shm(world);
    save(world, "sluice.db", &database);
    save(world, "sluice.db-wal", &wal);
    save(world, "lock", &world->lock.bytes);
    use(world, what);
    strbuf_release(&database);
    strbuf_release(&wal);
}

static void a_damaged_store_is_refused_or_works(void **state)
{
    struct world world;
    set_up(&world, *state, false);
    for (uint32_t ix = 0; ix < MUTATIONS; ix++) {
        damage_and_use(&world, ix);
    }
    tear_down(&world);
}

static void a_damaged_store_with_a_wal_is_refused_or_works(void **state)
{
    struct world world;
    set_up(&world, *state, true);
    for (uint32_t ix = 0; ix < MUTATIONS; ix++) {
        damage_and_use(&world, ix);
    }
    tear_down(&world);
}

/* Each byte of the log's rows: found by their texts, wherever they are. */
static void every_flipped_bit_in_a_text_of_the_log_is_found(void **state)
{
    struct world world;
    set_up(&world, *state, false);
    static const char text[] = "{\"task\":\"group/stage\",\"to\":\"claimed\"}";
    uint32_t found = 0;
    for (size_t at = 0; at + sizeof(text) < world.database.bytes.len; at++) {
        if (memcmp(world.database.bytes.text + at, text, sizeof(text) - 1) !=
            0) {
            continue;
        }
        struct strbuf copy = copy_of(&world.database);
        size_t byte = at + found % (sizeof(text) - 1);
        copy.text[byte] = (char)(copy.text[byte] ^ (1 << (found % 8)));
        remove_shm(&world);
        save(&world, "sluice.db", &copy);
        struct store *store = fixture_open(world.fixture, STORE_READ);
        struct strbuf faults = {0};
        assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
        assert_non_null(strstr(strbuf_text(&faults), "table event, row "));
        store_close(store);
        strbuf_release(&faults);
        strbuf_release(&copy);
        found++;
    }
    assert_true(found >= BATCHES);
    tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_SQLITE(a_damaged_store_is_refused_or_works),
        FIXTURE_SQLITE(a_damaged_store_with_a_wal_is_refused_or_works),
        FIXTURE_SQLITE(every_flipped_bit_in_a_text_of_the_log_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
