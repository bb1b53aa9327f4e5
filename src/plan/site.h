/* SPDX-License-Identifier: MIT */
/*
 * site: the settings of a store for all its runs, from the file settings.yaml
 * in the store's directory:
 *
 *     limits: {sessions: 4, claude: 2}
 *
 * `sessions` limits the sessions of all runs together, another name those of
 * the provider of that name.
 */
#ifndef PLAN_SITE_H
#define PLAN_SITE_H

#include "plan/plan.h"

/* Name of the file in the store's directory, its largest size, and the most
 * limits in it. */
#define SITE_FILE "settings.yaml"
enum { SITE_BYTES_MAX = 1 << 20, SITE_LIMITS_MAX = 1000 };

/* A limit of the store. */
struct site_limit {
    char *name;
    int64_t max; /* or PLAN_UNLIMITED */
};

/* Starts as {0}; release with site_release(). */
struct site {
    struct site_limit *limits; /* in the order of the file */
    uint32_t limit_count;
};

/* Parse the text of the file. Return false and add the errors if it is invalid;
 * *out is then empty. */
MUST_USE bool site_read(struct site *out,
                        const char *text,
                        size_t len,
                        struct plan_errors *errors);

/* Free the memory; the settings are then empty. */
void site_release(struct site *site);

/* Parse a maximum as in the file or in a request: a number from 0 to 1000000,
 * or "none"; a percentage from 1% to 100%. */
MUST_USE bool site_parse_max(const char *text, int64_t *out);
MUST_USE bool site_parse_percent(const char *text, uint32_t *out);

#endif /* PLAN_SITE_H */
