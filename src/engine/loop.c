/* SPDX-License-Identifier: MIT */
/*
 * Translation between libuv and the engine: a readable descriptor, a timer, a
 * signal or a finished write becomes a call of the engine, and a call of the
 * engine becomes a write, a start or a signal. It makes no decisions.
 *
 * The engine's pass runs right before the loop would wait: it covers all events
 * since the last pass, so one transaction holds them all.
 */
#include "engine/loop.h"

#include "base/clock.h"
#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/site_file.h"
#include "work/control_socket.h"
#include "work/link_local.h"
#include "work/roster.h"
#include "work/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum {
    /* Longest sleep: the heartbeat, and the maximum cost of a lost wake-up. */
    TICK_MS = 1000,
    /* Descriptors that libuv opens first, and more. */
    FILES_NEEDED = 16,
    /* Default number of libuv's worker threads. */
    THREADS = 4,
};

/* Mark the numbers of requests that came by the door, and through the store. */
#define DOOR_BIT (UINT64_C(1) << 63)
#define STORE_BIT (UINT64_C(1) << 62)

/* How long an answer may wait for company: what its request has started is
 * reported next, and comes with the same turn. Until then the cores are free
 * for that start. */
#define ANSWER_WAITS_NS (3 * MS_NS)

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

enum { SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]) };

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_signal_t signals[SIGNAL_COUNT];
    uv_work_t work;
    struct loop_options options;
    struct engine *engine;
    struct link_local *link;
    bool elsewhere;        /* sessions run on workers, not on the link ... */
    struct roster *roster; /* ... of this list; NULL: for requests only */
    struct turns *turns;   /* of the roster */
    struct control_socket *control;
    struct control_socket *door;     /* the same for sessions */
    struct key_secret secret;        /* of their keys */
    const struct store_batch *batch; /* being written */
    const struct store_batch *next;  /* waits until a heartbeat is written */
    struct store_batch sign;         /* heartbeat: a batch without changes */
    enum err write_err;
    struct diag write_diag;
    int64_t beat_ns;
    char trouble[128];   /* as in the last heartbeat */
    struct rlimit files; /* for sessions; zero: unknown */
    bool stopping;
    bool loaded;
    enum err failed;
    struct diag diag;
};

/* Check a call that fails only if this program has a bug. */
static void must(int status)
{
    INVARIANT(status == 0);
}

static void leave(struct loop *loop, enum err err, const char *text)
{
    if (loop->failed == ERR_OK && err != ERR_OK) {
        loop->failed = diag_set(&loop->diag, err, "%s", text);
    }
    loop->stopping = true;
}

/* --- the world ---------------------------------------------------------- */

static int64_t world_now_ns(void *ctx)
{
    (void)ctx;
    return clock_boot_ns();
}

static int64_t world_wall_ns(void *ctx)
{
    (void)ctx;
    return clock_wall_ns();
}

static void write_in_thread(uv_work_t *work)
{
    struct loop *loop = work->data;
    crash_point("write-begin");
    loop->write_err =
        store_write(loop->options.store, loop->batch, &loop->write_diag);
    crash_point("write-end");
}

static void write_done(uv_work_t *work, int status);

static void begin_write(struct loop *loop, const struct store_batch *batch)
{
    INVARIANT(loop->batch == NULL && batch != NULL);
    loop->batch = batch;
    loop->write_diag = (struct diag){0};
    loop->work.data = loop;
    must(uv_queue_work(&loop->uv, &loop->work, write_in_thread, write_done));
}

static void write_done(uv_work_t *work, int status)
{
    struct loop *loop = work->data;
    const struct store_batch *written = loop->batch;
    const struct store_batch *next = loop->next;
    INVARIANT(status == 0 && written != NULL);
    INVARIANT(next == NULL || written == &loop->sign);
    loop->batch = NULL;
    loop->next = NULL;
    bool sign = written == &loop->sign;
    bool failed = loop->write_err != ERR_OK && loop->write_err != ERR_BUSY;
    if (sign && failed) {
        leave(loop, loop->write_err, loop->write_diag.text);
    }
    if (!sign && loop->write_err == ERR_OK && loop->roster != NULL) {
        roster_written(loop->roster);
    }
    if (!sign || (failed && next != NULL)) {
        engine_written(loop->engine, loop->write_err, loop->write_diag.text);
    } else if (next != NULL) {
        begin_write(loop, next);
    }
}

static void world_write(void *ctx, const struct store_batch *batch)
{
    struct loop *loop = ctx;
    INVARIANT(loop->next == NULL);
    if (loop->batch == NULL) {
        begin_write(loop, batch);
    } else {
        INVARIANT(loop->batch == &loop->sign);
        loop->next = batch;
    }
}

