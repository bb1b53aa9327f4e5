/* SPDX-License-Identifier: MIT */
/*
 * Means and variances are updated as by Welford, with weights that fade. The
 * text of a number has DIGITS digits; a caller that needs the same estimates
 * again reads them from the text.
 */
#include "plan/learned.h"

#include "base/invariant.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 9 };

/* Farther than this from the mean is an outlier: in standard deviations, which
 * are taken for at least SPREAD_MIN, once OUTLIER_WEIGHT is known. */
static const double outlier_sigmas = 3;
static const double spread_min = 0.7;
static const double outlier_weight = 3;

/* Limits on stored numbers: a damaged store must not give absurd estimates. */
static const double weight_max = 1e6;
static const double log_max = 30;
static const double square_max = 1e9;
static const double cost_max = 1e12;

/* Return the part of a sum of this weight that is kept when more is added. */
static double kept(double weight, double more)
{
    return weight + more > LEARNED_WINDOW ? (LEARNED_WINDOW - more) / weight
                                          : 1;
}

void learned_add(struct learned_sums *sums, double value, double weight)
{
    INVARIANT(isfinite(value) && weight > 0 && weight <= 1);
    double part = kept(sums->weight, weight);
    double old = sums->weight * part;
    double difference = value - sums->mean;
    if (sums->weight >= outlier_weight) {
        double spread = sqrt(sums->square / sums->weight);
        double far = outlier_sigmas * fmax(spread, spread_min);
        difference = fmax(-far, fmin(far, difference));
    }
    sums->weight = old + weight;
    sums->mean += difference * weight / sums->weight;
    sums->square = sums->square * part +
                   weight * old / sums->weight * difference * difference;
}

void learned_add_outcome(struct learned *learned, bool failed, bool changes)
{
    INVARIANT(!failed || !changes);
    double part = kept(learned->ended, 1);
    learned->ended = learned->ended * part + 1;
    learned->failed = learned->failed * part + (failed ? 1 : 0);
    learned->changes = learned->changes * part + (changes ? 1 : 0);
}

void learned_add_cost(struct learned *learned,
                      uint32_t tasks,
                      double usd,
                      double tokens)
{
    INVARIANT(tasks > 0 && usd >= 0 && tokens >= 0);
    for (uint32_t n = 0; n < tasks; n++) {
        learned->paid = learned->paid * kept(learned->paid, 1) + 1;
        learned->usd += (usd / tasks - learned->usd) / learned->paid;
        learned->tokens += (tokens / tasks - learned->tokens) / learned->paid;
    }
}

struct learned
learned_of_means(double count, double seconds, double usd, double tokens)
{
    double weight = fmin(count, LEARNED_WINDOW);
    double least = 1e-3;
    INVARIANT(weight >= 1);
    return (struct learned){
        .durations =
            {
                .weight = weight,
                /* The mean of a log-normal quantity is above its median. */
                .mean = log(fmax(seconds, least)) - LEARNED_VARIANCE / 2,
                .square = LEARNED_VARIANCE * (weight - 1),
            },
        .paid = weight,
        .usd = usd,
        .tokens = tokens,
    };
}

static void
write_three(struct jsonw *json, const char *name, double a, double b, double c)
{
    if (a > 0) {
        jsonw_array(json, name);
        jsonw_number(json, NULL, DIGITS, a);
        jsonw_number(json, NULL, DIGITS, b);
        jsonw_number(json, NULL, DIGITS, c);
        jsonw_array_end(json);
    }
}

static void write_sums(struct jsonw *json,
                       const char *name,
                       const struct learned_sums *sums)
{
    write_three(json, name, sums->weight, sums->mean, sums->square);
}

void learned_write(const struct learned *learned, struct jsonw *json)
{
    jsonw_object(json, NULL);
    write_sums(json, "durations", &learned->durations);
    write_sums(json, "ratios", &learned->ratios);
    write_three(json,
                "outcomes",
                learned->ended,
                learned->failed,
                learned->changes);
    write_three(json, "costs", learned->paid, learned->usd, learned->tokens);
    jsonw_object_end(json);
}

static bool is_within(double value, double min, double max)
{
    return value >= min && value <= max; /* false for NaN */
}

/* Read three numbers; a part that does not exist is three times 0. */
static bool read_three(const json_t *json,
                       const char *name,
                       double *a,
                       double *b,
                       double *c)
{
    const json_t *part = json_object_get(json, name);
    double *out[] = {a, b, c};
    if (part == NULL) {
        return true;
    }
    bool good = json_array_size(part) == 3;
    for (size_t ix = 0; good && ix < 3; ix++) {
        const json_t *number = json_array_get(part, ix);
        good = json_is_number(number);
        *out[ix] = json_number_value(number);
    }
    return good && is_within(*a, 0, weight_max);
}

static bool
read_sums(const json_t *json, const char *name, struct learned_sums *out)
{
    return read_three(json, name, &out->weight, &out->mean, &out->square) &&
           is_within(out->mean, -log_max, log_max) &&
           is_within(out->square, 0, square_max);
}

bool learned_read(struct learned *out, const json_t *json)
{
    *out = (struct learned){0};
    return json_is_object(json) &&
           read_sums(json, "durations", &out->durations) &&
           read_sums(json, "ratios", &out->ratios) &&
           read_three(json,
                      "outcomes",
                      &out->ended,
                      &out->failed,
                      &out->changes) &&
           is_within(out->failed, 0, out->ended) &&
           is_within(out->changes, 0, out->ended - out->failed + 1e-6) &&
           read_three(json, "costs", &out->paid, &out->usd, &out->tokens) &&
           is_within(out->usd, 0, cost_max) &&
           is_within(out->tokens, 0, cost_max);
}
