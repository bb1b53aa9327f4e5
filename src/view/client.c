/* SPDX-License-Identifier: MIT */
#include "view/client.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "engine/doorway.h"
#include "engine/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ANSWER_MS = 10000, /* a scheduler that takes longer is in trouble */
    BUSY_TRIES = 250,  /* while one scheduler goes and another one comes */
    BUSY_WAIT_US = 20000,
    ORDER_KEY_BYTES = 16,
};

/* Without a sign of life for this long, a scheduler is said to be silent. */
#define SILENT_NS (5 * SECOND_NS)

static bool is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* `path` made absolute; links in the part that is there are resolved. */
static char *absolute(const char *path, struct diag *diag)
{
    char real[PATH_MAX];
    if (realpath(path, real) != NULL) {
        return mem_strndup(real, strlen(real));
    }
    if (errno != ENOENT) {
        (void)diag_set(diag, ERR_INVALID, "%s: %s", path, strerror(errno));
        return NULL;
    }
    /* It is not there yet: its parent must be. */
    const char *slash = strrchr(path, '/');
    struct strbuf parent = {0};
    strbuf_add(&parent,
               slash != NULL ? path : ".",
               slash != NULL ? (size_t)(slash - path) + 1 : 1);
    char *made = NULL;
    if (realpath(strbuf_text(&parent), real) == NULL) {
        (void)diag_set(diag,
                       ERR_NOT_FOUND,
                       "%s: %s",
                       strbuf_text(&parent),
                       strerror(errno));
    } else {
        struct strbuf whole = {0};
        strbuf_addf(&whole, "%s/%s", real, slash != NULL ? slash + 1 : path);
        made = mem_strndup(whole.text, whole.len);
        strbuf_release(&whole);
    }
    strbuf_release(&parent);
    return made;
}

/* The nearest .sluice from here upward, or NULL. */
static char *nearest(void)
{
    char here[PATH_MAX];
    if (getcwd(here, sizeof(here)) == NULL) {
        return NULL;
    }
    for (;;) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/.sluice", strcmp(here, "/") == 0 ? "" : here);
        if (is_directory(strbuf_text(&path))) {
            char *found = mem_strndup(path.text, path.len);
            strbuf_release(&path);
            return found;
        }
        strbuf_release(&path);
        char *slash = strrchr(here, '/');
        if (slash == NULL || strcmp(here, "/") == 0) {
            return NULL;
        }
        slash[slash == here ? 1 : 0] = '\0';
    }
}

char *client_find_store(const char *option, bool make, struct diag *diag)
{
    const char *given = option != NULL ? option : getenv("SLUICE_STORE");
    if (given != NULL && given[0] != '\0') {
        if (strncmp(given, "postgresql:", 11) == 0) {
            (void)diag_set(
                diag,
                ERR_INVALID,
                "%s: this version has no PostgreSQL store; use a directory",
                given);
            return NULL;
        }
        return absolute(given, diag);
    }
    char *found = nearest();
    if (found == NULL && make) {
        return absolute(".sluice", diag);
    }
    if (found == NULL) {
        (void)diag_set(
            diag,
            ERR_NOT_FOUND,
            "no .sluice in this or any parent directory; use --store DIR");
    }
    return found;
}

struct store_owner client_self(void)
{
    struct store_owner self = {.pid = getpid()};
    self.start_ticks = attempt_start_ticks(self.pid);
    attempt_boot_id(self.boot_id);
    if (gethostname(self.host, sizeof(self.host) - 1) != 0) {
        (void)snprintf(self.host, sizeof(self.host), "?");
    }
    return self;
}

/* The one order that this process carries out itself. */
struct moment {
    struct loop *loop;
    char *answer;
};

static void on_answer(void *ctx, const char *json)
{
    struct moment *moment = ctx;
    moment->answer = mem_strndup(json, strlen(json));
    loop_stop(moment->loop);
}

