/* SPDX-License-Identifier: MIT */
/*
 * Claims ahead of free slots.
 *
 * A claim is on disk before its session starts. If sessions take less time than
 * that, slots would mostly wait for the disk. So while the sessions of a run
 * end within a millisecond of each other, on average, the core may claim some
 * more tasks than there are slots. Such a session is held: it has the slot of
 * another session, and starts when that one has ended, without another write.
 * As many claims and exits then share a write.
 *
 * Nothing else knows of it: sessions that run are never more than the limit,
 * and each slot has one at a time, in the order of their tokens. Only plain
 * commands are claimed ahead, since only they can be so short. Any request, any
 * other change of a limit, any session that fails, and any that is held for too
 * long end it: all that are held are given back, and their tasks are ready
 * again. So are claims that are being written meanwhile.
 *
 * A scheduler that finds sessions of one slot in the store starts only the
 * first of them, and gives back the others.
 */
#include "engine/engine_internal.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"

/* Limits of every run: see plan.h. By default, there may be as many issues as
 * sessions, and a task without an issue is one. */
enum { SESSIONS = 0, ISSUES = 1 };

/* How many sessions a run may claim ahead, and how many of them suffice for a
 * write to wait. */
enum { AHEAD = 16, AHEAD_ENOUGH = AHEAD / 2 };

/* The average time between two ends from which on, and up to which, a run
 * claims ahead; that of a run of which nothing is known. */
#define BEGIN_NS (1 * MS_NS)
#define LAST_NS (2 * MS_NS)
#define SLOW_NS (1 * SECOND_NS)
enum { WEIGHT = 8 }; /* an end counts for one part in so many */

/* Longest time that a session is held. */
#define HELD_NS (100 * MS_NS)

void ahead_note_end(struct engine *engine, uint32_t run)
{
    struct engine_pace *pace = &engine->runs[run].pace;
    int64_t now_ns = engine_now(engine);
    int64_t since_ns = now_ns - pace->ended_ns;
    INVARIANT(since_ns >= 0);
    if (pace->ended_ns == 0 || since_ns > SLOW_NS) {
        pace->interval_ns = SLOW_NS;
    } else {
        pace->interval_ns += (since_ns - pace->interval_ns) / WEIGHT;
    }
    pace->ended_ns = now_ns;
}

void ahead_over(struct engine *engine)
{
    engine->ahead_over = true;
    for (uint32_t run = 0; run < engine->run_count; run++) {
        engine->runs[run].pace.interval_ns = SLOW_NS;
    }
}

/* Whether the sessions of a run can be short, and depend on its slots alone. */
static bool is_plain(const struct engine *engine, uint32_t run)
{
    const struct plan *plan = engine->runs[run].plan;
    return plan->agent_count == 0 && plan->repo_count == 0 &&
           plan->sync.every == 0 && !engine->has_workers;
}

/* Whether the run may claim ahead, by what has happened until now. */
static bool is_brisk(const struct engine *engine, uint32_t run)
{
    const struct engine_pace *pace = &engine->runs[run].pace;
    int64_t most_ns = pace->ahead ? LAST_NS : BEGIN_NS;
    if (crash_fault("brisk") != 0) {
        most_ns = SLOW_NS; /* builds for tests are not that fast */
    }
    return pace->ended_ns != 0 && pace->interval_ns < most_ns &&
           !engine->draining && is_plain(engine, run);
}

/* Let a limit be exceeded by what is held, or no more. */
static void set_ahead(struct engine *engine, struct limit_id limit, bool ahead)
{
    enum err err = engine_apply(engine,
                                (struct sched_event){
                                    .type = EVENT_AHEAD,
                                    .limit = limit,
                                    .ahead = ahead ? AHEAD : 0,
                                });
    INVARIANT(err == ERR_OK);
}

