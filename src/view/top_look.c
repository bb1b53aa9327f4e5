/* SPDX-License-Identifier: MIT */
/*
 * Store poller of `sluice top` and `sluice serve`. A mark of the store that has
 * not changed means that nothing was written: polling an idle store costs two
 * calls of stat(). A store counts its transactions: an equal count means an
 * equal state.
 *
 * Whether the scheduler drains is not stored, but derived from the events: a
 * drain request since the last scheduler started.
 */
#include "view/top_look.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "store/event.h"
#include "view/lines.h"

#include <string.h>

enum {
    EVENTS_BACK = 1000, /* maximum events to read per poll */
    LINES_MAX = 400,    /* when full, half of the lines are dropped */
};

/* Maximum age of the model. A safeguard: a state that changes without a
 * transaction must not be shown forever. */
#define ANEW_NS (10 * SECOND_NS)

/* Maximum age of the forecast: it takes some tenths of a second to compute. */
#define FORECAST_NS (10 * SECOND_NS)

/* How often to check whether the scheduler lives, if nothing was written. */
#define OWNER_NS (1 * SECOND_NS)

struct top_look {
    struct store_place place;
    char *only;
    struct top_look_options options;
    struct client_view view; /* of the last poll; its store stays open */
    struct store_mark mark;  /* taken before it */
    int64_t polled_ns;
    struct store_info polled; /* by the last poll */
    struct glance glance;
    struct store_info info; /* read before the glance */
    struct glance spare;    /* a state that is not used any more */
    bool seen;
    struct eta *eta; /* for later states; NULL: none */
    struct model model;
    bool filled;             /* the model, from the glance */
    char *shown;             /* the run to show, or NULL */
    struct strbuf scheduler; /* in words, with its age */
    struct strbuf owner;     /* the same without its age */
    struct diag trouble;
    struct model_event *lines;
    uint32_t line_count;
    uint64_t last_event; /* last event read */
    bool drain;          /* derived from the events */
};

