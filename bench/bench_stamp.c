/* SPDX-License-Identifier: MIT */
/*
 * A session that notes when it started:
 *
 *   bench_stamp FILE MS
 *
 * appends the wall clock of its first instruction and its task to FILE, and
 * exits after MS milliseconds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    char line[256];
    if (argc != 3 || clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return 2;
    }
    const char *task = getenv("SLUICE_TASK");
    int len = snprintf(line,
                       sizeof(line),
                       "%lld%09ld %s\n",
                       (long long)now.tv_sec,
                       now.tv_nsec,
                       task != NULL ? task : "?");
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || len < 0 || write(fd, line, (size_t)len) != len) {
        return 1;
    }
    return usleep(1000 * (useconds_t)strtoul(argv[2], NULL, 10));
}
