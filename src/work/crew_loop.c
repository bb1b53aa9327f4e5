/* SPDX-License-Identifier: MIT */
/*
 * One process uses a home at a time: it holds a lock on the file `worker` in
 * it, which also has a name for the home that no other has.
 *
 * A worker whose `sluice run` has died keeps the lease of its sessions, but
 * starts none. The worker of the next `sluice run` holds a lock on `next` while
 * it waits for the home: then the first exits, and the second adopts its
 * sessions.
 */
#include "work/crew_loop.h"

#include "base/clock.h"
#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "exec/attempt.h"
#include "exec/attempt_file.h"
#include "exec/lease.h"
#include "work/control_socket.h"
#include "work/crew.h"
#include "work/link_local.h"
#include "work/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#define HOME_FILE "worker"
#define NEXT_FILE "next"
#define SPACE_FILE "space"

enum {
    ID_BYTES = 33,
    SPACE_BYTES = 64 << 10, /* that must fit before sessions start again */
    TICK_MS = 1000,
    OLD_LEASES = 16,
    NEXT_MS = 100, /* between two looks for a successor, or for the home */
};

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]) };

struct crew_loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_signal_t signals[SIGNAL_COUNT];
    uv_poll_t parent;
    bool opened;
    struct crew_loop_options options;
    struct key_secret secret;
    struct crew *crew;
    struct link_local *link;
    struct turns *turns;
    struct control_socket *door;
    struct rlimit files;
    int home_fd; /* of the locked file */
    char home_id[ID_BYTES];
    uint64_t generation; /* whose lease file the worker uses */
    bool silent;         /* the store cannot be reached, which was said */
    bool left;           /* by its parent: a successor may have the home */
    bool stopping;
    uint32_t signalled;
    enum err failed;
    struct diag diag;
};

static void must(int status)
{
    INVARIANT(status == 0);
}

static void leave(struct crew_loop *loop, enum err err, const char *text)
{
    if (loop->failed == ERR_OK && err != ERR_OK) {
        loop->failed = diag_set(&loop->diag, err, "%s", text);
    }
    loop->stopping = true;
}

static void say(struct crew_loop *loop, const char *text)
{
    loop->options.say(loop->options.ctx, text);
}

/* --- the home ----------------------------------------------------------- */

/* Create a random name of 32 hexadecimal digits. */
static enum err make_id(char out[ID_BYTES], struct diag *diag)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
        return diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
    }
    (void)snprintf(out,
                   ID_BYTES,
                   "%016llx%016llx",
                   (unsigned long long)random[0],
                   (unsigned long long)random[1]);
    return ERR_OK;
}

/* Open the file by which a successor is known; negative: it cannot be. */
static int open_next(const struct crew_loop *loop)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/" NEXT_FILE, loop->options.place->home);
    int fd = open(strbuf_text(&path),
                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    strbuf_release(&path);
    return fd;
}

/* Whether another worker waits for this home. */
static bool has_next(const struct crew_loop *loop)
{
    int fd = open_next(loop);
    bool waits =
        fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) {
        (void)close(fd);
    }
    return waits;
}

/* Lock the home. A worker with a parent waits for it, as long as it has the
 * parent. */
static bool get_lock(const struct crew_loop *loop, int fd)
{
    struct pollfd parent = {.fd = loop->options.parent_fd, .events = POLLIN};
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    int next = locked || parent.fd < 0 ? -1 : open_next(loop);
    bool waits = next >= 0;
    while (!locked && waits) {
        char byte;
        (void)flock(next, LOCK_EX | LOCK_NB);
        waits = poll(&parent, 1, NEXT_MS) <= 0 || read(parent.fd, &byte, 1) > 0;
        locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    }
    if (next >= 0) {
        (void)close(next);
    }
    return locked;
}

