/* SPDX-License-Identifier: MIT */
/* Drawing a plan: classes, limits, groups, tasks and what they need. */
#include "tests/property/case_internal.h"

#include "base/macros.h"
#include "base/mem.h"

enum { ATTRIBUTE_CLASS, ATTRIBUTE_REPO, ATTRIBUTE_OWNER };

void case_draw_classes(struct world *w)
{
    for (uint32_t ix = 0; ix < 4; ix++) {
        struct sched_class_spec spec = {.batch = 1, .max_wait_ns = SCHED_NEVER};
        if (has(w, WITH_CLASSES)) {
            spec.tier = below(w, 3);
            spec.defer = chance(w, ix < 2 ? 20 : 65);
            spec.queue = chance(w, ix == 1 ? 60 : 10);
            if (chance(w, spec.defer ? 60 : 30)) {
                spec.max_wait_ns = (1 + below(w, 60)) * SECOND;
            }
        }
        if (has(w, WITH_BATCH)) {
            spec.batch = 1 + below(w, 4);
            spec.marginal = 50 * below(w, 3);
        }
        (void)sched_add_class(w->sched, &spec);
        (void)sched_add_class(w->twin, &spec);
        ledger_add_class(w->ledger, &spec);
        model_add_class(w->model, &spec);
    }
}

void case_draw_providers(struct world *w)
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

/* Some limits become others of their kind, now and then. */
static void vary_limits(struct world *w, struct limit_spec *specs)
{
    static const struct attribute odd = {ATTRIBUTE_CLASS, 3};
    struct limit_spec *background = &specs[LIMIT_BACKGROUND];
    background->percent = chance(w, 50) ? 10 + below(w, 91) : 0;
    if (chance(w, 60)) {
        background->where = &odd;
        background->where_count = 1;
    }
    if (chance(w, 20)) {
        specs[LIMIT_REVIEW].percent = 1 + below(w, 100);
    }
    if (chance(w, 50)) {
        specs[LIMIT_ACTIVE].max = 1 + below(w, 3);
    }
    if (chance(w, 30)) {
        specs[LIMIT_MERGE].max = 1 + below(w, 4);
    }
    if (chance(w, 50)) {
        specs[LIMIT_GROUPS].per = ID_NONE;
    }
    if (w->model->run_count > 0 && chance(w, 30)) {
        /* What one run counts in sessions, the other counts in groups. */
        uint32_t share = specs[LIMIT_MERGE].share;
        specs[LIMIT_MERGE].share = specs[LIMIT_ACTIVE].share;
        specs[LIMIT_ACTIVE].share = share;
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
        {.percent = 34,
         .per = ID_NONE,
         .where = &review,
         .where_count = 1,
         .background = has(w, WITH_SHARE)},
        {.max = 2 + below(w, 3), .per = ID_NONE, .resource = true},
        {.max = 1 + below(w, 3), .per = ATTRIBUTE_OWNER},
        {.max = 1 + below(w, 3), .per = ID_NONE, .background = true},
        {.max = 1 + below(w, 4), .per = ATTRIBUTE_OWNER, .hold_group = true},
    };
    vary_limits(w, all);
    for (uint32_t ix = 0; ix < LIMITS_PER_RUN; ix++) {
        specs[ix] = all[ix];
        if (specs[ix].share == 0) {
            specs[ix].share = ID_NONE;
        }
        bool none = has(w, WITH_LIMITS) ? chance(w, 15) : ix > 0;
        if (none || (ix >= LIMIT_BACKGROUND &&
                     (!has(w, WITH_SHARE) || chance(w, 40)))) {
            specs[ix].max = LIMIT_NONE;
            specs[ix].percent = 0;
        }
    }
}

void case_draw_run(struct world *w)
{
    struct limit_spec limits[LIMITS_PER_RUN];
    draw_limits(w, limits);
    struct sched_run_spec spec = {
        .policy = chance(w, 10) ? SCHED_LOOKAHEAD /* as rank: see wave.h */
                                : (enum sched_policy)below(w, 3),
        .goal = has(w, WITH_GOAL) && chance(w, 50) ? SCHED_FINISH_MANY
                                                   : SCHED_FINISH_ALL,
        .limits = limits,
        .limit_count = LIMITS_PER_RUN,
        .sync_every = has(w, WITH_SYNC) && chance(w, 50) ? 1 + below(w, 6) : 0,
        .sync_drain = chance(w, 50),
        .deadline_ns = has(w, WITH_STOPS) && chance(w, 20)
                           ? (1 + below(w, 300)) * SECOND
                           : 0,
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
        if (has(w, WITH_STOPS) && chance(w, 8)) {
            spec.on_failure = SCHED_STOP;
        }
    }
    return spec;
}

