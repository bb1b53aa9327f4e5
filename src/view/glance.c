/* SPDX-License-Identifier: MIT */
#include "view/glance.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "plan/suggest.h"

#include <string.h>

/* Ids of all runs, as suggestions. */
struct offers {
    struct suggest guess; /* borrows the ids */
    struct arena ids;
};

static enum err offer_run(void *ctx, const struct store_run *run)
{
    struct offers *offers = ctx;
    const char *id = arena_strndup(&offers->ids, run->id, strlen(run->id));
    (void)suggest_offer(&offers->guess, id);
    return ERR_OK;
}

static enum err
refuse_run(const struct glance *glance, const char *run, struct diag *diag)
{
    struct offers offers = {0};
    uint32_t budget = SUGGEST_BUDGET;
    suggest_init(&offers.guess, run, strlen(run), &budget);
    static const struct store_visitor visitor = {.run = offer_run};
    static const struct store_query query = {.finished = true};
    struct diag ignored = {0};
    /* On error the message has no hint. */
    (void)!store_read(glance->view.store,
                      &query,
                      &visitor,
                      &offers,
                      NULL,
                      &ignored);
    (void)diag_set(diag,
                   ERR_NOT_FOUND,
                   "no run \"%s\"%s; 'sluice status --all' lists them",
                   run,
                   suggest_hint(&offers.guess));
    arena_release(&offers.ids);
    return ERR_NOT_FOUND;
}

enum err glance_take(struct glance *out,
                     const struct glance_options *options,
                     struct diag *diag)
{
    *out = (struct glance){.labels = options->labels};
    const char *run = options->run;
    struct store_query query = {
        .finished = options->finished,
        .run = options->alone ? run : NULL,
    };
    enum err err = store_place_find(&out->place, options->store, false, diag);
    if (err == ERR_OK) {
        err = client_look_again(&out->view,
                                &out->place,
                                &query,
                                options->spare,
                                diag);
    }
    if (err == ERR_OK && run != NULL && !query.finished &&
        engine_find_run(out->view.engine, run) == STORE_NONE) {
        client_view_release(&out->view);
        query.run = run; /* a finished run waits for no other run */
        err = client_look(&out->view, &out->place, &query, diag);
    }
    if (err == ERR_OK && run != NULL &&
        engine_find_run(out->view.engine, run) == STORE_NONE) {
        err = refuse_run(out, run, diag);
    }
    if (err == ERR_OK) {
        out->wall_ns = clock_wall_ns();
        out->snapshot = snapshot_new(out->view.engine, true);
        out->eta =
            options->forecast ? eta_new(out->view.engine, out->wall_ns) : NULL;
    }
    return err;
}

/* --- times -------------------------------------------------------------- */

static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct glance *glance = ctx;
    int64_t ran_ns = row->ended_ns - row->begun_ns;
    for (uint32_t ix = 0; ix < glance->times_count; ix++) {
        struct glance_times *times = &glance->times[ix];
        if (times->number == row->run && row->task < times->task_count &&
            row->begun_ns > 0 && ran_ns > 0) {
            int64_t *sum_ns = &times->ran_ns[row->task];
            *sum_ns = duration_sum(*sum_ns, ran_ns);
        }
    }
    return ERR_OK;
}

enum err
glance_read_times(struct glance *glance, const char *run, struct diag *diag)
{
    static const struct store_visitor visitor = {.attempt = on_attempt};
    const struct engine *engine = glance->view.engine;
    struct store_query query = {.run = run, .ended = true};
    INVARIANT(glance->times == NULL);
    glance->times_count = engine_run_count(engine);
    glance->times = mem_zalloc(glance->times_count, sizeof(glance->times[0]));
    for (uint32_t ix = 0; ix < glance->times_count; ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        query.finished = query.finished || view.finished;
        glance->times[ix] = (struct glance_times){
            .number = view.number,
            .task_count = view.plan->task_count,
            .ran_ns = mem_zalloc(view.plan->task_count, sizeof(int64_t)),
        };
    }
    return store_read(glance->view.store, &query, &visitor, glance, NULL, diag);
}

int64_t glance_ran_ns(const struct glance *glance, uint32_t run, uint32_t task)
{
    return glance->times != NULL ? glance->times[run].ran_ns[task] : 0;
}

void glance_of(struct glance *out, struct engine *engine, int64_t wall_ns)
{
    *out = (struct glance){
        .view.engine = engine,
        .snapshot = snapshot_new(engine, false),
        .wall_ns = wall_ns,
    };
}

enum err glance_inside(struct glance *out,
                       struct engine *engine,
                       const struct store_place *place,
                       const struct glance_options *options,
                       struct diag *diag)
{
    uint32_t run = options->run != NULL ? engine_find_run(engine, options->run)
                                        : STORE_NONE;
    *out = (struct glance){.labels = options->labels, .inside = true};
    INVARIANT(!options->finished && !options->alone);
    if (options->run != NULL &&
        (run == STORE_NONE || engine_run(engine, run).finished)) {
        return diag_set(diag, ERR_NOT_FOUND, "no run \"%s\"", options->run);
    }
    out->place = store_place_copy(place);
    enum err err = client_look_inside(&out->view, place, engine, diag);
    if (err == ERR_OK) {
        out->wall_ns = clock_wall_ns();
        out->snapshot = snapshot_new(engine, false);
        out->eta = options->forecast ? eta_new(engine, out->wall_ns) : NULL;
    }
    return err;
}

void glance_release(struct glance *glance)
{
    if (glance->inside) {
        glance->view.engine = NULL;
    }
    for (uint32_t ix = 0; ix < glance->times_count; ix++) {
        mem_free(glance->times[ix].ran_ns);
    }
    mem_free(glance->times);
    eta_free(glance->eta);
    snapshot_free(glance->snapshot);
    client_view_release(&glance->view);
    store_place_release(&glance->place);
    *glance = (struct glance){0};
}

bool glance_is_meant(const struct glance_options *options,
                     const struct engine_run_view *run)
{
    return options->run == NULL || strcmp(options->run, run->id) == 0;
}

void glance_json_runs(struct strbuf *out,
                      const struct glance *glance,
                      const struct glance_options *options,
                      const char *name,
                      glance_run_fn fn)
{
    const struct engine *engine = glance->view.engine;
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_array(&json, "runs");
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view run = engine_run(engine, ix);
        if (glance_is_meant(options, &run)) {
            jsonw_object(&json, NULL);
            jsonw_text(&json, "run", run.id);
            jsonw_name(&json, name);
            fn(out, glance, ix);
            jsonw_object_end(&json);
        }
    }
    jsonw_array_end(&json);
}

bool glance_next_session(const struct glance *glance,
                         uint32_t run,
                         uint64_t after,
                         struct engine_session_view *out)
{
    const struct engine *engine = glance->view.engine;
    bool found = false;
    for (uint32_t ix = 0; ix < engine_session_count(engine); ix++) {
        struct engine_session_view session = engine_session(engine, ix);
        if (session.run == run && session.token > after &&
            (!found || session.token < out->token)) {
            *out = session;
            found = true;
        }
    }
    return found;
}

int64_t glance_elapsed_ns(const struct glance *glance,
                          const struct engine_session_view *session)
{
    int64_t since_ns =
        session->begun_ns > 0 ? session->begun_ns : session->claimed_ns;
    int64_t gone_ns = glance->wall_ns - since_ns;
    return gone_ns > 0 ? gone_ns : 0;
}
