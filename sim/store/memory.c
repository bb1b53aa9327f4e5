/* SPDX-License-Identifier: MIT */
/*
 * An in-memory database. The rows of each kind are in an array, in read order.
 * No other store can write between two calls, so reading needs no snapshot.
 * Each change adds an undo record; a batch that fails is rolled back by
 * applying these in reverse.
 *
 * Strings are never freed one by one. Short strings, mostly state names, are
 * interned; a row that is rewritten with the same string keeps the old string.
 */
#include "sim/store/memory.h"

#include "base/arena.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/strmap.h"
#include "plan/revise.h"
#include "store/backend.h"
#include "store/columns.h"
#include "store/event.h"
#include "store/pruned.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHORT_BYTES_MAX = 24 };

struct rows {
    union store_row *items;
    uint32_t count;
    uint32_t capacity;
};

/* Undo record of one change. */
struct undo {
    enum store_kind kind;
    enum { UNDO_ADDED, UNDO_CHANGED, UNDO_REMOVED } what;
    uint32_t ix;
    union store_row old;
};

struct store_memory_db {
    bool made; /* a scheduler has taken it before */
    struct store_info info;
    struct store_owner owner;   /* the last owner */
    const struct store *holder; /* of the lock; NULL: none */
    store_memory_fault_fn fault;
    void *fault_ctx;
    struct rows rows[STORE_KINDS];
    struct undo *undos;
    uint32_t undo_count;
    uint32_t undo_capacity;
    const char **texts; /* short strings, interned */
    uint32_t text_count;
    uint32_t text_capacity;
    struct strmap text_map;
    struct arena arena; /* all strings; freed only at the end */
};

struct memory_store {
    struct store base;
    struct store_memory_db *db;
    enum store_mode mode;
};

static struct store_memory_db *db_of(struct store *base)
{
    return ((struct memory_store *)base)->db;
}

struct store_memory_db *store_memory_db_new(void)
{
    struct store_memory_db *db = mem_zalloc(1, sizeof(*db));
    (void)snprintf(db->info.id, sizeof(db->info.id), "%p", (void *)db);
    return db;
}

void store_memory_db_free(struct store_memory_db *db)
{
    if (db == NULL) {
        return;
    }
    for (size_t kind = 0; kind < STORE_KINDS; kind++) {
        mem_free(db->rows[kind].items);
    }
    mem_free(db->undos);
    mem_free(db->texts);
    strmap_release(&db->text_map);
    arena_release(&db->arena);
    mem_free(db);
}

void store_memory_release_lock(struct store_memory_db *db)
{
    db->holder = NULL;
}

void store_memory_set_fault(struct store_memory_db *db,
                            store_memory_fault_fn fn,
                            void *ctx)
{
    db->fault = fn;
    db->fault_ctx = ctx;
}

/* Grow an array by one element. */
static void *grow(void *items, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (count < *capacity) {
        return items;
    }
    INVARIANT(*capacity <= UINT32_MAX / 2);
    *capacity = *capacity == 0 ? 8 : 2 * *capacity;
    return mem_resize(items, *capacity, bytes);
}

/* --- rows --------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Compare the keys of two rows. */
static int compare(enum store_kind kind,
                   const union store_row *a,
                   const union store_row *b)
{
    int by_run;
    switch (kind) {
    case STORE_KIND_RUN:
        return compare_numbers(a->run.number, b->run.number);
    case STORE_KIND_FRAGMENT:
        by_run = compare_numbers(a->fragment.run, b->fragment.run);
        return by_run != 0
                   ? by_run
                   : compare_numbers(a->fragment.number, b->fragment.number);
    case STORE_KIND_LIMIT:
        by_run = compare_numbers(a->limit.run, b->limit.run);
        return by_run != 0 ? by_run : strcmp(a->limit.name, b->limit.name);
    case STORE_KIND_PROVIDER:
        return strcmp(a->provider.name, b->provider.name);
    case STORE_KIND_SETTING:
        return strcmp(a->setting.name, b->setting.name);
    case STORE_KIND_TASK:
        by_run = compare_numbers(a->task.run, b->task.run);
        return by_run != 0 ? by_run : compare_numbers(a->task.ix, b->task.ix);
    case STORE_KIND_ATTEMPT:
        return compare_numbers(a->attempt.token, b->attempt.token);
    case STORE_KIND_GATE:
        by_run = compare_numbers(a->gate.token, b->gate.token);
        return by_run != 0 ? by_run
                           : compare_numbers(a->gate.place, b->gate.place);
    case STORE_KIND_COMMAND:
        return compare_numbers(a->command.number, b->command.number);
    case STORE_KIND_EVENT:
        return compare_numbers(a->event.number, b->event.number);
    case STORE_KINDS:
        break;
    }
    INVARIANT(false); /* all kinds are above */
    return 0;
}

