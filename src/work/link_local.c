/* SPDX-License-Identifier: MIT */
#include "work/link_local.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "exec/attempt_file.h"

#include <string.h>
#include <unistd.h>

enum {
    /* Descriptors reserved for everything but watches. */
    FILES_RESERVED = 16,
    /* How often to restart a spawn server that dies at once. */
    REOPEN_TRIES = 3,
};

/* An adopted shim. */
struct watch {
    uv_poll_t poll;
    struct link_local *link;
    uint64_t token;
    int pidfd;
    struct watch *next; /* in the list of the link */
};

struct link_local {
    struct link_local_options options; /* its strings are not used after open */
    struct worker *worker;
    char *shim;
    struct exec *exec; /* NULL: none for now */
    uv_poll_t exec_poll;
    int events; /* being polled for */
    bool polls; /* exec_poll is open */
    struct watch *watches;
    bool closing;
};

/* Check a call that fails only if this program has a bug. */
static void must(int status)
{
    INVARIANT(status == 0);
}

/* --- the machine -------------------------------------------------------- */

static int64_t on_now(void *ctx)
{
    (void)ctx;
    return clock_boot_ns();
}

static void exec_ready(uv_poll_t *poll, int status, int events);

/* Poll the server's socket for the events it needs. */
static void poll_exec(struct link_local *link)
{
    INVARIANT(!link->closing);
    int events = UV_READABLE;
    if (exec_wants_write(link->exec)) {
        events |= UV_WRITABLE;
    }
    if (events == link->events) {
        return;
    }
    link->events = events;
    must(uv_poll_start(&link->exec_poll, events, exec_ready));
}

static enum err
on_start(void *ctx, const struct exec_request *request, struct diag *diag)
{
    struct link_local *link = ctx;
    if (link->exec == NULL) {
        return ERR_OK; /* worker_respawn() causes another request */
    }
    enum err err = exec_start(link->exec, request, diag);
    if (err == ERR_OK && exec_wants_write(link->exec)) {
        poll_exec(link);
    }
    return err;
}

static enum err on_end(void *ctx,
                       const struct work_mark *mark,
                       uint64_t token,
                       enum exec_end how)
{
    (void)ctx;
    struct diag diag = {0};
    return exec_signal(mark->pid, mark->start_ticks, token, how, &diag);
}

static void free_watch(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    INVARIANT(watch->pidfd >= 0 && handle == (uv_handle_t *)&watch->poll);
    (void)close(watch->pidfd);
    mem_free(watch);
}

static void watch_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct watch *watch = poll->data;
    struct link_local *link = watch->link;
    uint64_t token = watch->token;
    INVARIANT(!link->closing && poll == &watch->poll);
    must(uv_poll_stop(poll));
    struct watch **at = &link->watches;
    while (*at != watch) {
        at = &(*at)->next;
    }
    *at = watch->next;
    uv_close((uv_handle_t *)poll, free_watch);
    worker_gone(link->worker, token);
}

/* Whether a new descriptor leaves enough for everything else. */
static bool is_spare(int fd)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 &&
           (rlim_t)fd + FILES_RESERVED < files.rlim_cur;
}

static enum err
on_watch(void *ctx, const struct work_mark *mark, uint64_t token)
{
    struct link_local *link = ctx;
    INVARIANT(!link->closing && mark->pid > 0);
    struct diag diag = {0};
    int pidfd;
    enum err err = exec_watch(mark->pid, mark->start_ticks, &pidfd, &diag);
    if (err != ERR_OK) {
        return err;
    }
    if (!is_spare(pidfd)) {
        (void)close(pidfd);
        return ERR_LIMIT; /* the worker polls it instead */
    }
    struct watch *watch = mem_zalloc(1, sizeof(*watch));
    watch->link = link;
    watch->token = token;
    watch->pidfd = pidfd;
    watch->poll.data = watch;
    if (uv_poll_init(link->options.uv, &watch->poll, pidfd) != 0) {
        (void)close(pidfd);
        mem_free(watch);
        return ERR_UNAVAILABLE;
    }
    must(uv_poll_start(&watch->poll, UV_READABLE, watch_ready));
    watch->next = link->watches;
    link->watches = watch;
    return ERR_OK;
}

