/* SPDX-License-Identifier: MIT */
#include "adapter/adapter.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Longest description of an event in a log, and of what an error says. */
enum { LINE_BYTES_MAX = 400, ERROR_BYTES_MAX = 4000 };

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
    if (*count + 1 >= *capacity) {
        *capacity = *capacity * 2 + 32;
        *list = mem_resize(*list, *capacity, sizeof((*list)[0]));
    }
    (*list)[(*count)++] = arena_strndup(arena, text, strlen(text));
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

void adapter_command_release(struct adapter_command *command)
{
    arena_release(&command->arena);
    mem_free(command->words);
    mem_free(command->env);
    *command = (struct adapter_command){0};
}

const char *adapter_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

double adapter_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

int64_t adapter_int(const json_t *object, const char *name)
{
    const double most = 1e15; /* tokens and seconds stay far below */
    double number = adapter_number(object, name);
    return isfinite(number) && number > 0 && number < most ? (int64_t)number
                                                           : 0;
}

bool adapter_is(const json_t *object, const char *name, const char *text)
{
    return strcmp(adapter_text(object, name), text) == 0;
}

void adapter_set(char **place, const char *text)
{
    char *copy = text != NULL ? mem_strndup(text, strlen(text)) : NULL;
    mem_free(*place);
    *place = copy;
}

/* Bytes of `text` up to `max`, not cutting a character of UTF-8. */
static size_t cut(const char *text, size_t max)
{
    size_t len = strlen(text);
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
    size_t len = cut(text, LINE_BYTES_MAX);
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
    uint32_t ix = 0;
    while (ix < seen->meter_count && strcmp(seen->meters[ix].name, name) != 0) {
        ix++;
    }
    if (ix == ADAPTER_METERS_MAX || name[0] == '\0' || !(percent >= 0)) {
        return;
    }
    if (ix == seen->meter_count) {
        seen->meter_count++;
    }
    struct adapter_meter *meter = &seen->meters[ix];
    (void)snprintf(meter->name, sizeof(meter->name), "%s", name);
    meter->percent = percent;
    meter->resets_at = resets_at;
}