/* Find the position of a row; return whether it exists. */
static bool find(const struct store_memory_db *db,
                 enum store_kind kind,
                 const union store_row *row,
                 uint32_t *ix_out)
{
    const struct rows *rows = &db->rows[kind];
    uint32_t low = 0;
    uint32_t high = rows->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(kind, &rows->items[middle], row) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ix_out = low;
    return low < rows->count && compare(kind, &rows->items[low], row) == 0;
}

static const union store_row *find_run(const struct store_memory_db *db,
                                       uint32_t number)
{
    union store_row key = {.run.number = number};
    uint32_t ix;
    return find(db, STORE_KIND_RUN, &key, &ix)
               ? &db->rows[STORE_KIND_RUN].items[ix]
               : NULL;
}

static void insert(struct rows *rows, uint32_t ix, const union store_row *row)
{
    INVARIANT(ix <= rows->count);
    rows->items =
        grow(rows->items, rows->count, &rows->capacity, sizeof(rows->items[0]));
    memmove(&rows->items[ix + 1],
            &rows->items[ix],
            (rows->count++ - ix) * sizeof(rows->items[0]));
    rows->items[ix] = *row;
}

static void take_out(struct rows *rows, uint32_t ix)
{
    INVARIANT(ix < rows->count);
    memmove(&rows->items[ix],
            &rows->items[ix + 1],
            (--rows->count - ix) * sizeof(rows->items[0]));
}

static struct undo *
add_undo(struct store_memory_db *db, enum store_kind kind, uint32_t ix)
{
    db->undos = grow(db->undos,
                     db->undo_count,
                     &db->undo_capacity,
                     sizeof(db->undos[0]));
    struct undo *undo = &db->undos[db->undo_count++];
    undo->kind = kind;
    undo->ix = ix;
    return undo;
}

static void
drop_row(struct store_memory_db *db, enum store_kind kind, uint32_t ix)
{
    struct undo *undo = add_undo(db, kind, ix);
    undo->what = UNDO_REMOVED;
    undo->old = db->rows[kind].items[ix];
    take_out(&db->rows[kind], ix);
}

static void undo_all(struct store_memory_db *db)
{
    while (db->undo_count > 0) {
        const struct undo *undo = &db->undos[--db->undo_count];
        struct rows *rows = &db->rows[undo->kind];
        switch (undo->what) {
        case UNDO_ADDED:
            take_out(rows, undo->ix);
            break;
        case UNDO_CHANGED:
            INVARIANT(undo->ix < rows->count);
            rows->items[undo->ix] = undo->old;
            break;
        case UNDO_REMOVED:
            insert(rows, undo->ix, &undo->old);
            break;
        }
    }
}

/* --- strings ------------------------------------------------------------ */

/* Return a copy that lives as long as the database; `old` is the old value. */
static const char *
keep(struct store_memory_db *db, const char *old, const char *text)
{
    if (text == NULL || (old != NULL && strcmp(old, text) == 0)) {
        return text == NULL ? NULL : old;
    }
    size_t len = strlen(text);
    if (len > SHORT_BYTES_MAX) {
        return arena_strndup(&db->arena, text, len);
    }
    uint32_t ix = strmap_find(&db->text_map, text, len);
    if (ix != STRMAP_NONE) {
        return db->texts[ix];
    }
    db->texts = grow(db->texts,
                     db->text_count,
                     &db->text_capacity,
                     sizeof(db->texts[0]));
    const char *kept = arena_strndup(&db->arena, text, len);
    db->texts[db->text_count] = kept;
    (void)strmap_add(&db->text_map, kept, db->text_count++);
    return kept;
}

