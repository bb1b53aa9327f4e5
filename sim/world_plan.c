/* SPDX-License-Identifier: MIT */
/*
 * Plans, fragments, and endings of sessions. The ending and the duration of a
 * session are a function of the seed, its task and its attempt number, so that
 * a history with crashes can be compared with a history without.
 */
#include "sim/world_internal.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    NEEDS_MAX = 3,
    REPOS_MAX = 3,
    TASKS_PER_GROUP = 4, /* approximately, with its pipeline */
    MINUTES_PER_DAY = 1440,
};

/* A plan under construction. */
struct writer {
    struct world *world;
    struct strbuf text;
    uint32_t repos;
    uint32_t groups;
    uint32_t tasks;
};

static uint32_t below(struct writer *writer, uint32_t bound)
{
    return rng_below(&writer->world->rng, bound);
}

static bool has(const struct writer *writer, enum world_feature feature)
{
    return world_has(writer->world, feature);
}

static void add_limits(struct writer *writer)
{
    strbuf_addf(&writer->text,
                "limits:\n  sessions: %u\n",
                1 + below(writer, has(writer, WORLD_LIMITS) ? 4 : 8));
    if (below(writer, 2) == 0) {
        strbuf_adds(&writer->text, "  active: {max: none}\n");
    }
    if (has(writer, WORLD_LIMITS)) {
        strbuf_addf(&writer->text,
                    "  review: {max: 50%%}\n  perrepo: {max: %u, per: repo}\n",
                    1 + below(writer, 2));
    }
    strbuf_adds(&writer->text, "resources: {gpu: 2}\n");
}

static void add_classes(struct writer *writer)
{
    if (has(writer, WORLD_CLASSES)) {
        strbuf_adds(&writer->text,
                    "classes:\n"
                    "  review: {tier: 1, defer: true, batch: 3, "
                    "max_wait: 1m}\n"
                    "  bulk: {batch: 2}\n");
    }
    /* One draw per statement: compilers differ in the order of arguments. */
    uint32_t circuit = 1 + below(writer, 4);
    uint32_t retries = below(writer, 4);
    strbuf_addf(&writer->text,
                "providers:\n"
                "  p1: {backoff: 1s, max_backoff: 20s, circuit: %u, "
                "probe: 5s, max_probe: 1m}\n"
                "defaults: {timeout: 5m, idle_timeout: 2m, retry: "
                "{max: %u, backoff: 2s, max_backoff: 10s}}\n",
                circuit,
                retries);
}

static void add_pipelines(struct writer *writer)
{
    strbuf_addf(&writer->text,
                "pipelines:\n  issue:\n"
                "    - {stage: implement, run: x}\n"
                "    - {stage: gate, run: x, rework: {to: implement, max: %u}"
                ", retry: 0}\n",
                1 + below(writer, 2));
    if (below(writer, 2) == 0) {
        strbuf_adds(&writer->text,
                    "    - {stage: review, run: x, rework: {to: implement}}\n");
    }
}

/* Add the repository of the next item, sometimes none. */
static void add_repo(struct writer *writer)
{
    uint32_t repo = below(writer, writer->repos + 1);
    if (repo < writer->repos) {
        strbuf_addf(&writer->text, ", repo: r%u", repo);
    }
}

/* Add a need, sometimes for another outcome than "done". */
static void add_need(struct writer *writer, const char *id, bool group)
{
    static const char *const ons[] = {"any", "any", "failed"};
    if (!has(writer, WORLD_OUTCOMES) || below(writer, 3) > 0) {
        strbuf_adds(&writer->text, id);
        return;
    }
    strbuf_addf(&writer->text,
                "{task: %s, on: %s}",
                id,
                ons[below(writer, group ? 2 : 3)]);
}

/* Add needs among the first `tasks` tasks and `groups` groups. */
static void add_needs(struct writer *writer, uint32_t tasks, uint32_t groups)
{
    uint32_t first = below(writer, tasks + groups + 1);
    uint32_t step = 1 + below(writer, 4);
    uint32_t count = below(writer, NEEDS_MAX + 1);
    strbuf_adds(&writer->text, ", needs: [");
    for (uint32_t n = 0; n < count && first < tasks + groups; n++) {
        bool group = first >= tasks;
        bool early = group && has(writer, WORLD_POLICY) && step == 1;
        char id[32];
        (void)snprintf(id,
                       sizeof(id),
                       "%s%u%s",
                       group ? "g" : "t",
                       group ? first - tasks : first,
                       early ? "/implement" : "");
        strbuf_adds(&writer->text, n > 0 ? ", " : "");
        add_need(writer, id, group && !early);
        first += step;
    }
    strbuf_adds(&writer->text, "]");
}

