/* SPDX-License-Identifier: MIT */
/*
 * attempt_file: small files in the directory of an attempt, written by the
 * scheduler before it starts (feedback, batch), or read after it ended.
 */
#ifndef EXEC_ATTEMPT_FILE_H
#define EXEC_ATTEMPT_FILE_H

#include "base/diag.h"
#include "base/strbuf.h"

/* Longest file that attempt_file_read() accepts. */
enum { ATTEMPT_FILE_BYTES_MAX = 16 << 20 };

/* Make a directory and those above it. */
MUST_USE enum err attempt_file_make_dir(const char *dir, struct diag *diag);

/* Write the file whole, by rename; the directory is made if need be. */
MUST_USE enum err attempt_file_write(const char *dir,
                                     const char *name,
                                     const struct strbuf *text,
                                     struct diag *diag);

/* Write all of it to a descriptor; false with errno set. */
MUST_USE bool attempt_file_write_all(int fd, const char *bytes, size_t len);

/* Append the file's content. ERR_LIMIT: it is too long. */
MUST_USE enum err attempt_file_read(const char *dir,
                                    const char *name,
                                    struct strbuf *out,
                                    struct diag *diag);

/* Remove a directory with the files in it, if that can be done. Directories in
 * it are left, and it with them. */
void attempt_file_drop(const char *dir);

#endif /* EXEC_ATTEMPT_FILE_H */
