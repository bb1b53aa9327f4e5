/* SPDX-License-Identifier: MIT */
/*
 * The keys of a repo that say how its checkouts are set up, and `prepare`.
 *
 * Paths are stored without "./", "//" and a final "/", so that equal paths are
 * equal strings. A path never leaves the repository and never enters ".git":
 * sluice-git copies, keeps and excludes what it names.
 */
#include "plan/plan_internal.h"

#include <string.h>
#include <strings.h>

/*
 * Write the path of `node` without empty components and "." into `out`, which
 * has room for it; return the error in it, or NULL.
 */
static const char *normalise(const struct node *node, char *out)
{
    const char *at = node->text;
    size_t len = 0;
    if (*at == '/') {
        return "it must be relative to the repository";
    }
    if (*at == '~') {
        return "it must not start with \"~\"";
    }
    while (*at != '\0') {
        size_t part = strcspn(at, "/");
        if (part == 2 && strncmp(at, "..", 2) == 0) {
            return "it must not contain \"..\"";
        }
        if (part == 4 && strncasecmp(at, ".git", 4) == 0) {
            return "it must not contain \".git\"";
        }
        if (part > 0 && !(part == 1 && *at == '.')) {
            len += len > 0 ? 1 : 0;
            if (len > 0) {
                out[len - 1] = '/';
            }
            memcpy(out + len, at, part);
            len += part;
        }
        at += part + (at[part] == '/' ? 1 : 0);
    }
    out[len] = '\0';
    return len > 0 ? NULL : "it must not be the whole repository";
}

static bool has(const struct plan_paths *paths, const char *path)
{
    for (uint32_t ix = 0; ix < paths->count; ix++) {
        if (strcmp(paths->items[ix], path) == 0) {
            return true;
        }
    }
    return false;
}

void plan_read_paths(const struct entry *entry)
{
    struct reader *reader = entry->reader;
    const struct node *node = entry->value;
    const char *label = QUOTED_TEXT(entry->field->name);
    struct plan_paths *out = entry->out;
    if (!fields_is_list(reader, node, label)) {
        return;
    }
    if (node->count > PLAN_PATHS_MAX) {
        fields_expected(reader, node, label, "a list of at most 64 paths");
        return;
    }
    struct arena *arena = &reader->plan->private->arena;
    out->items = arena_alloc(arena, node->count + 1, sizeof(out->items[0]));
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        if (!fields_check_line(reader, item, "a path", PLAN_PATH_BYTES_MAX)) {
            continue;
        }
        char *path = arena_alloc(arena, item->count + 1, 1);
        const char *fault = normalise(item, path);
        fault = fault == NULL && has(out, path) ? "it is listed twice" : fault;
        if (fault != NULL) {
            REPORT(reader,
                   item,
                   "invalid path %s in %s: %s",
                   QUOTED(item),
                   label,
                   fault);
            continue;
        }
        out->items[out->count++] = path;
    }
}

void plan_read_remote(const struct entry *entry)
{
    if (fields_is_word(entry->value, "keep")) {
        *(bool *)entry->out = true;
    } else if (!fields_is_word(entry->value, "read")) {
        fields_wrong(entry, "read or keep");
    }
}

void plan_check_checkout(struct reader *reader,
                         const struct node *key,
                         const struct plan_repo *repo)
{
    static const char *const names[] = {"keep", "copy", "remote", "fetch"};
    if (repo->base != NULL || node_find_key(node_value(key), "base") != NULL) {
        return;
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        const struct node *given = node_find_key(node_value(key), names[ix]);
        if (given != NULL) {
            REPORT(reader,
                   given,
                   "repo %s has \"%s\" but no \"base\", so it has no "
                   "checkouts: add a \"base\"",
                   QUOTED(key),
                   names[ix]);
        }
    }
}

/*
 * Read a URL as git takes it: with a scheme, HOST:PATH for ssh, or the absolute
 * path of a repository that all machines reach.
 */
void plan_read_hub(const struct entry *entry)
{
    const char *text = fields_check_line(entry->reader,
                                         entry->value,
                                         QUOTED_TEXT(entry->field->name),
                                         PLAN_PATH_BYTES_MAX);
    if (text == NULL) {
        return;
    }
    static const char *const schemes[] = {
        "file://",
        "git://",
        "http://",
        "https://",
        "ssh://",
    };
    bool known = text[0] == '/';
    for (size_t ix = 0; ix < ARRAY_COUNT(schemes); ix++) {
        size_t len = strlen(schemes[ix]);
        known = known ||
                (strncmp(text, schemes[ix], len) == 0 && text[len] != '\0');
    }
    size_t host = strcspn(text, ":/");
    if (host > 0 && text[host] == ':' && text[host + 1] != '\0' &&
        text[host + 1] != ':' && strncmp(text + host, "://", 3) != 0) {
        known = true; /* HOST:PATH */
    }
    if (!known || text[0] == '-' || strpbrk(text, " \t") != NULL) {
        REPORT(entry->reader,
               entry->value,
               "invalid \"url\" %s: it must begin with ssh://, https://, "
               "http://, git://, file:// or /, or be HOST:PATH",
               QUOTED(entry->value));
        return;
    }
    fields_line(entry);
}

/* Keys of a repo that a URL replaces, and why. */
static const struct {
    const char *name;
    const char *why;
} replaced[] = {
    {"path", "a repo has one or the other"},
    {"copy", "there are no files of yours to copy"},
    {"fetch", "its base is always fetched"},
    {"push", "its branches are always pushed there"},
};

void plan_check_url(struct reader *reader,
                    const struct node *key,
                    const struct plan_repo *repo)
{
    const struct node *url = node_find_key(node_value(key), "url");
    if (url == NULL) {
        return;
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(replaced); ix++) {
        const struct node *given =
            node_find_key(node_value(key), replaced[ix].name);
        if (given != NULL) {
            REPORT(reader,
                   given,
                   "repo %s has a \"url\" and \"%s\", but %s: remove \"%s\"",
                   QUOTED(key),
                   replaced[ix].name,
                   replaced[ix].why,
                   replaced[ix].name);
        }
    }
    if (repo->base == NULL && node_find_key(node_value(key), "base") == NULL) {
        REPORT(reader,
               url,
               "repo %s has a \"url\" but no \"base\": add the branch that "
               "work starts from",
               QUOTED(key));
    }
}

void plan_read_prepare(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct settings, plan.prepare, "run", fields_shell),
         .required = true},
        {FIELD(struct settings, plan.prepare_once, "once", fields_bool)},
    };
    static const struct schema schema = SCHEMA("\"prepare\"", fields);
    struct settings *settings = entry->out;
    if (entry->value->kind == NODE_MAPPING) {
        (void)fields_read(entry->reader, entry->value, &schema, settings);
    } else if (node_is_scalar(entry->value)) {
        struct entry text = *entry;
        text.out = &settings->plan.prepare;
        fields_shell(&text);
    } else {
        fields_wrong(entry, "a shell command, or a mapping with run and once");
    }
}
