/* SPDX-License-Identifier: MIT */
/*
 * idmap: map from a 64-bit key to an index. Used at admission only, to find an
 * existing object with the same key. Embed it; starts as {0}.
 */
#ifndef CORE_IDMAP_H
#define CORE_IDMAP_H

#include "core/ids.h"

#include <stddef.h>

struct idmap_slot {
    uint64_t key;
    uint32_t value; /* ID_NONE: the slot is empty */
};

struct idmap {
    struct idmap_slot *slots;
    uint32_t slot_count; /* a power of two, or 0 */
    uint32_t count;
};

/* Free the memory; the map is then empty. */
void idmap_release(struct idmap *map);

/* Return the value of the key, or ID_NONE. */
uint32_t idmap_get(const struct idmap *map, uint64_t key);

/* Set the value of the key (not ID_NONE), replacing an earlier value. */
void idmap_put(struct idmap *map, uint64_t key, uint32_t value);

/* Memory of the map in bytes. */
size_t idmap_bytes(const struct idmap *map);

/* Mix 64 bits into a running hash. */
static inline uint64_t idmap_hash(uint64_t hash, uint64_t bits)
{
    hash ^= bits + UINT64_C(0x9e3779b97f4a7c15) + (hash << 6) + (hash >> 2);
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return hash ^ (hash >> 32);
}

#endif /* CORE_IDMAP_H */
