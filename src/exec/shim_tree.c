/* SPDX-License-Identifier: MIT */
/*
 * The processes below this one. A shim is a subreaper, so whatever a session
 * does (double forks, sessions of its own), its processes stay below the shim
 * until they end. They are found by walking down /proc/PID/task/TID/children,
 * or on a kernel without these files, by looking at all of /proc.
 *
 * A number found there may be another process a moment later. So each is
 * looked at twice: its parent must be the one that we came from (or this
 * process, which inherits orphans), and a signal goes through a pidfd that was
 * opened before its start time was compared.
 *
 * A walk may miss what is being forked meanwhile. The caller repeats it until
 * waitpid() says that there are no children.
 */
#include "base/crash.h"
#include "exec/shim_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A tick of /proc: USER_HZ is 100, whatever the kernel's own rate. */
#define TICK_NS (10 * SHIM_MS)

/* More than any session has. Beyond it the next walk finds the rest. */
enum { PROCESSES_MAX = 32768, PATH_BYTES = 64 };

struct process {
    pid_t pid;
    uint64_t stat[RECORD_STAT_COUNT];
};

struct processes {
    struct process *items;
    uint32_t count;
    uint32_t capacity;
};

/* Append a text, or a number in digits; there is room for the few we make. */
static char *add(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len + 1);
    return at + len;
}

static char *add_number(char *at, unsigned long number)
{
    char digits[24];
    size_t ix = sizeof(digits) - 1;
    digits[ix] = '\0';
    do {
        digits[--ix] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return add(at, digits + ix);
}

/* Bytes read from the start of a file; at most `size`, 0 when there is none. */
static size_t slurp(const char *path, char *buf, size_t size)
{
    int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    size_t len = 0;
    ssize_t got;
    while (len < size && (got = read(fd, buf + len, size - len)) > 0) {
        len += (size_t)got;
    }
    (void)close(fd);
    return len;
}

static bool read_stat_file(const char *path, uint64_t stat[RECORD_STAT_COUNT])
{
    char text[1024];
    return record_read_stat(text, slurp(path, text, sizeof(text)), stat);
}

static bool read_stat(pid_t pid, uint64_t stat[RECORD_STAT_COUNT])
{
    char path[PATH_BYTES];
    (void)add(add_number(add(path, "/proc/"), (unsigned long)pid), "/stat");
    return read_stat_file(path, stat);
}

/* Take a child of `parent` into the list, if that is what it is. */
static void take(struct processes *list, pid_t parent, pid_t pid)
{
    struct process found = {.pid = pid};
    if (list->count == PROCESSES_MAX || !read_stat(pid, found.stat) ||
        (found.stat[RECORD_STAT_PARENT] != (uint64_t)parent &&
         found.stat[RECORD_STAT_PARENT] != (uint64_t)getpid())) {
        return;
    }
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity * 2 + 16;
        void *moved = realloc(list->items, capacity * sizeof(found));
        if (moved == NULL) {
            return;
        }
        list->items = moved;
        list->capacity = capacity;
    }
    list->items[list->count++] = found;
}

/* Take the children named in the file of one thread. */
static void take_listed(struct processes *list, pid_t parent, const char *path)
{
    int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char text[1024];
    pid_t number = 0;
    ssize_t len;
    while ((len = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t ix = 0; ix < len; ix++) {
            if (text[ix] >= '0' && text[ix] <= '9') {
                number = number * 10 + (text[ix] - '0');
            } else if (number > 0) {
                take(list, parent, number);
                number = 0;
            }
        }
    }
    (void)close(fd);
}

/* Take the children of one process, thread by thread. */
static void take_children(struct processes *list, pid_t parent)
{
    char path[PATH_BYTES + NAME_MAX];
    char *end = add_number(add(path, "/proc/"), (unsigned long)parent);
    end = add(end, "/task/");
    DIR *threads = opendir(path);
    if (threads == NULL) {
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(threads)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)add(add(end, entry->d_name), "/children");
            take_listed(list, parent, path);
        }
    }
    (void)closedir(threads);
}

/* Whether this process is ours or on the list. */
static bool is_below(const struct processes *list, uint64_t pid)
{
    bool found = pid == (uint64_t)getpid();
    for (uint32_t ix = 0; ix < list->count && !found; ix++) {
        found = (uint64_t)list->items[ix].pid == pid;
    }
    return found;
}

