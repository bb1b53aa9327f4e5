/* SPDX-License-Identifier: MIT */
#include "http/gate.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/strbuf.h"

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
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
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

enum err gate_make_link(struct gate *gate, int64_t now_ns, struct diag *diag)
{
    unsigned char bytes[(GATE_LINK_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
    }
    add_hex(gate->link, bytes, sizeof(bytes));
    gate->link_ns = now_ns;
    return ERR_OK;
}

bool gate_use_link(struct gate *gate, const char *code, int64_t now_ns)
{
    bool valid = gate->link[0] != '\0' &&
                 now_ns - gate->link_ns < GATE_LINK_NS &&
                 is_same(gate->link, code);
    if (valid) {
        gate->link[0] = '\0';
    }
    return valid;
}
