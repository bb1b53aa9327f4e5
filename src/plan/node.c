/* SPDX-License-Identifier: MIT */
/*
 * YAML parser on top of libyaml.
 *
 * The bytes are checked before libyaml gets them: libyaml would report an
 * offset, not a line, and would guess other encodings. Then each of its events
 * becomes a node. Its document interface is not used because it is quadratic in
 * depth and expands aliases.
 *
 * Cost is bounded from the first byte: containers by NODE_DEPTH_MAX, nodes by
 * NODE_COUNT_MAX, and the input that libyaml reads before its next event (one
 * scalar, comments) by the read handler, which counts it.
 */
#include "plan/node.h"

#include "base/invariant.h"
#include "base/strmap.h"
#include "plan/plan_internal.h"

#include <string.h>
#include <yaml.h>

enum {
    FEW_KEYS = 12,     /* up to here, duplicate keys are found pairwise */
    BLANK_SLOTS = 256, /* initial capacity */
};

struct builder {
    struct node_tree *tree;
    struct plan_errors *errors;
    const char *text;
    size_t len;
    bool json;                     /* see node.h */
    size_t checked;                /* bytes checked */
    struct plan_mark place;        /* of the next byte to check */
    size_t at;                     /* bytes handed to libyaml */
    size_t at_last_event;          /* the same, at the last event */
    bool too_long;                 /* the read handler has failed */
    bool stop;                     /* fatal error: no tree */
    bool second;                   /* a second document has started */
    uint32_t open[NODE_DEPTH_MAX]; /* containers from the root to here */
    uint32_t last[NODE_DEPTH_MAX]; /* newest child of each, 0 if none */
    uint32_t depth;
    struct plan_mark end; /* of the last event */
};

/* Report a fatal error: no tree will be built. */
#define STOP(builder, mark, ...)                                               \
    do {                                                                       \
        plan_errors_add((builder)->errors, (mark), __VA_ARGS__);               \
        (builder)->stop = true;                                                \
    } while (0)

