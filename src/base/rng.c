/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

#include "base/invariant.h"

void rng_init(struct rng *rng, uint64_t seed)
{
    rng->state = seed;
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t z = (rng->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t rng_below(struct rng *rng, uint32_t bound)
{
    INVARIANT(bound > 0);
    /* The bias of at most 2^-32 does not matter for our uses. */
    return (uint32_t)(((rng_next(rng) >> 32) * bound) >> 32);
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}
