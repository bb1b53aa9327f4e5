/* SPDX-License-Identifier: MIT */
/*
 * Removal of finished runs; see sqlite_prune.c, whose statements these are in
 * the words of PostgreSQL. They read what they change, so they are not
 * collected but run at once, within the transaction of the batch.
 */
#include "store/pg_internal.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "plan/revise.h"
#include "store/pruned.h"

#include <string.h>

/* The statement's run, $1, exists and has finished. */
#define GOING                                                                  \
    " EXISTS (SELECT 1 FROM run WHERE run.number = $1::int8 AND run.finished)"

/* Keys of the tasks from $2 to $3. */
#define KEYS                                                                   \
    "key BETWEEN ($1::int8 << 32) + $2::int8"                                  \
    " AND ($1::int8 << 32) + least($3::int8, 4294967295)"

static PGresult *query(struct pg_store *store,
                       const char *sql,
                       const struct store_prune *prune,
                       enum err *err_out,
                       struct diag *diag)
{
    struct pg_params params = {0};
    pg_add_i64(&params, prune->run);
    if (strstr(sql, "$2") != NULL) {
        pg_add_i64(&params, (int64_t)prune->first);
        pg_add_i64(&params, (int64_t)prune->last);
    }
    return pg_run(&store->link, sql, &params, err_out, diag);
}

static enum err change_all(struct pg_store *store,
                           const char *const *list,
                           const struct store_prune *prune,
                           struct diag *diag)
{
    enum err err = ERR_OK;
    for (; *list != NULL && err == ERR_OK; list++) {
        PQclear(query(store, *list, prune, &err, diag));
    }
    return err;
}

/* Read the gap that a query by name finds, or ERR_NOT_FOUND. */
static enum err read_gap(struct pg_store *store,
                         const char *sql,
                         uint64_t number,
                         struct event_gap *out,
                         struct diag *diag)
{
    struct event_gap key = {.first = number, .last = number};
    struct event_gap_texts texts = event_gap_write(&key);
    struct pg_params params = {0};
    enum err err = ERR_OK;
    pg_add_text(&params, texts.name);
    PGresult *result = pg_run(&store->link, sql, &params, &err, diag);
    if (err == ERR_OK &&
        (PQntuples(result) != 1 ||
         !event_gap_read(pg_text(result, 0, 0), pg_text(result, 0, 1), out))) {
        err = ERR_NOT_FOUND;
    }
    PQclear(result);
    return err;
}

static enum err set_setting(struct pg_store *store,
                            const char *name,
                            const char *value,
                            struct diag *diag)
{
    struct pg_params params = {0};
    pg_add_text(&params, name);
    pg_add_text(&params, value);
    return pg_do(&store->link,
                 "INSERT INTO setting VALUES ($1, $2)"
                 " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                 &params,
                 NULL,
                 diag);
}

static enum err
drop_gap(struct pg_store *store, const struct event_gap *gap, struct diag *diag)
{
    struct event_gap_texts texts = event_gap_write(gap);
    struct pg_params params = {0};
    pg_add_text(&params, texts.name);
    return pg_do(&store->link,
                 "DELETE FROM setting WHERE name = $1",
                 &params,
                 NULL,
                 diag);
}

