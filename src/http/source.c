/* SPDX-License-Identifier: MIT */
/*
 * The thread owns `look`, and puts what it finds into a mail box under a lock.
 * The loop empties the box and owns what was in it: so the state that requests
 * are answered from never changes while one of them is being answered. A state
 * that the loop has replaced goes back to the thread, which takes its parsed
 * plans.
 */
#include "http/source.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "exec/outcome.h"
#include "store/event.h"
#include "view/lines.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* How often the store is polled. */
#define POLL_NS (150 * MS_NS)

/* How long to wait for a state. */
#define SETTLE_NS (2 * SECOND_NS)

enum {
    SHARE = 30,        /* one part in so many of the time may go to reading */
    AGED_SHARE = 2000, /* the same if nothing was written */
    FORECAST_SHARE = 200,
    MODELS_MAX = 8,
    TEXTS_MAX = 256,
    ID_BYTES = 33,
};

/* Least age of a forecast that is made again. */
#define FORECAST_NS (10 * SECOND_NS)

/* Name of a run, by its number. */
struct run_name {
    uint32_t number;
    char *id;
};

/* Names of the runs of one store, for events. */
struct names {
    char store[ID_BYTES]; /* its id, for the loop */
    struct run_name *items;
    uint32_t count;
    uint32_t capacity;
};

/* What the thread has for the loop. */
struct box {
    bool full;
    bool has_glance;
    struct glance glance;
    bool has_scene;
    struct top_look_scene scene;
    bool other; /* the events are of another store */
    char id[ID_BYTES];
    struct source_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    bool readable;
    struct diag trouble;
};

struct cached_model {
    char *run; /* NULL: the first unfinished one */
    struct model model;
    bool made;
};

struct cached_text {
    char *key;
    enum source_of of;
    struct strbuf text;
};

struct source {
    struct store_place place;
    struct desk *desk;
    int bell; /* an eventfd: the box is full */
    pthread_t thread;
    bool threaded;

    /* Of the thread. */
    struct top_look *look;
    struct box next; /* being filled */
    struct names names;
    int64_t load_ns; /* when the store may be read again ... */
    int64_t aged_ns; /* ... if nothing was written */
    bool scene_due;  /* it has changed since the last post */
    bool was_readable;

    pthread_mutex_t lock; /* guards what follows, up to the next comment */
    pthread_cond_t news;
    struct box box;
    struct glance retired;
    bool has_retired;
    bool soon;
    bool closing;
    pthread_cond_t posted; /* a state was put into the box */
    uint64_t loads;        /* how many were */
    struct eta *eta;       /* a new forecast */
    bool forecasting;
    int64_t forecast_ns; /* when the next one is due */

    /* Of the loop. */
    bool readable;
    struct diag trouble;
    bool has_glance;
    struct glance glance;
    struct top_look_scene scene;
    uint64_t version;
    struct cached_model models[MODELS_MAX];
    uint32_t next_model; /* to be replaced */
    struct cached_text *texts;
    uint32_t text_count;
    uint32_t text_capacity;
    char id[ID_BYTES];
    struct source_event events[SOURCE_EVENTS]; /* by number, modulo */
    uint64_t last;
    uint64_t first;
    struct names loop_names;
};

/* --- names of runs ------------------------------------------------------ */

static void forget_names(struct names *names)
{
    for (uint32_t ix = 0; ix < names->count; ix++) {
        mem_free(names->items[ix].id);
    }
    names->count = 0;
}

static enum err on_run(void *ctx, const struct store_run *run)
{
    struct names *names = ctx;
    MEM_GROW(names->items, names->count, names->capacity);
    names->items[names->count++] = (struct run_name){
        .number = run->number,
        .id = mem_strdup(run->id),
    };
    return ERR_OK;
}

static const char *known_name(const struct names *names, uint32_t number)
{
    for (uint32_t ix = names->count; ix > 0; ix--) {
        if (names->items[ix - 1].number == number) {
            return names->items[ix - 1].id;
        }
    }
    return NULL;
}

