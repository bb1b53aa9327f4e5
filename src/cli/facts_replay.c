/* SPDX-License-Identifier: MIT */
/*
 * One sweep over everything that happened, in order. Between two moments
 * nothing changes, so each stretch is added to whatever was true during it.
 *
 * Why a task waited is not stored; it follows from what is: its state, what
 * it needs, the orders, and which limits were full, by the same rules by
 * which the core looks at them. Ready tasks of one shape fit or do not fit
 * together and are counted, not looked at one by one: a stretch costs as much
 * as there are shapes with a ready task.
 *
 * Slots are taken from the claim of a session to its end by the shim's clock;
 * limits, as in the core, until the scheduler has seen that end.
 */
#include "cli/facts_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* More cannot be spent of a budget: what is in use comes on top. */
#define SPENT_MAX (INT64_MAX / 4)

enum moment_kind { MOMENT_EVENT, MOMENT_CLAIM, MOMENT_END };

struct moment {
    int64_t at_ns;
    enum moment_kind kind;
    uint32_t ix; /* of the event or session */
};

/* Where a task is counted. */
enum bucket {
    BUCKET_NONE,
    BUCKET_NEEDS,
    BUCKET_BACKOFF,
    BUCKET_PERSON,
    BUCKET_HELD,
    BUCKET_READY,  /* group closed */
    BUCKET_READY2, /* group open */
    BUCKET_FLIGHT,
};

struct replay_task {
    enum task_state state;
    enum bucket bucket;
    bool seen;
    bool held;
    bool leads; /* first of its session: uses limits */
    uint32_t unmet;
    uint32_t flight_at; /* place in `flight`, while it leads */
};

struct replay_group {
    uint32_t busy;
    uint32_t ready;
    bool open;
};

struct replay {
    struct facts *facts;
    const struct chronicle *chronicle;
    const struct plan *plan;
    struct facts_rooms rooms;
    struct replay_task *tasks;
    struct replay_group *groups;
    uint32_t *first_dependent; /* of each task, and one behind */
    uint32_t *dependents;
    uint32_t *first_member; /* of each group of the plan, and one behind */
    uint32_t *members;
    uint32_t (*ready)[2]; /* of each shape: group closed, open */
    uint32_t *active;     /* shapes with a ready task */
    uint32_t *active_at;
    uint32_t active_count;
    uint32_t (*counts)[BUCKET_READY]; /* of each class, by bucket */
    uint32_t totals[BUCKET_FLIGHT + 1];
    uint32_t *flight; /* tasks that lead a session in flight */
    uint32_t flight_count;
    bool *refused; /* of each provider: its last answer was a refusal */
    bool *starved; /* of each class */
    bool paused;
    int64_t *max;       /* of each limit, as it was set */
    int64_t *usage_max; /* of each usage monitor */
    bool override;      /* usage monitors count for nothing */
    int64_t cap;        /* what holds for limit 0 */
    uint32_t sessions;  /* by rows */
};

/* --- buckets ------------------------------------------------------------ */

static const struct facts_shape *shape_of(const struct replay *replay,
                                          uint32_t task)
{
    return &replay->rooms.shapes[replay->rooms.shape_of[task]];
}

static bool is_met(const struct replay *replay, uint32_t ix)
{
    const struct replay_task *task = &replay->tasks[ix];
    return task->state == TASK_DONE ||
           ((task->state == TASK_FAILED || task->state == TASK_SKIPPED) &&
            replay->plan->tasks[ix].settings.optional);
}

static bool in_flight(const struct replay_task *task)
{
    return task->state == TASK_CLAIMED || task->state == TASK_RUNNING;
}

static bool is_ready(enum bucket bucket)
{
    return bucket == BUCKET_READY || bucket == BUCKET_READY2;
}

