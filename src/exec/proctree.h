/* SPDX-License-Identifier: MIT */
/*
 * proctree: process lists, read from /proc by walking down from a parent.
 *
 * The pid of a listed process may belong to another process a moment later. So
 * a child is added only if its parent is the process from which the walk came,
 * or this process, which as a subreaper inherits orphans; and proctree_open()
 * compares start times before any signal is sent.
 *
 * A walk may miss a process that is being forked meanwhile.
 *
 * It uses the C library only, as the shim does. If memory runs out, a list is
 * shorter than it should be.
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

/* Free the contents. */
void proctree_release(struct proctree *tree);

/* Read from the start of a file, or of /proc/PID/NAME; return the number of
 * bytes, 0 if the file does not exist. */
size_t proctree_read_path(const char *path, char *buf, size_t size);
size_t proctree_read(pid_t pid, const char *name, char *buf, size_t size);

/* Append a number in digits and a NUL; return the address of the NUL. The
 * buffer must have room for 21 bytes. */
char *proctree_add_number(char *at, uint64_t number);

/* Get the boot id of the machine; zeros: unreadable for now. */
void proctree_boot_id(char out[37]);

/* Read /proc/PID/stat; return false if the process does not exist. */
MUST_USE bool proctree_read_stat(pid_t pid, uint64_t stat[RECORD_STAT_COUNT]);

/* Called with the path of a thread's file; return false to stop. */
typedef bool (*proctree_thread_fn)(void *ctx, const char *path);

/* Call `fn` for /proc/PID/task/TID/NAME of each thread; return false if `fn`
 * did, or if the process does not exist. */
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
 * Open a pidfd of a listed process; return 0 or an errno. ESRCH: it is gone.
 * After any other error it still existed, but this system has no descriptor for
 * it. The caller closes *fd_out.
 */
MUST_USE int proctree_open(const struct proctree_process *process, int *fd_out);

#endif /* EXEC_PROCTREE_H */
