/* SPDX-License-Identifier: MIT */
/*
 * exec: starting sessions, and hearing of their ends.
 *
 * A small server process (the program sluice-shim) has a shim for each
 * request: one that it forks, or one that is done with another. The shim takes
 * the attempt's lock, runs the command, sees to timeouts and to the whole
 * process tree, and writes down how it ended. Shims live on when this process
 * dies, until they are done. The server ends with this process.
 *
 * Nothing here blocks, and nothing here knows the event loop: it polls
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

/* One session to be started. All texts are borrowed for the call. */
struct exec_request {
    uint64_t id;         /* comes back in reports: the token */
    const char *dir;     /* of the attempt; made if it is not there */
    const char *folder;  /* working directory of the session; both absolute */
    const char *prepare; /* shell command to run first, or NULL */
    const char *nonce;   /* that the records of its start and end carry: see
                            exec/attempt.h; NULL: none */
    const char *const *argv;
    uint32_t argc;
    const char *const *env; /* "NAME=value", on top of the inherited ones;
                               SLUICE_RESULT is added if it is missing */
    uint32_t env_count;
    int64_t timeout_ns;     /* all of them run on while the scheduler is dead */
    int64_t idle_ns;        /* without a sign of life: see docs/attempts.md */
    bool idle_ignores_cpu;  /* CPU time is none: for agents, which wait and
                               poll, and print an event for all they do */
    int64_t checkpoint_ns;  /* then `checkpoint` is made, and SIGUSR1 sent to
                               processes that handle it */
    int64_t grace_ns;       /* between SIGTERM and SIGKILL */
    uint64_t log_bytes_max; /* 0: no limit */
};

enum exec_report_type {
    EXEC_STARTED, /* a shim has it: pid, start_ticks */
    EXEC_FAILED,  /* none has: error; nothing runs */
    EXEC_ENDED,   /* the shim is done with it, or gone: see its directory */
};

struct exec_report {
    enum exec_report_type type;
    uint64_t id;
    int64_t pid;
    uint64_t start_ticks;
    int error; /* errno of EXEC_FAILED; of EXEC_ENDED, when the shim could not
                  begin (ENOSPC...), and EAGAIN or EEXIST when another shim
                  has the attempt; else 0 */
};

typedef void (*exec_report_fn)(void *ctx, const struct exec_report *report);

struct exec;

/*
 * Find a program that belongs to this one: where the environment variable
 * says, or beside it. Its path replaces what is in *out.
 */
MUST_USE enum err exec_find_program(const char *name,
                                    const char *variable,
                                    struct strbuf *out,
                                    struct diag *diag);

/*
 * Start the server. `shim` is the path of sluice-shim, NULL: $SLUICE_SHIM, or
 * found beside this program, or in its ../libexec/sluice. ERR_NOT_FOUND: it is
 * not there. ERR_CONFLICT: it belongs to another version. ERR_UNAVAILABLE: it
 * does not answer. This alone waits, for the answer.
 */
MUST_USE enum err
exec_open(struct exec **out, const char *shim, struct diag *diag);

struct rlimit;

/* Have everything that is started from here on see this limit of open files,
 * and not that of this process. Call it before exec_start(). */
void exec_limit_files(const struct exec *exec, const struct rlimit *files);

/* End the server; sessions live on. NULL is allowed. */
void exec_close(struct exec *exec);

/* Readable when exec_read() has something to do. */
int exec_fd(const struct exec *exec);

/*
 * Have a session started. Requests that the server cannot take at once are
 * kept and sent by exec_read(), or when exec_wants_write() is true and the fd
 * has become writable, by exec_flush(). Fails only when the request can never
 * be carried out (ERR_LIMIT: longer than the system allows; ERR_INVALID: a path
 * is not absolute).
 */
MUST_USE enum err exec_start(struct exec *exec,
                             const struct exec_request *request,
                             struct diag *diag);
bool exec_wants_write(const struct exec *exec);
MUST_USE enum err exec_flush(struct exec *exec, struct diag *diag);

/*
 * Hand out the reports that are there. ERR_UNAVAILABLE: the server has died;
 * close this and open another, then ask for what was not reported: starting an
 * attempt twice runs it once.
 */
MUST_USE enum err
exec_read(struct exec *exec, exec_report_fn fn, void *ctx, struct diag *diag);

/* How to end a session. */
enum exec_end {
    EXEC_CANCEL,     /* cause: ATTEMPT_CANCELLED */
    EXEC_STOP,       /* cause: ATTEMPT_STOPPED */
    EXEC_CHECKPOINT, /* ask it to commit and end soon */
};

/*
 * Open a descriptor that becomes readable when this shim ends. The process is
 * verified by its start time: ERR_NOT_FOUND when it is another one, or gone.
 * The caller closes the descriptor.
 */
MUST_USE enum err exec_watch(int64_t pid,
                             uint64_t start_ticks,
                             int *pidfd_out,
                             struct diag *diag);

/*
 * Tell a shim to end the session of the request with this id; verified in the
 * same way. A shim that has another session by now does nothing.
 */
MUST_USE enum err exec_signal(int64_t pid,
                              uint64_t start_ticks,
                              uint64_t id,
                              enum exec_end how,
                              struct diag *diag);

#endif /* EXEC_EXEC_H */
