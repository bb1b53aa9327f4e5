/* SPDX-License-Identifier: MIT */
#include "http/route.h"

#include "base/invariant.h"

#include <string.h>

static int digit(char byte)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = byte != '\0' ? strchr(digits, byte) : NULL;
    int value = at != NULL ? (int)(at - digits) : -1;
    return value < 16 ? value : value - 6;
}

bool route_decode(struct strbuf *out, const char *text, size_t len, bool plus)
{
    for (size_t ix = 0; ix < len; ix++) {
        char byte = (char)(plus && text[ix] == '+' ? ' ' : text[ix]);
        if (byte == '%') {
            int high = ix + 2 < len ? digit(text[ix + 1]) : -1;
            int low = ix + 2 < len ? digit(text[ix + 2]) : -1;
            if (high < 0 || low < 0 || high * 16 + low == 0) {
                return false;
            }
            byte = (char)(high * 16 + low);
            ix += 2;
        }
        strbuf_add(out, &byte, 1);
    }
    return true;
}

/* A match in progress: where each part begins and ends. */
struct matching {
    const char *ends[ROUTE_PARTS_MAX][2];
    uint32_t count;
};

/* Match what comes before the next "{"; move both on. */
static bool match_text(const char **pattern, const char **path)
{
    while (**pattern != '\0' && **pattern != '{') {
        if (*(*pattern)++ != *(*path)++) {
            return false;
        }
    }
    return true;
}

/* Match a pattern whose parts are single segments, to the end of the path. */
static bool
match_segments(struct matching *matching, const char *pattern, const char *path)
{
    while (match_text(&pattern, &path)) {
        size_t len = strcspn(path, "/");
        const char *close = strchr(pattern, '}');
        if (*pattern == '\0' || len == 0) {
            return *pattern == '\0' && *path == '\0';
        }
        INVARIANT(close != NULL);
        INVARIANT(matching->count < ROUTE_PARTS_MAX);
        matching->ends[matching->count][0] = path;
        matching->ends[matching->count++][1] = path + len;
        path += len;
        pattern = close + 1;
    }
    return false;
}

/* The same, where one part may have several segments: the longest that lets the
 * rest match. */
static bool
match(struct matching *matching, const char *pattern, const char *path)
{
    const char *star = strstr(pattern, "*}");
    if (star == NULL) {
        return match_segments(matching, pattern, path);
    }
    while (match_text(&pattern, &path)) {
        const char *close = strchr(pattern, '}');
        INVARIANT(close != NULL && matching->count < ROUTE_PARTS_MAX);
        bool several = close == star + 1;
        size_t len = several ? strlen(path) : strcspn(path, "/");
        uint32_t ix = matching->count++;
        matching->ends[ix][0] = path;
        for (; several && len > 0; len--) {
            matching->ends[ix][1] = path + len;
            matching->count = ix + 1;
            if (match_segments(matching, close + 1, path + len)) {
                return true;
            }
        }
        if (len == 0) {
            return false;
        }
        matching->ends[ix][1] = path + len;
        path += len;
        pattern = close + 1;
    }
    return false;
}

bool route_match(const char *pattern, const char *path, struct route_parts *out)
{
    struct matching matching = {0};
    *out = (struct route_parts){0};
    if (!match(&matching, pattern, path)) {
        return false;
    }
    while (out->count < matching.count) {
        uint32_t ix = out->count++;
        const char *begin = matching.ends[ix][0];
        size_t len = (size_t)(matching.ends[ix][1] - begin);
        if (!route_decode(&out->items[ix], begin, len, false)) {
            route_release(out);
            return false;
        }
    }
    return true;
}

void route_release(struct route_parts *parts)
{
    for (uint32_t ix = 0; ix < ROUTE_PARTS_MAX; ix++) {
        strbuf_release(&parts->items[ix]);
    }
    parts->count = 0;
}