static enum bucket bucket_of(const struct replay *replay, uint32_t ix)
{
    const struct replay_task *task = &replay->tasks[ix];
    if (!task->seen) {
        return BUCKET_NONE;
    }
    switch (task->state) {
    case TASK_WAITING:
        return task->unmet > 0 ? BUCKET_NEEDS : BUCKET_BACKOFF;
    case TASK_READY:
        if (task->held) {
            return BUCKET_HELD;
        }
        return replay->groups[chronicle_group(replay->chronicle, ix)].open
                   ? BUCKET_READY2
                   : BUCKET_READY;
    case TASK_CLAIMED:
    case TASK_RUNNING:
        return BUCKET_FLIGHT;
    case TASK_FAILED:
        return replay->plan->tasks[ix].settings.optional ? BUCKET_NONE
                                                         : BUCKET_PERSON;
    case TASK_PARKED:
        return BUCKET_PERSON;
    case TASK_DONE:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        return BUCKET_NONE;
    }
    return BUCKET_NONE;
}

/* A shape has gained its first ready task, or lost its last one. */
static void set_active(struct replay *replay, uint32_t shape, bool active)
{
    if (active) {
        replay->active_at[shape] = replay->active_count;
        replay->active[replay->active_count++] = shape;
        return;
    }
    uint32_t last = replay->active[--replay->active_count];
    replay->active[replay->active_at[shape]] = last;
    replay->active_at[last] = replay->active_at[shape];
}

static void count_ready(struct replay *replay, uint32_t ix, int step)
{
    uint32_t shape = replay->rooms.shape_of[ix];
    uint32_t *ready = replay->ready[shape];
    uint32_t before = ready[0] + ready[1];
    ready[replay->tasks[ix].bucket == BUCKET_READY2] += (uint32_t)step;
    uint32_t after = ready[0] + ready[1];
    if ((before == 0) != (after == 0)) {
        set_active(replay, shape, after > 0);
    }
}

/* Take a task out of its bucket, or put it into the one it is in now. */
static void count_task(struct replay *replay, uint32_t ix, int step)
{
    struct replay_task *task = &replay->tasks[ix];
    if (step > 0) {
        task->bucket = bucket_of(replay, ix);
    }
    if (task->bucket == BUCKET_NONE) {
        return;
    }
    uint32_t class_ix = replay->plan->tasks[ix].class_ix;
    replay->totals[task->bucket] += (uint32_t)step;
    struct replay_group *group =
        &replay->groups[chronicle_group(replay->chronicle, ix)];
    if (is_ready(task->bucket)) {
        count_ready(replay, ix, step);
        group->ready += (uint32_t)step;
    } else if (task->bucket != BUCKET_FLIGHT) {
        replay->counts[class_ix][task->bucket] += (uint32_t)step;
    }
    bool busy = task->bucket == BUCKET_BACKOFF || task->bucket >= BUCKET_HELD;
    if (busy && !shape_of(replay, ix)->background) {
        group->busy += (uint32_t)step;
    }
}

/* --- limits ------------------------------------------------------------- */

/* What holds for a limit now: as it was set, or lower by usage monitors. */
static int64_t max_now(const struct replay *replay, uint32_t ix)
{
    const struct plan *plan = replay->plan;
    int64_t max = replay->max[ix];
    if (ix > 0 && plan->limits[ix].percent > 0 &&
        replay->cap != PLAN_UNLIMITED) {
        int64_t percent = plan->limits[ix].percent;
        max = replay->cap / 100 * percent + replay->cap % 100 * percent / 100;
        max = max > 1 ? max : 1;
    } else if (ix > 0 && plan->limits[ix].percent > 0) {
        max = PLAN_UNLIMITED;
    }
    for (uint32_t n = 0; !replay->override && n < plan->usage_count; n++) {
        if (plan->usages[n].limit == ix && replay->usage_max[n] < max) {
            max = replay->usage_max[n];
        }
    }
    return max;
}

