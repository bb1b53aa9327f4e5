/* SPDX-License-Identifier: MIT */
#include "tests/property/wave.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "core/idmap.h"
#include "core/why.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

enum { SESSIONS_MAX = 4096, CLASSES = 5, REPOS_MAX = 3 };

struct session {
    uint64_t token;
    struct task_id task;
    int64_t end_ns;
};

struct wave {
    struct wave_options options;
    struct rng rng;
    struct plan *plan;
    struct sched *sched;
    struct load *load;
    struct load_run *run;
    int64_t now_ns;
    struct session sessions[SESSIONS_MAX];
    uint32_t session_count;
    uint32_t ended;
    struct wave_result result;
};

static uint32_t below(struct wave *w, uint32_t bound)
{
    return rng_below(&w->rng, bound);
}

static bool chance(struct wave *w, uint32_t percent)
{
    return below(w, 100) < percent;
}

_Noreturn static void complain(const struct wave *w, const char *what)
{
    printf("# %s\n# replay: test_lookahead --replay %" PRIu64
           " %d %d %u %u %d %d\n",
           what,
           w->options.seed,
           (int)w->options.policy,
           (int)w->options.trouble,
           w->options.restore_at,
           w->options.effort,
           w->options.issues,
           w->options.more);
    (void)fflush(stdout);
    abort();
}

static void must(const struct wave *w, bool condition, const char *what)
{
    if (!condition) {
        complain(w, what);
    }
}

/* ---- a plan ---- */

static void draw_classes(struct wave *w, struct strbuf *out)
{
    strbuf_adds(out, "classes:\n");
    for (uint32_t ix = 0; ix < CLASSES; ix++) {
        strbuf_addf(out,
                    "  c%u: {tier: %u, defer: %s, batch: %u",
                    ix,
                    ix == 0 ? 0 : below(w, 3),
                    ix > 0 && chance(w, 30) ? "true" : "false",
                    chance(w, 20) ? 1 + below(w, 3) : 1);
        if (chance(w, 40)) {
            strbuf_addf(out, ", max_wait: %um", 5 + below(w, 90));
        }
        strbuf_adds(out, "}\n");
    }
}

static void draw_limits(struct wave *w, struct strbuf *out)
{
    strbuf_addf(out, "limits:\n  sessions: %u\n", 1 + below(w, 6));
    if (chance(w, 30)) {
        strbuf_addf(out, "  active: {max: %u}\n", 1 + below(w, 2));
    }
    if (chance(w, 30)) {
        strbuf_addf(out,
                    "  few: {max: %u, where: {class: c%u}}\n",
                    1 + below(w, 2),
                    below(w, CLASSES));
    }
    strbuf_addf(out,
                "resources: {gpu: %u, port: %u}\n",
                2 + below(w, 3),
                3 + below(w, 6));
}

static void draw_pipeline(struct wave *w, struct strbuf *out)
{
    strbuf_adds(out, "pipelines:\n  issue:\n");
    uint32_t stages = 2 + below(w, 3);
    for (uint32_t ix = 0; ix < stages; ix++) {
        strbuf_addf(out,
                    "    - {stage: s%u, class: %s%u, run: x, estimate: %us}\n",
                    ix,
                    "c",
                    below(w, CLASSES),
                    60 + below(w, 3600));
    }
}

static void draw_uses(struct wave *w, struct strbuf *out)
{
    if (chance(w, 50)) {
        strbuf_addf(out,
                    ", uses: {gpu: %u, port: %u}",
                    1 + below(w, 2),
                    1 + below(w, 3));
    }
}

static void draw_tasks(struct wave *w, struct strbuf *out, uint32_t repos)
{
    uint32_t groups = below(w, 8);
    strbuf_adds(out, groups > 0 ? "groups:\n" : "");
    for (uint32_t ix = 0; ix < groups; ix++) {
        strbuf_addf(out,
                    "  - {id: g%u, repo: r%u, pipeline: issue%s",
                    ix,
                    below(w, repos),
                    "");
        if (ix > 0 && chance(w, 30)) {
            strbuf_addf(out, ", needs: [g%u]", below(w, ix));
        }
        strbuf_adds(out, "}\n");
    }
    uint32_t tasks = 3 + below(w, 30);
    strbuf_adds(out, "tasks:\n");
    for (uint32_t ix = 0; ix < tasks; ix++) {
        strbuf_addf(out,
                    "  - {id: t%u, class: c%u, run: x, estimate: %us",
                    ix,
                    below(w, CLASSES),
                    chance(w, 3) ? 0 : 30 + below(w, 5000));
        if (ix > 0 && chance(w, 65)) {
            uint32_t back = 1 + below(w, ix < 9 ? ix : 9);
            strbuf_addf(out, ", needs: [t%u", ix - back);
            uint32_t other = below(w, ix);
            if (chance(w, 40) && other != ix - back) {
                strbuf_addf(out, ", t%u", other);
            }
            strbuf_adds(out, "]");
        }
        if (chance(w, 20)) {
            strbuf_addf(out, ", repo: r%u", below(w, repos));
        }
        draw_uses(w, out);
        strbuf_adds(out, "}\n");
    }
}

