/* SPDX-License-Identifier: MIT */
/*
 * Removal of finished runs. Each statement checks again that the run exists and
 * has finished, so that nothing depends on the caller's reads.
 *
 * The event log is a chain of sums. Where events are removed, a setting keeps
 * the sum of the last one, from which the next event's sum follows; adjacent
 * gaps are merged, so that there are never more gaps than remaining events.
 */
#include "store/sqlite_internal.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "plan/revise.h"
#include "store/pruned.h"

#include <string.h>

/* The statement's run, ?1, exists and has finished. */
#define GOING                                                                  \
    " EXISTS (SELECT 1 FROM run WHERE run.number = ?1 AND run.finished = 1)"

/* Prepare a statement whose parameters are run, first and last, in order. */
static enum err prepare(struct sqlite_store *store,
                        const char *sql,
                        const struct store_prune *prune,
                        sqlite3_stmt **out,
                        struct diag *diag)
{
    const int64_t numbers[] = {
        prune->run,
        (int64_t)prune->first,
        (int64_t)prune->last,
    };
    INVARIANT(store->writing && prune->run > 0);
    enum err err = sqlite_prepare(store, sql, out, diag);
    int count = err == ERR_OK ? sqlite3_bind_parameter_count(*out) : 0;
    INVARIANT(count <= (int)ARRAY_COUNT(numbers));
    for (int ix = 0; ix < count; ix++) {
        int rc = sqlite3_bind_int64(*out, ix + 1, numbers[ix]);
        INVARIANT(rc == SQLITE_OK);
    }
    return err;
}

