/* SPDX-License-Identifier: MIT */
#include "view/client.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/loop.h"
#include "view/session_look.h"
#include "work/owner.h"
#include "work/workers.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_MS = 10000, /* a slower scheduler has a problem */
    SHOW_MS = 2000,    /* then, reading the store is as fast */
    BUSY_TRIES = 250,  /* while one scheduler exits and another starts */
    BUSY_WAIT_US = 20000,
};

/* A scheduler without a heartbeat for this long counts as silent. */
#define SILENT_NS (5 * SECOND_NS)

/* A request that this process carries out itself. */
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

/* Act as the scheduler for one request. ERR_BUSY: another process does. */
static enum err ask_alone(const struct store_place *place,
                          const char *json,
                          char **answer_out,
                          struct diag *diag)
{
    struct store *store;
    struct moment moment = {0};
    enum err err = store_open(&store, place->address, STORE_WRITE, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct store_owner self = owner_self();
    uint64_t epoch;
    err = store_take(store, &self, &epoch, diag);
    if (err == ERR_OK) {
        struct loop_options options = {
            .store = store,
            .place = place,
            .epoch = epoch,
            .requests_only = true,
            .ctx = &moment,
            .answer = on_answer,
            .look = session_look,
        };
        err = loop_open(&moment.loop, &options, diag);
    }
    if (err == ERR_OK) {
        loop_request(moment.loop, json);
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

/* Report why the scheduler does not reply. */
static enum err explain_silence(struct store *store, struct diag *diag)
{
    struct store_owner owner;
    struct diag ignored = {0};
    enum err err = store_owner(store, &owner, &ignored);
    if (err == ERR_OK && owner.trouble[0] != '\0') {
        (void)diag_set(diag,
                       ERR_TIMEOUT,
                       "the scheduler (pid %lld) cannot write: %s; the request "
                       "takes effect when it can",
                       owner_process(&owner),
                       owner.trouble);
    } else if (err == ERR_OK) {
        (void)diag_set(
            diag,
            ERR_TIMEOUT,
            "the scheduler (pid %lld) does not reply: it may be stopped or "
            "hang; check 'sluice status', replace it with 'sluice run "
            "--take-over'; the request may still take effect later",
            owner_process(&owner));
    }
    return ERR_TIMEOUT;
}

static enum err on_command(void *ctx, const struct store_command *command)
{
    char **answer = ctx;
    if (command->answer != NULL) {
        mem_free(*answer);
        *answer = mem_strdup(command->answer);
    }
    return ERR_OK;
}

/* Add the key to a request: a new one, or that of the caller, whose answer may
 * exist. */
static enum err add_key(struct store *store,
                        struct strbuf *out,
                        struct store_key *key,
                        bool chosen,
                        const char *json,
                        char **answer_out,
                        struct diag *diag)
{
    static const struct store_visitor visitor = {.command = on_command};
    if (!chosen) {
        return store_add_key(out, key, json, diag);
    }
    const struct store_query query = {.key = key->text};
    store_put_key(out, key, json);
    return store_read(store, &query, &visitor, answer_out, NULL, diag);
}

enum err client_ask(const struct store_place *place,
                    const char *json,
                    char **answer_out,
                    struct diag *diag)
{
    return client_ask_once(place, json, NULL, answer_out, diag);
}

enum err client_ask_once(const struct store_place *place,
                         const char *json,
                         const struct store_key *chosen,
                         char **answer_out,
                         struct diag *diag)
{
    *answer_out = NULL;
    struct store *store; /* must exist: a request creates no store */
    struct store_key key = {0};
    struct strbuf keyed = {0};
    if (chosen != NULL) {
        key = *chosen;
    }
    enum err err = store_open(&store, place->address, STORE_READ, diag);
    if (err == ERR_OK) {
        err = add_key(store,
                      &keyed,
                      &key,
                      chosen != NULL,
                      json,
                      answer_out,
                      diag);
    }
    for (int tries = 0;
         err == ERR_OK && *answer_out == NULL && tries < BUSY_TRIES;
         tries++) {
        const char *request = strbuf_text(&keyed);
        err = store_ask(store, &key, request, ANSWER_MS, answer_out, diag);
        if (err != ERR_NOT_FOUND) {
            break;
        }
        err = ask_alone(place, request, answer_out, diag);
        if (err != ERR_BUSY) {
            break;
        }
        (void)usleep(BUSY_WAIT_US);
        err = tries + 1 < BUSY_TRIES ? ERR_OK : err;
    }
    if (err == ERR_TIMEOUT) {
        err = explain_silence(store, diag);
    }
    strbuf_release(&keyed);
    store_close(store);
    return err;
}

/* Read whether a scheduler is alive and healthy. */
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
    view->stopped = owner_is_stopped(&view->owner);
    return ERR_OK;
}

/* Open the store and read the state of its scheduler. */
static enum err open_view(struct client_view *out,
                          const struct store_place *place,
                          struct diag *diag)
{
    *out = (struct client_view){0};
    enum err err = store_open(&out->store, place->address, STORE_READ, diag);
    return err == ERR_OK ? look_at_owner(out, diag) : err;
}

enum err client_look(struct client_view *out,
                     const struct store_place *place,
                     const struct store_query *query,
                     struct diag *diag)
{
    return client_look_again(out, place, query, NULL, diag);
}

/* The workers of a store, as the engine wants them. */
struct crowd {
    struct engine_worker *workers;
    uint32_t count;
    uint32_t capacity;
    struct arena texts;
};

static void on_worker(void *ctx, const struct workers_row *row)
{
    struct crowd *crowd = ctx;
    struct strbuf labels = {0};
    strbuf_addf(&labels,
                "%s,any%s%s",
                row->name,
                row->labels[0] != '\0' ? "," : "",
                row->labels);
    MEM_GROW(crowd->workers, crowd->count, crowd->capacity);
    crowd->workers[crowd->count++] = (struct engine_worker){
        .labels = arena_strndup(&crowd->texts, labels.text, labels.len),
        .slots = strcmp(row->state, "up") == 0 ? row->slots : row->used,
    };
    strbuf_release(&labels);
}

/* Tell the engine what the workers of the store offer, if it has any. */
static enum err look_at_workers(struct engine *engine,
                                const struct store_place *place,
                                struct diag *diag)
{
    struct crowd crowd = {0};
    if (!store_has_workers(place->address)) {
        return ERR_OK;
    }
    enum err err = workers_list(place->address, on_worker, &crowd, diag);
    if (err == ERR_OK) {
        engine_workers(engine, crowd.workers, crowd.count);
    }
    mem_free(crowd.workers);
    arena_release(&crowd.texts);
    return err;
}

enum err client_look_again(struct client_view *out,
                           const struct store_place *place,
                           const struct store_query *query,
                           struct engine *spare,
                           struct diag *diag)
{
    enum err err = open_view(out, place, diag);
    if (err == ERR_OK) {
        out->engine = engine_new(&(struct engine_options){
            .wall_ns = clock_wall_ns(),
            .spare = spare,
        });
        err = engine_load(out->engine, out->store, query, diag);
    }
    if (err == ERR_OK) {
        err = look_at_workers(out->engine, place, diag);
    }
    return err;
}

enum err client_look_inside(struct client_view *out,
                            const struct store_place *place,
                            struct engine *engine,
                            struct diag *diag)
{
    enum err err = open_view(out, place, diag);
    out->engine = engine;
    return err;
}

/* Take the text of a scheduler's answer. */
static enum err take_text(const char *answer, char **out, struct diag *diag)
{
    json_t *json = json_loads(answer, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "text"));
    bool good = json_is_true(json_object_get(json, "ok")) && text != NULL;
    enum err err = ERR_OK;
    if (good) {
        *out = mem_strdup(text);
    } else {
        err = diag_set(diag,
                       ERR_UNAVAILABLE,
                       "the scheduler's answer: %s",
                       text != NULL ? text : "none");
    }
    json_decref(json);
    return err;
}

enum err client_show(const struct store_place *place,
                     const char *json,
                     char **text_out,
                     struct diag *diag)
{
    struct client_view view;
    char *answer = NULL;
    if (store_has_workers(place->address)) {
        return diag_set(diag, ERR_UNAVAILABLE, "it may be far away");
    }
    enum err err = open_view(&view, place, diag);
    if (err == ERR_OK && strcmp(client_state_name(&view), "alive") != 0) {
        err = diag_set(diag, ERR_UNAVAILABLE, "no scheduler is well");
    }
    if (err == ERR_OK) {
        err = store_look(view.store, json, SHOW_MS, &answer, diag);
    }
    if (err == ERR_OK) {
        err = take_text(answer, text_out, diag);
    }
    mem_free(answer);
    client_view_release(&view);
    return err;
}

enum err client_look_ahead(const struct store_place *place,
                           struct engine_update *update,
                           struct diag *diag)
{
    struct client_view view;
    enum err err = open_view(&view, place, diag);
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

enum err client_peek(struct client_view *view,
                     struct store_info *info_out,
                     struct diag *diag)
{
    static const struct store_visitor nothing = {0};
    struct store_query query = {0};
    INVARIANT(view->store != NULL && view->engine == NULL);
    *view = (struct client_view){.store = view->store};
    enum err err = look_at_owner(view, diag);
    if (err == ERR_OK) {
        err = store_read(view->store, &query, &nothing, NULL, info_out, diag);
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

enum err client_expect(struct plan *plan, const char *option, struct diag *diag)
{
    static const struct store_visitor visitor = {.setting = expect};
    static const struct store_query query = {0};
    struct store_place place;
    struct store *store = NULL;
    enum err err = store_place_find(&place, option, false, diag);
    if (err == ERR_OK) {
        err = store_open(&store, place.address, STORE_READ, diag);
    }
    if (err == ERR_OK) {
        err = store_read(store, &query, &visitor, plan, NULL, diag);
    }
    store_close(store);
    store_place_release(&place);
    return err;
}