/* Lock the home, and read or create its name. */
static enum err lock_home(struct crew_loop *loop, struct diag *diag)
{
    const char *home = loop->options.place->home;
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/" HOME_FILE, home);
    enum err err = attempt_file_make_dir(home, diag);
    int fd = err == ERR_OK ? open(strbuf_text(&path),
                                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                                  0600)
                           : -1;
    if (err == ERR_OK && fd < 0) {
        err = diag_set(diag,
                       ERR_IO,
                       "open %s: %s",
                       strbuf_text(&path),
                       strerror(errno));
    }
    loop->home_fd = fd;
    if (err == ERR_OK && !get_lock(loop, fd)) {
        err = diag_set(diag,
                       ERR_BUSY,
                       "another worker uses %s: stop it, or use another "
                       "directory (SLUICE_HOME)",
                       home);
    }
    strbuf_release(&path);
    if (err == ERR_OK &&
        pread(fd, loop->home_id, ID_BYTES - 1, 0) != ID_BYTES - 1) {
        err = make_id(loop->home_id, diag);
        if (err == ERR_OK &&
            pwrite(fd, loop->home_id, ID_BYTES - 1, 0) != ID_BYTES - 1) {
            err = diag_set(diag, ERR_IO, "write %s: %s", home, strerror(errno));
        }
    }
    return err;
}

/* Append the lease file of a generation. It has the name of the worker: a home
 * may be used under another one, whose lease is not that of these sessions. */
static void
add_lease_path(struct strbuf *out, const struct crew_loop *loop, uint64_t of)
{
    strbuf_addf(out,
                "%s/lease-%s-%llu",
                loop->options.place->home,
                loop->options.name,
                (unsigned long long)of);
}

/* Remove the lease files of earlier generations: shims without one stop their
 * sessions, which nobody may know any more. */
static void drop_leases(const struct crew_loop *loop, uint64_t generation)
{
    uint64_t first = generation > OLD_LEASES ? generation - OLD_LEASES : 0;
    struct strbuf path = {0};
    for (uint64_t of = first; of < generation; of++) {
        strbuf_clear(&path);
        add_lease_path(&path, loop, of);
        (void)unlink(strbuf_text(&path)); /* most are gone */
    }
    strbuf_release(&path);
}

/* --- the crew ----------------------------------------------------------- */

static int64_t on_now(void *ctx)
{
    (void)ctx;
    return clock_boot_ns();
}

static void
on_lease(void *ctx, uint64_t generation, int64_t until_ns, int64_t grace_ns)
{
    struct crew_loop *loop = ctx;
    struct lease lease = {.until_ns = until_ns, .grace_ns = grace_ns};
    struct strbuf path = {0};
    add_lease_path(&path, loop, generation);
    int error = lease_write(strbuf_text(&path), &lease);
    if (error != 0 && generation != loop->generation) {
        /* What it has may be of an earlier boot, and look valid. */
        (void)unlink(strbuf_text(&path));
    }
    if (error != 0) {
        struct strbuf text = {0};
        strbuf_addf(&text,
                    "cannot write %s: %s: its sessions will be stopped",
                    strbuf_text(&path),
                    strerror(error));
        say(loop, strbuf_text(&text));
        strbuf_release(&text);
    }
    if (generation != loop->generation) {
        drop_leases(loop, generation);
        loop->generation = generation;
        worker_set_lease(link_local_worker(loop->link), strbuf_text(&path));
    }
    strbuf_release(&path);
}

static void on_crew_say(void *ctx, const char *text)
{
    say(ctx, text);
}

static void on_answer(void *ctx, uint64_t request, const char *json)
{
    struct crew_loop *loop = ctx;
    control_socket_answer(loop->door,
                          request,
                          json != NULL
                              ? json
                              : "{\"ok\":false,\"error\":\"unavailable\","
                                "\"text\":\"the scheduler has exited before "
                                "it answered: ask again\"}");
}

