/* SPDX-License-Identifier: MIT */
#include "mcp/tool.h"

#include "base/invariant.h"

#include <string.h>

static const char *const type_names[] = {
    [TOOL_STRING] = "string",
    [TOOL_INTEGER] = "integer",
    [TOOL_OBJECT] = "object",
    [TOOL_LIST] = "array",
};

/* Split "a|b|c" into a list. */
static json_t *words_of(const char *words)
{
    json_t *list = json_array();
    while (*words != '\0') {
        size_t len = strcspn(words, "|");
        (void)json_array_append_new(list, json_stringn(words, len));
        words += len + (words[len] == '|' ? 1 : 0);
    }
    return list;
}

static json_t *describe_param(const struct tool_param *param)
{
    json_t *schema =
        param->items != NULL
            ? json_loads(param->items, JSON_REJECT_DUPLICATES, NULL)
            : json_object();
    INVARIANT(json_is_object(schema));
    (void)json_object_set_new(schema,
                              "type",
                              json_string(type_names[param->type]));
    if (param->text != NULL) {
        (void)json_object_set_new(schema,
                                  "description",
                                  json_string(param->text));
    }
    if (param->words != NULL) {
        (void)json_object_set_new(schema, "enum", words_of(param->words));
    }
    return schema;
}

json_t *tool_describe(const struct tool *tool)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    for (uint32_t ix = 0; ix < tool->param_count; ix++) {
        const struct tool_param *param = &tool->params[ix];
        (void)json_object_set_new(properties,
                                  param->name,
                                  describe_param(param));
        if (param->required) {
            (void)json_array_append_new(required, json_string(param->name));
        }
    }
    json_t *schema = json_pack("{s:s, s:o, s:b}",
                               "type",
                               "object",
                               "properties",
                               properties,
                               "additionalProperties",
                               0);
    if (json_array_size(required) > 0) {
        (void)json_object_set(schema, "required", required);
    }
    json_decref(required);
    json_t *hints = json_pack("{s:b, s:b, s:b, s:b}",
                              "readOnlyHint",
                              tool->reads,
                              "destructiveHint",
                              0,
                              "idempotentHint",
                              1,
                              "openWorldHint",
                              0);
    return json_pack("{s:s, s:s, s:o, s:o}",
                     "name",
                     tool->name,
                     "description",
                     tool->text,
                     "inputSchema",
                     schema,
                     "annotations",
                     hints);
}

static bool has_type(const json_t *value, enum tool_type type)
{
    switch (type) {
    case TOOL_STRING:
        return json_is_string(value);
    case TOOL_INTEGER:
        return json_is_integer(value);
    case TOOL_OBJECT:
        return json_is_object(value);
    case TOOL_LIST:
        return json_is_array(value);
    }
    return false;
}

/* Whether a word is in "a|b|c". */
static bool is_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    while (*words != '\0') {
        size_t part = strcspn(words, "|");
        if (part == len && strncmp(words, word, len) == 0) {
            return true;
        }
        words += part + (words[part] == '|' ? 1 : 0);
    }
    return false;
}

static enum err check_param(const struct tool *tool,
                            const struct tool_param *param,
                            const json_t *value,
                            struct diag *diag)
{
    bool absent = value == NULL || json_is_null(value);
    if (absent && param->required) {
        return diag_set(diag,
                        ERR_INVALID,
                        "%s: \"%s\" is missing",
                        tool->name,
                        param->name);
    }
    if (!absent && !has_type(value, param->type)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "%s: \"%s\" must be of type %s",
                        tool->name,
                        param->name,
                        type_names[param->type]);
    }
    bool text = !absent && param->type == TOOL_STRING;
    if (text && strlen(json_string_value(value)) != json_string_length(value)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "%s: \"%s\" contains a NUL",
                        tool->name,
                        param->name);
    }
    if (text && param->words != NULL &&
        !is_word(param->words, json_string_value(value))) {
        return diag_set(diag,
                        ERR_INVALID,
                        "%s: \"%s\" must be one of %s",
                        tool->name,
                        param->name,
                        param->words);
    }
    return ERR_OK;
}

static const struct tool_param *find_param(const struct tool *tool,
                                           const char *name)
{
    for (uint32_t ix = 0; ix < tool->param_count; ix++) {
        if (strcmp(tool->params[ix].name, name) == 0) {
            return &tool->params[ix];
        }
    }
    return NULL;
}

static enum err check(const struct tool *tool, json_t *args, struct diag *diag)
{
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < tool->param_count && err == ERR_OK; ix++) {
        const struct tool_param *param = &tool->params[ix];
        err =
            check_param(tool, param, json_object_get(args, param->name), diag);
    }
    for (void *at = json_object_iter(args); at != NULL && err == ERR_OK;
         at = json_object_iter_next(args, at)) {
        const char *name = json_object_iter_key(at);
        if (find_param(tool, name) == NULL) {
            err = diag_set(diag,
                           ERR_INVALID,
                           "%s: unknown argument \"%.100s\"",
                           tool->name,
                           name);
        }
    }
    return err;
}

enum err tool_call(const struct tool *tool,
                   json_t *args,
                   struct strbuf *out,
                   struct diag *diag)
{
    if (args != NULL && !json_is_object(args)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "%s: the arguments must be an object",
                        tool->name);
    }
    enum err err = check(tool, args, diag);
    return err == ERR_OK ? tool->run(tool, args, out, diag) : err;
}

const char *tool_text(const json_t *args, const char *name)
{
    const json_t *value = json_object_get(args, name);
    const char *text = json_string_value(value);
    return text != NULL && strlen(text) == json_string_length(value) ? text
                                                                     : NULL;
}
