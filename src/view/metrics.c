/* SPDX-License-Identifier: MIT */
/*
 * Prometheus metrics from the store. Counters and histograms are computed from
 * the whole event log and all attempts each time: they belong to the run, not
 * to a process, and never decrease. The only label of cost and tokens is the
 * run, because a plan update can move a task to another class.
 *
 * Unfinished runs are loaded together, because they share limits; each finished
 * run is loaded alone.
 */
#include "view/metrics.h"

#include "base/macros.h"
#include "base/mem.h"
#include "exec/outcome.h"
#include "store/event.h"
#include "view/usage.h"

#include <stdio.h>
#include <string.h>

enum { BUCKETS = 9 };

#define KEPT_NS (86400 * SECOND_NS) /* time to export a finished run */

/* Upper bounds of the wait histogram, in seconds. */
static const int64_t bounds[BUCKETS] =
    {1, 5, 15, 60, 300, 900, 3600, 14400, 43200};

/* Counts of one class of one run. */
struct counts {
    uint64_t attempts[OUTCOME_COUNT];
    uint64_t waits[BUCKETS + 1];
    int64_t waited_ns;
    uint64_t wait_count;
    uint32_t tasks[TASK_STATE_COUNT];
    int64_t oldest_ns; /* longest current time in state ready */
};

/* Totals over the attempts of a run. */
enum cost { COST_USD, COST_INPUT, COST_CACHED, COST_OUTPUT, COSTS };

struct tally {
    const struct glance *glance; /* contains the run; not owned */
    uint32_t ix;                 /* of the run in the glance */
    struct engine_run_view view;
    struct counts *classes;
    int64_t *ready_ns; /* per task: wall clock since ready; 0: not ready */
    double costs[COSTS];
};

/* A run that finished within the last day. */
struct ended {
    uint32_t number;
    char *id; /* NULL: unknown */
    struct glance glance;
};

struct metrics {
    const struct glance_options *options;
    struct glance glance; /* unfinished runs, or the named run */
    struct ended *ended;  /* further finished runs */
    uint32_t ended_count;
    struct tally *runs;
    uint32_t run_count;
    struct strbuf *out;
    struct event event; /* being read */
};

/* --- counting ----------------------------------------------------------- */

static struct tally *find_run(struct metrics *metrics, uint32_t number)
{
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        if (metrics->runs[ix].view.number == number) {
            return &metrics->runs[ix];
        }
    }
    return NULL;
}

static struct counts *class_of(const struct tally *run, uint32_t task)
{
    return &run->classes[run->view.plan->tasks[task].class_ix];
}

static void count_wait(struct counts *counts, int64_t waited_ns)
{
    waited_ns = waited_ns > 0 ? waited_ns : 0;
    uint32_t bucket = 0;
    while (bucket < BUCKETS && waited_ns > bounds[bucket] * SECOND_NS) {
        bucket++;
    }
    counts->waits[bucket]++;
    counts->wait_count++;
    counts->waited_ns += waited_ns;
}

static enum err on_event(void *ctx, const struct store_event *row)
{
    struct metrics *metrics = ctx;
    struct tally *run = find_run(metrics, row->run);
    if (run == NULL || row->task >= run->view.plan->task_count) {
        return ERR_OK;
    }
    struct event *event = &metrics->event;
    event_read(event, row);
    enum sched_outcome outcome;
    if (event->kind == EVENT_KIND_ATTEMPT &&
        outcome_read(event->as.attempt.outcome, &outcome)) {
        class_of(run, row->task)->attempts[outcome]++;
    } else if (event->kind == EVENT_KIND_TASK) {
        int64_t *since_ns = &run->ready_ns[row->task];
        if (event->as.task.to == TASK_STARTING) {
            count_wait(class_of(run, row->task),
                       *since_ns > 0 ? row->wall_ns - *since_ns : 0);
        }
        *since_ns = event->as.task.to == TASK_READY ? row->wall_ns : 0;
    }
    return ERR_OK;
}

