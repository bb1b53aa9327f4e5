/* SPDX-License-Identifier: MIT */
#include "tests/unit/sched_fixture.h"

#include "base/mem.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct provider_spec patient = {
    .backoff_ns = 10 * SECOND,
    .backoff_ns_max = 60 * SECOND,
    .circuit_failures = 0,
    .probe_ns = 60 * SECOND,
    .probe_ns_max = 600 * SECOND,
};

void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.sched = sched_new()};
    f->provider = sched_add_provider(f->sched, &patient);
    f->work = fixture_class(f, 0, false, 1, SCHED_NEVER);
    f->review = fixture_class(f, 1, false, 1, SCHED_NEVER);
    f->spec = (struct sched_task_spec){
        .class_id = f->work,
        .provider = f->provider,
        .group = ID_NONE,
        .estimate_ns = MINUTE,
        .rework_to = ID_NONE,
    };
}

void fixture_release(struct fixture *f)
{
    sched_free(f->sched);
    strbuf_release(&f->started);
    strbuf_release(&f->ended);
    strbuf_release(&f->changed);
    strbuf_release(&f->scratch);
    *f = (struct fixture){0};
}

static void add_run(struct fixture *f, const struct sched_run_spec *spec)
{
    assert_true(f->run_count < FIXTURE_RUNS);
    f->run = sched_add_run(f->sched, spec, &f->first_limit);
    f->run_count++;
    for (uint32_t ix = 0; ix < spec->limit_count; ix++) {
        assert_true(f->limit_count < sizeof(f->limits) / sizeof(f->limits[0]));
        f->limits[f->limit_count++].v = f->first_limit.v + ix;
    }
}

void fixture_run(struct fixture *f,
                 enum sched_policy policy,
                 const struct limit_spec *limits,
                 uint32_t count)
{
    struct sched_run_spec spec = {
        .policy = policy,
        .limits = limits,
        .limit_count = count,
        .schedules = 500,
    };
    add_run(f, &spec);
}

void fixture_deadline_run(struct fixture *f, int64_t deadline_ns)
{
    struct limit_spec cap = fixture_max(1);
    struct sched_run_spec spec = {
        .policy = SCHED_RANK,
        .limits = &cap,
        .limit_count = 1,
        .deadline_ns = deadline_ns,
    };
    add_run(f, &spec);
}

void fixture_sync_run(struct fixture *f, uint32_t sync_every, bool drain)
{
    struct limit_spec cap = fixture_max(3);
    struct sched_run_spec spec = {
        .policy = SCHED_RANK,
        .limits = &cap,
        .limit_count = 1,
        .sync_every = sync_every,
        .sync_drain = drain,
    };
    add_run(f, &spec);
}

void fixture_cap(struct fixture *f, int64_t cap)
{
    struct limit_spec limit = fixture_max(cap);
    fixture_run(f, SCHED_RANK, &limit, 1);
}

struct limit_spec fixture_max(int64_t max)
{
    return (struct limit_spec){.max = max, .per = ID_NONE, .share = ID_NONE};
}

struct limit_spec fixture_percent(uint32_t percent)
{
    struct limit_spec spec = fixture_max(0);
    spec.percent = percent;
    return spec;
}

struct limit_spec fixture_per(int64_t max, uint32_t attribute)
{
    struct limit_spec spec = fixture_max(max);
    spec.per = attribute;
    return spec;
}

struct class_id fixture_class(struct fixture *f,
                              uint32_t tier,
                              bool defer,
                              uint32_t batch,
                              int64_t max_wait_ns)
{
    struct sched_class_spec spec = {
        .tier = tier,
        .defer = defer,
        .batch = batch,
        .max_wait_ns = max_wait_ns,
    };
    return sched_add_class(f->sched, &spec);
}

void fixture_attribute(struct fixture *f, uint32_t name, uint32_t value)
{
    f->attributes[0] = (struct attribute){name, value};
    f->spec.attributes = f->attributes;
    f->spec.attribute_count = name != 0 ? 1 : 0;
}

static void add(struct fixture *f, const struct sched_addition *addition)
{
    struct sched_rejection rejection;
    enum err err = sched_add(f->sched, f->now_ns, addition, &rejection);
    assert_int_equal(err, ERR_OK);
    assert_int_equal(rejection.code, REJECTION_NONE);
    assert_null(rejection.cycle);
}

uint32_t fixture_scope(struct fixture *f, uint32_t parent)
{
    struct sched_scope_spec scope = {parent};
    struct sched_addition addition = {
        .run = f->run,
        .scopes = &scope,
        .scope_count = 1,
    };
    add(f, &addition);
    return sched_scope_count(f->sched);
}

