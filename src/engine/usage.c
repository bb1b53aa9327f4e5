/* SPDX-License-Identifier: MIT */
/*
 * Usage monitors: a user's program prints meters, and the cap follows them.
 *
 * The meter closest to its limit governs. The step that it has reached sets the
 * number of sessions; running sessions are never stopped. At a step of 0
 * nothing starts until the meter's reset, if it has one, plus a margin; else
 * the program is called again after growing intervals. The last reading and its
 * results are stored: a restart changes nothing.
 *
 * A failed reading is logged, once, and changes nothing; with one exception: a
 * pause with a known reset time ends at that time without a reading. Until the
 * first valid reading, nothing starts.
 *
 * Resets are wall-clock times, readings are due by the engine's clock.
 */
#include "engine/engine_internal.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"

#include <jansson.h>
#include <string.h>

static const struct plan_usage *plan_of(const struct engine *engine,
                                        const struct program *program)
{
    return &engine->runs[program->run].plan->usages[program->part];
}

static struct engine_usage *usage_of(const struct engine *engine,
                                     const struct program *program)
{
    return &engine->runs[program->run].usages[program->part];
}

void usage_release(struct engine_run *run)
{
    for (uint32_t ix = 0; run->usages != NULL && ix < run->plan->usage_count;
         ix++) {
        meters_free(run->usages[ix].meters, run->usages[ix].meter_count);
        mem_free(run->usages[ix].error);
    }
    mem_free(run->usages);
    run->usages = NULL;
}

/* --- evaluation --------------------------------------------------------- */

/* The meter closest to its limit; of equals, that with the last reset. */
static uint32_t find_governing(const struct meter *meters, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t ix = 1; ix < count; ix++) {
        if (meters[ix].percent > meters[best].percent ||
            (meters[ix].percent == meters[best].percent &&
             meters[ix].resets_ns > meters[best].resets_ns)) {
            best = ix;
        }
    }
    return best;
}

static int64_t cap_at(const struct plan_usage *plan, double percent)
{
    int64_t cap = LIMIT_NONE;
    for (uint32_t ix = 0; ix < plan->step_count; ix++) {
        if (percent >= plan->steps[ix].percent) {
            cap = plan->steps[ix].cap;
        }
    }
    return cap;
}

/* Check the invariants after each reading. */
static void check(const struct engine_usage *usage)
{
    INVARIANT(usage->meter_count == 0 || usage->governs < usage->meter_count);
    INVARIANT(usage->cap >= 0); /* LIMIT_NONE is the greatest */
    INVARIANT(usage->until_ns == 0 || usage->cap == 0);
    INVARIANT(usage->probes == 0 || (usage->cap == 0 && usage->until_ns == 0));
    INVARIANT(usage->next_ns != SCHED_NEVER || usage->until_ns > 0);
    INVARIANT(!usage->known || usage->meter_count > 0);
    INVARIANT(usage->kept <= usage->readings);
}

/* Read again after the next of growing intervals. */
static void probe_later(struct engine *engine,
                        const struct plan_usage *plan,
                        struct engine_usage *usage)
{
    usage->until_ns = 0;
    usage->next_ns =
        engine_now(engine) +
        duration_doubled(plan->probe_ns, usage->probes++, plan->probe_ns_max);
}

/* Set the end of a pause that begins or continues. */
static void pause_until(struct engine *engine,
                        const struct plan_usage *plan,
                        struct engine_usage *usage)
{
    int64_t resets_ns = usage->meters[usage->governs].resets_ns;
    int64_t wall_ns = engine->world->wall_ns(engine->ctx);
    if (resets_ns > 0 && resets_ns <= INT64_MAX - plan->margin_ns &&
        resets_ns + plan->margin_ns > wall_ns) {
        usage->until_ns = resets_ns + plan->margin_ns;
        usage->next_ns = SCHED_NEVER; /* by until_ns */
        usage->probes = 0;
    } else {
        probe_later(engine, plan, usage);
    }
}

static void read_later(struct engine *engine,
                       const struct plan_usage *plan,
                       struct engine_usage *usage)
{
    usage->until_ns = 0;
    usage->probes = 0;
    usage->next_ns = engine_now(engine) + plan->every_ns;
}

