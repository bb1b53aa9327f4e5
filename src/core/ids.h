/* SPDX-License-Identifier: MIT */
/*
 * ids: indices of the objects that the core schedules.
 *
 * Each is an index into an array of the core, assigned in order from 0 and
 * never reused. Structs with one member, so that the compiler distinguishes a
 * run from a task. The core knows no names: the caller keeps them by index.
 */
#ifndef CORE_IDS_H
#define CORE_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* "None", for every kind of index. */
#define ID_NONE UINT32_MAX

struct task_id {
    uint32_t v;
};

struct group_id {
    uint32_t v;
};

struct run_id {
    uint32_t v;
};

struct class_id {
    uint32_t v;
};

struct limit_id {
    uint32_t v;
};

struct provider_id {
    uint32_t v;
};

#endif /* CORE_IDS_H */
