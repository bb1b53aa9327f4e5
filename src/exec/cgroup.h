/* SPDX-License-Identifier: MIT */
/*
 * cgroup: control groups (version 2) in which sessions run.
 *
 * The spawn server creates a group for each shim below its own, named
 * sluice-PID-N, and forks the shim into it. All processes of a session are
 * created there, and none leaves without writing to cgroup files. While a shim
 * has an attempt, the attribute CGROUP_ATTRIBUTE of its group holds the attempt
 * directory. So a scheduler finds the processes of a killed shim, even if the
 * session has removed the directory.
 *
 * No controllers are enabled: a group is only a set of processes. Where groups
 * cannot be created (no mount, no permission, a kernel before 5.7), these
 * functions do nothing, and callers need not know.
 *
 * It uses the C library only, as the shim does.
 */
#ifndef EXEC_CGROUP_H
#define EXEC_CGROUP_H

#include "base/macros.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#define CGROUP_PREFIX "sluice-"
#define CGROUP_ATTRIBUTE "user.sluice"

/*
 * Find the directory of a process's own group. `mounts` is the content of its
 * /proc/self/mountinfo, `groups` of its /proc/self/cgroup. The first
 * *mount_len_out bytes of `path` are the mount point. Return false if no mount
 * of version 2 exists, or if the group is not below it.
 */
MUST_USE bool cgroup_parse(const char *mounts,
                           const char *groups,
                           char *path,
                           size_t size,
                           size_t *mount_len_out);

/* Open the group of this process, or the root group; return -1 if none exists.
 * The caller closes the descriptor. */
int cgroup_open_own(void);
int cgroup_open_root(void);

/* Open a subgroup, also to list it; return -1 or NULL if it is gone. */
int cgroup_open(int parent_fd, const char *name);
DIR *cgroup_open_list(int parent_fd, const char *name);

/* Whether this process is in a group with this name, or below it. */
bool cgroup_is_in(const char *name);

/* Called with the parent directory of a group and the group's name. */
typedef void (*cgroup_fn)(void *ctx, int parent_fd, const char *name);

/* Visit all groups below an open group, children first. `fn` may remove the
 * group that it is called with. */
void cgroup_walk(int fd, cgroup_fn fn, void *ctx);

/* Whether the group or a subgroup has a process. */
bool cgroup_is_populated(int fd);

/* Move this process into a group. This takes some 10 ms, during which no
 * process of the machine can fork: use it rarely. */
MUST_USE bool cgroup_enter(int fd);

/* Send SIGKILL to all processes in the group and its subgroups. */
void cgroup_kill(int fd);

/* The same, and wait until they exit, a second at most. */
void cgroup_end(int fd);

/* Remove a group and its subgroups, if they are empty. */
void cgroup_remove(int parent_fd, const char *name);

#endif /* EXEC_CGROUP_H */