/* Evaluate a valid reading in usage->meters. */
static void follow(struct engine *engine,
                   const struct plan_usage *plan,
                   struct engine_usage *usage)
{
    INVARIANT(usage->meters != NULL && usage->meter_count > 0);
    usage->read_ns = engine->world->wall_ns(engine->ctx);
    usage->governs = find_governing(usage->meters, usage->meter_count);
    usage->cap = cap_at(plan, usage->meters[usage->governs].percent);
    if (usage->cap == 0) {
        pause_until(engine, plan, usage);
    } else {
        read_later(engine, plan, usage);
    }
}

/* Continue without a valid reading. */
static void do_without(struct engine *engine,
                       const struct plan_usage *plan,
                       struct engine_usage *usage)
{
    int64_t wall_ns = engine->world->wall_ns(engine->ctx);
    if (usage->cap == 0 && usage->until_ns > wall_ns) {
        usage->next_ns = SCHED_NEVER; /* the pause is unchanged */
    } else if (usage->cap == 0 && usage->until_ns == 0) {
        probe_later(engine, plan, usage);
    } else {
        usage->cap = usage->cap == 0 ? LIMIT_NONE : usage->cap;
        read_later(engine, plan, usage);
    }
}

/* --- storage and events ------------------------------------------------- */

/* Store the state of a monitor, as JSON. */
static void store(struct engine *engine, uint32_t run, uint32_t ix)
{
    const struct engine_usage *usage = &engine->runs[run].usages[ix];
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    jsonw_object(&json, NULL);
    jsonw_array(&json, "meters");
    for (uint32_t n = 0; n < usage->meter_count; n++) {
        jsonw_object(&json, NULL);
        jsonw_text(&json, "name", usage->meters[n].name);
        jsonw_number(&json, "percent", 17, usage->meters[n].percent);
        jsonw_int(&json, "resets_ns", usage->meters[n].resets_ns);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_int(&json, "governs", usage->governs);
    jsonw_int(&json, "read_ns", usage->read_ns);
    jsonw_int(&json, "cap", usage->cap);
    jsonw_int(&json, "until_ns", usage->until_ns);
    jsonw_int(&json, "next_ns", usage->next_ns);
    jsonw_int(&json, "probes", usage->probes);
    jsonw_text(&json, "error", usage->error);
    jsonw_object_end(&json);
    rows_numbered(engine,
                  "usage",
                  engine->runs[run].number,
                  ix,
                  strbuf_text(&text));
    strbuf_release(&text);
}

static int64_t int_of(const json_t *json, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(json, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* Restore the stored state; invalid values count as absent. */
static void restore(struct engine_usage *usage, const char *text)
{
    INVARIANT(usage->meters == NULL && usage->readings == 0);
    json_t *json = json_loads(text, 0, NULL);
    const json_t *meters = json_object_get(json, "meters");
    size_t count = json_array_size(meters);
    const char *error = json_string_value(json_object_get(json, "error"));
    usage->meters = mem_zalloc(count, sizeof(usage->meters[0]));
    for (size_t ix = 0; ix < count; ix++) {
        const json_t *meter = json_array_get(meters, ix);
        const char *name = json_string_value(json_object_get(meter, "name"));
        name = name != NULL ? name : "?";
        usage->meters[usage->meter_count++] = (struct meter){
            .name = mem_strdup(name),
            .percent = json_number_value(json_object_get(meter, "percent")),
            .resets_ns = int_of(meter, "resets_ns", 0),
        };
    }
    usage->governs = (uint32_t)int_of(json, "governs", 0);
    if (usage->governs >= usage->meter_count) {
        usage->governs = 0;
    }
    usage->read_ns = int_of(json, "read_ns", 0);
    usage->cap = int_of(json, "cap", LIMIT_NONE);
    if (usage->cap < 0) {
        usage->cap = LIMIT_NONE;
    }
    usage->until_ns = int_of(json, "until_ns", 0);
    usage->next_ns = int_of(json, "next_ns", 0);
    usage->probes = (uint32_t)int_of(json, "probes", 0);
    usage->error = mem_strdup(error);
    usage->known = usage->read_ns > 0 && usage->meter_count > 0;
    json_decref(json);
}

/* Log a monitor's change of state. */
static void
tell(struct engine *engine, uint32_t run, uint32_t ix, enum event_word to)
{
    const struct engine_run *r = &engine->runs[run];
    const struct engine_usage *usage = &r->usages[ix];
    uint32_t provider = r->plan->usages[ix].provider;
    const struct meter *meter =
        usage->meter_count > 0 ? &usage->meters[usage->governs] : NULL;
    struct event event = {
        .kind = EVENT_KIND_USAGE,
        .as.usage.to = to,
        .as.usage.provider =
            provider != PLAN_NONE ? r->plan->providers[provider].name : NULL,
        .as.usage.cap = usage->cap != LIMIT_NONE ? usage->cap : -1,
        .as.usage.meter = meter != NULL ? meter->name : NULL,
        .as.usage.percent = meter != NULL ? meter->percent : -1,
        .as.usage.until_ns =
            usage->cap == 0 && usage->until_ns > 0 ? usage->until_ns : 0,
        .as.usage.reason = usage->error,
    };
    rows_event(engine, run, STORE_NONE, &event);
}

/* Log changes made by the reading. */
static void tell_change(struct engine *engine,
                        const struct program *program,
                        int64_t cap,
                        int64_t until_ns)
{
    const struct engine_usage *usage = usage_of(engine, program);
    if (usage->cap == 0 && (cap != 0 || usage->until_ns > until_ns)) {
        tell(engine, program->run, program->part, EVENT_WORD_PAUSED);
    } else if (usage->cap != 0 && cap == 0) {
        tell(engine, program->run, program->part, EVENT_WORD_RESUMED);
    } else if (usage->cap != cap) {
        tell(engine, program->run, program->part, EVENT_WORD_CAPPED);
    }
}

/* --- the program -------------------------------------------------------- */

#define TASK ".usage"

/* A running reading does not survive a restart: it is repeated. So its name
 * must be one that no other process has used. */
static void add_reading(struct strbuf *out,
                        const struct engine *engine,
                        const struct program *program,
                        uint32_t reading)
{
    strbuf_addf(out,
                "%u-%llu-%u",
                program->part + 1,
                (unsigned long long)engine->epoch,
                reading);
}

static void add_call(struct strbuf *out,
                     const struct engine *engine,
                     const struct program *program)
{
    add_reading(out, engine, program, usage_of(engine, program)->readings);
}

static struct program_call call(const struct engine *engine,
                                const struct program *program)
{
    const struct engine_run *run = &engine->runs[program->run];
    const struct plan_usage *plan = plan_of(engine, program);
    struct program_call call = {
        .shell = plan->run.shell,
        .argv = plan->run.argv,
        .folder = run->folder,
        .run = run->id,
        .file = "meters",
        .variable = "SLUICE_METERS",
        .timeout_ns = plan->timeout_ns,
    };
    if (plan->agent != PLAN_NONE) {
        const struct plan_agent *agent = &run->plan->agents[plan->agent];
        call.agent = true;
        call.argv = usage_of(engine, program)->words;
        call.env = (const char *const *)agent->env;
        call.env_count = agent->env_count;
    }
    return call;
}

static bool is_wanted(const struct engine *engine,
                      const struct program *program)
{
    const struct engine_run *run = &engine->runs[program->run];
    return !run->finished && !run->stored.cancelled;
}

/* Keep the directory of the last failed reading only. */
static void keep_last(struct engine *engine, const struct program *program)
{
    struct engine_usage *usage = usage_of(engine, program);
    uint32_t present = usage->readings;
    INVARIANT(usage->kept < present);
    if (usage->kept > 0) {
        struct strbuf name = {0};
        add_reading(&name, engine, program, usage->kept);
        engine_drop_later(engine,
                          &(struct work_id){
                              .run = engine->runs[program->run].id,
                              .task = TASK,
                              .name = strbuf_text(&name),
                          });
        strbuf_release(&name);
    }
    usage->kept = present;
}

/* Store why a reading failed; log it unless the last one failed too. */
static void note_error(struct engine *engine,
                       const struct program *program,
                       const char *error)
{
    struct engine_usage *usage = usage_of(engine, program);
    bool told = usage->error != NULL;
    mem_free(usage->error);
    usage->error = mem_strdup(error);
    if (!told) {
        tell(engine, program->run, program->part, EVENT_WORD_FAILED);
    }
}

static void ended(struct engine *engine,
                  struct program *program,
                  const struct work_id *id,
                  const struct work_report *report,
                  const char *error)
{
    const struct plan_usage *plan = plan_of(engine, program);
    struct engine_usage *usage = usage_of(engine, program);
    INVARIANT(usage->program == program && usage->readings > 0);
    struct meter *meters = NULL;
    uint32_t count = 0;
    struct diag diag = {0};
    int64_t cap = usage->cap;
    int64_t until_ns = usage->until_ns;
    if (!is_wanted(engine, program) || engine->stopping) {
        return;
    }
    enum err err = error != NULL ? diag_set(&diag, ERR_IO, "%s", error)
                                 : meters_parse(report->output,
                                                report->output_len,
                                                &meters,
                                                &count,
                                                &diag);
    if (err == ERR_OK) {
        usage->known = true;
        mem_free(usage->error);
        usage->error = NULL;
        meters_free(usage->meters, usage->meter_count);
        usage->meters = meters;
        usage->meter_count = count;
        follow(engine, plan, usage);
        engine_drop_later(engine, id);
    } else {
        do_without(engine, plan, usage);
        keep_last(engine, program);
        note_error(engine, program, diag.text);
    }
    check(usage);
    INVARIANT((err == ERR_OK) == (usage->error == NULL));
    tell_change(engine, program, cap, until_ns);
    store(engine, program->run, program->part);
    caps_apply(engine, program->run);
}

static const struct program_ops ops = {
    .task = TASK,
    .add_name = add_call,
    .call = call,
    .is_wanted = is_wanted,
    .ended = ended,
};

/* --- timing ------------------------------------------------------------- */

void usage_init(struct engine *engine, uint32_t run)
{
    struct engine_run *r = &engine->runs[run];
    INVARIANT(r->usages == NULL);
    r->usages = mem_zalloc(r->plan->usage_count, sizeof(r->usages[0]));
    for (uint32_t ix = 0; ix < r->plan->usage_count; ix++) {
        r->usages[ix].cap = LIMIT_NONE;
        r->usages[ix].next_ns = 0; /* at once */
        r->usages[ix].program = program_new(engine, &ops, run, ix);
        uint32_t agent = r->plan->usages[ix].agent;
        if (agent != PLAN_NONE) {
            r->usages[ix].words[0] = "--meters";
            r->usages[ix].words[1] = r->plan->agents[agent].adapter->name;
        }
    }
}

void usage_restore(struct engine_run *run, uint32_t part, const char *value)
{
    if (part < run->plan->usage_count) {
        restore(&run->usages[part], value);
    }
}

int64_t usage_cap(const struct engine_usage *usage)
{
    return usage->known ? usage->cap : 0;
}

/* When the next reading of a monitor is due. */
static int64_t due_ns(const struct engine *engine,
                      const struct engine_usage *usage)
{
    if (usage->cap != 0 || usage->until_ns == 0) {
        return usage->next_ns;
    }
    int64_t left_ns = usage->until_ns - engine->world->wall_ns(engine->ctx);
    return left_ns > 0 ? engine->now_ns + left_ns : 0;
}

static bool is_idle(const struct engine *engine,
                    const struct engine_usage *usage)
{
    return usage->program->id == 0 && !usage->program->due &&
           !engine->draining && is_wanted(engine, usage->program) &&
           !engine_is_quiet(engine, usage->program->run); /* nothing to start */
}

int64_t usage_next_ns(const struct engine *engine)
{
    int64_t next_ns = SCHED_NEVER;
    for (uint32_t run = 0; run < engine->run_count; run++) {
        const struct engine_run *r = &engine->runs[run];
        for (uint32_t ix = 0; ix < r->plan->usage_count; ix++) {
            if (is_idle(engine, &r->usages[ix])) {
                int64_t at_ns = due_ns(engine, &r->usages[ix]);
                next_ns = at_ns < next_ns ? at_ns : next_ns;
            }
        }
    }
    return next_ns;
}

void usage_pass(struct engine *engine)
{
    for (uint32_t run = 0; run < engine->run_count; run++) {
        const struct engine_run *r = &engine->runs[run];
        for (uint32_t ix = 0; ix < r->plan->usage_count; ix++) {
            struct engine_usage *usage = &r->usages[ix];
            if (is_idle(engine, usage) &&
                due_ns(engine, usage) <= engine->now_ns) {
                INVARIANT(usage->program->part == ix);
                usage->readings++;
                program_call(engine, usage->program);
            }
        }
    }
}