static enum err on_inspect(void *ctx,
                           const char *dir,
                           const char *boot_id,
                           struct attempt_found *out,
                           struct diag *diag)
{
    (void)ctx;
    return attempt_inspect(dir, boot_id, out, diag);
}

static enum err on_set_aside(void *ctx, const char *dir, struct diag *diag)
{
    (void)ctx;
    return attempt_set_aside(dir, diag);
}

static enum err on_fence(void *ctx,
                         const char *dir,
                         const char *nonce,
                         bool *fenced_out,
                         struct diag *diag)
{
    (void)ctx;
    return attempt_fence(dir, nonce, fenced_out, diag);
}

static bool on_has_strays(void *ctx, const char *dir)
{
    (void)ctx;
    return attempt_has_strays(dir);
}

static void on_kill_strays(void *ctx, const char *dir)
{
    (void)ctx;
    (void)attempt_kill_strays(dir);
}

static enum err on_result(void *ctx,
                          const char *dir,
                          struct attempt_result *out,
                          struct diag *diag)
{
    (void)ctx;
    return attempt_read_result(dir, out, diag);
}

static void
on_log_tail(void *ctx, const char *dir, size_t bytes, struct strbuf *out)
{
    (void)ctx;
    attempt_add_log_tail(dir, bytes, out);
}

static enum err on_put(void *ctx,
                       const char *dir,
                       const char *name,
                       const struct strbuf *text,
                       struct diag *diag)
{
    (void)ctx;
    return attempt_file_write(dir, name, text, diag);
}

static enum err on_get(void *ctx,
                       const char *dir,
                       const char *name,
                       struct strbuf *out,
                       struct diag *diag)
{
    (void)ctx;
    return attempt_file_read(dir, name, out, diag);
}

static void on_drop(void *ctx, const char *dir)
{
    (void)ctx;
    attempt_file_drop(dir);
}

static const struct work_machine machine = {
    .now_ns = on_now,
    .start = on_start,
    .end = on_end,
    .watch = on_watch,
    .inspect = on_inspect,
    .set_aside = on_set_aside,
    .fence = on_fence,
    .has_strays = on_has_strays,
    .kill_strays = on_kill_strays,
    .result = on_result,
    .log_tail = on_log_tail,
    .put = on_put,
    .get = on_get,
    .drop = on_drop,
};

/* --- the spawn server --------------------------------------------------- */

static void on_report(void *ctx, const struct exec_report *report)
{
    struct link_local *link = ctx;
    worker_reported(link->worker, report);
}

static void reopened(uv_handle_t *handle);

/* The server has died: replace it. */
static void reopen(struct link_local *link)
{
    INVARIANT(link->exec != NULL && !link->closing);
    must(uv_poll_stop(&link->exec_poll));
    exec_close(link->exec);
    link->exec = NULL;
    link->polls = false;
    uv_close((uv_handle_t *)&link->exec_poll, reopened);
}

static void exec_ready(uv_poll_t *poll, int status, int events)
{
    struct link_local *link = poll->data;
    INVARIANT(link->exec != NULL && poll == &link->exec_poll);
    struct diag diag = {0};
    enum err err = ERR_OK;
    if (status != 0) {
        link->events = 0; /* libuv has stopped polling */
    }
    if (status == 0 && (events & UV_WRITABLE) != 0) {
        err = exec_flush(link->exec, &diag);
    }
    if (err == ERR_OK) {
        err = exec_read(link->exec, on_report, link, &diag);
    }
    if (err != ERR_OK) {
        reopen(link);
    } else {
        poll_exec(link);
    }
}

