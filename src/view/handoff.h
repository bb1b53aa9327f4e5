/* SPDX-License-Identifier: MIT */
/*
 * handoff: what a run hands to people, for each repository: a branch, and a
 * summary in Markdown that can be the body of a pull request.
 */
#ifndef VIEW_HANDOFF_H
#define VIEW_HANDOFF_H

#include "base/strbuf.h"
#include "engine/engine.h"
#include "store/place.h"

/* What became of one repository. Texts belong to it. Starts as {0}. */
struct handoff_note {
    const char *repo;       /* borrowed from the plan */
    struct strbuf markdown; /* the summary */
    struct strbuf file;     /* where it was written */
    struct strbuf branch;
    char commit[65];      /* of the agent branch; "": there is none */
    struct strbuf remote; /* it was pushed there; empty: it was not */
    struct strbuf trouble;
    uint32_t merged; /* groups */
    uint32_t groups;
};

/*
 * Summarise every repository of a run: write STORE/handoff/RUN/REPO.md, and
 * push where the plan says so and `push` is set. Trouble with one repository
 * is in its note and does not keep the others. The caller releases the notes
 * and frees the array.
 */
struct handoff_note *handoff_make(const struct store_place *place,
                                  const struct engine *engine,
                                  uint32_t run,
                                  bool push,
                                  uint32_t *count_out);
/* Append what people want to know at the end of a run, a line or two for each
 * repository; or one line of JSON for each. */
void handoff_add_lines(struct strbuf *out,
                       const struct handoff_note *notes,
                       uint32_t count);
void handoff_add_json(struct strbuf *out, const struct handoff_note *note);

/* Whether there was trouble with any of them. */
bool handoff_is_troubled(const struct handoff_note *notes, uint32_t count);

void handoff_release(struct handoff_note *notes, uint32_t count);

#endif /* VIEW_HANDOFF_H */
