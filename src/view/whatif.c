/* SPDX-License-Identifier: MIT */
/*
 * Attempts come from the chart of the statistics, which knows the tasks of a
 * batch: one span per task and session, in order of their claims. The n-th span
 * of a task belongs to its n-th claim in the event log, which has its state
 * after the session and the time for which it was parked.
 *
 * A session of n tasks took L. Each of them gets the equal length that makes a
 * simulated batch of the same tasks take L again.
 */
#include "view/whatif.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "engine/engine.h"

#include <string.h>

/* --- claims -------------------------------------------------------------- */

/* A start of a task, from the event log. */
struct claim {
    bool ended;
    enum task_state to; /* after its session */
    int64_t parked_ns;  /* after it; or until it is ready again */
};

/* All claims, by task. */
struct claims {
    uint32_t *first; /* per task, and the end of the last */
    struct claim *items;
    int64_t *seen_ns; /* per task: its first event; -1: none */
};

static bool is_claim(const struct run_history_event *event)
{
    return event->kind == HISTORY_TASK && event->to == TASK_STARTING;
}

/* Note an event of a task in its last claim so far. */
static void note_event(struct claim *claim,
                       const struct run_history_event *event,
                       int64_t *parked_at_ns)
{
    if (*parked_at_ns >= 0) {
        claim->parked_ns += event->at_ns - *parked_at_ns;
        *parked_at_ns = -1;
    }
    bool in_flight = event->to == TASK_STARTING || event->to == TASK_RUNNING;
    if (event->to == TASK_PARKED || event->to == TASK_FAILED ||
        (event->to == TASK_WAITING && !claim->ended)) {
        *parked_at_ns = event->at_ns;
    }
    if (!claim->ended && !in_flight) {
        claim->ended = true;
        claim->to = event->to;
    }
}

static void collect_claims(struct claims *claims,
                           const struct run_history *history)
{
    uint32_t count = history->plan->task_count;
    claims->first = mem_zalloc((size_t)count + 1, sizeof(claims->first[0]));
    claims->seen_ns = mem_zalloc(count, sizeof(claims->seen_ns[0]));
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        if (is_claim(&history->events[ix])) {
            claims->first[history->events[ix].task + 1]++;
        }
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        claims->first[ix + 1] += claims->first[ix];
        claims->seen_ns[ix] = -1;
    }
    claims->items = mem_zalloc(claims->first[count], sizeof(struct claim));
    uint32_t *used = mem_zalloc(count, sizeof(used[0]));
    int64_t *parked_at_ns = mem_zalloc(count, sizeof(parked_at_ns[0]));
    memset(parked_at_ns, 0xff, count * sizeof(parked_at_ns[0])); /* -1 */
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        const struct run_history_event *event = &history->events[ix];
        uint32_t task = event->task;
        if (event->kind != HISTORY_TASK) {
            continue;
        }
        if (claims->seen_ns[task] < 0) {
            claims->seen_ns[task] = event->at_ns;
        }
        struct claim *claim = &claims->items[claims->first[task] + used[task]];
        if (used[task] > 0) {
            note_event(claim - 1, event, &parked_at_ns[task]);
        }
        used[task] += is_claim(event) ? 1 : 0;
    }
    mem_free(used);
    mem_free(parked_at_ns);
}

static void release_claims(struct claims *claims)
{
    mem_free(claims->first);
    mem_free(claims->items);
    mem_free(claims->seen_ns);
}

/* --- attempts ------------------------------------------------------------ */

static bool is_replayed(enum sim_end end)
{
    return end != SIM_END_REFUSED && end != SIM_END_CANCELLED &&
           end != SIM_END_RUNNING;
}

/* Return the length that each task of a session has in a replay. */
static int64_t share_of(const struct plan *plan,
                        const struct sim_span *span,
                        uint32_t task_count)
{
    uint32_t class_ix = plan->tasks[span->task].class_ix;
    double marginal = plan->classes[class_ix].batch_marginal / 100.0;
    double length_ns = (double)(span->end_ns - span->start_ns);
    return task_count < 2
               ? span->end_ns - span->start_ns
               : (int64_t)(length_ns / (1 + (task_count - 1) * marginal) + 0.5);
}

/* Return the outcome of one task of a session. That of the session is the
 * first task's; the log has the states of the others. */
static enum sim_end
end_of(const struct sim_span *span, uint32_t tasks, const struct claim *claim)
{
    if (tasks < 2 || claim == NULL || !claim->ended) {
        return span->end;
    }
    if (claim->to == TASK_DONE) {
        return SIM_END_DONE;
    }
    return span->end != SIM_END_DONE ? span->end : SIM_END_FAILED;
}