/* Return the id of a run; the store may have got another one since. */
static const char *
name_of(struct names *names, const char *address, uint32_t number)
{
    static const struct store_visitor visitor = {.run = on_run};
    static const struct store_query query = {.finished = true};
    struct diag ignored = {0};
    struct store *store = NULL;
    if (number == STORE_NONE || known_name(names, number) != NULL) {
        return number == STORE_NONE ? NULL : known_name(names, number);
    }
    forget_names(names);
    if (store_open(&store, address, STORE_READ, &ignored) != ERR_OK ||
        store_read(store, &query, &visitor, names, NULL, &ignored) != ERR_OK) {
        forget_names(names);
    }
    store_close(store);
    return known_name(names, number);
}

/* Return an event as JSON, without a newline; the caller frees it. */
static char *json_of(struct names *names,
                     const char *address,
                     const struct store_event *event)
{
    struct strbuf json = {0};
    lines_add_json(&json, event, name_of(names, address, event->run));
    char *text = mem_strndup(strbuf_text(&json), strcspn(json.text, "\n"));
    strbuf_release(&json);
    return text;
}

/* --- the box ------------------------------------------------------------ */

static void forget_events(struct box *box)
{
    for (uint32_t ix = 0; ix < box->event_count; ix++) {
        mem_free(box->events[ix].json);
    }
    box->event_count = 0;
}

static void box_release(struct box *box)
{
    forget_events(box);
    mem_free(box->events);
    glance_release(&box->glance);
    top_look_scene_release(&box->scene);
    *box = (struct box){0};
}

static void on_event(void *ctx, const struct store_event *event)
{
    struct source *source = ctx;
    struct box *box = &source->next;
    struct event read = {0};
    event_read(&read, event);
    struct source_event made = {
        .number = event->number,
        .json = json_of(&source->names, source->place.shown, event),
        .run = event->run,
        .task = event->task,
        .wall_ns = event->wall_ns,
    };
    if (read.kind == EVENT_KIND_TASK) {
        made.asks = read.as.task.to == TASK_PARKED ||
                    read.as.task.to == TASK_FAILED ||
                    read.as.task.waits != NULL;
    } else if (read.kind == EVENT_KIND_ATTEMPT) {
        made.ended = true;
        made.bad =
            strcmp(read.as.attempt.outcome, outcome_name(OUTCOME_DONE)) != 0;
        made.took_ns =
            read.as.attempt.took_ns > 0 ? read.as.attempt.took_ns : 0;
    }
    event_release(&read);
    MEM_GROW(box->events, box->event_count, box->event_capacity);
    box->events[box->event_count++] = made;
}

static void on_other(void *ctx)
{
    struct source *source = ctx;
    forget_events(&source->next);
    forget_names(&source->names);
    source->next.other = true;
}

/* Append the events of one box to another. */
static void move_events(struct box *to, struct box *from)
{
    if (from->other) {
        forget_events(to);
        to->other = true;
    }
    for (uint32_t ix = 0; ix < from->event_count; ix++) {
        MEM_GROW(to->events, to->event_count, to->event_capacity);
        to->events[to->event_count++] = from->events[ix];
    }
    from->event_count = 0;
}

/* Put what was found into the box; the loop may not have emptied it. */
static void post(struct source *source)
{
    static const uint64_t one = 1;
    struct box *box = &source->box;
    struct box *next = &source->next;
    (void)pthread_mutex_lock(&source->lock);
    move_events(box, next);
    if (next->has_glance) {
        glance_release(&box->glance);
        box->glance = next->glance;
        box->has_glance = true;
        source->loads++;
        (void)pthread_cond_broadcast(&source->posted);
    }
    if (next->has_scene) {
        top_look_scene_release(&box->scene);
        box->scene = next->scene;
        box->has_scene = true;
    }
    box->readable = next->readable;
    box->trouble = next->trouble;
    memcpy(box->id, next->id, sizeof(box->id));
    box->full = true;
    (void)pthread_mutex_unlock(&source->lock);
    next->glance = (struct glance){0};
    next->scene = (struct top_look_scene){0};
    box_release(next);
    ssize_t written = write(source->bell, &one, sizeof(one));
    (void)written; /* fails only if the bell rings already */
}

/* --- forecasts ---------------------------------------------------------- */