/* Copy a row over an old row (zeros: none), as `how` specifies. */
static void copy_row(struct store_memory_db *db,
                     enum store_kind kind,
                     enum store_put how,
                     union store_row *to,
                     const union store_row *from)
{
    const struct column_table *table = columns_of(kind);
    for (uint32_t ix = 0; ix < table->count; ix++) {
        const struct column *column = &table->columns[ix];
        char *at = (char *)to + column->offset;
        const char *new = (const char *)from + column->offset;
        if (how == STORE_PUT_UPDATE && column->fixed) {
            continue;
        }
        const char *text;
        const char *old;
        size_t bytes;
        if (column->type == COLUMN_TEXT ||
            column->type == COLUMN_TEXT_OR_NULL) {
            memcpy(&text, new, sizeof(text));
            memcpy(&old, at, sizeof(old));
            INVARIANT(text != NULL || column->type != COLUMN_TEXT);
            text = keep(db, old, text);
            memcpy(at, &text, sizeof(text));
        } else if (column->type == COLUMN_BYTES) {
            memcpy(&text, new, sizeof(text));
            memcpy(&bytes, new + sizeof(text), sizeof(bytes));
            text = arena_strndup(&db->arena, text, bytes);
            memcpy(at, &text, sizeof(text));
            memcpy(at + sizeof(text), &bytes, sizeof(bytes));
        } else {
            memcpy(at, new, column->size);
        }
    }
}

/* --- open and close ----------------------------------------------------- */

static void close_store(struct store *base)
{
    struct store_memory_db *db = db_of(base);
    if (db->holder == base) {
        db->holder = NULL;
    }
    mem_free(base);
}

static enum err
get_owner(struct store *base, struct store_owner *out, struct diag *diag)
{
    struct store_memory_db *db = db_of(base);
    *out = db->owner;
    out->age_ns = -1; /* no clock */
    out->silent_ns = -1;
    return db->holder != NULL
               ? ERR_OK
               : diag_set(diag, ERR_NOT_FOUND, "the store has no scheduler");
}

static enum err take(struct store *base,
                     const struct store_owner *self,
                     uint64_t *epoch_out,
                     struct diag *diag)
{
    struct store_memory_db *db = db_of(base);
    INVARIANT(((struct memory_store *)base)->mode == STORE_WRITE);
    if (db->holder != NULL) {
        return diag_set(diag,
                        ERR_BUSY,
                        "the process %" PRId64 " on %s is the scheduler",
                        db->owner.pid,
                        db->owner.host[0] != '\0' ? db->owner.host
                                                  : "this machine");
    }
    db->made = true;
    db->holder = base;
    db->owner = *self;
    db->owner.epoch = ++db->info.epoch;
    db->info.writes++;
    *epoch_out = db->info.epoch;
    return ERR_OK;
}

static enum err beat(struct store *base, const char *trouble, struct diag *diag)
{
    (void)diag;
    struct store_owner *owner = &db_of(base)->owner;
    if (base->epoch == owner->epoch) {
        owner->commits = base->commits;
        owner->commit_ns = base->commit_ns;
        (void)snprintf(owner->trouble, sizeof(owner->trouble), "%s", trouble);
    }
    return ERR_OK;
}

/* --- reading ------------------------------------------------------------ */

static enum err
hold(struct store *base, struct store_info *out, struct diag *diag)
{
    struct store_memory_db *db = db_of(base);
    *out = db->info;
    return db->made ? ERR_OK : diag_set(diag, ERR_NOT_FOUND, "no store");
}

static void let_go(struct store *base)
{
    (void)base; /* nothing to release */
}

static bool is_run_wanted(const struct store_query *query,
                          const union store_row *row)
{
    if (row == NULL) {
        return false;
    }
    return query->run != NULL ? strcmp(query->run, row->run.id) == 0
                              : query->finished || !row->run.finished;
}