enum { ADD_TASKS_MAX = MODEL_TASKS, ADD_GROUPS_MAX = 12, ADD_SCOPES_MAX = 3 };

/* An addition with memory for what it points to. */
struct draft {
    struct sched_addition addition;
    struct sched_task_spec tasks[ADD_TASKS_MAX];
    struct sched_group_spec groups[ADD_GROUPS_MAX];
    struct attribute attributes[ADD_TASKS_MAX][3];
    struct attribute group_attributes[ADD_GROUPS_MAX][2];
    struct sched_use uses[ADD_TASKS_MAX][MODEL_USES];
    struct sched_need needs[MODEL_NEEDS];
    struct sched_scope_spec scopes[ADD_SCOPES_MAX];
};

static uint32_t draw_group_of(struct world *w, const struct draft *draft)
{
    uint32_t groups = draft->addition.group_count;
    if (w->group_count > 0 && chance(w, 10)) {
        uint32_t old = w->groups[below(w, w->group_count)];
        if (w->model->groups[old].run == draft->addition.run.v) {
            return old;
        }
    }
    if (groups == 0 || chance(w, 30)) {
        return ID_NONE;
    }
    return w->model->group_count + below(w, groups);
}

static void draw_groups(struct world *w, struct draft *draft)
{
    uint32_t most = chance(w, 50) ? 4 : ADD_GROUPS_MAX;
    uint32_t count = has(w, WITH_GROUPS) ? below(w, most) : 0;
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

/* A scope of the run, old or among the first `count` new ones; or the run. */
static uint32_t
draw_scope(struct world *w, const struct draft *draft, uint32_t count)
{
    uint32_t old = w->model->scope_count;
    uint32_t scope = below(w, old + count + 1);
    bool other_run = scope > 0 && scope <= old &&
                     w->model->scopes[scope - 1].run != draft->addition.run.v;
    return other_run ? 0 : scope;
}

static void draw_scopes(struct world *w, struct draft *draft)
{
    bool few = w->model->scope_count + ADD_SCOPES_MAX < MODEL_SCOPES;
    uint32_t count =
        few && has(w, WITH_LAST) ? below(w, ADD_SCOPES_MAX + 1) : 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        draft->scopes[ix].parent = draw_scope(w, draft, ix);
    }
    draft->addition.scopes = draft->scopes;
    draft->addition.scope_count = count;
}

/* What a need must come to; the same for the same pair. */
static enum sched_on
draw_kind_of_need(struct world *w, const struct draft *draft, uint32_t at)
{
    struct sched_need need = draft->needs[at];
    for (uint32_t ix = 0; ix < at; ix++) {
        if (draft->needs[ix].need == need.need &&
            draft->needs[ix].dependent == need.dependent) {
            return draft->needs[ix].on;
        }
    }
    if (!has(w, WITH_KINDS) || chance(w, 70)) {
        return SCHED_ON_DONE;
    }
    return chance(w, 50) ? SCHED_ON_FAILED : SCHED_ON_ANY;
}

/* Mark what is reached over the needs of the model and the first `count` of the
 * draft: what the marked tasks need, or what needs them. */
static void reach(const struct world *w,
                  const struct draft *draft,
                  uint32_t count,
                  bool back,
                  bool *marked)
{
    uint32_t old = w->model->need_count;
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < old + count; ix++) {
            struct sched_need need =
                ix < old ? w->model->needs[ix] : draft->needs[ix - old];
            uint32_t from = back ? need.need : need.dependent;
            uint32_t to = back ? need.dependent : need.need;
            if (marked[from] && !marked[to]) {
                marked[to] = true;
                changed = true;
            }
        }
    }
}

/*
 * Whether a need, beside those kept so far, lets a last task wait for one that
 * needs it through others: both would wait for ever. That is not refused.
 */
static bool
is_knot(const struct world *w, const struct draft *draft, uint32_t at)
{
    bool needed[MODEL_TASKS * 2] = {false};
    bool needing[MODEL_TASKS * 2] = {false};
    needed[draft->needs[at].need] = true;
    needing[draft->needs[at].dependent] = true;
    reach(w, draft, at, false, needed);
    reach(w, draft, at, true, needing);
    uint32_t total = w->model->task_count + draft->addition.task_count;
    for (uint32_t ix = 0; ix < total; ix++) {
        for (uint32_t n = 0; needed[ix] && n < total; n++) {
            struct sched_need way = {.dependent = n, .need = ix};
            if (needing[n] &&
                model_needs_last(w->model, &draft->addition, way)) {
                return true;
            }
        }
    }
    return false;
}

