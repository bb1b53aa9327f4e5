/* SPDX-License-Identifier: MIT */
/*
 * Control groups: paths, and killing.
 *
 * A mount of version 2 may show only a subtree of all groups: the `root` of its
 * line in mountinfo. The path in /proc/self/cgroup begins with that root, or
 * the mount does not reach the group. In a cgroup namespace both are relative
 * to the root of the namespace, and begin with /.. for groups outside. Equal
 * prefixes are still the same group; a /.. after the prefix has no name here.
 *
 * Since Linux 5.14 a write to cgroup.kill kills all processes at once, despite
 * concurrent forks. On older kernels, freeze the group and kill one process at
 * a time: a frozen process does not fork. Freezing takes a moment, so callers
 * repeat it until the group is empty.
 */
#include "exec/cgroup.h"

#include "base/crash.h"
#include "exec/proctree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum {
    MOUNTS_BYTES_MAX = 1 << 20, /* the rest is ignored */
    GROUPS_BYTES_MAX = 16 << 10,
    DEPTH_MAX = 64,
    ROUNDS_MAX = 24, /* one second, with the pauses below */
    PAUSE_NS_MIN = 1000000,
    PAUSE_NS_MAX = 50000000,
};

/* f_type of cgroup2. */
#define CGROUP2_MAGIC 0x63677270

/* Copy a field of mountinfo, with its escapes (\040) resolved; return its
 * length, or 0 if it is missing or too long. */
static size_t read_field(const char *at, char *out, size_t size)
{
    size_t len = 0;
    while (*at != '\0' && *at != ' ' && *at != '\n') {
        unsigned char byte = (unsigned char)*at++;
        if (byte == '\\' && at[0] >= '0' && at[0] <= '3' && at[1] >= '0' &&
            at[1] <= '7' && at[2] >= '0' && at[2] <= '7') {
            byte = (unsigned char)((at[0] - '0') << 6 | (at[1] - '0') << 3 |
                                   (at[2] - '0'));
            at += 3;
        }
        if (len + 1 >= size) {
            return 0;
        }
        out[len++] = (char)byte;
    }
    out[len] = '\0';
    return len;
}

/* Return the rest of a line after `count` fields, or NULL if it has fewer. */
static const char *skip_fields(const char *line, const char *end, int count)
{
    for (; line != NULL && count > 0; count--) {
        line = memchr(line, ' ', (size_t)(end - line));
        line = line != NULL ? line + 1 : NULL;
    }
    return line;
}

/* Read the path of the version 2 group; return its length, or 0. */
static size_t read_group(const char *groups, char *path, size_t size)
{
    for (const char *line = groups; *line != '\0';) {
        const char *end = strchrnul(line, '\n');
        if (strncmp(line, "0::/", 4) == 0) {
            size_t len = (size_t)(end - line) - 3;
            if (len >= size) {
                return 0;
            }
            memcpy(path, line + 3, len);
            path[len] = '\0';
            return len;
        }
        line = *end == '\n' ? end + 1 : end;
    }
    return 0;
}

/* Return the part of `group` below `root`, "" or beginning with a slash; NULL
 * if it is not below, or has no name here. */
static const char *below(const char *root, const char *group)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    const char *rest = group + len;
    if (strncmp(group, root, len) != 0 || (*rest != '/' && *rest != '\0')) {
        return NULL;
    }
    for (const char *at = rest; (at = strstr(at, "/..")) != NULL; at += 3) {
        if (at[3] == '/' || at[3] == '\0') {
            return NULL;
        }
    }
    return strcmp(rest, "/") == 0 ? "" : rest;
}

bool cgroup_parse(const char *mounts,
                  const char *groups,
                  char *path,
                  size_t size,
                  size_t *mount_len_out)
{
    static const char kind[] = " - cgroup2 ";
    char group[PATH_MAX];
    char root[PATH_MAX];
    if (read_group(groups, group, sizeof(group)) == 0) {
        return false;
    }
    for (const char *line = mounts; *line != '\0';) {
        const char *end = strchrnul(line, '\n');
        const char *at = skip_fields(line, end, 3);
        const char *mount = skip_fields(line, end, 4);
        size_t len = (size_t)(end - line);
        const char *rest = NULL;
        if (mount != NULL &&
            memmem(line, len, kind, sizeof(kind) - 1) != NULL &&
            read_field(at, root, sizeof(root)) > 0) {
            rest = below(root, group);
        }
        size_t mount_len = rest != NULL ? read_field(mount, path, size) : 0;
        if (mount_len > 0 && mount_len + strlen(rest) < size) {
            memcpy(path + mount_len, rest, strlen(rest) + 1);
            *mount_len_out = mount_len;
            return true;
        }
        line = *end == '\n' ? end + 1 : end;
    }
    return false;
}

/* Read the files of this process and parse them. */
static bool find_own(char *path, size_t size, size_t *mount_len_out)
{
    char groups[GROUPS_BYTES_MAX];
    char *mounts = malloc(MOUNTS_BYTES_MAX);
    bool found = false;
    if (mounts != NULL) {
        size_t len = proctree_read_path("/proc/self/mountinfo",
                                        mounts,
                                        MOUNTS_BYTES_MAX - 1);
        mounts[len] = '\0';
        len =
            proctree_read_path("/proc/self/cgroup", groups, sizeof(groups) - 1);
        groups[len] = '\0';
        found = cgroup_parse(mounts, groups, path, size, mount_len_out);
    }
    free(mounts);
    return found;
}