enum err link_local_serve(struct link_local *link, struct diag *diag)
{
    INVARIANT(link->exec == NULL);
    enum err err = exec_open(&link->exec, link->shim, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (link->options.files.rlim_max > 0) {
        exec_limit_files(link->exec, &link->options.files);
    }
    int fd = exec_fd(link->exec);
    if (uv_poll_init(link->options.uv, &link->exec_poll, fd) != 0) {
        return diag_set(diag, ERR_UNAVAILABLE, "cannot watch the spawn server");
    }
    link->exec_poll.data = link;
    link->polls = true;
    link->events = 0;
    poll_exec(link);
    INVARIANT((link->events & UV_READABLE) != 0);
    return ERR_OK;
}

static void reopened(uv_handle_t *handle)
{
    struct link_local *link = handle->data;
    struct diag diag = {0};
    if (link->closing) {
        return;
    }
    enum err err = ERR_UNAVAILABLE;
    for (int tries = 0; tries < REOPEN_TRIES && err == ERR_UNAVAILABLE;
         tries++) {
        exec_close(link->exec); /* a new server may die of the same cause */
        link->exec = NULL;
        err = link_local_serve(link, &diag);
    }
    if (err != ERR_OK) {
        link->options.failed(link->options.ctx, err, diag.text);
    } else {
        worker_respawn(link->worker);
    }
}

/* --- set-up ------------------------------------------------------------- */

enum err link_local_open(struct link_local **out,
                         const struct link_local_options *options,
                         struct diag *diag)
{
    *out = NULL;
    char boot_id[37];
    attempt_boot_id(boot_id);
    struct strbuf git = {0};
    struct strbuf agent = {0};
    struct strbuf sandbox = {0};
    struct strbuf program = {0};
    enum err err = exec_find_program("sluice-git", "SLUICE_GIT", &git, diag);
    if (err == ERR_OK) {
        err = exec_find_program("sluice-agent", "SLUICE_AGENT", &agent, diag);
    }
    if (err == ERR_OK) {
        err = exec_find_program("sluice-sandbox",
                                "SLUICE_SANDBOX",
                                &sandbox,
                                diag);
    }
    if (err == ERR_OK) {
        err = exec_find_program("sluice", "SLUICE_MAIN", &program, diag);
    }
    if (err == ERR_OK) {
        struct link_local *link = mem_zalloc(1, sizeof(*link));
        link->options = *options;
        link->shim = mem_strdup(options->shim);
        link->worker = worker_new(&(struct worker_options){
            .machine = &machine,
            .ctx = link,
            .place = options->place,
            .git = strbuf_text(&git),
            .agent = strbuf_text(&agent),
            .sandbox = strbuf_text(&sandbox),
            .program = strbuf_text(&program),
            .secret = options->secret,
            .boot_id = boot_id,
            .report = options->report,
            .link = options->ctx,
        });
        *out = link;
    }
    strbuf_release(&git);
    strbuf_release(&agent);
    strbuf_release(&sandbox);
    strbuf_release(&program);
    return err;
}

struct worker *link_local_worker(struct link_local *link)
{
    return link->worker;
}

void link_local_close(struct link_local *link)
{
    if (link != NULL) {
        INVARIANT(!link->closing);
        link->closing = true;
        if (link->polls) {
            uv_close((uv_handle_t *)&link->exec_poll, NULL);
        }
        for (struct watch *watch = link->watches; watch != NULL;) {
            struct watch *next = watch->next;
            uv_close((uv_handle_t *)&watch->poll, free_watch);
            watch = next;
        }
        link->watches = NULL;
    }
}

void link_local_free(struct link_local *link)
{
    if (link != NULL) {
        exec_close(link->exec);
        worker_free(link->worker);
        mem_free(link->shim);
        mem_free(link);
    }
}
