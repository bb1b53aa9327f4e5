/* SPDX-License-Identifier: MIT */
/*
 * macros: what the compiler can check for us, under names of our own.
 */
#ifndef BASE_MACROS_H
#define BASE_MACROS_H

/* The result of a function so marked must be looked at. */
#define MUST_USE __attribute__((warn_unused_result))

/* Arguments from `first` on are checked against the format at `format`. */
#define PRINTF_LIKE(format, first)                                             \
    __attribute__((__format__(__printf__, format, first)))

/* Number of elements of an array (not of a pointer). */
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif /* BASE_MACROS_H */