/* Forecast the ends of the runs, in a thread of the desk. */
static void
forecast(void *ctx, const char *refused, struct http_response *response)
{
    struct source *source = ctx;
    struct glance glance = {0};
    struct diag ignored = {0};
    struct glance_options options = {
        .store = source->place.shown,
        .forecast = true,
    };
    int64_t begin_ns = clock_boot_ns();
    (void)response;
    if (refused == NULL && glance_take(&glance, &options, &ignored) != ERR_OK) {
        glance_release(&glance);
        glance = (struct glance){0};
    }
    int64_t end_ns = clock_boot_ns();
    int64_t pause_ns = (end_ns - begin_ns) * FORECAST_SHARE;
    (void)pthread_mutex_lock(&source->lock);
    eta_free(source->eta);
    source->eta = glance.eta;
    source->soon = source->soon || glance.eta != NULL;
    source->forecasting = false;
    source->forecast_ns =
        end_ns + (pause_ns > FORECAST_NS ? pause_ns : FORECAST_NS);
    (void)pthread_cond_signal(&source->news);
    (void)pthread_mutex_unlock(&source->lock);
    glance.eta = NULL;
    glance_release(&glance);
}

/* Have a forecast made, if it is due. */
static void want_forecast(struct source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    bool due = !source->forecasting && clock_boot_ns() >= source->forecast_ns;
    source->forecasting = source->forecasting || due;
    (void)pthread_mutex_unlock(&source->lock);
    struct desk_work work = {.run = forecast, .ctx = source};
    if (due && desk_send(source->desk, &work) != ERR_OK) {
        (void)pthread_mutex_lock(&source->lock);
        source->forecasting = false; /* the next load asks again */
        (void)pthread_mutex_unlock(&source->lock);
    }
}

/* --- the thread --------------------------------------------------------- */

/* Read the store again, and set the time of the next reading. */
static enum err load(struct source *source)
{
    int64_t begin_ns = clock_boot_ns();
    enum err err = top_look_load(source->look, &source->next.trouble);
    int64_t end_ns = clock_boot_ns();
    int64_t took_ns = end_ns - begin_ns;
    int64_t aged_ns = took_ns * AGED_SHARE;
    source->load_ns = end_ns + took_ns * (SHARE - 1);
    source->aged_ns =
        end_ns + (aged_ns > 10 * SECOND_NS ? aged_ns : 10 * SECOND_NS);
    if (err == ERR_OK) {
        source->next.glance = top_look_detach(source->look);
        source->next.has_glance = true;
        want_forecast(source);
    }
    return err;
}

/* Poll the store once, and post what is new. */
static void look(struct source *source, bool soon)
{
    struct top_look_news news;
    struct box *next = &source->next;
    int64_t now_ns = clock_boot_ns();
    enum err err = top_look_poll(source->look, &news, &next->trouble);
    if (err == ERR_OK &&
        (soon || next->other || (news.outdated && now_ns >= source->load_ns) ||
         (news.aged && now_ns >= source->aged_ns))) {
        err = load(source);
    }
    next->readable = err == ERR_OK;
    source->scene_due = source->scene_due || news.owner || news.events;
    if (next->readable && source->scene_due) {
        next->scene = top_look_scene(source->look);
        next->has_scene = true;
        source->scene_due = false;
    }
    memcpy(next->id, top_look_id(source->look), sizeof(next->id));
    if (next->has_glance || next->has_scene || next->other ||
        next->readable != source->was_readable) {
        post(source);
    }
    source->was_readable = err == ERR_OK;
}

/* Return the time so long from now, for a condition. */
static struct timespec time_after(int64_t wait_ns)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t until_ns = at.tv_nsec + wait_ns;
    at.tv_sec += until_ns / SECOND_NS;
    at.tv_nsec = until_ns % SECOND_NS;
    return at;
}

/* Wait for the next poll; *soon_out: a load is wanted. False: stop. */
static bool wait(struct source *source, bool *soon_out)
{
    struct timespec at = time_after(POLL_NS);
    int failed = 0;
    (void)pthread_mutex_lock(&source->lock);
    while (!source->soon && !source->closing && failed == 0) {
        failed = pthread_cond_timedwait(&source->news, &source->lock, &at);
    }
    bool go_on = !source->closing;
    *soon_out = source->soon;
    source->soon = false;
    struct eta *eta = source->eta;
    source->eta = NULL;
    struct glance retired = source->retired;
    bool has_retired = source->has_retired;
    source->retired = (struct glance){0};
    source->has_retired = false;
    (void)pthread_mutex_unlock(&source->lock);
    if (eta != NULL) {
        top_look_forecast(source->look, eta);
    }
    if (has_retired) {
        top_look_recycle(source->look, &retired);
    }
    return go_on;
}

