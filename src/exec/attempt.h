/* SPDX-License-Identifier: MIT */
/*
 * attempt: attempt directory, which is the protocol between the scheduler and
 * the shim, and outlives both.
 *
 *   lock      locked by the shim while it lives, in a way that others can probe
 *             without taking the lock; becomes `exit`
 *   started   link to `lock`, created by the shim before it runs anything: only
 *             the shim that created it may run the command. A directory that
 *             was that of an earlier attempt has `started` and `exit` from the
 *             beginning, and no `lock`
 *   log       output of the session
 *   result    JSON, written by the session ($SLUICE_RESULT)
 *   exit      written by the shim at the end, by rename
 *   progress, checkpoint, feedback, batch, queue    see docs/attempts.md
 *
 * record.c defines the formats of `started` and `exit`; attempt.c explains why
 * reading them is safe at any moment.
 *
 * Nothing here is synced to disk. A killed process loses nothing; after a power
 * cut the boot id differs, and an attempt without a whole `exit` record counts
 * as lost, whether or not `started` exists.
 */
#ifndef EXEC_ATTEMPT_H
#define EXEC_ATTEMPT_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a nonce: hexadecimal digits and a NUL. */
enum { ATTEMPT_NONCE_BYTES = 33 };

/* Why a session exited. */
enum attempt_cause {
    ATTEMPT_EXIT,      /* by itself: code or signal */
    ATTEMPT_TIMEOUT,   /* hard timeout */
    ATTEMPT_IDLE,      /* no sign of life for too long */
    ATTEMPT_CANCELLED, /* an operator's order */
    ATTEMPT_STOPPED,   /* the scheduler was told to stop all sessions */
    ATTEMPT_SPAWN,     /* the command could not be started: `error` */
    ATTEMPT_PREPARE,   /* the prepare command failed: code or signal */
    ATTEMPT_LEASE,     /* the lease of its worker has ended */
};

/* The record in `exit`. */
struct attempt_exit {
    enum attempt_cause cause;
    int code;               /* -1: killed by a signal, or never ran */
    int signal;             /* 0: none */
    int error;              /* errno of ATTEMPT_SPAWN; else 0 */
    int64_t begun_ns;       /* wall clock */
    int64_t ended_ns;       /* wall clock */
    int64_t cpu_ns;         /* of the session and its reaped descendants */
    uint64_t log_bytes;     /* written in all */
    uint64_t log_cut_bytes; /* removed from the middle */
    char nonce[ATTEMPT_NONCE_BYTES]; /* "": a record of an earlier version */
    bool sealed; /* both are known: not in records of the first version */
    int64_t result_bytes; /* of the file `result`; -1: none */
    uint64_t result_sum;  /* of its content */
};

enum attempt_state {
    ATTEMPT_NEVER,    /* nothing has run, and nothing runs */
    ATTEMPT_STARTING, /* a shim holds the lock, has not begun: inspect again */
    ATTEMPT_LIVE,     /* a shim holds the lock: pid and start_ticks are set */
    ATTEMPT_ENDED,    /* `exit` is set */
    ATTEMPT_LOST,     /* it began, its shim is gone, and it has no record */
};

struct attempt_found {
    enum attempt_state state;
    int64_t pid; /* of the shim */
    uint64_t start_ticks;
    char boot_id[37];
    bool fenced; /* of ATTEMPT_LOST: it was fenced, so nothing ran */
    bool named;  /* a record was found; its nonce, "" if it has none */
    char nonce[ATTEMPT_NONCE_BYTES];
    struct attempt_exit exit;
};

/*
 * Determine from the directory the state of an attempt. `boot_id` is the boot
 * in which it was claimed: if that is not the current boot, an attempt without
 * `exit`, or without the result that belongs to it, is lost. ERR_UNAVAILABLE:
 * the state is unknown for now (too many open files). If the directory does not
 * exist: ATTEMPT_NEVER (or ATTEMPT_LOST, by that rule). A damaged `exit` counts
 * as absent; `started` counts if it exists. A fenced attempt is lost: `fenced`.
 * After ATTEMPT_NEVER a shim may still be about to take the lock: fence the
 * attempt, or start it again.
 *
 * The state may be that of another attempt, which used this directory before
 * its store was removed or replaced by an older copy. Compare the nonce with
 * the nonce in the attempt's row.
 */
MUST_USE enum err attempt_inspect(const char *dir,
                                  const char *boot_id,
                                  struct attempt_found *out,
                                  struct diag *diag);

/*
 * Rename the directory to DIR.stale-N, because it belongs to another attempt.
 * ERR_OK also if it does not exist.
 */
MUST_USE enum err attempt_set_aside(const char *dir, struct diag *diag);

/*
 * Ensure that the attempt with this nonce ("": none) never runs: take its lock
 * and create `started`. On success *fenced_out is true if this call did it;
 * false if a shim was faster: call attempt_inspect() for its state.
 */
MUST_USE enum err attempt_fence(const char *dir,
                                const char *nonce,
                                bool *fenced_out,
                                struct diag *diag);

/*
 * Kill every process of the attempt, found by the marker in its environment
 * (SLUICE_RESULT is the attempt's own file), when the shim is gone and cannot
 * do it. Return the number killed. Signals go through pidfds. Then kill all
 * processes in the control group of its shim, the shim included.
 */
uint32_t attempt_kill_strays(const char *dir);

/* Whether such a process exists. None does before `started` exists. */
bool attempt_has_strays(const char *dir);

/* Return the boot id of the machine; the start time of a process in ticks since
 * boot; its state, as the kernel's letter (0: no such process). */
void attempt_boot_id(char out[37]);
uint64_t attempt_start_ticks(int64_t pid);
char attempt_process_state(int64_t pid);

/* Append the last `bytes` bytes of the log, from the start of a line, without
 * control characters except newline and tab, as valid UTF-8. */
void attempt_add_log_tail(const char *dir, size_t bytes, struct strbuf *out);

#endif /* EXEC_ATTEMPT_H */
