/* SPDX-License-Identifier: MIT */
/*
 * banned: calls that are compile errors here. The build puts this file in
 * front of every source of ours.
 *
 * They overflow, truncate in silence, keep hidden state or run a shell. Use
 * strbuf, snprintf, strtoll with checks, the _r variants and exec/ instead.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* The declarations must come first: they use these words themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy sprintf strtok atoi gmtime localtime  \
    system rand

#endif /* BASE_BANNED_H */
