/* SPDX-License-Identifier: MIT */
/*
 * Limits of the store, which hold for all its runs together: those that people
 * set, and the slots of workers.
 *
 * Each has up to two maxima: of the file settings.yaml, as read when the
 * scheduler started, and of an operator, who has the last word. Both are
 * stored as settings, "limit-file/NAME" and "limit/NAME", so that readers see
 * what the scheduler uses. The core has one limit for each run, and all share
 * their counter (see plan/load.h); all get the same maximum.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "plan/site.h"
#include "work/wire.h"

#include <stdio.h>
#include <string.h>

#define SESSIONS "sessions"
#define ORDER_PREFIX "limit/"
#define FILE_PREFIX "limit-file/"

/* Index of a limit, or their count. */
static uint32_t index_of(const struct engine *engine, const char *name)
{
    uint32_t ix = 0;
    while (ix < engine->ceiling_count &&
           strcmp(engine->ceilings[ix].name, name) != 0) {
        ix++;
    }
    return ix;
}

const struct engine_ceiling *ceilings_find(const struct engine *engine,
                                           const char *name)
{
    uint32_t ix = index_of(engine, name);
    return ix < engine->ceiling_count ? &engine->ceilings[ix] : NULL;
}

static struct engine_ceiling *find_or_add(struct engine *engine,
                                          const char *name)
{
    uint32_t ix = index_of(engine, name);
    if (ix == engine->ceiling_count) {
        MEM_EXTEND(engine->ceilings, engine->ceiling_count);
        engine->ceilings[engine->ceiling_count++] =
            (struct engine_ceiling){.name = mem_strdup(name)};
    }
    return &engine->ceilings[ix];
}

/* What people have set. */
int64_t ceilings_max(const struct engine_ceiling *ceiling)
{
    int64_t max = ceiling->ordered     ? ceiling->order
                  : ceiling->from_file ? ceiling->file
                                       : PLAN_UNLIMITED;
    return max == PLAN_UNLIMITED ? LIMIT_NONE : max;
}

/* Set the maximum of a limit of the core. */
static void set_max(struct engine *engine, struct limit_id limit, int64_t max)
{
    if (limit.v == ID_NONE || sched_limit_max(engine->sched, limit) == max) {
        return;
    }
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = engine->now_ns,
        .limit = limit,
        .max = max,
    };
    enum err err = sched_apply(engine->sched, &event);
    INVARIANT(err == ERR_OK);
    ahead_over(engine);
    engine->changed = true;
}

/* How many sessions the workers with a label can have; NULL: all workers.
 * Without workers there is no limit. */
static int64_t slots_of(const struct engine *engine, const char *label)
{
    int64_t sum = 0;
    for (uint32_t ix = 0; ix < engine->worker_count; ix++) {
        const struct engine_post *worker = &engine->workers[ix];
        if (label == NULL || wire_has_label(worker->labels, label)) {
            sum += worker->slots;
        }
    }
    return engine->has_workers ? sum : LIMIT_NONE;
}

int64_t engine_worker_slots(const struct engine *engine)
{
    return slots_of(engine, NULL);
}

void ceilings_apply(struct engine *engine, uint32_t run)
{
    const struct load_run *loaded = engine->runs[run].loaded;
    int64_t slots = slots_of(engine, NULL);
    for (uint32_t ix = 0; ix < engine->ceiling_count; ix++) {
        const struct engine_ceiling *ceiling = &engine->ceilings[ix];
        int64_t max = ceilings_max(ceiling);
        if (strcmp(ceiling->name, SESSIONS) == 0) {
            max = slots < max ? slots : max;
        }
        set_max(engine, load_store_limit(loaded, ceiling->name), max);
    }
    if (engine->has_workers && ceilings_find(engine, SESSIONS) == NULL) {
        set_max(engine, load_store_limit(loaded, SESSIONS), slots);
    }
    for (uint32_t ix = 0; ix < load_label_count(loaded); ix++) {
        const char *label;
        struct limit_id limit = load_label(loaded, ix, &label);
        set_max(engine, limit, slots_of(engine, label));
    }
}

static void apply_all(struct engine *engine)
{
    if (engine->world != NULL) {
        (void)engine_now(engine);
    }
    for (uint32_t run = 0; run < engine->run_count; run++) {
        ceilings_apply(engine, run);
    }
}

static void clear_workers(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->worker_count; ix++) {
        mem_free(engine->workers[ix].labels);
    }
    mem_free(engine->workers);
    engine->workers = NULL;
    engine->worker_count = 0;
}