static bool is_wanted(const struct store_memory_db *db,
                      enum store_kind kind,
                      const struct store_query *query,
                      const union store_row *row)
{
    switch (kind) {
    case STORE_KIND_RUN:
        return is_run_wanted(query, row) != query->others;
    case STORE_KIND_FRAGMENT:
        return is_run_wanted(query, find_run(db, row->fragment.run));
    case STORE_KIND_LIMIT:
        return is_run_wanted(query, find_run(db, row->limit.run));
    case STORE_KIND_TASK:
        return (query->task == NULL ||
                strcmp(query->task, row->task.id) == 0) &&
               is_run_wanted(query, find_run(db, row->task.run));
    case STORE_KIND_ATTEMPT:
        return (query->ended || strcmp(row->attempt.state, "ended") != 0) &&
               is_run_wanted(query, find_run(db, row->attempt.run));
    case STORE_KIND_GATE:
        if (query->repo != NULL || query->gates > 0) {
            return query->repo == NULL ||
                   strcmp(query->repo, row->gate.repo) == 0;
        }
        return is_run_wanted(query, find_run(db, row->gate.run));
    case STORE_KIND_COMMAND:
        if (query->key != NULL) {
            return row->command.key != NULL &&
                   strcmp(row->command.key, query->key) == 0;
        }
        return query->answered || row->command.answer == NULL;
    case STORE_KIND_PROVIDER:
    case STORE_KIND_SETTING:
    case STORE_KIND_EVENT:
    case STORE_KINDS:
        break;
    }
    return true;
}

static enum err read_rows(struct store *base,
                          enum store_kind kind,
                          const struct store_query *query,
                          store_row_fn fn,
                          void *ctx,
                          struct diag *diag)
{
    (void)diag;
    const struct store_memory_db *db = db_of(base);
    enum err err = ERR_OK;
    uint32_t ix = 0;
    if (kind == STORE_KIND_GATE && query != NULL && query->repo == NULL &&
        query->gates > 0 && db->rows[kind].count > query->gates) {
        ix = db->rows[kind].count - query->gates;
    }
    for (; ix < db->rows[kind].count && err == ERR_OK; ix++) {
        /* Copied: `fn` may write, through another store. */
        union store_row row = db->rows[kind].items[ix];
        if (query == NULL || is_wanted(db, kind, query, &row)) {
            err = fn(ctx, &row);
        }
    }
    return err;
}

static enum err read_events(struct store *base,
                            const struct store_range *range,
                            store_row_fn fn,
                            void *ctx,
                            struct diag *diag)
{
    struct store_info info;
    const struct store_memory_db *db = db_of(base);
    const struct rows *events = &db->rows[STORE_KIND_EVENT];
    enum err err = hold(base, &info, diag);
    uint32_t given = 0;
    uint32_t ix;
    union store_row key = {.event.number = range->after + 1};
    (void)find(db, STORE_KIND_EVENT, &key, &ix);
    for (; ix < events->count && err == ERR_OK &&
           (range->max == 0 || given < range->max);
         ix++) {
        union store_row row = events->items[ix];
        if (range->run == 0 || row.event.run == range->run ||
            row.event.run == STORE_NONE) {
            given++;
            err = fn(ctx, &row);
        }
    }
    return err;
}

/* --- writing ------------------------------------------------------------ */

static enum err
begin(struct store *base, struct store_info *out, struct diag *diag)
{
    INVARIANT(db_of(base)->undo_count == 0);
    return hold(base, out, diag);
}

static enum err ask_fault(struct store *base,
                          enum store_memory_moment moment,
                          struct diag *diag)
{
    struct store_memory_db *db = db_of(base);
    enum err err = db->fault == NULL
                       ? ERR_OK
                       : db->fault(db->fault_ctx, moment, base->batch);
    if (err == ERR_OK) {
        return ERR_OK;
    }
    INVARIANT(err != ERR_LIMIT || moment == STORE_MEMORY_BEFORE);
    (void)diag_set(diag, err, "a fault was asked for: %s", err_text(err));
    return err == ERR_LIMIT ? err : store_give_up(base, err, diag);
}

static enum err
end(struct store *base, const struct store_info *info, struct diag *diag)
{
    struct store_memory_db *db = db_of(base);
    enum err err =
        info != NULL ? ask_fault(base, STORE_MEMORY_BEFORE, diag) : ERR_OK;
    if (err != ERR_OK || info == NULL) {
        undo_all(db);
        return err;
    }
    INVARIANT(info->writes == db->info.writes + 1);
    db->info = *info;
    db->undo_count = 0;
    return ask_fault(base, STORE_MEMORY_AFTER, diag);
}

static enum err need_run(struct store *base, uint32_t number, struct diag *diag)
{
    (void)diag;
    return find_run(db_of(base), number) != NULL ? ERR_OK : ERR_NOT_FOUND;
}

