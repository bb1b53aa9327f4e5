/* SPDX-License-Identifier: MIT */
/*
 * Moments of a plan: `not_before` and `deadline`.
 *
 * A date without a zone is local time, and is resolved when the plan is read; a
 * time of day when the start of the run is known.
 */
#include "plan/plan_internal.h"

#include "base/duration.h"
#include "base/utc.h"

#include <limits.h>
#include <string.h>

#define TIME_EXAMPLES                                                          \
    "22:00, 2030-01-31, \"2030-01-31 22:00\" or 2030-01-31T22:00:00Z"

enum { YEAR_MIN = 1971, YEAR_MAX = 2261 };

/* Read one or two digits and advance *at; -1: none. */
static int take_number(const char **at, int min_digits)
{
    int number = 0;
    int digits = 0;
    while (digits < 2 && **at >= '0' && **at <= '9') {
        number = number * 10 + (**at - '0');
        (*at)++;
        digits++;
    }
    return digits < min_digits ? -1 : number;
}

/* Read H:MM or H:MM:SS and advance *at; return the seconds, -1: invalid. */
static int take_clock(const char **at, int min_digits)
{
    int hour = take_number(at, min_digits);
    if (hour < 0 || hour > 23 || **at != ':') {
        return -1;
    }
    (*at)++;
    int minute = take_number(at, 2);
    int second = 0;
    if (minute >= 0 && **at == ':') {
        (*at)++;
        second = take_number(at, 2);
    }
    bool good = minute >= 0 && minute < 60 && second >= 0 && second < 60;
    return good ? hour * 3600 + minute * 60 + second : -1;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (leap && month == 2 ? 1 : 0);
}

/* Read YYYY-MM-DD and advance *at; false: invalid, or no such day. */
static bool take_date(const char **at, struct tm *time)
{
    int century = take_number(at, 2);
    int year = century < 0 ? -1 : take_number(at, 2);
    if (year < 0 || **at != '-') {
        return false;
    }
    year += century * 100;
    (*at)++;
    int month = take_number(at, 2);
    if (month < 1 || month > 12 || **at != '-') {
        return false;
    }
    (*at)++;
    int day = take_number(at, 2);
    time->tm_year = year - 1900;
    time->tm_mon = month - 1;
    time->tm_mday = day;
    return year >= YEAR_MIN && year <= YEAR_MAX && day >= 1 &&
           day <= days_in(year, month);
}

/* Read a date, with or without a time and a zone. */
static bool parse_date(const char *text, int64_t *out)
{
    const char *at = text;
    struct tm time = {.tm_isdst = -1};
    if (!take_date(&at, &time)) {
        return false;
    }
    if (*at == ' ' || *at == 'T') {
        at++;
        int seconds = take_clock(&at, 2);
        if (seconds < 0) {
            return false;
        }
        if (*at != '\0') {
            return utc_read(text, out);
        }
        time.tm_hour = seconds / 3600;
        time.tm_min = seconds / 60 % 60;
        time.tm_sec = seconds % 60;
    }
    if (*at != '\0') {
        return false;
    }
    int64_t seconds = (int64_t)mktime(&time);
    *out = seconds * SECOND_NS;
    return seconds > 0;
}

bool plan_parse_time(const char *text, struct plan_time *out)
{
    const char *at = text;
    int seconds = take_clock(&at, 1);
    if (seconds >= 0 && *at == '\0') {
        *out = (struct plan_time){PLAN_TIME_CLOCK, seconds * SECOND_NS};
        return true;
    }
    int64_t ns = 0;
    if (!parse_date(text, &ns)) {
        return false;
    }
    *out = (struct plan_time){PLAN_TIME_DATE, ns};
    return true;
}

/* Remember a moment of the plan for plan_find_past(). */
static void remember(const struct entry *entry)
{
    struct plan_private *private = entry->reader->plan->private;
    const struct plan_time *time = entry->out;
    if (entry->reader->fragment || time->kind != PLAN_TIME_DATE) {
        return;
    }
    MEM_GROW(private->times, private->time_count, private->time_capacity);
    private->times[private->time_count++] = (struct plan_time_given){
        .key = entry->field->name,
        .text = arena_strndup(&private->arena,
                              entry->value->text,
                              entry->value->count),
        .time = *time,
        .mark = node_mark(entry->value),
    };
}