/* Open a directory, if it is a control group: another file system may be
 * mounted over it. */
static int open_group(const char *path)
{
    int fd = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs stat;
    if (fd >= 0 && (fstatfs(fd, &stat) != 0 ||
                    (unsigned long)stat.f_type != CGROUP2_MAGIC)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

int cgroup_open_own(void)
{
    char path[PATH_MAX];
    size_t mount_len;
    return find_own(path, sizeof(path), &mount_len) ? open_group(path) : -1;
}

int cgroup_open_root(void)
{
    char path[PATH_MAX];
    size_t mount_len;
    if (!find_own(path, sizeof(path), &mount_len)) {
        return -1;
    }
    path[mount_len] = '\0';
    return open_group(path);
}

bool cgroup_is_in(const char *name)
{
    char groups[GROUPS_BYTES_MAX];
    char group[PATH_MAX];
    size_t len =
        proctree_read_path("/proc/self/cgroup", groups, sizeof(groups) - 1);
    groups[len] = '\0';
    if (read_group(groups, group, sizeof(group)) == 0) {
        return false;
    }
    len = strlen(name);
    for (const char *at = group; (at = strstr(at, name)) != NULL; at += len) {
        if (at[-1] == '/' && (at[len] == '/' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

int cgroup_open(int parent_fd, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    return openat(parent_fd, name, flags);
}

DIR *cgroup_open_list(int parent_fd, const char *name)
{
    int fd = cgroup_open(parent_fd, name);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && dir == NULL) {
        (void)close(fd);
    }
    return dir;
}

void cgroup_walk(int fd, cgroup_fn fn, void *ctx)
{
    struct {
        DIR *dir;
        char name[NAME_MAX + 1];
    } levels[DEPTH_MAX];
    int depth = 0;
    levels[0].dir = cgroup_open_list(fd, ".");
    while (depth >= 0 && levels[depth].dir != NULL) {
        struct dirent *entry = readdir(levels[depth].dir);
        if (entry == NULL) {
            (void)closedir(levels[depth].dir);
            if (--depth >= 0) {
                fn(ctx, dirfd(levels[depth].dir), levels[depth + 1].name);
            }
        } else if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                   depth + 1 < DEPTH_MAX) {
            DIR *inner =
                cgroup_open_list(dirfd(levels[depth].dir), entry->d_name);
            if (inner != NULL) {
                depth++;
                levels[depth].dir = inner;
                memcpy(levels[depth].name,
                       entry->d_name,
                       strlen(entry->d_name) + 1);
            }
        }
    }
}

/* Read a file of a group as a string, "" if it does not exist. */
static void read_file(int fd, const char *name, char *text, size_t size)
{
    int file = openat(fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t len = file >= 0 ? read(file, text, size - 1) : -1;
    text[len > 0 ? len : 0] = '\0';
    if (file >= 0) {
        (void)close(file);
    }
}

static bool write_file(int fd, const char *name, const char *text)
{
    int file = openat(fd, name, O_WRONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size_t len = strlen(text);
    bool written = write(file, text, len) == (ssize_t)len;
    (void)close(file);
    return written;
}

bool cgroup_is_populated(int fd)
{
    char text[256];
    read_file(fd, "cgroup.events", text, sizeof(text));
    return strstr(text, "populated 1") != NULL;
}

bool cgroup_enter(int fd)
{
    return write_file(fd, "cgroup.procs", "0");
}

/* Kill the processes of one group by pid; pid 0 is a process outside our pid
 * namespace. Pids that do not fit are left to the next round. */
static void kill_each(void *ctx, int parent_fd, const char *name)
{
    (void)ctx;
    char text[16 << 10];
    int fd = cgroup_open(parent_fd, name);
    if (fd < 0) {
        return;
    }
    read_file(fd, "cgroup.procs", text, sizeof(text));
    (void)close(fd);
    pid_t pid = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at >= '0' && *at <= '9') {
            pid = pid * 10 + (*at - '0');
        } else {
            if (pid > 0 && pid != getpid()) {
                (void)kill(pid, SIGKILL);
            }
            pid = 0;
        }
    }
}

void cgroup_kill(int fd)
{
    if (crash_fault("cgroup-kill") == 0 && write_file(fd, "cgroup.kill", "1")) {
        return;
    }
    (void)write_file(fd, "cgroup.freeze", "1");
    kill_each(NULL, fd, ".");
    cgroup_walk(fd, kill_each, NULL);
    (void)write_file(fd, "cgroup.freeze", "0");
}

void cgroup_end(int fd)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS_MIN};
    for (int ix = 0; ix < ROUNDS_MAX && cgroup_is_populated(fd); ix++) {
        cgroup_kill(fd);
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec =
            pause.tv_nsec < PAUSE_NS_MAX / 2 ? pause.tv_nsec * 2 : PAUSE_NS_MAX;
    }
}

static void remove_one(void *ctx, int parent_fd, const char *name)
{
    (void)ctx;
    (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

void cgroup_remove(int parent_fd, const char *name)
{
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0) {
        return;
    }
    int fd = cgroup_open(parent_fd, name);
    if (fd < 0) {
        return;
    }
    if (!cgroup_is_populated(fd)) {
        cgroup_walk(fd, remove_one, NULL);
        remove_one(NULL, parent_fd, name);
    }
    (void)close(fd);
}
