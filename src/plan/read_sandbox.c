/* SPDX-License-Identifier: MIT */
/*
 * The key `sandbox`. It is inherited as a whole: a list of a near level does
 * not add to the list of a farther level, so that a reader of the plan sees in
 * one place what a session may do.
 */
#include "plan/settings.h"

#include "plan/plan_internal.h"

#include <string.h>

enum { ITEMS_MAX = 100 };

#define SANDBOX(member, key, reader)                                           \
    FIELD(struct plan_sandbox, member, key, reader)

typedef bool (*check_fn)(const char *text);

/* Read a list of strings that pass a check, as a NULL-terminated list. */
static void
read_list(const struct entry *entry, check_fn check, const char *wanted)
{
    struct reader *reader = entry->reader;
    const struct node *node = entry->value;
    if (node->kind != NODE_LIST || node->count > ITEMS_MAX) {
        fields_wrong(entry, wanted);
        return;
    }
    struct arena *arena = &reader->plan->private->arena;
    const char **list = arena_alloc(arena, node->count + 1, sizeof(list[0]));
    uint32_t count = 0;
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        if (!node_is_scalar(item) || !check(item->text)) {
            fields_expected(reader,
                            item,
                            QUOTED_TEXT(entry->field->name),
                            wanted);
            continue;
        }
        list[count++] = arena_strndup(arena, item->text, item->count);
    }
    *(const char *const **)entry->out = list;
}

/* A path: absolute, relative to the plan, or in the home directory. */
static bool is_path(const char *text)
{
    return text[0] != '\0' && strpbrk(text, "\n\t") == NULL &&
           strlen(text) < PLAN_PATH_BYTES_MAX &&
           (text[0] != '~' || text[1] == '/' || text[1] == '\0');
}

static bool is_variable(const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t len = strlen(text);
    return len > 0 && strspn(text, letters) == len &&
           (text[0] < '0' || text[0] > '9');
}

static void read_paths(const struct entry *entry)
{
    read_list(entry,
              is_path,
              "a list of at most 100 paths: absolute, relative to the plan, "
              "or ~/...");
}

static void read_variables(const struct entry *entry)
{
    read_list(entry,
              is_variable,
              "a list of at most 100 names of environment variables");
}

void plan_read_sandbox(const struct entry *entry)
{
    static const struct field fields[] = {
        {SANDBOX(env, "env", read_variables)},
        {SANDBOX(network, "network", fields_bool)},
        {SANDBOX(read, "read", read_paths)},
        {SANDBOX(write, "write", read_paths)},
    };
    static const struct schema schema = SCHEMA("\"sandbox\"", fields);
    static const char *const none[] = {NULL};
    struct plan_sandbox *sandbox =
        arena_alloc(&entry->reader->plan->private->arena, 1, sizeof(*sandbox));
    *sandbox = (struct plan_sandbox){
        .on = !fields_is_word(entry->value, "false"),
        .network = true,
        .write = none,
        .read = none,
        .env = none,
    };
    if (entry->value->kind == NODE_MAPPING) {
        (void)fields_read(entry->reader, entry->value, &schema, sandbox);
    } else if (sandbox->on && !fields_is_word(entry->value, "true")) {
        fields_wrong(entry,
                     "true, false, or a mapping with write, read, network and "
                     "env");
        return;
    }
    *(const struct plan_sandbox **)entry->out = sandbox;
}

static bool same_list(const char *const *a, const char *const *b)
{
    while (*a != NULL && *b != NULL && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return *a == *b;
}

bool plan_same_sandbox(const struct plan_sandbox *a,
                       const struct plan_sandbox *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return a->on == b->on && a->network == b->network &&
           same_list(a->write, b->write) && same_list(a->read, b->read) &&
           same_list(a->env, b->env);
}
