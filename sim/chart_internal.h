/* SPDX-License-Identifier: MIT */
/*
 * What the files of chart share.
 */
#ifndef SIM_CHART_INTERNAL_H
#define SIM_CHART_INTERNAL_H

#include "sim/chart.h"

/* Fill in the periods of a chart that has everything else. */
void chart_find_periods(struct chart *chart);

#endif /* SIM_CHART_INTERNAL_H */
