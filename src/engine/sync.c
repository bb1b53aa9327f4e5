/* SPDX-License-Identifier: MIT */
/*
 * The hook of a sync barrier: a program whose output is added to the plan.
 *
 * It is started like a session, but it is none: it has no task and no row.
 * When this process dies, the barrier is still due for the next one, which
 * finds in the hook's directory what became of it. The directory is named by
 * the number of completions over `every` when the hook was due, which the row
 * of the run has from before the hook is started until its end. Whatever goes
 * wrong with it is told, and the run goes on.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "engine/verdict.h"

#include <string.h>

/* The highest bit, the number of the hook, the index of its run. */
uint64_t sync_id(const struct engine *engine, uint32_t run)
{
    uint64_t count = engine->runs[run].sync.count & 0x7fffffff;
    return UINT64_C(1) << 63 | count << 32 | run;
}

bool sync_is_id(uint64_t id)
{
    return id >> 63 != 0;
}

static void
tell(struct engine *engine, uint32_t run, const char *result, const char *text)
{
    struct strbuf data = {0};
    strbuf_addf(&data, "{\"result\":\"%s\"", result);
    if (text != NULL) {
        strbuf_adds(&data, ",\"reason\":");
        jsonw_string(&data, text);
    }
    strbuf_adds(&data, "}");
    rows_event(engine, run, STORE_NONE, "sync", &data);
    strbuf_release(&data);
}

/* The hook is over, well or not. */
static void
end(struct engine *engine, uint32_t run, const char *result, const char *text)
{
    struct engine_sync *sync = &engine->runs[run].sync;
    sync->running = false;
    tell(engine, run, result, text);
    sync->number = 0;
    sync->due = false;
    if (engine->runs[run].stored.cancelled) {
        sync->next = 0;
    } else if (sync->next != 0 && !engine->draining) {
        sync->number = sync->next;
        sync->next = 0;
        sync->due = true; /* in the same barrier, as the core sees it */
    }
    rows_set_run(engine, run);
    if (sync->due) {
        engine->changed = true;
        return;
    }
    enum err err = engine_apply(engine,
                                (struct sched_event){
                                    .type = EVENT_BARRIER_DONE,
                                    .run = {run},
                                });
    INVARIANT(err == ERR_OK);
}

/* Add what it printed to the run. */
static void add_output(struct engine *engine, uint32_t run, const char *dir)
{
    struct strbuf text = {0};
    struct diag diag = {0};
    enum err err =
        engine->world->get(engine->ctx, dir, "fragment", &text, &diag);
    if (err == ERR_OK) {
        err = runs_hot_load(engine,
                            run,
                            "output of the sync hook",
                            strbuf_text(&text),
                            text.len,
                            &diag);
    }
    strbuf_release(&text);
    end(engine, run, err == ERR_OK ? "done" : "failed", diag.text);
}

/* It has ended: add what it printed, or tell what went wrong. */
static void conclude(struct engine *engine,
                     uint32_t run,
                     const char *dir,
                     const struct attempt_found *found)
{
    struct strbuf reason = {0};
    struct attempt_result none = {0};
    struct verdict verdict = verdict_of(found, &none, NULL, &reason);
    if (verdict.outcome == OUTCOME_DONE) {
        add_output(engine, run, dir);
    } else {
        end(engine, run, "failed", strbuf_text(&reason));
    }
    strbuf_release(&reason);
}

static void start(struct engine *engine, uint32_t run)
{
    struct diag diag = {0};
    crash_point("before-sync");
    if (request_start_sync(engine, run, &diag) != ERR_OK) {
        end(engine, run, "failed", diag.text);
    }
    crash_point("sync-asked");
}

/* A shim has it, maybe of another process: wait for its end. */
static void
adopt(struct engine *engine, uint32_t run, const struct attempt_found *found)
{
    struct engine_sync *sync = &engine->runs[run].sync;
    sync->pid = found->pid;
    sync->start_ticks = found->start_ticks;
    enum err err = engine->world->watch(engine->ctx,
                                        sync_id(engine, run),
                                        found->pid,
                                        found->start_ticks);
    sync->due = err != ERR_OK; /* it is gone by now: look again */
    if (engine->runs[run].stored.cancelled) {
        sync_stop(engine, run);
    }
}

