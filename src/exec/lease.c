/* SPDX-License-Identifier: MIT */
/*
 * The file has a fixed size, and is written by one call in place: a reader sees
 * the old content or the new one. The content is of one boot of the machine,
 * and so is not synced to disk.
 */
#include "exec/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool lease_read(const char *path, struct lease *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return false;
    }
    ssize_t got = pread(fd, out, sizeof(*out), 0);
    (void)close(fd);
    return got == (ssize_t)sizeof(*out);
}

int lease_write(const char *path, const struct lease *lease)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    ssize_t put = pwrite(fd, lease, sizeof(*lease), 0);
    int error = put < 0 ? errno : put == (ssize_t)sizeof(*lease) ? 0 : EIO;
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}
