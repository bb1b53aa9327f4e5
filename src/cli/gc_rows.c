/* SPDX-License-Identifier: MIT */
/*
 * The store is read once, which gives the ranges of each run's events and
 * tasks. Requests cover only these ranges, in steps of a fixed number of rows.
 * The run row is removed last, so that an interrupted removal finds the run
 * again.
 */
#include "cli/gc_rows.h"

#include "base/arena.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cli/request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows per transaction. */
enum { STEP = 5000 };

struct row {
    struct gc_rows_run run;
    uint32_t number;
    bool finished;
    uint32_t in_flight;
    uint32_t notices;
    uint64_t task_end; /* one more than the greatest index */
    uint64_t first;    /* first and last event */
    uint64_t last;
    int64_t last_ns; /* wall clock of the last change */
};

struct table {
    struct row *rows; /* sorted by number */
    uint32_t count;
    uint32_t capacity;
    struct arena texts;
};

static struct row *find(const struct table *table, uint64_t number)
{
    uint32_t low = 0;
    uint32_t high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table->rows[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < table->count && table->rows[low].number == number;
    return found ? &table->rows[low] : NULL;
}

static void see(struct row *row, int64_t wall_ns)
{
    row->last_ns = wall_ns > row->last_ns ? wall_ns : row->last_ns;
}

static enum err on_run(void *ctx, const struct store_run *run)
{
    struct table *table = ctx;
    MEM_GROW(table->rows, table->count, table->capacity);
    table->rows[table->count++] = (struct row){
        .run.id = arena_strndup(&table->texts, run->id, strlen(run->id)),
        .number = run->number,
        .finished = run->finished,
        .last_ns = run->created_ns,
    };
    return ERR_OK;
}

static enum err on_task(void *ctx, const struct store_task *task)
{
    struct row *row = find(ctx, task->run);
    if (row != NULL) {
        row->run.tasks++;
        row->task_end = (uint64_t)task->ix + 1;
    }
    return ERR_OK;
}

static enum err on_attempt(void *ctx, const struct store_attempt *attempt)
{
    struct row *row = find(ctx, attempt->run);
    if (row != NULL) {
        row->run.attempts++;
        row->in_flight += strcmp(attempt->state, "ended") == 0 ? 0 : 1;
        see(row, attempt->ended_ns);
    }
    return ERR_OK;
}

/* Count the events not yet delivered to hooks: "notice/RUN/EVENT". */
static enum err on_setting(void *ctx, const struct store_setting *setting)
{
    static const char prefix[] = "notice/";
    if (strncmp(setting->name, prefix, strlen(prefix)) == 0) {
        struct row *row =
            find(ctx, strtoull(setting->name + strlen(prefix), NULL, 10));
        if (row != NULL) {
            row->notices++;
        }
    }
    return ERR_OK;
}

static enum err on_event(void *ctx, const struct store_event *event)
{
    struct row *row = event->run != STORE_NONE ? find(ctx, event->run) : NULL;
    if (row != NULL) {
        row->run.events++;
        row->first = row->first > 0 ? row->first : event->number;
        row->last = event->number;
        see(row, event->wall_ns);
    }
    return ERR_OK;
}

static enum err
fill(struct table *table, const struct gc_rows *rows, struct diag *diag)
{
    static const struct store_visitor visitor = {
        .run = on_run,
        .task = on_task,
        .attempt = on_attempt,
        .setting = on_setting,
    };
    static const struct store_query query = {.finished = true, .ended = true};
    enum err err = store_read(rows->store, &query, &visitor, table, NULL, diag);
    if (err == ERR_OK) {
        static const struct store_range all = {0};
        err = store_events(rows->store, &all, on_event, table, diag);
    }
    return err;
}

/* Whether the store has files of a run. */
static bool has_files(const struct gc_rows *rows, const char *id)
{
    static const char *const folders[] = {"runs", "worktrees"};
    bool found = false;
    for (size_t ix = 0; ix < ARRAY_COUNT(folders); ix++) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/%s/%s", rows->place->home, folders[ix], id);
        found = found || access(strbuf_text(&path), F_OK) == 0;
        strbuf_release(&path);
    }
    return found;
}

/* Return why the rows of an old, finished run must stay; NULL: remove them. */
static const char *why_kept(const struct gc_rows *rows, const struct row *row)
{
    if (row->in_flight > 0) {
        return "an attempt is in flight: check with 'sluice doctor'";
    }
    if (row->notices > 0) {
        return "an event is not yet delivered to a hook";
    }
    /* In a dry run, files that gc would have removed still exist. */
    bool would_go = rows->dry && rows->wall_ns - row->last_ns >= rows->keep_ns;
    if (!would_go && has_files(rows, row->run.id)) {
        return "its files are still in the store";
    }
    return NULL;
}

/* Send one request; an answer other than ok is an error. */
static enum err give(const struct gc_rows *rows,
                     const struct row *row,
                     const char *part,
                     uint64_t first,
                     uint64_t last,
                     struct diag *diag)
{
    struct strbuf text = {0};
    struct request_answer answer;
    struct jsonw json = {.out = &text};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "verb", "prune");
    jsonw_int(&json, "number", row->number);
    jsonw_text(&json, "part", part);
    jsonw_int(&json, "first", (int64_t)first);
    jsonw_int(&json, "last", (int64_t)last);
    jsonw_object_end(&json);
    enum err err = request_give(rows->place, strbuf_text(&text), &answer, diag);
    if (err == ERR_OK && answer.err != ERR_OK) {
        err = diag_set(diag, answer.err, "%s", answer.text);
    }
    request_release(&answer);
    strbuf_release(&text);
    return err;
}

static enum err
remove_run(const struct gc_rows *rows, const struct row *row, struct diag *diag)
{
    enum err err = ERR_OK;
    for (uint64_t at = row->first;
         row->first > 0 && at <= row->last && err == ERR_OK;
         at += STEP) {
        uint64_t last = at + STEP - 1 < row->last ? at + STEP - 1 : row->last;
        err = give(rows, row, "events", at, last, diag);
    }
    for (uint64_t at = 0; at < row->task_end && err == ERR_OK; at += STEP) {
        err = give(rows, row, "tasks", at, at + STEP - 1, diag);
    }
    if (err == ERR_OK) {
        err = give(rows, row, "run", 0, 0, diag);
    }
    return err;
}

enum err gc_rows_prune(const struct gc_rows *rows, struct diag *diag)
{
    struct table table = {0};
    enum err err = fill(&table, rows, diag);
    for (uint32_t ix = 0; ix < table.count && err == ERR_OK; ix++) {
        const struct row *row = &table.rows[ix];
        if (!row->finished || rows->wall_ns - row->last_ns < rows->age_ns) {
            continue;
        }
        const char *reason = why_kept(rows, row);
        enum err refused = ERR_OK;
        if (reason == NULL && !rows->dry) {
            refused = remove_run(rows, row, diag);
            reason = refused != ERR_OK ? diag->text : NULL;
        }
        if (reason == NULL) {
            rows->removed(rows->ctx, &row->run);
        } else {
            rows->kept(rows->ctx, row->run.id, reason, refused != ERR_OK);
        }
    }
    mem_free(table.rows);
    arena_release(&table.texts);
    return err;
}
