/* SPDX-License-Identifier: MIT */
/* sha256: the hash function SHA-256, and HMAC with it (FIPS 180-4, RFC 2104).
 */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>

enum { SHA256_BYTES = 32 };

/* Hash `len` bytes. */
void sha256(const void *bytes, size_t len, unsigned char out[SHA256_BYTES]);

/* Hash `len` bytes so that only holders of the secret can do the same. */
void sha256_keyed(const unsigned char secret[SHA256_BYTES],
                  const void *bytes,
                  size_t len,
                  unsigned char out[SHA256_BYTES]);

#endif /* BASE_SHA256_H */
