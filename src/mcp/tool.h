/* SPDX-License-Identifier: MIT */
/*
 * tool: a call with checked arguments, and its description for agents.
 *
 * A table of parameters makes both: the JSON schema that an agent reads, and
 * the check of what it sends.
 */
#ifndef MCP_TOOL_H
#define MCP_TOOL_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum tool_type { TOOL_STRING, TOOL_INTEGER, TOOL_OBJECT, TOOL_LIST };

struct tool_param {
    const char *name;
    enum tool_type type;
    bool required;
    const char *text;  /* for agents; NULL: the name says it */
    const char *words; /* allowed strings, "a|b|c"; NULL: any */
    const char *items; /* of TOOL_LIST and TOOL_OBJECT: further members of the
                          schema, as JSON; NULL: none */
};

struct tool {
    const char *name;
    const char *text; /* for agents */
    const struct tool_param *params;
    uint32_t param_count;
    bool reads; /* it changes nothing */
    /* Carry it out with checked arguments, and append the answer. */
    enum err (*run)(const struct tool *tool,
                    const json_t *args,
                    struct strbuf *out,
                    struct diag *diag);
};

/* Return the description of a tool, for tools/list. The caller frees it. */
json_t *tool_describe(const struct tool *tool);

/* Check the arguments, and carry it out. ERR_INVALID: an argument is wrong.
 * `args` NULL: none. */
MUST_USE enum err tool_call(const struct tool *tool,
                            json_t *args,
                            struct strbuf *out,
                            struct diag *diag);

/* Return a string argument, or NULL; one with a NUL in it is none. */
const char *tool_text(const json_t *args, const char *name);

#endif /* MCP_TOOL_H */
