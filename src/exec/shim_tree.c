/* SPDX-License-Identifier: MIT */
/*
 * Processes below this one. A shim is a subreaper, so despite double forks and
 * new sessions, all processes of a session stay below the shim until they exit,
 * and proctree finds them.
 *
 * A walk may miss a process that is being forked meanwhile. The caller repeats
 * it until waitpid() finds no children.
 */
#include "base/duration.h"
#include "exec/proctree.h"
#include "exec/shim_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A tick of /proc: USER_HZ is 100, whatever the kernel's own rate. */
#define TICK_NS (10 * MS_NS)

/* Signal a process, unless its pid was reused. */
static void signal_found(const struct proctree_process *found, int signal)
{
    int fd;
    int error = proctree_open(found, &fd);
    if (error == 0) {
        (void)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0U);
        (void)close(fd);
    } else if (error != ESRCH) {
        /* No descriptor available; stop the session anyway. */
        (void)kill(found->pid, signal);
    }
}

uint32_t shim_tree_signal(int signal, pid_t skip_group)
{
    struct proctree tree = {0};
    proctree_add_all(&tree);
    uint32_t count = tree.count;
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct proctree_process *found = &tree.items[ix];
        if (skip_group == 0 ||
            found->stat[RECORD_STAT_GROUP] != (uint64_t)skip_group) {
            signal_found(found, signal);
        }
    }
    proctree_release(&tree);
    return count;
}

uint64_t shim_tree_cpu_ns(bool *runnable_out)
{
    struct proctree tree = {0};
    proctree_add_all(&tree);
    uint64_t ticks = 0;
    *runnable_out = false;
    for (uint32_t ix = 0; ix < tree.count; ix++) {
        const struct proctree_process *found = &tree.items[ix];
        ticks += found->stat[RECORD_STAT_CPU_TICKS];
        *runnable_out = *runnable_out || proctree_is_runnable(found);
    }
    proctree_release(&tree);
    return ticks * (uint64_t)TICK_NS;
}

bool shim_tree_is_outside(pid_t pid)
{
    enum { GENERATIONS_MAX = 1000 };
    for (int ix = 0; ix < GENERATIONS_MAX && pid > 1; ix++) {
        uint64_t stat[RECORD_STAT_COUNT];
        if (pid == getpid() || !proctree_read_stat(pid, stat)) {
            return false;
        }
        pid = (pid_t)stat[RECORD_STAT_PARENT];
    }
    return pid <= 1;
}

uint64_t shim_start_ticks(pid_t pid, int64_t before_ns)
{
    if (before_ns / TICK_NS == shim_clock(CLOCK_BOOTTIME) / TICK_NS) {
        return (uint64_t)(before_ns / TICK_NS);
    }
    uint64_t stat[RECORD_STAT_COUNT];
    return proctree_read_stat(pid, stat) ? stat[RECORD_STAT_START_TICKS] : 0;
}
