/* SPDX-License-Identifier: MIT */
#include "view/reasons.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/plain.h"
#include "view/usage.h"

#include <string.h>

/* Kinds of reasons that have remedies. */
enum {
    KIND_FAILED = 1 << 0,
    KIND_BLOCKED = 1 << 1,
    KIND_BROKE = 1 << 2,
    KIND_REVOKED = 1 << 3,
    KIND_HELD = 1 << 4,
    KIND_BACKOFF = 1 << 5,
    KIND_PAUSED = 1 << 6,
    KIND_USAGE = 1 << 7,
    KIND_STOPPED = 1 << 8,
    KIND_DOLLARS = 1 << 9,
    KIND_TOKENS = 1 << 10,
    KIND_CAP = 1 << 11,
    KIND_BASE = 1 << 12,
    KIND_SNOOZED = 1 << 13,
    KIND_EARLY = 1 << 14,
    KIND_APPROVAL = 1 << 15,
    KIND_HALTED = 1 << 16,
    KIND_STORE_CAP = 1 << 17,
    KIND_SLOTS = 1 << 18,
};

/* All remedies; for each kind in display order. */
static const struct reasons_remedy remedies[] = {
    {KIND_FAILED | KIND_BLOCKED | KIND_BROKE,
     "log TASK",
     "print the output of its session"},
    {KIND_BASE, "log TASK", "print the output of the gate"},
    {KIND_BASE, "retry TASK", "gate the base again, at its newest commit"},
    {KIND_BASE, "skip TASK", "merge without this check of the base"},
    {KIND_BLOCKED,
     "answer TASK TEXT",
     "retry it, with this text for the session"},
    {KIND_BROKE,
     "budget --task TASK --usd X",
     "change its budget, and retry it"},
    {KIND_FAILED | KIND_BLOCKED, "retry TASK", "retry it"},
    {KIND_FAILED | KIND_BLOCKED | KIND_BROKE,
     "skip TASK",
     "skip it and its dependents"},
    {KIND_REVOKED, "release TASK", "accept its result"},
    {KIND_REVOKED, "retry TASK", "run it again"},
    {KIND_HELD, "release TASK", "let it start"},
    {KIND_BACKOFF, "retry TASK", "retry it at once"},
    {KIND_PAUSED, "resume", "resume the run"},
    {KIND_USAGE, "usage --override on", "ignore usage limits"},
    {KIND_STOPPED, "resume --provider", "use the provider again"},
    {KIND_DOLLARS, "budget --usd X", "change the budget"},
    {KIND_TOKENS, "budget --tokens N", "change the budget"},
    {KIND_CAP, "cap N", "let N sessions run at once"},
    {KIND_STORE_CAP,
     "limit --store sessions N",
     "let N sessions of all runs run at once"},
    {KIND_SLOTS, "workers", "list the workers of the store"},
    {KIND_SNOOZED, "retry TASK", "let it run now"},
    {KIND_EARLY, "retry TASK", "let it start now"},
    {KIND_APPROVAL, "approve TASK", "let it start"},
    {KIND_APPROVAL,
     "answer TASK TEXT",
     "let it start, with this text for the session"},
    {KIND_APPROVAL, "skip TASK", "skip it and its dependents"},
    {KIND_HALTED, "resume", "let the run go on"},
};

void reasons_add_parked(struct strbuf *out, const struct reason *reason)
{
    static const char *const texts[] = {
        [SCHED_PARKED_FAILED] = "failed, no retries left",
        [SCHED_PARKED_BLOCKED] = "its session is blocked",
        [SCHED_PARKED_CHANGES] = "changes requested, rework limit reached",
        [SCHED_PARKED_CHECKPOINTS] = "too many checkpoints in a row",
    };
    INVARIANT(reason->parked < ARRAY_COUNT(texts));
    if (reason->bad_base) {
        strbuf_adds(out, "the base fails its gate");
    } else if (reason->broke) {
        strbuf_adds(out, "its budget does not allow another session");
    } else {
        strbuf_adds(out,
                    reason->unready ? "its session could not start"
                                    : texts[reason->parked]);
    }
}

static const char *parked_name(enum sched_parked parked)
{
    static const char *const names[] = {
        [SCHED_PARKED_FAILED] = "failed",
        [SCHED_PARKED_BLOCKED] = "blocked",
        [SCHED_PARKED_CHANGES] = "changes",
        [SCHED_PARKED_CHECKPOINTS] = "checkpoints",
    };
    INVARIANT(parked < ARRAY_COUNT(names));
    return names[parked];
}