/* Take every process whose parent is on the list and which is not; false:
 * there was none. */
static bool take_next(struct processes *list)
{
    uint32_t count = list->count;
    DIR *all = opendir("/proc");
    if (all == NULL) {
        return false;
    }
    struct dirent *entry;
    while ((entry = readdir(all)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        uint64_t stat[RECORD_STAT_COUNT];
        if (pid > 0 && pid != getpid() && read_stat(pid, stat) &&
            is_below(list, stat[RECORD_STAT_PARENT]) &&
            !is_below(list, (uint64_t)pid)) {
            take(list, (pid_t)stat[RECORD_STAT_PARENT], pid);
        }
    }
    (void)closedir(all);
    return list->count > count;
}

/* Whether the kernel lists children (CONFIG_PROC_CHILDREN). */
static bool has_lists(void)
{
    char path[PATH_BYTES];
    char *end = add(path, "/proc/self/task/");
    (void)add(add_number(end, (unsigned long)getpid()), "/children");
    return crash_fault("children") == 0 && access(path, F_OK) == 0;
}

/* All processes below this one. The caller frees the items. */
static struct processes collect(void)
{
    struct processes list = {0};
    if (!has_lists()) {
        while (take_next(&list)) {
        }
        return list;
    }
    take_children(&list, getpid());
    for (uint32_t ix = 0; ix < list.count; ix++) {
        take_children(&list, list.items[ix].pid);
    }
    return list;
}

/* Signal a process, if it is still the one that was found. */
static void signal_found(const struct process *found, int signal)
{
    int fd = (int)syscall(SYS_pidfd_open, found->pid, 0U);
    bool gone = fd < 0 && errno == ESRCH;
    uint64_t stat[RECORD_STAT_COUNT];
    bool same =
        read_stat(found->pid, stat) &&
        stat[RECORD_STAT_START_TICKS] == found->stat[RECORD_STAT_START_TICKS];
    if (fd >= 0) {
        if (same) {
            (void)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0U);
        }
        (void)close(fd);
    } else if (same && !gone) {
        /* No descriptor to be had; a shim must end its session all the
         * same. */
        (void)kill(found->pid, signal);
    }
}

uint32_t shim_tree_signal(int signal, pid_t skip_group)
{
    struct processes list = collect();
    uint32_t count = list.count;
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct process *found = &list.items[ix];
        if (skip_group == 0 ||
            found->stat[RECORD_STAT_GROUP] != (uint64_t)skip_group) {
            signal_found(found, signal);
        }
    }
    free(list.items);
    return count;
}

/* Whether a thread of this process runs or waits for a CPU. */
static bool is_runnable(const struct process *found)
{
    char path[PATH_BYTES + NAME_MAX];
    char *end = add_number(add(path, "/proc/"), (unsigned long)found->pid);
    end = add(end, "/task/");
    if (found->stat[RECORD_STAT_STATE] == 'R') {
        return true;
    }
    DIR *threads = opendir(path);
    if (threads == NULL) {
        return false;
    }
    bool runnable = false;
    struct dirent *entry;
    while (!runnable && (entry = readdir(threads)) != NULL) {
        uint64_t stat[RECORD_STAT_COUNT];
        if (entry->d_name[0] != '.') {
            (void)add(add(end, entry->d_name), "/stat");
            runnable =
                read_stat_file(path, stat) && stat[RECORD_STAT_STATE] == 'R';
        }
    }
    (void)closedir(threads);
    return runnable;
}

uint64_t shim_tree_cpu_ns(bool *runnable_out)
{
    struct processes list = collect();
    uint64_t ticks = 0;
    *runnable_out = false;
    for (uint32_t ix = 0; ix < list.count; ix++) {
        const struct process *found = &list.items[ix];
        ticks += found->stat[RECORD_STAT_CPU_TICKS];
        *runnable_out = *runnable_out || is_runnable(found);
    }
    free(list.items);
    return ticks * (uint64_t)TICK_NS;
}

bool shim_tree_is_outside(pid_t pid)
{
    enum { GENERATIONS_MAX = 1000 };
    for (int ix = 0; ix < GENERATIONS_MAX && pid > 1; ix++) {
        uint64_t stat[RECORD_STAT_COUNT];
        if (pid == getpid() || !read_stat(pid, stat)) {
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
    return read_stat(pid, stat) ? stat[RECORD_STAT_START_TICKS] : 0;
}
