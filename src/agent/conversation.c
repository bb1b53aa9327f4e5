/* SPDX-License-Identifier: MIT */
#include "agent/conversation.h"

#include "base/jsonw.h"
#include "base/mem.h"

#include <string.h>

struct conversation conversation_read(const char *text)
{
    struct conversation out = {0};
    json_t *json = text != NULL ? json_loads(text, 0, NULL) : NULL;
    const char *id = adapter_text(json, "id");
    if (id[0] != '\0') {
        out.id = mem_strndup(id, strlen(id));
        out.used = (struct adapter_usage){
            .input = adapter_int(json, "input"),
            .cached = adapter_int(json, "cached"),
            .output = adapter_int(json, "output"),
            .known = true,
            .whole = true,
        };
    }
    json_decref(json);
    return out;
}

void conversation_release(struct conversation *conversation)
{
    mem_free(conversation->id);
    *conversation = (struct conversation){0};
}

void conversation_add(struct strbuf *out,
                      const char *id,
                      const struct adapter_usage *used)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "id", id);
    if (used->whole) {
        jsonw_int(&json, "input", used->input);
        jsonw_int(&json, "cached", used->cached);
        jsonw_int(&json, "output", used->output);
    }
    jsonw_object_end(&json);
}

struct adapter_usage conversation_part(const struct conversation *before,
                                       const struct adapter_usage *reported)
{
    struct adapter_usage part = *reported;
    const struct adapter_usage *used = &before->used;
    if (!reported->whole || before->id == NULL ||
        reported->input < used->input || reported->output < used->output ||
        reported->cached < used->cached) {
        return part; /* a conversation that began with this session */
    }
    part.input -= used->input;
    part.cached -= used->cached;
    part.output -= used->output;
    return part;
}
