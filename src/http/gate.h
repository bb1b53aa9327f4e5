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
    GATE_LINK_BYTES = 33,
};

/* How long a one-time link is valid. */
#define GATE_LINK_NS (INT64_C(60) * 1000000000)

struct gate {
    bool open;                         /* a unix socket */
    char tokens[3][GATE_TOKEN_BYTES];  /* by role */
    char cookies[3][GATE_TOKEN_BYTES]; /* derived from them, by role */
    const char *hosts[GATE_HOSTS_MAX]; /* "localhost:8900"; borrowed */
    uint32_t host_count;
    char link[GATE_LINK_BYTES]; /* one-time; "": none */
    int64_t link_ns;            /* when it was made */
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

/* Make a one-time link: the path of it is "/login?code=" and gate->link. */
MUST_USE enum err
gate_make_link(struct gate *gate, int64_t now_ns, struct diag *diag);

/* Use the link: true if this is its code. It is then used up. */
bool gate_use_link(struct gate *gate, const char *code, int64_t now_ns);

/* Name of the cookie. */
#define GATE_COOKIE "sluice"

#endif /* HTTP_GATE_H */
