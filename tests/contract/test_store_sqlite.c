/* SPDX-License-Identifier: MIT */
/*
 * What only a store in a directory can meet: foreign files and rights, other
 * versions, people with the sqlite3 program.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "store/lock.h"
#include "store/sqlite_internal.h"
#include "tests/contract/fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Make a store with a few rows, and close it. */
static void fill(struct fixture *fixture)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    struct store_change changes[] = {
        fixture_run(1, "wave"),
        fixture_task(1, 0, "done"),
        fixture_task(1, 1, "running"),
        fixture_claim(1, 1, 0, 1),
        fixture_end(1),
        fixture_claim(2, 1, 1, 1),
        fixture_event(1, 0, "done"),
        fixture_event(1, 1, "ready"),
        fixture_event(1, 1, "running"),
    };
    assert_int_equal(
        fixture_write(store, epoch, changes, ARRAY_COUNT(changes), NULL),
        ERR_OK);
    store_close(store);
}

/* Change the database as a person would. */
static void tamper(struct fixture *fixture, const char *sql)
{
    char *path = fixture_path(fixture, "sluice.db");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    char *text = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK) {
        fail_msg("%s: %s", sql, text);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    mem_free(path);
}

static void expect_refusal(struct fixture *fixture,
                           enum store_mode mode,
                           enum err expected,
                           const char *part)
{
    struct store *store = NULL;
    struct diag diag = {0};
    enum err err = store_open(&store, fixture->dir, mode, &diag);
    if (err == ERR_OK && mode == STORE_WRITE) {
        struct store_owner self = fixture_self();
        uint64_t epoch = 0;
        err = store_take(store, &self, &epoch, &diag);
    }
    store_close(store);
    if (strstr(diag.text, part) == NULL) {
        fail_msg("%s: \"%s\" lacks \"%s\"", err_name(err), diag.text, part);
    }
    assert_int_equal(err, expected);
}

/* All faults that are found, which must include `part`. */
static void expect_fault(struct fixture *fixture, const char *part)
{
    struct store *store = fixture_open(fixture, STORE_READ);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    if (strstr(strbuf_text(&faults), part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, strbuf_text(&faults));
    }
    strbuf_release(&faults);
    store_close(store);
}

static void files_are_for_their_owner_only(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    static const char *const names[] = {
        "lock",
        "sluice.db",
        "sluice.db-shm",
        "sluice.db-wal", /* which stays, for readers */
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        char *path = fixture_path(fixture, names[ix]);
        struct stat status;
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        mem_free(path);
    }
}

