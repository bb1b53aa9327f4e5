/* SPDX-License-Identifier: MIT */
/*
 * The desk without clients: the work notes what happens to it. A gate holds the
 * only thread, so that the queue behind it is known.
 */
#include "http/desk.h"

#include "base/mem.h"
#include "tests/support/death.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORK_MAX = 64 };

/* What has happened, by the number of a piece of work. */
struct notes {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool held;                /* a thread is at the gate */
    bool open;                /* it may go on */
    uint32_t done;            /* pieces that were run, refused ones too ... */
    uint32_t order[WORK_MAX]; /* ... in this order */
    uint32_t ran[WORK_MAX];   /* how often */
    uint32_t dropped[WORK_MAX];
    char refused[WORK_MAX][64]; /* "": it was not */
};

/* A piece of work. */
struct piece {
    struct notes *notes;
    uint32_t number;
};

static struct notes *notes_new(void)
{
    struct notes *notes = mem_zalloc(1, sizeof(*notes));
    assert_int_equal(pthread_mutex_init(&notes->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&notes->news, NULL), 0);
    return notes;
}

static void notes_free(struct notes *notes)
{
    (void)pthread_mutex_destroy(&notes->lock);
    (void)pthread_cond_destroy(&notes->news);
    mem_free(notes);
}

static void run(void *ctx, const char *refused, struct http_response *response)
{
    const struct piece *piece = ctx;
    struct notes *notes = piece->notes;
    strbuf_adds(&response->body, "freed by the desk");
    (void)pthread_mutex_lock(&notes->lock);
    notes->order[notes->done++] = piece->number;
    notes->ran[piece->number]++;
    (void)strncat(notes->refused[piece->number],
                  refused != NULL ? refused : "",
                  sizeof(notes->refused[0]) - 1);
    (void)pthread_cond_broadcast(&notes->news);
    (void)pthread_mutex_unlock(&notes->lock);
}

static void drop(void *ctx)
{
    struct piece *piece = ctx;
    (void)pthread_mutex_lock(&piece->notes->lock);
    piece->notes->dropped[piece->number]++;
    (void)pthread_mutex_unlock(&piece->notes->lock);
    mem_free(piece);
}

/* Hold the thread until the gate opens. */
static void
run_gate(void *ctx, const char *refused, struct http_response *response)
{
    struct notes *notes = ctx;
    (void)refused;
    (void)response;
    (void)pthread_mutex_lock(&notes->lock);
    notes->held = true;
    (void)pthread_cond_broadcast(&notes->news);
    while (!notes->open) {
        (void)pthread_cond_wait(&notes->news, &notes->lock);
    }
    (void)pthread_mutex_unlock(&notes->lock);
}

static void hold(struct desk *desk, struct notes *notes)
{
    struct desk_work gate = {.run = run_gate, .ctx = notes};
    assert_int_equal(desk_send(desk, &gate), ERR_OK);
    (void)pthread_mutex_lock(&notes->lock);
    while (!notes->held) {
        (void)pthread_cond_wait(&notes->news, &notes->lock);
    }
    (void)pthread_mutex_unlock(&notes->lock);
}

static void let_go(struct notes *notes)
{
    (void)pthread_mutex_lock(&notes->lock);
    notes->open = true;
    (void)pthread_cond_broadcast(&notes->news);
    (void)pthread_mutex_unlock(&notes->lock);
}

static void wait_for(struct notes *notes, uint32_t count)
{
    (void)pthread_mutex_lock(&notes->lock);
    while (notes->done < count) {
        (void)pthread_cond_wait(&notes->news, &notes->lock);
    }
    (void)pthread_mutex_unlock(&notes->lock);
}

static enum err send(struct desk *desk, struct notes *notes, uint32_t number)
{
    struct piece *piece = mem_zalloc(1, sizeof(*piece));
    *piece = (struct piece){.notes = notes, .number = number};
    struct desk_work work = {.run = run, .drop = drop, .ctx = piece};
    enum err err = desk_send(desk, &work);
    if (err != ERR_OK) {
        mem_free(piece); /* the caller keeps it */
    }
    return err;
}

