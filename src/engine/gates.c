/* SPDX-License-Identifier: MIT */
/*
 * Memory of gates. A merge reports the verdict of each gate that it ran on a
 * tree of files; the next merges into that repository, of any run, get the
 * verdicts of the same gate with their orders, and test no tree twice.
 *
 * The store has all verdicts, this process the last ones. A failure may have
 * causes outside the tree: an operator who retries or answers a merge has
 * changed something, so the repository's failures are forgotten. The setting
 * "forgot/PATH" keeps the last attempt whose failures do not count.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GIVEN_MAX = 200,             /* verdicts in an order */
    GIVEN_BYTES_MAX = 256 << 10, /* ... and their size */
};

static const char prefix[] = "forgot/";

static void release(struct engine_gate *gate)
{
    mem_free(gate->repo);
    mem_free(gate->tree);
    mem_free(gate->command);
    mem_free(gate->tested_by);
    mem_free(gate->output);
}

void gates_release(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->gate_count; ix++) {
        release(&engine->gates[ix]);
    }
    mem_free(engine->gates);
    for (uint32_t ix = 0; ix < engine->forgot_count; ix++) {
        mem_free(engine->forgot[ix].repo);
    }
    mem_free(engine->forgot);
}

/* Return the entry of a repository, or NULL. */
static struct engine_forgot *find_forgot(struct engine *engine,
                                         const char *repo)
{
    for (uint32_t ix = 0; ix < engine->forgot_count; ix++) {
        if (strcmp(engine->forgot[ix].repo, repo) == 0) {
            return &engine->forgot[ix];
        }
    }
    return NULL;
}

/* Forget failures up to that attempt. */
static void set_forgot(struct engine *engine, const char *repo, uint64_t token)
{
    struct engine_forgot *forgot = find_forgot(engine, repo);
    if (forgot == NULL) {
        MEM_EXTEND(engine->forgot, engine->forgot_count);
        forgot = &engine->forgot[engine->forgot_count++];
        forgot->repo = mem_strdup(repo);
    }
    forgot->token = token;
}

/* Keep a verdict, and drop the oldest one if there are too many. */
static void keep(struct engine *engine, const struct store_gate *row)
{
    enum attempt_gate_verdict verdict;
    const struct engine_forgot *forgot = find_forgot(engine, row->repo);
    if (!attempt_gate_read(row->verdict, &verdict) ||
        (verdict == ATTEMPT_GATE_FAILED && forgot != NULL &&
         row->token <= forgot->token)) {
        return;
    }
    if (engine->gate_count == ENGINE_GATES_MAX) {
        release(&engine->gates[0]);
        memmove(engine->gates,
                engine->gates + 1,
                (ENGINE_GATES_MAX - 1) * sizeof(engine->gates[0]));
        engine->gate_count--;
    }
    MEM_GROW(engine->gates, engine->gate_count, engine->gate_capacity);
    engine->gates[engine->gate_count++] = (struct engine_gate){
        .token = row->token,
        .verdict = verdict,
        .repo = mem_strdup(row->repo),
        .tree = mem_strdup(row->tree),
        .command = mem_strdup(row->command),
        .tested_by = mem_strdup(row->tested_by),
        .output = row->output != NULL ? mem_strdup(row->output) : NULL,
    };
    INVARIANT(engine->gate_count <= ENGINE_GATES_MAX);
}

void gates_restore(struct engine *engine, const struct store_gate *row)
{
    keep(engine, row);
}

void gates_restore_forgot(struct engine *engine,
                          const char *setting,
                          const char *value)
{
    set_forgot(engine, setting + strlen(prefix), strtoull(value, NULL, 10));
}

/* Append the place of a git repository of the plan; false: it is none. */
static bool
add_repo(struct strbuf *out, const struct engine_run *run, uint32_t repo)
{
    INVARIANT(repo != PLAN_NONE);
    if (!plan_is_git(&run->plan->repos[repo])) {
        return false;
    }
    engine_add_repo(out, run->folder, &run->plan->repos[repo]);
    return true;
}

