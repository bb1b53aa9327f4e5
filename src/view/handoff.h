/* SPDX-License-Identifier: MIT */
/*
 * handoff: the result of a run for its users, per repository: a branch, and a
 * Markdown summary to use as the body of a pull request.
 */
#ifndef VIEW_HANDOFF_H
#define VIEW_HANDOFF_H

#include "base/strbuf.h"
#include "engine/engine.h"
#include "store/place.h"

/* Result of one repository; owns its strings. Starts as {0}. */
struct handoff_note {
    const char *repo;       /* borrowed from the plan */
    struct strbuf markdown; /* the summary */
    struct strbuf file;     /* path of the summary */
    struct strbuf branch;
    char commit[65];      /* tip of the agent branch; "": no branch */
    struct strbuf remote; /* target of the push; empty: not pushed */
    struct strbuf trouble;
    uint32_t merged; /* groups */
    uint32_t groups;
};

/*
 * Summarise every repository of a run: write STORE/handoff/RUN/REPO.md, and
 * push if both the plan and `push` request it. A failure is recorded in the
 * note of its repository and does not affect the others. The caller releases
 * the notes and frees the array.
 */
struct handoff_note *handoff_make(const struct store_place *place,
                                  const struct engine *engine,
                                  uint32_t run,
                                  bool push,
                                  uint32_t *count_out);
/* Append the summary for the user, one or two lines for each repository; or one
 * line of JSON for each. */
void handoff_add_lines(struct strbuf *out,
                       const struct handoff_note *notes,
                       uint32_t count);
void handoff_add_json(struct strbuf *out, const struct handoff_note *note);

/* Whether any note has a failure. */
bool handoff_is_troubled(const struct handoff_note *notes, uint32_t count);

void handoff_release(struct handoff_note *notes, uint32_t count);

#endif /* VIEW_HANDOFF_H */
