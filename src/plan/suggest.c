/* SPDX-License-Identifier: MIT */
/*
 * Edit distance by dynamic programming over three rows, aborted as soon as a
 * whole row exceeds the maximum. Before that, two cheap tests exclude most
 * names: the difference in length, and the letters that only one of them has.
 */
#include "plan/suggest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_MAX = 64,
    SHORT_LEN = 3, /* names up to this length may differ in one letter */
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Fill row `now` for the letter a[ix]; return its smallest entry. */
static uint32_t fill_row(uint32_t rows[3][TEXT_MAX + 1],
                         const char *a,
                         size_t ix,
                         const char *b,
                         size_t b_len)
{
    uint32_t *now = rows[(ix + 1) % 3];
    const uint32_t *above = rows[ix % 3];
    const uint32_t *older = rows[(ix + 2) % 3];
    now[0] = (uint32_t)ix + 1;
    uint32_t least = now[0];
    for (size_t jx = 0; jx < b_len; jx++) {
        uint32_t cost = a[ix] == b[jx] ? 0 : 1;
        now[jx + 1] =
            smaller(above[jx] + cost, smaller(above[jx + 1], now[jx]) + 1);
        if (ix > 0 && jx > 0 && a[ix] == b[jx - 1] && a[ix - 1] == b[jx]) {
            now[jx + 1] = smaller(now[jx + 1], older[jx - 1] + 1);
        }
        least = smaller(least, now[jx + 1]);
    }
    return least;
}

uint32_t suggest_distance(const char *a,
                          size_t a_len,
                          const char *b,
                          size_t b_len,
                          uint32_t above)
{
    size_t apart = a_len > b_len ? a_len - b_len : b_len - a_len;
    if (a_len > TEXT_MAX || b_len > TEXT_MAX || apart > above) {
        return above + 1;
    }
    uint32_t rows[3][TEXT_MAX + 1];
    memset(rows, 0, sizeof(rows));
    for (uint32_t jx = 0; jx <= b_len; jx++) {
        rows[0][jx] = jx;
    }
    for (size_t ix = 0; ix < a_len; ix++) {
        if (fill_row(rows, a, ix, b, b_len) > above) {
            return above + 1;
        }
    }
    return smaller(rows[a_len % 3][b_len], above + 1);
}

void suggest_init(struct suggest *suggest,
                  const char *wanted,
                  size_t len,
                  uint32_t *budget)
{
    *suggest = (struct suggest){
        .wanted = wanted,
        .len = len,
        .distance = len <= SHORT_LEN ? 2 : 3,
        .budget = budget,
    };
}

/* Whether the letters alone prove more than `above` edits. */
static bool letters_differ(const char *a,
                           size_t a_len,
                           const char *b,
                           size_t b_len,
                           uint32_t above)
{
    uint64_t in_a = 0;
    uint64_t in_b = 0;
    for (size_t ix = 0; ix < a_len; ix++) {
        in_a |= UINT64_C(1) << ((unsigned char)a[ix] % 64);
    }
    for (size_t ix = 0; ix < b_len; ix++) {
        in_b |= UINT64_C(1) << ((unsigned char)b[ix] % 64);
    }
    return __builtin_popcountll(in_a & ~in_b) > (int)above ||
           __builtin_popcountll(in_b & ~in_a) > (int)above;
}

/* Take the name if it is more similar than the best so far. */
static void
consider(struct suggest *suggest, const char *name, size_t len, uint32_t ix)
{
    uint32_t above = suggest->distance - 1;
    size_t apart = len > suggest->len ? len - suggest->len : suggest->len - len;
    if (apart > above || above >= len ||
        letters_differ(suggest->wanted, suggest->len, name, len, above)) {
        return;
    }
    uint32_t distance =
        suggest_distance(suggest->wanted, suggest->len, name, len, above);
    if (distance <= above) {
        suggest->best = name;
        suggest->best_ix = ix;
        suggest->distance = distance;
    }
}

bool suggest_offer(struct suggest *suggest, const char *name)
{
    uint32_t ix = suggest->offered++;
    if (*suggest->budget == 0) {
        return false;
    }
    (*suggest->budget)--;
    size_t len = strnlen(name, TEXT_MAX + 1);
    if (len <= TEXT_MAX && suggest->len <= TEXT_MAX && suggest->distance > 0) {
        consider(suggest, name, len, ix);
    }
    return true;
}

const char *suggest_hint(struct suggest *suggest)
{
    if (suggest->best == NULL) {
        return "";
    }
    int len = snprintf(suggest->hint,
                       sizeof(suggest->hint),
                       " (did you mean \"%s\"?)",
                       suggest->best);
    return len > 0 ? suggest->hint : "";
}
