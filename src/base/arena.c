/* SPDX-License-Identifier: MIT */
/*
 * A list of chunks, newest first; only the newest is filled. Chunks double in
 * size up to a bound, so a large arena has few and a small arena stays small. A
 * block that does not fit gets a new chunk and the rest of the previous chunk
 * is wasted: at most one block's size per chunk.
 */
#include "base/arena.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdint.h>
#include <string.h>

enum {
    CHUNK_BYTES_MIN = 1 << 12,
    CHUNK_BYTES_MAX = 1 << 20,
};

struct arena_chunk {
    struct arena_chunk *older;
    size_t capacity;
    size_t used;
    char bytes[];
};

void arena_release(struct arena *arena)
{
    arena_rewind(arena, (struct arena_mark){0});
}

static void add_chunk(struct arena *arena, size_t wanted)
{
    size_t capacity = CHUNK_BYTES_MIN;
    if (arena->newest != NULL) {
        capacity = arena->newest->capacity * 2;
    }
    if (capacity > CHUNK_BYTES_MAX) {
        capacity = CHUNK_BYTES_MAX;
    }
    if (capacity < wanted) {
        capacity = wanted;
    }
    INVARIANT(capacity <= SIZE_MAX - sizeof(struct arena_chunk));
    struct arena_chunk *chunk = mem_resize(NULL, sizeof(*chunk) + capacity, 1);
    chunk->older = arena->newest;
    chunk->capacity = capacity;
    chunk->used = 0;
    arena->newest = chunk;
}

/* Return `bytes` bytes at an offset that is a multiple of `align`. */
static char *take(struct arena *arena, size_t bytes, size_t align)
{
    struct arena_chunk *chunk = arena->newest;
    size_t start = 0;
    if (chunk != NULL) {
        start = (chunk->used + align - 1) & ~(align - 1);
    }
    if (chunk == NULL || start > chunk->capacity ||
        bytes > chunk->capacity - start) {
        add_chunk(arena, bytes);
        chunk = arena->newest;
        start = 0;
    }
    chunk->used = start + bytes;
    return chunk->bytes + start;
}

void *arena_alloc(struct arena *arena, size_t count, size_t bytes)
{
    INVARIANT(bytes > 0 && count <= SIZE_MAX / 2 / bytes);
    char *block = take(arena, count * bytes, ARENA_ALIGN);
    memset(block, 0, count * bytes);
    return block;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    INVARIANT(len < SIZE_MAX / 2);
    char *copy = take(arena, len + 1, 1);
    if (len > 0) {
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    return copy;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    struct arena_mark mark = {.chunk = arena->newest};
    if (arena->newest != NULL) {
        mark.used = arena->newest->used;
    }
    return mark;
}

void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    while (arena->newest != mark.chunk) {
        INVARIANT(arena->newest != NULL);
        struct arena_chunk *older = arena->newest->older;
        mem_free(arena->newest);
        arena->newest = older;
    }
    if (arena->newest != NULL) {
        INVARIANT(mark.used <= arena->newest->used);
        arena->newest->used = mark.used;
    }
}
