/* SPDX-License-Identifier: MIT */
#include "tests/property/case.h"

#include "base/macros.h"
#include "base/mem.h"
#include "core/why.h"
#include "tests/property/case_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void case_complain(const struct world *w, const char *what)
{
    printf("# %s\n", what);
    const char *line = strbuf_text(&w->log);
    while (*line != '\0') {
        size_t len = strcspn(line, "\n");
        printf("# %.*s\n", (int)len, line);
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    (void)fflush(stdout);
    _exit(1);
}

/* ---- events ---- */

static void apply(struct world *w, struct sched_event event)
{
    event.now_ns = w->now_ns;
    enum err expected = model_apply(w->model, &event);
    if (event.type == EVENT_LIMIT || event.type == EVENT_AHEAD) {
        uint32_t run = event.limit.v / LIMITS_PER_RUN;
        event.limit.v = w->first_limit[run] + event.limit.v % LIMITS_PER_RUN;
    }
    enum err err = sched_apply(w->sched, &event);
    enum err again = sched_apply(w->twin, &event);
    strbuf_addf(&w->log,
                "%lld event %d task %u run %u outcome %d of %u: %s\n",
                (long long)(w->now_ns / SECOND),
                (int)event.type,
                event.task.v,
                event.run.v,
                event.outcome_count > 0 ? (int)event.outcomes[0] : -1,
                event.outcome_count,
                err_name(err));
    if (err != expected || err != again) {
        case_complain(w, "sched_apply and the model disagree");
    }
}

/* A task in flight, or ID_NONE. */
static uint32_t pick_in_flight(struct world *w)
{
    uint32_t count = 0;
    const uint32_t *in_flight = sched_in_flight(w->sched, &count);
    return count > 0 ? in_flight[below(w, count)] : ID_NONE;
}

static enum sched_outcome draw_outcome(struct world *w)
{
    uint32_t roll = below(w, 100);
    if (w->calm || roll < 55) {
        return OUTCOME_DONE;
    }
    if (roll < 58) {
        return has(w, WITH_TIMES) ? OUTCOME_LATER : OUTCOME_DONE;
    }
    if (roll < 62) {
        return has(w, WITH_STOPS) ? OUTCOME_FATAL : OUTCOME_DONE;
    }
    if (roll < 75) {
        return has(w, WITH_FAILURES) ? OUTCOME_FAILED : OUTCOME_DONE;
    }
    if (roll < 80) {
        return has(w, WITH_FAILURES) ? OUTCOME_LOST : OUTCOME_DONE;
    }
    if (roll < 90) {
        return has(w, WITH_REWORK) ? OUTCOME_CHANGES : OUTCOME_DONE;
    }
    return roll < 95 ? OUTCOME_CHECKPOINT : OUTCOME_BLOCKED;
}

static void end_one(struct world *w)
{
    uint32_t task = pick_in_flight(w);
    if (task == ID_NONE) {
        return;
    }
    enum sched_outcome outcomes[MODEL_TASKS];
    uint32_t count = 0;
    uint32_t leader = w->model->tasks[task].leader;
    for (uint32_t ix = leader; ix != ID_NONE;
         ix = sched_session_next(w->sched, (struct task_id){ix}).v) {
        outcomes[count++] = draw_outcome(w);
    }
    struct sched_event event = {
        .type = EVENT_ENDED,
        .task = {task},
        .token = w->model->tasks[task].token,
        .outcomes = outcomes,
        .outcome_count = chance(w, 50) ? 1 : count,
        .retry_at_ns = SCHED_NEVER,
        .progress = chance(w, 30),
    };
    if (has(w, WITH_TIMES) && chance(w, 70)) {
        event.retry_at_ns = w->now_ns + below(w, 30) * SECOND;
    }
    if (has(w, WITH_REFUSALS) && !w->calm && chance(w, 20)) {
        outcomes[0] = OUTCOME_REFUSED;
        event.outcome_count = 1;
        event.retry_at_ns = SCHED_NEVER;
        if (chance(w, 20)) {
            event.retry_at_ns = w->now_ns + below(w, 30) * SECOND;
        }
        event.stop = chance(w, 10);
    }
    if (has(w, WITH_ORDERS) && !w->calm && chance(w, 4)) {
        outcomes[0] = OUTCOME_STOPPED;
        event.outcome_count = 1;
    }
    if (!w->calm && chance(w, 3)) {
        event.token--;
    }
    if (!w->calm && chance(w, 2)) {
        event.outcome_count = count + 1;
    }
    apply(w, event);
}

static void start_one(struct world *w)
{
    uint32_t task = pick_in_flight(w);
    if (task != ID_NONE) {
        struct sched_event event = {
            .type = EVENT_STARTED,
            .task = {task},
            .token = w->model->tasks[task].token,
        };
        apply(w, event);
    }
}

/* A task in a state, from a random one on; any task if none is. */
static uint32_t pick_in(struct world *w, enum task_state state, bool unapproved)
{
    uint32_t from = below(w, w->model->task_count);
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        uint32_t task = (from + ix) % w->model->task_count;
        const struct model_task *t = &w->model->tasks[task];
        if (t->state == state && (t->unapproved || !unapproved)) {
            return task;
        }
    }
    return from;
}

