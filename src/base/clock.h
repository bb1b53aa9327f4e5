/* SPDX-License-Identifier: MIT */
/*
 * clock: what time it is, in nanoseconds.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Since the machine was started, with the time that it slept. */
int64_t clock_boot_ns(void);

/* Since 1970, as people set it: it may jump. */
int64_t clock_wall_ns(void);

#endif /* BASE_CLOCK_H */
