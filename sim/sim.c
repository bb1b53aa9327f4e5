/* SPDX-License-Identifier: MIT */
/*
 * The simulation loop: apply all events of one instant, run a scheduler pass,
 * then advance to the next event.
 *
 * Durations are drawn per task and attempt from the seed, not from one running
 * sequence: two policies are compared on the same durations.
 */
#include "sim/sim.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "sim/draw.h"
#include "sim/sim_internal.h"

/* Longest simulated time: about 146 years. */
#define SIM_NS_MAX (INT64_MAX / 2)

/* ---- future events ---- */

void sim_push_end(struct sim *sim, uint32_t ix)
{
    const struct sim_session *session = &sim->sessions[ix];
    future_push(&sim->futures,
                (struct future){
                    .at_ns = duration_sum(sim->now_ns, session->length_ns),
                    .session = ix,
                    .token = session->token,
                    .round = session->round,
                });
}

void sim_push_act(struct sim *sim, uint32_t task, int64_t after_ns)
{
    future_push(&sim->futures,
                (struct future){
                    .at_ns = duration_sum(sim->now_ns, after_ns),
                    .session = ID_NONE,
                    .item = task,
                });
}

/* ---- slots ---- */

static uint32_t take_lane(struct sim *sim)
{
    if (sim->free_lane_count == 0) {
        uint32_t lane = sim->lanes_used++;
        sim->free_lanes = mem_resize(sim->free_lanes,
                                     sim->lanes_used,
                                     sizeof(sim->free_lanes[0]));
        if (sim->lanes_used > sim->result->lane_count) {
            sim->result->lane_count = sim->lanes_used;
        }
        return lane;
    }
    uint32_t *lanes = sim->free_lanes;
    uint32_t smallest = lanes[0];
    uint32_t last = lanes[--sim->free_lane_count];
    uint32_t hole = 0;
    for (uint32_t child = 1; child < sim->free_lane_count;
         child = 2 * hole + 1) {
        if (child + 1 < sim->free_lane_count &&
            lanes[child + 1] < lanes[child]) {
            child++;
        }
        if (last < lanes[child]) {
            break;
        }
        lanes[hole] = lanes[child];
        hole = child;
    }
    lanes[hole] = last;
    return smallest;
}