void plan_read_time(const struct entry *entry)
{
    if (!node_is_scalar(entry->value) ||
        !plan_parse_time(entry->value->text, entry->out)) {
        fields_wrong(entry, "a time such as " TIME_EXAMPLES);
        return;
    }
    remember(entry);
}

void plan_read_deadline(const struct entry *entry)
{
    struct plan_time *out = entry->out;
    int64_t ns = 0;
    if (fields_parse_duration(entry->value, &ns)) {
        if (ns < 1 || ns > DURATION_MAX_NS) {
            fields_wrong(entry, ns < 1 ? "more than 0" : "at most 365d");
            return;
        }
        *out = (struct plan_time){PLAN_TIME_AFTER, ns};
        return;
    }
    if (!node_is_scalar(entry->value) ||
        !plan_parse_time(entry->value->text, out)) {
        fields_wrong(entry,
                     "a duration such as 6h, or a time such as " TIME_EXAMPLES);
        return;
    }
    remember(entry);
}

/* Return the first moment from `start_ns` on with that local time of day. */
static int64_t next_clock(int64_t of_day_ns, int64_t start_ns)
{
    time_t start = (time_t)(start_ns / SECOND_NS);
    struct tm day;
    tzset();
    if (localtime_r(&start, &day) == NULL) {
        return start_ns;
    }
    int64_t at_ns = INT64_MIN;
    for (int more = 0; at_ns < start_ns && more < 3; more++) {
        int seconds = (int)(of_day_ns / SECOND_NS);
        struct tm time = day;
        time.tm_mday += more;
        time.tm_hour = seconds / 3600;
        time.tm_min = seconds / 60 % 60;
        time.tm_sec = seconds % 60;
        time.tm_isdst = -1;
        at_ns = (int64_t)mktime(&time) * SECOND_NS;
    }
    return at_ns < start_ns ? start_ns : at_ns;
}

int64_t plan_time_ns(struct plan_time time, int64_t start_ns)
{
    switch (time.kind) {
    case PLAN_TIME_NONE:
        break;
    case PLAN_TIME_DATE:
        return time.value;
    case PLAN_TIME_CLOCK:
        return next_clock(time.value, start_ns);
    case PLAN_TIME_AFTER:
        return start_ns + time.value;
    }
    return INT64_MIN;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t plan_start_ns(const struct plan *plan,
                      const struct plan_task *task,
                      int64_t start_ns)
{
    int64_t at_ns = plan_time_ns(task->not_before, start_ns);
    if (task->last) {
        return at_ns;
    }
    at_ns = later(at_ns, plan_time_ns(plan->not_before, start_ns));
    for (uint32_t ix = task->group; ix != PLAN_NONE;
         ix = plan->groups[ix].parent) {
        at_ns =
            later(at_ns, plan_time_ns(plan->groups[ix].not_before, start_ns));
    }
    return at_ns;
}

int64_t plan_deadline_ns(const struct plan *plan,
                         int64_t start_ns,
                         int64_t not_before_ns)
{
    int64_t from_ns = later(start_ns, not_before_ns);
    from_ns = later(from_ns, plan_time_ns(plan->not_before, start_ns));
    return plan_time_ns(plan->deadline, from_ns);
}

bool plan_find_past(const struct plan *plan,
                    int64_t now_ns,
                    struct plan_errors *errors)
{
    const struct plan_private *private = plan->private;
    for (uint32_t ix = 0; ix < private->time_count; ix++) {
        const struct plan_time_given *given = &private->times[ix];
        if (plan_time_ns(given->time, now_ns) >= now_ns) {
            continue;
        }
        bool start = strcmp(given->key, "not_before") == 0;
        plan_errors_add(errors,
                        given->mark,
                        "%s %s is in the past: %s",
                        given->key,
                        given->text,
                        start ? "leave it out to start at once"
                              : "leave it out, or give a later one");
    }
    plan_errors_finish(errors);
    return errors->count > 0;
}
