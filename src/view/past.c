/* SPDX-License-Identifier: MIT */
/*
 * Only the rows of runs are read, and what is left of removed ones. A run that
 * has finished stays so, therefore no lock is needed to find one; that none was
 * found is only certain for the holder of the lock, who asks again.
 */
#include "view/past.h"

#include "base/mem.h"
#include "base/plain.h"
#include "plan/revise.h"
#include "store/event.h"
#include "store/pruned.h"
#include "view/lines.h"

#include <string.h>

enum { SHOWN_COLUMNS = 60 }; /* of a line that differs */

struct search {
    const struct past_plan *plan;
    bool unfinished;       /* one of that name is */
    struct past_run found; /* the last finished one of that plan */
    char *text;            /* NULL: it was removed */
    bool changed;          /* of a removed one: its text was another */
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Whether a row is of the same plan, as it is or as it was. */
static bool is_same(const struct past_plan *plan, const struct store_run *row)
{
    bool text = strlen(plan->text) == row->text_bytes &&
                memcmp(plan->text, row->text, row->text_bytes) == 0;
    return strcmp(row->folder, plan->folder) == 0 &&
           (text || strcmp(base_of(row->file), base_of(plan->file)) == 0);
}

/* Note a run in place of what was found before. */
static void take(struct search *search, const char *id, uint32_t number)
{
    mem_free(search->found.id);
    mem_free(search->text);
    search->text = NULL;
    search->found = (struct past_run){
        .id = mem_strndup(id, strlen(id)),
        .number = number,
    };
}

static enum err on_run(void *ctx, const struct store_run *row)
{
    struct search *search = ctx;
    if (strcmp(row->name, search->plan->name) != 0) {
        return ERR_OK;
    }
    if (!row->finished) {
        search->unfinished = search->unfinished ||
                             strcmp(row->folder, search->plan->folder) == 0;
    } else if (row->number >= search->found.number &&
               is_same(search->plan, row)) {
        take(search, row->id, row->number);
        search->text = mem_strndup(row->text, row->text_bytes);
    }
    return ERR_OK;
}

/* A version of the plan that came later: its text is that of the run. */
static enum err on_fragment(void *ctx, const struct store_fragment *row)
{
    struct search *search = ctx;
    if (search->text != NULL && row->run == search->found.number &&
        revise_is_update(row->file)) {
        mem_free(search->text);
        search->text = mem_strndup(row->text, row->text_bytes);
    }
    return ERR_OK;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

/* What is left of a run that was removed. */
static enum err on_setting(void *ctx, const struct store_setting *row)
{
    struct search *search = ctx;
    const struct past_plan *plan = search->plan;
    if (strncmp(row->name, PRUNED_PREFIX, strlen(PRUNED_PREFIX)) != 0) {
        return ERR_OK;
    }
    json_t *json = json_loads(row->value, 0, NULL);
    json_int_t number = json_integer_value(json_object_get(json, "number"));
    struct pruned_text text = pruned_text(plan->text, strlen(plan->text));
    bool same = strcmp(text_of(json, "text"), text.digits) == 0;
    if (number > search->found.number &&
        strcmp(text_of(json, "name"), plan->name) == 0 &&
        strcmp(text_of(json, "folder"), plan->folder) == 0 &&
        (same ||
         strcmp(base_of(text_of(json, "file")), base_of(plan->file)) == 0)) {
        take(search, row->name + strlen(PRUNED_PREFIX), (uint32_t)number);
        search->found.removed = true;
        search->found.cancelled =
            json_is_true(json_object_get(json, "cancelled"));
        search->changed = !same;
    }
    json_decref(json);
    return ERR_OK;
}

/* Append the line that begins at `text` in quotes, or that there is none. */
static void add_line(struct strbuf *out, const char *text)
{
    size_t len = strcspn(text, "\n");
    if (len == 0) {
        strbuf_adds(out, text[0] == '\0' ? "missing" : "empty");
        return;
    }
    struct strbuf plain = {0};
    char *line = mem_strndup(text, len);
    plain_add(&plain, line);
    strbuf_adds(out, "\"");
    plain_add_cut(out, strbuf_text(&plain), SHOWN_COLUMNS);
    strbuf_adds(out, "\"");
    strbuf_release(&plain);
    mem_free(line);
}

/* Refuse a plan that differs from that of the finished run. */
static enum err refuse(const struct search *search, struct diag *diag)
{
    if (search->found.removed) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "run \"%s\" has finished, and its plan has changed "
                        "since; use --new to start another run",
                        search->found.id);
    }
    const char *was = search->text;
    const char *is = search->plan->text;
    uint32_t line = 1;
    size_t begin = 0;
    for (size_t ix = 0; was[ix] == is[ix]; ix++) {
        if (was[ix] == '\n') {
            line++;
            begin = ix + 1;
        }
    }
    struct strbuf text = {0};
    strbuf_addf(&text,
                "run \"%s\" has finished, and its plan has changed since: line "
                "%u was ",
                search->found.id,
                line);
    add_line(&text, was + begin);
    strbuf_adds(&text, " and is ");
    add_line(&text, is + begin);
    strbuf_adds(&text, "; use --new to start another run");
    enum err err = diag_set(diag, ERR_CONFLICT, "%s", strbuf_text(&text));
    strbuf_release(&text);
    return err;
}

enum err past_find(struct store *store,
                   const struct past_plan *plan,
                   struct past_run *out,
                   struct diag *diag)
{
    static const struct store_visitor visitor = {
        .run = on_run,
        .fragment = on_fragment,
        .setting = on_setting,
    };
    static const struct store_query query = {.finished = true};
    struct search search = {.plan = plan};
    struct store_info info = {0};
    *out = (struct past_run){0};
    enum err err = store_read(store, &query, &visitor, &search, &info, diag);
    if (err == ERR_OK && (search.unfinished || search.found.id == NULL)) {
        err = ERR_NOT_FOUND;
    } else if (err == ERR_OK &&
               (search.text != NULL ? strcmp(search.text, plan->text) != 0
                                    : search.changed)) {
        err = refuse(&search, diag);
    } else if (err == ERR_OK) {
        *out = search.found;
        search.found.id = NULL;
    }
    mem_free(search.found.id);
    mem_free(search.text);
    return err;
}

struct finding {
    struct strbuf *out;
    const char *id;
    uint32_t number;
};

static enum err on_event(void *ctx, const struct store_event *row)
{
    struct finding *finding = ctx;
    if (row->run != finding->number) {
        return ERR_OK;
    }
    struct event event = {0};
    event_read(&event, row);
    if (event.kind == EVENT_KIND_RUN &&
        event.as.run.to == EVENT_WORD_FINISHED) {
        lines_add_json(finding->out, row, finding->id);
    }
    event_release(&event);
    return ERR_OK;
}

void past_add_event(struct strbuf *out,
                    struct store *store,
                    const char *id,
                    uint32_t number)
{
    struct finding finding = {.out = out, .id = id, .number = number};
    struct diag ignored = {0};
    (void)!store_events(store, 0, on_event, &finding, &ignored);
}
