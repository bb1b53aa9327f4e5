/* SPDX-License-Identifier: MIT */
/*
 * Search for a past run of a plan. Reads only run rows and the records of
 * removed runs. A finished run stays finished, so finding one needs no lock;
 * that none exists is certain only under the lock, so the lock holder repeats
 * the search.
 */
#include "view/past.h"

#include "base/mem.h"
#include "base/plain.h"
#include "plan/plan.h"
#include "plan/revise.h"
#include "store/event.h"
#include "store/place.h"
#include "store/pruned.h"
#include "view/lines.h"

#include <string.h>

enum { SHOWN_COLUMNS = 60 }; /* of a differing line */

/* A finished run with the same name and directory. */
struct candidate {
    char *id;
    uint32_t number;
    bool same_file;
};

struct search {
    const struct past_plan *plan;
    bool unfinished;        /* a run of that name is unfinished */
    struct candidate *runs; /* by number */
    uint32_t count;
    uint32_t capacity;
    struct past_run found; /* last finished run of that plan */
    char *text;            /* plan of the run read last; NULL: removed */
    bool changed;          /* for a removed run: its plan differs */
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Replace the result of the search. */
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
    if (strcmp(row->name, search->plan->name) != 0 ||
        strcmp(row->folder, search->plan->folder) != 0) {
        return ERR_OK;
    }
    if (!row->finished) {
        search->unfinished = true;
        return ERR_OK;
    }
    MEM_GROW(search->runs, search->count, search->capacity);
    search->runs[search->count++] = (struct candidate){
        .id = mem_strndup(row->id, strlen(row->id)),
        .number = row->number,
        .same_file =
            strcmp(base_of(row->file), base_of(search->plan->file)) == 0,
    };
    return ERR_OK;
}

/* Read the plan text of a run: the original or a later update. */
static enum err on_text(void *ctx, const struct store_fragment *row)
{
    char **text = ctx;
    if (row->number == 0 || revise_is_update(row->file)) {
        mem_free(*text);
        *text = mem_strndup(row->text, row->text_bytes);
    }
    return ERR_OK;
}

/* Find the last run with the same plan text or file, unless a removed run is
 * newer. */
static enum err
find_last(struct search *search, struct store *store, struct diag *diag)
{
    static const struct store_visitor visitor = {.fragment = on_text};
    enum err err = ERR_OK;
    for (uint32_t ix = search->count; err == ERR_OK && ix > 0; ix--) {
        const struct candidate *run = &search->runs[ix - 1];
        if (run->number < search->found.number) {
            break;
        }
        char *text = NULL;
        struct store_query query = {.run = run->id};
        err = store_read(store, &query, &visitor, &text, NULL, diag);
        if (err == ERR_OK && text != NULL &&
            (run->same_file || strcmp(text, search->plan->text) == 0)) {
            take(search, run->id, run->number);
            search->text = text;
            break;
        }
        mem_free(text);
    }
    return err;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

/* Read the record of a removed run. */
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

/* Append the line at `text` in quotes, or "missing" or "empty". */
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

/* Reject a plan that differs from the plan of the finished run. */
static enum err refuse(const struct search *search, struct diag *diag)
{
    if (search->found.removed) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "run \"%s\" has finished, and its plan has changed "
                        "since: use --new to start another run",
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
        .setting = on_setting,
    };
    static const struct store_query query = {.finished = true};
    struct search search = {.plan = plan};
    *out = (struct past_run){0};
    enum err err = store_read(store, &query, &visitor, &search, NULL, diag);
    if (err == ERR_OK && !search.unfinished) {
        err = find_last(&search, store, diag);
    }
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
    for (uint32_t ix = 0; ix < search.count; ix++) {
        mem_free(search.runs[ix].id);
    }
    mem_free(search.runs);
    mem_free(search.found.id);
    mem_free(search.text);
    return err;
}

struct old_search {
    const struct past_plan *plan;
    bool found;
};

static enum err on_any_run(void *ctx, const struct store_run *row)
{
    struct old_search *search = ctx;
    search->found =
        search->found || (row->rules < PLAN_RULES &&
                          strcmp(row->name, search->plan->name) == 0 &&
                          strcmp(row->folder, search->plan->folder) == 0);
    return ERR_OK;
}

bool past_may_have_old_rules(const char *option, const struct past_plan *plan)
{
    static const struct store_visitor visitor = {.run = on_any_run};
    static const struct store_query query = {.finished = true};
    struct old_search search = {.plan = plan};
    struct store_place place = {0};
    struct store *store = NULL;
    struct diag ignored = {0};
    if (store_place_find(&place, option, false, &ignored) == ERR_OK) {
        search.found =
            store_open(&store, place.address, STORE_READ, &ignored) != ERR_OK ||
            store_read(store, &query, &visitor, &search, NULL, &ignored) !=
                ERR_OK ||
            search.found;
        store_close(store);
    }
    store_place_release(&place);
    return search.found;
}

struct finding {
    struct strbuf *out;
    const char *id;
};

static enum err on_event(void *ctx, const struct store_event *row)
{
    struct finding *finding = ctx;
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
    struct finding finding = {.out = out, .id = id};
    struct diag ignored = {0};
    (void)!store_events(store,
                        &(struct store_range){.run = number},
                        on_event,
                        &finding,
                        &ignored);
}
