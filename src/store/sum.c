/* SPDX-License-Identifier: MIT */
#include "store/sum.h"

static uint64_t add_byte(uint64_t sum, uint8_t byte)
{
    return (sum ^ byte) * UINT64_C(0x100000001b3);
}

uint64_t sum_add(uint64_t sum, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    for (size_t ix = 0; ix < len; ix++) {
        sum = add_byte(sum, at[ix]);
    }
    return sum;
}

uint64_t sum_add_number(uint64_t sum, uint64_t number, size_t len)
{
    for (size_t ix = 0; ix < len; ix++) {
        sum = add_byte(sum, (uint8_t)(number >> (8 * ix)));
    }
    return sum;
}