static void free_lane(struct sim *sim, uint32_t lane)
{
    uint32_t *lanes = sim->free_lanes;
    uint32_t hole = sim->free_lane_count++;
    while (hole > 0 && lanes[(hole - 1) / 2] > lane) {
        lanes[hole] = lanes[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    lanes[hole] = lane;
}

static uint32_t new_session(struct sim *sim)
{
    if (sim->free_session_count == 0) {
        uint32_t old = sim->session_capacity;
        sim->session_capacity = old * 2 + 16;
        sim->sessions = mem_resize(sim->sessions,
                                   sim->session_capacity,
                                   sizeof(sim->sessions[0]));
        sim->free_sessions = mem_resize(sim->free_sessions,
                                        sim->session_capacity,
                                        sizeof(sim->free_sessions[0]));
        for (uint32_t ix = sim->session_capacity; ix-- > old;) {
            sim->sessions[ix].token = 0;
            sim->free_sessions[sim->free_session_count++] = ix;
        }
    }
    return sim->free_sessions[--sim->free_session_count];
}

/* ---- durations ---- */

static int64_t duration_of(const struct sim *sim, uint32_t task)
{
    int64_t estimate_ns = plan_estimate_ns(sim->plan, &sim->plan->tasks[task]);
    if (sim->options->replay != NULL) {
        return replay_length_ns(sim, task);
    }
    enum { OUTLIER = 5 };
    uint32_t outliers = sim->options->outlier_percent;
    if (sim->options->jitter_percent == 0 && outliers == 0) {
        return estimate_ns;
    }
    struct rng rng;
    rng_init(&rng, sim->options->seed);
    rng_init(&rng, rng_next(&rng) ^ ((uint64_t)task << 20));
    rng_init(&rng, rng_next(&rng) ^ sim->attempts[task]);
    if (outliers > 0 && rng_below(&rng, 100) < outliers) {
        return estimate_ns < SIM_NS_MAX / OUTLIER ? estimate_ns * OUTLIER
                                                  : SIM_NS_MAX;
    }
    /* Log-normal around the estimate, which stays the mean. */
    double spread = sim->options->jitter_percent / 100.0;
    double sigma = sqrt(log1p(spread * spread));
    double factor = exp(sigma * draw_normal(&rng) - sigma * sigma / 2);
    double drawn = (double)estimate_ns * factor;
    return drawn < (double)SIM_NS_MAX ? (int64_t)drawn : SIM_NS_MAX;
}

/* ---- starts and ends ---- */

static struct sim_span *add_span(struct sim *sim, struct task_id task)
{
    struct sim_result *result = sim->result;
    MEM_GROW(result->spans, result->span_count, result->span_capacity);
    uint32_t ix = load_plan_task(sim->run, task);
    struct sim_span *span = &result->spans[result->span_count++];
    *span = (struct sim_span){
        .task = ix,
        .attempt = sched_task(sim->sched, task).attempts,
        .ready_ns = sched_task(sim->sched, task).ready_ns,
        .start_ns = sim->now_ns,
        .end = SIM_END_RUNNING,
    };
    return span;
}

static void must(enum err err)
{
    INVARIANT(err == ERR_OK);
}

static void refuse(struct sim *sim, const struct sched_effect *start)
{
    const enum sched_outcome outcome = OUTCOME_REFUSED;
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = sim->now_ns,
        .task = start->task,
        .token = start->token,
        .outcomes = &outcome,
        .outcome_count = 1,
        .retry_at_ns = SCHED_NEVER,
    };
    sim->result->refusals++;
    must(sched_apply(sim->sched, &event));
}

static void begin(struct sim *sim, const struct sched_effect *start)
{
    const struct plan *plan = sim->plan;
    uint32_t ix = new_session(sim);
    struct sim_session *session = &sim->sessions[ix];
    *session = (struct sim_session){
        .token = start->token,
        .leader = start->task,
        .first_span = sim->result->span_count,
        .lane = take_lane(sim),
    };
    int64_t longest_ns = 0;
    int64_t sum_ns = 0;
    uint32_t marginal = 100;
    for (struct task_id task = start->task; task.v != ID_NONE;
         task = sched_session_next(sim->sched, task)) {
        struct sim_span *span = add_span(sim, task);
        sim->attempts[span->task]++;
        span->lane = session->lane;
        span->session = sim->result->session_count;
        session->span_count++;
        int64_t duration_ns = duration_of(sim, span->task);
        longest_ns = duration_ns > longest_ns ? duration_ns : longest_ns;
        sum_ns = duration_sum(sum_ns, duration_ns);
        marginal =
            plan->classes[plan->tasks[span->task].class_ix].batch_marginal;
    }
    sim->result->session_count++;
    /* The longest task in full, and the marginal part of every other task. */
    double rest_ns = (double)(sum_ns - longest_ns) * marginal / 100;
    session->length_ns = rest_ns < (double)SIM_NS_MAX
                             ? duration_sum(longest_ns, (int64_t)rest_ns)
                             : SIM_NS_MAX;
    queue_join(sim, session);
    sim_push_end(sim, ix);
    struct sched_event started = {
        .type = EVENT_STARTED,
        .now_ns = sim->now_ns,
        .task = start->task,
        .token = start->token,
    };
    must(sched_apply(sim->sched, &started));
}

/* Whether the task may be retried after an exit code: see `retry: {on}`. */
static bool is_retried(const struct plan *plan, uint32_t task)
{
    uint32_t on = plan->tasks[task].settings->retry_on;
    return on == 0 || (on & PLAN_CAUSE_EXIT) != 0 ||
           plan_reworks_on_failure(plan, &plan->tasks[task]);
}

/* A task of a session asks to be run again: all of them wait the longest. */
static void ask_later(struct sim_session *session, int64_t later_ns)
{
    if (later_ns > session->later_ns) {
        session->later_ns = later_ns;
    }
}

enum sim_end
sim_end_of(struct sim *sim, struct sim_session *session, uint32_t task)
{
    if (sim->options->replay != NULL) {
        enum sim_end end = replay_end(sim, task);
        if (end == SIM_END_LATER) {
            ask_later(session, replay_later_ns(sim, task));
        }
        return end;
    }
    const struct sim_planned *later = script_take(sim, SCRIPT_LATER, task);
    if (later != NULL) {
        ask_later(session, later->later_ns);
        return SIM_END_LATER;
    }
    if (script_take(sim, SCRIPT_FAIL, task) != NULL) {
        return is_retried(sim->plan, task) ? SIM_END_FAILED : SIM_END_FATAL;
    }
    if (script_take(sim, SCRIPT_FATAL, task) != NULL) {
        return SIM_END_FATAL;
    }
    if (script_take(sim, SCRIPT_CHANGES, task) != NULL) {
        return SIM_END_CHANGES;
    }
    if (script_take(sim, SCRIPT_CHECKPOINT, task) != NULL) {
        return SIM_END_CHECKPOINT;
    }
    if (script_take(sim, SCRIPT_BLOCK, task) != NULL) {
        return SIM_END_BLOCKED;
    }
    return SIM_END_DONE;
}

void sim_finish(struct sim *sim, uint32_t ix, bool cancelled)
{
    static const enum sched_outcome outcomes_of[] = {
        [SIM_END_DONE] = OUTCOME_DONE,
        [SIM_END_FAILED] = OUTCOME_FAILED,
        [SIM_END_CHANGES] = OUTCOME_CHANGES,
        [SIM_END_BLOCKED] = OUTCOME_BLOCKED,
        [SIM_END_CHECKPOINT] = OUTCOME_CHECKPOINT,
        [SIM_END_LATER] = OUTCOME_LATER,
        [SIM_END_FATAL] = OUTCOME_FATAL,
        [SIM_END_CANCELLED] = OUTCOME_FAILED,
        [SIM_END_REFUSED] = OUTCOME_REFUSED,
    };
    struct sim_session session = sim->sessions[ix];
    enum sched_outcome *outcomes =
        mem_zalloc(session.span_count, sizeof(outcomes[0]));
    for (uint32_t n = 0; n < session.span_count; n++) {
        struct sim_span *span = &sim->result->spans[session.first_span + n];
        span->end = cancelled         ? SIM_END_CANCELLED
                    : session.decided ? session.end
                                      : sim_end_of(sim, &session, span->task);
        span->end_ns = sim->now_ns;
        outcomes[n] = outcomes_of[span->end];
    }
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = sim->now_ns,
        .task = session.leader,
        .token = session.token,
        .outcomes = outcomes,
        .outcome_count = session.span_count,
        .retry_at_ns = session.later_ns > 0
                           ? duration_sum(sim->now_ns, session.later_ns)
                           : SCHED_NEVER,
        .progress = sim->options->replay != NULL,
    };
    must(sched_apply(sim->sched, &event));
    mem_free(outcomes);
    for (uint32_t n = 0; n < session.span_count; n++) {
        struct sim_span *span = &sim->result->spans[session.first_span + n];
        struct task_id task = load_task(sim->run, span->task);
        enum task_state state = sched_task(sim->sched, task).state;
        if (state == TASK_CANCELLED || state == TASK_SKIPPED) {
            span->end = SIM_END_CANCELLED;
        }
        if (sim->options->replay != NULL) {
            replay_ended(sim, span);
        }
    }
    free_lane(sim, session.lane);
    sim->sessions[ix].token = 0;
    sim->free_sessions[sim->free_session_count++] = ix;
    sim->result->makespan_ns = sim->now_ns;
    sim->slot_ns_at_end = sim->slot_ns;
    queue_left(sim, &session);
}