uint32_t fixture_group(struct fixture *f, uint32_t attribute, uint32_t value)
{
    struct attribute attributes[] = {{attribute, value}};
    struct sched_group_spec group = {attributes, attribute != 0 ? 1 : 0};
    struct sched_addition addition = {
        .run = f->run,
        .groups = &group,
        .group_count = 1,
    };
    uint32_t ix = sched_group_count(f->sched);
    add(f, &addition);
    return ix;
}

struct task_id fixture_id(const struct fixture *f, const char *name)
{
    for (uint32_t ix = 0; ix < FIXTURE_NAMES; ix++) {
        if (strcmp(f->names[ix], name) == 0) {
            return (struct task_id){ix};
        }
    }
    fail_msg("no task is called %s", name);
    return (struct task_id){ID_NONE};
}

/* Call `fn` for each name in a list separated by blanks. */
static void each_name(struct fixture *f,
                      const char *names,
                      void (*fn)(struct fixture *f, const char *name))
{
    while (*names != '\0') {
        char name[FIXTURE_NAME_BYTES] = "";
        size_t len = strcspn(names, " ");
        assert_true(len < sizeof(name));
        memcpy(name, names, len);
        fn(f, name);
        names += len;
        names += strspn(names, " ");
    }
}

/* The needs of a task, in `edges`; their number. */
static uint32_t needs_of(const struct fixture *f,
                         uint32_t task,
                         const char *names,
                         struct sched_need edges[FIXTURE_NAMES])
{
    uint32_t count = 0;
    while (*names != '\0') {
        char name[FIXTURE_NAME_BYTES] = "";
        size_t len = strcspn(names, " ");
        size_t id = strcspn(names, ": ");
        assert_true(id < sizeof(name) && count < FIXTURE_NAMES);
        memcpy(name, names, id);
        enum sched_on on = id == len ? SCHED_ON_DONE
                           : strncmp(names + id, ":a", 2) == 0
                               ? SCHED_ON_ANY
                               : SCHED_ON_FAILED;
        edges[count++] = (struct sched_need){task, fixture_id(f, name).v, on};
        names += len;
        names += strspn(names, " ");
    }
    return count;
}

enum err fixture_try_task(struct fixture *f,
                          const char *name,
                          const char *needs,
                          struct sched_rejection *rejection)
{
    uint32_t task = sched_task_count(f->sched);
    struct sched_need edges[FIXTURE_NAMES];
    uint32_t count = needs_of(f, task, needs, edges);
    f->spec.failure = f->failure;
    struct sched_addition addition = {
        .run = f->run,
        .tasks = &f->spec,
        .task_count = 1,
        .needs = edges,
        .need_count = count,
    };
    enum err err = sched_add(f->sched, f->now_ns, &addition, rejection);
    if (err == ERR_OK) {
        assert_true(task < FIXTURE_NAMES);
        (void)snprintf(f->names[task], FIXTURE_NAME_BYTES, "%s", name);
    }
    return err;
}

struct task_id
fixture_task(struct fixture *f, const char *name, const char *needs)
{
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_task(f, name, needs, &rejection), ERR_OK);
    assert_int_equal(rejection.code, REJECTION_NONE);
    return fixture_id(f, name);
}

struct task_id fixture_tasks(struct fixture *f, uint32_t count)
{
    struct sched_task_spec *specs = mem_zalloc(count, sizeof(specs[0]));
    f->spec.failure = f->failure;
    for (uint32_t ix = 0; ix < count; ix++) {
        specs[ix] = f->spec;
    }
    struct sched_addition addition = {
        .run = f->run,
        .tasks = specs,
        .task_count = count,
    };
    struct task_id first = {sched_task_count(f->sched)};
    add(f, &addition);
    mem_free(specs);
    return first;
}

enum err fixture_try_need(struct fixture *f,
                          const char *dependent,
                          const char *need,
                          struct sched_rejection *rejection)
{
    struct sched_need edge[FIXTURE_NAMES];
    assert_int_equal(needs_of(f, fixture_id(f, dependent).v, need, edge), 1);
    struct sched_addition addition = {
        .run = f->run,
        .needs = edge,
        .need_count = 1,
    };
    return sched_add(f->sched, f->now_ns, &addition, rejection);
}

