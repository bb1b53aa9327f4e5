/* SPDX-License-Identifier: MIT */
/*
 * order: give an order to the scheduler, and say how it went.
 */
#ifndef CLI_ORDER_H
#define CLI_ORDER_H

#include "cli/cli.h"

#include <jansson.h>

/* An answer, taken apart. Its texts are borrowed from `json`. */
struct order_answer {
    char *line; /* as it came */
    json_t *json;
    enum err err;
    const char *text;
};

/* Give an order (see engine/orders.h) to the store and take its answer apart.
 * Release *out in any case. */
MUST_USE enum err order_give(const struct store_place *place,
                             const char *order,
                             struct order_answer *out,
                             struct diag *diag);
void order_release(struct order_answer *answer);

/* Print an answer, or that the order could not be given; the exit code. */
int order_show(const struct cli_command *command,
               bool json,
               const struct order_answer *answer);
int order_fail(const struct cli_command *command,
               bool json,
               enum err err,
               const struct diag *diag);

/*
 * After an order that was carried out: if no scheduler runs, say so on standard
 * error, with the command that goes on. `store` is the value of --store, or
 * NULL.
 */
void order_tell_idle(const struct cli_command *command,
                     const struct store_place *place,
                     const char *store,
                     const struct order_answer *answer);

/* All of it: find the store (NULL: as usual), give the order, print the answer;
 * the exit code. */
int order_carry_out(const struct cli_command *command,
                    const char *store,
                    bool json,
                    const char *order);

#endif /* CLI_ORDER_H */
