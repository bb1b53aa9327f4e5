/* SPDX-License-Identifier: MIT */
/*
 * Critical path of a run, walked backwards from the session that finished
 * last. Each step finds the cause of the session's claim and continues with
 * the session that is the cause:
 *
 *   the task was ...     the claim came after ...
 *   parked, failed       an operator action; before that, its own session
 *   refused before       its provider accepted; before that, its own session
 *   backing off          the pause; before that, its own session
 *   sent back (rework)   the session that requested changes
 *   ready for a while    the session that freed capacity, if one finished
 *                        since it was ready; else a request or a limit
 *   just ready           the need that finished last
 *   new                  the run, or the fragment that added it: no session
 *
 * A step never goes to a session that was claimed later, so the walk stops.
 * The segments are cut at one cursor, which only moves back: so they are
 * contiguous, and their sum is the time that the run took.
 */
#include "view/stats_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdlib.h>

/* A shorter time between ready and claim counts as one pass. */
#define PASS_NS INT64_C(50000000)

struct walk {
    struct stats *stats;
    const struct run_history *history;
    int64_t at_ns; /* the time after it is explained */
    uint32_t capacity;
    uint32_t *by_end; /* sessions by end time */
};

/* Cause of the claim of a session. */
struct origin {
    enum stats_step step; /* of the time between cause and claim */
    enum stats_link link;
    uint32_t session; /* HISTORY_NONE: the walk is finished */
    int64_t since_ns; /* for KEPT: start of that time */
};

/* Prepend a segment to the path. */
static void add_segment(struct walk *walk, struct stats_segment segment)
{
    struct stats *stats = walk->stats;
    segment.end_ns = walk->at_ns;
    if (segment.start_ns > walk->at_ns) {
        segment.start_ns = walk->at_ns;
    }
    if (segment.start_ns == walk->at_ns && segment.step != STATS_STEP_WORK) {
        return;
    }
    MEM_GROW(stats->path, stats->path_count, walk->capacity);
    stats->path[stats->path_count++] = segment;
    stats->path_ns[segment.step] += segment.end_ns - segment.start_ns;
    walk->at_ns = segment.start_ns;
}

static int compare_ends(const void *left, const void *right, void *ctx)
{
    const struct run_history_session *sessions = ctx;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    if (sessions[a].ended_ns != sessions[b].ended_ns) {
        return sessions[a].ended_ns < sessions[b].ended_ns ? -1 : 1;
    }
    return (a > b) - (a < b);
}

static bool is_earlier(const struct walk *walk, uint32_t session, uint32_t than)
{
    return session != HISTORY_NONE && session < than &&
           walk->history->sessions[session].ended_ns <=
               walk->history->sessions[than].claimed_ns;
}

/* Session of the need that finished last before the claim, or HISTORY_NONE. */
static uint32_t last_need(const struct walk *walk, uint32_t ix)
{
    const struct run_history *history = walk->history;
    const struct plan_task *task =
        &history->plan->tasks[history->sessions[ix].task];
    uint32_t best = HISTORY_NONE;
    for (uint32_t n = 0; n < task->need_count; n++) {
        uint32_t found = history->tasks[task->needs[n]].last_session;
        while (found != HISTORY_NONE && !is_earlier(walk, found, ix)) {
            found = history->sessions[found].before;
        }
        if (found != HISTORY_NONE &&
            (best == HISTORY_NONE || history->sessions[found].ended_ns >
                                         history->sessions[best].ended_ns)) {
            best = found;
        }
    }
    return best;
}

/* Newest session that finished in (after_ns, claim], or HISTORY_NONE. */
static uint32_t last_end(const struct walk *walk, uint32_t ix, int64_t after_ns)
{
    const struct run_history *history = walk->history;
    int64_t claimed_ns = history->sessions[ix].claimed_ns;
    uint32_t low = 0;
    uint32_t high = history->session_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (history->sessions[walk->by_end[middle]].ended_ns <= claimed_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low > 0) {
        uint32_t found = walk->by_end[--low];
        if (history->sessions[found].ended_ns <= after_ns) {
            break;
        }
        if (found < ix) {
            return found;
        }
    }
    return HISTORY_NONE;
}

