/* SPDX-License-Identifier: MIT */
/*
 * macros: names for compiler checks.
 */
#ifndef BASE_MACROS_H
#define BASE_MACROS_H

/* The caller must use the result of such a function. */
#define MUST_USE __attribute__((warn_unused_result))

/* Check the arguments from `first` on against the format at `format`. */
#define PRINTF_LIKE(format, first)                                             \
    __attribute__((__format__(__printf__, format, first)))

/* Number of elements of an array (not of a pointer). */
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif /* BASE_MACROS_H */
