/* SPDX-License-Identifier: MIT */
/* request: send a request to the scheduler and print the answer. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "cli/cli.h"

#include <jansson.h>

/* A parsed answer. Its strings are borrowed from `json`. */
struct request_answer {
    char *line; /* unparsed */
    json_t *json;
    enum err err;
    const char *text;
};

/* Send a request (see engine/request.h) to the store and parse the answer.
 * Release *out in any case. */
MUST_USE enum err request_give(const struct store_place *place,
                               const char *request,
                               struct request_answer *out,
                               struct diag *diag);
void request_release(struct request_answer *answer);

/* Print an answer, or why it is missing; return the exit code. */
int request_show(const struct cli_line *line,
                 const struct request_answer *answer);
int request_fail(const struct cli_line *line,
                 enum err err,
                 const struct diag *diag);

/* After a successful request: if no scheduler is running, print a warning with
 * the command that resumes the run to standard error. */
void request_tell_idle(const struct cli_line *line,
                       const struct store_place *place,
                       const struct request_answer *answer);

/* Find the store, send the request, print the answer; return the exit code. */
int request_carry_out(const struct cli_line *line, const char *request);

#endif /* CLI_REQUEST_H */
