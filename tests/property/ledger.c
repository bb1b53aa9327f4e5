/* SPDX-License-Identifier: MIT */
#include "tests/property/ledger.h"

#include "core/why.h"

#include <stdio.h>
#include <stdlib.h>

/* What is expected to succeed, in the making of a scheduler. */
static void must(enum err err)
{
    if (err != ERR_OK) {
        printf("# ledger: %s\n", err_name(err));
        (void)fflush(stdout);
        abort();
    }
}

static void must_be(bool condition)
{
    must(condition ? ERR_OK : ERR_LIMIT);
}

static const struct attribute *copied(struct attribute to[MODEL_ATTRIBUTES],
                                      const struct attribute *from,
                                      uint32_t count)
{
    must_be(count <= MODEL_ATTRIBUTES);
    for (uint32_t ix = 0; ix < count; ix++) {
        to[ix] = from[ix];
    }
    return to;
}

void ledger_add_provider(struct ledger *ledger,
                         const struct provider_spec *spec)
{
    must_be(ledger->provider_count < MODEL_PROVIDERS);
    ledger->providers[ledger->provider_count++] = *spec;
}

void ledger_add_class(struct ledger *ledger,
                      const struct sched_class_spec *spec)
{
    must_be(ledger->class_count < MODEL_CLASSES);
    ledger->classes[ledger->class_count++] = *spec;
}

void ledger_add_run(struct ledger *ledger, const struct sched_run_spec *spec)
{
    must_be(ledger->run_count < MODEL_RUNS);
    must_be(spec->limit_count <= LEDGER_LIMITS);
    struct ledger_run *run = &ledger->runs[ledger->run_count++];
    run->spec = *spec;
    run->spec.limits = run->limits;
    for (uint32_t ix = 0; ix < spec->limit_count; ix++) {
        struct limit_spec limit = spec->limits[ix];
        limit.where = copied(run->where[ix], limit.where, limit.where_count);
        run->limits[ix] = limit;
    }
}

static void add_task(struct ledger *ledger, const struct sched_task_spec *spec)
{
    must_be(ledger->task_count < MODEL_TASKS && spec->use_count <= MODEL_USES);
    uint32_t ix = ledger->task_count++;
    struct sched_task_spec *task = &ledger->tasks[ix];
    *task = *spec;
    task->attributes =
        copied(ledger->attributes[ix], spec->attributes, spec->attribute_count);
    task->uses = ledger->uses[ix];
    for (uint32_t n = 0; n < spec->use_count; n++) {
        ledger->uses[ix][n] = spec->uses[n];
    }
}

static void add_group(struct ledger *ledger,
                      const struct sched_group_spec *spec)
{
    must_be(ledger->group_count < MODEL_GROUPS);
    uint32_t ix = ledger->group_count++;
    ledger->groups[ix].attributes = copied(ledger->group_attributes[ix],
                                           spec->attributes,
                                           spec->attribute_count);
    ledger->groups[ix].attribute_count = spec->attribute_count;
}

void ledger_add(struct ledger *ledger, const struct sched_addition *addition)
{
    struct ledger_run *run = &ledger->runs[addition->run.v];
    ledger->mixed = ledger->mixed || addition->run.v < ledger->newest_run;
    ledger->newest_run = addition->run.v;
    if (run->task_count == 0) {
        run->first_task = ledger->task_count;
        run->first_group = ledger->group_count;
        run->first_scope = ledger->scope_count;
    }
    run->task_count += addition->task_count;
    run->group_count += addition->group_count;
    run->scope_count += addition->scope_count;
    for (uint32_t ix = 0; ix < addition->group_count; ix++) {
        add_group(ledger, &addition->groups[ix]);
    }
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        add_task(ledger, &addition->tasks[ix]);
    }
    for (uint32_t ix = 0; ix < addition->scope_count; ix++) {
        must_be(ledger->scope_count < MODEL_SCOPES);
        ledger->scopes[ledger->scope_count++] = addition->scopes[ix];
    }
    for (uint32_t ix = 0; ix < addition->need_count; ix++) {
        must_be(ledger->need_count < MODEL_NEEDS);
        ledger->needs[ledger->need_count++] = addition->needs[ix];
    }
}

void ledger_end_pass(struct ledger *ledger, const struct sched *live)
{
    ledger->version++;
    for (uint32_t ix = 0; ix < ledger->task_count; ix++) {
        if (ledger->changed[ix]) {
            ledger->records[ix] = sched_record(live, (struct task_id){ix});
            ledger->records[ix].version = ledger->version;
            ledger->changed[ix] = false;
        }
    }
}

bool ledger_is_exact(const struct ledger *ledger, const struct model *model)
{
    bool exact = !ledger->mixed;
    for (uint32_t ix = 0; ix < model->run_count; ix++) {
        const struct model_run *run = &model->runs[ix];
        bool again = !run->barrier_due && !model->draining;
        exact = exact && (again || !run->barrier_running);
    }
    return exact;
}

