/* SPDX-License-Identifier: MIT */
/*
 * script: input of a simulation in addition to the plan.
 *
 * Operator requests at a time, and outcomes of sessions:
 *
 *   at 10m cap 1                 at TIME limit NAME N|P%|none
 *   at 12m pause                 at TIME resume
 *   at 15m hold TASK             at TIME release|retry|skip|cancel|revoke TASK
 *   at 20m cancel run            at TIME retry run
 *   at 22m approve TASK          at TIME first|rerun TASK
 *   at 25m priority TASK N
 *   at 30m add more.yaml         path relative to the script
 *   fail TASK:2                  the first two attempts of TASK fail
 *   fatal TASK:1                 the first attempt fails for good
 *   later TASK:3=10m             the first three ask to be run again in 10 min
 *   changes TASK:1               the first attempt requests changes
 *   checkpoint TASK:1            the first attempt exits with a checkpoint
 *   block TASK                   TASK reports that it is blocked
 *   refuse PROVIDER:3            the provider refuses the first three starts
 *
 * Cancel, hold, priority, release, retry and skip take a group, too.
 *
 * One per line; a word that begins with `#` starts a comment. The command-line
 * options --at, --fail, ... take the same forms.
 */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "base/diag.h"

#include <stddef.h>
#include <stdint.h>

enum script_request {
    SCRIPT_CAP,
    SCRIPT_LIMIT,
    SCRIPT_PAUSE,
    SCRIPT_RESUME,
    SCRIPT_HOLD,
    SCRIPT_RELEASE,
    SCRIPT_RETRY,
    SCRIPT_SKIP,
    SCRIPT_CANCEL,
    SCRIPT_REVOKE,
    SCRIPT_ADD,
    SCRIPT_APPROVE,
    SCRIPT_FIRST,
    SCRIPT_PRIORITY,
    SCRIPT_RERUN,
};

struct script_at {
    int64_t at_ns;
    enum script_request request;
    char *name;  /* task, group, limit, file or "run"; NULL for none */
    int64_t max; /* of cap, limit and priority; INT64_MAX: none */
    uint32_t percent;
    char *text; /* content of the file to add, read by the caller; else NULL */
    size_t text_bytes;
    uint32_t place; /* position in the input */
};

enum script_outcome {
    SCRIPT_FAIL,
    SCRIPT_FATAL,
    SCRIPT_LATER,
    SCRIPT_CHANGES,
    SCRIPT_CHECKPOINT,
    SCRIPT_BLOCK,
    SCRIPT_REFUSE,
};

struct script_end {
    enum script_outcome outcome;
    char *name; /* task, or provider for SCRIPT_REFUSE */
    uint32_t count;
    int64_t later_ns; /* of SCRIPT_LATER; 0: not given */
    char *word;       /* original word, with the count */
};

/* A parsed script, sorted by time; starts as {0}. */
struct sim_script {
    struct script_at *requests;
    uint32_t request_count;
    struct script_end *ends;
    uint32_t end_count;
    const struct alias *old; /* an old word used, or NULL: plan/alias.h */
};

void sim_script_release(struct sim_script *script);

/* Add one line ("at 10m cap 1", "fail t:2"). `folder` is put before a relative
 * file name of `add`; NULL: leave it. ERR_INVALID: *diag has the error. */
MUST_USE enum err sim_script_add(struct sim_script *script,
                                 const char *line,
                                 const char *folder,
                                 struct diag *diag);

/* Add a request; its name is copied. A file to add must not be among them. */
void sim_script_add_request(struct sim_script *script,
                            const struct script_at *request);

/* Add every line of a script; *diag names the line. */
MUST_USE enum err sim_script_read(struct sim_script *script,
                                  const char *text,
                                  size_t len,
                                  const char *folder,
                                  struct diag *diag);

#endif /* SIM_SCRIPT_H */
