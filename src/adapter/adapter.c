/* SPDX-License-Identifier: MIT */
#include "adapter/adapter.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES_MAX = 400, /* longest description of an event in a log */
    ID_BYTES_MAX = 128,
    PERCENT_MAX = 1000,
};
#define TIME_MAX INT64_C(9000000000) /* seconds since 1970, in 2255 */
#define USD_MAX 1e9

static const struct adapter *const adapters[] = {
    &adapter_claude,
    &adapter_codex,
    &adapter_gemini,
    &adapter_opencode,
    &adapter_qwen,
};

const struct adapter *adapter_find(const char *name)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(adapters); ix++) {
        if (strcmp(adapters[ix]->name, name) == 0) {
            return adapters[ix];
        }
    }
    return NULL;
}

const struct adapter *adapter_at(uint32_t ix)
{
    return ix < ARRAY_COUNT(adapters) ? adapters[ix] : NULL;
}

void adapter_seen_release(struct adapter_seen *seen)
{
    mem_free(seen->conversation);
    strbuf_release(&seen->text);
    strbuf_release(&seen->error);
    strbuf_release(&seen->denials);
    json_decref(seen->answer);
    json_decref(seen->counted);
    *seen = (struct adapter_seen){0};
}

static bool matches(const struct adapter_rule *rule,
                    const struct adapter_seen *seen,
                    int code,
                    const char *errors)
{
    if (rule->status != 0 &&
        (seen->status < rule->status ||
         seen->status >
             (rule->status_max != 0 ? rule->status_max : rule->status))) {
        return false;
    }
    if (rule->code != 0 && rule->code != code) {
        return false;
    }
    return rule->text == NULL ||
           strstr(strbuf_text(&seen->error), rule->text) != NULL ||
           strstr(errors, rule->text) != NULL;
}

enum adapter_cause adapter_cause_of(const struct adapter *adapter,
                                    const struct adapter_seen *seen,
                                    int code,
                                    const char *errors)
{
    if (seen->cause != ADAPTER_NONE) {
        return seen->cause;
    }
    for (uint32_t ix = 0; ix < adapter->rule_count; ix++) {
        if (matches(&adapter->rules[ix], seen, code, errors)) {
            return adapter->rules[ix].cause;
        }
    }
    return ADAPTER_ERROR;
}

/* Append a copy of `text` to a list that ends with NULL. */
static void add_to(struct arena *arena,
                   const char ***list,
                   uint32_t *count,
                   uint32_t *capacity,
                   const char *text)
{
    MEM_GROW(*list, *count, *capacity);
    (*list)[(*count)++] = arena_strndup(arena, text, strlen(text));
    MEM_GROW(*list, *count, *capacity);
    (*list)[*count] = NULL;
}

void adapter_add(struct adapter_command *command, const char *word)
{
    add_to(&command->arena,
           &command->words,
           &command->word_count,
           &command->word_capacity,
           word);
}

void adapter_add_words(struct adapter_command *command,
                       const char *const *words,
                       uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        adapter_add(command, words[ix]);
    }
}

void adapter_add_option(struct adapter_command *command,
                        const char *option,
                        const char *value)
{
    if (value != NULL) {
        adapter_add(command, option);
        adapter_add(command, value);
    }
}

void adapter_add_env(struct adapter_command *command,
                     const char *name,
                     const char *value)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%s=%s", name, value);
    add_to(&command->arena,
           &command->env,
           &command->env_count,
           &command->env_capacity,
           strbuf_text(&text));
    strbuf_release(&text);
}

const char *const adapter_mcp_variables[] = {
    "SLUICE_DOOR",
    "SLUICE_FINISH",
    "SLUICE_KEY",
    "SLUICE_PROGRESS",
    "SLUICE_RESULT",
    "SLUICE_STORE",
    NULL,
};

