/* SPDX-License-Identifier: MIT */
/*
 * arena: many small blocks with one end of life.
 *
 * Nothing is freed alone: either everything (arena_release), or everything
 * newer than a mark (arena_rewind), which is how a refused change leaves no
 * trace. Texts are packed; blocks are aligned to ARENA_ALIGN bytes.
 *
 * Made to be embedded; starts as {0}.
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

/* A point in the life of an arena; a plain value. */
struct arena_mark {
    struct arena_chunk *chunk;
    size_t used;
};

/* Give all memory back; the arena is then empty. */
void arena_release(struct arena *arena);

/* `count` elements of `bytes` bytes each, zeroed, valid until the release. */
void *arena_alloc(struct arena *arena, size_t count, size_t bytes);

/* Let `items` point to an array of `count` elements. */
#define ARENA_ARRAY(arena, items, count)                                       \
    ((items) = arena_alloc((arena), (count), sizeof((items)[0])))

/* A copy of `len` bytes of `text`, with a NUL behind them. */
char *arena_strndup(struct arena *arena, const char *text, size_t len);

/* Remember how much is in use now. */
struct arena_mark arena_mark(const struct arena *arena);

/*
 * Give back everything allocated after `mark` was taken. Marks taken after
 * that one are void.
 */
void arena_rewind(struct arena *arena, struct arena_mark mark);

#endif /* BASE_ARENA_H */
