/* SPDX-License-Identifier: MIT */
/*
 * Process lists. /proc/PID/task/TID/children lists the children of a thread. On
 * a kernel without these files, search /proc by parent.
 */
#include "exec/proctree.h"

#include "base/crash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More than any session has. The next walk finds the rest. */
enum { PROCESSES_MAX = 32768, PATH_BYTES = 64, STAT_BYTES = 1024 };

/* Append a string; callers have room for it. */
static char *add(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len + 1);
    return at + len;
}

char *proctree_add_number(char *at, uint64_t number)
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

void proctree_release(struct proctree *tree)
{
    free(tree->items);
    *tree = (struct proctree){0};
}

size_t proctree_read_path(const char *path, char *buf, size_t size)
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

size_t proctree_read(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[PATH_BYTES];
    char *end = proctree_add_number(add(path, "/proc/"), (uint64_t)pid);
    (void)add(add(end, "/"), name);
    return proctree_read_path(path, buf, size);
}

void proctree_boot_id(char out[37])
{
    size_t len = proctree_read_path("/proc/sys/kernel/random/boot_id", out, 36);
    if (len != 36) {
        memset(out, '0', 36);
    }
    out[36] = '\0';
}

bool proctree_read_stat(pid_t pid, uint64_t stat[RECORD_STAT_COUNT])
{
    char text[STAT_BYTES];
    size_t len = proctree_read(pid, "stat", text, sizeof(text));
    return record_read_stat(text, len, stat);
}

bool proctree_each_thread(pid_t pid,
                          const char *name,
                          proctree_thread_fn fn,
                          void *ctx)
{
    char path[PATH_BYTES + NAME_MAX];
    char *end = proctree_add_number(add(path, "/proc/"), (uint64_t)pid);
    end = add(end, "/task/");
    DIR *threads = opendir(path);
    if (threads == NULL) {
        return false;
    }
    bool more = true;
    struct dirent *entry;
    while (more && (entry = readdir(threads)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)add(add(add(end, entry->d_name), "/"), name);
            more = fn(ctx, path);
        }
    }
    (void)closedir(threads);
    return more;
}

/* Stop at the first thread that runs or waits for a CPU. */
static bool note_runnable(void *ctx, const char *path)
{
    bool *runnable = ctx;
    char text[STAT_BYTES];
    uint64_t stat[RECORD_STAT_COUNT];
    size_t len = proctree_read_path(path, text, sizeof(text));
    *runnable =
        record_read_stat(text, len, stat) && stat[RECORD_STAT_STATE] == 'R';
    return !*runnable;
}

bool proctree_is_runnable(const struct proctree_process *process)
{
    bool runnable = process->stat[RECORD_STAT_STATE] == 'R';
    if (!runnable) {
        (void)proctree_each_thread(process->pid,
                                   "stat",
                                   note_runnable,
                                   &runnable);
    }
    return runnable;
}

/* Append a process, if memory and the limit allow. */
static void append(struct proctree *tree, const struct proctree_process *found)
{
    if (tree->count == PROCESSES_MAX) {
        return;
    }
    if (tree->count == tree->capacity) {
        uint32_t capacity = tree->capacity * 2 + 16;
        void *moved = realloc(tree->items, capacity * sizeof(*found));
        if (moved == NULL) {
            return;
        }
        tree->items = moved;
        tree->capacity = capacity;
    }
    tree->items[tree->count++] = *found;
}

void proctree_add(struct proctree *tree, pid_t pid)
{
    struct proctree_process found = {.pid = pid};
    if (proctree_read_stat(pid, found.stat)) {
        append(tree, &found);
    }
}

/* Add a process to the list, if it is a child of `parent`. */
static void take(struct proctree *tree, pid_t parent, pid_t pid)
{
    struct proctree_process found = {.pid = pid};
    if (proctree_read_stat(pid, found.stat) &&
        (found.stat[RECORD_STAT_PARENT] == (uint64_t)parent ||
         found.stat[RECORD_STAT_PARENT] == (uint64_t)getpid())) {
        append(tree, &found);
    }
}

/* The list for children, and their parent. */
struct taking {
    struct proctree *tree;
    pid_t parent;
};

/* Add the children listed in the file of one thread. */
static bool take_listed(void *ctx, const char *path)
{
    const struct taking *taking = ctx;
    int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return true;
    }
    char text[1024];
    pid_t number = 0;
    ssize_t len;
    while ((len = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t ix = 0; ix < len; ix++) {
            if (text[ix] >= '0' && text[ix] <= '9') {
                number = number * 10 + (text[ix] - '0');
            } else if (number > 0) {
                take(taking->tree, taking->parent, number);
                number = 0;
            }
        }
    }
    (void)close(fd);
    return true;
}

/* Add the children of one process, thread by thread. */
static void take_all_listed(struct proctree *tree, pid_t parent)
{
    struct taking taking = {.tree = tree, .parent = parent};
    (void)proctree_each_thread(parent, "children", take_listed, &taking);
}

/* Whether a process is this process or in the list. */
static bool is_below(const struct proctree *tree, uint64_t pid)
{
    bool found = pid == (uint64_t)getpid();
    for (uint32_t ix = 0; ix < tree->count && !found; ix++) {
        found = (uint64_t)tree->items[ix].pid == pid;
    }
    return found;
}

/* Add every process whose parent is `parent` or, if that is 0, is this process
 * or in the list. Existing entries are unchanged. */
static void search(struct proctree *tree, pid_t parent)
{
    DIR *all = opendir("/proc");
    if (all == NULL) {
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(all)) != NULL) {
        struct proctree_process found = {
            .pid = (pid_t)strtol(entry->d_name, NULL, 10),
        };
        if (found.pid <= 0 || !proctree_read_stat(found.pid, found.stat)) {
            continue;
        }
        uint64_t its_parent = found.stat[RECORD_STAT_PARENT];
        bool wanted = parent != 0 ? its_parent == (uint64_t)parent
                                  : is_below(tree, its_parent);
        if (wanted && !is_below(tree, (uint64_t)found.pid)) {
            append(tree, &found);
        }
    }
    (void)closedir(all);
}

/* Whether the kernel lists children (CONFIG_PROC_CHILDREN). */
static bool has_lists(void)
{
    char path[PATH_BYTES];
    char *end = add(path, "/proc/self/task/");
    (void)add(proctree_add_number(end, (uint64_t)getpid()), "/children");
    return crash_fault("children") == 0 && access(path, F_OK) == 0;
}

void proctree_add_children(struct proctree *tree, pid_t parent)
{
    if (has_lists()) {
        take_all_listed(tree, parent);
    } else {
        search(tree, parent);
    }
}

void proctree_add_all(struct proctree *tree)
{
    if (!has_lists()) {
        uint32_t count;
        do {
            count = tree->count;
            search(tree, 0);
        } while (tree->count > count);
        return;
    }
    take_all_listed(tree, getpid());
    for (uint32_t ix = 0; ix < tree->count; ix++) {
        take_all_listed(tree, tree->items[ix].pid);
    }
}

int proctree_open(const struct proctree_process *process, int *fd_out)
{
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0U);
    int error = fd < 0 ? errno : 0;
    uint64_t stat[RECORD_STAT_COUNT];
    if (!proctree_read_stat(process->pid, stat) ||
        stat[RECORD_STAT_START_TICKS] !=
            process->stat[RECORD_STAT_START_TICKS]) {
        error = ESRCH;
    }
    if (error != 0 && fd >= 0) {
        (void)close(fd);
        fd = -1;
    }
    *fd_out = fd;
    return error;
}