/* Count the tasks of a run by state. */
static void count_tasks(struct tally *run)
{
    for (uint32_t task = 0; task < run->view.plan->task_count; task++) {
        struct counts *counts = class_of(run, task);
        enum task_state state =
            snapshot_state(run->glance->snapshot, run->ix, task);
        int64_t since_ns = run->ready_ns[task];
        counts->tasks[state]++;
        int64_t age_ns = run->glance->wall_ns - since_ns;
        if (state == TASK_READY && since_ns > 0 && age_ns > counts->oldest_ns) {
            counts->oldest_ns = age_ns;
        }
    }
}

static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct tally *run = ctx;
    const double costs[COSTS] = {
        [COST_USD] = row->usd,
        [COST_INPUT] = (double)row->input_tokens,
        [COST_CACHED] = (double)row->cached_tokens,
        [COST_OUTPUT] = (double)row->output_tokens,
    };
    for (uint32_t ix = 0; ix < COSTS; ix++) {
        run->costs[ix] += costs[ix] > 0 ? costs[ix] : 0;
    }
    return ERR_OK;
}

/* Sum the costs of a run's attempts. */
static enum err
count_costs(struct tally *run, struct store *store, struct diag *diag)
{
    static const struct store_visitor visitor = {.attempt = on_attempt};
    struct store_query query = {
        .finished = true,
        .run = run->view.id,
        .ended = true,
    };
    return store_read(store, &query, &visitor, run, NULL, diag);
}

/* Add the selected runs of a glance. */
static void add_runs(struct metrics *metrics, const struct glance *glance)
{
    const struct engine *engine = glance->view.engine;
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        if (!glance_is_meant(metrics->options, &view)) {
            continue;
        }
        metrics->runs = mem_resize(metrics->runs,
                                   metrics->run_count + 1,
                                   sizeof(metrics->runs[0]));
        metrics->runs[metrics->run_count++] = (struct tally){
            .glance = glance,
            .ix = ix,
            .view = view,
            .classes =
                mem_zalloc(view.plan->class_count, sizeof(struct counts)),
            .ready_ns = mem_zalloc(view.plan->task_count, sizeof(int64_t)),
        };
    }
}

static enum err count_all(struct metrics *metrics, struct diag *diag)
{
    struct store *store = metrics->glance.view.store;
    enum err err =
        store_events(store, &(struct store_range){0}, on_event, metrics, diag);
    for (uint32_t ix = 0; ix < metrics->run_count && err == ERR_OK; ix++) {
        count_tasks(&metrics->runs[ix]);
        err = count_costs(&metrics->runs[ix], store, diag);
    }
    return err;
}

static void release_counts(struct metrics *metrics)
{
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        mem_free(metrics->runs[ix].classes);
        mem_free(metrics->runs[ix].ready_ns);
    }
    for (uint32_t ix = 0; ix < metrics->ended_count; ix++) {
        glance_release(&metrics->ended[ix].glance);
        mem_free(metrics->ended[ix].id);
    }
    mem_free(metrics->runs);
    mem_free(metrics->ended);
}

/* --- finished runs ------------------------------------------------------ */

static enum err on_finish(void *ctx, const struct store_event *row)
{
    struct metrics *metrics = ctx;
    if (event_kind_of(row) != EVENT_KIND_RUN ||
        metrics->glance.wall_ns - row->wall_ns >= KEPT_NS ||
        find_run(metrics, row->run) != NULL) {
        return ERR_OK;
    }
    event_read(&metrics->event, row);
    if (metrics->event.as.run.to != EVENT_WORD_FINISHED) {
        return ERR_OK;
    }
    metrics->ended = mem_resize(metrics->ended,
                                metrics->ended_count + 1,
                                sizeof(metrics->ended[0]));
    metrics->ended[metrics->ended_count++] = (struct ended){.number = row->run};
    return ERR_OK;
}

static enum err on_run(void *ctx, const struct store_run *row)
{
    struct metrics *metrics = ctx;
    for (uint32_t ix = 0; ix < metrics->ended_count; ix++) {
        struct ended *ended = &metrics->ended[ix];
        if (ended->number == row->number && ended->id == NULL) {
            ended->id = mem_strndup(row->id, strlen(row->id));
        }
    }
    return ERR_OK;
}

