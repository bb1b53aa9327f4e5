/* SPDX-License-Identifier: MIT */
#include "http/gate.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/strbuf.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const files[] = {
    [GATE_VIEWER] = "http-token-view",
    [GATE_OPERATOR] = "http-token",
};

/* --- secrets ------------------------------------------------------------ */

static void add_hex(char *out, const unsigned char *bytes, size_t len)
{
    for (size_t ix = 0; ix < len; ix++) {
        (void)snprintf(out + 2 * ix, 3, "%02x", bytes[ix]);
    }
}

static bool fill_random(unsigned char *bytes, size_t len)
{
    return getrandom(bytes, len, 0) == (ssize_t)len;
}

/* Compare in a time that does not depend on where two strings differ. */
static bool is_same(const char *a, const char *b)
{
    unsigned char left[SHA256_BYTES];
    unsigned char right[SHA256_BYTES];
    unsigned differs = 0;
    sha256(a, strlen(a), left);
    sha256(b, strlen(b), right);
    for (size_t ix = 0; ix < SHA256_BYTES; ix++) {
        differs |= (unsigned)(left[ix] ^ right[ix]);
    }
    return differs == 0;
}

static bool is_token(const char *text)
{
    return strlen(text) == GATE_TOKEN_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == GATE_TOKEN_BYTES - 1;
}

/* Read a token; false: the file does not exist. Others must not read it. */
static enum err
read_token(char out[GATE_TOKEN_BYTES], int dir, const char *name, bool *found)
{
    char text[GATE_TOKEN_BYTES + 1] = {0};
    struct stat stat;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *found = fd >= 0 || errno != ENOENT;
    if (fd < 0) {
        return *found ? ERR_IO : ERR_OK;
    }
    ssize_t len = read(fd, text, sizeof(text) - 1);
    bool safe = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
                (stat.st_mode & 077) == 0;
    (void)close(fd);
    if (len > 0 && text[len - 1] == '\n') {
        text[len - 1] = '\0';
    }
    if (len <= 0 || !safe || !is_token(text)) {
        return ERR_INVALID;
    }
    memcpy(out, text, GATE_TOKEN_BYTES);
    return ERR_OK;
}