static bool has_setting(const struct store_memory_db *db,
                        const char *prefix,
                        const char *name)
{
    struct strbuf whole = {0};
    uint32_t ix;
    strbuf_addf(&whole, "%s%s", prefix, name);
    union store_row key = {.setting.name = strbuf_text(&whole)};
    bool found = find(db, STORE_KIND_SETTING, &key, &ix);
    strbuf_release(&whole);
    return found;
}

/* Return whether another row violates a unique constraint besides the key. */
static bool is_taken(const struct store_memory_db *db,
                     enum store_kind kind,
                     const union store_row *row,
                     uint32_t ix)
{
    const struct rows *rows = &db->rows[kind];
    if (kind == STORE_KIND_FRAGMENT) {
        const struct store_fragment *before =
            ix > 0 ? &rows->items[ix - 1].fragment : NULL;
        bool next = before != NULL && before->run == row->fragment.run
                        ? row->fragment.number == before->number + 1
                        : row->fragment.number == 0;
        return !next;
    }
    for (uint32_t n = rows->count; n > 0; n--) {
        const union store_row *other = &rows->items[n - 1];
        if ((kind == STORE_KIND_RUN &&
             strcmp(other->run.id, row->run.id) == 0) ||
            (kind == STORE_KIND_ATTEMPT &&
             other->attempt.task == row->attempt.task &&
             other->attempt.run == row->attempt.run &&
             other->attempt.number == row->attempt.number)) {
            return true;
        }
    }
    return kind == STORE_KIND_RUN && has_setting(db, "pruned/", row->run.id);
}

static bool may_change(enum store_kind kind, const union store_row *row)
{
    if (kind == STORE_KIND_ATTEMPT) {
        return strcmp(row->attempt.state, "ended") != 0;
    }
    return kind != STORE_KIND_COMMAND || row->command.answer == NULL;
}

static enum err put(struct store *base,
                    enum store_kind kind,
                    enum store_put how,
                    const union store_row *row,
                    struct diag *diag)
{
    (void)diag;
    struct store_memory_db *db = db_of(base);
    struct rows *rows = &db->rows[kind];
    uint32_t ix;
    bool there = find(db, kind, row, &ix);
    bool unique = kind == STORE_KIND_RUN || kind == STORE_KIND_FRAGMENT ||
                  kind == STORE_KIND_ATTEMPT;
    if (how == STORE_PUT_DROP) {
        if (there) {
            drop_row(db, kind, ix);
        }
        return ERR_OK;
    }
    if ((how == STORE_PUT_NEW &&
         (there || (unique && is_taken(db, kind, row, ix)))) ||
        (how == STORE_PUT_UPDATE &&
         (!there || !may_change(kind, &rows->items[ix])))) {
        return ERR_CONFLICT;
    }
    struct undo *undo = add_undo(db, kind, ix);
    undo->what = there ? UNDO_CHANGED : UNDO_ADDED;
    if (there) {
        undo->old = rows->items[ix];
        copy_row(db, kind, how, &rows->items[ix], row);
    } else {
        union store_row made = {0};
        copy_row(db, kind, how, &made, row);
        insert(rows, ix, &made);
    }
    return ERR_OK;
}

/* --- removing runs, as sqlite_prune.c does ------------------------------ */

static void set(struct store *base, const char *name, const char *value)
{
    union store_row row = {.setting = {.name = name, .value = value}};
    enum err err = put(base,
                       STORE_KIND_SETTING,
                       value != NULL ? STORE_PUT_REPLACE : STORE_PUT_DROP,
                       &row,
                       NULL);
    INVARIANT(err == ERR_OK);
}

/* Find the gap that ends before `number`, or begins with it; false: none. */
static bool find_gap(const struct store_memory_db *db,
                     uint64_t number,
                     bool before,
                     struct event_gap *out)
{
    const struct rows *settings = &db->rows[STORE_KIND_SETTING];
    for (uint32_t ix = 0; ix < settings->count; ix++) {
        const struct store_setting *row = &settings->items[ix].setting;
        struct event_gap gap;
        if (event_gap_read(row->name, row->value, &gap) &&
            (before ? gap.last + 1 : gap.first) == number) {
            *out = gap;
            return true;
        }
    }
    return false;
}

/* Add a gap, merged with adjacent gaps. */
static void add_gap(struct store *base, struct event_gap gap)
{
    struct event_gap other = {0};
    if (find_gap(db_of(base), gap.last + 1, false, &other)) {
        gap.last = other.last;
        gap.sum = other.sum;
        set(base, event_gap_write(&other).name, NULL);
    }
    if (find_gap(db_of(base), gap.first, true, &other)) {
        gap.first = other.first;
    }
    struct event_gap_texts texts = event_gap_write(&gap);
    set(base, texts.name, texts.value);
}

