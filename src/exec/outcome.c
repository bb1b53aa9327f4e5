/* SPDX-License-Identifier: MIT */
#include "exec/outcome.h"

#include "exec/record.h"

#include "base/invariant.h"

#include <string.h>

/* Exit codes of a shell that could not run the command at all. */
enum { SHELL_NOT_EXECUTABLE = 126, SHELL_NOT_FOUND = 127 };

struct row {
    const char *name;
    int code;
    bool is_said; /* allowed in a result */
};

static const struct row rows[OUTCOME_COUNT] = {
    [OUTCOME_DONE] = {"done", OUTCOME_EXIT_DONE, true},
    [OUTCOME_FAILED] = {"failed", OUTCOME_EXIT_FAILED, true},
    [OUTCOME_REFUSED] = {"refused", OUTCOME_EXIT_REFUSED, true},
    [OUTCOME_CHANGES] = {"changes", OUTCOME_EXIT_CHANGES, true},
    [OUTCOME_BLOCKED] = {"blocked", OUTCOME_EXIT_BLOCKED, true},
    [OUTCOME_CHECKPOINT] = {"checkpoint", OUTCOME_EXIT_DONE, true},
    [OUTCOME_LOST] = {"lost", OUTCOME_EXIT_FAILED, false},
    [OUTCOME_STOPPED] = {"stopped", OUTCOME_EXIT_FAILED, false},
    [OUTCOME_LATER] = {"later", OUTCOME_EXIT_LATER, true},
    /* After OUTCOME_FAILED: its name reads as that. */
    [OUTCOME_FATAL] = {"failed", OUTCOME_EXIT_FATAL, false},
};

static const char *const lacks[] = {
    [OUTCOME_LACKS_ANSWER] = "answer",
    [OUTCOME_LACKS_MONEY] = "budget",
    [OUTCOME_LACKS_START] = "start",
    [OUTCOME_LACKS_BASE] = "base",
};

const char *outcome_name(enum sched_outcome outcome)
{
    INVARIANT((unsigned)outcome < OUTCOME_COUNT);
    return rows[outcome].name;
}

bool outcome_read(const char *name, enum sched_outcome *out)
{
    for (unsigned ix = 0; name != NULL && ix < OUTCOME_COUNT; ix++) {
        if (strcmp(rows[ix].name, name) == 0) {
            *out = (enum sched_outcome)ix;
            return true;
        }
    }
    return false;
}

bool outcome_read_said(const char *name, enum sched_outcome *out)
{
    enum sched_outcome found;
    bool known = outcome_read(name, &found) && rows[found].is_said;
    *out = known ? found : *out;
    return known;
}

const char *outcome_lack_name(enum outcome_lack lack)
{
    return lacks[lack];
}

enum outcome_lack outcome_read_lack(const char *name)
{
    size_t ix = ARRAY_COUNT(lacks) - 1;
    while (ix > 0 && (name == NULL || strcmp(lacks[ix], name) != 0)) {
        ix--;
    }
    return (enum outcome_lack)ix;
}

enum sched_outcome outcome_of_code(int code)
{
    for (unsigned ix = 0; ix < OUTCOME_COUNT; ix++) {
        if (rows[ix].code == code) { /* the first: DONE before CHECKPOINT */
            return (enum sched_outcome)ix;
        }
    }
    return OUTCOME_FAILED;
}

int outcome_code(enum sched_outcome outcome)
{
    INVARIANT((unsigned)outcome < OUTCOME_COUNT);
    return rows[outcome].code;
}

bool outcome_is_missing(int code)
{
    return code == SHELL_NOT_EXECUTABLE || code == SHELL_NOT_FOUND;
}

const char *outcome_cause(const struct attempt_found *found)
{
    if (found->state == ATTEMPT_ENDED) {
        return record_cause_name(found->exit.cause);
    }
    return found->state == ATTEMPT_NEVER ? record_cause_name(ATTEMPT_SPAWN)
                                         : rows[OUTCOME_LOST].name;
}
