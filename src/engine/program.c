/* SPDX-License-Identifier: MIT */
/*
 * Programs of a plan other than sessions: sync hooks, programs that print usage
 * meters, event hooks.
 *
 * The worker treats such a program as a session: it has a directory, a log, a
 * time limit and an exit record; but it has no task and no row. Several
 * schedulers may assign the same call, one after the other: it runs once.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "exec/verdict.h"
#include "store/sum.h"

#include <stdio.h>
#include <string.h>

/* Ids of programs have the highest bit; fencing tokens never do. */
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
    engine->programs = mem_resize(engine->programs,
                                  (size_t)engine->program_count + 1,
                                  sizeof(void *));
    engine->programs[engine->program_count++] = program;
    return program;
}

/* Check the invariants of a program between two calls. */
static void check(const struct engine *engine, const struct program *program)
{
    INVARIANT(program->id == 0 || program_is_id(program->id));
    INVARIANT(program->id == 0 || !program->due);
    INVARIANT(program->run == STORE_NONE || program->run < engine->run_count);
    INVARIANT(program->ops->task[0] == '.');
}

/* The last program takes its place, so a caller that walks the list while
 * programs exit must walk backwards. */
void program_free(struct engine *engine, struct program *program)
{
    INVARIANT(program->id == 0); /* the worker does not have it */
    uint32_t ix = 0;
    while (engine->programs[ix] != program) {
        ix++;
        INVARIANT(ix < engine->program_count);
    }
    engine->programs[ix] = engine->programs[--engine->program_count];
    mem_free(program);
}

bool program_is_id(uint64_t id)
{
    return (id & ID_BIT) != 0;
}

/* The program whose current call has this id, or NULL. */
static struct program *find(const struct engine *engine, uint64_t id)
{
    for (uint32_t ix = 0; ix < engine->program_count; ix++) {
        if (engine->programs[ix]->id == id) {
            return engine->programs[ix];
        }
    }
    return NULL;
}

/* The current call; its name is built in *name. */
static struct work_id work_id_of(const struct engine *engine,
                                 const struct program *program,
                                 struct strbuf *name)
{
    strbuf_clear(name);
    program->ops->add_name(name, engine, program);
    return (struct work_id){
        .token = program->id,
        .nonce = program->nonce,
        .run = program->ops->call(engine, program).run,
        .task = program->ops->task,
        .name = strbuf_text(name),
    };
}

/*
 * Set the id and the nonce of its next call, the same in every scheduler. Calls
 * are numbered in a run; another run with the same id has another creation
 * time, and an event hook's input contains a time.
 */
static void set_id(const struct engine *engine, struct program *program)
{
    INVARIANT(program->id == 0);
    struct strbuf text = {0};
    struct work_id id = work_id_of(engine, program, &text);
    struct program_call call = program->ops->call(engine, program);
    uint64_t source = call.input != NULL
                          ? sum_add(SUM_START, call.input, strlen(call.input))
                          : (uint64_t)engine->runs[program->run].created_ns;
    uint64_t sum = sum_add(SUM_START, id.run, strlen(id.run));
    sum = sum_add(sum, id.task, strlen(id.task));
    program->id = ID_BIT | sum_add(sum, id.name, strlen(id.name));
    INVARIANT(find(engine, program->id) == program);
    strbuf_release(&text);
    (void)snprintf(program->nonce,
                   sizeof(program->nonce),
                   "%016llx%016llx",
                   (unsigned long long)source,
                   (unsigned long long)program->id);
}

void program_call(struct engine *engine, struct program *program)
{
    INVARIANT(program->id == 0 && !program->due);
    program->due = true;
    engine->changed = true;
}

/* It has exited: with success, or with `error`. */
static void end(struct engine *engine,
                struct program *program,
                const struct work_report *report,
                const char *error)
{
    check(engine, program);
    INVARIANT(program->id == report->token);
    struct strbuf name = {0};
    struct work_id id = work_id_of(engine, program, &name);
    /* ended() may free the program, and the hook that owns its strings. */
    char *run = mem_strdup(id.run);
    id.run = run;
    id.nonce = "";
    program->id = 0;
    program->due = false;
    engine->changed = true;
    program->ops->ended(engine, program, &id, report, error);
    mem_free(run);
    strbuf_release(&name);
}

static void conclude(struct engine *engine,
                     struct program *program,
                     const struct work_report *report)
{
    INVARIANT(report->type == WORK_ENDED);
    struct strbuf reason = {0};
    struct attempt_found found = {.state = ATTEMPT_ENDED};
    found.exit = report->exit;
    struct verdict verdict = verdict_of(&found, report->result, NULL, &reason);
    const char *error = NULL;
    if (verdict.outcome != OUTCOME_DONE) {
        error = strbuf_text(&reason);
    } else if (report->output == NULL) {
        error = report->text; /* NULL for a program that prints nothing */
    }
    /* An earlier process may have stopped it. */
    program->stopped =
        program->stopped || report->exit.cause == ATTEMPT_STOPPED;
    end(engine, program, report, error);
    strbuf_release(&reason);
}

static void assign(struct engine *engine, struct program *program)
{
    struct strbuf name = {0};
    struct work_id id = work_id_of(engine, program, &name);
    INVARIANT(id.name[0] != '\0' && program_is_id(id.token));
    crash_point("before-program");
    assign_program(engine, program, &id);
    crash_point("program-asked");
    strbuf_release(&name);
}

void program_start_due(struct engine *engine)
{
    for (uint32_t ix = engine->program_count; ix > 0; ix--) {
        struct program *program = engine->programs[ix - 1];
        check(engine, program);
        if (!program->ops->is_wanted(engine, program)) {
            program_stop(engine, program);
        }
        if (program->due) { /* then it does not run: see check() */
            program->due = false;
            set_id(engine, program);
            program->stopped = false;
            program->ours = false;
            assign(engine, program);
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

void program_stop(struct engine *engine, struct program *program)
{
    if (program->id != 0 && !program->stopped) {
        program->stopped = true;
        engine->world->want(engine->ctx, program->id, WORK_STOP);
    }
}

void program_reported(struct engine *engine, const struct work_report *report)
{
    struct program *program = find(engine, report->token);
    if (program == NULL) {
        return; /* of an earlier call */
    }
    check(engine, program);
    switch (report->type) {
    case WORK_STARTED:
        program->ours = true;
        if (!program->ops->is_wanted(engine, program)) {
            program_stop(engine, program);
        }
        return;
    case WORK_ENDED:
        crash_point("program-ended");
        conclude(engine, program, report);
        return;
    case WORK_REFUSED:
        end(engine, program, report, "the program could not be started");
        return;
    case WORK_LOST:
        end(engine, program, report, "the program was lost");
        return;
    case WORK_UNKNOWN: /* assign it again */
        program->id = 0;
        program->due = true;
        engine->changed = true;
        return;
    }
}