/* Add the runs that finished within the last day. */
static enum err add_finished(struct metrics *metrics, struct diag *diag)
{
    static const struct store_visitor visitor = {.run = on_run};
    static const struct store_query query = {.finished = true};
    struct store *store = metrics->glance.view.store;
    enum err err =
        store_events(store, &(struct store_range){0}, on_finish, metrics, diag);
    if (err == ERR_OK && metrics->ended_count > 0) {
        err = store_read(store, &query, &visitor, metrics, NULL, diag);
    }
    for (uint32_t ix = 0; ix < metrics->ended_count && err == ERR_OK; ix++) {
        struct ended *ended = &metrics->ended[ix];
        if (ended->id == NULL || find_run(metrics, ended->number) != NULL) {
            continue; /* removed by 'sluice gc', or already added */
        }
        struct diag gone = {0};
        err = glance_take(&ended->glance,
                          &(struct glance_options){
                              .store = metrics->glance.place.shown,
                              .run = ended->id,
                              .finished = true,
                              .alone = true,
                          },
                          &gone);
        if (err == ERR_OK) {
            add_runs(metrics, &ended->glance);
        } else {
            err = err == ERR_NOT_FOUND ? ERR_OK
                                       : diag_set(diag, err, "%s", gone.text);
        }
    }
    return err;
}

/* --- writing ------------------------------------------------------------ */

static void head(struct metrics *metrics,
                 const char *name,
                 const char *type,
                 const char *help)
{
    strbuf_addf(metrics->out,
                "# HELP %s %s\n# TYPE %s %s\n",
                name,
                help,
                name,
                type);
}

/* Add a label, its value escaped for Prometheus. */
static void add_label(struct strbuf *out, const char *name, const char *value)
{
    strbuf_addf(out, "%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"') {
            strbuf_adds(out, "\\");
        }
        strbuf_add(out, *value == '\n' ? " " : value, 1);
    }
    strbuf_adds(out, "\"");
}

/* Add a line up to its value: "name{run="...",class="..."". */
static void begin(struct metrics *metrics,
                  const char *name,
                  const struct tally *run,
                  const char *label,
                  const char *value)
{
    strbuf_addf(metrics->out, "%s{", name);
    add_label(metrics->out, "run", run->view.id);
    if (label != NULL) {
        strbuf_adds(metrics->out, ",");
        add_label(metrics->out, label, value);
    }
}

static void
add_tasks(struct metrics *metrics, const struct tally *run, uint32_t class_ix)
{
    const char *class = run->view.plan->classes[class_ix].name;
    for (uint32_t state = 0; state < TASK_STATE_COUNT; state++) {
        begin(metrics, "sluice_tasks", run, "class", class);
        strbuf_adds(metrics->out, ",");
        add_label(metrics->out,
                  "state",
                  sched_state_name((enum task_state)state));
        strbuf_addf(metrics->out,
                    "} %u\n",
                    run->classes[class_ix].tasks[state]);
    }
}

static void
add_oldest(struct metrics *metrics, const struct tally *run, uint32_t class_ix)
{
    begin(metrics,
          "sluice_oldest_ready_seconds",
          run,
          "class",
          run->view.plan->classes[class_ix].name);
    strbuf_addf(metrics->out,
                "} %.3f\n",
                (double)run->classes[class_ix].oldest_ns / 1e9);
}

static void
add_waits(struct metrics *metrics, const struct tally *run, uint32_t class_ix)
{
    const struct counts *counts = &run->classes[class_ix];
    const char *class = run->view.plan->classes[class_ix].name;
    uint64_t sum = 0;
    for (uint32_t ix = 0; ix <= BUCKETS; ix++) {
        sum += counts->waits[ix];
        begin(metrics, "sluice_wait_seconds_bucket", run, "class", class);
        if (ix < BUCKETS) {
            strbuf_addf(metrics->out, ",le=\"%lld\"", (long long)bounds[ix]);
        } else {
            strbuf_adds(metrics->out, ",le=\"+Inf\"");
        }
        strbuf_addf(metrics->out, "} %llu\n", (unsigned long long)sum);
    }
    begin(metrics, "sluice_wait_seconds_sum", run, "class", class);
    strbuf_addf(metrics->out, "} %.3f\n", (double)counts->waited_ns / 1e9);
    begin(metrics, "sluice_wait_seconds_count", run, "class", class);
    strbuf_addf(metrics->out,
                "} %llu\n",
                (unsigned long long)counts->wait_count);
}

