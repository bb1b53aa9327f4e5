/* SPDX-License-Identifier: MIT */
/*
 * template: prompts of a plan, with {{name}} in them.
 *
 * `\{{` stands for two braces. Values are inserted as they are: a value that
 * contains braces is not expanded again.
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
    TEMPLATE_BODY,     /* text of the issue */
    TEMPLATE_BRANCH,   /* of the issue */
    TEMPLATE_DIFF,     /* the command that shows the issue's changes */
    TEMPLATE_FEEDBACK, /* what a gate, review or merge asked for */
    TEMPLATE_ID,       /* of the issue */
    TEMPLATE_ISSUE,    /* id, title and text */
    TEMPLATE_START,    /* commit at which the issue began */
    TEMPLATE_TITLE,
    TEMPLATE_WORKTREE,
    TEMPLATE_COUNT,
};

/* All of them, for messages: "answer, batch, ...". */
extern const char template_names[];

/* True, or the text has an unknown name, which is copied into `bad`. */
bool template_check(const char *text, char *bad, size_t bad_bytes);

/*
 * Append the text with its names replaced by values[name] (NULL: nothing).
 * `used`, an array of TEMPLATE_COUNT, says afterwards which names occurred. An
 * unknown name stays as it is.
 */
void template_expand(struct strbuf *out,
                     const char *text,
                     const char *const *values,
                     bool *used);

#endif /* ADAPTER_TEMPLATE_H */
