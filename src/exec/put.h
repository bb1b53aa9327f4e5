/* SPDX-License-Identifier: MIT */
/*
 * put: small files in the directory of an attempt, written by the scheduler
 * before it starts (feedback, batch), or read after it ended.
 */
#ifndef EXEC_PUT_H
#define EXEC_PUT_H

#include "base/diag.h"
#include "base/strbuf.h"

/* Longest file that put_read() accepts. */
enum { PUT_BYTES_MAX = 16 << 20 };

/* Write the file whole, by rename; the directory is made if need be. */
MUST_USE enum err put_write(const char *dir,
                            const char *name,
                            const struct strbuf *text,
                            struct diag *diag);

/* Write all of it to a descriptor; false with errno set. */
MUST_USE bool put_all(int fd, const char *bytes, size_t len);

/* Append the file's content. ERR_LIMIT: it is too long. */
MUST_USE enum err put_read(const char *dir,
                           const char *name,
                           struct strbuf *out,
                           struct diag *diag);

/* Remove a directory with the files in it, if that can be done. Directories in
 * it are left, and it with them. */
void put_drop(const char *dir);

#endif /* EXEC_PUT_H */
