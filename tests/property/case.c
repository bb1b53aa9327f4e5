/* SPDX-License-Identifier: MIT */
#include "tests/property/case.h"

#include "base/mem.h"
#include "base/rng.h"
#include "core/why.h"
#include "tests/property/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

enum { ATTRIBUTE_CLASS, ATTRIBUTE_REPO, ATTRIBUTE_OWNER };
enum { LIMITS_PER_RUN = 7 };

struct world {
    struct case_recipe recipe;
    struct rng rng;
    struct model *model;
    struct sched *sched;
    struct sched *twin; /* the same again, to see that effects are equal */
    struct ledger *ledger;
    int64_t now_ns;
    uint32_t first_limit[MODEL_RUNS]; /* index in the scheduler */
    bool was_quiet[MODEL_RUNS];
    uint32_t group_count; /* declared groups in the scheduler */
    bool mixed;           /* work is added to all runs, not to the last one */
    bool calm;            /* no more chaos: all sessions end well */
    bool verbose;         /* say at once what happens: the end may be a crash */
    struct strbuf log;    /* what happened, for a person */
};

static bool has(const struct world *w, enum case_feature feature)
{
    return (w->recipe.features & (unsigned)feature) != 0;
}

static uint32_t below(struct world *w, uint32_t bound)
{
    return rng_below(&w->rng, bound);
}

static bool chance(struct world *w, uint32_t percent)
{
    return below(w, 100) < percent;
}

_Noreturn static void complain(const struct world *w, const char *what)
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

/* ---- drawing a plan ---- */

static void draw_classes(struct world *w)
{
    for (uint32_t ix = 0; ix < 4; ix++) {
        struct sched_class_spec spec = {.batch = 1, .max_wait_ns = SCHED_NEVER};
        if (has(w, WITH_CLASSES)) {
            spec.tier = below(w, 3);
            spec.defer = chance(w, 40);
            spec.queue = chance(w, 20);
            if (chance(w, 40)) {
                spec.max_wait_ns = (1 + below(w, 60)) * SECOND;
            }
        }
        if (has(w, WITH_BATCH)) {
            spec.batch = 1 + below(w, 4);
        }
        (void)sched_add_class(w->sched, &spec);
        (void)sched_add_class(w->twin, &spec);
        ledger_add_class(w->ledger, &spec);
        model_add_class(w->model, &spec);
    }
}

static void draw_providers(struct world *w)
{
    for (uint32_t ix = 0; ix < 3; ix++) {
        struct provider_spec spec = {
            .backoff_ns = SECOND,
            .backoff_ns_max = 20 * SECOND,
            .circuit_failures = chance(w, 50) ? 2 + below(w, 4) : 0,
            .probe_ns = 5 * SECOND,
            .probe_ns_max = 60 * SECOND,
        };
        (void)sched_add_provider(w->sched, &spec);
        (void)sched_add_provider(w->twin, &spec);
        ledger_add_provider(w->ledger, &spec);
        model_add_provider(w->model, &spec);
    }
}

static void draw_limits(struct world *w, struct limit_spec *specs)
{
    static const struct attribute merge = {ATTRIBUTE_CLASS, 1};
    static const struct attribute review = {ATTRIBUTE_CLASS, 2};
    struct limit_spec all[LIMITS_PER_RUN] = {
        {.max = 1 + below(w, 5), .per = ID_NONE},
        {.percent = 100, .per = ID_NONE, .hold_group = true},
        {.max = 1, .per = ATTRIBUTE_REPO, .hold_group = true, .share = 1},
        {.max = 1,
         .per = ATTRIBUTE_REPO,
         .share = 2,
         .where = &merge,
         .where_count = 1},
        {.percent = 34, .per = ID_NONE, .where = &review, .where_count = 1},
        {.max = 2 + below(w, 3), .per = ID_NONE, .resource = true},
        {.max = 1 + below(w, 3), .per = ATTRIBUTE_OWNER},
    };
    for (uint32_t ix = 0; ix < LIMITS_PER_RUN; ix++) {
        specs[ix] = all[ix];
        if (specs[ix].share == 0) {
            specs[ix].share = ID_NONE;
        }
        if (!has(w, WITH_LIMITS) ? ix > 0 : chance(w, 15)) {
            specs[ix].max = LIMIT_NONE;
            specs[ix].percent = 0;
        }
    }
}