/* Say what the needs must come to, and drop most that would be refused because
 * they are on a last task that waits for the dependent. */
static void draw_kinds(struct world *w, struct draft *draft)
{
    uint32_t total = w->model->task_count + draft->addition.task_count;
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < draft->addition.need_count; ix++) {
        struct sched_need need = draft->needs[ix];
        bool known = need.need < total && need.dependent < total;
        bool refused =
            known && model_needs_last(w->model, &draft->addition, need);
        draft->needs[kept] = need;
        if (refused ? below(w, 500) > 0
                    : known && has(w, WITH_LAST) && is_knot(w, draft, kept)) {
            continue;
        }
        draft->needs[kept].on = draw_kind_of_need(w, draft, kept);
        kept++;
    }
    draft->addition.need_count = kept;
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
    struct sched_need need = {.dependent = task};
    if (old > 0 && chance(w, 3)) {
        /* An old task comes to need a new one. */
        need = (struct sched_need){.dependent = below(w, old), .need = task};
    } else if (chance(w, 2)) {
        need.need = below(w, old + addition->task_count);
    } else if (task > 0) {
        uint32_t back = 1 + below(w, task < 8 ? task : 8);
        need.need = task - back;
        if (need.need < old && chance(w, 98) &&
            w->model->tasks[need.need].run != addition->run.v) {
            return; /* it would be refused */
        }
    }
    if (need.need != task || chance(w, 1)) {
        draft->needs[addition->need_count++] = need;
    }
}

/* 1 + another task of the run, or 0. */
static uint32_t
draw_guard(struct world *w, const struct draft *draft, uint32_t ix)
{
    uint32_t old = w->model->task_count;
    if (!has(w, WITH_GUARDS) || chance(w, 40)) {
        return 0;
    }
    /* Few of them, so that each has several tasks. */
    uint32_t count = draft->addition.task_count;
    uint32_t guard = chance(w, 70) ? old + below(w, count < 3 ? count : 3)
                                   : below(w, old + count);
    bool other_run =
        guard < old && w->model->tasks[guard].run != draft->addition.run.v;
    return other_run || guard == old + ix ? 0 : guard + 1;
}

/* Units of some limits; return their number. */
static uint32_t draw_uses(struct world *w, uint32_t run, struct sched_use *uses)
{
    static const struct {
        uint32_t limit;
        uint32_t percent;
        uint32_t most;
    } wide[] = {
        {LIMIT_TOOLS, 40, 3},
        {LIMIT_SESSIONS, 20, 3},
        {LIMIT_MERGE, 10, 2},
        {LIMIT_BACKGROUND, 10, 2},
    };
    uint32_t count = 0;
    for (uint32_t ix = 0; has(w, WITH_UNITS) && ix < ARRAY_COUNT(wide); ix++) {
        if (chance(w, wide[ix].percent) && (ix == 0 || !w->alike)) {
            uses[count++] = (struct sched_use){
                {run * LIMITS_PER_RUN + wide[ix].limit},
                1 + below(w, wide[ix].most),
            };
        }
    }
    return count;
}

/* Seconds, minutes, milliseconds or almost nothing. */
static int64_t draw_estimate(struct world *w)
{
    uint32_t roll = below(w, 100);
    if (roll < 50 || !has(w, WITH_GOAL)) {
        return below(w, 6) * SECOND;
    }
    if (roll < 65) {
        return below(w, 90) * SECOND;
    }
    return roll < 90 ? (1 + below(w, 100)) * (SECOND / 1000) : below(w, 9);
}

/* Below `bound`; always 0 if tasks are alike. */
static uint32_t draw_kind(struct world *w, uint32_t bound)
{
    return below(w, w->alike ? 1 : bound);
}

/* Before what a task comes, and what comes before it but for its needs. */
static void
draw_end(struct world *w, const struct draft *draft, struct sched_task_spec *t)
{
    if (has(w, WITH_LAST)) {
        bool inner = chance(w, 60);
        t->scope =
            inner ? draw_scope(w, draft, draft->addition.scope_count) : 0;
        t->last = chance(w, 15);
    }
    t->approve = has(w, WITH_APPROVAL) && chance(w, 10);
    if (has(w, WITH_TIMES) && chance(w, 10)) {
        t->not_before_ns = w->now_ns + below(w, 60) * SECOND;
    }
}