void gates_end(struct engine *engine,
               const struct session *session,
               const struct attempt_result *result)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan_task *task = &run->plan->tasks[session->task];
    struct strbuf repo = {0};
    struct strbuf by = {0};
    /* Only sluice-git knows: another session could claim anything. */
    if (result->gate_count == 0 || !(task->merge || task->base_gate) ||
        !add_repo(&repo, run, task->repo)) {
        strbuf_release(&repo);
        return;
    }
    strbuf_addf(&by, "%s, %s", run->id, task->id);
    for (uint32_t ix = 0; ix < result->gate_count; ix++) {
        const struct attempt_gate *gate = &result->gates[ix];
        struct store_change change = {
            .type = STORE_GATE,
            .as.gate =
                {
                    .token = session->token,
                    .place = ix,
                    .run = run->number,
                    .task = session->task,
                    .repo = strbuf_text(&repo),
                    .tree = gate->tree,
                    .commit_id = gate->commit,
                    .command = gate->command,
                    .verdict = attempt_gate_name(gate->verdict),
                    .tries = gate->tries,
                    .wall_ns = engine->world->wall_ns(engine->ctx),
                    .tested_by = strbuf_text(&by),
                    .output = gate->output,
                },
        };
        store_batch_add(&engine->batch, &change);
        keep(engine, &change.as.gate);
    }
    strbuf_release(&repo);
    strbuf_release(&by);
}

void gates_add(struct strbuf *out,
               const struct engine *engine,
               const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan_task *task = &run->plan->tasks[session->task];
    struct strbuf repo = {0};
    uint32_t count = 0;
    bool known = add_repo(&repo, run, task->repo);
    INVARIANT(known && run->plan->repos[task->repo].gate != NULL);
    for (uint32_t ix = engine->gate_count; ix > 0 && count < GIVEN_MAX; ix--) {
        const struct engine_gate *gate = &engine->gates[ix - 1];
        /* A new run on a base that failed is a reason to test it again. */
        if ((task->base_gate && gate->verdict == ATTEMPT_GATE_FAILED) ||
            strcmp(gate->repo, strbuf_text(&repo)) != 0 ||
            strcmp(gate->command, run->plan->repos[task->repo].gate) != 0) {
            continue;
        }
        struct strbuf line = {0};
        struct jsonw json = {.out = &line};
        jsonw_object(&json, NULL);
        jsonw_text(&json, "tree", gate->tree);
        jsonw_text(&json, "verdict", attempt_gate_name(gate->verdict));
        jsonw_text(&json, "tested_by", gate->tested_by);
        if (gate->output != NULL) {
            jsonw_text(&json, "output", gate->output);
        }
        jsonw_object_end(&json);
        count = out->len + line.len < GIVEN_BYTES_MAX ? count + 1 : GIVEN_MAX;
        if (out->len + line.len < GIVEN_BYTES_MAX) {
            strbuf_addf(out, "%s\n", strbuf_text(&line));
        }
        strbuf_release(&line);
    }
    strbuf_release(&repo);
}

/* Forget the failures of a repository. */
static void forget(struct engine *engine, const char *repo)
{
    uint64_t last = 0;
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < engine->gate_count; ix++) {
        struct engine_gate *gate = &engine->gates[ix];
        if (gate->verdict == ATTEMPT_GATE_FAILED &&
            strcmp(gate->repo, repo) == 0) {
            last = gate->token; /* they ascend */
            release(gate);
        } else {
            engine->gates[kept++] = *gate;
        }
    }
    engine->gate_count = kept;
    if (last > 0) {
        struct strbuf name = {0};
        char value[24];
        (void)snprintf(value, sizeof(value), "%" PRIu64, last);
        set_forgot(engine, repo, last);
        strbuf_addf(&name, "%s%s", prefix, repo);
        rows_setting(engine, strbuf_text(&name), value);
        strbuf_release(&name);
    }
}

static void forget_repo(struct engine *engine, uint32_t run, uint32_t repo)
{
    struct strbuf path = {0};
    if (add_repo(&path, &engine->runs[run], repo)) {
        forget(engine, strbuf_text(&path));
    }
    strbuf_release(&path);
}

void gates_forget(struct engine *engine, uint32_t run, uint32_t task)
{
    const struct plan_task *from = &engine->runs[run].plan->tasks[task];
    if (from->merge || from->base_gate) {
        forget_repo(engine, run, from->repo);
    }
}

void gates_forget_run(struct engine *engine, uint32_t run)
{
    for (uint32_t ix = 0; ix < engine->runs[run].plan->repo_count; ix++) {
        forget_repo(engine, run, ix);
    }
}
