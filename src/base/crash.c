/* SPDX-License-Identifier: MIT */
/*
 * The hit counts are the only mutable globals of this program: a point must not
 * need a parameter, and only test builds have it.
 */
#include "base/crash.h"

#ifdef SLUICE_CRASH_POINTS

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_uint crash_passed;
static atomic_uint fault_passed;

/* Return whether `name` is in `text`, a comma-separated list of "NAME" or
 * "NAME:..."; *rest then points after the colon. */
static bool names(const char *text, const char *name, const char **rest)
{
    size_t len = strlen(name);
    while (text != NULL) {
        size_t item = strcspn(text, ":,");
        if (item == len && strncmp(text, name, len) == 0) {
            *rest = text[len] == ':' ? text + len + 1 : "";
            return true;
        }
        const char *comma = strchr(text, ',');
        text = comma != NULL ? comma + 1 : NULL;
    }
    return false;
}

/* Return whether `rest` asks for this hit; the first hit is 1. */
static bool is_wanted(unsigned long passing, const char *rest, char **end)
{
    unsigned long wanted = strtoul(rest, end, 10);
    if (**end == '+') { /* this hit and all later ones */
        (*end)++;
        return passing >= wanted;
    }
    return passing == (wanted == 0 ? 1 : wanted);
}

/*
 * Count this hit in the point's file, for all processes. The file offset after
 * an appending write is the number, so two processes never get the same.
 */
static unsigned long count_in(const char *dir, const char *name)
{
    char path[PATH_MAX];
    int error = errno; /* of the code around the point */
    int len = snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return 0;
    }
    int fd = openat(AT_FDCWD,
                    path,
                    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0) {
        return 0;
    }
    off_t passed = write(fd, "+", 1) == 1 ? lseek(fd, 0, SEEK_CUR) : 0;
    (void)close(fd);
    errno = error;
    return passed > 0 ? (unsigned long)passed : 0;
}

void crash_point(const char *name)
{
    const char *dir = getenv("SLUICE_CRASH_COUNT");
    unsigned long passing = dir != NULL ? count_in(dir, name) : 0;
    const char *rest;
    char *end;
    if (!names(getenv("SLUICE_CRASH"), name, &rest)) {
        return;
    }
    if (dir == NULL) {
        passing = atomic_fetch_add(&crash_passed, 1) + 1;
    }
    if (is_wanted(passing, rest, &end)) {
        (void)kill(getpid(), SIGKILL);
        for (;;) {
            (void)pause(); /* the signal may arrive a moment later */
        }
    }
}

int crash_fault(const char *name)
{
    static const struct {
        const char *name;
        int error;
    } errors[] = {
        {"EAGAIN", EAGAIN},
        {"EIO", EIO},
        {"EMFILE", EMFILE},
        {"ENOMEM", ENOMEM},
        {"ENOSPC", ENOSPC},
        {"EPERM", EPERM},
    };
    const char *rest;
    char *end;
    if (!names(getenv("SLUICE_FAULT"), name, &rest) ||
        !is_wanted(atomic_fetch_add(&fault_passed, 1) + 1, rest, &end)) {
        return 0;
    }
    for (size_t ix = 0; ix < sizeof(errors) / sizeof(errors[0]); ix++) {
        if (*end == ':' && strcmp(end + 1, errors[ix].name) == 0) {
            return errors[ix].error;
        }
    }
    return EIO;
}

#else

/* A translation unit may not be empty. */
struct crash_unused;

#endif
