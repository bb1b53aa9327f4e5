/* SPDX-License-Identifier: MIT */
/*
 * fixture: a store of each back end to test, rows to put in, and its contents
 * as a text, which is how tests compare.
 *
 * To add a back end, add an enumerator and a case in fixture.c: the tests in
 * test_store.c then run on it, too.
 */
#ifndef TESTS_CONTRACT_FIXTURE_H
#define TESTS_CONTRACT_FIXTURE_H

#include "base/strbuf.h"
#include "sim/store/memory.h"
#include "store/store.h"

#include <stdint.h>

enum backend {
    BACKEND_MEMORY,
    BACKEND_SQLITE,
    BACKEND_POSTGRES,
};

struct fixture {
    enum backend backend;
    char *dir;                  /* BACKEND_SQLITE; removed at the end */
    char *address;              /* BACKEND_POSTGRES: with a schema of its own */
    struct store_memory_db *db; /* BACKEND_MEMORY */
    uint32_t lost;              /* how many times the lock was lost */
};

/*
 * The seed of a random case. SLUICE_SEED in the environment is added to the
 * usual one, for other cases of the same kind.
 */
uint64_t fixture_seed(uint64_t usual);

/* Set up and tear down an empty store. */
struct fixture *fixture_new(enum backend backend);
void fixture_free(struct fixture *fixture);

/* For tables of cmocka tests; *state is then the struct fixture. */
int fixture_set_up_memory(void **state);
int fixture_set_up_sqlite(void **state);
int fixture_set_up_postgres(void **state);
int fixture_tear_down(void **state);

/* One test on each back end. */
#define FIXTURE_EACH(test)                                                     \
    {                                                                          \
        .name = "memory: " #test,                                              \
        .test_func = (test),                                                   \
        .setup_func = fixture_set_up_memory,                                   \
        .teardown_func = fixture_tear_down,                                    \
    },                                                                         \
        {                                                                      \
            .name = "sqlite: " #test,                                          \
            .test_func = (test),                                               \
            .setup_func = fixture_set_up_sqlite,                               \
            .teardown_func = fixture_tear_down,                                \
        },                                                                     \
        FIXTURE_POSTGRES(test)

/* The same for what only a store in PostgreSQL can suffer. */
#define FIXTURE_POSTGRES(test)                                                 \
    {                                                                          \
        .name = "postgres: " #test, .test_func = (test),                       \
        .setup_func = fixture_set_up_postgres,                                 \
        .teardown_func = fixture_tear_down,                                    \
    }

/* The same for what only a store on a disk can suffer. */
#define FIXTURE_SQLITE(test)                                                   \
    {                                                                          \
        .name = "sqlite: " #test, .test_func = (test),                         \
        .setup_func = fixture_set_up_sqlite,                                   \
        .teardown_func = fixture_tear_down,                                    \
    }

/* An address with a schema of its own at a server; the caller frees it. */
char *fixture_address_at(const char *server);

/* Run statements on the schema of a fixture in PostgreSQL. */
void fixture_sql(const struct fixture *fixture, const char *sql);

/* The address for store_open(); not of BACKEND_MEMORY. */
const char *fixture_address(const struct fixture *fixture);

/* A path in the directory of a store; the caller frees it. */
char *fixture_path(const struct fixture *fixture, const char *name);

/* Open, which must succeed. */
struct store *fixture_open(struct fixture *fixture, enum store_mode mode);

/* Open and become the scheduler, which must succeed. */
struct store *fixture_take(struct fixture *fixture, uint64_t *epoch_out);

/* This process, as the owner of a store. */
struct store_owner fixture_self(void);

/* Make the lock free although its holder lives. */
void fixture_lose_lock(struct fixture *fixture);

/* Rows that have a value in every column. */
struct store_change fixture_run(uint32_t number, const char *id);
struct store_change fixture_task(uint32_t run, uint32_t ix, const char *state);
struct store_change
fixture_claim(uint64_t token, uint32_t run, uint32_t task, uint32_t number);
struct store_change fixture_end(uint64_t token);
struct store_change
fixture_event(uint32_t run, uint32_t task, const char *state);
struct store_change fixture_gate(uint64_t token,
                                 uint32_t place,
                                 uint32_t run,
                                 const char *repo,
                                 const char *verdict);
struct store_change fixture_order(const char *verb);

/* Write changes as one batch. */
enum err fixture_write(struct store *store,
                       uint64_t epoch,
                       const struct store_change *changes,
                       uint32_t count,
                       struct diag *diag);

/* The same for one change, without a text. */
enum err fixture_write_one(struct store *store,
                           uint64_t epoch,
                           struct store_change change);

/* The same for several, which must succeed. */
void fixture_write_ok(struct store *store,
                      uint64_t epoch,
                      const struct store_change *changes,
                      uint32_t count);

/* A store with some of everything, taken, and its epoch. */
struct store *fixture_take_filled(struct fixture *fixture, uint64_t *epoch_out);

/* A text must have, or lack, a part. */
void fixture_assert_contains(const struct strbuf *text, const char *part);
void fixture_assert_lacks(const struct strbuf *text, const char *part);

/* Append all that store_read() gives, a line for each row. */
enum err fixture_add_rows(struct store *store,
                          const struct store_query *query,
                          struct strbuf *out,
                          struct diag *diag);

/* Append all events. */
enum err fixture_add_events(struct store *store,
                            uint64_t after,
                            struct strbuf *out,
                            struct diag *diag);

/* Everything there is; must succeed. The caller releases it. */
struct strbuf fixture_contents(struct store *store);

/* What the store as a whole knows; must succeed. */
struct store_info fixture_info(struct store *store);

/* Append each fault that store_verify() finds as a line. */
enum err
fixture_verify(struct store *store, struct strbuf *out, struct diag *diag);

#endif /* TESTS_CONTRACT_FIXTURE_H */
