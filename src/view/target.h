/* SPDX-License-Identifier: MIT */
/*
 * target: the task or run that the operand of a command names.
 *
 * Only rows are read: finding a task or run does not load it, so the size of
 * the store does not matter. Plans are read only if neither has the name, which
 * may then be a group's.
 */
#ifndef VIEW_TARGET_H
#define VIEW_TARGET_H

#include "store/store.h"

/* A task, or a run when `task` is STORE_NONE. Starts as {0}. */
struct target {
    uint32_t run;  /* its number */
    uint32_t task; /* its index */
    char *run_id;
    char *task_id;       /* NULL for a run */
    char *state;         /* of the task; NULL for a run */
    char *reason;        /* of that state, or NULL */
    uint32_t number;     /* last attempt as first task of a session */
    uint64_t token;      /* of its last session */
    bool finished;       /* the run is finished */
    uint64_t last_event; /* last event that this state includes */
};

/* What a name may denote. A group name selects one of its tasks. */
enum target_kind { TARGET_TASK_OR_GROUP, TARGET_TASK_OR_RUN };

/* How a task of a group may end, for the group to be done. */
enum target_end {
    TARGET_MUST_DO,
    TARGET_MAY_SKIP, /* or be skipped: it needs the failure of another task */
    TARGET_MAY_FAIL, /* or be skipped or failed: it comes last */
};

/* The tasks of a group. Starts as {0}. */
struct target_group {
    char *run_id;
    char **task_ids;       /* in plan order */
    enum target_end *ends; /* per task */
    uint32_t count;
};

/*
 * Find a task or run by name, in this order: a task of an unfinished run; a
 * run; a task of the last finished run that has it; for a group, the stage with
 * the last session, else its first stage. `run`: search this run only; NULL:
 * all. On ERR_NOT_FOUND and ERR_INVALID (ambiguous) *diag has the message.
 * Release *out in any case.
 */
MUST_USE enum err target_find(struct target *out,
                              struct store *store,
                              const char *name,
                              const char *run,
                              enum target_kind kind,
                              struct diag *diag);
void target_release(struct target *target);

/*
 * Find a group by name, in an unfinished run, else in the last finished run
 * that has it. ERR_NOT_FOUND: *diag suggests a similar name. Release *out in
 * any case.
 */
MUST_USE enum err target_find_group(struct target_group *out,
                                    struct store *store,
                                    const char *name,
                                    const char *run,
                                    struct diag *diag);
void target_group_release(struct target_group *group);

#endif /* VIEW_TARGET_H */
