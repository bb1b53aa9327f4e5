/* SPDX-License-Identifier: MIT */
#include "http/orders.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "http/page.h"
#include "view/client.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WAITING_MAX = 16 };

/* An order that has waited so long behind others is not sent. */
#define LATE_NS (8 * SECOND_NS)

struct order {
    struct order *next;
    struct http_exchange *exchange;
    char *json;
    char *key;  /* or NULL */
    char *back; /* or NULL */
    int64_t sent_ns;
};

struct orders {
    struct store_place place;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct order *first;
    struct order **last;
    uint32_t count;
    bool answered; /* since orders_news() */
    bool closing;
};

int orders_status(enum err err)
{
    switch (err) {
    case ERR_OK:
        return 200;
    case ERR_INVALID:
        return 400;
    case ERR_DENIED:
        return 403;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_CONFLICT:
    case ERR_CANCELLED:
        return 409;
    case ERR_LIMIT:
        return 422;
    case ERR_TIMEOUT:
        return 504;
    case ERR_BUSY:
    case ERR_UNAVAILABLE:
    case ERR_IO:
        return 503;
    case ERR_CORRUPT:
    case ERR_COUNT:
        break;
    }
    return 500;
}

/* Make the key of the store of the key that a client has chosen. */
static struct store_key key_of(const char *given)
{
    struct store_key key;
    unsigned char hash[SHA256_BYTES];
    size_t bytes = (sizeof(key.text) - 1) / 2;
    INVARIANT(bytes <= sizeof(hash));
    sha256(given, strlen(given), hash);
    for (size_t ix = 0; ix < bytes; ix++) {
        (void)snprintf(key.text + 2 * ix, 3, "%02x", hash[ix]);
    }
    return key;
}

static void fail(struct http_response *response, enum err err, const char *text)
{
    struct jsonw json = {.out = &response->body};
    jsonw_object(&json, NULL);
    jsonw_bool(&json, "ok", false);
    jsonw_text(&json, "error", err_name(err));
    jsonw_text(&json, "text", text);
    jsonw_finish(&json);
    response->status = orders_status(err);
}

/* Make the response to a request. */
static struct http_response make_response(const struct orders *orders,
                                          const struct order *order)
{
    struct diag diag = {0};
    struct http_response response = {0};
    char *text = NULL;
    struct store_key key;
    if (order->key != NULL) {
        key = key_of(order->key);
    }
    enum err err = client_ask_once(&orders->place,
                                   order->json,
                                   order->key != NULL ? &key : NULL,
                                   &text,
                                   &diag);
    if (err == ERR_OK) {
        json_t *json = json_loads(text, 0, NULL);
        const char *name = json_string_value(json_object_get(json, "error"));
        bool good = json_is_true(json_object_get(json, "ok"));
        response.status = orders_status(good           ? ERR_OK
                                        : name != NULL ? err_from_name(name)
                                                       : ERR_IO);
        strbuf_addf(&response.body, "%s\n", text);
        json_decref(json);
    } else {
        fail(&response, err, diag.text);
        /* A store that has vanished may come back. */
        response.status = err == ERR_NOT_FOUND ? 503 : orders_status(err);
    }
    mem_free(text);
    return response;
}

/* Turn a response into one for a person without a script. */
static void make_page(struct http_response *response, const char *back)
{
    struct strbuf text = {0};
    json_t *json = json_loads(strbuf_text(&response->body), 0, NULL);
    const char *said = json_string_value(json_object_get(json, "text"));
    if (response->status == 200) {
        response->status = 303;
        strbuf_adds(&response->location, back);
    } else {
        page_add_error(&text, said != NULL ? said : "", back);
    }
    json_decref(json);
    strbuf_release(&response->body);
    response->body = text;
    response->type = "text/html; charset=utf-8";
}

static void free_order(struct order *order)
{
    mem_free(order->json);
    mem_free(order->key);
    mem_free(order->back);
    mem_free(order);
}

static void *work(void *ctx)
{
    struct orders *orders = ctx;
    (void)pthread_mutex_lock(&orders->lock);
    while (!orders->closing || orders->first != NULL) {
        struct order *order = orders->first;
        if (order == NULL) {
            (void)pthread_cond_wait(&orders->news, &orders->lock);
            continue;
        }
        orders->first = order->next;
        orders->last = order->next == NULL ? &orders->first : orders->last;
        orders->count--;
        bool closing = orders->closing;
        (void)pthread_mutex_unlock(&orders->lock);
        struct http_response response = {0};
        if (closing || clock_boot_ns() - order->sent_ns > LATE_NS) {
            /* Those before it were not answered. */
            fail(&response,
                 ERR_UNAVAILABLE,
                 "the scheduler does not reply; this order was not sent");
        } else {
            response = make_response(orders, order);
        }
        if (order->back != NULL) {
            make_page(&response, order->back);
        }
        (void)pthread_mutex_lock(&orders->lock);
        orders->answered = true;
        (void)pthread_mutex_unlock(&orders->lock);
        httpd_answer(order->exchange, &response);
        free_order(order);
        (void)pthread_mutex_lock(&orders->lock);
    }
    (void)pthread_mutex_unlock(&orders->lock);
    return NULL;
}

enum err orders_open(struct orders **out,
                     const struct store_place *place,
                     struct diag *diag)
{
    *out = NULL;
    struct orders *orders = mem_zalloc(1, sizeof(*orders));
    orders->place = store_place_copy(place);
    orders->last = &orders->first;
    int failed = pthread_mutex_init(&orders->lock, NULL);
    failed = failed != 0 ? failed : pthread_cond_init(&orders->news, NULL);
    INVARIANT(failed == 0);
    int error = pthread_create(&orders->thread, NULL, work, orders);
    if (error != 0) {
        store_place_release(&orders->place);
        mem_free(orders);
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "cannot create a thread: %s",
                        strerror(error));
    }
    *out = orders;
    return ERR_OK;
}

void orders_close(struct orders *orders)
{
    if (orders == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&orders->lock);
    orders->closing = true;
    (void)pthread_cond_signal(&orders->news);
    (void)pthread_mutex_unlock(&orders->lock);
    (void)pthread_join(orders->thread, NULL);
    (void)pthread_mutex_destroy(&orders->lock);
    (void)pthread_cond_destroy(&orders->news);
    store_place_release(&orders->place);
    mem_free(orders);
}

enum err orders_send(struct orders *orders,
                     struct http_exchange *exchange,
                     const char *json,
                     const char *key,
                     const char *back)
{
    struct order *order = mem_zalloc(1, sizeof(*order));
    order->exchange = exchange;
    order->json = mem_strdup(json);
    order->key = key != NULL ? mem_strdup(key) : NULL;
    order->back = back != NULL ? mem_strdup(back) : NULL;
    order->sent_ns = clock_boot_ns();
    (void)pthread_mutex_lock(&orders->lock);
    bool full = orders->count >= WAITING_MAX;
    if (!full) {
        *orders->last = order;
        orders->last = &order->next;
        orders->count++;
        (void)pthread_cond_signal(&orders->news);
    }
    (void)pthread_mutex_unlock(&orders->lock);
    if (full) {
        free_order(order);
    }
    return full ? ERR_BUSY : ERR_OK;
}

bool orders_news(struct orders *orders)
{
    (void)pthread_mutex_lock(&orders->lock);
    bool answered = orders->answered;
    orders->answered = false;
    (void)pthread_mutex_unlock(&orders->lock);
    return answered;
}
