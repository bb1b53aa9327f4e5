/* SPDX-License-Identifier: MIT */
/*
 * banned: calls that are compile errors here. The build includes this file
 * before every source file of the project.
 *
 * They overflow, truncate silently, keep hidden state or run a shell. Use
 * strbuf, snprintf, strtoll with checks, the _r variants and exec/ instead.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* The declarations must come first: they use these names themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy sprintf strtok atoi gmtime localtime  \
    system rand

#endif /* BASE_BANNED_H */