/* Cancel the session of this token at once. */
static void cancel(struct sim *sim, uint64_t token)
{
    for (uint32_t ix = 0; ix < sim->session_capacity; ix++) {
        if (sim->sessions[ix].token == token) {
            sim_finish(sim, ix, true);
            return;
        }
    }
    INVARIANT(token == 0); /* every token has a session */
}

/* Approve a task that waits for it, unless the script does; return whether. */
static bool approve(struct sim *sim, struct task_id id)
{
    struct sched_task seen = sched_task(sim->sched, id);
    const struct plan_task *task =
        &sim->plan->tasks[load_plan_task(sim->run, id)];
    if (seen.state != TASK_READY || !seen.unapproved ||
        script_approves(sim, task->id)) {
        return false;
    }
    must(sched_apply(sim->sched,
                     &(struct sched_event){
                         .type = EVENT_APPROVE,
                         .now_ns = sim->now_ns,
                         .task = id,
                     }));
    return true;
}

/* Execute one effect; return whether the scheduler needs another pass. */
static bool carry_out(struct sim *sim, const struct sched_effect *effect)
{
    uint32_t ix = 0;
    switch (effect->type) {
    case EFFECT_END:
        cancel(sim, effect->token);
        return true;
    case EFFECT_START:
        ix = sim->plan->tasks[load_plan_task(sim->run, effect->task)].provider;
        if (script_take(sim, SCRIPT_REFUSE, ix) != NULL) {
            refuse(sim, effect);
        } else {
            begin(sim, effect);
        }
        return true;
    case EFFECT_BARRIER:
        /* The hook takes no time here, and adds nothing. */
        must(sched_apply(sim->sched,
                         &(struct sched_event){
                             .type = EVENT_BARRIER_DONE,
                             .now_ns = sim->now_ns,
                             .run = effect->run,
                         }));
        return true;
    case EFFECT_TASK:
        return approve(sim, effect->task);
    case EFFECT_STOPPED:
        sim->result->stopped_ns = sim->now_ns;
        return false;
    case EFFECT_CIRCUIT:
    case EFFECT_RUN:
        return false;
    }
    return false;
}