/* Add the attempts of all tasks, in order of their claims. */
static void add_attempts(struct whatif *whatif, const struct claims *claims)
{
    const struct sim_result *chart = whatif->stats->chart;
    const struct plan *plan = whatif->stats->history->plan;
    struct replay *replay = &whatif->replay;
    uint32_t *tasks = mem_zalloc(chart->session_count, sizeof(tasks[0]));
    uint32_t *seen = mem_zalloc(plan->task_count, sizeof(seen[0]));
    for (uint32_t ix = 0; ix < chart->span_count; ix++) {
        const struct sim_span *span = &chart->spans[ix];
        tasks[span->session]++;
        replay->tasks[span->task].count += is_replayed(span->end) ? 1 : 0;
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        replay->tasks[ix].first = replay->attempt_count;
        replay->attempt_count += replay->tasks[ix].count;
        replay->tasks[ix].count = 0;
    }
    replay->attempts =
        mem_zalloc(replay->attempt_count, sizeof(replay->attempts[0]));
    for (uint32_t ix = 0; ix < chart->span_count; ix++) {
        const struct sim_span *span = &chart->spans[ix];
        uint32_t number = claims->first[span->task] + seen[span->task]++;
        const struct claim *claim = number < claims->first[span->task + 1]
                                        ? &claims->items[number]
                                        : NULL;
        if (!is_replayed(span->end)) {
            continue;
        }
        struct replay_task *task = &replay->tasks[span->task];
        replay->attempts[task->first + task->count++] = (struct replay_attempt){
            .length_ns = share_of(plan, span, tasks[span->session]),
            .parked_ns = claim != NULL ? claim->parked_ns : 0,
            .end = end_of(span, tasks[span->session], claim),
        };
    }
    mem_free(tasks);
    mem_free(seen);
}

/* Count the attempts of a task that had ended at that time. */
static uint32_t
count_ended(const struct whatif *whatif, uint32_t task, int64_t at_ns)
{
    const struct sim_result *chart = whatif->stats->chart;
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < chart->span_count; ix++) {
        const struct sim_span *span = &chart->spans[ix];
        count += span->task == task && is_replayed(span->end) &&
                         span->end_ns <= at_ns
                     ? 1
                     : 0;
    }
    return count;
}

/* Mark the tasks of fragments, which were not there from the start. */
static void find_late(struct whatif *whatif, const struct claims *claims)
{
    const struct run_history *history = whatif->stats->history;
    struct replay *replay = &whatif->replay;
    size_t len = strlen(ENGINE_ADDED_BY);
    for (uint32_t ix = 1;
         history->source_tasks != NULL && ix < history->source_count;
         ix++) {
        const char *file = history->sources[ix].file;
        uint32_t first = history->source_tasks[ix - 1];
        uint32_t end = history->source_tasks[ix];
        uint32_t adder = strncmp(file, ENGINE_ADDED_BY, len) == 0
                             ? plan_find_task(history->plan, file + len)
                             : PLAN_NONE;
        uint32_t count =
            adder != PLAN_NONE && first < end
                ? count_ended(whatif, adder, claims->seen_ns[first])
                : 0;
        for (uint32_t n = first; n < end; n++) {
            replay->tasks[n].late = true;
            replay->tasks[n].adder = count > 0 ? adder : PLAN_NONE;
            replay->tasks[n].adder_count = count;
            replay->adds = replay->adds || count > 0;
        }
    }
}

/* --- requests ------------------------------------------------------------ */

/* What happened beside the sessions, as a script. */
struct story {
    const struct run_history *history;
    const struct replay *replay;
    const struct whatif_settings *settings;
    const struct plan *plan; /* with these settings */
    struct sim_script *script;
    int64_t cap;        /* as the run had it */
    int64_t *usage_max; /* per usage monitor */
    bool override;
    bool *seen; /* per task */
};

static void tell(struct story *story,
                 int64_t at_ns,
                 enum script_request request,
                 const char *name,
                 int64_t max)
{
    struct script_at at = {
        .at_ns = at_ns,
        .request = request,
        .name = name != NULL ? mem_strdup(name) : NULL,
        .max = max,
    };
    sim_script_add_request(story->script, &at); /* it takes a copy */
    mem_free(at.name);
}

