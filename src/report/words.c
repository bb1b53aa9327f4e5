/* SPDX-License-Identifier: MIT */
#include "report/words.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/plain.h"
#include "exec/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append a large unit and the next one, rounded to that: "3 h 05 min". */
static void add_two(struct strbuf *out, int64_t ns)
{
    static const struct {
        int64_t size_ns;
        int64_t part_ns;
        const char *size;
        const char *part;
    } units[] = {
        {1440 * MINUTE_NS, 60 * MINUTE_NS, "d", "h"},
        {60 * MINUTE_NS, MINUTE_NS, "h", "min"},
        {MINUTE_NS, SECOND_NS, "min", "s"},
    };
    size_t ix = 0;
    while (ix < 2 && ns < units[ix].size_ns - units[ix].part_ns / 2) {
        ix++;
    }
    int64_t part_ns = units[ix].part_ns;
    int64_t parts = ns / part_ns + (ns % part_ns >= part_ns / 2 ? 1 : 0);
    int64_t per = units[ix].size_ns / units[ix].part_ns;
    strbuf_addf(out, "%lld %s", (long long)(parts / per), units[ix].size);
    if (parts % per != 0) {
        strbuf_addf(out, " %lld %s", (long long)(parts % per), units[ix].part);
    }
}

void words_add_time(struct strbuf *out, int64_t duration_ns)
{
    if (duration_ns < 0) {
        strbuf_adds(out, "-");
        duration_ns = duration_ns > INT64_MIN ? -duration_ns : INT64_MAX;
    }
    if (duration_ns == 0) {
        strbuf_adds(out, "0");
    } else if (duration_ns < MS_NS) {
        strbuf_adds(out, "<1 ms");
    } else if (duration_ns < SECOND_NS - MS_NS / 2) {
        strbuf_addf(out,
                    "%lld ms",
                    (long long)((duration_ns + MS_NS / 2) / MS_NS));
    } else if (duration_ns < MINUTE_NS - SECOND_NS / 20) {
        strbuf_addf(out, "%.1f s", (double)duration_ns / (double)SECOND_NS);
    } else {
        add_two(out, duration_ns);
    }
}

void words_add_moment(struct strbuf *out, int64_t wall_ns)
{
    plain_add_clock(out, wall_ns, PLAIN_ZONE);
}

const char *words_reason(enum stats_reason reason)
{
    static const char *const words[STATS_REASONS] = {
        [STATS_NEEDS] = "for its needs",
        [STATS_BACKOFF] = "for its next attempt (back-off)",
        [STATS_PERSON] = "for an operator: parked, failed or not approved",
        [STATS_HELD] = "held by an operator",
        [STATS_PAUSED] = "paused by an operator",
        [STATS_SLOT] = "for a slot",
        [STATS_LIMIT] = "for another limit",
        [STATS_DEFERRED] = "deferred: background work",
        [STATS_PROVIDER] = "for a provider that refused",
        [STATS_OTHER] = "other: no reason in this run",
    };
    INVARIANT(reason < STATS_REASONS);
    return words[reason];
}

const char *words_idle(enum stats_idle idle)
{
    static const char *const words[STATS_IDLES] = {
        [STATS_IDLE_KEPT] = "idle: ready work was kept back",
        [STATS_IDLE_NONE] = "idle: nothing was ready",
        [STATS_IDLE_REST] = "idle: only an operator could continue",
    };
    INVARIANT(idle < STATS_IDLES);
    return words[idle];
}

const char *words_step(enum stats_step step)
{
    static const char *const words[STATS_STEPS] = {
        [STATS_STEP_WORK] = "working",
        [STATS_STEP_PASS] = "scheduling delay",
        [STATS_STEP_BACKOFF] = "back-off before the next attempt",
        [STATS_STEP_PERSON] = "waiting for an operator",
        [STATS_STEP_PROVIDER] = "waiting for the provider",
        [STATS_STEP_KEPT] = "kept back by an operator or a limit",
        [STATS_STEP_ABSENT] = "not added yet",
        [STATS_STEP_TAIL] = "after the last session",
    };
    INVARIANT(step < STATS_STEPS);
    return words[step];
}

const char *words_outcome(enum run_history_outcome outcome)
{
    switch (outcome) {
    case HISTORY_CHANGES:
        return "requested changes";
    case HISTORY_LOST:
        return "vanished";
    case HISTORY_LATER:
        return "snoozed";
    case HISTORY_DONE:
    case HISTORY_FAILED:
    case HISTORY_REFUSED:
    case HISTORY_BLOCKED:
    case HISTORY_CHECKPOINT:
    case HISTORY_STOPPED:
    case HISTORY_FATAL:
    case HISTORY_OPEN:
    case HISTORY_OUTCOMES:
        break;
    }
    return run_history_outcome_name(outcome);
}

void words_add_cause(struct strbuf *out,
                     const struct run_history_session *session)
{
    const char *cause = session->cause;
    if (cause == NULL) {
        return;
    }
    if (strcmp(cause, record_cause_name(ATTEMPT_EXIT)) == 0 &&
        session->code >= 0) {
        strbuf_addf(out, "exit code %d", session->code);
    } else if (session->signal > 0) {
        strbuf_addf(out, "%s, signal %d", cause, session->signal);
    } else {
        strbuf_adds(out, cause);
    }
}

void words_add_number(struct strbuf *out, int64_t number)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)number);
    for (int ix = 0; ix < len; ix++) {
        int left = len - ix;
        if (ix > 0 && left % 3 == 0 && digits[ix - 1] != '-') {
            strbuf_adds(out, "\xe2\x80\xaf"); /* a narrow space */
        }
        strbuf_add(out, &digits[ix], 1);
    }
}

static int compare_lengths(const void *left, const void *right, void *ctx)
{
    const struct run_history_session *sessions = ctx;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    int64_t a_ns = sessions[a].ended_ns - sessions[a].claimed_ns;
    int64_t b_ns = sessions[b].ended_ns - sessions[b].claimed_ns;
    if (a_ns != b_ns) {
        return a_ns > b_ns ? -1 : 1;
    }
    return (a > b) - (a < b);
}

uint32_t *words_order(uint32_t count,
                      int (*compare)(const void *, const void *, void *),
                      void *ctx)
{
    uint32_t *order = mem_zalloc(count, sizeof(order[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        order[ix] = ix;
    }
    if (count > 1 && compare != NULL) {
        qsort_r(order, count, sizeof(order[0]), compare, ctx);
    }
    return order;
}

uint32_t *words_longest(const struct run_history *history)
{
    return words_order(history->session_count,
                       compare_lengths,
                       history->sessions);
}

bool *words_on_path(const struct report *report)
{
    const struct stats *stats = report->stats;
    bool *on_path = mem_zalloc(report->history->session_count, sizeof(bool));
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        if (stats->path[ix].session != HISTORY_NONE) {
            on_path[stats->path[ix].session] = true;
        }
    }
    return on_path;
}