static void draw_run(struct world *w)
{
    struct limit_spec limits[LIMITS_PER_RUN];
    draw_limits(w, limits);
    struct sched_run_spec spec = {
        .policy = chance(w, 10) ? SCHED_LOOKAHEAD /* as rank: see wave.h */
                                : (enum sched_policy)below(w, 3),
        .limits = limits,
        .limit_count = LIMITS_PER_RUN,
        .sync_every = has(w, WITH_SYNC) && chance(w, 50) ? 1 + below(w, 6) : 0,
        .sync_drain = chance(w, 50),
    };
    uint32_t run = w->model->run_count;
    struct limit_id first;
    (void)sched_add_run(w->sched, &spec, &first);
    w->first_limit[run] = first.v;
    (void)sched_add_run(w->twin, &spec, &first);
    ledger_add_run(w->ledger, &spec);
    model_add_run(w->model, &spec);
}

static struct sched_failure_spec draw_failure(struct world *w)
{
    struct sched_failure_spec spec = {.on_failure = SCHED_PARK};
    if (has(w, WITH_FAILURES)) {
        spec.retry_max = below(w, 3);
        spec.backoff_ns = below(w, 5) * SECOND;
        spec.backoff_ns_max = 8 * SECOND;
        spec.checkpoint_max = below(w, 3);
        spec.on_failure = (enum sched_on_failure)below(w, 4);
        if (spec.on_failure == SCHED_ABORT && chance(w, 80)) {
            spec.on_failure = SCHED_SKIP;
        }
        spec.optional = chance(w, 15);
        spec.rework_on_failure = has(w, WITH_REWORK) && chance(w, 20);
        spec.rework_max = below(w, 3);
    }
    return spec;
}

enum { ADD_TASKS_MAX = MODEL_TASKS, ADD_GROUPS_MAX = 12 };

/* An addition with memory for what it points to. */
struct draft {
    struct sched_addition addition;
    struct sched_task_spec tasks[ADD_TASKS_MAX];
    struct sched_group_spec groups[ADD_GROUPS_MAX];
    struct attribute attributes[ADD_TASKS_MAX][3];
    struct attribute group_attributes[ADD_GROUPS_MAX][2];
    struct sched_use uses[ADD_TASKS_MAX][2];
    struct sched_need needs[MODEL_NEEDS];
};

static uint32_t draw_group_of(struct world *w, const struct draft *draft)
{
    uint32_t groups = draft->addition.group_count;
    if (groups == 0 || chance(w, 30)) {
        return ID_NONE;
    }
    return w->model->group_count + below(w, groups);
}

static void draw_groups(struct world *w, struct draft *draft)
{
    uint32_t count = has(w, WITH_GROUPS) ? below(w, ADD_GROUPS_MAX) : 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        struct attribute *attributes = draft->group_attributes[ix];
        attributes[0] = (struct attribute){ATTRIBUTE_REPO, below(w, 3)};
        attributes[1] = (struct attribute){ATTRIBUTE_OWNER, below(w, 2)};
        draft->groups[ix] = (struct sched_group_spec){
            .attributes = attributes,
            .attribute_count = below(w, 3),
        };
    }
    draft->addition.groups = draft->groups;
    draft->addition.group_count = count;
}

/* A need of new task `ix`: mostly an earlier one, now and then any. */
static void draw_need(struct world *w, struct draft *draft, uint32_t ix)
{
    uint32_t old = w->model->task_count;
    uint32_t task = old + ix;
    struct sched_addition *addition = &draft->addition;
    if (w->model->need_count + addition->need_count + 4 >= MODEL_NEEDS) {
        return;
    }
    struct sched_need need = {task, 0};
    if (old > 0 && chance(w, 3)) {
        /* An old task comes to need a new one. */
        need = (struct sched_need){below(w, old), task};
    } else if (chance(w, 2)) {
        need.need = below(w, old + addition->task_count);
    } else if (task > 0) {
        uint32_t back = 1 + below(w, task < 8 ? task : 8);
        need.need = task - back;
    }
    if (need.need != task || chance(w, 1)) {
        draft->needs[addition->need_count++] = need;
    }
}

