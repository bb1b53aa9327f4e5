/* SPDX-License-Identifier: MIT */
/*
 * Updates: a new version of a plan under way.
 *
 * A scheduler that gets a new version reads it in place of the stored plan,
 * restores the tasks from their rows as usual, and writes the version with its
 * first batch: nothing in memory has to change, and a kill leaves either the
 * old plan or the new plan. The core corrects tasks that no longer fit: a ready
 * task with new needs waits.
 *
 * Work that is done or in flight cannot change. The parts that its tasks share
 * with others (a stage of a pipeline, settings) can, and apply to the others.
 */
#include "engine/engine_internal.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "plan/twin.h"

#include <string.h>

/* The reason of a task that the plan no longer has. */
#define REMOVED "removed from the plan"

enum { REFUSALS_MAX = 10 };

/* The unfinished run with that name, or STORE_NONE. */
static uint32_t find_run(const struct engine *engine, const char *name)
{
    for (uint32_t ix = engine->run_count; ix > 0; ix--) {
        const struct engine_run *run = &engine->runs[ix - 1];
        if (!run->finished && strcmp(run->name, name) == 0) {
            return ix - 1;
        }
    }
    return STORE_NONE;
}

/* Find the run by the name in the plan, which must be readable. */
static enum err find_updated(const struct engine *engine,
                             const struct plan_source *source,
                             uint32_t *out,
                             struct diag *diag)
{
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    enum err err = ERR_OK;
    if (!plan_read(&plan, source, &errors)) {
        err = diag_set(diag,
                       ERR_INVALID,
                       "%s:%u: %s",
                       source->file,
                       errors.items[0].mark.line,
                       errors.items[0].text);
    } else {
        *out = find_run(engine, plan->name);
        if (*out == STORE_NONE) {
            err = diag_set(diag,
                           ERR_NOT_FOUND,
                           "no unfinished run \"%s\" to update: use 'sluice "
                           "run' without --update",
                           plan->name);
        }
    }
    plan_errors_release(&errors);
    plan_free(plan);
    return err;
}

enum err
update_begin(struct engine *engine, struct updating *out, struct diag *diag)
{
    const struct engine_update *update = engine->update;
    if (update == NULL) {
        return ERR_OK;
    }
    INVARIANT(out->run == STORE_NONE && out->old == NULL);
    struct plan_source source = {
        .file = update->file,
        .text = update->text,
        .len = strlen(update->text),
        .processors = update->processors,
    };
    uint32_t ix = STORE_NONE;
    enum err err = find_updated(engine, &source, &ix, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct engine_run *run = &engine->runs[ix];
    if (strcmp(run->folder, update->folder) != 0) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "run \"%s\" belongs to a plan in %s: move the new "
                        "plan there",
                        run->id,
                        run->folder);
    }
    struct plan *plan;
    source.processors = run->processors;
    source.old_rules = run->rules < PLAN_RULES;
    err = runs_read_version(run, &source, &plan, diag);
    if (err != ERR_OK) {
        return err;
    }
    err = runs_check(plan, 0, source.file, diag);
    if (err != ERR_OK) {
        plan_free(plan);
        return err;
    }
    uint32_t count =
        revise_add_parts(&engine->update->diff, run->text, update->text) +
        revise_add_tasks(&engine->update->diff, run->plan, plan);
    struct strbuf file = {0};
    strbuf_addf(&file, REVISE_MARK "%s", update->file);
    out->run = ix;
    out->changed = count > 0;
    out->old = runs_take_version(engine,
                                 ix,
                                 plan,
                                 strbuf_text(&file),
                                 update->text,
                                 source.len);
    strbuf_release(&file);
    INVARIANT(out->old != run->plan);
    INVARIANT(run->fragments[run->fragment_count - 1].update);
    if (!out->changed) {
        mem_free(run->fragments[--run->fragment_count].file);
    }
    return ERR_OK;
}

/* --- checks --------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Return the forbidden change of the repository of a task with attempts, or
 * NULL. */
static const char *
find_move(const struct engine_run *run, const struct plan *old, uint32_t ix)
{
    const struct plan *new = run->plan;
    uint32_t a = old->tasks[ix].repo;
    uint32_t b = new->tasks[ix].repo;
    if (a == PLAN_NONE || b == PLAN_NONE) {
        return NULL;
    }
    if (!same_text(old->repos[a].path, new->repos[b].path) ||
        !same_text(old->repos[a].url, new->repos[b].url) ||
        !same_text(old->repos[a].base, new->repos[b].base)) {
        return "path, url and base of its repo cannot change";
    }
    /* The names of its branches would change. */
    return (twin_find(old, run->folder, a) == PLAN_NONE) !=
                   (twin_find(new, run->folder, b) == PLAN_NONE)
               ? "another repo with the path of its repo cannot be added or "
                 "removed; start another run for it"
               : NULL;
}

