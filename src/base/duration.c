/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include "base/invariant.h"
#include "base/macros.h"

#include <string.h>

struct unit {
    const char *name;
    int64_t ns;
};

/* Largest first: the units of a duration decrease. */
static const struct unit units[] = {
    {"d", DAY_NS},
    {"h", HOUR_NS},
    {"m", MINUTE_NS},
    {"s", SECOND_NS},
    {"ms", MS_NS},
};

/* The unread part of the string. */
struct cursor {
    const char *at;
    const char *end;
};

static bool is_digit(const struct cursor *cursor)
{
    return cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9';
}

/* Read digits; saturate at a value that is too large anyway. */
static bool read_whole(struct cursor *cursor, int64_t *out)
{
    int64_t value = 0;
    bool any = false;
    for (; is_digit(cursor); cursor->at++) {
        any = true;
        if (value <= DURATION_MAX_NS / 1000) {
            value = value * 10 + (*cursor->at - '0');
        }
    }
    *out = value;
    return any;
}

/* Read up to four decimals, as ten-thousandths. */
static bool read_decimals(struct cursor *cursor, int64_t *out)
{
    int64_t value = 0;
    int64_t worth = 1000;
    bool any = false;
    for (; is_digit(cursor); cursor->at++) {
        if (worth == 0) {
            return false;
        }
        any = true;
        value += (*cursor->at - '0') * worth;
        worth /= 10;
    }
    *out = value;
    return any;
}

/* Return the index of the next unit, or the number of units if unknown. */
static size_t read_unit(struct cursor *cursor)
{
    const char *start = cursor->at;
    while (cursor->at < cursor->end && *cursor->at >= 'a' &&
           *cursor->at <= 'z') {
        cursor->at++;
    }
    size_t len = (size_t)(cursor->at - start);
    size_t ix = 0;
    while (ix < ARRAY_COUNT(units) &&
           (strlen(units[ix].name) != len ||
            memcmp(units[ix].name, start, len) != 0)) {
        ix++;
    }
    return ix;
}

enum err duration_read(const char *text, size_t len, int64_t *out_ns)
{
    struct cursor cursor = {text, text + len};
    int64_t sum = 0;
    size_t smallest = 0;
    bool too_long = false;
    if (len == 0) {
        return ERR_INVALID;
    }
    while (cursor.at < cursor.end) {
        int64_t whole = 0;
        int64_t part = 0;
        if (!read_whole(&cursor, &whole)) {
            return ERR_INVALID;
        }
        if (cursor.at < cursor.end && *cursor.at == '.') {
            cursor.at++;
            if (!read_decimals(&cursor, &part)) {
                return ERR_INVALID;
            }
        }
        size_t unit = read_unit(&cursor);
        if (unit == ARRAY_COUNT(units) || unit < smallest) {
            return ERR_INVALID;
        }
        smallest = unit + 1;
        too_long = too_long || whole > DURATION_MAX_NS / units[unit].ns;
        if (!too_long) {
            sum += whole * units[unit].ns + part * (units[unit].ns / 10000);
            too_long = sum > DURATION_MAX_NS;
        }
    }
    if (too_long) {
        return ERR_LIMIT;
    }
    *out_ns = sum;
    return ERR_OK;
}

int64_t duration_doubled(int64_t first_ns, uint32_t times, int64_t max_ns)
{
    int64_t value_ns = first_ns;
    for (uint32_t ix = 0; ix < times && value_ns > 0 && value_ns < max_ns;
         ix++) {
        value_ns = value_ns > max_ns / 2 ? max_ns : value_ns * 2;
    }
    return value_ns < max_ns ? value_ns : max_ns;
}

void duration_add(struct strbuf *out, int64_t duration_ns)
{
    INVARIANT(duration_ns >= 0);
    long long seconds =
        duration_ns / SECOND_NS + (duration_ns % SECOND_NS >= SECOND_NS / 2);
    long long minutes = seconds / 60;
    long long hours = minutes / 60;
    if (hours >= 48) {
        strbuf_addf(out, "%lldd %lldh", hours / 24, hours % 24);
    } else if (hours > 0) {
        strbuf_addf(out, "%lldh %02lldm", hours, minutes % 60);
    } else if (minutes > 0 && seconds % 60 == 0) {
        strbuf_addf(out, "%lldm", minutes);
    } else if (minutes > 0) {
        strbuf_addf(out, "%lldm %02llds", minutes, seconds % 60);
    } else {
        strbuf_addf(out, "%llds", seconds);
    }
}
