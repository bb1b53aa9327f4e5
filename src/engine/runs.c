/* SPDX-License-Identifier: MIT */
/*
 * Runs: created from submitted plans, and extended with fragments. The texts of
 * a plan and of its fragments are stored unchanged: after a restart, reading
 * the same texts gives the same tasks in the same order.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { ID_BYTES_MAX = 60 }; /* of a run's id, without its number */

static void release_fragment(struct engine_fragment *fragment)
{
    mem_free(fragment->file);
    mem_free(fragment->key);
    mem_free(fragment->text);
}

static void release_past(struct engine_past *past)
{
    if (past != NULL) {
        mem_free(past->reason);
        mem_free(past->feedback);
        mem_free(past->carry);
        mem_free(past->outputs);
        mem_free(past);
    }
}

const struct engine_past *runs_past(const struct engine_task *task)
{
    static const struct engine_past none = {0};
    return task->past != NULL ? task->past : &none;
}

struct engine_past *runs_own_past(struct engine_task *task)
{
    if (task->past == NULL) {
        task->past = mem_zalloc(1, sizeof(*task->past));
    }
    return task->past;
}

void runs_release(struct engine_run *run)
{
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        release_past(run->tasks[ix].past);
    }
    mem_free(run->tasks);
    mem_free(run->limits);
    for (uint32_t ix = 0; ix < run->fragment_count; ix++) {
        release_fragment(&run->fragments[ix]);
    }
    mem_free(run->fragments);
    mem_free(run->raises);
    mem_free(run->windows);
    bases_release(run);
    usage_release(run);
    plan_free(run->plan);
    mem_free(run->id);
    mem_free(run->name);
    mem_free(run->file);
    mem_free(run->folder);
    mem_free(run->worker);
    mem_free(run->text);
    *run = (struct engine_run){0};
}

struct engine_run *runs_add(struct engine *engine)
{
    MEM_EXTEND(engine->runs, engine->run_count);
    struct engine_run *run = &engine->runs[engine->run_count++];
    *run = (struct engine_run){0};
    return run;
}

void runs_grow_tasks(struct engine_run *run)
{
    uint32_t count = run->plan->task_count;
    INVARIANT(count >= run->task_count);
    run->tasks = mem_resize(run->tasks, count, sizeof(run->tasks[0]));
    for (uint32_t ix = run->task_count; ix < count; ix++) {
        run->tasks[ix] = (struct engine_task){.told = TASK_STATE_COUNT};
    }
    run->task_count = count;
}

/* Report the errors with their places, one per line, as many as fit. */
static enum err
refuse(const char *file, const struct plan_errors *errors, struct diag *diag)
{
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct plan_error *error = &errors->items[ix];
        strbuf_addf(&text,
                    "%s%s:%u:%u: %s",
                    ix > 0 ? "\n" : "",
                    file,
                    error->mark.line,
                    error->mark.column,
                    error->text);
    }
    INVARIANT(text.len > 0);
    enum err err = diag_set(diag, ERR_INVALID, "%s", strbuf_text(&text));
    strbuf_release(&text);
    return err;
}

enum err runs_read_plan(struct engine_run *run, struct diag *diag)
{
    struct plan_errors errors = {0};
    struct plan_source source = {
        .file = run->file,
        .text = run->text,
        .len = run->text_bytes,
        .processors = run->processors,
        .old_rules = run->rules < PLAN_RULES,
        .no_base_gates = !run->base_gates,
    };
    enum err err = ERR_OK;
    if (!plan_read(&run->plan, &source, &errors)) {
        err = refuse(run->file, &errors, diag);
    }
    plan_errors_release(&errors);
    return err;
}

/* Limit the tasks that a session adds to the quotas of its own task, and
 * confine them as it is confined, whatever the fragment sets. */