static void add_left(struct strbuf *out, const struct reason *reason)
{
    if (reason->left_ns != SCHED_NEVER) {
        strbuf_adds(out, " for ");
        duration_add(out, reason->left_ns > 0 ? reason->left_ns : 0);
    }
}

/* Append the task of a reason, and its run if that is another run. */
static void add_task(struct strbuf *out, const struct reason *reason)
{
    strbuf_adds(out, reason->task != NULL ? reason->task : "another task");
    if (reason->run != NULL) {
        strbuf_addf(out, " of run %s", reason->run);
    }
}

static void add_holder(struct strbuf *out, const struct reason *reason)
{
    if (reason->max == 0) {
        strbuf_adds(out, ", which is 0");
    } else if (reason->group != NULL) {
        strbuf_addf(out, ", in use by %s", reason->group);
        if (reason->run != NULL) {
            strbuf_addf(out, " of run %s", reason->run);
        }
    } else if (reason->task != NULL) {
        strbuf_adds(out, ", in use by ");
        add_task(out, reason);
    }
}

/* Append a budget, or a class whose sessions have an unknown cost. */
static void
add_budget(struct strbuf *out, const struct reason *reason, const char *limit)
{
    if (!reason->limit_unpriced) {
        strbuf_addf(out, "budget: too little is left of the %s", limit);
    } else if (reason->max == 0) {
        strbuf_addf(out,
                    "budget: too little is left for a session of class %s",
                    reason->limit_class);
    } else {
        strbuf_addf(out,
                    "budget: one session of class %s at a time until its cost "
                    "is known",
                    reason->limit_class);
    }
}

/* Append that the workers have no slot for it. */
static void add_slots(struct strbuf *out, const struct reason *reason)
{
    const char *label = reason->limit_label;
    strbuf_adds(out,
                reason->max == 0 ? "no worker" : "all slots of the workers");
    if (label != NULL) {
        strbuf_addf(out, " with the label %s", label);
    }
    strbuf_adds(out, reason->max == 0 ? " is up" : " are in use");
}

/* Append a reason that involves a limit. */
static void add_limit(struct strbuf *out, const struct reason *reason)
{
    const char *limit = reason->limit != NULL ? reason->limit : "?";
    const char *of_store = reason->limit_store ? " of the store" : "";
    if (reason->code == WHY_BUDGET) {
        add_budget(out, reason, limit);
    } else if (reason->code == WHY_RESERVED || reason->code == WHY_BEHIND) {
        strbuf_adds(out,
                    reason->code == WHY_BEHIND ? "behind " : "reserved for ");
        add_task(out, reason);
        strbuf_addf(out, " at limit %s%s", limit, of_store);
    } else {
        bool deferred = reason->code == WHY_DEFERRED;
        strbuf_adds(out, deferred ? "deferred: waits for an idle slot, " : "");
        if (reason->limit_slots) {
            add_slots(out, reason);
            return;
        }
        strbuf_addf(out, "limit %s%s", limit, of_store);
        add_holder(out, reason);
    }
}

/* Append a need on another outcome than "done": "needs that b fails". */
static void add_outcome(struct strbuf *out, const struct reason *reason)
{
    strbuf_adds(out,
                reason->on == PLAN_ON_FAILED ? "needs that "
                                             : "needs the end of ");
    add_task(out, reason);
    strbuf_adds(out, reason->on == PLAN_ON_FAILED ? " fails" : "");
}

static void add_needs(struct strbuf *out, const struct reason *reason)
{
    if (reason->on != PLAN_ON_DONE) {
        add_outcome(out, reason);
    } else {
        strbuf_adds(out, "needs ");
        add_task(out, reason);
    }
}

static void add_ended(struct strbuf *out, const struct reason *reason)
{
    if (reason->revoked) {
        strbuf_adds(out, "revoked");
    } else if (reason->task != NULL && reason->on == PLAN_ON_FAILED) {
        strbuf_adds(out, "it ");
        add_outcome(out, reason);
        strbuf_adds(out, ", and ");
        add_task(out, reason);
        strbuf_addf(out, " is %s", sched_state_name(reason->of));
    } else if (reason->task != NULL) {
        strbuf_adds(out, "because of ");
        add_task(out, reason);
    } else {
        strbuf_adds(out,
                    reason->state == TASK_DONE ? "done" : "by an operator");
    }
}