const char *adapter_mcp_servers(struct adapter_command *command,
                                const char *sluice,
                                bool env)
{
    json_t *server =
        json_pack("{s:s, s:[s]}", "command", sluice, "args", "mcp");
    if (env) {
        json_t *list = json_object();
        for (size_t ix = 0; adapter_mcp_variables[ix] != NULL; ix++) {
            const char *name = adapter_mcp_variables[ix];
            (void)json_object_set_new(list, name, json_sprintf("${%s}", name));
        }
        (void)json_object_set_new(server, "env", list);
    }
    json_t *root = json_pack("{s:{s:o}}", "mcpServers", "sluice", server);
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (text == NULL) {
        return NULL; /* the path is not UTF-8 */
    }
    const char *copy = arena_strndup(&command->arena, text, strlen(text));
    free(text);
    return copy;
}

void adapter_command_release(struct adapter_command *command)
{
    arena_release(&command->arena);
    mem_free(command->words);
    mem_free(command->env);
    *command = (struct adapter_command){0};
}

const char *adapter_text(const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);
    const char *text = json_string_value(member);
    /* A prefix up to a NUL may mean the opposite of the whole string. */
    bool whole = text != NULL && strlen(text) == json_string_length(member);
    return whole ? text : "";
}

double adapter_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

int64_t adapter_int(const json_t *object, const char *name)
{
    double number = adapter_number(object, name);
    return isfinite(number) && number > 0 && number < (double)ADAPTER_COUNT_MAX
               ? (int64_t)number
               : 0;
}

int64_t adapter_time(const json_t *object, const char *name)
{
    int64_t seconds = adapter_int(object, name);
    return seconds <= TIME_MAX ? seconds : 0;
}

int adapter_status(const json_t *object, const char *name)
{
    int64_t status = adapter_int(object, name);
    return status >= 100 && status <= 599 ? (int)status : 0;
}

int64_t adapter_sum(int64_t a, int64_t b)
{
    return a < ADAPTER_COUNT_MAX - b ? a + b : ADAPTER_COUNT_MAX;
}

bool adapter_usd(const json_t *object, const char *name, double *out)
{
    const json_t *number = json_object_get(object, name);
    double usd = json_number_value(number);
    if (!json_is_number(number) || !(usd >= 0 && usd <= USD_MAX)) {
        return false;
    }
    *out = usd;
    return true;
}

bool adapter_is(const json_t *object, const char *name, const char *text)
{
    return strcmp(adapter_text(object, name), text) == 0;
}

void adapter_set_conversation(struct adapter_seen *seen, const char *id)
{
    static const char fit[] = "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t len = strlen(id);
    if (seen->conversation == NULL && len > 0 && len <= ID_BYTES_MAX &&
        id[0] != '-' && strspn(id, fit) == len) {
        seen->conversation = mem_strndup(id, len);
    }
}

size_t adapter_cut(const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);
    if (len > max) {
        len = max;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    return len;
}

void adapter_set_buf(struct strbuf *place, const char *text)
{
    strbuf_clear(place);
    strbuf_add(place, text, strlen(text));
}

void adapter_describe(struct strbuf *line, const char *what, const char *text)
{
    size_t len = adapter_cut(text, LINE_BYTES_MAX);
    strbuf_adds(line, what);
    for (size_t ix = 0; ix < len; ix++) {
        bool blank = (unsigned char)text[ix] <= ' ';
        if (!blank) {
            strbuf_add(line, &text[ix], 1);
        } else if (line->len > 0 && line->text[line->len - 1] != ' ') {
            strbuf_adds(line, " ");
        }
    }
    if (text[len] != '\0') {
        strbuf_adds(line, " ...");
    }
}

void adapter_set_meter(struct adapter_seen *seen,
                       const char *name,
                       double percent,
                       int64_t resets_at)
{
    char label[sizeof(seen->meters[0].name)];
    uint32_t ix = 0;
    (void)snprintf(label,
                   sizeof(label),
                   "%.*s",
                   (int)adapter_cut(name, sizeof(label) - 1),
                   name);
    while (ix < seen->meter_count &&
           strcmp(seen->meters[ix].name, label) != 0) {
        ix++;
    }
    bool valid = percent >= 0 && percent <= PERCENT_MAX;
    if (ix == ADAPTER_METERS_MAX || name[0] == '\0' || !valid) {
        return;
    }
    if (ix == seen->meter_count) {
        seen->meter_count++;
    }
    struct adapter_meter *meter = &seen->meters[ix];
    memcpy(meter->name, label, sizeof(label));
    meter->percent = percent;
    meter->resets_at = resets_at;
}
