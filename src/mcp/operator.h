/* SPDX-License-Identifier: MIT */
/*
 * operator: the tools of `sluice mcp --operator`, for the assistant of a
 * person.
 *
 * Each runs a command of sluice as a process, so that it does and prints just
 * what the command does.
 */
#ifndef MCP_OPERATOR_H
#define MCP_OPERATOR_H

#include "mcp/tool.h"

extern const struct tool operator_tools[];
extern const uint32_t operator_tool_count;

/* Run a command of sluice: words with a final NULL, without the program. Append
 * its output. ERR_CONFLICT: its exit code is not 0, and *diag has its message;
 * ERR_TIMEOUT, ERR_IO. */
MUST_USE enum err operator_run(const char *const *words,
                               const char *input,
                               struct strbuf *out,
                               struct diag *diag);

#endif /* MCP_OPERATOR_H */
