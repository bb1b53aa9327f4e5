/* SPDX-License-Identifier: MIT */
/*
 * mcp_fixture: for tests of the MCP server: one with tools and resources of its
 * own. Requests are written with ' for ", so that they stay readable. Failures
 * fail the current cmocka test.
 */
#ifndef TESTS_UNIT_MCP_FIXTURE_H
#define TESTS_UNIT_MCP_FIXTURE_H

#include "mcp/server.h"

#define MCP_META(name) "io.modelcontextprotocol/" name

/* What makes a request one of the newest revision: a member of `params`. */
#define MCP_CAPABLE "'" MCP_META("clientCapabilities") "':{}"
#define MCP_MODERN                                                             \
    "'_meta':{'" MCP_META("protocolVersion") "':'2026-07-28'," MCP_CAPABLE "}"

/* "echo" repeats its arguments: text, which is required, word, one of one, two
 * and three, count, list and object. "say" has no arguments. */
extern const struct tool mcp_tools[2];

/* The resource test://plain, and the templates test://item/{id}/log and
 * test://last/{id}, whose content is the id; "gone" fails. */
extern const struct server mcp_server;

extern uint32_t mcp_calls;    /* of its tools */
extern const char *mcp_said;  /* by "say" ... */
extern size_t mcp_said_len;   /* ... with this length */
extern enum err mcp_said_err; /* ... and this error */

/* Append a text with " for '. */
void mcp_add_quoted(struct strbuf *out, const char *text);

/* Require that a text is one line with an answer of JSON-RPC; return it. */
json_t *mcp_check(const char *text, size_t len);

/* Return the answer to these bytes; NULL: there is none. */
json_t *mcp_send(const char *bytes, size_t len);

/* The same for a text with ' for ". */
json_t *mcp_line(const char *line);

/* Return the answer to a request with these members of `params`. */
json_t *mcp_ask(const char *method, const char *params);
json_t *mcp_ask_server(const struct server *server,
                       const char *method,
                       const char *params);

/* Return a member of a member ...: "result tools 0 name"; NULL: none. */
const json_t *mcp_at(const json_t *json, const char *path);

/* Return a string that must be there. */
const char *mcp_text(const json_t *json, const char *path);

/* Return the code of an error; 0: it is none. */
int mcp_code(const json_t *answer);

/* Require an error, and release the answer. */
void mcp_expect_error(json_t *answer, int code);

#endif /* TESTS_UNIT_MCP_FIXTURE_H */