static void draw_task(struct world *w, struct draft *draft, uint32_t ix)
{
    struct attribute *attributes = draft->attributes[ix];
    uint32_t class_ix = below(w, 4);
    attributes[0] = (struct attribute){ATTRIBUTE_CLASS, class_ix};
    attributes[1] = (struct attribute){ATTRIBUTE_REPO, draw_kind(w, 3)};
    attributes[2] = (struct attribute){ATTRIBUTE_OWNER, draw_kind(w, 2)};
    uint32_t run = draft->addition.run.v;
    draft->tasks[ix] = (struct sched_task_spec){
        .class_id = {class_ix},
        .provider = {draw_kind(w, 3)},
        .group = draw_group_of(w, draft),
        .estimate_ns = draw_estimate(w),
        .batch_key = draw_kind(w, 2),
        .attributes = attributes,
        .attribute_count = 1 + draw_kind(w, 3),
        .uses = draft->uses[ix],
        .use_count = draw_uses(w, run, draft->uses[ix]),
        .failure = draw_failure(w),
        .rework_to = ID_NONE,
        .priority = has(w, WITH_PRIORITY) ? below(w, 3) * 4 : 5,
        .guard = draw_guard(w, draft, ix),
    };
    draw_end(w, draft, &draft->tasks[ix]);
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
            need.on != SCHED_ON_DONE || need.need == need.dependent ||
            !chance(w, 60)) {
            continue;
        }
        struct sched_task_spec *task = &draft->tasks[need.dependent - old];
        const struct sched_task_spec *to = &draft->tasks[need.need - old];
        if (task->group != ID_NONE && task->group == to->group) {
            task->rework_to = need.need;
        }
    }
}

/* The number that the scheduler gives to a declared group of the model. */
static uint32_t group_in_sched(const struct world *w, uint32_t group)
{
    uint32_t ix = 0;
    while (w->groups[ix] != group) {
        ix++;
    }
    return ix;
}

/* What is added, for a person. */
static void log_addition(struct world *w, const struct sched_addition *addition)
{
    uint32_t old = w->model->task_count;
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_task_spec *t = &addition->tasks[ix];
        strbuf_addf(&w->log,
                    "  task %u group %d class %u on_failure %d%s scope %u%s%s "
                    "not before %lld\n",
                    old + ix,
                    (int)t->group,
                    t->class_id.v,
                    (int)t->failure.on_failure,
                    t->failure.optional ? " optional" : "",
                    t->scope,
                    t->last ? " last" : "",
                    t->approve ? " approve" : "",
                    (long long)(t->not_before_ns / SECOND));
    }
    for (uint32_t ix = 0; ix < addition->need_count; ix++) {
        static const char *const kinds[] = {"done", "failed", "any"};
        strbuf_addf(&w->log,
                    "  %u needs %u %s\n",
                    addition->needs[ix].dependent,
                    addition->needs[ix].need,
                    kinds[addition->needs[ix].on]);
    }
    for (uint32_t ix = 0; ix < addition->scope_count; ix++) {
        strbuf_addf(&w->log,
                    "  scope %u in %u\n",
                    w->model->scope_count + ix + 1,
                    addition->scopes[ix].parent);
    }
}

void case_draw_addition(struct world *w, uint32_t run, uint32_t count)
{
    struct draft *draft = mem_zalloc(1, sizeof(*draft));
    struct sched_addition *addition = &draft->addition;
    addition->run.v = run;
    addition->tasks = draft->tasks;
    addition->needs = draft->needs;
    addition->task_count = count;
    draw_groups(w, draft);
    draw_scopes(w, draft);
    for (uint32_t ix = 0; ix < count; ix++) {
        draw_task(w, draft, ix);
    }
    draw_kinds(w, draft);
    if (has(w, WITH_REWORK)) {
        draw_reworks(w, draft);
    }
    if (w->verbose) {
        log_addition(w, addition);
    }
    uint32_t old_groups = w->model->group_count;
    for (uint32_t ix = 0; ix < addition->group_count; ix++) {
        w->groups[w->group_count + ix] = old_groups + ix;
    }
    enum err expected = model_add(w->model, w->now_ns, addition);
    /* The scheduler numbers its limits behind gates, and gives tasks without
     * a group no number: translate. */
    for (uint32_t ix = 0; ix < count; ix++) {
        if (draft->tasks[ix].group != ID_NONE) {
            draft->tasks[ix].group = group_in_sched(w, draft->tasks[ix].group);
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
        case_complain(w, "sched_add and the model disagree");
    }
    if (err == ERR_OK) {
        w->group_count += addition->group_count;
        ledger_add(w->ledger, addition);
    }
    mem_free(draft);
}