/* Issues of some repositories, each of one of a few pipelines. */
static void draw_issues(struct wave *w, struct strbuf *out, uint32_t repos)
{
    uint32_t pipelines = 1 + below(w, 3);
    strbuf_addf(out,
                "limits: {sessions: %u, active: 1}\npipelines:\n",
                2 + below(w, 3));
    for (uint32_t ix = 0; ix < pipelines; ix++) {
        strbuf_addf(out, "  p%u:\n", ix);
        uint32_t stages = 1 + below(w, 3);
        for (uint32_t n = 0; n < stages; n++) {
            strbuf_addf(
                out,
                "    - {stage: s%u, class: implement, run: x, estimate: %um}\n",
                n,
                5 + 5 * below(w, 6));
        }
    }
    strbuf_adds(out, "groups:\n");
    uint32_t groups = 4 + below(w, 11);
    for (uint32_t ix = 0; ix < groups; ix++) {
        strbuf_addf(out,
                    "  - {id: g%u, repo: r%u, pipeline: p%u}\n",
                    ix,
                    below(w, repos),
                    below(w, pipelines));
    }
}

static void draw_plan(struct wave *w)
{
    struct strbuf text = {0};
    uint32_t repos =
        w->options.issues ? 2 + below(w, 4) : 1 + below(w, REPOS_MAX);
    strbuf_adds(&text,
                "sluice: 1\nname: wave\nlookahead: {schedules: 160}\n"
                "defaults: {retry: {max: 1, backoff: 30s}}\nrepos: {");
    for (uint32_t ix = 0; ix < repos; ix++) {
        strbuf_addf(&text, "%sr%u: {}", ix > 0 ? ", " : "", ix);
    }
    strbuf_adds(&text, "}\n");
    if (w->options.issues) {
        draw_issues(w, &text, repos);
    } else {
        draw_classes(w, &text);
        draw_limits(w, &text);
        draw_pipeline(w, &text);
        draw_tasks(w, &text, repos);
    }
    struct plan_source source = {
        .file = "wave",
        .text = text.text,
        .len = text.len,
        .processors = 2,
    };
    struct plan_errors errors = {0};
    if (!plan_read(&w->plan, &source, &errors)) {
        printf("# %s\n", text.text);
        complain(w, errors.items[0].text);
    }
    w->plan->policy = w->options.policy;
    strbuf_release(&text);
}

/* ---- rules ---- */

/*
 * How the rules treat a task, whatever the policy: smaller goes first. An aged
 * background task goes first in its turn, else before others of its kind.
 */
static uint32_t level_of(struct sched_task task, bool its_turn)
{
    enum { BACKGROUND = 1000 };
    if (task.aged) {
        return task.background && !its_turn ? BACKGROUND : 0;
    }
    return 1 + task.tier + (task.background ? BACKGROUND : 0);
}

/*
 * Return whether a wide task that goes before `other` may have reserved units:
 * a short or narrow task may take those, while `other` may not.
 */
static bool
is_passed(const struct wave *w, struct task_id other, uint32_t level)
{
    for (uint32_t ix = 0; ix < sched_task_count(w->sched); ix++) {
        struct sched_task task = sched_task(w->sched, (struct task_id){ix});
        uint32_t planned = load_plan_task(w->run, (struct task_id){ix});
        if (ix != other.v && task.state == TASK_READY && !task.held &&
            level_of(task, true) <= level &&
            w->plan->tasks[planned].use_count > 0) {
            return true;
        }
    }
    return false;
}

/*
 * No task of a better level could have started in the place of this one. (Its
 * group may have been open before, and keeps its place whether it starts or
 * not, unless it is one of its own that is tried for the first time.)
 */