static void
bound_added(struct plan *plan, uint32_t first, uint32_t end, uint32_t adder)
{
    for (uint32_t ix = first; adder != PLAN_NONE && ix < end; ix++) {
        plan_bound_task(plan, ix, adder);
    }
}

/* Return the task whose session added a fragment, or PLAN_NONE. */
static uint32_t adder_of(const struct engine_run *run, const char *file)
{
    return strncmp(file, ENGINE_ADDED_BY, strlen(ENGINE_ADDED_BY)) == 0
               ? plan_find_task(run->plan, file + strlen(ENGINE_ADDED_BY))
               : PLAN_NONE;
}

enum err runs_add_fragment(struct engine_run *run,
                           const struct store_fragment *fragment,
                           struct diag *diag)
{
    struct plan_errors errors = {0};
    struct plan_source source = {
        .file = fragment->file,
        .text = fragment->text,
        .len = fragment->text_bytes,
        .processors = run->processors,
        .old_rules = run->rules < PLAN_RULES,
    };
    uint32_t before = run->plan->task_count;
    enum err err = ERR_OK;
    if (!plan_add(run->plan, &source, &errors)) {
        err = refuse(fragment->file, &errors, diag);
    } else {
        uint32_t count = run->fragment_count;
        uint32_t adder = adder_of(run, fragment->file);
        MEM_EXTEND(run->fragments, count);
        run->fragments[count] = (struct engine_fragment){
            .file = mem_strdup(fragment->file),
            .key = mem_strdup(fragment->key),
            .text = mem_strndup(fragment->text, fragment->text_bytes),
            .text_bytes = fragment->text_bytes,
            .first_task = before,
            .adder = adder,
        };
        run->fragment_count = count + 1;
        INVARIANT(run->plan->task_count >= before);
        bound_added(run->plan, before, run->plan->task_count, adder);
    }
    plan_errors_release(&errors);
    return err;
}

/* Undo the last runs_add_fragment(). */
static void undo_fragment(struct engine_run *run)
{
    INVARIANT(run->fragment_count > 0);
    INVARIANT(!run->fragments[run->fragment_count - 1].update);
    plan_undo_add(run->plan);
    INVARIANT(run->plan->task_count == run->task_count);
    run->fragment_count--;
    release_fragment(&run->fragments[run->fragment_count]);
}

