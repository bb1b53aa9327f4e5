/* SPDX-License-Identifier: MIT */
#include "adapter/template.h"

#include <stdio.h>
#include <string.h>

static const char *const names[TEMPLATE_COUNT] = {
    [TEMPLATE_ANSWER] = "answer",
    [TEMPLATE_BATCH] = "batch",
    [TEMPLATE_BODY] = "body",
    [TEMPLATE_BRANCH] = "branch",
    [TEMPLATE_DIFF] = "diff",
    [TEMPLATE_FEEDBACK] = "feedback",
    [TEMPLATE_ID] = "id",
    [TEMPLATE_ISSUE] = "issue",
    [TEMPLATE_OUTPUTS] = "outputs",
    [TEMPLATE_START] = "start",
    [TEMPLATE_TITLE] = "title",
    [TEMPLATE_WORKTREE] = "worktree",
};

const char template_names[] = "answer, batch, body, branch, diff, feedback, "
                              "id, issue, outputs, start, title and worktree";

/* One {{name}}: the length before it, and the name without blanks. */
struct place {
    size_t before;
    const char *name;
    size_t len;
    const char *after;
};

/* Return the next pair of braces, or NULL. */
static const char *find_pair(const char *at, char brace)
{
    at = strchr(at, brace);
    while (at != NULL && at[1] != brace) {
        at = strchr(at + 1, brace);
    }
    return at;
}

/* Find the next {{name}} from `at` on; false: none. */
static bool find(const char *at, struct place *out)
{
    const char *from = at;
    for (;;) {
        const char *open = find_pair(from, '{');
        if (open != NULL && open > at && open[-1] == '\\') {
            from = open + 2;
            continue;
        }
        const char *close = open != NULL ? find_pair(open + 2, '}') : NULL;
        if (close == NULL) {
            return false;
        }
        out->before = (size_t)(open - at);
        out->name = open + 2 + strspn(open + 2, " \t");
        out->len = out->name < close ? (size_t)(close - out->name) : 0;
        while (out->len > 0 && strchr(" \t", out->name[out->len - 1]) != NULL) {
            out->len--;
        }
        out->after = close + 2;
        return true;
    }
}

static uint32_t name_of(const struct place *place)
{
    uint32_t ix = 0;
    while (ix < TEMPLATE_COUNT &&
           (strlen(names[ix]) != place->len ||
            memcmp(names[ix], place->name, place->len) != 0)) {
        ix++;
    }
    return ix;
}

bool template_check(const char *text, char *bad, size_t bad_bytes)
{
    struct place place;
    for (const char *at = text; find(at, &place); at = place.after) {
        if (name_of(&place) == TEMPLATE_COUNT) {
            size_t len = place.len < 40 ? place.len : 40;
            (void)snprintf(bad, bad_bytes, "%.*s", (int)len, place.name);
            return false;
        }
    }
    return true;
}

/* Append text in which "\{{" stands for "{{". */
static void add_plain(struct strbuf *out, const char *text, size_t len)
{
    for (size_t ix = 0; ix < len; ix++) {
        if (text[ix] != '\\' || ix + 2 >= len || text[ix + 1] != '{' ||
            text[ix + 2] != '{') {
            strbuf_add(out, &text[ix], 1);
        }
    }
}

void template_expand(struct strbuf *out,
                     const char *text,
                     const char *const *values,
                     bool *used)
{
    struct place place;
    const char *at = text;
    memset(used, 0, TEMPLATE_COUNT * sizeof(used[0]));
    for (; find(at, &place); at = place.after) {
        uint32_t name = name_of(&place);
        add_plain(out, at, place.before);
        if (name == TEMPLATE_COUNT) {
            const char *from = at + place.before;
            strbuf_add(out, from, (size_t)(place.after - from));
        } else {
            used[name] = true;
            strbuf_adds(out, values[name] != NULL ? values[name] : "");
        }
    }
    add_plain(out, at, strlen(at));
}