struct top_look *top_look_new(const struct top_look_options *options)
{
    struct top_look *look = mem_zalloc(1, sizeof(*look));
    look->place = store_place_copy(options->place);
    look->options = *options;
    look->options.place = NULL;
    look->only = options->only != NULL ? mem_strdup(options->only) : NULL;
    look->options.only = look->only;
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
    glance_release(&look->spare);
    glance_release(&look->glance);
    eta_free(look->eta);
    client_view_release(&look->view);
    strbuf_release(&look->scheduler);
    strbuf_release(&look->owner);
    drop_lines(look, look->line_count);
    mem_free(look->lines);
    mem_free(look->shown);
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
    if (look->options.event != NULL) {
        look->options.event(look->options.ctx, event);
    }
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

/* Begin with another store. */
static void forget_events(struct top_look *look)
{
    if (look->options.other != NULL) {
        look->options.other(look->options.ctx);
    }
    drop_lines(look, look->line_count);
    look->last_event = 0;
    look->drain = false;
}

/* Read the events up to this number that are new. */
static enum err read_events(struct top_look *look,
                            struct store *store,
                            uint64_t last_event,
                            struct diag *diag)
{
    uint64_t after = look->last_event;
    if (last_event > EVENTS_BACK && after < last_event - EVENTS_BACK) {
        after = last_event - EVENTS_BACK;
    }
    struct store_range range = {.after = after};
    return after < last_event
               ? store_events(store, &range, on_event, look, diag)
               : ERR_OK;
}

/* --- polling ------------------------------------------------------------ */

static bool is_equal(const struct store_info *a, const struct store_info *b)
{
    return a->writes == b->writes && strcmp(a->id, b->id) == 0;
}

/* Whether nothing can have changed since the last poll. */
static bool is_quiet(const struct top_look *look, const struct store_mark *mark)
{
    return look->mark.settled &&
           memcmp(mark->state, look->mark.state, sizeof(mark->state)) == 0 &&
           clock_boot_ns() - look->polled_ns < OWNER_NS;
}

/* Open the store, unless it is open and still that of its address; *mark_out is
 * its mark. */
static enum err open_store(struct top_look *look,
                           struct store_mark *mark_out,
                           struct diag *diag)
{
    if (look->view.store != NULL &&
        store_mark(look->view.store, mark_out, diag) == ERR_OK &&
        memcmp(mark_out->place, look->mark.place, sizeof(mark_out->place)) ==
            0) {
        return ERR_OK;
    }
    client_view_release(&look->view);
    look->mark = (struct store_mark){0};
    enum err err =
        store_open(&look->view.store, look->place.address, STORE_READ, diag);
    return err == ERR_OK ? store_mark(look->view.store, mark_out, diag) : err;
}

/* Describe the scheduler; return whether the words have changed. */
static bool describe_owner(struct top_look *look)
{
    struct strbuf text = {0};
    bool well = model_add_scheduler(&text, &look->view, false);
    bool draining = look->view.owned && look->drain;
    bool changed = well != look->model.well ||
                   draining != look->model.draining ||
                   strcmp(strbuf_text(&text), strbuf_text(&look->owner)) != 0;
    strbuf_release(&look->owner);
    look->owner = text;
    strbuf_clear(&look->scheduler);
    (void)model_add_scheduler(&look->scheduler, &look->view, true);
    look->model.well = well;
    look->model.draining = draining;
    return changed;
}

static enum err
poll_store(struct top_look *look, struct top_look_news *out, struct diag *diag)
{
    struct store_mark mark;
    struct store_info info = {0};
    enum err err = open_store(look, &mark, diag);
    if (err == ERR_OK && is_quiet(look, &mark)) {
        return ERR_OK;
    }
    if (err == ERR_OK) {
        err = client_peek(&look->view, &info, diag);
    }
    if (err == ERR_OK && (strcmp(info.id, look->polled.id) != 0 ||
                          info.last_event < look->last_event)) {
        forget_events(look);
        out->events = true;
    }
    uint64_t before = look->last_event;
    if (err == ERR_OK) {
        err = read_events(look, look->view.store, info.last_event, diag);
        out->events = out->events || look->last_event != before;
    }
    if (err == ERR_OK) {
        look->mark = mark;
        look->polled = info;
        look->polled_ns = clock_boot_ns();
        out->owner = describe_owner(look);
    } else {
        client_view_release(&look->view);
    }
    return err;
}

/* Note the outcome of a poll or load. */
static enum err note(struct top_look *look, enum err err, struct diag *diag)
{
    if (err == ERR_OK) {
        look->trouble = (struct diag){0}; /* drop notes that were no error */
    } else if (diag != NULL) {
        *diag = look->trouble;
    }
    return err;
}

enum err top_look_poll(struct top_look *look,
                       struct top_look_news *out,
                       struct diag *diag)
{
    *out = (struct top_look_news){0};
    look->trouble = (struct diag){0};
    enum err err = poll_store(look, out, &look->trouble);
    int64_t age_ns = clock_wall_ns() - look->glance.wall_ns;
    out->outdated =
        err == ERR_OK && (!look->seen || !is_equal(&look->polled, &look->info));
    out->aged = err == ERR_OK && (age_ns < 0 || age_ns >= ANEW_NS);
    return note(look, err, diag);
}

/* --- loading ------------------------------------------------------------ */

/* Give a new glance a forecast: the last one, or a new one if that is old. */
static void pass_forecast(struct top_look *look, struct glance *glance)
{
    int64_t age_ns =
        look->eta != NULL ? glance->wall_ns - eta_wall_ns(look->eta) : -1;
    if (look->options.forecast && (age_ns < 0 || age_ns >= FORECAST_NS)) {
        eta_free(look->eta);
        look->eta = eta_new(glance->view.engine, glance->wall_ns);
    }
    glance->eta = eta_copy(look->eta);
}

static enum err load(struct top_look *look, struct diag *diag)
{
    struct glance glance;
    struct store_info info = look->polled;
    struct glance_options options = {
        .store = look->place.shown,
        .run = look->only,
        .labels = look->options.labels,
        .spare = look->spare.view.engine,
    };
    enum err err = glance_take(&glance, &options, diag);
    glance_release(&look->spare);
    look->spare = (struct glance){0};
    if (err == ERR_OK && look->options.times) {
        err = glance_read_times(&glance, look->only, diag);
    }
    if (err != ERR_OK) {
        glance_release(&glance);
        return err;
    }
    store_close(glance.view.store);
    glance.view.store = NULL;
    pass_forecast(look, &glance);
    model_release(&look->model);
    look->filled = false;
    top_look_recycle(look, &look->glance);
    look->glance = glance;
    look->info = info;
    look->seen = true;
    return ERR_OK;
}

enum err top_look_load(struct top_look *look, struct diag *diag)
{
    look->trouble = (struct diag){0};
    return note(look, load(look, &look->trouble), diag);
}

enum err top_look_again(struct top_look *look, struct diag *diag)
{
    struct top_look_news news;
    enum err err = top_look_poll(look, &news, diag);
    bool due = news.outdated || news.aged;
    return err == ERR_OK && due ? top_look_load(look, diag) : err;
}

void top_look_show(struct top_look *look, const char *run)
{
    if (run == look->shown ||
        (run != NULL && look->shown != NULL && strcmp(run, look->shown) == 0)) {
        return;
    }
    char *copy = run != NULL ? mem_strdup(run) : NULL;
    mem_free(look->shown);
    look->shown = copy;
    look->filled = false;
}

const struct model *top_look_model(struct top_look *look)
{
    if (look->seen && !look->filled) {
        model_fill(&look->model,
                   &look->glance,
                   look->only != NULL ? look->only : look->shown,
                   look->only != NULL);
        look->filled = true;
    }
    look->model.store = look->place.shown;
    look->model.scheduler = strbuf_text(&look->scheduler);
    look->model.trouble =
        look->trouble.text[0] != '\0' ? look->trouble.text : NULL;
    look->model.wall_ns = clock_wall_ns();
    look->model.events = look->lines;
    look->model.event_count = look->line_count;
    return &look->model;
}

const char *top_look_id(const struct top_look *look)
{
    return look->polled.id;
}

/* --- states for others --------------------------------------------------- */

struct glance top_look_detach(struct top_look *look)
{
    INVARIANT(look->seen);
    struct glance glance = look->glance;
    model_release(&look->model);
    look->filled = false;
    look->glance = (struct glance){.wall_ns = glance.wall_ns};
    return glance;
}

void top_look_recycle(struct top_look *look, struct glance *glance_take)
{
    glance_release(&look->spare);
    look->spare = *glance_take;
    *glance_take = (struct glance){0};
}

void top_look_forecast(struct top_look *look, struct eta *eta_take)
{
    eta_free(look->eta);
    look->eta = eta_take;
}

struct top_look_scene top_look_scene(const struct top_look *look)
{
    struct top_look_scene scene = {
        .scheduler = mem_strdup(strbuf_text(&look->owner)),
        .owned = look->view.owned,
        .state = client_state_name(&look->view),
        .well = look->model.well,
        .draining = look->model.draining,
        .lines = mem_zalloc(look->line_count, sizeof(scene.lines[0])),
        .line_count = look->line_count,
    };
    for (uint32_t ix = 0; ix < scene.line_count; ix++) {
        scene.lines[ix] = look->lines[ix];
        scene.lines[ix].text = mem_strdup(look->lines[ix].text);
    }
    return scene;
}

void top_look_scene_release(struct top_look_scene *scene)
{
    for (uint32_t ix = 0; ix < scene->line_count; ix++) {
        mem_free(scene->lines[ix].text);
    }
    mem_free(scene->lines);
    mem_free(scene->scheduler);
    *scene = (struct top_look_scene){0};
}