static void the_directory_is_made_closed_to_others(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(rmdir(fixture->dir), 0);
    expect_refusal(fixture, STORE_READ, ERR_NOT_FOUND, "no store");
    struct store *store = fixture_open(fixture, STORE_WRITE);
    struct stat status;
    assert_int_equal(stat(fixture->dir, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    store_close(store);
    /* The directory alone is no store yet. */
    expect_refusal(fixture, STORE_READ, ERR_NOT_FOUND, "no store");
}

static void a_directory_that_others_can_write_to_is_refused(void **state)
{
    struct fixture *fixture = *state;
    static const mode_t modes[] = {0770, 0702, 0777, 01777};
    for (size_t ix = 0; ix < ARRAY_COUNT(modes); ix++) {
        assert_int_equal(chmod(fixture->dir, modes[ix]), 0);
        expect_refusal(fixture,
                       STORE_WRITE,
                       ERR_DENIED,
                       "other users can write");
        expect_refusal(fixture,
                       STORE_READ,
                       ERR_DENIED,
                       "other users can write");
    }
    assert_int_equal(chmod(fixture->dir, 0755), 0);
    fill(fixture);
}

/* Add a name to the fixture's directory, for the time of a test. */
static char *go_inside(struct fixture *fixture, const char *name)
{
    char *outside = fixture->dir;
    fixture->dir = fixture_path(fixture, name);
    return outside;
}

static void go_outside(struct fixture *fixture, char *outside)
{
    mem_free(fixture->dir);
    fixture->dir = outside;
}

static void a_directory_that_everybody_can_replace_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char *outside = go_inside(fixture, "store");
    assert_int_equal(mkdir(fixture->dir, 0700), 0);
    assert_int_equal(chmod(outside, 0777), 0);
    expect_refusal(fixture, STORE_WRITE, ERR_DENIED, "any user can replace");
    assert_int_equal(chmod(outside, 01777), 0);
    struct store *store = fixture_open(fixture, STORE_WRITE);
    store_close(store);
    char *lock = fixture_path(fixture, "lock");
    assert_int_equal(unlink(lock), 0);
    mem_free(lock);
    assert_int_equal(rmdir(fixture->dir), 0);
    go_outside(fixture, outside);
}

static void what_belongs_to_another_user_is_refused(void **state)
{
    struct fixture *fixture = *state;
    if (geteuid() != 0) {
        skip(); /* only root can give files away */
    }
    fill(fixture);
    assert_int_equal(chown(fixture->dir, 65534, (gid_t)-1), 0);
    expect_refusal(fixture, STORE_READ, ERR_DENIED, "belongs to user");
    expect_refusal(fixture, STORE_WRITE, ERR_DENIED, "belongs to user");
    assert_int_equal(chown(fixture->dir, 0, (gid_t)-1), 0);
    char *target = mem_strndup(fixture->dir, strlen(fixture->dir));
    char *outside = go_inside(fixture, "link");
    assert_int_equal(symlink(target, fixture->dir), 0);
    struct store *store = fixture_open(fixture, STORE_READ);
    store_close(store);
    assert_int_equal(lchown(fixture->dir, 65534, (gid_t)-1), 0);
    expect_refusal(fixture, STORE_READ, ERR_DENIED, "symbolic link");
    go_outside(fixture, outside);
    mem_free(target);
}

static void a_lock_file_that_is_a_link_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    char *lock = fixture_path(fixture, "lock");
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(symlink("sluice.db", lock), 0);
    expect_refusal(fixture, STORE_WRITE, ERR_DENIED, "lock: Too many levels");
    struct store *store = fixture_open(fixture, STORE_READ);
    struct store_owner owner;
    assert_int_equal(store_owner(store, &owner, NULL), ERR_DENIED);
    store_close(store);
    mem_free(lock);
}

/* The text names the file and the command that helps. */
static void missing_rights_to_the_lock_file_are_explained(void **state)
{
    struct fixture *fixture = *state;
    if (geteuid() != 0) {
        skip(); /* only root can become another user */
    }
    fill(fixture);
    char *lock = fixture_path(fixture, "lock");
    const uid_t user = 65534;
    static const char *const names[] = {
        "sluice.db",
        "sluice.db-shm",
        "sluice.db-wal",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        char *path = fixture_path(fixture, names[ix]);
        assert_int_equal(chown(path, user, (gid_t)-1), 0);
        mem_free(path);
    }
    assert_int_equal(chown(fixture->dir, user, (gid_t)-1), 0);
    assert_int_equal(seteuid(user), 0);
    expect_refusal(fixture,
                   STORE_WRITE,
                   ERR_DENIED,
                   "/lock belongs to user 0, but this is user 65534");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(lock, user, (gid_t)-1), 0);
    assert_int_equal(chmod(lock, 0200), 0);
    assert_int_equal(seteuid(user), 0);
    expect_refusal(fixture, STORE_WRITE, ERR_DENIED, "(mode 200); run ");
    expect_refusal(fixture, STORE_WRITE, ERR_DENIED, "chmod u+rw ");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(chmod(fixture->dir, 0500), 0);
    assert_int_equal(seteuid(user), 0);
    expect_refusal(fixture, STORE_WRITE, ERR_DENIED, "chmod u+rwx ");
    assert_int_equal(seteuid(0), 0);
    mem_free(lock);
}

static void what_is_no_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    char *outside = go_inside(fixture, "sluice.db");
    expect_refusal(fixture, STORE_READ, ERR_NOT_FOUND, "sluice.db");
    expect_refusal(fixture, STORE_WRITE, ERR_NOT_FOUND, "sluice.db");
    go_outside(fixture, outside);
    struct store *store = NULL;
    assert_int_equal(store_open(&store, "", STORE_READ, NULL), ERR_INVALID);
    assert_null(store);
}

