/* SPDX-License-Identifier: MIT */
#include "core/limits.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

/* Key of a counter or pool: the limit (or share) and the value of `per`. */
static uint64_t key_of(uint32_t limit, uint32_t key, bool shared)
{
    uint64_t high = ((uint64_t)limit << 1) | (shared ? 1 : 0);
    return (high << 32) | key;
}

void limits_release(struct limits *limits)
{
    for (uint32_t ix = 0; ix < limits->limit_count; ix++) {
        mem_free(limits->limits[ix].where);
    }
    mem_free(limits->limits);
    mem_free(limits->counters);
    mem_free(limits->pools);
    mem_free(limits->pool_links);
    idmap_release(&limits->pools_by_key);
    idmap_release(&limits->counters_by_key);
    *limits = (struct limits){0};
}

static void derive_max(struct limits *limits, uint32_t limit)
{
    struct limit *l = &limits->limits[limit];
    if (l->spec.percent == 0) {
        INVARIANT(l->spec.max >= 0);
        l->max_now = l->spec.max;
        return;
    }
    INVARIANT(l->spec.base < limits->limit_count && l->spec.base != limit);
    INVARIANT(l->spec.percent <= 100);
    int64_t base = limits->limits[l->spec.base].max_now;
    if (base == LIMIT_NONE) {
        l->max_now = LIMIT_NONE;
        return;
    }
    int64_t share =
        base / 100 * l->spec.percent + base % 100 * l->spec.percent / 100;
    l->max_now = share > 1 ? share : 1;
    if (l->foreground < base && base - l->foreground > l->max_now) {
        l->max_now = base - l->foreground;
    }
}

void limits_derive(struct limits *limits, uint32_t limit)
{
    struct limit *l = &limits->limits[limit];
    derive_max(limits, limit);
    bool none = l->max_now > LIMIT_NONE - l->ahead;
    l->ahead_now = none ? LIMIT_NONE : l->max_now + l->ahead;
}

uint32_t limits_add(struct limits *limits, const struct limit_spec *spec)
{
    INVARIANT(limits->limit_count < UINT32_MAX / 4);
    MEM_GROW(limits->limits, limits->limit_count, limits->limit_capacity);
    uint32_t ix = limits->limit_count++;
    struct limit *limit = &limits->limits[ix];
    *limit = (struct limit){
        .spec = *spec,
        .where = mem_zalloc(spec->where_count, sizeof(spec->where[0])),
        .foreground = LIMIT_NONE,
        .first_pool = ID_NONE,
        .kind = LIMIT_PLAN,
        .owner = ID_NONE,
    };
    for (uint32_t n = 0; n < spec->where_count; n++) {
        limit->where[n] = spec->where[n];
    }
    limit->spec.where = limit->where;
    limits_derive(limits, ix);
    return ix;
}

uint32_t
limits_add_pool(struct limits *limits, enum limit_kind kind, uint32_t owner)
{
    INVARIANT(kind != LIMIT_PLAN);
    struct limit_spec spec = {
        .max = LIMIT_NONE,
        .per = ID_NONE,
        .share = ID_NONE,
        .resource = true,
    };
    uint32_t limit = limits_add(limits, &spec);
    limits->limits[limit].kind = kind;
    limits->limits[limit].owner = owner;
    uint32_t pool = limits_pool(limits, limit, ID_NONE);
    INVARIANT(limits_free(limits, pool) == LIMIT_NONE);
    return pool;
}

static uint32_t counter_for(struct limits *limits, uint32_t limit, uint32_t key)
{
    uint32_t share = limits->limits[limit].spec.share;
    bool shared = share != ID_NONE;
    uint64_t map_key = key_of(shared ? share : limit, key, shared);
    uint32_t found = idmap_get(&limits->counters_by_key, map_key);
    if (found != ID_NONE) {
        INVARIANT(found < limits->counter_count);
        return found;
    }
    MEM_GROW(limits->counters, limits->counter_count, limits->counter_capacity);
    uint32_t ix = limits->counter_count++;
    limits->counters[ix] = (struct counter){
        .first_pool = ID_NONE,
        .reserved_for = ID_NONE,
        .next_reserved = ID_NONE,
    };
    idmap_put(&limits->counters_by_key, map_key, ix);
    return ix;
}

static uint32_t new_pool(struct limits *limits)
{
    uint32_t capacity = limits->pool_capacity;
    MEM_GROW(limits->pools, limits->pool_count, capacity);
    MEM_GROW(limits->pool_links, limits->pool_count, limits->pool_capacity);
    uint32_t ix = limits->pool_count++;
    pheap_init(&limits->pool_links[ix], 1);
    return ix;
}

uint32_t limits_pool(struct limits *limits, uint32_t limit, uint32_t key)
{
    INVARIANT(limit < limits->limit_count);
    uint64_t map_key = key_of(limit, key, false);
    uint32_t found = idmap_get(&limits->pools_by_key, map_key);
    if (found != ID_NONE) {
        return found;
    }
    uint32_t counter = counter_for(limits, limit, key);
    INVARIANT(limits->limits[limit].spec.share != ID_NONE ||
              limits->counters[counter].first_pool == ID_NONE);
    uint32_t ix = new_pool(limits);
    limits->pools[ix] = (struct pool){
        .limit = limit,
        .counter = counter,
        .next_of_limit = limits->limits[limit].first_pool,
        .next_of_counter = limits->counters[counter].first_pool,
        .waiting = ID_NONE,
        .holder = ID_NONE,
        .first_shape = ID_NONE,
        .lane_next = ID_NONE,
    };
    limits->limits[limit].first_pool = ix;
    limits->counters[counter].first_pool = ix;
    idmap_put(&limits->pools_by_key, map_key, ix);
    return ix;
}

/* Return the value of an attribute, or ID_NONE. */
static uint32_t
value_of(const struct attribute *attributes, uint32_t count, uint32_t name)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        if (attributes[ix].name == name) {
            return attributes[ix].value;
        }
    }
    return ID_NONE;
}

bool limits_match(const struct limits *limits,
                  uint32_t limit,
                  const struct attribute *attributes,
                  uint32_t count,
                  uint32_t *key_out)
{
    const struct limit *l = &limits->limits[limit];
    for (uint32_t ix = 0; ix < l->spec.where_count; ix++) {
        if (value_of(attributes, count, l->where[ix].name) !=
            l->where[ix].value) {
            return false;
        }
    }
    *key_out = ID_NONE;
    if (l->spec.per == ID_NONE) {
        return true;
    }
    *key_out = value_of(attributes, count, l->spec.per);
    return *key_out != ID_NONE;
}

void limits_set_max(struct limits *limits,
                    uint32_t limit,
                    int64_t max,
                    uint32_t percent)
{
    INVARIANT(limit < limits->limit_count);
    INVARIANT(percent <= 100 && max >= 0);
    limits->limits[limit].spec.max = max;
    limits->limits[limit].spec.percent = percent;
    limits_derive(limits, limit);
}

void limits_set_ahead(struct limits *limits, uint32_t limit, uint32_t ahead)
{
    INVARIANT(limit < limits->limit_count);
    limits->limits[limit].ahead = ahead;
    limits_derive(limits, limit);
}

size_t limits_bytes(const struct limits *limits)
{
    return limits->limit_capacity * sizeof(limits->limits[0]) +
           limits->counter_capacity * sizeof(limits->counters[0]) +
           limits->pool_capacity *
               (sizeof(limits->pools[0]) + sizeof(limits->pool_links[0])) +
           idmap_bytes(&limits->pools_by_key) +
           idmap_bytes(&limits->counters_by_key);
}
