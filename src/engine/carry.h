/* SPDX-License-Identifier: MIT */
/*
 * carry: data that an attempt leaves for the task's next attempt, besides
 * feedback.
 *
 * Stored as a JSON object in the task's row. Members, each optional:
 *
 *   after     outcome of the last attempt: "done", "failed", "refused",
 *             "changes" (sent back), "blocked", "answer" (blocked, and an
 *             operator has answered), "checkpoint", "stopped"
 *   lacks     of "blocked": its need, a word of exec/outcome.h; absent in
 *             rows of earlier versions
 *   reason    its reason, in words
 *   question  its question, and
 *   answer    the operator's answer
 *   resume    string that the session gave for the next session, such as
 *             the id of its conversation
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
};

/* Parse it; NULL or invalid JSON: empty. Release with carry_release(). */
struct carry carry_read(const char *text);
void carry_release(struct carry *carry);

/*
 * Each function replaces *text, which may be NULL: an attempt had this outcome;
 * a later stage sends the work back; an operator answers the question in the
 * reason.
 */
void carry_end(char **text,
               const struct verdict *verdict,
               enum sched_outcome outcome,
               const char *reason,
               const struct attempt_result *result);
void carry_send_back(char **text);
void carry_answer(char **text, const char *answer);

/* What a parked task lacks, by its carry and its reason. */
enum outcome_lack carry_lack(const char *text, const char *reason);

#endif /* ENGINE_CARRY_H */