static void a_newer_schema_is_refused_with_both_versions(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    tamper(fixture, "PRAGMA user_version = 99");
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++) {
        expect_refusal(fixture, (enum store_mode)mode, ERR_UNAVAILABLE, "99");
        expect_refusal(fixture,
                       (enum store_mode)mode,
                       ERR_UNAVAILABLE,
                       "supports versions up to 8");
    }
    tamper(fixture, "PRAGMA user_version = 0");
    expect_refusal(fixture, STORE_READ, ERR_CORRUPT, "no version");
    tamper(fixture, "PRAGMA user_version = 8");
    struct store *store = fixture_open(fixture, STORE_READ);
    store_close(store);
}

static void a_database_of_something_else_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    tamper(fixture, "PRAGMA application_id = 1");
    expect_refusal(fixture, STORE_READ, ERR_UNAVAILABLE, "not a sluice store");
    expect_refusal(fixture, STORE_WRITE, ERR_UNAVAILABLE, "not a sluice store");
}

static void a_schema_that_lacks_a_column_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    tamper(fixture, "ALTER TABLE task RENAME COLUMN reason TO motive");
    expect_fault(fixture, "the schema differs from that of sluice");
    struct store *store = fixture_open(fixture, STORE_READ);
    struct strbuf text = {0};
    const struct store_query query = {0};
    struct diag diag = {0};
    assert_int_equal(fixture_add_rows(store, &query, &text, &diag),
                     ERR_CORRUPT);
    assert_non_null(strstr(diag.text, "is damaged"));
    strbuf_release(&text);
    store_close(store);
    tamper(fixture, "ALTER TABLE attempt RENAME COLUMN usd TO eur");
    expect_refusal(fixture, STORE_WRITE, ERR_CORRUPT, "is damaged");
}

static void cut_file(struct fixture *fixture, const char *name, off_t size)
{
    char *path = fixture_path(fixture, name);
    assert_int_equal(truncate(path, size), 0);
    mem_free(path);
}

static void an_empty_file_is_damage_and_not_a_new_store(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    static const off_t sizes[] = {50, 0};
    for (size_t ix = 0; ix < ARRAY_COUNT(sizes); ix++) {
        cut_file(fixture, "sluice.db", sizes[ix]);
        expect_refusal(fixture, STORE_READ, ERR_CORRUPT, "bytes");
        expect_refusal(fixture, STORE_WRITE, ERR_CORRUPT, "bytes");
    }
}

static void remove_file(struct fixture *fixture, const char *name)
{
    char *path = fixture_path(fixture, name);
    assert_int_equal(unlink(path), 0);
    mem_free(path);
}

static void a_lost_database_is_not_made_anew_by_itself(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    remove_file(fixture, "sluice.db");
    expect_refusal(fixture, STORE_WRITE, ERR_CORRUPT, "but no sluice.db");
    expect_refusal(fixture, STORE_READ, ERR_CORRUPT, "but no sluice.db");
    remove_file(fixture, "sluice.db-wal");
    remove_file(fixture, "sluice.db-shm");
    expect_refusal(fixture, STORE_READ, ERR_NOT_FOUND, "no store");
    expect_refusal(fixture, STORE_WRITE, ERR_CORRUPT, "has lost its database");
    remove_file(fixture, "lock"); /* as the text says */
    fill(fixture);
}

static void copy_file(struct fixture *fixture, const char *from, const char *to)
{
    char *path = fixture_path(fixture, from);
    FILE *in = fopen(path, "rb");
    mem_free(path);
    path = fixture_path(fixture, to);
    FILE *out = fopen(path, "wb");
    mem_free(path);
    assert_non_null(in);
    assert_non_null(out);
    char buf[4096];
    size_t got;
    while ((got = fread(buf, 1, sizeof(buf), in)) > 0) {
        assert_int_equal(fwrite(buf, 1, got, out), got);
    }
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

static void an_older_copy_that_was_put_back_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    copy_file(fixture, "sluice.db", "backup");
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    assert_int_equal(fixture_write_one(store, epoch, fixture_order("cap")),
                     ERR_OK);
    store_close(store);
    copy_file(fixture, "backup", "sluice.db");
    expect_fault(fixture, "the last 2 writes are missing");
    expect_refusal(fixture, STORE_WRITE, ERR_CORRUPT, "2 writes to the store");
    remove_file(fixture, "lock"); /* as the text says */
    store = fixture_take(fixture, &epoch);
    store_close(store);
}

