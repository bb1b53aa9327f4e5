/* SPDX-License-Identifier: MIT */
/* The end of a source: its desk may have a forecast of it in hand. */
#include "http/source.h"

#include "base/mem.h"
#include "work/owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A store without a run, in a directory of its own. */
struct home {
    char dir[64];
    struct store_place place;
};

static void make_home(struct home *home)
{
    struct store *store = NULL;
    struct diag diag = {0};
    uint64_t epoch;
    *home = (struct home){.dir = "/tmp/sluice-source-XXXXXX"};
    assert_non_null(mkdtemp(home->dir));
    struct store_owner self = owner_self();
    if (store_open(&store, home->dir, STORE_WRITE, &diag) != ERR_OK ||
        store_take(store, &self, &epoch, &diag) != ERR_OK ||
        store_place_find(&home->place, home->dir, false, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    store_close(store);
}

static void remove_home(struct home *home)
{
    int fd = open(home->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL;
         entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            assert_int_equal(unlinkat(fd, entry->d_name, 0), 0);
        }
    }
    assert_int_equal(closedir(dir), 0);
    assert_int_equal(rmdir(home->dir), 0);
    store_place_release(&home->place);
}

/* Work that keeps the only thread of a desk until it is told to end. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool open;
};

static void
run_gate(void *ctx, const char *refused, struct http_response *response)
{
    struct gate *gate = ctx;
    (void)refused;
    (void)response;
    (void)pthread_mutex_lock(&gate->lock);
    while (!gate->open) {
        (void)pthread_cond_wait(&gate->news, &gate->lock);
    }
    (void)pthread_mutex_unlock(&gate->lock);
}

static void let_go(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->open = true;
    (void)pthread_cond_broadcast(&gate->news);
    (void)pthread_mutex_unlock(&gate->lock);
}

/* Open a source whose first forecast waits behind a gate. */
static struct source *
open_source(const struct home *home, struct desk **desk_out, struct gate *gate)
{
    struct source *source = NULL;
    struct diag diag = {0};
    struct desk_work work = {.run = run_gate, .ctx = gate};
    assert_int_equal(pthread_mutex_init(&gate->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&gate->news, NULL), 0);
    if (desk_open(desk_out, &(struct desk_options){.threads = 1}, &diag) !=
            ERR_OK ||
        desk_send(*desk_out, &work) != ERR_OK ||
        source_open(&source, &home->place, *desk_out, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    assert_true(source_take(source));
    if (source_glance(source, &diag) == NULL) {
        fail_msg("%s", diag.text);
    }
    return source;
}

static void close_gate(struct gate *gate)
{
    (void)pthread_mutex_destroy(&gate->lock);
    (void)pthread_cond_destroy(&gate->news);
}

/* The sanitizer sees a forecast that comes too late. */
static void closing_waits_for_the_forecast(void **state)
{
    struct home home;
    struct desk *desk = NULL;
    struct gate gate = {0};
    (void)state;
    make_home(&home);
    struct source *source = open_source(&home, &desk, &gate);
    source_stop(source);
    let_go(&gate);
    source_close(source);
    desk_close(desk);
    close_gate(&gate);
    remove_home(&home);
}

static void a_source_that_was_stopped_outlives_its_desk(void **state)
{
    struct home home;
    struct desk *desk = NULL;
    struct gate gate = {0};
    struct diag diag = {0};
    (void)state;
    make_home(&home);
    struct source *source = open_source(&home, &desk, &gate);
    source_stop(source);
    let_go(&gate);
    desk_close(desk);
    source_stop(source); /* again: nothing */
    source_soon(source); /* nobody reads */
    (void)source_take(source);
    assert_non_null(source_glance(source, &diag));
    source_close(source);
    close_gate(&gate);
    remove_home(&home);
}

static void a_store_that_does_not_exist_is_no_error(void **state)
{
    struct desk *desk = NULL;
    struct source *source = NULL;
    struct diag diag = {0};
    struct store_place place = {
        .address = mem_strdup("/nonexistent/sluice"),
        .id = mem_strdup("/nonexistent/sluice"),
        .home = mem_strdup("/nonexistent/sluice"),
    };
    (void)state;
    assert_int_equal(
        desk_open(&desk, &(struct desk_options){.threads = 1}, &diag),
        ERR_OK);
    assert_int_equal(source_open(&source, &place, desk, &diag), ERR_OK);
    (void)source_take(source);
    assert_null(source_glance(source, &diag));
    assert_string_not_equal(diag.text, "");
    assert_string_equal(source_id(source), "");
    assert_int_equal(source_last(source), 0);
    source_close(source);
    desk_close(desk);
    store_place_release(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_waits_for_the_forecast),
        cmocka_unit_test(a_source_that_was_stopped_outlives_its_desk),
        cmocka_unit_test(a_store_that_does_not_exist_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
