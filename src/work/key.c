/* SPDX-License-Identifier: MIT */
#include "work/key.h"

#include "base/invariant.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEX_DIGITS = 32 };

static const char file_name[] = "secret";
static const char new_name[] = "secret.new";

/* Read the file; false with an errno, which is 0 if it is not a secret. */
static bool read_file(struct key_secret *out, int dir)
{
    unsigned char bytes[SHA256_BYTES + 1];
    int fd =
        openat(dir, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t len = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
    int error = len < 0 ? errno : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (len == SHA256_BYTES) {
        memcpy(out->bytes, bytes, SHA256_BYTES);
    }
    errno = error;
    return len == SHA256_BYTES;
}

/* Whether an error means that there is no secret: no file, a link, a socket, or
 * a pipe. After any other one there may be, and sessions have keys made of it.
 */
static bool is_missing(int error)
{
    return error == 0 || error == ENOENT || error == ELOOP || error == ENXIO ||
           error == EAGAIN;
}

/* Create the file; false with an errno. The holder of the store's lock calls
 * this, so no other process does the same. A secret lost in a power failure
 * does no harm: its sessions are lost, too. */
static bool write_file(const struct key_secret *secret, int dir)
{
    int fd = openat(dir,
                    new_name,
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0) {
        return false;
    }
    /* An old file may have another mode. */
    ssize_t len =
        fchmod(fd, 0600) == 0 ? write(fd, secret->bytes, SHA256_BYTES) : -1;
    int error = len == SHA256_BYTES ? 0 : len < 0 ? errno : ENOSPC;
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    if (error == 0 && renameat(dir, new_name, dir, file_name) != 0) {
        error = errno;
    }
    errno = error;
    return error == 0;
}

enum err key_load(struct key_secret *out, const char *home, struct diag *diag)
{
    int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = dir >= 0 && read_file(out, dir);
    if (dir >= 0 && !good && is_missing(errno)) {
        good = getrandom(out->bytes, SHA256_BYTES, 0) == SHA256_BYTES &&
               write_file(out, dir);
    }
    enum err err = ERR_OK;
    if (!good) {
        err = diag_set(diag,
                       ERR_IO,
                       "open %s/%s: %s",
                       home,
                       file_name,
                       strerror(errno));
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    return err;
}

void key_make(char out[KEY_BYTES],
              const struct key_secret *secret,
              uint64_t token,
              const char *nonce)
{
    unsigned char hash[SHA256_BYTES];
    struct strbuf text = {0};
    INVARIANT(token != 0);
    strbuf_addf(&text, "%llu %s", (unsigned long long)token, nonce);
    sha256_keyed(secret->bytes, strbuf_text(&text), text.len, hash);
    strbuf_release(&text);
    int len = snprintf(out, KEY_BYTES, "%llu-", (unsigned long long)token);
    INVARIANT(len > 0 && len + HEX_DIGITS < KEY_BYTES);
    for (int ix = 0; ix < HEX_DIGITS / 2; ix++) {
        (void)snprintf(out + len + (ptrdiff_t)2 * ix, 3, "%02x", hash[ix]);
    }
}

uint64_t key_token(const char *key)
{
    char *end;
    size_t digits = strspn(key, "0123456789");
    errno = 0;
    unsigned long long token = strtoull(key, &end, 10);
    INVARIANT(digits == 0 || end == key + digits);
    bool good = digits > 0 && errno == 0 && *end == '-' &&
                strlen(end + 1) == HEX_DIGITS;
    return good ? token : 0;
}

bool key_is(const char *key,
            const struct key_secret *secret,
            uint64_t token,
            const char *nonce)
{
    char made[KEY_BYTES];
    key_make(made, secret, token, nonce);
    size_t len = strlen(made);
    if (strlen(key) != len) {
        return false;
    }
    unsigned differs = 0;
    for (size_t ix = 0; ix < len; ix++) {
        differs |= (unsigned char)(made[ix] ^ key[ix]);
    }
    return differs == 0;
}