/* Approve, run again or prefer a task: mostly one of which that is possible. */
static void wish_one(struct world *w)
{
    struct sched_event event = {
        .task = {below(w, w->model->task_count)},
        .max = below(w, SCHED_PRIORITY_MAX + 1),
    };
    uint32_t roll = below(w, has(w, WITH_WISHES) ? 100 : 40);
    if (roll < 40) {
        event.type = EVENT_APPROVE;
        event.task.v = pick_in(w, TASK_READY, true);
    } else if (roll < 60) {
        event.type = EVENT_RERUN;
        event.task.v = pick_in(w, TASK_DONE, false);
    } else {
        event.type = roll < 85 ? EVENT_PRIORITY : EVENT_FIRST;
    }
    if (chance(w, 5)) {
        event.task.v = below(w, w->model->task_count);
    }
    apply(w, event);
}

static void order_one(struct world *w)
{
    bool wishes = has(w, WITH_WISHES) || has(w, WITH_APPROVAL);
    if (wishes && chance(w, has(w, WITH_APPROVAL) ? 40 : 25)) {
        wish_one(w);
        return;
    }
    static const enum sched_event_type orders[] = {
        EVENT_HOLD,   EVENT_RELEASE, EVENT_RETRY,  EVENT_SKIP,
        EVENT_CANCEL, EVENT_REVOKE,  EVENT_HOLD,   EVENT_RELEASE,
        EVENT_RETRY,  EVENT_PAUSE,   EVENT_RESUME, EVENT_BARRIER_DONE,
        EVENT_RETRY,  EVENT_RELEASE, EVENT_RESUME, EVENT_RETRY_RUN,
        EVENT_DRAIN,  EVENT_FILL,    EVENT_FILL,   EVENT_OPEN,
        EVENT_REOPEN, EVENT_REOPEN,
    };
    struct sched_event event = {
        .type = orders[below(w, ARRAY_COUNT(orders))],
        .task = {below(w, w->model->task_count)},
        .run = {below(w, w->model->run_count)},
        .provider = {below(w, w->model->provider_count)},
    };
    if (chance(w, 1)) {
        event.type = EVENT_CANCEL_RUN;
    }
    apply(w, event);
}

static void limit_one(struct world *w)
{
    uint32_t run = below(w, w->model->run_count);
    uint32_t limit = chance(w, 30) ? LIMIT_SESSIONS : below(w, LIMITS_PER_RUN);
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .limit = {run * LIMITS_PER_RUN + limit},
        .max = below(w, 6),
    };
    if (limit == LIMIT_ISSUES || limit == LIMIT_REVIEW ||
        limit == LIMIT_BACKGROUND) {
        event.percent = chance(w, 50) ? 1 + below(w, 100) : 0;
    }
    if (limit <= LIMIT_ISSUES && chance(w, 25)) {
        event.type = EVENT_AHEAD;
        event.ahead = below(w, 4);
    }
    apply(w, event);
}

static void end_barriers(struct world *w)
{
    for (uint32_t run = 0; run < w->model->run_count; run++) {
        if (w->model->runs[run].barrier_running) {
            struct sched_event event = {
                .type = EVENT_BARRIER_DONE,
                .run = {run},
            };
            apply(w, event);
        }
    }
}