void engine_workers(struct engine *engine,
                    const struct engine_worker *workers,
                    uint32_t count)
{
    clear_workers(engine);
    engine->has_workers = true;
    engine->workers = mem_zalloc(count + 1, sizeof(engine->workers[0]));
    engine->worker_count = count;
    for (uint32_t ix = 0; ix < count; ix++) {
        engine->workers[ix] = (struct engine_post){
            .labels = mem_strdup(workers[ix].labels),
            .slots = workers[ix].slots,
        };
    }
    apply_all(engine);
}

/* Store a maximum; NULL: it is removed. */
static void
store(struct engine *engine, const char *prefix, const char *name, int64_t *max)
{
    struct strbuf setting = {0};
    char value[32];
    strbuf_addf(&setting, "%s%s", prefix, name);
    if (max != NULL && *max != PLAN_UNLIMITED) {
        (void)snprintf(value, sizeof(value), "%lld", (long long)*max);
    } else {
        (void)snprintf(value, sizeof(value), "null");
    }
    rows_setting(engine, strbuf_text(&setting), max != NULL ? value : NULL);
    strbuf_release(&setting);
}

void ceilings_set(struct engine *engine, const char *name, int64_t max)
{
    INVARIANT(max >= 0);
    struct engine_ceiling *ceiling = find_or_add(engine, name);
    ceiling->ordered = true;
    ceiling->order = max;
    store(engine, ORDER_PREFIX, name, &max);
    apply_all(engine);
}

void ceilings_unset(struct engine *engine, const char *name)
{
    uint32_t ix = index_of(engine, name);
    if (ix < engine->ceiling_count && engine->ceilings[ix].ordered) {
        engine->ceilings[ix].ordered = false;
        store(engine, ORDER_PREFIX, name, NULL);
        apply_all(engine);
    }
}

void engine_take_site(struct engine *engine, const struct site *site)
{
    for (uint32_t ix = 0; ix < engine->ceiling_count; ix++) {
        struct engine_ceiling *ceiling = &engine->ceilings[ix];
        bool kept = false;
        for (uint32_t n = 0; n < site->limit_count && !kept; n++) {
            kept = strcmp(site->limits[n].name, ceiling->name) == 0;
        }
        if (ceiling->from_file && !kept) {
            ceiling->from_file = false;
            store(engine, FILE_PREFIX, ceiling->name, NULL);
        }
    }
    for (uint32_t ix = 0; ix < site->limit_count; ix++) {
        int64_t max = site->limits[ix].max;
        struct engine_ceiling *ceiling =
            find_or_add(engine, site->limits[ix].name);
        if (!ceiling->from_file || ceiling->file != max) {
            ceiling->from_file = true;
            ceiling->file = max;
            store(engine, FILE_PREFIX, ceiling->name, &max);
        }
    }
    apply_all(engine);
}

bool ceilings_restore(struct engine *engine,
                      const char *setting,
                      const char *value)
{
    bool order = strncmp(setting, ORDER_PREFIX, strlen(ORDER_PREFIX)) == 0;
    bool file = strncmp(setting, FILE_PREFIX, strlen(FILE_PREFIX)) == 0;
    int64_t max;
    bool none = strcmp(value, "null") == 0;
    if ((!order && !file) || !site_parse_max(none ? "none" : value, &max)) {
        return order || file;
    }
    struct engine_ceiling *ceiling =
        find_or_add(engine,
                    setting + strlen(order ? ORDER_PREFIX : FILE_PREFIX));
    if (order) {
        ceiling->ordered = true;
        ceiling->order = max;
    } else {
        ceiling->from_file = true;
        ceiling->file = max;
    }
    return true;
}

void ceilings_release(struct engine *engine)
{
    clear_workers(engine);
    for (uint32_t ix = 0; ix < engine->ceiling_count; ix++) {
        mem_free(engine->ceilings[ix].name);
    }
    mem_free(engine->ceilings);
    engine->ceilings = NULL;
    engine->ceiling_count = 0;
}

uint32_t engine_ceiling_count(const struct engine *engine)
{
    return engine->ceiling_count;
}

struct engine_ceiling_view engine_ceiling(const struct engine *engine,
                                          uint32_t ix)
{
    INVARIANT(ix < engine->ceiling_count);
    const struct engine_ceiling *ceiling = &engine->ceilings[ix];
    struct engine_ceiling_view view = {
        .name = ceiling->name,
        .max = ceilings_max(ceiling),
        .ordered = ceiling->ordered,
        .from_file = ceiling->from_file,
    };
    for (uint32_t run = 0; run < engine->run_count; run++) {
        struct limit_id limit =
            load_store_limit(engine->runs[run].loaded, ceiling->name);
        if (limit.v != ID_NONE) {
            view.used = sched_limit_used(engine->sched, limit);
        }
    }
    return view;
}