static void draw_task(struct world *w, struct draft *draft, uint32_t ix)
{
    struct attribute *attributes = draft->attributes[ix];
    uint32_t class_ix = below(w, 4);
    attributes[0] = (struct attribute){ATTRIBUTE_CLASS, class_ix};
    attributes[1] = (struct attribute){ATTRIBUTE_REPO, below(w, 3)};
    attributes[2] = (struct attribute){ATTRIBUTE_OWNER, below(w, 2)};
    uint32_t use_count = 0;
    uint32_t first_limit = draft->addition.run.v * LIMITS_PER_RUN;
    if (has(w, WITH_UNITS)) {
        if (chance(w, 40)) {
            draft->uses[ix][use_count++] =
                (struct sched_use){{first_limit + 5}, 1 + below(w, 3)};
        }
        if (chance(w, 15)) {
            draft->uses[ix][use_count++] =
                (struct sched_use){{first_limit}, 1 + below(w, 2)};
        }
    }
    draft->tasks[ix] = (struct sched_task_spec){
        .class_id = {class_ix},
        .provider = {below(w, 3)},
        .group = draw_group_of(w, draft),
        .estimate_ns = below(w, 6) * SECOND,
        .batch_key = below(w, 2),
        .attributes = attributes,
        .attribute_count = 1 + below(w, 3),
        .uses = draft->uses[ix],
        .use_count = use_count,
        .failure = draw_failure(w),
        .rework_to = ID_NONE,
    };
    for (uint32_t n = below(w, 3); n > 0; n--) {
        draw_need(w, draft, ix);
    }
}

/* Let a task go back to one of its direct needs in its group. */
static void draw_reworks(struct world *w, struct draft *draft)
{
    uint32_t old = w->model->task_count;
    for (uint32_t ix = 0; ix < draft->addition.need_count; ix++) {
        struct sched_need need = draft->needs[ix];
        if (need.dependent < old || need.need < old ||
            need.need == need.dependent || !chance(w, 60)) {
            continue;
        }
        struct sched_task_spec *task = &draft->tasks[need.dependent - old];
        const struct sched_task_spec *to = &draft->tasks[need.need - old];
        if (task->group != ID_NONE && task->group == to->group) {
            task->rework_to = need.need;
        }
    }
}

static void draw_addition(struct world *w, uint32_t run, uint32_t count)
{
    struct draft *draft = mem_zalloc(1, sizeof(*draft));
    struct sched_addition *addition = &draft->addition;
    addition->run.v = run;
    addition->tasks = draft->tasks;
    addition->needs = draft->needs;
    addition->task_count = count;
    draw_groups(w, draft);
    for (uint32_t ix = 0; ix < count; ix++) {
        draw_task(w, draft, ix);
    }
    if (has(w, WITH_REWORK)) {
        draw_reworks(w, draft);
    }
    uint32_t old_groups = w->model->group_count;
    enum err expected = model_add(w->model, w->now_ns, addition);
    /* The scheduler numbers its limits behind gates, and gives tasks without
     * a group no number: translate. */
    for (uint32_t ix = 0; ix < count; ix++) {
        if (draft->tasks[ix].group != ID_NONE) {
            draft->tasks[ix].group += w->group_count - old_groups;
        }
        for (uint32_t n = 0; n < draft->tasks[ix].use_count; n++) {
            uint32_t limit = draft->uses[ix][n].limit.v % LIMITS_PER_RUN;
            draft->uses[ix][n].limit.v =
                w->first_limit[addition->run.v] + limit;
        }
    }
    struct sched_rejection rejection;
    enum err err = sched_add(w->sched, w->now_ns, addition, &rejection);
    sched_rejection_release(&rejection);
    enum err again = sched_add(w->twin, w->now_ns, addition, &rejection);
    sched_rejection_release(&rejection);
    strbuf_addf(&w->log, "add %u tasks: %s\n", count, err_name(err));
    if (err != expected || err != again) {
        complain(w, "sched_add and the model disagree");
    }
    if (err == ERR_OK) {
        w->group_count += addition->group_count;
        ledger_add(w->ledger, addition);
    }
    mem_free(draft);
}

/* ---- events ---- */

