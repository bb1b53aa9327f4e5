/* SPDX-License-Identifier: MIT */
/*
 * template: prompts of a plan that contain {{name}}.
 *
 * `\{{` stands for two braces. Values are inserted unchanged: braces in a value
 * are not expanded again.
 */
#ifndef ADAPTER_TEMPLATE_H
#define ADAPTER_TEMPLATE_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Names that a prompt may use. */
enum template_name {
    TEMPLATE_ANSWER,   /* question and answer */
    TEMPLATE_BATCH,    /* all issues of a batch */
    TEMPLATE_BODY,     /* body of the issue */
    TEMPLATE_BRANCH,   /* of the issue */
    TEMPLATE_DIFF,     /* the command that shows the issue's changes */
    TEMPLATE_FEEDBACK, /* request of a gate, review or merge */
    TEMPLATE_ID,       /* of the issue */
    TEMPLATE_ISSUE,    /* id, title and body */
    TEMPLATE_OUTPUTS,  /* results of the tasks that it needs */
    TEMPLATE_START,    /* commit at which the issue began */
    TEMPLATE_TITLE,
    TEMPLATE_WORKTREE,
    TEMPLATE_COUNT,
};

/* All names, for messages: "answer, batch, ...". */
extern const char template_names[];

/* Return true, or false with the first unknown name in `bad`. */
bool template_check(const char *text, char *bad, size_t bad_bytes);

/*
 * Append the text with its names replaced by values[name] (NULL: nothing). Set
 * `used`, an array of TEMPLATE_COUNT, for the names that occurred. An unknown
 * name stays unchanged.
 */
void template_expand(struct strbuf *out,
                     const char *text,
                     const char *const *values,
                     bool *used);

#endif /* ADAPTER_TEMPLATE_H */
