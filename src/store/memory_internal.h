/* SPDX-License-Identifier: MIT */
/*
 * What memory.c (stores, reading) and memory_write.c (changes and how they are
 * taken back) share.
 */
#ifndef STORE_MEMORY_INTERNAL_H
#define STORE_MEMORY_INTERNAL_H

#include "base/arena.h"
#include "base/strmap.h"
#include "store/event.h"
#include "store/memory.h"

/* A place for each index; the row is there once it was written. */
struct memory_task {
    struct store_task row;
    bool present;
    uint32_t number_max;   /* greatest number of its attempts */
    uint32_t last_attempt; /* STORE_NONE, or the newest of a chained list */
};

struct memory_run {
    struct store_run row;
    struct store_fragment *fragments;
    struct store_limit *limits; /* by name */
    struct memory_task *tasks;
    uint32_t fragment_count;
    uint32_t fragment_capacity;
    uint32_t limit_count;
    uint32_t limit_capacity;
    uint32_t task_count;
    uint32_t task_capacity;
};

struct memory_attempt {
    struct store_attempt row;
    uint32_t before; /* attempt of the same task, or STORE_NONE */
};

/* How to take one change back. */
struct memory_undo {
    enum store_change_type type;
    bool added; /* the row was not there before */
    uint32_t run;
    uint32_t ix;
    union {
        struct store_run run;
        struct store_limit limit;
        struct store_provider provider;
        struct store_setting setting;
        struct store_task task;
        struct memory_attempt attempt;
        uint32_t number_max;
    } old;
};

/* An array that grows: elements, how many there are, and room for how many. */
#define MEMORY_LIST(type, name)                                                \
    type *name##s;                                                             \
    uint32_t name##_count;                                                     \
    uint32_t name##_capacity

struct store_memory_db {
    bool made; /* a scheduler has taken it once */
    struct store_info info;
    uint64_t last_sum;
    struct store_owner owner;   /* the last one */
    const struct store *holder; /* of the lock; NULL: nobody */
    store_memory_fault_fn fault;
    void *fault_ctx;
    MEMORY_LIST(struct memory_run, run);          /* by number */
    MEMORY_LIST(struct store_provider, provider); /* by name */
    MEMORY_LIST(struct store_setting, setting);   /* by name */
    MEMORY_LIST(struct memory_attempt, attempt);  /* by token */
    MEMORY_LIST(struct store_event, event);
    MEMORY_LIST(struct store_command, command);
    MEMORY_LIST(struct memory_undo, undo);
    MEMORY_LIST(const char *, text); /* short ones, each kept once */
    struct strmap run_ids;
    struct strmap text_map;
    struct arena arena; /* all texts; nothing is given back before the end */
};

struct memory_store {
    struct store base;
    struct store_memory_db *db;
    enum store_mode mode;
    uint64_t epoch;  /* 0: not taken */
    enum err broken; /* not ERR_OK: every write fails so */
};

/* The run of that number, or NULL. */
struct memory_run *memory_find_run(const struct store_memory_db *db,
                                   uint32_t number);

/* Set or remove a setting, whose texts must live as long as the database;
 * return what was there before, without a value: nothing. */
struct store_setting memory_replace_setting(struct store_memory_db *db,
                                            struct store_setting setting);

/* Carry out a STORE_PRUNE. */
void memory_prune(struct store_memory_db *db, const struct store_prune *prune);

/* The gap in the log that begins with this event; false: none does. */
bool memory_find_gap(const struct store_memory_db *db,
                     uint64_t first,
                     struct event_gap *out);

enum err memory_write(struct store *base,
                      const struct store_batch *batch,
                      struct diag *diag);
enum err memory_submit(struct store *base,
                       const struct store_command *command,
                       uint64_t *number_out,
                       struct diag *diag);

#endif /* STORE_MEMORY_INTERNAL_H */