/* Whether a file of some size can be written. */
static bool on_has_space(void *ctx)
{
    struct crew_loop *loop = ctx;
    struct strbuf text = {0};
    struct diag ignored = {0};
    char block[1024];
    memset(block, 'x', sizeof(block));
    while (text.len < SPACE_BYTES) {
        strbuf_add(&text, block, sizeof(block));
    }
    const char *home = loop->options.place->home;
    enum err err = attempt_file_write(home, SPACE_FILE, &text, &ignored);
    strbuf_clear(&text);
    strbuf_addf(&text, "%s/" SPACE_FILE, home);
    (void)unlink(strbuf_text(&text));
    strbuf_release(&text);
    return err == ERR_OK;
}

static bool on_exists(void *ctx, const char *path)
{
    struct stat info;
    (void)ctx;
    return stat(path, &info) == 0;
}

static bool on_make_dir(void *ctx, const char *path)
{
    struct diag ignored = {0};
    (void)ctx;
    return attempt_file_make_dir(path, &ignored) == ERR_OK;
}

static bool
on_read(void *ctx, const char *dir, const char *name, struct strbuf *out)
{
    struct diag ignored = {0};
    (void)ctx;
    return attempt_file_read(dir, name, out, &ignored) == ERR_OK;
}

/* A request of a session: check its key here, where its secret is. Before its
 * first turn a worker does not know the sessions that an earlier process has
 * left it: a result that a session has then must not be refused. */
static void
on_request(void *ctx, uint64_t id, const char *who, const char *json)
{
    struct crew_loop *loop = ctx;
    json_t *request = json_loads(json, 0, NULL);
    const char *key = json_string_value(json_object_get(request, "session"));
    uint64_t token = key != NULL ? key_token(key) : 0;
    const char *nonce = token != 0 ? crew_nonce(loop->crew, token) : NULL;
    bool known = nonce != NULL && key_is(key, &loop->secret, token, nonce);
    (void)json_object_del(request, "session");
    char *text = json_dumps(request, JSON_COMPACT);
    INVARIANT(!known || text != NULL);
    if (known) {
        crew_request(loop->crew, token, id, who, text);
    } else if (crew_generation(loop->crew) == 0) {
        control_socket_answer(
            loop->door,
            id,
            "{\"ok\":false,\"error\":\"unavailable\",\"text\":\"the worker has "
            "not reached the store yet: ask again\"}");
    } else {
        control_socket_answer(
            loop->door,
            id,
            "{\"ok\":false,\"error\":\"denied\",\"text\":\"the request has no "
            "valid key: SLUICE_KEY of a session in flight has it\"}");
    }
    free(text);
    json_decref(request);
}

static void on_report(void *ctx, const struct work_report *report)
{
    struct crew_loop *loop = ctx;
    crew_reported(loop->crew, report);
}

static void on_failed(void *ctx, enum err err, const char *text)
{
    leave(ctx, err, text);
}

/* --- turns -------------------------------------------------------------- */

static void on_say(void *ctx, bool brief, struct strbuf *out)
{
    struct crew_loop *loop = ctx;
    INVARIANT(!brief);
    crash_point("crew-before-turn");
    crew_say(loop->crew, out);
}

/* Say when the store cannot be reached, and when it can again. */
static void
tell_silence(struct crew_loop *loop, enum err err, const struct diag *why)
{
    if ((err != ERR_OK) == loop->silent) {
        return;
    }
    loop->silent = err != ERR_OK;
    struct strbuf text = {0};
    if (loop->silent) {
        strbuf_addf(&text,
                    "%s; trying again, sessions go on until the lease ends",
                    why->text);
    } else {
        strbuf_adds(&text, "the store can be reached again");
    }
    say(loop, strbuf_text(&text));
    strbuf_release(&text);
}

static void on_hear(void *ctx,
                    const char *text,
                    int64_t since_ns,
                    enum err err,
                    const struct diag *why)
{
    struct crew_loop *loop = ctx;
    struct diag diag = {0};
    crash_point("crew-turn-heard");
    bool passes = err == ERR_OK || err == ERR_BUSY || err == ERR_UNAVAILABLE ||
                  err == ERR_LIMIT || err == ERR_IO;
    if (!passes) {
        leave(loop, err, why->text);
        return;
    }
    tell_silence(loop, err, why);
    err = crew_hear(loop->crew, text, since_ns, &diag);
    turns_set_pause(loop->turns, crew_pause_ns(loop->crew));
    if (err != ERR_OK || crew_is_over(loop->crew)) {
        turns_close(loop->turns);
        leave(loop, err, diag.text);
    }
}

