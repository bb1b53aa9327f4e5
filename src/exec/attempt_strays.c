/* SPDX-License-Identifier: MIT */
/*
 * Cleanup of processes that outlived their killed shim.
 *
 * They are no longer below any process of ours, and their pids are recorded
 * nowhere. But a process keeps the environment that it was started with, and
 * SLUICE_RESULT in it names one attempt. Only processes of our user are
 * searched.
 *
 * Open a pidfd of each process before checking it, so that the signal goes to
 * the process that was checked. Stop all of them before killing any: a stopped
 * process does not fork. Repeat that until none is found. A process that is
 * executing another program has no visible environment for a moment, in which
 * it runs or waits for a disk: while such a process exists, repeat the search,
 * for half a second at most.
 *
 * A process that has cleared its environment is found in the control group of
 * its shim, if it has a group, by the attribute with the directory: see
 * cgroup.h. Kill all processes in the group, and remove it. Search all groups
 * of the machine, because the shim's scheduler may have run in another group
 * than this process.
 */
#include "exec/attempt.h"

#include "base/mem.h"
#include "exec/cgroup.h"
#include "exec/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    ROUNDS_MAX = 20,
    UNKNOWN_US_MIN = 2000,
    UNKNOWN_US_MAX = 256000,
    DEATH_MS_MAX = 500,              /* from SIGKILL to process exit */
    ENVIRONMENT_BYTES_MAX = 4 << 20, /* the kernel allows less */
};

struct strays {
    struct strbuf marker; /* NUL, SLUICE_RESULT=..., NUL */
    struct strbuf environment;
    struct pollfd *found; /* pidfds */
    uint32_t count;
    uint32_t capacity;
    uint32_t unknown; /* our busy processes without an environment */
};

/* Read the environment of a process, preceded by a NUL. */
static void read_environment(struct strays *strays, const char *pid)
{
    char path[64];
    strbuf_clear(&strays->environment);
    strbuf_add(&strays->environment, "", 1);
    (void)snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char piece[4096];
    ssize_t len;
    while (strays->environment.len < ENVIRONMENT_BYTES_MAX &&
           (len = read(fd, piece, sizeof(piece))) > 0) {
        strbuf_add(&strays->environment, piece, (size_t)len);
    }
    (void)close(fd);
}

static bool is_marked(struct strays *strays, const char *pid)
{
    read_environment(strays, pid);
    return memmem(strays->environment.text,
                  strays->environment.len,
                  strays->marker.text,
                  strays->marker.len) != NULL;
}

/* Whether a process may be about to execute a program: it has an executable
 * (kernel threads and zombies have none), and it is busy. */
static bool may_execute(int proc_fd, const char *pid)
{
    char path[64];
    char target[16];
    (void)snprintf(path, sizeof(path), "%.20s/exe", pid);
    if (readlinkat(proc_fd, path, target, sizeof(target)) <= 0) {
        return false;
    }
    char state = attempt_process_state(strtol(pid, NULL, 10));
    return state == 'R' || state == 'D';
}

/* Add a process to the list and stop it, if it has the marker. */
static void take(struct strays *strays, int proc_fd, const char *name)
{
    struct stat stat;
    if (name[0] < '1' || name[0] > '9' ||
        fstatat(proc_fd, name, &stat, 0) != 0) {
        return;
    }
    bool own = stat.st_uid == geteuid();
    if (!own && geteuid() != 0) {
        return; /* only root may kill it: a session can change its user */
    }
    if (!is_marked(strays, name)) {
        bool none =
            own && strays->environment.len == 1 && may_execute(proc_fd, name);
        strays->unknown += none ? 1 : 0;
        return;
    }
    pid_t pid = (pid_t)strtol(name, NULL, 10);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0U);
    if (fd < 0) {
        return;
    }
    if (pid == getpid() || !is_marked(strays, name)) {
        (void)close(fd);
        return;
    }
    MEM_GROW(strays->found, strays->count, strays->capacity);
    strays->found[strays->count++] =
        (struct pollfd){.fd = fd, .events = POLLIN};
    (void)syscall(SYS_pidfd_send_signal, fd, SIGSTOP, NULL, 0U);
}

