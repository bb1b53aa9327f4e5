/* SPDX-License-Identifier: MIT */
/*
 * The operator submits plans, and sends random requests. Requests go to the
 * running scheduler, sometimes to a superseded scheduler that does not know it;
 * if none runs, or it dies, they are lost, as with a broken connection.
 */
#include "sim/world_internal.h"

#include "base/jsonw.h"

#include <string.h>

/* Leave a request in the store for the next scheduler. */
static void leave_request(struct world *world, const struct strbuf *json)
{
    struct store *store = store_memory_open(world->db, STORE_WRITE);
    struct store_owner owner = {.pid = ++world->hosts[0].next_pid};
    struct store_change change = {
        .type = STORE_COMMAND,
        .as.command =
            {
                .who = "operator",
                .verb = "?",
                .args = strbuf_text(json),
            },
    };
    static const struct store_query query = {0};
    static const struct store_visitor nothing = {0};
    struct store_batch batch = {0};
    struct store_info info = {0};
    struct diag diag = {0};
    store_batch_add(&batch, &change);
    enum err err = store_take(store, &owner, &batch.epoch, &diag);
    if (err == ERR_OK) {
        err = store_read(store, &query, &nothing, NULL, &info, &diag);
    }
    if (err == ERR_OK) {
        batch.engine_ns = info.engine_ns;
        batch.wall_ns = info.wall_ns;
        err = store_write(store, &batch, &diag);
    }
    world->epoch = batch.epoch;
    store_batch_release(&batch);
    if (err != ERR_OK && err != ERR_LIMIT) {
        world_fault(world, "no request can be left: %s", diag.text);
    }
    world_say(world, "left in the store: %s", strbuf_text(json));
    store_close(store);
}

/* Send a request to a scheduler, or handle it without one. */
static void give(struct world *world, const struct strbuf *json)
{
    uint32_t ix = world->current;
    if (ix == WORLD_NONE && world->now_ns < world->away_ns) {
        return;
    }
    if (ix == WORLD_NONE) {
        if (rng_below(&world->rng, 2) == 0) {
            world_process_boot(world, strbuf_text(json));
        } else {
            leave_request(world, json);
        }
        return;
    }
    if (world->process_count > 1 && rng_below(&world->rng, 8) == 0) {
        ix = world->process_count - 2;
    }
    struct world_process *process = world->processes[ix];
    if (process->alive && !process->failed &&
        process->stalled_ns <= world->now_ns) {
        world_process_request(process,
                              ++world->last_request,
                              strbuf_text(json));
    }
}

void world_operator_submit(struct world *world, uint32_t plan)
{
    if (world->plans[plan].run != WORLD_NONE) {
        return; /* it was submitted */
    }
    struct strbuf json = {0};
    strbuf_addf(&json,
                "{\"verb\":\"submit\",\"file\":\"plan%u.yaml\",\"folder\":"
                "\"/w\",\"processors\":2,\"text\":",
                plan);
    jsonw_string(&json, world->plans[plan].text);
    strbuf_adds(&json, "}");
    if (world->current != WORLD_NONE &&
        world->processes[world->current]->stalled_ns <= world->now_ns) {
        world_process_request(world->processes[world->current],
                              ++world->last_request,
                              strbuf_text(&json));
    }
    strbuf_release(&json);
    (void)world_plan_event(world,
                           WORLD_SUBMIT,
                           world->now_ns + 5 * WORLD_SECOND,
                           plan,
                           0);
}

/* Remember that the operator has named a task; or all, for PLAN_NONE. */
static void note_order(struct world_run *run, uint32_t task)
{
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        if (task == PLAN_NONE || ix == task) {
            run->tasks[ix].ordered = true;
        }
    }
}

/* Draw the name of a task, or of a group. */
static const char *draw_name(struct world *world, struct world_run *run)
{
    const struct plan *plan = run->plan;
    if (plan->group_count > 0 && rng_below(&world->rng, 4) == 0) {
        uint32_t group = rng_below(&world->rng, plan->group_count);
        for (uint32_t ix = 0; ix < plan->task_count; ix++) {
            if (plan->tasks[ix].group != PLAN_NONE &&
                plan_is_within(plan, plan->tasks[ix].group, group)) {
                note_order(run, ix);
            }
        }
        return plan->groups[group].id;
    }
    uint32_t task = rng_below(&world->rng, run->task_count);
    note_order(run, task);
    return plan->tasks[task].id;
}

