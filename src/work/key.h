/* SPDX-License-Identifier: MIT */
/*
 * key: the credentials of sessions.
 *
 * A session proves with its key, $SLUICE_KEY, that a request is its own. A
 * worker derives the key from a secret of its home, the fencing token and the
 * nonce of the attempt. So an attempt that is ordered twice has one key,
 * whichever order starts it, and no key is stored anywhere.
 *
 * The key is "TOKEN-HEX", with 128 bits in hexadecimal digits. Processes of the
 * same user can read it: it prevents accidents, not malice.
 */
#ifndef WORK_KEY_H
#define WORK_KEY_H

#include "base/diag.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stdint.h>

/* The directory in `home` with the socket for sessions, $SLUICE_DOOR. */
#define KEY_DOOR "door"

struct key_secret {
    unsigned char bytes[SHA256_BYTES];
};

enum { KEY_BYTES = 20 + 1 + 32 + 1 }; /* with the final NUL */

/* Read the secret of a home directory; create it, if it has none. */
MUST_USE enum err
key_load(struct key_secret *out, const char *home, struct diag *diag);

/* Derive the key of an attempt. */
void key_make(char out[KEY_BYTES],
              const struct key_secret *secret,
              uint64_t token,
              const char *nonce);

/* Return the token that a key names; 0: it is not a key. */
uint64_t key_token(const char *key);

/* Whether it is the key of that attempt. Takes the same time for all keys of
 * one length. */
bool key_is(const char *key,
            const struct key_secret *secret,
            uint64_t token,
            const char *nonce);

#endif /* WORK_KEY_H */
