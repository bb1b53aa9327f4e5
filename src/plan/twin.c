/* SPDX-License-Identifier: MIT */
#include "plan/twin.h"

#include <string.h>

/* Remove the last component. */
static void cut(struct strbuf *out, size_t begin)
{
    while (out->len > begin && out->text[out->len - 1] != '/') {
        out->len--;
    }
    out->len -= out->len > begin ? 1 : 0;
    if (out->text != NULL) {
        out->text[out->len] = '\0';
    }
}

static void add_components(struct strbuf *out, size_t begin, const char *path)
{
    while (*path != '\0') {
        size_t len = strcspn(path, "/");
        if (len == 2 && memcmp(path, "..", 2) == 0) {
            cut(out, begin);
        } else if (len > 0 && !(len == 1 && path[0] == '.')) {
            strbuf_adds(out, "/");
            strbuf_add(out, path, len);
        }
        path += len + (path[len] == '/' ? 1 : 0);
    }
}

void twin_add_path(struct strbuf *out, const char *folder, const char *path)
{
    size_t begin = out->len;
    if (path[0] != '/') {
        add_components(out, begin, folder);
    }
    add_components(out, begin, path);
}

void twin_add_place(struct strbuf *out,
                    const char *folder,
                    const struct plan_repo *repo)
{
    if (repo->url != NULL) {
        strbuf_adds(out, repo->url);
    } else {
        twin_add_path(out, folder, repo->path);
    }
}

/* Whether both are directories, or both are on servers. */
static bool is_alike(const struct plan_repo *a, const struct plan_repo *b)
{
    return (a->url != NULL) == (b->url != NULL);
}

uint32_t twin_find(const struct plan *plan, const char *folder, uint32_t ix)
{
    if (plan->old_rules || !plan_is_git(&plan->repos[ix])) {
        return PLAN_NONE;
    }
    struct strbuf own = {0};
    struct strbuf other = {0};
    uint32_t found = PLAN_NONE;
    twin_add_place(&own, folder, &plan->repos[ix]);
    for (uint32_t at = 0; at < plan->repo_count && found == PLAN_NONE; at++) {
        if (at != ix && plan_is_git(&plan->repos[at]) &&
            is_alike(&plan->repos[at], &plan->repos[ix])) {
            strbuf_clear(&other);
            twin_add_place(&other, folder, &plan->repos[at]);
            if (strcmp(strbuf_text(&own), strbuf_text(&other)) == 0) {
                found = at;
            }
        }
    }
    strbuf_release(&own);
    strbuf_release(&other);
    return found;
}

const char *twin_name(const struct plan *plan, const char *folder, uint32_t ix)
{
    return twin_find(plan, folder, ix) != PLAN_NONE ? plan->repos[ix].name
                                                    : NULL;
}