enum err runs_read_version(const struct engine_run *run,
                           const struct plan_source *source,
                           struct plan **out,
                           struct diag *diag)
{
    struct plan_source *added =
        mem_zalloc(run->fragment_count, sizeof(added[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < run->fragment_count; ix++) {
        const struct engine_fragment *fragment = &run->fragments[ix];
        if (!fragment->update) {
            added[count++] = (struct plan_source){
                .file = fragment->file,
                .text = fragment->text,
                .len = fragment->text_bytes,
                .processors = run->processors,
                .old_rules = run->rules < PLAN_RULES,
            };
        }
    }
    struct plan_errors errors = {0};
    enum err err = ERR_OK;
    struct plan_source whole = *source;
    whole.no_base_gates = !run->base_gates;
    if (!revise_plan(out, run->plan, &whole, added, count, &errors)) {
        err = refuse(source->file, &errors, diag);
    }
    plan_errors_release(&errors);
    mem_free(added);
    for (uint32_t ix = 0; err == ERR_OK && ix < run->fragment_count; ix++) {
        const struct engine_fragment *fragment = &run->fragments[ix];
        uint32_t end = ix + 1 < run->fragment_count
                           ? run->fragments[ix + 1].first_task
                           : run->plan->task_count;
        bound_added(*out, fragment->first_task, end, fragment->adder);
    }
    return err;
}

struct plan *runs_take_version(struct engine *engine,
                               uint32_t ix,
                               struct plan *plan,
                               const char *file,
                               const char *text,
                               size_t len)
{
    struct engine_run *run = &engine->runs[ix];
    struct plan *old = run->plan;
    INVARIANT(run->loaded == NULL); /* not loaded into the core yet */
    INVARIANT(plan->task_count >= old->task_count);
    for (uint32_t n = 0; n < old->usage_count; n++) {
        program_free(engine, run->usages[n].program);
    }
    usage_release(run);
    run->plan = plan;
    usage_init(engine, ix);
    char *copy = mem_strndup(text, len);
    mem_free(run->text);
    run->text = copy;
    run->text_bytes = len;
    uint32_t count = run->fragment_count++;
    MEM_EXTEND(run->fragments, count);
    run->fragments[count] = (struct engine_fragment){
        .first_task = old->task_count,
        .adder = PLAN_NONE,
        .update = true,
        .file = mem_strdup(file),
    };
    return old;
}

/* Reject a task that can be simulated, but not run. */
static enum err check_task(const struct plan *plan,
                           uint32_t ix,
                           struct plan_mark *mark_out,
                           struct diag *diag)
{
    const struct plan_task *task = &plan->tasks[ix];
    if (!task->merge || plan_is_git(&plan->repos[task->repo])) {
        return ERR_OK;
    }
    const struct plan_repo *repo = &plan->repos[task->repo];
    *mark_out = task->mark;
    return diag_set(diag,
                    ERR_INVALID,
                    "task \"%s\" merges, but its repo \"%s\" has no \"%s\"",
                    task->id,
                    repo->name,
                    repo->path == NULL ? "path" : "base");
}

enum err runs_check(const struct plan *plan,
                    uint32_t first,
                    const char *file,
                    struct diag *diag)
{
    struct plan_mark mark;
    struct diag why = {0};
    enum err err = ERR_OK;
    for (uint32_t ix = first; ix < plan->task_count && err == ERR_OK; ix++) {
        if (!revise_is_removed(plan, ix)) {
            err = check_task(plan, ix, &mark, &why);
        }
    }
    return err == ERR_OK ? ERR_OK
                         : diag_set(diag,
                                    err,
                                    "%s:%u:%u: %s",
                                    file,
                                    mark.line,
                                    mark.column,
                                    why.text);
}

/* Pass the added tasks to the core and the store; `adder` is the task whose
 * session added them, or PLAN_NONE. */
static enum err load_added(struct engine *engine,
                           uint32_t ix,
                           const struct store_fragment *fragment,
                           uint32_t adder,
                           struct diag *diag)
{
    struct engine_run *run = &engine->runs[ix];
    uint32_t before = run->task_count;
    enum err err = runs_check(run->plan, before, fragment->file, diag);
    if (err == ERR_OK) {
        err = load_more(run->loaded, engine_now(engine), diag);
    }
    if (err != ERR_OK) {
        undo_fragment(run);
        return err;
    }
    engine->changed = true;
    runs_grow_tasks(run);
    INVARIANT(run->fragment_count > 0);
    INVARIANT(run->fragments[run->fragment_count - 1].first_task == before);
    caps_apply(engine, ix);
    struct store_change change = {
        .type = STORE_FRAGMENT,
        .as.fragment = *fragment,
    };
    change.as.fragment.run = run->number;
    change.as.fragment.number = run->fragment_count;
    store_batch_add(&engine->batch, &change);
    struct event event = {
        .kind = EVENT_KIND_ADDED,
        .as.added.tasks = run->plan->task_count - before,
        .as.added.by = adder != PLAN_NONE ? run->plan->tasks[adder].id : NULL,
    };
    rows_event(engine, ix, STORE_NONE, &event);
    crash_point("fragment-added");
    return ERR_OK;
}

enum err runs_find_key(const struct engine_run *run,
                       const char *shown,
                       const char *key,
                       const char *text,
                       bool *out,
                       struct diag *diag)
{
    *out = false;
    for (uint32_t ix = 0; ix < run->fragment_count; ix++) {
        const struct engine_fragment *fragment = &run->fragments[ix];
        if (fragment->key == NULL || strcmp(fragment->key, key) != 0) {
            continue;
        }
        if (strcmp(fragment->text, text) != 0) {
            return diag_set(diag,
                            ERR_CONFLICT,
                            "run \"%s\" has got another fragment with the key "
                            "\"%s\": use another key",
                            run->id,
                            shown);
        }
        *out = true;
    }
    return ERR_OK;
}

enum err runs_hot_load(struct engine *engine,
                       uint32_t ix,
                       const struct store_fragment *given,
                       struct diag *diag)
{
    struct engine_run *run = &engine->runs[ix];
    struct store_fragment fragment = *given;
    if (strncmp(fragment.file, ENGINE_ADDED_BY, strlen(ENGINE_ADDED_BY)) == 0) {
        /* Only the fragment of a session has that name. */
        fragment.file += strlen(ENGINE_ADDED_BY);
    }
    enum err err = runs_add_fragment(run, &fragment, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (!plan_has_added(run->plan)) {
        undo_fragment(run); /* the fragment is empty */
        return ERR_OK;
    }
    return load_added(engine, ix, &fragment, PLAN_NONE, diag);
}

/* How many sessions, each adding the next, led to this task. */
static uint32_t depth_of(const struct engine_run *run, uint32_t task)
{
    uint32_t depth = 0;
    while (task != PLAN_NONE) {
        uint32_t adder = PLAN_NONE;
        for (uint32_t ix = 0; ix < run->fragment_count; ix++) {
            if (run->fragments[ix].first_task <= task) {
                adder = run->fragments[ix].adder;
            }
        }
        depth += adder != PLAN_NONE ? 1 : 0;
        task = adder;
    }
    return depth;
}

/* How many tasks the sessions of a task have added. */
static uint32_t added_by(const struct engine_run *run, uint32_t task)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < run->fragment_count; ix++) {
        uint32_t end = ix + 1 < run->fragment_count
                           ? run->fragments[ix + 1].first_task
                           : run->task_count;
        if (run->fragments[ix].adder == task) {
            count += end - run->fragments[ix].first_task;
        }
    }
    return count;
}

enum err runs_add_by_session(struct engine *engine,
                             uint32_t ix,
                             uint32_t task,
                             const char *text,
                             const char *key,
                             struct diag *diag)
{
    struct engine_run *run = &engine->runs[ix];
    INVARIANT(task < run->task_count);
    INVARIANT(run->plan->task_count == run->task_count);
    const struct plan_settings settings = *run->plan->tasks[task].settings;
    uint32_t before = run->plan->task_count;
    uint32_t earlier = added_by(run, task);
    if (depth_of(run, task) >= settings.add_depth) {
        return diag_set(diag,
                        ERR_LIMIT,
                        "tasks added by sessions may add tasks only %u levels "
                        "deep (set by \"add: {depth: N}\")",
                        settings.add_depth);
    }
    struct strbuf file = {0};
    strbuf_addf(&file, "%s%s", ENGINE_ADDED_BY, run->plan->tasks[task].id);
    struct store_fragment fragment = {
        .file = strbuf_text(&file),
        .key = key,
        .text = text,
        .text_bytes = strlen(text),
    };
    enum err err = runs_add_fragment(run, &fragment, diag);
    uint32_t added = run->plan->task_count - before;
    if (err == ERR_OK && added > 0 &&
        (uint64_t)earlier + added > settings.add_max) {
        undo_fragment(run);
        err = earlier == 0
                  ? diag_set(diag,
                             ERR_LIMIT,
                             "it adds %u tasks, but a session may add at most "
                             "%u (set by \"add: {max: N}\")",
                             added,
                             settings.add_max)
                  : diag_set(diag,
                             ERR_LIMIT,
                             "it adds %u tasks to %u that sessions of %s have "
                             "added, but they may add at most %u (set by "
                             "\"add: {max: N}\")",
                             added,
                             earlier,
                             run->plan->tasks[task].id,
                             settings.add_max);
    } else if (err == ERR_OK && !plan_has_added(run->plan)) {
        undo_fragment(run);
    } else if (err == ERR_OK) {
        err = load_added(engine, ix, &fragment, task, diag);
    }
    strbuf_release(&file);
    return err;
}

static void
tell(struct engine *engine, uint32_t ix, enum event_word to, const char *reason)
{
    struct sched_run view = sched_run(engine->sched, (struct run_id){ix});
    INVARIANT(engine->runs[ix].finished == (to == EVENT_WORD_FINISHED));
    struct event event = {
        .kind = EVENT_KIND_RUN,
        .as.run = {.to = to, .tasks = -1, .reason = reason},
    };
    memcpy(event.as.run.counts, view.counts, sizeof(event.as.run.counts));
    rows_event(engine, ix, STORE_NONE, &event);
}

/* Log a run's change of state. */
void runs_tell(struct engine *engine, uint32_t ix, enum event_word to)
{
    tell(engine, ix, to, NULL);
}

/* Log that a run was stopped, and why. */
void runs_tell_stop(struct engine *engine, uint32_t ix)
{
    const struct engine_run *run = &engine->runs[ix];
    struct strbuf reason = {0};
    if (!run->finished) {
        engine_add_stop(&reason, engine, ix);
        tell(engine, ix, EVENT_WORD_STOPPED, strbuf_text(&reason));
    }
    strbuf_release(&reason);
}

/* Letters and digits of the name in lower case, a dash for all others. */
static void add_slug(struct strbuf *out, const char *name)
{
    for (const char *at = name; *at != '\0' && out->len < ID_BYTES_MAX; at++) {
        bool upper = *at >= 'A' && *at <= 'Z';
        bool kept = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        if (upper || kept) {
            strbuf_pad(out, upper ? (char)(*at - 'A' + 'a') : *at, 1);
        } else if (out->len > 0 && out->text[out->len - 1] != '-') {
            strbuf_adds(out, "-");
        }
    }
    while (out->len > 0 && out->text[out->len - 1] == '-') {
        out->text[--out->len] = '\0';
    }
    if (out->len == 0) {
        strbuf_adds(out, "run");
    }
}

static bool is_taken(const struct engine *engine, const char *id)
{
    for (uint32_t ix = 0; ix < engine->finished_count; ix++) {
        if (strcmp(engine->finished_ids[ix], id) == 0) {
            return true;
        }
    }
    return engine_find_run(engine, id) != STORE_NONE;
}

/* Create a unique id for a run of this name. The caller frees it. */
static char *new_id(const struct engine *engine, const char *name)
{
    struct strbuf id = {0};
    add_slug(&id, name);
    size_t len = id.len;
    for (uint32_t n = 2; is_taken(engine, strbuf_text(&id)); n++) {
        strbuf_clear(&id);
        add_slug(&id, name);
        INVARIANT(id.len == len);
        strbuf_addf(&id, "-%u", n);
    }
    char *copy = mem_strndup(id.text, id.len);
    strbuf_release(&id);
    return copy;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Whether it is a run of the same plan. The same text in another directory is
 * other work: its relative paths name other files. Another plan may reuse the
 * name of a finished run. */
static bool is_of_plan(const struct engine_run *run,
                       const struct engine_run *made)
{
    return strcmp(run->name, made->name) == 0 &&
           strcmp(run->folder, made->folder) == 0 &&
           (!run->finished || strcmp(run->text, made->text) == 0 ||
            strcmp(base_of(run->file), base_of(made->file)) == 0);
}

/* The run that a plan continues: an unfinished run, else the last finished run
 * that is still loaded, or STORE_NONE. The submitter has searched for older
 * runs. */
static uint32_t find_continued(const struct engine *engine,
                               const struct engine_run *made)
{
    uint32_t finished = STORE_NONE;
    for (uint32_t ix = engine->run_count; ix > 0; ix--) {
        const struct engine_run *run = &engine->runs[ix - 1];
        if (is_of_plan(run, made) && !run->finished) {
            return ix - 1;
        }
        if (is_of_plan(run, made) && finished == STORE_NONE) {
            finished = ix - 1;
        }
    }
    return finished;
}

/* The run that a submission continues whose text is that of the run, so that it
 * need not be read; STORE_NONE: read it, it may continue another run. */
static uint32_t find_same(const struct engine *engine,
                          const struct runs_submission *submission)
{
    for (uint32_t ix = engine->run_count; ix > 0; ix--) {
        const struct engine_run *run = &engine->runs[ix - 1];
        if (run->finished || strcmp(run->folder, submission->folder) != 0) {
            continue;
        }
        bool same = !submission->anew && submission->not_before_ns <= 0 &&
                    strcmp(run->text, submission->text) == 0;
        return same ? ix - 1 : STORE_NONE;
    }
    return STORE_NONE;
}

enum err engine_check(const struct plan *plan,
                      struct plan_mark *mark_out,
                      struct diag *diag)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < plan->task_count && err == ERR_OK; ix++) {
        err = check_task(plan, ix, mark_out, diag);
    }
    return err;
}