/* Be the scheduler for a moment. ERR_BUSY: another one is. */
static enum err order_alone(const char *dir,
                            const char *json,
                            char **answer_out,
                            struct diag *diag)
{
    struct store *store;
    struct moment moment = {0};
    enum err err = store_open(&store, dir, STORE_WRITE, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct store_owner self = client_self();
    uint64_t epoch;
    err = store_take(store, &self, &epoch, diag);
    if (err == ERR_OK) {
        struct loop_options options = {
            .store = store,
            .dir = dir,
            .epoch = epoch,
            .orders_only = true,
            .ctx = &moment,
            .answer = on_answer,
        };
        err = loop_open(&moment.loop, &options, diag);
    }
    if (err == ERR_OK) {
        loop_order(moment.loop, json);
        err = loop_run(moment.loop, diag);
    }
    if (err == ERR_OK) {
        *answer_out = moment.answer;
    } else {
        mem_free(moment.answer);
    }
    loop_close(moment.loop);
    store_close(store);
    return err;
}

/* Why nobody answers. */
static enum err explain_silence(const char *dir, struct diag *diag)
{
    struct store *store;
    struct store_owner owner;
    struct diag ignored = {0};
    if (store_open(&store, dir, STORE_READ, &ignored) != ERR_OK) {
        return ERR_TIMEOUT;
    }
    enum err err = store_owner(store, &owner, &ignored);
    if (err == ERR_OK && owner.trouble[0] != '\0') {
        (void)diag_set(diag,
                       ERR_TIMEOUT,
                       "the scheduler (pid %lld) cannot write: %s; the request "
                       "takes effect when it can",
                       (long long)owner.pid,
                       owner.trouble);
    } else if (err == ERR_OK) {
        (void)diag_set(
            diag,
            ERR_TIMEOUT,
            "the scheduler (pid %lld) does not reply: it may be stopped or "
            "hang; check 'sluice status', replace it with 'sluice run "
            "--take-over'; the request may still take effect later",
            (long long)owner.pid);
    }
    store_close(store);
    return ERR_TIMEOUT;
}

/* A name for an order by which it is found in the store. */
struct order_key {
    char text[2 * ORDER_KEY_BYTES + 1];
};

static enum err make_key(struct order_key *out, struct diag *diag)
{
    unsigned char bytes[ORDER_KEY_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
        return diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
    }
    for (size_t ix = 0; ix < sizeof(bytes); ix++) {
        (void)snprintf(out->text + 2 * ix, 3, "%02x", bytes[ix]);
    }
    return ERR_OK;
}

struct search {
    char *answer;
};

static enum err on_command(void *ctx, const struct store_command *command)
{
    struct search *search = ctx;
    if (command->answer != NULL) {
        mem_free(search->answer);
        search->answer = mem_strndup(command->answer, strlen(command->answer));
    }
    return ERR_OK;
}

/* Wait until no scheduler is about to end; false: it is not known. One that
 * answers is another one, or has never read the order. */
static bool has_settled(const char *dir, struct store *store)
{
    for (int tries = 0; tries < BUSY_TRIES; tries++) {
        struct store_owner owner;
        struct diag ignored = {0};
        char *pong = NULL;
        enum err err = doorway_call(dir,
                                    "{\"verb\":\"ping\"}",
                                    ANSWER_MS,
                                    &pong,
                                    &ignored);
        mem_free(pong);
        if (err == ERR_OK || err == ERR_TIMEOUT) {
            return err == ERR_OK;
        }
        if (err == ERR_NOT_FOUND &&
            store_owner(store, &owner, &ignored) == ERR_NOT_FOUND) {
            return true;
        }
        (void)usleep(BUSY_WAIT_US);
    }
    return false;
}

/*
 * The scheduler went away before it answered. It stores an order together with
 * the answer and with what follows from it, so when it has ended, it is known
 * what became of it: the answer, or ERR_NOT_FOUND when it was not carried out
 * and never will be.
 */
static enum err find_answer(const char *dir,
                            const struct order_key *key,
                            char **answer_out,
                            struct diag *diag)
{
    struct store *store;
    struct search search = {0};
    struct store_query query = {.key = key->text};
    static const struct store_visitor visitor = {.command = on_command};
    struct store_info info;
    enum err err = store_open(&store, dir, STORE_READ, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (!has_settled(dir, store)) {
        err = ERR_IO; /* as *diag says */
    } else {
        err = store_read(store, &query, &visitor, &search, &info, diag);
    }
    store_close(store);
    if (err != ERR_OK) {
        mem_free(search.answer);
        return err;
    }
    *answer_out = search.answer;
    return search.answer != NULL ? ERR_OK : ERR_NOT_FOUND;
}

/* Give an order, which has a key, to whoever can carry it out. */
static enum err give(const char *dir,
                     const char *json,
                     const struct order_key *key,
                     char **answer_out,
                     struct diag *diag)
{
    enum err err = ERR_OK;
    for (int tries = 0; tries < BUSY_TRIES; tries++) {
        err = doorway_call(dir, json, ANSWER_MS, answer_out, diag);
        if (err == ERR_TIMEOUT) {
            return explain_silence(dir, diag);
        }
        if (err == ERR_IO) {
            err = find_answer(dir, key, answer_out, diag);
        }
        if (err != ERR_NOT_FOUND) {
            return err;
        }
        err = order_alone(dir, json, answer_out, diag);
        if (err != ERR_BUSY) {
            return err;
        }
        (void)usleep(BUSY_WAIT_US);
    }
    return err;
}

enum err client_order(const char *dir,
                      const char *json,
                      char **answer_out,
                      struct diag *diag)
{
    INVARIANT(json[0] == '{');
    *answer_out = NULL;
    struct store *store;
    enum err err = store_open(&store, dir, STORE_READ, diag);
    if (err != ERR_OK) {
        return err; /* an order makes no store */
    }
    store_close(store);
    struct order_key key;
    err = make_key(&key, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct strbuf keyed = {0};
    struct jsonw writer = {.out = &keyed};
    jsonw_object(&writer, NULL);
    jsonw_text(&writer, "key", key.text);
    jsonw_raw(&writer, NULL, json + 1); /* its members, and the end */
    err = give(dir, strbuf_text(&keyed), &key, answer_out, diag);
    strbuf_release(&keyed);
    return err;
}

/* Whether the scheduler lives, and is well. */
static enum err look_at_owner(struct client_view *view, struct diag *diag)
{
    enum err err = store_owner(view->store, &view->owner, diag);
    if (err == ERR_NOT_FOUND) {
        return ERR_OK;
    }
    if (err != ERR_OK) {
        return err;
    }
    view->owned = true;
    if (view->owner.silent_ns > SILENT_NS) {
        view->silent_ns = view->owner.silent_ns;
    }
    struct store_owner self = client_self();
    if (strcmp(self.boot_id, view->owner.boot_id) == 0 &&
        strcmp(self.host, view->owner.host) == 0) {
        char state = attempt_process_state(view->owner.pid);
        view->stopped = state == 'T' || state == 't';
    }
    return ERR_OK;
}

/* Open the store, and see who schedules. */
static enum err
open_view(struct client_view *out, const char *dir, struct diag *diag)
{
    *out = (struct client_view){0};
    enum err err = store_open(&out->store, dir, STORE_READ, diag);
    return err == ERR_OK ? look_at_owner(out, diag) : err;
}

enum err client_look(struct client_view *out,
                     const char *dir,
                     const struct store_query *query,
                     struct diag *diag)
{
    enum err err = open_view(out, dir, diag);
    if (err == ERR_OK) {
        out->engine = engine_new(&(struct engine_options){
            .wall_ns = clock_wall_ns(),
        });
        err = engine_load(out->engine, out->store, query, diag);
    }
    return err;
}

enum err client_look_ahead(const char *dir,
                           struct engine_update *update,
                           struct diag *diag)
{
    struct client_view view;
    enum err err = open_view(&view, dir, diag);
    if (err == ERR_OK) {
        view.engine = engine_new(&(struct engine_options){
            .wall_ns = clock_wall_ns(),
            .update = update,
        });
        err = engine_load(view.engine, view.store, NULL, diag);
    }
    client_view_release(&view);
    return err;
}

enum err client_peek(struct client_view *out,
                     const char *dir,
                     struct store_info *info_out,
                     struct diag *diag)
{
    static const struct store_visitor nothing = {0};
    struct store_query query = {0};
    enum err err = open_view(out, dir, diag);
    if (err == ERR_OK) {
        err = store_read(out->store, &query, &nothing, NULL, info_out, diag);
    }
    return err;
}

const char *client_state_name(const struct client_view *view)
{
    if (!view->owned) {
        return "none";
    }
    if (view->stopped) {
        return "stopped";
    }
    if (view->silent_ns > 0) {
        return "silent";
    }
    return view->owner.trouble[0] != '\0' ? "trouble" : "alive";
}

void client_view_release(struct client_view *view)
{
    engine_free(view->engine);
    store_close(view->store);
    *view = (struct client_view){0};
}

static enum err expect(void *ctx, const struct store_setting *setting)
{
    engine_expect(ctx, setting->name, setting->value);
    return ERR_OK;
}

enum err client_expect(struct plan *plan, const char *dir, struct diag *diag)
{
    static const struct store_visitor visitor = {.setting = expect};
    static const struct store_query query = {0};
    struct store *store = NULL;
    enum err err = store_open(&store, dir, STORE_READ, diag);
    if (err == ERR_OK) {
        err = store_read(store, &query, &visitor, plan, NULL, diag);
    }
    store_close(store);
    return err;
}
