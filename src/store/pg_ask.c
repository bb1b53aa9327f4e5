/* SPDX-License-Identifier: MIT */
/*
 * Requests to the scheduler of a store in PostgreSQL, by rows of the table
 * `ask`: the scheduler marks a row as taken before it applies the request, and
 * then adds the answer. Notifications only wake; both sides also look.
 *
 * A request that was not taken can be withdrawn, and then never is: so its fate
 * is known when nobody listens any more. The row need not be on disk before it
 * is taken: a crash of the server forgets it together with its client.
 */
#include "store/pg_internal.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"

#include <stdio.h>
#include <unistd.h>

/* How often to look without a notification. */
#define LOOK_NS (100 * MS_NS)

/* What a connection begins with. To withdraw a request that was not taken must
 * be on disk, as nobody may take it any more. */
#define BEGIN_ASKING                                                           \
    "PREPARE ask_send (text, text) AS WITH new AS ("                           \
    " INSERT INTO ask (session, who, request)"                                 \
    " SELECT false, $1, $2 FROM scheduler"                                     \
    " WHERE listens AND lease_until >= clock_timestamp() RETURNING number)"    \
    " SELECT number, pg_notify('" PG_TO_SCHEDULER "', '" PG_ASKED "'),"        \
    " set_config('synchronous_commit', 'off', true) FROM new;"                 \
    " PREPARE ask_look (int8) AS"                                              \
    " SELECT ask.answer, scheduler.listens"                                    \
    " AND scheduler.lease_until >= clock_timestamp()"                          \
    " AND (ask.taken IS NULL OR ask.taken = scheduler.epoch)"                  \
    " FROM scheduler LEFT JOIN ask ON ask.number = $1;"                        \
    " PREPARE ask_withdraw (int8) AS DELETE FROM ask WHERE number = $1"        \
    " RETURNING taken IS NULL, CASE WHEN taken IS NOT NULL THEN"               \
    "  set_config('synchronous_commit', 'off', true) END;"                     \
    " LISTEN " PG_ANSWERED

/* Add the row, if a scheduler listens. */
static enum err send_row(struct pg_store *store,
                         const char *json,
                         int64_t *number_out,
                         struct diag *diag)
{
    struct strbuf who = {0};
    struct pg_params params = {0};
    enum err err = ERR_OK;
    char host[65] = "";
    (void)gethostname(host, sizeof(host) - 1);
    strbuf_addf(&who,
                "uid %u pid %d on %s",
                (unsigned)getuid(),
                (int)getpid(),
                host);
    pg_add_text(&params, strbuf_text(&who));
    pg_add_text(&params, json);
    PGresult *result =
        pg_run_prepared(&store->link, "ask_send", &params, &err, diag);
    strbuf_release(&who);
    if (err == ERR_OK && PQntuples(result) == 0) {
        err = diag_set(diag,
                       ERR_NOT_FOUND,
                       "no scheduler of %s takes requests",
                       store->link.shown);
    } else if (err == ERR_OK) {
        *number_out = pg_i64(result, 0, 0);
    }
    PQclear(result);
    return err == ERR_BUSY ? ERR_UNAVAILABLE : err;
}

/* Look for the answer; ERR_TIMEOUT: not yet. ERR_IO: it will not come, because
 * the scheduler that took it is gone. */
static enum err look(struct pg_store *store,
                     int64_t number,
                     char **answer_out,
                     struct diag *diag)
{
    struct pg_params params = {0};
    enum err err = ERR_OK;
    pg_add_i64(&params, number);
    PGresult *result =
        pg_run_prepared(&store->link, "ask_look", &params, &err, diag);
    if (err != ERR_OK) {
        return err;
    }
    const char *answer = pg_text(result, 0, 0);
    if (answer != NULL) {
        *answer_out = mem_strdup(answer);
    } else if (!pg_bool(result, 0, 1)) {
        err = diag_set(diag,
                       ERR_IO,
                       "the scheduler of %s has exited",
                       store->link.shown);
    } else {
        err = ERR_TIMEOUT;
    }
    PQclear(result);
    return err;
}

/* Take the notifications that have come; true: there was one. */
static bool take_notifications(struct pg_store *store)
{
    bool any = false;
    PGnotify *notify;
    while ((notify = PQnotifies(store->link.conn)) != NULL) {
        PQfreemem(notify);
        any = true;
    }
    return any;
}

/* Wait for a notification, or until it is time to look. */
static enum err wait_for_news(struct pg_store *store, int64_t until_ns)
{
    struct diag ignored = {0};
    if (take_notifications(store)) {
        return ERR_OK; /* it came along with a result */
    }
    enum err err = pg_wait(&store->link, false, until_ns, &ignored);
    if (err == ERR_OK && PQconsumeInput(store->link.conn) == 0) {
        pg_link_drop(&store->link);
        return ERR_IO;
    }
    (void)take_notifications(store);
    return ERR_OK;
}

/* Remove the row. ERR_NOT_FOUND: it was not taken, and never will be. */
static enum err withdraw(struct pg_store *store, int64_t number)
{
    struct pg_params params = {0};
    struct diag ignored = {0};
    enum err err = ERR_OK;
    pg_add_i64(&params, number);
    PGresult *result =
        pg_run_prepared(&store->link, "ask_withdraw", &params, &err, &ignored);
    bool never =
        err == ERR_OK && PQntuples(result) == 1 && pg_bool(result, 0, 0);
    PQclear(result);
    return never ? ERR_NOT_FOUND : ERR_OK;
}

enum err pg_ask(struct store *base,
                const char *json,
                int timeout_ms,
                char **answer_out,
                struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    int64_t number = 0;
    INVARIANT(!store->held && !store->writing && timeout_ms > 0);
    enum err err = pg_need(store, diag);
    if (err == ERR_OK && store->listening != store->link.number) {
        err = pg_do(&store->link, BEGIN_ASKING, NULL, NULL, diag);
        store->listening = err == ERR_OK ? store->link.number : 0;
    }
    if (err == ERR_OK) {
        err = send_row(store, json, &number, diag);
    }
    if (err != ERR_OK) {
        return err == ERR_BUSY ? ERR_UNAVAILABLE : err;
    }
    int64_t end_ns = clock_boot_ns() + (int64_t)timeout_ms * MS_NS;
    err = ERR_TIMEOUT;
    while (err == ERR_TIMEOUT) {
        int64_t until_ns = clock_boot_ns() + LOOK_NS;
        if (wait_for_news(store, until_ns < end_ns ? until_ns : end_ns) !=
            ERR_OK) {
            err = ERR_IO;
            break;
        }
        bool late = clock_boot_ns() >= end_ns;
        err = look(store, number, answer_out, diag);
        if (err == ERR_TIMEOUT && late) {
            (void)diag_set(diag,
                           ERR_TIMEOUT,
                           "the scheduler of %s does not reply",
                           store->link.shown);
            break;
        }
    }
    if (store->link.conn != NULL && withdraw(store, number) == ERR_NOT_FOUND) {
        err = ERR_NOT_FOUND;
    }
    INVARIANT((err == ERR_OK) == (*answer_out != NULL));
    return err == ERR_BUSY ? ERR_IO : err;
}
