/* SPDX-License-Identifier: MIT */
/*
 * attempt: the directory of one attempt, which is the protocol between the
 * scheduler and the shim, and outlives both.
 *
 *   lock      locked by the shim as long as it lives, in a way that can be
 *             looked at without taking it; becomes `exit`
 *   started   a link to `lock`, made by the shim before anything runs: only the
 *             shim that has made it may run the command
 *   log       what the session wrote
 *   result    JSON, written by the session ($SLUICE_RESULT)
 *   exit      written by the shim at the end, by rename
 *   progress, checkpoint, feedback, batch    see docs/attempts.md
 *
 * The formats of `started` and `exit` are written down in record.c, and why
 * reading them is safe at any moment in attempt.c.
 *
 * Nothing here is synced to the disk. A killed process loses nothing; after a
 * power cut the boot id differs, and an attempt without a whole `exit` record
 * counts as lost, whether or not it has `started`.
 */
#ifndef EXEC_ATTEMPT_H
#define EXEC_ATTEMPT_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a nonce: hexadecimal digits and a NUL. */
enum { ATTEMPT_NONCE_BYTES = 33 };

/* Why a session ended. */
enum attempt_cause {
    ATTEMPT_EXIT,      /* by itself: code or signal */
    ATTEMPT_TIMEOUT,   /* hard timeout */
    ATTEMPT_IDLE,      /* no sign of life for too long */
    ATTEMPT_CANCELLED, /* an operator's order */
    ATTEMPT_STOPPED,   /* the scheduler was told to end everything */
    ATTEMPT_SPAWN,     /* it could not be started: `error` */
    ATTEMPT_PREPARE,   /* its prepare command failed: code or signal */
};

/* The record in `exit`. */
struct attempt_exit {
    enum attempt_cause cause;
    int code;               /* -1: it was ended by a signal, or never ran */
    int signal;             /* 0: none */
    int error;              /* errno of ATTEMPT_SPAWN; else 0 */
    int64_t begun_ns;       /* wall clock */
    int64_t ended_ns;       /* wall clock */
    int64_t cpu_ns;         /* of the session and its reaped descendants */
    uint64_t log_bytes;     /* written in all */
    uint64_t log_cut_bytes; /* cut out of the middle */
};

enum attempt_state {
    ATTEMPT_NEVER,    /* nothing has run, and nothing runs */
    ATTEMPT_STARTING, /* a shim holds the lock but has not begun: look again */
    ATTEMPT_LIVE,     /* a shim holds the lock: pid and start_ticks are set */
    ATTEMPT_ENDED,    /* `exit` is set */
    ATTEMPT_LOST,     /* it began, its shim is gone, and there is no record */
};

struct attempt_found {
    enum attempt_state state;
    int64_t pid; /* of the shim */
    uint64_t start_ticks;
    char boot_id[37];
    bool named; /* a record was found; with this nonce, "" if it has none */
    char nonce[ATTEMPT_NONCE_BYTES];
    struct attempt_exit exit;
};

/*
 * Find out from the directory what became of an attempt. `boot_id` is the boot
 * in which it was claimed: when that is not the present one, an attempt
 * without `exit` is lost. ERR_UNAVAILABLE: it cannot be found out now (too many
 * open files). A directory that is not there: ATTEMPT_NEVER (or
 * ATTEMPT_LOST, by that rule). A damaged `exit` counts as absent; `started`
 * counts by being there. A fenced attempt is lost. After ATTEMPT_NEVER a shim
 * may still be on its way to the lock: fence it, or start it again.
 *
 * What is found may be about another attempt, which had this directory before
 * its store was removed, or an older copy of it put back. The nonce tells: it
 * is to be compared with the one in the attempt's row.
 */
MUST_USE enum err attempt_inspect(const char *dir,
                                  const char *boot_id,
                                  struct attempt_found *out,
                                  struct diag *diag);

/*
 * Give the directory another name, DIR.stale-N, because it is of another
 * attempt. ERR_OK also if there is none.
 */
MUST_USE enum err attempt_set_aside(const char *dir, struct diag *diag);

/*
 * See to it that the attempt of this nonce (""; none) never runs: take its lock
 * and make `started`. On
 * success *fenced_out tells whether this call did it; false: a shim was
 * faster, and attempt_inspect() tells more.
 */
MUST_USE enum err attempt_fence(const char *dir,
                                const char *nonce,
                                bool *fenced_out,
                                struct diag *diag);

/*
 * End every process that belongs to the attempt, found by the marker in its
 * environment (SLUICE_RESULT is the attempt's own file), when the shim is gone
 * and cannot do it. Returns the number ended. Signals go through pidfds. Then
 * kill all that is left in the control group of its shim, the shim included.
 */
uint32_t attempt_kill_strays(const char *dir);

/* Whether there is such a process. There is none before `started` is made. */
bool attempt_has_strays(const char *dir);

/* Present boot id of the machine. Start time of a process in ticks since boot,
 * and its state, the letter of the kernel (0: there is no such process). */
void attempt_boot_id(char out[37]);
uint64_t attempt_start_ticks(int64_t pid);
char attempt_process_state(int64_t pid);

/* Append the last `bytes` bytes of the log, from a line's start on, with
 * control characters but newline and tab removed, as valid UTF-8. */
void attempt_add_log_tail(const char *dir, size_t bytes, struct strbuf *out);

#endif /* EXEC_ATTEMPT_H */
