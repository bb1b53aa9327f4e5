/* SPDX-License-Identifier: MIT */
/*
 * Everything here translates: a readable descriptor, a timer, a signal or a
 * finished write becomes a call of the engine, and a call of the engine becomes
 * a write, a start or a signal. Decisions are made elsewhere.
 *
 * The engine's turn is taken right before the loop would wait: whatever has
 * come in since the last one is in it, so one transaction holds it all.
 */
#include "engine/loop.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/doorway.h"
#include "exec/put.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum {
    /* Longest sleep: the heartbeat, and what a lost wake-up costs at most. */
    TICK_MS = 1000,
    /* Descriptors that are kept free of watches, for all else that is done. */
    FILES_RESERVED = 16,
    /* How often a spawn server is started that dies at once. */
    REOPEN_TRIES = 3,
    /* That libuv makes for its work, if nobody asks for another number. */
    THREADS = 4,
};

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

enum { SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]) };

/* An adopted shim. */
struct watch {
    uv_poll_t poll;
    struct loop *loop;
    uint64_t token;
    int pidfd;
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_poll_t exec_poll;
    uv_signal_t signals[SIGNAL_COUNT];
    uv_work_t work;
    struct loop_options options;
    struct engine *engine;
    struct exec *exec;
    struct doorway *doorway;
    const struct store_batch *batch; /* being written */
    enum err write_err;
    struct diag write_diag;
    int64_t beat_ns;
    char trouble[128];   /* as in the last beat */
    struct rlimit files; /* for sessions; zero: not known */
    bool exec_polled;
    int exec_events; /* that it is polled for */
    bool stopping;
    bool closing;
    bool loaded;
    enum err failed;
    struct diag diag;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return 0; /* cannot be: both clocks exist on Linux */
    }
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t loop_now_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

int64_t loop_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

/* A call that can only fail if this program is wrong. */
static void must(int status)
{
    INVARIANT(status == 0);
}

/* --- the world ---------------------------------------------------------- */

static int64_t world_now_ns(void *ctx)
{
    (void)ctx;
    return loop_now_ns();
}

static int64_t world_wall_ns(void *ctx)
{
    (void)ctx;
    return loop_wall_ns();
}

static void write_in_thread(uv_work_t *work)
{
    struct loop *loop = work->data;
    crash_point("write-begin");
    loop->write_err =
        store_write(loop->options.store, loop->batch, &loop->write_diag);
    crash_point("write-end");
}

static void write_done(uv_work_t *work, int status)
{
    struct loop *loop = work->data;
    INVARIANT(status == 0);
    loop->batch = NULL;
    engine_written(loop->engine, loop->write_err, loop->write_diag.text);
}

static void world_write(void *ctx, const struct store_batch *batch)
{
    struct loop *loop = ctx;
    INVARIANT(loop->batch == NULL);
    loop->batch = batch;
    loop->write_diag = (struct diag){0};
    loop->work.data = loop;
    must(uv_queue_work(&loop->uv, &loop->work, write_in_thread, write_done));
}

static void exec_ready(uv_poll_t *poll, int status, int events);

/* Poll for what the server's socket is waited for. */
static void poll_exec(struct loop *loop)
{
    int events = UV_READABLE;
    if (exec_wants_write(loop->exec)) {
        events |= UV_WRITABLE;
    }
    if (events == loop->exec_events) {
        return;
    }
    loop->exec_events = events;
    must(uv_poll_start(&loop->exec_poll, events, exec_ready));
}

static enum err
world_start(void *ctx, const struct exec_request *request, struct diag *diag)
{
    struct loop *loop = ctx;
    if (loop->exec == NULL) {
        return ERR_OK; /* engine_respawn() asks again */
    }
    enum err err = exec_start(loop->exec, request, diag);
    if (err == ERR_OK && exec_wants_write(loop->exec)) {
        poll_exec(loop);
    }
    return err;
}

static enum err world_end(void *ctx,
                          int64_t pid,
                          uint64_t start_ticks,
                          uint64_t id,
                          enum exec_end how)
{
    (void)ctx;
    struct diag diag = {0};
    return exec_signal(pid, start_ticks, id, how, &diag);
}