static struct desk *open_desk(const struct desk_options *options)
{
    struct desk *desk = NULL;
    struct diag diag = {0};
    if (desk_open(&desk, options, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return desk;
}

/* Send work to a held desk until it is full; return how many it took. */
static uint32_t fill(struct desk *desk, struct notes *notes)
{
    uint32_t count = 0;
    while (count < WORK_MAX && send(desk, notes, count) == ERR_OK) {
        count++;
    }
    return count;
}

/* Each piece of work was run and dropped once. */
static void expect_once(const struct notes *notes, uint32_t count)
{
    assert_int_equal(notes->done, count);
    for (uint32_t ix = 0; ix < count; ix++) {
        assert_int_equal(notes->ran[ix], 1);
        assert_int_equal(notes->dropped[ix], 1);
    }
}

/* --- tests -------------------------------------------------------------- */

static void one_thread_works_in_the_order_of_sending(void **state)
{
    (void)state;
    struct notes *notes = notes_new();
    struct desk *desk = open_desk(&(struct desk_options){.threads = 1});
    hold(desk, notes);
    for (uint32_t ix = 0; ix < 5; ix++) {
        assert_int_equal(send(desk, notes, ix), ERR_OK);
    }
    let_go(notes);
    wait_for(notes, 5);
    desk_close(desk);
    expect_once(notes, 5);
    for (uint32_t ix = 0; ix < 5; ix++) {
        assert_int_equal(notes->order[ix], ix);
        assert_string_equal(notes->refused[ix], "");
    }
    notes_free(notes);
}

static void only_so_much_work_waits(void **state)
{
    (void)state;
    struct notes *notes = notes_new();
    struct desk *desk = open_desk(&(struct desk_options){.threads = 1});
    hold(desk, notes);
    uint32_t count = fill(desk, notes);
    assert_int_equal(count, 16);
    assert_int_equal(send(desk, notes, count), ERR_BUSY);
    let_go(notes);
    wait_for(notes, count);
    assert_int_equal(send(desk, notes, count),
                     ERR_OK); /* there is room again */
    wait_for(notes, count + 1);
    desk_close(desk);
    expect_once(notes, count + 1);
    notes_free(notes);
}

static void work_that_waited_too_long_is_refused(void **state)
{
    (void)state;
    struct notes *notes = notes_new();
    struct desk *desk = open_desk(&(struct desk_options){
        .threads = 1,
        .late_ns = 1, /* all that waits at all */
        .late_text = "too late",
    });
    hold(desk, notes);
    assert_int_equal(send(desk, notes, 0), ERR_OK);
    assert_int_equal(send(desk, notes, 1), ERR_OK);
    let_go(notes);
    wait_for(notes, 2);
    desk_close(desk);
    expect_once(notes, 2);
    assert_string_equal(notes->refused[0], "too late");
    assert_string_equal(notes->refused[1], "too late");
    notes_free(notes);
}

/* Work that sends its like until it is refused. */
struct runner {
    struct desk *desk;
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint32_t ran;
    uint32_t refused;
    uint32_t sent;
};

static void
run_on(void *ctx, const char *refused, struct http_response *response)
{
    struct runner *runner = ctx;
    struct desk_work again = {.run = run_on, .ctx = runner};
    (void)response;
    bool sent = refused == NULL && desk_send(runner->desk, &again) == ERR_OK;
    (void)pthread_mutex_lock(&runner->lock);
    runner->ran += refused == NULL ? 1 : 0;
    runner->refused +=
        refused != NULL && strcmp(refused, "the server stops") == 0 ? 1 : 0;
    runner->sent += sent ? 1 : 0;
    (void)pthread_cond_broadcast(&runner->news);
    (void)pthread_mutex_unlock(&runner->lock);
}

/* Two pieces of work go round: at any moment one of them waits. */
static void closing_refuses_the_rest_and_forgets_nothing(void **state)
{
    (void)state;
    struct runner runner = {.sent = 2};
    struct desk_work work = {.run = run_on, .ctx = &runner};
    assert_int_equal(pthread_mutex_init(&runner.lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&runner.news, NULL), 0);
    runner.desk = open_desk(&(struct desk_options){.threads = 1});
    assert_int_equal(desk_send(runner.desk, &work), ERR_OK);
    assert_int_equal(desk_send(runner.desk, &work), ERR_OK);
    (void)pthread_mutex_lock(&runner.lock);
    while (runner.ran < 10) {
        (void)pthread_cond_wait(&runner.news, &runner.lock);
    }
    (void)pthread_mutex_unlock(&runner.lock);
    desk_close(runner.desk);
    assert_in_range(runner.refused, 1, 2);
    assert_int_equal(runner.ran + runner.refused, runner.sent);
    (void)pthread_mutex_destroy(&runner.lock);
    (void)pthread_cond_destroy(&runner.news);
}

static void news_come_once(void **state)
{
    (void)state;
    struct notes *notes = notes_new();
    struct desk *desk = open_desk(&(struct desk_options){.threads = 1});
    assert_false(desk_news(desk));
    assert_int_equal(send(desk, notes, 0), ERR_OK);
    while (!desk_news(desk)) {
    }
    assert_false(desk_news(desk));
    desk_close(desk);
    expect_once(notes, 1);
    notes_free(notes);
}

static void open_without_text(void *ctx)
{
    struct desk *desk = NULL;
    (void)ctx;
    enum err err = desk_open(&desk,
                             &(struct desk_options){
                                 .threads = 1,
                                 .late_ns = 1,
                             },
                             NULL);
    (void)err;
}

static void a_desk_that_refuses_late_work_must_say_why(void **state)
{
    (void)state;
    death_expect(open_without_text, NULL, "late_text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_works_in_the_order_of_sending),
        cmocka_unit_test(only_so_much_work_waits),
        cmocka_unit_test(work_that_waited_too_long_is_refused),
        cmocka_unit_test(closing_refuses_the_rest_and_forgets_nothing),
        cmocka_unit_test(news_come_once),
        cmocka_unit_test(a_desk_that_refuses_late_work_must_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
