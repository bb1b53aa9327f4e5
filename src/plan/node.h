/* SPDX-License-Identifier: MIT */
/*
 * node: YAML tree whose nodes know their position.
 *
 * Only a subset of YAML is accepted: mappings, lists and scalars in one UTF-8
 * document. Anchors, aliases, tags, merge keys, duplicate keys and control
 * characters are errors. A scalar stays a string, with a flag for quotes, so
 * that the reader can distinguish 3 from "3".
 *
 * Input that begins like a JSON object, {"..., is JSON. Its strings are marked,
 * since JSON must quote strings that YAML need not, and may contain surrogate
 * pairs.
 *
 * All nodes are in one array, a container right before its children, so two
 * functions walk a tree:
 *     for (n = node_first(list); n != NULL; n = node_next(n)) ...
 * The children of a mapping are key, value, key, value ...:
 *     for (k = node_first(map); k != NULL; k = node_next_key(k)) ...
 * or NODE_EACH_KEY(map), which skips keys that are NODE_BAD.
 */
#ifndef PLAN_NODE_H
#define PLAN_NODE_H

#include "base/arena.h"
#include "base/macros.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maxima for one file. */
enum {
    NODE_FILE_BYTES_MAX = 256 << 20,
    NODE_COUNT_MAX = 32 << 20,
    NODE_DEPTH_MAX = 64,
    NODE_SCALAR_BYTES_MAX = 1 << 20,
    NODE_GAP_BYTES_MAX = 4 << 20, /* bytes between two nodes */
};

enum node_kind {
    NODE_MAPPING,
    NODE_LIST,
    NODE_PLAIN,  /* a scalar without quotes */
    NODE_QUOTED, /* a scalar with quotes, or a block scalar (| or >) */
    NODE_BAD,    /* an error was reported for it; readers skip it */
};

struct node {
    const char *text; /* scalars: NUL-terminated, no NUL inside; else NULL */
    uint32_t count;   /* scalars: bytes; mappings: pairs; lists: entries */
    uint32_t skip;    /* nodes from here to the next sibling; 0: the last */
    uint32_t line;    /* 1-based */
    uint32_t column;  /* 1-based, in characters */
    enum node_kind kind;
    bool json; /* NODE_QUOTED: a JSON string, for which JSON requires quotes */
};

/* Embedded by its owner; starts as {0}. */
struct node_tree {
    struct node *nodes; /* nodes[0] is the root */
    uint32_t count;     /* 0: the document is empty */
    uint32_t capacity;
    struct arena texts;
};

/*
 * Parse `len` bytes of `text` into an empty tree and add all errors to
 * `errors`. Return false if no tree could be built; if true, parts of the tree
 * may still be NODE_BAD.
 */
MUST_USE bool node_tree_read(struct node_tree *tree,
                             const char *text,
                             size_t len,
                             struct plan_errors *errors);

/* Free the memory; the tree is then empty. */
void node_tree_release(struct node_tree *tree);

/* Return the first child, or NULL. For a mapping: its first key. */
static inline const struct node *node_first(const struct node *node)
{
    bool parent = node->kind == NODE_MAPPING || node->kind == NODE_LIST;
    return parent && node->count > 0 ? node + 1 : NULL;
}

/* Return the next sibling, or NULL. For a key: its value. */
static inline const struct node *node_next(const struct node *node)
{
    return node->skip > 0 ? node + node->skip : NULL;
}

/* Return the value of a key. */
static inline const struct node *node_value(const struct node *key)
{
    return key + key->skip;
}

/* Return the next key of the same mapping, or NULL. */
static inline const struct node *node_next_key(const struct node *key)
{
    return node_next(node_value(key));
}

/* Return the key of that name; NULL if absent or `node` is not a mapping. */
const struct node *node_find_key(const struct node *node, const char *name);

/* Return this key, or the next key that is not NODE_BAD, or NULL. */
static inline const struct node *node_good_key(const struct node *key)
{
    while (key != NULL && key->kind == NODE_BAD) {
        key = node_next_key(key);
    }
    return key;
}

/* Iterate over the keys that are not NODE_BAD, as `key`. */
#define NODE_EACH_KEY(mapping)                                                 \
    for (const struct node *key = node_good_key(node_first(mapping));          \
         key != NULL;                                                          \
         key = node_good_key(node_next_key(key)))

static inline bool node_is_scalar(const struct node *node)
{
    return node->kind == NODE_PLAIN || node->kind == NODE_QUOTED;
}

static inline struct plan_mark node_mark(const struct node *node)
{
    return (struct plan_mark){.line = node->line, .column = node->column};
}

#endif /* PLAN_NODE_H */
