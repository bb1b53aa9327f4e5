/* SPDX-License-Identifier: MIT */
/*
 * say: what sluice-git tells people. It goes where the session's own output
 * goes: into the log of the attempt, at once, so that the two are in order.
 */
#ifndef GIT_SAY_H
#define GIT_SAY_H

#include "base/macros.h"

/* Print "sluice: " and a line. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);

/* Print a text as it is. */
void say_text(const char *text);

#endif /* GIT_SAY_H */
