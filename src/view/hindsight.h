/* SPDX-License-Identifier: MIT */
/*
 * hindsight: how good the forecasts of earlier runs were.
 *
 * No forecast is stored. The forecast for the start of a run is computed again
 * from its stored plan and what was expected then; equal inputs give equal
 * forecasts.
 */
#ifndef VIEW_HINDSIGHT_H
#define VIEW_HINDSIGHT_H

#include "view/eta.h"
#include "view/run_history.h"

/* The forecasts of finished runs. A plain value. */
struct hindsight {
    uint32_t runs;   /* compared; 0: none */
    uint32_t within; /* that ended by their p90 */
    double error;    /* mean of |ln(duration / p50)| */
};

/* Return the forecast for the start of a run: with all its fragments, and with
 * what was expected when it was submitted. */
struct eta_end hindsight_of(const struct run_history *history);

/* Add a finished run that took `took_ns`. */
void hindsight_add(struct hindsight *hindsight,
                   const struct eta_end *end,
                   int64_t took_ns);

/* Compare the last finished runs before run `number`, at most 10. Cancelled
 * runs and unreadable plans do not count; fewer if they are large. */
MUST_USE enum err hindsight_read(struct hindsight *out,
                                 struct store *store,
                                 uint32_t number,
                                 struct diag *diag);

/* Return the mean error in percent: 12 for a factor of 1.12 or 1 / 1.12. */
double hindsight_percent(const struct hindsight *hindsight);

/* Append "7 of the last 8 runs ended within 90 %, mean error 12 %". */
void hindsight_add_text(struct strbuf *out, const struct hindsight *hindsight);

#endif /* VIEW_HINDSIGHT_H */