static void add_groups(struct writer *writer, uint32_t count)
{
    strbuf_adds(&writer->text, "groups:\n");
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(&writer->text, "  - {id: g%u, pipeline: issue", ix);
        add_repo(writer);
        if (ix > 0 && has(writer, WORLD_OUTCOMES) && below(writer, 4) == 0) {
            strbuf_addf(&writer->text, ", parent: g%u", below(writer, ix));
        } else {
            add_needs(writer, 0, ix);
        }
        if (has(writer, WORLD_OUTCOMES) && below(writer, 3) == 0) {
            strbuf_addf(&writer->text, ", finally: [{id: e%u, run: x}]", ix);
        }
        strbuf_adds(&writer->text, "}\n");
    }
    writer->groups = count;
}

static void add_policy(struct writer *writer)
{
    static const char *const kinds[] = {
        "park",
        "skip",
        "skip",
        "ask",
        "abort",
    };
    if (has(writer, WORLD_OUTCOMES) && below(writer, 8) == 0) {
        strbuf_adds(&writer->text, ", on_failure: stop");
    } else if (below(writer, 3) == 0) {
        /* Abort is rare: it stops the whole run. */
        uint32_t bound = below(writer, 8) == 0 ? 5 : 4;
        strbuf_addf(&writer->text,
                    ", on_failure: %s",
                    kinds[below(writer, bound)]);
    }
    if (below(writer, 6) == 0) {
        strbuf_adds(&writer->text, ", optional: true");
    }
}

/* Add what lets a task wait: an approval, or a time of day. */
static void add_waits(struct writer *writer)
{
    if (below(writer, 8) == 0) {
        strbuf_adds(&writer->text, ", approve: true");
    }
    if (below(writer, 10) == 0) {
        int64_t minute = WORLD_WALL_NS / MINUTE_NS + 1 + below(writer, 6);
        strbuf_addf(&writer->text,
                    ", not_before: \"%02lld:%02lld\"",
                    (long long)(minute % MINUTES_PER_DAY / 60),
                    (long long)(minute % 60));
    }
}

/* Add tasks that come last: one or two, or one for a failure. */
static void add_last(struct writer *writer)
{
    strbuf_adds(&writer->text, "finally:\n  - {id: f0, run: x");
    if (has(writer, WORLD_TIMES) && below(writer, 6) == 0) {
        strbuf_adds(&writer->text, ", approve: true");
    }
    strbuf_adds(&writer->text, "}\n");
    switch (below(writer, 4)) {
    case 0:
        strbuf_adds(&writer->text, "  - {id: f1, run: x, needs: [f0]}\n");
        break;
    case 1:
        strbuf_adds(&writer->text,
                    "  - {id: f1, run: x, needs: [{task: t0, on: failed}]}\n");
        break;
    case 2:
        strbuf_adds(&writer->text,
                    "  - {id: f1, run: x, needs: [{task: f0, on: any}]}\n");
        break;
    default:
        break;
    }
}

static void add_task(struct writer *writer, uint32_t ix)
{
    static const char *const classes[] = {"implement", "review", "bulk"};
    strbuf_addf(&writer->text, "  - {id: t%u, run: x", ix);
    add_repo(writer);
    if (ix > 0 || writer->groups > 0) {
        add_needs(writer, ix, writer->groups);
    }
    if (has(writer, WORLD_CLASSES)) {
        strbuf_addf(&writer->text, ", class: %s", classes[below(writer, 3)]);
    }
    if (has(writer, WORLD_LIMITS) && below(writer, 4) == 0) {
        strbuf_addf(&writer->text, ", uses: {gpu: %u}", 1 + below(writer, 2));
    }
    if (has(writer, WORLD_POLICY)) {
        add_policy(writer);
    }
    if (below(writer, 3) == 0) {
        strbuf_adds(&writer->text, ", provider: p1");
    }
    if (below(writer, 5) == 0) {
        strbuf_adds(&writer->text, ", checkpoint: {after: 10s, max: 2}");
    }
    if (below(writer, 5) == 0) {
        strbuf_adds(&writer->text, ", prepare: y");
    }
    if (has(writer, WORLD_TIMES)) {
        add_waits(writer);
    }
    if (has(writer, WORLD_OUTCOMES) && below(writer, 8) == 0) {
        strbuf_adds(&writer->text,
                    ", retry: {max: 2, backoff: 1s, on: [timeout, lost]}");
    }
    strbuf_adds(&writer->text, "}\n");
}

