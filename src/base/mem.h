/* SPDX-License-Identifier: MIT */
/*
 * mem: allocation that cannot fail.
 *
 * On out of memory the program prints a message and exits with code 3: the
 * store is durable, and nothing better is possible. Callers check external
 * sizes against a limit first. Multiplications are checked for overflow.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Return `count` zeroed elements of `bytes` bytes each. */
void *mem_zalloc(size_t count, size_t bytes);

/*
 * Like realloc() to `count` elements; the new part is uninitialised.
 * MEM_RESIZE(list->items, n) does it to an array.
 */
#define MEM_RESIZE(items, count)                                               \
    ((items) = mem_resize((items), (count), sizeof((items)[0])))
void *mem_resize(void *block, size_t count, size_t bytes);

/*
 * Like mem_resize(), with the block at the start of a cache line, or of a huge
 * page if it is large. Keeps `old_count` elements; pass such a block only to
 * this function and mem_free().
 */
void *
mem_resize_lines(void *block, size_t old_count, size_t count, size_t bytes);

/*
 * Make room for one more than `count` elements in an array that grows by half
 * its size: MEM_GROW(list->items, list->count, list->capacity). `capacity` is a
 * uint32_t; the new part is uninitialised.
 */
#define MEM_GROW(items, count, capacity)                                       \
    ((items) = mem_grown((items), (count), &(capacity), sizeof((items)[0])))
void *mem_grown(void *block, uint32_t count, uint32_t *capacity, size_t bytes);

/* Add room for one element to an array that has room for exactly `count`. */
#define MEM_EXTEND(items, count)                                               \
    ((items) = mem_resize((items), (size_t)(count) + 1, sizeof((items)[0])))

/* Return a NUL-terminated copy of `len` bytes of `text`. */
char *mem_strndup(const char *text, size_t len);

/* Copy a string (NULL stays NULL); replace a string by a copy of another. */
char *mem_strdup(const char *text);
void mem_set_text(char **place, const char *text);

/* Free a block of any of the above. NULL is allowed. */
void mem_free(void *block);

#endif /* BASE_MEM_H */