/* --- the loop ----------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct crew_loop *loop = handle->data;
    (void)number;
    loop->signalled++;
    if (loop->signalled == 1) {
        say(loop,
            "draining: exits after its last session (once more: stop them)");
        crew_drain(loop->crew);
    } else if (loop->signalled == 2) {
        say(loop, "stopping the sessions (once more: leave them running)");
        crew_stop(loop->crew);
    } else {
        leave(loop, ERR_OK, "");
    }
}

static void on_parent(uv_poll_t *poll, int status, int events)
{
    struct crew_loop *loop = poll->data;
    char byte;
    (void)events;
    if (status != 0 || read(loop->options.parent_fd, &byte, 1) <= 0) {
        must(uv_poll_stop(poll));
        loop->left = true;
        crew_drain(loop->crew);
    }
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it only wakes the loop */
}

static void before_wait(uv_prepare_t *prepare)
{
    struct crew_loop *loop = prepare->data;
    struct worker *worker = link_local_worker(loop->link);
    loop->options.tick(loop->options.ctx);
    worker_tick(worker);
    crew_tick(loop->crew);
    if (loop->left && !loop->stopping && has_next(loop)) {
        leave(loop, ERR_OK, "");
    }
    if (loop->stopping) {
        uv_stop(&loop->uv);
    } else if (crew_has_news(loop->crew)) {
        turns_wake(loop->turns, 0);
    }
    int64_t look_ns = worker_next_ns(worker);
    uint64_t tick_ms = loop->left ? NEXT_MS : TICK_MS;
    uint64_t wait_ms = tick_ms;
    if (look_ns != INT64_MAX) {
        int64_t left_ms = (look_ns - clock_boot_ns() + MS_NS - 1) / MS_NS;
        left_ms = left_ms > 0 ? left_ms : 0;
        wait_ms = left_ms < (int64_t)tick_ms ? (uint64_t)left_ms : tick_ms;
    }
    uv_update_time(&loop->uv);
    must(uv_timer_start(&loop->timer, on_timer, wait_ms, 0));
}

/* --- set-up ------------------------------------------------------------- */

static enum err open_uv(struct crew_loop *loop, struct diag *diag)
{
    int error = uv_loop_init(&loop->uv);
    loop->opened = error == 0;
    if (error != 0) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "cannot wait for events: %s",
                        uv_strerror(error));
    }
    must(uv_prepare_init(&loop->uv, &loop->prepare));
    must(uv_timer_init(&loop->uv, &loop->timer));
    loop->prepare.data = loop;
    loop->timer.data = loop;
    must(uv_prepare_start(&loop->prepare, before_wait));
    for (uint32_t ix = 0; ix < SIGNAL_COUNT && error == 0; ix++) {
        loop->signals[ix].data = loop;
        error = uv_signal_init(&loop->uv, &loop->signals[ix]);
        if (error == 0) {
            error = uv_signal_start(&loop->signals[ix], on_signal, signals[ix]);
        }
    }
    if (error == 0 && loop->options.parent_fd >= 0) {
        error = uv_poll_init(&loop->uv, &loop->parent, loop->options.parent_fd);
        loop->parent.data = loop;
        if (error == 0) {
            must(uv_poll_start(&loop->parent, UV_READABLE, on_parent));
        }
    }
    return error == 0 ? ERR_OK
                      : diag_set(diag,
                                 ERR_UNAVAILABLE,
                                 "cannot watch for signals: %s",
                                 uv_strerror(error));
}

