/* SPDX-License-Identifier: MIT */
/*
 * Programs of a plan that are no sessions: the hook of a barrier, the meters
 * of a usage monitor, the hook of an event.
 *
 * Such a program is started through the same shim as a session, so it has a
 * directory, a log, a time limit and a record of its end; but it has no task
 * and no row. What became of it is read from its directory: it does not matter
 * which process has started it, and it runs at most once for a directory.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/verdict.h"
#include "store/sum.h"

#include <stdio.h>
#include <string.h>

/* When to look again at a directory in which a shim is about to begin. */
#define RECHECK_NS (INT64_C(20) * 1000000)

/* Ids of programs have the highest bit; tokens of sessions never do. */
#define ID_BIT (UINT64_C(1) << 63)

struct program *program_new(struct engine *engine,
                            const struct program_ops *ops,
                            uint32_t run,
                            uint32_t part)
{
    struct program *program = mem_zalloc(1, sizeof(*program));
    program->ops = ops;
    program->run = run;
    program->part = part;
    program->recheck_ns = SCHED_NEVER;
    engine->programs = mem_resize(engine->programs,
                                  engine->program_count + 1,
                                  sizeof(struct program *));
    engine->programs[engine->program_count++] = program;
    return program;
}

/* The last one takes its place: who walks the list while programs end walks
 * from its end. */
void program_free(struct engine *engine, struct program *program)
{
    for (uint32_t ix = 0; ix < engine->program_count; ix++) {
        if (engine->programs[ix] == program) {
            engine->programs[ix] = engine->programs[--engine->program_count];
            mem_free(program);
            return;
        }
    }
}

bool program_is_id(uint64_t id)
{
    return (id & ID_BIT) != 0;
}

/* The program that is under way with this id, or NULL. */
static struct program *find(const struct engine *engine, uint64_t id)
{
    for (uint32_t ix = 0; ix < engine->program_count; ix++) {
        if (engine->programs[ix]->id == id) {
            return engine->programs[ix];
        }
    }
    return NULL;
}

/* The id of its next call, the same in every scheduler: it is told to the shim
 * when the program is to end. */
static uint64_t id_of(struct engine *engine, const struct program *program)
{
    struct strbuf dir = {0};
    program->ops->add_dir(&dir, engine, program);
    uint64_t sum = sum_add(SUM_START, dir.text, dir.len);
    strbuf_release(&dir);
    return ID_BIT | sum;
}

/* Directories are numbered in a run; another run with the same id began at
 * another time. What a hook is told has a time in it, too. */
static void set_nonce(const struct engine *engine, struct program *program)
{
    struct program_call call = program->ops->call(engine, program);
    uint64_t source = call.input != NULL
                          ? sum_add(SUM_START, call.input, strlen(call.input))
                          : (uint64_t)engine->runs[program->run].created_ns;
    (void)snprintf(program->nonce,
                   sizeof(program->nonce),
                   "%016llx%016llx",
                   (unsigned long long)source,
                   (unsigned long long)program->id);
}

void program_call(struct engine *engine, struct program *program)
{
    INVARIANT(program->id == 0);
    program->due = true;
    engine->changed = true;
}

/* It is over: well, or as `error` says. */
static void end(struct engine *engine,
                struct program *program,
                const char *dir,
                const char *error)
{
    program->id = 0;
    program->due = false;
    program->recheck_ns = SCHED_NEVER;
    engine->changed = true;
    program->ops->ended(engine, program, dir, error);
}

static void conclude(struct engine *engine,
                     struct program *program,
                     const char *dir,
                     const struct attempt_found *found)
{
    struct strbuf reason = {0};
    struct attempt_result none = {0};
    struct verdict verdict = verdict_of(found, &none, NULL, &reason);
    bool good = verdict.outcome == OUTCOME_DONE;
    /* Maybe by a process before this one. */
    program->stopped =
        program->stopped ||
        (found->state == ATTEMPT_ENDED && found->exit.cause == ATTEMPT_STOPPED);
    end(engine, program, dir, good ? NULL : strbuf_text(&reason));
    strbuf_release(&reason);
}

static void
start(struct engine *engine, struct program *program, const char *dir)
{
    struct diag diag = {0};
    program->ours = true;
    crash_point("before-program");
    if (request_start_program(engine, program, dir, &diag) != ERR_OK) {
        end(engine, program, dir, diag.text);
    }
    crash_point("program-asked");
}

/* A shim has it, maybe of another process: wait for its end. */
static void adopt(struct engine *engine,
                  struct program *program,
                  const struct attempt_found *found)
{
    program->ours = true;
    program->pid = found->pid;
    program->start_ticks = found->start_ticks;
    enum err err = engine->world->watch(engine->ctx,
                                        program->id,
                                        found->pid,
                                        found->start_ticks);
    if (err != ERR_OK) { /* it is gone by now, or cannot be watched */
        program->recheck_ns = engine_now(engine) + RECHECK_NS;
    }
    if (!program->ops->is_wanted(engine, program)) {
        program_stop(engine, program);
    }
}

/* Nothing is in its directory. `may_start`: it is not known to have been
 * tried. */