/* Append a reason that involves a provider or a failure of the task. */
static void add_provider(struct strbuf *out, const struct reason *reason)
{
    const char *provider = reason->provider != NULL ? reason->provider : "?";
    if (reason->code == WHY_USAGE && reason->unread) {
        strbuf_adds(out, "usage: no session starts before the first reading");
        if (reason->stopped != NULL) {
            strbuf_adds(out, ", which failed: ");
            plain_add(out, reason->stopped);
        }
    } else if (reason->code == WHY_USAGE && reason->provider == NULL) {
        strbuf_adds(out, "usage: paused by its meters");
        add_left(out, reason);
    } else if (reason->code == WHY_USAGE) {
        strbuf_addf(out, "usage limit of provider %s", provider);
        add_left(out, reason);
    } else if (reason->code == WHY_STOPPED) {
        strbuf_addf(out, "provider %s is stopped", provider);
        if (reason->stopped != NULL) {
            strbuf_adds(out, ": ");
            plain_add(out, reason->stopped);
        }
    } else if (reason->code == WHY_CIRCUIT) {
        strbuf_addf(out, "provider %s failed too often", provider);
        if (reason->left_ns != SCHED_NEVER) {
            strbuf_adds(out, ", no probe");
            add_left(out, reason);
        } else {
            strbuf_adds(out, ", a probe is running");
        }
    } else if (reason->provider != NULL) {
        strbuf_addf(out, "provider %s backs off", provider);
        add_left(out, reason);
    } else {
        strbuf_adds(out, "backs off after a failure");
        add_left(out, reason);
    }
}

static void add_parked(struct strbuf *out, const struct reason *reason)
{
    strbuf_adds(out, "parked: ");
    reasons_add_parked(out, reason);
}

/* Append the moment until which a task waits, with its date unless it is within
 * a day; "later" if it is unknown. */
static void add_moment(struct strbuf *out, const struct reason *reason)
{
    if (reason->until_ns <= 0) {
        strbuf_adds(out, "a later time");
    } else {
        usage_add_time(out,
                       reason->until_ns,
                       reason->until_ns - reason->left_ns);
    }
}

static void add_snoozed(struct strbuf *out, const struct reason *reason)
{
    strbuf_adds(out, "it asked to be run again at ");
    add_moment(out, reason);
}

static void add_early(struct strbuf *out, const struct reason *reason)
{
    strbuf_adds(out, "does not start before ");
    add_moment(out, reason);
}

/* Append why a run is stopped; `task`: the task that stopped it, or NULL. */
static void add_stop(struct strbuf *out, enum sched_stop stop, const char *task)
{
    if (stop == SCHED_STOPPED_DEADLINE) {
        strbuf_adds(out, "its deadline has passed");
    } else if (task != NULL) {
        strbuf_addf(out, "%s has failed", task);
    } else {
        strbuf_adds(out, "a task has failed");
    }
}

static void add_halted(struct strbuf *out, const struct reason *reason)
{
    strbuf_adds(out, "the run is stopped: ");
    add_stop(out, reason->stop, reason->task);
}

const char *reasons_stop_name(enum sched_stop stop)
{
    static const char *const names[] = {
        [SCHED_STOPPED_FAILURE] = "failure",
        [SCHED_STOPPED_DEADLINE] = "deadline",
    };
    INVARIANT(stop < ARRAY_COUNT(names));
    return names[stop];
}

void reasons_add_halt(struct strbuf *out,
                      enum sched_stop stop,
                      const char *task,
                      const char *run)
{
    const char *option = run != NULL ? " --run " : "";
    run = run != NULL ? run : "";
    strbuf_adds(out, "stopped: ");
    add_stop(out, stop, task);
    strbuf_adds(out, "; ");
    if (stop == SCHED_STOPPED_FAILURE && task != NULL) {
        strbuf_addf(out,
                    "'sluice retry %s%s%s' retries it, ",
                    task,
                    option,
                    run);
    }
    strbuf_addf(out, "'sluice resume%s%s' lets the run go on", option, run);
}

static void add_rest(struct strbuf *out, const struct reason *reason)
{
    strbuf_addf(out,
                "runs when the rest of %s has come to its end",
                reason->group != NULL ? reason->group : "the run");
    if (reason->task != NULL) {
        strbuf_adds(out, "; ");
        add_task(out, reason);
        strbuf_adds(out, " has not");
    }
}

