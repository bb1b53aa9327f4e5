/* SPDX-License-Identifier: MIT */
/*
 * server: the Model Context Protocol on standard input and output.
 *
 * One JSON object per line, nothing else. It speaks two revisions at once:
 *
 *   2025-11-25 and before   `initialize` opens a session, which fixes the
 *                           revision
 *   2026-07-28              each request carries its revision in `_meta`, and
 *                           is answered on its own; `server/discover`
 *                           describes the server
 *
 * A request is answered before the next one is read, so nothing is ever in
 * progress that could be cancelled.
 */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include "mcp/tool.h"

/* A resource. */
struct server_resource {
    const char *uri; /* with "{id}" in it: a template */
    const char *name;
    const char *text; /* for agents */
    /* Append its content; `id` is the part of a template. */
    enum err (*read)(const char *id, struct strbuf *out, struct diag *diag);
};

/* What a server offers. All of it is borrowed. */
struct server {
    const char *name;
    const char *instructions;
    const struct tool *tools;
    uint32_t tool_count;
    const struct server_resource *resources;
    uint32_t resource_count;
};

/* Longest request, in bytes. */
enum { SERVER_LINE_BYTES_MAX = 4 << 20 };

/* Answer one line, without its newline; append nothing if no answer is due,
 * else a line. */
void server_answer(const struct server *server,
                   const char *line,
                   size_t len,
                   struct strbuf *out);

/* Serve until standard input ends. ERR_IO: reading or writing failed. */
MUST_USE enum err server_run(const struct server *server, struct diag *diag);

#endif /* MCP_SERVER_H */
