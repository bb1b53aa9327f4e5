/* SPDX-License-Identifier: MIT */
#include "http/source.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "view/lines.h"

#include <string.h>

#define REFRESH_NS (SECOND_NS / 4)
enum { SHARE = 5 }; /* one part in so many of the time may go to reading */

/* Name of a run, by its number. */
struct run_name {
    uint32_t number;
    char *id;
};

struct source {
    struct store_place place;
    struct top_look *look;
    struct diag trouble;
    int64_t next_ns; /* when a refresh is due */
    uint64_t writes; /* as of the last refresh */
    char id[33];
    bool readable;
    struct source_event events[SOURCE_EVENTS]; /* by number, modulo */
    uint64_t last;
    uint64_t first;
    struct run_name *names;
    uint32_t name_count;
    uint32_t name_capacity;
};

struct source *source_new(const struct store_place *place)
{
    static const struct labels none = {0};
    struct source *source = mem_zalloc(1, sizeof(*source));
    source->place = store_place_copy(place);
    source->look = top_look_new(place, NULL, &none);
    return source;
}

static void drop_events(struct source *source)
{
    for (uint32_t ix = 0; ix < SOURCE_EVENTS; ix++) {
        mem_free(source->events[ix].json);
        source->events[ix] = (struct source_event){0};
    }
    source->first = 0;
    source->last = 0;
}

void source_free(struct source *source)
{
    if (source == NULL) {
        return;
    }
    drop_events(source);
    for (uint32_t ix = 0; ix < source->name_count; ix++) {
        mem_free(source->names[ix].id);
    }
    mem_free(source->names);
    top_look_free(source->look);
    store_place_release(&source->place);
    mem_free(source);
}

/* --- events ------------------------------------------------------------- */

void source_add_event(struct strbuf *out, uint64_t number, const char *json)
{
    strbuf_addf(out,
                "id: %llu\ndata: %s\n\n",
                (unsigned long long)number,
                json);
}

static enum err on_run(void *ctx, const struct store_run *run)
{
    struct source *source = ctx;
    MEM_GROW(source->names, source->name_count, source->name_capacity);
    source->names[source->name_count++] = (struct run_name){
        .number = run->number,
        .id = mem_strdup(run->id),
    };
    return ERR_OK;
}

static const char *known_name(const struct source *source, uint32_t number)
{
    for (uint32_t ix = source->name_count; ix > 0; ix--) {
        if (source->names[ix - 1].number == number) {
            return source->names[ix - 1].id;
        }
    }
    return NULL;
}

/* Events being read. */
struct reading {
    struct source *source;
    struct store *store;
    struct strbuf *out; /* NULL: keep them */
    enum source_form form;
    bool begun; /* one was written */
    uint64_t last;
};

/* Return the id of a run; the store may have got another one since. */
static const char *name_of(const struct reading *reading, uint32_t number)
{
    static const struct store_visitor visitor = {.run = on_run};
    static const struct store_query query = {.finished = true};
    struct source *source = reading->source;
    struct diag ignored = {0};
    if (number == STORE_NONE) {
        return NULL;
    }
    if (known_name(source, number) == NULL) {
        for (uint32_t ix = 0; ix < source->name_count; ix++) {
            mem_free(source->names[ix].id);
        }
        source->name_count = 0;
        if (store_read(reading->store,
                       &query,
                       &visitor,
                       source,
                       NULL,
                       &ignored) != ERR_OK) {
            return NULL;
        }
    }
    return known_name(source, number);
}

static void keep(struct source *source, uint64_t number, const char *json)
{
    struct source_event *place = &source->events[number % SOURCE_EVENTS];
    mem_free(place->json);
    *place = (struct source_event){
        .number = number,
        .json = mem_strdup(json),
    };
    source->last = number;
    bool fits = number < source->first + SOURCE_EVENTS;
    source->first = source->first == 0 ? number
                    : fits             ? source->first
                                       : number - SOURCE_EVENTS + 1;
}

static enum err on_event(void *ctx, const struct store_event *event)
{
    struct reading *reading = ctx;
    struct strbuf json = {0};
    lines_add_json(&json, event, name_of(reading, event->run));
    json.len = strcspn(strbuf_text(&json), "\n");
    json.text[json.len] = '\0';
    if (reading->out == NULL) {
        keep(reading->source, event->number, json.text);
    } else if (reading->form == SOURCE_STREAM) {
        source_add_event(reading->out, event->number, json.text);
    } else {
        strbuf_addf(reading->out,
                    "%s%s",
                    reading->begun ? ",\n " : "",
                    json.text);
    }
    reading->begun = true;
    reading->last = event->number;
    strbuf_release(&json);
    return ERR_OK;
}

static enum err read_events(struct reading *reading,
                            const struct store_range *range,
                            struct diag *diag)
{
    enum err err = store_open(&reading->store,
                              reading->source->place.address,
                              STORE_READ,
                              diag);
    if (err == ERR_OK) {
        err = store_events(reading->store, range, on_event, reading, diag);
    }
    store_close(reading->store);
    return err;
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
    enum err err = read_events(&reading, &range, diag);
    *last_out = reading.last;
    return err;
}

/* Keep the events since the last refresh; of a store that was not looked at
 * before, the newest. */
static enum err follow(struct source *source, const struct store_info *info)
{
    if (strcmp(info->id, source->id) != 0 || info->last_event < source->last) {
        drop_events(source);
        memcpy(source->id, info->id, sizeof(source->id));
    }
    uint64_t after = source->last;
    if (info->last_event > SOURCE_EVENTS &&
        after < info->last_event - SOURCE_EVENTS) {
        after = info->last_event - SOURCE_EVENTS;
        drop_events(source);
    }
    struct reading reading = {.source = source};
    struct store_range range = {.after = after};
    return after < info->last_event
               ? read_events(&reading, &range, &source->trouble)
               : ERR_OK;
}

/* --- the interface ------------------------------------------------------ */

bool source_refresh(struct source *source)
{
    int64_t begin_ns = clock_boot_ns();
    if (begin_ns < source->next_ns) {
        return false;
    }
    source->trouble = (struct diag){0};
    bool was = source->readable;
    enum err err = top_look_again(source->look, NULL, &source->trouble);
    const struct store_info *info = top_look_info(source->look);
    if (err == ERR_OK) {
        err = follow(source, info);
    }
    source->readable = err == ERR_OK;
    int64_t took_ns = clock_boot_ns() - begin_ns;
    int64_t pause_ns = took_ns * (SHARE - 1);
    source->next_ns =
        begin_ns + took_ns + (pause_ns > REFRESH_NS ? pause_ns : REFRESH_NS);
    bool changed = source->readable != was ||
                   (source->readable && info->writes != source->writes);
    source->writes = info->writes;
    return changed;
}

void source_soon(struct source *source)
{
    source->next_ns = 0;
}

const struct store_place *source_place(const struct source *source)
{
    return &source->place;
}

const struct glance *source_glance(struct source *source, struct diag *diag)
{
    const struct glance *glance = top_look_glance(source->look);
    if (!source->readable || glance == NULL) {
        (void)diag_set(diag,
                       ERR_UNAVAILABLE,
                       "%s",
                       source->trouble.text[0] != '\0'
                           ? source->trouble.text
                           : "the store was not read yet");
        return NULL;
    }
    return glance;
}

const struct model *source_model(struct source *source, const char *run)
{
    top_look_show(source->look, run);
    return top_look_model(source->look);
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