static bool
is_in_same_repo(const struct plan *old, const struct plan *new, uint32_t ix)
{
    uint32_t a = old->tasks[ix].repo;
    uint32_t b = new->tasks[ix].repo;
    return same_text(a == PLAN_NONE ? NULL : old->repos[a].name,
                     b == PLAN_NONE ? NULL : new->repos[b].name);
}

/* Return the forbidden change to a task that has begun, or NULL. */
static const char *find_fault(const struct plan *old,
                              const struct plan *new,
                              uint32_t ix,
                              bool done)
{
    if (revise_is_removed(new, ix)) {
        return "cannot be removed";
    }
    uint32_t found = revise_compare(old, new, ix);
    /* Other groups share a stage's command; and when the task is done, no limit
     * counts it any more. */
    bool own = old->tasks[ix].stage == NULL;
    if ((found & REVISE_PLACE) != 0 &&
        (own || !done || !is_in_same_repo(old, new, ix))) {
        return "its class, group, repo, provider, uses, rework and attributes "
               "cannot change";
    }
    if ((found & REVISE_NEEDS) != 0) {
        return "its needs cannot change";
    }
    if ((found & REVISE_TEXT) != 0) {
        return "its title and body cannot change";
    }
    if (own && (found & (REVISE_COMMAND | REVISE_PROMPT)) != 0) {
        return "its command cannot change";
    }
    return NULL;
}

/* Whether work of the task is done or in flight. */
static bool is_begun(const struct sched_record *record)
{
    return record->state == TASK_DONE || record->state == TASK_STARTING ||
           record->state == TASK_RUNNING;
}

static void add_refusal(struct strbuf *out,
                        uint32_t *count,
                        const char *id,
                        const char *state,
                        const char *text)
{
    if ((*count)++ < REFUSALS_MAX) {
        strbuf_addf(out, "\n  %s is %s: %s", id, state, text);
    }
}

static enum err refuse_started(const struct engine_run *run,
                               const struct plan *old,
                               const struct sched_record *records,
                               struct diag *diag)
{
    struct strbuf text = {0};
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < old->task_count; ix++) {
        const char *id = old->tasks[ix].id;
        enum task_state state = records[ix].state;
        const char *name = sched_state_name(state);
        const char *fault = NULL;
        if (is_begun(&records[ix])) {
            fault = find_fault(old, run->plan, ix, state == TASK_DONE);
        }
        if (fault == NULL && run->tasks[ix].number > 0) {
            fault = find_move(run, old, ix);
        }
        if (fault != NULL) {
            add_refusal(&text, &count, id, name, fault);
        }
    }
    enum err err = ERR_OK;
    if (count > 0) {
        err = diag_set(
            diag,
            ERR_CONFLICT,
            "the new plan changes tasks of run \"%s\" that are done or "
            "running: revert these changes; nothing was updated:%s%s",
            run->id,
            strbuf_text(&text),
            count > REFUSALS_MAX ? "\n  ..." : "");
    }
    strbuf_release(&text);
    return err;
}

/* --- effects -------------------------------------------------------------- */

/* List tasks that have begun, and whose shared parts have changed. */
static void add_kept(struct strbuf *out,
                     const struct engine_run *run,
                     const struct plan *old,
                     const struct sched_record *records)
{
    for (uint32_t ix = 0; ix < old->task_count; ix++) {
        if (is_begun(&records[ix]) && !revise_is_removed(old, ix) &&
            revise_compare(old, run->plan, ix) != 0) {
            strbuf_addf(out,
                        "kept: task %s, which is %s\n",
                        old->tasks[ix].id,
                        sched_state_name(records[ix].state));
        }
    }
}

/* Return the record of a task that has not begun. */
static struct sched_record fresh_record(const struct plan_task *task)
{
    return (struct sched_record){
        .state = TASK_WAITING,
        .flags =
            task->approve ? SCHED_RECORD_HELD | SCHED_RECORD_UNAPPROVED : 0,
        .leader = ID_NONE,
        .cause = ID_NONE,
    };
}

/* A task that has not begun may need approval, or another time, from now on. */
static void renew(const struct engine_run *run,
                  const struct plan *old,
                  uint32_t ix,
                  struct sched_record *record)
{
    const struct plan_task *was = &old->tasks[ix];
    const struct plan_task *is = &run->plan->tasks[ix];
    if (record->attempts > 0 ||
        (record->state != TASK_WAITING && record->state != TASK_READY)) {
        return;
    }
    if (is->approve && !was->approve) {
        record->flags |= SCHED_RECORD_HELD | SCHED_RECORD_UNAPPROVED;
    }
    if (plan_start_ns(old, was, run->created_ns) !=
        plan_start_ns(run->plan, is, run->created_ns)) {
        record->state = TASK_WAITING; /* as if it had never been ready */
        record->ready_ns = 0;
        record->ready_seq = 0;
    }
}

