/* SPDX-License-Identifier: MIT */
/*
 * A request and its answer: whatever becomes of the scheduler meanwhile, who
 * asked learns whether the request was carried out.
 *
 * The scheduler is a thread that reads one line from the socket.
 */
#include "store/store.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "store/place.h"
#include "tests/contract/fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000 };

/* What the scheduler does with a request. */
enum deed {
    DEED_ANSWER, /* it answers */
    DEED_STORE,  /* it stores the request with its answer, and exits */
    DEED_EXIT,   /* it exits before it has stored anything */
};

struct listener {
    enum deed deed;
    int fd;
    struct store *store;
    uint64_t epoch;
    struct strbuf line;
    pthread_t thread;
    const char *failed;
};

/* Read a line; false: the other end has closed. */
static bool read_request(int fd, struct strbuf *out)
{
    char byte;
    while (read(fd, &byte, 1) == 1) {
        if (byte == '\n') {
            return true;
        }
        strbuf_add(out, &byte, 1);
    }
    return false;
}

/* Store the request, which has a key, with an answer. */
static enum err store_answered(struct listener *listener)
{
    static const char begin[] = "{\"key\":\"";
    struct store_key key = {{0}};
    if (strncmp(strbuf_text(&listener->line), begin, sizeof(begin) - 1) != 0) {
        return ERR_INVALID;
    }
    memcpy(key.text,
           listener->line.text + sizeof(begin) - 1,
           sizeof(key.text) - 1);
    struct store_change order = fixture_order("pause");
    order.as.command.key = key.text;
    order.as.command.answer = "{\"stored\":true}";
    return fixture_write_one(listener->store, listener->epoch, order);
}

static void *listen_once(void *ctx)
{
    struct listener *listener = ctx;
    int fd = accept(listener->fd, NULL, NULL);
    if (fd < 0 || !read_request(fd, &listener->line)) {
        listener->failed = "no request came";
        return NULL;
    }
    if (listener->deed == DEED_STORE && store_answered(listener) != ERR_OK) {
        listener->failed = "the request could not be stored";
    }
    if (listener->deed == DEED_ANSWER && write(fd, "{\"n\":1}\n", 8) != 8) {
        listener->failed = "the answer could not be written";
    }
    if (listener->deed != DEED_ANSWER) {
        store_close(listener->store); /* it exits */
        listener->store = NULL;
        (void)close(listener->fd);
        listener->fd = -1;
    }
    (void)close(fd);
    return NULL;
}

static void listener_start(struct listener *listener,
                           struct fixture *fixture,
                           enum deed deed)
{
    *listener = (struct listener){.deed = deed};
    listener->store = fixture_take(fixture, &listener->epoch);
    struct sockaddr_un address;
    int dir_fd = open(fixture->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir_fd >= 0);
    store_place_socket(&address, dir_fd);
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener->fd >= 0);
    assert_int_equal(
        bind(listener->fd, (const struct sockaddr *)&address, sizeof(address)),
        0);
    assert_int_equal(listen(listener->fd, 1), 0);
    assert_int_equal(close(dir_fd), 0);
    assert_int_equal(
        pthread_create(&listener->thread, NULL, listen_once, listener),
        0);
}

/* Ask while the scheduler does that; the answer, or NULL, which is freed. */
static char *ask(struct fixture *fixture, enum deed deed, enum err *err_out)
{
    struct listener listener;
    struct store_key key;
    struct diag diag = {0};
    char *answer = NULL;
    listener_start(&listener, fixture, deed);
    struct store *store = fixture_open(fixture, STORE_READ);
    struct strbuf keyed = {0};
    assert_int_equal(store_add_key(&keyed, &key, "{\"verb\":\"x\"}", &diag),
                     ERR_OK);
    *err_out =
        store_ask(store, &key, strbuf_text(&keyed), WAIT_MS, &answer, &diag);
    assert_int_equal(pthread_join(listener.thread, NULL), 0);
    assert_null(listener.failed);
    fixture_assert_contains(&listener.line, key.text);
    fixture_assert_contains(&listener.line, "\"verb\":\"x\"}");
    store_close(store);
    store_close(listener.store);
    if (listener.fd >= 0) {
        assert_int_equal(close(listener.fd), 0);
    }
    strbuf_release(&listener.line);
    strbuf_release(&keyed);
    return answer;
}

static void test_answer(void **state)
{
    enum err err;
    char *answer = ask(*state, DEED_ANSWER, &err);
    assert_int_equal(err, ERR_OK);
    assert_string_equal(answer, "{\"n\":1}");
    mem_free(answer);
}

static void test_answer_of_the_dead(void **state)
{
    enum err err;
    char *answer = ask(*state, DEED_STORE, &err);
    assert_int_equal(err, ERR_OK);
    assert_string_equal(answer, "{\"stored\":true}");
    mem_free(answer);
}

static void test_never_carried_out(void **state)
{
    enum err err;
    assert_null(ask(*state, DEED_EXIT, &err));
    assert_int_equal(err, ERR_NOT_FOUND);
}

/* Nobody listens, whether or not the lock is held. */
static void test_nobody(void **state)
{
    uint64_t epoch;
    struct store_key key;
    struct diag diag = {0};
    struct store *owner = fixture_take(*state, &epoch);
    struct store *store = fixture_open(*state, STORE_READ);
    struct strbuf keyed = {0};
    assert_int_equal(store_add_key(&keyed, &key, "{\"verb\":\"x\"}", &diag),
                     ERR_OK);
    const char *request = strbuf_text(&keyed);
    for (int round = 0; round < 2; round++) {
        char *answer = NULL;
        assert_int_equal(store_ping(store, WAIT_MS, &diag), ERR_NOT_FOUND);
        assert_int_equal(
            store_ask(store, &key, request, WAIT_MS, &answer, &diag),
            ERR_NOT_FOUND);
        assert_null(answer);
        store_close(round == 0 ? owner : NULL);
    }
    strbuf_release(&keyed);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_SQLITE(test_answer),
        FIXTURE_SQLITE(test_answer_of_the_dead),
        FIXTURE_SQLITE(test_never_carried_out),
        FIXTURE_EACH(test_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