static void
world_offer(void *ctx, const struct work_order *order, struct strbuf *out)
{
    struct loop *loop = ctx;
    if (loop->roster != NULL) {
        roster_offer(loop->roster, order, out);
    }
}

/* Without a roster, what sessions on workers get is left to the next scheduler:
 * it reads the store, and asks for them. */
static void world_assign(void *ctx, const struct work_order *order)
{
    struct loop *loop = ctx;
    if (!loop->elsewhere || work_is_program(&order->id)) {
        worker_assign(link_local_worker(loop->link), order);
    } else if (loop->roster != NULL) {
        roster_assign(loop->roster, order);
    }
}

static void world_want(void *ctx, uint64_t token, enum work_want want)
{
    struct loop *loop = ctx;
    if (loop->roster != NULL) {
        roster_want(loop->roster, token, want); /* ignores programs */
    }
    worker_want(link_local_worker(loop->link), token, want);
}

static void world_tell(void *ctx, uint64_t token, const char *text)
{
    struct loop *loop = ctx;
    if (!loop->elsewhere) {
        worker_tell(link_local_worker(loop->link), token, text);
    } else if (loop->roster != NULL) {
        roster_tell(loop->roster, token, text);
    }
}

static void world_ask(void *ctx,
                      const struct work_id *id,
                      const struct work_mark *mark,
                      bool begun,
                      enum work_want want)
{
    struct loop *loop = ctx;
    if (!loop->elsewhere || work_is_program(id)) {
        worker_ask(link_local_worker(loop->link), id, mark, begun, want);
    } else if (loop->roster != NULL) {
        roster_ask(loop->roster, id, begun, want);
    }
}

static void world_recorded(void *ctx, uint64_t token)
{
    struct loop *loop = ctx;
    if (!loop->elsewhere) {
        worker_recorded(link_local_worker(loop->link), token);
    }
}

static void world_forget(void *ctx, const struct work_id *id)
{
    struct loop *loop = ctx;
    worker_forget(link_local_worker(loop->link), id);
}

static void world_answer(void *ctx, uint64_t request, const char *json)
{
    struct loop *loop = ctx;
    if ((request & DOOR_BIT) != 0) {
        control_socket_answer(loop->door, request & ~DOOR_BIT, json);
    } else if ((request & STORE_BIT) != 0) {
        roster_answer(loop->roster, request & ~STORE_BIT, json);
    } else if (request != 0) {
        control_socket_answer(loop->control, request, json);
    } else if (loop->loaded && loop->options.answer != NULL) {
        loop->options.answer(loop->options.ctx, json);
    }
}

static void world_event(void *ctx, const struct store_event *event)
{
    struct loop *loop = ctx;
    if (loop->options.event != NULL) {
        loop->options.event(loop->options.ctx, event);
    }
}

static enum err world_look(void *ctx,
                           const struct engine_look *look,
                           struct strbuf *out,
                           struct diag *diag)
{
    const struct loop *loop = ctx;
    if (loop->options.look == NULL) {
        return diag_set(diag, ERR_UNAVAILABLE, "not available here");
    }
    return loop->options.look(loop->engine,
                              loop->options.place,
                              look,
                              out,
                              diag);
}

static const struct engine_world world = {
    .now_ns = world_now_ns,
    .wall_ns = world_wall_ns,
    .write = world_write,
    .offer = world_offer,
    .assign = world_assign,
    .want = world_want,
    .tell = world_tell,
    .ask = world_ask,
    .recorded = world_recorded,
    .forget = world_forget,
    .answer = world_answer,
    .look = world_look,
    .event = world_event,
};

/* --- events ------------------------------------------------------------- */

static void on_report(void *ctx, const struct work_report *report)
{
    struct loop *loop = ctx;
    engine_reported(loop->engine, report);
}

static void on_failed(void *ctx, enum err err, const char *text)
{
    leave(ctx, err, text);
}

static void
on_request(void *ctx, uint64_t id, const char *who, const char *json)
{
    struct loop *loop = ctx;
    engine_request(loop->engine, id, who, json);
}

static void
on_session_request(void *ctx, uint64_t id, const char *who, const char *json)
{
    struct loop *loop = ctx;
    INVARIANT((id & DOOR_BIT) == 0);
    engine_session_request(loop->engine, id | DOOR_BIT, who, json);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct loop *loop = handle->data;
    if (loop->options.signal != NULL) {
        loop->options.signal(loop->options.ctx, number);
    }
}

