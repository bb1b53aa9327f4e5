/* SPDX-License-Identifier: MIT */
/*
 * The ways to a server that an address can name: several hosts, a service, TLS
 * with certificates of both sides, a pool of connections; and a server whose
 * disk is full.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "store/pg_link.h"
#include "tests/contract/fixture.h"
#include "tests/contract/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Take, write and read a store at an address. */
static void use(const char *address)
{
    struct fixture fixture = {
        .backend = BACKEND_POSTGRES,
        .address = fixture_address_at(address),
    };
    uint64_t epoch = 0;
    store_close(fixture_take_filled(&fixture, &epoch));
    struct store *store = fixture_open(&fixture, STORE_READ);
    assert_true(fixture_info(store).last_event > 0);
    store_close(store);
    mem_free(fixture.address);
}

static void expect_refusal(const char *address, const char *text)
{
    struct store *store = NULL;
    struct diag diag = {0};
    enum err err = store_open(&store, address, STORE_READ, &diag);
    assert_null(store);
    assert_true(err == ERR_UNAVAILABLE || err == ERR_DENIED ||
                err == ERR_NOT_FOUND);
    if (strstr(diag.text, text) == NULL) {
        fail_msg("no \"%s\" in: %s", text, diag.text);
    }
}

/* The port in an address. */
static const char *port_of(const char *address, char out[8])
{
    const char *port = strrchr(strstr(address, "@"), ':');
    (void)snprintf(out, 8, "%.*s", (int)strcspn(port + 1, "/"), port + 1);
    return out;
}

