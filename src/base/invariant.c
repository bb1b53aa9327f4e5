/* SPDX-License-Identifier: MIT */
/* write(2) rather than stdio: the heap may be corrupt. */
#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void invariant_failed(const char *file, int line, const char *condition)
{
    char text[512];
    int len = snprintf(text,
                       sizeof(text),
                       "sluice: bug at %s:%d: assertion failed: %s\n",
                       file,
                       line,
                       condition);
    if (len > 0) {
        size_t bytes = (size_t)len < sizeof(text) ? (size_t)len : sizeof(text);
        if (write(STDERR_FILENO, text, bytes) < 0) {
            abort();
        }
    }
    abort();
}
