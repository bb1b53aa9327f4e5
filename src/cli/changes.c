/* SPDX-License-Identifier: MIT */
#include "cli/changes.h"

#include "base/macros.h"
#include "plan/suggest.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parse digits; false: not a number from 1 to `max`. */
static bool read_number(const char *text, long max, const char **end, long *out)
{
    char *after = NULL;
    errno = 0;
    *out = text[0] >= '0' && text[0] <= '9' ? strtol(text, &after, 10) : 0;
    *end = after;
    return errno == 0 && *out >= 1 && *out <= max;
}

/* Parse N, +N, -N, and with `all` also P% and none. */
static bool read_max(const char *text, bool all, struct whatif_limit *out)
{
    long number = 0;
    const char *end = NULL;
    *out = (struct whatif_limit){0};
    if (all && strcmp(text, "none") == 0) {
        out->max = PLAN_UNLIMITED;
        return true;
    }
    bool step = text[0] == '+' || text[0] == '-';
    if (!read_number(text + (step ? 1 : 0), INT32_MAX, &end, &number)) {
        return false;
    }
    if (all && !step && strcmp(end, "%") == 0) {
        out->percent = (uint32_t)number;
        return number <= 100;
    }
    if (step) {
        out->step = text[0] == '+' ? number : -number;
    } else {
        out->max = number;
    }
    return *end == '\0';
}

/* Add a limit, each at most once. */
static int add(struct changes *changes,
               const struct cli_command *command,
               const struct changes_limit *limit)
{
    for (uint32_t ix = 0; ix < changes->limit_count; ix++) {
        const struct changes_limit *other = &changes->limits[ix];
        if (other->name_len == limit->name_len &&
            memcmp(other->name, limit->name, limit->name_len) == 0) {
            return cli_fail(command,
                            "limit %.*s is given twice",
                            (int)limit->name_len,
                            limit->name);
        }
    }
    if (changes->limit_count == CHANGES_LIMITS_MAX) {
        return cli_fail(command, "more than %d limits", CHANGES_LIMITS_MAX);
    }
    changes->limits[changes->limit_count++] = *limit;
    return CLI_OK;
}

int changes_cap(struct changes *changes,
                const struct cli_command *command,
                const char *text)
{
    struct changes_limit limit = {"sessions", strlen("sessions"), {0}};
    if (!read_max(text, false, &limit.wanted)) {
        return cli_fail(command,
                        "--cap takes a number from 1, or a step as +2 or -1, "
                        "not \"%s\"",
                        text);
    }
    return add(changes, command, &limit);
}

int changes_limit(struct changes *changes,
                  const struct cli_command *command,
                  const char *text)
{
    const char *equals = strchr(text, '=');
    struct changes_limit limit = {.name = text};
    if (equals == NULL || equals == text ||
        !read_max(equals + 1, true, &limit.wanted)) {
        return cli_fail(command,
                        "--limit takes NAME=N with a number from 1, a step as "
                        "+2 or -1, a percentage as 50%%, or none, not \"%s\"",
                        text);
    }
    limit.name_len = (size_t)(equals - text);
    return add(changes, command, &limit);
}

int changes_policy(struct changes *changes,
                   const struct cli_command *command,
                   const char *name)
{
    for (enum plan_policy policy = PLAN_POLICY_RANK;
         policy <= PLAN_POLICY_LOOKAHEAD;
         policy++) {
        if (strcmp(name, sim_policy_name(policy)) == 0) {
            changes->policy = policy;
            changes->policy_given = true;
            return CLI_OK;
        }
    }
    return cli_fail(
        command,
        "unknown policy \"%s\" (known: rank, fair, fifo, lookahead)",
        name);
}

int changes_goal(struct changes *changes,
                 const struct cli_command *command,
                 const char *name)
{
    for (enum plan_goal goal = PLAN_GOAL_FINISH_ALL;
         goal <= PLAN_GOAL_FINISH_MANY;
         goal++) {
        if (strcmp(name, sim_goal_name(goal)) == 0) {
            changes->goal = goal;
            changes->goal_given = true;
            return CLI_OK;
        }
    }
    return cli_fail(command,
                    "unknown goal \"%s\" (known: finish-all, finish-many)",
                    name);
}