static void check_start(struct wave *w, struct task_id started)
{
    struct sched_task seen = sched_task(w->sched, started);
    uint32_t level = level_of(seen, true);
    bool fresh = seen.group.v == ID_NONE && seen.attempts == 1;
    for (uint32_t ix = 0; ix < sched_task_count(w->sched); ix++) {
        struct task_id other = {ix};
        struct sched_task task = sched_task(w->sched, other);
        if (task.state != TASK_READY || task.held ||
            level_of(task, false) >= level) {
            continue;
        }
        enum why_code why = why_task(w->sched, other).code;
        bool fits = why == WHY_PLANNED ||
                    (fresh && why != WHY_RESERVED &&
                     sched_fits_without(w->sched, other, started) &&
                     !is_passed(w, other, level_of(task, false)));
        must(w,
             !fits,
             "a worse tier was served before a better one that could run");
    }
}

/* Every task that is left has a reason, and plans hold nothing for long. */
static void check_left(struct wave *w)
{
    uint32_t in_flight = 0;
    (void)sched_in_flight(w->sched, &in_flight);
    for (uint32_t ix = 0; ix < sched_task_count(w->sched); ix++) {
        struct why why = why_task(w->sched, (struct task_id){ix});
        struct sched_task task = sched_task(w->sched, (struct task_id){ix});
        must(w, why.code != WHY_STARTABLE, "a task could start and did not");
        if (why.code != WHY_PLANNED) {
            continue;
        }
        w->result.planned++;
        struct sched_task first = sched_task(w->sched, why.task);
        must(w, !task.aged, "a task is held past its max_wait");
        must(w, in_flight > 0, "a plan waits for nothing");
        must(w,
             first.state == TASK_WAITING || first.state == TASK_READY,
             "a task is held for one that is not to come");
        must(w,
             level_of(first, true) <= level_of(task, false),
             "a task is held for one of a worse tier");
        must(w,
             sched_next_timer(w->sched) != SCHED_NEVER,
             "nobody looks whether a hold is over");
    }
}

/* ---- time ---- */

static int64_t length_of(struct wave *w, struct task_id leader)
{
    int64_t longest_ns = 0;
    int64_t sum_ns = 0;
    uint32_t marginal = 100;
    for (struct task_id task = leader; task.v != ID_NONE;
         task = sched_session_next(w->sched, task)) {
        const struct plan_task *t =
            &w->plan->tasks[load_plan_task(w->run, task)];
        int64_t estimate_ns = plan_estimate_ns(w->plan, t);
        longest_ns = estimate_ns > longest_ns ? estimate_ns : longest_ns;
        sum_ns += estimate_ns;
        marginal = w->plan->classes[t->class_ix].batch_marginal;
    }
    double rest_ns = (double)(sum_ns - longest_ns) * marginal / 100;
    int64_t length_ns = longest_ns + (int64_t)rest_ns;
    return w->options.trouble == WAVE_EXACT
               ? length_ns
               : length_ns / 100 * (60 + below(w, 90));
}

static void begin_session(struct wave *w, const struct sched_effect *start)
{
    must(w, w->session_count < SESSIONS_MAX, "too many sessions");
    w->sessions[w->session_count++] = (struct session){
        .token = start->token,
        .task = start->task,
        .end_ns = w->now_ns + length_of(w, start->task),
    };
    w->result.starts = idmap_hash(w->result.starts, start->task.v);
    w->result.starts = idmap_hash(w->result.starts, (uint64_t)w->now_ns);
    struct sched_event event = {
        .type = EVENT_STARTED,
        .now_ns = w->now_ns,
        .task = start->task,
        .token = start->token,
    };
    must(w, sched_apply(w->sched, &event) == ERR_OK, "a start is refused");
}

static void take_passes(struct wave *w)
{
    struct sched_effect effects[64];
    uint32_t count = 1;
    while (count > 0) {
        count = 0;
        struct sched_effect effect;
        uint32_t effort = w->options.effort;
        while (w->options.more ? sched_plan_more(w->sched, effort)
                               : sched_plan(w->sched, effort)) {
        }
        while (count < 64 && sched_next_effect(w->sched, &effect)) {
            if (effect.type == EFFECT_START) {
                check_start(w, effect.task);
                effects[count++] = effect;
            }
        }
        for (uint32_t ix = 0; ix < count; ix++) {
            begin_session(w, &effects[ix]);
        }
    }
    sched_verify(w->sched);
    check_left(w);
}

static void end_session(struct wave *w, uint32_t ix)
{
    struct session session = w->sessions[ix];
    w->session_count--;
    memmove(&w->sessions[ix],
            &w->sessions[ix + 1],
            (w->session_count - ix) * sizeof(session));
    enum sched_outcome outcome = OUTCOME_DONE;
    if (w->options.trouble == WAVE_ROUGH && chance(w, 8)) {
        outcome = OUTCOME_FAILED;
    }
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = w->now_ns,
        .task = session.task,
        .token = session.token,
        .outcomes = &outcome,
        .outcome_count = 1,
        .retry_at_ns = SCHED_NEVER,
    };
    must(w, sched_apply(w->sched, &event) == ERR_OK, "an end is refused");
    w->result.makespan_ns = w->now_ns;
    w->ended++;
}

