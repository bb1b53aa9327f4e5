/* SPDX-License-Identifier: MIT */
/*
 * Messages of operators to running sessions.
 *
 * They are stored with the task until it is done (see carry.h). A session gets
 * all of them as a file: with its order, and anew each time a message comes.
 * The worker replaces the whole file, so it does not matter how often it is
 * told, and a message that is durable but was not delivered is delivered when
 * the session is reported as running again. Before it is durable, no session
 * gets it.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/carry.h"

#include <string.h>

enum { MESSAGE_BYTES_MAX = 16 << 10 };

/* Why a task cannot get a message now. */
static enum err refuse(const struct engine *engine,
                       const char *id,
                       struct task_id task,
                       struct diag *diag)
{
    struct sched_task view = sched_task(engine->sched, task);
    if (view.state == TASK_PARKED) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "%s is not running, it is parked: use sluice answer "
                        "%s TEXT",
                        id,
                        id);
    }
    bool over = view.state == TASK_DONE || view.state == TASK_FAILED ||
                view.state == TASK_SKIPPED || view.state == TASK_CANCELLED;
    return diag_set(diag,
                    ERR_CONFLICT,
                    "%s is not running, it is %s%s",
                    id,
                    sched_state_name(view.state),
                    over ? "" : ": wait until it runs");
}

enum err messages_tell(struct engine *engine,
                       uint32_t run,
                       uint32_t task,
                       const char *text,
                       struct diag *diag)
{
    struct task_id id = engine_core_task(engine, run, task);
    struct sched_task view = sched_task(engine->sched, id);
    const char *name = engine->runs[run].plan->tasks[task].id;
    const struct session *session =
        view.state == TASK_STARTING || view.state == TASK_RUNNING
            ? session_find(engine, view.token)
            : NULL;
    if (text[0] == '\0') {
        return diag_set(diag, ERR_INVALID, "empty message");
    }
    if (strlen(text) > MESSAGE_BYTES_MAX) {
        return diag_set(diag,
                        ERR_LIMIT,
                        "the message is longer than 16 KiB: write it to a "
                        "file, and tell its name");
    }
    if (session == NULL) {
        return refuse(engine, name, id, diag);
    }
    struct engine_past *told = runs_own_past(&engine->runs[run].tasks[task]);
    if (carry_tell(&told->carry, session->token, text) != ERR_OK) {
        return diag_set(diag,
                        ERR_LIMIT,
                        "%s has got too many messages: 100, or 64 KiB",
                        name);
    }
    rows_set_task(engine, run, task);
    struct engine_todo *todo = &engine->todo;
    MEM_GROW(todo->tells, todo->tell_count, todo->tell_capacity);
    todo->tells[todo->tell_count++] = session->token;
    return ERR_OK;
}

uint32_t messages_add(struct strbuf *out,
                      const struct engine *engine,
                      const struct session *session)
{
    const struct engine_run *run = &engine->runs[session->run];
    struct task_id next = engine_core_task(engine, session->run, session->task);
    uint32_t fresh = 0;
    for (; next.v != ID_NONE; next = sched_session_next(engine->sched, next)) {
        uint32_t ix = load_plan_task(run->loaded, next);
        struct carry carry = carry_read(runs_past(&run->tasks[ix])->carry);
        for (uint32_t n = 0; n < carry.message_count; n++) {
            uint64_t token;
            strbuf_addf(out, "%s\n", carry_message(&carry, n, &token));
            fresh += token == session->token;
        }
        carry_release(&carry);
    }
    return fresh;
}

/* Whether a message for the session waits for a batch. */
static bool waits(const struct engine_todo *todo, uint64_t token)
{
    bool found = false;
    for (uint32_t ix = 0; ix < todo->tell_count && !found; ix++) {
        found = todo->tells[ix] == token;
    }
    return found;
}

void messages_deliver(struct engine *engine, const struct session *session)
{
    if (session->phase != SESSION_RUNNING ||
        waits(&engine->todo, session->token) ||
        waits(&engine->written_todo, session->token)) {
        return; /* the report of its start, or the batch, calls this again */
    }
    struct strbuf text = {0};
    if (messages_add(&text, engine, session) > 0) {
        crash_point("before-tell");
        engine->world->tell(engine->ctx, session->token, strbuf_text(&text));
        crash_point("told");
    }
    strbuf_release(&text);
}

void messages_written(struct engine *engine)
{
    struct engine_todo *todo = &engine->written_todo;
    while (todo->tell_count > 0) {
        uint64_t token = todo->tells[--todo->tell_count];
        const struct session *session = session_find(engine, token);
        if (session != NULL) {
            messages_deliver(engine, session);
        }
    }
}