static void free_watch(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    (void)close(watch->pidfd);
    mem_free(watch);
}

static void watch_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct watch *watch = poll->data;
    struct loop *loop = watch->loop;
    uint64_t token = watch->token;
    must(uv_poll_stop(poll));
    uv_close((uv_handle_t *)poll, free_watch);
    engine_gone(loop->engine, token);
}

/* Whether a new descriptor leaves enough of them for everything else. */
static bool is_spare(int fd)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 &&
           (rlim_t)fd + FILES_RESERVED < files.rlim_cur;
}

static enum err
world_watch(void *ctx, uint64_t token, int64_t pid, uint64_t start_ticks)
{
    struct loop *loop = ctx;
    struct diag diag = {0};
    int pidfd;
    enum err err = exec_watch(pid, start_ticks, &pidfd, &diag);
    if (err != ERR_OK) {
        return err;
    }
    if (!is_spare(pidfd)) {
        (void)close(pidfd);
        return ERR_LIMIT; /* it is looked at now and then instead */
    }
    struct watch *watch = mem_zalloc(1, sizeof(*watch));
    watch->loop = loop;
    watch->token = token;
    watch->pidfd = pidfd;
    watch->poll.data = watch;
    if (uv_poll_init(&loop->uv, &watch->poll, pidfd) != 0) {
        (void)close(pidfd);
        mem_free(watch);
        return ERR_UNAVAILABLE;
    }
    must(uv_poll_start(&watch->poll, UV_READABLE, watch_ready));
    return ERR_OK;
}

static enum err world_inspect(void *ctx,
                              const char *dir,
                              const char *boot_id,
                              struct attempt_found *out,
                              struct diag *diag)
{
    (void)ctx;
    return attempt_inspect(dir, boot_id, out, diag);
}

static enum err world_set_aside(void *ctx, const char *dir, struct diag *diag)
{
    (void)ctx;
    return attempt_set_aside(dir, diag);
}

static enum err world_fence(void *ctx,
                            const char *dir,
                            const char *nonce,
                            bool *fenced_out,
                            struct diag *diag)
{
    (void)ctx;
    return attempt_fence(dir, nonce, fenced_out, diag);
}

static bool world_has_strays(void *ctx, const char *dir)
{
    (void)ctx;
    return attempt_has_strays(dir);
}

static void world_kill_strays(void *ctx, const char *dir)
{
    (void)ctx;
    (void)attempt_kill_strays(dir);
}

static enum err world_result(void *ctx,
                             const char *dir,
                             struct attempt_result *out,
                             struct diag *diag)
{
    (void)ctx;
    return attempt_read_result(dir, out, diag);
}

static void
world_log_tail(void *ctx, const char *dir, size_t bytes, struct strbuf *out)
{
    (void)ctx;
    attempt_add_log_tail(dir, bytes, out);
}

static enum err world_put(void *ctx,
                          const char *dir,
                          const char *name,
                          const struct strbuf *text,
                          struct diag *diag)
{
    (void)ctx;
    return put_write(dir, name, text, diag);
}

static enum err world_get(void *ctx,
                          const char *dir,
                          const char *name,
                          struct strbuf *out,
                          struct diag *diag)
{
    (void)ctx;
    return put_read(dir, name, out, diag);
}

static void world_drop(void *ctx, const char *dir)
{
    (void)ctx;
    put_drop(dir);
}

