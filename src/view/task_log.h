/* SPDX-License-Identifier: MIT */
/*
 * task_log: which attempt of a task has the log to show, and where it is.
 */
#ifndef VIEW_TASK_LOG_H
#define VIEW_TASK_LOG_H

#include "base/strbuf.h"
#include "exec/attempt_row.h"
#include "view/target.h"

/* One attempt, as the store has it. A plain value. */
struct task_log {
    uint64_t token;  /* 0: there is none */
    uint32_t leader; /* index of the task whose directory it is */
    uint32_t number;
    struct attempt_row row;
};

/* Find an attempt of a task; `number` 0: the last one. */
MUST_USE enum err task_log_find(struct task_log *out,
                                struct store *store,
                                const struct target *target,
                                uint32_t number,
                                struct diag *diag);

/* Append its directory in the store in `dir`; the file in it is "log". */
MUST_USE enum err task_log_add_dir(struct strbuf *out,
                                   struct store *store,
                                   const char *dir,
                                   const struct target *target,
                                   const struct task_log *log,
                                   struct diag *diag);

/* Whether the attempt in a directory is known to have ended. `row` is what the
 * store has of it, NULL: it is not asked. */
bool task_log_is_over(const char *path, const struct attempt_row *row);

/* Append a JSON object and a new line: run, task, attempt, and a member with
 * this text. */
void task_log_add_json(struct strbuf *out,
                       const struct target *target,
                       const struct task_log *log,
                       const char *member,
                       const char *text);

#endif /* VIEW_TASK_LOG_H */
