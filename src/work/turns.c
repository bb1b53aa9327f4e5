/* SPDX-License-Identifier: MIT */
/*
 * Between two turns the loop polls the socket for notifications; during one the
 * connection belongs to the thread. A connection that fails is made anew by the
 * next turn, which comes after a pause.
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
    char *sql;
    char *listen;
    struct pg_link link;
    uv_timer_t timer;
    uv_poll_t *poll; /* NULL: during a turn */
    uv_work_t work;
    bool busy;
    bool wanted; /* another turn, after this one */
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
        err = pg_do(link, turns->listen, NULL, NULL, diag);
        turns->listening = err == ERR_OK ? link->number : 0;
    }
    if (err != ERR_OK) {
        return err;
    }
    struct pg_params params = {0};
    pg_add_text(&params, strbuf_text(&turns->said));
    PGresult *result = pg_run(link, turns->sql, &params, &err, diag);
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

/* Take the notifications that have come; false: the connection is lost. */
static bool take_notifications(struct turns *turns, bool *any_out)
{
    *any_out = false;
    PGconn *conn = turns->link.conn;
    INVARIANT(!turns->busy && conn != NULL);
    if (PQconsumeInput(conn) == 0) {
        return false;
    }
    PGnotify *notify;
    const char *name = turns->options.name;
    while ((notify = PQnotifies(conn)) != NULL) {
        bool all = name == NULL || notify->extra[0] == '\0';
        *any_out = *any_out || all || strcmp(notify->extra, name) == 0;
        PQfreemem(notify);
    }
    return true;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct turns *turns = poll->data;
    (void)events;
    bool any = false;
    if (status != 0 || !take_notifications(turns, &any) || any) {
        begin(turns); /* which also notices a lost connection */
    }
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

/* Stop polling. The handle goes, because the thread may close its descriptor,
 * whose number then may be another file's. */
static void stop_polling(struct turns *turns)
{
    if (turns->poll != NULL) {
        uv_close((uv_handle_t *)turns->poll, free_handle);
        turns->poll = NULL;
    }
}

static void start_polling(struct turns *turns)
{
    INVARIANT(turns->poll == NULL && !turns->busy);
    int fd = turns->link.conn != NULL ? PQsocket(turns->link.conn) : -1;
    if (fd < 0) {
        return;
    }
    uv_poll_t *poll = mem_zalloc(1, sizeof(*poll));
    if (uv_poll_init(turns->options.uv, poll, fd) != 0) {
        mem_free(poll); /* the timer does without it */
        return;
    }
    poll->data = turns;
    turns->poll = poll;
    must(uv_poll_start(poll, UV_READABLE, on_readable));
}

static void on_done(uv_work_t *work, int status)
{
    struct turns *turns = work->data;
    INVARIANT(status == 0 && turns->busy);
    turns->busy = false;
    char *heard = turns->heard;
    turns->heard = NULL;
    if (turns->closing) {
        mem_free(heard);
        return;
    }
    /* Some came along with the result. If the connection is lost, libpq closes
     * its descriptor: polling that would abort the loop. */
    bool any = false;
    if (turns->link.conn != NULL && take_notifications(turns, &any)) {
        start_polling(turns);
    }
    turns->wanted = turns->wanted || any;
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

static void begin(struct turns *turns)
{
    if (turns->busy || turns->closing) {
        turns->wanted = true;
        return;
    }
    stop_polling(turns);
    must(uv_timer_stop(&turns->timer));
    turns->busy = true;
    turns->wanted = false;
    strbuf_clear(&turns->said);
    turns->options.say(turns->options.ctx, &turns->said);
    turns->work.data = turns;
    must(uv_queue_work(turns->options.uv, &turns->work, work, on_done));
}

void turns_wake(struct turns *turns)
{
    turns->wanted = true;
    if (!turns->busy && !turns->closing && turns->err == ERR_OK) {
        set_timer(turns, 0);
    }
}

void turns_set_pause(struct turns *turns, int64_t pause_ns)
{
    INVARIANT(pause_ns > 0);
    turns->options.pause_ns = pause_ns;
}

bool turns_is_busy(const struct turns *turns)
{
    return turns->busy;
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
    strbuf_addf(&text, "SELECT %s($1::json)", options->function);
    turns->sql = text.text;
    text = (struct strbuf){0};
    strbuf_addf(&text, "LISTEN %s", options->channel);
    turns->listen = text.text;
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
        uv_close((uv_handle_t *)&turns->timer, NULL);
    }
}

void turns_free(struct turns *turns)
{
    if (turns != NULL) {
        INVARIANT(turns->closing && !turns->busy);
        pg_link_release(&turns->link);
        strbuf_release(&turns->said);
        mem_free(turns->sql);
        mem_free(turns->listen);
        mem_free(turns);
    }
}
