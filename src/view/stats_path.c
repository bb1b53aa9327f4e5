/* SPDX-License-Identifier: MIT */
/*
 * From the session that ended last backwards. Each step asks what the claim of
 * a session came after, and goes on with the session that is the answer:
 *
 *   the task was ...     the claim came after ...
 *   parked, failed       a person has acted; before that, its own session
 *   refused before       its provider took it; before that, its own session
 *   backing off          the pause; before that, its own session
 *   sent back (rework)   the session that asked for changes
 *   ready for a while    the session whose end made room for it, if one ended
 *                        since it was ready; else an order or a limit
 *   just ready           the need that ended last
 *   new                  nothing: the run, or the fragment that brought it
 *
 * A step never goes to a session that was claimed later, so the walk ends.
 * The stretches are cut at one cursor, which only moves back: so they follow
 * one another without a gap, and their sum is the time that the run took.
 */
#include "view/stats_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdlib.h>

/* Less than this between being ready and being claimed is one pass. */
#define PASS_NS INT64_C(50000000)

struct walk {
    struct facts *facts;
    const struct chronicle *chronicle;
    int64_t at_ns; /* everything behind it is explained */
    uint32_t capacity;
    uint32_t *by_end; /* sessions by their end */
};

/* What the claim of a session came after. */
struct origin {
    enum facts_step step; /* of the time between */
    enum facts_link link;
    uint32_t session; /* CHRONICLE_NONE: the walk ends */
    int64_t since_ns; /* of KEPT: when it began */
};

/* Put a stretch before those that are there. */
static void add_segment(struct walk *walk, struct facts_segment segment)
{
    struct facts *facts = walk->facts;
    segment.end_ns = walk->at_ns;
    if (segment.start_ns > walk->at_ns) {
        segment.start_ns = walk->at_ns;
    }
    if (segment.start_ns == walk->at_ns && segment.step != FACTS_STEP_WORK) {
        return;
    }
    MEM_GROW(facts->path, facts->path_count, walk->capacity);
    facts->path[facts->path_count++] = segment;
    facts->path_ns[segment.step] += segment.end_ns - segment.start_ns;
    walk->at_ns = segment.start_ns;
}

static int compare_ends(const void *left, const void *right, void *ctx)
{
    const struct chronicle_session *sessions = ctx;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    if (sessions[a].ended_ns != sessions[b].ended_ns) {
        return sessions[a].ended_ns < sessions[b].ended_ns ? -1 : 1;
    }
    return (a > b) - (a < b);
}

static bool is_earlier(const struct walk *walk, uint32_t session, uint32_t than)
{
    return session != CHRONICLE_NONE && session < than &&
           walk->chronicle->sessions[session].ended_ns <=
               walk->chronicle->sessions[than].claimed_ns;
}

/* The session of a need that ended last before the claim, or CHRONICLE_NONE. */
static uint32_t last_need(const struct walk *walk, uint32_t ix)
{
    const struct chronicle *chronicle = walk->chronicle;
    const struct plan_task *task =
        &chronicle->plan->tasks[chronicle->sessions[ix].task];
    uint32_t best = CHRONICLE_NONE;
    for (uint32_t n = 0; n < task->need_count; n++) {
        uint32_t found = chronicle->tasks[task->needs[n]].last_session;
        while (found != CHRONICLE_NONE && !is_earlier(walk, found, ix)) {
            found = chronicle->sessions[found].before;
        }
        if (found != CHRONICLE_NONE &&
            (best == CHRONICLE_NONE ||
             chronicle->sessions[found].ended_ns >
                 chronicle->sessions[best].ended_ns)) {
            best = found;
        }
    }
    return best;
}

/* The newest session that ended in (after_ns, claim], or CHRONICLE_NONE. */
static uint32_t last_end(const struct walk *walk, uint32_t ix, int64_t after_ns)
{
    const struct chronicle *chronicle = walk->chronicle;
    int64_t claimed_ns = chronicle->sessions[ix].claimed_ns;
    uint32_t low = 0;
    uint32_t high = chronicle->session_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (chronicle->sessions[walk->by_end[middle]].ended_ns <= claimed_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low > 0) {
        uint32_t found = walk->by_end[--low];
        if (chronicle->sessions[found].ended_ns <= after_ns) {
            break;
        }
        if (found < ix) {
            return found;
        }
    }
    return CHRONICLE_NONE;
}

