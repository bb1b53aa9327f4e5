/* SPDX-License-Identifier: MIT */
#include "view/reasons.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/plain.h"

#include <string.h>

/* What the remedies have in common. */
#define REMEDY_LOG                                                             \
    {                                                                          \
        .verb = "log", .effect = "print the output of its session"             \
    }
#define REMEDY_RETRY                                                           \
    {                                                                          \
        .verb = "retry", .effect = "retry it"                                  \
    }
#define REMEDY_SKIP                                                            \
    {                                                                          \
        .verb = "skip", .effect = "skip it and its dependents"                 \
    }
#define REMEDY_ANSWER                                                          \
    {                                                                          \
        .verb = "answer", .text = "TEXT",                                      \
        .effect = "retry it, with this text for the session"                   \
    }

static const struct reasons_remedy no_remedies[] = {{0}};

static const struct reasons_remedy failed_remedies[] = {
    REMEDY_LOG,
    REMEDY_RETRY,
    REMEDY_SKIP,
    {0},
};

static const struct reasons_remedy blocked_remedies[] = {
    REMEDY_LOG,
    REMEDY_ANSWER,
    REMEDY_RETRY,
    REMEDY_SKIP,
    {0},
};

static const struct reasons_remedy revoked_remedies[] = {
    {.verb = "release", .effect = "accept its result"},
    {.verb = "retry", .effect = "run it again"},
    {0},
};

static const struct reasons_remedy held_remedies[] = {
    {.verb = "release", .effect = "let it start"},
    {0},
};

static const struct reasons_remedy backoff_remedies[] = {
    {.verb = "retry", .effect = "retry it at once"},
    {0},
};

static const struct reasons_remedy paused_remedies[] = {
    {.verb = "resume", .effect = "resume the run", .of_run = true},
    {0},
};

static const struct reasons_remedy usage_remedies[] = {
    {.verb = "usage",
     .text = "--override on",
     .effect = "ignore usage limits",
     .of_store = true},
    {0},
};

static const struct reasons_remedy stopped_remedies[] = {
    {.verb = "resume",
     .text = "--provider",
     .effect = "use the provider again",
     .of_store = true},
    {0},
};

static const struct reasons_remedy budget_remedies[] = {
    {.verb = "budget",
     .text = "--usd X",
     .effect = "change the budget",
     .of_run = true},
    {0},
};

static const struct reasons_remedy broke_remedies[] = {
    REMEDY_LOG,
    {.verb = "budget",
     .text = "--usd X",
     .effect = "change its budget, and retry it",
     .option = "--task"},
    REMEDY_SKIP,
    {0},
};

static const struct reasons_remedy tokens_remedies[] = {
    {.verb = "budget",
     .text = "--tokens N",
     .effect = "change the budget",
     .of_run = true},
    {0},
};

static const struct reasons_remedy cap_remedies[] = {
    {.verb = "cap",
     .text = "N",
     .effect = "let N sessions run at once",
     .of_run = true},
    {0},
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
    strbuf_adds(out,
                reason->unready ? "its session could not start"
                                : texts[reason->parked]);
}

const char *reasons_parked_name(enum sched_parked parked)
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

/* The task that a reason names, with its run when that is another one. */
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

/* A budget, or a class whose sessions cost an amount that is not known. */
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

/* Reasons that lie in a limit. */
static void add_limit(struct strbuf *out, const struct reason *reason)
{
    const char *limit = reason->limit != NULL ? reason->limit : "?";
    switch (reason->code) {
    case WHY_RESERVED:
        strbuf_adds(out, "reserved for ");
        add_task(out, reason);
        strbuf_addf(out, " at limit %s", limit);
        return;
    case WHY_BEHIND:
        strbuf_adds(out, "behind ");
        add_task(out, reason);
        strbuf_addf(out, " at limit %s", limit);
        return;
    case WHY_DEFERRED:
        strbuf_addf(out, "deferred: waits for an idle slot, limit %s", limit);
        add_holder(out, reason);
        return;
    case WHY_BUDGET:
        add_budget(out, reason, limit);
        return;
    case WHY_LIMIT:
    case WHY_ENDED:
    case WHY_RUNNING:
    case WHY_NEEDS:
    case WHY_BLOCKED:
    case WHY_FAILED:
    case WHY_PARKED:
    case WHY_HELD:
    case WHY_BACKOFF:
    case WHY_USAGE:
    case WHY_CIRCUIT:
    case WHY_STOPPED:
    case WHY_PAUSED:
    case WHY_ASKED:
    case WHY_BARRIER:
    case WHY_DRAINING:
    case WHY_PLANNED:
    case WHY_STARTABLE:
        strbuf_addf(out, "limit %s", limit);
        add_holder(out, reason);
        return;
    }
}

static void add_ended(struct strbuf *out, const struct reason *reason)
{
    if (reason->revoked) {
        strbuf_adds(out, "revoked");
    } else if (reason->task != NULL) {
        strbuf_adds(out, "because of ");
        add_task(out, reason);
    } else {
        strbuf_adds(out,
                    reason->state == TASK_DONE ? "done" : "by an operator");
    }
}

/* Reasons that lie in a provider, or in a failure of the task itself. */
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