static void a_wal_that_lost_its_end_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* A scheduler that dies with everything in the WAL. */
        uint64_t epoch = 0;
        struct store *store = fixture_take(fixture, &epoch);
        for (int ix = 0; ix < 5; ix++) {
            if (fixture_write_one(store, epoch, fixture_order("cap")) !=
                ERR_OK) {
                _exit(1);
            }
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct stat wal;
    char *path = fixture_path(fixture, "sluice.db-wal");
    assert_int_equal(stat(path, &wal), 0);
    assert_true(wal.st_size > 0);
    assert_int_equal(truncate(path, wal.st_size - 1), 0);
    mem_free(path);
    expect_fault(fixture, "the last 1 writes are missing");
    expect_refusal(fixture, STORE_WRITE, ERR_CORRUPT, "1 writes to the store");
}

static void a_scheduler_whose_lock_was_removed_stops(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    remove_file(fixture, "lock");
    struct diag diag = {0};
    struct store_change change = fixture_order("cap");
    assert_int_equal(fixture_write(store, epoch, &change, 1, &diag),
                     ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "was removed"));
    store_close(store);
}

static void a_foreign_writer_is_named(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    int ready[2];
    int done[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *path = fixture_path(fixture, "sluice.db");
        sqlite3 *db = NULL;
        char byte = 0;
        (void)close(done[1]);
        if (sqlite3_open(path, &db) != SQLITE_OK ||
            sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) !=
                SQLITE_OK ||
            write(ready[1], "x", 1) != 1 || read(done[0], &byte, 1) != 0) {
            _exit(1);
        }
        _exit(0);
    }
    (void)close(done[0]);
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct diag diag = {0};
    struct store_change change = fixture_order("cap");
    assert_int_equal(fixture_write(store, epoch, &change, 1, &diag), ERR_BUSY);
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "process %d keeps", (int)child);
    assert_non_null(strstr(diag.text, expected));
    (void)close(done[1]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* And then the same batch can be written. */
    assert_int_equal(fixture_write(store, epoch, &change, 1, &diag), ERR_OK);
    (void)close(ready[0]);
    (void)close(ready[1]);
    store_close(store);
}

