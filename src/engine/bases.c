/* SPDX-License-Identifier: MIT */
/*
 * Bases that cannot be merged: a repository with `sync: merge` whose base has
 * new commits that conflict with the agent branch, or whose gate fails on the
 * result. Merges continue without them. The first merge that reports such a
 * commit notifies operators; a setting remembers it until the base is merged.
 */
#include "engine/engine_internal.h"

#include "base/jsonw.h"
#include "base/mem.h"

#include <jansson.h>
#include <string.h>

static void release(struct engine_base *base)
{
    mem_free(base->repo);
    mem_free(base->commit);
    mem_free(base->reason);
}

void bases_release(struct engine_run *run)
{
    for (uint32_t ix = 0; ix < run->base_count; ix++) {
        release(&run->bases[ix]);
    }
    mem_free(run->bases);
}

/* Return the index of a repository's base, or their count. */
static uint32_t find(const struct engine_run *run, const char *repo)
{
    uint32_t ix = 0;
    while (ix < run->base_count && strcmp(run->bases[ix].repo, repo) != 0) {
        ix++;
    }
    return ix;
}

/* Remember that a base cannot be merged. */
static void keep(struct engine_run *run,
                 const char *repo,
                 const char *commit,
                 const char *reason)
{
    uint32_t ix = find(run, repo);
    if (ix == run->base_count) {
        MEM_EXTEND(run->bases, run->base_count);
        run->bases[run->base_count++] =
            (struct engine_base){.repo = mem_strdup(repo)};
    }
    mem_set_text(&run->bases[ix].commit, commit);
    mem_set_text(&run->bases[ix].reason, reason);
}

/* Store all of a run, by their index: they are few. `count` is their greatest
 * number before and now. */
static void
store_all(struct engine *engine, const struct engine_run *run, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        struct strbuf value = {0};
        bool any = ix < run->base_count;
        if (any) {
            struct jsonw json = {.out = &value};
            jsonw_object(&json, NULL);
            jsonw_text(&json, "repo", run->bases[ix].repo);
            jsonw_text(&json, "commit", run->bases[ix].commit);
            jsonw_text(&json, "reason", run->bases[ix].reason);
            jsonw_object_end(&json);
        }
        rows_numbered(engine,
                      "base",
                      run->number,
                      ix,
                      any ? strbuf_text(&value) : NULL);
        strbuf_release(&value);
    }
}

void bases_restore(struct engine_run *run, const char *value)
{
    json_t *json = json_loads(value, 0, NULL);
    const char *repo = json_string_value(json_object_get(json, "repo"));
    const char *commit = json_string_value(json_object_get(json, "commit"));
    const char *reason = json_string_value(json_object_get(json, "reason"));
    if (repo != NULL && commit != NULL) {
        keep(run, repo, commit, reason);
    }
    json_decref(json);
}

static void tell(struct engine *engine,
                 uint32_t run,
                 enum event_word to,
                 const struct plan_repo *repo,
                 const struct attempt_result *result)
{
    struct event event = {
        .kind = EVENT_KIND_BASE,
        .as.base =
            {
                .to = to,
                .repo = repo->name,
                .base = repo->base,
                .commit = result->base_commit,
                .reason = to == EVENT_WORD_FAILED ? result->base_reason : NULL,
            },
    };
    rows_event(engine, run, STORE_NONE, &event);
}

void bases_note(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const struct attempt_result *result)
{
    struct engine_run *r = &engine->runs[run];
    const struct plan_task *from = &r->plan->tasks[task];
    if (result->base_commit == NULL || !from->merge) {
        return; /* only a merge may report it */
    }
    const struct plan_repo *repo = &r->plan->repos[from->repo];
    uint32_t ix = find(r, repo->name);
    bool known = ix < r->base_count;
    if (result->base_failed &&
        (!known || strcmp(r->bases[ix].commit, result->base_commit) != 0)) {
        keep(r, repo->name, result->base_commit, result->base_reason);
        store_all(engine, r, r->base_count);
        tell(engine, run, EVENT_WORD_FAILED, repo, result);
    } else if (!result->base_failed && known) {
        release(&r->bases[ix]);
        r->bases[ix] = r->bases[--r->base_count];
        store_all(engine, r, r->base_count + 1);
        tell(engine, run, EVENT_WORD_DONE, repo, result);
    }
}

bool engine_bad_base(const struct engine *engine,
                     uint32_t run,
                     uint32_t repo,
                     struct engine_bad_base *out)
{
    const struct engine_run *r = &engine->runs[run];
    uint32_t ix =
        repo == PLAN_NONE ? r->base_count : find(r, r->plan->repos[repo].name);
    if (ix == r->base_count) {
        return false;
    }
    *out = (struct engine_bad_base){
        .repo = r->plan->repos[repo].name,
        .base = r->plan->repos[repo].base,
        .commit = r->bases[ix].commit,
        .reason = r->bases[ix].reason,
    };
    return true;
}
