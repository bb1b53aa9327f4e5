/* SPDX-License-Identifier: MIT */
/*
 * rng: seeded random numbers. Equal seeds give equal sequences on every machine
 * (SplitMix64). Not for secrets. A plain value; copy it to fork a sequence.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

/* Start the sequence of `seed`. */
void rng_init(struct rng *rng, uint64_t seed);

/* The next 64 bits. */
uint64_t rng_next(struct rng *rng);

/* Return a number from 0 to bound - 1; bound must not be 0. */
uint32_t rng_below(struct rng *rng, uint32_t bound);

/* Return a number in [0, 1). */
double rng_unit(struct rng *rng);

#endif /* BASE_RNG_H */
