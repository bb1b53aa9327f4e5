/* SPDX-License-Identifier: MIT */
/*
 * Store poller of `sluice top`. A store counts its transactions: an equal count
 * means an equal state, so polling an idle store costs a few small reads.
 *
 * Whether the scheduler drains is not stored, but derived from the events: a
 * drain request since the last scheduler started.
 */
#include "view/top_look.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/event.h"
#include "view/lines.h"

#include <string.h>

enum {
    EVENTS_BACK = 1000, /* maximum events to read per refresh */
    LINES_MAX = 400,    /* when full, half of the lines are dropped */
};

/* Maximum age of the model. A safeguard: a state that changes without a
 * transaction must not be shown forever. */
#define ANEW_NS (INT64_C(10) * 1000000000)

/* Maximum age of the forecast: it takes some tenths of a second to compute. */
#define FORECAST_NS (INT64_C(10) * 1000000000)

struct top_look {
    struct store_place place;
    char *only;
    struct labels labels;
    struct glance glance;
    struct store_info info; /* read before the glance */
    bool seen;
    struct model model;
    struct strbuf scheduler;
    struct diag trouble;
    struct model_event *lines;
    uint32_t line_count;
    uint64_t last_event; /* last event read */
    bool drain;          /* derived from the events */
};

struct top_look *top_look_new(const struct store_place *place,
                              const char *only,
                              const struct labels *labels)
{
    struct top_look *look = mem_zalloc(1, sizeof(*look));
    look->place = store_place_copy(place);
    look->only = only != NULL ? mem_strndup(only, strlen(only)) : NULL;
    look->labels = *labels;
    look->model.run = MODEL_NONE;
    return look;
}

static void drop_lines(struct top_look *look, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        mem_free(look->lines[ix].text);
    }
    look->line_count -= count;
    if (look->line_count == 0) {
        return;
    }
    memmove(look->lines,
            look->lines + count,
            look->line_count * sizeof(look->lines[0]));
}

void top_look_free(struct top_look *look)
{
    if (look == NULL) {
        return;
    }
    model_release(&look->model);
    glance_release(&look->glance);
    strbuf_release(&look->scheduler);
    drop_lines(look, look->line_count);
    mem_free(look->lines);
    mem_free(look->only);
    store_place_release(&look->place);
    mem_free(look);
}

/* --- events ------------------------------------------------------------- */

static void note_drain(struct top_look *look, const struct store_event *row)
{
    struct event event = {0};
    event_read(&event, row);
    look->drain = event_is_request(&event, "drain") ||
                  (look->drain && event.kind != EVENT_KIND_SCHEDULER);
    event_release(&event);
}

static enum err on_event(void *ctx, const struct store_event *event)
{
    struct top_look *look = ctx;
    struct strbuf line = {0};
    look->last_event = event->number;
    note_drain(look, event);
    if (lines_add(&line, event)) {
        if (look->line_count == LINES_MAX) {
            drop_lines(look, LINES_MAX / 2);
        }
        look->lines = mem_resize(look->lines,
                                 look->line_count + 1,
                                 sizeof(look->lines[0]));
        look->lines[look->line_count++] = (struct model_event){
            .run = event->run,
            .wall_ns = event->wall_ns,
            .text = mem_strndup(strbuf_text(&line), strcspn(line.text, "\n")),
        };
    }
    strbuf_release(&line);
    return ERR_OK;
}

/* Read new events. Fewer events than before mean another store. */
static enum err read_events(struct top_look *look,
                            struct store *store,
                            uint64_t last_event,
                            struct diag *diag)
{
    if (last_event < look->last_event) {
        drop_lines(look, look->line_count);
        look->last_event = 0;
        look->drain = false;
    }
    uint64_t after = look->last_event;
    if (last_event > EVENTS_BACK && after < last_event - EVENTS_BACK) {
        after = last_event - EVENTS_BACK;
    }
    struct store_range range = {.after = after};
    return after < last_event
               ? store_events(store, &range, on_event, look, diag)
               : ERR_OK;
}

/* --- refreshing --------------------------------------------------------- */

static bool is_equal(const struct store_info *a, const struct store_info *b)
{
    return a->writes == b->writes && strcmp(a->id, b->id) == 0;
}

/* Give a new glance the last forecast, or a new one if that is old. */
static void pass_forecast(struct glance *glance, struct eta *last_take)
{
    int64_t age_ns =
        last_take != NULL ? glance->wall_ns - eta_wall_ns(last_take) : -1;
    if (age_ns >= 0 && age_ns < FORECAST_NS) {
        glance->eta = last_take;
    } else {
        eta_free(last_take);
        glance->eta = eta_new(glance->view.engine, glance->wall_ns);
    }
}

/* Reload everything. */
static enum err load(struct top_look *look,
                     const struct store_info *info,
                     const char *run,
                     struct diag *diag)
{
    struct glance glance;
    struct glance_options options = {
        .store = look->place.address,
        .run = look->only,
        .labels = look->labels,
    };
    enum err err = glance_take(&glance, &options, diag);
    if (err == ERR_OK) {
        err = glance_read_times(&glance, look->only, diag);
    }
    if (err != ERR_OK) {
        glance_release(&glance);
        return err;
    }
    store_close(glance.view.store);
    glance.view.store = NULL;
    model_release(&look->model);
    pass_forecast(&glance, look->glance.eta);
    look->glance.eta = NULL;
    glance_release(&look->glance);
    look->glance = glance;
    look->info = *info;
    look->seen = true;
    model_fill(&look->model,
               &look->glance,
               look->only != NULL ? look->only : run,
               look->only != NULL);
    return ERR_OK;
}

static enum err take(struct top_look *look, const char *run, struct diag *diag)
{
    struct client_view view;
    struct store_info info = {0};
    enum err err = client_peek(&view, &look->place, &info, diag);
    if (err == ERR_OK) {
        err = read_events(look, view.store, info.last_event, diag);
    }
    int64_t age_ns = clock_wall_ns() - look->glance.wall_ns;
    if (err == ERR_OK && (!look->seen || !is_equal(&info, &look->info) ||
                          age_ns < 0 || age_ns >= ANEW_NS)) {
        err = load(look, &info, run, diag);
    }
    if (err == ERR_OK) {
        strbuf_clear(&look->scheduler);
        look->model.well = model_add_scheduler(&look->scheduler, &view);
        look->model.draining = view.owned && look->drain;
    }
    client_view_release(&view);
    return err;
}

enum err
top_look_again(struct top_look *look, const char *run, struct diag *diag)
{
    look->trouble = (struct diag){0};
    enum err err = take(look, run, &look->trouble);
    if (err == ERR_OK) {
        look->trouble = (struct diag){0}; /* drop notes that were no error */
    } else if (diag != NULL) {
        *diag = look->trouble;
    }
    return err;
}

void top_look_show(struct top_look *look, const char *run)
{
    if (look->seen && look->only == NULL) {
        model_fill(&look->model, &look->glance, run, false);
    }
}

const struct model *top_look_model(struct top_look *look)
{
    look->model.store = look->place.address;
    look->model.scheduler = strbuf_text(&look->scheduler);
    look->model.trouble =
        look->trouble.text[0] != '\0' ? look->trouble.text : NULL;
    look->model.wall_ns = clock_wall_ns();
    look->model.events = look->lines;
    look->model.event_count = look->line_count;
    return &look->model;
}

const struct glance *top_look_glance(const struct top_look *look)
{
    return look->seen ? &look->glance : NULL;
}

const struct store_info *top_look_info(const struct top_look *look)
{
    return &look->info;
}
