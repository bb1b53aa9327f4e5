/* SPDX-License-Identifier: MIT */
/* login: shows the one-time link of a server. */
#ifndef CLI_LOGIN_H
#define CLI_LOGIN_H

#include "base/strbuf.h"

#include <stdio.h>

/* What precedes a link on its line. */
#define LOGIN_PREFIX "log in within a minute: "

/*
 * Append a QR code of a link, if `file` is a terminal that can show it and
 * another device could open the link: a phone has no use for 127.0.0.1.
 */
void login_add_code(struct strbuf *out, const char *link, FILE *file);

#endif /* CLI_LOGIN_H */