static void *follow(void *ctx)
{
    struct source *source = ctx;
    bool soon;
    while (wait(source, &soon)) {
        look(source, soon);
    }
    return NULL;
}

static int init_locks(struct source *source)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    INVARIANT(failed == 0);
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed =
        failed != 0 ? failed : pthread_cond_init(&source->news, &attributes);
    failed =
        failed != 0 ? failed : pthread_cond_init(&source->posted, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return failed != 0 ? failed : pthread_mutex_init(&source->lock, NULL);
}

enum err source_open(struct source **out,
                     const struct store_place *place,
                     struct desk *desk,
                     struct diag *diag)
{
    struct source *source = mem_zalloc(1, sizeof(*source));
    source->place = store_place_copy(place);
    source->desk = desk;
    source->look = top_look_new(&(struct top_look_options){
        .place = place,
        .event = on_event,
        .other = on_other,
        .ctx = source,
    });
    int failed = init_locks(source);
    INVARIANT(failed == 0);
    source->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (source->bell < 0) {
        failed = errno;
    } else {
        look(source, true); /* the first clients find a state */
        failed = pthread_create(&source->thread, NULL, follow, source);
        source->threaded = failed == 0;
    }
    *out = source;
    if (failed != 0) {
        source_close(source);
        *out = NULL;
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "cannot follow the store: %s",
                        strerror(failed));
    }
    return ERR_OK;
}

/* --- the loop ----------------------------------------------------------- */

static void drop_events(struct source *source)
{
    for (uint32_t ix = 0; ix < SOURCE_EVENTS; ix++) {
        mem_free(source->events[ix].json);
        source->events[ix] = (struct source_event){0};
    }
    source->first = 0;
    source->last = 0;
}

static void drop_models(struct source *source)
{
    for (uint32_t ix = 0; ix < MODELS_MAX; ix++) {
        model_release(&source->models[ix].model);
        mem_free(source->models[ix].run);
        source->models[ix] = (struct cached_model){0};
    }
}

static void drop_texts(struct source *source, enum source_of of)
{
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < source->text_count; ix++) {
        struct cached_text *text = &source->texts[ix];
        if (text->of == of || text->of == SOURCE_OF_BOTH) {
            mem_free(text->key);
            strbuf_release(&text->text);
        } else {
            source->texts[kept++] = *text;
        }
    }
    source->text_count = kept;
}

static void keep(struct source *source, struct source_event event)
{
    struct source_event *place = &source->events[event.number % SOURCE_EVENTS];
    bool follows = source->last + 1 == event.number;
    if (source->last > 0 && !follows) {
        drop_events(source); /* the thread has left some out */
    }
    mem_free(place->json);
    *place = event;
    source->last = event.number;
    bool fits = event.number < source->first + SOURCE_EVENTS;
    source->first = source->first == 0 ? event.number
                    : fits             ? source->first
                                       : event.number - SOURCE_EVENTS + 1;
}

void source_stop(struct source *source)
{
    if (source == NULL || !source->threaded) {
        return;
    }
    (void)pthread_mutex_lock(&source->lock);
    source->closing = true;
    (void)pthread_cond_broadcast(&source->posted);
    (void)pthread_cond_signal(&source->news);
    (void)pthread_mutex_unlock(&source->lock);
    (void)pthread_join(source->thread, NULL);
    source->threaded = false;
}

/* Wait until the desk has nothing of this source. */
static void wait_for_forecast(struct source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    while (source->forecasting) {
        (void)pthread_cond_wait(&source->news, &source->lock);
    }
    (void)pthread_mutex_unlock(&source->lock);
}

