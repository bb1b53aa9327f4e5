/* SPDX-License-Identifier: MIT */
/*
 * arena: many small blocks with one common lifetime.
 *
 * Blocks are not freed one by one: the caller frees all (arena_release) or all
 * newer than a mark (arena_rewind), which is how a rejected change leaves no
 * trace. Strings are packed; blocks are aligned to ARENA_ALIGN bytes.
 *
 * Embed it; starts as {0}.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

/* Enough for pointers, int64_t and double. */
enum { ARENA_ALIGN = 8 };

struct arena_chunk;

struct arena {
    struct arena_chunk *newest;
};

/* A position in an arena; a plain value. */
struct arena_mark {
    struct arena_chunk *chunk;
    size_t used;
};

/* Free all memory; the arena is then empty. */
void arena_release(struct arena *arena);

/* Return `count` zeroed elements of `bytes` bytes, valid until the release. */
void *arena_alloc(struct arena *arena, size_t count, size_t bytes);

/* Point `items` to an array of `count` elements. */
#define ARENA_ARRAY(arena, items, count)                                       \
    ((items) = arena_alloc((arena), (count), sizeof((items)[0])))

/* Return a NUL-terminated copy of `len` bytes of `text`. */
char *arena_strndup(struct arena *arena, const char *text, size_t len);

/* Return the current position. */
struct arena_mark arena_mark(const struct arena *arena);

/*
 * Free all blocks allocated after `mark` was taken. Newer marks become invalid.
 */
void arena_rewind(struct arena *arena, struct arena_mark mark);

#endif /* BASE_ARENA_H */