/* --- workers ------------------------------------------------------------ */

static int64_t on_now(void *ctx)
{
    (void)ctx;
    return clock_boot_ns();
}

static void
on_workers(void *ctx, const struct roster_worker *workers, uint32_t count)
{
    struct loop *loop = ctx;
    struct engine_worker *list = mem_zalloc(count + 1, sizeof(list[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        list[ix].labels = workers[ix].labels;
        list[ix].slots = workers[ix].slots;
    }
    engine_workers(loop->engine, list, count);
    mem_free(list);
}

/* A request that came through the store. Its worker has checked the key of a
 * session; the engine gets one that it can check itself. */
static void on_roster_request(void *ctx, const struct roster_request *request)
{
    struct loop *loop = ctx;
    uint64_t id = request->number | STORE_BIT;
    if (!request->session) {
        engine_request(loop->engine, id, request->who, request->json);
        return;
    }
    char key[KEY_BYTES];
    json_t *json = json_loads(request->json, 0, NULL);
    if (json_is_object(json) && request->token != 0) {
        key_make(key, &loop->secret, request->token, request->nonce);
        (void)json_object_set_new(json, "session", json_string(key));
    }
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    engine_session_request(loop->engine,
                           id,
                           request->who,
                           text != NULL ? text : "{}");
    free(text);
    json_decref(json);
}

static void on_say(void *ctx, bool brief, struct strbuf *out)
{
    struct loop *loop = ctx;
    crash_point("before-turn");
    if (brief) {
        roster_say_brief(loop->roster, out);
    } else {
        roster_say(loop->roster, out);
    }
}

static void on_hear(void *ctx,
                    const char *text,
                    int64_t since_ns,
                    enum err err,
                    const struct diag *why)
{
    struct loop *loop = ctx;
    struct diag diag = {0};
    (void)since_ns;
    crash_point("turn-heard");
    bool passes = err == ERR_OK || err == ERR_BUSY || err == ERR_UNAVAILABLE ||
                  err == ERR_LIMIT || err == ERR_TIMEOUT;
    if (!passes) {
        leave(loop, err, why->text);
        return;
    }
    err = roster_hear(loop->roster, text, &diag);
    if (err != ERR_OK) {
        leave(loop, err, diag.text);
    }
}

/* Give sessions to workers, if other machines use the store. */
static enum err open_roster(struct loop *loop, struct diag *diag)
{
    const char *address = loop->options.place->address;
    if (!loop->elsewhere) {
        return ERR_OK;
    }
    loop->roster = roster_new(&(struct roster_options){
        .epoch = loop->options.epoch,
        .now_ns = on_now,
        .report = on_report,
        .workers = on_workers,
        .request = on_roster_request,
        .ctx = loop,
    });
    engine_workers(loop->engine, NULL, 0);
    return turns_open(&loop->turns,
                      &(struct turns_options){
                          .uv = &loop->uv,
                          .address = address,
                          .function = "scheduler_turn",
                          .brief = "scheduler_take",
                          .channel = "sluice_scheduler",
                          .pause_ns = SECOND_NS,
                          .say = on_say,
                          .hear = on_hear,
                          .ctx = loop,
                      },
                      diag);
}

/* Write a heartbeat, unless a batch is being written. */
static void beat(struct loop *loop)
{
    int64_t now_ns = clock_boot_ns();
    const char *trouble = engine_trouble(loop->engine);
    bool due = now_ns - loop->beat_ns >= INT64_C(1000000) * (TICK_MS - 100);
    bool leaves = loop->stopping && loop->beat_ns > 0; /* signs may be slow */
    if (leaves || loop->batch != NULL ||
        (!due && strcmp(trouble, loop->trouble) == 0)) {
        return;
    }
    crash_point("before-beat");
    loop->beat_ns = now_ns;
    (void)snprintf(loop->trouble, sizeof(loop->trouble), "%s", trouble);
    loop->sign = (struct store_batch){
        .epoch = loop->options.epoch,
        .trouble = loop->trouble,
    };
    begin_write(loop, &loop->sign);
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it only wakes the loop: before_wait() does the rest */
}

static void set_timer(struct loop *loop)
{
    int64_t wait_ns = engine_wait_ns(loop->engine);
    int64_t look_ns = worker_next_ns(link_local_worker(loop->link));
    if (look_ns != INT64_MAX) {
        look_ns -= clock_boot_ns();
        look_ns = look_ns > 0 ? look_ns : 0;
        wait_ns = look_ns < wait_ns ? look_ns : wait_ns;
    }
    uint64_t wait_ms = TICK_MS;
    if (wait_ns < INT64_C(1000000) * TICK_MS) {
        wait_ms = (uint64_t)((wait_ns + 999999) / 1000000);
    }
    must(uv_timer_start(&loop->timer, on_timer, wait_ms, 0));
}

static void before_wait(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;
    const char *text;
    worker_tick(link_local_worker(loop->link));
    engine_pass(loop->engine);
    if (loop->roster != NULL && roster_has_news(loop->roster)) {
        turns_wake(loop->turns,
                   roster_may_wait(loop->roster) ? ANSWER_WAITS_NS : 0);
    }
    enum err err = engine_failed(loop->engine, &text);
    if (err != ERR_OK) {
        leave(loop, err, text);
    }
    beat(loop);
    if (loop->options.pass != NULL && !loop->stopping) {
        loop->options.pass(loop->options.ctx);
    }
    if (loop->stopping && loop->batch == NULL) {
        crash_point("loop-left");
        uv_stop(&loop->uv);
    }
    uv_update_time(&loop->uv);
    set_timer(loop);
}

/* --- set-up ------------------------------------------------------------- */

static enum err open_engine(struct loop *loop, struct diag *diag)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
        return diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
    }
    enum err err = key_load(&loop->secret, loop->options.place->home, diag);
    if (err != ERR_OK) {
        return err;
    }
    err = link_local_open(&loop->link,
                          &(struct link_local_options){
                              .uv = &loop->uv,
                              .place = loop->options.place,
                              .shim = loop->options.shim,
                              .secret = loop->secret,
                              .files = loop->files,
                              .report = on_report,
                              .failed = on_failed,
                              .ctx = loop,
                          },
                          diag);
    if (err != ERR_OK) {
        return err;
    }
    loop->engine = engine_new(&(struct engine_options){
        .world = &world,
        .ctx = loop,
        .mark = loop->elsewhere ? mark_elsewhere()
                                : worker_mark(link_local_worker(loop->link)),
        .epoch = loop->options.epoch,
        .secret = &loop->secret,
        .seed = seed,
        .update = loop->options.update,
        .offered_take = loop->options.offered_take,
        .offered_source = loop->options.offered_source,
    });
    loop->options.offered_take = NULL;
    err = engine_load(loop->engine, loop->options.store, NULL, diag);
    if (err == ERR_OK && !loop->options.requests_only) {
        struct site site;
        err = site_file_read(&site, loop->options.place->home, diag);
        if (err == ERR_OK) {
            engine_take_site(loop->engine, &site);
        }
        site_release(&site);
    }
    return err;
}

