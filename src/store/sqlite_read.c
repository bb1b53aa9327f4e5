/* SPDX-License-Identifier: MIT */
/*
 * Rows to structs. Each column is checked: what does not fit its member is
 * damage, and is reported with table and row. Names of states are handed out
 * as they are; the caller knows which ones there are.
 */
#include "store/sqlite_internal.h"

#include "base/invariant.h"

#include <inttypes.h>
#include <string.h>

int64_t sqlite_i64(struct sqlite_row *row, int column)
{
    if (sqlite3_column_type(row->stmt, column) != SQLITE_INTEGER) {
        row->bad = true;
        return 0;
    }
    return sqlite3_column_int64(row->stmt, column);
}

uint64_t sqlite_u64(struct sqlite_row *row, int column)
{
    return (uint64_t)sqlite_i64(row, column);
}

uint32_t sqlite_u32(struct sqlite_row *row, int column)
{
    int64_t value = sqlite_i64(row, column);
    if (value < 0 || value > UINT32_MAX) {
        row->bad = true;
        return 0;
    }
    return (uint32_t)value;
}

static int32_t column_i32(struct sqlite_row *row, int column)
{
    int64_t value = sqlite_i64(row, column);
    if (value < INT32_MIN || value > INT32_MAX) {
        row->bad = true;
        return 0;
    }
    return (int32_t)value;
}

static bool column_bool(struct sqlite_row *row, int column)
{
    return sqlite_i64(row, column) != 0;
}

static bool is_null(struct sqlite_row *row, int column)
{
    return sqlite3_column_type(row->stmt, column) == SQLITE_NULL;
}

/* A number that may be absent. */
static uint32_t column_or_none(struct sqlite_row *row, int column)
{
    return is_null(row, column) ? STORE_NONE : sqlite_u32(row, column);
}

const char *sqlite_text(struct sqlite_row *row, int column)
{
    const char *text = NULL;
    if (sqlite3_column_type(row->stmt, column) == SQLITE_TEXT) {
        text = (const char *)sqlite3_column_text(row->stmt, column);
    }
    if (text == NULL ||
        strlen(text) != (size_t)sqlite3_column_bytes(row->stmt, column)) {
        row->bad = true;
        return "";
    }
    return text;
}

static const char *text_or_null(struct sqlite_row *row, int column)
{
    return is_null(row, column) ? NULL : sqlite_text(row, column);
}

/* A text of any bytes; never NULL. */
static const char *
column_bytes(struct sqlite_row *row, int column, size_t *bytes_out)
{
    *bytes_out = 0;
    if (sqlite3_column_type(row->stmt, column) != SQLITE_BLOB) {
        row->bad = true;
        return "";
    }
    const void *bytes = sqlite3_column_blob(row->stmt, column);
    if (bytes == NULL) { /* as SQLite gives those of no length */
        return "";
    }
    *bytes_out = (size_t)sqlite3_column_bytes(row->stmt, column);
    return bytes;
}

enum err sqlite_read_head(struct sqlite_store *store,
                          struct sqlite_head *out,
                          struct diag *diag)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_slot(store,
                               SLOT_HEAD,
                               "SELECT epoch, engine_ns, wall_ns, last_token,"
                               " last_event, last_command, last_run, last_sum,"
                               " writes FROM scheduler WHERE one = 1",
                               &stmt,
                               diag);
    if (err != ERR_OK) {
        return err;
    }
    int rc = sqlite3_step(stmt);
    struct sqlite_row row = {.stmt = stmt};
    if (rc == SQLITE_ROW) {
        *out = (struct sqlite_head){
            .info.epoch = sqlite_u64(&row, 0),
            .info.engine_ns = sqlite_i64(&row, 1),
            .info.wall_ns = sqlite_i64(&row, 2),
            .info.last_token = sqlite_u64(&row, 3),
            .info.last_event = sqlite_u64(&row, 4),
            .info.last_command = sqlite_u64(&row, 5),
            .info.last_run = sqlite_u64(&row, 6),
            .last_sum = sqlite_u64(&row, 7),
            .writes = sqlite_u64(&row, 8),
        };
        /* What grows by one must be able to. */
        row.bad = row.bad || out->info.epoch >= INT64_MAX ||
                  out->info.last_token > INT64_MAX ||
                  out->info.last_event > INT64_MAX ||
                  out->info.last_command > INT64_MAX ||
                  out->info.last_run > STORE_RUN_MAX ||
                  out->writes >= INT64_MAX;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        err = sqlite_fail(store, rc, diag);
    } else if (rc == SQLITE_DONE || row.bad) {
        err = sqlite_corrupt(store,
                             diag,
                             "the table scheduler has no row that makes sense");
    }
    (void)sqlite3_reset(stmt);
    return err;
}