static void prune_events(struct store *base, const struct store_prune *prune)
{
    struct store_memory_db *db = db_of(base);
    struct rows *events = &db->rows[STORE_KIND_EVENT];
    for (uint32_t ix = events->count; ix > 0; ix--) {
        const struct store_event *event = &events->items[ix - 1].event;
        if (event->run == prune->run && event->number >= prune->first &&
            event->number <= prune->last) {
            add_gap(base,
                    (struct event_gap){
                        .first = event->number,
                        .last = event->number,
                        .sum = event->sum,
                    });
            drop_row(db, STORE_KIND_EVENT, ix - 1);
        }
    }
}

/* Return whether the run, and its task unless STORE_NONE, has a row left. */
static bool has_row(const struct store_memory_db *db,
                    enum store_kind kind,
                    uint32_t run,
                    uint32_t task)
{
    const struct rows *rows = &db->rows[kind];
    for (uint32_t ix = 0; ix < rows->count; ix++) {
        const union store_row *row = &rows->items[ix];
        bool own = kind == STORE_KIND_TASK
                       ? row->task.run == run
                       : row->attempt.run == run &&
                             (task == STORE_NONE || row->attempt.task == task);
        if (own) {
            return true;
        }
    }
    return false;
}

static void prune_tasks(struct store_memory_db *db,
                        const struct store_prune *prune)
{
    struct rows *attempts = &db->rows[STORE_KIND_ATTEMPT];
    for (uint32_t ix = attempts->count; ix > 0; ix--) {
        const struct store_attempt *row = &attempts->items[ix - 1].attempt;
        if (row->run == prune->run && row->task >= prune->first &&
            row->task <= prune->last && strcmp(row->state, "ended") == 0) {
            drop_row(db, STORE_KIND_ATTEMPT, ix - 1);
        }
    }
    struct rows *gates = &db->rows[STORE_KIND_GATE];
    for (uint32_t ix = gates->count; ix > 0; ix--) {
        const struct store_gate *row = &gates->items[ix - 1].gate;
        union store_row attempt = {.attempt.token = row->token};
        uint32_t unused;
        if (row->run == prune->run && row->task >= prune->first &&
            row->task <= prune->last &&
            !find(db, STORE_KIND_ATTEMPT, &attempt, &unused)) {
            drop_row(db, STORE_KIND_GATE, ix - 1);
        }
    }
    union store_row key = {.run.number = prune->run};
    uint32_t run;
    bool there = find(db, STORE_KIND_RUN, &key, &run);
    INVARIANT(there);
    struct rows *tasks = &db->rows[STORE_KIND_TASK];
    for (uint32_t ix = tasks->count; ix > 0; ix--) {
        const struct store_task *row = &tasks->items[ix - 1].task;
        if (row->run == prune->run && row->ix >= prune->first &&
            row->ix <= prune->last && strcmp(row->state, "cancelled") == 0) {
            db->rows[STORE_KIND_RUN].items[run].run.cancelled = true;
        }
        if (row->run == prune->run && row->ix >= prune->first &&
            row->ix <= prune->last &&
            !has_row(db, STORE_KIND_ATTEMPT, row->run, row->ix)) {
            drop_row(db, STORE_KIND_TASK, ix - 1);
        }
    }
}

/* Remove the settings KIND/NUMBER and KIND/NUMBER/... */
static void drop_settings(struct store_memory_db *db, uint32_t number)
{
    static const char *const kinds[] = {"base",
                                        "budget",
                                        "expected",
                                        "notice",
                                        "usage"};
    struct rows *settings = &db->rows[STORE_KIND_SETTING];
    struct strbuf prefix = {0};
    for (size_t kind = 0; kind < ARRAY_COUNT(kinds); kind++) {
        strbuf_clear(&prefix);
        strbuf_addf(&prefix, "%s/%u", kinds[kind], number);
        for (uint32_t ix = settings->count; ix > 0; ix--) {
            const char *name = settings->items[ix - 1].setting.name;
            if (strncmp(name, strbuf_text(&prefix), prefix.len) == 0 &&
                (name[prefix.len] == '\0' || name[prefix.len] == '/')) {
                drop_row(db, STORE_KIND_SETTING, ix - 1);
            }
        }
    }
    strbuf_release(&prefix);
}