/* The cap may be another one from here on. */
static void look_at_cap(struct replay *replay, int64_t at_ns)
{
    struct facts *facts = replay->facts;
    int64_t cap = max_now(replay, 0);
    if (facts->cap_count > 0 && cap == replay->cap) {
        return;
    }
    replay->cap = cap;
    if (facts->cap_count % 16 == 0) {
        facts->caps = mem_resize(facts->caps,
                                 (size_t)facts->cap_count + 16,
                                 sizeof(facts->caps[0]));
    }
    facts->caps[facts->cap_count++] = (struct facts_cap){at_ns, cap};
}

static int64_t max_of(const struct replay *replay, uint32_t room)
{
    uint32_t ix = replay->rooms.rooms[room].limit;
    return ix == 0 ? replay->cap : max_now(replay, ix);
}

/* Units of a need that are missing, when `spare` more were free. */
static bool
lacks(const struct replay *replay, struct facts_need need, int64_t spare)
{
    int64_t max = max_of(replay, need.room);
    return max != PLAN_UNLIMITED &&
           max - replay->rooms.rooms[need.room].used + spare < need.units;
}

static void use(struct replay *replay,
                const struct facts_need *needs,
                uint32_t count,
                int sign)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        replay->rooms.rooms[needs[ix].room].used +=
            sign * (int64_t)needs[ix].units;
    }
}

/* The ready tasks of a group are counted on the other side. */
static void turn_group(struct replay *replay, uint32_t task, bool open)
{
    uint32_t ix = chronicle_group(replay->chronicle, task);
    struct replay_group *group = &replay->groups[ix];
    const struct facts_shape *shape = shape_of(replay, task);
    use(replay, shape->group_needs, shape->group_need_count, open ? 1 : -1);
    group->open = open;
    if (ix >= replay->plan->group_count || group->ready == 0) {
        return;
    }
    for (uint32_t n = replay->first_member[ix];
         n < replay->first_member[ix + 1];
         n++) {
        uint32_t member = replay->members[n];
        if (is_ready(replay->tasks[member].bucket)) {
            count_task(replay, member, -1);
            count_task(replay, member, 1);
        }
    }
}

/* A task has begun to lead a session, or does not any more. */
static void set_leads(struct replay *replay, uint32_t ix, bool leads)
{
    struct replay_task *task = &replay->tasks[ix];
    const struct facts_shape *shape = shape_of(replay, ix);
    if (task->leads == leads) {
        return;
    }
    task->leads = leads;
    use(replay, shape->needs, shape->need_count, leads ? 1 : -1);
    if (leads) {
        task->flight_at = replay->flight_count;
        replay->flight[replay->flight_count++] = ix;
        if (!shape->background &&
            !replay->groups[chronicle_group(replay->chronicle, ix)].open) {
            turn_group(replay, ix, true);
        }
        return;
    }
    uint32_t last = replay->flight[--replay->flight_count];
    replay->flight[task->flight_at] = last;
    replay->tasks[last].flight_at = task->flight_at;
}

/* --- what happens ------------------------------------------------------- */

/* Tell those who need a task that it is met, or no longer. */
static void tell_dependents(struct replay *replay, uint32_t ix, bool met)
{
    for (uint32_t n = replay->first_dependent[ix];
         n < replay->first_dependent[ix + 1];
         n++) {
        uint32_t dependent = replay->dependents[n];
        count_task(replay, dependent, -1);
        replay->tasks[dependent].unmet += met ? UINT32_MAX : 1;
        count_task(replay, dependent, 1);
    }
}

static void close_if_idle(struct replay *replay, uint32_t ix)
{
    const struct replay_group *group =
        &replay->groups[chronicle_group(replay->chronicle, ix)];
    if (group->open && group->busy == 0) {
        turn_group(replay, ix, false);
    }
}

