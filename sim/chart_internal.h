/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the chart files.
 */
#ifndef SIM_CHART_INTERNAL_H
#define SIM_CHART_INTERNAL_H

#include "sim/chart.h"

/* Fill in the periods of an otherwise complete chart. */
void chart_find_periods(struct chart *chart);

#endif /* SIM_CHART_INTERNAL_H */
