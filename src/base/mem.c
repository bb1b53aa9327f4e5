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