/* Look into its directory. `may_start`: it is not known to have been tried. */
static void look(struct engine *engine, uint32_t run, bool may_start)
{
    struct strbuf dir = {0};
    struct attempt_found found;
    struct diag diag = {0};
    request_add_sync_dir(&dir, engine, run);
    enum err err = engine->world->inspect(engine->ctx,
                                          strbuf_text(&dir),
                                          engine->boot_id,
                                          &found,
                                          &diag);
    if (err == ERR_UNAVAILABLE) {
        found.state = ATTEMPT_STARTING; /* it may run: nobody knows now */
    } else if (err != ERR_OK) {
        end(engine, run, "failed", diag.text);
        goto out;
    }
    switch (found.state) {
    case ATTEMPT_NEVER:
        if (may_start && !engine->runs[run].stored.cancelled) {
            start(engine, run);
        } else {
            end(engine, run, "failed", "the hook could not be started");
        }
        break;
    case ATTEMPT_STARTING:
        engine->runs[run].sync.due = true; /* look again, in the next turn */
        engine->changed = true;
        break;
    case ATTEMPT_LIVE:
        adopt(engine, run, &found);
        break;
    case ATTEMPT_ENDED:
        conclude(engine, run, strbuf_text(&dir), &found);
        break;
    case ATTEMPT_LOST:
        engine->world->kill_strays(engine->ctx, strbuf_text(&dir));
        end(engine, run, "failed", "the hook vanished");
        break;
    }
out:
    strbuf_release(&dir);
}

/*
 * From the row of a run, whose `barrier` has the number of a hook that may be
 * under way. Completions since its start have made another one due, of which
 * the core knows nothing: for it, there is one barrier.
 */
void sync_restore(struct engine_run *run, uint32_t barrier)
{
    uint32_t every = run->plan->sync.every;
    if (barrier > 1 && every > 0) {
        uint32_t reached = run->stored.completions / every;
        run->sync.number = barrier - 1;
        run->sync.next = reached > run->sync.number ? reached : 0;
    }
}

/* A barrier begins: its number is to be durable before its hook is started. */
void sync_due(struct engine *engine, uint32_t run)
{
    struct engine_run *r = &engine->runs[run];
    r->sync.due = true;
    if (r->sync.number == 0) {
        struct sched_run view = sched_run(engine->sched, (struct run_id){run});
        r->sync.number = view.completions / r->plan->sync.every;
        r->sync.next = 0;
        rows_set_run(engine, run);
    }
}

void sync_start(struct engine *engine, uint32_t run)
{
    struct engine_run *r = &engine->runs[run];
    r->sync.due = false;
    if (!r->sync.running) {
        r->sync.running = true;
        r->sync.pid = 0;
        r->sync.stopped = false;
        r->sync.count++;
    }
    look(engine, run, true);
}

/* Whether this is the id of a hook that is under way, not of an earlier one. */
static bool is_present(const struct engine *engine, uint64_t id)
{
    uint32_t run = (uint32_t)id;
    return run < engine->run_count && engine->runs[run].sync.running &&
           id == sync_id(engine, run);
}

void sync_reported(struct engine *engine, const struct exec_report *report)
{
    uint32_t run = (uint32_t)report->id;
    if (!is_present(engine, report->id)) {
        return;
    }
    struct engine_sync *sync = &engine->runs[run].sync;
    switch (report->type) {
    case EXEC_STARTED:
        sync->pid = report->pid;
        sync->start_ticks = report->start_ticks;
        if (engine->runs[run].stored.cancelled) {
            sync_stop(engine, run);
        }
        return;
    case EXEC_FAILED:
        end(engine, run, "failed", "the hook could not be started");
        return;
    case EXEC_ENDED:
        crash_point("sync-ended");
        look(engine, run, false);
        return;
    }
}

void sync_stop(struct engine *engine, uint32_t run)
{
    struct engine_sync *sync = &engine->runs[run].sync;
    if (sync->running && sync->pid != 0 && !sync->stopped) {
        sync->stopped = true;
        engine->world->end(engine->ctx,
                           sync->pid,
                           sync->start_ticks,
                           EXEC_STOP);
    }
}

void sync_gone(struct engine *engine, uint64_t id)
{
    if (is_present(engine, id)) {
        look(engine, (uint32_t)id, false);
    }
}

void sync_respawn(struct engine *engine, uint32_t run)
{
    if (engine->runs[run].sync.running) {
        look(engine, run, true); /* asking for it twice runs it once */
    }
}
