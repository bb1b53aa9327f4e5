/* SPDX-License-Identifier: MIT */
/*
 * The program sluice-shim. exec_open() starts it; users do not.
 */
#include "exec/shim_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char usage[] = "usage: sluice-shim --serve FD\nInternal: "
                                "sluice starts it; see sluice(1).\n";
    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        char *end;
        long fd = strtol(argv[2], &end, 10);
        if (*end == '\0' && fd >= 3 && fd < 1024) {
            return shim_serve((int)fd);
        }
    }
    (void)!write(STDERR_FILENO, usage, sizeof(usage) - 1);
    return 2;
}