/* What a person does, how it is taken back, and what verify says. */
static const struct {
    const char *change;
    const char *back;
    const char *fault;
} tampered[] = {
    {
        "UPDATE event SET data = replace(data, 'done', 'dine')"
        " WHERE number = 1",
        "UPDATE event SET data = replace(data, 'dine', 'done')"
        " WHERE number = 1",
        "table event, row 1: wrong checksum",
    },
    {
        "UPDATE event SET wall_ns = wall_ns + 1 WHERE number = 2",
        "UPDATE event SET wall_ns = wall_ns - 1 WHERE number = 2",
        "table event, row 2: wrong checksum",
    },
    {
        "UPDATE event SET run = NULL WHERE number = 2",
        "UPDATE event SET run = 1 WHERE number = 2",
        "table event, row 2: wrong checksum",
    },
    {
        "UPDATE event SET sum = sum + 1 WHERE number = 3",
        "UPDATE event SET sum = sum - 1 WHERE number = 3",
        "table event, row 3: wrong checksum",
    },
    {
        "UPDATE scheduler SET last_sum = last_sum + 1",
        "UPDATE scheduler SET last_sum = last_sum - 1",
        "table event ends at row 3, but should end at row 3 (or",
    },
    {
        "UPDATE task SET state = 'ready' WHERE ix = 1",
        "UPDATE task SET state = 'running' WHERE ix = 1",
        "table task, run 1, task 1: the state is ready, but by its last "
        "event (row 3) running",
    },
    {
        "UPDATE task SET state = 'dizzy' WHERE ix = 1",
        "UPDATE task SET state = 'running' WHERE ix = 1",
        "table task, run 1, task 1: unknown state \"dizzy\"",
    },
    {
        "UPDATE task SET token = 77 WHERE ix = 1",
        "UPDATE task SET token = 0 WHERE ix = 1",
        "table task, run 1, task 1: the token 77 was never given out",
    },
    {
        "UPDATE attempt SET state = 'odd' WHERE token = 2",
        "UPDATE attempt SET state = 'claimed' WHERE token = 2",
        "table attempt, row 2: unknown state 'odd'",
    },
    {
        "UPDATE attempt SET outcome = NULL WHERE token = 1",
        "UPDATE attempt SET outcome = 'failed' WHERE token = 1",
        "table attempt, row 1: ended without an outcome",
    },
    {
        "UPDATE attempt SET task = 9 WHERE token = 2",
        "UPDATE attempt SET task = 1 WHERE token = 2",
        "table attempt, row 2: no task 9 in run 1",
    },
    {
        "UPDATE attempt SET epoch = 9 WHERE token = 2",
        "UPDATE attempt SET epoch = 1 WHERE token = 2",
        "table attempt, row 2: claimed by epoch 9, which never was",
    },
    {
        "UPDATE attempt SET task = 0, number = 0 WHERE token = 2",
        "UPDATE attempt SET task = 1, number = 1 WHERE token = 2",
        "table attempt, row 1: the token is not greater than that of the",
    },
    {
        "UPDATE scheduler SET last_token = 1",
        "UPDATE scheduler SET last_token = 2",
        "table attempt, row 2: the token was never given out",
    },
    {
        "UPDATE scheduler SET last_run = 0",
        "UPDATE scheduler SET last_run = 1",
        "table run, row 1: the number was never given out",
    },
    {
        "UPDATE fragment SET number = 5",
        "UPDATE fragment SET number = 0",
        "table run, row 1: no plan text",
    },
    {
        "UPDATE scheduler SET writes = 1",
        "UPDATE scheduler SET writes = 2",
        "the last 1 writes are missing",
    },
    {
        "INSERT INTO command VALUES (7, 0, '', '', '', NULL, NULL)",
        "DELETE FROM command",
        "table command, row 7: the number was never given out",
    },
    {
        "CREATE TRIGGER evil AFTER UPDATE ON task BEGIN SELECT 1; END",
        "DROP TRIGGER evil",
        "the schema differs from that of sluice",
    },
    /* These are not taken back. */
    {
        "DELETE FROM event WHERE number = 3",
        "SELECT 1",
        "table event ends at row 2, but should end at row 3",
    },
    {
        "DELETE FROM event WHERE number = 1",
        "SELECT 1",
        "table event, row 2: the events before it are missing",
    },
    {
        "DELETE FROM task WHERE ix = 1",
        "SELECT 1",
        "table task, run 1, task 1: the row is missing",
    },
    {
        "DELETE FROM run",
        "SELECT 1",
        "table fragment, run 1, number 0: no such run",
    },
    {
        "DELETE FROM scheduler",
        "SELECT 1",
        "the table scheduler has no valid row",
    },
};

static void verify_finds_what_a_person_has_changed(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    for (size_t ix = 0; ix < ARRAY_COUNT(tampered); ix++) {
        tamper(fixture, tampered[ix].change);
        expect_fault(fixture, tampered[ix].fault);
        tamper(fixture, tampered[ix].back);
    }
    expect_refusal(fixture, STORE_WRITE, ERR_CORRUPT, "table scheduler");
}

static void a_log_that_lost_its_end_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    tamper(fixture, "DELETE FROM event WHERE number = 3");
    expect_refusal(fixture,
                   STORE_WRITE,
                   ERR_CORRUPT,
                   "the log ends at event 2 but should end at 3");
}

static void a_value_that_cannot_be_is_reported_with_its_row(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *change;
        const char *text;
    } cases[] = {
        {"UPDATE task SET flags = -1 WHERE ix = 0", "table task, row "},
        {"UPDATE attempt SET code = 1 << 40 WHERE token = 2",
         "table attempt, row 2"},
        {"UPDATE attempt SET boot_id = printf('%100d', 1)", "table attempt"},
        {"UPDATE run SET completions = -1", "table run, row 1"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        if (ix == 0) {
            fill(fixture);
        }
        tamper(fixture, cases[ix].change);
        struct store *store = fixture_open(fixture, STORE_READ);
        const struct store_query query = {.ended = true};
        struct strbuf text = {0};
        struct diag diag = {0};
        assert_int_equal(fixture_add_rows(store, &query, &text, &diag),
                         ERR_CORRUPT);
        if (strstr(diag.text, cases[ix].text) == NULL) {
            fail_msg("\"%s\" lacks \"%s\"", diag.text, cases[ix].text);
        }
        strbuf_release(&text);
        store_close(store);
        tamper(fixture,
               "UPDATE task SET flags = 5;"
               "UPDATE attempt SET code = -1, boot_id = 'x';");
    }
}