/* Newest session before the claim that requested changes. */
static uint32_t last_changes(const struct walk *walk, uint32_t ix)
{
    const struct run_history *history = walk->history;
    uint32_t group = run_history_group(history, history->sessions[ix].task);
    uint32_t found = ix;
    while (found > 0) {
        const struct run_history_session *session = &history->sessions[--found];
        if (is_earlier(walk, found, ix) &&
            run_history_is_bad(session->outcome) &&
            run_history_group(history, session->task) == group) {
            return found;
        }
    }
    return HISTORY_NONE;
}

/* Previous session of the task if it was finished, else HISTORY_NONE. */
static uint32_t last_own(const struct walk *walk, uint32_t ix)
{
    uint32_t before = walk->history->sessions[ix].before;
    return is_earlier(walk, before, ix) ? before : HISTORY_NONE;
}

/* Cause of a claim after waiting for needs or a back-off. */
static struct origin after_waiting(const struct walk *walk, uint32_t ix)
{
    const struct run_history_session *sessions = walk->history->sessions;
    uint32_t own = last_own(walk, ix);
    uint32_t need = last_need(walk, ix);
    bool is_own = own != HISTORY_NONE &&
                  (need == HISTORY_NONE ||
                   sessions[need].ended_ns <= sessions[own].ended_ns);
    if (is_own) {
        return (struct origin){
            .step = run_history_is_bad(sessions[own].outcome)
                        ? STATS_STEP_BACKOFF
                        : STATS_STEP_PASS,
            .link = STATS_LINK_SELF,
            .session = own,
        };
    }
    return (struct origin){
        .step = STATS_STEP_PASS,
        .link = need != HISTORY_NONE ? STATS_LINK_NEED : STATS_LINK_NONE,
        .session = need,
    };
}

/* Cause of a claim from a state other than ready. */
static struct origin
after_state(const struct walk *walk, uint32_t ix, enum task_state state)
{
    struct origin origin = {
        .step = STATS_STEP_PASS,
        .link = STATS_LINK_SELF,
        .session = last_own(walk, ix),
    };
    switch (state) {
    case TASK_WAITING:
        return after_waiting(walk, ix);
    case TASK_FAILED:
    case TASK_PARKED:
        origin.step = STATS_STEP_PERSON;
        break;
    case TASK_DONE:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        origin.link = STATS_LINK_REWORK;
        origin.session = last_changes(walk, ix);
        break;
    case TASK_READY:
    case TASK_STARTING: /* its session finished in the pass of the claim */
    case TASK_RUNNING:
        break;
    }
    if (origin.session == HISTORY_NONE) {
        origin.link = STATS_LINK_NONE;
    }
    return origin;
}

/* Whether a request or monitor freed tasks between a session and a claim. */
static bool
has_request(const struct walk *walk, uint32_t claim, int64_t after_ns)
{
    const struct run_history_event *events = walk->history->events;
    for (uint32_t ix = claim; ix > 0 && events[ix - 1].at_ns > after_ns; ix--) {
        enum run_history_kind kind = events[ix - 1].kind;
        if (kind == HISTORY_LIMIT || kind == HISTORY_USAGE ||
            kind == HISTORY_OVERRIDE || kind == HISTORY_RESUME ||
            kind == HISTORY_RELEASE) {
            return true;
        }
    }
    return false;
}

/* Cause of a claim of a task that was ready since the event. */
static struct origin
after_ready(const struct walk *walk, uint32_t ix, uint32_t event_ix)
{
    const struct run_history *history = walk->history;
    const struct run_history_session *session = &history->sessions[ix];
    const struct run_history_event *event = &history->events[event_ix];
    uint32_t own = last_own(walk, ix);
    bool waited = session->claimed_ns - event->at_ns > PASS_NS;
    if (own != HISTORY_NONE &&
        history->sessions[own].outcome == HISTORY_REFUSED &&
        history->sessions[own].ended_ns + PASS_NS > event->at_ns) {
        return (struct origin){
            .step = STATS_STEP_PROVIDER,
            .link = STATS_LINK_SELF,
            .session = own,
        };
    }
    uint32_t room = waited ? last_end(walk, ix, event->at_ns) : HISTORY_NONE;
    if (room != HISTORY_NONE) {
        int64_t ended_ns = history->sessions[room].ended_ns;
        return (struct origin){
            .step = has_request(walk, session->claim_event, ended_ns)
                        ? STATS_STEP_KEPT
                        : STATS_STEP_PASS,
            .link = STATS_LINK_SLOT,
            .session = room,
            .since_ns = ended_ns,
        };
    }
    struct origin origin = {.step = STATS_STEP_PASS, .session = HISTORY_NONE};
    if (event->before != HISTORY_NONE) {
        origin = after_state(walk, ix, history->events[event->before].to);
    }
    if (waited && origin.step == STATS_STEP_PASS) {
        origin.step = STATS_STEP_KEPT;
        origin.since_ns = event->at_ns;
    }
    return origin;
}

