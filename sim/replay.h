/* SPDX-License-Identifier: MIT */
/*
 * replay: what the sessions of a run did, for a simulation that does the same
 * work again.
 *
 * Attempt k of a task takes as long as its k-th session took, and has the same
 * outcome. A task that was done and is attempted more often than that is done
 * after its last length. A task that was not done starts no other session after
 * its last one, nor one that never had a session. A task that was parked after
 * an attempt and had another one is retried after the time that it was parked.
 * A session that asked to be run again is, after as long a time. A task that a
 * session added may start when that session has ended.
 */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "sim/sim.h"

/* A session of a task. */
struct replay_attempt {
    int64_t length_ns;
    int64_t parked_ns; /* until it was retried, skipped, or ready again */
    enum sim_end end;  /* any but CANCELLED, REFUSED and RUNNING */
};

struct replay_task {
    uint32_t first; /* of its attempts */
    uint32_t count;
    bool done;            /* at the end of the run */
    bool skipped;         /* instead, after its last attempt */
    bool late;            /* not there from the start: it waits for `adder`, or
                             for a request of the script to release it */
    uint32_t adder;       /* task whose session added it, or PLAN_NONE */
    uint32_t adder_count; /* its attempts that had ended then */
};

/* All of a run. Starts as {0}; release with replay_release(). */
struct replay {
    struct replay_task *tasks; /* as in the plan */
    uint32_t task_count;
    struct replay_attempt *attempts; /* by task, in order */
    uint32_t attempt_count;
    bool adds; /* a task has an adder */
};

void replay_release(struct replay *replay);

#endif /* SIM_REPLAY_H */
