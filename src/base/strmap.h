/* SPDX-License-Identifier: MIT */
/*
 * strmap: map from strings to numbers, usually indices.
 *
 * Keys are borrowed: the caller keeps them alive and unchanged while they are
 * in the map. Lookup keys need no terminating NUL, and contain none.
 *
 * Embed it; starts as {0}.
 */
#ifndef BASE_STRMAP_H
#define BASE_STRMAP_H

#include <stddef.h>
#include <stdint.h>

/* "Not found"; not allowed as a value. */
#define STRMAP_NONE UINT32_MAX

struct strmap_slot;

struct strmap {
    struct strmap_slot *slots;
    uint32_t count;
    uint32_t capacity; /* a power of two, or 0 */
};

/* Free the memory; the map is then empty. */
void strmap_release(struct strmap *map);

/*
 * Add `key` (NUL-terminated, borrowed) with `value` and return STRMAP_NONE. If
 * the key exists, return its value and change nothing.
 */
uint32_t strmap_add(struct strmap *map, const char *key, uint32_t value);

/* Return the value of the key of `len` bytes, or STRMAP_NONE. */
uint32_t strmap_find(const struct strmap *map, const char *key, size_t len);

/* Remove the key, if it exists. */
void strmap_remove(struct strmap *map, const char *key);

#endif /* BASE_STRMAP_H */
