/* SPDX-License-Identifier: MIT */
/*
 * task_log: the attempt of a task whose log to show, and its directory.
 */
#ifndef VIEW_TASK_LOG_H
#define VIEW_TASK_LOG_H

#include "base/strbuf.h"
#include "exec/attempt_row.h"
#include "view/target.h"

/* An attempt, as stored. A plain value. */
struct task_log {
    uint64_t token;  /* 0: none */
    uint32_t leader; /* index of the task that owns the directory */
    uint32_t number;
    bool confined; /* by a sandbox */
    bool ended;
    struct attempt_row row;
};

/* Find an attempt of a task; `number` 0: the last. */
MUST_USE enum err task_log_find(struct task_log *out,
                                struct store *store,
                                const struct target *target,
                                uint32_t number,
                                struct diag *diag);

/* Append its directory, given the store directory `dir`; its log is "log". */
MUST_USE enum err task_log_add_dir(struct strbuf *out,
                                   struct store *store,
                                   const char *dir,
                                   const struct target *target,
                                   const struct task_log *log,
                                   struct diag *diag);

/* Whether the attempt in a directory is known to be finished. `row`: its row in
 * the store; NULL: check the directory only. */
bool task_log_is_over(const char *path, const struct attempt_row *row);

/* Whether the session is known to have printed nothing, although it has no log:
 * its directory has become that of another attempt. */
bool task_log_is_empty(const char *path, const struct task_log *log);

/* Append a JSON object and a newline: run, task, attempt, a string member. */
void task_log_add_json(struct strbuf *out,
                       const struct target *target,
                       const struct task_log *log,
                       const char *member,
                       const char *text);

#endif /* VIEW_TASK_LOG_H */
