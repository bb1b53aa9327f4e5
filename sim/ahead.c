/* SPDX-License-Identifier: MIT */
/*
 * Each draw loads the state into a scheduler of its own and runs it to the end:
 * apply all events of one instant, run a pass, advance to the next event.
 *
 * Numbers are drawn per task and attempt from the seed, not from one running
 * sequence: a draw does not depend on the order of starts, so two states that
 * differ little have forecasts that differ little.
 */
#include "sim/ahead.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "plan/load.h"
#include "sim/draw.h"
#include "sim/future.h"

/* Longest time ahead: about 146 years. */
#define AHEAD_NS_MAX (INT64_MAX / 2)

enum {
    /* A draw stops after this many sessions, in case that a plan can repeat its
     * tasks without end. */
    SESSIONS_PER_TASK = 100,
};

/* Standard deviation of the logarithm of an estimate that is not learned. */
static const double level_default = 0.5;

/* The same of the odds of a rate, which is believed as if it had been seen in
 * so many more sessions. */
static const double rate_sessions = 10;
static const double rate_spread_max = 0.7;

struct session {
    uint64_t token; /* 0: the entry is free */
    struct task_id leader;
    uint32_t next_free; /* ID_NONE: none */
    uint32_t run;
    uint32_t task; /* of the plan */
    uint32_t count;
    int64_t length_ns;
    uint32_t queue; /* repository whose merge queue it is in, or PLAN_NONE */
    uint32_t round; /* how often it restarted in the queue */
    bool gated;     /* in a queue: it waits for those before it */
    bool decided;   /* in a queue: `outcome` is set */
    enum sched_outcome outcome;
};

/* By how much the estimates of a class are wrong in a draw: normal deviates. */
struct level {
    double length;
    double changes;
};

/* A run of the state: facts that all draws share. */
struct course {
    const struct ahead_run *from;
    struct plan plan;              /* from->plan, without its deadline */
    struct plan_outlook *outlooks; /* per task */
    struct level *levels;          /* per class, of the draw */
    struct load_run *loaded;       /* of the draw */
    struct ahead_end *end;         /* of the draw */
};

struct ahead {
    const struct ahead_state *state;
    struct course *runs;
    uint64_t task_count; /* of all runs */
    bool approvals;      /* a task needs an approval */

    /* Of the draw. */
    uint64_t seed;
    struct sched *sched;
    struct load *load;
    int64_t now_ns;
    uint64_t session_total;
    struct futures futures; /* ends of sessions, and of limits (item) of runs */
    struct session *sessions;
    uint32_t session_count; /* entries in use or free */
    uint32_t free_session;  /* ID_NONE: none */
    uint32_t session_capacity;
    enum sched_outcome *outcomes; /* of one session */
    uint32_t outcome_capacity;
};

/* ---- random numbers ---- */

enum use { USE_LENGTH, USE_OUTCOME, USE_LEVEL };

/* Start the sequence for an item of the draw. */
static struct rng sequence(const struct ahead *ahead,
                           enum use use,
                           uint32_t run,
                           uint32_t item,
                           uint32_t number)
{
    struct rng rng;
    rng_init(&rng, ahead->seed);
    rng_init(&rng, rng_next(&rng) ^ ((uint64_t)run << 32 | item));
    rng_init(&rng, rng_next(&rng) ^ ((uint64_t)use << 32 | number));
    return rng;
}

static int64_t at_most(double ns)
{
    return ns < (double)AHEAD_NS_MAX ? (int64_t)ns : AHEAD_NS_MAX;
}

/* Probability that a standard normal number is greater than z. */
static double tail(double z)
{
    return erfc(z * 0.7071067811865476) / 2;
}