static void add_reason(struct strbuf *out, const struct reason *reason)
{
    static const struct {
        void (*add)(struct strbuf *out, const struct reason *reason);
        const char *text;  /* if `add` is NULL */
        const char *after; /* follows the task; NULL: no task */
    } phrases[] = {
        [WHY_ENDED] = {.add = add_ended},
        [WHY_RUNNING] = {.text = "running"},
        [WHY_NEEDS] = {.add = add_needs},
        [WHY_BLOCKED] = {.text = "blocked by ", .after = ""},
        [WHY_FAILED] = {.text = "failed"},
        [WHY_PARKED] = {.add = add_parked},
        [WHY_HELD] = {.text = "held"},
        [WHY_BACKOFF] = {.add = add_provider},
        [WHY_USAGE] = {.add = add_provider},
        [WHY_CIRCUIT] = {.add = add_provider},
        [WHY_STOPPED] = {.add = add_provider},
        [WHY_PAUSED] = {.text = "the run is paused"},
        [WHY_ASKED] = {.text = "the run waits for a decision about ",
                       .after = ""},
        [WHY_BARRIER] = {.text = "the run waits for its sync hook"},
        [WHY_DRAINING] = {.text = "the scheduler is draining"},
        [WHY_LIMIT] = {.add = add_limit},
        [WHY_BUDGET] = {.add = add_limit},
        [WHY_RESERVED] = {.add = add_limit},
        [WHY_BEHIND] = {.add = add_limit},
        [WHY_DEFERRED] = {.add = add_limit},
        [WHY_PLANNED] = {.text = "reserved for ", .after = " by schedule"},
        [WHY_STARTABLE] = {.text = "can start now"},
        [WHY_SNOOZED] = {.add = add_snoozed},
        [WHY_EARLY] = {.add = add_early},
        [WHY_APPROVAL] = {.text = "waits for your approval"},
        [WHY_HALTED] = {.add = add_halted},
        [WHY_REST] = {.add = add_rest},
    };
    INVARIANT(reason->code < ARRAY_COUNT(phrases));
    if (phrases[reason->code].add != NULL) {
        phrases[reason->code].add(out, reason);
        return;
    }
    strbuf_adds(out, phrases[reason->code].text);
    if (phrases[reason->code].after != NULL) {
        add_task(out, reason);
        strbuf_adds(out, phrases[reason->code].after);
    }
    if (reason->code == WHY_PLANNED) {
        add_left(out, reason);
    }
}

void reasons_add(struct strbuf *out, const struct reason *reason)
{
    add_reason(out, reason);
    if (reason->held && reason->code != WHY_HELD) {
        strbuf_adds(out, "; held by an operator");
    }
}

void reasons_add_base(struct strbuf *out, const struct engine_bad_base *bad)
{
    strbuf_addf(out,
                "base %s of %s at %.12s is not merged: ",
                bad->base,
                bad->repo,
                bad->commit);
    plain_add(out, bad->reason != NULL ? bad->reason : "no reason given");
}

static bool is_cap_zero(const struct reason *reason)
{
    return reason->max == 0 && reason->limit != NULL &&
           strcmp(reason->limit, "sessions") == 0;
}

/* Return the kind of a reason; 0: only time helps. */
static unsigned kind_of(const struct reason *reason)
{
    switch (reason->code) {
    case WHY_ENDED:
        return reason->revoked ? KIND_REVOKED : 0;
    case WHY_PARKED:
        if (reason->broke) {
            return KIND_BROKE;
        }
        if (reason->base) {
            return KIND_BASE;
        }
        return !reason->unready && (reason->parked == SCHED_PARKED_BLOCKED ||
                                    reason->parked == SCHED_PARKED_CHANGES)
                   ? KIND_BLOCKED
                   : KIND_FAILED;
    case WHY_FAILED:
        return KIND_FAILED;
    case WHY_HELD:
        return KIND_HELD;
    case WHY_BACKOFF:
        return reason->provider == NULL ? KIND_BACKOFF : 0;
    case WHY_PAUSED:
        return KIND_PAUSED;
    case WHY_LIMIT:
    case WHY_BEHIND:
    case WHY_DEFERRED:
        return reason->limit_slots && reason->max == 0 ? KIND_SLOTS
               : !is_cap_zero(reason)                  ? 0
               : reason->limit_store                   ? KIND_STORE_CAP
                                                       : KIND_CAP;
    case WHY_USAGE:
        return KIND_USAGE;
    case WHY_STOPPED:
        return KIND_STOPPED;
    case WHY_BUDGET:
        return reason->limit_usd ? KIND_DOLLARS : KIND_TOKENS;
    case WHY_SNOOZED:
        return KIND_SNOOZED;
    case WHY_EARLY:
        return KIND_EARLY;
    case WHY_APPROVAL:
        return KIND_APPROVAL;
    case WHY_HALTED:
        return KIND_HALTED;
    case WHY_REST:
    case WHY_NEEDS:
    case WHY_BLOCKED:
    case WHY_ASKED:
    case WHY_RESERVED:
    case WHY_CIRCUIT:
    case WHY_BARRIER:
    case WHY_DRAINING:
    case WHY_RUNNING:
    case WHY_PLANNED:
    case WHY_STARTABLE:
        return 0;
    }
    return 0;
}