bool runs_take_offered(struct engine *engine, struct engine_run *run)
{
    const struct plan_source *source = &engine->offered_source;
    INVARIANT(run->plan == NULL);
    if (engine->offered == NULL || source->processors != run->processors ||
        run->rules < PLAN_RULES || !run->base_gates ||
        strcmp(source->file, run->file) != 0 ||
        source->len != run->text_bytes ||
        memcmp(source->text, run->text, source->len) != 0) {
        return false;
    }
    run->plan = engine->offered;
    engine->offered = NULL;
    return true;
}

/* Return the rules for reading a plan: those of the unfinished run that it
 * continues, which may be older. */
static uint32_t rules_of(const struct engine *engine,
                         const struct runs_submission *submission)
{
    for (uint32_t ix = 0; ix < engine->run_count && !submission->anew; ix++) {
        const struct engine_run *run = &engine->runs[ix];
        if (run->rules < PLAN_RULES &&
            strcmp(run->folder, submission->folder) == 0 &&
            strcmp(run->text, submission->text) == 0) {
            return run->rules;
        }
    }
    return PLAN_RULES;
}

/* Read the plan into a run that the engine does not have yet. */
static enum err prepare(struct engine *engine,
                        struct engine_run *run,
                        const struct runs_submission *submission,
                        struct diag *diag)
{
    run->file = mem_strdup(submission->file);
    run->folder = mem_strdup(submission->folder);
    run->text = mem_strdup(submission->text);
    run->text_bytes = strlen(run->text);
    run->processors = submission->processors;
    run->not_before_ns = submission->not_before_ns;
    run->worker = mem_strdup(submission->worker);
    run->rules = rules_of(engine, submission);
    run->base_gates = true;
    enum err err =
        runs_take_offered(engine, run) ? ERR_OK : runs_read_plan(run, diag);
    if (err == ERR_OK) {
        struct plan_mark mark;
        struct diag why = {0};
        err = engine_check(run->plan, &mark, &why);
        if (err != ERR_OK) {
            (void)diag_set(diag,
                           err,
                           "%s:%u:%u: %s",
                           run->file,
                           mark.line,
                           mark.column,
                           why.text);
        }
    }
    if (err == ERR_OK) {
        run->name = mem_strdup(run->plan->name);
    }
    return err;
}

