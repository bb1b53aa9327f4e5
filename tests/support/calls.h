/* SPDX-License-Identifier: MIT */
/*
 * calls: calls of the system and of libraries that fail when they are told to.
 *
 * A program with calls_dep of tests/support/meson.build is linked so that each
 * call of a function in this list first asks here. A test lets the n-th of them
 * fail, for n = 1, 2 and so on, until none is left to fail:
 *
 *     for (unsigned n = 1; calls_more(); n++) {
 *         calls_fail(&(struct calls_fault){.first = n});
 *         enum err err = thing_open(...);
 *         if (calls_end()) { ... it has failed, or has recovered ... }
 *     }
 *
 * Calls inside of libraries do not count, those of the test itself do.
 */
#ifndef TESTS_SUPPORT_CALLS_H
#define TESTS_SUPPORT_CALLS_H

#include <stdbool.h>

/* Instead of an error: the call does nothing, and returns 0. */
enum { CALLS_NOTHING = -1 };

struct calls_fault {
    const char *only; /* calls whose names start with this; NULL: all */
    unsigned first;   /* the first one that fails, from 1 */
    unsigned count;   /* how many fail; 0: one */
    int error;        /* errno, CALLS_NOTHING; 0: one that is usual for it */
};

/* From now on. The strings are borrowed until calls_end(). */
void calls_fail(const struct calls_fault *fault);

/* Let calls of the test itself pass; and go on where it was. */
void calls_pause(void);
void calls_resume(void);

/* No more; return whether a call has failed since calls_fail(). */
bool calls_end(void);

/* The name of the last call that has failed; "": none. */
const char *calls_failed(void);

/* Whether to try another n: at the first time, and as long as the last
 * calls_end() returned true. */
bool calls_more(void);

#endif /* TESTS_SUPPORT_CALLS_H */