static struct origin origin_of(const struct walk *walk, uint32_t ix)
{
    const struct run_history *history = walk->history;
    uint32_t claim = history->sessions[ix].claim_event;
    uint32_t event =
        claim != HISTORY_NONE ? history->events[claim].before : HISTORY_NONE;
    if (event == HISTORY_NONE) {
        return (struct origin){
            .step = STATS_STEP_PASS,
            .session = HISTORY_NONE,
        };
    }
    return history->events[event].to == TASK_READY
               ? after_ready(walk, ix, event)
               : after_state(walk, ix, history->events[event].to);
}

/* Explain the time from the submission to the first session of the path. */
static void
add_beginning(struct walk *walk, uint32_t task, struct origin origin)
{
    const struct run_history *history = walk->history;
    uint32_t first = history->tasks[task].last_event;
    while (first != HISTORY_NONE &&
           history->events[first].before != HISTORY_NONE) {
        first = history->events[first].before;
    }
    int64_t there_ns = first != HISTORY_NONE ? history->events[first].at_ns : 0;
    struct stats_segment segment = {
        .step = origin.step,
        .task = task,
        .session = HISTORY_NONE,
        .start_ns = there_ns < PASS_NS ? 0 : there_ns,
    };
    add_segment(walk, segment);
    segment.step = STATS_STEP_ABSENT;
    segment.start_ns = 0;
    add_segment(walk, segment);
}

static void walk_back(struct walk *walk, uint32_t ix)
{
    const struct run_history *history = walk->history;
    for (;;) {
        const struct run_history_session *session = &history->sessions[ix];
        struct origin origin = origin_of(walk, ix);
        bool goes_on = origin.session != HISTORY_NONE;
        INVARIANT(!goes_on || origin.session < ix);
        add_segment(walk,
                    (struct stats_segment){
                        .step = STATS_STEP_WORK,
                        .link = origin.link,
                        .task = session->task,
                        .session = ix,
                        .start_ns = session->claimed_ns,
                    });
        if (!goes_on) {
            add_beginning(walk, session->task, origin);
            return;
        }
        struct stats_segment wait = {
            .step = origin.step,
            .task = session->task,
            .session = HISTORY_NONE,
            .start_ns = origin.since_ns,
        };
        if (origin.step == STATS_STEP_KEPT) {
            add_segment(walk, wait);
            wait.step = STATS_STEP_PASS;
        }
        wait.start_ns = history->sessions[origin.session].ended_ns;
        add_segment(walk, wait);
        ix = origin.session;
    }
}

static void reverse(struct stats *stats)
{
    for (uint32_t ix = 0; ix < stats->path_count / 2; ix++) {
        uint32_t other = stats->path_count - 1 - ix;
        struct stats_segment segment = stats->path[ix];
        stats->path[ix] = stats->path[other];
        stats->path[other] = segment;
    }
}

void stats_walk(struct stats *stats)
{
    const struct run_history *history = stats->history;
    uint32_t count = history->session_count;
    struct walk walk = {
        .stats = stats,
        .history = history,
        .at_ns = history->end_ns,
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
                history->sessions);
    }
    if (count > 0) {
        uint32_t last = walk.by_end[count - 1];
        add_segment(&walk,
                    (struct stats_segment){
                        .step = STATS_STEP_TAIL,
                        .task = history->sessions[last].task,
                        .session = HISTORY_NONE,
                        .start_ns = history->sessions[last].ended_ns,
                    });
        walk_back(&walk, last);
    }
    mem_free(walk.by_end);
    reverse(stats);
}
