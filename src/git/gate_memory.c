/* SPDX-License-Identifier: MIT */
#include "git/gate_memory.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_BYTES_MAX = 256 << 10, /* a result file has at most 1 MiB */
    ITEMS_MAX = 1500,
    ESCAPE = 0x1b,
};

static bool set_id(struct git_id *out, const char *text)
{
    if (text == NULL || strlen(text) >= sizeof(out->text)) {
        return false;
    }
    (void)snprintf(out->text, sizeof(out->text), "%s", text);
    return true;
}

static void add(struct gate_memory *memory, const struct gate_verdict *from)
{
    MEM_GROW(memory->items, memory->count, memory->capacity);
    struct gate_verdict *to = &memory->items[memory->count++];
    *to = *from;
    to->tested_by = mem_strdup(from->tested_by);
    to->output = mem_strdup(from->output);
}

/* Read one line of the file. */
static void take_line(struct gate_memory *memory, const char *line)
{
    json_t *json = json_loads(line, 0, NULL);
    const char *tree = json_string_value(json_object_get(json, "tree"));
    const char *name = json_string_value(json_object_get(json, "verdict"));
    const char *by = json_string_value(json_object_get(json, "tested_by"));
    const char *output = json_string_value(json_object_get(json, "output"));
    struct gate_verdict known = {
        .tested_by = mem_strdup(by != NULL ? by : "an earlier merge"),
        .output = mem_strdup(output),
    };
    if (set_id(&known.tree, tree) && attempt_gate_read(name, &known.verdict)) {
        add(memory, &known);
    }
    mem_free(known.tested_by);
    mem_free(known.output);
    json_decref(json);
}

void gate_memory_read(struct gate_memory *memory, const char *dir)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/gates", dir);
    FILE *file = fopen(strbuf_text(&path), "re");
    strbuf_release(&path);
    char *line = NULL;
    size_t capacity = 0;
    while (file != NULL && memory->count < ITEMS_MAX &&
           getline(&line, &capacity, file) > 0) {
        take_line(memory, line);
    }
    free(line);
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* The newest verdict comes first in the file; within a merge, each tree has
 * only one. */
const struct gate_verdict *gate_memory_find(const struct gate_memory *memory,
                                            const struct git_id *tree)
{
    for (uint32_t ix = 0; ix < memory->count; ix++) {
        if (strcmp(memory->items[ix].tree.text, tree->text) == 0) {
            return &memory->items[ix];
        }
    }
    return NULL;
}

bool gate_memory_add(struct gate_memory *memory,
                     const struct gate_verdict *verdict)
{
    INVARIANT(verdict->tries > 0 && verdict->commit.text[0] != '\0');
    INVARIANT(gate_memory_find(memory, &verdict->tree) == NULL);
    size_t bytes = verdict->output != NULL ? strlen(verdict->output) : 0;
    if (memory->count >= ITEMS_MAX ||
        memory->output_bytes + bytes > OWN_BYTES_MAX) {
        return false;
    }
    memory->output_bytes += bytes;
    add(memory, verdict);
    return true;
}

/* Return the length of a control sequence at `text`; 0: none. */
static size_t sequence(const char *text, size_t left)
{
    if ((unsigned char)text[0] != ESCAPE) {
        return 0;
    }
    size_t len = 1;
    if (left > 1 && text[1] == '[') {
        len = 2;
        while (len < left && (unsigned char)text[len] < 0x40) {
            len++;
        }
        len += len < left ? 1 : 0;
    }
    return len;
}

void gate_memory_clean(struct strbuf *out,
                       const char *text,
                       size_t len,
                       bool cut)
{
    size_t at = 0;
    const char *newline = cut ? memchr(text, '\n', len) : NULL;
    if (newline != NULL) {
        at = (size_t)(newline - text) + 1;
    }
    size_t begin = out->len;
    while (at < len) {
        size_t skipped = sequence(text + at, len - at);
        unsigned char byte = (unsigned char)text[at];
        if (skipped == 0 && (byte >= 0x20 || byte == '\n' || byte == '\t') &&
            byte != 0x7f) {
            strbuf_add(out, text + at, 1);
        }
        at += skipped > 0 ? skipped : 1;
    }
    if (out->len > begin) {
        utf8_repair(out->text + begin, out->len - begin);
    }
}

void gate_memory_release(struct gate_memory *memory)
{
    for (uint32_t ix = 0; ix < memory->count; ix++) {
        mem_free(memory->items[ix].tested_by);
        mem_free(memory->items[ix].output);
    }
    mem_free(memory->items);
    *memory = (struct gate_memory){0};
}