/* Decode the UTF-8 character at `text`; return its length, 0 if invalid. */
static size_t decode(const unsigned char *text, size_t left, uint32_t *code_out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = text[0] < 0x80             ? 1
                 : (text[0] & 0xe0) == 0xc0 ? 2
                 : (text[0] & 0xf0) == 0xe0 ? 3
                 : (text[0] & 0xf8) == 0xf0 ? 4
                                            : 0;
    if (len == 0 || len > left) {
        return 0;
    }
    uint32_t code = len == 1 ? text[0] : text[0] & (0x7fU >> len);
    for (size_t ix = 1; ix < len; ix++) {
        if ((text[ix] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[ix] & 0x3fU);
    }
    if (code < least[len] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    *code_out = code;
    return len;
}

/* Return the error in a character, or NULL. */
static const char *fault_of(uint32_t code)
{
    if (code == '\t' || code == '\n' || code == '\r' || code == 0x85) {
        return NULL;
    }
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) {
        return "control character";
    }
    if (code == 0xfeff || code == 0xfffe || code == 0xffff) {
        return "non-text character";
    }
    if ((code >= 0x202a && code <= 0x202e) ||
        (code >= 0x2066 && code <= 0x2069)) {
        return "bidirectional formatting character";
    }
    return NULL;
}

/* Whether the eight bytes at `text` are all printable ASCII. */
static bool is_plain_word(const char *text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    memcpy(&word, text, sizeof(word));
    uint64_t below_space = (word - ones * 0x20) & ~word;
    uint64_t is_delete = word ^ ones * 0x7f;
    is_delete = (is_delete - ones) & ~is_delete;
    return ((word | below_space | is_delete) & ones * 0x80) == 0;
}

/* Whether libyaml treats this character as a line break. */
static bool ends_line(const struct builder *builder, uint32_t code)
{
    size_t next = builder->checked;
    if (code == '\r') {
        return next >= builder->len || builder->text[next] != '\n';
    }
    return code == '\n' || code == 0x85 || code == 0x2028 || code == 0x2029;
}

/* Check the next character; false after an error. */
static bool check_character(struct builder *builder)
{
    const unsigned char *at =
        (const unsigned char *)builder->text + builder->checked;
    uint32_t code = 0;
    size_t len = decode(at, builder->len - builder->checked, &code);
    if (len == 0) {
        STOP(builder,
             builder->place,
             "byte 0x%02x is not UTF-8: save the file as UTF-8",
             at[0]);
        return false;
    }
    if (fault_of(code) != NULL) {
        STOP(builder,
             builder->place,
             "%s U+%04X is not allowed",
             fault_of(code),
             (unsigned)code);
        return false;
    }
    builder->checked += len;
    builder->place.column++;
    if (ends_line(builder, code)) {
        builder->place.line++;
        builder->place.column = 1;
    }
    return true;
}

/* Check the bytes up to `end`; report the first that is invalid. */
static bool check_bytes(struct builder *builder, size_t end)
{
    while (builder->checked < end) {
        if (builder->len - builder->checked >= 8 &&
            is_plain_word(builder->text + builder->checked)) {
            builder->checked += 8;
            builder->place.column += 8;
        } else if (!check_character(builder)) {
            return false;
        }
    }
    return true;
}

static int read_more(void *data, unsigned char *out, size_t size, size_t *done)
{
    struct builder *builder = data;
    if (builder->at - builder->at_last_event > NODE_GAP_BYTES_MAX) {
        builder->too_long = true;
        return 0;
    }
    size_t left = builder->len - builder->at;
    size_t count = size < left ? size : left;
    if (!check_bytes(builder, builder->at + count)) {
        return 0;
    }
    if (count > 0) {
        memcpy(out, builder->text + builder->at, count);
    }
    builder->at += count;
    *done = count;
    return 1;
}

static struct plan_mark mark_of(yaml_mark_t mark)
{
    return (struct plan_mark){
        .line = (uint32_t)mark.line + 1,
        .column = (uint32_t)mark.column + 1,
    };
}

/* Messages of libyaml, each with a remedy. */
struct advice {
    const char *problem;
    const char *text;
};

static const char *advice_for(const char *problem)
{
    static const struct advice list[] = {
        {"mapping values are not allowed in this context",
         "\": \" is not allowed here; quote a string that contains it, and "
         "check the indentation"},
        {"did not find expected key",
         "unexpected text; check the indentation, and quote a string that "
         "starts with a special character"},
        {"could not find expected ':'",
         "missing \":\", or a string needs quotes"},
        {"did not find expected ',' or '}'", "missing \",\" or closing \"}\""},
        {"did not find expected ',' or ']'", "missing \",\" or closing \"]\""},
        {"did not find expected '-' indicator",
         "unexpected text; entries of a list start with \"- \" in the same "
         "column"},
        {"found a tab character that violates indentation",
         "tabs are not allowed for indentation; use spaces"},
        {"found character that cannot start any token",
         "a string cannot start with this character; quote it"},
        {"found unknown escape character",
         "unknown escape; write \\\\ for a backslash in double quotes, or use "
         "single quotes"},
        {"found invalid Unicode character escape code",
         "invalid character escape; write \\UXXXXXXXX above U+FFFF, or a pair "
         "\\uD8XX\\uDCXX in JSON"},
        {"block sequence entries are not allowed in this context",
         "list entry \"- \" is not allowed here; start it on a new line"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(list); ix++) {
        if (strcmp(problem, list[ix].problem) == 0) {
            return list[ix].text;
        }
    }
    return problem;
}

/* Report a syntax error that libyaml found. */
static void report_syntax(struct builder *builder, const yaml_parser_t *parser)
{
    INVARIANT(parser->error != YAML_MEMORY_ERROR);
    if (builder->stop) {
        return; /* an invalid byte was reported */
    }
    if (builder->too_long) {
        STOP(
            builder,
            builder->end,
            "more than %d MiB without a value follow: a string may have %d MiB",
            NODE_GAP_BYTES_MAX >> 20,
            NODE_SCALAR_BYTES_MAX >> 20);
        return;
    }
    const char *problem = parser->problem != NULL ? parser->problem : "invalid";
    struct plan_mark mark = mark_of(parser->problem_mark);
    if (parser->context != NULL &&
        strcmp(parser->context, "while scanning a quoted scalar") == 0 &&
        strcmp(problem, "found unexpected end of stream") == 0) {
        STOP(builder,
             mark_of(parser->context_mark),
             "unclosed quote (the file ends at %u:%u)",
             mark.line,
             mark.column);
        return;
    }
    if (parser->context == NULL ||
        strcmp(parser->context, "while scanning for the next token") == 0) {
        bool tab = parser->buffer.pointer < parser->buffer.last &&
                   *parser->buffer.pointer == '\t';
        STOP(builder,
             mark,
             "%s",
             tab ? "tabs are not allowed for indentation; use spaces"
                 : advice_for(problem));
        return;
    }
    struct plan_mark context = mark_of(parser->context_mark);
    STOP(builder,
         mark,
         "%s (%s at %u:%u)",
         advice_for(problem),
         parser->context,
         context.line,
         context.column);
}

/* Append a node as the newest child of the innermost open container. */
static struct node *add_node(struct builder *builder, struct plan_mark mark)
{
    struct node_tree *tree = builder->tree;
    if (tree->count >= NODE_COUNT_MAX) {
        STOP(builder, mark, "more than %d values", NODE_COUNT_MAX);
        return NULL;
    }
    MEM_GROW(tree->nodes, tree->count, tree->capacity);
    uint32_t ix = tree->count++;
    if (builder->depth > 0) {
        uint32_t *last = &builder->last[builder->depth - 1];
        if (*last != 0) {
            tree->nodes[*last].skip = ix - *last;
        }
        *last = ix;
        tree->nodes[builder->open[builder->depth - 1]].count++;
    }
    struct node *node = &tree->nodes[ix];
    *node = (struct node){.line = mark.line, .column = mark.column};
    return node;
}

/* Report anchors and tags, which libyaml attaches to the node. */
static void check_properties(struct builder *builder,
                             struct plan_mark mark,
                             const yaml_char_t *anchor,
                             const yaml_char_t *tag)
{
    if (anchor != NULL) {
        plan_errors_add(builder->errors,
                        mark,
                        "anchor \"&%.64s\" is not allowed: write it out",
                        (const char *)anchor);
    }
    if (tag != NULL) {
        static const char core[] = "tag:yaml.org,2002:";
        const char *text = (const char *)tag;
        bool is_core = strncmp(text, core, strlen(core)) == 0;
        plan_errors_add(builder->errors,
                        mark,
                        "tag \"%s%.64s\" is not allowed: remove it",
                        is_core ? "!!" : "",
                        is_core ? text + strlen(core) : text);
    }
}

static void open_container(struct builder *builder,
                           enum node_kind kind,
                           struct plan_mark mark)
{
    if (builder->depth == NODE_DEPTH_MAX) {
        STOP(builder, mark, "nested deeper than %d levels", NODE_DEPTH_MAX);
        return;
    }
    struct node *node = add_node(builder, mark);
    if (node == NULL) {
        return;
    }
    node->kind = kind;
    builder->open[builder->depth] = builder->tree->count - 1;
    builder->last[builder->depth] = 0;
    builder->depth++;
}

/*
 * libyaml does not support surrogate pairs. Before it reads JSON, each
 * \uD83D\uDE00 is replaced by \a\U0001F600, which has the same length, so that
 * positions stay correct. The BEL before a character of four bytes is then
 * dropped: JSON has no \a, and any other BEL is an error.
 */
static bool is_filler(const unsigned char *text, size_t left)
{
    return left > 1 && text[0] == '\a' && text[1] >= 0xf0;
}

/* Remove the fillers; return the new length. */
static size_t drop_fillers(char *text, size_t len)
{
    size_t kept = 0;
    for (size_t ix = 0; ix < len; ix++) {
        if (!is_filler((const unsigned char *)text + ix, len - ix)) {
            text[kept++] = text[ix];
        }
    }
    text[kept] = '\0';
    return kept;
}

/* Parse the four hexadecimal digits of \uXXXX at `text`; 0: invalid. */
static uint32_t surrogate_at(const char *text, size_t left)
{
    uint32_t code = 0;
    if (left < 6 || text[0] != '\\' || text[1] != 'u') {
        return 0;
    }
    for (size_t ix = 2; ix < 6; ix++) {
        char digit = text[ix];
        uint32_t value = digit >= '0' && digit <= '9'   ? (uint32_t)digit - '0'
                         : digit >= 'a' && digit <= 'f' ? (uint32_t)digit - 87
                         : digit >= 'A' && digit <= 'F' ? (uint32_t)digit - 55
                                                        : 16;
        if (value == 16) {
            return 0;
        }
        code = code << 4 | value;
    }
    return code;
}

/* Copy the input with its surrogate pairs replaced; the caller frees it. */
static char *replace_surrogates(const char *text, size_t len)
{
    char *copy = mem_strndup(text, len);
    for (size_t ix = 0; ix + 1 < len; ix++) {
        if (copy[ix] != '\\') {
            continue;
        }
        uint32_t high = surrogate_at(text + ix, len - ix);
        uint32_t low = high >= 0xd800 && high <= 0xdbff
                           ? surrogate_at(text + ix + 6, len - ix - 6)
                           : 0;
        if (low >= 0xdc00 && low <= 0xdfff) {
            char made[13];
            uint32_t code = 0x10000 + ((high - 0xd800) << 10) + low - 0xdc00;
            (void)snprintf(made, sizeof(made), "\\a\\U%08X", code);
            memcpy(copy + ix, made, 12);
            ix += 11;
        } else {
            ix++; /* skip the escaped character: it may be a backslash */
        }
    }
    return copy;
}

/* Whether the input begins like a JSON object. */
static bool begins_json(const char *text, size_t len)
{
    size_t at = 0;
    bool brace = false;
    while (at < len &&
           ((text[at] != '\0' && strchr(" \t\r\n", text[at]) != NULL) ||
            (text[at] == '{' && !brace))) {
        brace = brace || text[at] == '{';
        at++;
    }
    return brace && at < len && text[at] == '"';
}

/* Check that a scalar with escapes is valid; otherwise report it. */
static bool check_escapes(struct builder *builder,
                          struct plan_mark mark,
                          const unsigned char *text,
                          size_t len)
{
    size_t step = 0;
    for (size_t ix = 0; ix < len; ix += step) {
        uint32_t code = 0;
        step = decode(text + ix, len - ix, &code);
        INVARIANT(step > 0);
        bool filler = builder->json && is_filler(text + ix, len - ix);
        if (!filler && fault_of(code) != NULL) {
            plan_errors_add(builder->errors,
                            mark,
                            "%s U+%04X is not allowed",
                            fault_of(code),
                            (unsigned)code);
            return false;
        }
    }
    return true;
}

static void add_scalar(struct builder *builder, const yaml_event_t *event)
{
    struct plan_mark mark = mark_of(event->start_mark);
    const yaml_char_t *text = event->data.scalar.value;
    size_t len = event->data.scalar.length;
    yaml_scalar_style_t style = event->data.scalar.style;
    if (len > NODE_SCALAR_BYTES_MAX) {
        STOP(builder,
             mark,
             "a string may have at most %d bytes",
             NODE_SCALAR_BYTES_MAX);
        return;
    }
    check_properties(builder,
                     mark,
                     event->data.scalar.anchor,
                     event->data.scalar.tag);
    struct node *node = add_node(builder, mark);
    if (node == NULL) {
        return;
    }
    node->kind = style == YAML_PLAIN_SCALAR_STYLE ? NODE_PLAIN : NODE_QUOTED;
    if (style == YAML_DOUBLE_QUOTED_SCALAR_STYLE &&
        !check_escapes(builder, mark, text, len)) {
        node->kind = NODE_BAD;
        return;
    }
    char *copy = arena_strndup(&builder->tree->texts, (const char *)text, len);
    node->json = builder->json && style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    node->count = (uint32_t)(node->json ? drop_fillers(copy, len) : len);
    node->text = copy;
}

/* Report a duplicate key and mark it NODE_BAD. */
static void report_duplicate(struct builder *builder,
                             struct node *key,
                             const struct node *first)
{
    REPORT(builder,
           key,
           "duplicate key %s (first at %u:%u)",
           QUOTED(key),
           first->line,
           first->column);
    key->kind = NODE_BAD;
}

/* Mark invalid keys NODE_BAD. */
static void check_key(struct builder *builder, struct node *key)
{
    if (key->kind == NODE_MAPPING || key->kind == NODE_LIST) {
        REPORT(builder, key, "a key must be a string");
    } else if (key->kind == NODE_PLAIN && strcmp(key->text, "<<") == 0) {
        REPORT(builder, key, "merge key \"<<\" is not allowed: write it out");
    } else if (node_is_scalar(key) && key->count == 0) {
        REPORT(builder, key, "empty key");
    } else {
        return;
    }
    key->kind = NODE_BAD;
}

/* Return the key after `key`, or NULL. */
static struct node *next_key(struct node *key)
{
    struct node *value = key + key->skip;
    return value->skip > 0 ? value + value->skip : NULL;
}

static void check_few_keys(struct builder *builder, struct node *first)
{
    struct node *keys[FEW_KEYS];
    uint32_t count = 0;
    for (struct node *key = first; key != NULL; key = next_key(key)) {
        check_key(builder, key);
        if (key->kind == NODE_BAD) {
            continue;
        }
        for (uint32_t ix = 0; ix < count; ix++) {
            if (keys[ix]->count == key->count &&
                memcmp(keys[ix]->text, key->text, key->count) == 0) {
                report_duplicate(builder, key, keys[ix]);
                break;
            }
        }
        if (key->kind != NODE_BAD) {
            keys[count++] = key;
        }
    }
}

static void check_many_keys(struct builder *builder, struct node *first)
{
    struct strmap seen = {0};
    const struct node *nodes = builder->tree->nodes;
    for (struct node *key = first; key != NULL; key = next_key(key)) {
        check_key(builder, key);
        if (key->kind == NODE_BAD) {
            continue;
        }
        uint32_t ix = (uint32_t)(key - nodes);
        uint32_t before = strmap_add(&seen, key->text, ix);
        if (before != STRMAP_NONE) {
            report_duplicate(builder, key, &nodes[before]);
        }
    }
    strmap_release(&seen);
}

static void close_container(struct builder *builder)
{
    INVARIANT(builder->depth > 0);
    struct node *node = &builder->tree->nodes[builder->open[--builder->depth]];
    if (node->kind != NODE_MAPPING || node->count == 0) {
        return;
    }
    INVARIANT(node->count % 2 == 0);
    node->count /= 2;
    if (node->count <= FEW_KEYS) {
        check_few_keys(builder, node + 1);
    } else {
        check_many_keys(builder, node + 1);
    }
}

static void add_alias(struct builder *builder, const yaml_event_t *event)
{
    struct plan_mark mark = mark_of(event->start_mark);
    plan_errors_add(builder->errors,
                    mark,
                    "alias \"*%.64s\" is not allowed: write it out",
                    (const char *)event->data.alias.anchor);
    struct node *node = add_node(builder, mark);
    if (node != NULL) {
        node->kind = NODE_BAD;
    }
}

static void take_event(struct builder *builder, const yaml_event_t *event)
{
    struct plan_mark mark = mark_of(event->start_mark);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->second) {
            STOP(builder,
                 mark,
                 "a second document starts here: a plan is one document");
        }
        builder->second = true;
        break;
    case YAML_SCALAR_EVENT:
        add_scalar(builder, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        check_properties(builder,
                         mark,
                         event->data.sequence_start.anchor,
                         event->data.sequence_start.tag);
        open_container(builder, NODE_LIST, mark);
        break;
    case YAML_MAPPING_START_EVENT:
        check_properties(builder,
                         mark,
                         event->data.mapping_start.anchor,
                         event->data.mapping_start.tag);
        open_container(builder, NODE_MAPPING, mark);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_container(builder);
        break;
    case YAML_ALIAS_EVENT:
        add_alias(builder, event);
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    builder->end = mark_of(event->end_mark);
    builder->at_last_event = builder->at;
}

/* Parse the input with libyaml, event by event. */
static void build(struct builder *builder)
{
    yaml_parser_t parser;
    int made = yaml_parser_initialize(&parser);
    INVARIANT(made == 1);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input(&parser, read_more, builder);
    bool more = true;
    while (more && !builder->stop) {
        yaml_event_t event;
        if (yaml_parser_parse(&parser, &event) == 0) {
            report_syntax(builder, &parser);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        take_event(builder, &event);
        if (builder->errors->count >= PLAN_ERRORS_HELD_MAX) {
            builder->errors->cut = true;
            builder->stop = true;
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

bool node_tree_read(struct node_tree *tree,
                    const char *text,
                    size_t len,
                    struct plan_errors *errors)
{
    INVARIANT(tree->count == 0);
    struct builder builder = {
        .tree = tree,
        .errors = errors,
        .text = text,
        .len = len,
        .place = {.line = 1, .column = 1},
        .end = {.line = 1, .column = 1},
    };
    if (len > NODE_FILE_BYTES_MAX) {
        STOP(&builder,
             builder.end,
             "the file is larger than %d MiB",
             NODE_FILE_BYTES_MAX >> 20);
        return false;
    }
    /* A byte order mark is meaningless in UTF-8, but some editors write it. */
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        builder.text += 3;
        builder.len -= 3;
    }
    char *json = NULL;
    builder.json = begins_json(builder.text, builder.len);
    if (builder.json) {
        json = replace_surrogates(builder.text, builder.len);
        builder.text = json;
    }
    build(&builder);
    mem_free(json);
    /* An empty document is one empty scalar. */
    if (tree->count == 1 && tree->nodes[0].kind == NODE_PLAIN &&
        tree->nodes[0].count == 0) {
        tree->count = 0;
    }
    return !builder.stop;
}

void node_tree_release(struct node_tree *tree)
{
    mem_free(tree->nodes);
    arena_release(&tree->texts);
    *tree = (struct node_tree){0};
}

const struct node *node_find_key(const struct node *node, const char *name)
{
    const struct node *key =
        node->kind == NODE_MAPPING ? node_first(node) : NULL;
    while (key != NULL &&
           (!node_is_scalar(key) || strcmp(key->text, name) != 0)) {
        key = node_next_key(key);
    }
    return key;
}
