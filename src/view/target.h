/* SPDX-License-Identifier: MIT */
/*
 * target: what a command's operand names, a task or a run of a store.
 *
 * Only rows are read: a task or run is found in a store of any size without
 * loading it. Plans are read when neither has the name, because it may be a
 * group's.
 */
#ifndef VIEW_TARGET_H
#define VIEW_TARGET_H

#include "store/store.h"

/* A task, or a run when `task` is STORE_NONE. Starts as {0}. */
struct target {
    uint32_t run;  /* its number */
    uint32_t task; /* its index */
    char *run_id;
    char *task_id;       /* NULL of a run */
    char *state;         /* of the task; NULL of a run */
    char *reason;        /* of that state, or NULL */
    uint32_t number;     /* of the task's last attempt as first of a session */
    uint64_t token;      /* of its last session */
    bool finished;       /* the run is */
    uint64_t last_event; /* what is said here is true after this one */
};

/* What a name may be. A group of that name means one of its tasks. */
enum target_kind { TARGET_TASK_OR_GROUP, TARGET_TASK_OR_RUN };

/* The tasks of a group. Starts as {0}. */
struct target_group {
    char *run_id;
    char **task_ids; /* in the order of the plan */
    uint32_t count;
};

/*
 * Find the task or run of that name. A task of an unfinished run comes first,
 * then a run, then a task of the last finished run that has it, then the stage
 * of a group that had the last session, or its first one if none had.
 * `run` says in which run to look; NULL: in all. ERR_NOT_FOUND, ERR_INVALID
 * (several): *diag says so. Release *out in any case.
 */
MUST_USE enum err target_find(struct target *out,
                              struct store *store,
                              const char *name,
                              const char *run,
                              enum target_kind kind,
                              struct diag *diag);
void target_release(struct target *target);

/*
 * Find the group of that name: in an unfinished run, else in the last finished
 * one that has it. ERR_NOT_FOUND: *diag names what is near to it. Release *out
 * in any case.
 */
MUST_USE enum err target_find_group(struct target_group *out,
                                    struct store *store,
                                    const char *name,
                                    const char *run,
                                    struct diag *diag);
void target_group_release(struct target_group *group);

#endif /* VIEW_TARGET_H */
