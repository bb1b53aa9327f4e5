/* SPDX-License-Identifier: MIT */
/*
 * The hook of a sync barrier: a program whose output is added to the plan.
 *
 * program.c runs it. If this process dies, the barrier is still due for the
 * next process, which finds the result in the hook's directory. The directory
 * name is the number of completions over `every` when the hook was due; the row
 * of the run has it from before the hook is started until it exits. Every
 * failure of the hook is logged, and the run continues.
 */
#include "engine/engine_internal.h"

#include "base/duration.h"
#include "base/invariant.h"

/* Time limit of the hook. */
#define TIMEOUT_NS (600 * SECOND_NS)

/* Log its result; `error` is NULL on success. */
static void tell(struct engine *engine, uint32_t run, const char *error)
{
    struct event event = {
        .kind = EVENT_KIND_SYNC,
        .as.sync.result = error == NULL ? EVENT_WORD_DONE : EVENT_WORD_FAILED,
        .as.sync.reason = error,
    };
    rows_event(engine, run, STORE_NONE, &event);
}

/* A cancelled run does not need its output. */
static bool is_wanted(const struct engine *engine,
                      const struct program *program)
{
    return !engine->runs[program->run].stored.cancelled;
}

/* The hook has exited. */
static void ended(struct engine *engine,
                  struct program *program,
                  const struct work_id *id,
                  const struct work_report *report,
                  const char *error)
{
    uint32_t run = program->run;
    struct engine_sync *sync = &engine->runs[run].sync;
    INVARIANT(sync->program == program && sync->number > 0);
    INVARIANT(sched_run(engine->sched, (struct run_id){run}).barrier);
    struct diag diag = {0};
    if (error != NULL && (program->stopped || engine->stopping) &&
        is_wanted(engine, program)) {
        /* A scheduler stopped it on its own shutdown: run it again. */
        engine->world->forget(engine->ctx, id);
        if (!engine->stopping) {
            program_call(engine, program);
        }
        return;
    }
    struct store_fragment fragment = {
        .file = "output of the sync hook",
        .text = report->output,
        .text_bytes = report->output_len,
    };
    enum err err = error != NULL ? diag_set(&diag, ERR_IO, "%s", error)
                                 : runs_hot_load(engine, run, &fragment, &diag);
    tell(engine, run, err == ERR_OK ? NULL : diag.text);
    sync->number = 0;
    if (engine->runs[run].stored.cancelled) {
        sync->next = 0;
    } else if (sync->next != 0 && !engine->draining) {
        /* For the core, the barrier continues. */
        sync->number = sync->next;
        sync->next = 0;
        program->stored = false;
        program_call(engine, program);
    }
    rows_set_run(engine, run);
    if (sync->number != 0) {
        return;
    }
    err = engine_apply(engine,
                       (struct sched_event){
                           .type = EVENT_BARRIER_DONE,
                           .run = {run},
                       });
    INVARIANT(err == ERR_OK);
}

static void add_name(struct strbuf *out,
                     const struct engine *engine,
                     const struct program *program)
{
    strbuf_addf(out, "%u", engine->runs[program->run].sync.number);
}

static struct program_call call(const struct engine *engine,
                                const struct program *program)
{
    const struct engine_run *run = &engine->runs[program->run];
    return (struct program_call){
        .shell = run->plan->sync.run.shell,
        .argv = run->plan->sync.run.argv,
        .folder = run->folder,
        .run = run->id,
        .file = "fragment",
        .variable = "SLUICE_FRAGMENT",
        .timeout_ns = TIMEOUT_NS,
    };
}

static const struct program_ops ops = {
    .task = ".sync",
    .add_name = add_name,
    .call = call,
    .is_wanted = is_wanted,
    .ended = ended,
};

/*
 * Restore from the row of a run, whose `barrier` has the number of a hook that
 * may be running. Completions since its start may have made the next hook due,
 * which the core does not know: it has one barrier.
 */
void sync_restore(struct engine_run *run, uint32_t barrier)
{
    INVARIANT(run->sync.number == 0 && run->sync.program == NULL);
    uint32_t every = run->plan->sync.every;
    if (barrier > 1 && every > 0) {
        uint32_t reached = run->stored.completions / every;
        run->sync.number = barrier - 1;
        run->sync.next = reached > run->sync.number ? reached : 0;
    }
}

/* A barrier begins: its number must be durable before its hook starts. */
void sync_due(struct engine *engine, uint32_t run)
{
    struct engine_run *r = &engine->runs[run];
    INVARIANT(r->plan->sync.every > 0 && !r->finished);
    bool stored = r->sync.number != 0;
    if (!stored) {
        struct sched_run view = sched_run(engine->sched, (struct run_id){run});
        r->sync.number = view.completions / r->plan->sync.every;
        r->sync.next = 0;
        rows_set_run(engine, run);
    }
    if (r->sync.program == NULL) {
        r->sync.program = program_new(engine, &ops, run, 0);
    }
    INVARIANT(r->sync.number > 0);
    INVARIANT(r->sync.next == 0 || r->sync.next > r->sync.number);
    r->sync.program->stored = stored;
    program_call(engine, r->sync.program);
}