/* A new deadline counts, even if the run was stopped by the old one. */
static void move_deadline(struct engine_run *run, const struct plan *old)
{
    struct plan_time was = old->deadline;
    struct plan_time is = run->plan->deadline;
    if (was.kind == is.kind && was.value == is.value) {
        return;
    }
    run->stored.deadline_over = false;
    if (run->stored.stopped == SCHED_STOPPED_DEADLINE) {
        run->stored.stopped = SCHED_NOT_STOPPED;
    }
}

enum err update_judge(struct engine *engine,
                      struct updating *updating,
                      struct sched_record *records,
                      struct diag *diag)
{
    struct engine_run *run = &engine->runs[updating->run];
    const struct plan *old = updating->old;
    INVARIANT(run->task_count == run->plan->task_count);
    INVARIANT(old->task_count <= run->task_count);
    enum err err = refuse_started(run, old, records, diag);
    if (err != ERR_OK) {
        return err;
    }
    add_kept(&engine->update->diff, run, old, records);
    if (run->stored.cancelled && updating->changed) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "run \"%s\" was cancelled: use --new to start another "
                        "run",
                        run->id);
    }
    move_deadline(run, old);
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        bool was = ix < old->task_count && !revise_is_removed(old, ix);
        bool is = !revise_is_removed(run->plan, ix);
        struct sched_record fresh = fresh_record(&run->plan->tasks[ix]);
        if (was && !is) {
            INVARIANT(!is_begun(&records[ix])); /* else rejected */
            struct sched_record record = fresh;
            record.state = TASK_SKIPPED;
            record.flags = 0;
            record.version = records[ix].version;
            record.attempts = records[ix].attempts;
            record.token = records[ix].token;
            records[ix] = record;
            mem_set_text(&runs_own_past(&run->tasks[ix])->reason, REMOVED);
        } else if (is && !was) {
            records[ix] = fresh;
            mem_set_text(&runs_own_past(&run->tasks[ix])->reason, NULL);
        } else if ((records[ix].flags & SCHED_RECORD_CASCADED) != 0) {
            /* It may have new needs: see update_restored(). */
            records[ix].state = TASK_WAITING;
            records[ix].flags &= ~(uint32_t)SCHED_RECORD_CASCADED;
            records[ix].cause = ID_NONE;
        }
        if (was && is) {
            renew(run, old, ix, &records[ix]);
        }
    }
    return ERR_OK;
}

void update_restored(struct engine *engine, const struct updating *updating)
{
    if (updating->run != STORE_NONE) {
        sched_restore_cut(engine->sched, (struct run_id){updating->run});
    }
}

void update_write(struct engine *engine, const struct updating *updating)
{
    if (!updating->changed) {
        return;
    }
    struct engine_run *run = &engine->runs[updating->run];
    const struct plan *old = updating->old;
    const struct engine_fragment *version =
        &run->fragments[run->fragment_count - 1];
    INVARIANT(version->update && version->first_task == old->task_count);
    struct store_change change = {
        .type = STORE_FRAGMENT,
        .as.fragment.run = run->number,
        .as.fragment.number = run->fragment_count,
        .as.fragment.file = version->file,
        .as.fragment.text = run->text,
        .as.fragment.text_bytes = run->text_bytes,
    };
    store_batch_add(&engine->batch, &change);
    rows_set_run(engine, updating->run); /* see move_deadline() */
    uint32_t changed = 0;
    uint32_t added = 0;
    uint32_t removed = 0;
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        bool was = ix < old->task_count && !revise_is_removed(old, ix);
        bool is = !revise_is_removed(run->plan, ix);
        if (was != is) {
            rows_set_task(engine, updating->run, ix);
        }
        added += is && !was ? 1 : 0;
        removed += was && !is ? 1 : 0;
        changed += was && is && revise_compare(old, run->plan, ix) != 0 ? 1 : 0;
    }
    INVARIANT(changed + added <= run->task_count);
    INVARIANT(removed <= old->task_count);
    struct event event = {
        .kind = EVENT_KIND_UPDATED,
        .as.updated = {.changed = changed, .added = added, .removed = removed},
    };
    rows_event(engine, updating->run, STORE_NONE, &event);
}

bool update_is_same(const struct engine_run *run, const struct engine_run *made)
{
    if (strcmp(run->text, made->text) == 0) {
        return true;
    }
    struct plan_source source = {
        .file = made->file,
        .text = made->text,
        .len = made->text_bytes,
        .processors = run->processors,
        .old_rules = run->rules < PLAN_RULES,
    };
    struct plan *plan = NULL;
    struct diag diag = {0};
    struct strbuf diff = {0};
    bool same = runs_read_version(run, &source, &plan, &diag) == ERR_OK &&
                revise_add_parts(&diff, run->text, made->text) == 0 &&
                revise_add_tasks(&diff, run->plan, plan) == 0;
    plan_free(plan);
    strbuf_release(&diff);
    return same;
}