/* Store a gap, merged with adjacent gaps. */
static enum err
add_gap(struct pg_store *store, struct event_gap gap, struct diag *diag)
{
    struct event_gap other = {0};
    enum err err = read_gap(store,
                            "SELECT name, value FROM setting WHERE name = $1",
                            gap.last + 1,
                            &other,
                            diag);
    if (err == ERR_OK) {
        gap.last = other.last;
        gap.sum = other.sum;
        err = drop_gap(store, &other, diag);
    } else if (err == ERR_NOT_FOUND) {
        err = ERR_OK;
    }
    if (err == ERR_OK) {
        err = read_gap(store,
                       "SELECT name, value FROM setting WHERE name < $1"
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
    if (err == ERR_OK) {
        struct event_gap_texts texts = event_gap_write(&gap);
        err = set_setting(store, texts.name, texts.value, diag);
    }
    return err;
}

/* Remove the events from `first` to `last` of *gap. */
static enum err drop_events(struct pg_store *store,
                            const struct store_prune *prune,
                            const struct event_gap *gap,
                            struct diag *diag)
{
    struct store_prune part = *prune;
    enum err err = ERR_OK;
    part.first = gap->first;
    part.last = gap->last;
    PQclear(query(store,
                  "DELETE FROM event WHERE event.run = $1"
                  " AND number BETWEEN $2 AND $3",
                  &part,
                  &err,
                  diag));
    return err == ERR_OK ? add_gap(store, *gap, diag) : err;
}

static enum err prune_events(struct pg_store *store,
                             const struct store_prune *prune,
                             struct diag *diag)
{
    enum err err = ERR_OK;
    PGresult *result = query(store,
                             "SELECT number, sum FROM event"
                             " WHERE number BETWEEN $2 AND $3"
                             " AND event.run = $1 AND" GOING " ORDER BY number",
                             prune,
                             &err,
                             diag);
    int count = err == ERR_OK ? PQntuples(result) : 0;
    struct event_gap gap = {0};
    for (int row = 0; row < count && err == ERR_OK; row++) {
        uint64_t number = (uint64_t)pg_i64(result, row, 0);
        if (row > 0 && gap.last + 1 != number) {
            err = drop_events(store, prune, &gap, diag);
            gap.first = number;
        } else if (row == 0) {
            gap.first = number;
        }
        gap.last = number;
        gap.sum = (uint64_t)pg_i64(result, row, 1);
    }
    PQclear(result);
    return err == ERR_OK && count > 0 ? drop_events(store, prune, &gap, diag)
                                      : err;
}

/* Store the remains of a run, if all its other rows are removed. */
static enum err note_run(struct pg_store *store,
                         const struct store_prune *prune,
                         struct diag *diag)
{
    enum err err = ERR_OK;
    PGresult *result = query(
        store,
        "SELECT id, name, run.file, folder, cancelled, text FROM run"
        " JOIN fragment ON fragment.run = run.number"
        " WHERE run.number = $1::int8 AND finished AND (fragment.number = 0"
        "  OR starts_with(fragment.file, '" REVISE_MARK "'))"
        " AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.run = $1::int8)"
        " AND NOT EXISTS (SELECT 1 FROM task WHERE key BETWEEN $1::int8 << 32"
        "  AND ($1::int8 << 32) + 4294967295)"
        " ORDER BY fragment.number DESC LIMIT 1",
        prune,
        &err,
        diag);
    if (err != ERR_OK || PQntuples(result) != 1) {
        PQclear(result);
        return err;
    }
    size_t text_bytes = 0;
    unsigned char *text =
        PQunescapeBytea((const unsigned char *)PQgetvalue(result, 0, 5),
                        &text_bytes);
    struct strbuf name = {0};
    struct strbuf value = {0};
    struct store_run run = {
        .number = prune->run,
        .name = pg_text(result, 0, 1),
        .file = pg_text(result, 0, 2),
        .folder = pg_text(result, 0, 3),
        .finished = true,
        .cancelled = pg_bool(result, 0, 4),
        .text = (const char *)text,
        .text_bytes = text != NULL ? text_bytes : 0,
    };
    strbuf_addf(&name, PRUNED_PREFIX "%s", pg_text(result, 0, 0));
    pruned_add(&value, &run);
    err = set_setting(store, strbuf_text(&name), strbuf_text(&value), diag);
    strbuf_release(&name);
    strbuf_release(&value);
    PQfreemem(text);
    PQclear(result);
    return err;
}

enum err
pg_prune(struct store *base, const struct store_prune *prune, struct diag *diag)
{
    static const char *const tasks[] = {
        "UPDATE run SET cancelled = true WHERE number = $1 AND finished"
        " AND EXISTS (SELECT 1 FROM task WHERE state = 'cancelled' AND " KEYS
        ")",
        "DELETE FROM attempt WHERE attempt.run = $1"
        " AND task BETWEEN $2 AND $3 AND state = 'ended' AND" GOING,
        "DELETE FROM gate WHERE gate.run = $1"
        " AND task BETWEEN $2 AND $3 AND NOT EXISTS"
        " (SELECT 1 FROM attempt WHERE attempt.token = gate.token) AND" GOING,
        "DELETE FROM task WHERE " KEYS " AND NOT EXISTS"
        " (SELECT 1 FROM attempt WHERE attempt.run = $1::int8"
        "  AND attempt.task = task.key & 4294967295) AND" GOING,
        NULL,
    };
    static const char *const run[] = {
        "DELETE FROM run WHERE number = $1 AND EXISTS (SELECT 1 FROM setting"
        "  WHERE setting.name = 'pruned/' || run.id)",
        "DELETE FROM fragment WHERE run = $1"
        " AND run NOT IN (SELECT run.number FROM run)",
        "DELETE FROM run_limit WHERE run = $1"
        " AND run NOT IN (SELECT run.number FROM run)",
        "DELETE FROM setting WHERE $1::int8 NOT IN"
        " (SELECT run.number FROM run) AND (name = 'expected/' || $1::int8"
        "  OR name ~ ('^(base|budget|notice|usage|window)/' || $1::int8"
        "   || '/'))",
        NULL,
    };
    struct pg_store *store = (struct pg_store *)base;
    INVARIANT(store->writing);
    INVARIANT(prune->first <= prune->last || prune->part == STORE_PRUNE_RUN);
    enum err err = store->done ? ERR_OK : pg_flush(store, diag);
    if (err != ERR_OK || store->done) {
        return err;
    }
    memset(store->known, 0, sizeof(store->known));
    switch (prune->part) {
    case STORE_PRUNE_EVENTS:
        return prune_events(store, prune, diag);
    case STORE_PRUNE_TASKS:
        return change_all(store, tasks, prune, diag);
    case STORE_PRUNE_RUN:
        err = note_run(store, prune, diag);
        return err == ERR_OK ? change_all(store, run, prune, diag) : err;
    }
    return ERR_INVALID;
}
