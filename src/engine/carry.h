/* SPDX-License-Identifier: MIT */
/*
 * carry: data that an attempt leaves for the task's next attempt, besides
 * feedback.
 *
 * Stored as a JSON object in the task's row. Members, each optional:
 *
 *   after     outcome of the last attempt: "done", "failed", "refused",
 *             "changes" (sent back), "blocked", "answer" (blocked, and an
 *             operator has answered), "checkpoint", "stopped", "later";
 *             "first": no attempt has ended
 *   lacks     of "blocked": its need, a word of exec/outcome.h; absent in
 *             rows of earlier versions
 *   reason    its reason, in words
 *   question  its question, and
 *   answer    the operator's answer
 *   resume    string that the session gave for the next session, such as
 *             the id of its conversation
 *   messages  of operators to running sessions, until the task is done:
 *             [{"token": N, "text": TEXT}], each with the token of the
 *             attempt that ran
 *   heard     how many of them the conversation in `resume` has in it
 *   since     token of the last attempt before an operator sent the work back;
 *             it stays, so that no later round of rework is taken for this one
 *
 * `resume` is removed when the work of its attempt was discarded: the
 * conversation would refer to files that no longer exist.
 */
#ifndef ENGINE_CARRY_H
#define ENGINE_CARRY_H

#include "core/sched.h"
#include "exec/attempt_result.h"
#include "exec/verdict.h"

/* Parsed form; strings are borrowed from `json`, and NULL if absent. */
struct carry {
    void *json;
    const char *after;
    const char *reason;
    const char *question;
    const char *answer;
    const char *resume;
    uint32_t message_count; /* see carry_message() */
    uint32_t heard;
    uint64_t since; /* 0: never */
};

/* Limits of the messages of one task. */
enum {
    CARRY_MESSAGES_MAX = 100,
    CARRY_MESSAGES_BYTES_MAX = 64 << 10,
};

/* Parse it; NULL or invalid JSON: empty. Release with carry_release(). */
struct carry carry_read(const char *text);
void carry_release(struct carry *carry);

/* Return a message, and in *token_out, if not NULL, the token of the attempt
 * that ran when it came. */
const char *
carry_message(const struct carry *carry, uint32_t ix, uint64_t *token_out);

/* The end of an attempt. */
struct carry_ended {
    uint64_t token;
    const struct verdict *verdict;
    enum sched_outcome outcome;
    const char *reason; /* or NULL */
    const struct attempt_result *result;
};

/*
 * Each function replaces *text, which may be NULL: an attempt has ended; a
 * later stage sends the work back; an operator does, after the attempt `token`;
 * an operator answers the question in the reason; an operator has a message for
 * the attempt that runs. ERR_LIMIT: there are too many messages, or they are
 * too long.
 */
void carry_end(char **text, const struct carry_ended *ended);
void carry_send_back(char **text);
void carry_send_back_since(char **text, uint64_t token);
void carry_answer(char **text, const char *answer);
MUST_USE enum err carry_tell(char **text, uint64_t token, const char *message);

/* What a parked task lacks, by its carry and its reason. */
enum outcome_lack carry_lack(const char *text, const char *reason);

#endif /* ENGINE_CARRY_H */
