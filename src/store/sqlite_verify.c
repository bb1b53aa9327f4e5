/* SPDX-License-Identifier: MIT */
/*
 * What SQLite's integrity_check sees is the structure; a bit that flips inside
 * a row is not seen. So the log has sums of its own, and the other tables are
 * held against the log and against each other.
 *
 * Most checks are a query of which each row is the text of a fault. In a
 * subquery every column is named with its table: `run` and `number` are columns
 * of several, and a name that binds to the inner one compares a row with
 * itself, which scans the whole table for each row and finds nothing.
 */
#include "store/sqlite_internal.h"

#include "base/macros.h"
#include "base/strbuf.h"
#include "core/sched.h"
#include "store/event.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Faults that one check reports; more would not tell more. */
enum { FAULTS_MAX = 100 };

struct verifying {
    struct sqlite_store *store;
    store_fault_fn fn;
    void *ctx;
    struct diag *diag;
};

static const char *const queries[] = {
    "SELECT 'table run, row ' || number || ': there is no text of its plan'"
    " FROM run WHERE NOT EXISTS (SELECT 1 FROM fragment"
    "  WHERE fragment.run = run.number AND fragment.number = 0)",

    "SELECT 'table run, row ' || number || ': the number was never given out'"
    " FROM run, scheduler WHERE number < 1 OR number > last_run",

    "SELECT 'table fragment, run ' || run || ', number ' || number ||"
    " ': there is no such run' FROM fragment"
    " WHERE run NOT IN (SELECT run.number FROM run)",

    "SELECT 'table fragment, run ' || run || ': a number is missing'"
    " FROM fragment GROUP BY run"
    " HAVING min(number) <> 0 OR max(number) <> count(*) - 1",

    "SELECT 'table run_limit, run ' || run || ', ' || name ||"
    " ': there is no such run' FROM run_limit"
    " WHERE run NOT IN (SELECT run.number FROM run)",

    "SELECT 'table task, run ' || run || ', task ' || ix ||"
    " ': there is no such run' FROM task"
    " WHERE run NOT IN (SELECT run.number FROM run)",

    "SELECT 'table task, run ' || run || ', task ' || ix || ': the token ' ||"
    " token || ' was never given out' FROM task, scheduler"
    " WHERE token < 0 OR token > last_token",

    "SELECT 'table attempt, row ' || token || ': there is no task ' || task ||"
    " ' in run ' || run FROM attempt"
    " WHERE NOT EXISTS (SELECT 1 FROM task"
    "  WHERE task.key = (attempt.run << 32) + attempt.task)",

    "SELECT 'table attempt, row ' || token || ': the token was never given out'"
    " FROM attempt, scheduler WHERE token < 1 OR token > last_token",

    "SELECT 'table attempt, row ' || token || ': unknown state ' ||"
    " quote(state) FROM attempt"
    " WHERE state NOT IN ('claimed', 'running', 'ended')",

    "SELECT 'table attempt, row ' || token || ': it has ended without outcome'"
    " FROM attempt WHERE state = 'ended' AND outcome IS NULL",

    "SELECT 'table attempt, row ' || token || ': claimed by epoch ' || epoch ||"
    " ', which never was' FROM (SELECT attempt.token, attempt.epoch,"
    "  scheduler.epoch AS last FROM attempt, scheduler)"
    " WHERE epoch < 1 OR epoch > last",

    "SELECT 'table attempt, row ' || token || ': the token is not greater than"
    " that of the attempt before'"
    " FROM (SELECT token, lag(token) OVER"
    "  (PARTITION BY run, task ORDER BY number) AS before FROM attempt)"
    " WHERE token <= before",

    "SELECT 'table command, row ' || number || ': the number was never given"
    " out' FROM command, scheduler WHERE number < 1 OR number > last_command",
};

static void PRINTF_LIKE(2, 3)
    fault(struct verifying *verifying, const char *format, ...)
{
    char text[DIAG_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    verifying->fn(verifying->ctx, text);
}

/*
 * An error of SQLite ends a check. Damage is a fault like others, and the next
 * check may find more; anything else ends the whole.
 */
static enum err check_failed(struct verifying *verifying, int rc)
{
    struct diag diag = {0};
    enum err err = sqlite_fail(verifying->store, rc, &diag);
    if (err != ERR_CORRUPT) {
        return diag_set(verifying->diag, err, "%s", diag.text);
    }
    fault(verifying, "%s", sqlite3_errmsg(verifying->store->db));
    return ERR_OK;
}

/* Called for each row; false: no more are wanted. */
typedef bool (*row_fn)(struct verifying *verifying,
                       struct sqlite_row *row,
                       void *ctx);

static enum err
check_rows(struct verifying *verifying, const char *sql, row_fn fn, void *ctx)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(verifying->store->db, sql, -1, &stmt, NULL);
    bool more = true;
    while ((rc == SQLITE_OK || rc == SQLITE_ROW) && more) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            struct sqlite_row row = {.stmt = stmt};
            more = fn(verifying, &row, ctx);
        }
    }
    enum err err = ERR_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        err = check_failed(verifying, rc);
    }
    (void)sqlite3_finalize(stmt);
    return err;
}

