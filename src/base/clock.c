/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include "base/duration.h"
#include "base/invariant.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    int failed = clock_gettime(clock, &now);
    INVARIANT(failed == 0); /* both clocks exist on Linux */
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

int64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}