static void add_attempts(struct metrics *metrics,
                         const struct tally *run,
                         uint32_t class_ix)
{
    for (uint32_t ix = 0; ix < OUTCOME_COUNT; ix++) {
        if (ix == OUTCOME_FATAL) {
            continue; /* stored as failed */
        }
        begin(metrics,
              "sluice_attempts_total",
              run,
              "class",
              run->view.plan->classes[class_ix].name);
        strbuf_addf(metrics->out,
                    ",outcome=\"%s\"} %llu\n",
                    outcome_name(ix),
                    (unsigned long long)run->classes[class_ix].attempts[ix]);
    }
}

typedef void (*add_class_fn)(struct metrics *metrics,
                             const struct tally *run,
                             uint32_t class_ix);

/* Add a metric for every class that has tasks, in every run. */
static void for_classes(struct metrics *metrics, add_class_fn add)
{
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        const struct tally *run = &metrics->runs[ix];
        for (uint32_t at = 0; at < run->view.plan->class_count; at++) {
            uint32_t count = 0;
            for (uint32_t s = 0; s < TASK_STATE_COUNT; s++) {
                count += run->classes[at].tasks[s];
            }
            if (count > 0) {
                add(metrics, run, at);
            }
        }
    }
}

static void add_limits(struct metrics *metrics, bool used)
{
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        const struct tally *run = &metrics->runs[ix];
        const struct plan *plan = run->view.plan;
        const struct engine *engine = run->glance->view.engine;
        for (uint32_t limit = 0; limit < plan->limit_count; limit++) {
            struct limit_id id = load_limit(run->view.loaded, limit);
            int64_t max = sched_limit_max(engine_sched(engine), id);
            if (max == LIMIT_NONE || plan_is_paid(&plan->limits[limit])) {
                continue;
            }
            begin(metrics,
                  used ? "sluice_limit_used" : "sluice_limit_max",
                  run,
                  "limit",
                  plan->limits[limit].name);
            int64_t value =
                used ? snapshot_used(run->glance->snapshot, run->ix, limit)
                     : max;
            strbuf_addf(metrics->out, "} %lld\n", (long long)value);
        }
    }
}

/* Values that a monitor exports. */
enum usage_value { USAGE_PERCENT, USAGE_CAP, USAGE_PAUSED, USAGE_READABLE };

static void add_monitor(struct metrics *metrics,
                        const struct tally *run,
                        uint32_t monitor,
                        const char *name,
                        enum usage_value value)
{
    const struct engine *engine = run->glance->view.engine;
    struct engine_usage_view usage = engine_usage(engine, run->ix, monitor);
    const char *provider = usage.provider != NULL ? usage.provider : "";
    const int64_t values[] = {
        [USAGE_CAP] = usage.cap,
        [USAGE_PAUSED] = usage.cap == 0,
        [USAGE_READABLE] = usage.error == NULL,
    };
    for (uint32_t n = 0; value == USAGE_PERCENT && n < usage.meter_count; n++) {
        struct engine_meter meter =
            engine_usage_meter(engine, run->ix, monitor, n);
        begin(metrics, name, run, "provider", provider);
        strbuf_adds(metrics->out, ",");
        add_label(metrics->out, "meter", meter.name);
        strbuf_addf(metrics->out, "} %.10g\n", meter.percent);
    }
    if (value != USAGE_PERCENT &&
        (value != USAGE_CAP || usage.cap != LIMIT_NONE)) {
        begin(metrics, name, run, "provider", provider);
        strbuf_addf(metrics->out, "} %lld\n", (long long)values[value]);
    }
}

/* Skip finished runs: their monitors read nothing and the values are stale. */
static void add_usage(struct metrics *metrics,
                      const char *name,
                      const char *help,
                      enum usage_value value)
{
    head(metrics, name, "gauge", help);
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        const struct tally *run = &metrics->runs[ix];
        uint32_t count = run->view.finished ? 0 : run->view.plan->usage_count;
        for (uint32_t n = 0; n < count; n++) {
            add_monitor(metrics, run, n, name, value);
        }
    }
}

