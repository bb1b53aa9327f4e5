/* SPDX-License-Identifier: MIT */
#include "git/say.h"

#include <stdarg.h>
#include <stdio.h>

/* There is no one to tell that telling failed. */
void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("sluice: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputs("\n", stderr);
    va_end(args);
}

void say_text(const char *text)
{
    (void)fputs(text, stderr);
}
