/* SPDX-License-Identifier: MIT */
/*
 * wire: orders and reports as JSON, on their way through the store.
 *
 * To change the format, increment WIRE_PROTO: a scheduler gives work only to
 * workers with the same number.
 */
#ifndef WORK_WIRE_H
#define WORK_WIRE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/strbuf.h"
#include "work/order.h"
#include "work/report.h"

#include <jansson.h>

enum { WIRE_PROTO = 1 };

/* How rows and turns name what is wanted. */
const char *wire_want_name(enum work_want want);
enum work_want wire_read_want(const char *name); /* an unknown one: stop */

/* Whether a label is one of a list that commas separate. */
bool wire_has_label(const char *labels, const char *label);

/* Append an order. */
void wire_add_order(struct strbuf *out, const struct work_order *order);

/* An order that was read. Starts as {0}; release it in any case. */
struct wire_order {
    struct work_order order; /* its strings are in the next two */
    json_t *json;
    struct arena arena;
};
MUST_USE enum err
wire_read_order(struct wire_order *out, const char *text, struct diag *diag);
void wire_release_order(struct wire_order *order);

/* Append a report. `result` is the content of the result file, if it is
 * valid; else NULL. */
void wire_add_report(struct strbuf *out,
                     const struct work_report *report,
                     const char *result);

/* The same for reports. */
struct wire_report {
    struct work_report report;
    struct attempt_result result;
    json_t *json;
};
MUST_USE enum err
wire_read_report(struct wire_report *out, const char *text, struct diag *diag);
void wire_release_report(struct wire_report *report);

#endif /* WORK_WIRE_H */
