/* SPDX-License-Identifier: MIT */
/*
 * node: YAML as a tree of nodes that know where they stand.
 *
 * Only the plain part of YAML is let through: mappings, lists and scalars in
 * one UTF-8 document. Anchors, aliases, tags, merge keys, duplicate keys and
 * control characters are errors. A scalar stays a text; whether it was quoted
 * is kept, so that the reader can tell 3 from "3".
 *
 * A text that begins like a JSON object, {"..., is JSON. Its strings are
 * marked, since JSON must quote what YAML need not, and may have surrogate
 * pairs.
 *
 * All nodes are in one array, a container right before its children, so a tree
 * is walked with two functions:
 *     for (n = node_first(list); n != NULL; n = node_next(n)) ...
 * The children of a mapping are key, value, key, value ...:
 *     for (k = node_first(map); k != NULL; k = node_next_key(k)) ...
 * or NODE_EACH_KEY(map), which passes over keys that are NODE_BAD.
 */
#ifndef PLAN_NODE_H
#define PLAN_NODE_H

#include "base/arena.h"
#include "base/macros.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ceilings for one file. */
enum {
    NODE_FILE_BYTES_MAX = 256 << 20,
    NODE_COUNT_MAX = 32 << 20,
    NODE_DEPTH_MAX = 64,
    NODE_SCALAR_BYTES_MAX = 1 << 20,
    NODE_GAP_BYTES_MAX = 4 << 20, /* of text between two nodes */
};

enum node_kind {
    NODE_MAPPING,
    NODE_LIST,
    NODE_PLAIN,  /* a scalar without quotes */
    NODE_QUOTED, /* a scalar with quotes, or a block of text (| or >) */
    NODE_BAD,    /* an error was reported for it; readers pass over it */
};

struct node {
    const char *text; /* scalars: NUL-terminated, no NUL inside; else NULL */
    uint32_t count;   /* scalars: bytes; mappings: pairs; lists: entries */
    uint32_t skip;    /* nodes from here to the next sibling; 0: the last */
    uint32_t line;    /* 1-based */
    uint32_t column;  /* 1-based, in characters */
    enum node_kind kind;
    bool json; /* NODE_QUOTED: a string of JSON, which knows no plain words */
};

/* Made to be embedded; starts as {0}. */
struct node_tree {
    struct node *nodes; /* nodes[0] is the root */
    uint32_t count;     /* 0: the document is empty */
    uint32_t capacity;
    struct arena texts;
};

/*
 * Read `len` bytes of `text` into an empty tree. False when there is no tree
 * to go on with; true when there is one, of which parts may be NODE_BAD. What
 * is wrong is added to `errors` in both cases.
 */
MUST_USE bool node_tree_read(struct node_tree *tree,
                             const char *text,
                             size_t len,
                             struct plan_errors *errors);

/* Give the memory back; the tree is then empty. */
void node_tree_release(struct node_tree *tree);

/* First child, or NULL. For a mapping that is its first key. */
static inline const struct node *node_first(const struct node *node)
{
    bool parent = node->kind == NODE_MAPPING || node->kind == NODE_LIST;
    return parent && node->count > 0 ? node + 1 : NULL;
}

/* Next sibling, or NULL. For a key that is its value. */
static inline const struct node *node_next(const struct node *node)
{
    return node->skip > 0 ? node + node->skip : NULL;
}

/* The value of a key. */
static inline const struct node *node_value(const struct node *key)
{
    return key + key->skip;
}

/* The next key of the same mapping, or NULL. */
static inline const struct node *node_next_key(const struct node *key)
{
    return node_next(node_value(key));
}

/* The key of that name in a mapping; NULL: it has none, or is no mapping. */
const struct node *node_find_key(const struct node *node, const char *name);

/* This key, or the next one that could be read; NULL: there is none. */
static inline const struct node *node_good_key(const struct node *key)
{
    while (key != NULL && key->kind == NODE_BAD) {
        key = node_next_key(key);
    }
    return key;
}

/* Each key of a mapping that could be read, as `key`. */
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
