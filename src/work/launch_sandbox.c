/* SPDX-License-Identifier: MIT */
/*
 * Confined sessions: sluice-sandbox runs their commands. The words before a
 * command go to the program that starts it: the shim, or sluice-git for
 * `prepare` and gates, or sluice-agent for the program of an agent.
 */
#include "work/launch.h"

#include "base/invariant.h"

#include <string.h>

enum { WORDS_FIXED = 8 };

static uint32_t count_of(const char *const *list)
{
    uint32_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    return count;
}

static void
add(struct launch_prefix *prefix, const char *option, const char *value)
{
    prefix->items[prefix->count++] = option;
    if (value != NULL) {
        prefix->items[prefix->count++] = value;
    }
}

static void add_all(struct launch_prefix *prefix,
                    const char *option,
                    const char *const *list)
{
    for (uint32_t ix = 0; ix < count_of(list); ix++) {
        add(prefix, option, list[ix]);
    }
}

struct launch_prefix launch_prefix_of(const struct launch *launch,
                                      const struct work_order *order,
                                      const char *dir,
                                      struct arena *arena)
{
    const struct work_sandbox *sandbox = &order->sandbox;
    struct launch_prefix prefix = {0};
    if (!sandbox->on) {
        return prefix;
    }
    uint32_t most =
        WORDS_FIXED + 2 * (count_of(sandbox->write) + count_of(sandbox->read) +
                           count_of(sandbox->env));
    prefix.items = arena_alloc(arena, most, sizeof(prefix.items[0]));
    add(&prefix, launch->sandbox, NULL);
    add(&prefix, "--dir", dir);
    add(&prefix, "--cover", launch->place->home);
    if (sandbox->network) {
        add(&prefix, "--network", NULL);
    }
    add_all(&prefix, "--write", sandbox->write);
    add_all(&prefix, "--read", sandbox->read);
    add_all(&prefix, "--env", sandbox->env);
    INVARIANT(prefix.count < most);
    return prefix;
}

/* Append a word for a shell, in single quotes. */
static void add_quoted(struct strbuf *out, const char *word)
{
    strbuf_adds(out, "'");
    for (const char *at = word; *at != '\0'; at++) {
        if (*at == '\'') {
            strbuf_adds(out, "'\\''");
        } else {
            strbuf_add(out, at, 1);
        }
    }
    strbuf_adds(out, "' ");
}

const char *launch_confine(const struct launch_prefix *prefix,
                           const char *shell,
                           struct arena *arena)
{
    if (prefix->count == 0 || shell == NULL) {
        return shell;
    }
    struct strbuf text = {0};
    strbuf_adds(&text, "exec ");
    for (uint32_t ix = 0; ix < prefix->count; ix++) {
        add_quoted(&text, prefix->items[ix]);
    }
    strbuf_adds(&text, "-- /bin/sh -c ");
    add_quoted(&text, shell);
    const char *made = arena_strndup(arena, strbuf_text(&text), text.len);
    strbuf_release(&text);
    return made;
}