static void move_task(struct replay *replay,
                      const struct chronicle_event *event)
{
    uint32_t ix = event->task;
    struct replay_task *task = &replay->tasks[ix];
    bool was_met = task->seen && is_met(replay, ix);
    count_task(replay, ix, -1);
    if (in_flight(task) && event->to != TASK_RUNNING) {
        set_leads(replay, ix, false);
    }
    task->seen = true;
    task->state = event->to;
    count_task(replay, ix, 1);
    if (event->to == TASK_CLAIMED && event->session != CHRONICLE_NONE) {
        set_leads(replay, ix, true);
    }
    if (event->to == TASK_RUNNING) {
        replay
            ->refused[facts_provider(replay->plan, &replay->plan->tasks[ix])] =
            false;
    }
    bool met = is_met(replay, ix);
    if (met != was_met) {
        tell_dependents(replay, ix, met);
    }
    close_if_idle(replay, ix);
}

static void set_held(struct replay *replay, uint32_t ix, bool held)
{
    count_task(replay, ix, -1);
    replay->tasks[ix].held = held;
    count_task(replay, ix, 1);
}

/* What a session has cost is gone from its budgets. */
static void end_session(struct replay *replay,
                        const struct chronicle_session *session)
{
    const struct plan *plan = replay->plan;
    const struct facts_shape *shape = shape_of(replay, session->task);
    for (uint32_t ix = 0; ix < shape->need_count; ix++) {
        struct facts_room *room = &replay->rooms.rooms[shape->needs[ix].room];
        switch (plan->limits[room->limit].kind) {
        case PLAN_LIMIT_PLAIN:
        case PLAN_LIMIT_RESOURCE:
        case PLAN_LIMIT_USAGE:
        case PLAN_LIMIT_COST:
            break;
        case PLAN_LIMIT_BUDGET_USD:
            room->used += (int64_t)(session->usd * PLAN_USD + 0.5);
            break;
        case PLAN_LIMIT_BUDGET_TOKENS:
            facts_add(&room->used, 1, session->input_tokens);
            facts_add(&room->used, 1, session->output_tokens);
            room->used = room->used < SPENT_MAX ? room->used : SPENT_MAX;
            break;
        }
    }
    /* Only a later acceptance takes a refusal back. */
    if (session->outcome == CHRONICLE_REFUSED) {
        replay->refused[facts_provider(plan, &plan->tasks[session->task])] =
            true;
    }
}

static void take_event(struct replay *replay,
                       const struct chronicle_event *event)
{
    const struct chronicle *chronicle = replay->chronicle;
    switch (event->kind) {
    case CHRONICLE_TASK:
        move_task(replay, event);
        break;
    case CHRONICLE_END:
        if (event->session != CHRONICLE_NONE) {
            end_session(replay, &chronicle->sessions[event->session]);
        }
        break;
    case CHRONICLE_LIMIT:
        replay->max[event->part] = event->max;
        look_at_cap(replay, event->at_ns);
        break;
    case CHRONICLE_USAGE:
        replay->usage_max[event->part] = event->max;
        look_at_cap(replay, event->at_ns);
        break;
    case CHRONICLE_OVERRIDE:
        replay->override = event->max != 0;
        look_at_cap(replay, event->at_ns);
        break;
    case CHRONICLE_PAUSE:
    case CHRONICLE_RESUME:
        replay->paused = event->kind == CHRONICLE_PAUSE;
        break;
    case CHRONICLE_HOLD:
    case CHRONICLE_RELEASE:
        set_held(replay, event->task, event->kind == CHRONICLE_HOLD);
        break;
    }
}

/* --- what was true meanwhile -------------------------------------------- */

/* The first limit that keeps tasks of this shape, or PLAN_NONE. */
static uint32_t full_limit(const struct replay *replay,
                           const struct facts_shape *shape,
                           bool open)
{
    for (uint32_t ix = 0; ix < shape->need_count; ix++) {
        if (lacks(replay, shape->needs[ix], 0)) {
            return replay->rooms.rooms[shape->needs[ix].room].limit;
        }
    }
    for (uint32_t ix = 0;
         !open && !shape->background && ix < shape->group_need_count;
         ix++) {
        if (lacks(replay, shape->group_needs[ix], 0)) {
            return replay->rooms.rooms[shape->group_needs[ix].room].limit;
        }
    }
    return PLAN_NONE;
}

