/* SPDX-License-Identifier: MIT */
/*
 * machine: interface of a worker to its machine: processes and attempt
 * directories. The functions are those of exec/exec.h and exec/attempt.h; the
 * simulator has its own machine, with faults.
 */
#ifndef WORK_MACHINE_H
#define WORK_MACHINE_H

#include "exec/attempt.h"
#include "exec/attempt_result.h"
#include "exec/exec.h"
#include "work/mark.h"

/* `ctx` belongs to the machine. */
struct work_machine {
    /* Return a clock that continues while the machine is suspended. */
    int64_t (*now_ns)(void *ctx);
    /* Begin to start a session; worker_reported() reports it. On error it can
     * never be started, and *diag has the reason. */
    enum err (*start)(void *ctx,
                      const struct exec_request *request,
                      struct diag *diag);
    /* Stop the session of the request with this token on the marked shim.
     * ERR_NOT_FOUND: it is gone already. */
    enum err (*end)(void *ctx,
                    const struct work_mark *mark,
                    uint64_t token,
                    enum exec_end how);
    /* Watch a shim that another process started: worker_gone() reports its
     * exit. ERR_NOT_FOUND: it is gone already. */
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
    /* Write or read a small file of a directory. */
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
    /* Remove a directory and its files, if possible. */
    void (*drop)(void *ctx, const char *dir);
};

#endif /* WORK_MACHINE_H */
