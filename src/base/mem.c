/* SPDX-License-Identifier: MIT */
/*
 * Thin wrappers, so that no caller needs a branch for "out of memory".
 *
 * Large blocks ask for huge pages. The scheduler walks a plan of a million
 * tasks in graph order; with small pages it would spend much of its time on TLB
 * misses.
 */
#include "base/mem.h"

#include "base/invariant.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The size of a huge page, and where it starts. */
#define HUGE_BYTES ((size_t)2 << 20)

/* Blocks of this size or more are worth huge pages, wherever they start. */
#define LARGE_BYTES (2 * HUGE_BYTES)

/* Stop if the allocation failed. Out of memory is not a bug, so this prints a
 * message and exits instead of aborting. Nothing here may allocate. */
static void need(const void *block)
{
    static const char text[] =
        "sluice: out of memory: free memory or raise the limit, and run the "
        "command again; running sessions continue\n";
    enum { EXIT_CODE = 3 }; /* as for an unusable store */
    if (block == NULL) {
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        _exit(EXIT_CODE);
    }
}

/* Ask for huge pages; small pages work as well. */
static void *advised(void *block, size_t bytes)
{
    const uintptr_t page = 4096;
    if (bytes >= LARGE_BYTES) {
        size_t skip = (page - (uintptr_t)block % page) % page;
        size_t len = (bytes - skip) / page * page;
        (void)madvise((char *)block + skip, len, MADV_HUGEPAGE);
    }
    return block;
}

void *mem_zalloc(size_t count, size_t bytes)
{
    void *block = calloc(count > 0 ? count : 1, bytes);
    need(block);
    return advised(block, count * bytes);
}

void *mem_resize(void *block, size_t count, size_t bytes)
{
    INVARIANT(bytes > 0 && count <= SIZE_MAX / bytes);
    void *moved = realloc(block, count > 0 ? count * bytes : bytes);
    need(moved);
    return advised(moved, count * bytes);
}

void *
mem_resize_lines(void *block, size_t old_count, size_t count, size_t bytes)
{
    enum { LINE_BYTES = 128 }; /* the CPU fetches cache lines in pairs */
    INVARIANT(bytes > 0 && count <= SIZE_MAX / bytes - LINE_BYTES);
    INVARIANT(old_count <= count);
    size_t size = (count * bytes / LINE_BYTES + 1) * LINE_BYTES;
    bool huge = size >= HUGE_BYTES;
    void *moved = NULL;
    if (posix_memalign(&moved, huge ? HUGE_BYTES : LINE_BYTES, size) != 0) {
        moved = NULL;
    }
    need(moved);
    if (huge) {
        (void)madvise(moved, size, MADV_HUGEPAGE);
    }
    if (old_count > 0) {
        memcpy(moved, block, old_count * bytes);
    }
    free(block);
    return moved;
}

void *mem_grown(void *block, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (count < *capacity) {
        return block;
    }
    INVARIANT(count < UINT32_MAX / 2);
    *capacity = count + count / 2 + 16;
    return mem_resize(block, *capacity, bytes);
}

char *mem_strndup(const char *text, size_t len)
{
    INVARIANT(len < SIZE_MAX);
    char *copy = malloc(len + 1);
    need(copy);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *mem_strdup(const char *text)
{
    return text != NULL ? mem_strndup(text, strlen(text)) : NULL;
}

void mem_set_text(char **place, const char *text)
{
    char *copy = mem_strdup(text); /* `text` may be inside *place */
    mem_free(*place);
    *place = copy;
}

void mem_free(void *block)
{
    free(block);
}