static void a_dead_scheduler_leaves_the_lock_free(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t epoch = 0;
        (void)fixture_take(fixture, &epoch);
        _exit(epoch == 2 ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct store *store = fixture_open(fixture, STORE_WRITE);
    struct store_owner owner;
    assert_int_equal(store_owner(store, &owner, NULL), ERR_NOT_FOUND);
    assert_int_equal(owner.pid, child);
    assert_int_equal(owner.epoch, 2);
    struct store_owner self = fixture_self();
    uint64_t epoch = 0;
    assert_int_equal(store_take(store, &self, &epoch, NULL), ERR_OK);
    assert_int_equal(epoch, 3);
    store_close(store);
}

static void a_record_that_makes_no_sense_is_no_record(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    char *path = fixture_path(fixture, "lock");
    char good[512];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, good, sizeof(good), 0), 512);
    struct store *store = fixture_open(fixture, STORE_WRITE);
    struct store_owner owner;
    for (size_t at = 0; at < sizeof(good); at++) {
        char bad[512];
        memcpy(bad, good, sizeof(bad));
        bad[at] = (char)(bad[at] ^ 4);
        assert_int_equal(pwrite(fd, bad, sizeof(bad), 0), 512);
        assert_int_equal(store_owner(store, &owner, NULL), ERR_NOT_FOUND);
        /* All of it, or nothing; behind the sum there is only padding. */
        assert_true(owner.pid == 0 || owner.pid == getpid());
        if (owner.pid != 0) {
            assert_string_equal(owner.host, "testhost");
        }
    }
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_int_equal(store_owner(store, &owner, NULL), ERR_NOT_FOUND);
    assert_int_equal(owner.pid, 0);
    (void)close(fd);
    mem_free(path);
    store_close(store);
}

static void a_working_directory_that_changes_does_not_matter(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(here >= 0);
    char *outside = fixture->dir;
    assert_int_equal(chdir(outside), 0);
    char dot[] = ".";
    fixture->dir = dot;
    struct store *reader = fixture_open(fixture, STORE_READ);
    uint64_t epoch = 0;
    struct store *store = fixture_open(fixture, STORE_WRITE);
    fixture->dir = outside;
    assert_int_equal(fchdir(here), 0);
    struct store_owner self = fixture_self();
    assert_int_equal(store_take(store, &self, &epoch, NULL), ERR_OK);
    assert_int_equal(fixture_write_one(store, epoch, fixture_order("cap")),
                     ERR_OK);
    assert_int_equal(fixture_info(reader).last_command, 1);
    store_close(store);
    store_close(reader);
    (void)close(here);
}

static void a_large_wal_is_carried_over_while_it_is_written(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    char *path = fixture_path(fixture, "sluice.db-wal");
    struct strbuf long_text = {0};
    strbuf_pad(&long_text, 'x', 100000);
    struct stat status = {0};
    for (int ix = 0; ix < 150; ix++) {
        struct store_change change = fixture_order("add");
        change.as.command.args = strbuf_text(&long_text);
        assert_int_equal(fixture_write_one(store, epoch, change), ERR_OK);
        assert_int_equal(stat(path, &status), 0);
        assert_true(status.st_size < (off_t)3 * 1000 * 4096);
    }
    strbuf_release(&long_text);
    store_close(store);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 0);
    mem_free(path);
}

static int count_steps(void *ctx)
{
    ++*(uint64_t *)ctx;
    return 0;
}

/* Instructions of SQLite, in hundreds, that verifying one run of `tasks` tasks
 * with an attempt each takes. */