/* Return the cap of the replay, when the run had that of the story. */
static int64_t cap_of(const struct story *story)
{
    for (uint32_t ix = 0; ix < story->settings->limit_count; ix++) {
        const struct whatif_limit *limit = &story->settings->limits[ix];
        if (limit->limit != 0) {
            continue;
        }
        if (limit->step == 0) {
            return limit->max;
        }
        if (story->cap == PLAN_UNLIMITED || story->cap == 0) {
            return story->cap;
        }
        int64_t cap = story->cap + limit->step;
        return cap > 1 ? cap : 1;
    }
    return story->cap;
}

/* Tell of the cap and of the limits of usage monitors. */
static void tell_limits(struct story *story, int64_t at_ns)
{
    const struct plan *plan = story->plan;
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        int64_t max = ix == 0 ? cap_of(story) : plan->limits[ix].max;
        bool told = ix == 0;
        for (uint32_t n = 0; n < plan->usage_count; n++) {
            if (plan->usages[n].limit == ix) {
                told = true;
                max = !story->override && story->usage_max[n] < max
                          ? story->usage_max[n]
                          : max;
            }
        }
        if (told) {
            tell(story, at_ns, SCRIPT_LIMIT, plan->limits[ix].name, max);
        }
    }
}

/* Tell of the first event of a task, and that it was skipped. */
static void tell_task(struct story *story,
                      const struct run_history_event *event)
{
    const struct replay_task *task = &story->replay->tasks[event->task];
    const char *id = story->plan->tasks[event->task].id;
    bool first = !story->seen[event->task];
    bool idle = task->count == 0 && !task->done; /* never starts */
    story->seen[event->task] = true;
    if (first && task->late && task->adder == PLAN_NONE && !idle) {
        tell(story, event->at_ns, SCRIPT_RELEASE, id, 0);
    }
    if (event->to == TASK_SKIPPED && idle) {
        tell(story, event->at_ns, SCRIPT_SKIP, id, 0);
    }
}

static void tell_event(struct story *story,
                       const struct run_history_event *event)
{
    const struct replay_task *task = NULL;
    switch (event->kind) {
    case HISTORY_TASK:
        tell_task(story, event);
        break;
    case HISTORY_END:
        break;
    case HISTORY_LIMIT: /* of the cap, or of a budget */
        if (event->part == 0) {
            story->cap = event->max;
            tell_limits(story, event->at_ns);
        }
        break;
    case HISTORY_USAGE:
        story->usage_max[event->part] = event->max;
        tell_limits(story, event->at_ns);
        break;
    case HISTORY_OVERRIDE:
        story->override = event->max != 0;
        tell_limits(story, event->at_ns);
        break;
    case HISTORY_PAUSE:
    case HISTORY_RESUME:
        tell(story,
             event->at_ns,
             event->kind == HISTORY_PAUSE ? SCRIPT_PAUSE : SCRIPT_RESUME,
             NULL,
             0);
        break;
    case HISTORY_HOLD:
    case HISTORY_RELEASE:
        task = &story->replay->tasks[event->task];
        if (task->count > 0 || task->done) {
            tell(story,
                 event->at_ns,
                 event->kind == HISTORY_HOLD ? SCRIPT_HOLD : SCRIPT_RELEASE,
                 story->plan->tasks[event->task].id,
                 0);
        }
        break;
    }
}

static void tell_all(struct sim_script *script,
                     const struct whatif *whatif,
                     const struct whatif_settings *settings,
                     const struct plan *plan)
{
    const struct run_history *history = whatif->stats->history;
    struct story story = {
        .history = history,
        .replay = &whatif->replay,
        .settings = settings,
        .plan = plan,
        .script = script,
        .cap = history->plan->limits[0].max,
        .usage_max = mem_zalloc(plan->usage_count, sizeof(int64_t)),
        .seen = mem_zalloc(plan->task_count, sizeof(bool)),
    };
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        story.usage_max[ix] = PLAN_UNLIMITED;
    }
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        tell_event(&story, &history->events[ix]);
    }
    mem_free(story.usage_max);
    mem_free(story.seen);
}

/* --- the whole ----------------------------------------------------------- */

/* Count the sessions by whether they are replayed, and find the last end. */
static void count_sessions(struct whatif *whatif)
{
    const struct run_history *history = whatif->stats->history;
    whatif->run.makespan_ns = 0;
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
        if (session->outcome == HISTORY_REFUSED) {
            whatif->refused++;
        } else if (session->outcome == HISTORY_STOPPED) {
            whatif->stopped++;
        } else if (session->outcome == HISTORY_OPEN) {
            whatif->running++;
        } else {
            whatif->replayed++;
            whatif->run.makespan_ns =
                session->ended_ns > whatif->run.makespan_ns
                    ? session->ended_ns
                    : whatif->run.makespan_ns;
        }
    }
}

