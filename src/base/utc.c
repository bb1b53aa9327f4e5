/* SPDX-License-Identifier: MIT */
#include "base/utc.h"

#include <string.h>
#include <time.h>

bool utc_add(struct strbuf *out, int64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / SECOND_NS);
    struct tm utc = {0};
    char text[32];
    if (wall_ns < 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        return false;
    }
    strbuf_addf(out, "%s.%03dZ", text, (int)(wall_ns % SECOND_NS / MS_NS));
    return true;
}

/* Return the days from 1970-01-01 to a day of the Gregorian calendar. */
static int64_t days_to(int year, int month, int day)
{
    static const int before[] =
        {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t past = year - 1;
    int64_t days = past * 365 + past / 4 - past / 100 + past / 400;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    days += before[month - 1] + (leap && month > 2 ? 1 : 0) + day - 1;
    return days - 719162; /* days before 1970-01-01 */
}

/* Read a number of exactly `len` digits and advance *at; -1: invalid. */
static int take_digits(const char **at, int len)
{
    int number = 0;
    for (int ix = 0; ix < len; ix++) {
        char digit = (*at)[ix];
        if (digit < '0' || digit > '9') {
            return -1;
        }
        number = number * 10 + (digit - '0');
    }
    *at += len;
    return number;
}

/* Read `len` digits after one of the characters of `before`; -1: invalid. */
static int take_part(const char **at, const char *before, int len)
{
    if (**at == '\0' || strchr(before, **at) == NULL) {
        return -1;
    }
    (*at)++;
    return take_digits(at, len);
}

/* Read the UTC offset of a time, in seconds; false: invalid. */
static bool take_zone(const char *at, int *seconds_out)
{
    if ((*at == 'Z' || *at == 'z') && at[1] == '\0') {
        *seconds_out = 0;
        return true;
    }
    int sign = *at == '-' ? -1 : 1;
    int hours = take_part(&at, "+-", 2);
    int minutes = hours < 0 ? -1 : take_part(&at, ":", 2);
    *seconds_out = sign * (hours * 3600 + minutes * 60);
    return minutes >= 0 && minutes < 60 && hours < 24 && *at == '\0';
}

bool utc_read(const char *at, int64_t *ns_out)
{
    int year = take_digits(&at, 4);
    int month = year < 1970 ? -1 : take_part(&at, "-", 2);
    int day = month < 1 || month > 12 ? -1 : take_part(&at, "-", 2);
    int hour = day < 1 || day > 31 ? -1 : take_part(&at, "Tt ", 2);
    int minute = hour < 0 || hour > 23 ? -1 : take_part(&at, ":", 2);
    int second = minute < 0 || minute > 59 ? -1 : take_part(&at, ":", 2);
    if (second < 0 || second > 60) {
        return false;
    }
    int64_t fraction_ns = 0;
    if (*at == '.') {
        int64_t unit_ns = 100000000;
        for (at++; *at >= '0' && *at <= '9'; at++, unit_ns /= 10) {
            fraction_ns += (*at - '0') * unit_ns;
        }
    }
    int zone = 0;
    if (!take_zone(at, &zone)) {
        return false;
    }
    int64_t minutes = (int64_t)hour * 60 + minute;
    int64_t seconds = days_to(year, month, day) * 86400 + minutes * 60;
    seconds += second - zone;
    if (seconds < 0 || seconds > UTC_SECONDS_MAX) {
        return false;
    }
    *ns_out = seconds * SECOND_NS + fraction_ns;
    return true;
}