struct load_options runs_load_options(const struct engine *engine,
                                      const struct engine_run *run)
{
    return (struct load_options){
        .folder = run->folder,
        .start_ns = run->not_before_ns > run->created_ns ? run->not_before_ns
                                                         : run->created_ns,
        .clock_offset_ns = engine->clock_offset_ns,
        .not_before_ns =
            run->not_before_ns > 0 ? run->not_before_ns : INT64_MIN,
        .worker = run->worker,
    };
}

/* Reject the plan of a new run if its dates have passed. */
static enum err refuse_past(const struct engine *engine,
                            const struct engine_run *made,
                            struct diag *diag)
{
    struct plan_errors errors = {0};
    enum err err = ERR_OK;
    if (plan_find_past(made->plan, engine_wall_ns(engine), &errors)) {
        err = refuse(made->file, &errors, diag);
    }
    plan_errors_release(&errors);
    return err;
}

/* Add a prepared run to the engine. */
static enum err
take_in(struct engine *engine, struct engine_run *made, struct diag *diag)
{
    INVARIANT(made->id == NULL && made->loaded == NULL);
    made->id = new_id(engine, made->name);
    INVARIANT(!is_taken(engine, made->id));
    made->number = (uint32_t)++engine->info.last_run;
    made->created_ns = engine->world->wall_ns(engine->ctx);
    history_expect(engine, made);
    int64_t now_ns = engine_now(engine);
    struct load_options options = runs_load_options(engine, made);
    enum err err = load_plan(engine->load,
                             now_ns,
                             made->plan,
                             &options,
                             &made->loaded,
                             diag);
    if (err != ERR_OK) {
        return err;
    }
    struct engine_run *run = runs_add(engine);
    *run = *made;
    *made = (struct engine_run){0};
    runs_grow_tasks(run);
    uint32_t ix = engine->run_count - 1;
    INVARIANT(load_run_id(run->loaded).v == ix);
    INVARIANT(ix == 0 || engine->runs[ix - 1].number < run->number);
    usage_init(engine, ix);
    caps_apply(engine, ix);
    rows_add_run(engine, run);
    crash_point("run-added");
    struct event event = {
        .kind = EVENT_KIND_RUN,
        .as.run.to = EVENT_WORD_SUBMITTED,
        .as.run.id = run->id,
        .as.run.tasks = run->task_count,
    };
    rows_event(engine, ix, STORE_NONE, &event);
    engine->changed = true;
    return ERR_OK;
}