/* Return the z of a tail probability, which is at least `low`. */
static double tail_inverse(double probability, double low)
{
    enum { STEPS = 60 };
    double high = 40; /* beyond, a tail is 0 */
    low = low > -40 ? low : -40;
    for (int step = 0; step < STEPS; step++) {
        double middle = (low + high) / 2;
        if (tail(middle) > probability) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

int64_t ahead_remaining_ns(int64_t median_ns,
                           double sigma,
                           int64_t elapsed_ns,
                           double unit)
{
    INVARIANT(median_ns >= 0 && sigma >= 0 && elapsed_ns >= 0);
    INVARIANT(unit >= 0 && unit < 1);
    double rest = 1 - unit; /* in (0, 1] */
    if (median_ns == 0 || sigma == 0) {
        return median_ns > elapsed_ns ? median_ns - elapsed_ns : 0;
    }
    double elapsed = (double)elapsed_ns;
    double z = elapsed_ns > 0 ? log(elapsed / (double)median_ns) / sigma : -40;
    if (tail(z) < 1e-300) {
        /* So far out, the length is nearly exponential. */
        return at_most(elapsed * sigma / z * -log(rest));
    }
    double drawn = tail_inverse(tail(z) * rest, z);
    double left = (double)median_ns * exp(sigma * drawn) - elapsed;
    return left > 0 ? at_most(left) : 0;
}

/* ---- future events ---- */

static void push_end(struct ahead *ahead, uint32_t ix)
{
    const struct session *session = &ahead->sessions[ix];
    future_push(&ahead->futures,
                (struct future){
                    .at_ns = duration_sum(ahead->now_ns, session->length_ns),
                    .session = ix,
                    .token = session->token,
                    .round = session->round,
                });
}

static void must(enum err err)
{
    INVARIANT(err == ERR_OK);
}

/* ---- sessions ---- */

/* The factor by which the estimate of a task is wrong in this draw. */
static double level_of(const struct course *run, uint32_t task)
{
    const struct plan_outlook *outlook = &run->outlooks[task];
    double prior = 1 / (level_default * level_default);
    double known = outlook->sigma > 0 ? (double)outlook->sessions /
                                            (outlook->sigma * outlook->sigma)
                                      : (double)outlook->sessions * prior;
    double spread = 1 / sqrt(prior + known);
    uint32_t class_ix = run->from->plan->tasks[task].class_ix;
    return exp(spread * run->levels[class_ix].length);
}

/* The rate of requests for changes in this draw. */
static double changes_of(const struct course *run, uint32_t task)
{
    const struct plan_outlook *outlook = &run->outlooks[task];
    double rate = outlook->changes;
    if (rate <= 0 || rate >= 1) {
        return rate;
    }
    double seen = (double)outlook->sessions + rate_sessions;
    double spread = fmin(1 / sqrt(seen * rate * (1 - rate)), rate_spread_max);
    uint32_t class_ix = run->from->plan->tasks[task].class_ix;
    double odds =
        rate / (1 - rate) * exp(spread * run->levels[class_ix].changes);
    return odds / (1 + odds);
}

/* The length of a session whose median is known, as the sum over its tasks. */
struct length {
    int64_t longest_ns;
    int64_t sum_ns;
    double sigma; /* of the longest task */
};

/* Add the tasks of a session. */
static struct length length_of(const struct ahead *ahead,
                               struct session *session)
{
    const struct course *run = &ahead->runs[session->run];
    struct length length = {0};
    for (struct task_id task = session->leader; task.v != ID_NONE;
         task = sched_session_next(ahead->sched, task)) {
        const struct plan_outlook *outlook =
            &run->outlooks[load_plan_task(run->loaded, task)];
        length.sum_ns = duration_sum(length.sum_ns, outlook->median_ns);
        if (outlook->median_ns >= length.longest_ns) {
            length.longest_ns = outlook->median_ns;
            length.sigma = outlook->sigma;
        }
        session->count++;
    }
    return length;
}

/* Draw the length of a session that has lasted `elapsed_ns`, from now on. */
static void
draw_length(struct ahead *ahead, struct session *session, int64_t elapsed_ns)
{
    const struct course *run = &ahead->runs[session->run];
    const struct plan *plan = run->from->plan;
    const struct plan_task *first = &plan->tasks[session->task];
    struct length length = length_of(ahead, session);
    /* The longest task in full, and the marginal part of every other task. */
    double rest = (double)(length.sum_ns - length.longest_ns) *
                  plan->classes[first->class_ix].batch_marginal / 100;
    double median = (double)length.longest_ns + rest;
    int64_t median_ns = at_most(median * level_of(run, session->task));
    struct rng rng =
        sequence(ahead,
                 USE_LENGTH,
                 session->run,
                 session->task,
                 sched_task(ahead->sched, session->leader).attempts);
    session->length_ns = elapsed_ns > 0
                             ? ahead_remaining_ns(median_ns,
                                                  length.sigma,
                                                  elapsed_ns,
                                                  rng_unit(&rng))
                             : at_most((double)median_ns *
                                       exp(length.sigma * draw_normal(&rng)));
    int64_t timeout_ns = first->settings->timeout_ns;
    if (timeout_ns > 0 && session->length_ns > timeout_ns - elapsed_ns) {
        session->length_ns =
            timeout_ns > elapsed_ns ? timeout_ns - elapsed_ns : 0;
    }
}

static uint32_t new_session(struct ahead *ahead)
{
    uint32_t ix = ahead->free_session;
    if (ix != ID_NONE) {
        ahead->free_session = ahead->sessions[ix].next_free;
        return ix;
    }
    MEM_GROW(ahead->sessions, ahead->session_count, ahead->session_capacity);
    return ahead->session_count++;
}

/* A session of the core begins, or was in flight at the beginning. */
static void begin(struct ahead *ahead, struct task_id leader, bool in_flight)
{
    struct sched_task task = sched_task(ahead->sched, leader);
    const struct course *run = &ahead->runs[task.run.v];
    uint32_t ix = new_session(ahead);
    struct session *session = &ahead->sessions[ix];
    *session = (struct session){
        .token = task.token,
        .leader = leader,
        .run = task.run.v,
        .task = load_plan_task(run->loaded, leader),
    };
    const struct plan_task *of = &run->from->plan->tasks[session->task];
    draw_length(ahead,
                session,
                in_flight && run->from->elapsed_ns != NULL
                    ? run->from->elapsed_ns[session->task]
                    : 0);
    session->queue = of->merge && session->count == 1 ? of->repo : PLAN_NONE;
    run->end->sessions++;
    ahead->session_total++;
    push_end(ahead, ix);
    if (task.state == TASK_STARTING) {
        must(sched_apply(ahead->sched,
                         &(struct sched_event){
                             .type = EVENT_STARTED,
                             .now_ns = ahead->now_ns,
                             .task = leader,
                             .token = task.token,
                         }));
    }
}

/* Whether an outcome would park the task. */
static bool parks(const struct plan_task *task,
                  const struct sched_task *now,
                  enum sched_outcome outcome)
{
    if (outcome == OUTCOME_CHANGES) {
        return task->rework_to == PLAN_NONE || now->reworks >= task->rework_max;
    }
    return outcome != OUTCOME_DONE && now->tries >= task->settings->retry_max &&
           (task->settings->on_failure == PLAN_ON_FAILURE_PARK ||
            task->settings->on_failure == PLAN_ON_FAILURE_ASK ||
            task->settings->on_failure == PLAN_ON_FAILURE_STOP);
}

/* Draw the outcome of a task's session. */
static enum sched_outcome
draw_outcome(const struct ahead *ahead, uint32_t run, struct task_id task)
{
    const struct course *course = &ahead->runs[run];
    uint32_t ix = load_plan_task(course->loaded, task);
    const struct plan *plan = course->from->plan;
    const struct plan_outlook *outlook = &course->outlooks[ix];
    struct sched_task now = sched_task(ahead->sched, task);
    struct rng rng = sequence(ahead, USE_OUTCOME, run, ix, now.attempts);
    double unit = rng_unit(&rng);
    bool gate = plan_has_role(plan, &plan->tasks[ix], PLAN_ROLE_GATE);
    bool rework = plan->tasks[ix].rework_to != PLAN_NONE;
    enum sched_outcome outcome = OUTCOME_DONE;
    if (unit < outlook->fails) {
        /* Lost: a gate that fails asks for changes. */
        outcome = gate && rework ? OUTCOME_LOST : OUTCOME_FAILED;
    } else if (unit < outlook->fails + changes_of(course, ix)) {
        outcome = gate && !rework ? OUTCOME_FAILED : OUTCOME_CHANGES;
    }
    if (parks(&plan->tasks[ix], &now, outcome)) {
        course->end->parked++;
        return OUTCOME_DONE;
    }
    return outcome;
}

/* End a session. `cancelled`: the core has asked for it. */
static void end_session(struct ahead *ahead, uint32_t ix, bool cancelled)
{
    struct session session = ahead->sessions[ix];
    struct task_id task = session.leader;
    if (ahead->outcome_capacity < session.count) {
        ahead->outcome_capacity = session.count;
        MEM_RESIZE(ahead->outcomes, session.count);
    }
    for (uint32_t n = 0; n < session.count; n++) {
        ahead->outcomes[n] = cancelled ? OUTCOME_FAILED
                             : session.decided
                                 ? session.outcome
                                 : draw_outcome(ahead, session.run, task);
        task = sched_session_next(ahead->sched, task);
    }
    must(sched_apply(ahead->sched,
                     &(struct sched_event){
                         .type = EVENT_ENDED,
                         .now_ns = ahead->now_ns,
                         .task = session.leader,
                         .token = session.token,
                         .outcomes = ahead->outcomes,
                         .outcome_count = session.count,
                         .retry_at_ns = SCHED_NEVER,
                     }));
    ahead->sessions[ix].token = 0;
    ahead->sessions[ix].next_free = ahead->free_session;
    ahead->free_session = ix;
    ahead->runs[session.run].end->end_ns = ahead->now_ns - ahead->state->now_ns;
}

/* ---- merge queues, as in queue.c ---- */

/* Return the oldest session of the same queue with a token greater than
 * `after`, or ID_NONE. */
static uint32_t
next_of(const struct ahead *ahead, const struct session *of, uint64_t after)
{
    uint32_t found = ID_NONE;
    for (uint32_t ix = 0; ix < ahead->session_count; ix++) {
        const struct session *session = &ahead->sessions[ix];
        if (session->token > after && session->run == of->run &&
            session->queue == of->queue &&
            (found == ID_NONE ||
             session->token < ahead->sessions[found].token)) {
            found = ix;
        }
    }
    return found;
}

/* Restart all sessions of the queue behind `of`. */
static void restart(struct ahead *ahead, const struct session *of)
{
    uint32_t ix;
    uint64_t token = of->token;
    while ((ix = next_of(ahead, of, token)) != ID_NONE) {
        struct session *session = &ahead->sessions[ix];
        token = session->token;
        session->round++;
        session->gated = false;
        push_end(ahead, ix);
    }
}

/* Whether a session whose gate has ended waits for others in its queue. */
static bool queue_waits(struct ahead *ahead, uint32_t ix)
{
    struct session *session = &ahead->sessions[ix];
    if (session->queue == PLAN_NONE) {
        return false;
    }
    if (!session->decided) {
        session->decided = true;
        session->outcome = draw_outcome(ahead, session->run, session->leader);
    }
    session->gated = true;
    if (session->outcome != OUTCOME_DONE) {
        restart(ahead, session);
    }
    return session->outcome != OUTCOME_LOST && next_of(ahead, session, 0) != ix;
}

/* Adapt the window of the queue, as the engine does. */
static void adapt(struct ahead *ahead, const struct session *session)
{
    const struct course *run = &ahead->runs[session->run];
    const struct plan *plan = run->from->plan;
    uint32_t limit = plan_window_of(plan, &plan->tasks[session->task]);
    if (limit == PLAN_NONE || !session->decided) {
        return;
    }
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = ahead->now_ns,
        .limit = load_limit(run->loaded, limit),
    };
    int64_t now = sched_limit_max(ahead->sched, event.limit);
    event.max =
        load_next_window(now, plan->limits[limit].max, session->outcome);
    if (event.max != now) {
        must(sched_apply(ahead->sched, &event));
    }
}

/* A session has ended; return another of its queue that ends now, too, or
 * ID_NONE. */
static uint32_t queue_left(struct ahead *ahead, const struct session *session)
{
    if (session->queue == PLAN_NONE) {
        return ID_NONE;
    }
    adapt(ahead, session);
    if (!session->gated) { /* cancelled: the others were built on it */
        restart(ahead, session);
    }
    uint32_t next = next_of(ahead, session, 0);
    return next != ID_NONE && ahead->sessions[next].gated ? next : ID_NONE;
}

/* End a session now, and those of its queue that waited for it. */
static void finish(struct ahead *ahead, uint32_t ix, bool cancelled)
{
    while (ix != ID_NONE) {
        struct session session = ahead->sessions[ix];
        end_session(ahead, ix, cancelled);
        ix = queue_left(ahead, &session);
        cancelled = false;
    }
}

/* ---- the loop ---- */

static void cancel(struct ahead *ahead, uint64_t token)
{
    for (uint32_t ix = 0; ix < ahead->session_count; ix++) {
        if (ahead->sessions[ix].token == token) {
            finish(ahead, ix, true);
            return;
        }
    }
    INVARIANT(token == 0); /* every token has a session */
}

/* Approve a task if it waits for that; return whether it did. */
static bool approve(struct ahead *ahead, struct task_id id)
{
    struct sched_task task = sched_task(ahead->sched, id);
    if (task.state != TASK_READY || !task.unapproved) {
        return false;
    }
    must(sched_apply(ahead->sched,
                     &(struct sched_event){
                         .type = EVENT_APPROVE,
                         .now_ns = ahead->now_ns,
                         .task = id,
                     }));
    return true;
}

/* Execute one effect; return whether the scheduler needs another pass. */
static bool carry_out(struct ahead *ahead, const struct sched_effect *effect)
{
    switch (effect->type) {
    case EFFECT_END:
        cancel(ahead, effect->token);
        return true;
    case EFFECT_START:
        begin(ahead, effect->task, false);
        return true;
    case EFFECT_BARRIER:
        must(sched_apply(ahead->sched,
                         &(struct sched_event){
                             .type = EVENT_BARRIER_DONE,
                             .now_ns = ahead->now_ns,
                             .run = effect->run,
                         }));
        return true;
    case EFFECT_TASK:
        return approve(ahead, effect->task);
    case EFFECT_CIRCUIT:
    case EFFECT_STOPPED:
    case EFFECT_RUN:
        return false;
    }
    return false;
}

/* Take passes until nothing changes. Lookahead is not asked for a schedule. */
static void take_passes(struct ahead *ahead)
{
    struct sched_effect *effects = NULL;
    uint32_t capacity = 0;
    bool again = true;
    while (again) {
        again = false;
        uint32_t count = 0;
        struct sched_effect effect;
        while (sched_next_effect(ahead->sched, &effect)) {
            if (effect.type != EFFECT_TASK || ahead->approvals) {
                MEM_GROW(effects, count, capacity);
                effects[count++] = effect;
            }
        }
        for (uint32_t ix = 0; ix < count; ix++) {
            again = carry_out(ahead, &effects[ix]) || again;
        }
    }
    mem_free(effects);
}

static void
set_limit(struct ahead *ahead, uint32_t run, const struct ahead_limit *limit)
{
    struct limit_id id = load_limit(ahead->runs[run].loaded, limit->limit);
    if (sched_limit_max(ahead->sched, id) != limit->max) {
        must(sched_apply(ahead->sched,
                         &(struct sched_event){
                             .type = EVENT_LIMIT,
                             .now_ns = ahead->now_ns,
                             .limit = id,
                             .max = limit->max,
                         }));
    }
}

/* Apply all events of this instant. */
static void apply_now(struct ahead *ahead)
{
    must(sched_apply(ahead->sched,
                     &(struct sched_event){
                         .type = EVENT_TICK,
                         .now_ns = ahead->now_ns,
                     }));
    while (future_next_ns(&ahead->futures, SCHED_NEVER) == ahead->now_ns) {
        struct future future = future_pop(&ahead->futures);
        if (future.session == ID_NONE) {
            const struct ahead_run *from = ahead->runs[future.run].from;
            set_limit(ahead, future.run, &from->limits[future.item]);
            continue;
        }
        const struct session *session = &ahead->sessions[future.session];
        if (session->token == future.token && session->round == future.round &&
            !queue_waits(ahead, future.session)) {
            finish(ahead, future.session, false);
        }
    }
}

static void run_to_end(struct ahead *ahead)
{
    uint64_t most = (ahead->task_count + 1) * SESSIONS_PER_TASK;
    for (;;) {
        apply_now(ahead);
        take_passes(ahead);
        int64_t at_ns =
            future_next_ns(&ahead->futures, sched_next_timer(ahead->sched));
        if (at_ns > AHEAD_NS_MAX || ahead->session_total > most) {
            return;
        }
        ahead->now_ns = at_ns > ahead->now_ns ? at_ns : ahead->now_ns;
    }
}

/* ---- a draw ---- */

/* Draw by how much the estimates of each class are wrong. */
static void draw_levels(struct ahead *ahead, uint32_t run)
{
    struct course *course = &ahead->runs[run];
    for (uint32_t ix = 0; ix < course->from->plan->class_count; ix++) {
        struct rng rng = sequence(ahead, USE_LEVEL, run, ix, 0);
        course->levels[ix].length = draw_normal(&rng);
        course->levels[ix].changes = draw_normal(&rng);
    }
}

static enum err load_run(struct ahead *ahead, uint32_t ix, struct diag *diag)
{
    struct course *run = &ahead->runs[ix];
    struct load_options options = {
        .folder = run->from->folder,
        .records = run->from->records,
        .run = run->from->record,
        .no_budgets = true,
        .start_ns = run->from->start_ns,
        .clock_offset_ns = run->from->clock_offset_ns,
        .not_before_ns = run->from->not_before_ns,
    };
    draw_levels(ahead, ix);
    return load_plan(ahead->load,
                     ahead->now_ns,
                     &run->plan,
                     &options,
                     &run->loaded,
                     diag);
}

/* Approve what waits for it in the state. */
static void approve_now(struct ahead *ahead, uint32_t run)
{
    const struct course *course = &ahead->runs[run];
    for (uint32_t ix = 0; ix < course->plan.task_count; ix++) {
        if (course->plan.tasks[ix].approve) {
            (void)approve(ahead, load_task(course->loaded, ix));
        }
    }
}

static void set_limits(struct ahead *ahead, uint32_t run)
{
    const struct ahead_run *from = ahead->runs[run].from;
    for (uint32_t ix = 0; ix < from->limit_count; ix++) {
        if (from->limits[ix].at_ns <= ahead->now_ns) {
            set_limit(ahead, run, &from->limits[ix]);
        } else {
            future_push(&ahead->futures,
                        (struct future){
                            .at_ns = from->limits[ix].at_ns,
                            .session = ID_NONE,
                            .run = run,
                            .item = ix,
                        });
        }
    }
}

/* Continue the sessions in flight. */
static void adopt_sessions(struct ahead *ahead)
{
    uint32_t count;
    const uint32_t *in_flight = sched_in_flight(ahead->sched, &count);
    uint32_t *tasks = mem_zalloc(count, sizeof(tasks[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        tasks[ix] = in_flight[ix];
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        struct task_id task = {tasks[ix]};
        if (sched_record(ahead->sched, task).leader == task.v) {
            begin(ahead, task, true);
        }
    }
    mem_free(tasks);
}

/* Count the tasks of a run that did not come to an end. */
static void count_left(const struct ahead *ahead, uint32_t run)
{
    const struct course *course = &ahead->runs[run];
    const struct plan *plan = course->from->plan;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        enum task_state state =
            sched_task(ahead->sched, load_task(course->loaded, ix)).state;
        bool ended =
            state == TASK_DONE || state == TASK_SKIPPED ||
            state == TASK_CANCELLED ||
            (state == TASK_FAILED && plan->tasks[ix].settings->optional);
        course->end->left += ended ? 0 : 1;
    }
}

static enum err draw(struct ahead *ahead, struct diag *diag)
{
    const struct ahead_state *state = ahead->state;
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < state->provider_count; ix++) {
        load_restore_provider(ahead->load,
                              state->providers[ix].name,
                              &state->providers[ix].record);
    }
    for (uint32_t ix = 0; ix < state->run_count && err == ERR_OK; ix++) {
        err = load_run(ahead, ix, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    for (uint32_t ix = 0; ix < state->run_count; ix++) {
        set_limits(ahead, ix);
        approve_now(ahead, ix);
    }
    adopt_sessions(ahead);
    run_to_end(ahead);
    for (uint32_t ix = 0; ix < state->run_count; ix++) {
        count_left(ahead, ix);
    }
    return ERR_OK;
}

enum err ahead_draw(struct ahead *ahead,
                    uint64_t seed,
                    struct ahead_end *ends,
                    uint64_t *work,
                    struct diag *diag)
{
    ahead->seed = seed;
    ahead->sched = sched_new();
    ahead->load = load_new(ahead->sched);
    ahead->now_ns = ahead->state->now_ns;
    ahead->session_total = 0;
    future_clear(&ahead->futures);
    ahead->session_count = 0;
    ahead->free_session = ID_NONE;
    for (uint32_t ix = 0; ix < ahead->state->run_count; ix++) {
        ends[ix] = (struct ahead_end){0};
        ahead->runs[ix].end = &ends[ix];
    }
    if (ahead->now_ns > 0) {
        sched_restore(ahead->sched, ahead->now_ns, 0);
    }
    enum err err = draw(ahead, diag);
    *work += ahead->task_count + ahead->session_total;
    load_free(ahead->load);
    sched_free(ahead->sched);
    return err;
}

struct ahead *ahead_new(const struct ahead_state *state)
{
    struct ahead *ahead = mem_zalloc(1, sizeof(*ahead));
    ahead->state = state;
    ahead->runs = mem_zalloc(state->run_count, sizeof(ahead->runs[0]));
    for (uint32_t ix = 0; ix < state->run_count; ix++) {
        struct course *run = &ahead->runs[ix];
        const struct plan *plan = state->runs[ix].plan;
        run->from = &state->runs[ix];
        run->plan = *plan;
        run->plan.deadline.kind = PLAN_TIME_NONE;
        run->outlooks = mem_zalloc(plan->task_count, sizeof(run->outlooks[0]));
        run->levels = mem_zalloc(plan->class_count, sizeof(run->levels[0]));
        for (uint32_t n = 0; n < plan->task_count; n++) {
            run->outlooks[n] = run->from->outlooks != NULL
                                   ? run->from->outlooks[n]
                                   : plan_outlook_of(plan, &plan->tasks[n]);
            INVARIANT(run->outlooks[n].median_ns >= 0);
            ahead->approvals = ahead->approvals || plan->tasks[n].approve;
        }
        ahead->task_count += plan->task_count;
    }
    return ahead;
}

void ahead_free(struct ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < ahead->state->run_count; ix++) {
        mem_free(ahead->runs[ix].outlooks);
        mem_free(ahead->runs[ix].levels);
    }
    mem_free(ahead->runs);
    future_release(&ahead->futures);
    mem_free(ahead->sessions);
    mem_free(ahead->outcomes);
    mem_free(ahead);
}
