/* SPDX-License-Identifier: MIT */
/*
 * clock: the current time in nanoseconds.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Time since boot, including suspend. */
int64_t clock_boot_ns(void);

/* Wall-clock time since 1970; it may jump. */
int64_t clock_wall_ns(void);

#endif /* BASE_CLOCK_H */
