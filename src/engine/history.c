/* SPDX-License-Identifier: MIT */
/*
 * Session history: time, outcome and cost of the sessions in this store, for
 * the estimates of later runs.
 *
 * A session is added to four levels, from all sessions to those with its class,
 * stage, repository and agent; plan/estimate.c makes estimates of them. A
 * submitted run takes what is known at that moment for good, so that its
 * estimates do not change while it runs, nor with a restart.
 *
 * Settings: "history/LEVEL" has the statistics of a level, "expected/RUN" an
 * array of [LEVEL, statistics]. Up to version 5 there were only classes, and
 * means of succeeded sessions; these are read as statistics of the class.
 */
#include "engine/engine_internal.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* A longer session means that the clock was set; a shorter one counts as this
 * long. */
#define SESSION_NS_MAX (30 * DAY_NS)
#define SESSION_NS_MIN MS_NS

#define START_NS_MAX SECOND_NS

/* How many sessions the means that a run of an earlier version has taken count
 * for: they are all that it ever knows. */
enum { OLD_WEIGHT = 100 };

static const char prefix[] = "history/";

static struct engine_history *find(struct engine *engine, const char *name)
{
    struct strmap *names = &engine->history_names;
    uint32_t ix = strmap_find(names, name, strlen(name));
    if (ix == STRMAP_NONE) {
        MEM_GROW(engine->history,
                 engine->history_count,
                 engine->history_capacity);
        ix = engine->history_count++;
        engine->history[ix] = (struct engine_history){
            .name = mem_strdup(name),
        };
        (void)strmap_add(names, engine->history[ix].name, ix);
    }
    return &engine->history[ix];
}

void history_release(struct engine *engine)
{
    strmap_release(&engine->history_names);
    for (uint32_t ix = 0; ix < engine->history_count; ix++) {
        mem_free(engine->history[ix].name);
    }
    mem_free(engine->history);
}

/* --- sessions ----------------------------------------------------------- */

/* Return how long the session had its slot; -1: unknown. A start that took
 * longer than START_NS_MAX was interrupted: that is no part of it. */
static int64_t took_of(const struct store_attempt *row)
{
    int64_t start_ns = row->begun_ns - row->claimed_ns;
    bool whole = start_ns >= 0 && start_ns <= START_NS_MAX;
    int64_t took_ns = row->ended_ns - (whole ? row->claimed_ns : row->begun_ns);
    bool known = row->begun_ns > 0 && took_ns >= 0 && took_ns <= SESSION_NS_MAX;
    return known ? took_ns : -1;
}

/* Return the expected duration of a task, not 0. */
static double expected_ns(const struct plan *plan, uint32_t task)
{
    return fmax((double)plan_estimate_ns(plan, &plan->tasks[task]), 1);
}

/*
 * Return how long the session took over its estimate; 0: unknown. A merge that
 * waited in its queue took longer than its work, and simulations add the wait.
 */
static double length_of(const struct engine *engine,
                        const struct history_end *end)
{
    const struct engine_run *run = &engine->runs[end->session->run];
    const struct plan *plan = run->plan;
    int64_t took_ns = took_of(end->row);
    if (took_ns < 0 || end->result->restarts > 0 || end->result->on != NULL) {
        return 0;
    }
    uint32_t class_ix = plan->tasks[end->session->task].class_ix;
    double marginal = plan->classes[class_ix].batch_marginal / 100.0;
    double sum_ns = 0;
    double longest_ns = 0;
    struct task_id next =
        engine_core_task(engine, end->session->run, end->session->task);
    for (; next.v != ID_NONE; next = sched_session_next(engine->sched, next)) {
        double ns = expected_ns(plan, load_plan_task(run->loaded, next));
        longest_ns = fmax(longest_ns, ns);
        sum_ns += ns;
    }
    took_ns = took_ns > SESSION_NS_MIN ? took_ns : SESSION_NS_MIN;
    return (double)took_ns / (longest_ns + (sum_ns - longest_ns) * marginal);
}

/* One task of a session. */
struct history_task {
    enum sched_outcome outcome;
    double took_ns; /* alone in a session; 0: unknown */
    int64_t own_ns; /* estimate in the plan, or PLAN_UNSET */
    bool reworks;   /* a failure counts as "changes requested" */
};

