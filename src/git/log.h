/* SPDX-License-Identifier: MIT */
/*
 * log: messages for the user, unbuffered, on standard error: that of
 * sluice-git is the log of the attempt, and that of a command that uses these
 * files is its own.
 */
#ifndef GIT_LOG_H
#define GIT_LOG_H

#include "base/macros.h"

/* Print "sluice: " and a line. */
void log_line(const char *format, ...) PRINTF_LIKE(1, 2);

/* Print a text as it is. */
void log_text(const char *text);

#endif /* GIT_LOG_H */