static enum facts_reason reason_of(const struct replay *replay,
                                   const struct facts_shape *shape,
                                   uint32_t limit)
{
    if (replay->paused) {
        return FACTS_PAUSED;
    }
    if (limit != PLAN_NONE && shape->background) {
        return FACTS_DEFERRED;
    }
    if (limit != PLAN_NONE) {
        return limit == 0 ? FACTS_SLOT : FACTS_LIMIT;
    }
    return replay->refused[shape->provider] ? FACTS_PROVIDER : FACTS_OTHER;
}

/* Units of a room that come free when `other` ends. */
static int64_t
spare_of(const struct replay *replay, uint32_t room, uint32_t other)
{
    const struct facts_shape *shape = shape_of(replay, other);
    const struct replay_group *group =
        &replay->groups[chronicle_group(replay->chronicle, other)];
    for (uint32_t ix = 0; ix < shape->need_count; ix++) {
        if (shape->needs[ix].room == room) {
            return shape->needs[ix].units;
        }
    }
    bool closes = group->open && group->busy == 1 && !shape->background;
    for (uint32_t ix = 0; closes && ix < shape->group_need_count; ix++) {
        if (shape->group_needs[ix].room == room) {
            return shape->group_needs[ix].units;
        }
    }
    return 0;
}

static bool fits_without(const struct replay *replay,
                         const struct facts_shape *shape,
                         bool open,
                         uint32_t other)
{
    for (uint32_t ix = 0; ix < shape->need_count; ix++) {
        struct facts_need need = shape->needs[ix];
        if (lacks(replay, need, spare_of(replay, need.room, other))) {
            return false;
        }
    }
    for (uint32_t ix = 0;
         !open && !shape->background && ix < shape->group_need_count;
         ix++) {
        struct facts_need need = shape->group_needs[ix];
        if (lacks(replay, need, spare_of(replay, need.room, other))) {
            return false;
        }
    }
    return true;
}

/* Whether something that is worth less is in the place of this shape. */
static bool is_starved(const struct replay *replay,
                       const struct facts_shape *shape,
                       bool open)
{
    for (uint32_t ix = 0; ix < replay->flight_count; ix++) {
        uint32_t other = replay->flight[ix];
        if (shape_of(replay, other)->worth > shape->worth &&
            fits_without(replay, shape, open, other)) {
            return true;
        }
    }
    return false;
}

static void
add_shape(struct replay *replay, uint32_t ix, bool open, int64_t length_ns)
{
    struct facts *facts = replay->facts;
    const struct facts_shape *shape = &replay->rooms.shapes[ix];
    uint32_t count = replay->ready[ix][open];
    if (count == 0) {
        return;
    }
    uint32_t limit = full_limit(replay, shape, open);
    enum facts_reason reason = reason_of(replay, shape, limit);
    facts_add(&facts->classes[shape->class_ix].waits_ns[reason],
              count,
              length_ns);
    if (reason == FACTS_LIMIT) {
        facts_add(&facts->limit_waits_ns[limit], count, length_ns);
    }
    if (limit != PLAN_NONE && !replay->paused &&
        shape->worth < replay->rooms.worth_worst &&
        !replay->starved[shape->class_ix]) {
        replay->starved[shape->class_ix] = is_starved(replay, shape, open);
    }
}