static enum err open_crew(struct crew_loop *loop, struct diag *diag)
{
    char instance[ID_BYTES];
    char host[65] = "";
    char boot_id[37];
    struct strbuf labels = {0};
    enum err err = make_id(instance, diag);
    (void)gethostname(host, sizeof(host) - 1);
    attempt_boot_id(boot_id);
    strbuf_addf(&labels,
                "%s,any%s%s",
                loop->options.name,
                loop->options.labels[0] != '\0' ? "," : "",
                loop->options.labels);
    loop->crew = crew_new(&(struct crew_options){
        .name = loop->options.name,
        .labels = strbuf_text(&labels),
        .slots = loop->options.slots,
        .home = loop->options.place->home,
        .home_id = loop->home_id,
        .host = host,
        .boot_id = boot_id,
        .proto = loop->options.proto,
        .instance = instance,
        .now_ns = on_now,
        .lease = on_lease,
        .say = on_crew_say,
        .answer = on_answer,
        .has_space = on_has_space,
        .exists = on_exists,
        .make_dir = on_make_dir,
        .read = on_read,
        .ctx = loop,
    });
    strbuf_release(&labels);
    return err;
}

static enum err open_link(struct crew_loop *loop, struct diag *diag)
{
    const struct store_place *place = loop->options.place;
    enum err err = key_load(&loop->secret, place->home, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        loop->files = files;
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    err = link_local_open(&loop->link,
                          &(struct link_local_options){
                              .uv = &loop->uv,
                              .place = place,
                              .secret = loop->secret,
                              .files = loop->files,
                              .report = on_report,
                              .failed = on_failed,
                              .ctx = loop,
                          },
                          diag);
    if (err == ERR_OK) {
        crew_set_worker(loop->crew, link_local_worker(loop->link));
        err = link_local_serve(loop->link, diag);
    }
    return err;
}

static enum err open_door(struct crew_loop *loop, struct diag *diag)
{
    struct strbuf dir = {0};
    strbuf_addf(&dir, "%s/" KEY_DOOR, loop->options.place->home);
    enum err err = attempt_file_make_dir(strbuf_text(&dir), diag);
    if (err == ERR_OK) {
        err = control_socket_open(&loop->door,
                                  &loop->uv,
                                  strbuf_text(&dir),
                                  on_request,
                                  loop,
                                  diag);
    }
    strbuf_release(&dir);
    return err;
}

static enum err open_all(struct crew_loop *loop, struct diag *diag)
{
    enum err err = open_crew(loop, diag);
    if (err == ERR_OK) {
        err = open_link(loop, diag);
    }
    if (err == ERR_OK) {
        err = open_door(loop, diag);
    }
    if (err == ERR_OK) {
        err = turns_open(&loop->turns,
                         &(struct turns_options){
                             .uv = &loop->uv,
                             .address = loop->options.place->address,
                             .function = "worker_turn",
                             .channel = "sluice_workers",
                             .name = loop->options.name,
                             .pause_ns = SECOND_NS,
                             .say = on_say,
                             .hear = on_hear,
                             .ctx = loop,
                         },
                         diag);
    }
    return err;
}

static void close_handle(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void close_all(struct crew_loop *loop)
{
    must(uv_prepare_stop(&loop->prepare));
    control_socket_close(loop->door);
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
    link_local_close(loop->link);
    turns_close(loop->turns);
    uv_walk(&loop->uv, close_handle, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) {
    }
    must(uv_loop_close(&loop->uv));
    link_local_free(loop->link);
    turns_free(loop->turns);
    crew_free(loop->crew);
}

enum err crew_loop_run(const struct crew_loop_options *options,
                       struct diag *diag)
{
    struct crew_loop loop = {.options = *options, .home_fd = -1};
    enum err err = lock_home(&loop, diag);
    if (err == ERR_OK) {
        err = open_uv(&loop, diag);
        if (err == ERR_OK) {
            err = open_all(&loop, diag);
        }
        if (err == ERR_OK) {
            (void)uv_run(&loop.uv, UV_RUN_DEFAULT);
            err = loop.failed;
            if (err != ERR_OK) {
                *diag = loop.diag;
            }
        }
        if (loop.opened) {
            close_all(&loop);
        }
    }
    if (loop.home_fd >= 0) {
        (void)close(loop.home_fd);
    }
    return err;
}