/* Find and stop marked processes; keep the processes already in the list. */
static void find(struct strays *strays)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(proc)) != NULL) {
        take(strays, dirfd(proc), entry->d_name);
    }
    (void)closedir(proc);
}

/* Kill the listed processes and wait for them; return how many exited. */
static uint32_t kill_found(struct strays *strays)
{
    uint32_t gone = 0;
    int wait_ms = DEATH_MS_MAX; /* for the first process that does not exit */
    for (uint32_t ix = 0; ix < strays->count; ix++) {
        int fd = strays->found[ix].fd;
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0U);
    }
    for (uint32_t ix = 0; ix < strays->count; ix++) {
        struct pollfd *found = &strays->found[ix];
        if (poll(found, 1, wait_ms) > 0) {
            gone++;
        } else {
            wait_ms = 0;
        }
        (void)close(found->fd);
    }
    strays->count = 0;
    return gone;
}

static void set_marker(struct strays *strays, const char *dir)
{
    strbuf_add(&strays->marker, "", 1);
    strbuf_addf(&strays->marker, "SLUICE_RESULT=%s/result", dir);
    strbuf_add(&strays->marker, "", 1);
}

static void release(struct strays *strays)
{
    strbuf_release(&strays->marker);
    strbuf_release(&strays->environment);
    mem_free(strays->found);
}

/* A search for the control groups of an attempt. */
struct groups {
    const char *dir;
    bool kill;
    bool populated; /* a group with processes was found */
};

/* Whether a group belongs to this attempt and to our user. */
static bool is_of(int fd, const char *dir)
{
    char value[PATH_MAX];
    struct stat stat;
    ssize_t len = fgetxattr(fd, CGROUP_ATTRIBUTE, value, sizeof(value));
    return len > 0 && (size_t)len == strlen(dir) &&
           memcmp(value, dir, (size_t)len) == 0 && fstat(fd, &stat) == 0 &&
           stat.st_uid == geteuid();
}

/* Kill a group of the attempt, unless this process is in it. */
static void look_at_group(void *ctx, int parent_fd, const char *name)
{
    struct groups *groups = ctx;
    if (strncmp(name, CGROUP_PREFIX, sizeof(CGROUP_PREFIX) - 1) != 0) {
        return;
    }
    int fd = cgroup_open(parent_fd, name);
    if (fd >= 0 && is_of(fd, groups->dir) && !cgroup_is_in(name)) {
        groups->populated = groups->populated || cgroup_is_populated(fd);
        if (groups->kill) {
            cgroup_end(fd);
            cgroup_remove(parent_fd, name);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Search for groups of the attempt; return whether a group has processes. */
static bool search_groups(const char *dir, bool kill)
{
    struct groups groups = {.dir = dir, .kill = kill};
    int fd = cgroup_open_root();
    if (fd >= 0) {
        cgroup_walk(fd, look_at_group, &groups);
        (void)close(fd);
    }
    return groups.populated;
}

bool attempt_has_strays(const char *dir)
{
    struct strays strays = {0};
    set_marker(&strays, dir);
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    bool found = false;
    while (proc != NULL && !found && (entry = readdir(proc)) != NULL) {
        const char *name = entry->d_name;
        found = name[0] >= '1' && name[0] <= '9' && is_marked(&strays, name) &&
                strtol(name, NULL, 10) != getpid();
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    release(&strays);
    return found || search_groups(dir, false);
}

uint32_t attempt_kill_strays(const char *dir)
{
    struct strays strays = {0};
    uint32_t ended = 0;
    set_marker(&strays, dir);
    useconds_t pause_us = UNKNOWN_US_MIN;
    for (int ix = 0; ix < ROUNDS_MAX; ix++) {
        strays.unknown = 0;
        find(&strays);
        if (strays.count > 0) {
            ended += kill_found(&strays);
        } else if (strays.unknown > 0 && pause_us <= UNKNOWN_US_MAX) {
            (void)usleep(pause_us);
            pause_us *= 2;
        } else {
            break;
        }
    }
    release(&strays);
    (void)search_groups(dir, true);
    return ended;
}
