/* SPDX-License-Identifier: MIT */
#include "http/desk.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

enum { WAITING_MAX = 16, THREADS_MAX = 4 };

struct item {
    struct item *next;
    struct desk_work work;
    int64_t sent_ns;
};

struct desk {
    struct desk_options options;
    pthread_t threads[THREADS_MAX];
    uint32_t thread_count;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t news;
    struct item *first;
    struct item **last;
    uint32_t count;
    bool done; /* since desk_news() */
    bool closing;
};

/* Remove the first item; NULL: there is none. The lock is held. */
static struct item *take(struct desk *desk)
{
    struct item *item = desk->first;
    if (item != NULL) {
        INVARIANT(desk->count > 0);
        desk->first = item->next;
        desk->last = item->next == NULL ? &desk->first : desk->last;
        desk->count--;
    }
    return item;
}

/* Do the work of an item, and answer. */
static void carry_out(struct desk *desk, struct item *item, const char *refused)
{
    struct http_response response = {.status = 200};
    item->work.run(item->work.ctx, refused, &response);
    /* Before the answer, which wakes the loop. */
    (void)pthread_mutex_lock(&desk->lock);
    desk->done = true;
    (void)pthread_mutex_unlock(&desk->lock);
    if (item->work.drop != NULL) {
        item->work.drop(item->work.ctx);
    }
    if (item->work.exchange != NULL) {
        httpd_answer(item->work.exchange, &response);
    } else {
        http_response_release(&response);
    }
    mem_free(item);
}

static void *work(void *ctx)
{
    struct desk *desk = ctx;
    (void)pthread_mutex_lock(&desk->lock);
    while (!desk->closing || desk->first != NULL) {
        struct item *item = take(desk);
        if (item == NULL) {
            (void)pthread_cond_wait(&desk->news, &desk->lock);
            continue;
        }
        bool late = desk->options.late_ns > 0 &&
                    clock_boot_ns() - item->sent_ns > desk->options.late_ns;
        const char *refused = desk->closing ? "the server stops"
                              : late        ? desk->options.late_text
                                            : NULL;
        (void)pthread_mutex_unlock(&desk->lock);
        carry_out(desk, item, refused);
        (void)pthread_mutex_lock(&desk->lock);
    }
    (void)pthread_mutex_unlock(&desk->lock);
    return NULL;
}

enum err desk_open(struct desk **out,
                   const struct desk_options *options,
                   struct diag *diag)
{
    struct desk *desk = mem_zalloc(1, sizeof(*desk));
    INVARIANT(options->threads > 0 && options->threads <= THREADS_MAX);
    INVARIANT(options->late_ns == 0 || options->late_text != NULL);
    desk->options = *options;
    desk->last = &desk->first;
    int failed = pthread_mutex_init(&desk->lock, NULL);
    failed = failed != 0 ? failed : pthread_cond_init(&desk->news, NULL);
    INVARIANT(failed == 0);
    for (uint32_t ix = 0; ix < options->threads && failed == 0; ix++) {
        failed = pthread_create(&desk->threads[ix], NULL, work, desk);
        desk->thread_count += failed == 0 ? 1 : 0;
    }
    *out = desk;
    if (failed != 0) {
        desk_close(desk);
        *out = NULL;
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "cannot create a thread: %s",
                        strerror(failed));
    }
    return ERR_OK;
}

void desk_close(struct desk *desk)
{
    if (desk == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&desk->lock);
    desk->closing = true;
    (void)pthread_cond_broadcast(&desk->news);
    (void)pthread_mutex_unlock(&desk->lock);
    for (uint32_t ix = 0; ix < desk->thread_count; ix++) {
        (void)pthread_join(desk->threads[ix], NULL);
    }
    INVARIANT(desk->first == NULL);
    (void)pthread_mutex_destroy(&desk->lock);
    (void)pthread_cond_destroy(&desk->news);
    mem_free(desk);
}

enum err desk_send(struct desk *desk, const struct desk_work *work_given)
{
    struct item *item = mem_zalloc(1, sizeof(*item));
    item->work = *work_given;
    item->sent_ns = clock_boot_ns();
    (void)pthread_mutex_lock(&desk->lock);
    bool full = desk->closing || desk->count >= WAITING_MAX;
    if (!full) {
        *desk->last = item;
        desk->last = &item->next;
        desk->count++;
        (void)pthread_cond_signal(&desk->news);
    }
    (void)pthread_mutex_unlock(&desk->lock);
    if (full) {
        mem_free(item);
    }
    return full ? ERR_BUSY : ERR_OK;
}

bool desk_news(struct desk *desk)
{
    (void)pthread_mutex_lock(&desk->lock);
    bool done = desk->done;
    desk->done = false;
    (void)pthread_mutex_unlock(&desk->lock);
    return done;
}