static void pass_time(struct world *w)
{
    int64_t timer_ns = sched_next_timer(w->sched);
    if (timer_ns != SCHED_NEVER && timer_ns > w->now_ns && chance(w, 60)) {
        w->now_ns = timer_ns;
    } else {
        w->now_ns += chance(w, 60) ? below(w, 10) * SECOND
                                   : below(w, 200) * (SECOND / 1000);
    }
    apply(w, (struct sched_event){.type = EVENT_TICK});
}

/* ---- comparing ---- */

static void log_start(const struct sched *sched,
                      const struct sched_effect *effect,
                      struct strbuf *log)
{
    strbuf_addf(log, "start %llu:", (unsigned long long)effect->token);
    for (uint32_t ix = effect->task.v; ix != ID_NONE;
         ix = sched_session_next(sched, (struct task_id){ix}).v) {
        strbuf_addf(log, " %u", ix);
    }
    strbuf_adds(log, "\n");
}

/* What one pass of a scheduler did. */
struct seen {
    struct model_pass pass;
    bool changed[MODEL_TASKS];
    bool quiet[MODEL_RUNS];
};

static void collect_pass(struct sched *sched, struct seen *seen)
{
    *seen = (struct seen){.pass = {.starts = {0}}};
    struct model_pass *pass = &seen->pass;
    struct sched_effect effect;
    while (sched_next_effect(sched, &effect)) {
        switch (effect.type) {
        case EFFECT_END:
            pass->ends[effect.task.v] = true;
            break;
        case EFFECT_START:
            log_start(sched, &effect, &pass->starts);
            break;
        case EFFECT_CIRCUIT:
            pass->circuits[effect.provider.v] = true;
            break;
        case EFFECT_BARRIER:
            pass->barriers[effect.run.v] = true;
            break;
        case EFFECT_TASK:
            seen->changed[effect.task.v] = true;
            break;
        case EFFECT_STOPPED:
            pass->stopped[effect.run.v] = true;
            break;
        case EFFECT_RUN:
            seen->quiet[effect.run.v] = true;
            break;
        }
    }
}

static bool same_pass(const struct model_pass *a, const struct model_pass *b)
{
    return strcmp(strbuf_text(&a->starts), strbuf_text(&b->starts)) == 0 &&
           memcmp(a->ends, b->ends, sizeof(a->ends)) == 0 &&
           memcmp(a->circuits, b->circuits, sizeof(a->circuits)) == 0 &&
           memcmp(a->barriers, b->barriers, sizeof(a->barriers)) == 0 &&
           memcmp(a->stopped, b->stopped, sizeof(a->stopped)) == 0;
}

/* In the order of starts; of all else, the same things. */
static bool same_seen(const struct seen *a, const struct seen *b)
{
    return same_pass(&a->pass, &b->pass) &&
           memcmp(a->changed, b->changed, sizeof(a->changed)) == 0 &&
           memcmp(a->quiet, b->quiet, sizeof(a->quiet)) == 0;
}

/* Whether the reason for a task that waits or is ready holds. */
static bool
holds(const struct model *model, const struct model_task *t, struct why why)
{
    const struct model_run *run = &model->runs[t->run];
    switch (why.code) {
    case WHY_NEEDS:
    case WHY_BLOCKED:
        if (t->state == TASK_READY) {
            return why.code == WHY_BLOCKED && why.task.v + 1 == t->guard &&
                   model_is_closed(model, t);
        }
        return t->state == TASK_WAITING && !model->tasks[why.task.v].satisfied;
    case WHY_BACKOFF:
        return why.provider.v != ID_NONE ||
               (t->backing_off && why.until_ns == t->until_ns);
    case WHY_SNOOZED:
        return t->snoozed && why.until_ns == t->until_ns;
    case WHY_EARLY:
        return t->early && why.until_ns == t->until_ns;
    case WHY_STOPPED:
        return model->providers[t->provider].kept.stopped;
    case WHY_HALTED:
        return run->stopped != SCHED_NOT_STOPPED && !t->last;
    case WHY_REST:
        return t->state == TASK_WAITING && t->last &&
               !model_has_rested(model, t);
    case WHY_STARTABLE:
        return false;
    case WHY_HELD:
    case WHY_APPROVAL:
        return t->state == TASK_READY && t->held;
    case WHY_ENDED:
    case WHY_RUNNING:
    case WHY_FAILED:
    case WHY_PARKED:
    case WHY_USAGE:
    case WHY_CIRCUIT:
    case WHY_PAUSED:
    case WHY_ASKED:
    case WHY_BARRIER:
    case WHY_DRAINING:
    case WHY_LIMIT:
    case WHY_BUDGET:
    case WHY_RESERVED:
    case WHY_BEHIND:
    case WHY_DEFERRED:
    case WHY_PLANNED:
        return true;
    }
    return false;
}