/* The session that asked for changes last before the claim. */
static uint32_t last_changes(const struct walk *walk, uint32_t ix)
{
    const struct chronicle *chronicle = walk->chronicle;
    uint32_t group = chronicle_group(chronicle, chronicle->sessions[ix].task);
    uint32_t found = ix;
    while (found > 0) {
        const struct chronicle_session *session = &chronicle->sessions[--found];
        if (is_earlier(walk, found, ix) && chronicle_is_bad(session->outcome) &&
            chronicle_group(chronicle, session->task) == group) {
            return found;
        }
    }
    return CHRONICLE_NONE;
}

/* Its own session before, if that had ended; else CHRONICLE_NONE. */
static uint32_t last_own(const struct walk *walk, uint32_t ix)
{
    uint32_t before = walk->chronicle->sessions[ix].before;
    return is_earlier(walk, before, ix) ? before : CHRONICLE_NONE;
}

/* It waited for what it needs, or for the end of a pause. */
static struct origin after_waiting(const struct walk *walk, uint32_t ix)
{
    const struct chronicle_session *sessions = walk->chronicle->sessions;
    uint32_t own = last_own(walk, ix);
    uint32_t need = last_need(walk, ix);
    bool is_own = own != CHRONICLE_NONE &&
                  (need == CHRONICLE_NONE ||
                   sessions[need].ended_ns <= sessions[own].ended_ns);
    if (is_own) {
        return (struct origin){
            .step = chronicle_is_bad(sessions[own].outcome) ? FACTS_STEP_BACKOFF
                                                            : FACTS_STEP_PASS,
            .link = FACTS_LINK_SELF,
            .session = own,
        };
    }
    return (struct origin){
        .step = FACTS_STEP_PASS,
        .link = need != CHRONICLE_NONE ? FACTS_LINK_NEED : FACTS_LINK_NONE,
        .session = need,
    };
}

/* What let a task out of a state other than ready. */
static struct origin
after_state(const struct walk *walk, uint32_t ix, enum task_state state)
{
    struct origin origin = {
        .step = FACTS_STEP_PASS,
        .link = FACTS_LINK_SELF,
        .session = last_own(walk, ix),
    };
    switch (state) {
    case TASK_WAITING:
        return after_waiting(walk, ix);
    case TASK_FAILED:
    case TASK_PARKED:
        origin.step = FACTS_STEP_PERSON;
        break;
    case TASK_DONE:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        origin.link = FACTS_LINK_REWORK;
        origin.session = last_changes(walk, ix);
        break;
    case TASK_READY:
    case TASK_STARTING: /* its session ended in the pass of the claim */
    case TASK_RUNNING:
        break;
    }
    if (origin.session == CHRONICLE_NONE) {
        origin.link = FACTS_LINK_NONE;
    }
    return origin;
}

/* Whether an operator has let something go between an end and a claim. */
static bool has_order(const struct walk *walk, uint32_t claim, int64_t after_ns)
{
    const struct chronicle_event *events = walk->chronicle->events;
    for (uint32_t ix = claim; ix > 0 && events[ix - 1].at_ns > after_ns; ix--) {
        enum chronicle_kind kind = events[ix - 1].kind;
        if (kind == CHRONICLE_LIMIT || kind == CHRONICLE_USAGE ||
            kind == CHRONICLE_OVERRIDE || kind == CHRONICLE_RESUME ||
            kind == CHRONICLE_RELEASE) {
            return true;
        }
    }
    return false;
}

/* It was ready since the event, and claimed later. */
static struct origin
after_ready(const struct walk *walk, uint32_t ix, uint32_t event_ix)
{
    const struct chronicle *chronicle = walk->chronicle;
    const struct chronicle_session *session = &chronicle->sessions[ix];
    const struct chronicle_event *event = &chronicle->events[event_ix];
    uint32_t own = last_own(walk, ix);
    bool waited = session->claimed_ns - event->at_ns > PASS_NS;
    if (own != CHRONICLE_NONE &&
        chronicle->sessions[own].outcome == CHRONICLE_REFUSED &&
        chronicle->sessions[own].ended_ns + PASS_NS > event->at_ns) {
        return (struct origin){
            .step = FACTS_STEP_PROVIDER,
            .link = FACTS_LINK_SELF,
            .session = own,
        };
    }
    uint32_t room = waited ? last_end(walk, ix, event->at_ns) : CHRONICLE_NONE;
    if (room != CHRONICLE_NONE) {
        int64_t ended_ns = chronicle->sessions[room].ended_ns;
        return (struct origin){
            .step = has_order(walk, session->claim_event, ended_ns)
                        ? FACTS_STEP_KEPT
                        : FACTS_STEP_PASS,
            .link = FACTS_LINK_SLOT,
            .session = room,
            .since_ns = ended_ns,
        };
    }
    struct origin origin = {.step = FACTS_STEP_PASS, .session = CHRONICLE_NONE};
    if (event->before != CHRONICLE_NONE) {
        origin = after_state(walk, ix, chronicle->events[event->before].to);
    }
    if (waited && origin.step == FACTS_STEP_PASS) {
        origin.step = FACTS_STEP_KEPT;
        origin.since_ns = event->at_ns;
    }
    return origin;
}

