/* SPDX-License-Identifier: MIT */
/*
 * Open addressing with linear probing, at most three quarters full. Removal
 * moves the keys after the hole forward, so the map has no tombstones and does
 * not get slower when it is filled and emptied repeatedly.
 *
 * Each slot keeps half of the hash: that distinguishes most wrong keys without
 * reading their strings, and growing reads no string at all.
 */
#include "base/strmap.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

enum {
    CAPACITY_MIN = 16,
    CAPACITY_MAX = 1 << 30,
};

struct strmap_slot {
    const char *key; /* NULL: free */
    uint32_t hash;
    uint32_t value;
};

/* Mix 64 bits so that each output bit depends on each input bit. */
static uint64_t mixed(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

static uint32_t hash_of(const char *key, size_t len)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ len;
    while (len >= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, key, sizeof(word));
        hash = mixed(hash ^ word) * UINT64_C(0x2545f4914f6cdd1d);
        key += sizeof(word);
        len -= sizeof(word);
    }
    uint64_t rest = 0;
    if (len > 0) {
        memcpy(&rest, key, len);
    }
    return (uint32_t)(mixed(hash ^ mixed(rest)) >> 16);
}

static bool is_key(const struct strmap_slot *slot,
                   uint32_t hash,
                   const char *key,
                   size_t len)
{
    return slot->hash == hash && strncmp(slot->key, key, len) == 0 &&
           slot->key[len] == '\0';
}

/* Return the position of the key, or of the free slot for it. */
static uint32_t
probe(const struct strmap *map, uint32_t hash, const char *key, size_t len)
{
    uint32_t mask = map->capacity - 1;
    uint32_t ix = hash & mask;
    while (map->slots[ix].key != NULL &&
           !is_key(&map->slots[ix], hash, key, len)) {
        ix = (ix + 1) & mask;
    }
    return ix;
}

void strmap_release(struct strmap *map)
{
    mem_free(map->slots);
    *map = (struct strmap){0};
}

static void rehash(struct strmap *map, uint32_t capacity)
{
    struct strmap_slot *old = map->slots;
    uint32_t old_capacity = map->capacity;
    map->slots = mem_zalloc(capacity, sizeof(map->slots[0]));
    map->capacity = capacity;
    for (uint32_t from = 0; from < old_capacity; from++) {
        if (old[from].key == NULL) {
            continue;
        }
        uint32_t ix = old[from].hash & (capacity - 1);
        while (map->slots[ix].key != NULL) {
            ix = (ix + 1) & (capacity - 1);
        }
        map->slots[ix] = old[from];
    }
    mem_free(old);
}

/* Make room for `count` keys. */
static void reserve(struct strmap *map, uint32_t count)
{
    uint32_t capacity = map->capacity > 0 ? map->capacity : CAPACITY_MIN;
    while (capacity - capacity / 4 < count) {
        INVARIANT(capacity < CAPACITY_MAX);
        capacity *= 2;
    }
    if (capacity != map->capacity) {
        rehash(map, capacity);
    }
}

uint32_t strmap_add(struct strmap *map, const char *key, uint32_t value)
{
    INVARIANT(value != STRMAP_NONE);
    reserve(map, map->count + 1);
    size_t len = strlen(key);
    uint32_t hash = hash_of(key, len);
    struct strmap_slot *slot = &map->slots[probe(map, hash, key, len)];
    if (slot->key != NULL) {
        return slot->value;
    }
    *slot = (struct strmap_slot){.key = key, .hash = hash, .value = value};
    map->count++;
    return STRMAP_NONE;
}

uint32_t strmap_find(const struct strmap *map, const char *key, size_t len)
{
    if (map->count == 0) {
        return STRMAP_NONE;
    }
    uint32_t ix = probe(map, hash_of(key, len), key, len);
    return map->slots[ix].key != NULL ? map->slots[ix].value : STRMAP_NONE;
}

void strmap_remove(struct strmap *map, const char *key)
{
    if (map->count == 0) {
        return;
    }
    size_t len = strlen(key);
    uint32_t mask = map->capacity - 1;
    uint32_t hole = probe(map, hash_of(key, len), key, len);
    if (map->slots[hole].key == NULL) {
        return;
    }
    /* Fill the hole with keys that probing would miss because of it. */
    for (uint32_t ix = (hole + 1) & mask; map->slots[ix].key != NULL;
         ix = (ix + 1) & mask) {
        uint32_t home = map->slots[ix].hash & mask;
        if (((ix - home) & mask) >= ((ix - hole) & mask)) {
            map->slots[hole] = map->slots[ix];
            hole = ix;
        }
    }
    map->slots[hole] = (struct strmap_slot){0};
    map->count--;
}