/* Each row is a fault, but for the "ok" of integrity_check. */
static bool
report_row(struct verifying *verifying, struct sqlite_row *row, void *ctx)
{
    uint32_t *count = ctx;
    const char *text = sqlite_text(row, 0);
    if (strcmp(text, "ok") != 0) {
        fault(verifying, "%s", text);
    }
    return ++*count < FAULTS_MAX;
}

static enum err check_texts(struct verifying *verifying, const char *sql)
{
    uint32_t count = 0;
    return check_rows(verifying, sql, report_row, &count);
}

/* Where the log has got to. */
struct log {
    uint64_t number;
    uint64_t sum;
    uint32_t faults;
};

/* Go over events before `number` that were removed on purpose. */
static void
skip_gap(struct verifying *verifying, struct log *log, uint64_t number)
{
    struct event_gap gap = {0};
    if (number > log->number + 1 &&
        sqlite_find_gap(verifying->store, log->number + 1, &gap, NULL) ==
            ERR_OK &&
        gap.last < number) {
        log->number = gap.last;
        log->sum = gap.sum;
    }
}

static bool
check_event(struct verifying *verifying, struct sqlite_row *row, void *ctx)
{
    struct log *log = ctx;
    bool about_run = sqlite3_column_type(row->stmt, 2) != SQLITE_NULL;
    bool about_task = sqlite3_column_type(row->stmt, 3) != SQLITE_NULL;
    struct store_event event = {
        .number = sqlite_u64(row, 0),
        .wall_ns = sqlite_i64(row, 1),
        .run = about_run ? sqlite_u32(row, 2) : STORE_NONE,
        .task = about_task ? sqlite_u32(row, 3) : STORE_NONE,
        .kind = sqlite_text(row, 4),
        .data = sqlite_text(row, 5),
        .sum = sqlite_u64(row, 6),
    };
    const char *what = NULL;
    skip_gap(verifying, log, event.number);
    if (event.number != log->number + 1) {
        what = "the events before it are missing";
    } else if (row->bad) {
        what = "a value that cannot be";
    } else if (event.sum != event_sum(log->sum, &event)) {
        what = "it is not what was written (its sum differs)";
    }
    if (what != NULL) {
        log->faults++;
        fault(verifying,
              "table event, row %" PRIu64 ": %s",
              event.number,
              what);
    }
    log->number = event.number;
    log->sum = event.sum;
    return log->faults < FAULTS_MAX;
}

static enum err check_log(struct verifying *verifying,
                          const struct sqlite_head *head)
{
    struct log log = {0};
    enum err err = check_rows(verifying,
                              "SELECT number, wall_ns, run, task, kind, data,"
                              " sum FROM event ORDER BY number",
                              check_event,
                              &log);
    skip_gap(verifying, &log, head->info.last_event + 1);
    if (err == ERR_OK && log.faults == 0 &&
        (log.number != head->info.last_event || log.sum != head->last_sum)) {
        fault(verifying,
              "table event ends at row %" PRIu64 ", and should end at row "
              "%" PRIu64 " (or the table scheduler is damaged)",
              log.number,
              head->info.last_event);
    }
    return err;
}

static bool
check_state(struct verifying *verifying, struct sqlite_row *row, void *ctx)
{
    uint32_t *count = ctx;
    uint32_t run = sqlite_u32(row, 0);
    uint32_t task = sqlite_u32(row, 1);
    uint64_t number = sqlite_u64(row, 2);
    bool missing = sqlite3_column_type(row->stmt, 4) == SQLITE_NULL;
    const char *data = sqlite_text(row, 3);
    const char *state = missing ? "" : sqlite_text(row, 4);
    size_t len = 0;
    const char *to = event_target(data, &len);
    if (missing) {
        fault(verifying,
              "table task, run %u, task %u: the row is missing",
              run,
              task);
    } else if (to == NULL) {
        fault(verifying,
              "table event, row %" PRIu64 ": it does not say which state the "
              "task came to",
              number);
    } else if (strlen(state) != len || memcmp(state, to, len) != 0) {
        fault(verifying,
              "table task, run %u, task %u: the state is %s, and by its last "
              "event (row %" PRIu64 ") %.*s",
              run,
              task,
              state,
              number,
              (int)len,
              to);
    } else {
        return true;
    }
    return ++*count < FAULTS_MAX;
}

