/* SPDX-License-Identifier: MIT */
/*
 * gate_memory: verdicts of one gate on trees of one repository.
 *
 * The scheduler passes verdicts of earlier merges in the file `gates` of the
 * attempt; this merge adds its own, and reports them in its result.
 */
#ifndef GIT_GATE_MEMORY_H
#define GIT_GATE_MEMORY_H

#include "base/strbuf.h"
#include "exec/attempt_result.h"
#include "git/git.h"

struct gate_verdict {
    struct git_id tree;
    struct git_id commit; /* "": of an earlier merge */
    enum attempt_gate_verdict verdict;
    uint32_t tries;
    char *tested_by; /* "RUN, TASK" */
    char *output;    /* of a failure, or NULL */
};

/* Starts as {0}. */
struct gate_memory {
    struct gate_verdict *items;
    uint32_t count;
    uint32_t capacity;
    size_t output_bytes; /* of this merge's failures */
};

/* Read the file `gates` in the directory of the attempt. What is not valid is
 * skipped: the gate runs. */
void gate_memory_read(struct gate_memory *memory, const char *dir);

/* Return the verdict on a tree, or NULL. */
const struct gate_verdict *gate_memory_find(const struct gate_memory *memory,
                                            const struct git_id *tree);

/* Add a verdict of this merge, with copies of its strings. Return whether it is
 * kept: there is a limit on the output of failures. */
bool gate_memory_add(struct gate_memory *memory,
                     const struct gate_verdict *verdict);

/* Append text that a gate has printed: without control sequences, as valid
 * UTF-8, from the first whole line on if `cut`. */
void gate_memory_clean(struct strbuf *out,
                       const char *text,
                       size_t len,
                       bool cut);

void gate_memory_release(struct gate_memory *memory);

#endif /* GIT_GATE_MEMORY_H */