/* Every task that is not running has a reason, and it holds. */
static void check_reasons(struct world *w)
{
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        const struct model_task *t = &w->model->tasks[ix];
        struct why why = why_task(w->sched, (struct task_id){ix});
        enum why_code held = t->unapproved ? WHY_APPROVAL : WHY_HELD;
        bool is_held = t->state == TASK_READY && t->held;
        if ((is_held && why.code != held) || !holds(w->model, t, why) ||
            ((t->snoozed || t->early) && why.code != WHY_SNOOZED &&
             why.code != WHY_EARLY && !model_lacks(w->model, ix))) {
            strbuf_addf(&w->log,
                        "task %u: %s, limit %u, task %u\n",
                        ix,
                        why_code_name(why.code),
                        why.limit.v,
                        why.task.v);
            case_complain(w, "a task has no reason, or one that does not hold");
        }
    }
}

/* Whether what an operator sees of a task is as in the model. */
static bool same_task(const struct model *model,
                      const struct model_task *t,
                      const struct sched_task *seen)
{
    return seen->state == t->state && seen->held == t->held &&
           seen->backing_off == t->backing_off && seen->tries == t->tries &&
           seen->revoked == t->revoked && seen->reworks == t->reworks &&
           seen->checkpoints == t->checkpoints &&
           seen->group_open == model->groups[t->group].open &&
           seen->asking == t->asking && seen->snoozed == t->snoozed &&
           seen->early == t->early && seen->unapproved == t->unapproved &&
           seen->first == t->first && seen->last == t->last &&
           seen->priority == t->priority &&
           (t->state != TASK_PARKED || seen->parked == t->parked);
}

/* Both sides of what is compared. */
static void log_task(struct world *w,
                     const struct model_task *t,
                     const struct sched_task *seen)
{
    const struct {
        const char *name;
        uint32_t seen;
        uint32_t expected;
    } all[] = {
        {"held", seen->held, t->held},
        {"backing off", seen->backing_off, t->backing_off},
        {"tries", seen->tries, t->tries},
        {"revoked", seen->revoked, t->revoked},
        {"reworks", seen->reworks, t->reworks},
        {"checkpoints", seen->checkpoints, t->checkpoints},
        {"open", seen->group_open, w->model->groups[t->group].open},
        {"asking", seen->asking, t->asking},
        {"snoozed", seen->snoozed, t->snoozed},
        {"early", seen->early, t->early},
        {"unapproved", seen->unapproved, t->unapproved},
        {"first", seen->first, t->first},
        {"priority", seen->priority, t->priority},
        {"parked", seen->parked, t->parked},
    };
    for (uint32_t ix = 0; ix < ARRAY_COUNT(all); ix++) {
        if (all[ix].seen != all[ix].expected) {
            strbuf_addf(&w->log,
                        "%s: %u, in the model %u\n",
                        all[ix].name,
                        all[ix].seen,
                        all[ix].expected);
        }
    }
}

static void check_tasks(struct world *w)
{
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        const struct model_task *t = &w->model->tasks[ix];
        struct sched_task seen = sched_task(w->sched, (struct task_id){ix});
        if (!same_task(w->model, t, &seen)) {
            strbuf_addf(&w->log,
                        "task %u: state %d, in the model %d\n",
                        ix,
                        (int)seen.state,
                        (int)t->state);
            log_task(w, t, &seen);
            case_complain(w, "a task is in another state than in the model");
        }
        if ((w->model->runs[t->run].cancelled && !t->last) ||
            (!t->satisfied && t->state == TASK_RUNNING)) {
            continue; /* the ranks of a cancelled run are not looked at anew */
        }
        if ((t->state == TASK_WAITING || t->state == TASK_READY) &&
            (seen.rank_ns != t->rank_ns || seen.tier != t->tier)) {
            strbuf_addf(&w->log,
                        "task %u: rank %lld tier %u, in the model %lld %u\n",
                        ix,
                        (long long)seen.rank_ns,
                        seen.tier,
                        (long long)t->rank_ns,
                        t->tier);
            case_complain(w,
                          "a task has another rank or tier than in the model");
        }
    }
}

