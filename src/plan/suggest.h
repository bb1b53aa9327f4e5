/* SPDX-License-Identifier: MIT */
/*
 * suggest: suggestions for misspelt names.
 *
 *     struct suggest guess;
 *     suggest_init(&guess, text, len, &budget);
 *     suggest_offer(&guess, name);     for each name, until it returns false
 *     ... suggest_hint(&guess) ...     ` (did you mean "name"?)`, or nothing
 *
 * The budget is the number of names that all suggestions of one reading may
 * examine: it bounds the cost of a file with many errors and many names.
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
    uint32_t best_ix; /* number of names offered before it */
    uint32_t offered;
    uint32_t distance; /* distance of the best; above the maximum while none */
    uint32_t *budget;
    char hint[256];
};

/* Start a search for names similar to the `len` bytes of `wanted`. */
void suggest_init(struct suggest *suggest,
                  const char *wanted,
                  size_t len,
                  uint32_t *budget);

/*
 * Offer a name, borrowed. Of equally similar names the first wins. Return false
 * when the budget is exhausted: further offers are useless.
 */
bool suggest_offer(struct suggest *suggest, const char *name);

/* Return the hint to append to a message: with a leading space, or empty. */
const char *suggest_hint(struct suggest *suggest);

/*
 * Return the number of edits (a letter added, removed, replaced, or two
 * neighbours swapped) between two strings of at most 64 bytes; `above` + 1 if
 * it is more than `above`, or if a string is longer.
 */
uint32_t suggest_distance(const char *a,
                          size_t a_len,
                          const char *b,
                          size_t b_len,
                          uint32_t above);

#endif /* PLAN_SUGGEST_H */