static enum err change(struct sqlite_store *store,
                       const char *sql,
                       const struct store_prune *prune,
                       struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = prepare(store, sql, prune, &stmt, diag);
    if (err == ERR_OK) {
        err = sqlite_step(store, stmt, diag);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

static enum err change_all(struct sqlite_store *store,
                           const char *const *list,
                           const struct store_prune *prune,
                           struct diag *diag)
{
    enum err err = ERR_OK;
    for (; *list != NULL && err == ERR_OK; list++) {
        err = change(store, *list, prune, diag);
    }
    return err;
}

/* Read the gap that a query by name finds, or ERR_NOT_FOUND. */
static enum err read_gap(struct sqlite_store *store,
                         const char *sql,
                         uint64_t number,
                         struct event_gap *out,
                         struct diag *diag)
{
    INVARIANT(number > 0 && number <= INT64_MAX);
    struct event_gap key = {.first = number, .last = number};
    struct event_gap_texts texts = event_gap_write(&key);
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(store, sql, &stmt, diag);
    if (err != ERR_OK) {
        return err;
    }
    int rc = sqlite3_bind_text(stmt, 1, texts.name, -1, SQLITE_STATIC);
    rc = rc == SQLITE_OK ? sqlite3_step(stmt) : rc;
    if (rc == SQLITE_ROW) {
        struct sqlite_row row = {.stmt = stmt};
        bool good =
            event_gap_read(sqlite_text(&row, 0), sqlite_text(&row, 1), out);
        err = good && !row.bad ? ERR_OK : ERR_NOT_FOUND;
    } else {
        err = rc == SQLITE_DONE ? ERR_NOT_FOUND : sqlite_fail(store, rc, diag);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

enum err sqlite_find_gap(struct sqlite_store *store,
                         uint64_t first,
                         struct event_gap *out,
                         struct diag *diag)
{
    return read_gap(store,
                    "SELECT name, value FROM setting WHERE name = ?1",
                    first,
                    out,
                    diag);
}

/* Set or remove a setting. */
static enum err put_setting(struct sqlite_store *store,
                            enum store_put how,
                            const char *name,
                            const char *value,
                            struct diag *diag)
{
    union store_row row = {.setting = {.name = name, .value = value}};
    return sqlite_put(&store->base, STORE_KIND_SETTING, how, &row, diag);
}

/* The same for the row of a gap. */
static enum err put_gap(struct sqlite_store *store,
                        enum store_put how,
                        const struct event_gap *gap,
                        struct diag *diag)
{
    struct event_gap_texts texts = event_gap_write(gap);
    return put_setting(store, how, texts.name, texts.value, diag);
}

/* Store a gap, merged with adjacent gaps. */
static enum err
add_gap(struct sqlite_store *store, struct event_gap gap, struct diag *diag)
{
    struct event_gap other = {0};
    INVARIANT(gap.first > 0 && gap.first <= gap.last);
    enum err err = sqlite_find_gap(store, gap.last + 1, &other, diag);
    if (err == ERR_OK) {
        gap.last = other.last;
        gap.sum = other.sum;
        err = put_gap(store, STORE_PUT_DROP, &other, diag);
    } else if (err == ERR_NOT_FOUND) {
        err = ERR_OK;
    }
    if (err == ERR_OK) {
        err = read_gap(store,
                       "SELECT name, value FROM setting WHERE name < ?1"
                       " AND name > '" EVENT_GAP_PREFIX "'"
                       " ORDER BY name DESC LIMIT 1",
                       gap.first,
                       &other,
                       diag);
        if (err == ERR_OK && other.last + 1 == gap.first) {
            gap.first = other.first;
        }
        err = err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    return err == ERR_OK ? put_gap(store, STORE_PUT_REPLACE, &gap, diag) : err;
}

struct gaps {
    struct event_gap *items;
    uint32_t count;
};

/* Find the events to remove, as gaps. */
static enum err find_gaps(struct sqlite_store *store,
                          const struct store_prune *prune,
                          struct gaps *gaps,
                          struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = prepare(store,
                           "SELECT number, sum FROM event"
                           " WHERE number BETWEEN ?2 AND ?3"
                           " AND event.run = ?1 AND" GOING " ORDER BY number",
                           prune,
                           &stmt,
                           diag);
    if (err != ERR_OK) {
        return err;
    }
    int rc = SQLITE_ROW;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        uint64_t number = (uint64_t)sqlite3_column_int64(stmt, 0);
        uint64_t sum = (uint64_t)sqlite3_column_int64(stmt, 1);
        struct event_gap *last =
            gaps->count > 0 ? &gaps->items[gaps->count - 1] : NULL;
        if (last != NULL && last->last + 1 == number) {
            last->last = number;
            last->sum = sum;
            continue;
        }
        MEM_RESIZE(gaps->items, gaps->count + 1);
        gaps->items[gaps->count++] = (struct event_gap){number, number, sum};
    }
    err = rc == SQLITE_DONE ? ERR_OK : sqlite_fail(store, rc, diag);
    (void)sqlite3_finalize(stmt);
    return err;
}

static enum err prune_events(struct sqlite_store *store,
                             const struct store_prune *prune,
                             struct diag *diag)
{
    struct gaps gaps = {0};
    enum err err = find_gaps(store, prune, &gaps, diag);
    for (uint32_t ix = 0; ix < gaps.count && err == ERR_OK; ix++) {
        struct store_prune part = *prune;
        INVARIANT(gaps.items[ix].first >= prune->first);
        INVARIANT(gaps.items[ix].last <= prune->last);
        part.first = gaps.items[ix].first;
        part.last = gaps.items[ix].last;
        err = change(store,
                     "DELETE FROM event WHERE event.run = ?1"
                     " AND number BETWEEN ?2 AND ?3",
                     &part,
                     diag);
        if (err == ERR_OK) {
            err = add_gap(store, gaps.items[ix], diag);
        }
    }
    mem_free(gaps.items);
    return err;
}

/* Store the remains of a run, if all its other rows are removed. */
static enum err note_run(struct sqlite_store *store,
                         const struct store_prune *prune,
                         struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = prepare(
        store,
        "SELECT id, name, run.file, folder, cancelled, text FROM run"
        " CROSS JOIN fragment ON fragment.run = run.number"
        " WHERE run.number = ?1 AND finished = 1 AND (fragment.number = 0"
        "  OR instr(fragment.file, '" REVISE_MARK "') = 1)"
        " AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.run = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM task"
        "  WHERE key BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295)"
        " ORDER BY fragment.number DESC LIMIT 1",
        prune,
        &stmt,
        diag);
    if (err != ERR_OK) {
        return err;
    }
    struct strbuf name = {0};
    struct strbuf value = {0};
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        struct sqlite_row row = {.stmt = stmt};
        strbuf_addf(&name, PRUNED_PREFIX "%s", sqlite_text(&row, 0));
        struct store_run run = {
            .number = prune->run,
            .name = sqlite_text(&row, 1),
            .file = sqlite_text(&row, 2),
            .folder = sqlite_text(&row, 3),
            .finished = true,
            .cancelled = sqlite_i64(&row, 4) != 0,
            .text = sqlite3_column_blob(stmt, 5),
            .text_bytes = (size_t)sqlite3_column_bytes(stmt, 5),
        };
        pruned_add(&value, &run);
        err = put_setting(store,
                          STORE_PUT_REPLACE,
                          strbuf_text(&name),
                          strbuf_text(&value),
                          diag);
    } else if (rc != SQLITE_DONE) {
        err = sqlite_fail(store, rc, diag);
    }
    (void)sqlite3_finalize(stmt);
    strbuf_release(&name);
    strbuf_release(&value);
    return err;
}

enum err sqlite_prune(struct store *base,
                      const struct store_prune *prune,
                      struct diag *diag)
{
    static const char *const tasks[] = {
        "UPDATE run SET cancelled = 1 WHERE number = ?1 AND finished = 1"
        " AND EXISTS (SELECT 1 FROM task WHERE state = 'cancelled'"
        "  AND key BETWEEN (?1 << 32) + ?2"
        "  AND (?1 << 32) + min(?3, 4294967295))",
        "DELETE FROM attempt WHERE attempt.run = ?1"
        " AND task BETWEEN ?2 AND ?3 AND state = 'ended' AND" GOING,
        "DELETE FROM gate WHERE gate.run = ?1"
        " AND task BETWEEN ?2 AND ?3 AND NOT EXISTS"
        " (SELECT 1 FROM attempt WHERE attempt.token = gate.token) AND" GOING,
        "DELETE FROM task WHERE key BETWEEN (?1 << 32) + ?2"
        " AND (?1 << 32) + min(?3, 4294967295) AND NOT EXISTS"
        " (SELECT 1 FROM attempt WHERE attempt.run = ?1"
        "  AND attempt.task = task.ix) AND" GOING,
        NULL,
    };
    static const char *const run[] = {
        "DELETE FROM run WHERE number = ?1 AND EXISTS (SELECT 1 FROM setting"
        "  WHERE setting.name = 'pruned/' || run.id)",
        "DELETE FROM fragment WHERE run = ?1"
        " AND run NOT IN (SELECT run.number FROM run)",
        "DELETE FROM run_limit WHERE run = ?1"
        " AND run NOT IN (SELECT run.number FROM run)",
        "DELETE FROM setting WHERE ?1 NOT IN (SELECT run.number FROM run)"
        " AND (name = 'expected/' || ?1"
        "  OR (name > 'base/' || ?1 || '/' AND name < 'base/' || ?1 || '0')"
        "  OR (name > 'budget/' || ?1 || '/' AND name < 'budget/' || ?1 || '0')"
        "  OR (name > 'notice/' || ?1 || '/' AND name < 'notice/' || ?1 || '0')"
        "  OR (name > 'usage/' || ?1 || '/' AND name < 'usage/' || ?1 || '0')"
        "  OR (name > 'window/' || ?1 || '/'"
        "   AND name < 'window/' || ?1 || '0'))",
        NULL,
    };
    struct sqlite_store *store = (struct sqlite_store *)base;
    INVARIANT(store->writing);
    INVARIANT(prune->first <= prune->last || prune->part == STORE_PRUNE_RUN);
    switch (prune->part) {
    case STORE_PRUNE_EVENTS:
        return prune_events(store, prune, diag);
    case STORE_PRUNE_TASKS:
        return change_all(store, tasks, prune, diag);
    case STORE_PRUNE_RUN: {
        enum err err = note_run(store, prune, diag);
        return err == ERR_OK ? change_all(store, run, prune, diag) : err;
    }
    }
    return ERR_INVALID;
}