/* A resource of the machine is exhausted. */
static enum err too_few(struct diag *diag, const char *what, int error)
{
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    return diag_set(diag,
                    ERR_UNAVAILABLE,
                    "cannot %s: %s; the limit is %llu open files: raise it "
                    "('ulimit -n', or LimitNOFILE= of a service), or the "
                    "limits of processes ('ulimit -u') and memory",
                    what,
                    uv_strerror(error),
                    (unsigned long long)files.rlim_cur);
}

/* Raise the limit on open files to its maximum; keep the old limit for
 * sessions, because some programs do not expect more. */
static void raise_files(struct loop *loop)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        loop->files = files;
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void *pass(void *ctx)
{
    uv_mutex_lock(ctx);
    uv_mutex_unlock(ctx);
    return NULL;
}

/* Check that the threads that libuv is about to create can be created, because
 * it would abort. Returns 0 or an error. */
static int try_threads(void)
{
    pthread_t threads[THREADS];
    uv_mutex_t gate;
    int error = uv_mutex_init(&gate);
    if (error != 0) {
        return error;
    }
    int count = 0;
    uv_mutex_lock(&gate); /* all of them exist at once */
    while (count < THREADS && error == 0) {
        error = -pthread_create(&threads[count], NULL, pass, &gate);
        count += error == 0 ? 1 : 0;
    }
    uv_mutex_unlock(&gate);
    for (int ix = 0; ix < count; ix++) {
        (void)pthread_join(threads[ix], NULL);
    }
    uv_mutex_destroy(&gate);
    return error;
}

/* The same for the descriptors that it opens first. */
static int try_files(void)
{
    int fds[FILES_NEEDED];
    int error = 0;
    int count = 0;
    while (count < FILES_NEEDED && error == 0) {
        fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        error = fds[count] < 0 ? -errno : 0;
        count += error == 0 ? 1 : 0;
    }
    for (int ix = 0; ix < count; ix++) {
        (void)close(fds[ix]);
    }
    return error;
}

