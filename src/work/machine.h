/* SPDX-License-Identifier: MIT */
/*
 * machine: what a worker needs of the machine that it works on: processes, and
 * the directories of attempts. The functions are those of exec/exec.h and
 * exec/attempt.h; the simulator has a machine of its own, with faults.
 */
#ifndef WORK_MACHINE_H
#define WORK_MACHINE_H

#include "exec/attempt.h"
#include "exec/attempt_result.h"
#include "exec/exec.h"
#include "work/mark.h"

/* `ctx` is the machine's own. */
struct work_machine {
    /* A clock that goes on while the machine sleeps. */
    int64_t (*now_ns)(void *ctx);
    /* Begin to start a session; worker_reported() tells of it. An error: it
     * can never be started, and *diag says why. */
    enum err (*start)(void *ctx,
                      const struct exec_request *request,
                      struct diag *diag);
    /* End the session of the request with this token, whose shim is marked.
     * ERR_NOT_FOUND: it is gone already. */
    enum err (*end)(void *ctx,
                    const struct work_mark *mark,
                    uint64_t token,
                    enum exec_end how);
    /* Watch a shim that was started by another process: worker_gone() tells
     * that it has ended. ERR_NOT_FOUND: it is gone already. */
    enum err (*watch)(void *ctx, const struct work_mark *mark, uint64_t token);
    enum err (*inspect)(void *ctx,
                        const char *dir,
                        const char *boot_id,
                        struct attempt_found *out,
                        struct diag *diag);
    enum err (*set_aside)(void *ctx, const char *dir, struct diag *diag);
    enum err (*fence)(void *ctx,
                      const char *dir,
                      const char *nonce,
                      bool *fenced_out,
                      struct diag *diag);
    bool (*has_strays)(void *ctx, const char *dir);
    void (*kill_strays)(void *ctx, const char *dir);
    enum err (*result)(void *ctx,
                       const char *dir,
                       struct attempt_result *out,
                       struct diag *diag);
    void (*log_tail)(void *ctx,
                     const char *dir,
                     size_t bytes,
                     struct strbuf *out);
    /* Write, and read, a small file of a directory. */
    enum err (*put)(void *ctx,
                    const char *dir,
                    const char *name,
                    const struct strbuf *text,
                    struct diag *diag);
    enum err (*get)(void *ctx,
                    const char *dir,
                    const char *name,
                    struct strbuf *out,
                    struct diag *diag);
    /* Remove a directory and its files, if that can be done. */
    void (*drop)(void *ctx, const char *dir);
};

#endif /* WORK_MACHINE_H */
