/* SPDX-License-Identifier: MIT */
#include "http/orders.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "http/desk.h"
#include "http/page.h"
#include "view/client.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct orders {
    struct source *source; /* borrowed */
    struct desk *desk;
};

struct order {
    struct source *source; /* borrowed */
    char *json;
    char *key;  /* or NULL */
    char *back; /* or NULL */
};

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

/* Send the request, and make the response of the reply. */
static void send_order(const struct order *order,
                       struct http_response *response)
{
    struct diag diag = {0};
    char *text = NULL;
    struct store_key key;
    if (order->key != NULL) {
        key = key_of(order->key);
    }
    enum err err = client_ask_once(source_place(order->source),
                                   order->json,
                                   order->key != NULL ? &key : NULL,
                                   &text,
                                   &diag);
    if (err == ERR_OK) {
        json_t *json = json_loads(text, 0, NULL);
        const char *name = json_string_value(json_object_get(json, "error"));
        bool good = json_is_true(json_object_get(json, "ok"));
        response->status = http_status(good           ? ERR_OK
                                       : name != NULL ? err_from_name(name)
                                                      : ERR_IO);
        strbuf_addf(&response->body, "%s\n", text);
        json_decref(json);
    } else {
        /* A store that has vanished may come back. */
        http_fail(response,
                  err == ERR_NOT_FOUND ? 503 : http_status(err),
                  err,
                  diag.text);
    }
    mem_free(text);
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
    response->type = PAGE_TYPE;
    response->policy = page_policy();
}

static void run(void *ctx, const char *refused, struct http_response *response)
{
    const struct order *order = ctx;
    if (refused != NULL) {
        http_fail(response, 503, ERR_UNAVAILABLE, refused);
    } else {
        send_order(order, response);
    }
    if (order->back != NULL && response->status == 200) {
        source_settle(order->source); /* who comes back wants to see it */
    }
    if (order->back != NULL) {
        make_page(response, order->back);
    }
}

static void drop(void *ctx)
{
    struct order *order = ctx;
    mem_free(order->json);
    mem_free(order->key);
    mem_free(order->back);
    mem_free(order);
}

enum err
orders_open(struct orders **out, struct source *source, struct diag *diag)
{
    static const struct desk_options options = {
        .threads = 1,
        .late_ns = 8 * SECOND_NS,
        /* Those before it were not answered. */
        .late_text = "the scheduler does not reply; this order was not sent",
    };
    struct orders *orders = mem_zalloc(1, sizeof(*orders));
    enum err err = desk_open(&orders->desk, &options, diag);
    orders->source = source;
    *out = orders;
    if (err != ERR_OK) {
        orders_close(orders);
        *out = NULL;
    }
    return err;
}

void orders_close(struct orders *orders)
{
    if (orders == NULL) {
        return;
    }
    desk_close(orders->desk);
    mem_free(orders);
}

enum err orders_send(struct orders *orders,
                     struct http_exchange *exchange,
                     const char *json,
                     const char *key,
                     const char *back)
{
    struct order *order = mem_zalloc(1, sizeof(*order));
    order->source = orders->source;
    order->json = mem_strdup(json);
    order->key = key != NULL ? mem_strdup(key) : NULL;
    order->back = back != NULL ? mem_strdup(back) : NULL;
    struct desk_work work = {
        .exchange = exchange,
        .run = run,
        .drop = drop,
        .ctx = order,
    };
    enum err err = desk_send(orders->desk, &work);
    if (err != ERR_OK) {
        drop(order);
    }
    return err;
}

bool orders_news(struct orders *orders)
{
    return desk_news(orders->desk);
}
