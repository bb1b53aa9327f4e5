/* SPDX-License-Identifier: MIT */
/*
 * Where the control group of a process is, by the texts of the kernel.
 */
#include "base/macros.h"
#include "exec/cgroup.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HYBRID                                                                 \
    "31 24 0:27 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw,mode=755\n"      \
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n" \
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

/* A line of mountinfo with this root and mount point. */
#define LINE(root, mount)                                                      \
    "30 24 0:26 " root " " mount " rw,nosuid shared:4 master:1 - cgroup2 "     \
    "cgroup2 rw,nsdelegate\n"

struct sample {
    const char *mounts;
    const char *groups;
    const char *mount; /* NULL: none is found */
    const char *path;
};

static void check(const struct sample *sample)
{
    char path[PATH_MAX];
    size_t mount_len;
    bool found = cgroup_parse(sample->mounts,
                              sample->groups,
                              path,
                              sizeof(path),
                              &mount_len);
    assert_int_equal(found, sample->mount != NULL);
    if (found) {
        assert_string_equal(path, sample->path);
        assert_int_equal(mount_len, strlen(sample->mount));
        assert_memory_equal(path, sample->mount, mount_len);
    }
}

static void groups_are_found_below_their_mount(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {LINE("/", "/sys/fs/cgroup"),
         "0::/system.slice/sluice@a.service\n",
         "/sys/fs/cgroup",
         "/sys/fs/cgroup/system.slice/sluice@a.service"},
        {LINE("/", "/sys/fs/cgroup"),
         "0::/\n",
         "/sys/fs/cgroup",
         "/sys/fs/cgroup"},
        {HYBRID,
         "12:pids:/user\n1:name=systemd:/init\n0::/user\n",
         "/sys/fs/cgroup/unified",
         "/sys/fs/cgroup/unified/user"},
        /* A part of all groups is mounted. */
        {LINE("/docker/4711", "/sys/fs/cgroup"),
         "0::/docker/4711/a",
         "/sys/fs/cgroup",
         "/sys/fs/cgroup/a"},
        {LINE("/docker/4711", "/sys/fs/cgroup"),
         "0::/docker/4711\n",
         "/sys/fs/cgroup",
         "/sys/fs/cgroup"},
        /* Two mounts, of which the second shows it. */
        {LINE("/other", "/a") LINE("/", "/b"), "0::/x\n", "/b", "/b/x"},
        /* Outside of the namespace, but below the same group. */
        {LINE("/..", "/c"), "0::/../b\n", "/c", "/c/b"},
        /* Names may begin with dots. */
        {LINE("/", "/c"), "0::/..a/...\n", "/c", "/c/..a/..."},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(samples); ix++) {
        check(&samples[ix]);
    }
}

static void escapes_are_resolved(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {LINE("/", "/my\\040groups\\134x"),
         "0::/a b\n",
         "/my groups\\x",
         "/my groups\\x/a b"},
        {LINE("/a\\011b", "/c"), "0::/a\tb/d\n", "/c", "/c/d"},
        /* No escapes: too short, too large, no octal digits. */
        {LINE("/", "/a\\04"), "0::/\n", "/a\\04", "/a\\04"},
        {LINE("/", "/a\\777"), "0::/\n", "/a\\777", "/a\\777"},
        {LINE("/", "/a\\089"), "0::/\n", "/a\\089", "/a\\089"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(samples); ix++) {
        check(&samples[ix]);
    }
}

static void groups_that_cannot_be_reached_are_not_found(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"", "0::/a\n", NULL, NULL},
        {LINE("/", "/c"), "", NULL, NULL},
        {LINE("/", "/c"), "1:name=systemd:/a\n", NULL, NULL},
        {LINE("/", "/c"), "10::/a\n", NULL, NULL},
        {LINE("/", "/c"), "0::a\n", NULL, NULL},
        /* No mount of version 2, or half a line of one. */
        {"40 31 0:37 / /c rw - cgroup cgroup rw,name=cgroup2\n",
         "0::/a\n",
         NULL,
         NULL},
        {"30 24 0:26 /\n", "0::/a\n", NULL, NULL},
        {" - cgroup2 \n", "0::/a\n", NULL, NULL},
        /* Another part of all groups is mounted. */
        {LINE("/docker/4711", "/c"), "0::/docker/47110\n", NULL, NULL},
        {LINE("/docker/4711", "/c"), "0::/docker\n", NULL, NULL},
        /* Outside of the namespace: its names are not known here. */
        {LINE("/", "/c"), "0::/..\n", NULL, NULL},
        {LINE("/", "/c"), "0::/../../b\n", NULL, NULL},
        {LINE("/../..", "/c"), "0::/\n", NULL, NULL},
        {LINE("/../..", "/c"), "0::/../../../b\n", NULL, NULL},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(samples); ix++) {
        check(&samples[ix]);
    }
}

static void paths_that_are_too_long_are_not_found(void **state)
{
    (void)state;
    const char mounts[] = LINE("/", "/sys/fs/cgroup");
    char path[32];
    size_t mount_len;
    /* "/sys/fs/cgroup" has 14 bytes, and a NUL belongs to it. */
    assert_true(cgroup_parse(mounts, "0::/abc\n", path, 19, &mount_len));
    assert_string_equal(path, "/sys/fs/cgroup/abc");
    assert_false(cgroup_parse(mounts, "0::/abc\n", path, 18, &mount_len));
    assert_false(cgroup_parse(mounts, "0::/\n", path, 14, &mount_len));
    assert_true(cgroup_parse(mounts, "0::/\n", path, 15, &mount_len));

    char groups[PATH_MAX + 8] = "0::/";
    memset(groups + 4, 'a', PATH_MAX);
    groups[PATH_MAX + 4] = '\0';
    char large[2 * PATH_MAX];
    assert_false(
        cgroup_parse(mounts, groups, large, sizeof(large), &mount_len));
    groups[PATH_MAX + 2] = '\0'; /* PATH_MAX - 1 bytes from the slash on */
    assert_true(cgroup_parse(mounts, groups, large, sizeof(large), &mount_len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_found_below_their_mount),
        cmocka_unit_test(escapes_are_resolved),
        cmocka_unit_test(groups_that_cannot_be_reached_are_not_found),
        cmocka_unit_test(paths_that_are_too_long_are_not_found),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
