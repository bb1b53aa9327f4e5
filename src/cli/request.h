/* SPDX-License-Identifier: MIT */
/*
 * request: give a request to the scheduler, and say how it went.
 */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "cli/cli.h"

#include <jansson.h>

/* An answer, taken apart. Its texts are borrowed from `json`. */
struct request_answer {
    char *line; /* as it came */
    json_t *json;
    enum err err;
    const char *text;
};

/* Give a request (see engine/request.h) to the store and take its answer apart.
 * Release *out in any case. */
MUST_USE enum err request_give(const struct store_place *place,
                               const char *request,
                               struct request_answer *out,
                               struct diag *diag);
void request_release(struct request_answer *answer);

/* Print an answer, or that the request could not be given; the exit code. */
int request_show(const struct cli_line *line,
                 const struct request_answer *answer);
int request_fail(const struct cli_line *line,
                 enum err err,
                 const struct diag *diag);

/* After a request that was carried out: if no scheduler runs, say so on
 * standard error, with the command that goes on. */
void request_tell_idle(const struct cli_line *line,
                       const struct store_place *place,
                       const struct request_answer *answer);

/* All of it: find the store, give the request, print the answer; the exit code.
 */
int request_carry_out(const struct cli_line *line, const char *request);

#endif /* CLI_REQUEST_H */
