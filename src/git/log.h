/* SPDX-License-Identifier: MIT */
/*
 * log: messages for the user, unbuffered, on standard error. For sluice-git
 * that is the attempt log; for a command that links these files, its own
 * standard error.
 */
#ifndef GIT_LOG_H
#define GIT_LOG_H

#include "base/macros.h"

/* Print "sluice: " and a line. */
void log_line(const char *format, ...) PRINTF_LIKE(1, 2);

/* Print a string unchanged. */
void log_text(const char *text);

#endif /* GIT_LOG_H */