/* Append a task's name, or its number if it has none. */
static void
add_name(const struct fixture *f, struct strbuf *buf, struct task_id task)
{
    if (task.v < FIXTURE_NAMES && f->names[task.v][0] != '\0') {
        strbuf_adds(buf, f->names[task.v]);
    } else {
        strbuf_addf(buf, "#%" PRIu32, task.v);
    }
}

static void
add_to_list(const struct fixture *f, struct strbuf *buf, struct task_id task)
{
    if (buf->len > 0) {
        strbuf_adds(buf, " ");
    }
    add_name(f, buf, task);
}

static void note_start(struct fixture *f, const struct sched_effect *effect)
{
    add_to_list(f, &f->started, effect->task);
    for (struct task_id next = sched_session_next(f->sched, effect->task);
         next.v != ID_NONE;
         next = sched_session_next(f->sched, next)) {
        strbuf_adds(&f->started, "+");
        add_name(f, &f->started, next);
    }
}

static void note(struct fixture *f, const struct sched_effect *effect)
{
    switch (effect->type) {
    case EFFECT_END:
        add_to_list(f, &f->ended, effect->task);
        return;
    case EFFECT_START:
        note_start(f, effect);
        return;
    case EFFECT_CIRCUIT:
        f->circuits++;
        return;
    case EFFECT_BARRIER:
        f->barriers++;
        return;
    case EFFECT_TASK:
        add_to_list(f, &f->changed, effect->task);
        return;
    case EFFECT_STOPPED:
        f->stops++;
        return;
    case EFFECT_RUN:
        f->quiet++;
        return;
    }
}

const char *fixture_run_pass(struct fixture *f)
{
    strbuf_clear(&f->started);
    strbuf_clear(&f->ended);
    strbuf_clear(&f->changed);
    f->circuits = 0;
    f->barriers = 0;
    f->stops = 0;
    f->quiet = 0;
    struct sched_effect effect;
    while (sched_next_effect(f->sched, &effect)) {
        note(f, &effect);
    }
    sched_verify(f->sched);
    return strbuf_text(&f->started);
}

void fixture_pass(struct fixture *f, int64_t ns)
{
    f->now_ns += ns;
    struct sched_event event = {.type = EVENT_TICK, .now_ns = f->now_ns};
    assert_int_equal(sched_apply(f->sched, &event), ERR_OK);
}

void fixture_accept(struct fixture *f, const char *name)
{
    struct sched_event event = {
        .type = EVENT_STARTED,
        .now_ns = f->now_ns,
        .task = fixture_id(f, name),
        .token = fixture_get(f, name).token,
    };
    assert_int_equal(sched_apply(f->sched, &event), ERR_OK);
}

static enum err end_session(struct fixture *f,
                            struct task_id task,
                            uint64_t token,
                            enum sched_outcome outcome,
                            int64_t retry_at_ns)
{
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = f->now_ns,
        .task = task,
        .token = token,
        .retry_at_ns = retry_at_ns,
        .outcomes = &outcome,
        .outcome_count = 1,
    };
    return sched_apply(f->sched, &event);
}

enum err fixture_try_end(struct fixture *f,
                         const char *name,
                         uint64_t token,
                         enum sched_outcome outcome)
{
    struct task_id task = fixture_id(f, name);
    return end_session(f, task, token, outcome, SCHED_NEVER);
}

void fixture_end_id(struct fixture *f,
                    struct task_id task,
                    enum sched_outcome outcome)
{
    uint64_t token = sched_task(f->sched, task).token;
    enum err err = end_session(f, task, token, outcome, SCHED_NEVER);
    assert_int_equal(err, ERR_OK);
}

void fixture_end(struct fixture *f,
                 const char *name,
                 enum sched_outcome outcome)
{
    fixture_end_id(f, fixture_id(f, name), outcome);
}

static void end_done(struct fixture *f, const char *name)
{
    fixture_end(f, name, OUTCOME_DONE);
}

void fixture_done(struct fixture *f, const char *names)
{
    each_name(f, names, end_done);
}

void fixture_snooze(struct fixture *f, const char *name, int64_t retry_at_ns)
{
    struct task_id task = fixture_id(f, name);
    uint64_t token = sched_task(f->sched, task).token;
    enum err err = end_session(f, task, token, OUTCOME_LATER, retry_at_ns);
    assert_int_equal(err, ERR_OK);
}

void fixture_refuse(struct fixture *f, const char *name, int64_t retry_at_ns)
{
    struct task_id task = fixture_id(f, name);
    uint64_t token = sched_task(f->sched, task).token;
    enum err err = end_session(f, task, token, OUTCOME_REFUSED, retry_at_ns);
    assert_int_equal(err, ERR_OK);
}