/* Add settings that act on a running run. */
static void add_control(struct writer *writer)
{
    if (has(writer, WORLD_SYNC) && below(writer, 2) == 0) {
        uint32_t every = 2 + below(writer, 6);
        bool drain = below(writer, 2) == 0;
        strbuf_addf(&writer->text,
                    "sync: {every: %u, run: z, drain: %s}\n",
                    every,
                    drain ? "true" : "false");
    }
    if (has(writer, WORLD_HOOKS) && below(writer, 2) == 0) {
        strbuf_addf(&writer->text,
                    "hooks: {done: h, parked: h, failed: h, asked: h, "
                    "run-finished: h, run-waiting: h, usage-paused: h, "
                    "circuit-open: {run: h, retries: %u}}\n",
                    below(writer, 3));
    }
    if (has(writer, WORLD_USAGE) && below(writer, 2) == 0) {
        strbuf_addf(&writer->text,
                    "usage: {run: m, every: %us, margin: 5s, probe: 10s, "
                    "max_probe: 1m, steps: {40: 2, 60: 1, 80: 0}}\n",
                    5 + below(writer, 30));
    }
    if (has(writer, WORLD_OUTCOMES) && below(writer, 2) == 0) {
        add_last(writer);
    }
    if (has(writer, WORLD_TIMES) && below(writer, 6) == 0) {
        strbuf_addf(&writer->text, "deadline: %us\n", 60 + below(writer, 240));
    }
    if (has(writer, WORLD_MONEY) && below(writer, 2) == 0) {
        strbuf_addf(&writer->text,
                    "budget: {tokens: %u}\n",
                    7 * (1 + below(writer, 30)));
    }
}

char *world_plan_text(struct world *world, uint32_t ix)
{
    static const char *const policies[] = {"rank", "fair", "fifo", "lookahead"};
    struct writer writer = {.world = world};
    if (world->options.script != NULL) {
        const char *plan = world->options.script->plan;
        return mem_strndup(plan, strlen(plan));
    }
    uint32_t policy = below(&writer, 4);
    /* While tasks wait for a time or an operator, lookahead searches long. */
    if ((has(&writer, WORLD_TIMES) || has(&writer, WORLD_OUTCOMES)) &&
        below(&writer, 8) > 0) {
        policy = policy % 3;
    }
    strbuf_addf(&writer.text,
                "sluice: 1\nname: plan %u\npolicy: %s\n",
                ix,
                policies[policy]);
    writer.repos = below(&writer, REPOS_MAX + 1);
    strbuf_adds(&writer.text, writer.repos > 0 ? "repos:\n" : "");
    for (uint32_t n = 0; n < writer.repos; n++) {
        strbuf_addf(&writer.text, "  r%u: {path: r%u}\n", n, n);
    }
    add_limits(&writer);
    add_classes(&writer);
    uint32_t tasks = 1 + below(&writer, world->options.tasks);
    if (has(&writer, WORLD_GROUPS)) {
        add_pipelines(&writer);
        add_groups(&writer, 1 + below(&writer, 1 + tasks / TASKS_PER_GROUP));
        tasks = tasks > writer.groups * 3 ? tasks - writer.groups * 3 : 1;
    }
    strbuf_adds(&writer.text, "tasks:\n");
    for (uint32_t n = 0; n < tasks; n++) {
        add_task(&writer, n);
    }
    add_control(&writer);
    char *copy = mem_strndup(writer.text.text, writer.text.len);
    strbuf_release(&writer.text);
    return copy;
}

char *world_plan_fragment(struct world *world, const struct world_run *run)
{
    enum { FRAGMENT_TASKS_MAX = 40 };
    struct strbuf text = {0};
    uint32_t count = run->plan->task_count;
    uint32_t kind = rng_below(&world->rng, 5);
    if (kind == 0) {
        strbuf_adds(&text, "tasks: [nonsense\n");
    } else if (kind < 4 && count < FRAGMENT_TASKS_MAX) {
        strbuf_addf(&text,
                    "tasks:\n  - {id: s%u, run: x, needs: [%s]}\n",
                    count,
                    run->plan->tasks[rng_below(&world->rng, count)].id);
    }
    if (kind == 2) {
        /* An old task waits for the new task. It may have started. */
        strbuf_addf(&text,
                    "needs: {\"%s\": [s%u]}\n",
                    run->plan->tasks[rng_below(&world->rng, count)].id,
                    count);
    }
    char *copy = mem_strndup(strbuf_text(&text), text.len);
    strbuf_release(&text);
    return copy;
}