/* SQLite gives the columns of the row that has the greatest number. */
static enum err check_states(struct verifying *verifying)
{
    uint32_t count = 0;
    return check_rows(verifying,
                      "SELECT event.run, event.task, max(event.number), data,"
                      " state FROM event LEFT JOIN task"
                      " ON task.key = (event.run << 32) + event.task"
                      " WHERE kind = 'task' AND event.run IS NOT NULL"
                      " AND event.task IS NOT NULL"
                      " GROUP BY event.run, event.task",
                      check_state,
                      &count);
}

static bool
check_name(struct verifying *verifying, struct sqlite_row *row, void *ctx)
{
    (void)ctx;
    const char *state = sqlite_text(row, 0);
    for (int ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (strcmp(state, sched_state_name((enum task_state)ix)) == 0) {
            return true;
        }
    }
    fault(verifying,
          "table task, run %u, task %u: unknown state \"%s\"",
          sqlite_u32(row, 1),
          sqlite_u32(row, 2),
          state);
    return true;
}

/* The schema as a list of texts, in an order of its own. */
#define SCHEMA                                                                 \
    "SELECT type || ' ' || name || ': ' || coalesce(sql, '')"                  \
    " FROM sqlite_schema ORDER BY 1"

static bool
add_line(struct verifying *verifying, struct sqlite_row *row, void *ctx)
{
    (void)verifying;
    strbuf_addf(ctx, "%s\n", sqlite_text(row, 0));
    return true;
}

/* Compare with the schema of a database that is made now, in memory. */
static enum err check_schema(struct verifying *verifying)
{
    struct strbuf stored = {0};
    struct strbuf made = {0};
    struct sqlite_store model = {.dir = verifying->store->dir};
    struct verifying other = *verifying;
    other.store = &model;
    enum err err = check_rows(verifying, SCHEMA, add_line, &stored);
    if (err == ERR_OK) {
        int rc = sqlite3_open(":memory:", &model.db);
        if (rc != SQLITE_OK || sqlite_build_schema(model.db) != ERR_OK) {
            err = diag_set(verifying->diag,
                           ERR_UNAVAILABLE,
                           "SQLite cannot make a database in memory");
        }
    }
    if (err == ERR_OK) {
        err = check_rows(&other, SCHEMA, add_line, &made);
    }
    if (err == ERR_OK &&
        strcmp(strbuf_text(&stored), strbuf_text(&made)) != 0) {
        fault(verifying, "the schema is not the one that sluice makes");
    }
    (void)sqlite3_close(model.db);
    strbuf_release(&made);
    strbuf_release(&stored);
    return err;
}

static enum err check_head(struct verifying *verifying,
                           const struct lock_record *record,
                           struct sqlite_head *out)
{
    struct diag diag = {0};
    enum err err = sqlite_read_head(verifying->store, out, &diag);
    if (err == ERR_CORRUPT) {
        fault(verifying, "%s", diag.text);
        return ERR_OK;
    }
    if (err != ERR_OK) {
        return diag_set(verifying->diag, err, "%s", diag.text);
    }
    if (out->writes < record->writes) {
        fault(verifying,
              "the last %" PRIu64 " writes are missing: an older copy was put "
              "back, or sluice.db-wal is damaged",
              record->writes - out->writes);
    }
    return ERR_OK;
}

static enum err check_all(struct verifying *verifying,
                          const struct lock_record *record)
{
    struct sqlite_head head = {0};
    enum err err = check_texts(verifying, "PRAGMA integrity_check");
    if (err == ERR_OK) {
        err = check_schema(verifying);
    }
    if (err == ERR_OK) {
        err = check_head(verifying, record, &head);
    }
    if (err == ERR_OK) {
        err = check_log(verifying, &head);
    }
    if (err == ERR_OK) {
        err = check_states(verifying);
    }
    if (err == ERR_OK) {
        err = check_rows(verifying,
                         "SELECT state, run, ix FROM task GROUP BY state",
                         check_name,
                         NULL);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(queries) && err == ERR_OK; ix++) {
        err = check_texts(verifying, queries[ix]);
    }
    return err;
}

enum err sqlite_verify(struct store *base,
                       store_fault_fn fn,
                       void *ctx,
                       struct diag *diag)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct verifying verifying = {
        .store = store,
        .fn = fn,
        .ctx = ctx,
        .diag = diag,
    };
    /* First the record: the database is then not older than that. */
    struct lock_record record;
    enum err err = lock_read(&store->lock, &record, diag);
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        err = sqlite_need_db(store, diag);
    }
    if (err == ERR_OK) {
        err = sqlite_begin(store, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = check_all(&verifying, &record);
    sqlite_rollback(store);
    return err;
}