/* Run one pass: collect all effects, then execute them, as the engine does
 * after its commit. Their consequences belong to the next pass. */
static void take_passes(struct sim *sim)
{
    struct sched_effect *effects = NULL;
    uint32_t capacity = 0;
    bool again = true;
    while (again) {
        again = false;
        uint32_t count = 0;
        struct sched_effect effect;
        /* A real scheduler has time until the first session exits. */
        bool first = sim->result->span_count == 0;
        while (first ? sched_plan_more(sim->sched, UINT32_MAX)
                     : sched_plan(sim->sched, UINT32_MAX)) {
        }
        while (sched_next_effect(sim->sched, &effect)) {
            if (effect.type == EFFECT_TASK && !sim->approvals) {
                continue;
            }
            MEM_GROW(effects, count, capacity);
            effects[count++] = effect;
        }
        for (uint32_t ix = 0; ix < count; ix++) {
            again = carry_out(sim, &effects[ix]) || again;
        }
    }
    mem_free(effects);
}

/* ---- the loop ---- */

static int64_t next_ns(const struct sim *sim)
{
    return future_next_ns(&sim->futures, sched_next_timer(sim->sched));
}

/* Apply all events of this instant. */
static enum err apply_now(struct sim *sim, struct diag *diag)
{
    must(sched_apply(sim->sched,
                     &(struct sched_event){
                         .type = EVENT_TICK,
                         .now_ns = sim->now_ns,
                     }));
    while (future_next_ns(&sim->futures, SCHED_NEVER) == sim->now_ns) {
        struct future future = future_pop(&sim->futures);
        if (future.session == ID_NONE && future.item != PLAN_NONE) {
            replay_act(sim, future.item);
        } else if (future.session == ID_NONE) {
            enum err err = script_next(sim, diag);
            if (err != ERR_OK) {
                return err;
            }
        } else if (sim->sessions[future.session].token == future.token &&
                   sim->sessions[future.session].round == future.round &&
                   !queue_waits(sim, future.session)) {
            sim_finish(sim, future.session, false);
        }
    }
    return ERR_OK;
}

static enum err run_to_end(struct sim *sim, struct diag *diag)
{
    for (;;) {
        enum err err = apply_now(sim, diag);
        if (err != ERR_OK) {
            return err;
        }
        take_passes(sim);
        int64_t at_ns = next_ns(sim);
        if (at_ns == SCHED_NEVER && sim->futures.count == 0) {
            return ERR_OK;
        }
        if (at_ns > SIM_NS_MAX) {
            return diag_set(
                diag,
                ERR_LIMIT,
                "the simulation exceeds 140 years: check the estimates");
        }
        measure_interval(sim, at_ns - sim->now_ns);
        sim->now_ns = at_ns;
    }
}

/* ---- setting up and reporting ---- */

/* Turn off the rules that the options exclude. */
static void apply_rules(struct plan *plan, uint32_t rules)
{
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        struct plan_class *class = &plan->classes[ix];
        if ((rules & SIM_RULE_PRIORITY) == 0) {
            class->tier = 0;
        }
        if ((rules & SIM_RULE_DEFER) == 0) {
            class->defer = false;
        }
        if ((rules & (SIM_RULE_DEFER | SIM_RULE_PRIORITY)) == 0) {
            class->max_wait_ns = PLAN_UNLIMITED;
        }
        if ((rules & SIM_RULE_BATCH) == 0) {
            class->batch = 1;
        }
    }
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        struct plan_limit *limit = &plan->limits[ix];
        limit->background = limit->background && (rules & SIM_RULE_DEFER) != 0;
    }
    uint32_t review = plan_find_limit(plan, "review");
    if ((rules & SIM_RULE_CAP) == 0 && review != PLAN_NONE) {
        plan->limits[review].max = PLAN_UNLIMITED;
        plan->limits[review].percent = 0;
    }
}

