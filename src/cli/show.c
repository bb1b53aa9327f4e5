/* SPDX-License-Identifier: MIT */
#include "cli/show.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "view/session_look.h"

#include <string.h>

/* Commands whose output the scheduler makes: what they show is small, however
 * large the run is. */
static const struct {
    const struct cli_command *command;
    cli_show_fn add;
} shows[] = {
    {&cli_status, cmd_status_add},
};

/* --- in the scheduler --------------------------------------------------- */

static enum err show(struct engine *engine,
                     const struct store_place *place,
                     const struct engine_look *look,
                     cli_show_fn add,
                     struct strbuf *out,
                     struct diag *diag)
{
    struct glance glance;
    struct glance_options options = {.run = look->run, .forecast = true};
    if (look->label_count > LABELS_WANTED_MAX) {
        return diag_set(diag, ERR_INVALID, "too many labels");
    }
    for (uint32_t ix = 0; ix < look->label_count; ix++) {
        options.labels.names[options.labels.count++] = look->labels[ix];
    }
    enum err err = glance_inside(&glance, engine, place, &options, diag);
    if (err == ERR_OK) {
        add(out, &glance, &options);
    }
    glance_release(&glance);
    return err;
}

enum err show_look(struct engine *engine,
                   const struct store_place *place,
                   const struct engine_look *look,
                   struct strbuf *out,
                   struct diag *diag)
{
    if (look->token != 0) {
        return session_look(engine, place, look, out, diag);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(shows) && look->command != NULL;
         ix++) {
        if (strcmp(shows[ix].command->name, look->command) == 0) {
            return show(engine, place, look, shows[ix].add, out, diag);
        }
    }
    return diag_set(diag, ERR_INVALID, "nothing is shown for that command");
}

/* --- in the command ----------------------------------------------------- */

/* Have the scheduler make the output; false: read the store. */
static bool ask(const struct cli_line *line,
                const struct store_place *place,
                struct strbuf *out)
{
    const struct glance_options *wanted = &line->wanted;
    struct diag ignored = {0};
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    char *shown = NULL;
    jsonw_object(&json, NULL);
    jsonw_text(&json, "verb", "show");
    jsonw_text(&json, "command", line->command->name);
    if (wanted->run != NULL) {
        jsonw_text(&json, "run", wanted->run);
    }
    jsonw_array(&json, "labels");
    for (uint32_t ix = 0; ix < wanted->labels.count; ix++) {
        jsonw_text(&json, NULL, wanted->labels.names[ix]);
    }
    jsonw_array_end(&json);
    jsonw_object_end(&json);
    bool good =
        client_show(place, strbuf_text(&text), &shown, &ignored) == ERR_OK;
    if (good) {
        strbuf_adds(out, shown);
    }
    mem_free(shown);
    strbuf_release(&text);
    return good;
}

static bool is_asked(const struct cli_line *line, cli_show_fn fn)
{
    bool found = false;
    for (size_t ix = 0; ix < ARRAY_COUNT(shows); ix++) {
        found = found || shows[ix].add == fn;
    }
    return found && !line->wanted.finished;
}

int cli_show(const struct cli_line *line, cli_show_fn fn)
{
    struct glance glance = {0};
    struct store_place place;
    struct diag diag = {0};
    struct strbuf out = {0};
    enum err err = store_place_find(&place, line->wanted.store, false, &diag);
    bool shown = err == ERR_OK && is_asked(line, fn) && ask(line, &place, &out);
    if (err == ERR_OK && !shown) {
        err = glance_take(&glance, &line->wanted, &diag);
        shown = err == ERR_OK;
        if (shown) {
            fn(&out, &glance, &line->wanted);
        }
    }
    int code =
        shown ? cli_print(&out) : cli_fail_store(line->command, err, &diag);
    glance_release(&glance);
    store_place_release(&place);
    return code;
}
