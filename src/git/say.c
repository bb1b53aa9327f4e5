/* SPDX-License-Identifier: MIT */
#include "git/say.h"

#include <stdarg.h>
#include <stdio.h>

/* There is no one to tell that telling failed. */
void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("sluice: ", stdout);
    (void)vfprintf(stdout, format, args);
    (void)fputs("\n", stdout);
    va_end(args);
    (void)fflush(stdout);
}

void say_text(const char *text)
{
    (void)fputs(text, stdout);
    (void)fflush(stdout);
}
