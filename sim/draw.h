/* SPDX-License-Identifier: MIT */
/* draw: random numbers of simulated sessions. */
#ifndef SIM_DRAW_H
#define SIM_DRAW_H

#include "base/rng.h"

#include <math.h>

/* Return a number with the standard normal distribution (Box and Muller). */
static inline double draw_normal(struct rng *rng)
{
    const double two_pi = 6.283185307179586;
    double radius = sqrt(-2.0 * log1p(-rng_unit(rng)));
    return radius * cos(two_pi * rng_unit(rng));
}

#endif /* SIM_DRAW_H */