static void look_never(struct engine *engine,
                       struct program *program,
                       const char *dir,
                       bool may_start)
{
    /* It has run, or runs, and its directory was removed. Nothing of it goes
     * on beside the next call. */
    if (program->begun ||
        (program->stored && engine->world->has_strays(engine->ctx, dir))) {
        engine->world->kill_strays(engine->ctx, dir);
        end(engine, program, dir, "the program vanished");
    } else if (may_start && program->ops->is_wanted(engine, program)) {
        start(engine, program, dir);
    } else {
        end(engine, program, dir, "the program could not be started");
    }
}

/* Look into its directory. */
static void look(struct engine *engine, struct program *program, bool may_start)
{
    struct strbuf dir = {0};
    struct attempt_found found;
    struct diag diag = {0};
    program->ops->add_dir(&dir, engine, program);
    enum err err = engine->world->inspect(engine->ctx,
                                          strbuf_text(&dir),
                                          engine->boot_id,
                                          &found,
                                          &diag);
    if (err == ERR_UNAVAILABLE) {
        found.state = ATTEMPT_STARTING; /* it may run: nobody knows now */
    } else if (err != ERR_OK) {
        end(engine, program, strbuf_text(&dir), diag.text);
        goto out;
    }
    /* A directory of another store, or of a time before an older copy of this
     * one was put back. (Records of earlier versions have no nonce.) */
    if (found.named && found.nonce[0] != '\0' &&
        strcmp(found.nonce, program->nonce) != 0) {
        engine->world->kill_strays(engine->ctx, strbuf_text(&dir));
        err = engine->world->set_aside(engine->ctx, strbuf_text(&dir), &diag);
        found.state = err == ERR_OK ? ATTEMPT_NEVER : ATTEMPT_STARTING;
    }
    switch (found.state) {
    case ATTEMPT_NEVER:
        look_never(engine, program, strbuf_text(&dir), may_start);
        break;
    case ATTEMPT_STARTING:
        program->recheck_ns = engine_now(engine) + RECHECK_NS;
        break;
    case ATTEMPT_LIVE:
        program->begun = true;
        adopt(engine, program, &found);
        break;
    case ATTEMPT_ENDED:
        conclude(engine, program, strbuf_text(&dir), &found);
        break;
    case ATTEMPT_LOST:
        engine->world->kill_strays(engine->ctx, strbuf_text(&dir));
        end(engine, program, strbuf_text(&dir), "the program vanished");
        break;
    }
out:
    strbuf_release(&dir);
}

void program_start_due(struct engine *engine)
{
    for (uint32_t ix = engine->program_count; ix > 0; ix--) {
        struct program *program = engine->programs[ix - 1];
        if (!program->ops->is_wanted(engine, program)) {
            program_stop(engine, program);
        }
        if (program->due && program->id == 0) {
            program->due = false;
            program->id = id_of(engine, program);
            set_nonce(engine, program);
            program->pid = 0;
            program->stopped = false;
            program->ours = false;
            program->begun = false;
            look(engine, program, true);
        }
    }
}

bool program_is_due(const struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->program_count; ix++) {
        if (engine->programs[ix]->due) {
            return true;
        }
    }
    return false;
}

int64_t program_next_ns(const struct engine *engine)
{
    int64_t next_ns = SCHED_NEVER;
    for (uint32_t ix = 0; ix < engine->program_count; ix++) {
        int64_t at_ns = engine->programs[ix]->recheck_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

void program_recheck(struct engine *engine)
{
    for (uint32_t ix = engine->program_count; ix > 0; ix--) {
        struct program *program = engine->programs[ix - 1];
        if (program->recheck_ns <= engine->now_ns) {
            program->recheck_ns = SCHED_NEVER;
            look(engine, program, true);
        }
    }
}

void program_stop(struct engine *engine, struct program *program)
{
    if (program->id != 0 && program->pid != 0 && !program->stopped) {
        enum err err = engine->world->end(engine->ctx,
                                          program->pid,
                                          program->start_ticks,
                                          program->id,
                                          EXEC_STOP);
        program->stopped = err == ERR_OK || err == ERR_NOT_FOUND;
    }
}

void program_reported(struct engine *engine, const struct exec_report *report)
{
    struct program *program = find(engine, report->id);
    if (program == NULL) {
        return; /* of an earlier call */
    }
    switch (report->type) {
    case EXEC_STARTED:
        program->pid = report->pid;
        program->start_ticks = report->start_ticks;
        if (!program->ops->is_wanted(engine, program)) {
            program_stop(engine, program);
        }
        return;
    case EXEC_FAILED: {
        struct strbuf dir = {0};
        program->ops->add_dir(&dir, engine, program);
        end(engine,
            program,
            strbuf_text(&dir),
            "the program could not be started");
        strbuf_release(&dir);
        return;
    }
    case EXEC_ENDED:
        crash_point("program-ended");
        program->begun = program->begun || report->error == 0;
        look(engine, program, false);
        return;
    }
}

void program_gone(struct engine *engine, uint64_t id)
{
    struct program *program = find(engine, id);
    if (program != NULL) {
        look(engine, program, false);
    }
}

void program_respawn(struct engine *engine)
{
    for (uint32_t ix = engine->program_count; ix > 0; ix--) {
        struct program *program = engine->programs[ix - 1];
        if (program->id != 0) {
            look(engine, program, true); /* asking twice runs it once */
        }
    }
}
