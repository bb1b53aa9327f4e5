/* SPDX-License-Identifier: MIT */
#include "git/names.h"

#include <stdbool.h>
#include <string.h>

static bool is_plain(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_' ||
           byte == '#';
}

/* Allow a dot between two plain characters, but not in ".lock", which git
 * rejects and worktree.h uses for files next to a worktree, like ".making". */
static bool is_plain_dot(const char *id, size_t ix)
{
    return id[ix] == '.' && ix > 0 && is_plain(id[ix - 1]) &&
           is_plain(id[ix + 1]) && strcmp(id + ix, ".lock") != 0 &&
           strcmp(id + ix, ".making") != 0;
}

void names_add(struct strbuf *out, const char *id)
{
    for (size_t ix = 0; id[ix] != '\0'; ix++) {
        bool first_dash = ix == 0 && id[ix] == '-';
        if ((is_plain(id[ix]) && !first_dash) || is_plain_dot(id, ix)) {
            strbuf_add(out, &id[ix], 1);
        } else {
            strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)id[ix]);
        }
    }
}

/* Append "RUN" or "RUN/ENTRY". */
static void add_scope(struct strbuf *out, const char *run, const char *entry)
{
    names_add(out, run);
    if (entry != NULL) {
        strbuf_adds(out, "/");
        names_add(out, entry);
    }
}

void names_add_branch(struct strbuf *out,
                      const char *run,
                      const char *entry,
                      const char *group)
{
    strbuf_adds(out, "sluice/");
    add_scope(out, run, entry);
    strbuf_adds(out, "/");
    if (group == NULL) {
        strbuf_adds(out, "main");
    } else if (strcmp(group, "main") == 0) {
        strbuf_adds(out, NAMES_GROUP_MAIN);
    } else {
        names_add(out, group);
    }
}

void names_add_worktree(struct strbuf *out,
                        const char *store,
                        const char *run,
                        const char *repo,
                        const char *group)
{
    strbuf_addf(out, "%s/worktrees/", store);
    names_add(out, run);
    strbuf_adds(out, "/");
    names_add(out, repo);
    strbuf_adds(out, "/");
    if (group == NULL) {
        strbuf_adds(out, "+merge"); /* no group's component has a plus */
    } else if (strcmp(group, NAMES_BASE) == 0) {
        strbuf_adds(out, NAMES_BASE);
    } else {
        names_add(out, group);
    }
}

void names_add_owner(struct strbuf *out, const char *store, int64_t created_ns)
{
    strbuf_addf(out, "%s, submitted at %lld", store, (long long)created_ns);
}

/* Return "refs/sluice/SCOPE/END", or the same below a group. */
static const char *private_ref(struct names *names,
                               const char *scope,
                               const char *group,
                               const char *end)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "refs/sluice/%s", scope);
    if (group != NULL) {
        strbuf_adds(&text, "/groups/");
        names_add(&text, group);
    }
    strbuf_addf(&text, "/%s", end);
    const char *ref = arena_strndup(&names->arena, text.text, text.len);
    strbuf_release(&text);
    return ref;
}

static const char *branch_ref(struct names *names,
                              const char *run,
                              const char *entry,
                              const char *group)
{
    struct strbuf text = {0};
    strbuf_adds(&text, "refs/heads/");
    names_add_branch(&text, run, entry, group);
    const char *ref = arena_strndup(&names->arena, text.text, text.len);
    strbuf_release(&text);
    return ref;
}

void names_init(struct names *names,
                const char *run,
                const char *entry,
                const char *group)
{
    struct strbuf scope = {0};
    *names = (struct names){0};
    if (entry != NULL) {
        names_add(&scope, run);
        names->above = private_ref(names, strbuf_text(&scope), NULL, "owner");
        strbuf_clear(&scope);
    }
    add_scope(&scope, run, entry);
    const char *text = strbuf_text(&scope);
    names->owner = private_ref(names, text, NULL, "owner");
    names->gated = private_ref(names, text, NULL, "gated");
    names->fence = private_ref(names, text, NULL, "fence");
    names->base = private_ref(names, text, NULL, "base");
    names->agent = branch_ref(names, run, entry, NULL);
    names->branch = branch_ref(names, run, entry, group);
    names->kept = private_ref(names, text, group, "kept");
    names->passed = private_ref(names, text, group, "passed");
    names->by = private_ref(names, text, group, "by");
    names->start = private_ref(names, text, group, "start");
    names->group_fence = private_ref(names, text, group, "fence");
    names->tried = private_ref(names, text, group, "tried");
    strbuf_release(&scope);
}

void names_release(struct names *names)
{
    arena_release(&names->arena);
    *names = (struct names){0};
}
