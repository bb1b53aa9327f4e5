/* SPDX-License-Identifier: MIT */
#include "cli/request.h"
#include "cli/cli.h"

#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/strbuf.h"
#include "cli/next.h"
#include "engine/request.h"
#include "mcp/door.h"
#include "view/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void request_release(struct request_answer *answer)
{
    mem_free(answer->line);
    json_decref(answer->json);
    *answer = (struct request_answer){0};
}

enum err request_give(const struct store_place *place,
                      const char *json,
                      struct request_answer *out,
                      struct diag *diag)
{
    *out = (struct request_answer){0};
    struct strbuf own = {0};
    if (door_is_of(place)) { /* a request of this session */
        struct jsonw writer = {.out = &own};
        jsonw_object(&writer, NULL);
        jsonw_text(&writer, "session", getenv("SLUICE_KEY"));
        jsonw_raw(&writer, NULL, json + 1);
        json = strbuf_text(&own);
    }
    enum err err = client_ask(place, json, &out->line, diag);
    strbuf_release(&own);
    if (err != ERR_OK) {
        return err;
    }
    out->json = json_loads(out->line, JSON_REJECT_DUPLICATES, NULL);
    const json_t *ok = json_object_get(out->json, "ok");
    const char *name = json_string_value(json_object_get(out->json, "error"));
    out->text = json_string_value(json_object_get(out->json, "text"));
    if (out->text == NULL || !json_is_boolean(ok) ||
        (json_is_false(ok) && name == NULL)) {
        return diag_set(
            diag,
            ERR_IO,
            "invalid reply of the scheduler, which may have another version");
    }
    out->err = json_is_true(ok) ? ERR_OK : err_from_name(name);
    return ERR_OK;
}

/* --- output ------------------------------------------------------------- */

int request_fail(const struct cli_line *line,
                 enum err err,
                 const struct diag *diag)
{
    if (line->json) {
        struct strbuf out = {0};
        struct jsonw answer = {.out = &out};
        jsonw_object(&answer, NULL);
        jsonw_bool(&answer, "ok", false);
        jsonw_text(&answer, "error", err_name(err));
        jsonw_text(&answer, "text", diag->text);
        jsonw_object_end(&answer);
        strbuf_adds(&out, "\n");
        (void)cli_write(&out);
        strbuf_release(&out);
    }
    return cli_fail_store(line->command, err, diag);
}

/* Append a string as plain text, keeping its line breaks. */
static void add_lines(struct strbuf *out, const char *text)
{
    for (;;) {
        size_t len = strcspn(text, "\n");
        char *line = mem_strndup(text, len);
        plain_add(out, line);
        strbuf_adds(out, "\n");
        mem_free(line);
        if (text[len] == '\0') {
            return;
        }
        text += len + 1;
    }
}

int request_show(const struct cli_line *line,
                 const struct request_answer *answer)
{
    int code = answer->err == ERR_OK ? CLI_OK : err_exit_code(answer->err);
    struct strbuf out = {0};
    if (line->json) {
        strbuf_addf(&out, "%s\n", answer->line);
    } else {
        add_lines(&out, answer->text);
    }
    if (line->json || answer->err == ERR_OK) {
        int written = cli_write(&out);
        code = code == CLI_OK ? written : code;
    }
    if (!line->json && answer->err != ERR_OK) {
        (void)fprintf(stderr,
                      "sluice %s: %s",
                      line->command->name,
                      strbuf_text(&out));
    }
    strbuf_release(&out);
    return code;
}

/* Whether a request takes full effect without a scheduler: it stops work. */
static bool is_complete(const char *verb)
{
    static const char *const verbs[] = {
        "cap",
        "drain",
        "hold",
        "limit",
        "pause",
        "tell",
        "usage",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (strcmp(verb, verbs[ix]) == 0) {
            return true;
        }
    }
    return false;
}

void request_tell_idle(const struct cli_line *line,
                       const struct store_place *place,
                       const struct request_answer *answer)
{
    const char *run = json_string_value(json_object_get(answer->json, "run"));
    if (answer->err != ERR_OK || run == NULL ||
        is_complete(line->command->name)) {
        return;
    }
    struct strbuf out = {0};
    if (next_add_idle(&out, place, line->wanted.store, run)) {
        (void)fprintf(stderr,
                      "sluice %s: %s",
                      line->command->name,
                      strbuf_text(&out));
    }
    strbuf_release(&out);
}

int request_carry_out(const struct cli_line *line, const char *request)
{
    struct diag diag = {0};
    struct request_answer answer = {0};
    int code;
    struct store_place place;
    enum err err = store_place_find(&place, line->wanted.store, false, &diag);
    if (err == ERR_OK) {
        err = request_give(&place, request, &answer, &diag);
    }
    code = err == ERR_OK ? request_show(line, &answer)
                         : request_fail(line, err, &diag);
    if (err == ERR_OK) {
        request_tell_idle(line, &place, &answer);
    }
    request_release(&answer);
    store_place_release(&place);
    return code;
}
