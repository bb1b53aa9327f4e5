/* SPDX-License-Identifier: MIT */
/*
 * ids: what the core calls the things it schedules.
 *
 * Each is an index into an array of the core, given out in order from 0 and
 * never reused. One-member structs, so that a run cannot pass for a task. The
 * core knows no names: whoever added a thing keeps its name under its index.
 */
#ifndef CORE_IDS_H
#define CORE_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* "There is none", in every kind of index. */
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
