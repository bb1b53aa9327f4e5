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
#include "sim/sim_internal.h"

#include <math.h>

/* Longest simulated time: about 146 years. */
#define SIM_NS_MAX (INT64_MAX / 2)

/* ---- future events ---- */

static bool comes_first(const struct sim_future *a, const struct sim_future *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void
push_future(struct sim *sim, int64_t at_ns, uint32_t session, uint64_t token)
{
    MEM_GROW(sim->futures, sim->future_count, sim->future_capacity);
    struct sim_future future = {at_ns, sim->planned_seq++, session, token};
    uint32_t hole = sim->future_count++;
    while (hole > 0 && comes_first(&future, &sim->futures[(hole - 1) / 2])) {
        sim->futures[hole] = sim->futures[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    sim->futures[hole] = future;
}

static struct sim_future pop_future(struct sim *sim)
{
    INVARIANT(sim->future_count > 0);
    struct sim_future *futures = sim->futures;
    struct sim_future first = futures[0];
    struct sim_future last = futures[--sim->future_count];
    uint32_t hole = 0;
    for (uint32_t child = 1; child < sim->future_count; child = 2 * hole + 1) {
        if (child + 1 < sim->future_count &&
            comes_first(&futures[child + 1], &futures[child])) {
            child++;
        }
        if (comes_first(&last, &futures[child])) {
            break;
        }
        futures[hole] = futures[child];
        hole = child;
    }
    futures[hole] = last;
    return first;
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
    if (sim->options->jitter_percent == 0) {
        return estimate_ns;
    }
    struct rng rng;
    rng_init(&rng, sim->options->seed);
    rng_init(&rng, rng_next(&rng) ^ ((uint64_t)task << 20));
    rng_init(&rng, rng_next(&rng) ^ sim->attempts[task]);
    /* Log-normal around the estimate, which stays the mean. */
    const double two_pi = 6.283185307179586;
    double spread = sim->options->jitter_percent / 100.0;
    double sigma = sqrt(log1p(spread * spread));
    double radius = sqrt(-2.0 * log1p(-rng_unit(&rng)));
    double normal = radius * cos(two_pi * rng_unit(&rng));
    double factor = exp(sigma * normal - sigma * sigma / 2);
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
    int64_t length_ns = rest_ns < (double)SIM_NS_MAX
                            ? duration_sum(longest_ns, (int64_t)rest_ns)
                            : SIM_NS_MAX;
    push_future(sim, duration_sum(sim->now_ns, length_ns), ix, start->token);
    struct sched_event started = {
        .type = EVENT_STARTED,
        .now_ns = sim->now_ns,
        .task = start->task,
        .token = start->token,
    };
    must(sched_apply(sim->sched, &started));
}

/* Return the outcome of a task's session, by the script. */
static enum sim_end end_of(struct sim *sim, uint32_t task)
{
    if (script_take(sim, SCRIPT_FAIL, task)) {
        return SIM_END_FAILED;
    }
    if (script_take(sim, SCRIPT_CHANGES, task)) {
        return SIM_END_CHANGES;
    }
    if (script_take(sim, SCRIPT_CHECKPOINT, task)) {
        return SIM_END_CHECKPOINT;
    }
    if (script_take(sim, SCRIPT_BLOCK, task)) {
        return SIM_END_BLOCKED;
    }
    return SIM_END_DONE;
}

static void finish(struct sim *sim, uint32_t ix, bool cancelled)
{
    static const enum sched_outcome outcomes_of[] = {
        [SIM_END_DONE] = OUTCOME_DONE,
        [SIM_END_FAILED] = OUTCOME_FAILED,
        [SIM_END_CHANGES] = OUTCOME_CHANGES,
        [SIM_END_BLOCKED] = OUTCOME_BLOCKED,
        [SIM_END_CHECKPOINT] = OUTCOME_CHECKPOINT,
        [SIM_END_CANCELLED] = OUTCOME_FAILED,
        [SIM_END_REFUSED] = OUTCOME_REFUSED,
    };
    struct sim_session session = sim->sessions[ix];
    enum sched_outcome *outcomes =
        mem_zalloc(session.span_count, sizeof(outcomes[0]));
    for (uint32_t n = 0; n < session.span_count; n++) {
        struct sim_span *span = &sim->result->spans[session.first_span + n];
        span->end = cancelled ? SIM_END_CANCELLED : end_of(sim, span->task);
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
        .retry_at_ns = SCHED_NEVER,
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
    }
    free_lane(sim, session.lane);
    sim->sessions[ix].token = 0;
    sim->free_sessions[sim->free_session_count++] = ix;
    sim->result->makespan_ns = sim->now_ns;
    sim->slot_ns_at_end = sim->slot_ns;
}

/* Cancel the session of this token at once. */
static void cancel(struct sim *sim, uint64_t token)
{
    for (uint32_t ix = 0; ix < sim->session_capacity; ix++) {
        if (sim->sessions[ix].token == token) {
            finish(sim, ix, true);
            return;
        }
    }
    INVARIANT(token == 0); /* every token has a session */
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
        if (script_take(sim, SCRIPT_REFUSE, ix)) {
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
    case EFFECT_CIRCUIT:
    case EFFECT_TASK:
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
        while (sched_plan(sim->sched, UINT32_MAX)) {
        }
        while (sched_next_effect(sim->sched, &effect)) {
            if (effect.type == EFFECT_TASK) {
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
    int64_t at_ns = sched_next_timer(sim->sched);
    if (sim->future_count > 0 && sim->futures[0].at_ns < at_ns) {
        at_ns = sim->futures[0].at_ns;
    }
    return at_ns;
}

/* Apply all events of this instant. */
static enum err apply_now(struct sim *sim, struct diag *diag)
{
    must(sched_apply(sim->sched,
                     &(struct sched_event){
                         .type = EVENT_TICK,
                         .now_ns = sim->now_ns,
                     }));
    while (sim->future_count > 0 && sim->futures[0].at_ns == sim->now_ns) {
        struct sim_future future = pop_future(sim);
        if (future.session == ID_NONE) {
            enum err err = script_next(sim, diag);
            if (err != ERR_OK) {
                return err;
            }
        } else if (sim->sessions[future.session].token == future.token) {
            finish(sim, future.session, false);
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
        if (at_ns == SCHED_NEVER && sim->future_count == 0) {
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
    }
    result->task_count = count;
    uint32_t classes = sim->plan->class_count;
    result->classes =
        mem_resize(result->classes, classes, sizeof(result->classes[0]));
    for (uint32_t ix = result->class_count; ix < classes; ix++) {
        result->classes[ix] = (struct sim_class){0};
    }
    result->class_count = classes;
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
    if (seen.state == TASK_DONE && !seen.revoked) {
        return;
    }
    struct sim_left *left = &result->left[result->left_count++];
    *left = (struct sim_left){
        .task = load_plan_task(sim->run, task),
        .state = seen.state,
        .revoked = seen.revoked,
        .why = *why,
    };
    if (why->task.v != ID_NONE) {
        left->why.task.v = load_plan_task(sim->run, why->task);
    }
    if (why->limit.v != ID_NONE) {
        left->why.limit.v = load_plan_limit(sim->run, why->limit);
    }
}

static void list_left(struct sim *sim)
{
    sim->result->left =
        mem_zalloc(sim->result->task_count, sizeof(sim->result->left[0]));
    why_all(sim->sched, list_task, sim);
}

static enum err simulate(struct sim *sim, struct diag *diag)
{
    struct load_options options = {.no_budgets = true};
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
        push_future(sim, script->requests[ix].at_ns, ID_NONE, 0);
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
    apply_rules(plan, options->rules);
    plan->policy = options->policy;
    struct sim sim = {.plan = plan, .options = options};
    sim.sched = sched_new();
    sim.load = load_new(sim.sched);
    sim.result = mem_zalloc(1, sizeof(*sim.result));
    sim.result->policy = options->policy;
    sim.result->rules = options->rules;
    enum err err = simulate(&sim, diag);
    if (err == ERR_OK) {
        *out = sim.result;
    } else {
        sim_result_free(sim.result);
    }
    mem_free(sim.futures);
    mem_free(sim.sessions);
    mem_free(sim.free_sessions);
    mem_free(sim.free_lanes);
    mem_free(sim.attempts);
    mem_free(sim.planned);
    mem_free(sim.worth);
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

const char *sim_end_name(enum sim_end end)
{
    static const char *const names[] = {
        [SIM_END_DONE] = "done",
        [SIM_END_FAILED] = "failed",
        [SIM_END_CHANGES] = "changes",
        [SIM_END_BLOCKED] = "blocked",
        [SIM_END_CHECKPOINT] = "checkpoint",
        [SIM_END_CANCELLED] = "cancelled",
        [SIM_END_REFUSED] = "refused",
        [SIM_END_RUNNING] = "running",
    };
    return names[end];
}