/* Add one task of the session to one level. */
static void note_task(struct learned *learned,
                      const struct history_end *end,
                      const struct history_task *task)
{
    enum sched_outcome outcome = task->outcome;
    bool changes = outcome == OUTCOME_CHANGES ||
                   (outcome == OUTCOME_FAILED && task->reworks);
    bool failed = outcome == OUTCOME_LOST || outcome == OUTCOME_FATAL ||
                  (outcome == OUTCOME_FAILED && !changes);
    learned_add_outcome(learned, failed, changes);
    if (task->took_ns > 0) {
        double weight = 1.0 / end->session->task_count;
        learned_add(&learned->durations, log(task->took_ns / 1e9), weight);
        if (task->own_ns > 0) {
            double ratio = task->took_ns / (double)task->own_ns;
            learned_add(&learned->ratios, log(ratio), weight);
        }
    }
}

/* Whether the session was long enough for its task to be done. */
static bool has_duration(enum sched_outcome outcome)
{
    return outcome == OUTCOME_DONE || outcome == OUTCOME_FAILED ||
           outcome == OUTCOME_FATAL || outcome == OUTCOME_CHANGES;
}

/* Add the cost of a session that succeeded: others may not report theirs. */
static void note_cost(struct engine *engine, const struct history_end *end)
{
    const struct plan *plan = engine->runs[end->session->run].plan;
    const struct store_attempt *row = end->row;
    double tokens = (double)row->input_tokens + (double)row->output_tokens;
    INVARIANT(row->usd >= 0 && tokens >= 0);
    if (end->outcome == OUTCOME_DONE) {
        uint32_t class_ix = plan->tasks[end->session->task].class_ix;
        struct engine_history *class =
            find(engine, plan->classes[class_ix].name);
        learned_add_cost(&class->learned,
                         end->session->task_count,
                         row->usd,
                         tokens);
        class->changed = true;
    }
}

void history_note(struct engine *engine, const struct history_end *end)
{
    const struct engine_run *run = &engine->runs[end->session->run];
    struct task_id next =
        engine_core_task(engine, end->session->run, end->session->task);
    uint32_t flags = sched_record(engine->sched, next).flags;
    if (end->outcome == OUTCOME_REFUSED || end->outcome == OUTCOME_STOPPED ||
        end->outcome == OUTCOME_LATER || (flags & SCHED_RECORD_ENDING) != 0) {
        return; /* not by itself, or it has not done its work */
    }
    engine->history_changed = true;
    double length = length_of(engine, end);
    struct strbuf name = {0};
    for (uint32_t n = 0; n < end->session->task_count; n++) {
        uint32_t ix = load_plan_task(run->loaded, next);
        const struct plan_task *task = &run->plan->tasks[ix];
        enum sched_outcome outcome = end->outcomes[n];
        struct history_task noted = {
            .outcome = outcome,
            .took_ns =
                has_duration(outcome) ? length * expected_ns(run->plan, ix) : 0,
            .own_ns = task->settings->estimate_ns,
            .reworks = plan_reworks_on_failure(run->plan, task),
        };
        for (uint32_t level = 0;
             outcome != OUTCOME_LATER && level < PLAN_LEVELS;
             level++) {
            strbuf_clear(&name);
            plan_level_name(run->plan, task, (enum plan_level)level, &name);
            struct engine_history *history = find(engine, strbuf_text(&name));
            note_task(&history->learned, end, &noted);
            history->changed = true;
        }
        next = sched_session_next(engine->sched, next);
    }
    strbuf_release(&name);
    note_cost(engine, end);
}

/* --- settings ----------------------------------------------------------- */

void history_pass(struct engine *engine)
{
    struct strbuf name = {0};
    struct strbuf value = {0};
    if (!engine->history_changed) {
        return;
    }
    engine->history_changed = false;
    for (uint32_t ix = 0; ix < engine->history_count; ix++) {
        struct engine_history *history = &engine->history[ix];
        if (!history->changed) {
            continue;
        }
        history->changed = false;
        strbuf_clear(&name);
        strbuf_clear(&value);
        strbuf_addf(&name, "%s%s", prefix, history->name);
        struct jsonw json = {.out = &value};
        learned_write(&history->learned, &json);
        rows_setting(engine, strbuf_text(&name), strbuf_text(&value));
    }
    strbuf_release(&name);
    strbuf_release(&value);
}