void source_close(struct source *source)
{
    if (source == NULL) {
        return;
    }
    source_stop(source);
    wait_for_forecast(source);
    drop_events(source);
    drop_models(source);
    drop_texts(source, SOURCE_OF_STATE);
    drop_texts(source, SOURCE_OF_SCENE);
    mem_free(source->texts);
    glance_release(&source->glance);
    glance_release(&source->retired);
    top_look_scene_release(&source->scene);
    box_release(&source->box);
    box_release(&source->next);
    eta_free(source->eta);
    forget_names(&source->names);
    mem_free(source->names.items);
    forget_names(&source->loop_names);
    mem_free(source->loop_names.items);
    top_look_free(source->look);
    if (source->bell >= 0) {
        (void)close(source->bell);
    }
    (void)pthread_mutex_destroy(&source->lock);
    (void)pthread_cond_destroy(&source->news);
    (void)pthread_cond_destroy(&source->posted);
    store_place_release(&source->place);
    mem_free(source);
}

int source_fd(const struct source *source)
{
    return source->bell;
}

/* Show a new state, and return the old one to the thread. */
static void take_glance(struct source *source, struct glance *glance)
{
    drop_models(source);
    drop_texts(source, SOURCE_OF_STATE);
    struct glance old = source->glance;
    source->glance = *glance;
    source->has_glance = true;
    (void)pthread_mutex_lock(&source->lock);
    if (!source->has_retired) {
        source->retired = old;
        source->has_retired = true;
        old = (struct glance){0};
    }
    (void)pthread_mutex_unlock(&source->lock);
    glance_release(&old);
}

bool source_take(struct source *source)
{
    uint64_t count;
    if (read(source->bell, &count, sizeof(count)) < 0 && errno != EAGAIN) {
        return false; /* the next one wakes us */
    }
    (void)pthread_mutex_lock(&source->lock);
    struct box box = source->box;
    source->box = (struct box){0};
    (void)pthread_mutex_unlock(&source->lock);
    if (!box.full) {
        return false;
    }
    source->version++;
    source->readable = box.readable;
    source->trouble = box.trouble;
    if (box.other) {
        drop_events(source);
    }
    memcpy(source->id, box.id, sizeof(source->id));
    for (uint32_t ix = 0; ix < box.event_count; ix++) {
        keep(source, box.events[ix]);
    }
    box.event_count = 0;
    if (box.has_glance) {
        take_glance(source, &box.glance);
        box.glance = (struct glance){0};
    }
    if (box.has_scene) {
        drop_texts(source, SOURCE_OF_SCENE);
        top_look_scene_release(&source->scene);
        source->scene = box.scene;
        box.scene = (struct top_look_scene){0};
    }
    box_release(&box);
    return true;
}

void source_soon(struct source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    source->soon = true;
    (void)pthread_cond_signal(&source->news);
    (void)pthread_mutex_unlock(&source->lock);
}

void source_settle(struct source *source)
{
    struct timespec at = time_after(SETTLE_NS);
    int failed = 0;
    (void)pthread_mutex_lock(&source->lock);
    /* A load that is under way may have begun before. */
    for (uint32_t round = 0; round < 2; round++) {
        uint64_t loads = source->loads;
        source->soon = true;
        (void)pthread_cond_signal(&source->news);
        while (source->loads == loads && !source->closing && failed == 0) {
            failed =
                pthread_cond_timedwait(&source->posted, &source->lock, &at);
        }
    }
    (void)pthread_mutex_unlock(&source->lock);
}

uint64_t source_version(const struct source *source)
{
    return source->version;
}

const struct store_place *source_place(const struct source *source)
{
    return &source->place;
}