/* Whether a simulation has this kind of limit with a constant maximum. */
static bool can_be_set(const struct plan_limit *limit)
{
    return limit->kind == PLAN_LIMIT_PLAIN ||
           limit->kind == PLAN_LIMIT_RESOURCE;
}

/* Return the index of a limit, or print an error and return PLAN_NONE. */
static uint32_t find_limit(const struct cli_command *command,
                           const struct plan *plan,
                           const struct changes_limit *limit)
{
    uint32_t budget = SUGGEST_BUDGET;
    struct suggest guess;
    int len = limit->name_len < 200 ? (int)limit->name_len : 200;
    suggest_init(&guess, limit->name, limit->name_len, &budget);
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        const struct plan_limit *known = &plan->limits[ix];
        bool same = strlen(known->name) == limit->name_len &&
                    memcmp(known->name, limit->name, limit->name_len) == 0;
        if (same && can_be_set(known)) {
            return ix;
        }
        if (same) {
            (void)cli_fail(command,
                           "limit %s has no fixed maximum in a simulation",
                           known->name);
            return PLAN_NONE;
        }
        if (can_be_set(known)) {
            (void)suggest_offer(&guess, known->name);
        }
    }
    (void)cli_fail(command,
                   "the plan has no limit \"%.*s\"%s",
                   len,
                   limit->name,
                   suggest_hint(&guess));
    return PLAN_NONE;
}

int changes_find(const struct changes *changes,
                 const struct cli_command *command,
                 const struct plan *plan,
                 struct changes_found *out)
{
    *out = (struct changes_found){
        .settings.limits = out->limits,
        .settings.limit_count = changes->limit_count,
        .settings.policy = changes->policy_given ? &changes->policy : NULL,
        .settings.goal = changes->goal_given ? &changes->goal : NULL,
    };
    for (uint32_t ix = 0; ix < changes->limit_count; ix++) {
        const struct changes_limit *limit = &changes->limits[ix];
        uint32_t found = find_limit(command, plan, limit);
        if (found == PLAN_NONE) {
            return CLI_USAGE;
        }
        out->limits[ix] = limit->wanted;
        out->limits[ix].limit = found;
    }
    return CLI_OK;
}

/* Append a changed limit, as a difference if it has one. */
static void add_limit_text(struct strbuf *out,
                           const struct plan_limit *limit,
                           const struct whatif_limit *wanted)
{
    bool slots = wanted->limit == 0;
    bool plain = limit->percent == 0 && limit->max != PLAN_UNLIMITED;
    int64_t step = wanted->step;
    if (step == 0 && plain && wanted->percent == 0 &&
        wanted->max != PLAN_UNLIMITED) {
        step = wanted->max - limit->max;
    }
    if (step != 0 && slots) {
        long long count = (long long)(step > 0 ? step : -step);
        strbuf_addf(out,
                    "%lld slot%s %s",
                    count,
                    count == 1 ? "" : "s",
                    step > 0 ? "more" : "fewer");
    } else if (wanted->step != 0) {
        int64_t max = limit->max + step;
        strbuf_addf(out, "limit %s %lld", limit->name, (long long)max);
    } else if (wanted->percent > 0) {
        strbuf_addf(out, "limit %s %u %%", limit->name, wanted->percent);
    } else if (wanted->max == PLAN_UNLIMITED) {
        strbuf_addf(out, "limit %s none", limit->name);
    } else {
        strbuf_addf(out, "limit %s %lld", limit->name, (long long)wanted->max);
    }
}

void changes_add_text(struct strbuf *out,
                      const struct plan *plan,
                      const struct whatif_settings *settings)
{
    size_t before = out->len;
    for (uint32_t ix = 0; ix < settings->limit_count; ix++) {
        const struct whatif_limit *wanted = &settings->limits[ix];
        strbuf_adds(out, out->len > before ? ", " : "");
        add_limit_text(out, &plan->limits[wanted->limit], wanted);
    }
    if (settings->policy != NULL) {
        strbuf_addf(out,
                    "%spolicy %s",
                    out->len > before ? ", " : "",
                    sim_policy_name(*settings->policy));
    }
    if (settings->goal != NULL) {
        strbuf_addf(out,
                    "%sgoal %s",
                    out->len > before ? ", " : "",
                    sim_goal_name(*settings->goal));
    }
}