char *world_plan_meters(struct world *world)
{
    struct strbuf text = {0};
    int64_t wall_ns = world->now_ns + world->wall_ns;
    uint32_t percent = rng_below(&world->rng, world->chaos ? 100 : 30);
    uint32_t kind = rng_below(&world->rng, 8);
    if (world->options.script != NULL) {
        bool good = world->options.script->meters(world->options.script->ctx,
                                                  wall_ns,
                                                  &text);
        strbuf_adds(&text, good ? "" : "it fails");
    } else if (kind == 0 && world->chaos) {
        strbuf_adds(&text, "not JSON");
    } else {
        strbuf_addf(&text,
                    "[{\"name\":\"a\",\"percent\":1},"
                    "{\"name\":\"b\",\"percent\":%u",
                    percent);
        if (kind < 4) {
            strbuf_addf(&text,
                        ",\"resets_at\":%lld",
                        (long long)(wall_ns / WORLD_SECOND) +
                            rng_below(&world->rng, 90) - 30);
        }
        strbuf_adds(&text, "}]");
    }
    char *copy = mem_strndup(strbuf_text(&text), text.len);
    strbuf_release(&text);
    return copy;
}

/* Mix a string into a number that depends on the seed. */
static uint64_t mix(uint64_t sum, const char *text)
{
    for (; *text != '\0'; text++) {
        sum = (sum ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return sum;
}

enum world_ending world_plan_ending(const struct world *world,
                                    const char *run,
                                    const char *task,
                                    uint32_t number,
                                    int64_t *duration_ns_out)
{
    static const struct {
        enum world_ending ending;
        uint32_t weight;
    } odds[] = {
        {WORLD_END_DONE, 120},      {WORLD_END_FAILED, 16},
        {WORLD_END_CHANGES, 12},    {WORLD_END_BLOCKED, 3},
        {WORLD_END_REFUSED, 10},    {WORLD_END_REFUSED_UNTIL, 5},
        {WORLD_END_SIGNAL, 6},      {WORLD_END_HANGS, 4},
        {WORLD_END_IDLE, 4},        {WORLD_END_CHECKPOINT, 8},
        {WORLD_END_INVALID, 4},     {WORLD_END_EMPTY, 2},
        {WORLD_END_SPAWN_AGAIN, 3}, {WORLD_END_SPAWN_NEVER, 1},
        {WORLD_END_PREPARE, 2},     {WORLD_END_LATER, 8},
        {WORLD_END_LATER_AT, 8},    {WORLD_END_FATAL, 4},
        {WORLD_END_FINAL, 4},
    };
    struct rng rng;
    uint64_t sum = mix(mix(world->options.seed, run), task);
    rng_init(&rng, sum + number * UINT64_C(0x9e3779b97f4a7c15));
    *duration_ns_out = WORLD_SECOND * (1 + rng_below(&rng, 40));
    *duration_ns_out += rng_below(&rng, SECOND_NS);
    uint32_t total = 0;
    for (uint32_t ix = 0; ix < ARRAY_COUNT(odds); ix++) {
        total += odds[ix].weight;
    }
    uint32_t drawn = rng_below(&rng, total);
    if (!world_has(world, WORLD_ENDINGS)) {
        return WORLD_END_DONE;
    }
    uint32_t ix = 0;
    while (drawn >= odds[ix].weight) {
        drawn -= odds[ix++].weight;
    }
    enum world_ending ending = odds[ix].ending;
    bool times = ending == WORLD_END_LATER || ending == WORLD_END_LATER_AT;
    bool outcomes = ending == WORLD_END_FATAL || ending == WORLD_END_FINAL;
    return (times && !world_has(world, WORLD_TIMES)) ||
                   (outcomes && !world_has(world, WORLD_OUTCOMES))
               ? WORLD_END_DONE
               : ending;
}

const char *world_plan_rider(const struct world *world,
                             const struct world_session *session,
                             uint32_t n)
{
    const struct world_run *run = &world->runs[session->run];
    int64_t ignored_ns;
    enum world_ending ending =
        world_plan_ending(world,
                          run->id,
                          run->plan->tasks[session->tasks[n]].id,
                          session->number,
                          &ignored_ns);
    return ending == WORLD_END_FAILED    ? "failed"
           : ending == WORLD_END_BLOCKED ? "blocked"
                                         : "done";
}