static void check_runs(struct world *w)
{
    model_count(w->model);
    for (uint32_t ix = 0; ix < w->model->limit_count; ix++) {
        if (w->model->runs[ix / LIMITS_PER_RUN].cancelled) {
            continue; /* nothing of it is counted anew: nothing will start */
        }
        struct limit_id limit = {w->first_limit[ix / LIMITS_PER_RUN] +
                                 ix % LIMITS_PER_RUN};
        int64_t seen = sched_limit_max(w->sched, limit);
        if (seen != model_max(w->model, ix)) {
            strbuf_addf(&w->log,
                        "limit %u: %lld, in the model %lld\n",
                        ix,
                        (long long)seen,
                        (long long)model_max(w->model, ix));
            case_complain(w, "a limit has another maximum than in the model");
        }
    }
    for (uint32_t run = 0; run < w->model->run_count; run++) {
        struct sched_run seen = sched_run(w->sched, (struct run_id){run});
        if (seen.stopped != w->model->runs[run].stopped ||
            seen.deadline_ns != w->model->runs[run].deadline_ns) {
            strbuf_addf(&w->log,
                        "run %u: stopped %d, in the model %d\n",
                        run,
                        (int)seen.stopped,
                        (int)w->model->runs[run].stopped);
            case_complain(w, "a run is stopped otherwise than in the model");
        }
        uint32_t owed = sched_run_record(w->sched, (struct run_id){run}).owed;
        if (owed != w->model->runs[run].owed) {
            strbuf_addf(&w->log,
                        "run %u: owed %u, in the model %u\n",
                        run,
                        owed,
                        w->model->runs[run].owed);
            case_complain(w, "the turns differ from the model's");
        }
    }
}

/* The time at which something must happen is not slept through. */
static void check_timer(struct world *w)
{
    int64_t timer_ns = SCHED_NEVER;
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        const struct model_task *t = &w->model->tasks[ix];
        if (t->backing_off && t->until_ns < timer_ns) {
            timer_ns = t->until_ns;
        }
    }
    for (uint32_t ix = 0; ix < w->model->run_count; ix++) {
        int64_t deadline_ns = w->model->runs[ix].deadline_ns;
        if (deadline_ns != 0 && deadline_ns < timer_ns &&
            !model_is_over(w->model, ix)) {
            timer_ns = deadline_ns;
        }
    }
    if (sched_next_timer(w->sched) > timer_ns) {
        case_complain(w, "the next timer is later than in the model");
    }
}

/* Print what was logged and forget it. */
static void say(struct world *w)
{
    printf("%s", strbuf_text(&w->log));
    (void)fflush(stdout);
    strbuf_clear(&w->log);
}

/* What else one pass did otherwise than another. */
static void log_difference(struct world *w,
                           const struct seen *seen,
                           const struct seen *expected)
{
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        if (seen->changed[ix] != expected->changed[ix] ||
            seen->pass.ends[ix] != expected->pass.ends[ix]) {
            strbuf_addf(&w->log,
                        "task %u: reported %d ended %d, expected %d %d\n",
                        ix,
                        seen->changed[ix],
                        seen->pass.ends[ix],
                        expected->changed[ix],
                        expected->pass.ends[ix]);
        }
    }
    for (uint32_t run = 0; run < w->model->run_count; run++) {
        strbuf_addf(&w->log,
                    "run %u: quiet %d stopped %d barrier %d, expected "
                    "%d %d %d\n",
                    run,
                    seen->quiet[run],
                    seen->pass.stopped[run],
                    seen->pass.barriers[run],
                    expected->quiet[run],
                    expected->pass.stopped[run],
                    expected->pass.barriers[run]);
    }
}