/* Read the sums of earlier versions; false: invalid. */
static bool read_old(const json_t *json, struct learned *out)
{
    double count = json_number_value(json_object_get(json, "count"));
    double seconds = json_number_value(json_object_get(json, "seconds"));
    double usd = json_number_value(json_object_get(json, "usd"));
    double tokens = json_number_value(json_object_get(json, "tokens"));
    bool good = count >= 1 && seconds >= 0 && usd >= 0 && tokens >= 0;
    if (good) {
        *out = learned_of_means(count,
                                seconds / count,
                                usd / count,
                                tokens / count);
    }
    return good;
}

/* Read a setting's value; false: invalid. */
static bool read_history(const char *value, struct learned *out)
{
    json_t *json = json_loads(value, 0, NULL);
    bool good = json_object_get(json, "count") != NULL
                    ? read_old(json, out)
                    : learned_read(out, json);
    json_decref(json);
    return good;
}

void history_restore(struct engine *engine,
                     const char *setting,
                     const char *value)
{
    struct learned learned;
    if (read_history(value, &learned)) {
        find(engine, setting + strlen(prefix))->learned = learned;
    }
}

void engine_expect(struct plan *plan, const char *setting, const char *value)
{
    struct learned learned;
    if (strncmp(setting, prefix, strlen(prefix)) == 0 &&
        read_history(value, &learned)) {
        (void)plan_learn(plan, setting + strlen(prefix), &learned);
    }
}

/* --- estimates of a run ------------------------------------------------- */

void history_expect(struct engine *engine, struct engine_run *run)
{
    INVARIANT(run->loaded == NULL && run->number > 0);
    struct strbuf value = {0};
    struct jsonw json = {.out = &value};
    bool any = false;
    jsonw_array(&json, NULL);
    for (uint32_t ix = 0; ix < engine->history_count; ix++) {
        const struct engine_history *history = &engine->history[ix];
        if (plan_learn(run->plan, history->name, &history->learned)) {
            jsonw_array(&json, NULL);
            jsonw_text(&json, NULL, history->name);
            learned_write(&history->learned, &json);
            jsonw_array_end(&json);
            any = true;
        }
    }
    jsonw_array_end(&json);
    if (any) {
        /* The text is rounded: what is read after a restart counts now. */
        engine_expect_run(run->plan, strbuf_text(&value));
        rows_numbered(engine,
                      "expected",
                      run->number,
                      ROWS_NO_PART,
                      strbuf_text(&value));
    }
    strbuf_release(&value);
}

/* Take the means of a run of an earlier version: {"CLASS": [nanoseconds,
 * money, tokens], ...}. */
static void expect_old(struct plan *plan, json_t *json)
{
    const char *name;
    json_t *mean;
    json_object_foreach(json, name, mean)
    {
        double seconds = json_number_value(json_array_get(mean, 0)) / 1e9;
        double usd = json_number_value(json_array_get(mean, 1)) / PLAN_USD;
        double tokens = json_number_value(json_array_get(mean, 2));
        if (seconds >= 0 && usd >= 0 && tokens >= 0) {
            struct learned learned =
                learned_of_means(OLD_WEIGHT, seconds, usd, tokens);
            (void)plan_learn(plan, name, &learned);
        }
    }
}

void engine_expect_run(struct plan *plan, const char *value)
{
    json_t *json = json_loads(value, 0, NULL);
    size_t ix;
    json_t *item;
    if (json_is_object(json)) {
        expect_old(plan, json);
    }
    json_array_foreach(json, ix, item)
    {
        struct learned learned;
        const char *name = json_string_value(json_array_get(item, 0));
        if (name != NULL && learned_read(&learned, json_array_get(item, 1))) {
            (void)plan_learn(plan, name, &learned);
        }
    }
    json_decref(json);
}