/* An operator does something harmless. */
static void order(struct wave *w)
{
    static const enum sched_event_type types[] = {
        EVENT_LIMIT,
        EVENT_HOLD,
        EVENT_RELEASE,
        EVENT_SKIP,
    };
    struct sched_event event = {
        .type = types[below(w, 4)],
        .now_ns = w->now_ns,
        .task = {below(w, sched_task_count(w->sched))},
        .limit = load_limit(w->run, 0),
        .max = 1 + below(w, 5),
    };
    enum err err = sched_apply(w->sched, &event);
    must(w, err == ERR_OK || err == ERR_CONFLICT, "an order is invalid");
}

static void
setup(struct wave *w, const struct load_options *options, uint64_t last_token)
{
    w->sched = sched_new();
    w->load = load_new(w->sched);
    if (options != NULL) {
        sched_restore(w->sched, w->now_ns, last_token);
    }
    struct diag diag = {0};
    if (load_plan(w->load, w->now_ns, w->plan, options, &w->run, &diag) !=
        ERR_OK) {
        complain(w, diag.text);
    }
}

/* Another scheduler goes on from what the first one has recorded. */
static void restore(struct wave *w)
{
    uint32_t count = w->plan->task_count;
    struct sched_record *records = mem_zalloc(count, sizeof(records[0]));
    uint64_t last_token = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        struct sched_record *record = &records[ix];
        *record = sched_record(w->sched, load_task(w->run, ix));
        record->version = 1;
        last_token = record->token > last_token ? record->token : last_token;
        if (record->leader != ID_NONE) {
            record->leader =
                load_plan_task(w->run, (struct task_id){record->leader});
        }
        if (record->cause != ID_NONE) {
            record->cause =
                load_plan_task(w->run, (struct task_id){record->cause});
        }
    }
    struct sched_run_record run =
        sched_run_record(w->sched, load_run_id(w->run));
    struct load_options options = {.records = records, .run = &run};
    struct load *load = w->load;
    struct sched *sched = w->sched;
    setup(w, &options, last_token);
    load_free(load);
    sched_free(sched);
    mem_free(records);
}

/* The session that ends first; of several, the one that began first. */
static uint32_t next_end(const struct wave *w)
{
    uint32_t next = ID_NONE;
    for (uint32_t ix = 0; ix < w->session_count; ix++) {
        if (next == ID_NONE ||
            w->sessions[ix].end_ns < w->sessions[next].end_ns) {
            next = ix;
        }
    }
    return next;
}

/* Go to the next time at which something happens; false if nothing does. */
static bool go_on(struct wave *w)
{
    uint32_t next = next_end(w);
    int64_t at_ns = sched_next_timer(w->sched);
    if (next != ID_NONE && w->sessions[next].end_ns < at_ns) {
        at_ns = w->sessions[next].end_ns;
    }
    if (at_ns == SCHED_NEVER) {
        return false;
    }
    w->now_ns = at_ns > w->now_ns ? at_ns : w->now_ns;
    struct sched_event tick = {.type = EVENT_TICK, .now_ns = w->now_ns};
    must(w, sched_apply(w->sched, &tick) == ERR_OK, "time is refused");
    uint32_t before = w->ended;
    while (next != ID_NONE && w->sessions[next].end_ns <= w->now_ns) {
        end_session(w, next);
        next = next_end(w);
    }
    if (w->options.trouble == WAVE_ROUGH && chance(w, 10)) {
        order(w);
    }
    if (w->options.restore_at > before && w->options.restore_at <= w->ended) {
        restore(w);
    }
    return true;
}

struct wave_result wave_run(struct wave_options options)
{
    struct wave *w = mem_zalloc(1, sizeof(*w));
    w->options = options;
    rng_init(&w->rng, options.seed);
    draw_plan(w);
    setup(w, NULL, 0);
    uint32_t steps = 0;
    do {
        take_passes(w);
        must(w, ++steps < 100000, "it does not come to an end");
    } while (go_on(w));
    must(w, w->session_count == 0, "a session is left");
    if (options.trouble != WAVE_ROUGH) {
        struct sched_run run = sched_run(w->sched, load_run_id(w->run));
        must(w,
             run.counts[TASK_DONE] == w->plan->task_count,
             "something is left undone");
    }
    struct wave_result result = w->result;
    load_free(w->load);
    sched_free(w->sched);
    plan_free(w->plan);
    mem_free(w);
    return result;
}