/* Draw a request that changes what a run does next. */
static void
draw_change(struct world *world, struct world_run *run, struct strbuf *json)
{
    static const char *const verbs[] = {
        "approve",
        "approve",
        "approve",
        "first",
        "priority",
        "tell",
        "hold",
        "release",
        "retry",
        "cancel",
        "rerun",
        "rework",
    };
    uint32_t verb = rng_below(&world->rng, (uint32_t)ARRAY_COUNT(verbs));
    run->reran = run->reran || strcmp(verbs[verb], "rerun") == 0 ||
                 strcmp(verbs[verb], "rework") == 0;
    strbuf_addf(json,
                "{\"verb\":\"%s\",\"text\":\"go\",\"priority\":%u",
                verbs[verb],
                rng_below(&world->rng, PLAN_PRIORITY_MAX + 1));
    strbuf_addf(json, ",\"task\":\"%s\"", draw_name(world, run));
}

/* Draw a random request about a task or a run. */
static void
draw(struct world *world, struct world_run *run, struct strbuf *json)
{
    static const char *const task_verbs[] = {
        "hold",
        "hold",
        "release",
        "release",
        "retry",
        "retry",
        "skip",
        "cancel",
        "answer",
    };
    static const char *const run_verbs[] = {
        "pause",
        "pause",
        "resume",
        "resume",
        "resume",
        "retry",
    };
    uint32_t kind = rng_below(&world->rng, 10);
    if (kind < 2) {
        strbuf_addf(json,
                    "{\"verb\":\"cap\",\"max\":%u",
                    rng_below(&world->rng, 5));
    } else if (kind == 2) {
        strbuf_addf(json,
                    "{\"verb\":\"cap\",\"step\":%s",
                    rng_below(&world->rng, 2) == 0 ? "1" : "-1");
    } else if (kind < 5) {
        uint32_t verb =
            rng_below(&world->rng, (uint32_t)ARRAY_COUNT(run_verbs));
        if (strcmp(run_verbs[verb], "retry") == 0) {
            note_order(run, PLAN_NONE);
        }
        strbuf_addf(json, "{\"verb\":\"%s\"", run_verbs[verb]);
    } else if (kind == 5 && world_has(world, WORLD_USAGE)) {
        strbuf_addf(json,
                    "{\"verb\":\"usage\",\"override\":%s",
                    rng_below(&world->rng, 2) == 0 ? "true" : "false");
    } else if (kind == 6 && world_has(world, WORLD_MONEY)) {
        strbuf_addf(json,
                    "{\"verb\":\"budget\",\"tokens\":%u",
                    rng_below(&world->rng, 200));
    } else if (kind == 5 && rng_below(&world->rng, 12) == 0) {
        run->cancels++;
        strbuf_adds(json, "{\"verb\":\"cancel\"");
    } else if (kind == 7 && (world_has(world, WORLD_OUTCOMES) ||
                             world_has(world, WORLD_TIMES))) {
        draw_change(world, run, json);
    } else {
        uint32_t verb =
            rng_below(&world->rng, (uint32_t)ARRAY_COUNT(task_verbs));
        uint32_t task = rng_below(&world->rng, run->task_count);
        note_order(run, task);
        strbuf_addf(json,
                    "{\"verb\":\"%s\",\"text\":\"yes\",\"task\":\"%s\"",
                    task_verbs[verb],
                    run->plan->tasks[task].id);
    }
}

