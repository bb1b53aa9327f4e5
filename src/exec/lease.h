/* SPDX-License-Identifier: MIT */
/*
 * lease: until when the sessions of a worker may run.
 *
 * A worker that other machines depend on renews its lease in the store, and
 * notes its end in a file in its home. The shims read the file: they stop their
 * sessions when the lease ends, also if the worker is dead. Times are of
 * CLOCK_BOOTTIME, which suspended machines count. The module uses the C library
 * only, as the shim does.
 */
#ifndef EXEC_LEASE_H
#define EXEC_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct lease {
    int64_t until_ns;
    int64_t grace_ns; /* at most, between SIGTERM and SIGKILL */
};

/* Read the file; false: there is no lease. */
bool lease_read(const char *path, struct lease *out);

/* Replace the content of the file, which is created; return 0 or an errno. */
int lease_write(const char *path, const struct lease *lease);

#endif /* EXEC_LEASE_H */