static bool make_token(char out[GATE_TOKEN_BYTES], int dir, const char *name)
{
    unsigned char bytes[(GATE_TOKEN_BYTES - 1) / 2];
    if (!fill_random(bytes, sizeof(bytes))) {
        return false;
    }
    add_hex(out, bytes, sizeof(bytes));
    int fd = openat(dir,
                    name,
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    bool written =
        fd >= 0 && write(fd, out, GATE_TOKEN_BYTES - 1) == GATE_TOKEN_BYTES - 1;
    if (fd >= 0 && close(fd) != 0) {
        written = false;
    }
    return written;
}

/* A cookie is no token: a page that learned it could not use it as one. It
 * stays the same while the token does, so that a page outlives the server. */
static void derive_cookie(struct gate *gate, enum gate_role role)
{
    unsigned char secret[SHA256_BYTES];
    unsigned char hash[SHA256_BYTES];
    sha256(gate->tokens[role], strlen(gate->tokens[role]), secret);
    sha256_keyed(secret, "cookie", strlen("cookie"), hash);
    add_hex(gate->cookies[role], hash, sizeof(hash));
}

enum err gate_load(struct gate *gate, const char *home, struct diag *diag)
{
    int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum err err = ERR_OK;
    if (dir < 0) {
        return diag_set(diag, ERR_IO, "%s: %s", home, strerror(errno));
    }
    for (int role = GATE_VIEWER; role <= GATE_OPERATOR && err == ERR_OK;
         role++) {
        bool found = false;
        err = read_token(gate->tokens[role], dir, files[role], &found);
        if (err == ERR_OK && !found &&
            !make_token(gate->tokens[role], dir, files[role])) {
            err = ERR_IO;
        }
        if (err == ERR_OK) {
            derive_cookie(gate, (enum gate_role)role);
        } else {
            (void)diag_set(diag,
                           err,
                           err == ERR_INVALID
                               ? "%s/%s is not a token with mode 0600: remove "
                                 "it to have another one made"
                               : "%s/%s cannot be read or written",
                           home,
                           files[role]);
        }
    }
    (void)close(dir);
    return err;
}

/* --- requests ----------------------------------------------------------- */

static bool is_host(const struct gate *gate, const char *host)
{
    for (uint32_t ix = 0; host != NULL && ix < gate->host_count; ix++) {
        if (strcasecmp(gate->hosts[ix], host) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether an Origin is the page's own: the scheme does not matter, because a
 * proxy may add TLS. */
static bool is_own_origin(const struct gate *gate, const char *origin)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t ix = 0; ix < ARRAY_COUNT(schemes); ix++) {
        size_t len = strlen(schemes[ix]);
        if (strncasecmp(origin, schemes[ix], len) == 0) {
            return is_host(gate, origin + len);
        }
    }
    return false;
}

/* Return who has this token or cookie. Both are always compared. */
static enum gate_role role_of(const char secrets[3][GATE_TOKEN_BYTES],
                              const char *given)
{
    bool viewer = is_same(secrets[GATE_VIEWER], given) && given[0] != '\0';
    bool operator_ = is_same(secrets[GATE_OPERATOR], given) && given[0] != '\0';
    return operator_ ? GATE_OPERATOR : viewer ? GATE_VIEWER : GATE_NOBODY;
}

/* Return the role of the cookie in a header. */
static enum gate_role role_of_cookies(const struct gate *gate, const char *list)
{
    static const char name[] = GATE_COOKIE "=";
    enum gate_role role = GATE_NOBODY;
    for (const char *at = list; at != NULL && *at != '\0';) {
        at += strspn(at, "; ");
        size_t len = strcspn(at, ";");
        if (strncmp(at, name, strlen(name)) == 0) {
            struct strbuf value = {0};
            strbuf_add(&value, at + strlen(name), len - strlen(name));
            enum gate_role found = role_of(gate->cookies, strbuf_text(&value));
            role = found > role ? found : role;
            strbuf_release(&value);
        }
        at += len;
    }
    return role;
}

static bool is_foreign(const char *site)
{
    return site != NULL && strcmp(site, "same-origin") != 0 &&
           strcmp(site, "none") != 0;
}

int gate_check(const struct gate *gate,
               const struct gate_facts *facts,
               enum gate_role *role_out,
               const char **text_out)
{
    static const char bearer[] = "Bearer ";
    *role_out = GATE_NOBODY;
    *text_out = "";
    if (gate->open) {
        *role_out = GATE_OPERATOR;
        return 0;
    }
    if (!is_host(gate, facts->host)) {
        *text_out = "unknown host: name it with --host";
        return 421;
    }
    if (is_foreign(facts->site) ||
        (facts->origin != NULL && !is_own_origin(gate, facts->origin))) {
        *text_out = "a page of another site may not ask";
        return 403;
    }
    bool has_token =
        facts->authorization != NULL &&
        strncasecmp(facts->authorization, bearer, strlen(bearer)) == 0;
    *role_out =
        has_token ? role_of(gate->tokens, facts->authorization + strlen(bearer))
                  : role_of_cookies(gate, facts->cookie);
    if (*role_out == GATE_NOBODY) {
        *text_out = "no valid token";
        return 401;
    }
    if (facts->changes && *role_out != GATE_OPERATOR) {
        *text_out = "this token may only look";
        return 403;
    }
    if (facts->changes && !has_token && facts->origin == NULL) {
        *text_out = "an order with a cookie needs an Origin";
        return 403;
    }
    return 0;
}

/* --- links -------------------------------------------------------------- */

/* A code: the role, the time in milliseconds since boot, random bytes that make
 * links of one moment differ, and the HMAC of all that. */
enum {
    TIME_AT = 1,
    SALT_AT = 7,
    FACTS_BYTES = 12,
    MAC_BYTES = 16,
};
static_assert(GATE_LINK_BYTES == 2 * (FACTS_BYTES + MAC_BYTES) + 1,
              "the digits of a code");

/* How long a link is valid. */
static const int64_t link_ms = GATE_LINK_NS / 1000000;

enum err gate_make_key(struct gate_key *key, struct diag *diag)
{
    key->made = fill_random(key->bytes, sizeof(key->bytes));
    return key->made
               ? ERR_OK
               : diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
}

/* Write the code with these facts. */
static void add_code(char out[GATE_LINK_BYTES],
                     const struct gate_key *key,
                     const unsigned char facts[FACTS_BYTES])
{
    unsigned char hash[SHA256_BYTES];
    sha256_keyed(key->bytes, facts, FACTS_BYTES, hash);
    add_hex(out, facts, FACTS_BYTES);
    add_hex(out + (size_t)2 * FACTS_BYTES, hash, MAC_BYTES);
}

enum err gate_make_link(char out[GATE_LINK_BYTES],
                        const struct gate_key *key,
                        enum gate_role role,
                        int64_t now_ns,
                        struct diag *diag)
{
    INVARIANT(key->made && role != GATE_NOBODY && now_ns >= 0);
    unsigned char facts[FACTS_BYTES] = {(unsigned char)role};
    uint64_t now_ms = (uint64_t)now_ns / 1000000;
    for (int ix = SALT_AT - 1; ix >= TIME_AT; ix--) {
        facts[ix] = (unsigned char)(now_ms & 0xff);
        now_ms >>= 8;
    }
    if (!fill_random(facts + SALT_AT, FACTS_BYTES - SALT_AT)) {
        return diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
    }
    add_code(out, key, facts);
    return ERR_OK;
}

/* Read the facts of a code that this key has made; false: it is none. */
static bool read_code(const struct gate_key *key,
                      const char *code,
                      unsigned char facts[FACTS_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    char right[GATE_LINK_BYTES];
    if (!key->made || strlen(code) != GATE_LINK_BYTES - 1 ||
        strspn(code, digits) != GATE_LINK_BYTES - 1) {
        return false;
    }
    for (size_t ix = 0; ix < FACTS_BYTES; ix++) {
        size_t high = (size_t)(strchr(digits, code[2 * ix]) - digits);
        size_t low = (size_t)(strchr(digits, code[2 * ix + 1]) - digits);
        facts[ix] = (unsigned char)(high << 4 | low);
    }
    add_code(right, key, facts);
    return is_same(right, code) &&
           (facts[0] == GATE_VIEWER || facts[0] == GATE_OPERATOR);
}

enum gate_role
gate_use_link(struct gate *gate, const char *code, int64_t now_ns)
{
    unsigned char facts[FACTS_BYTES];
    int64_t now_ms = now_ns / 1000000;
    int64_t made_ms = 0;
    struct gate_used *place = NULL;
    if (!read_code(&gate->key, code, facts)) {
        return GATE_NOBODY;
    }
    for (size_t ix = TIME_AT; ix < SALT_AT; ix++) {
        made_ms = made_ms << 8 | facts[ix];
    }
    if (made_ms > now_ms || now_ms - made_ms >= link_ms) {
        return GATE_NOBODY;
    }
    for (size_t ix = 0; ix < GATE_USED_MAX; ix++) {
        struct gate_used *used = &gate->used[ix];
        if (strcmp(used->code, code) == 0) {
            return GATE_NOBODY;
        }
        if (used->code[0] == '\0' || now_ms - used->made_ms >= link_ms) {
            place = used;
        }
    }
    if (place == NULL) {
        return GATE_NOBODY; /* it could not be remembered */
    }
    memcpy(place->code, code, GATE_LINK_BYTES);
    place->made_ms = made_ms;
    return (enum gate_role)facts[0];
}