/* Draw a request that must be rejected, or has no effect. */
static void draw_odd(struct world *world, struct strbuf *json)
{
    static const char *const texts[] = {
        "{\"verb\":\"ping\"}",
        "{\"verb\":\"dance\"}",
        "{\"verb\":\"hold\"}",
        "{\"verb\":\"hold\",\"task\":\"nobody\"}",
        "{\"verb\":\"cap\",\"max\":-1}",
        "{\"verb\":\"cap\",\"max\":\"much\",\"run\":\"plan-0\"}",
        "{\"verb\":\"submit\",\"text\":\"\"}",
        "{\"task\":\"t0\"}",
        "[]",
    };
    strbuf_adds(json,
                texts[rng_below(&world->rng, (uint32_t)ARRAY_COUNT(texts))]);
}

void world_operator_act(struct world *world)
{
    if (!world_has(world, WORLD_REQUESTS) || world->run_count == 0) {
        return;
    }
    if (rng_below(&world->rng, 10) == 0) {
        struct strbuf odd = {0};
        draw_odd(world, &odd);
        give(world, &odd);
        strbuf_release(&odd);
        return;
    }
    struct world_run *run =
        &world->runs[rng_below(&world->rng, world->run_count)];
    struct strbuf json = {0};
    draw(world, run, &json);
    strbuf_addf(&json, ",\"run\":\"%s\"}", run->id);
    give(world, &json);
    strbuf_release(&json);
}

/* Send a request that must succeed: a scheduler runs, and faults are off. */
static void request(struct world *world, const struct strbuf *json)
{
    if (world->current == WORLD_NONE) {
        world_fault(world, "there is no scheduler in calm");
        return;
    }
    world_process_request(world->processes[world->current],
                          ++world->last_request,
                          strbuf_text(json));
}

static void request_about(struct world *world,
                          const struct world_run *run,
                          const char *verb,
                          const char *task)
{
    struct strbuf json = {0};
    strbuf_addf(&json, "{\"verb\":\"%s\",\"run\":\"%s\"", verb, run->id);
    if (task != NULL) {
        strbuf_addf(&json, ",\"task\":\"%s\"", task);
    }
    if (strcmp(verb, "cap") == 0) {
        strbuf_addf(&json,
                    ",\"max\":%lld",
                    (long long)run->plan->limits[0].max);
    }
    if (strcmp(verb, "budget") == 0) {
        strbuf_adds(&json, ",\"tokens\":1000000");
    }
    strbuf_adds(&json, "}");
    request(world, &json);
    strbuf_release(&json);
}

void world_operator_calm(struct world *world)
{
    for (uint32_t ix = 0; ix < world->run_count; ix++) {
        const struct world_run *run = &world->runs[ix];
        if (run->finished) {
            continue;
        }
        request_about(world, run, "resume", NULL);
        request_about(world, run, "cap", NULL);
        if (plan_find_limit(run->plan, "tokens budget") != PLAN_NONE) {
            request_about(world, run, "budget", NULL);
        }
        for (uint32_t task = 0; task < run->task_count; task++) {
            if ((run->tasks[task].flags & SCHED_RECORD_HELD) != 0 &&
                (run->tasks[task].flags & SCHED_RECORD_UNAPPROVED) == 0) {
                request_about(world, run, "release", run->plan->tasks[task].id);
            }
        }
    }
}

/* Return the request that a task needs from an operator; NULL: none. */
static const char *needed(const struct world_task *task)
{
    if (strcmp(task->state, "parked") == 0 ||
        strcmp(task->state, "failed") == 0) {
        return "skip";
    }
    if ((task->flags & SCHED_RECORD_EARLY) != 0) {
        return "retry";
    }
    return (task->flags & SCHED_RECORD_UNAPPROVED) != 0 &&
                   strcmp(task->state, "ready") == 0
               ? "approve"
               : NULL;
}

bool world_operator_give_up(struct world *world)
{
    bool any = false;
    for (uint32_t ix = 0; ix < world->run_count; ix++) {
        struct world_run *run = &world->runs[ix];
        if (!run->finished && run->stopped != SCHED_NOT_STOPPED) {
            any = true;
            request_about(world, run, "resume", NULL);
        }
        for (uint32_t task = 0; !run->finished && task < run->task_count;
             task++) {
            const char *verb = needed(&run->tasks[task]);
            if (verb != NULL) {
                any = true;
                note_order(run, task);
                request_about(world, run, verb, run->plan->tasks[task].id);
            }
        }
    }
    return any;
}
