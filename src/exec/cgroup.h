/* SPDX-License-Identifier: MIT */
/*
 * cgroup: the control groups (version 2) in which sessions run.
 *
 * The spawn server creates a group for each shim below its own, named
 * sluice-PID-N, and forks the shim into it. All processes of a session are
 * born there, and none leaves without writing to the files of groups. While a
 * shim has an attempt, the attribute CGROUP_ATTRIBUTE of its group holds the
 * attempt's directory. So a scheduler finds what a killed shim has left, even
 * if the session has removed the directory.
 *
 * No controllers are enabled: a group is only a set of processes. Where groups
 * cannot be created (no mount, no permission, a kernel before 5.7) nothing
 * here does anything, and no caller has to know.
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
 * Find the directory of a process's own group. `mounts` is the text of its
 * /proc/self/mountinfo, `groups` that of /proc/self/cgroup. The first
 * *mount_len_out bytes of `path` are the mount point. False: there is no mount
 * of version 2, or the group is not below it.
 */
MUST_USE bool cgroup_parse(const char *mounts,
                           const char *groups,
                           char *path,
                           size_t size,
                           size_t *mount_len_out);

/* Open the group of this process, or the root of all groups; -1: there is
 * none. The caller closes the descriptor. */
int cgroup_open_own(void);
int cgroup_open_root(void);

/* Open a group below another one, also to list it; -1, NULL: it is gone. */
int cgroup_open(int parent_fd, const char *name);
DIR *cgroup_open_list(int parent_fd, const char *name);

/* Whether this process is in a group of this name, or below one. */
bool cgroup_is_in(const char *name);

/* Called with the directory above a group, and the group's name. */
typedef void (*cgroup_fn)(void *ctx, int parent_fd, const char *name);

/* Go through all groups below an open one, the inner ones first. `fn` may
 * remove the group that it is called with. */
void cgroup_walk(int fd, cgroup_fn fn, void *ctx);

/* Whether there is a process in the group, or below it. */
bool cgroup_is_populated(int fd);

/* Move this process into a group. It takes some 10 ms, and for that time no
 * process of the machine can fork: for rare cases. */
MUST_USE bool cgroup_enter(int fd);

/* Send SIGKILL to all processes in the group and below it. */
void cgroup_kill(int fd);

/* The same, and wait for their ends, a second at most. */
void cgroup_end(int fd);

/* Remove a group and those below it, if they are empty. */
void cgroup_remove(int parent_fd, const char *name);

#endif /* EXEC_CGROUP_H */