const struct glance *source_glance(struct source *source, struct diag *diag)
{
    if (!source->readable || !source->has_glance) {
        (void)diag_set(diag,
                       ERR_UNAVAILABLE,
                       "%s",
                       source->trouble.text[0] != '\0'
                           ? source->trouble.text
                           : "the store was not read yet");
        return NULL;
    }
    return &source->glance;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

const struct model *source_model(struct source *source, const char *run)
{
    struct cached_model *found = NULL;
    INVARIANT(source->has_glance);
    for (uint32_t ix = 0; ix < MODELS_MAX && found == NULL; ix++) {
        struct cached_model *cached = &source->models[ix];
        found = cached->made && is_same(cached->run, run) ? cached : NULL;
    }
    if (found == NULL) {
        found = &source->models[source->next_model++ % MODELS_MAX];
        model_release(&found->model);
        mem_free(found->run);
        *found = (struct cached_model){
            .run = run != NULL ? mem_strdup(run) : NULL,
            .made = true,
        };
        model_fill(&found->model, &source->glance, run, false);
    }
    found->model.store = source->place.shown;
    found->model.scheduler = source->scene.scheduler;
    found->model.well = source->scene.well;
    found->model.draining = source->scene.draining;
    found->model.events = source->scene.lines;
    found->model.event_count = source->scene.line_count;
    found->model.wall_ns = clock_wall_ns();
    return &found->model;
}

const struct top_look_scene *source_scene(const struct source *source)
{
    return &source->scene;
}

struct strbuf *source_text(struct source *source,
                           enum source_of of,
                           const char *key,
                           bool *known_out)
{
    *known_out = false;
    for (uint32_t ix = 0; ix < source->text_count; ix++) {
        struct cached_text *text = &source->texts[ix];
        if (text->of == of && strcmp(text->key, key) == 0) {
            *known_out = true;
            return &text->text;
        }
    }
    if (source->text_count == TEXTS_MAX) { /* of many runs */
        drop_texts(source, SOURCE_OF_STATE);
        drop_texts(source, SOURCE_OF_SCENE);
    }
    MEM_GROW(source->texts, source->text_count, source->text_capacity);
    struct cached_text *made = &source->texts[source->text_count++];
    *made = (struct cached_text){.key = mem_strdup(key), .of = of};
    return &made->text;
}

uint64_t source_last(const struct source *source)
{
    return source->last;
}

uint64_t source_first(const struct source *source)
{
    return source->first;
}

const char *source_id(const struct source *source)
{
    return source->id;
}

const struct source_event *source_event(const struct source *source,
                                        uint64_t number)
{
    const struct source_event *event = &source->events[number % SOURCE_EVENTS];
    return event->json != NULL && event->number == number ? event : NULL;
}

int64_t source_asks_ns(const struct source *source, uint32_t run, uint32_t task)
{
    for (uint64_t number = source->last; number > 0 && number >= source->first;
         number--) {
        const struct source_event *event = source_event(source, number);
        if (event != NULL && event->asks && event->run == run &&
            event->task == task) {
            return event->wall_ns;
        }
    }
    return 0;
}

/* --- events of the store ------------------------------------------------ */

void source_add_event(struct strbuf *out, uint64_t number, const char *json)
{
    strbuf_addf(out,
                "id: %llu\ndata: %s\n\n",
                (unsigned long long)number,
                json);
}

/* Events being read. */
struct reading {
    struct source *source;
    struct strbuf *out;
    enum source_form form;
    bool begun; /* one was written */
    uint64_t last;
};

/* Forget the names of another store that was at the address. */
static enum err
check_names(struct names *names, struct store *store, struct diag *diag)
{
    static const struct store_visitor nothing = {0};
    struct store_query query = {0};
    struct store_info info;
    enum err err = store_read(store, &query, &nothing, NULL, &info, diag);
    if (err == ERR_OK && strcmp(info.id, names->store) != 0) {
        forget_names(names);
        memcpy(names->store, info.id, sizeof(names->store));
    }
    return err;
}

static enum err add_event(void *ctx, const struct store_event *event)
{
    struct reading *reading = ctx;
    struct source *source = reading->source;
    char *json = json_of(&source->loop_names, source->place.shown, event);
    if (reading->form == SOURCE_STREAM) {
        source_add_event(reading->out, event->number, json);
    } else {
        strbuf_addf(reading->out, "%s%s", reading->begun ? ",\n " : "", json);
    }
    reading->begun = true;
    reading->last = event->number;
    mem_free(json);
    return ERR_OK;
}

enum err source_add_events(struct source *source,
                           struct strbuf *out,
                           enum source_form form,
                           uint64_t after,
                           uint32_t max,
                           uint64_t *last_out,
                           struct diag *diag)
{
    struct reading reading = {
        .source = source,
        .out = out,
        .form = form,
        .last = after,
    };
    struct store_range range = {.after = after, .max = max};
    struct store *store = NULL;
    enum err err = store_open(&store, source->place.address, STORE_READ, diag);
    if (err == ERR_OK) {
        err = check_names(&source->loop_names, store, diag);
    }
    if (err == ERR_OK) {
        err = store_events(store, &range, add_event, &reading, diag);
    }
    store_close(store);
    *last_out = reading.last;
    return err;
}
