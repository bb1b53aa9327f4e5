/* SPDX-License-Identifier: MIT */
/*
 * exec: client that starts sessions and receives reports of them.
 *
 * A small server process (the program sluice-shim) has a shim for each request:
 * it forks a shim, or reuses a shim that has finished another request. The shim
 * takes the attempt's lock, runs the command, enforces timeouts, controls the
 * whole process tree, and records the exit. Shims outlive this process until
 * they finish. The server exits with this process.
 *
 * Nothing here blocks or depends on the event loop: the event loop polls
 * exec_fd() for reading and calls exec_read().
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* "No limit", for the times below. */
#define EXEC_NEVER INT64_MAX

/* One session to start. All strings are borrowed for the call. */
struct exec_request {
    uint64_t id;         /* returned in reports: the fencing token */
    const char *dir;     /* attempt directory; created if missing */
    const char *folder;  /* working directory of the session; both absolute */
    const char *prepare; /* shell command to run first, or NULL */
    const char *lease;   /* path of the file with the end of the lease, after
                            which the session may not run; NULL: none. See
                            exec/lease.h */
    const char *spare;   /* directory of an ended attempt that is not needed any
                            more: it may become `dir`; NULL: none */
    const char *nonce;   /* written to the records of its start and exit: see
                            exec/attempt.h; NULL: none */
    const char *const *argv;
    uint32_t argc;
    const char *const *env; /* "NAME=value", added to the inherited variables;
                               SLUICE_RESULT is added if missing */
    uint32_t env_count;
    int64_t timeout_ns;     /* all timeouts outlive the scheduler */
    int64_t idle_ns;        /* without a sign of life: see docs/attempts.md */
    bool idle_ignores_cpu;  /* CPU time does not count: for agents, which wait,
                               poll, and print an event per action */
    int64_t checkpoint_ns;  /* then the shim creates `checkpoint`, and sends
                               SIGUSR1 to processes that handle it */
    int64_t grace_ns;       /* between SIGTERM and SIGKILL */
    uint64_t log_bytes_max; /* 0: no limit */
};

enum exec_report_type {
    EXEC_STARTED, /* a shim has it: pid, start_ticks */
    EXEC_FAILED,  /* no shim has it: error; nothing runs */
    EXEC_ENDED,   /* the shim has finished it, or is gone: read its directory */
};

struct exec_report {
    enum exec_report_type type;
    uint64_t id;
    int64_t pid;
    uint64_t start_ticks;
    int error; /* errno of EXEC_FAILED; of EXEC_ENDED, if the shim could not
                  begin (ENOSPC...), and EAGAIN or EEXIST if another shim has
                  the attempt; else 0 */
};

typedef void (*exec_report_fn)(void *ctx, const struct exec_report *report);

struct exec;

/*
 * Find a program of this installation: at the path in the environment variable,
 * or next to this program. Its path replaces the content of *out.
 */
MUST_USE enum err exec_find_program(const char *name,
                                    const char *variable,
                                    struct strbuf *out,
                                    struct diag *diag);

/*
 * Start the server. `shim` is the path of sluice-shim; if NULL: $SLUICE_SHIM,
 * or next to this program, or in its ../libexec/sluice. ERR_NOT_FOUND: it does
 * not exist. ERR_CONFLICT: it has another version. ERR_UNAVAILABLE: it does not
 * respond. Blocks until the server responds.
 */
MUST_USE enum err
exec_open(struct exec **out, const char *shim, struct diag *diag);

struct rlimit;

/* Set the open-file limit of everything started from here on, independent of
 * the limit of this process. Call it before exec_start(). */
void exec_limit_files(const struct exec *exec, const struct rlimit *files);

/* Stop the server; sessions keep running. NULL is allowed. */
void exec_close(struct exec *exec);

/* Return a descriptor that is readable when exec_read() has work. */
int exec_fd(const struct exec *exec);

/*
 * Start a session. Requests that the server cannot take at once are queued and
 * sent by exec_read(), or by exec_flush() when exec_wants_write() is true and
 * the fd is writable. Fails only if the request can never succeed (ERR_LIMIT:
 * longer than the system allows; ERR_INVALID: a path is not absolute).
 */
MUST_USE enum err exec_start(struct exec *exec,
                             const struct exec_request *request,
                             struct diag *diag);
bool exec_wants_write(const struct exec *exec);
MUST_USE enum err exec_flush(struct exec *exec, struct diag *diag);

/*
 * Deliver the pending reports. ERR_UNAVAILABLE: the server has died; close this
 * and open another, then repeat the requests without a report: starting an
 * attempt twice runs it once.
 */
MUST_USE enum err
exec_read(struct exec *exec, exec_report_fn fn, void *ctx, struct diag *diag);

/* How to stop a session. */
enum exec_end {
    EXEC_CANCEL,     /* cause: ATTEMPT_CANCELLED */
    EXEC_STOP,       /* cause: ATTEMPT_STOPPED */
    EXEC_CHECKPOINT, /* ask it to commit and exit soon */
};

/*
 * Open a descriptor that becomes readable when this shim exits. The start time
 * identifies the process: ERR_NOT_FOUND if it is gone or the pid was reused.
 * The caller closes the descriptor.
 */
MUST_USE enum err exec_watch(int64_t pid,
                             uint64_t start_ticks,
                             int *pidfd_out,
                             struct diag *diag);

/*
 * Ask a shim to stop the session of the request with this id; verified in the
 * same way. A shim that has another session by now does nothing.
 */
MUST_USE enum err exec_signal(int64_t pid,
                              uint64_t start_ticks,
                              uint64_t id,
                              enum exec_end how,
                              struct diag *diag);

#endif /* EXEC_EXEC_H */