enum err fixture_try_order(struct fixture *f,
                           enum sched_event_type type,
                           const char *name)
{
    struct sched_event event = {
        .type = type,
        .now_ns = f->now_ns,
        .task = fixture_id(f, name),
    };
    return sched_apply(f->sched, &event);
}

void fixture_order(struct fixture *f,
                   enum sched_event_type type,
                   const char *name)
{
    assert_int_equal(fixture_try_order(f, type, name), ERR_OK);
}

void fixture_order_run(struct fixture *f, enum sched_event_type type)
{
    struct sched_event event = {
        .type = type,
        .now_ns = f->now_ns,
        .run = f->run,
    };
    assert_int_equal(sched_apply(f->sched, &event), ERR_OK);
}

void fixture_set_limit(struct fixture *f,
                       uint32_t ix,
                       int64_t max,
                       uint32_t percent)
{
    assert_true(ix < f->limit_count);
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = f->now_ns,
        .limit = f->limits[ix],
        .max = max,
        .percent = percent,
    };
    assert_int_equal(sched_apply(f->sched, &event), ERR_OK);
}

struct sched_task fixture_get(const struct fixture *f, const char *name)
{
    return sched_task(f->sched, fixture_id(f, name));
}

enum task_state fixture_state(const struct fixture *f, const char *name)
{
    return fixture_get(f, name).state;
}

struct why fixture_why(struct fixture *f, const char *name)
{
    return why_task(f->sched, fixture_id(f, name));
}

int64_t fixture_used(const struct fixture *f, uint32_t limit_ix)
{
    assert_true(limit_ix < f->limit_count);
    return sched_limit_used(f->sched, f->limits[limit_ix]);
}

int64_t fixture_max_now(const struct fixture *f, uint32_t limit_ix)
{
    assert_true(limit_ix < f->limit_count);
    return sched_limit_max(f->sched, f->limits[limit_ix]);
}

static void picture_task(struct fixture *f, struct task_id id)
{
    struct sched_task t = sched_task(f->sched, id);
    struct why why = why_task(f->sched, id);
    struct strbuf *buf = &f->scratch;
    add_name(f, buf, id);
    strbuf_addf(buf,
                ": state %d run %u group %u class %u executor %u tier %u",
                (int)t.state,
                t.run.v,
                t.group.v,
                t.class_id.v,
                t.provider.v,
                t.tier);
    strbuf_addf(buf,
                " rank %" PRId64 " ready %" PRId64 " token %" PRIu64,
                t.rank_ns,
                t.ready_ns,
                t.token);
    strbuf_addf(buf,
                " attempts %u tries %u reworks %u checkpoints %u unmet %u",
                t.attempts,
                t.tries,
                t.reworks,
                t.checkpoints,
                t.unmet);
    strbuf_addf(buf,
                " flags %d%d%d%d%d%d%d",
                t.held,
                t.revoked,
                t.backing_off,
                t.background,
                t.aged,
                t.group_open,
                t.asking);
    strbuf_addf(buf,
                " why %s %u %u %u\n",
                why_code_name(why.code),
                why.task.v,
                why.limit.v,
                why.provider.v);
}

char *fixture_picture(struct fixture *f)
{
    struct strbuf *buf = &f->scratch;
    strbuf_clear(buf);
    for (uint32_t ix = 0; ix < sched_task_count(f->sched); ix++) {
        picture_task(f, (struct task_id){ix});
    }
    for (uint32_t ix = 0; ix < f->run_count; ix++) {
        struct sched_run run = sched_run(f->sched, (struct run_id){ix});
        strbuf_addf(buf, "run %u:", ix);
        for (uint32_t state = 0; state < TASK_STATE_COUNT; state++) {
            strbuf_addf(buf, " %u", run.counts[state]);
        }
        strbuf_addf(buf,
                    " in flight %u sessions %u completions %u %d%d%d\n",
                    run.in_flight,
                    run.sessions,
                    run.completions,
                    run.paused,
                    run.cancelled,
                    run.barrier);
    }
    for (uint32_t ix = 0; ix < f->limit_count; ix++) {
        strbuf_addf(buf,
                    "limit %u: %" PRId64 " of %" PRId64 "\n",
                    ix,
                    fixture_used(f, ix),
                    fixture_max_now(f, ix));
    }
    strbuf_addf(buf,
                "tasks %u groups %u\n",
                sched_task_count(f->sched),
                sched_group_count(f->sched));
    const char *text = strbuf_text(buf);
    return mem_strndup(text, strlen(text));
}