static void apply(struct world *w, struct sched_event event)
{
    event.now_ns = w->now_ns;
    enum err expected = model_apply(w->model, &event);
    if (event.type == EVENT_LIMIT) {
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
        complain(w, "sched_apply and the model disagree");
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
    if (has(w, WITH_REFUSALS) && !w->calm && chance(w, 20)) {
        outcomes[0] = OUTCOME_REFUSED;
        event.outcome_count = 1;
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

static void order_one(struct world *w)
{
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
    uint32_t limit = below(w, LIMITS_PER_RUN);
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .limit = {run * LIMITS_PER_RUN + limit},
        .max = below(w, 6),
    };
    if (limit == 1 || limit == 4) {
        event.percent = chance(w, 50) ? 1 + below(w, 100) : 0;
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
        w->now_ns += below(w, 10) * SECOND;
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
           memcmp(a->barriers, b->barriers, sizeof(a->barriers)) == 0;
}

/* In the order of starts; of all else, the same things. */
static bool same_seen(const struct seen *a, const struct seen *b)
{
    return same_pass(&a->pass, &b->pass) &&
           memcmp(a->changed, b->changed, sizeof(a->changed)) == 0 &&
           memcmp(a->quiet, b->quiet, sizeof(a->quiet)) == 0;
}

/* Every task that is not running has a reason, and it holds. */
static void check_reasons(struct world *w)
{
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        const struct model_task *t = &w->model->tasks[ix];
        struct why why = why_task(w->sched, (struct task_id){ix});
        bool holds = why.code != WHY_STARTABLE;
        if (t->state == TASK_READY && t->held) {
            holds = why.code == WHY_HELD;
        }
        if (why.code == WHY_NEEDS || why.code == WHY_BLOCKED) {
            holds = t->state == TASK_WAITING &&
                    !w->model->tasks[why.task.v].satisfied;
        }
        if (why.code == WHY_BACKOFF && why.provider.v == ID_NONE) {
            holds = t->backing_off && why.until_ns == t->until_ns;
        }
        if (why.code == WHY_STOPPED) {
            holds = w->model->providers[t->provider].kept.stopped;
        }
        if (!holds) {
            complain(w, "a task has no reason, or one that does not hold");
        }
    }
}

static void check_tasks(struct world *w)
{
    for (uint32_t ix = 0; ix < w->model->task_count; ix++) {
        const struct model_task *t = &w->model->tasks[ix];
        struct sched_task seen = sched_task(w->sched, (struct task_id){ix});
        if (seen.state != t->state || seen.held != t->held ||
            seen.backing_off != t->backing_off || seen.tries != t->tries ||
            seen.revoked != t->revoked || seen.reworks != t->reworks ||
            seen.group_open != w->model->groups[t->group].open) {
            strbuf_addf(&w->log,
                        "task %u: state %d, in the model %d\n",
                        ix,
                        (int)seen.state,
                        (int)t->state);
            complain(w, "a task is in another state than in the model");
        }
        if (!w->model->tasks[ix].satisfied && t->state == TASK_RUNNING) {
            continue;
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
            complain(w, "a task has another rank or tier than in the model");
        }
    }
}

/* Print what was logged and forget it. */
static void say(struct world *w)
{
    printf("%s", strbuf_text(&w->log));
    (void)fflush(stdout);
    strbuf_clear(&w->log);
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
        complain(w, "the turn differs from the model's");
    }
    if (!same_seen(&seen, &twin)) {
        strbuf_addf(&w->log, "twin:\n%s", strbuf_text(&twin.pass.starts));
        complain(w, "equal events gave different effects");
    }
    for (uint32_t run = 0; run < w->model->run_count; run++) {
        bool now_quiet = model_is_quiet(w->model, run);
        if ((seen.quiet[run] && !now_quiet) ||
            (now_quiet && !w->was_quiet[run] && !seen.quiet[run])) {
            complain(w, "a run came to rest and nobody was told");
        }
        w->was_quiet[run] = now_quiet;
    }
    sched_verify(w->sched);
    check_tasks(w);
    check_reasons(w);
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
        .runs_one_by_one = chance(w, 50),
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
        complain(w, "the first turn after a crash does something else");
    }
    const char *what = ledger_compare(w->ledger, w->sched, w->twin, &w->log);
    if (what != NULL) {
        complain(w, what);
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
            draw_addition(w, run, 1 + below(w, 5));
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
        if (pick_in_flight(w) != ID_NONE) {
            end_one(w);
        } else {
            pass_time(w);
        }
    }
    complain(w, "the run does not come to rest");
}

void case_run(struct case_recipe recipe, bool verbose)
{
    struct world w = {.recipe = recipe, .verbose = verbose};
    rng_init(&w.rng, recipe.seed);
    w.model = mem_zalloc(1, sizeof(*w.model));
    w.ledger = mem_zalloc(1, sizeof(*w.ledger));
    w.sched = sched_new();
    w.twin = sched_new();
    draw_providers(&w);
    draw_classes(&w);
    uint32_t runs = has(&w, WITH_RUNS) ? 1 + below(&w, 2) : 1;
    for (uint32_t run = 0; run < runs; run++) {
        draw_run(&w);
    }
    w.mixed = chance(&w, 30);
    for (uint32_t run = 0; run < runs; run++) {
        /* It may be refused (a cycle): try again with another one. */
        uint32_t before = w.model->task_count;
        for (uint32_t n = 0; n < 10 && w.model->task_count == before; n++) {
            draw_addition(&w, run, 1 + below(&w, recipe.tasks / runs + 1));
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