static enum err open_uv(struct loop *loop, struct diag *diag)
{
    int error = try_files();
    if (error != 0) {
        return too_few(diag, "open files", error);
    }
    error = try_threads();
    if (error != 0) {
        return too_few(diag, "create threads", error);
    }
    error = uv_loop_init(&loop->uv);
    if (error != 0) {
        return too_few(diag, "wait for events", error);
    }
    must(uv_prepare_init(&loop->uv, &loop->prepare));
    must(uv_timer_init(&loop->uv, &loop->timer));
    loop->prepare.data = loop;
    loop->timer.data = loop;
    must(uv_prepare_start(&loop->prepare, before_wait));
    return ERR_OK;
}

/* Listen for sessions, in a directory that they may see. */
static enum err open_door(struct loop *loop, struct diag *diag)
{
    struct strbuf dir = {0};
    strbuf_addf(&dir, "%s/" KEY_DOOR, loop->options.place->home);
    enum err err = ERR_OK;
    if (mkdir(strbuf_text(&dir), 0700) != 0 && errno != EEXIST) {
        err = diag_set(diag,
                       ERR_IO,
                       "create %s: %s",
                       strbuf_text(&dir),
                       strerror(errno));
    }
    if (err == ERR_OK) {
        err = control_socket_open(&loop->door,
                                  &loop->uv,
                                  strbuf_text(&dir),
                                  on_session_request,
                                  loop,
                                  diag);
    }
    strbuf_release(&dir);
    return err;
}

static enum err serve(struct loop *loop, struct diag *diag)
{
    for (uint32_t ix = 0; ix < SIGNAL_COUNT; ix++) {
        uv_signal_t *handle = &loop->signals[ix];
        handle->data = loop;
        int error = uv_signal_init(&loop->uv, handle);
        if (error == 0) {
            error = uv_signal_start(handle, on_signal, signals[ix]);
        }
        if (error != 0) {
            return too_few(diag, "watch for signals", error);
        }
    }
    enum err err = control_socket_open(&loop->control,
                                       &loop->uv,
                                       loop->options.place->home,
                                       on_request,
                                       loop,
                                       diag);
    if (err == ERR_OK) {
        err = open_door(loop, diag);
    }
    if (err == ERR_OK) {
        err = link_local_serve(loop->link, diag);
    }
    if (err == ERR_OK) {
        err = open_roster(loop, diag);
    }
    if (err == ERR_OK) {
        engine_recover(loop->engine);
    }
    return err;
}

enum err loop_open(struct loop **out,
                   const struct loop_options *options,
                   struct diag *diag)
{
    *out = NULL;
    struct loop *loop = mem_zalloc(1, sizeof(*loop));
    loop->options = *options;
    loop->elsewhere = store_has_workers(options->place->address);
    raise_files(loop);
    enum err err = open_uv(loop, diag);
    if (err != ERR_OK) {
        plan_free(options->offered_take);
        mem_free(loop);
        return err;
    }
    err = open_engine(loop, diag);
    crash_point("loaded");
    if (err == ERR_OK && options->requests_only) {
        engine_drain(loop->engine, true);
    } else if (err == ERR_OK) {
        err = serve(loop, diag);
    }
    if (err != ERR_OK) {
        loop_close(loop);
        return err;
    }
    loop->loaded = true;
    *out = loop;
    return ERR_OK;
}

static void close_handle(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void loop_close(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    must(uv_prepare_stop(&loop->prepare)); /* no more passes */
    control_socket_close(loop->control);
    control_socket_close(loop->door);
    must(uv_run(&loop->uv, UV_RUN_NOWAIT) >= 0 ? 0 : -1);
    link_local_close(loop->link);
    turns_close(loop->turns);
    uv_walk(&loop->uv, close_handle, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) {
    }
    must(uv_loop_close(&loop->uv));
    link_local_free(loop->link);
    turns_free(loop->turns);
    roster_free(loop->roster);
    engine_free(loop->engine);
    plan_free(loop->options.offered_take);
    mem_free(loop);
}

struct engine *loop_engine(struct loop *loop)
{
    return loop->engine;
}

void loop_request(struct loop *loop, const char *json)
{
    struct strbuf who = {0};
    strbuf_addf(&who, "uid %u pid %d", (unsigned)getuid(), (int)getpid());
    engine_request(loop->engine, 0, strbuf_text(&who), json);
    strbuf_release(&who);
}

enum err loop_run(struct loop *loop, struct diag *diag)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (loop->failed != ERR_OK) {
        *diag = loop->diag;
    }
    return loop->failed;
}

void loop_stop(struct loop *loop)
{
    loop->stopping = true;
}
