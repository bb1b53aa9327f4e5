/* SPDX-License-Identifier: MIT */
/*
 * gate: who may ask for what.
 *
 * On a unix socket the permissions of the socket decide, and everything is
 * allowed. On a TCP port each request, reads and streams included, needs one of
 * two tokens: that of an operator, or that of a viewer, who may only look. A
 * token comes as `Authorization: Bearer`, or as a cookie that a one-time link
 * has set.
 *
 * The code of a link has its role and its time in it, and an HMAC of both with
 * a key that each server makes for itself. So who can read the key can make
 * links without asking the server, and a link is of no use at another server,
 * or after a restart. The server keeps the codes that were used until they are
 * too old.
 *
 * Against pages of other sites in the user's browser: the Host must be one of
 * ours (else DNS rebinding could reach us), Sec-Fetch-Site must not be foreign,
 * and an order with a cookie needs an Origin of ours. A missing Origin is no
 * pass: only a token in the header, which no page can send, makes up for it.
 *
 * Pure, except for loading tokens.
 */
#ifndef HTTP_GATE_H
#define HTTP_GATE_H

#include "base/diag.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stdint.h>

enum gate_role { GATE_NOBODY, GATE_VIEWER, GATE_OPERATOR };

enum {
    GATE_TOKEN_BYTES = 65, /* 256 bits in hexadecimal digits */
    GATE_HOSTS_MAX = 16,
    GATE_LINK_BYTES = 57, /* 12 bytes and 128 bits of HMAC, in digits */
    GATE_USED_MAX = 64,   /* logins within the time of a link */
};

/* How long a one-time link is valid. */
#define GATE_LINK_NS (INT64_C(60) * 1000000000)

/* What links are made with. A plain value. */
struct gate_key {
    bool made; /* else no link is valid */
    unsigned char bytes[SHA256_BYTES];
};

struct gate {
    bool open;                         /* a unix socket */
    char tokens[3][GATE_TOKEN_BYTES];  /* by role */
    char cookies[3][GATE_TOKEN_BYTES]; /* derived from them, by role */
    const char *hosts[GATE_HOSTS_MAX]; /* "localhost:8900"; borrowed */
    uint32_t host_count;
    struct gate_key key; /* of links */
    struct gate_used {
        char code[GATE_LINK_BYTES];
        int64_t made_ms;   /* as in the code */
    } used[GATE_USED_MAX]; /* links; too old ones are replaced */
};

/* The facts of a request; NULL: the header is absent. */
struct gate_facts {
    bool changes; /* it is an order */
    const char *host;
    const char *origin;
    const char *site; /* Sec-Fetch-Site */
    const char *authorization;
    const char *cookie;
};

/* Read the tokens in a directory, `http-token` and `http-token-view`; create
 * those that do not exist. */
MUST_USE enum err
gate_load(struct gate *gate, const char *home, struct diag *diag);

/* Return 0 if a request may go on, else its HTTP status; *role_out is who asks,
 * *text_out why not. */
int gate_check(const struct gate *gate,
               const struct gate_facts *facts,
               enum gate_role *role_out,
               const char **text_out);

/* Make a key for links. */
MUST_USE enum err gate_make_key(struct gate_key *key, struct diag *diag);

/* Make a one-time link for a role: its path is "/login?code=" and the code.
 * Times are those of clock_boot_ns(). */
MUST_USE enum err gate_make_link(char out[GATE_LINK_BYTES],
                                 const struct gate_key *key,
                                 enum gate_role role,
                                 int64_t now_ns,
                                 struct diag *diag);

/* Use a link up: return its role, or GATE_NOBODY if it is none, was used, or is
 * too old. */
enum gate_role
gate_use_link(struct gate *gate, const char *code, int64_t now_ns);

/* Name of the cookie. */
#define GATE_COOKIE "sluice"

#endif /* HTTP_GATE_H */
