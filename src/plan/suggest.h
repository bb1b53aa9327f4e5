/* SPDX-License-Identifier: MIT */
/*
 * suggest: what a misspelt name was probably meant to be.
 *
 *     struct suggest guess;
 *     suggest_init(&guess, text, len, &budget);
 *     suggest_offer(&guess, name);     for each name, until it says false
 *     ... suggest_hint(&guess) ...     ` (did you mean "name"?)`, or nothing
 *
 * The budget is what all suggestions of one reading may cost together, in
 * names offered: a file with many errors and many names stays cheap to refuse.
 */
#ifndef PLAN_SUGGEST_H
#define PLAN_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SUGGEST_BUDGET = 2000000 };

/* A plain value. */
struct suggest {
    const char *wanted;
    size_t len;
    const char *best; /* nearest name so far, or NULL; borrowed */
    uint32_t best_ix; /* how many were offered before it */
    uint32_t offered;
    uint32_t distance; /* of the best; above what is allowed while none */
    uint32_t *budget;
    char hint[256];
};

/* Start looking for names near to the `len` bytes of `wanted`. */
void suggest_init(struct suggest *suggest,
                  const char *wanted,
                  size_t len,
                  uint32_t *budget);

/*
 * Offer a name, borrowed. Of equally near ones the first is taken. False when
 * the budget is used up: there is no point in offering more.
 */
bool suggest_offer(struct suggest *suggest, const char *name);

/* The hint for the end of a message: with a space in front, or empty. */
const char *suggest_hint(struct suggest *suggest);

/*
 * Number of changes (a letter added, left out, replaced, or two neighbours
 * swapped) between two texts of at most 64 bytes; `above` + 1 if more than
 * `above`, or if a text is longer.
 */
uint32_t suggest_distance(const char *a,
                          size_t a_len,
                          const char *b,
                          size_t b_len,
                          uint32_t above);

#endif /* PLAN_SUGGEST_H */