static struct origin origin_of(const struct walk *walk, uint32_t ix)
{
    const struct chronicle *chronicle = walk->chronicle;
    uint32_t claim = chronicle->sessions[ix].claim_event;
    uint32_t event = claim != CHRONICLE_NONE ? chronicle->events[claim].before
                                             : CHRONICLE_NONE;
    if (event == CHRONICLE_NONE) {
        return (struct origin){
            .step = FACTS_STEP_PASS,
            .session = CHRONICLE_NONE,
        };
    }
    return chronicle->events[event].to == TASK_READY
               ? after_ready(walk, ix, event)
               : after_state(walk, ix, chronicle->events[event].to);
}

/* The time before the first session of the path, to the submission. */
static void
add_beginning(struct walk *walk, uint32_t task, struct origin origin)
{
    const struct chronicle *chronicle = walk->chronicle;
    uint32_t first = chronicle->tasks[task].last_event;
    while (first != CHRONICLE_NONE &&
           chronicle->events[first].before != CHRONICLE_NONE) {
        first = chronicle->events[first].before;
    }
    int64_t there_ns =
        first != CHRONICLE_NONE ? chronicle->events[first].at_ns : 0;
    struct facts_segment segment = {
        .step = origin.step,
        .task = task,
        .session = CHRONICLE_NONE,
        .start_ns = there_ns < PASS_NS ? 0 : there_ns,
    };
    add_segment(walk, segment);
    segment.step = FACTS_STEP_ABSENT;
    segment.start_ns = 0;
    add_segment(walk, segment);
}

static void walk_back(struct walk *walk, uint32_t ix)
{
    const struct chronicle *chronicle = walk->chronicle;
    for (;;) {
        const struct chronicle_session *session = &chronicle->sessions[ix];
        struct origin origin = origin_of(walk, ix);
        bool goes_on = origin.session != CHRONICLE_NONE;
        INVARIANT(!goes_on || origin.session < ix);
        add_segment(walk,
                    (struct facts_segment){
                        .step = FACTS_STEP_WORK,
                        .link = origin.link,
                        .task = session->task,
                        .session = ix,
                        .start_ns = session->claimed_ns,
                    });
        if (!goes_on) {
            add_beginning(walk, session->task, origin);
            return;
        }
        struct facts_segment wait = {
            .step = origin.step,
            .task = session->task,
            .session = CHRONICLE_NONE,
            .start_ns = origin.since_ns,
        };
        if (origin.step == FACTS_STEP_KEPT) {
            add_segment(walk, wait);
            wait.step = FACTS_STEP_PASS;
        }
        wait.start_ns = chronicle->sessions[origin.session].ended_ns;
        add_segment(walk, wait);
        ix = origin.session;
    }
}

static void reverse(struct facts *facts)
{
    for (uint32_t ix = 0; ix < facts->path_count / 2; ix++) {
        uint32_t other = facts->path_count - 1 - ix;
        struct facts_segment segment = facts->path[ix];
        facts->path[ix] = facts->path[other];
        facts->path[other] = segment;
    }
}

void facts_walk(struct facts *facts)
{
    const struct chronicle *chronicle = facts->chronicle;
    uint32_t count = chronicle->session_count;
    struct walk walk = {
        .facts = facts,
        .chronicle = chronicle,
        .at_ns = chronicle->end_ns,
        .by_end = mem_zalloc(count, sizeof(walk.by_end[0])),
    };
    for (uint32_t ix = 0; ix < count; ix++) {
        walk.by_end[ix] = ix;
    }
    if (count > 1) {
        qsort_r(walk.by_end,
                count,
                sizeof(walk.by_end[0]),
                compare_ends,
                chronicle->sessions);
    }
    if (count > 0) {
        uint32_t last = walk.by_end[count - 1];
        add_segment(&walk,
                    (struct facts_segment){
                        .step = FACTS_STEP_TAIL,
                        .task = chronicle->sessions[last].task,
                        .session = CHRONICLE_NONE,
                        .start_ns = chronicle->sessions[last].ended_ns,
                    });
        walk_back(&walk, last);
    }
    mem_free(walk.by_end);
    reverse(facts);
}
