/* SPDX-License-Identifier: MIT */
/*
 * svg: the timeline of a simulation as a picture.
 *
 * A document of its own: no script, no outside font or file, readable on
 * light and dark ground, with colours that colour-blind people can tell apart
 * and a tooltip on each bar. Texts of the caller and of the plan may contain
 * anything: they are escaped, and bytes that XML cannot hold are replaced.
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
    SVG_BARS_MAX = 5000, /* of one result; above it, neighbours are merged */
    SVG_LANES_MAX = 200, /* shown; the rest is mentioned */
};

/* A plain value; {0} is a picture without a title. */
struct svg_options {
    const char *title;    /* or NULL */
    const char *subtitle; /* or NULL */
    uint32_t width;       /* pixels; 0: SVG_WIDTH; kept within the bounds */
};

/* One of several results in a picture. A plain value. */
struct svg_panel {
    const struct plan *plan;
    const struct sim_result *result;
    const char *caption; /* "first come", or NULL; figures are added to it */
    const char *lead;    /* before its length; NULL: "done in" */
};

/*
 * Append a picture of one or more results, the first one on top, all on the
 * same time scale. The classes of their plans must be the same.
 */
void svg_compare(struct strbuf *out,
                 const struct svg_panel *panels,
                 uint32_t panel_count,
                 const struct svg_options *options);

#endif /* SIM_SVG_H */