/* One reading: what it shall give, and where it got to. */
struct reading {
    struct sqlite_store *store;
    const struct store_query *query;
    const struct store_visitor *visitor;
    void *ctx;
    struct diag *diag;
};

/* Turn the present row into a struct, and hand it to the visitor. */
typedef enum err (*row_fn)(struct reading *reading, struct sqlite_row *row);

/* The rows that belong to runs which were asked for: ?1 finished, ?2 id. */
#define RUNS_WANTED                                                            \
    "(SELECT number FROM run WHERE (?1 OR finished = 0)"                       \
    " AND (?2 IS NULL OR id = ?2))"

static enum err
bad_row(struct reading *reading, struct sqlite_row *row, const char *table)
{
    return sqlite_corrupt(reading->store,
                          reading->diag,
                          "table %s, row %lld: a value that cannot be",
                          table,
                          (long long)sqlite3_column_int64(row->stmt, 0));
}

static enum err visit_rows(struct reading *reading, const char *sql, row_fn fn)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_prepare(reading->store, sql, &stmt, reading->diag);
    if (err != ERR_OK) {
        return err;
    }
    const struct store_query *query = reading->query;
    /* Of these parameters a statement has as many as it needs. */
    if (sqlite3_bind_parameter_count(stmt) >= 1) {
        (void)sqlite3_bind_int(stmt, 1, query->finished);
    }
    if (sqlite3_bind_parameter_count(stmt) >= 2) {
        (void)sqlite3_bind_text(stmt, 2, query->run, -1, SQLITE_STATIC);
    }
    int rc = SQLITE_ROW;
    while (err == ERR_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct sqlite_row row = {.stmt = stmt};
        err = fn(reading, &row);
    }
    if (err == ERR_OK && rc != SQLITE_DONE) {
        err = sqlite_fail(reading->store, rc, reading->diag);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

/* A run and its fragments come in rows of one shape; number 0 is the run. */
static enum err give_run(struct reading *reading, struct sqlite_row *row)
{
    size_t bytes = 0;
    uint32_t number = sqlite_u32(row, 1);
    if (number == 0) {
        struct store_run run = {
            .number = sqlite_u32(row, 0),
            .file = sqlite_text(row, 2),
            .text = column_bytes(row, 3, &bytes),
            .id = sqlite_text(row, 4),
            .name = sqlite_text(row, 5),
            .folder = sqlite_text(row, 6),
            .processors = sqlite_u32(row, 7),
            .created_ns = sqlite_i64(row, 8),
            .finished = column_bool(row, 9),
            .paused = column_bool(row, 10),
            .cancelled = column_bool(row, 11),
            .barrier = sqlite_u32(row, 12),
            .completions = sqlite_u32(row, 13),
        };
        run.text_bytes = bytes;
        if (row->bad) {
            return bad_row(reading, row, "run");
        }
        return reading->visitor->run != NULL
                   ? reading->visitor->run(reading->ctx, &run)
                   : ERR_OK;
    }
    struct store_fragment fragment = {
        .run = sqlite_u32(row, 0),
        .number = number,
        .file = sqlite_text(row, 2),
        .text = column_bytes(row, 3, &bytes),
    };
    fragment.text_bytes = bytes;
    if (row->bad) {
        return bad_row(reading, row, "fragment");
    }
    return reading->visitor->fragment != NULL
               ? reading->visitor->fragment(reading->ctx, &fragment)
               : ERR_OK;
}

static enum err give_limit(struct reading *reading, struct sqlite_row *row)
{
    struct store_limit limit = {
        .run = sqlite_u32(row, 0),
        .name = sqlite_text(row, 1),
        .max = sqlite_i64(row, 2),
        .percent = sqlite_u32(row, 3),
    };
    return row->bad ? bad_row(reading, row, "run_limit")
                    : reading->visitor->limit(reading->ctx, &limit);
}

static enum err give_provider(struct reading *reading, struct sqlite_row *row)
{
    struct store_provider provider = {
        .name = sqlite_text(row, 0),
        .steps = sqlite_u32(row, 1),
        .steps_kept = sqlite_u32(row, 2),
        .confirming = column_bool(row, 3),
        .shut_until_ns = sqlite_i64(row, 4),
        .usage = column_bool(row, 5),
        .failures = sqlite_u32(row, 6),
        .circuit_open = column_bool(row, 7),
        .probe_token = sqlite_u64(row, 8),
        .probe_steps = sqlite_u32(row, 9),
        .probe_at_ns = sqlite_i64(row, 10),
        .stopped = column_bool(row, 11),
        .reason = text_or_null(row, 12),
    };
    return row->bad ? bad_row(reading, row, "executor")
                    : reading->visitor->provider(reading->ctx, &provider);
}

static enum err give_setting(struct reading *reading, struct sqlite_row *row)
{
    struct store_setting setting = {
        .name = sqlite_text(row, 0),
        .value = sqlite_text(row, 1),
    };
    return row->bad ? bad_row(reading, row, "setting")
                    : reading->visitor->setting(reading->ctx, &setting);
}

static enum err give_task(struct reading *reading, struct sqlite_row *row)
{
    uint64_t key = sqlite_u64(row, 0);
    struct store_task task = {
        .run = (uint32_t)(key >> 32),
        .ix = (uint32_t)key,
        .id = sqlite_text(row, 1),
        .state = sqlite_text(row, 2),
        .flags = sqlite_u32(row, 3),
        .parked = sqlite_u32(row, 4),
        .ready_ns = sqlite_i64(row, 5),
        .ready_seq = sqlite_u64(row, 6),
        .until_ns = sqlite_i64(row, 7),
        .started_ns = sqlite_i64(row, 8),
        .service_ns = sqlite_i64(row, 9),
        .version = sqlite_u64(row, 10),
        .token = sqlite_u64(row, 11),
        .leader = column_or_none(row, 12),
        .place = sqlite_u32(row, 13),
        .attempts = sqlite_u32(row, 14),
        .number = sqlite_u32(row, 15),
        .tries = sqlite_u32(row, 16),
        .reworks = sqlite_u32(row, 17),
        .checkpoints = sqlite_u32(row, 18),
        .cause = column_or_none(row, 19),
        .reason = text_or_null(row, 20),
        .feedback = text_or_null(row, 21),
        .usd = sqlite3_column_double(row->stmt, 22),
        .tokens = sqlite_i64(row, 23),
        .carry = text_or_null(row, 24),
    };
    if (row->bad || task.ix == STORE_NONE) {
        return bad_row(reading, row, "task");
    }
    return reading->visitor->task(reading->ctx, &task);
}

static enum err give_attempt(struct reading *reading, struct sqlite_row *row)
{
    const char *boot_id = sqlite_text(row, 7);
    struct store_attempt attempt = {
        .token = sqlite_u64(row, 0),
        .run = sqlite_u32(row, 1),
        .task = sqlite_u32(row, 2),
        .number = sqlite_u32(row, 3),
        .task_count = sqlite_u32(row, 4),
        .state = sqlite_text(row, 5),
        .epoch = sqlite_u64(row, 6),
        .pid = sqlite_i64(row, 8),
        .start_ticks = sqlite_u64(row, 9),
        .claimed_ns = sqlite_i64(row, 10),
        .begun_ns = sqlite_i64(row, 11),
        .ended_ns = sqlite_i64(row, 12),
        .outcome = text_or_null(row, 13),
        .cause = text_or_null(row, 14),
        .reason = text_or_null(row, 15),
        .code = column_i32(row, 16),
        .signal = column_i32(row, 17),
        .input_tokens = sqlite_i64(row, 18),
        .output_tokens = sqlite_i64(row, 19),
        .usd = sqlite3_column_double(row->stmt, 20),
        .cached_tokens = sqlite_i64(row, 21),
        .slot = sqlite_u32(row, 22),
    };
    const char *nonce = sqlite_text(row, 23);
    size_t len = strlen(boot_id);
    size_t nonce_len = strlen(nonce);
    if (row->bad || len >= sizeof(attempt.boot_id) ||
        nonce_len >= sizeof(attempt.nonce)) {
        return bad_row(reading, row, "attempt");
    }
    memcpy(attempt.boot_id, boot_id, len + 1);
    memcpy(attempt.nonce, nonce, nonce_len + 1);
    return reading->visitor->attempt(reading->ctx, &attempt);
}

static enum err give_command(struct reading *reading, struct sqlite_row *row)
{
    struct store_command command = {
        .number = sqlite_u64(row, 0),
        .wall_ns = sqlite_i64(row, 1),
        .who = sqlite_text(row, 2),
        .verb = sqlite_text(row, 3),
        .args = sqlite_text(row, 4),
        .answer = text_or_null(row, 5),
    };
    return row->bad ? bad_row(reading, row, "command")
                    : reading->visitor->command(reading->ctx, &command);
}

#define TASK_COLUMNS                                                           \
    "key, id, state, flags, parked, ready_ns, ready_seq, until_ns,"            \
    " started_ns, service_ns, version, token, leader, place, attempts,"        \
    " number, tries, reworks, checkpoints, cause, reason, feedback,"           \
    " usd, tokens, carry"

#define ATTEMPT_COLUMNS                                                        \
    "token, run, task, number, task_count, state, epoch, boot_id, pid,"        \
    " start_ticks, claimed_ns, begun_ns, ended_ns, outcome, cause, reason,"    \
    " code, signal, input_tokens, output_tokens, usd, cached_tokens,"          \
    " slot, nonce"

#define RUNS                                                                   \
    "SELECT run.number, fragment.number, fragment.file, text, id, name,"       \
    " folder, processors, created_ns, finished, paused, cancelled, barrier,"   \
    " completions FROM run CROSS JOIN fragment ON fragment.run = run.number"

#define PROVIDERS                                                              \
    "SELECT name, steps, steps_kept, confirming, shut_until_ns, usage,"        \
    " failures, circuit_open, probe_token, probe_steps, probe_at_ns,"          \
    " stopped, reason"                                                         \
    " FROM executor "

#define COMMANDS "SELECT number, wall_ns, who, verb, args, answer FROM command "

/*
 * Tasks are found run by run, by ranges of their key (CROSS JOIN: the runs
 * first), so that reading one run does not look at all the others.
 */
static enum err read_tables(struct reading *reading)
{
    const struct store_visitor *visitor = reading->visitor;
    const struct {
        bool wanted;
        row_fn fn;
        const char *sql;
    } tables[] = {
        {
            visitor->run != NULL || visitor->fragment != NULL,
            give_run,
            RUNS " WHERE (?1 OR finished = 0) AND (?2 IS NULL OR id = ?2)"
                 " ORDER BY run.number, fragment.number",
        },
        {
            visitor->limit != NULL,
            give_limit,
            "SELECT run, name, max, percent FROM run_limit"
            " WHERE run IN " RUNS_WANTED " ORDER BY run, name",
        },
        {
            visitor->provider != NULL,
            give_provider,
            PROVIDERS "ORDER BY name",
        },
        {
            visitor->setting != NULL,
            give_setting,
            "SELECT name, value FROM setting ORDER BY name",
        },
        {
            visitor->task != NULL,
            give_task,
            "SELECT " TASK_COLUMNS " FROM (SELECT number AS owner FROM run"
            "  WHERE (?1 OR finished = 0) AND (?2 IS NULL OR id = ?2))"
            " CROSS JOIN task ON key BETWEEN owner << 32 AND"
            " (owner << 32) + 4294967295 ORDER BY owner, key",
        },
        {
            visitor->attempt != NULL && reading->query->ended,
            give_attempt,
            "SELECT " ATTEMPT_COLUMNS " FROM attempt WHERE run IN " RUNS_WANTED
            " ORDER BY token",
        },
        {
            visitor->attempt != NULL && !reading->query->ended,
            give_attempt,
            "SELECT " ATTEMPT_COLUMNS " FROM attempt INDEXED BY attempt_open"
            " WHERE state <> 'ended' AND run IN " RUNS_WANTED " ORDER BY token",
        },
        {
            visitor->command != NULL && reading->query->answered,
            give_command,
            COMMANDS "ORDER BY number",
        },
        {
            visitor->command != NULL && !reading->query->answered,
            give_command,
            COMMANDS "INDEXED BY command_open WHERE answer IS NULL"
                     " ORDER BY number",
        },
    };
    enum err err = ERR_OK;
    for (size_t ix = 0; ix < ARRAY_COUNT(tables) && err == ERR_OK; ix++) {
        if (tables[ix].wanted) {
            err = visit_rows(reading, tables[ix].sql, tables[ix].fn);
        }
    }
    return err;
}

enum err sqlite_read(struct store *base,
                     const struct store_query *query,
                     const struct store_visitor *visitor,
                     void *ctx,
                     struct store_info *info_out,
                     struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    enum err err = sqlite_need_db(store, diag);
    if (err == ERR_OK) {
        err = sqlite_begin(store, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct sqlite_head head = {0};
    err = sqlite_read_head(store, &head, diag);
    if (err == ERR_OK) {
        struct reading reading = {
            .store = store,
            .query = query,
            .visitor = visitor,
            .ctx = ctx,
            .diag = diag,
        };
        err = read_tables(&reading);
    }
    sqlite_rollback(store); /* ends the reading; nothing was written */
    if (err == ERR_OK && info_out != NULL) {
        *info_out = head.info;
    }
    return err;
}

enum err sqlite_events(struct store *base,
                       uint64_t after,
                       store_event_fn fn,
                       void *ctx,
                       struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (after >= INT64_MAX) {
        return ERR_OK;
    }
    sqlite3_stmt *stmt = NULL;
    enum err err = sqlite_need_db(store, diag);
    if (err == ERR_OK) {
        err = sqlite_prepare(store,
                             "SELECT number, wall_ns, run, task, kind, data,"
                             " sum FROM event WHERE number > ?1"
                             " ORDER BY number",
                             &stmt,
                             diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)after);
    int rc = SQLITE_ROW;
    while (err == ERR_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct sqlite_row row = {.stmt = stmt};
        struct store_event event = {
            .number = sqlite_u64(&row, 0),
            .wall_ns = sqlite_i64(&row, 1),
            .run = column_or_none(&row, 2),
            .task = column_or_none(&row, 3),
            .kind = sqlite_text(&row, 4),
            .data = sqlite_text(&row, 5),
            .sum = sqlite_u64(&row, 6),
        };
        if (row.bad) {
            err = sqlite_corrupt(store,
                                 diag,
                                 "table event, row %" PRIu64
                                 ": a value that cannot be",
                                 event.number);
        } else {
            err = fn(ctx, &event);
        }
    }
    if (err == ERR_OK && rc != SQLITE_DONE) {
        err = sqlite_fail(store, rc, diag);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}
