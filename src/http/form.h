/* SPDX-License-Identifier: MIT */
/*
 * form: orders of the live page, as a browser sends a form without a script.
 * Pure.
 */
#ifndef HTTP_FORM_H
#define HTTP_FORM_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdint.h>

/* An order, read from a form. Starts as {0}. */
struct form_order {
    struct strbuf json; /* see engine/request.h */
    struct strbuf back; /* path of ours to go back to */
    int64_t seen_ns;    /* not an order to the scheduler: the operator has seen
                           what came until then; 0: it is an order */
};

/* Read the body of a form. ERR_INVALID: it is not an order that the page can
 * give. Release *out in any case. */
MUST_USE enum err form_read(struct form_order *out,
                            const char *body,
                            size_t len,
                            struct diag *diag);
void form_release(struct form_order *order);

#endif /* HTTP_FORM_H */