static void add_budgets(struct metrics *metrics, bool spent)
{
    const char *name = spent ? "sluice_budget_spent" : "sluice_budget_max";
    head(metrics,
         name,
         "gauge",
         spent ? "Amount spent of a budget, in USD or tokens."
               : "A budget, in USD or tokens.");
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        const struct tally *run = &metrics->runs[ix];
        const struct engine *engine = run->glance->view.engine;
        for (uint32_t n = 0; n < run->view.plan->limit_count; n++) {
            const struct plan_limit *limit = &run->view.plan->limits[n];
            if (!plan_is_budget(limit)) {
                continue;
            }
            int64_t units = spent ? engine_limit_spent(engine, run->ix, n)
                                  : engine_limit_set(engine, run->ix, n);
            double scale = limit->kind == PLAN_LIMIT_BUDGET_USD ? PLAN_USD : 1;
            begin(metrics, name, run, "budget", limit->name);
            strbuf_addf(metrics->out, "} %.10g\n", (double)units / scale);
        }
    }
}

static void add_money_lines(struct metrics *metrics)
{
    add_usage(metrics,
              "sluice_usage_percent",
              "Last value of a usage meter.",
              USAGE_PERCENT);
    add_usage(metrics,
              "sluice_usage_cap",
              "Cap set by a usage monitor; absent: none.",
              USAGE_CAP);
    add_usage(metrics,
              "sluice_usage_paused",
              "Whether a usage monitor pauses the run or provider.",
              USAGE_PAUSED);
    add_usage(metrics,
              "sluice_usage_readable",
              "Whether the last reading of a usage monitor succeeded.",
              USAGE_READABLE);
    add_budgets(metrics, false);
    add_budgets(metrics, true);
}

/* Add the cost of finished attempts, by run. */
static void add_costs(struct metrics *metrics)
{
    static const struct {
        const char *name;
        const char *help;
    } costs[COSTS] = {
        [COST_USD] = {"sluice_cost_usd_total", "Cost of attempts, in USD."},
        [COST_INPUT] = {"sluice_input_tokens_total",
                        "Input tokens of attempts, cached ones included."},
        [COST_CACHED] = {"sluice_cached_tokens_total",
                         "Input tokens of attempts that were cached."},
        [COST_OUTPUT] = {"sluice_output_tokens_total",
                         "Output tokens of attempts."},
    };
    for (uint32_t cost = 0; cost < COSTS; cost++) {
        head(metrics, costs[cost].name, "counter", costs[cost].help);
        for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
            begin(metrics, costs[cost].name, &metrics->runs[ix], NULL, NULL);
            strbuf_addf(metrics->out,
                        cost == COST_USD ? "} %.6f\n" : "} %.0f\n",
                        metrics->runs[ix].costs[cost]);
        }
    }
}

static void add_states(struct metrics *metrics)
{
    head(metrics,
         "sluice_run_finished",
         "gauge",
         "Whether a run has finished; it is shown for a day after its end.");
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        const struct tally *run = &metrics->runs[ix];
        begin(metrics, "sluice_run_finished", run, NULL, NULL);
        strbuf_addf(metrics->out, "} %d\n", run->view.finished);
    }
}

/* Values of a run that only an operator or time changes. */
enum run_value { RUN_STOPPED, RUN_SNOOZED, RUN_EARLY, RUN_UNAPPROVED };

static void add_values(struct metrics *metrics)
{
    static const struct {
        const char *name;
        const char *help;
    } values[] = {
        [RUN_STOPPED] = {"sluice_run_stopped",
                         "Whether a run is stopped by a failure or its "
                         "deadline."},
        [RUN_SNOOZED] = {"sluice_tasks_snoozed",
                         "Tasks that asked to be run again later."},
        [RUN_EARLY] = {"sluice_tasks_early",
                       "Tasks that wait for their not_before."},
        [RUN_UNAPPROVED] = {"sluice_tasks_unapproved",
                            "Tasks that wait for an operator's approval."},
    };
    for (size_t value = 0; value < ARRAY_COUNT(values); value++) {
        head(metrics, values[value].name, "gauge", values[value].help);
        for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
            const struct tally *run = &metrics->runs[ix];
            struct snapshot_pending pending =
                snapshot_pending(run->glance->snapshot, run->ix);
            const uint32_t counts[] = {
                [RUN_STOPPED] =
                    run->view.sched.stopped != SCHED_NOT_STOPPED ? 1 : 0,
                [RUN_SNOOZED] = pending.snoozed,
                [RUN_EARLY] = pending.early,
                [RUN_UNAPPROVED] = pending.unapproved,
            };
            begin(metrics, values[value].name, run, NULL, NULL);
            strbuf_addf(metrics->out, "} %u\n", counts[value]);
        }
    }
}