static void prune_run(struct store *base, const struct store_run *run)
{
    struct store_memory_db *db = db_of(base);
    uint32_t number = run->number;
    if (has_row(db, STORE_KIND_TASK, number, STORE_NONE) ||
        has_row(db, STORE_KIND_ATTEMPT, number, STORE_NONE)) {
        return;
    }
    struct store_run row = *run;
    const struct rows *texts = &db->rows[STORE_KIND_FRAGMENT];
    for (uint32_t ix = 0; ix < texts->count; ix++) {
        const struct store_fragment *fragment = &texts->items[ix].fragment;
        if (fragment->run == number &&
            (fragment->number == 0 ||
             strncmp(fragment->file, REVISE_MARK, strlen(REVISE_MARK)) == 0)) {
            row.text = fragment->text;
            row.text_bytes = fragment->text_bytes;
        }
    }
    struct strbuf name = {0};
    struct strbuf value = {0};
    strbuf_addf(&name, PRUNED_PREFIX "%s", run->id);
    pruned_add(&value, &row);
    set(base, strbuf_text(&name), strbuf_text(&value));
    strbuf_release(&name);
    strbuf_release(&value);
    drop_settings(db, number);
    for (uint32_t ix = db->rows[STORE_KIND_FRAGMENT].count; ix > 0; ix--) {
        if (db->rows[STORE_KIND_FRAGMENT].items[ix - 1].fragment.run ==
            number) {
            drop_row(db, STORE_KIND_FRAGMENT, ix - 1);
        }
    }
    for (uint32_t ix = db->rows[STORE_KIND_LIMIT].count; ix > 0; ix--) {
        if (db->rows[STORE_KIND_LIMIT].items[ix - 1].limit.run == number) {
            drop_row(db, STORE_KIND_LIMIT, ix - 1);
        }
    }
    union store_row key = {.run.number = number};
    uint32_t ix;
    bool there = find(db, STORE_KIND_RUN, &key, &ix);
    INVARIANT(there);
    drop_row(db, STORE_KIND_RUN, ix);
}

static enum err
prune(struct store *base, const struct store_prune *prune, struct diag *diag)
{
    (void)diag;
    const union store_row *run = find_run(db_of(base), prune->run);
    if (run == NULL || !run->run.finished) {
        return ERR_OK;
    }
    switch (prune->part) {
    case STORE_PRUNE_EVENTS:
        prune_events(base, prune);
        break;
    case STORE_PRUNE_TASKS:
        prune_tasks(db_of(base), prune);
        break;
    case STORE_PRUNE_RUN:
        prune_run(base, &run->run);
        break;
    }
    return ERR_OK;
}

static enum err
check(struct store *base, store_fault_fn fn, void *ctx, struct diag *diag)
{
    struct store_info info;
    (void)fn; /* no layer below the rows */
    (void)ctx;
    return hold(base, &info, diag);
}

/* Requests of the simulated world reach its scheduler without the store. */
static enum err ask(struct store *base,
                    const char *json,
                    int timeout_ms,
                    char **answer_out,
                    struct diag *diag)
{
    (void)base;
    (void)json;
    (void)timeout_ms;
    (void)answer_out;
    return diag_set(diag, ERR_NOT_FOUND, "nobody listens");
}

static enum err
get_mark(struct store *base, struct store_mark *out, struct diag *diag)
{
    (void)diag;
    out->state[0] = db_of(base)->info.writes;
    out->settled = true;
    return ERR_OK;
}

static const struct store_ops memory_ops = {
    .name = "memory",
    .close = close_store,
    .owner = get_owner,
    .mark = get_mark,
    .take = take,
    .beat = beat,
    .hold = hold,
    .let_go = let_go,
    .rows = read_rows,
    .events = read_events,
    .begin = begin,
    .end = end,
    .find_run = need_run,
    .put = put,
    .prune = prune,
    .check = check,
    .ask = ask,
};

struct store *store_memory_open(struct store_memory_db *db,
                                enum store_mode mode)
{
    struct memory_store *store = mem_zalloc(1, sizeof(*store));
    store->base.ops = &memory_ops;
    store->db = db;
    store->mode = mode;
    return &store->base;
}
