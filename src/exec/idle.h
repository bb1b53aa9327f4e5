/* SPDX-License-Identifier: MIT */
/*
 * idle: idle detection, from samples of a session's process tree.
 *
 * Signs of life are output, a change of the file `progress`, and CPU time: at
 * least 1 % of one CPU over the silence since the last sign. A process that
 * wakes each second to check a clock uses less, and becomes idle.
 *
 * Time does not count as silence
 *   - while the caller could not take its sample: the machine may have been
 *     suspended, and the session with it;
 *   - between two samples, if the second finds a process that runs or waits
 *     for a CPU: on a busy machine a session may get next to no CPU time,
 *     however much work it has.
 *
 * With ignores_cpu, neither CPU time nor waiting for a CPU matters.
 *
 * The module reads no clock and no file: the shim does, and tests need not. It
 * uses the C library only, as the shim does.
 */
#ifndef EXEC_IDLE_H
#define EXEC_IDLE_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

/* A timeout that never comes. */
#define IDLE_NEVER INT64_MAX

/* The state of a session at one point in time. */
struct idle_sample {
    int64_t at_ns;          /* CLOCK_MONOTONIC */
    uint64_t log_bytes;     /* written so far */
    int64_t progress_bytes; /* size of the file `progress`; 0: none */
    int64_t progress_ns;    /* its modification time */
    uint64_t cpu_ns; /* used so far by the process tree; it may shrink, when a
                        process exits that no other process waits for */
    bool runnable;   /* a process runs or waits for a CPU */
};

/* One session. For embedding; callers read only sample_at. */
struct idle {
    int64_t timeout_ns;
    bool ignores_cpu;
    int64_t sample_at; /* when the next sample is due; IDLE_NEVER: never */
    int64_t silent_ns; /* silence since the last sign of life */
    uint64_t used_ns;  /* CPU time used in the meantime */
    struct idle_sample last; /* the previous sample */
};

/* Start to observe a new session. */
void idle_init(struct idle *idle,
               int64_t timeout_ns,
               bool ignores_cpu,
               int64_t now_ns);

/* Add a sample, which is not due before sample_at; return true if the session
 * has been silent for timeout_ns. */
MUST_USE bool idle_add(struct idle *idle, const struct idle_sample *sample);

#endif /* EXEC_IDLE_H */