enum err runs_submit(struct engine *engine,
                     const struct runs_submission *submission,
                     uint32_t *out,
                     bool *continued_out,
                     struct diag *diag)
{
    struct engine_run made = {0};
    *out = find_same(engine, submission);
    *continued_out = *out != STORE_NONE;
    if (*continued_out) {
        plan_free(engine->offered);
        engine->offered = NULL;
        return ERR_OK;
    }
    enum err err = prepare(engine, &made, submission, diag);
    if (err != ERR_OK) {
        goto out;
    }
    uint32_t old =
        submission->anew ? STORE_NONE : find_continued(engine, &made);
    if (old == STORE_NONE) {
        err = refuse_past(engine, &made, diag);
        if (err == ERR_OK) {
            err = take_in(engine, &made, diag);
            *out = engine->run_count - 1;
        }
        goto out;
    }
    if (!update_is_same(&engine->runs[old], &made)) {
        err = diag_set(diag,
                       ERR_CONFLICT,
                       engine->runs[old].finished
                           ? "run \"%s\" has finished, and its plan has "
                             "changed since: use --new to start another run"
                           : "run \"%s\" has not finished, and its plan has "
                             "changed: use --update to change the run, the "
                             "original plan to resume it, or --new to start "
                             "another run",
                       engine->runs[old].id);
        goto out;
    }
    if (made.not_before_ns > 0 &&
        made.not_before_ns != engine->runs[old].not_before_ns) {
        err = diag_set(diag,
                       ERR_CONFLICT,
                       "run \"%s\" was submitted before: leave --at out to "
                       "resume it, or use --new to start another run",
                       engine->runs[old].id);
        goto out;
    }
    INVARIANT(!submission->anew);
    *out = old;
    *continued_out = true;
out:
    runs_release(&made);
    return err;
}
