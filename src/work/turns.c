/* SPDX-License-Identifier: MIT */
/*
 * The loop polls the socket, for notifications and for the result of a turn. A
 * turn without a connection makes one first; that can take long, and is done in
 * a thread, to which the connection belongs then. A connection that fails is
 * made anew by the next turn, which comes after a pause.
 */
#include "work/turns.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "store/pg_link.h"

#include <string.h>

/* Between a failed turn and the next. */
#define RETRY_NS (500 * MS_NS)

struct turns {
    struct turns_options options;
    char *begin; /* of a connection */
    struct pg_link link;
    uv_timer_t timer;
    uv_poll_t *poll; /* NULL: no connection, or the thread has it */
    uv_work_t work;
    bool busy;
    bool sent;        /* the turn under way was sent by the loop ... */
    PGresult *result; /* ... and what has come of its result */
    bool wanted;      /* another turn, after this one */
    bool brief;       /* notifications were of requests only */
    bool closing;
    uint64_t listening; /* number of the connection that does */
    struct strbuf said;
    char *heard; /* NULL: it failed */
    enum err err;
    struct diag why;
    int64_t since_ns;
};

static void must(int status)
{
    INVARIANT(status == 0);
}

/* --- in the thread ------------------------------------------------------ */

static enum err make_turn(struct turns *turns, struct diag *diag)
{
    struct pg_link *link = &turns->link;
    enum err err = pg_link_need(link, diag);
    if (err == ERR_OK && turns->listening != link->number) {
        err = pg_do(link, turns->begin, NULL, NULL, diag);
        turns->listening = err == ERR_OK ? link->number : 0;
    }
    if (err != ERR_OK) {
        return err;
    }
    struct pg_params params = {0};
    pg_add_text(&params, strbuf_text(&turns->said));
    PGresult *result = pg_run_prepared(link, "turn", &params, &err, diag);
    if (err == ERR_OK && PQntuples(result) == 1) {
        turns->heard = mem_strdup(pg_text(result, 0, 0));
    } else if (err == ERR_OK) {
        err = diag_set(diag, ERR_CORRUPT, "a turn at the store has no result");
    }
    PQclear(result);
    return err;
}

static void work(uv_work_t *work)
{
    struct turns *turns = work->data;
    turns->why = (struct diag){0};
    turns->heard = NULL;
    turns->since_ns = clock_boot_ns();
    turns->err = make_turn(turns, &turns->why);
    INVARIANT((turns->err == ERR_OK) == (turns->heard != NULL));
}

/* --- in the loop -------------------------------------------------------- */

static void begin(struct turns *turns);

static void on_timer(uv_timer_t *timer)
{
    begin(timer->data);
}

