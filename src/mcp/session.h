/* SPDX-License-Identifier: MIT */
/*
 * session: what a session can ask of sluice and tell it, the same for `sluice
 * session` and for the tools of `sluice mcp`.
 *
 * Each call takes a JSON object of arguments, which it checks, and appends a
 * text. Each can be repeated without harm, and none waits for anything to
 * happen.
 */
#ifndef MCP_SESSION_H
#define MCP_SESSION_H

#include "mcp/tool.h"

/* The calls, as tools: task, plan, why, add, progress, finish, ask. */
extern const struct tool session_tools[];
extern const uint32_t session_tool_count;

/* The end of the log of a task's last attempt. */
MUST_USE enum err
session_log(const char *task, struct strbuf *out, struct diag *diag);

#endif /* MCP_SESSION_H */
