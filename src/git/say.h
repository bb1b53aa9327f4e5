/* SPDX-License-Identifier: MIT */
/*
 * say: what is told to people. It goes to standard error, at once: that of
 * sluice-git is the log of the attempt, and the output of a command that uses
 * these files is its own.
 */
#ifndef GIT_SAY_H
#define GIT_SAY_H

#include "base/macros.h"

/* Print "sluice: " and a line. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);

/* Print a text as it is. */
void say_text(const char *text);

#endif /* GIT_SAY_H */