static void write_file(const char *path, const struct strbuf *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(strbuf_text(text), file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void of_several_hosts_one_that_answers_is_used(void **state)
{
    struct server *server = *state;
    struct strbuf address = {0};
    char port[8];
    (void)port_of(server_address(server), port);
    strbuf_addf(&address,
                "postgresql://sluice@127.0.0.1:1,127.0.0.1:%s/postgres",
                port);
    use(strbuf_text(&address));
    strbuf_release(&address);
}

static void a_service_file_names_the_server(void **state)
{
    struct server *server = *state;
    struct strbuf text = {0};
    struct strbuf path = {0};
    char port[8];
    strbuf_addf(&text,
                "[waves]\nhost=127.0.0.1\nport=%s\ndbname=postgres\n"
                "user=sluice\n",
                port_of(server_address(server), port));
    strbuf_addf(&path, "%s/services", server_dir(server));
    write_file(strbuf_text(&path), &text);
    assert_int_equal(setenv("PGSERVICEFILE", strbuf_text(&path), 1), 0);
    use("postgresql:///?service=waves");
    expect_refusal("postgresql:///?service=others", "others");
    assert_int_equal(unsetenv("PGSERVICEFILE"), 0);
    strbuf_release(&text);
    strbuf_release(&path);
}

static void an_address_without_a_server_is_refused(void **state)
{
    struct server *server = *state;
    struct strbuf address = {0};
    char port[8];
    strbuf_addf(&address,
                "postgresql://sluice:secret@127.0.0.1:%s/nowhere",
                port_of(server_address(server), port));
    expect_refusal(strbuf_text(&address), "nowhere");
    expect_refusal("postgresql://sluice:secret@127.0.0.1:1/postgres",
                   "postgresql://127.0.0.1:1/postgres");
    struct store *store = NULL;
    struct diag diag = {0};
    assert_int_equal(
        store_open(&store, "postgresql://h/d?unknown=word", STORE_READ, &diag),
        ERR_INVALID);
    assert_non_null(strstr(diag.text, "unknown"));
    assert_null(strstr(diag.text, "secret"));
    strbuf_release(&address);
}

/* An address of the server with certificates of the client, by name. */
static void add_tls(struct strbuf *out,
                    const struct server *server,
                    const char *host,
                    const char *authority,
                    const char *client)
{
    const char *dir = server_dir(server);
    char port[8];
    strbuf_clear(out);
    strbuf_addf(out,
                "postgresql://sluice@%s:%s/postgres?sslmode=verify-full"
                "&sslrootcert=%s/%s.crt",
                host,
                port_of(server_address(server), port),
                dir,
                authority);
    if (client != NULL) {
        strbuf_addf(out,
                    "&sslcert=%s/%s.crt&sslkey=%s/%s.key",
                    dir,
                    client,
                    dir,
                    client);
    }
}

static void tls_verifies_both_sides(void **state)
{
    static const char *const words[] = {"--tls", NULL};
    (void)state;
    struct server *server = server_start(words);
    struct strbuf address = {0};
    /* Without a certificate in the home of who runs the test. */
    assert_int_equal(setenv("HOME", server_dir(server), 1), 0);
    use(server_address(server));
    add_tls(&address, server, "127.0.0.1", "ca", "sluice");
    expect_refusal(strbuf_text(&address), "does not match host name");
    add_tls(&address, server, "localhost", "other", "sluice");
    expect_refusal(strbuf_text(&address), "certificate verify failed");
    add_tls(&address, server, "localhost", "ca", "stranger");
    expect_refusal(strbuf_text(&address), "unknown ca");
    add_tls(&address, server, "localhost", "ca", NULL);
    expect_refusal(strbuf_text(&address), "certificate");
    char port[8];
    strbuf_clear(&address);
    strbuf_addf(&address,
                "postgresql://sluice@localhost:%s/postgres?sslmode=disable",
                port_of(server_address(server), port));
    expect_refusal(strbuf_text(&address), "pg_hba.conf");
    strbuf_release(&address);
    server_stop(server);
}

static void a_full_disk_of_the_server_is_waited_for(void **state)
{
    static const char *const words[] = {"--small", NULL};
    (void)state;
    if (geteuid() != 0) {
        skip(); /* only root makes file systems */
    }
    struct server *server = server_start(words);
    struct fixture fixture = {
        .backend = BACKEND_POSTGRES,
        .address = fixture_address_at(server_address(server)),
    };
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(&fixture, &epoch);
    struct strbuf large = {0};
    for (uint32_t ix = 0; ix < 200000; ix++) {
        strbuf_addf(&large, "%u\n", ix * 2654435761U);
    }
    struct store_change run = fixture_run(2, "large");
    run.as.run.text = strbuf_text(&large);
    run.as.run.text_bytes = large.len;
    server_do(server, "fill");
    struct diag diag = {0};
    for (int ix = 0; ix < 3; ix++) {
        assert_int_equal(fixture_write(store, epoch, &run, 1, &diag),
                         ERR_LIMIT);
        assert_non_null(strstr(diag.text, "No space left"));
    }
    server_do(server, "free");
    fixture_write_ok(store, epoch, &run, 1);
    assert_int_equal(fixture_info(store).last_run, 2);
    store_close(store);
    strbuf_release(&large);
    mem_free(fixture.address);
    server_stop(server);
}

static void a_pool_in_session_mode_is_as_good(void **state)
{
    static const char *const words[] = {"--pool=session", NULL};
    (void)state;
    if (access("/usr/sbin/pgbouncer", X_OK) != 0) {
        skip();
    }
    struct server *server = server_start(words);
    /* Pools before version 1.20 reject `options`, so the schema is the default
     * one. */
    struct fixture fixture = {
        .backend = BACKEND_POSTGRES,
        .address = mem_strdup(server_address(server)),
    };
    for (int ix = 0; ix < 5; ix++) {
        uint64_t epoch = 0;
        struct store *store = fixture_take(&fixture, &epoch);
        fixture_write_ok(store,
                         epoch,
                         &(struct store_change){
                             .type = STORE_SETTING,
                             .as.setting = {.name = "a", .value = "b"},
                         },
                         1);
        struct store *reader = fixture_open(&fixture, STORE_READ);
        assert_int_equal(fixture_info(reader).epoch, epoch);
        store_close(reader);
        store_close(store);
    }
    mem_free(fixture.address);
    server_stop(server);
}

static int start(void **state)
{
    *state = server_start(NULL);
    return 0;
}

static int stop(void **state)
{
    server_stop(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_hosts_one_that_answers_is_used),
        cmocka_unit_test(a_service_file_names_the_server),
        cmocka_unit_test(an_address_without_a_server_is_refused),
        cmocka_unit_test(tls_verifies_both_sides),
        cmocka_unit_test(a_full_disk_of_the_server_is_waited_for),
        cmocka_unit_test(a_pool_in_session_mode_is_as_good),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