const struct reasons_remedy *reasons_remedy(const struct reason *reason,
                                            const struct reasons_remedy *after)
{
    size_t ix = after != NULL ? (size_t)(after - remedies) + 1 : 0;
    while (ix < ARRAY_COUNT(remedies) &&
           (remedies[ix].kinds & kind_of(reason)) == 0) {
        ix++;
    }
    return ix < ARRAY_COUNT(remedies) ? &remedies[ix] : NULL;
}

void reasons_add_command(struct strbuf *out,
                         const struct reason *reason,
                         const struct reasons_remedy *remedy,
                         const char *task,
                         const char *run)
{
    const char *at = strstr(remedy->command, "TASK");
    size_t before = (size_t)(at != NULL ? at - remedy->command : 0);
    strbuf_adds(out, "sluice ");
    strbuf_add(out, remedy->command, before);
    strbuf_adds(out, at != NULL ? task : remedy->command);
    strbuf_adds(out, at != NULL ? at + strlen("TASK") : "");
    if (reason->code == WHY_STOPPED && reason->provider != NULL) {
        strbuf_addf(out, " %s", reason->provider);
    }
    if (reason->code == WHY_BUDGET && reason->limit_class != NULL) {
        strbuf_addf(out, " --class %s", reason->limit_class);
    }
    if (run != NULL &&
        (remedy->kinds & (KIND_USAGE | KIND_STOPPED | KIND_STORE_CAP)) == 0) {
        strbuf_addf(out, " --run %s", run);
    }
}

void reasons_add_remedies(struct strbuf *out,
                          const struct reason *reason,
                          const char *task,
                          const char *run,
                          struct reasons_layout layout)
{
    const struct reasons_remedy *remedy = NULL;
    while ((remedy = reasons_remedy(reason, remedy)) != NULL) {
        struct strbuf command = {0};
        reasons_add_command(&command, reason, remedy, task, run);
        strbuf_addf(out,
                    "%s%*s%-*s %s\n",
                    layout.head,
                    layout.indent,
                    "",
                    layout.width,
                    strbuf_text(&command),
                    remedy->effect);
        strbuf_release(&command);
        layout.head = "";
    }
}

void reasons_add_json(struct strbuf *out, const struct reason *reason)
{
    struct strbuf text = {0};
    struct jsonw json = {.out = out, .spaced = true};
    reasons_add(&text, reason);
    jsonw_object(&json, NULL);
    jsonw_text(&json, "code", why_code_name(reason->code));
    jsonw_text(&json, "text", strbuf_text(&text));
    jsonw_text(&json, "task", reason->task);
    jsonw_text(&json, "run", reason->run);
    jsonw_text(&json, "group", reason->group);
    jsonw_text(&json, "limit", reason->limit);
    jsonw_bool(&json, "store", reason->limit_store);
    jsonw_text(&json, "provider", reason->provider);
    jsonw_bool(&json, "held", reason->held);
    bool ends = reason->left_ns != SCHED_NEVER;
    jsonw_duration_if(&json, "left_s", ends, reason->left_ns);
    if (reason->until_ns > 0) {
        jsonw_moment(&json, "until", reason->until_ns);
    } else {
        jsonw_null(&json, "until");
    }
    jsonw_text(&json,
               "parked",
               reason->code == WHY_PARKED ? parked_name(reason->parked) : NULL);
    jsonw_object_end(&json);
    strbuf_release(&text);
}
