/* SPDX-License-Identifier: MIT */
/*
 * Only the rows of runs are read. A run that has finished stays so, therefore
 * no lock is needed to find one; that none was found is only certain for the
 * holder of the lock, who asks again.
 */
#include "cli/past.h"

#include "base/mem.h"
#include "cli/lines.h"
#include "cli/plain.h"
#include "plan/revise.h"

#include <jansson.h>
#include <string.h>

enum { SHOWN_COLUMNS = 60 }; /* of a line that differs */

struct search {
    const struct past_plan *plan;
    bool unfinished; /* one of that name is */
    char *id;        /* of the last finished one of that plan */
    uint32_t number;
    char *text;
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

static enum err on_run(void *ctx, const struct store_run *row)
{
    struct search *search = ctx;
    if (strcmp(row->name, search->plan->name) != 0) {
        return ERR_OK;
    }
    if (!row->finished) {
        search->unfinished = search->unfinished ||
                             strcmp(row->folder, search->plan->folder) == 0;
    } else if (row->number >= search->number && is_same(search->plan, row)) {
        mem_free(search->id);
        mem_free(search->text);
        search->id = mem_strndup(row->id, strlen(row->id));
        search->text = mem_strndup(row->text, row->text_bytes);
        search->number = row->number;
    }
    return ERR_OK;
}

/* A version of the plan that came later: its text is that of the run. */
static enum err on_fragment(void *ctx, const struct store_fragment *row)
{
    struct search *search = ctx;
    if (search->id != NULL && row->run == search->number &&
        revise_is_update(row->file)) {
        mem_free(search->text);
        search->text = mem_strndup(row->text, row->text_bytes);
    }
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
                search->id,
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
                   char **id_out,
                   uint32_t *number_out,
                   struct diag *diag)
{
    static const struct store_visitor visitor = {
        .run = on_run,
        .fragment = on_fragment,
    };
    static const struct store_query query = {.finished = true};
    struct search search = {.plan = plan};
    struct store_info info = {0};
    *id_out = NULL;
    enum err err = store_read(store, &query, &visitor, &search, &info, diag);
    if (err == ERR_OK && (search.unfinished || search.id == NULL)) {
        err = ERR_NOT_FOUND;
    } else if (err == ERR_OK && strcmp(search.text, plan->text) != 0) {
        err = refuse(&search, diag);
    } else if (err == ERR_OK) {
        *id_out = search.id;
        *number_out = search.number;
        search.id = NULL;
    }
    mem_free(search.id);
    mem_free(search.text);
    return err;
}

struct finding {
    struct strbuf *out;
    const char *id;
    uint32_t number;
};

static enum err on_event(void *ctx, const struct store_event *event)
{
    struct finding *finding = ctx;
    if (event->run != finding->number || strcmp(event->kind, "run") != 0) {
        return ERR_OK;
    }
    json_t *json = json_loads(event->data, 0, NULL);
    const char *to = json_string_value(json_object_get(json, "to"));
    if (to != NULL && strcmp(to, "finished") == 0) {
        lines_add_json(finding->out, event, finding->id);
    }
    json_decref(json);
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
