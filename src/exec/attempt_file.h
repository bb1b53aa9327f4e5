/* SPDX-License-Identifier: MIT */
/*
 * attempt_file: small files in an attempt directory, which the scheduler writes
 * before the attempt starts (feedback, batch) or reads after it exits.
 */
#ifndef EXEC_ATTEMPT_FILE_H
#define EXEC_ATTEMPT_FILE_H

#include "base/diag.h"
#include "base/strbuf.h"

/* Longest file that attempt_file_read() accepts. */
enum { ATTEMPT_FILE_BYTES_MAX = 16 << 20 };

/* Create a directory and its parents. */
MUST_USE enum err attempt_file_make_dir(const char *dir, struct diag *diag);

/* Write the file atomically, by rename; create the directory if necessary. */
MUST_USE enum err attempt_file_write(const char *dir,
                                     const char *name,
                                     const struct strbuf *text,
                                     struct diag *diag);

/* Write all bytes to a descriptor; return false with errno set. */
MUST_USE bool attempt_file_write_all(int fd, const char *bytes, size_t len);

/* Append the file's content. ERR_LIMIT: the file is too long. */
MUST_USE enum err attempt_file_read(const char *dir,
                                    const char *name,
                                    struct strbuf *out,
                                    struct diag *diag);

/* Remove a directory and its files, if possible. A subdirectory is kept, and
 * the directory with it. */
void attempt_file_drop(const char *dir);

#endif /* EXEC_ATTEMPT_FILE_H */