/* Add the tasks of a run all at once, whatever they were added with. */
static void make_tasks(const struct ledger *ledger,
                       const struct sched *live,
                       bool dump,
                       uint32_t run_ix,
                       int64_t now_ns,
                       struct sched *sched)
{
    const struct ledger_run *run = &ledger->runs[run_ix];
    struct sched_record records[MODEL_TASKS];
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        struct task_id task = {run->first_task + ix};
        struct sched_record record =
            dump ? sched_record(live, task) : ledger->records[task.v];
        if (record.leader != ID_NONE) {
            record.leader -= run->first_task;
        }
        if (record.cause != ID_NONE) {
            record.cause -= run->first_task;
        }
        records[ix] = record;
    }
    struct sched_need needs[MODEL_NEEDS];
    uint32_t need_count = 0;
    for (uint32_t ix = 0; ix < ledger->need_count; ix++) {
        struct sched_need need = ledger->needs[ix];
        if (need.need >= run->first_task &&
            need.need < run->first_task + run->task_count) {
            needs[need_count++] = need;
        }
    }
    struct sched_addition addition = {
        .run = {run_ix},
        .groups = ledger->groups + run->first_group,
        .group_count = run->group_count,
        .tasks = ledger->tasks + run->first_task,
        .task_count = run->task_count,
        .needs = needs,
        .need_count = need_count,
        .scopes = ledger->scopes + run->first_scope,
        .scope_count = run->scope_count,
        .records = records,
    };
    struct sched_rejection rejection;
    must(sched_add(sched, now_ns, &addition, &rejection));
    sched_rejection_release(&rejection);
}

static void make_run(const struct ledger *ledger,
                     const struct sched *live,
                     uint32_t run,
                     struct sched *sched,
                     struct limit_id *first_limit)
{
    struct run_id id =
        sched_add_run(sched, &ledger->runs[run].spec, first_limit);
    struct sched_run_record record = sched_run_record(live, id);
    sched_restore_run(sched, id, &record);
}

static void make_providers(const struct ledger *ledger,
                           const struct sched *live,
                           struct sched *sched)
{
    for (uint32_t ix = 0; ix < ledger->provider_count; ix++) {
        struct provider_id id = {ix};
        struct sched_provider_record record = sched_provider_record(live, id);
        sched_restore_provider(sched, id, &record);
    }
}

/* Set the limits of a run as they are now. */
static void make_limits(const struct ledger *ledger,
                        const struct model *model,
                        uint32_t run,
                        struct sched *sched,
                        struct limit_id first)
{
    uint32_t count = ledger->runs[run].spec.limit_count;
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct model_limit *limit = &model->limits[run * count + ix];
        struct sched_event event = {
            .type = EVENT_LIMIT,
            .now_ns = model->now_ns,
            .limit = {first.v + ix},
            .max = limit->spec.max,
            .percent = limit->spec.percent,
            .ahead = limit->ahead,
        };
        must(sched_apply(sched, &event));
        event.type = EVENT_AHEAD;
        must(sched_apply(sched, &event));
    }
}

struct sched *ledger_make(const struct ledger *ledger,
                          const struct sched *live,
                          const struct model *model,
                          struct ledger_order order)
{
    struct sched *sched = sched_new();
    sched_restore(sched, model->now_ns, model->last_token);
    for (uint32_t ix = 0; ix < ledger->provider_count; ix++) {
        (void)sched_add_provider(sched, &ledger->providers[ix]);
    }
    for (uint32_t ix = 0; ix < ledger->class_count; ix++) {
        (void)sched_add_class(sched, &ledger->classes[ix]);
    }
    if (!order.providers_last) {
        make_providers(ledger, live, sched);
    }
    struct limit_id first[MODEL_RUNS];
    for (uint32_t run = 0; run < ledger->run_count; run++) {
        make_run(ledger, live, run, sched, &first[run]);
        if (!order.limits_last) {
            make_limits(ledger, model, run, sched, first[run]);
        }
        if (order.runs_one_by_one) {
            make_tasks(ledger, live, order.dump, run, model->now_ns, sched);
        }
    }
    for (uint32_t run = 0; run < ledger->run_count; run++) {
        if (!order.runs_one_by_one) {
            make_tasks(ledger, live, order.dump, run, model->now_ns, sched);
        }
        if (order.limits_last) {
            make_limits(ledger, model, run, sched, first[run]);
        }
    }
    if (order.providers_last) {
        make_providers(ledger, live, sched);
    }
    if (model->draining) {
        struct sched_event drain = {
            .type = EVENT_DRAIN,
            .now_ns = model->now_ns,
        };
        must(sched_apply(sched, &drain));
    }
    return sched;
}

static bool same_record(const struct sched_record *a,
                        const struct sched_record *b)
{
    return a->state == b->state && a->flags == b->flags &&
           a->parked == b->parked && a->ready_ns == b->ready_ns &&
           a->ready_seq == b->ready_seq && a->until_ns == b->until_ns &&
           a->started_ns == b->started_ns && a->service_ns == b->service_ns &&
           a->token == b->token && a->leader == b->leader &&
           a->place == b->place && a->attempts == b->attempts &&
           a->tries == b->tries && a->reworks == b->reworks &&
           a->checkpoints == b->checkpoints && a->cause == b->cause;
}

