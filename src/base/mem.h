/* SPDX-License-Identifier: MIT */
/*
 * mem: allocation that cannot fail.
 *
 * Out of memory ends the program with a message and exit code 3: the store is
 * durable, and there is nothing better to do. Sizes that come from outside are
 * checked against a limit before they get here. Multiplications are checked for
 * overflow.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* `count` elements of `bytes` bytes each, zeroed. */
void *mem_zalloc(size_t count, size_t bytes);

/*
 * As realloc() to `count` elements; the new part is not initialised.
 * MEM_RESIZE(list->items, n) does it to an array.
 */
#define MEM_RESIZE(items, count)                                               \
    ((items) = mem_resize((items), (count), sizeof((items)[0])))
void *mem_resize(void *block, size_t count, size_t bytes);

/*
 * As mem_resize(), with the block at the start of a cache line. `old_count`
 * elements are kept; give such a block to no function but this and mem_free().
 */
void *
mem_resize_lines(void *block, size_t old_count, size_t count, size_t bytes);

/*
 * Room for one more than `count` elements, in an array that grows by half of
 * itself: MEM_GROW(list->items, list->count, list->capacity). `capacity` is an
 * uint32_t; the new part is not initialised.
 */
#define MEM_GROW(items, count, capacity)                                       \
    ((items) = mem_grown((items), (count), &(capacity), sizeof((items)[0])))
void *mem_grown(void *block, uint32_t count, uint32_t *capacity, size_t bytes);

/* Change the size of an array that `items` points to. */
#define MEM_RESIZE(items, count)                                               \
    ((items) = mem_resize((items), (count), sizeof((items)[0])))

/* The same for an array that has room for `count` elements and no more. */
#define MEM_EXTEND(items, count)                                               \
    ((items) = mem_resize((items), (size_t)(count) + 1, sizeof((items)[0])))

/* A copy of `len` bytes of `text`, with a NUL behind them. */
char *mem_strndup(const char *text, size_t len);

/* A copy of a string, or NULL for NULL; and a copy in place of another. */
char *mem_strdup(const char *text);
void mem_set_text(char **place, const char *text);

/* Free a block of any of the above. NULL is allowed. */
void mem_free(void *block);

#endif /* BASE_MEM_H */