void sim_reserve(struct sim *sim)
{
    struct sim_result *result = sim->result;
    uint32_t count = sim->plan->task_count;
    uint32_t old = result->task_count;
    sim->attempts = mem_resize(sim->attempts, count, sizeof(uint32_t));
    sim->worth = mem_resize(sim->worth, count, sizeof(uint32_t));
    for (uint32_t ix = old; ix < count; ix++) {
        sim->attempts[ix] = 0;
        sim->approvals = sim->approvals || sim->plan->tasks[ix].approve;
    }
    result->task_count = count;
    uint32_t classes = sim->plan->class_count;
    result->classes =
        mem_resize(result->classes, classes, sizeof(result->classes[0]));
    for (uint32_t ix = result->class_count; ix < classes; ix++) {
        result->classes[ix] = (struct sim_class){0};
    }
    result->class_count = classes;
    sim->deferred =
        issues_deferred(sim->plan, sim->deferred, sim->deferred_count);
    sim->deferred_count = classes;
    uint32_t limits = sim->plan->limit_count;
    result->limit_wait_ns =
        mem_resize(result->limit_wait_ns, limits, sizeof(int64_t));
    for (uint32_t ix = result->limit_count; ix < limits; ix++) {
        result->limit_wait_ns[ix] = 0;
    }
    result->limit_count = limits;
    measure_prepare(sim);
}

/* Count a task, and list it with its reason unless it is done. */
static void list_task(void *ctx, struct task_id task, const struct why *why)
{
    struct sim *sim = ctx;
    struct sim_result *result = sim->result;
    struct sched_task seen = sched_task(sim->sched, task);
    result->counts[seen.state]++;
    result->last_count += seen.last ? 1 : 0;
    result->last_done += seen.last && seen.state == TASK_DONE ? 1 : 0;
    if (seen.state == TASK_DONE && !seen.revoked) {
        return;
    }
    struct sim_left *left = &result->left[result->left_count++];
    *left = (struct sim_left){
        .task = load_plan_task(sim->run, task),
        .state = seen.state,
        .revoked = seen.revoked,
        .last = seen.last,
        .why = *why,
    };
    if (why->task.v != ID_NONE) {
        left->why.task.v = load_plan_task(sim->run, why->task);
    }
    if (why->limit.v != ID_NONE) {
        left->why.limit.v = load_plan_limit(sim->run, why->limit);
    }
}

/* Find which tasks are spared: follow the causes. `places`: 1 + position in the
 * list, per task; 0: done. */
static bool is_spared(const struct sim_result *result,
                      const uint32_t *places,
                      const struct sim_left *left)
{
    for (uint32_t step = 0; step < result->task_count; step++) {
        if (left->state != TASK_SKIPPED || left->why.task.v == ID_NONE) {
            return false;
        }
        uint32_t place = places[left->why.task.v];
        if (place == 0) {
            return true;
        }
        left = &result->left[place - 1];
    }
    return false;
}

/* Move the spared tasks behind the others; both stay in order. */
static void part_spared(struct sim_result *result)
{
    uint32_t count = result->left_count;
    struct sim_left *parted = mem_zalloc(count, sizeof(parted[0]));
    uint32_t *places = mem_zalloc(result->task_count, sizeof(places[0]));
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        places[result->left[ix].task] = ix + 1;
    }
    for (uint32_t spared = 0; spared < 2; spared++) {
        for (uint32_t ix = 0; ix < count; ix++) {
            const struct sim_left *left = &result->left[ix];
            if (is_spared(result, places, left) == (spared == 1)) {
                parted[kept++] = *left;
            }
        }
        result->left_count = spared == 0 ? kept : result->left_count;
    }
    INVARIANT(kept == count);
    result->spared_count = count - result->left_count;
    mem_free(places);
    mem_free(result->left);
    result->left = parted;
}

/* Find the task because of which the run is stopped. */
static uint32_t find_stopper(const struct sim *sim)
{
    for (uint32_t ix = 0; ix < sim->result->left_count; ix++) {
        const struct sim_left *left = &sim->result->left[ix];
        const struct plan_task *task = &sim->plan->tasks[left->task];
        if (left->state == TASK_PARKED &&
            task->settings->on_failure == PLAN_ON_FAILURE_STOP) {
            return left->task;
        }
    }
    return PLAN_NONE;
}

