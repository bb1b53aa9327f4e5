/* SPDX-License-Identifier: MIT */
/*
 * Only members of the outermost object count, so the scan keeps the depth, and
 * steps over texts as a whole: what a reason quotes is never taken for a
 * member. Data that is damaged ends the scan; nothing is read past its NUL.
 */
#include "store/event.h"

#include "base/invariant.h"
#include "base/jsonr.h"
#include "store/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t event_sum(uint64_t before, const struct store_event *event)
{
    INVARIANT(event->number > 0);
    INVARIANT(event->kind != NULL && event->data != NULL);
    uint64_t sum = sum_add_number(SUM_START, before, 8);
    sum = sum_add_number(sum, event->number, 8);
    sum = sum_add_number(sum, (uint64_t)event->wall_ns, 8);
    sum = sum_add_number(sum, event->run, 4);
    sum = sum_add_number(sum, event->task, 4);
    /* With their NULs, which no text contains, so that none runs into the
     * next. */
    sum = sum_add(sum, event->kind, strlen(event->kind) + 1);
    return sum_add(sum, event->data, strlen(event->data) + 1);
}

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The closing quote of the text that opens at `at`, or NULL. */
static const char *text_end(const char *at)
{
    INVARIANT(*at == '"');
    for (at++; *at != '\0'; at++) {
        if (*at == '"') {
            return at;
        }
        if (*at == '\\' && *++at == '\0') {
            return NULL;
        }
    }
    return NULL;
}

/* The value behind a name that ends at `at`; NULL: it is no plain text. */
static const char *plain_value(const char *at, size_t *len_out)
{
    at = skip_space(at + 1);
    if (*at != ':') {
        return NULL;
    }
    at = skip_space(at + 1);
    const char *end = *at == '"' ? text_end(at) : NULL;
    if (end == NULL || memchr(at, '\\', (size_t)(end - at)) != NULL) {
        return NULL;
    }
    *len_out = (size_t)(end - at - 1);
    return at + 1;
}

const char *event_target(const char *data, size_t *len_out)
{
    uint32_t depth = 0;
    bool name_next = false; /* whether a text here would be a member's name */
    for (const char *at = skip_space(data); *at != '\0'; at++) {
        if (*at == '{' || *at == '[') {
            depth++;
            name_next = *at == '{';
        } else if (*at == '}' || *at == ']') {
            if (depth == 0 || --depth == 0) {
                return NULL;
            }
            name_next = false;
        } else if (*at == ',') {
            name_next = true;
        } else if (*at == '"') {
            const char *end = text_end(at);
            if (end == NULL || depth == 0) {
                return NULL;
            }
            if (name_next && depth == 1 && end - at == 3 &&
                memcmp(at, "\"to\"", 4) == 0) {
                return plain_value(end, len_out);
            }
            name_next = false;
            at = end;
        }
    }
    return NULL;
}

struct event_gap_texts event_gap_write(const struct event_gap *gap)
{
    struct event_gap_texts texts;
    INVARIANT(gap->first > 0 && gap->first <= gap->last);
    (void)snprintf(texts.name,
                   sizeof(texts.name),
                   EVENT_GAP_PREFIX "%020" PRIu64,
                   gap->first);
    (void)snprintf(texts.value,
                   sizeof(texts.value),
                   "{\"last\":%" PRId64 ",\"sum\":%" PRId64 "}",
                   (int64_t)gap->last,
                   (int64_t)gap->sum);
    return texts;
}

bool event_gap_read(const char *name, const char *value, struct event_gap *out)
{
    const size_t prefix = strlen(EVENT_GAP_PREFIX);
    if (strncmp(name, EVENT_GAP_PREFIX, prefix) != 0) {
        return false;
    }
    char *end = NULL;
    out->first = strtoull(name + prefix, &end, 10);
    struct jsonr data = jsonr_of(value);
    out->last = (uint64_t)jsonr_int(jsonr_get(data, "last"));
    out->sum = (uint64_t)jsonr_int(jsonr_get(data, "sum"));
    return *end == '\0' && out->first > 0 && out->first <= out->last;
}
