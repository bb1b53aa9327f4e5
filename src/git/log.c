/* SPDX-License-Identifier: MIT */
#include "git/log.h"

#include <stdarg.h>
#include <stdio.h>

/* Write errors are ignored: no channel is left to report them. */
void log_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("sluice: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputs("\n", stderr);
    va_end(args);
}

void log_text(const char *text)
{
    (void)fputs(text, stderr);
}