static void add_waits(struct replay *replay, int64_t length_ns)
{
    static const enum facts_reason reasons[BUCKET_READY] = {
        [BUCKET_NEEDS] = FACTS_NEEDS,
        [BUCKET_BACKOFF] = FACTS_BACKOFF,
        [BUCKET_PERSON] = FACTS_PERSON,
        [BUCKET_HELD] = FACTS_HELD,
    };
    struct facts *facts = replay->facts;
    uint32_t class_count = replay->plan->class_count;
    memset(replay->starved, 0, class_count * sizeof(replay->starved[0]));
    for (uint32_t ix = 0; ix < replay->active_count; ix++) {
        add_shape(replay, replay->active[ix], false, length_ns);
        add_shape(replay, replay->active[ix], true, length_ns);
    }
    for (uint32_t ix = 0; ix < class_count; ix++) {
        struct facts_class *class = &facts->classes[ix];
        class->starved_ns += replay->starved[ix] ? length_ns : 0;
        for (enum bucket n = BUCKET_NEEDS; n < BUCKET_READY; n++) {
            facts_add(&class->waits_ns[reasons[n]],
                      replay->counts[ix][n],
                      length_ns);
        }
    }
}

static void add_slots(struct replay *replay, int64_t length_ns)
{
    struct facts *facts = replay->facts;
    int64_t used = replay->sessions;
    int64_t cap = replay->cap == PLAN_UNLIMITED ? used : replay->cap;
    enum facts_idle idle = FACTS_IDLE_REST;
    if (replay->active_count > 0) {
        idle = FACTS_IDLE_KEPT;
    } else if (used > 0 || replay->totals[BUCKET_FLIGHT] > 0 ||
               replay->totals[BUCKET_BACKOFF] > 0) {
        idle = FACTS_IDLE_NONE;
    }
    facts_add(&facts->working_ns, used, length_ns);
    facts_add(&facts->offered_ns, cap, length_ns);
    facts_add(&facts->over_ns, used > cap ? used - cap : 0, length_ns);
    facts_add(&facts->idle_ns[idle], used < cap ? cap - used : 0, length_ns);
}

/* --- the sweep ---------------------------------------------------------- */

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left;
    const struct moment *b = right;
    if (a->at_ns != b->at_ns) {
        return a->at_ns < b->at_ns ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return (a->ix > b->ix) - (a->ix < b->ix);
}

/* All moments in order. The caller frees them. */
static struct moment *collect_moments(const struct chronicle *chronicle,
                                      uint32_t *count_out)
{
    uint32_t count = chronicle->event_count + 2 * chronicle->session_count;
    struct moment *moments = mem_zalloc(count, sizeof(moments[0]));
    uint32_t at = 0;
    for (uint32_t ix = 0; ix < chronicle->event_count; ix++) {
        moments[at++] = (struct moment){
            chronicle->events[ix].at_ns,
            MOMENT_EVENT,
            ix,
        };
    }
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        const struct chronicle_session *session = &chronicle->sessions[ix];
        moments[at++] = (struct moment){session->claimed_ns, MOMENT_CLAIM, ix};
        moments[at++] = (struct moment){session->ended_ns, MOMENT_END, ix};
    }
    INVARIANT(at == count);
    if (count > 1) {
        qsort(moments, count, sizeof(moments[0]), compare_moments);
    }
    *count_out = count;
    return moments;
}

static void run_sweep(struct replay *replay)
{
    const struct chronicle *chronicle = replay->chronicle;
    uint32_t count;
    struct moment *moments = collect_moments(chronicle, &count);
    int64_t before_ns = 0;
    for (uint32_t ix = 0; ix <= count; ix++) {
        int64_t now_ns = ix < count && moments[ix].at_ns < chronicle->end_ns
                             ? moments[ix].at_ns
                             : chronicle->end_ns;
        if (now_ns > before_ns) {
            add_slots(replay, now_ns - before_ns);
            add_waits(replay, now_ns - before_ns);
            before_ns = now_ns;
        }
        if (ix == count) {
            break;
        }
        if (moments[ix].kind == MOMENT_EVENT) {
            take_event(replay, &chronicle->events[moments[ix].ix]);
        } else {
            replay->sessions +=
                moments[ix].kind == MOMENT_CLAIM ? 1 : UINT32_MAX;
        }
    }
    mem_free(moments);
}

