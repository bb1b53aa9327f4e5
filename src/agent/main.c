/* SPDX-License-Identifier: MIT */
/*
 * sluice-agent: the first process of a coding agent's session.
 *
 *   sluice-agent DIR
 *
 * DIR is the attempt directory. Users do not call it.
 */
#include "agent/drive.h"
#include "base/macros.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] != '/') {
        static const char text[] =
            "sluice-agent is run by sluice, not by hand\n";
        ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
        (void)written;
        return 30;
    }
    return drive_session(argv[1]);
}