static void take_pass(struct world *w)
{
    if (w->verbose) {
        say(w);
    }
    struct model_pass expected;
    struct seen seen;
    struct seen twin;
    sched_verify(w->sched);
    model_take_pass(w->model, &expected);
    collect_pass(w->sched, &seen);
    collect_pass(w->twin, &twin);
    strbuf_adds(&w->log, strbuf_text(&seen.pass.starts));
    if (w->verbose) {
        say(w);
    }
    if (!same_pass(&seen.pass, &expected)) {
        strbuf_addf(&w->log, "expected:\n%s", strbuf_text(&expected.starts));
        case_complain(w, "the turn differs from the model's");
    }
    if (expected.broken != NULL) {
        case_complain(w, expected.broken);
    }
    if (!same_seen(&seen, &twin)) {
        strbuf_addf(&w->log, "twin:\n%s", strbuf_text(&twin.pass.starts));
        log_difference(w, &twin, &seen);
        case_complain(w, "equal events gave different effects");
    }
    for (uint32_t run = 0; run < w->model->run_count; run++) {
        bool now_quiet = model_is_quiet(w->model, run);
        if ((seen.quiet[run] && !now_quiet) ||
            (now_quiet && !w->was_quiet[run] && !seen.quiet[run])) {
            strbuf_addf(&w->log,
                        "run %u: told %d, in the model quiet %d before %d\n",
                        run,
                        seen.quiet[run],
                        now_quiet,
                        w->was_quiet[run]);
            case_complain(w, "a run came to rest and nobody was told");
        }
        w->was_quiet[run] = now_quiet;
    }
    sched_verify(w->sched);
    check_tasks(w);
    check_runs(w);
    check_reasons(w);
    check_timer(w);
    memcpy(w->ledger->changed, seen.changed, sizeof(seen.changed));
    ledger_end_pass(w->ledger, w->sched);
    strbuf_release(&seen.pass.starts);
    strbuf_release(&twin.pass.starts);
    strbuf_release(&expected.starts);
}

/* The first pass of a scheduler made from records: what it does again. */
static void expect_again(const struct world *w, struct seen *again)
{
    *again = (struct seen){.pass = {.starts = {0}}};
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        const struct model_task *t = &w->model->tasks[ix];
        if (t->leader == ix &&
            (t->state == TASK_STARTING || t->state == TASK_RUNNING)) {
            again->pass.ends[ix] = true;
            for (struct task_id task = {ix}; task.v != ID_NONE;
                 task = sched_session_next(w->sched, task)) {
                again->pass.ends[ix] =
                    again->pass.ends[ix] && w->model->tasks[task.v].ending;
            }
        }
    }
    for (uint32_t run = 0; run < w->model->run_count; run++) {
        again->pass.barriers[run] = w->model->runs[run].barrier_running;
        again->quiet[run] = model_is_quiet(w->model, run);
    }
}

/* The twin dies; one that is made from records goes on in its place. */
static void crash(struct world *w)
{
    if (!ledger_is_exact(w->ledger, w->model)) {
        return;
    }
    struct ledger_order order = {
        .dump = chance(w, 20),
        .providers_last = chance(w, 50),
        .limits_last = chance(w, 50),
        /* Pools of guards and for last tasks would move the limits of the
         * next run. */
        .runs_one_by_one =
            chance(w, 50) && !has(w, WITH_GUARDS) && !has(w, WITH_LAST),
    };
    strbuf_addf(&w->log, "crash%s\n", order.dump ? ", all dumped" : "");
    sched_free(w->twin);
    w->twin = ledger_make(w->ledger, w->sched, w->model, order);
    sched_verify(w->twin);
    struct seen expected;
    struct seen seen;
    expect_again(w, &expected);
    collect_pass(w->twin, &seen);
    sched_verify(w->twin);
    if (!same_seen(&seen, &expected)) {
        strbuf_addf(&w->log, "started:\n%s", strbuf_text(&seen.pass.starts));
        log_difference(w, &seen, &expected);
        case_complain(w, "the first turn after a crash does something else");
    }
    const char *what = ledger_compare(w->ledger, w->sched, w->twin, &w->log);
    if (what != NULL) {
        case_complain(w, what);
    }
    strbuf_release(&seen.pass.starts);
}