static void set_timer(struct turns *turns, int64_t in_ns)
{
    uint64_t in_ms = (uint64_t)((in_ns + MS_NS - 1) / MS_NS);
    must(uv_timer_start(&turns->timer, on_timer, in_ms, 0));
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

/* Stop polling. The handle goes, because the descriptor may be closed next, and
 * its number then may be another file's. */
static void stop_polling(struct turns *turns)
{
    if (turns->poll != NULL) {
        uv_close((uv_handle_t *)turns->poll, free_handle);
        turns->poll = NULL;
    }
}

/* Take the notifications that have come; true: there was one for this client.
 */
static bool take_notifications(struct turns *turns)
{
    bool any = false;
    PGnotify *notify;
    const char *name = turns->options.name;
    while ((notify = PQnotifies(turns->link.conn)) != NULL) {
        bool all = name == NULL || notify->extra[0] == '\0';
        any = any || all || strcmp(notify->extra, name) == 0;
        turns->brief = turns->brief && strcmp(notify->extra, PG_ASKED) == 0;
        PQfreemem(notify);
    }
    return any;
}

/* The turn is over, with its result or its error. */
static void finish(struct turns *turns)
{
    INVARIANT(turns->busy && (turns->err == ERR_OK) == (turns->heard != NULL));
    turns->busy = false;
    char *heard = turns->heard;
    turns->heard = NULL;
    if (turns->link.conn != NULL && take_notifications(turns)) {
        turns->wanted = true; /* it came along with the result */
    }
    turns->options.hear(turns->options.ctx,
                        heard,
                        turns->since_ns,
                        turns->err,
                        &turns->why);
    mem_free(heard);
    if (turns->closing) {
        return;
    }
    if (turns->err != ERR_OK) {
        set_timer(turns, RETRY_NS);
    } else {
        set_timer(turns, turns->wanted ? 0 : turns->options.pause_ns);
    }
}

/* The connection has failed during a turn of the loop, or has its result. */
static void finish_sent(struct turns *turns, bool lost)
{
    PGresult *result = turns->result;
    INVARIANT(turns->sent);
    turns->sent = false;
    turns->result = NULL;
    turns->err = ERR_OK;
    turns->why = (struct diag){0};
    if (!lost && PQresultStatus(result) == PGRES_TUPLES_OK &&
        PQntuples(result) == 1) {
        turns->heard = mem_strdup(pg_text(result, 0, 0));
    } else {
        stop_polling(turns); /* what follows may close the descriptor */
        turns->err = pg_fail(&turns->link, lost ? NULL : result, &turns->why);
        pg_link_drop(&turns->link);
    }
    PQclear(result);
    finish(turns);
}

static void on_late(uv_timer_t *timer)
{
    finish_sent(timer->data, true);
}

static void on_ready(uv_poll_t *poll, int status, int events);

/* Send what is left; false: the connection is lost. */
static bool flush(struct turns *turns)
{
    int left = PQflush(turns->link.conn);
    int events = UV_READABLE | (left > 0 ? UV_WRITABLE : 0);
    if (left < 0) {
        return false;
    }
    must(uv_poll_start(turns->poll, events, on_ready));
    return true;
}

/* Read what has come of the result; false: the connection is lost. */
static bool read_result(struct turns *turns, bool *whole_out)
{
    PGconn *conn = turns->link.conn;
    if (PQconsumeInput(conn) == 0) {
        return false;
    }
    *whole_out = false;
    while (!*whole_out && PQisBusy(conn) == 0) {
        PGresult *result = PQgetResult(conn);
        *whole_out = result == NULL;
        if (turns->result == NULL) {
            turns->result = result;
        } else {
            PQclear(result); /* the first counts */
        }
    }
    return true;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct turns *turns = poll->data;
    bool good = status == 0;
    if (!turns->sent) {
        good = good && PQconsumeInput(turns->link.conn) != 0;
        turns->brief = good && turns->options.brief != NULL && !turns->wanted;
        if (!good || take_notifications(turns)) {
            begin(turns); /* which also notices a lost connection */
        }
        turns->brief = false;
        return;
    }
    bool whole = false;
    if (good && (events & UV_WRITABLE) != 0) {
        good = flush(turns);
    }
    good = good && read_result(turns, &whole);
    if (!good || whole) {
        finish_sent(turns, !good);
    }
}

static void start_polling(struct turns *turns)
{
    INVARIANT(turns->poll == NULL && !turns->sent);
    INVARIANT(turns->link.conn != NULL);
    int fd = PQsocket(turns->link.conn);
    if (fd < 0) {
        return;
    }
    uv_poll_t *poll = mem_zalloc(1, sizeof(*poll));
    if (uv_poll_init(turns->options.uv, poll, fd) != 0) {
        mem_free(poll); /* the thread and the timer do without it */
        return;
    }
    poll->data = turns;
    turns->poll = poll;
    must(uv_poll_start(poll, UV_READABLE, on_ready));
}

static void on_done(uv_work_t *work, int status)
{
    struct turns *turns = work->data;
    INVARIANT(status == 0 && turns->busy);
    if (turns->closing) {
        turns->busy = false;
        mem_free(turns->heard);
        turns->heard = NULL;
        return;
    }
    /* If the connection is lost, libpq closes its descriptor: polling that
     * would abort the loop. */
    if (turns->link.conn != NULL && PQconsumeInput(turns->link.conn) != 0) {
        start_polling(turns);
    }
    finish(turns);
}

static void begin(struct turns *turns)
{
    INVARIANT(!turns->busy && !turns->closing);
    turns->busy = true;
    turns->wanted = false;
    strbuf_clear(&turns->said);
    turns->options.say(turns->options.ctx, turns->brief, &turns->said);
    if (turns->poll == NULL) {
        must(uv_timer_stop(&turns->timer));
        turns->work.data = turns;
        must(uv_queue_work(turns->options.uv, &turns->work, work, on_done));
        return;
    }
    const char *said = strbuf_text(&turns->said);
    turns->since_ns = clock_boot_ns();
    turns->sent = true;
    must(uv_timer_start(&turns->timer, on_late, PG_WAIT_MS, 0));
    if (PQstatus(turns->link.conn) != CONNECTION_OK ||
        PQsendQueryPrepared(turns->link.conn,
                            turns->brief ? "brief" : "turn",
                            1,
                            &said,
                            NULL,
                            NULL,
                            0) == 0 ||
        !flush(turns)) {
        finish_sent(turns, true);
    }
}

void turns_wake(struct turns *turns, int64_t in_ns)
{
    bool sooner = !turns->wanted || in_ns == 0;
    turns->wanted = true;
    if (!turns->busy && !turns->closing && turns->err == ERR_OK && sooner) {
        set_timer(turns, in_ns);
    }
}

void turns_set_pause(struct turns *turns, int64_t pause_ns)
{
    INVARIANT(pause_ns > 0);
    turns->options.pause_ns = pause_ns;
}

/* --- set-up ------------------------------------------------------------- */

enum err turns_open(struct turns **out,
                    const struct turns_options *options,
                    struct diag *diag)
{
    struct turns *turns = mem_zalloc(1, sizeof(*turns));
    *out = NULL;
    turns->options = *options;
    enum err err = pg_link_init(&turns->link, options->address, diag);
    if (err != ERR_OK) {
        mem_free(turns);
        return err;
    }
    struct strbuf text = {0};
    strbuf_addf(&text,
                "PREPARE turn (jsonb) AS SELECT %s($1); LISTEN %s",
                options->function,
                options->channel);
    if (options->brief != NULL) {
        strbuf_addf(&text,
                    "; PREPARE brief (jsonb) AS SELECT %s($1)",
                    options->brief);
    }
    turns->begin = text.text;
    must(uv_timer_init(options->uv, &turns->timer));
    turns->timer.data = turns;
    set_timer(turns, 0);
    *out = turns;
    return ERR_OK;
}

void turns_close(struct turns *turns)
{
    if (turns != NULL && !turns->closing) {
        turns->closing = true;
        stop_polling(turns);
        if (turns->sent) {
            turns->sent = false;
            turns->busy = false;
            PQclear(turns->result);
        }
        uv_close((uv_handle_t *)&turns->timer, NULL);
    }
}

void turns_free(struct turns *turns)
{
    if (turns != NULL) {
        INVARIANT(turns->closing && !turns->busy);
        pg_link_release(&turns->link);
        strbuf_release(&turns->said);
        mem_free(turns->begin);
        mem_free(turns);
    }
}