static bool same_task(const struct sched_task *a, const struct sched_task *b)
{
    bool pending = a->state == TASK_WAITING || a->state == TASK_READY;
    /* Nobody asks for the rank of what has ended. */
    bool ranked = !pending || (a->tier == b->tier && a->rank_ns == b->rank_ns &&
                               a->background == b->background);
    bool aged = a->state != TASK_READY || a->aged == b->aged;
    return ranked && aged && a->unmet == b->unmet &&
           a->group_open == b->group_open;
}

/*
 * Whether two reasons are the same. Of several that hold a limit, or wait for
 * it, any can be named: which one depends on who was looked at before.
 */
static bool same_why(const struct why *a, const struct why *b)
{
    bool full_a = a->code == WHY_LIMIT || a->code == WHY_BEHIND;
    bool full_b = b->code == WHY_LIMIT || b->code == WHY_BEHIND;
    bool named = a->code == b->code && a->task.v == b->task.v &&
                 a->group.v == b->group.v;
    return a->limit.v == b->limit.v && a->provider.v == b->provider.v &&
           a->until_ns == b->until_ns && a->parked == b->parked &&
           (named || (full_a && full_b));
}

static void log_derived(struct strbuf *log,
                        struct task_id id,
                        const struct sched_task *task)
{
    strbuf_addf(log,
                "task %u: state %d unmet %u rank %lld tier %u%s%s%s\n",
                id.v,
                (int)task->state,
                task->unmet,
                (long long)task->rank_ns,
                task->tier,
                task->background ? " background" : "",
                task->aged ? " aged" : "",
                task->group_open ? " open" : "");
}

static const char *compare_task(struct sched *live,
                                struct sched *made,
                                struct task_id id,
                                struct strbuf *log)
{
    struct sched_record record_a = sched_record(live, id);
    struct sched_record record_b = sched_record(made, id);
    struct sched_task task_a = sched_task(live, id);
    struct sched_task task_b = sched_task(made, id);
    struct why why_a = why_task(live, id);
    struct why why_b = why_task(made, id);
    if (!same_record(&record_a, &record_b)) {
        strbuf_addf(log,
                    "task %u: state %d flags 0x%x, made 0x%x\n",
                    id.v,
                    (int)record_a.state,
                    record_a.flags,
                    record_b.flags);
        return "a record differs from the live one";
    }
    if (!same_task(&task_a, &task_b)) {
        log_derived(log, id, &task_a);
        log_derived(log, id, &task_b);
        return "what follows from the records differs from the live one";
    }
    if (!same_why(&why_a, &why_b)) {
        strbuf_addf(log,
                    "task %u: %s task %u limit %u, made %s task %u limit %u\n",
                    id.v,
                    why_code_name(why_a.code),
                    why_a.task.v,
                    why_a.limit.v,
                    why_code_name(why_b.code),
                    why_b.task.v,
                    why_b.limit.v);
        return "a reason differs from the live one";
    }
    return NULL;
}

static bool same_run(struct sched_run_record a, struct sched_run_record b)
{
    return a.paused == b.paused && a.cancelled == b.cancelled &&
           a.barrier == b.barrier && a.completions == b.completions &&
           a.owed == b.owed && a.stopped == b.stopped &&
           a.deadline_over == b.deadline_over;
}

static bool same_provider(struct sched_provider_record a,
                          struct sched_provider_record b)
{
    return a.sent == b.sent && a.refused == b.refused &&
           a.accepted == b.accepted && a.steps == b.steps &&
           a.steps_kept == b.steps_kept && a.confirming == b.confirming &&
           a.shut_until_ns == b.shut_until_ns && a.usage == b.usage &&
           a.failures == b.failures && a.circuit_open == b.circuit_open &&
           a.probe_token == b.probe_token && a.probe_steps == b.probe_steps &&
           a.probe_at_ns == b.probe_at_ns;
}

const char *ledger_compare(const struct ledger *ledger,
                           struct sched *live,
                           struct sched *made,
                           struct strbuf *log)
{
    for (uint32_t ix = 0; ix < ledger->task_count; ix++) {
        struct task_id task = {ix};
        const char *what = compare_task(live, made, task, log);
        if (what != NULL) {
            return what;
        }
    }
    for (uint32_t ix = 0; ix < ledger->run_count; ix++) {
        struct run_id run = {ix};
        if (!same_run(sched_run_record(live, run),
                      sched_run_record(made, run))) {
            return "the record of a run differs from the live one";
        }
    }
    for (uint32_t ix = 0; ix < ledger->provider_count; ix++) {
        struct provider_id provider = {ix};
        if (!same_provider(sched_provider_record(live, provider),
                           sched_provider_record(made, provider))) {
            return "the record of an executor differs from the live one";
        }
    }
    if (sched_next_timer(live) != sched_next_timer(made)) {
        return "the next timer differs from the live one";
    }
    return NULL;
}