static void add_reason(struct strbuf *out, const struct reason *reason)
{
    switch (reason->code) {
    case WHY_ENDED:
        add_ended(out, reason);
        return;
    case WHY_NEEDS:
        strbuf_adds(out, "needs ");
        add_task(out, reason);
        return;
    case WHY_BLOCKED:
        strbuf_adds(out, "blocked by ");
        add_task(out, reason);
        return;
    case WHY_ASKED:
        strbuf_adds(out, "the run waits for a decision about ");
        add_task(out, reason);
        return;
    case WHY_LIMIT:
    case WHY_BUDGET:
    case WHY_DEFERRED:
    case WHY_RESERVED:
    case WHY_BEHIND:
        add_limit(out, reason);
        return;
    case WHY_PARKED:
        strbuf_adds(out, "parked: ");
        if (reason->broke) {
            strbuf_adds(out, "its budget does not allow another session");
        } else {
            reasons_add_parked(out, reason);
        }
        return;
    case WHY_BACKOFF:
    case WHY_USAGE:
    case WHY_CIRCUIT:
    case WHY_STOPPED:
        add_provider(out, reason);
        return;
    case WHY_PAUSED:
        strbuf_adds(out, "the run is paused");
        return;
    case WHY_BARRIER:
        strbuf_adds(out, "the run waits for its sync hook");
        return;
    case WHY_DRAINING:
        strbuf_adds(out, "the scheduler is draining");
        return;
    case WHY_PLANNED:
        strbuf_adds(out, "reserved for ");
        add_task(out, reason);
        strbuf_adds(out, " by schedule");
        add_left(out, reason);
        return;
    case WHY_STARTABLE:
        strbuf_adds(out, "can start now");
        return;
    case WHY_RUNNING:
    case WHY_FAILED:
    case WHY_HELD:
        strbuf_adds(out, why_code_name(reason->code));
        return;
    }
}

void reasons_add(struct strbuf *out, const struct reason *reason)
{
    add_reason(out, reason);
    if (reason->held && reason->code != WHY_HELD) {
        strbuf_adds(out, "; held by an operator");
    }
}

static bool is_cap_zero(const struct reason *reason)
{
    return reason->max == 0 && reason->limit != NULL &&
           strcmp(reason->limit, "sessions") == 0;
}

const struct reasons_remedy *reasons_remedies(const struct reason *reason)
{
    switch (reason->code) {
    case WHY_ENDED:
        return reason->revoked ? revoked_remedies : no_remedies;
    case WHY_PARKED:
        if (reason->broke) {
            return broke_remedies;
        }
        return !reason->unready && (reason->parked == SCHED_PARKED_BLOCKED ||
                                    reason->parked == SCHED_PARKED_CHANGES)
                   ? blocked_remedies
                   : failed_remedies;
    case WHY_FAILED:
        return failed_remedies;
    case WHY_HELD:
        return held_remedies;
    case WHY_BACKOFF:
        return reason->provider == NULL ? backoff_remedies : no_remedies;
    case WHY_PAUSED:
        return paused_remedies;
    case WHY_LIMIT:
    case WHY_BEHIND:
    case WHY_DEFERRED:
        return is_cap_zero(reason) ? cap_remedies : no_remedies;
    case WHY_USAGE:
        return usage_remedies;
    case WHY_STOPPED:
        return stopped_remedies;
    case WHY_BUDGET:
        return reason->limit_usd ? budget_remedies : tokens_remedies;
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
        return no_remedies;
    }
    return no_remedies;
}

void reasons_add_command(struct strbuf *out,
                         const struct reason *reason,
                         const struct reasons_remedy *remedy,
                         const char *task,
                         const char *run)
{
    strbuf_addf(out, "sluice %s", remedy->verb);
    if (!remedy->of_run && !remedy->of_store) {
        strbuf_adds(out, remedy->option != NULL ? " " : "");
        strbuf_adds(out, remedy->option != NULL ? remedy->option : "");
        strbuf_addf(out, " %s", task);
    }
    if (remedy->text != NULL) {
        strbuf_addf(out, " %s", remedy->text);
    }
    if (reason->code == WHY_STOPPED && reason->provider != NULL) {
        strbuf_addf(out, " %s", reason->provider);
    }
    if (reason->code == WHY_BUDGET && reason->limit_class != NULL) {
        strbuf_addf(out, " --class %s", reason->limit_class);
    }
    if (run != NULL && !remedy->of_store) {
        strbuf_addf(out, " --run %s", run);
    }
}

void reasons_add_remedies(struct strbuf *out,
                          const struct reason *reason,
                          const char *task,
                          const char *run,
                          struct reasons_layout layout)
{
    for (const struct reasons_remedy *remedy = reasons_remedies(reason);
         remedy->verb != NULL;
         remedy++) {
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
    jsonw_text(&json, "provider", reason->provider);
    jsonw_bool(&json, "held", reason->held);
    if (reason->left_ns != SCHED_NEVER) {
        jsonw_duration(&json, "left_s", reason->left_ns);
    } else {
        jsonw_null(&json, "left_s");
    }
    jsonw_text(&json,
               "parked",
               reason->code == WHY_PARKED ? reasons_parked_name(reason->parked)
                                          : NULL);
    jsonw_object_end(&json);
    strbuf_release(&text);
}
