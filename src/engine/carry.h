/* SPDX-License-Identifier: MIT */
/*
 * carry: what an attempt leaves for the next one of its task, beside feedback.
 *
 * Kept as a JSON object in the task's row. Members, each optional:
 *
 *   after     how the attempt before ended: "done", "failed", "refused",
 *             "changes" (sent back), "blocked", "answer" (blocked, and an
 *             operator has answered), "checkpoint", "stopped"
 *   lacks     of "blocked": what it needs, a word of exec/outcome.h; absent
 *             in rows of earlier versions
 *   reason    its reason, in words
 *   question  what it asked, and
 *   answer    the operator's answer
 *   resume    text that the session gave for the next one, such as the id of
 *             its conversation
 *
 * `resume` does not outlive an attempt whose work was thrown away: the
 * conversation would believe in files that are gone.
 */
#ifndef ENGINE_CARRY_H
#define ENGINE_CARRY_H

#include "core/sched.h"
#include "exec/attempt_result.h"
#include "exec/verdict.h"

/* Parsed; strings are borrowed from `json`, NULL: none. */
struct carry {
    void *json;
    const char *after;
    const char *reason;
    const char *question;
    const char *answer;
    const char *resume;
};

/* Read it; NULL or nonsense is an empty one. Release with carry_release(). */
struct carry carry_read(const char *text);
void carry_release(struct carry *carry);

/*
 * Each takes the text of before (may be NULL), which it replaces: an attempt
 * ended like this; a later stage sends the work back; an operator answers the
 * question that the reason has.
 */
void carry_end(char **text,
               const struct verdict *verdict,
               enum sched_outcome outcome,
               const char *reason,
               const struct attempt_result *result);
void carry_send_back(char **text);
void carry_answer(char **text, const char *answer);

/* What a task that is parked lacks, by its carry and its reason. */
enum outcome_lack carry_lack(const char *text, const char *reason);

#endif /* ENGINE_CARRY_H */
