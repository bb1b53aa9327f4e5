/* SPDX-License-Identifier: MIT */
/*
 * brief: the scheduler's input to sluice-agent for one session.
 *
 * The scheduler writes it as JSON into the file `brief` of the attempt
 * directory (engine/assign_agent.c), and sluice-agent reads it once. Members:
 *
 *   agent     {program, model, permissions, tools, retries, mcp, args, env,
 *             price}
 *   kind      "work", "review" or "batch": the shape of the answer
 *   writes    whether the session must leave a commit
 *   cause     why it runs: "first", "changes", "answer", "checkpoint",
 *             "refused", "failed"
 *   reason    reason of the previous attempt, or null
 *   feedback, question, answer    or null
 *   resume    the conversation to continue, or null
 *   messages  [TEXT], of operators to sessions of this task, and
 *   heard     how many of them that conversation has in it
 *   outputs   {TASK: {NAME: TEXT}} of the tasks that it needs, or null
 *   usd_left  dollars that the session may spend, or null
 *   prompt, prompt_file           role text of the plan, or null
 *   tasks     [{task, issue, title, body, body_file}], the first leads
 *
 * Both programs have the same version, so the format may change with them; a
 * session that runs across an upgrade has already read its brief.
 */
#ifndef AGENT_BRIEF_H
#define AGENT_BRIEF_H

#include "adapter/adapter.h"
#include "base/diag.h"

enum brief_kind { BRIEF_WORK, BRIEF_REVIEW, BRIEF_BATCH };

/* One task of the session. Strings are borrowed from the brief; NULL: none. */
struct brief_task {
    const char *task;
    const char *issue;
    const char *title;
    const char *body;
    const char *body_file;
};

/* Dollars per million tokens. */
struct brief_price {
    bool known;
    double input;
    double cached;
    double output;
};

/* Strings are borrowed from `root`; NULL: none. */
struct brief {
    json_t *root;
    const struct adapter *adapter;
    struct adapter_call call; /* without values known only at the start */
    const char **env;         /* NAME=value */
    uint32_t env_count;
    struct brief_price price;
    bool mcp; /* the program gets sluice's MCP server */
    enum brief_kind kind;
    bool writes;
    const char *cause;
    const char *reason;
    const char *feedback;
    const char *question;
    const char *answer;
    const char *prompt;
    const char *prompt_file;
    const char **messages;
    uint32_t message_count;
    uint32_t heard;  /* messages that the conversation has in it */
    json_t *outputs; /* an object, or NULL */
    struct brief_task *tasks;
    uint32_t task_count;
};

/* Read `DIR/brief`. ERR_INVALID: it is not a brief; ERR_IO. */
MUST_USE enum err
brief_read(struct brief *out, const char *dir, struct diag *diag);
void brief_release(struct brief *brief);

/* Return the size of the file `messages` that has just these messages. */
size_t brief_messages_bytes(const struct brief *brief);

/* Read a file of at most 4 MiB into an empty *out, which is undefined after an
 * error. */
MUST_USE enum err
brief_read_file(struct strbuf *out, const char *path, struct diag *diag);

#endif /* AGENT_BRIEF_H */