/* ---- one case ---- */

static void step(struct world *w)
{
    uint32_t roll = below(w, 100);
    if (roll < 45) {
        end_one(w);
    } else if (roll < 62) {
        start_one(w);
    } else if (roll < 75) {
        pass_time(w);
    } else if (roll < 88) {
        if (has(w, WITH_ORDERS)) {
            order_one(w);
        } else {
            end_barriers(w);
        }
    } else if (roll < 93) {
        if (has(w, WITH_ADDS) &&
            w->model->task_count + 8 < w->recipe.tasks + 20) {
            uint32_t run = w->mixed ? below(w, w->model->run_count)
                                    : w->model->run_count - 1;
            case_draw_addition(w, run, 1 + below(w, 5));
        }
    } else if (roll < 97) {
        if (has(w, WITH_LIMITS) && has(w, WITH_ORDERS)) {
            limit_one(w);
        }
    } else {
        end_barriers(w);
    }
}

/* No more chaos: everything that can move must come to its end. */
static void come_to_rest(struct world *w)
{
    w->calm = true;
    apply(w, (struct sched_event){.type = EVENT_FILL});
    for (uint32_t run = 0; run < w->model->run_count; run++) {
        struct sched_event resume = {.type = EVENT_RESUME, .run = {run}};
        apply(w, resume);
        for (uint32_t limit = 0; limit < LIMITS_PER_RUN; limit++) {
            struct sched_event roomy = {
                .type = EVENT_LIMIT,
                .limit = {run * LIMITS_PER_RUN + limit},
                .max = 6,
                .percent = limit == LIMIT_REVIEW && chance(w, 50) ? 34 : 0,
            };
            apply(w, roomy);
        }
    }
    for (uint32_t ix = 0; ix < w->model->provider_count; ix++) {
        apply(w, (struct sched_event){.type = EVENT_REOPEN, .provider = {ix}});
    }
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        if (w->model->tasks[ix].asking) {
            struct sched_event skip = {.type = EVENT_SKIP, .task = {ix}};
            apply(w, skip);
        }
    }
    for (uint32_t round = 0; round < 4000; round++) {
        take_pass(w);
        bool quiet = true;
        for (uint32_t run = 0; run < w->model->run_count; run++) {
            quiet = quiet && model_is_quiet(w->model, run);
        }
        if (quiet) {
            return;
        }
        end_barriers(w);
        if (has(w, WITH_APPROVAL) && chance(w, 30)) {
            wish_one(w);
        }
        if (pick_in_flight(w) != ID_NONE) {
            end_one(w);
        } else {
            pass_time(w);
        }
    }
    case_complain(w, "the run does not come to rest");
}

void case_run(struct case_recipe recipe, bool verbose)
{
    struct world w = {.recipe = recipe, .verbose = verbose};
    rng_init(&w.rng, recipe.seed);
    w.model = mem_zalloc(1, sizeof(*w.model));
    w.ledger = mem_zalloc(1, sizeof(*w.ledger));
    w.sched = sched_new();
    w.twin = sched_new();
    case_draw_providers(&w);
    case_draw_classes(&w);
    uint32_t runs = has(&w, WITH_RUNS) ? 1 + below(&w, 2) : 1;
    for (uint32_t run = 0; run < runs; run++) {
        case_draw_run(&w);
    }
    w.mixed = chance(&w, 30);
    w.alike = chance(&w, 30);
    for (uint32_t run = 0; run < runs; run++) {
        /* It may be refused (a cycle): try again with another one. */
        uint32_t before = w.model->task_count;
        for (uint32_t n = 0; n < 10 && w.model->task_count == before; n++) {
            case_draw_addition(&w, run, 1 + below(&w, recipe.tasks / runs + 1));
        }
    }
    for (uint32_t ix = 0; ix < recipe.events && w.model->task_count > 0; ix++) {
        step(&w);
        if (chance(&w, 70)) {
            take_pass(&w);
            if (has(&w, WITH_CRASHES) && chance(&w, 10)) {
                crash(&w);
            }
        }
    }
    come_to_rest(&w);
    sched_free(w.sched);
    sched_free(w.twin);
    mem_free(w.model);
    mem_free(w.ledger);
    strbuf_release(&w.log);
}