static void measure_run(struct whatif *whatif)
{
    const struct run_history *history = whatif->stats->history;
    const struct plan *plan = history->plan;
    bool *deferred = issues_deferred(plan, NULL, 0);
    bool *done = mem_zalloc(plan->task_count, sizeof(done[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        done[ix] = history->tasks[ix].state == TASK_DONE;
    }
    whatif->run.goal = plan->goal;
    whatif->run.issues = issues_of(plan,
                                   deferred,
                                   done,
                                   whatif->run.spans,
                                   whatif->run.span_count);
    mem_free(deferred);
    mem_free(done);
}

void whatif_init(struct whatif *whatif, const struct stats *stats)
{
    const struct run_history *history = stats->history;
    uint32_t count = history->plan->task_count;
    *whatif = (struct whatif){.stats = stats, .run = *stats->chart};
    whatif->replay.task_count = count;
    whatif->replay.tasks = mem_zalloc(count, sizeof(struct replay_task));
    for (uint32_t ix = 0; ix < count; ix++) {
        enum task_state state = history->tasks[ix].state;
        whatif->replay.tasks[ix].done = state == TASK_DONE;
        whatif->replay.tasks[ix].skipped = state == TASK_SKIPPED;
        whatif->replay.tasks[ix].adder = PLAN_NONE;
    }
    struct claims claims = {0};
    collect_claims(&claims, history);
    add_attempts(whatif, &claims);
    find_late(whatif, &claims);
    release_claims(&claims);
    count_sessions(whatif);
    measure_run(whatif);
}

void whatif_release(struct whatif *whatif)
{
    replay_release(&whatif->replay);
    *whatif = (struct whatif){0};
}

enum err whatif_set(struct plan *plan,
                    const struct whatif_settings *settings,
                    struct diag *diag)
{
    for (uint32_t ix = 0; ix < settings->limit_count; ix++) {
        const struct whatif_limit *wanted = &settings->limits[ix];
        struct plan_limit *limit = &plan->limits[wanted->limit];
        if (limit->mark.line == 0) {
            limit->mark.line = 1; /* given: no policy has another default */
        }
        if (wanted->step == 0) {
            limit->max = wanted->percent > 0 ? 0 : wanted->max;
            limit->percent = wanted->percent;
            continue;
        }
        if (limit->percent > 0 || limit->max == PLAN_UNLIMITED) {
            return diag_set(diag,
                            ERR_INVALID,
                            "limit %s has %s: give a number, not a step",
                            limit->name,
                            limit->percent > 0 ? "a percentage" : "no maximum");
        }
        if (limit->max + wanted->step < 1) {
            return diag_set(diag,
                            ERR_INVALID,
                            "limit %s has only %lld: at least 1 must be left",
                            limit->name,
                            (long long)limit->max);
        }
        limit->max += wanted->step;
    }
    plan->goal = settings->goal != NULL ? *settings->goal : plan->goal;
    return ERR_OK;
}

enum err whatif_run(const struct whatif *whatif,
                    const struct whatif_settings *settings,
                    struct plan **plan_out,
                    struct sim_result **result_out,
                    struct diag *diag)
{
    *plan_out = NULL;
    *result_out = NULL;
    const struct run_history *history = whatif->stats->history;
    struct plan *plan = NULL;
    enum err err = run_history_read_plan(history, &plan, diag);
    if (err == ERR_OK) {
        err = whatif_set(plan, settings, diag);
    }
    if (err != ERR_OK) {
        plan_free(plan);
        return err;
    }
    INVARIANT(plan->task_count == whatif->replay.task_count);
    struct sim_script script = {0};
    tell_all(&script, whatif, settings, plan);
    struct sim_options options = {
        .policy = settings->policy != NULL ? *settings->policy : plan->policy,
        .rules = SIM_RULES_ALL,
        .script = &script,
        .replay = &whatif->replay,
        .start_ns = history->created_ns,
    };
    err = sim_run(result_out, plan, &options, diag);
    sim_script_release(&script);
    if (err == ERR_OK) {
        *plan_out = plan;
    } else {
        plan_free(plan);
    }
    return err;
}

uint32_t whatif_lost(const struct whatif *whatif,
                     const struct sim_result *result)
{
    uint32_t lost = 0;
    for (uint32_t ix = 0; ix < result->left_count; ix++) {
        lost += whatif->replay.tasks[result->left[ix].task].done ? 1 : 0;
    }
    return lost;
}