static void world_answer(void *ctx, uint64_t order, const char *json)
{
    struct loop *loop = ctx;
    if (order != 0) {
        doorway_answer(loop->doorway, order, json);
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

static const struct engine_world world = {
    .now_ns = world_now_ns,
    .wall_ns = world_wall_ns,
    .write = world_write,
    .start = world_start,
    .end = world_end,
    .watch = world_watch,
    .inspect = world_inspect,
    .set_aside = world_set_aside,
    .fence = world_fence,
    .has_strays = world_has_strays,
    .kill_strays = world_kill_strays,
    .result = world_result,
    .log_tail = world_log_tail,
    .put = world_put,
    .get = world_get,
    .drop = world_drop,
    .answer = world_answer,
    .event = world_event,
};

/* --- what happens ------------------------------------------------------- */

static void leave(struct loop *loop, enum err err, const char *text)
{
    if (loop->failed == ERR_OK && err != ERR_OK) {
        loop->failed = diag_set(&loop->diag, err, "%s", text);
    }
    loop->stopping = true;
}

static void on_report(void *ctx, const struct exec_report *report)
{
    struct loop *loop = ctx;
    engine_reported(loop->engine, report);
}

static void close_exec(struct loop *loop)
{
    if (loop->exec_polled) {
        must(uv_poll_stop(&loop->exec_poll));
    }
    exec_close(loop->exec);
    loop->exec = NULL;
}

static void reopened(uv_handle_t *handle);

/* The server has died: another one takes its place. */
static void reopen_exec(struct loop *loop)
{
    close_exec(loop);
    loop->exec_polled = false;
    loop->exec_poll.data = loop;
    uv_close((uv_handle_t *)&loop->exec_poll, reopened);
}

static void exec_ready(uv_poll_t *poll, int status, int events)
{
    struct loop *loop = poll->data;
    struct diag diag = {0};
    enum err err = ERR_OK;
    if (status != 0) {
        loop->exec_events = 0; /* libuv does not poll any more */
    }
    if (status == 0 && (events & UV_WRITABLE) != 0) {
        err = exec_flush(loop->exec, &diag);
    }
    if (err == ERR_OK) {
        err = exec_read(loop->exec, on_report, loop, &diag);
    }
    if (err != ERR_OK) {
        reopen_exec(loop);
    } else {
        poll_exec(loop);
    }
}

static enum err open_exec(struct loop *loop, struct diag *diag)
{
    enum err err = exec_open(&loop->exec, loop->options.shim, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (loop->files.rlim_max > 0) {
        exec_limit_files(loop->exec, &loop->files);
    }
    if (uv_poll_init(&loop->uv, &loop->exec_poll, exec_fd(loop->exec)) != 0) {
        return diag_set(diag, ERR_UNAVAILABLE, "cannot watch the spawn server");
    }
    loop->exec_poll.data = loop;
    loop->exec_polled = true;
    loop->exec_events = 0;
    poll_exec(loop);
    return ERR_OK;
}

static void reopened(uv_handle_t *handle)
{
    struct loop *loop = handle->data;
    struct diag diag = {0};
    if (loop->closing) {
        return;
    }
    enum err err = ERR_UNAVAILABLE;
    for (int tries = 0; tries < REOPEN_TRIES && err == ERR_UNAVAILABLE;
         tries++) {
        err = open_exec(loop, &diag); /* what kills one may kill another */
    }
    if (err != ERR_OK) {
        leave(loop, err, diag.text);
    } else {
        engine_respawn(loop->engine);
    }
}

static void on_order(void *ctx, uint64_t id, const char *who, const char *json)
{
    struct loop *loop = ctx;
    engine_order(loop->engine, id, who, json);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct loop *loop = handle->data;
    if (loop->options.signal != NULL) {
        loop->options.signal(loop->options.ctx, number);
    }
}

/* Show that we live; a store that is being written is left alone. */
static void beat(struct loop *loop)
{
    int64_t now_ns = loop_now_ns();
    const char *trouble = engine_trouble(loop->engine);
    bool due = now_ns - loop->beat_ns >= INT64_C(1000000) * (TICK_MS - 100);
    if (loop->batch != NULL || (!due && strcmp(trouble, loop->trouble) == 0)) {
        return;
    }
    crash_point("before-beat");
    loop->beat_ns = now_ns;
    (void)snprintf(loop->trouble, sizeof(loop->trouble), "%s", trouble);
    struct diag diag = {0};
    enum err err = store_beat(loop->options.store, now_ns, trouble, &diag);
    if (err != ERR_OK) {
        leave(loop, err, diag.text);
    }
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* waking up is all: before_wait() does the rest */
}

static void set_timer(struct loop *loop)
{
    int64_t wait_ns = engine_wait_ns(loop->engine);
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
    engine_turn(loop->engine);
    enum err err = engine_failed(loop->engine, &text);
    if (err != ERR_OK) {
        leave(loop, err, text);
    }
    beat(loop);
    if (loop->options.turn != NULL && !loop->stopping) {
        loop->options.turn(loop->options.ctx);
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
    char boot_id[37];
    attempt_boot_id(boot_id);
    struct strbuf git = {0};
    struct strbuf agent = {0};
    uint64_t seed;
    enum err err = ERR_OK;
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
        err = diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
    }
    if (err == ERR_OK) {
        err = exec_find_program("sluice-git", "SLUICE_GIT", &git, diag);
    }
    if (err == ERR_OK) {
        err = exec_find_program("sluice-agent", "SLUICE_AGENT", &agent, diag);
    }
    if (err != ERR_OK) {
        goto out;
    }
    loop->engine = engine_new(&(struct engine_options){
        .world = &world,
        .ctx = loop,
        .store = loop->options.dir,
        .git = strbuf_text(&git),
        .agent = strbuf_text(&agent),
        .boot_id = boot_id,
        .epoch = loop->options.epoch,
        .seed = seed,
        .update = loop->options.update,
    });
    err = engine_load(loop->engine, loop->options.store, NULL, diag);
out:
    strbuf_release(&git);
    strbuf_release(&agent);
    return err;
}

/* Something that every machine has is not to be had now. */
static enum err too_few(struct diag *diag, const char *what, int error)
{
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    return diag_set(diag,
                    ERR_UNAVAILABLE,
                    "cannot %s: %s. At most %llu files may be open here: raise "
                    "that ('ulimit -n', or LimitNOFILE= of a service), or the "
                    "limits of processes ('ulimit -u') and memory",
                    what,
                    uv_strerror(error),
                    (unsigned long long)files.rlim_cur);
}

/* As many open files as we may have; what was allowed before is kept, for the
 * sessions: some programs do not expect more. */
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

/* Whether the threads that libuv is about to make can be made; 0 or an error.
 * It would abort. */
static int try_threads(void)
{
    pthread_t threads[THREADS];
    uv_mutex_t gate;
    int error = uv_mutex_init(&gate);
    if (error != 0) {
        return error;
    }
    int count = 0;
    uv_mutex_lock(&gate); /* all of them are there at once */
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

/* The same of the descriptors that it opens first. */
static int try_files(void)
{
    int fds[FILES_RESERVED];
    int error = 0;
    int count = 0;
    while (count < FILES_RESERVED && error == 0) {
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
        return too_few(diag, "make threads", error);
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
    enum err err = doorway_open(&loop->doorway,
                                &loop->uv,
                                loop->options.dir,
                                on_order,
                                loop,
                                diag);
    if (err == ERR_OK) {
        err = open_exec(loop, diag);
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
    raise_files(loop);
    enum err err = open_uv(loop, diag);
    if (err != ERR_OK) {
        mem_free(loop);
        return err;
    }
    err = open_engine(loop, diag);
    crash_point("loaded");
    if (err == ERR_OK && options->orders_only) {
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
    const struct loop *loop = ctx;
    if (uv_is_closing(handle)) {
        return;
    }
    bool ours = handle == (const uv_handle_t *)&loop->prepare ||
                handle == (const uv_handle_t *)&loop->timer ||
                handle == (const uv_handle_t *)&loop->exec_poll ||
                handle->type == UV_SIGNAL;
    uv_close(handle, ours ? NULL : free_watch);
}

void loop_close(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    loop->closing = true;
    must(uv_prepare_stop(&loop->prepare)); /* no more turns */
    doorway_close(loop->doorway);
    must(uv_run(&loop->uv, UV_RUN_NOWAIT) >= 0 ? 0 : -1);
    uv_walk(&loop->uv, close_handle, loop);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) {
    }
    must(uv_loop_close(&loop->uv));
    exec_close(loop->exec);
    engine_free(loop->engine);
    mem_free(loop);
}

struct engine *loop_engine(struct loop *loop)
{
    return loop->engine;
}

void loop_order(struct loop *loop, const char *json)
{
    struct strbuf who = {0};
    strbuf_addf(&who, "uid %u pid %d", (unsigned)getuid(), (int)getpid());
    engine_order(loop->engine, 0, strbuf_text(&who), json);
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