void ahead_set_limits(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->run_count; ix++) {
        struct engine_run *run = &engine->runs[ix];
        bool ahead = is_brisk(engine, ix);
        if (ahead == run->pace.ahead) {
            continue;
        }
        run->pace.ahead = ahead;
        struct limit_id sessions = load_limit(run->loaded, SESSIONS);
        struct limit_id issues = load_limit(run->loaded, ISSUES);
        bool same = sched_limit_max(engine->sched, issues) ==
                    sched_limit_max(engine->sched, sessions);
        set_ahead(engine, sessions, ahead);
        set_ahead(engine, issues, ahead && same);
    }
}

uint32_t ahead_slot(const struct engine *engine, uint32_t run)
{
    const struct engine_run *r = &engine->runs[run];
    if (!r->pace.ahead) {
        return 0;
    }
    uint32_t last = 0;
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        uint32_t slot = engine->sessions[ix].slot;
        last = slot > last ? slot : last;
    }
    uint32_t *counts = mem_zalloc(last + 1, sizeof(counts[0]));
    int64_t slots = 0; /* that the run uses */
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        const struct session *session = &engine->sessions[ix];
        if (session->run == run && session->slot > 0) {
            slots += counts[session->slot]++ == 0 ? 1 : 0;
        }
    }
    uint32_t best = 0;
    for (uint32_t slot = 1; slot <= last; slot++) {
        if (counts[slot] > 0 && (best == 0 || counts[slot] < counts[best])) {
            best = slot;
        }
    }
    mem_free(counts);
    int64_t max =
        sched_limit_max(engine->sched, load_limit(r->loaded, SESSIONS));
    return slots >= max ? best : 0;
}

/* Whether its slot has another session that comes first. */
static bool waits(const struct engine *engine, const struct session *session)
{
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        const struct session *other = &engine->sessions[ix];
        if (other->slot == session->slot && other->token < session->token) {
            return session->slot != 0;
        }
    }
    return false;
}

/* Have it never start: its task will be ready again. */
static void give_back(struct engine *engine, struct session *session)
{
    INVARIANT(session->phase == SESSION_STARTING && !session->asked);
    crash_point("before-give-back");
    if (session->want == WORK_RUN) {
        session->want = WORK_STOP;
    }
    session->held_ns = 0;
    session_assign(engine, session);
}

void ahead_start(struct engine *engine, struct session *session)
{
    INVARIANT(session->phase == SESSION_STARTING && !session->asked);
    INVARIANT(session->held_ns == 0);
    if (session->want != WORK_RUN || !waits(engine, session)) {
        session_assign(engine, session);
    } else if (is_brisk(engine, session->run)) {
        session->held_ns = engine_now(engine);
    } else {
        give_back(engine, session);
    }
}

/* Return a held session that must not be held any more, or NULL. */
static struct session *find_due(struct engine *engine)
{
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        struct session *session = &engine->sessions[ix];
        if (session->held_ns != 0 &&
            (engine->ahead_over || session->want != WORK_RUN ||
             !waits(engine, session))) {
            return session;
        }
    }
    return NULL;
}

int64_t ahead_next_ns(const struct engine *engine)
{
    int64_t next_ns = SCHED_NEVER;
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        int64_t held_ns = engine->sessions[ix].held_ns;
        if (held_ns != 0 && held_ns + HELD_NS < next_ns) {
            next_ns = held_ns + HELD_NS;
        }
    }
    return next_ns;
}

void ahead_pass(struct engine *engine)
{
    if (ahead_next_ns(engine) <= engine_now(engine)) {
        ahead_over(engine);
    }
    struct session *session;
    while ((session = find_due(engine)) != NULL) {
        if (engine->ahead_over || session->want != WORK_RUN) {
            give_back(engine, session);
        } else {
            session->held_ns = 0;
            crash_point("before-held-start");
            session_assign(engine, session);
        }
    }
    engine->ahead_over = false;
}

bool ahead_is_enough(const struct engine *engine)
{
    uint32_t held = 0;
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        held += engine->sessions[ix].held_ns != 0 ? 1 : 0;
    }
    return held >= AHEAD_ENOUGH;
}
