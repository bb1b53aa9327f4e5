/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing, at most three quarters full. */
#include "core/idmap.h"

#include "base/invariant.h"
#include "base/mem.h"

void idmap_release(struct idmap *map)
{
    mem_free(map->slots);
    *map = (struct idmap){0};
}

/* Return the slot of the key, or the empty slot where it would go. */
static struct idmap_slot *slot_of(const struct idmap *map, uint64_t key)
{
    uint32_t mask = map->slot_count - 1;
    uint32_t ix = (uint32_t)idmap_hash(0, key) & mask;
    while (map->slots[ix].value != ID_NONE && map->slots[ix].key != key) {
        ix = (ix + 1) & mask;
    }
    return &map->slots[ix];
}

uint32_t idmap_get(const struct idmap *map, uint64_t key)
{
    return map->slot_count > 0 ? slot_of(map, key)->value : ID_NONE;
}

static void grow(struct idmap *map)
{
    struct idmap old = *map;
    INVARIANT(old.slot_count < UINT32_MAX / 4);
    map->slot_count = old.slot_count > 0 ? old.slot_count * 2 : 16;
    INVARIANT((map->slot_count & (map->slot_count - 1)) == 0);
    map->slots = mem_zalloc(map->slot_count, sizeof(map->slots[0]));
    for (uint32_t ix = 0; ix < map->slot_count; ix++) {
        map->slots[ix].value = ID_NONE;
    }
    uint32_t moved = 0;
    for (uint32_t ix = 0; ix < old.slot_count; ix++) {
        if (old.slots[ix].value != ID_NONE) {
            struct idmap_slot *slot = slot_of(map, old.slots[ix].key);
            INVARIANT(slot->value == ID_NONE); /* keys are unique */
            *slot = old.slots[ix];
            moved++;
        }
    }
    INVARIANT(moved == map->count);
    mem_free(old.slots);
}

void idmap_put(struct idmap *map, uint64_t key, uint32_t value)
{
    INVARIANT(value != ID_NONE);
    if ((map->count + 1) * 4 > map->slot_count * 3) {
        grow(map);
    }
    struct idmap_slot *slot = slot_of(map, key);
    if (slot->value == ID_NONE) {
        map->count++;
    }
    *slot = (struct idmap_slot){key, value};
    INVARIANT(map->count < map->slot_count);
}

size_t idmap_bytes(const struct idmap *map)
{
    return map->slot_count * sizeof(map->slots[0]);
}
