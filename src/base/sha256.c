/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <stdint.h>
#include <string.h>

enum {
    BLOCK_BYTES = 64,
    ROUNDS = 64,
    LENGTH_AT = 56, /* in the last block: the length of the input, in bits */
};

/* A hash under construction. */
struct hash {
    uint32_t state[8];
    unsigned char block[BLOCK_BYTES];
    uint64_t bytes; /* added so far */
};

/* The first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

/* Spread a block over the words of all rounds. */
static void expand(uint32_t words[ROUNDS], const unsigned char *block)
{
    for (unsigned ix = 0; ix < 16; ix++) {
        const unsigned char *at = block + (size_t)4 * ix;
        words[ix] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
                    (uint32_t)at[2] << 8 | (uint32_t)at[3];
    }
    for (unsigned ix = 16; ix < ROUNDS; ix++) {
        uint32_t a = words[ix - 15];
        uint32_t b = words[ix - 2];
        words[ix] = words[ix - 16] + words[ix - 7] +
                    (turn(a, 7) ^ turn(a, 18) ^ a >> 3) +
                    (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

static void mix(struct hash *hash)
{
    uint32_t words[ROUNDS];
    uint32_t v[8];
    expand(words, hash->block);
    memcpy(v, hash->state, sizeof(v));
    for (unsigned ix = 0; ix < ROUNDS; ix++) {
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t first = v[7] +
                         (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
                         choice + constants[ix] + words[ix];
        uint32_t second =
            (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + majority;
        memmove(v + 1, v, sizeof(v) - sizeof(v[0]));
        v[4] += first;
        v[0] = first + second;
    }
    for (unsigned ix = 0; ix < 8; ix++) {
        hash->state[ix] += v[ix];
    }
}

/* The fractional parts of the square roots of the first 8 primes. */
static struct hash begin(void)
{
    return (struct hash){.state = {0x6a09e667,
                                   0xbb67ae85,
                                   0x3c6ef372,
                                   0xa54ff53a,
                                   0x510e527f,
                                   0x9b05688c,
                                   0x1f83d9ab,
                                   0x5be0cd19}};
}

static void add(struct hash *hash, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;
    while (len > 0) {
        size_t used = (size_t)(hash->bytes % BLOCK_BYTES);
        size_t part = BLOCK_BYTES - used < len ? BLOCK_BYTES - used : len;
        memcpy(hash->block + used, from, part);
        hash->bytes += part;
        from += part;
        len -= part;
        if (used + part == BLOCK_BYTES) {
            mix(hash);
        }
    }
}

static void end(struct hash *hash, unsigned char out[SHA256_BYTES])
{
    static const unsigned char mark = 0x80;
    static const unsigned char zero = 0;
    uint64_t bits = hash->bytes * 8;
    unsigned char length[8];
    for (unsigned ix = 0; ix < sizeof(length); ix++) {
        length[ix] = (unsigned char)(bits >> (56 - 8 * ix));
    }
    add(hash, &mark, 1);
    while (hash->bytes % BLOCK_BYTES != LENGTH_AT) {
        add(hash, &zero, 1);
    }
    add(hash, length, sizeof(length));
    for (unsigned ix = 0; ix < SHA256_BYTES; ix++) {
        out[ix] = (unsigned char)(hash->state[ix / 4] >> (24 - 8 * (ix % 4)));
    }
}

void sha256(const void *bytes, size_t len, unsigned char out[SHA256_BYTES])
{
    struct hash hash = begin();
    add(&hash, bytes, len);
    end(&hash, out);
}

/* Begin a hash with the secret, padded to a block and masked. */
static struct hash begin_keyed(const unsigned char secret[SHA256_BYTES],
                               unsigned char mask)
{
    unsigned char block[BLOCK_BYTES];
    struct hash hash = begin();
    for (unsigned ix = 0; ix < BLOCK_BYTES; ix++) {
        unsigned char byte = ix < SHA256_BYTES ? secret[ix] : 0;
        block[ix] = (unsigned char)(byte ^ mask);
    }
    add(&hash, block, sizeof(block));
    return hash;
}

void sha256_keyed(const unsigned char secret[SHA256_BYTES],
                  const void *bytes,
                  size_t len,
                  unsigned char out[SHA256_BYTES])
{
    unsigned char inner[SHA256_BYTES];
    struct hash hash = begin_keyed(secret, 0x36);
    add(&hash, bytes, len);
    end(&hash, inner);
    hash = begin_keyed(secret, 0x5c);
    add(&hash, inner, sizeof(inner));
    end(&hash, out);
}