static uint64_t verify_steps(struct fixture *fixture, uint32_t tasks)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    struct store_batch batch = {.epoch = epoch};
    struct store_change change = fixture_run(1, "wave");
    store_batch_add(&batch, &change);
    for (uint32_t ix = 0; ix < tasks; ix++) {
        change = fixture_task(1, ix, "running");
        store_batch_add(&batch, &change);
        change = fixture_claim(ix + 1, 1, ix, 1);
        store_batch_add(&batch, &change);
        change = fixture_event(1, ix, "running");
        store_batch_add(&batch, &change);
    }
    assert_int_equal(store_write(store, &batch, NULL), ERR_OK);
    store_batch_release(&batch);
    uint64_t steps = 0;
    struct strbuf faults = {0};
    sqlite3 *db = ((struct sqlite_store *)store)->db;
    sqlite3_progress_handler(db, 100, count_steps, &steps);
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    strbuf_release(&faults);
    store_close(store);
    return steps;
}

/* Every check of doctor is linear but for the logarithm of indexes (13.3). */
static void verifying_twice_the_tasks_takes_twice_the_steps(void **state)
{
    (void)state;
    uint64_t steps[2] = {0};
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct fixture *fixture = fixture_new(BACKEND_SQLITE);
        steps[ix] = verify_steps(fixture, 25000 * (ix + 1));
        fixture_free(fixture);
    }
    assert_true(steps[0] > 0);
    assert_in_range(steps[1], steps[0], steps[0] * 5 / 2);
}

/* It was compared with the tasks of all runs (13.3). */
static void
an_attempt_of_a_task_that_only_another_run_has_is_found(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    struct store_change changes[] = {
        fixture_run(2, "other"),
        fixture_task(2, 0, "running"),
        fixture_claim(3, 2, 0, 1),
    };
    assert_int_equal(
        fixture_write(store, epoch, changes, ARRAY_COUNT(changes), NULL),
        ERR_OK);
    store_close(store);
    tamper(fixture, "UPDATE attempt SET task = 1 WHERE token = 3");
    expect_fault(fixture, "attempt, row 3: no task 1 in run 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_SQLITE(files_are_for_their_owner_only),
        FIXTURE_SQLITE(the_directory_is_made_closed_to_others),
        FIXTURE_SQLITE(a_directory_that_others_can_write_to_is_refused),
        FIXTURE_SQLITE(a_directory_that_everybody_can_replace_is_refused),
        FIXTURE_SQLITE(what_belongs_to_another_user_is_refused),
        FIXTURE_SQLITE(a_lock_file_that_is_a_link_is_refused),
        FIXTURE_SQLITE(missing_rights_to_the_lock_file_are_explained),
        FIXTURE_SQLITE(what_is_no_directory_is_refused),
        FIXTURE_SQLITE(a_newer_schema_is_refused_with_both_versions),
        FIXTURE_SQLITE(a_database_of_something_else_is_refused),
        FIXTURE_SQLITE(a_schema_that_lacks_a_column_is_refused),
        FIXTURE_SQLITE(an_empty_file_is_damage_and_not_a_new_store),
        FIXTURE_SQLITE(a_lost_database_is_not_made_anew_by_itself),
        FIXTURE_SQLITE(an_older_copy_that_was_put_back_is_noticed),
        FIXTURE_SQLITE(a_wal_that_lost_its_end_is_noticed),
        FIXTURE_SQLITE(a_scheduler_whose_lock_was_removed_stops),
        FIXTURE_SQLITE(a_foreign_writer_is_named),
        FIXTURE_SQLITE(verify_finds_what_a_person_has_changed),
        FIXTURE_SQLITE(a_log_that_lost_its_end_is_refused),
        FIXTURE_SQLITE(a_value_that_cannot_be_is_reported_with_its_row),
        FIXTURE_SQLITE(a_dead_scheduler_leaves_the_lock_free),
        FIXTURE_SQLITE(a_record_that_makes_no_sense_is_no_record),
        FIXTURE_SQLITE(a_working_directory_that_changes_does_not_matter),
        FIXTURE_SQLITE(a_large_wal_is_carried_over_while_it_is_written),
        FIXTURE_SQLITE(an_attempt_of_a_task_that_only_another_run_has_is_found),
        cmocka_unit_test(verifying_twice_the_tasks_takes_twice_the_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
