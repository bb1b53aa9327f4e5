/* SPDX-License-Identifier: MIT */
/*
 * Control group of a shim: see cgroup.h.
 *
 * Moving a process into a group delays all forks of the machine for over 10 ms.
 * A process created there (CLONE_INTO_CGROUP) costs no more than a fork. So the
 * shim itself is forked into its group, and its children are created there,
 * too. A group belongs to a shim, not to an attempt: a shim that takes another
 * request keeps it, because its session has left no process. Only the attribute
 * changes.
 *
 * While the shim lives, it finds its processes by walking down. The group is
 * for the processes that outlive a killed shim, and for the shim's own last
 * resort: it leaves the group and lets the kernel kill all processes in it.
 *
 * The server removes the group when it reaps the shim. A shim that has outlived
 * its server removes the group itself. If both were killed, the next server
 * finds the group empty, with the pid of a dead server in its name.
 */
#include "base/crash.h"
#include "exec/cgroup.h"
#include "exec/proctree.h"
#include "exec/shim_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* From <linux/sched.h>, which not every C library allows to include. */
#define INTO_CGROUP UINT64_C(0x200000000)

/* struct clone_args of Linux 5.7. */
struct clone_call {
    uint64_t flags;
    uint64_t pidfd;
    uint64_t child_tid;
    uint64_t parent_tid;
    uint64_t exit_signal;
    uint64_t stack;
    uint64_t stack_size;
    uint64_t tls;
    uint64_t set_tid;
    uint64_t set_tid_size;
    uint64_t cgroup;
};

/* Remove the groups of dead servers and their shims. */
static void sweep(int parent_fd)
{
    DIR *dir = cgroup_open_list(parent_fd, ".");
    if (dir == NULL) {
        return;
    }
    const size_t len = sizeof(CGROUP_PREFIX) - 1;
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (strncmp(name, CGROUP_PREFIX, len) == 0) {
            pid_t server = (pid_t)strtol(name + len, NULL, 10);
            if (server > 0 && kill(server, 0) != 0 && errno == ESRCH) {
                cgroup_remove(parent_fd, name);
            }
        }
    }
    (void)closedir(dir);
}

int shim_cgroup_open(void)
{
    int fd = cgroup_open_own();
    if (fd >= 0) {
        sweep(fd);
    }
    return fd;
}

/* Fork into the group. The C library's work around a fork is for threads, and
 * this process has one. */
static pid_t fork_into(int fd)
{
    struct clone_call call = {
        .flags = INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)fd,
    };
    return (pid_t)syscall(SYS_clone3, &call, sizeof(call));
}

/* Create the group and open it; on failure the name stays empty. */
static void create(struct shim_cgroup *group, uint32_t number)
{
    char name[SHIM_CGROUP_BYTES] = CGROUP_PREFIX;
    char *end = name + sizeof(CGROUP_PREFIX) - 1;
    end = proctree_add_number(end, (uint64_t)getpid());
    *end++ = '-';
    (void)proctree_add_number(end, number);
    if (group->parent_fd < 0 || mkdirat(group->parent_fd, name, 0755) != 0) {
        return;
    }
    group->fd = cgroup_open(group->parent_fd, name);
    if (group->fd < 0) {
        cgroup_remove(group->parent_fd, name);
        return;
    }
    memcpy(group->name, name, sizeof(name));
}

pid_t shim_cgroup_fork(struct shim_cgroup *group,
                       int parent_fd,
                       uint32_t number)
{
    *group = (struct shim_cgroup){
        .fd = -1,
        .parent_fd = parent_fd,
    };
    create(group, number);
    crash_point("server-cgroup-made");
    if (group->fd < 0) {
        return fork();
    }
    pid_t pid = fork_into(group->fd);
    if (pid == 0) {
        return 0;
    }
    (void)close(group->fd);
    group->fd = -1;
    if (pid < 0) { /* the kernel or a filter denies it */
        cgroup_remove(parent_fd, group->name);
        group->name[0] = '\0';
        pid = fork();
    }
    return pid;
}

void shim_cgroup_set(const struct shim_cgroup *group, const char *dir)
{
    if (group->fd >= 0 && dir != NULL) {
        (void)fsetxattr(group->fd, CGROUP_ATTRIBUTE, dir, strlen(dir), 0);
    } else if (group->fd >= 0) {
        (void)fremovexattr(group->fd, CGROUP_ATTRIBUTE);
    }
}

void shim_cgroup_kill(struct shim_cgroup *group)
{
    if (group->fd >= 0 && !group->left) {
        group->left = cgroup_enter(group->parent_fd);
    }
    if (group->left) {
        cgroup_kill(group->fd);
    }
}

void shim_cgroup_remove(struct shim_cgroup *group)
{
    if (group->fd >= 0 && (group->left || cgroup_enter(group->parent_fd))) {
        cgroup_remove(group->parent_fd, group->name);
    }
}
