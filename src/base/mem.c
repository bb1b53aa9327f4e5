/* SPDX-License-Identifier: MIT */
/* Thin wrappers, so that no caller has a branch for "no memory". */
#include "base/mem.h"

#include "base/invariant.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *mem_zalloc(size_t count, size_t bytes)
{
    void *block = calloc(count > 0 ? count : 1, bytes);
    INVARIANT(block != NULL);
    return block;
}

void *mem_resize(void *block, size_t count, size_t bytes)
{
    INVARIANT(bytes > 0 && count <= SIZE_MAX / bytes);
    void *moved = realloc(block, count > 0 ? count * bytes : bytes);
    INVARIANT(moved != NULL);
    return moved;
}

void *
mem_resize_lines(void *block, size_t old_count, size_t count, size_t bytes)
{
    enum { LINE_BYTES = 128 }; /* lines are fetched in pairs */
    INVARIANT(bytes > 0 && count <= SIZE_MAX / bytes - LINE_BYTES);
    INVARIANT(old_count <= count);
    size_t lines = count * bytes / LINE_BYTES + 1;
    void *moved = aligned_alloc(LINE_BYTES, lines * LINE_BYTES);
    INVARIANT(moved != NULL);
    if (old_count > 0) {
        memcpy(moved, block, old_count * bytes);
    }
    free(block);
    return moved;
}

char *mem_strndup(const char *text, size_t len)
{
    INVARIANT(len < SIZE_MAX);
    char *copy = malloc(len + 1);
    INVARIANT(copy != NULL);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void mem_free(void *block)
{
    free(block);
}
