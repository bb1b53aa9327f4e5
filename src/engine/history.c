/* SPDX-License-Identifier: MIT */
/*
 * Session history: time, cost and tokens of each class's sessions in this
 * store, for the estimates of later runs.
 *
 * Sums over succeeded sessions are kept by class. A submitted run takes the
 * means of that moment for good, so that its estimates do not change while it
 * runs, nor with a restart.
 */
#include "engine/engine_internal.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A longer session means that the clock was set. */
#define SESSION_NS_MAX (30 * DAY_NS)

static const char prefix[] = "history/";

static struct engine_history *find(struct engine *engine, const char *name)
{
    for (uint32_t ix = 0; ix < engine->history_count; ix++) {
        if (strcmp(engine->history[ix].name, name) == 0) {
            return &engine->history[ix];
        }
    }
    MEM_EXTEND(engine->history, engine->history_count);
    struct engine_history *class = &engine->history[engine->history_count++];
    *class = (struct engine_history){
        .name = mem_strdup(name),
    };
    return class;
}

void history_release(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->history_count; ix++) {
        mem_free(engine->history[ix].name);
    }
    mem_free(engine->history);
}

void history_note(struct engine *engine,
                  const char *class_name,
                  const struct store_attempt *row)
{
    struct engine_history *class = find(engine, class_name);
    int64_t took_ns = row->ended_ns - row->begun_ns;
    if (row->begun_ns == 0 || took_ns < 0 || took_ns > SESSION_NS_MAX) {
        return;
    }
    INVARIANT(row->task_count > 0 && row->usd >= 0);
    INVARIANT(row->input_tokens >= 0 && row->output_tokens >= 0);
    class->count += row->task_count;
    class->seconds += (double)took_ns / 1e9;
    class->usd += row->usd;
    class->tokens += (double)row->input_tokens + (double)row->output_tokens;
    class->changed = true;
}

void history_pass(struct engine *engine)
{
    struct strbuf name = {0};
    struct strbuf value = {0};
    for (uint32_t ix = 0; ix < engine->history_count; ix++) {
        struct engine_history *class = &engine->history[ix];
        if (!class->changed) {
            continue;
        }
        INVARIANT(class->count > 0 && class->seconds >= 0);
        class->changed = false;
        strbuf_clear(&name);
        strbuf_clear(&value);
        strbuf_addf(&name, "%s%s", prefix, class->name);
        struct jsonw json = {.out = &value};
        jsonw_object(&json, NULL);
        jsonw_int(&json, "count", (int64_t) class->count);
        jsonw_number(&json, "seconds", 9, class->seconds);
        jsonw_number(&json, "usd", 9, class->usd);
        jsonw_number(&json, "tokens", 15, class->tokens);
        jsonw_object_end(&json);
        rows_setting(engine, strbuf_text(&name), strbuf_text(&value));
    }
    strbuf_release(&name);
    strbuf_release(&value);
}

/* Read the sums from a setting's value; false: invalid. */
static bool read_sums(const char *value, struct engine_history *out)
{
    json_t *json = json_loads(value, 0, NULL);
    int64_t count = json_integer_value(json_object_get(json, "count"));
    *out = (struct engine_history){
        .count = count > 0 ? (uint64_t)count : 0,
        .seconds = json_number_value(json_object_get(json, "seconds")),
        .usd = json_number_value(json_object_get(json, "usd")),
        .tokens = json_number_value(json_object_get(json, "tokens")),
    };
    json_decref(json);
    return count > 0;
}

void history_restore(struct engine *engine,
                     const char *setting,
                     const char *value)
{
    struct engine_history sums;
    if (read_sums(value, &sums)) {
        struct engine_history *class = find(engine, setting + strlen(prefix));
        INVARIANT(class->count == 0); /* a setting has one value */
        sums.name = class->name;
        *class = sums;
    }
}

static int64_t at_most(double value, double max)
{
    return (int64_t)(value < 0 ? 0 : value > max ? max : value + 0.5);
}

static struct plan_expected mean_of(const struct engine_history *sums)
{
    INVARIANT(sums->count > 0);
    double count = (double)sums->count;
    return (struct plan_expected){
        .duration_ns = at_most(sums->seconds / count * 1e9, SESSION_NS_MAX),
        .cost.usd = at_most(sums->usd / count * PLAN_USD, (double)PLAN_USD_MAX),
        .cost.tokens = at_most(sums->tokens / count, (double)PLAN_TOKENS_MAX),
    };
}

void engine_expect(struct plan *plan, const char *setting, const char *value)
{
    struct engine_history sums;
    if (strncmp(setting, prefix, strlen(prefix)) == 0 &&
        read_sums(value, &sums)) {
        struct plan_expected mean = mean_of(&sums);
        plan_expect(plan, setting + strlen(prefix), &mean);
    }
}

/* --- estimates of a run ------------------------------------------------- */

void history_expect(struct engine *engine, struct engine_run *run)
{
    INVARIANT(run->loaded == NULL && run->number > 0);
    json_t *json = json_object();
    for (uint32_t ix = 0; ix < engine->history_count; ix++) {
        const struct engine_history *sums = &engine->history[ix];
        if (sums->count > 0) {
            struct plan_expected mean = mean_of(sums);
            plan_expect(run->plan, sums->name, &mean);
            (void)json_object_set_new(json,
                                      sums->name,
                                      json_pack("[I, I, I]",
                                                (json_int_t)mean.duration_ns,
                                                (json_int_t)mean.cost.usd,
                                                (json_int_t)mean.cost.tokens));
        }
    }
    if (json_object_size(json) > 0) {
        char *text = json_dumps(json, JSON_COMPACT);
        rows_numbered(engine, "expected", run->number, ROWS_NO_PART, text);
        free(text);
    }
    json_decref(json);
}

void history_restore_run(struct engine_run *run, const char *value)
{
    json_t *json = json_loads(value, 0, NULL);
    const char *name;
    json_t *mean;
    json_object_foreach(json, name, mean)
    {
        struct plan_expected expected = {
            .duration_ns = json_integer_value(json_array_get(mean, 0)),
            .cost.usd = json_integer_value(json_array_get(mean, 1)),
            .cost.tokens = json_integer_value(json_array_get(mean, 2)),
        };
        plan_expect(run->plan, name, &expected);
    }
    json_decref(json);
}