/* List the tasks that are not done, and how the run ended. */
static void list_left(struct sim *sim)
{
    struct sim_result *result = sim->result;
    result->left = mem_zalloc(result->task_count, sizeof(result->left[0]));
    why_all(sim->sched, list_task, sim);
    part_spared(result);
    struct sched_run run = sched_run(sim->sched, load_run_id(sim->run));
    result->cancelled = run.cancelled;
    result->stopped = run.stopped;
    result->stop_task =
        run.stopped == SCHED_STOPPED_FAILURE ? find_stopper(sim) : PLAN_NONE;
}

static enum err simulate(struct sim *sim, struct diag *diag)
{
    struct load_options options = {
        .no_budgets = true,
        .start_ns = sim->options->start_ns,
        .clock_offset_ns = sim->options->start_ns,
        .not_before_ns = INT64_MIN,
    };
    enum err err =
        load_plan(sim->load, 0, sim->plan, &options, &sim->run, diag);
    if (err != ERR_OK) {
        return err;
    }
    sim_reserve(sim);
    err = script_resolve(sim, diag);
    if (err != ERR_OK) {
        return err;
    }
    const struct sim_script *script = sim->options->script;
    for (uint32_t ix = 0; script != NULL && ix < script->request_count; ix++) {
        future_push(&sim->futures,
                    (struct future){
                        .at_ns = script->requests[ix].at_ns,
                        .session = ID_NONE,
                        .item = PLAN_NONE,
                    });
    }
    if (sim->options->replay != NULL) {
        replay_begin(sim);
    }
    err = run_to_end(sim, diag);
    if (err == ERR_OK) {
        list_left(sim);
        measure_finish(sim);
    }
    return err;
}

enum err sim_run(struct sim_result **out,
                 struct plan *plan,
                 const struct sim_options *options,
                 struct diag *diag)
{
    *out = NULL;
    struct sim sim = {
        .plan = plan,
        .options = options,
        .deferred = issues_deferred(plan, NULL, 0),
        .deferred_count = plan->class_count,
    };
    apply_rules(plan, options->rules);
    plan_set_policy(plan, options->policy);
    sim.sched = sched_new();
    sim.load = load_new(sim.sched);
    sim.result = mem_zalloc(1, sizeof(*sim.result));
    sim.result->policy = options->policy;
    sim.result->goal = plan->goal;
    sim.result->rules = options->rules;
    enum err err = simulate(&sim, diag);
    if (err == ERR_OK) {
        *out = sim.result;
    } else {
        sim_result_free(sim.result);
    }
    future_release(&sim.futures);
    mem_free(sim.sessions);
    mem_free(sim.free_sessions);
    mem_free(sim.free_lanes);
    mem_free(sim.attempts);
    mem_free(sim.planned);
    mem_free(sim.worth);
    mem_free(sim.deferred);
    load_free(sim.load);
    sched_free(sim.sched);
    return err;
}

void sim_result_free(struct sim_result *result)
{
    if (result != NULL) {
        mem_free(result->classes);
        mem_free(result->spans);
        mem_free(result->limit_wait_ns);
        mem_free(result->left);
        mem_free(result);
    }
}

const char *sim_policy_name(enum plan_policy policy)
{
    static const char *const names[] = {
        [PLAN_POLICY_RANK] = "rank",
        [PLAN_POLICY_FAIR] = "fair",
        [PLAN_POLICY_FIFO] = "fifo",
        [PLAN_POLICY_LOOKAHEAD] = "lookahead",
    };
    return names[policy];
}

const char *sim_goal_name(enum plan_goal goal)
{
    return goal == PLAN_GOAL_FINISH_MANY ? "finish-many" : "finish-all";
}

const char *sim_end_name(enum sim_end end)
{
    static const char *const names[] = {
        [SIM_END_DONE] = "done",
        [SIM_END_FAILED] = "failed",
        [SIM_END_CHANGES] = "changes",
        [SIM_END_BLOCKED] = "blocked",
        [SIM_END_CHECKPOINT] = "checkpoint",
        [SIM_END_LATER] = "later",
        [SIM_END_FATAL] = "fatal",
        [SIM_END_CANCELLED] = "cancelled",
        [SIM_END_REFUSED] = "refused",
        [SIM_END_RUNNING] = "running",
    };
    return names[end];
}
