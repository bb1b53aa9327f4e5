/* SPDX-License-Identifier: MIT */
/*
 * proctree: lists of processes, read from /proc by walking down from a parent.
 *
 * The number of a process that was found may belong to another one a moment
 * later. So a child is taken only if its parent is the process from which the
 * walk came, or this process, which as a subreaper inherits orphans; and
 * proctree_open() compares start times before anyone sends a signal.
 *
 * A walk may miss a process that is being forked meanwhile.
 *
 * It uses the C library only, as the shim does. When memory runs out, a list
 * stays shorter than it should be.
 */
#ifndef EXEC_PROCTREE_H
#define EXEC_PROCTREE_H

#include "base/macros.h"
#include "exec/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proctree_process {
    pid_t pid;
    uint64_t stat[RECORD_STAT_COUNT];
};

/* A list, empty when zeroed. Callers read items and count. */
struct proctree {
    struct proctree_process *items;
    uint32_t count;
    uint32_t capacity;
};

/* Give back the contents. */
void proctree_release(struct proctree *tree);

/* Read from the start of a file, or of /proc/PID/NAME; how many bytes, 0: there
 * is no such file. */
size_t proctree_read_path(const char *path, char *buf, size_t size);
size_t proctree_read(pid_t pid, const char *name, char *buf, size_t size);

/* Append a number in digits, with a NUL behind it; where that NUL is. There
 * must be room for 21 bytes. */
char *proctree_add_number(char *at, uint64_t number);

/* The boot id of the machine; zeros: it cannot be read now. */
void proctree_boot_id(char out[37]);

/* Read /proc/PID/stat; false: there is no such process. */
MUST_USE bool proctree_read_stat(pid_t pid, uint64_t stat[RECORD_STAT_COUNT]);

/* Called with the path of a file of a thread; false: no further call. */
typedef bool (*proctree_thread_fn)(void *ctx, const char *path);

/* Go through /proc/PID/task/TID/NAME for each thread of a process; false: `fn`
 * has returned false, or there is no such process. */
bool proctree_each_thread(pid_t pid,
                          const char *name,
                          proctree_thread_fn fn,
                          void *ctx);

/* Whether a thread of the process runs or waits for a CPU. */
bool proctree_is_runnable(const struct proctree_process *process);

/* Add one process, its children, or all processes below this one. */
void proctree_add(struct proctree *tree, pid_t pid);
void proctree_add_children(struct proctree *tree, pid_t parent);
void proctree_add_all(struct proctree *tree);

/*
 * Open a pidfd of a process that was found; 0 or an errno. ESRCH: it is gone.
 * After any other error it was still there, but this system has no descriptor
 * for it. The caller closes *fd_out.
 */
MUST_USE int proctree_open(const struct proctree_process *process, int *fd_out);

#endif /* EXEC_PROCTREE_H */