/* Add the forecasts of unfinished runs. */
static void add_forecasts(struct metrics *metrics)
{
    static const char name[] = "sluice_run_left_seconds";
    head(metrics, name, "gauge", "Forecast of the time until a run ends.");
    for (uint32_t ix = 0; ix < metrics->run_count; ix++) {
        const struct tally *run = &metrics->runs[ix];
        struct eta_end end = eta_find(run->glance->eta, run->view.number);
        if (end.runs > 0) {
            begin(metrics, name, run, "probability", "0.5");
            strbuf_addf(metrics->out, "} %.3f\n", (double)end.p50_ns / 1e9);
            begin(metrics, name, run, "probability", "0.9");
            strbuf_addf(metrics->out, "} %.3f\n", (double)end.p90_ns / 1e9);
        }
    }
}

static void add_run_lines(struct metrics *metrics)
{
    add_states(metrics);
    add_values(metrics);
    add_forecasts(metrics);
    head(metrics, "sluice_tasks", "gauge", "Tasks by class and state.");
    for_classes(metrics, add_tasks);
    head(metrics,
         "sluice_oldest_ready_seconds",
         "gauge",
         "How long the oldest ready task of a class has been ready.");
    for_classes(metrics, add_oldest);
    head(metrics,
         "sluice_wait_seconds",
         "histogram",
         "Time from ready to start.");
    for_classes(metrics, add_waits);
    head(metrics,
         "sluice_attempts_total",
         "counter",
         "Finished sessions by outcome.");
    for_classes(metrics, add_attempts);
    add_costs(metrics);
    head(metrics, "sluice_limit_max", "gauge", "Units of a limit.");
    add_limits(metrics, false);
    head(metrics, "sluice_limit_used", "gauge", "Units of a limit in use.");
    add_limits(metrics, true);
}

static void add_store_lines(struct metrics *metrics)
{
    const struct client_view *view = &metrics->glance.view;
    const struct store_info *info = engine_info(view->engine);
    head(metrics,
         "sluice_scheduler_up",
         "gauge",
         "Whether a live scheduler holds the store.");
    strbuf_addf(metrics->out,
                "sluice_scheduler_up %d\n",
                view->owned && view->silent_ns == 0 && !view->stopped);
    head(metrics,
         "sluice_commit_seconds",
         "summary",
         "Time spent in commits by the running or last scheduler.");
    strbuf_addf(metrics->out,
                "sluice_commit_seconds_sum %.6f\n"
                "sluice_commit_seconds_count %llu\n",
                (double)view->owner.commit_ns / 1e9,
                (unsigned long long)view->owner.commits);
    head(metrics,
         "sluice_usage_override",
         "gauge",
         "Whether usage monitors are overridden.");
    strbuf_addf(metrics->out,
                "sluice_usage_override %d\n",
                engine_is_overridden(view->engine));
    head(metrics, "sluice_events_total", "counter", "Events in the event log.");
    strbuf_addf(metrics->out,
                "sluice_events_total %llu\n",
                (unsigned long long)info->last_event);
    head(metrics,
         "sluice_sessions_total",
         "counter",
         "Sessions started, over all runs.");
    strbuf_addf(metrics->out,
                "sluice_sessions_total %llu\n",
                (unsigned long long)info->last_token);
}

enum err metrics_add(struct strbuf *out,
                     const struct glance_options *options,
                     struct diag *diag)
{
    struct metrics metrics = {.options = options, .out = out};
    enum err err = glance_take(&metrics.glance, options, diag);
    if (err == ERR_OK) {
        add_runs(&metrics, &metrics.glance);
        err = options->run == NULL ? add_finished(&metrics, diag) : ERR_OK;
    }
    if (err == ERR_OK) {
        err = count_all(&metrics, diag);
    }
    if (err == ERR_OK) {
        add_store_lines(&metrics);
        add_run_lines(&metrics);
        add_money_lines(&metrics);
    }
    release_counts(&metrics);
    event_release(&metrics.event);
    glance_release(&metrics.glance);
    return err;
}