/* Who needs whom, and who is in which group, the other way round. */
static void index_plan(struct replay *replay)
{
    const struct plan *plan = replay->plan;
    uint32_t *first = replay->first_dependent;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        replay->tasks[ix].unmet = task->need_count;
        for (uint32_t n = 0; n < task->need_count; n++) {
            first[task->needs[n] + 1]++;
        }
        if (task->group != PLAN_NONE) {
            replay->first_member[task->group + 1]++;
        }
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        first[ix + 1] += first[ix];
    }
    for (uint32_t ix = 0; ix < plan->group_count; ix++) {
        replay->first_member[ix + 1] += replay->first_member[ix];
    }
    replay->dependents =
        mem_zalloc(first[plan->task_count], sizeof(replay->dependents[0]));
    uint32_t *next = mem_zalloc(plan->task_count, sizeof(next[0]));
    uint32_t *next_member = mem_zalloc(plan->group_count, sizeof(next[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        for (uint32_t n = 0; n < task->need_count; n++) {
            uint32_t need = task->needs[n];
            replay->dependents[first[need] + next[need]++] = ix;
        }
        if (task->group != PLAN_NONE) {
            uint32_t at = replay->first_member[task->group];
            replay->members[at + next_member[task->group]++] = ix;
        }
    }
    mem_free(next);
    mem_free(next_member);
}

static void release(struct replay *replay)
{
    facts_rooms_release(&replay->rooms);
    mem_free(replay->tasks);
    mem_free(replay->groups);
    mem_free(replay->first_dependent);
    mem_free(replay->dependents);
    mem_free(replay->first_member);
    mem_free(replay->members);
    mem_free(replay->ready);
    mem_free(replay->active);
    mem_free(replay->active_at);
    mem_free(replay->counts);
    mem_free(replay->flight);
    mem_free(replay->refused);
    mem_free(replay->starved);
    mem_free(replay->max);
    mem_free(replay->usage_max);
}

void facts_replay(struct facts *facts)
{
    const struct chronicle *chronicle = facts->chronicle;
    const struct plan *plan = chronicle->plan;
    size_t tasks = plan->task_count;
    size_t groups = plan->group_count;
    size_t classes = plan->class_count;
    struct replay replay = {
        .facts = facts,
        .chronicle = chronicle,
        .plan = plan,
        .tasks = mem_zalloc(tasks, sizeof(replay.tasks[0])),
        .groups = mem_zalloc(groups + tasks, sizeof(replay.groups[0])),
        .first_dependent = mem_zalloc(tasks + 1, sizeof(uint32_t)),
        .first_member = mem_zalloc(groups + 1, sizeof(uint32_t)),
        .members = mem_zalloc(tasks, sizeof(uint32_t)),
        .counts = mem_zalloc(classes, sizeof(replay.counts[0])),
        .flight = mem_zalloc(tasks, sizeof(uint32_t)),
        .refused = mem_zalloc((size_t)plan->provider_count + plan->class_count,
                              sizeof(bool)),
        .starved = mem_zalloc(classes, sizeof(bool)),
        .max = mem_zalloc(plan->limit_count, sizeof(int64_t)),
        .usage_max = mem_zalloc(plan->usage_count, sizeof(int64_t)),
    };
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        replay.max[ix] = plan->limits[ix].max;
    }
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        replay.usage_max[ix] = PLAN_UNLIMITED;
    }
    look_at_cap(&replay, 0);
    facts_rooms_init(&replay.rooms, plan);
    size_t shapes = replay.rooms.shape_count;
    replay.ready = mem_zalloc(shapes, sizeof(replay.ready[0]));
    replay.active = mem_zalloc(shapes, sizeof(uint32_t));
    replay.active_at = mem_zalloc(shapes, sizeof(uint32_t));
    index_plan(&replay);
    run_sweep(&replay);
    release(&replay);
}
