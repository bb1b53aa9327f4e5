/* SPDX-License-Identifier: MIT */
/*
 * svg: the timeline of a simulation as an SVG picture.
 *
 * A self-contained document: no script, no external font or file, readable on
 * light and dark background, with colours that are distinct for colour-blind
 * readers and a tooltip on each bar. Strings of the caller and of the plan may
 * contain any bytes: they are escaped, and bytes invalid in XML are replaced.
 */
#ifndef SIM_SVG_H
#define SIM_SVG_H

#include "base/strbuf.h"
#include "sim/sim.h"

#include <stdint.h>

enum {
    SVG_WIDTH = 880,
    SVG_WIDTH_MIN = 320,
    SVG_WIDTH_MAX = 10000,
    SVG_BARS_MAX = 5000, /* of one result; beyond, neighbours are merged */
    SVG_LANES_MAX = 200, /* shown; the rest is only counted */
};

/* A plain value; {0} is a picture without a title. */
struct svg_options {
    const char *title;    /* or NULL */
    const char *subtitle; /* or NULL */
    uint32_t width;       /* pixels; 0: SVG_WIDTH; clamped to the bounds */
};

/* One of several results in a picture. A plain value. */
struct svg_panel {
    const struct plan *plan;
    const struct sim_result *result;
    const char *caption; /* "first come", or NULL; figures are added to it */
    const char *lead;    /* before its length; NULL: "done in" */
};

/* Append a picture of one or more results, the first on top, all on the same
 * time scale. Their plans must have the same classes. */
void svg_compare(struct strbuf *out,
                 const struct svg_panel *panels,
                 uint32_t panel_count,
                 const struct svg_options *options);

#endif /* SIM_SVG_H */
